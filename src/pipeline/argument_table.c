#include "pipeline/argument_table.h"
#include "base/ascii.h"
#include "base/decimal.h"
#include "base/error.h"
#include "base/option_list.h"
#include "base/suggestion.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Digits after a point; with the largest unit, an hour, 64 bits hold them. */
#define DECIMALS_MAX 6

const leat_argument *leat__argument_at(const leat_reader_type *type, int i)
{
    if (!type->arguments)
        return NULL;
    const leat_argument *argument =
        (const void *)((const char *)type->arguments +
                       (size_t)i * type->argument_size);
    return argument->name ? argument : NULL;
}

const leat_argument *leat__argument_find(const leat_reader_type *type,
                                         const char *name)
{
    const leat_argument *argument;
    for (int i = 0; (argument = leat__argument_at(type, i)) != NULL; i++) {
        if (strcmp(argument->name, name) == 0)
            return argument;
    }
    return NULL;
}

const leat_argument *leat__argument_positional(const leat_reader_type *type,
                                               int i)
{
    const leat_argument *argument;
    for (int k = 0; (argument = leat__argument_at(type, k)) != NULL; k++) {
        if (argument->positional && (i-- == 0 || argument->repeated))
            return argument;
    }
    return NULL;
}

const char *leat__argument_nearest(const leat_reader_type *type,
                                   const char *name, char *out, int size)
{
    const leat_argument *argument;
    leat__suggestion nearest = leat__suggestion_of(name);
    for (int i = 0; (argument = leat__argument_at(type, i)) != NULL; i++) {
        if (!argument->positional)
            leat__suggestion_consider(&nearest, argument->name);
    }
    return leat__suggestion_write(&nearest, "", out, size);
}

static int64_t time_unit(const char *text)
{
    static const struct {
        const char *name;
        int64_t nanoseconds;
    } units[] = {{"ns", 1},
                 {"us", 1000},
                 {"ms", 1000000},
                 {"s", 1000000000},
                 {"", 1000000000},
                 {"min", 60 * INT64_C(1000000000)},
                 {"h", 3600 * INT64_C(1000000000)}};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(text, units[i].name) == 0)
            return units[i].nanoseconds;
    }
    return 0;
}

/* A decimal number and a unit, in whole nanoseconds. */
static bool read_time(const char *text, int64_t *out)
{
    bool is_negative = *text == '-';
    if (!isdigit((unsigned char)text[is_negative]))
        return false;
    char *end;
    errno = 0;
    int64_t value = strtoll(text, &end, 10);
    int64_t parts = 0, scale = 1;
    if (errno || (*end == '.' && !isdigit((unsigned char)end[1])))
        return false;
    for (int i = 0; *end == '.' || (i && isdigit((unsigned char)*end)); i++) {
        if (i > DECIMALS_MAX)
            return false;
        if (i > 0) {
            parts = 10 * parts + (*end - '0');
            scale *= 10;
        }
        end++;
    }
    int64_t unit = time_unit(end + (*end == ' ' && end[1]));
    parts *= unit;
    return unit && parts % scale == 0 &&
           !__builtin_mul_overflow(value, unit, &value) &&
           !__builtin_add_overflow(
               value, is_negative ? -(parts / scale) : parts / scale, out);
}

/* The argument as an option, whose rules for words and lines are taken. */
static leat_option as_option(const leat_argument *argument)
{
    bool has_range = argument->min || argument->max;
    return (leat_option){
        .name = argument->name,
        .type = argument->kind == LEAT_ARGUMENT_WORD ? LEAT_OPTION_WORD
                                                     : LEAT_OPTION_INT64,
        .least = has_range ? argument->min : INT64_MIN,
        .most = has_range ? argument->max : INT64_MAX,
        .words = argument->kind == LEAT_ARGUMENT_WORD ? argument->words : NULL,
        .unit = argument->kind == LEAT_ARGUMENT_BYTES ? "bytes" : NULL,
    };
}

bool leat__argument_read(const leat_argument *argument, const char *text,
                         int64_t *out)
{
    const leat_option option = as_option(argument);
    int64_t value;
    int word;
    bool is_read;
    switch (argument->kind) {
    case LEAT_ARGUMENT_WORD:
        is_read = leat__option_take_word(&option, &word, text);
        if (is_read)
            *out = word;
        return is_read;
    case LEAT_ARGUMENT_TIME:
        is_read = read_time(text, &value);
        break;
    default:
        value = argument->min;
        is_read =
            (argument->words && leat__ascii_is_same(argument->words, text)) ||
            leat__decimal_quantity(text, argument->kind == LEAT_ARGUMENT_BYTES,
                                   &value);
    }
    if (!is_read || value < option.least || value > option.most)
        return false;
    *out = value;
    return true;
}

