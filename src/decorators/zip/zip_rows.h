/* zip_rows.h: the samples of one input on their way into those of another. */
#ifndef LEAT_DECORATORS_ZIP_ZIP_ROWS_H
#define LEAT_DECORATORS_ZIP_ZIP_ROWS_H

#include <leat/ext/reader.h>

#include <stdatomic.h>

/* Rows that are read from each input in one go. */
#define LEAT__ZIP_ROWS 32

/* Samples of an input, which no other has filled. */
typedef struct leat__zip_rows {
    leat_sample *at[LEAT__ZIP_ROWS];
    leat_sample sample[LEAT__ZIP_ROWS];
} leat__zip_rows;

/* More threads than that allocate rows of their own, each time. */
#define LEAT__ZIP_POOL 32

/* Rows that no thread uses now; each is its taker's alone. */
typedef struct leat__zip_pool {
    const leat_allocator *allocator; /* of samples; immutable */
    atomic_int_fast64_t bytes;       /* of all rows */
    _Atomic(leat__zip_rows *) rows[LEAT__ZIP_POOL];
} leat__zip_pool;

/* Rows of cleared samples. Given back by leat__zip_pool_give; NULL without
 * memory. */
leat__zip_rows *leat__zip_pool_take(leat__zip_pool *pool);
void leat__zip_pool_give(leat__zip_pool *pool, leat__zip_rows *rows);
void leat__zip_pool_finish(leat__zip_pool *pool);

/* Where a sample is from, while another input fills it. */
typedef struct leat__zip_origin {
    leat_provenance from;
    size_t key_at;    /* in the buffer */
    int is_in_buffer; /* the key is there, and moves with it */
} leat__zip_origin;

/* Notes it, and sets it again; *other is then what the input has set. */
void leat__zip_origin_keep(leat__zip_origin *origin, const leat_sample *sample);
void leat__zip_origin_set(leat__zip_origin *origin, leat_sample *sample,
                          leat_provenance *other);

/*
 * Appends the fields of `from` to those of `to`, which keeps its provenance.
 * What is not stable is copied, but for the larger one's, whose buffer `to`
 * gets: `from` is undefined until it is cleared. Errors: LEAT_ENOMEM.
 */
int leat__zip_join(leat_sample *to, leat_sample *from);

#endif
