/*
 * bucket_reader.h: a reader that sorts samples into buckets by their lengths.
 *
 * DESIGN. Samples are pulled a few at a time, into `input`, and completed in
 * order, since their lengths decide where they go. Each bucket is a group of
 * the pool; pointers to samples change places, not their bytes. A bucket that
 * is full is bound to the sample that is given, and workers write it.
 *
 * What buckets hold is read again. A bucket is given as a whole, so what it
 * holds are the last samples of its lengths. A mark is an upstream mark in
 * front of the oldest sample that is held, the samples read since, and how
 * many of them each bucket holds: one number to the base of their sizes. Where
 * that takes more than a mark's bytes the mark is that of the epoch's begin,
 * and everything since is sorted again, less the buckets given at its end.
 */
#ifndef LEAT_DECORATORS_BUCKET_BUCKET_READER_H
#define LEAT_DECORATORS_BUCKET_BUCKET_READER_H

#include "decorators/grouper.h"

#include <stdbool.h>
#include <stdint.h>

/* Samples pulled in one call. */
enum { LEAT__BUCKET_INPUT = 64 };

/* Bytes of a mark for the counts of samples that buckets hold. */
enum { LEAT__BUCKET_COUNT_BYTES = 26 };

/* A mark of the upstream reader, in front of sample `at`. */
typedef struct leat__bucket_anchor {
    leat_token mark;
    int64_t at;
} leat__bucket_anchor;

typedef struct leat__bucket {
    int64_t bound; /* lengths are below; of the last one there is none */
    int size;
    leat__group *group;       /* NULL: it holds nothing */
    leat__bucket_anchor from; /* at or before its first sample */
    int target; /* samples that it is to hold again, after a seek */
} leat__bucket;

typedef struct leat__bucket_reader {
    leat__grouper grouper; /* first */
    const char *field_name;
    int field;
    int n;
    leat__bucket *bucket;
    bool pads_to_bounds;
    bool has_counts; /* a mark has room for them */
    /* of one caller at a time; samples are counted from the epoch's begin on */
    leat__group *input; /* samples that were pulled, and how many were sorted */
    int sorted;
    int64_t held;              /* bytes of the samples in all buckets */
    int64_t at;                /* sample that is pulled next */
    leat__bucket_anchor begin; /* at or before the first sample of `input` */
    leat__bucket_anchor first; /* at the begin of the epoch */
    leat__bucket_anchor next;  /* becomes `begin`, unless it is refused */
    bool is_at_end;
    int flushed; /* buckets given at the end */
} leat__bucket_reader;

static inline leat__bucket_reader *leat__buckets_of(leat_reader *reader)
{
    return (leat__bucket_reader *)reader;
}

static inline leat_reader *
leat__bucket_upstream(const leat__bucket_reader *sorter)
{
    return sorter->grouper.decorator.upstream[0];
}

/* Finds the field, once the upstream reader's are known. */
int leat__bucket_plan(leat__bucket_reader *sorter);

/*
 * Completes the next sample; `*out` is its bucket, or -1: there was none, and
 * the next ones were pulled. LEAT_EDATA: `bad` names the record.
 */
int leat__bucket_take_one(leat__bucket_reader *sorter, leat_sample *bad,
                          int *out);

/*
 * The sample that was sorted last goes to the end of a bucket, which has room.
 * Errors: LEAT_ENOMEM; LEAT_ELIMIT for more than max_memory in all buckets.
 */
int leat__bucket_put(leat__bucket_reader *sorter, leat__bucket *to);

/* Drops a bucket's oldest sample, whose slot is then the one after the last. */
void leat__bucket_drop_oldest(leat__bucket_reader *sorter, leat__group *group);

/* Has the count of what is held forget all samples of a bucket. */
void leat__bucket_forget(leat__bucket_reader *sorter, const leat__group *group);

/* Operations of the reader. */
int leat__bucket_next(leat_reader *reader, leat_sample *const out[], int n,
                      int *got);
int leat__bucket_fields(leat_reader *reader, const leat_field_spec **out,
                        int *n);
int leat__bucket_seek(leat_reader *reader, leat_position position,
                      leat_token *mark);
int leat__bucket_mark(leat_reader *reader, leat_token *token);
int leat__bucket_restore(leat_reader *reader, leat_token *token);

#endif
