#include "base/ascii.h"
#include "base/error.h"
#include "config/prototxt.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef leat__prototxt_field field;

const char *leat__prototxt_show(char out[LEAT__PROTOTXT_SHOWN_MAX],
                                const field *value)
{
    char text[LEAT__KEY_TEXT_MAX] = "";
    const char *quote = value->type == LEAT__PROTOTXT_STRING ? "\"" : "";
    if (value->type == LEAT__PROTOTXT_MESSAGE)
        snprintf(text, sizeof(text), "{");
    else if (value->type == LEAT__PROTOTXT_NOTHING)
        snprintf(text, sizeof(text), "[]");
    else
        leat__key_text(text, value->text, value->text_size);
    snprintf(out, LEAT__PROTOTXT_SHOWN_MAX, "%s%s%s%s",
             value->is_negative ? "-" : "", quote, text, quote);
    return out;
}

static int expected(const leat__prototxt *file, const field *value,
                    const char *what)
{
    char shown[LEAT__PROTOTXT_SHOWN_MAX];
    return leat__prototxt_error(file, value->value_at,
                                "%s: expected %s, found %s", value->name, what,
                                leat__prototxt_show(shown, value));
}

/* An integer token, decimal, 0x hexadecimal or 0 octal; -1: above `max`. */
static int parse_integer(const char *text, uint64_t max, uint64_t *out)
{
    unsigned base = 10;
    uint64_t value = 0;
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
        base = 16;
        text += 2;
    } else if (text[0] == '0') {
        base = 8;
    }
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        unsigned digit = c <= '9' ? (unsigned)c - '0' : (c | 0x20u) - 'a' + 10;
        if (__builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return -1;
    }
    if (value > max)
        return -1;
    *out = value;
    return 0;
}

static int read_unsigned(const leat__prototxt *file, const field *value,
                         uint64_t max, uint64_t *out)
{
    char what[64];
    snprintf(what, sizeof(what), "an integer from 0 to %llu",
             (unsigned long long)max);
    if (value->type != LEAT__PROTOTXT_INTEGER || value->is_negative ||
        parse_integer(value->text, max, out))
        return expected(file, value, what);
    return LEAT_OK;
}

static int read_signed(const leat__prototxt *file, const field *value,
                       int64_t max, int64_t *out)
{
    char what[80];
    uint64_t size;
    uint64_t most = (uint64_t)max + (value->is_negative ? 1 : 0);
    snprintf(what, sizeof(what), "an integer from %lld to %lld",
             -(long long)max - 1, (long long)max);
    if (value->type != LEAT__PROTOTXT_INTEGER ||
        parse_integer(value->text, most, &size))
        return expected(file, value, what);
    /* The least value has no positive counterpart. */
    *out =
        value->is_negative && size ? -(int64_t)(size - 1) - 1 : (int64_t)size;
    return LEAT_OK;
}

int leat__prototxt_uint64(const leat__prototxt *file, const field *value,
                          uint64_t *out)
{
    return read_unsigned(file, value, UINT64_MAX, out);
}

int leat__prototxt_uint32(const leat__prototxt *file, const field *value,
                          uint32_t *out)
{
    uint64_t read = 0;
    int status = read_unsigned(file, value, UINT32_MAX, &read);
    if (!status)
        *out = (uint32_t)read;
    return status;
}

int leat__prototxt_int64(const leat__prototxt *file, const field *value,
                         int64_t *out)
{
    return read_signed(file, value, INT64_MAX, out);
}

int leat__prototxt_int32(const leat__prototxt *file, const field *value,
                         int32_t *out)
{
    int64_t read = 0;
    int status = read_signed(file, value, INT32_MAX, &read);
    if (!status)
        *out = (int32_t)read;
    return status;
}

/* A program's locale must not turn the decimal point into a comma. */
static int read_decimal(const char *text, double *out)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c)
        return leat_error(LEAT_ENOMEM, "out of memory: no locale to read %s",
                          text);
    *out = strtod_l(text, NULL, c);
    freelocale(c);
    return LEAT_OK;
}

