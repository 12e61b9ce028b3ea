/* decimal.h: numbers in texts, whatever the program's locale has for a point.
 */
#ifndef LEAT_BASE_DECIMAL_H
#define LEAT_BASE_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Reads `size` letters, all of which must be the number: a sign and digits.
 * False, and nothing stored: they are no number, or do not fit.
 */
bool leat__decimal_integer(const char *text, size_t size, int64_t *out);

/*
 * The same of a number with a point or an exponent, or "inf" or "nan", to the
 * nearest double; what is too large is infinite.
 */
bool leat__decimal_double(const char *text, size_t size, double *out);

/* Writes a number from which leat__decimal_double reads the same. Returns
 * `out`. */
#define LEAT__DECIMAL_TEXT_MAX 32
const char *leat__decimal_text(char out[LEAT__DECIMAL_TEXT_MAX], double number);

#endif
