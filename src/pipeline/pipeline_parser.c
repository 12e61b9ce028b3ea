/*
 * By recursive descent.
 *
 *     pipeline   = (group+ "|")? reader ("|" reader)*  |  group
 *     group      = "(" pipeline ")"
 *     reader     = name (":" arguments)?
 *     arguments  = argument ("," argument)*
 *     argument   = (key "=")? value
 *     value      = text  |  "(" text ("," text)* ")"  |  group
 *
 * Of an argument that takes pairs, name=value is the value, in which a comma
 * inside of parentheses is a letter.
 *
 * The kind of an argument in its type's table decides which value it has, so a
 * parenthesis is a letter of any other text.
 */
#include "pipeline/pipeline_parser.h"
#include "base/error.h"
#include "base/memory.h"
#include "pipeline/argument_table.h"
#include "pipeline/pipeline.h"
#include "pipeline/registry.h"

#include <string.h>

/* The longest name of a reader, with its NUL. */
#define NAME_SIZE 64

typedef leat__pipeline_lexer lexer;

/* The upstream pipelines of the next reader; shared. */
typedef struct upstreams {
    leat_pipeline **pipeline;
    int n;
    int room;
} upstreams;

static int parse_pipeline(lexer *in, leat_pipeline **out);

/* Appends an element, with its NUL, to the `*used` bytes of a list. */
static int append_element(leat__value *value, size_t *used, size_t *room,
                          const char *element)
{
    size_t size = strlen(element) + 1;
    if (*room - *used < size) {
        char *grown = leat__realloc(value->text, 2 * (*used + size));
        if (!grown)
            return LEAT_ENOMEM;
        value->text = grown;
        *room = 2 * (*used + size);
    }
    memcpy(value->text + *used, element, size);
    *used += size;
    value->elements++;
    return LEAT_OK;
}

/* The elements of a list, each with its NUL, end to end. */
static int take_list(lexer *in, leat__value *value)
{
    const char *opened = in->at;
    size_t used = 0, room = 0;
    int status = leat__pipeline_lexer_open(in);
    while (!status) {
        char *element;
        status = leat__pipeline_lexer_take(in, ",", &element, &value->is_open);
        if (status)
            break;
        status = append_element(value, &used, &room, element);
        leat__free(element);
        if (*in->at != ',')
            break;
        in->at++;
    }
    return status ? status : leat__pipeline_lexer_close(in, opened);
}

/* Copies a text without the blanks at its edges; an escaped one stays. */
static char *copy_trimmed(const char *text, size_t size)
{
    while (size > 0 && leat__is_blank(text[size - 1])) {
        size_t backslashes = 0;
        while (backslashes + 1 < size && text[size - 2 - backslashes] == '\\')
            backslashes++;
        if (backslashes % 2 == 1)
            break;
        size--;
    }
    char *copy = leat__alloc(size + 1);
    if (copy) {
        memcpy(copy, text, size);
        copy[size] = 0;
    }
    return copy;
}

/* A pipeline in parentheses is checked, and kept as it is written. */
static int take_template(lexer *in, leat__value *value)
{
    const char *opened = in->at;
    leat__braces braces = in->braces;
    leat_pipeline *pipeline;
    int status = leat__pipeline_lexer_open(in);
    if (status)
        return status;
    leat__pipeline_lexer_skip_blanks(in);
    const char *text = in->at;
    in->braces = LEAT__BRACES_ARE_OPEN;
    status = parse_pipeline(in, &pipeline);
    in->braces = braces;
    if (status)
        return status;
    value->depth = pipeline->depth;
    value->ahead = pipeline->ahead;
    value->may_block = pipeline->may_block;
    value->draws_seed = pipeline->draws_seed;
    value->draws_names = pipeline->draws_names;
    value->varies = pipeline->varies;
    value->hash = leat__pipeline_hash(pipeline);
    leat_pipeline_unref(pipeline);
    value->text = copy_trimmed(text, (size_t)(in->at - text));
    return value->text ? leat__pipeline_lexer_close(in, opened) : LEAT_ENOMEM;
}

/* Removes the blanks around a pair's equals sign. */
static void join_pair(char *text)
{
    char *equals = strchr(text, '=');
    if (!equals)
        return;
    char *name_end = equals, *value = equals + 1;
    while (name_end > text && leat__is_blank(name_end[-1]))
        name_end--;
    while (leat__is_blank(*value))
        value++;
    *name_end = '=';
    memmove(name_end + 1, value, strlen(value) + 1);
}

