/*
 * autotune.h: values for the options left open: workers, batches, samples in a
 * chunk, and how often storage is probed. The measurements behind the numbers
 * are in benchmarks/RESULTS.md.
 */
#ifndef LEAT_LAYER_AUTOTUNE_H
#define LEAT_LAYER_AUTOTUNE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Storage is probed so often, and at the beginning of an epoch after so long,
 * in nanoseconds. A probe takes some 50 us: "A cold start, epoch by epoch".
 */
#define LEAT__PROBE_EVERY (100 * INT64_C(1000000))
#define LEAT__PROBE_PAUSE (10 * INT64_C(1000000))

/*
 * Threads for `cores`, one of which the caller uses if it helps, and another
 * the thread that copies to a device, if there is one. Beside that a quarter of
 * many cores is left to the driver where workers only copy pixels: beside an
 * H200 with 16 cores 12 workers were as fast as 14 or faster ("A GPU").
 */
int leat__autotune_workers(int cores, bool caller_helps, bool has_copy_thread,
                           bool computes);

typedef struct leat__autotune_load {
    size_t sample_bytes; /* read and written for a sample; 0: it is decoded */
    size_t buffer_bytes; /* of a sample's own buffer; 0: it is a view */
    int batch_size;
    int workers;
    int batches;       /* in circulation besides those that the callers hold */
    int takers;        /* who have chunks of their own, or those of a thread */
    size_t max_memory; /* 0: no limit */
} leat__autotune_load;

/* Samples in a chunk; `beside_thread`: of a thread that reads ahead. */
int leat__autotune_chunk_size(const leat__autotune_load *load,
                              bool beside_thread);

/* What the buffers of a chunk may take that one of the `takers` fills alone:
 * then it ends. */
size_t leat__autotune_own_buffers(int takers, size_t max_memory);

/* What a thread reads ahead. */
typedef struct leat__autotune_ahead {
    int chunk_size;
    int batch_size;
    int batches;
    int takers;
    size_t buffer_bytes; /* that a chunk takes at least; 0: views */
    size_t max_memory;   /* 0: 256 MiB */
} leat__autotune_ahead;

typedef struct leat__autotune_chunks {
    int n;
    size_t buffers; /* bytes of one's, at which it ends early */
    size_t all;     /* bytes of all together */
} leat__autotune_chunks;

/*
 * Chunks that a thread reads ahead: samples for so many `batches`, as far as
 * they are not too many, and they and their buffers have memory; but one for
 * each of the `takers`, and one more.
 */
leat__autotune_chunks
leat__autotune_chunks_ahead(const leat__autotune_ahead *ahead);

typedef struct leat__autotune_batches {
    int all;         /* of a device, the caller's included */
    int circulating; /* of those, in use from the start */
} leat__autotune_batches;

/*
 * Batches of `bytes` each (both sides of a bus together) for `prefetch`, or
 * LEAT_PREFETCH_AUTO, within `max_memory` for each device (0: no limit).
 * Whether there is room for the least, which is two.
 */
bool leat__autotune_count_batches(leat__autotune_batches *out, int prefetch,
                                  size_t bytes, size_t max_memory);

#endif
