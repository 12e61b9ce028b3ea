/* prototxt_place.h: where something stands in a file, for errors. */
#ifndef LEAT_CONFIG_PROTOTXT_PLACE_H
#define LEAT_CONFIG_PROTOTXT_PLACE_H

#include <leat/status.h>

/* A place in the file, counted from 1; a tab ends at a multiple of 8. */
typedef struct leat__prototxt_place {
    int line;
    int column;
} leat__prototxt_place;

/* LEAT_EINVAL with NAME:LINE:COLUMN before the line; `name` is the file's. */
int leat__prototxt_place_error(const char *name, leat__prototxt_place at,
                               const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
