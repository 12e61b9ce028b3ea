/* worker.h: a thread's state and work: it transforms chunks into batches. */
#ifndef LEAT_LAYER_WORKER_H
#define LEAT_LAYER_WORKER_H

#include "base/memory.h"
#include "layer/device_queue.h"
#include "layer/on_error/replacement.h"

/* What all workers have in common. */
typedef struct leat__worker_options {
    leat__data_reader *reader;      /* borrowed */
    leat_transformer *const *image; /* borrowed, of each image of the plan */
    const leat_allocator *buffers;  /* borrowed; NULL: malloc */
    leat__batch_spec spec;
    leat__batch_shape shape; /* the first record's */
    leat_on_error on_error;
    int step;  /* ranks that divide the positions */
    bool pads; /* batches that lack samples are filled up with padding */
} leat__worker_options;

/* What a worker is doing. */
typedef enum leat__worker_activity {
    LEAT__IDLE = 0,
    LEAT__READING,
    LEAT__WORKING,
    LEAT__COPYING
} leat__worker_activity;

/* A worker thread's, or the caller's for helping. */
typedef struct leat__worker {
    const leat__worker_options *options; /* borrowed, like the next two */
    leat__device_queues *queues;
    leat__carry_chain *carry_chain; /* NULL where bad records fail */
    leat__batch_fill fill;
    leat__replacement replacement; /* zeroed where bad records fail */
    /* written by the thread, read by anybody */
    atomic_int_fast64_t items;
    atomic_int_fast64_t bytes;
    atomic_int_fast64_t busy;
    atomic_int_fast64_t reading; /* by itself, before that */
    atomic_int_fast64_t blocked_empty;
    atomic_int_fast64_t blocked_full;
    atomic_int_fast64_t blocked_lock;
    atomic_int_fast64_t chunks;
    atomic_int_fast64_t warnings; /* these three: of images */
    atomic_int_fast64_t jpeg_fast;
    atomic_int_fast64_t jpeg_library;
    atomic_int activity;          /* a leat__worker_activity */
    char apart[LEAT__CACHE_LINE]; /* from the next worker's */
} leat__worker;

/*
 * Of a zeroed worker; `carry_chain` may be NULL. Errors: LEAT_ENOMEM; finish is
 * due all the same.
 */
int leat__worker_init(leat__worker *worker, const leat__worker_options *options,
                      leat__device_queues *queues,
                      leat__carry_chain *carry_chain);
void leat__worker_finish(leat__worker *worker); /* takes a zeroed one too */

/*
 * Reads the chunk's samples, transforms them into the batch, completes it with
 * the last ones, and gives the chunk back. What fails is noted in the batch.
 * May wait for the batch's first chunk, and, where bad records are replaced,
 * for the chunk before. Returns the clock at its end.
 */
int64_t leat__worker_work(leat__worker *worker, leat__chunk *chunk,
                          leat__batch *batch);

#endif
