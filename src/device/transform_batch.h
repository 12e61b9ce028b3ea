/*
 * transform_batch.h: a whole batch of uint8 crops on its way to the top, as a
 * device does it: a warp of 32 lanes takes a few rows of an image.
 *
 * Shared with device kernels as transform_job.h is: the work of a lane is one
 * function of batch, image, unit, piece and lane, index arithmetic included.
 * No lane needs another.
 *
 * DESIGN. A row of the top is contiguous, so a warp writes it in words of 4
 * bytes, one float or two halves or four bytes, 32 neighbours at once; the few
 * elements before the first whole word of a row and after its last are written
 * one by one. Pixels are read byte by byte: where the next element's pixel lies
 * depends on the layouts and on mirroring alone, as a step that is known when
 * compiling. So the loads of a lane, of which 8 are in flight, differ by
 * constants, and no word is divided between two rows.
 *
 * Where tops interleave three channels, every third element has the same
 * channel: three addresses and three means serve a whole pass. Rows of other
 * numbers of channels that change their order divide for every element.
 *
 * Rows that follow one another in pixels and top alike, with one mean, are one.
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
#define LEAT__DEVICE_LOOP
#include <assert.h>

/* 1, 2 or 4 bytes from a multiple of their size, the first one lowest. */
static inline uint32_t leat__device_load(const void *from, int bytes)
{
    uint32_t word = 0;
    assert((uintptr_t)from % (uintptr_t)bytes == 0);
    memcpy(&word, from, (size_t)bytes);
    return word;
}

static inline void leat__device_store(void *to, uint32_t word, int bytes)
{
    assert((uintptr_t)to % (uintptr_t)bytes == 0);
    memcpy(to, &word, (size_t)bytes);
}

static inline uint64_t leat__device_product(uint32_t a, uint32_t b)
{
    return (uint64_t)a * b;
}

static inline leat_device_choice
leat__device_choice_load(const leat_device_choice *from)
{
    return *from;
}

/* Two floats as FLOAT16 or BFLOAT16, the first one in the lower half. */
static inline uint32_t leat__device_halves(leat_dtype type, float low,
                                           float high)
{
    if (type == LEAT_FLOAT16)
        return leat__float16(low) | (uint32_t)leat__float16(high) << 16;
    return leat__bfloat16(low) | (uint32_t)leat__bfloat16(high) << 16;
}
#endif

enum {
    LEAT__LANES = 32, /* of a warp */
    LEAT__WARPS = 8,  /* of a block at most, each with an image */
    LEAT__UNIT =
        10240, /* bytes of a plane, read and written by a warp, about */
    LEAT__PIECE = 6144, /* of a longer row */
};

/* How the order of axes changes. */
typedef enum leat__transform_way {
    LEAT__SAME_ORDER,  /* NCHW to NCHW, or a single channel */
    LEAT__TO_PLANES,   /* three channels, NHWC to NCHW */
    LEAT__INTERLEAVED, /* three channels, NHWC to NHWC */
    LEAT__FROM_PLANES, /* three channels, NCHW to NHWC */
    LEAT__ANY_ORDER    /* everything else */
} leat__transform_way;

/* What is known when compiling. */
typedef struct leat__transform_kind {
    leat_dtype type; /* of the top */
    leat__transform_way way;
    int has_image; /* the mean is an image */
    int sign;      /* -1: mirrored, 1: not */
} leat__transform_kind;

