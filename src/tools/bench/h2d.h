/* h2d.h: how fast copies run from host memory to a device. */
#ifndef LEAT_TOOLS_BENCH_H2D_H
#define LEAT_TOOLS_BENCH_H2D_H

#include <leat/ext/device.h>

enum { H2D_MOST_STREAMS = 16, H2D_SAMPLES = 11 };

struct h2d;

/* Copies of one size, back to back. */
struct h2d_case {
    int pinned;
    size_t bytes; /* of one copy, shared out to the streams */
    int streams;
    double gb_per_s; /* the median; GB are 10^9 bytes */
    double p10;
    double p90;
};

/*
 * Takes memory for copies of up to `bytes` through up to `streams` streams.
 * NULL, with an error line: there is not enough. As in the rest, other errors
 * end the program, also those of a device that computes in host memory or does
 * not time its events.
 */
struct h2d *h2d_open(leat_device *device, size_t bytes, int streams);

/*
 * Measures `what`, in which all but the figures is set. The device's events
 * time each sample; the bytes that arrived are compared outside of that time.
 */
void h2d_measure(struct h2d *h2d, struct h2d_case *what);

void h2d_close(struct h2d *h2d);

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
