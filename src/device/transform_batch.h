/*
 * transform_batch.h: a whole batch of uint8 crops on its way to the top, as a
 * device does it: many threads, each with 16 bytes of the top.
 *
 * Shared with device kernels as transform_job.h is: the work of a thread is one
 * function of batch and thread index, index arithmetic and tails included.
 *
 * A thread goes by quads, four neighbouring elements of the top. Four that lie
 * in one run, a stretch along which pixels and means are neighbours too, are
 * loaded in words: whole aligned words, of which those that straddle two are
 * shifted together. A quad at the end of a run goes element by element. Where
 * the top has the pixels' order and nothing is mirrored, the thread's pixels
 * are one load.
 */
#ifndef LEAT_DEVICE_TRANSFORM_BATCH_H
#define LEAT_DEVICE_TRANSFORM_BATCH_H

#include "device/divisor.h"
#include "device/float16.h"

#include <leat/ext/device.h>
#include <string.h>

#ifndef LEAT__DEVICE_FUNCTION
#define LEAT__DEVICE_FUNCTION
#endif

/* Device kernels bring their own of these. */
#ifndef LEAT__DEVICE_UNROLL
#define LEAT__DEVICE_UNROLL
#include <assert.h>

/* `n` words, 1, 2 or 4, from or to a multiple of their size. */
static inline void leat__words_load(uint32_t to[], const void *from, int n)
{
    assert((uintptr_t)from % ((uintptr_t)n * 4) == 0);
    memcpy(to, from, (size_t)n * 4);
}

static inline void leat__words_store(void *to, const uint32_t from[], int n)
{
    assert((uintptr_t)to % ((uintptr_t)n * 4) == 0);
    memcpy(to, from, (size_t)n * 4);
}

static inline uint16_t leat__device_float16(float value)
{
    return leat__float16(value);
}
#endif

/* What holds for all threads. */
typedef struct leat__transform_batch {
    leat_device_transform job;
    int64_t total;     /* elements */
    uint32_t count;    /* of an image */
    uint32_t row;      /* elements along which the top runs: w, or w and c */
    uint32_t rows;     /* of a plane: the height */
    uint32_t plane;    /* NCHW: of a channel; NHWC: of the image */
    uint32_t channels; /* that interleave in the top */
    int is_same_order; /* of pixels and top */
    leat__divisor by_count;
    leat__divisor by_row;
    leat__divisor by_rows;
    leat__divisor by_channels;
} leat__transform_batch;

/* Where a thread is: an image, and an element of its top. */
typedef struct leat__transform_cursor {
    const unsigned char *pixels; /* of the image */
    leat_device_choice choice;
    int64_t image;
    uint32_t c; /* NCHW: the channel; NHWC: 0 */
    uint32_t h;
    uint32_t x; /* in the row */
} leat__transform_cursor;

static inline void leat__transform_batch_init(leat__transform_batch *batch,
                                              const leat_device_transform *job)
{
    uint32_t width = (uint32_t)job->width;
    uint32_t channels = (uint32_t)job->channels;
    int is_planar = job->layout == LEAT_NCHW || channels == 1;
    memset(batch, 0, sizeof(*batch));
    batch->job = *job;
    batch->rows = (uint32_t)job->height;
    batch->count = channels * batch->rows * width;
    batch->row = is_planar ? width : width * channels;
    batch->plane = batch->row * batch->rows;
    batch->channels = is_planar ? 1 : channels;
    batch->total = job->images * (int64_t)batch->count;
    batch->is_same_order = channels == 1 || job->pixel_layout == job->layout;
    batch->by_count = leat__divisor_of(batch->count);
    batch->by_row = leat__divisor_of(batch->row);
    batch->by_rows = leat__divisor_of(batch->rows);
    batch->by_channels = leat__divisor_of(batch->channels);
}

