/* ceiling.h: what copies to a device reach, to hold a layer's uploads against.
 */
#ifndef LEAT_TOOLS_BENCH_CEILING_H
#define LEAT_TOOLS_BENCH_CEILING_H

#include <leat/ext/device.h>

/* Rates are bytes a second of pinned copies, medians of `samples` samples. */
struct ceiling {
    size_t bytes; /* of one copy, as large as an upload; 0: none was made */
    int samples;
    double rate; /* of copies of that size; 0: unknown */
    double p10;
    double p90;
    double best;   /* of these, and of copies of 64 MiB */
    char why[256]; /* it is unknown */
};

/*
 * Measures it on a device that rests, for uploads of `bytes`. A layer can do
 * without the pinned memory that this needs: where that cannot be had the
 * ceiling is unknown, which is no error. Errors: those of h2d_open and
 * h2d_measure.
 */
int ceiling_measure(struct ceiling *out, leat_device *device, size_t bytes);

#endif
