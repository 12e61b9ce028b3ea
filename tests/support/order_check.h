/*
 * order_check.h: what a pipeline gives, compared with a list of records, by all
 * ways in which it can be read.
 */
#ifndef LEAT_TESTS_ORDER_CHECK_H
#define LEAT_TESTS_ORDER_CHECK_H

#include <leat/reader.h>

enum { ORDER_MAX = 4096 };

/* The numbers of an epoch's records. */
typedef struct order_epoch {
    int n;
    int is_cut; /* more follow: the list has the first of them */
    int record[ORDER_MAX];
} order_epoch;

/* Appends a record, and `n` of them from `first` on. */
void order_add(order_epoch *epoch, int record);
void order_add_range(order_epoch *epoch, int first, int n);

/* Parses a pipeline, which has to succeed. */
leat_pipeline *order_parse(const char *text);

/* Opens it. */
leat_reader *order_open(const char *text);

/* Reads all of an epoch, at most `most` records; the reader stands at its
 * begin. Bad records are named by their provenance. */
void order_read(leat_reader *reader, int most, order_epoch *epoch);

/*
 * Reads sources of `plain` (support/plain_source.h) through the pipeline: each
 * of `n` epochs several samples at a time, from every index on, by read_at in
 * any order, by skip, from a mark at every index in another reader, after
 * restore, after cancel, and with each allocation failing once. Where
 * `has_bad`, records with number mod 10 = 3 are LEAT_EDATA.
 */
void order_check(const char *text, const order_epoch epoch[], int n,
                 int has_bad);

/* Opening the text fails with `status` and a line that has `part`. */
void order_check_refused(const char *text, int status, const char *part);

#endif