/* Elements of the top in 16 bytes. */
static inline int leat__transform_lanes(leat_dtype top_type)
{
    return top_type == LEAT_FLOAT32 ? 4 : top_type == LEAT_UINT8 ? 16 : 8;
}

/* How many threads a batch takes. */
static inline int64_t
leat__transform_batch_threads(const leat__transform_batch *batch)
{
    int lanes = leat__transform_lanes(batch->job.top_type);
    return (batch->total + lanes - 1) / lanes;
}

static LEAT__DEVICE_FUNCTION inline void
leat__transform_open_image(const leat__transform_batch *batch,
                           leat__transform_cursor *at)
{
    const leat_device_transform *job = &batch->job;
    uint32_t words[4];
    leat__words_load(words, &job->choices[at->image], 4);
    at->choice.h_off = (int32_t)words[0];
    at->choice.w_off = (int32_t)words[1];
    at->choice.mirror = words[2];
    at->choice.is_zero = words[3];
    at->pixels = job->pixels + at->image * (int64_t)batch->count;
}

static LEAT__DEVICE_FUNCTION inline void
leat__transform_seek(const leat__transform_batch *batch, int64_t element,
                     leat__transform_cursor *at)
{
    /* Divisions of 32 bits are many times faster, if they suffice. */
    at->image = element <= (int64_t)UINT32_MAX
                    ? (int64_t)leat__divide((uint32_t)element, &batch->by_count)
                    : element / (int64_t)batch->count;
    uint32_t rest = (uint32_t)(element - at->image * (int64_t)batch->count);
    uint32_t row = leat__divide(rest, &batch->by_row);
    at->x = rest - row * batch->row;
    at->c = leat__divide(row, &batch->by_rows);
    at->h = row - at->c * batch->rows;
    leat__transform_open_image(batch, at);
}

/* Advances by a few elements; after the last image the result is undefined. */
static LEAT__DEVICE_FUNCTION inline void
leat__transform_skip(const leat__transform_batch *batch,
                     leat__transform_cursor *at, uint32_t elements)
{
    at->x += elements;
    while (at->x >= batch->row && at->image < batch->job.images) {
        at->x -= batch->row;
        if (++at->h < batch->rows)
            continue;
        at->h = 0;
        if (++at->c * batch->plane < batch->count)
            continue;
        at->c = 0;
        if (++at->image < batch->job.images)
            leat__transform_open_image(batch, at);
    }
}

/* Elements from here on whose pixels and means are neighbours. */
static LEAT__DEVICE_FUNCTION inline uint32_t
leat__transform_run(const leat__transform_batch *batch,
                    const leat__transform_cursor *at)
{
    if (at->choice.mirror || !batch->is_same_order || batch->job.mean)
        return batch->row - at->x;
    return batch->plane - at->h * batch->row - at->x;
}

/* The channel and the column of the crop that an element has. */
static LEAT__DEVICE_FUNCTION inline void
leat__transform_place(const leat__transform_batch *batch,
                      const leat__transform_cursor *at, uint32_t *c,
                      uint32_t *w)
{
    *w = leat__divide(at->x, &batch->by_channels);
    *c = at->c + at->x - *w * batch->channels;
    if (at->choice.mirror)
        *w = (uint32_t)batch->job.width - 1 - *w;
}

static LEAT__DEVICE_FUNCTION inline uint32_t
leat__transform_pixel(const leat__transform_batch *batch,
                      const leat__transform_cursor *at)
{
    const leat_device_transform *job = &batch->job;
    uint32_t width = (uint32_t)job->width;
    uint32_t c, w;
    if (at->choice.is_zero)
        return 0;
    leat__transform_place(batch, at, &c, &w);
    if (job->pixel_layout == LEAT_NHWC)
        return at->pixels[(at->h * width + w) * (uint32_t)job->channels + c];
    return at->pixels[(c * (uint32_t)job->height + at->h) * width + w];
}