/* What holds for all lanes. */
typedef struct leat__transform_batch {
    leat_device_transform job;
    leat__transform_way way;
    uint32_t count;    /* elements of an image */
    uint32_t channels; /* that interleave in the top */
    uint32_t row;      /* elements along which the top runs: w, or w and c */
    uint32_t minus_row;
    uint32_t rows;       /* of a plane */
    uint32_t planes;     /* of the top, each with rows of its own */
    uint32_t unit;       /* rows of a plane that a unit has */
    uint32_t units;      /* along a plane */
    uint32_t piece;      /* columns of a unit */
    uint32_t pieces;     /* along a row; more than one only if units are rows */
    uint32_t warps;      /* units of an image, each the work of a warp */
    uint32_t reciprocal; /* of the row, in 2^-31; 0 if units are rows */
    uint32_t jump;       /* bytes of pixels, if mirrored */
    uint32_t mean_jump;  /* bytes of a mean image */
    uint32_t mean_turn;  /* likewise, if mirrored */
    leat__divisor by_units;
    leat__divisor by_pieces;
    leat__divisor by_channels;
} leat__transform_batch;

/*
 * Rows of one plane, as far as they follow one another in the top. An element's
 * pixel lies where its number tells, and a jump further for each row before it.
 */
typedef struct leat__transform_strip {
    const unsigned char *pixels; /* of element 0 */
    const float *mean;           /* of it, or of its channel; NULL: none */
    char *top;                   /* its place */
    uint32_t length;             /* elements */
    uint32_t rows;
} leat__transform_strip;

static inline leat__transform_way
leat__transform_way_of(const leat_device_transform *job)
{
    if (job->channels == 1 ||
        (job->layout == LEAT_NCHW && job->pixel_layout == LEAT_NCHW))
        return LEAT__SAME_ORDER;
    if (job->channels != 3)
        return LEAT__ANY_ORDER;
    if (job->layout == LEAT_NCHW)
        return LEAT__TO_PLANES;
    return job->pixel_layout == LEAT_NHWC ? LEAT__INTERLEAVED
                                          : LEAT__FROM_PLANES;
}

/* Elements in a word of the top. */
static LEAT__DEVICE_FUNCTION inline int leat__transform_pack(leat_dtype type)
{
    return type == LEAT_FLOAT32 ? 1 : type == LEAT_UINT8 ? 4 : 2;
}

static inline uint32_t leat__divide_up(uint32_t dividend, uint32_t divisor)
{
    return dividend / divisor + (dividend % divisor > 0);
}

/* Into units of about so many elements, rows or pieces of rows. */
static inline void leat__transform_divide(leat__transform_batch *batch,
                                          uint32_t unit, uint32_t piece)
{
    uint32_t width = (uint32_t)batch->job.width;
    batch->unit = leat__divide_up(unit, batch->row);
    batch->units = leat__divide_up(batch->rows, batch->unit);
    batch->piece = leat__divide_up(piece, batch->channels);
    batch->pieces = leat__divide_up(width, batch->piece);
    batch->warps = batch->units * batch->pieces;
    if (batch->way == LEAT__SAME_ORDER)
        batch->warps *= batch->planes;
    batch->reciprocal = batch->unit > 1 ? (1u << 31) / batch->row + 1 : 0;
    batch->by_units = leat__divisor_of(batch->units);
    batch->by_pieces = leat__divisor_of(batch->pieces);
}

static inline void leat__transform_batch_init(leat__transform_batch *batch,
                                              const leat_device_transform *job)
{
    uint32_t width = (uint32_t)job->width;
    uint32_t height = (uint32_t)job->height;
    uint32_t channels = (uint32_t)job->channels;
    int is_planar = job->layout == LEAT_NCHW || channels == 1;
    memset(batch, 0, sizeof(*batch));
    batch->job = *job;
    batch->way = leat__transform_way_of(job);
    batch->count = channels * height * width;
    batch->channels = is_planar ? 1 : channels;
    batch->row = width * batch->channels;
    batch->minus_row = 0 - batch->row;
    batch->planes = is_planar ? channels : 1;
    batch->rows = height;
    if (batch->way == LEAT__SAME_ORDER && !job->mean && job->mean_values <= 1) {
        /* Nothing tells channels from rows. */
        batch->rows *= channels;
        batch->planes = 1;
    }
    int step = job->pixel_layout == LEAT_NHWC ? job->channels : 1;
    batch->jump = 2 * (uint32_t)step * width;
    batch->mean_jump = 4 * ((uint32_t)job->mean_width - width);
    batch->mean_turn = 4 * ((uint32_t)job->mean_width + width);
    batch->by_channels = leat__divisor_of(batch->channels);
    uint32_t size = job->top_type == LEAT_FLOAT32 ? 4
                    : job->top_type == LEAT_UINT8 ? 1
                                                  : 2;
    leat__transform_divide(batch, LEAT__UNIT / (1 + size), LEAT__PIECE);
}

