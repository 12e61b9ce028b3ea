/* bad_records.h: a small data set with bad records of every kind. */
#ifndef LEAT_TESTS_BAD_RECORDS_H
#define LEAT_TESTS_BAD_RECORDS_H

#include <leat.h>

#include <leat/ext/reader.h>

#include <stdatomic.h>

#define BAD_RECORDS_MAX 40

/* An image of 2 x 5 x 6 uint8, and an int32 label, 1000 + its number. */
#define BAD_RECORDS_CHANNELS 2
#define BAD_RECORDS_HEIGHT 5
#define BAD_RECORDS_WIDTH 6

typedef enum bad_records_kind {
    BAD_RECORDS_GOOD = 0,
    BAD_RECORDS_UNREADABLE, /* reading it is LEAT_EDATA */
    BAD_RECORDS_SHAPELESS,  /* it is no image, as its shape tells */
    BAD_RECORDS_SHORT,      /* its pixels end early */
    BAD_RECORDS_UNLABELED,  /* it has one field */
    BAD_RECORDS_SMALL,      /* 2 x 2 x 6, and good */
    BAD_RECORDS_KINDS,      /* of those above, which are bad in themselves */
    BAD_RECORDS_BROKEN      /* reading it is LEAT_EIO */
} bad_records_kind;

/* How it is read; the records are the same. */
typedef enum bad_records_way {
    BAD_RECORDS_RANDOM_ACCESS = 0, /* next and read_at, views */
    BAD_RECORDS_DEFERRED,          /* next that defers and read_at, views */
    BAD_RECORDS_IN_ORDER, /* next alone, copies in the samples' buffers */
    BAD_RECORDS_WAYS
} bad_records_way;

typedef struct bad_records {
    int count;
    bad_records_kind kind[BAD_RECORDS_MAX];
    bad_records_way way;
    int tail;        /* bytes after each image, which make runs short */
    int single_pass; /* in order: no reset */
    int mixed;       /* deferred: every second record is given at once */
    int may_block;   /* as its type says */
    int flips;       /* its readers say in turn that they block, and that they
                        do not, so many times each; 0: they do not say */
    int probe_ms;    /* that it takes to say so */
    atomic_int *probed; /* counts how often; NULL: it is not counted */
} bad_records;

/* `planted` is borrowed as long as the pipeline and its readers. */
leat_pipeline *bad_records_pipeline(const bad_records *planted);

/* Records that read_at has read on the calling thread. */
int bad_records_reads_here(void);

/* Those of all threads. */
int bad_records_reads(void);

/* The epoch that read_at was told of the last of them. */
int64_t bad_records_epoch_here(void);

/* Record `record` as the reader gives it, in views; not an unreadable one. */
void bad_records_fill(const bad_records *planted, int record,
                      leat_sample *sample);

#endif
