/*
 * transform_job.h: one image's way into the batch, as plain numbers.
 *
 * Shared with device kernels: it includes nothing of the host's but integers,
 * and its functions take their qualifier from LEAT__DEVICE_FUNCTION, which the
 * including file may define.
 */
#ifndef LEAT_DEVICE_TRANSFORM_JOB_H
#define LEAT_DEVICE_TRANSFORM_JOB_H

#include <leat/dtype.h>
#include <leat/transform.h>

/* What holds for every image of a batch. */
typedef struct leat__transform_job {
    leat_dtype top_type; /* UINT8, FLOAT32 or FLOAT64 */
    leat_layout layout;  /* of the top */
    int channels;        /* of the top: channels x height x width */
    int height;
    int width;
    double scale; /* a float's value */
    /* At most one of the two; both NULL: no mean. */
    const double *mean;       /* channels x mean_height x mean_width */
    const double *mean_value; /* one for each channel */
    int mean_height;
    int mean_width;
} leat__transform_job;

/* What holds for one image: where its pixels lie and what was chosen. */
typedef struct leat__transform_image {
    const void *pixels; /* need not be aligned */
    leat_dtype type;    /* UINT8 or FLOAT32 */
    leat_layout layout; /* NCHW: planes; NHWC: interleaved, as decoded */
    int channels;
    int height;
    int width;
    int h_off; /* first row and column of the crop */
    int w_off;
    int mirror;
} leat__transform_image;

#endif
