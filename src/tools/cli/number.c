#include "tools/cli/number.h"
#include "base/ascii.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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