/* Where the mean of that element lies, or of the one to the right of it. */
static LEAT__DEVICE_FUNCTION inline const float *
leat__transform_mean_at(const leat_device_transform *job,
                        const leat__transform_cursor *at, uint32_t c,
                        uint32_t w)
{
    size_t row =
        (size_t)c * (size_t)job->mean_height + at->h + (size_t)at->choice.h_off;
    return job->mean + row * (size_t)job->mean_width + w +
           (size_t)at->choice.w_off;
}

static LEAT__DEVICE_FUNCTION inline float
leat__transform_mean(const leat__transform_batch *batch,
                     const leat__transform_cursor *at)
{
    const leat_device_transform *job = &batch->job;
    uint32_t c, w;
    leat__transform_place(batch, at, &c, &w);
    if (job->mean)
        return *leat__transform_mean_at(job, at, c, w);
    return job->mean_value[job->mean_values > 1 ? c : 0];
}

/* Four bytes from anywhere within the batch's pixels. */
static LEAT__DEVICE_FUNCTION inline uint32_t
leat__transform_bytes(const leat__transform_batch *batch,
                      const unsigned char *from)
{
    const unsigned char *pixels = batch->job.pixels;
    uint32_t word[2];
    uint32_t over = (uint32_t)((uintptr_t)from & 3);
    if (over == 0) {
        leat__words_load(word, from, 1);
        return word[0];
    }
    /* No byte that is not the batch's, not even for a moment. */
    if (from - pixels < 4 || batch->job.pixels + batch->total - from < 8)
        return from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 |
               (uint32_t)from[3] << 24;
    leat__words_load(&word[0], from - over, 1);
    leat__words_load(&word[1], from - over + 4, 1);
    return (uint32_t)(((uint64_t)word[1] << 32 | word[0]) >> 8 * over);
}

static LEAT__DEVICE_FUNCTION inline uint32_t leat__reversed(uint32_t word)
{
    return word << 24 | (word & 0xff00) << 8 | (word >> 8 & 0xff00) |
           word >> 24;
}

/* The pixels of a quad within a run, the first one lowest. */
static LEAT__DEVICE_FUNCTION inline uint32_t
leat__transform_pixels(const leat__transform_batch *batch,
                       const leat__transform_cursor *at)
{
    uint32_t row = (at->c * batch->rows + at->h) * batch->row;
    if (at->choice.is_zero)
        return 0;
    if (batch->is_same_order && !at->choice.mirror)
        return leat__transform_bytes(batch, at->pixels + row + at->x);
    if (batch->is_same_order && batch->channels == 1)
        return leat__reversed(leat__transform_bytes(
            batch, at->pixels + row + batch->row - 4 - at->x));
    leat__transform_cursor one = *at;
    uint32_t word = 0;
    LEAT__DEVICE_UNROLL
    for (int i = 0; i < 4; i++, one.x++)
        word |= leat__transform_pixel(batch, &one) << 8 * i;
    return word;
}

/* Four floats of the mean's from anywhere, by whole aligned words. */
static LEAT__DEVICE_FUNCTION inline void
leat__transform_floats(const leat_device_transform *job, const float *from,
                       uint32_t out[4])
{
    uint32_t word[8];
    uint32_t over = (uint32_t)((uintptr_t)from / 4 & 3);
    size_t size = (size_t)job->channels * (size_t)job->mean_height *
                  (size_t)job->mean_width;
    if (over > 0 && (from - job->mean < 4 || job->mean + size - from < 8)) {
        LEAT__DEVICE_UNROLL
        for (int i = 0; i < 4; i++)
            leat__words_load(&out[i], from + i, 1);
        return;
    }
    leat__words_load(word, from - over, 4);
    word[4] = word[5] = word[6] = word[7] = 0;
    if (over > 0)
        leat__words_load(word + 4, from - over + 4, 4);
    LEAT__DEVICE_UNROLL
    for (int i = 0; i < 6; i++)
        word[i] = over & 1 ? word[i + 1] : word[i];
    LEAT__DEVICE_UNROLL
    for (int i = 0; i < 4; i++)
        out[i] = over & 2 ? word[i + 2] : word[i];
}

