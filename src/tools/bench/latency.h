/* latency.h: percentiles of many short times, in fixed memory. */
#ifndef LEAT_TOOLS_BENCH_LATENCY_H
#define LEAT_TOOLS_BENCH_LATENCY_H

#include <stdint.h>

/* 64 steps for each doubling of nanoseconds: within 1.6 %. */
enum { LATENCY_STEPS = 64, LATENCY_BUCKETS = 58 * LATENCY_STEPS };

struct latency {
    int64_t count[LATENCY_BUCKETS];
    int64_t total;
    uint64_t longest; /* nanoseconds */
};

/* Zeroed memory is an empty one. */
void latency_add(struct latency *latency, double seconds);

/* Microseconds that the share `p`, 0 to 1, of all times did not exceed. */
double latency_percentile(const struct latency *latency, double p);
double latency_longest(const struct latency *latency);

#endif
