/*
 * index_map.h: a decorator that only chooses which samples come where, over
 * upstream readers with random access. It has no thread, buffer or copy.
 */
#ifndef LEAT_DECORATORS_INDEX_MAP_H
#define LEAT_DECORATORS_INDEX_MAP_H

#include "decorators/decorator.h"
#include "decorators/read_limit.h"

typedef struct leat__index_map leat__index_map;

/*
 * Where the samples at `n` positions come from: from[i] of upstream reader
 * upstream[i]; both are to be set. Indices are in [0, count). Any threads.
 */
typedef void leat__map_positions(const leat__index_map *map,
                                 const leat_position at[], int n,
                                 leat_position from[], int upstream[]);

/* The first member of such a decorator's own struct; open sets all up to count.
 */
struct leat__index_map {
    leat__decorator decorator; /* first */
    leat__map_positions *positions;
    int64_t count;          /* of an epoch; LEAT_ENDLESS: without an end */
    leat_position next;     /* of one caller at a time */
    leat__read_limit limit; /* of samples of several upstream readers */
};

/*
 * Operations. next and seek are for decorators that change the order; the
 * others read their upstream readers by next.
 */
int leat__index_map_next(leat_reader *reader, leat_sample *const out[], int n,
                         int *got);
int leat__index_map_seek(leat_reader *reader, leat_position position,
                         leat_token *mark);
int leat__index_map_count(leat_reader *reader, int64_t *out);
int leat__index_map_read_at(leat_reader *reader, const leat_position at[],
                            leat_sample *const out[], int n, int *got);
void leat__index_map_advise(leat_reader *reader, const leat_position at[],
                            int n);
int leat__index_map_restore(leat_reader *reader, leat_token *token);

#endif
