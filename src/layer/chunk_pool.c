#include "layer/chunk_pool.h"
#include "base/memory.h"
#include "data/sample.h"

int leat__chunk_pool_create(leat__chunk_pool *pool,
                            const leat__chunk_pool_options *options)
{
    pool->part = options->part;
    pool->most = options->most;
    pool->least = options->least;
    pool->spare = leat__alloc_zero((size_t)options->n, sizeof(*pool->spare));
    if (!pool->spare)
        return LEAT_ENOMEM;
    int status = leat__chunk_list_create(
        &pool->list, options->n, options->capacity, options->draws,
        options->buffers, options->sample_buffer, options->part);
    for (int i = 0; i < pool->list.n; i++) {
        pool->list.chunk[i]->is_queued = true;
        leat__chunk_pool_count(pool, pool->list.chunk[i]);
    }
    return status;
}

int leat__chunk_pool_open(leat__chunk_pool *pool)
{
    int status = leat__queue_create(&pool->free, pool->list.n);
    for (int i = 0; i < pool->list.n && !status; i++)
        status = leat__queue_push(pool->free, pool->list.chunk[i]);
    return status;
}

void leat__chunk_pool_close(leat__chunk_pool *pool)
{
    if (pool->free)
        leat__queue_close(pool->free);
}

void leat__chunk_pool_destroy(leat__chunk_pool *pool)
{
    leat__queue_destroy(pool->free);
    leat__chunk_list_destroy(&pool->list);
    leat__free(pool->spare);
}

static void set_held(leat__chunk_pool *pool, leat__chunk *chunk, size_t bytes)
{
    pool->held += bytes - chunk->held;
    chunk->held = bytes;
}

/* Of most chunks, which are not full, no sample is looked at. */
void leat__chunk_pool_count(leat__chunk_pool *pool, leat__chunk *chunk)
{
    bool is_usual = !chunk->is_full && chunk->held <= pool->part;
    set_held(pool, chunk,
             is_usual ? pool->part
                      : leat__sample_buffers(chunk->sample, chunk->capacity));
}

/* Whether another chunk has to come back before one is filled. */
static bool must_wait(const leat__chunk_pool *pool)
{
    if (pool->nspare == 0)
        return true;
    const leat__chunk *next = pool->spare[pool->nspare - 1];
    return pool->held - next->held > pool->most &&
           pool->list.n - pool->nspare > pool->least;
}

int leat__chunk_pool_take(leat__chunk_pool *pool, leat__chunk **out)
{
    while (must_wait(pool)) {
        void *item;
        int status = leat__queue_pop(pool->free, &item, LEAT__FOREVER);
        if (status)
            return status;
        if (pool->nspare > 0) {
            leat__chunk *idle = pool->spare[pool->nspare - 1];
            leat__chunk_release(idle);
            set_held(pool, idle, 0);
        }
        pool->spare[pool->nspare++] = item;
        leat__chunk_pool_count(pool, item);
    }
    *out = pool->spare[--pool->nspare];
    return LEAT_OK;
}

void leat__chunk_pool_give(leat__chunk_pool *pool, leat__chunk *chunk)
{
    /* The queue has room for all chunks: only a closed one refuses. */
    (void)leat__queue_push(pool->free, chunk);
}
