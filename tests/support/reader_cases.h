/* reader_cases.h: the same few samples through every kind of reader. */
#ifndef LEAT_TESTS_READER_CASES_H
#define LEAT_TESTS_READER_CASES_H

#include <leat.h>

/* Sample i of the data: 3 bytes of value i, and the label 1000 + i. */
#define READER_CASE_PIXELS 3

typedef struct reader_case {
    const char *name;
    int is_random_access;
    int has_bad; /* every tenth record, from 3 on, is bad */
    int has_mark;
    int has_identity; /* for resume tokens */
    /* The pipeline over `records` samples, of which it gives *count. */
    leat_pipeline *(*make)(int records, int *count);
    /* The record that it gives at a position. */
    int (*record)(leat_position at, int records);
} reader_case;

extern const reader_case reader_cases[];
#define READER_CASES 16

/* Where databases are made: a directory of the test's own. */
void reader_cases_begin(void);
void reader_cases_end(void);

#endif
