/*
 * transform_rows.h: the transform on the CPU, row by row, for the processor
 * that it runs on.
 *
 * A set of kernels is one body (transform_rows_body.h) compiled for one
 * instruction set. All sets give the bits of transform_reference.h.
 */
#ifndef LEAT_DEVICE_TRANSFORM_ROWS_H
#define LEAT_DEVICE_TRANSFORM_ROWS_H

#include "device/transform_job.h"

/* Rows of one channel, each contiguous in the source and in the top. */
typedef struct leat__row_run {
    const unsigned char *source; /* need not be aligned */
    const unsigned char *mean;   /* of a mean image, in the top's type */
    unsigned char *top;
    size_t source_stride; /* bytes from one row to the next */
    size_t mean_stride;
    size_t top_stride;
    size_t rows;
    size_t width;      /* elements in a row */
    double mean_value; /* if there is no mean image; 0: none */
    double scale;
} leat__row_run;

/* top[w] = (source[w] - mean) * scale, or into top[width - 1 - w]. */
typedef void leat__row_convert(const leat__row_run *run);

/*
 * From uint8 pixels of 3 channels to a FLOAT32 plane each: a run for each
 * channel, alike but for mean and top; `source` is that of the pixels. At least
 * 16 pixels wide.
 */
typedef void leat__row_spread(const leat__row_run run[3]);

/*
 * Between n pixels of 3 channels and 3 planes that lie `stride` elements apart.
 */
typedef void leat__row_split(const void *pixels, void *planes, size_t stride,
                             size_t n);
typedef void leat__row_join(const void *planes, size_t stride, void *pixels,
                            size_t n);

enum { LEAT__ROW_UINT8, LEAT__ROW_FLOAT32, LEAT__ROW_FLOAT64 };

typedef struct leat__row_kernels {
    const char *name; /* as in LEAT_ISA */
    /* By source (uint8, float32), top, mean image, mirror; NULL: no such. */
    leat__row_convert *convert[2][3][2][2];
    leat__row_spread *spread[2][2]; /* by mean image, mirror; or NULL */
    leat__row_split *split[2];      /* by source */
    leat__row_join *join[3];        /* by top */
} leat__row_kernels;

/*
 * The best set for this processor, or the one named by the environment variable
 * LEAT_ISA (avx512, avx2, c); an unknown or unsupported one is ignored and
 * logged. Static. Any thread.
 */
const leat__row_kernels *leat__row_kernels_choose(void);

/* The set of that name; NULL when there is none for this processor. */
const leat__row_kernels *leat__row_kernels_find(const char *name);

/*
 * Writes the image into `top`, which is aligned to its element, and neither
 * FLOAT16 nor BFLOAT16: leat__transform_top knows those too. The crop lies
 * inside the image and the channels agree: the caller has checked. Any thread.
 */
void leat__transform_rows(const leat__row_kernels *kernels,
                          const leat__transform_job *job,
                          const leat__transform_image *image, void *top);

/*
 * The transform as a single call for the whole image, if possible: returns its
 * function and `*out` without `top`, else NULL. Valid for further images of
 * that type, shape and choices, as long as the job's mean.
 */
leat__row_convert *leat__transform_one_row(const leat__row_kernels *kernels,
                                           const leat__transform_job *job,
                                           const leat__transform_image *image,
                                           leat__row_run *out);

#endif
