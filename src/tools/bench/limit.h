/*
 * limit.h: the machine's limit on a layer's records.
 *
 * Each of several threads, one for each core, walks round the records with a
 * reader of its own, from a start of its own, and transforms them into its part
 * of a ring as large as the layer's batches. There are no queues and no order.
 * From the last record to the first it goes as the layer does, by a reset: a
 * seek may access storage, which takes longer than a few records. Where the
 * layer does no more than crop, a bare copy of rows is a limit that owes
 * nothing to leat's transform.
 */
#ifndef LEAT_TOOLS_BENCH_LIMIT_H
#define LEAT_TOOLS_BENCH_LIMIT_H

#include "tools/bench/report.h"

#include <leat/data_layer.h>

#include <stdbool.h>

/* The seconds of a slice, where a limit is measured beside something else. */
#define LIMIT_SLICE 0.25

struct limit;

/* What one or several slices did. Zeroed memory is nothing. */
struct limit_result {
    int64_t images;
    int64_t bytes; /* of the records' payload */
    int64_t bad;   /* records left out, in every pass over them */
    double seconds;
    double cpu;  /* seconds */
    int threads; /* fewer than asked for where no more can read */
};

/*
 * Opens readers and takes the memory; `layer` is created, and borrowed during
 * the call. `row_copy`: rows of crops are copied and not even mirrored; of
 * uint8 images into uint8 tops, an error of others. `threads`: 1 to
 * 256. Errors end the program, here and in a slice; so do bad records, unless
 * the layer's on_error skips them.
 */
struct limit *limit_open(const leat_data_layer *layer, bool row_copy,
                         int threads);

/* Runs all threads for so long and adds up their work. */
void limit_run(struct limit *limit, double seconds,
               struct limit_result *result);

/* Takes NULL. */
void limit_close(struct limit *limit);

/* Images a second. */
double limit_rate(const struct limit_result *result);

/*
 * How fast the cores write to memory, to compare with their output: bytes a
 * second, of all cores together, outside of their caches.
 */
struct bandwidth {
    double store;  /* memset */
    double memcpy; /* bytes copied: each is read and written */
};

/* Takes a second. */
void bandwidth_measure(struct bandwidth *out);

/* Adds it, beside the memory's bandwidth. */
void limit_report(const struct limit_result *result,
                  const struct bandwidth *bandwidth, struct report *report);

#endif
