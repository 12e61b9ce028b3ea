/* bench.h: what the commands of `leat bench` share. */
#ifndef LEAT_TOOLS_BENCH_BENCH_H
#define LEAT_TOOLS_BENCH_BENCH_H

#include "tools/bench/latency.h"
#include "tools/cli/option.h"

#include <leat/stats.h>

#include <jansson.h>

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

/*
 * How much of the shorter of two things was hidden behind the other, when both
 * together took `together` seconds: 1 all of it, 0 nothing.
 */
double bench_overlap(double one, double other, double together);

/* 0 where there is no whole. */
double bench_share(double part, double whole);

/* Adds the processor, its cores and leat's version; prints them. */
void bench_add_machine(json_t *object);
void bench_print_machine(void);

/* Prints the median, the 99th percentile and the longest of waits. */
void bench_print_waits(const struct latency *waits);

/* Adds bound_by, a word, and verdict, a sentence; null where there is none. */
void bench_add_verdict(json_t *object, const leat_stats *now,
                       const leat_stats *before);

/*
 * Calls of malloc and its kin so far, where benchmarks/allocation_count.c is
 * preloaded; else -1.
 */
int64_t bench_allocations(void);

/* Threads to measure with: those asked for, or with 0 one for each core. */
int bench_workers(int64_t asked);

#endif
