/* data_reader.h: hands out the samples of a pipeline in order, run by run. */
#ifndef LEAT_LAYER_DATA_READER_H
#define LEAT_LAYER_DATA_READER_H

#include "base/error.h"

#include <leat/data_layer.h>
#include <leat/reader.h>

/* A point of the endless sequence, between two batches. */
typedef struct leat__place {
    int64_t position; /* global, over all epochs and ranks */
    int64_t epoch;
    int64_t index; /* in the epoch; may lie behind its end */
} leat__place;

/* Consecutive samples of one batch, the unit in which work is handed out. */
typedef struct leat__run {
    int first;         /* place of the first sample in its batch */
    int n;             /* samples */
    int last;          /* the batch ends with this run */
    leat__place after; /* with `last`: behind the batch */
    /* The first sample that could not be read; -1: none. */
    int failed;
    int status;
    char line[LEAT__ERROR_MAX];
    int unread; /* sample[] is still to be read, by whoever takes it */
    leat_sample **sample;  /* n of them, each with a box of its own */
    int64_t *index;        /* position in the epoch */
    leat_locator *locator; /* where it lies, if the reader locates */
    int64_t *epoch;
    uint32_t *draws;           /* of Caffe's generator, n x draws */
    struct leat__batch *batch; /* whoever takes the run sets it */
} leat__run;

typedef struct leat__data_reader_options {
    const leat_pipeline *pipeline; /* borrowed */
    int batch_size;
    int rank; /* takes positions p = rank mod step */
    int step;
    int threaded;  /* a producer thread fills runs ahead */
    int probe;     /* also where the reader that was opened may block */
    int draws;     /* words of Caffe's generator a sample; 0: none */
    uint32_t seed; /* of that generator's parent */
} leat__data_reader_options;

typedef struct leat__data_reader leat__data_reader;

/*
 * Opens the pipeline and stands at `start`; the thread, if any, does not run.
 * `identity`, if not NULL, is restored into the reader: it refuses another data
 * set. Errors: those of the readers, LEAT_ENOMEM.
 */
int leat__data_reader_create(leat__data_reader **out,
                             const leat__data_reader_options *options,
                             const leat__place *start, leat_token *identity);
/* Cancels, joins and frees. Takes NULL. */
void leat__data_reader_destroy(leat__data_reader *reader);

/* The open reader, borrowed; for its fields and identity. */
leat_reader *leat__data_reader_reader(leat__data_reader *reader);

/*
 * Reads the first sample, which the first take will give, and lends it until
 * then. Errors: those of the reader.
 */
int leat__data_reader_peek(leat__data_reader *reader, const leat_sample **out);

/*
 * Makes boxes for `runs` runs of at most `run_size` samples, and starts the
 * thread, if the options ask for one. Once, after peek.
 */
int leat__data_reader_start(leat__data_reader *reader, int run_size, int runs);

/*
 * Takes the next run, in order: without a thread, makes it, which may block as
 * the storage does. LEAT_AGAIN: the thread has none ready. One caller at a
 * time. After the run with an error that is not LEAT_EDATA, or LEAT_END,
 * nothing comes any more: LEAT_ECANCELLED.
 */
int leat__data_reader_take(leat__data_reader *reader, leat__run **out);

/* Waits until the thread has a run. Woken by cancel. */
int leat__data_reader_wait(leat__data_reader *reader);

/* Reads a run's samples if that is still to be done. Any thread. */
void leat__data_reader_read(leat__data_reader *reader, leat__run *run);

/* Gives the boxes back. Any thread. */
void leat__data_reader_give(leat__data_reader *reader, leat__run *run);

/* Wakes everybody who waits here, for good. Any thread. */
void leat__data_reader_cancel(leat__data_reader *reader);

void leat__data_reader_stats(const leat__data_reader *reader,
                             leat_stage_stats *out, int64_t *bad_records);

#endif