/* "expected 1 to 8, found 'x'" */
static const char *describe_fault(const leat_argument *argument,
                                  const char *text,
                                  char out[LEAT__OPTION_FAULT_MAX])
{
    const leat_option option = as_option(argument);
    char shown[LEAT__KEY_TEXT_MAX + 2], printable[LEAT__KEY_TEXT_MAX];
    snprintf(shown, sizeof(shown), "'%s'",
             leat__key_text(printable, text, strlen(text)));
    if (argument->kind != LEAT_ARGUMENT_TIME)
        return leat__option_fault(&option, text, shown, out);
    int used = snprintf(out, LEAT__OPTION_FAULT_MAX,
                        "expected a time such as 2, 500ms or 1.5h");
    if (argument->min || argument->max)
        used += snprintf(out + used, LEAT__OPTION_FAULT_MAX - (size_t)used,
                         ", from %gs to %gs", (double)argument->min * 1e-9,
                         (double)argument->max * 1e-9);
    snprintf(out + used, LEAT__OPTION_FAULT_MAX - (size_t)used, ", found %s",
             shown);
    return out;
}

static bool has_number(const leat_argument *argument)
{
    return argument->kind == LEAT_ARGUMENT_NUMBER ||
           argument->kind == LEAT_ARGUMENT_BYTES ||
           argument->kind == LEAT_ARGUMENT_TIME ||
           argument->kind == LEAT_ARGUMENT_WORD;
}

int leat__argument_check(const leat_reader_type *type,
                         const leat_argument *argument, const char *text)
{
    char fault[LEAT__OPTION_FAULT_MAX];
    int64_t value;
    if (!has_number(argument) || leat__argument_read(argument, text, &value))
        return LEAT_OK;
    return leat_error(LEAT_EINVAL, "%s: %s: %s", type->name, argument->name,
                      describe_fault(argument, text, fault));
}

static bool is_name(const char *name)
{
    for (const char *p = name; *p; p++) {
        if (!leat__ascii_is_letter_or_digit(*p) && *p != '_')
            return false;
    }
    return name[0] != 0;
}

/* What is wrong with one entry, after those before it; NULL: nothing. */
static const char *find_fault(const leat_reader_type *type, int i)
{
    const leat_argument *argument = leat__argument_at(type, i);
    if (!is_name(argument->name))
        return "its name: expected letters, digits or _";
    if (leat__argument_find(type, argument->name) != argument)
        return "its name is taken";
    if (argument->kind < LEAT_ARGUMENT_TEXT ||
        argument->kind > LEAT_ARGUMENT_PIPELINE)
        return "unknown kind";
    if (argument->min > argument->max)
        return "min is above max";
    if (argument->kind == LEAT_ARGUMENT_WORD && !argument->words)
        return "it has no words";
    if (argument->initial &&
        (argument->required || argument->kind == LEAT_ARGUMENT_LIST ||
         argument->kind == LEAT_ARGUMENT_PIPELINE))
        return "it cannot have a default";
    if (argument->repeated && !argument->positional)
        return "only a positional argument is repeated";
    if (argument->pairs &&
        (!argument->repeated || argument->kind != LEAT_ARGUMENT_TEXT))
        return "only a repeated text takes pairs";
    for (int k = 0; argument->positional && k < i; k++) {
        const leat_argument *before = leat__argument_at(type, k);
        if (before->positional &&
            (before->repeated || (argument->required && !before->required)))
            return "it cannot follow an optional or repeated one";
    }
    return NULL;
}

int leat__argument_table_check(const leat_reader_type *type)
{
    const leat_argument *argument;
    if (type->arguments && type->argument_size < sizeof(leat_argument))
        return leat_error(LEAT_EINVAL,
                          "the reader type \"%s\": argument_size is %zu, "
                          "expected %zu",
                          type->name, type->argument_size,
                          sizeof(leat_argument));
    for (int i = 0; (argument = leat__argument_at(type, i)) != NULL; i++) {
        const char *fault = find_fault(type, i);
        if (fault)
            return leat_error(LEAT_EINVAL,
                              "the reader type \"%s\", argument \"%s\": %s",
                              type->name, argument->name, fault);
        int status = argument->initial ? leat__argument_check(type, argument,
                                                              argument->initial)
                                       : LEAT_OK;
        if (status)
            return status;
    }
    return LEAT_OK;
}
