/* h2d.h: how fast copies run between host memory and a device. */
#ifndef LEAT_TOOLS_BENCH_H2D_H
#define LEAT_TOOLS_BENCH_H2D_H

#include "tools/bench/bench.h"
#include "tools/bench/h2d_setup.h"

#include <stdbool.h>

enum {
    H2D_MOST_DEVICES = 16,
    H2D_LEAST_SAMPLES = 3,
    H2D_SAMPLES = 11 /* at most */
};

/* Copies of one size, back to back. */
struct h2d_case {
    bool pinned;
    bool to_host;   /* from the device; else to it */
    bool both;      /* while copies go the other way, which do not count */
    bool by_kernel; /* which reads or writes pinned memory */
    size_t bytes;   /* of one copy, shared out to the streams */
    int streams;
    int copies; /* in a sample; 0: as many as it takes, and set to them */
    /* the result */
    bool held;      /* the streams, until all copies were enqueued */
    bool has_fewer; /* copies, for more were not enqueued in time */
    int samples;
    double gb_per_s; /* the median; GB are 10^9 bytes */
    double p10;
    double p90;
};

/*
 * Measures `what`, in which all but the result is set. The device's events time
 * each sample; the bytes that arrived are compared outside of that time.
 */
void h2d_measure(struct h2d *h2d, struct h2d_case *what);

/* The same of several devices at once, a case each. */
void h2d_measure_together(struct h2d *const h2d[], struct h2d_case what[],
                          int n);

/* Single copies of pinned memory, by the host's clock, in microseconds. */
struct h2d_latency {
    size_t bytes;
    bool to_host;
    /* the result */
    struct bench_spread copy;   /* the call and the wait for it */
    struct bench_spread submit; /* the call alone */
};

void h2d_measure_latency(struct h2d *h2d, struct h2d_latency *what);

/* What a layer's uploads are compared with: bytes a second of pinned copies. */
struct h2d_ceiling {
    size_t bytes; /* of one copy, as large as an upload; 0: none was made */
    int samples;
    double rate; /* of copies of that size, the median; NAN: unknown */
    double p10;
    double p90;
    double best;   /* of these, and of copies of 64 MiB */
    char why[256]; /* it is unknown */
};

/*
 * Measures it on an idle device, for uploads of `bytes`. A copy of a small
 * batch pays for its beginning as the upload does, so the ceiling of uploads is
 * that of copies of their size. What larger ones reach shows how much is lost
 * by the size alone. A layer works without the pinned memory that this needs:
 * where that is not available the ceiling is unknown, which is no error.
 */
void h2d_measure_ceiling(struct h2d_ceiling *out, leat_device *device,
                         size_t bytes);

#endif
