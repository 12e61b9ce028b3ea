/* cast.h: converts elements between types, for labels and other fields. */
#ifndef LEAT_DATA_CAST_H
#define LEAT_DATA_CAST_H

#include <leat/dtype.h>

#include <stdbool.h>

/*
 * Whether elements of `from` can be converted to `to`: every number can; BYTES
 * only to itself.
 */
bool leat__cast_is_possible(leat_dtype from, leat_dtype to);

/* Whether `to` holds every value that `from` holds. */
bool leat__cast_is_exact(leat_dtype from, leat_dtype to);

/* Whether the number is one that the type holds. */
bool leat__cast_holds(leat_dtype type, double number);

/* FLOAT16, BFLOAT16, FLOAT32 or FLOAT64. */
bool leat__dtype_is_float(leat_dtype dtype);

/*
 * Converts `n` elements as C does: floats to integers towards zero and clamped
 * to the range, NaN to 0; to floats rounded once, to nearest, ties to even.
 * BYTES are taken for uint8. Neither side need be aligned.
 */
void leat__cast(void *to, leat_dtype to_type, const void *from,
                leat_dtype from_type, size_t n);

#endif
