/* batch_pool.h: all the batches of a lane, and the memory that they lie in. */
#ifndef LEAT_LAYER_BATCH_POOL_H
#define LEAT_LAYER_BATCH_POOL_H

#include "layer/prefetcher_options.h"

typedef struct leat__batch_pool {
    leat__batch *batch; /* n of them; NULL: none */
    int n;
    int64_t slab_bytes;
    int64_t top_bytes; /* of tops that the device computes */
    int is_pageable;   /* the slab's host side is not pinned */
    int host_node;     /* of NUMA, where it begins; -1: not known */
    /* written by whoever prepares a batch, read by anybody */
    atomic_int_fast64_t grown;
    /* bytes that the pool which grew have outside the slab of all */
    atomic_int_fast64_t grown_bytes; /* pageable ones left out */
    atomic_int_fast64_t grown_pageable;
    atomic_int_fast64_t grown_tops;
} leat__batch_pool;

/*
 * Makes as many as the options say. Errors: LEAT_ENOMEM, LEAT_EIO,
 * LEAT_EDEVICE, LEAT_EINVAL.
 */
int leat__batch_pool_init(leat__batch_pool *pool, leat_device *device,
                          const leat__prefetcher_options *options);
/* Takes a zeroed one too, and one whose init failed. */
void leat__batch_pool_finish(leat__batch_pool *pool);

/* leat__batch_reserve, and notes what it took. */
int leat__batch_pool_reserve(leat__batch_pool *pool, leat__batch *batch,
                             const leat__batch_shape *shape);

#endif