/* Warps of a block. */
static inline uint32_t leat__transform_warps(const leat_device_transform *job)
{
    return job->images < LEAT__WARPS ? (uint32_t)job->images : LEAT__WARPS;
}

/*
 * Loads of pixels that a lane has in flight, besides as many of a mean image:
 * what 40 registers have room for. Whole words, and a multiple of three
 * channels.
 */
static LEAT__DEVICE_FUNCTION inline int
leat__transform_loads(leat__transform_kind kind)
{
    if (kind.way == LEAT__ANY_ORDER)
        return leat__transform_pack(kind.type);
    if (kind.way == LEAT__INTERLEAVED || kind.way == LEAT__FROM_PLANES) {
        if (kind.type == LEAT_FLOAT32)
            return kind.has_image ? 3 : 9;
        return kind.has_image ? 6 : 12;
    }
    if (kind.type == LEAT_UINT8)
        return kind.way == LEAT__SAME_ORDER ? 16 : 8;
    return kind.has_image && kind.way == LEAT__TO_PLANES ? 2 : 8;
}

/* Whether the channels of the pixels are neighbours. */
static LEAT__DEVICE_FUNCTION inline int
leat__transform_is_nhwc(const leat__transform_batch *batch,
                        leat__transform_way way)
{
    if (way == LEAT__ANY_ORDER)
        return batch->job.pixel_layout == LEAT_NHWC;
    return way == LEAT__TO_PLANES || way == LEAT__INTERLEAVED;
}

/* Whether pixels or means of a row are not where those before it lead. */
static LEAT__DEVICE_FUNCTION inline int
leat__transform_jumps(leat__transform_kind kind)
{
    return kind.sign < 0 || kind.has_image || kind.way == LEAT__ANY_ORDER;
}

/* How many rows of the strip are before that of an element. */
static LEAT__DEVICE_FUNCTION inline uint32_t
leat__transform_row_of(const leat__transform_batch *batch, uint32_t element)
{
    return (uint32_t)(leat__device_product(element * 2, batch->reciprocal) >>
                      32);
}

/* From a pixel to the next of its channel, unless mirrored. */
static LEAT__DEVICE_FUNCTION inline int
leat__transform_step(const leat__transform_batch *batch,
                     leat__transform_way way)
{
    if (!leat__transform_is_nhwc(batch, way))
        return 1;
    return way == LEAT__ANY_ORDER ? batch->job.channels : 3;
}

/* What a unit has of a plane of the top. */
static LEAT__DEVICE_FUNCTION inline leat__transform_strip
leat__transform_open(const leat__transform_batch *batch,
                     leat__transform_kind kind, int64_t image,
                     const leat_device_choice *choice, uint32_t plane,
                     uint32_t row, uint32_t column)
{
    const leat_device_transform *job = &batch->job;
    uint32_t width = (uint32_t)job->width;
    uint32_t from = choice->mirror ? width - 1 - column : column;
    uint32_t columns =
        batch->piece < width - column ? batch->piece : width - column;
    uint32_t plane_row = plane * batch->rows + row;
    int64_t first = image * (int64_t)batch->count;
    int step = leat__transform_step(batch, kind.way);
    leat__transform_strip strip;
    strip.rows =
        batch->unit < batch->rows - row ? batch->unit : batch->rows - row;
    strip.length = strip.rows * columns * batch->channels;
    strip.pixels = job->pixels + first +
                   (leat__transform_is_nhwc(batch, kind.way)
                        ? (row * width + from) * (uint32_t)step + plane
                        : plane_row * width + from);
    strip.top = (char *)job->top +
                (first + plane_row * batch->row + column * batch->channels) *
                    (4 / leat__transform_pack(kind.type));
    strip.mean = NULL;
    if (kind.has_image)
        strip.mean = job->mean +
                     (plane * (int64_t)job->mean_height + row + choice->h_off) *
                         job->mean_width +
                     choice->w_off + from;
    else if (job->mean_value)
        strip.mean = job->mean_value + (job->mean_values > 1 ? plane : 0);
    return strip;
}

