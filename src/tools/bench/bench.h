/* bench.h: options and figures that the commands of `leat bench` share. */
#ifndef LEAT_TOOLS_BENCH_BENCH_H
#define LEAT_TOOLS_BENCH_BENCH_H

#include "tools/cli/option.h"

enum { BENCH_MOST_WORKERS = 256 };

/* An entry in the tables of those that measure for a time. */
struct option_spec bench_seconds(double *seconds);

/* What many rounds of one case gave; sorts them. */
struct bench_spread {
    double median;
    double p10;
    double p90;
};
struct bench_spread bench_spread_of(double rounds[], int n);

/* 0 where there is no whole. */
double bench_share(double part, double whole);

/* Seconds of processor time that this process took so far, on all cores. */
double bench_cpu_seconds(void);

/*
 * Seconds in which the threads that there are now were ready to run but had no
 * core; 0 where the kernel does not tell.
 */
double bench_queued_seconds(void);

/*
 * Calls of malloc and its kin so far, where benchmarks/allocation_count.c is
 * preloaded; else -1.
 */
int64_t bench_allocations(void);

/* Threads to measure with: those asked for, or with 0 one for each core. */
int bench_workers(int64_t asked);

#endif
