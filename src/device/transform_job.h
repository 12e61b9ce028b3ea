/*
 * transform_job.h: one image's way into the batch, as plain numbers, and the
 * one definition of what an element of the top is.
 *
 * Shared with device kernels: it includes nothing of the host's but integers
 * and memcpy, it is C and C++ alike, and its functions take their qualifier
 * from LEAT__DEVICE_FUNCTION, which the including file may define. Whoever
 * compiles it turns contraction off (-ffp-contract=off, --fmad=false): Caffe
 * rounds after the subtraction and again after the product.
 */
#ifndef LEAT_DEVICE_TRANSFORM_JOB_H
#define LEAT_DEVICE_TRANSFORM_JOB_H

#include "device/float16.h"

#include <leat/dtype.h>
#include <leat/transform.h>
#include <string.h>

#ifndef LEAT__DEVICE_FUNCTION
#define LEAT__DEVICE_FUNCTION
#endif

/*
 * Common to all images of a batch. Means have the type in which the top is
 * computed: double for FLOAT64 tops, float for others.
 */
typedef struct leat__transform_job {
    leat_dtype top_type; /* UINT8, FLOAT16, BFLOAT16, FLOAT32 or FLOAT64 */
    leat_layout layout;  /* of the top */
    int channels;        /* of the top: channels x height x width */
    int height;
    int width;
    double scale; /* a float's value; 1 for a UINT8 top */
    /* At most one of the two; both NULL: no mean. */
    const void *mean;       /* channels x mean_height x mean_width */
    const void *mean_value; /* one for each channel, or one for all */
    int mean_values;        /* how many: 1 or channels */
    int mean_height;        /* the image's own height and width */
    int mean_width;
} leat__transform_job;

/* One image: its pixels and random choices. */
typedef struct leat__transform_image {
    const void *pixels; /* need not be aligned */
    leat_dtype type;    /* UINT8 or FLOAT32; UINT8 for a UINT8 top */
    leat_layout layout; /* NCHW: planes; NHWC: interleaved, as decoded */
    int channels;
    int height;
    int width;
    int h_off; /* first row and column of the crop */
    int w_off;
    int mirror;
} leat__transform_image;

/* The origin of an element of the top, in elements. */
typedef struct leat__transform_origin {
    size_t pixel; /* in the image's pixels */
    size_t mean;  /* in the job's mean */
    int channel;
} leat__transform_origin;

static LEAT__DEVICE_FUNCTION inline leat__transform_origin
leat__transform_locate(const leat__transform_job *job,
                       const leat__transform_image *image, size_t index)
{
    size_t channels = (size_t)job->channels;
    size_t height = (size_t)job->height;
    size_t width = (size_t)job->width;
    size_t c, h, w;
    if (job->layout == LEAT_NHWC) {
        c = index % channels;
        w = index / channels % width;
        h = index / channels / width;
    } else {
        w = index % width;
        h = index / width % height;
        c = index / width / height;
    }
    if (image->mirror)
        w = width - 1 - w;
    h += (size_t)image->h_off;
    w += (size_t)image->w_off;
    leat__transform_origin origin;
    size_t plane = (size_t)image->width * (size_t)image->height;
    size_t position = h * (size_t)image->width + w;
    origin.pixel = image->layout == LEAT_NHWC ? position * channels + c
                                              : c * plane + position;
    plane = (size_t)job->mean_width * (size_t)job->mean_height;
    origin.mean = c * plane + h * (size_t)job->mean_width + w;
    origin.channel = (int)c;
    return origin;
}

static LEAT__DEVICE_FUNCTION inline float
leat__transform_load(const leat__transform_image *image, size_t pixel)
{
    const unsigned char *bytes = (const unsigned char *)image->pixels;
    if (image->type == LEAT_UINT8)
        return bytes[pixel];
    float value;
    memcpy(&value, bytes + pixel * sizeof(value), sizeof(value));
    return value;
}

static LEAT__DEVICE_FUNCTION inline float
leat__transform_float(const leat__transform_job *job,
                      const leat__transform_image *image,
                      const leat__transform_origin *origin)
{
    float x = leat__transform_load(image, origin->pixel);
    if (job->mean)
        x -= ((const float *)job->mean)[origin->mean];
    else if (job->mean_value)
        x -= ((const float *)
                  job->mean_value)[job->mean_values > 1 ? origin->channel : 0];
    return x * (float)job->scale;
}

static LEAT__DEVICE_FUNCTION inline double
leat__transform_double(const leat__transform_job *job,
                       const leat__transform_image *image,
                       const leat__transform_origin *origin)
{
    double x = leat__transform_load(image, origin->pixel);
    if (job->mean)
        x -= ((const double *)job->mean)[origin->mean];
    else if (job->mean_value)
        x -= ((const double *)
                  job->mean_value)[job->mean_values > 1 ? origin->channel : 0];
    return x * job->scale;
}

/*
 * Computes element `index` of the top, of which there are
 * channels x height x width in the order of its layout.
 */
static LEAT__DEVICE_FUNCTION inline void
leat__transform_element(const leat__transform_job *job,
                        const leat__transform_image *image, size_t index,
                        void *top)
{
    leat__transform_origin origin = leat__transform_locate(job, image, index);
    if (job->top_type == LEAT_FLOAT32)
        ((float *)top)[index] = leat__transform_float(job, image, &origin);
    else if (job->top_type == LEAT_FLOAT64)
        ((double *)top)[index] = leat__transform_double(job, image, &origin);
    else if (job->top_type == LEAT_FLOAT16)
        ((uint16_t *)top)[index] =
            leat__float16(leat__transform_float(job, image, &origin));
    else if (job->top_type == LEAT_BFLOAT16)
        ((uint16_t *)top)[index] =
            leat__bfloat16(leat__transform_float(job, image, &origin));
    else
        ((unsigned char *)top)[index] =
            ((const unsigned char *)image->pixels)[origin.pixel];
}

#endif
