#include "pipeline/arguments.h"
#include "base/ascii.h"
#include "base/error.h"
#include "base/memory.h"
#include "pipeline/argument_table.h"

#include <stdio.h>
#include <string.h>

int leat__args_add(leat_args *args, leat__value value)
{
    if (args->n == args->room) {
        int room = args->room ? 2 * args->room : 4;
        leat__value *grown =
            leat__realloc(args->value, (size_t)room * sizeof(*args->value));
        if (!grown) {
            leat__free(value.text);
            return LEAT_ENOMEM;
        }
        args->value = grown;
        args->room = room;
    }
    args->leading += value.argument->positional && args->leading == args->n;
    args->positional += value.argument->positional;
    args->value[args->n++] = value;
    return LEAT_OK;
}

void leat__args_finish(leat_args *args)
{
    for (int i = 0; i < args->n; i++)
        leat__free(args->value[i].text);
    leat__free(args->value);
    memset(args, 0, sizeof(*args));
}

const leat__value *leat__args_value(const leat_args *args,
                                    const leat_argument *argument)
{
    for (int i = 0; i < args->n; i++) {
        if (args->value[i].argument == argument)
            return &args->value[i];
    }
    return NULL;
}

int leat__args_check(const leat_args *args)
{
    const leat_argument *argument;
    for (int i = 0; (argument = leat__argument_at(args->type, i)) != NULL;
         i++) {
        if (!argument->required || leat__args_value(args, argument))
            continue;
        return leat_error(LEAT_EINVAL, "%s: %s is missing%s%s",
                          args->type->name, argument->name,
                          argument->help ? ": " : "",
                          argument->help ? argument->help : "");
    }
    return LEAT_OK;
}

/* Whether the letter at `i` would not be read as itself. */
static bool needs_escape(const char *text, size_t i)
{
    bool is_edge = i == 0 || !text[i + 1];
    return strchr(",=|\\()", text[i]) || (is_edge && leat__is_blank(text[i])) ||
           (text[i] == '{' && text[i + 1] == '}');
}

/* Writes the text so that it is read as one value; `out` NULL: only its size,
 * without the NUL. */
static size_t write_escaped(char *out, const char *text)
{
    size_t used = 0;
    for (size_t i = 0; text[i]; i++) {
        if (needs_escape(text, i)) {
            if (out)
                out[used] = '\\';
            used++;
        }
        if (out)
            out[used] = text[i];
        used++;
    }
    return used;
}

static size_t write_text(char *out, const char *text)
{
    size_t size = strlen(text);
    if (out)
        memcpy(out, text, size);
    return size;
}

/* Whether the letters are read as themselves where pairs are: (1,7). */
static bool is_plain_group(const char *text)
{
    size_t size = strlen(text);
    const char *opened = strchr(text, '(');
    return size > 0 && opened && opened - text <= 1 && text[size - 1] == ')' &&
           strchr(opened + 1, ')') == text + size - 1 &&
           !strchr(opened + 1, '(') && !strpbrk(text, "=|\\{ \t\r\n") &&
           text[0] != ',';
}

/* Whether `length` letters are the name of an argument. */
static bool is_argument_name(const leat_reader_type *type, const char *name,
                             size_t length)
{
    const leat_argument *argument;
    for (int i = 0; (argument = leat__argument_at(type, i)) != NULL; i++) {
        if (strlen(argument->name) == length &&
            memcmp(argument->name, name, length) == 0)
            return true;
    }
    return false;
}

/* name=value: the first equals sign is not escaped. */
static size_t write_pair(char *out, const leat_reader_type *type,
                         const char *text)
{
    const char *equals = strchr(text, '=');
    if (!equals || is_argument_name(type, text, (size_t)(equals - text)))
        return write_escaped(out, text);
    size_t used = 0;
    for (const char *c = text; c < equals; c++) {
        const char letter[2] = {*c};
        bool is_plain = leat__ascii_is_letter_or_digit(*c) || *c == '_';
        used += write_text(out ? out + used : NULL, is_plain ? "" : "\\");
        used += write_text(out ? out + used : NULL, letter);
    }
    used += write_text(out ? out + used : NULL, "=");
    out = out ? out + used : NULL;
    return used + (is_plain_group(equals + 1) ? write_text(out, equals + 1)
                                              : write_escaped(out, equals + 1));
}

static size_t write_value(char *out, const leat_reader_type *type,
                          const leat__value *value)
{
    if (value->argument->pairs)
        return write_pair(out, type, value->text);
    if (value->argument->kind == LEAT_ARGUMENT_LIST) {
        const char *element = value->text;
        size_t used = 0;
        for (int i = 0; i < value->elements; i++) {
            used += write_text(out ? out + used : NULL, i ? "," : "(");
            used += write_escaped(out ? out + used : NULL, element);
            element += strlen(element) + 1;
        }
        return used + write_text(out ? out + used : NULL, ")");
    }
    if (value->argument->kind != LEAT_ARGUMENT_PIPELINE)
        return write_escaped(out, value->text);
    size_t used = write_text(out, "(");
    used += write_text(out ? out + used : NULL, value->text);
    return used + write_text(out ? out + used : NULL, ")");
}

