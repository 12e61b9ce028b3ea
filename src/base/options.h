/* options.h: initialises the options structs of the public headers. */
#ifndef LEAT_BASE_OPTIONS_H
#define LEAT_BASE_OPTIONS_H

#include <stddef.h>

/*
 * Copies `defaults`, of `size` bytes, to `options`, whose first member is the
 * size that its caller was compiled with: it is kept, and no more is written.
 * Errors: LEAT_EINVAL if it is smaller than that member.
 */
int leat__options_init(void *options, const void *defaults, size_t size);

/*
 * Copies a caller's options over `values`, which has the defaults and `size`
 * bytes: those beyond the caller's size stay. NULL: all stay. Errors:
 * LEAT_EINVAL if they were not initialised.
 */
int leat__options_copy(void *values, const void *options, size_t size);

#endif
