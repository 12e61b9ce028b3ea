/*
 * bare_loop.h: what a plain loop does that was written for one job alone.
 *
 * A cursor of liblmdb walks round the records, each is converted into a ring of
 * batches, and nothing here is leat's: no reader, no transform, no queue. How
 * fast that goes says what a machine allows that is asked for no more.
 */
#ifndef LEAT_BENCHMARKS_BARE_LOOP_H
#define LEAT_BENCHMARKS_BARE_LOOP_H

#include <stddef.h>
#include <stdint.h>

/* What is done with a record, a uint8 image of `channels` planes. */
typedef enum bare_job {
    BARE_SCALED,    /* all of it to float32, times 1 / 256 */
    BARE_FLOATS,    /* all of it to float32 */
    BARE_CROP,      /* a crop at a random place, mirrored or not, less a mean
                       value a channel, to float32 */
    BARE_CROP_BYTES /* the same crop as it is */
} bare_job;

typedef struct bare_order {
    const char *path; /* of a directory with data.mdb; borrowed */
    bare_job job;
    int channels;
    int height;
    int width;
    int crop;  /* rows and columns of a crop; unused otherwise */
    int slots; /* images in the ring */
} bare_order;

typedef struct bare_loop bare_loop;

/*
 * Thread `i` of `n` begins so far into the records that all are apart. NULL,
 * with a line on stderr. One thread at a time, which may change.
 */
bare_loop *bare_loop_open(const bare_order *order, int i, int n);

/*
 * Converts the next `n` records; after the last comes the first. 0, or 1 with
 * a line on stderr: a record that is not as the order says.
 */
int bare_loop_run(bare_loop *loop, int n);

/* One image of the ring, and where it was cropped. */
typedef struct bare_image {
    const unsigned char *pixels; /* of the record; until the next run */
    const void *top;
    int row; /* the first of the crop */
    int column;
    int is_mirrored;
    int label;
} bare_image;

/* The image that was converted last. */
bare_image bare_loop_last(const bare_loop *loop);

void bare_loop_close(bare_loop *loop);

#endif
