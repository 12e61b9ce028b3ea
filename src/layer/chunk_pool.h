/* chunk_pool.h: the chunks that a reader's thread fills ahead. */
#ifndef LEAT_LAYER_CHUNK_POOL_H
#define LEAT_LAYER_CHUNK_POOL_H

#include "base/queue.h"
#include "layer/chunk.h"

/*
 * Take, count and the fields without a mark are the thread's that fills. Where
 * records are longer than the one by which the chunks were numbered, fewer of
 * these are filled at a time, and the others are without buffers.
 */
typedef struct leat__chunk_pool {
    leat__chunk_list list; /* all; of anybody once the pool is open */
    leat__queue *free;     /* NULL: the pool is not open */
    leat__chunk **spare;   /* out of the queue; buffers has the last alone */
    int nspare;
    int least;   /* so many chunks may be out, however long their records are */
    size_t part; /* bytes of a chunk's buffers that is not full */
    size_t most; /* of all chunks', with which another may be filled */
    size_t held; /* of them, as they were counted last */
} leat__chunk_pool;

/*
 * Makes the chunks. `most` is for the buffers of all, of which each ends early
 * at its part. Destroy is due all the same. Errors: LEAT_ENOMEM;
 * LEAT_ECANCELLED.
 */
typedef struct leat__chunk_pool_options {
    int n;
    int capacity;
    int draws;
    const leat_allocator *buffers; /* borrowed; NULL: malloc */
    size_t sample_buffer;          /* bytes of each sample's to begin with */
    size_t part;                   /* bytes at which a chunk ends early */
    size_t most;
    int least;
} leat__chunk_pool_options;
int leat__chunk_pool_create(leat__chunk_pool *pool,
                            const leat__chunk_pool_options *options);

/* Makes the queue, with all chunks in it. Errors: LEAT_ENOMEM, LEAT_EIO. */
int leat__chunk_pool_open(leat__chunk_pool *pool);

/* Takes fail from now on. Any thread, apart from open. */
void leat__chunk_pool_close(leat__chunk_pool *pool);

/* Nobody may use it. */
void leat__chunk_pool_destroy(leat__chunk_pool *pool);

/* Waits for a chunk to fill, and for room. LEAT_ECANCELLED once it is closed.
 */
int leat__chunk_pool_take(leat__chunk_pool *pool, leat__chunk **out);

/* Counts the buffers of a chunk that was filled. */
void leat__chunk_pool_count(leat__chunk_pool *pool, leat__chunk *chunk);

/* Gives a chunk back that was recycled. Any thread. */
void leat__chunk_pool_give(leat__chunk_pool *pool, leat__chunk *chunk);

#endif
