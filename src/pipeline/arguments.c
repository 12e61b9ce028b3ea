#include "pipeline/arguments.h"
#include "base/error.h"
#include "base/memory.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_special(char c)
{
    return c == ',' || c == '=' || c == '|' || c == '\\';
}

/* Ends the argument that begins at `start`; `equals` splits key from value. */
static int add(leat_args *args, const char *start, char *equals)
{
    if (args->n == LEAT__ARGS_MAX || args->nkeys == LEAT__ARGS_MAX)
        return leat_error(LEAT_EINVAL, "more than %d arguments",
                          LEAT__ARGS_MAX);
    if (!equals) {
        args->at[args->n++] = start;
        return LEAT_OK;
    }
    *equals = 0;
    if (leat_args_get(args, start))
        return leat_error(LEAT_EINVAL, "\"%s\" is given twice", start);
    args->key[args->nkeys] = start;
    args->value[args->nkeys++] = equals + 1;
    return LEAT_OK;
}

int leat__args_parse(leat_args *out, const char *text)
{
    size_t size = strlen(text);
    leat_args args = {.memory = leat__alloc(size + 1)};
    if (!args.memory)
        return LEAT_ENOMEM;
    char *to = args.memory;
    const char *start = to;
    char *equals = NULL;
    int status = LEAT_OK;
    for (size_t i = 0; i <= size && size > 0 && !status; i++) {
        if (i == size || text[i] == ',') {
            *to++ = 0;
            status = add(&args, start, equals);
            start = to;
            equals = NULL;
            continue;
        }
        if (text[i] == '=' && !equals)
            equals = to;
        else if (text[i] == '\\' && i + 1 < size)
            i++;
        *to++ = text[i];
    }
    if (status) {
        leat__args_finish(&args);
        return status;
    }
    *out = args;
    return LEAT_OK;
}

void leat__args_finish(leat_args *args)
{
    leat__free(args->memory);
    memset(args, 0, sizeof(*args));
}

static bool knows(const leat_reader_type *type, const char *key)
{
    for (int i = 0; type->keys && type->keys[i]; i++) {
        if (strcmp(type->keys[i], key) == 0)
            return true;
    }
    return false;
}

int leat__args_check(const leat_args *args, const leat_reader_type *type)
{
    for (int i = 0; i < args->nkeys; i++) {
        if (!knows(type, args->key[i]))
            return leat_error(LEAT_EINVAL,
                              "the reader \"%s\" has no argument \"%s\"; an "
                              "equals sign in a path is written \\=",
                              type->name, args->key[i]);
    }
    if (args->n >= type->min_args && args->n <= type->max_args)
        return LEAT_OK;
    char takes[48];
    int used = snprintf(takes, sizeof(takes), "%d", type->min_args);
    if (type->max_args > type->min_args)
        snprintf(takes + used, sizeof(takes) - (size_t)used, " to %d",
                 type->max_args);
    return leat_error(
        LEAT_EINVAL,
        "the reader \"%s\" takes %s argument%s, found %d; a comma "
        "inside an argument is written \\,",
        type->name, takes, type->max_args == 1 ? "" : "s", args->n);
}

char *leat__args_escape(const char *text)
{
    size_t size = strlen(text);
    char *out = leat__alloc(2 * size + 1);
    if (!out)
        return NULL;
    char *to = out;
    for (size_t i = 0; i < size; i++) {
        bool edge = text[i] == ' ' && (i == 0 || i + 1 == size);
        if (is_special(text[i]) || edge)
            *to++ = '\\';
        *to++ = text[i];
    }
    *to = 0;
    return out;
}

const char *leat_args_at(const leat_args *args, int i)
{
    return i >= 0 && i < args->n ? args->at[i] : NULL;
}

const char *leat_args_get(const leat_args *args, const char *key)
{
    for (int i = 0; i < args->nkeys; i++) {
        if (strcmp(args->key[i], key) == 0)
            return args->value[i];
    }
    return NULL;
}

int leat_args_int(const leat_args *args, const char *key, int64_t min,
                  int64_t max, int64_t *out)
{
    const char *text = leat_args_get(args, key);
    if (!text)
        return LEAT_OK;
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (isspace((unsigned char)text[0]) || errno || end == text || *end ||
        value < min || value > max)
        return leat_error(LEAT_EINVAL,
                          "%s=%s: expected a whole number from %lld to %lld",
                          key, text, (long long)min, (long long)max);
    *out = value;
    return LEAT_OK;
}

const void *leat_args_object(const leat_args *args)
{
    return args->object;
}