static int take_value(lexer *in, const leat_reader_type *type,
                      leat__value *value)
{
    leat__pipeline_lexer_skip_blanks(in);
    const char *start = in->at;
    const leat_argument *argument = value->argument;
    if (argument->kind == LEAT_ARGUMENT_PIPELINE && *in->at != '(')
        return leat__pipeline_lexer_fail(
            in, start,
            "%s: %s: expected a pipeline in parentheses, such as "
            "(lmdb:{})",
            type->name, argument->name);
    if (argument->kind == LEAT_ARGUMENT_PIPELINE)
        return take_template(in, value);
    if (argument->kind == LEAT_ARGUMENT_LIST && *in->at == '(')
        return take_list(in, value);
    value->elements = argument->kind == LEAT_ARGUMENT_LIST;
    int status =
        leat__pipeline_lexer_take(in, ",", &value->text, &value->is_open);
    if (!status && argument->pairs)
        join_pair(value->text);
    if (status || value->is_open)
        return status;
    return leat__pipeline_lexer_locate(
        in, start, leat__argument_check(type, argument, value->text));
}

/* Reads the value of an argument, after which it must end. */
static int add_value(lexer *in, leat_args *args, const leat_argument *argument)
{
    leat__value value = {.argument = argument};
    int status = take_value(in, args->type, &value);
    if (status) {
        leat__free(value.text);
        return status;
    }
    status = leat__args_add(args, value);
    if (status || leat__pipeline_lexer_is_end(in, 0) || *in->at == ',')
        return status;
    return leat__pipeline_lexer_fail(
        in, in->at, "expected a comma, | or the end, found '%c'", *in->at);
}

static int refuse_positional(lexer *in, const leat_args *args)
{
    int n = args->positional;
    return leat__pipeline_lexer_fail(
        in, in->at,
        "the reader \"%s\" takes %d argument%s, found %d; a comma "
        "inside an argument is written \\,",
        args->type->name, n, n == 1 ? "" : "s", n + 1);
}

/* Of an argument that takes pairs, an equals sign is a letter. */
static int add_positional(lexer *in, leat_args *args)
{
    const leat_argument *argument =
        leat__argument_positional(args->type, args->positional);
    if (!argument)
        return refuse_positional(in, args);
    in->is_pair = argument->pairs;
    int status = add_value(in, args, argument);
    in->is_pair = false;
    return status;
}

static int add_key(lexer *in, leat_args *args, const char *where,
                   const char *key)
{
    const leat_reader_type *type = args->type;
    const leat_argument *argument = leat__argument_find(type, key);
    if (argument && !argument->positional && leat__args_value(args, argument))
        return leat__pipeline_lexer_fail(in, where, "%s: \"%s\" is given twice",
                                         type->name, key);
    if (argument && !argument->positional)
        return add_value(in, args, argument);
    char nearest[2 * NAME_SIZE];
    return leat__pipeline_lexer_fail(
        in, where,
        "the reader \"%s\" has no argument \"%s\"%s; an equals sign "
        "in a path is written \\=; \"leat readers %s\" lists the "
        "arguments",
        type->name, key,
        leat__argument_nearest(type, key, nearest, sizeof(nearest)),
        type->name);
}

/* Whether a key follows: an equals sign before the argument's end. */
static bool is_key(const lexer *in)
{
    lexer probe = *in;
    bool is_open = false;
    leat__pipeline_lexer_scan(&probe, ",=", NULL, &is_open);
    return *probe.at == '=';
}

static int add_argument(lexer *in, leat_args *args)
{
    leat__pipeline_lexer_skip_blanks(in);
    const leat_argument *next =
        leat__argument_positional(args->type, args->positional);
    bool has_parenthesis = *in->at == '(' && next &&
                           (next->kind == LEAT_ARGUMENT_LIST ||
                            next->kind == LEAT_ARGUMENT_PIPELINE);
    if (has_parenthesis || !is_key(in))
        return add_positional(in, args);
    const char *where = in->at;
    char *key = NULL;
    bool is_open = false;
    int status = leat__pipeline_lexer_take(in, ",=", &key, &is_open);
    if (status)
        return status;
    bool is_pair = next && next->pairs && !leat__argument_find(args->type, key);
    in->at = is_pair ? where : in->at + 1;
    status = is_pair ? add_positional(in, args) : add_key(in, args, where, key);
    leat__free(key);
    return status;
}

static int parse_arguments(lexer *in, leat_args *args)
{
    leat__pipeline_lexer_skip_blanks(in);
    if (leat__pipeline_lexer_is_end(in, 0))
        return LEAT_OK;
    for (;;) {
        int status = add_argument(in, args);
        if (status || leat__pipeline_lexer_is_end(in, 0))
            return status;
        in->at++;
    }
}

