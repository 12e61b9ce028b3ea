/*
 * reference.h: what a data layer must deliver, one sample at a time, by the
 * rules alone: nothing of the library is called, and nothing is fast.
 */
#ifndef LEAT_TESTS_REFERENCE_H
#define LEAT_TESTS_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

typedef struct record {
    int64_t number; /* in its storage */
    int channels;   /* once decoded, as all that follows */
    int height;
    int width;
    unsigned char *pixels; /* planes; blue first. NULL where there are floats */
    float *values;
    unsigned char *file; /* where it is stored encoded, that; else NULL */
    size_t file_size;
    int32_t label;
    int32_t more[2]; /* a further field, where the source has one */
    int is_bad;
    int is_unreadable; /* then: its image is not even looked at */
} record;

/* Types of tops, of labels too. */
typedef enum top_kind {
    TOP_UINT8,
    TOP_FLOAT,
    TOP_DOUBLE,
    TOP_HALF,
    TOP_BFLOAT,
    TOP_INT32,
    TOP_INT64
} top_kind;
typedef enum bad_policy { BAD_FAILS, BAD_ZEROS, BAD_SKIPS } bad_policy;
typedef enum epoch_end {
    ENDS_WRAP,
    ENDS_DROP,
    ENDS_PARTIAL,
    ENDS_PAD
} epoch_end;

typedef struct rules {
    const record *records; /* of an epoch */
    int64_t count;
    int crop; /* 0: none */
    int mirror;
    int is_train;
    float scale;
    const float *mean_image; /* of an uncropped record, or NULL */
    float mean_value[4];
    int mean_values; /* 0, 1 or the channels */
    top_kind top;
    top_kind label; /* of all further tops */
    int is_nhwc;
    int is_caffe_rng;
    uint64_t seed;
    int rank;
    int step; /* ranks that divide the data */
    bad_policy policy;
    epoch_end epoch_end;
    int64_t batch_size;
    int single_pass;
    int reads_back; /* what DROP leaves out can be read again */
} rules;

/* A batch of all ranks: the global positions from `begin` to `end`. */
typedef struct extent {
    int64_t begin;
    int64_t end;
} extent;

/* The one that follows what ended at `place`; an empty one: there is none. */
extent reference_batch(const rules *rules, int64_t place);

/* The global position of this rank's sample `i` after `place`. */
int64_t reference_position(const rules *rules, int64_t place, int64_t i);

/* Draws of Caffe's generator, from the beginning of the sequence on. */
typedef struct draws {
    uint32_t *word;
    int64_t n;
} draws;

/* All that this rank's samples up to position `end` take. */
draws reference_draws(const rules *rules, int64_t end);

/* Which record stands at the position; -1: none, zeros. */
int64_t reference_record(const rules *rules, int64_t position);

/* The sample's pixels, in double: exact for every top kind. */
void reference_pixels(const rules *rules, const draws *draws, int64_t position,
                      double *pixels);

/* Its label, and the elements of the further field. */
void reference_labels(const rules *rules, int64_t position, double label[3]);

/* Element i of such an array, in double. */
double reference_load(const void *data, top_kind kind, int64_t i);

#endif
