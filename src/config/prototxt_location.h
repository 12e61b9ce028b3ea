/* prototxt_location.h: a location in a file, for errors. */
#ifndef LEAT_CONFIG_PROTOTXT_LOCATION_H
#define LEAT_CONFIG_PROTOTXT_LOCATION_H

#include <leat/status.h>

/* Line and column, from 1; a tab ends at a multiple of 8. */
typedef struct leat__prototxt_location {
    int line;
    int column;
} leat__prototxt_location;

/* LEAT_EINVAL with NAME:LINE:COLUMN before the line; `name` is the file's. */
int leat__prototxt_location_error(const char *name, leat__prototxt_location at,
                                  const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
