/*
 * source_names.h: the sources of samples whose reader may be closed before
 * they are used. Each is kept once.
 */
#ifndef LEAT_DECORATORS_INTERLEAVE_SOURCE_NAMES_H
#define LEAT_DECORATORS_INTERLEAVE_SOURCE_NAMES_H

#include <stdatomic.h>
#include <stddef.h>

/* Zeroed: empty. */
typedef struct leat__source_names {
    char **name; /* by hash; NULL: free */
    size_t n, room;
    atomic_int_fast64_t bytes; /* of all that; any thread reads it */
} leat__source_names;

/* A copy of `name` that lives as long as the set; NULL without memory. */
const char *leat__source_names_keep(leat__source_names *names,
                                    const char *name);
void leat__source_names_finish(leat__source_names *names);

#endif
