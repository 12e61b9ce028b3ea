/* rows_source.h: samples of different lengths, in order or by index. */
#ifndef LEAT_TESTS_ROWS_SOURCE_H
#define LEAT_TESTS_ROWS_SOURCE_H

#include <leat/ext/reader.h>

#include <stdatomic.h>

/*
 * Sample i has `tokens`, int32, of rows_source_length(i) elements, the k-th of
 * which is 100 i + k; `cell`, uint8 of 2 x 3, all i; and `label`, int64, i.
 */
typedef struct rows_source {
    int count;
    int bad;         /* this record is LEAT_EDATA; -1: none */
    int wide;        /* this one's cell is 2 x 4; -1: none */
    int is_stream;   /* no index finds a sample */
    int is_stable;   /* its samples point into memory that stays */
    int has_groups;  /* `groups` divides the tokens in two: 0, half, all */
    int counts;      /* a stream that knows its count */
    atomic_int made; /* samples, bad ones included */
} rows_source;

#define ROWS_SOURCE_INIT                                                       \
    {                                                                          \
        .count = 10, .bad = -1, .wide = -1                                     \
    }

int rows_source_length(int64_t i);

/* Borrows `source` as long as the pipeline is in use. */
leat_pipeline *rows_source_pipeline(rows_source *source);

/* The same with `text` after it: "batch:4 | take:2". */
leat_pipeline *rows_source_chain(rows_source *source, const char *text);

/* A field of integers as text, "2x3: 0 1 2 3 4 5"; a scalar is ": 7". */
enum { ROWS_TEXT_MAX = 1024 };
const char *rows_source_text(const leat_field *field, char out[ROWS_TEXT_MAX]);

#endif
