/* bench_limit.h: a layer's limit, measured in slices. */
#ifndef LEAT_TOOLS_BENCH_BENCH_LIMIT_H
#define LEAT_TOOLS_BENCH_BENCH_LIMIT_H

#include "tools/bench/bandwidth.h"
#include "tools/bench/limit.h"
#include "tools/delivery/layer_source.h"

#include <jansson.h>

/* The length of a slice. */
#define BENCH_SLICE 0.25

/* What the slices add up to. Zeroed memory is nothing. */
struct bench_limit {
    struct limit *limit;
    struct limit_result result;
    double cpu; /* seconds */
    struct bandwidth bandwidth;
};

/*
 * Opens it, gives it a slice for caches and clocks, and counts from here;
 * `copies`: of rows. `threads`: as bench_workers says. Errors: those of
 * limit_open.
 */
int bench_limit_open(struct bench_limit *limit,
                     const struct layer_source *source, int copies,
                     int threads);

int bench_limit_slice(struct bench_limit *limit);

/* Frees what there is of it, but what was measured stays. */
void bench_limit_close(struct bench_limit *limit);

/* Images a second. */
double bench_limit_rate(const struct bench_limit *limit);

void bench_limit_print(const struct bench_limit *limit);
void bench_limit_add_json(const struct bench_limit *limit, json_t *object);

#endif
