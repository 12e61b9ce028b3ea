#include "config/prototxt.h"
#include "base/ascii.h"
#include "base/error.h"
#include "base/memory.h"
#include "config/lexer.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define BLOCK_BYTES ((size_t)16 << 10)

struct leat__prototxt_block {
    struct leat__prototxt_block *next;
    size_t used;
    size_t size;
    alignas(max_align_t) char bytes[];
};

typedef leat__prototxt_field field;

struct parser {
    leat__prototxt *file;
    leat__lexer lexer;
    int depth;
};

void *leat__prototxt_alloc(leat__prototxt *file, size_t bytes)
{
    struct leat__prototxt_block *block = file->blocks;
    size_t whole =
        (bytes + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    if (!block || block->size - block->used < whole) {
        size_t size = whole > BLOCK_BYTES ? whole : BLOCK_BYTES;
        block = leat__alloc_zero(1, sizeof(*block) + size);
        if (!block)
            return NULL;
        block->size = size;
        block->next = file->blocks;
        file->blocks = block;
    }
    void *memory = block->bytes + block->used;
    block->used += whole;
    return memory;
}

int leat__prototxt_error(const leat__prototxt *file, leat__prototxt_location at,
                         const char *format, ...)
{
    char text[LEAT__ERROR_MAX];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    return leat__prototxt_location_error(file->name, at, "%s", text);
}

/* `expected X, found Y` at the current lexeme. */
static int expected(const struct parser *parser, const char *what)
{
    const leat__lexeme *current = &parser->lexer.current;
    char found[LEAT__KEY_TEXT_MAX];
    if (current->type == LEAT__LEXEME_END)
        return leat__prototxt_error(parser->file, current->at,
                                    "expected %s, found the end of the file",
                                    what);
    return leat__prototxt_error(
        parser->file, current->at, "expected %s, found %s", what,
        leat__key_text(found, current->text, current->size));
}

static bool looking_at(const struct parser *parser, char symbol)
{
    const leat__lexeme *current = &parser->lexer.current;
    return current->type == LEAT__LEXEME_SYMBOL && *current->text == symbol;
}

/* 1 when the symbol was there and is passed, 0 when not, or an error. */
static int try_pass(struct parser *parser, char symbol)
{
    if (!looking_at(parser, symbol))
        return 0;
    int status = leat__lexer_advance(&parser->lexer);
    return status ? status : 1;
}

static const char *copy_lexeme(struct parser *parser)
{
    const leat__lexeme *current = &parser->lexer.current;
    char *copy = leat__prototxt_alloc(parser->file, current->size + 1);
    return copy ? memcpy(copy, current->text, current->size) : NULL;
}

/* The bytes of all strings that stand side by side. */
static int parse_strings(struct parser *parser, field *out)
{
    size_t capacity = 0;
    leat__lexer ahead = parser->lexer;
    while (ahead.current.type == LEAT__LEXEME_STRING) {
        capacity += ahead.current.size;
        int status = leat__lexer_advance(&ahead);
        if (status)
            return status;
    }
    char *text = leat__prototxt_alloc(parser->file, capacity + 1);
    if (!text)
        return LEAT_ENOMEM;
    char *end = text;
    while (parser->lexer.current.type == LEAT__LEXEME_STRING) {
        end = leat__lexeme_unquote(&parser->lexer.current, end);
        int status = leat__lexer_advance(&parser->lexer);
        if (status)
            return status;
    }
    *end = 0;
    out->type = LEAT__PROTOTXT_STRING;
    out->text = text;
    out->text_size = (size_t)(end - text);
    return LEAT_OK;
}

static bool is_not_finite(const leat__lexeme *lexeme)
{
    static const char *const names[] = {"inf", "infinity", "nan"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (lexeme->size == strlen(names[i]) &&
            leat__ascii_begins_same(lexeme->text, names[i], lexeme->size))
            return true;
    return false;
}

static int parse_scalar(struct parser *parser, field *out)
{
    const leat__lexeme *current = &parser->lexer.current;
    if (current->type == LEAT__LEXEME_STRING)
        return parse_strings(parser, out);
    int passed = try_pass(parser, '-');
    if (passed < 0)
        return passed;
    out->is_negative = passed;
    if (current->type == LEAT__LEXEME_INTEGER)
        out->type = LEAT__PROTOTXT_INTEGER;
    else if (current->type == LEAT__LEXEME_FLOAT)
        out->type = LEAT__PROTOTXT_FLOAT;
    else if (current->type == LEAT__LEXEME_IDENTIFIER &&
             (!passed || is_not_finite(current)))
        out->type = LEAT__PROTOTXT_IDENTIFIER;
    else
        return expected(parser, passed ? "a number" : "a value");
    out->text_size = current->size;
    out->text = copy_lexeme(parser);
    if (!out->text)
        return LEAT_ENOMEM;
    return leat__lexer_advance(&parser->lexer);
}

static int parse_fields(struct parser *parser, field *message, char end);

static int parse_message(struct parser *parser, field *out)
{
    char end = looking_at(parser, '{') ? '}' : '>';
    if (parser->depth == LEAT__PROTOTXT_DEPTH)
        return leat__prototxt_error(
            parser->file, parser->lexer.current.at,
            "expected at most %d messages within each other, found more",
            LEAT__PROTOTXT_DEPTH);
    int status = leat__lexer_advance(&parser->lexer);
    if (status)
        return status;
    out->type = LEAT__PROTOTXT_MESSAGE;
    parser->depth++;
    status = parse_fields(parser, out, end);
    parser->depth--;
    return status ? status : leat__lexer_advance(&parser->lexer);
}

/* A scalar, or a message if the field's colon allows it. */
static int parse_value(struct parser *parser, field *out)
{
    out->value_at = parser->lexer.current.at;
    if (looking_at(parser, '{') || looking_at(parser, '<'))
        return parse_message(parser, out);
    return out->has_colon ? parse_scalar(parser, out) : expected(parser, ":");
}

static field *add_field(struct parser *parser, const field *like, field ***tail)
{
    field *made = leat__prototxt_alloc(parser->file, sizeof(*made));
    if (!made)
        return NULL;
    made->name = like->name;
    made->at = like->at;
    made->value_at = like->value_at;
    made->has_colon = like->has_colon;
    made->is_listed = like->is_listed;
    **tail = made;
    *tail = &made->next;
    return made;
}

/* The rest of a list whose `[` is passed. */
static int parse_list(struct parser *parser, field *like, field ***tail)
{
    int passed = try_pass(parser, ']');
    if (passed) {
        field *made = passed < 0 ? NULL : add_field(parser, like, tail);
        if (made)
            made->type = LEAT__PROTOTXT_NOTHING;
        return made ? LEAT_OK : passed < 0 ? passed : LEAT_ENOMEM;
    }
    for (;;) {
        field *made = add_field(parser, like, tail);
        int status = made ? parse_value(parser, made) : LEAT_ENOMEM;
        if (status)
            return status;
        passed = try_pass(parser, ']');
        if (passed)
            return passed < 0 ? passed : LEAT_OK;
        passed = try_pass(parser, ',');
        if (passed <= 0)
            return passed < 0 ? passed : expected(parser, ", or ]");
    }
}

/* A name, or that of an extension, which no schema of Caffe's has. */
static int parse_name(struct parser *parser, field *like)
{
    if (looking_at(parser, '['))
        return expected(parser, "a field's name (Caffe has no extensions)");
    if (parser->lexer.current.type != LEAT__LEXEME_IDENTIFIER)
        return expected(parser, "a field's name");
    like->at = parser->lexer.current.at;
    like->name = copy_lexeme(parser);
    if (!like->name)
        return LEAT_ENOMEM;
    return leat__lexer_advance(&parser->lexer);
}

static int parse_field(struct parser *parser, field ***tail)
{
    field like = {0};
    int status = parse_name(parser, &like);
    if (status)
        return status;
    int passed = try_pass(parser, ':');
    if (passed < 0)
        return passed;
    like.has_colon = passed;
    like.value_at = parser->lexer.current.at;
    passed = try_pass(parser, '[');
    if (passed < 0)
        return passed;
    like.is_listed = passed;
    if (passed) {
        status = parse_list(parser, &like, tail);
    } else {
        field *made = add_field(parser, &like, tail);
        status = made ? parse_value(parser, made) : LEAT_ENOMEM;
    }
    if (status)
        return status;
    passed = try_pass(parser, ';');
    if (!passed)
        passed = try_pass(parser, ',');
    return passed < 0 ? passed : LEAT_OK;
}

/* Fields up to `end`, which is not passed; 0: up to the end of the file. */
static int parse_fields(struct parser *parser, field *message, char end)
{
    field **tail = &message->first;
    for (;;) {
        if (end && looking_at(parser, end))
            return LEAT_OK;
        if (end && (looking_at(parser, '}') || looking_at(parser, '>')))
            return expected(parser, end == '}' ? "}" : ">");
        if (parser->lexer.current.type == LEAT__LEXEME_END)
            return end ? expected(parser, end == '}' ? "}" : ">") : LEAT_OK;
        int status = parse_field(parser, &tail);
        if (status)
            return status;
    }
}

int leat__prototxt_parse(leat__prototxt *out, const char *name,
                         const char *text, size_t size)
{
    leat__prototxt file = {.name = name};
    file.root.type = LEAT__PROTOTXT_MESSAGE;
    file.root.name = "";
    file.root.text = "";
    file.root.at = file.root.value_at = (leat__prototxt_location){1, 1};
    struct parser parser = {.file = &file};
    leat__lexer_init(&parser.lexer, file.name, text, size);
    int status = leat__lexer_advance(&parser.lexer);
    if (!status)
        status = parse_fields(&parser, &file.root, 0);
    if (status) {
        leat__prototxt_finish(&file);
        return status;
    }
    *out = file;
    return LEAT_OK;
}

void leat__prototxt_finish(leat__prototxt *file)
{
    while (file->blocks) {
        struct leat__prototxt_block *block = file->blocks;
        file->blocks = block->next;
        leat__free(block);
    }
    file->root.first = NULL;
}

static const field *find_from(const field *candidate, const char *name)
{
    while (candidate && (candidate->type == LEAT__PROTOTXT_NOTHING ||
                         strcmp(candidate->name, name) != 0))
        candidate = candidate->next;
    return candidate;
}

const field *leat__prototxt_find(const field *message, const char *name)
{
    return find_from(message->first, name);
}

const field *leat__prototxt_find_next(const field *previous)
{
    return find_from(previous->next, previous->name);
}
