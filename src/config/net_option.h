/* net_option.h: options from the fields of a net file. */
#ifndef LEAT_CONFIG_NET_OPTION_H
#define LEAT_CONFIG_NET_OPTION_H

#include <leat/option.h>

#include "config/prototxt.h"

/*
 * The field's text, to be used as a C string; borrowed from the file. Errors:
 * LEAT_EINVAL as NAME:LINE:COLUMN if it is no string or has a NUL byte.
 */
int leat__net_option_text(const leat__prototxt *file,
                          const leat__prototxt_field *value, const char **out);

/* The same, and LEAT_EINVAL if it is empty. */
int leat__net_option_path(const leat__prototxt *file,
                          const leat__prototxt_field *value, const char **out);

/*
 * Stores what a field says of an option in `options`, the option's struct. The
 * field passed its schema. Errors: LEAT_EINVAL as NAME:LINE:COLUMN.
 */
int leat__net_option_read(const leat__prototxt *file, const leat_option *option,
                          const leat__prototxt_field *value, void *options);

#endif
