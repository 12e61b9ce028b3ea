/* planted.h: a small data set in which bad records of every kind are planted.
 */
#ifndef LEAT_TESTS_PLANTED_H
#define LEAT_TESTS_PLANTED_H

#include <leat.h>

#include <leat/ext/reader.h>

#define PLANTED_MAX 40

/* An image of 2 x 5 x 6 uint8, and an int32 label, 1000 + its number. */
#define PLANTED_CHANNELS 2
#define PLANTED_HEIGHT 5
#define PLANTED_WIDTH 6

typedef enum planted_kind {
    PLANTED_GOOD = 0,
    PLANTED_UNREADABLE, /* reading it is LEAT_EDATA */
    PLANTED_SHAPELESS,  /* it is no image, as its shape tells */
    PLANTED_SHORT,      /* its pixels end early */
    PLANTED_UNLABELED,  /* it has one field */
    PLANTED_SMALL,      /* 2 x 2 x 6, and good */
    PLANTED_KINDS,      /* of those above, which are bad in themselves */
    PLANTED_BROKEN      /* reading it is LEAT_EIO */
} planted_kind;

/* How it is read; the records are the same. */
typedef enum planted_way {
    PLANTED_RANDOM_ACCESS = 0, /* next and read_at, views */
    PLANTED_LOCATED,           /* next in two halves and read_at, views */
    PLANTED_IN_ORDER,          /* next alone, copies in the samples' buffers */
    PLANTED_WAYS
} planted_way;

typedef struct planted {
    int count;
    planted_kind kind[PLANTED_MAX];
    planted_way way;
    int tail;        /* bytes behind each image, which make runs short */
    int single_pass; /* in order: no reset */
    int may_block;   /* as its type says */
    int flips;       /* its readers say in turn that they block, and that they
                        do not, so many times each; 0: they do not say */
} planted;

/* `planted` is borrowed as long as the pipeline and its readers. */
leat_pipeline *planted_pipeline(const planted *planted);

/* Records that read_at has read on the calling thread. */
int planted_reads_here(void);

/* The epoch that read_at was told of the last of them. */
int64_t planted_epoch_here(void);

/* Record `record` as the reader gives it, in views; not an unreadable one. */
void planted_fill(const planted *planted, int record, leat_sample *sample);

#endif
