/*
 * layer_state.h: what a data layer is made of.
 *
 * DESIGN. The layer is its caller's: everything in it belongs to the thread
 * that calls, but for the pointers to reader and prefetcher, which cancel uses
 * from other threads: those are set and cleared under `lock`. Concurrency lives
 * in the prefetcher; the layer lends batches to blobs and takes them back.
 *
 * Restore is a new start: everything that runs is stopped and made anew at
 * another place, so that a cancelled or failed reader is no special case.
 */
#ifndef LEAT_LAYER_LAYER_STATE_H
#define LEAT_LAYER_LAYER_STATE_H

#include "layer/layer_options.h"
#include "layer/ledger.h"
#include "layer/prefetcher.h"
#include "layer/solo.h"

struct leat_data_layer {
    leat__layer_options options;
    leat_pipeline *pipeline; /* shared */
    leat_device *device;
    leat_transformer *transformer;
    uint64_t seed;
    int step;  /* ranks that divide the data */
    int cores; /* that the process may use */
    int may_help;
    leat__solo solo;
    int ntop; /* 0 before setup */
    char top_name[LEAT_MAX_FIELDS][64];
    leat_token identity; /* of the data set */

    pthread_mutex_t lock;
    /* changed under lock, read freely by the caller */
    leat__data_reader *reader;
    leat__prefetcher *prefetcher;
    int cancelled; /* protected by lock */

    leat__place place;    /* where the next forward goes on */
    leat__batch *current; /* what the caller holds, or NULL */
    leat_stream stream;   /* that it was delivered on */
    leat_batch view;
    leat__ledger ledger;
    leat__waiting waiting;
    int sticky; /* the status that every forward returns */
    char sticky_line[LEAT__ERROR_MAX];
    int64_t batches;
    int64_t samples;
    int64_t waited; /* nanoseconds */
    int64_t begun;  /* leat__clock_now at setup or restore */
};

/*
 * From the first sample at `place` to running threads; `shape` is that of the
 * first batch. On failure leat__data_layer_stop undoes it.
 */
int leat__data_layer_start(leat_data_layer *layer, int ntop,
                           leat_token *identity, leat__batch_shape *shape);

/* Stops everything that runs. Lent slabs live on. */
void leat__data_layer_stop(leat_data_layer *layer);

/* leat_error, with the status kept for every later forward. */
int leat__data_layer_stick(leat_data_layer *layer, int status,
                           const char *line);

#endif