/* What an element comes from. */
typedef struct leat__transform_source {
    const unsigned char *pixel;
    const float *mean; /* in the mean image */
    float value;       /* the mean, without such an image */
} leat__transform_source;

/* That of an element as if no row before its own had a jump. */
static LEAT__DEVICE_FUNCTION inline leat__transform_source
leat__transform_source_of(const leat__transform_batch *batch,
                          const leat__transform_strip *strip,
                          leat__transform_kind kind, uint32_t element)
{
    const leat_device_transform *job = &batch->job;
    int step = leat__transform_step(batch, kind.way) * kind.sign;
    uint32_t w = element;
    uint32_t c = 0; /* above that of the strip */
    if (kind.way == LEAT__INTERLEAVED || kind.way == LEAT__FROM_PLANES) {
        w = element / 3;
        c = element - w * 3;
    } else if (kind.way == LEAT__ANY_ORDER) {
        w = leat__divide(element, &batch->by_channels);
        c = element - w * batch->channels;
    }
    leat__transform_source source = {strip->pixels + (int64_t)(int)w * step,
                                     NULL, 0};
    source.pixel += leat__transform_is_nhwc(batch, kind.way)
                        ? c
                        : c * (uint32_t)job->height * (uint32_t)job->width;
    if (kind.has_image)
        source.mean = strip->mean + (int64_t)(int)w * kind.sign +
                      (int64_t)c * job->mean_height * job->mean_width;
    else if (kind.type != LEAT_UINT8 && strip->mean)
        source.value = strip->mean[job->mean_values > 1 ? c : 0];
    return source;
}

/* The source `n` elements on, from those of three neighbours, or of one. */
static LEAT__DEVICE_FUNCTION inline leat__transform_source
leat__transform_source_at(const leat__transform_source sources[3],
                          leat__transform_kind kind, int n)
{
    leat__transform_way way = kind.way;
    int channels = way == LEAT__INTERLEAVED || way == LEAT__FROM_PLANES ? 3 : 1;
    int step = way == LEAT__TO_PLANES || way == LEAT__INTERLEAVED ? 3 : 1;
    leat__transform_source source = sources[n % channels];
    source.pixel += n / channels * step * kind.sign;
    if (way == LEAT__INTERLEAVED && kind.sign > 0)
        source.pixel = sources[0].pixel + n;
    if (kind.has_image)
        source.mean += n / channels * kind.sign;
    return source;
}

/* What the jumps of all rows before an element's make, in bytes. */
typedef struct leat__transform_distance {
    uint64_t pixel;
    uint64_t mean;
} leat__transform_distance;

static LEAT__DEVICE_FUNCTION inline leat__transform_distance
leat__transform_distance_of(const leat__transform_batch *batch,
                            leat__transform_kind kind, uint32_t row)
{
    leat__transform_distance distance = {0, 0};
    if (kind.sign < 0)
        distance.pixel = leat__device_product(row, batch->jump);
    if (kind.has_image)
        distance.mean = leat__device_product(
            row, kind.sign < 0 ? batch->mean_turn : batch->mean_jump);
    return distance;
}

