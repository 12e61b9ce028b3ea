/*
 * options.h: the options structs of the public headers, whose first member is
 * the size that the caller was compiled with.
 *
 * Fields beyond a caller's size take their defaults. Fields of a newer caller,
 * beyond the size that is known here, must be 0, their default. A size that no
 * such struct has is LEAT_EINVAL.
 */
#ifndef LEAT_BASE_OPTIONS_H
#define LEAT_BASE_OPTIONS_H

#include <stddef.h>

/*
 * Copies `defaults`, of `size` bytes, to `options`, whose size is kept, and no
 * more is written; fields of a newer caller become 0. Errors: LEAT_EINVAL.
 */
int leat__options_init(void *options, const void *defaults, size_t size);

/*
 * Copies a caller's options over `values`, which has the defaults and `size`
 * bytes: those beyond the caller's size stay, and so does its size. NULL: all
 * stay. Errors: LEAT_EINVAL, which leave `values` as they are.
 */
int leat__options_copy(void *values, const void *options, size_t size);

#endif
