/*
 * report.h: a benchmark's results, as lines for people or as one JSON object.
 * Each figure is named once, for both.
 */
#ifndef LEAT_TOOLS_BENCH_REPORT_H
#define LEAT_TOOLS_BENCH_REPORT_H

#include "tools/bench/latency.h"

#include <leat/stats.h>

#include <jansson.h>

#include <stdbool.h>

/* What a value is, which decides how it is written. */
enum report_unit {
    REPORT_TEXT,      /* no value but the text */
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

struct report {
    json_t *object; /* NULL: lines are printed */
    json_t *row;    /* of an array in it; NULL: figures go to the object */
    int in_row;
    int rows; /* printed so far */
    char labels[256];
    char cells[256];
};

/* Begins it; of lines the first is the machine. */
void report_begin(struct report *report, bool json);

/*
 * Adds a figure: to the object as `key`, where a.b is b in the object a and
 * NULL nothing, and as a line "label value text" or, within a row, as a cell of
 * the column `label`. NAN is unknown: null, no line, the cell "-".
 */
void report_line(struct report *report, const char *key, const char *label,
                 enum report_unit unit, double value, const char *text);

/* The arguments of report_line. */
struct figure {
    const char *key, *label;
    enum report_unit unit;
    double value;
    const char *text;
};

/* Adds each of them, up to one without key and label. */
void report_figures(struct report *report, const struct figure *figures);

/* Adds it to the object alone; a text of NULL is null. */
void report_value(struct report *report, const char *key, enum report_unit unit,
                  double value);
void report_text(struct report *report, const char *key, const char *text);

/* Until report_row_end figures go to a row of a table, which in the object is
   an element of the array of that name. */
void report_row(struct report *report, const char *array);
void report_row_end(struct report *report);

/* Adds a row of these figures. */
void report_row_of(struct report *report, const char *array,
                   const struct figure *figures);

/* Adds wait_us: p50, p99 and max. */
void report_waits(struct report *report, const struct latency *waits);

/* Adds the allocations, where something counts them. */
void report_allocations(struct report *report, int64_t allocations);

/* Adds bound_by and verdict, null where there is none; as a line the latter. */
void report_verdict(struct report *report, const leat_stats *now,
                    const leat_stats *before);

/* Adds the readers of a pipeline: to the object as `readers`, and as lines
   where there are several. */
void report_readers(struct report *report, const leat_reader_stats *reader,
                    int n);

/* Adds the machine and prints the object. Returns the exit status. */
int report_end(struct report *report);

#endif