/* An element's source in its row. */
static LEAT__DEVICE_FUNCTION inline leat__transform_source
leat__transform_jump(leat__transform_kind kind, leat__transform_source source,
                     leat__transform_distance distance)
{
    source.pixel += distance.pixel;
    if (kind.has_image) {
        const void *mean = (const char *)source.mean + distance.mean;
        source.mean = (const float *)mean;
    }
    return source;
}

/* The mean of an element. */
static LEAT__DEVICE_FUNCTION inline float
leat__transform_mean(const leat__transform_source *source,
                     leat__transform_kind kind)
{
    float mean;
    if (!kind.has_image)
        return source->value;
    uint32_t word = leat__device_load(source->mean, 4);
    memcpy(&mean, &word, sizeof(mean));
    return mean;
}

/* An element in the top's type; what UINT8 tops have are the pixels. */
static LEAT__DEVICE_FUNCTION inline float
leat__transform_value(uint32_t pixel, float mean, float scale)
{
    return ((float)(pixel & 0xff) - mean) * scale;
}

/* A word of the top from the pixels of its elements and their means. */
static LEAT__DEVICE_FUNCTION inline uint32_t
leat__transform_word(leat_dtype type, const uint32_t pixels[],
                     const float mean[], float scale)
{
    uint32_t word;
    if (type == LEAT_UINT8)
        return pixels[0] +
               256 * (pixels[1] + 256 * (pixels[2] + 256 * pixels[3]));
    float value = leat__transform_value(pixels[0], mean[0], scale);
    if (type != LEAT_FLOAT32)
        return leat__device_halves(
            type, value, leat__transform_value(pixels[1], mean[1], scale));
    memcpy(&word, &value, sizeof(word));
    return word;
}

/*
 * A lane's words of a pass, every 32nd from that of `element` on, but for those
 * that two rows share. All loads come before all stores.
 */
static LEAT__DEVICE_FUNCTION inline void leat__transform_pass(
    const leat__transform_batch *batch, const leat__transform_strip *strip,
    leat__transform_kind kind, const leat__transform_source sources[3],
    uint32_t element, char *top)
{
    enum { MOST = 16 };
    const int pack = leat__transform_pack(kind.type);
    const int loads = leat__transform_loads(kind);
    const int is_value = !kind.has_image && kind.way != LEAT__ANY_ORDER;
    uint32_t pixels[MOST + 3];
    float mean[MOST + 3];
    int is_whole[MOST];
    LEAT__DEVICE_UNROLL
    for (int i = 0; i < loads; i += pack) {
        uint32_t at = element + (uint32_t)(i * LEAT__LANES);
        leat__transform_distance distance = {0, 0};
        is_whole[i] = at + (uint32_t)pack <= strip->length;
        if (leat__transform_jumps(kind)) {
            uint32_t row = leat__transform_row_of(batch, at);
            distance = leat__transform_distance_of(batch, kind, row);
            if (pack > 1 &&
                row * batch->minus_row + at + (uint32_t)pack > batch->row)
                is_whole[i] = 0;
        }
        if (!is_whole[i])
            continue;
        LEAT__DEVICE_UNROLL
        for (int k = i; k < i + pack; k++) {
            int n = i * LEAT__LANES + k - i;
            leat__transform_source source =
                kind.way == LEAT__ANY_ORDER
                    ? leat__transform_source_of(batch, strip, kind,
                                                element + (uint32_t)n)
                    : leat__transform_source_at(sources, kind, n);
            source = leat__transform_jump(kind, source, distance);
            pixels[k] = leat__device_load(source.pixel, 1);
            if (!is_value)
                mean[k] = leat__transform_mean(&source, kind);
        }
    }
    LEAT__DEVICE_UNROLL
    for (int i = 0; i < loads; i += pack) {
        if (!is_whole[i])
            continue;
        LEAT__DEVICE_UNROLL
        for (int k = i; k < i + pack && is_value; k++)
            mean[k] = leat__transform_source_at(sources, kind,
                                                i * LEAT__LANES + k - i)
                          .value;
        leat__device_store(top + i / pack * LEAT__LANES * 4,
                           leat__transform_word(kind.type, pixels + i, mean + i,
                                                batch->job.scale),
                           4);
    }
}

