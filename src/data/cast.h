/* cast.h: converts elements between types, for labels and other fields. */
#ifndef LEAT_DATA_CAST_H
#define LEAT_DATA_CAST_H

#include <leat/dtype.h>

#include <stdbool.h>

/*
 * Whether elements of `from` can be converted to `to`: integers and floats of
 * at least 32 bits and uint8 can; BYTES only to itself.
 */
bool leat__cast_is_possible(leat_dtype from, leat_dtype to);

/*
 * Converts `n` elements as C does, floats to integers towards zero and clamped
 * to the range, NaN to 0. Neither side need be aligned.
 */
void leat__cast(void *to, leat_dtype to_type, const void *from,
                leat_dtype from_type, size_t n);

#endif