static int read_word(const char *text, double *out)
{
    if (leat__ascii_is_same(text, "nan"))
        *out = NAN;
    else if (leat__ascii_is_same(text, "inf") ||
             leat__ascii_is_same(text, "infinity"))
        *out = INFINITY;
    else
        return -1;
    return 0;
}

int leat__prototxt_double(const leat__prototxt *file, const field *value,
                          double *out)
{
    double read = 0;
    const char *text = value->text;
    switch (value->type) {
    case LEAT__PROTOTXT_INTEGER:
        /* Hex and octal would be read as decimal: protobuf refuses them. */
        if (text[0] == '0' && text[1])
            return expected(file, value, "a decimal number");
        /* fall through */
    case LEAT__PROTOTXT_FLOAT: {
        int status = read_decimal(text, &read);
        if (status)
            return status;
        break;
    }
    case LEAT__PROTOTXT_IDENTIFIER:
        if (!read_word(text, &read))
            break;
        /* fall through */
    default:
        return expected(file, value, "a number");
    }
    *out = value->is_negative ? -read : read;
    return LEAT_OK;
}

/*
 * By way of double, as protobuf does: the second rounding is part of the
 * verdict. A tie between the largest float and infinity goes to the float.
 */
static float narrow(double value)
{
    const double tie = 0x1.ffffffp+127;
    if (value > FLT_MAX)
        return value <= tie ? FLT_MAX : INFINITY;
    if (value < -FLT_MAX)
        return value >= -tie ? -FLT_MAX : -INFINITY;
    return (float)value;
}

int leat__prototxt_float(const leat__prototxt *file, const field *value,
                         float *out)
{
    double read = 0;
    int status = leat__prototxt_double(file, value, &read);
    if (!status)
        *out = narrow(read);
    return status;
}

int leat__prototxt_bool(const leat__prototxt *file, const field *value,
                        bool *out)
{
    static const char *const names[2][3] = {{"false", "False", "f"},
                                            {"true", "True", "t"}};
    uint64_t number;
    if (value->type == LEAT__PROTOTXT_INTEGER && !value->is_negative &&
        !parse_integer(value->text, 1, &number)) {
        *out = number == 1;
        return LEAT_OK;
    }
    if (value->type == LEAT__PROTOTXT_IDENTIFIER && !value->is_negative)
        for (int i = 0; i < 6; i++)
            if (!strcmp(value->text, names[i / 3][i % 3])) {
                *out = i >= 3;
                return LEAT_OK;
            }
    return expected(file, value, "true or false");
}

int leat__prototxt_string(const leat__prototxt *file, const field *value,
                          const char **out)
{
    if (value->type != LEAT__PROTOTXT_STRING)
        return expected(file, value, "a string in quotes");
    *out = value->text;
    return LEAT_OK;
}

/* All names of an enum, such as `LEVELDB, LMDB`. */
static const char *list_names(char out[], size_t size,
                              const leat__prototxt_enum values[])
{
    size_t used = 0;
    out[0] = 0;
    for (int i = 0; values[i].name && used < size; i++) {
        const char *before = i ? ", " : values[1].name ? "one of " : "";
        used += (size_t)snprintf(out + used, size - used, "%s%s", before,
                                 values[i].name);
    }
    return out;
}

int leat__prototxt_enum_value(const leat__prototxt *file, const field *value,
                              const leat__prototxt_enum values[], int *out)
{
    char names[128];
    int32_t number = 0;
    bool is_name =
        value->type == LEAT__PROTOTXT_IDENTIFIER && !value->is_negative;
    if (!is_name && (value->type != LEAT__PROTOTXT_INTEGER ||
                     leat__prototxt_int32(file, value, &number)))
        return expected(file, value, list_names(names, sizeof(names), values));
    for (int i = 0; values[i].name; i++)
        if (is_name ? !strcmp(value->text, values[i].name)
                    : values[i].number == number) {
            *out = values[i].number;
            return LEAT_OK;
        }
    return expected(file, value, list_names(names, sizeof(names), values));
}