/* An element of a word that is not written as a whole. */
static LEAT__DEVICE_FUNCTION inline void
leat__transform_single(const leat__transform_batch *batch,
                       const leat__transform_strip *strip,
                       leat__transform_kind kind, uint32_t element)
{
    const int size = 4 / leat__transform_pack(kind.type);
    leat__transform_distance distance = leat__transform_distance_of(
        batch, kind, leat__transform_row_of(batch, element));
    leat__transform_source source = leat__transform_jump(
        kind, leat__transform_source_of(batch, strip, kind, element), distance);
    float mean[2] = {leat__transform_mean(&source, kind), 0};
    uint32_t pixels[4] = {leat__device_load(source.pixel, 1), 0, 0, 0};
    leat__device_store(
        strip->top + (int64_t)(int)element * size,
        leat__transform_word(kind.type, pixels, mean, batch->job.scale), size);
}

/* The words in which rows begin or end elsewhere than the word does. */
static LEAT__DEVICE_FUNCTION inline void
leat__transform_ends(const leat__transform_batch *batch,
                     const leat__transform_strip *strip,
                     leat__transform_kind kind, uint32_t lane)
{
    const uint32_t pack = (uint32_t)leat__transform_pack(kind.type);
    uint32_t place = (uint32_t)(uintptr_t)strip->top / (4 / pack);
    uint32_t rows = 1;
    uint32_t row = strip->length;
    if (leat__transform_jumps(kind) && strip->rows > 1) {
        rows = strip->rows;
        row = batch->row;
    }
    LEAT__DEVICE_LOOP
    for (uint32_t i = lane; i < (rows + 1) * pack; i += LEAT__LANES) {
        uint32_t end = i / pack * row;
        uint32_t over = (place + end) & (pack - 1);
        uint32_t element = end - over + i % pack;
        if ((over > 0 || row < pack) && element < strip->length)
            leat__transform_single(batch, strip, kind, element);
    }
}

/* Bytes that go to the top as they are, and from whole words into such. */
static LEAT__DEVICE_FUNCTION inline void
leat__transform_copy(const leat__transform_strip *strip, uint32_t element)
{
    enum { WORDS = 8 };
    uint32_t words[WORDS];
    LEAT__DEVICE_LOOP
    for (; element + 4 <= strip->length; element += 4 * LEAT__LANES * WORDS) {
        const unsigned char *from = strip->pixels + element;
        char *top = strip->top + element;
        LEAT__DEVICE_UNROLL
        for (int i = 0; i < WORDS; i++)
            if (element + (uint32_t)(i * LEAT__LANES * 4) + 4 <= strip->length)
                words[i] = leat__device_load(from + i * LEAT__LANES * 4, 4);
        LEAT__DEVICE_UNROLL
        for (int i = 0; i < WORDS; i++)
            if (element + (uint32_t)(i * LEAT__LANES * 4) + 4 <= strip->length)
                leat__device_store(top + i * LEAT__LANES * 4, words[i], 4);
    }
}