/* `first,second,key=value`; `out` NULL: only its size. */
static size_t write_arguments(char *out, const leat_args *args)
{
    size_t used = 0;
    for (int i = 0; i < args->n; i++) {
        const leat__value *value = &args->value[i];
        if (i)
            used += write_text(out ? out + used : NULL, ",");
        if (!value->argument->positional) {
            used += write_text(out ? out + used : NULL, value->argument->name);
            used += write_text(out ? out + used : NULL, "=");
        }
        used += write_value(out ? out + used : NULL, args->type, value);
    }
    return used;
}

char *leat__args_write(const leat_args *args)
{
    size_t size = write_arguments(NULL, args);
    char *out = leat__alloc(size + 1);
    if (!out)
        return NULL;
    write_arguments(out, args);
    out[size] = 0;
    return out;
}

/* Whether the value is that which the argument has without it. */
static bool is_default(const leat__value *value)
{
    const leat_argument *argument = value->argument;
    int64_t given, initial;
    if (!argument->initial || value->is_open || argument->repeated)
        return false;
    if (argument->kind == LEAT_ARGUMENT_TEXT)
        return strcmp(value->text, argument->initial) == 0;
    return leat__argument_read(argument, value->text, &given) &&
           leat__argument_read(argument, argument->initial, &initial) &&
           given == initial;
}

/* By letters, as write_escaped gives them. */
static uint64_t hash_escaped(uint64_t hash, const char *text)
{
    char letter[2] = "";
    for (size_t i = 0; text[i]; i++) {
        letter[0] = text[i];
        hash = leat__hash_text(hash, needs_escape(text, i) ? "\\" : "");
        hash = leat__hash_text(hash, letter);
    }
    return hash;
}

static uint64_t hash_value(uint64_t hash, const leat__value *value)
{
    char number[32];
    int64_t read;
    const char *element = value->text;
    switch (value->argument->kind) {
    case LEAT_ARGUMENT_LIST:
        for (int i = 0; i < value->elements; i++) {
            hash = leat__hash_text(hash, i ? "," : "(");
            hash = hash_escaped(hash, element);
            element += strlen(element) + 1;
        }
        return leat__hash_text(hash, ")");
    case LEAT_ARGUMENT_PIPELINE:
        snprintf(number, sizeof(number), "(%016llx)",
                 (unsigned long long)value->hash);
        return leat__hash_text(hash, number);
    case LEAT_ARGUMENT_TEXT:
        break;
    default:
        if (value->is_open ||
            !leat__argument_read(value->argument, value->text, &read))
            break;
        snprintf(number, sizeof(number), "%lld", (long long)read);
        return leat__hash_text(hash, number);
    }
    hash = leat__hash_text(hash, value->is_open ? "{" : "");
    return hash_escaped(hash, value->text);
}

uint64_t leat__args_hash(const leat_args *args, uint64_t hash)
{
    const leat_argument *argument;
    const char *before = ":";
    for (int i = 0; (argument = leat__argument_at(args->type, i)) != NULL;
         i++) {
        for (int k = 0; k < args->n; k++) {
            const leat__value *value = &args->value[k];
            if (value->argument != argument || argument->keeps_samples ||
                is_default(value))
                continue;
            hash = leat__hash_text(hash, before);
            if (!argument->positional) {
                hash = leat__hash_text(hash, argument->name);
                hash = leat__hash_text(hash, "=");
            }
            hash = hash_value(hash, value);
            before = ",";
        }
    }
    return hash;
}

size_t leat_args_escape(const char *text, char *out, size_t size)
{
    size_t needed = write_escaped(NULL, text) + 1;
    if (needed <= size) {
        write_escaped(out, text);
        out[needed - 1] = 0;
    }
    return needed;
}

const char *leat_args_at(const leat_args *args, int i)
{
    if (i < 0 || i >= args->positional)
        return NULL;
    int at = i < args->leading ? i : args->leading;
    for (int left = i - at; left > 0 || !args->value[at].argument->positional;
         at++)
        left -= args->value[at].argument->positional;
    return args->value[at].text;
}

/* The value's text, or else the default; NULL: neither. */
static const char *find_text(const leat_args *args, const char *name,
                             const leat_argument **argument)
{
    *argument = leat__argument_find(args->type, name);
    if (!*argument)
        return NULL;
    const leat__value *value = leat__args_value(args, *argument);
    return value ? value->text : (*argument)->initial;
}

const char *leat_args_get(const leat_args *args, const char *name)
{
    const leat_argument *argument;
    return find_text(args, name, &argument);
}

int leat_args_has(const leat_args *args, const char *name)
{
    const leat_argument *argument = leat__argument_find(args->type, name);
    return argument && leat__args_value(args, argument);
}

int64_t leat_args_number(const leat_args *args, const char *name)
{
    const leat_argument *argument;
    const char *text = find_text(args, name, &argument);
    int64_t value = 0;
    return text && leat__argument_read(argument, text, &value) ? value : 0;
}

const char *leat__args_elements(const leat_args *args, const char *name, int *n)
{
    const leat_argument *argument = leat__argument_find(args->type, name);
    const leat__value *value =
        argument ? leat__args_value(args, argument) : NULL;
    *n = value ? value->elements : 0;
    return *n > 0 ? value->text : NULL;
}

const char *leat_args_list(const leat_args *args, const char *name, int i)
{
    int n;
    const char *element = leat__args_elements(args, name, &n);
    if (i < 0 || i >= n)
        return NULL;
    for (; i > 0; i--)
        element += strlen(element) + 1;
    return element;
}

const void *leat_args_object(const leat_args *args)
{
    return args->object;
}
