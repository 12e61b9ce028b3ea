/* sampler.h: fills a data reader's chunks, in the order of the sequence. */
#ifndef LEAT_LAYER_SAMPLER_H
#define LEAT_LAYER_SAMPLER_H

#include "base/random.h"
#include "layer/chunk.h"

#include <leat/data_layer.h>

/* What a data reader, and the sampler of its chunks, are told. */
typedef struct leat__data_reader_options {
    const leat_pipeline *pipeline; /* borrowed */
    const leat_allocator *buffers; /* of samples, borrowed; NULL: malloc */
    int batch_size;
    int rank; /* takes positions p = rank mod step */
    int step;
    int threaded;        /* a producer thread fills chunks ahead */
    int probe;           /* also while the reader that was opened may block */
    int64_t probe_every; /* how often that is looked up, in nanoseconds; */
    int64_t probe_pause; /* and at a new epoch, so long after the last time */
    int collects;  /* LEAT_EDATA goes into the chunk's list and fails nothing */
    int draws;     /* words of Caffe's generator a sample; 0: none */
    uint32_t seed; /* of that generator's parent */
    const void *owner; /* of its thread: leat__thread */
} leat__data_reader_options;

/*
 * Everything belongs to one thread at a time, the data reader's own or whoever
 * takes chunks, but for what says otherwise.
 */
typedef struct leat__sampler {
    const leat__data_reader_options *options; /* borrowed */
    leat_reader *reader;                      /* borrowed */
    int random_access;
    int locates;   /* finding samples is serial, reading them is not; where
                      no thread reads ahead */
    int64_t count; /* samples in an epoch; with random access */

    /* What each chunk changes. */
    leat__position window; /* where the current batch begins */
    int64_t cursor;        /* global position of the reader's next record */
    int64_t epoch;         /* of that record */
    int64_t index;
    int64_t skip; /* records between the cursor and our next sample */
    int in_batch; /* samples of the current batch handed out */
    int stuck;    /* the status after which nothing comes; 0: running */

    /* read by anybody */
    atomic_int_fast64_t items;
    atomic_int_fast64_t bytes;
    atomic_int_fast64_t busy;
    atomic_int is_filling;

    leat_sample dropped; /* buffer for other ranks' records */
    leat__mt19937 generator;
    char stuck_line[LEAT__ERROR_MAX];
} leat__sampler;

/*
 * For a reader just opened, by the options as they are settled then. Errors:
 * those of the reader's count.
 */
int leat__sampler_init(leat__sampler *sampler, leat_reader *reader,
                       const leat__data_reader_options *options);
void leat__sampler_finish(leat__sampler *sampler); /* a zeroed one too */

/* Stands at `start`, the beginning of a batch. The reader is fresh. */
void leat__sampler_go_to(leat__sampler *sampler, const leat__position *start);

/*
 * Fills a chunk, all of it new, with the next samples, or leaves it unread for
 * its worker to read. A thread that reads `ahead` waits for storage itself,
 * instead of the workers. Failures are noted in the chunk. May block as the
 * storage does.
 */
void leat__sampler_fill(leat__sampler *sampler, leat__chunk *chunk, int ahead);

#endif
