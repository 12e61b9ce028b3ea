/*
 * report.h: what a benchmark found, as lines for people or as one JSON object.
 * Each figure is named once, for both.
 */
#ifndef LEAT_TOOLS_BENCH_REPORT_H
#define LEAT_TOOLS_BENCH_REPORT_H

#include "tools/bench/latency.h"

#include <leat/stats.h>

#include <jansson.h>

/* What a value is, which decides how it is written. */
enum report_unit {
    REPORT_TEXT,      /* no value: `text` */
    REPORT_COUNT,     /* a whole number */
    REPORT_FLAG,      /* true or false */
    REPORT_REAL,      /* 24.87 */
    REPORT_RATE,      /* 4.43 M */
    REPORT_SHARE,     /* of 1: 97.1 % */
    REPORT_BYTES,     /* 12.3 MB */
    REPORT_BANDWIDTH, /* bytes a second: 12.3 GB/s */
    REPORT_SECONDS,   /* these four: 28.0 ms */
    REPORT_MS,
    REPORT_US,
    REPORT_NS
};

struct figure {
    const char *key;   /* in JSON; a.b is b in the object a; NULL: not there */
    const char *label; /* of its line or column; NULL: in JSON alone */
    enum report_unit unit;
    double value;     /* NAN: unknown, null in JSON and no line */
    const char *text; /* in a line, what follows the value; NULL: nothing */
};

struct report {
    json_t *object; /* NULL: lines are printed */
    int rows;       /* printed so far */
};

/* Begins it; of lines the first is the machine. */
void report_begin(struct report *report, int json);

/* Adds figures, up to one without key and label. */
void report_add(struct report *report, const struct figure figures[]);

/* Adds a row of a table, without labels an invisible one: an element of the
   array of that name. */
void report_row(struct report *report, const char *array,
                const struct figure figures[]);

/* Adds wait_us: p50, p99 and max. */
void report_waits(struct report *report, const struct latency *waits);

/* Adds the allocations, where something counts them. */
void report_allocations(struct report *report, int64_t allocations);

/* Adds bound_by and verdict, null where there is none; as a line the latter. */
void report_verdict(struct report *report, const leat_stats *now,
                    const leat_stats *before);

/* Adds the machine and prints the object. Returns the exit status. */
int report_end(struct report *report);

#endif
