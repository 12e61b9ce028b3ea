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

/*
 * Reads a whole number: a sign, decimal digits, of which up to six may follow a
 * point, and a unit, before which one blank may stand. Of a count k, M, G and T
 * are powers of 1000; of bytes they are powers of 1024, as are KiB to TiB, and
 * kB to TB powers of 1000; case does not matter. A fraction makes a whole
 * number with its unit; of a power of 1024 it is rounded. False, and nothing
 * stored: the text is none.
 */
bool leat__decimal_quantity(const char *text, bool is_bytes, int64_t *out);

/* The same of the beginning of a text; `*end` is after it. */
bool leat__decimal_quantity_begin(const char *text, bool is_bytes,
                                  const char **end, int64_t *out);

/* Writes a number from which leat__decimal_double reads the same. Returns
 * `out`. */
#define LEAT__DECIMAL_TEXT_MAX 32
const char *leat__decimal_text(char out[LEAT__DECIMAL_TEXT_MAX], double number);

/* The same with the nine digits that are enough for every float. */
const char *leat__decimal_float_text(char out[LEAT__DECIMAL_TEXT_MAX],
                                     float number);

#endif
