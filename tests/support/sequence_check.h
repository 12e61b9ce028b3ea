/*
 * sequence_check.h: what a pipeline over counted_source.h gives, and that it
 * gives the same however it is read and resumed.
 */
#ifndef LEAT_TESTS_SEQUENCE_CHECK_H
#define LEAT_TESTS_SEQUENCE_CHECK_H

#include "support/counted_source.h"

enum { SEQUENCE_FIELDS = 4, SEQUENCE_MOST = 4096 };

/* A sample: its numbers, field by field, or -1 for a bad one. */
typedef struct sequence_item {
    int64_t number[SEQUENCE_FIELDS];
    int64_t epoch; /* of field 0 */
    int nfields;
} sequence_item;

typedef struct sequence {
    sequence_item item[SEQUENCE_MOST];
    int n;
    int status; /* what ended it */
} sequence;

/* Reads on, `per_call` samples a call, to the end or up to `most` of them. */
void sequence_read(sequence *out, leat_reader *reader, int per_call, int most);

/* The epoch of a new reader of the text. */
void sequence_of(sequence *out, const char *text, int64_t epoch);

/* The numbers of field 0, -1 for a bad sample, and then LEAT_END. */
void sequence_is(const char *text, int64_t epoch, const int64_t *numbers,
                 int n);

/*
 * Whatever a pipeline gives in epochs 0 and 2, it gives as well
 *  - several samples a call, and by the workers of a layer,
 *  - from each position on, by its mark in another reader, and by its index
 *    where that can be found; after skipping,
 *  - over random access in any order.
 * With an end, it is LEAT_END.
 */
void sequence_holds(const char *text);

/* The text opens and reads with each allocation failing; only LEAT_ENOMEM comes
 * of it, nothing is lost, and reading on gives the same. */
void sequence_survives(const char *text);

/* The same for one whose order does not come again: it ends as well. */
void sequence_survives_any(const char *text);

/* Nothing is allocated after the first epochs. */
void sequence_settles(const char *text);

/*
 * Reads an epoch by random access, bad samples included. Returns how many a
 * counting source made for it (counts=1); *calls is that of read_at.
 */
int sequence_cost(const char *text, int *calls);

/* The text's pipeline and another one are the same, as tokens have it. */
void sequence_same_pipeline(const char *text, leat_pipeline *other);

#endif