/* Reads the name of a reader, and finds its type. */
static int take_type(lexer *in, const leat_reader_type **out)
{
    leat__pipeline_lexer_skip_blanks(in);
    const char *where = in->at;
    lexer measure = *in;
    char name[NAME_SIZE];
    bool is_open = false;
    if (*in->at == '(')
        return leat__pipeline_lexer_fail(
            in, where,
            "an upstream in parentheses is only possible at the "
            "beginning; expected the name of a reader");
    size_t size = leat__pipeline_lexer_scan(&measure, ":", NULL, &is_open);
    if (size == 0 || size >= sizeof(name))
        return leat__pipeline_lexer_fail(
            in, where, "expected the name of a reader, such as lmdb:PATH");
    leat__pipeline_lexer_scan(in, ":", name, &is_open);
    return leat__pipeline_lexer_locate(in, where,
                                       leat__registry_find(out, name));
}

static int add_upstream(upstreams *list, leat_pipeline *pipeline)
{
    if (list->n == list->room) {
        int room = list->room ? 2 * list->room : 4;
        leat_pipeline **grown = leat__realloc(
            list->pipeline, (size_t)room * sizeof(*list->pipeline));
        if (!grown) {
            leat_pipeline_unref(pipeline);
            return LEAT_ENOMEM;
        }
        list->pipeline = grown;
        list->room = room;
    }
    list->pipeline[list->n++] = pipeline;
    return LEAT_OK;
}

static void drop_upstreams(upstreams *list)
{
    while (list->n > 0)
        leat_pipeline_unref(list->pipeline[--list->n]);
}

/* Parses a reader, which takes the place of what it reads in the list. */
static int parse_reader(lexer *in, upstreams *list)
{
    leat_args args = {0};
    leat_pipeline *pipeline;
    leat__pipeline_lexer_skip_blanks(in);
    const char *where = in->at;
    int status = take_type(in, &args.type);
    if (!status && *in->at == ':') {
        in->at++;
        status = parse_arguments(in, &args);
    }
    if (status) {
        leat__args_finish(&args);
        return status;
    }
    status = leat__pipeline_make(&pipeline, args, (leat__pipeline_object){0},
                                 list->pipeline, list->n);
    if (status)
        return leat__pipeline_lexer_locate(in, where, status);
    drop_upstreams(list);
    return add_upstream(list, pipeline);
}

static int parse_group(lexer *in, upstreams *list)
{
    const char *opened = in->at;
    leat_pipeline *pipeline;
    if (list->n == LEAT_MAX_UPSTREAM)
        return leat__pipeline_lexer_fail(in, opened, "more than %d upstreams",
                                         LEAT_MAX_UPSTREAM);
    int status = leat__pipeline_lexer_open(in);
    if (!status)
        status = parse_pipeline(in, &pipeline);
    if (status)
        return status;
    status = add_upstream(list, pipeline);
    return status ? status : leat__pipeline_lexer_close(in, opened);
}

/* The pipelines in parentheses at the beginning, and the bar after them. */
static int parse_groups(lexer *in, upstreams *list)
{
    int status = LEAT_OK;
    leat__pipeline_lexer_skip_blanks(in);
    while (*in->at == '(' && !status)
        status = parse_group(in, list);
    if (status || list->n == 0 || *in->at == '|')
        return status;
    if (list->n == 1 && leat__pipeline_lexer_is_end(in, 0))
        return LEAT_OK;
    return leat__pipeline_lexer_fail(
        in, in->at, "expected | and a reader of what is in parentheses");
}

static int parse_chain(lexer *in, upstreams *list)
{
    int status = parse_groups(in, list);
    if (status || (list->n > 0 && *in->at != '|'))
        return status;
    in->at += list->n > 0;
    status = parse_reader(in, list);
    while (!status && *in->at == '|') {
        in->at++;
        status = parse_reader(in, list);
    }
    return status;
}

static int parse_pipeline(lexer *in, leat_pipeline **out)
{
    upstreams list = {0};
    int status = parse_chain(in, &list);
    if (!status) {
        *out = list.pipeline[0];
        list.n = 0;
    }
    drop_upstreams(&list);
    leat__free(list.pipeline);
    return status;
}

int leat__pipeline_parser_pipeline(lexer *in, leat_pipeline **out)
{
    return parse_pipeline(in, out);
}

int leat__pipeline_parser_arguments(lexer *in, const leat_reader_type *type,
                                    leat_args *out)
{
    leat_args args = {.type = type};
    int status = parse_arguments(in, &args);
    if (status)
        leat__args_finish(&args);
    else
        *out = args;
    return status;
}
