#include "tools/cli/number.h"
#include "base/ascii.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* With the largest unit, 2^40, a fraction of them stays below 2^63. */
enum { MOST_DECIMALS = 6 };

static const struct unit {
    const char *name;
    enum number_quantity quantity;
    bool is_binary; /* a power of 1024 */
    int64_t factor;
} suffixes[] = {
    {"k", NUMBER_COUNT, 0, 1000},
    {"M", NUMBER_COUNT, 0, 1000000},
    {"G", NUMBER_COUNT, 0, 1000000000},
    {"T", NUMBER_COUNT, 0, 1000000000000},
    {"B", NUMBER_BYTES, 0, 1},
    {"byte", NUMBER_BYTES, 0, 1},
    {"bytes", NUMBER_BYTES, 0, 1},
    {"kB", NUMBER_BYTES, 0, 1000},
    {"MB", NUMBER_BYTES, 0, 1000000},
    {"GB", NUMBER_BYTES, 0, 1000000000},
    {"TB", NUMBER_BYTES, 0, 1000000000000},
    {"K", NUMBER_BYTES, 1, INT64_C(1) << 10},
    {"KiB", NUMBER_BYTES, 1, INT64_C(1) << 10},
    {"M", NUMBER_BYTES, 1, INT64_C(1) << 20},
    {"MiB", NUMBER_BYTES, 1, INT64_C(1) << 20},
    {"G", NUMBER_BYTES, 1, INT64_C(1) << 30},
    {"GiB", NUMBER_BYTES, 1, INT64_C(1) << 30},
    {"T", NUMBER_BYTES, 1, INT64_C(1) << 40},
    {"TiB", NUMBER_BYTES, 1, INT64_C(1) << 40},
};

/* Whether the text begins with this whole word, in any case; skips it. */
static bool take_word(const char **text, const char *word)
{
    size_t size = strlen(word);
    if (!leat__ascii_begins_same(*text, word, size) ||
        leat__ascii_is_letter((*text)[size]))
        return false;
    *text += size;
    return true;
}

/* The unit at *text, and a blank before it, which are skipped; else of 1. */
static struct unit read_unit(const char **text, enum number_quantity quantity)
{
    const char *at = *text + (**text == ' ');
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
        if (suffixes[i].quantity == quantity &&
            take_word(&at, suffixes[i].name)) {
            *text = at;
            return suffixes[i];
        }
    return (struct unit){.factor = 1};
}

/* The digits after a point, as parts of *scale, which are skipped. */
static int read_decimals(const char **text, int64_t *parts, int64_t *scale)
{
    *parts = 0;
    *scale = 1;
    if (**text != '.')
        return 0;
    int digits = 0;
    for (++*text; isdigit((unsigned char)**text); ++*text, digits++) {
        if (digits == MOST_DECIMALS)
            return -1;
        *parts = 10 * *parts + (**text - '0');
        *scale *= 10;
    }
    return digits ? 0 : -1;
}

/* The fraction in whole units, with the number's sign. */
static int scale_decimals(int64_t parts, int64_t scale, struct unit unit,
                          int64_t *out)
{
    int64_t product = parts * unit.factor;
    if (!unit.is_binary && product % scale)
        return -1;
    *out = (product + (unit.is_binary ? scale / 2 : 0)) / scale;
    return 0;
}

int number_read(const char *text, char **end, enum number_quantity quantity,
                int64_t *out)
{
    char *after;
    bool is_negative = *text == '-';
    bool has_sign = is_negative || *text == '+';
    if (!isdigit((unsigned char)text[has_sign]))
        return -1;
    errno = 0;
    long long whole = strtoll(text, &after, 10);
    const char *at = after;
    int64_t parts, scale, fraction, value;
    if (errno || read_decimals(&at, &parts, &scale))
        return -1;
    struct unit unit = read_unit(&at, quantity);
    if (scale_decimals(parts, scale, unit, &fraction) ||
        __builtin_mul_overflow((int64_t)whole, unit.factor, &value) ||
        __builtin_add_overflow(value, is_negative ? -fraction : fraction,
                               &value))
        return -1;
    *out = value;
    *end = (char *)at;
    return 0;
}

/* strtod takes blanks, hexadecimal numbers, inf and nan, too. */
static bool is_decimal(const char *text)
{
    text += *text == '-' || *text == '+';
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
        return false;
    text += *text == '.';
    return isdigit((unsigned char)*text);
}

int number_read_real(const char *text, char **end, double *out)
{
    if (!is_decimal(text))
        return -1;
    double value = strtod(text, end);
    if (!isfinite(value))
        return -1;
    *out = value;
    return 0;
}

int number_read_float(const char *text, char **end, float *out)
{
    if (!is_decimal(text))
        return -1;
    float value = strtof(text, end);
    if (!isfinite(value))
        return -1;
    *out = value;
    return 0;
}

int number_read_time(const char *text, double unit, double *out)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"ns", 1e-9}, {"us", 1e-6},  {"ms", 1e-3},
                 {"s", 1},     {"min", 60.0}, {"h", 3600}};
    char *end;
    double value;
    if (number_read_real(text, &end, &value))
        return -1;
    const char *at = end + (*end == ' ');
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (take_word(&at, units[i].name)) {
            /* A time in its own unit stays as it was typed. */
            if (units[i].seconds != unit)
                value = value * units[i].seconds / unit;
            end = (char *)at;
            break;
        }
    if (*end || !isfinite(value))
        return -1;
    *out = value;
    return 0;
}
