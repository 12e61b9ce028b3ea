/* bench.h: what `leat bench` measures, a file for each thing. */
#ifndef LEAT_TOOLS_BENCH_H
#define LEAT_TOOLS_BENCH_H

#include "tools/intake.h"

#include <jansson.h>

struct bench_options {
    struct intake_options intake;
    double seconds;
    int64_t epochs;    /* of the layer, instead of seconds; 0: none */
    double compute_ms; /* of one core, after each batch */
    double sleep_ms;   /* after each batch */
    int limit;
    int row_copy;     /* the limit copies rows and does nothing else */
    int touch;        /* the reader's records are read, not only found */
    int64_t bytes[2]; /* h2d: sizes of copies, from and to */
    int64_t streams;  /* h2d: at most */
    int json;
};

/* Each prints what it measured and returns the tool's exit status. */
int bench_layer(const struct bench_options *options);
int bench_limit(const struct bench_options *options);
int bench_reader(const struct bench_options *options);
int bench_queue(const struct bench_options *options);
int bench_h2d(const struct bench_options *options);

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

/* Threads to measure with: those asked for, or one for each core. */
int bench_workers(const struct bench_options *options);

#endif