/* The means of a quad within a run. */
static LEAT__DEVICE_FUNCTION inline void
leat__transform_means(const leat__transform_batch *batch,
                      const leat__transform_cursor *at, float out[4])
{
    const leat_device_transform *job = &batch->job;
    if (batch->channels > 1) {
        leat__transform_cursor one = *at;
        LEAT__DEVICE_UNROLL
        for (int i = 0; i < 4; i++, one.x++)
            out[i] = leat__transform_mean(batch, &one);
        return;
    }
    if (!job->mean) {
        float value = leat__transform_mean(batch, at);
        LEAT__DEVICE_UNROLL
        for (int i = 0; i < 4; i++)
            out[i] = value;
        return;
    }
    uint32_t word[4];
    uint32_t w = at->choice.mirror ? batch->row - 4 - at->x : at->x;
    leat__transform_floats(job, leat__transform_mean_at(job, at, at->c, w),
                           word);
    LEAT__DEVICE_UNROLL
    for (int i = 0; i < 4; i++) {
        uint32_t bits = at->choice.mirror ? word[3 - i] : word[i];
        memcpy(&out[i], &bits, sizeof(bits));
    }
}

/* A quad in progress: its pixels, their means, and which of them are 0. */
typedef struct leat__transform_quad {
    uint32_t pixels;
    float mean[4];
    uint32_t zeros; /* a bit for each */
} leat__transform_quad;

/* Goes to the next quad, the pixels of which may be here already. */
static LEAT__DEVICE_FUNCTION inline leat__transform_quad
leat__transform_take(const leat__transform_batch *batch,
                     leat__transform_cursor *at, int is_loaded, uint32_t pixels)
{
    const leat_device_transform *job = &batch->job;
    int has_mean = job->mean || job->mean_value;
    leat__transform_quad quad = {0, {0, 0, 0, 0}, 0};
    if (leat__transform_run(batch, at) >= 4) {
        quad.pixels = is_loaded ? pixels : leat__transform_pixels(batch, at);
        if (has_mean)
            leat__transform_means(batch, at, quad.mean);
        quad.zeros = at->choice.is_zero ? 15 : 0;
        leat__transform_skip(batch, at, 4);
        return quad;
    }
    /* Each comes in above those before it: registers have no index. */
    for (int i = 0; i < 4; i++) {
        quad.pixels >>= 8;
        quad.zeros >>= 1;
        quad.mean[0] = quad.mean[1];
        quad.mean[1] = quad.mean[2];
        quad.mean[2] = quad.mean[3];
        if (at->image >= job->images)
            continue;
        quad.pixels |= leat__transform_pixel(batch, at) << 24;
        if (has_mean)
            quad.mean[3] = leat__transform_mean(batch, at);
        quad.zeros |= at->choice.is_zero ? 8 : 0;
        leat__transform_skip(batch, at, 1);
    }
    return quad;
}

static LEAT__DEVICE_FUNCTION inline float
leat__transform_value(const leat__transform_batch *batch,
                      const leat__transform_quad *quad, int i)
{
    float x = (float)(quad->pixels >> 8 * i & 0xff);
    if (quad->zeros >> i & 1)
        return 0;
    return (x - quad->mean[i]) * batch->job.scale;
}

