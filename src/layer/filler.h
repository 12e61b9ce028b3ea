/* filler.h: fills a data reader's runs, in the order of the sequence. */
#ifndef LEAT_LAYER_FILLER_H
#define LEAT_LAYER_FILLER_H

#include "base/random.h"
#include "layer/data_reader_options.h"
#include "layer/run.h"

/*
 * Everything belongs to one thread at a time, the data reader's own or whoever
 * takes runs, but for what says otherwise.
 */
typedef struct leat__filler {
    const leat__data_reader_options *options; /* borrowed */
    leat_reader *reader;                      /* borrowed */
    int random_access;
    int locates;   /* finding samples is serial, reading them is not; where
                      no thread reads ahead */
    int64_t count; /* samples in an epoch; with random access */

    /* What each run changes. */
    leat__place window; /* where the current batch begins */
    int64_t cursor;     /* global position of the reader's next record */
    int64_t epoch;      /* of that record */
    int64_t index;
    int64_t skip; /* records between the cursor and our next sample */
    int in_batch; /* samples of the current batch handed out */
    int stuck;    /* the status after which nothing comes; 0: running */

    /* read by anybody */
    atomic_int_fast64_t items;
    atomic_int_fast64_t bytes;
    atomic_int_fast64_t busy;
    atomic_int is_filling;

    leat_sample dropped; /* box for other ranks' records */
    leat__mt19937 generator;
    char stuck_line[LEAT__ERROR_MAX];
} leat__filler;

/*
 * For a reader just opened, by the options as they are settled then. Errors:
 * those of the reader's count.
 */
int leat__filler_init(leat__filler *filler, leat_reader *reader,
                      const leat__data_reader_options *options);
void leat__filler_finish(leat__filler *filler); /* a zeroed one too */

/* Stands at `start`, the beginning of a batch. The reader is fresh. */
void leat__filler_go_to(leat__filler *filler, const leat__place *start);

/*
 * Fills a run, all of it new, with the next samples, or leaves it unread for
 * its worker to read. A thread that reads `ahead` waits for storage itself,
 * instead of the workers. Failures are noted in the run. May block as the
 * storage does.
 */
void leat__filler_fill(leat__filler *filler, leat__run *run, int ahead);

#endif
