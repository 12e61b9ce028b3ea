#include "base/decimal.h"
#include "base/ascii.h"

#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The longest number that is read; an exact double has up to 1,077 letters. */
enum { LETTERS_MAX = 1100 };

/* Dividing a whole number below 2^53 by one of these rounds once, and so to the
 * nearest. */
static const double powers[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
enum { DIGITS_MAX = sizeof(powers) / sizeof(powers[0]) - 1 };

static locale_t c_locale;

static void make_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

static bool has_locale(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    return !pthread_once(&once, make_locale) && c_locale;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool leat__decimal_integer(const char *text, size_t size, int64_t *out)
{
    size_t i = size > 0 && (*text == '-' || *text == '+');
    bool is_negative = size > 0 && *text == '-';
    int64_t value = 0;
    if (i == size)
        return false;
    for (; i < size; i++) {
        int digit = text[i] - '0';
        if (!is_digit(text[i]) || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, digit, &value))
            return false;
    }
    /* Negative so far, as there is one number more below zero. */
    if (!is_negative && value == INT64_MIN)
        return false;
    *out = is_negative ? value : -value;
    return true;
}

/* A number of few digits without an exponent; false: any other text. */
static bool read_short(const char *text, size_t size, double *out)
{
    size_t i = size > 0 && (*text == '-' || *text == '+');
    int64_t digits = 0;
    int count = 0, decimals = 0;
    bool has_point = false;
    for (; i < size; i++) {
        if (text[i] == '.' && !has_point) {
            has_point = true;
            continue;
        }
        if (!is_digit(text[i]) || ++count > DIGITS_MAX)
            return false;
        digits = 10 * digits + (text[i] - '0');
        decimals += has_point;
    }
    if (count == 0)
        return false;
    double value = (double)digits / powers[decimals];
    *out = *text == '-' ? -value : value;
    return true;
}

/* Decimal digits, and an exponent or not; strtod takes more. */
static bool is_decimal(const char *text)
{
    size_t sign = *text == '-' || *text == '+';
    const char *c = text + sign;
    size_t digits = strspn(c, "0123456789");
    c += digits;
    if (*c == '.') {
        size_t more = strspn(++c, "0123456789");
        digits += more;
        c += more;
    }
    return digits > 0 && (*c == 0 || *c == 'e' || *c == 'E');
}

bool leat__decimal_double(const char *text, size_t size, double *out)
{
    char copy[LETTERS_MAX + 1];
    if (read_short(text, size, out))
        return true;
    if (size > LETTERS_MAX || memchr(text, 0, size))
        return false;
    memcpy(copy, text, size);
    copy[size] = 0;
    const char *word = copy + (*copy == '-' || *copy == '+');
    if (!is_decimal(copy) && !leat__ascii_is_same(word, "inf") &&
        !leat__ascii_is_same(word, "nan"))
        return false;
    if (!has_locale())
        return false;
    char *end;
    double value = strtod_l(copy, &end, c_locale);
    if (*end)
        return false;
    *out = value;
    return true;
}

/* The factor of a word of `size` letters; 0: it is no unit. */
static int64_t unit_factor(const char *word, size_t size, bool is_bytes)
{
    static const char prefixes[] = "kMGT";
    char unit[8] = "";
    if (size >= sizeof(unit))
        return 0;
    memcpy(unit, word, size);
    if (is_bytes &&
        (leat__ascii_is_same(unit, "B") || leat__ascii_is_same(unit, "byte") ||
         leat__ascii_is_same(unit, "bytes")))
        return 1;
    int64_t thousands = 1, powers_of_two = 1;
    for (int i = 0; prefixes[i]; i++) {
        thousands *= 1000;
        powers_of_two *= 1024;
        if (leat__ascii_lower(*unit) != leat__ascii_lower(prefixes[i]))
            continue;
        if (!unit[1])
            return is_bytes ? powers_of_two : thousands;
        if (is_bytes && leat__ascii_is_same(unit + 1, "B"))
            return thousands;
        if (is_bytes && leat__ascii_is_same(unit + 1, "iB"))
            return powers_of_two;
    }
    return 0;
}

/* The factor of the unit at *at, which is passed with the blank before it. */
static int64_t take_unit(const char **at, bool is_bytes)
{
    const char *word = *at + (**at == ' ');
    size_t size = 0;
    while (leat__ascii_is_letter(word[size]))
        size++;
    int64_t factor = unit_factor(word, size, is_bytes);
    if (factor)
        *at = word + size;
    return factor ? factor : 1;
}

bool leat__decimal_quantity_begin(const char *text, bool is_bytes,
                                  const char **end, int64_t *out)
{
    bool is_negative = *text == '-';
    if (!is_digit(text[is_negative || *text == '+']))
        return false;
    char *after;
    errno = 0;
    int64_t value = strtoll(text, &after, 10);
    const char *at = after;
    int64_t parts = 0, scale = 1;
    if (errno || (*at == '.' && !is_digit(at[1])))
        return false;
    if (*at == '.')
        for (at++; is_digit(*at); at++, scale *= 10) {
            if (scale == 1000000)
                return false;
            parts = 10 * parts + (*at - '0');
        }
    int64_t factor = take_unit(&at, is_bytes);
    parts *= factor;
    bool rounds = factor % 1024 == 0;
    if (!rounds && parts % scale)
        return false;
    parts = (parts + (rounds ? scale / 2 : 0)) / scale;
    if (__builtin_mul_overflow(value, factor, &value) ||
        __builtin_add_overflow(value, is_negative ? -parts : parts, &value))
        return false;
    *end = at;
    *out = value;
    return true;
}

bool leat__decimal_quantity(const char *text, bool is_bytes, int64_t *out)
{
    const char *end;
    int64_t value;
    if (!leat__decimal_quantity_begin(text, is_bytes, &end, &value) || *end)
        return false;
    *out = value;
    return true;
}

static const char *write_digits(char out[LEAT__DECIMAL_TEXT_MAX], int digits,
                                double number)
{
    locale_t before = has_locale() ? uselocale(c_locale) : (locale_t)0;
    snprintf(out, LEAT__DECIMAL_TEXT_MAX, "%.*g", digits, number);
    if (before)
        uselocale(before);
    return out;
}

const char *leat__decimal_text(char out[LEAT__DECIMAL_TEXT_MAX], double number)
{
    return write_digits(out, 17, number);
}

const char *leat__decimal_float_text(char out[LEAT__DECIMAL_TEXT_MAX],
                                     float number)
{
    return write_digits(out, 9, (double)number);
}