/* The quad in the top's type, in as many words as that takes. */
static LEAT__DEVICE_FUNCTION inline void
leat__transform_cast(const leat__transform_batch *batch,
                     const leat__transform_quad *quad, leat_dtype type,
                     uint32_t out[])
{
    uint32_t bits[4];
    if (type == LEAT_UINT8) {
        out[0] = quad->pixels;
        return;
    }
    LEAT__DEVICE_UNROLL
    for (int i = 0; i < 4; i++) {
        float value = leat__transform_value(batch, quad, i);
        if (type == LEAT_FLOAT32)
            memcpy(&bits[i], &value, sizeof(value));
        else if (type == LEAT_FLOAT16)
            bits[i] = leat__device_float16(value);
        else
            bits[i] = leat__bfloat16(value);
    }
    if (type == LEAT_FLOAT32) {
        LEAT__DEVICE_UNROLL
        for (int i = 0; i < 4; i++)
            out[i] = bits[i];
    } else {
        out[0] = bits[0] | bits[1] << 16;
        out[1] = bits[2] | bits[3] << 16;
    }
}

/* The last thread's elements, fewer than 16 bytes of them. */
static LEAT__DEVICE_FUNCTION inline void
leat__transform_store_some(char *top, const uint32_t out[4], leat_dtype type,
                           int64_t n)
{
    LEAT__DEVICE_UNROLL
    for (int i = 0; i < 16; i++) {
        if (i >= n)
            continue;
        if (type == LEAT_UINT8)
            top[i] = (char)(out[i / 4] >> 8 * (i % 4));
        else if (type == LEAT_FLOAT32)
            ((uint32_t *)(void *)top)[i] = out[i % 4];
        else
            ((uint16_t *)(void *)top)[i] =
                (uint16_t)(out[i / 2 % 4] >> 16 * (i % 2));
    }
}

/* The work of one thread; `type` is that of the top, known when compiling. */
static LEAT__DEVICE_FUNCTION inline void
leat__transform_batch_work_as(const leat__transform_batch *batch,
                              int64_t thread, leat_dtype type)
{
    const int quads = type == LEAT_FLOAT32 ? 1 : type == LEAT_UINT8 ? 4 : 2;
    int64_t first = thread * quads * 4;
    int64_t left = batch->total - first;
    uint32_t pixels[4] = {0, 0, 0, 0};
    uint32_t out[4];
    leat__transform_cursor at;
    if (left <= 0)
        return;
    leat__transform_seek(batch, first, &at);
    const unsigned char *from = batch->job.pixels + first;
    uint32_t in_image = (uint32_t)(first - at.image * (int64_t)batch->count);
    int is_loaded = batch->is_same_order && !at.choice.mirror &&
                    !at.choice.is_zero &&
                    in_image + (uint32_t)quads * 4 <= batch->count &&
                    ((uintptr_t)from & (uintptr_t)(quads * 4 - 1)) == 0;
    if (is_loaded)
        leat__words_load(pixels, from, quads);
    char *top = (char *)batch->job.top + thread * 16;
    if (is_loaded && type == LEAT_UINT8) {
        leat__words_store(top, pixels, 4);
        return;
    }
    LEAT__DEVICE_UNROLL
    for (int i = 0; i < 4; i++) {
        if (i >= quads)
            continue;
        leat__transform_quad quad =
            leat__transform_take(batch, &at, is_loaded, pixels[i]);
        leat__transform_cast(batch, &quad, type, out + i * (4 / quads));
    }
    if (left >= quads * 4)
        leat__words_store(top, out, 4);
    else
        leat__transform_store_some(top, out, type, left);
}

/* The same for any type. */
static LEAT__DEVICE_FUNCTION inline void
leat__transform_batch_work(const leat__transform_batch *batch, int64_t thread)
{
    if (batch->job.top_type == LEAT_FLOAT32)
        leat__transform_batch_work_as(batch, thread, LEAT_FLOAT32);
    else if (batch->job.top_type == LEAT_FLOAT16)
        leat__transform_batch_work_as(batch, thread, LEAT_FLOAT16);
    else if (batch->job.top_type == LEAT_BFLOAT16)
        leat__transform_batch_work_as(batch, thread, LEAT_BFLOAT16);
    else
        leat__transform_batch_work_as(batch, thread, LEAT_UINT8);
}

#endif
