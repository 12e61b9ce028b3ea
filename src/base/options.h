/* options.h: what all options structs of the public headers have in common. */
#ifndef LEAT_BASE_OPTIONS_H
#define LEAT_BASE_OPTIONS_H

#include <stddef.h>

/*
 * Copies `defaults`, of `size` bytes, to `options`, whose first member is the
 * size that its caller knows; that stays, and no more is written. Errors:
 * LEAT_EINVAL where it is less than itself.
 */
int leat__options_init(void *options, const void *defaults, size_t size);

#endif
