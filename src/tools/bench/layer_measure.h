/*
 * layer_measure.h: the measurements of `leat bench layer`, of a layer, or of
 * several that one reader feeds.
 *
 * It goes by slices. With `limit` they alternate with slices of the limit, so
 * that both see the same machine. The limit's clock starts when the layer has
 * filled its batches and is idle; the layer's when these batches are taken.
 */
#ifndef LEAT_TOOLS_BENCH_LAYER_MEASURE_H
#define LEAT_TOOLS_BENCH_LAYER_MEASURE_H

#include "tools/bench/h2d.h"
#include "tools/bench/latency.h"
#include "tools/bench/layer_group.h"
#include "tools/bench/limit.h"

#include <stdbool.h>

struct layer_options {
    struct layer_source_options source;
    double seconds;
    int64_t epochs;    /* instead of seconds; 0: none */
    double compute_ms; /* of one core, after each step: a batch of each layer */
    double sleep_ms;   /* after each step */
    bool overlap;      /* of copies and kernels */
    double kernel_ms;  /* how long these are; 0: as a delivery */
    bool limit;
    bool row_copy; /* the limit copies rows and does nothing else */
    bool json;
};

/* Of so many slices, the last ones, the rates are kept. */
enum { LAYER_SLICES_KEPT = 1024 };

/* Of one layer. */
struct layer_share {
    int64_t samples;
    int64_t batches;
    leat_stats stats; /* stages: of the slices; the rest: at the end */
};

/* Seconds of the device for each batch, by its own clock. */
struct overlap {
    int batches; /* that each figure is the mean of; 0: not measured */
    double copies;
    double kernels;
    double together;
    double share; /* of the shorter of the two that was hidden: 0 to 1 */
};

/* What the slices add up to. Zeroed memory is nothing. */
struct layer_result {
    struct layer_share share[LAYER_GROUP_MOST];
    double first_batch;  /* seconds from create to the first step's end */
    int64_t pass;        /* samples of an epoch; 0: unknown */
    int64_t first_epoch; /* of the first batch measured */
    bool ended;          /* all epochs are over */
    double seconds;
    int64_t batches;
    int64_t samples;
    double payload; /* bytes of the records in these samples */
    int64_t allocations;
    double cpu;    /* seconds, the caller's computing left out */
    double queued; /* seconds in which threads were ready but had no core */
    double slice[LAYER_SLICES_KEPT]; /* images a second */
    int64_t slices;
    struct latency waits; /* of each forward */
    struct limit_result limited;
    struct bandwidth bandwidth;
    int64_t peak_rss;
    struct h2d_ceiling ceiling; /* where one layer has a device */
    double driver_call; /* seconds of one after the caller's pause; 0: none */
    struct overlap overlap;
};

/* Opens the group, which the caller closes, and measures it. Errors end the
   program. */
void layer_measure(struct layer_result *out, struct layer_group *group,
                   const struct layer_options *options);

/* What went over the bus. */
leat_stage_stats layer_copies(const leat_stats *stats);

#endif
