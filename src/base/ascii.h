/*
 * ascii.h: letters of words that mean the same in every locale. The functions
 * of the C library follow the program's: in a Turkish one "int32" is not
 * "INT32", and in a Latin-1 one more bytes are letters.
 */
#ifndef LEAT_BASE_ASCII_H
#define LEAT_BASE_ASCII_H

#include <stdbool.h>
#include <stddef.h>

static inline char leat__ascii_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static inline bool leat__ascii_is_letter(char c)
{
    c = leat__ascii_lower(c);
    return c >= 'a' && c <= 'z';
}

static inline bool leat__ascii_is_letter_or_digit(char c)
{
    return leat__ascii_is_letter(c) || (c >= '0' && c <= '9');
}

/* Whether the first `n` letters of both are the same in any case, as far as
 * both have some. */
static inline bool leat__ascii_begins_same(const char *a, const char *b,
                                           size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (leat__ascii_lower(a[i]) != leat__ascii_lower(b[i]))
            return false;
        if (!a[i])
            return true;
    }
    return true;
}

/* Whether two words are the same in any case. */
static inline bool leat__ascii_is_same(const char *a, const char *b)
{
    return leat__ascii_begins_same(a, b, (size_t)-1);
}

#endif
