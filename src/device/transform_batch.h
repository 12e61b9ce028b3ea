/*
 * transform_batch.h: a whole batch of uint8 crops on its way to the top, as a
 * device does it: many threads, each with 16 bytes of the top.
 *
 * Shared with device kernels as transform_job.h is: the work of a thread is one
 * function of job and thread index, index arithmetic and tails included.
 */
#ifndef LEAT_DEVICE_TRANSFORM_BATCH_H
#define LEAT_DEVICE_TRANSFORM_BATCH_H

#include "device/float16.h"

#include <leat/ext/device.h>
#include <string.h>

#ifndef LEAT__DEVICE_FUNCTION
#define LEAT__DEVICE_FUNCTION
#endif

/* Writes 16 bytes to where a thread's part of the top begins. */
#ifndef LEAT__DEVICE_STORE
#define LEAT__DEVICE_STORE(to, from) memcpy(to, from, 16)
#endif

/* Where a thread is: an image, and an element of its top. */
typedef struct leat__transform_cursor {
    const unsigned char *pixels; /* of the image */
    leat_device_choice choice;
    int64_t image;
    int c;
    int h;
    int w;
} leat__transform_cursor;

static LEAT__DEVICE_FUNCTION inline uint32_t
leat__transform_count(const leat_device_transform *job)
{
    return (uint32_t)job->channels * (uint32_t)job->height *
           (uint32_t)job->width;
}

/* How many threads a batch takes. */
static LEAT__DEVICE_FUNCTION inline int64_t
leat__transform_threads(const leat_device_transform *job)
{
    int lanes = job->top_type == LEAT_FLOAT32 ? 4
                : job->top_type == LEAT_UINT8 ? 16
                                              : 8;
    int64_t total = job->images * (int64_t)leat__transform_count(job);
    return (total + lanes - 1) / lanes;
}

static LEAT__DEVICE_FUNCTION inline void
leat__transform_seek(const leat_device_transform *job, int64_t element,
                     leat__transform_cursor *at)
{
    uint32_t count = leat__transform_count(job);
    /* Divisions of 32 bits are many times faster where they will do. */
    at->image = element <= UINT32_MAX ? (uint32_t)element / count
                                      : element / (int64_t)count;
    uint32_t rest = (uint32_t)(element - at->image * (int64_t)count);
    uint32_t channels = (uint32_t)job->channels;
    uint32_t height = (uint32_t)job->height;
    uint32_t width = (uint32_t)job->width;
    if (job->layout == LEAT_NHWC) {
        at->c = (int)(rest % channels);
        at->w = (int)(rest / channels % width);
        at->h = (int)(rest / channels / width);
    } else {
        at->w = (int)(rest % width);
        at->h = (int)(rest / width % height);
        at->c = (int)(rest / width / height);
    }
    at->pixels = job->pixels + at->image * (int64_t)count;
    at->choice = job->choices[at->image];
}

static LEAT__DEVICE_FUNCTION inline void
leat__transform_next_image(const leat_device_transform *job,
                           leat__transform_cursor *at)
{
    if (++at->image == job->images)
        return;
    at->pixels += leat__transform_count(job);
    at->choice = job->choices[at->image];
}

static LEAT__DEVICE_FUNCTION inline void
leat__transform_advance(const leat_device_transform *job,
                        leat__transform_cursor *at)
{
    if (job->layout == LEAT_NHWC) {
        if (++at->c < job->channels)
            return;
        at->c = 0;
        if (++at->w < job->width)
            return;
        at->w = 0;
        if (++at->h < job->height)
            return;
        at->h = 0;
    } else {
        if (++at->w < job->width)
            return;
        at->w = 0;
        if (++at->h < job->height)
            return;
        at->h = 0;
        if (++at->c < job->channels)
            return;
        at->c = 0;
    }
    leat__transform_next_image(job, at);
}

static LEAT__DEVICE_FUNCTION inline unsigned char
leat__transform_pixel(const leat_device_transform *job,
                      const leat__transform_cursor *at)
{
    uint32_t w = (uint32_t)(at->choice.mirror ? job->width - 1 - at->w : at->w);
    uint32_t h = (uint32_t)at->h;
    uint32_t c = (uint32_t)at->c;
    uint32_t width = (uint32_t)job->width;
    if (at->choice.is_zero)
        return 0;
    if (job->pixel_layout == LEAT_NHWC)
        return at->pixels[(h * width + w) * (uint32_t)job->channels + c];
    return at->pixels[(c * (uint32_t)job->height + h) * width + w];
}

static LEAT__DEVICE_FUNCTION inline float
leat__transform_value(const leat_device_transform *job,
                      const leat__transform_cursor *at)
{
    if (at->choice.is_zero)
        return 0;
    float x = leat__transform_pixel(job, at);
    if (job->mean) {
        int w = at->choice.mirror ? job->width - 1 - at->w : at->w;
        size_t plane = (size_t)job->mean_height * (size_t)job->mean_width;
        size_t row = (size_t)(at->h + at->choice.h_off);
        x -= job->mean[(size_t)at->c * plane + row * (size_t)job->mean_width +
                       (size_t)(w + at->choice.w_off)];
    } else if (job->mean_value) {
        x -= job->mean_value[job->mean_values > 1 ? at->c : 0];
    }
    return x * job->scale;
}

/* The work of one thread, by the type of the top. */
#define LEAT__TRANSFORM_WORK(name, Type, element)                              \
    static LEAT__DEVICE_FUNCTION inline void name(                             \
        const leat_device_transform *job, int64_t thread)                      \
    {                                                                          \
        const int lanes = (int)(16 / sizeof(Type));                            \
        int64_t first = thread * lanes;                                        \
        int64_t left =                                                         \
            job->images * (int64_t)leat__transform_count(job) - first;         \
        Type out[16 / sizeof(Type)];                                           \
        leat__transform_cursor at;                                             \
        if (left <= 0)                                                         \
            return;                                                            \
        leat__transform_seek(job, first, &at);                                 \
        for (int i = 0; i < lanes; i++) {                                      \
            if (i < left) {                                                    \
                out[i] = element;                                              \
                leat__transform_advance(job, &at);                             \
            }                                                                  \
        }                                                                      \
        Type *top = (Type *)job->top + first;                                  \
        if (left >= lanes) {                                                   \
            LEAT__DEVICE_STORE(top, out);                                      \
            return;                                                            \
        }                                                                      \
        for (int i = 0; i < left; i++)                                         \
            top[i] = out[i];                                                   \
    }

LEAT__TRANSFORM_WORK(leat__transform_work_float32, float,
                     leat__transform_value(job, &at))
LEAT__TRANSFORM_WORK(leat__transform_work_float16, uint16_t,
                     leat__float16(leat__transform_value(job, &at)))
LEAT__TRANSFORM_WORK(leat__transform_work_bfloat16, uint16_t,
                     leat__bfloat16(leat__transform_value(job, &at)))
LEAT__TRANSFORM_WORK(leat__transform_work_uint8, unsigned char,
                     leat__transform_pixel(job, &at))

/* The same for any type. */
static LEAT__DEVICE_FUNCTION inline void
leat__transform_work(const leat_device_transform *job, int64_t thread)
{
    if (job->top_type == LEAT_FLOAT32)
        leat__transform_work_float32(job, thread);
    else if (job->top_type == LEAT_FLOAT16)
        leat__transform_work_float16(job, thread);
    else if (job->top_type == LEAT_BFLOAT16)
        leat__transform_work_bfloat16(job, thread);
    else
        leat__transform_work_uint8(job, thread);
}

#endif
