#include "base/decimal.h"
#include "base/ascii.h"

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

const char *leat__decimal_text(char out[LEAT__DECIMAL_TEXT_MAX], double number)
{
    locale_t before = has_locale() ? uselocale(c_locale) : (locale_t)0;
    snprintf(out, LEAT__DECIMAL_TEXT_MAX, "%.17g", number);
    if (before)
        uselocale(before);
    return out;
}