/* The lane's part of a strip. */
static LEAT__DEVICE_FUNCTION inline void
leat__transform_write(const leat__transform_batch *batch,
                      const leat__transform_strip *strip,
                      leat__transform_kind kind, uint32_t lane)
{
    const uint32_t pack = (uint32_t)leat__transform_pack(kind.type);
    const int pass = leat__transform_loads(kind) * LEAT__LANES;
    uint32_t place = (uint32_t)(uintptr_t)strip->top / (4 / pack);
    uint32_t element = ((0 - place) & (pack - 1)) + lane * pack;
    if (pack > 1)
        leat__transform_ends(batch, strip, kind, lane);
    if (kind.type == LEAT_UINT8 && kind.way == LEAT__SAME_ORDER &&
        kind.sign > 0 && ((uintptr_t)(strip->pixels + element) & 3) == 0) {
        leat__transform_copy(strip, element);
        return;
    }
    char *top = strip->top + (int64_t)(int)element * (int)(4 / pack);
    leat__transform_source sources[3];
    LEAT__DEVICE_UNROLL
    for (int i = 0; i < 3; i++)
        sources[i] = leat__transform_source_of(batch, strip, kind,
                                               element + (uint32_t)i);
    LEAT__DEVICE_LOOP
    while (element < strip->length) {
        leat__transform_pass(batch, strip, kind, sources, element, top);
        element += (uint32_t)pass;
        top += pass * (int)(4 / pack);
        LEAT__DEVICE_UNROLL
        for (int i = 0; i < 3; i++)
            sources[i] = leat__transform_source_at(&sources[i], kind, pass);
    }
}

/* Zeros, for a bad record. */
static LEAT__DEVICE_FUNCTION inline void
leat__transform_clear(const leat__transform_strip *strip, leat_dtype type,
                      uint32_t lane)
{
    const int size = 4 / leat__transform_pack(type);
    LEAT__DEVICE_LOOP
    for (uint32_t x = lane; x < strip->length; x += LEAT__LANES)
        leat__device_store(strip->top + (int64_t)(int)x * size, 0, size);
}

/* The work of one lane, by a kind the sign of which is still open. */
static LEAT__DEVICE_FUNCTION inline void
leat__transform_work(const leat__transform_batch *batch,
                     leat__transform_kind kind, int64_t image, uint32_t unit,
                     uint32_t lane)
{
    leat_device_choice choice =
        leat__device_choice_load(batch->job.choices + image);
    uint32_t rest = leat__divide(unit, &batch->by_pieces);
    uint32_t column = (unit - rest * batch->pieces) * batch->piece;
    uint32_t plane = leat__divide(rest, &batch->by_units);
    uint32_t row = (rest - plane * batch->units) * batch->unit;
    uint32_t together = 1;
    /* What one plane has loaded, the others find in the cache. */
    if (kind.way == LEAT__TO_PLANES || kind.way == LEAT__ANY_ORDER)
        together = batch->planes;
    LEAT__DEVICE_LOOP
    for (uint32_t i = 0; i < together; i++) {
        leat__transform_strip strip = leat__transform_open(
            batch, kind, image, &choice, plane + i, row, column);
        kind.sign = choice.mirror ? -1 : 1;
        if (choice.is_zero) {
            leat__transform_clear(&strip, kind.type, lane);
        } else if (kind.way == LEAT__ANY_ORDER) {
            leat__transform_write(batch, &strip, kind, lane);
        } else if (choice.mirror) {
            kind.sign = -1;
            leat__transform_write(batch, &strip, kind, lane);
        } else {
            leat__transform_kind plain = kind;
            plain.sign = 1;
            if (kind.way == LEAT__INTERLEAVED && kind.type == LEAT_UINT8)
                plain.way = LEAT__SAME_ORDER;
            leat__transform_write(batch, &strip, plain, lane);
        }
    }
}

/* All lanes one after the other, the last one first: none counts on another. */
static LEAT__DEVICE_FUNCTION inline void
leat__transform_run(const leat__transform_batch *batch)
{
    const leat__transform_kind kind = {batch->job.top_type, batch->way,
                                       batch->job.mean != NULL, 0};
    for (int64_t image = batch->job.images; image-- > 0;)
        for (uint32_t unit = batch->warps; unit-- > 0;)
            for (uint32_t lane = LEAT__LANES; lane-- > 0;)
                leat__transform_work(batch, kind, image, unit, lane);
}

#endif
