/* worker.h: one thread's tools to put chunks into batches. */
#ifndef LEAT_LAYER_WORKER_H
#define LEAT_LAYER_WORKER_H

#include "base/memory.h"
#include "base/thread.h"
#include "layer/batch_order.h"
#include "layer/on_error/replacement.h"

/* What a worker is at. */
typedef enum leat__worker_at {
    LEAT__AT_REST = 0,
    LEAT__AT_READING,
    LEAT__AT_WORK,
    LEAT__AT_COPY
} leat__worker_at;

/* A worker thread's, or the caller's for helping. */
typedef struct leat__worker {
    struct leat__prefetcher *prefetcher;
    const leat__prefetcher_options *options; /* borrowed, like the next two */
    leat__batch_order *order;
    leat__carry_chain *carry_chain; /* NULL where nothing stands in */
    leat__batch_fill fill;
    leat__replacement replacement; /* zeroed where nothing stands in */
    leat__thread thread;
    /* written by the thread, read by anybody */
    atomic_int_fast64_t items;
    atomic_int_fast64_t bytes;
    atomic_int_fast64_t busy;
    atomic_int_fast64_t reading; /* by itself, before that */
    atomic_int_fast64_t blocked_empty;
    atomic_int_fast64_t blocked_full;
    atomic_int_fast64_t blocked_lock;
    atomic_int_fast64_t chunks;
    atomic_int_fast64_t warnings;
    atomic_int at;                /* a leat__worker_at */
    char apart[LEAT__CACHE_LINE]; /* from the next worker's */
} leat__worker;

/*
 * Makes its tools; what it borrows is set, and its thread does not run. Errors:
 * LEAT_ENOMEM; finish is due all the same.
 */
int leat__worker_init(leat__worker *worker);
/* Takes a zeroed one too. The thread was joined. */
void leat__worker_finish(leat__worker *worker);

/*
 * Reads the chunk's samples, puts them into their places in its batch, and
 * gives the chunk back. What fails is noted in the batch. May wait for the
 * batch's first chunk, and, where something stands in, for the chunk before.
 * Returns the clock at its end.
 */
int64_t leat__worker_work(leat__worker *worker, leat__chunk *chunk);

#endif
