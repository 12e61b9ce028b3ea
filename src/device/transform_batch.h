/*
 * transform_batch.h: a whole batch of uint8 crops on its way to the top, as a
 * device does it: a warp of 32 lanes takes a few rows of an image, whose strips
 * transform_lane.h writes. Shared with device kernels as transform_job.h is.
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

/*
 * 1 or 4 bytes from a multiple of their size, the first one lowest; any word if
 * they are not there.
 */
static inline uint32_t leat__device_load(const void *from, int bytes,
                                         int is_there)
{
    uint32_t word = 0;
    assert(!is_there || (uintptr_t)from % (uintptr_t)bytes == 0);
    if (is_there)
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

/*
 * `bytes` from `from` on, 15 less than LEAT__NEAR or, where pixels are spread
 * to planes, LEAT__NEAR_SPREAD at most, in memory near the warp, all lanes of
 * which take part; what lies before `first` or from `last` on is not read. Here
 * they stay where they are.
 */
static inline const unsigned char *
leat__device_fetch(const unsigned char *from, uint32_t bytes,
                   const unsigned char *first, const unsigned char *last,
                   uint32_t lane, int spreads)
{
    assert(from >= first && from + bytes <= last);
    (void)bytes;
    (void)first;
    (void)last;
    (void)lane;
    (void)spreads;
    return from;
}

/* A byte from there; any if it is not there. */
static inline uint32_t leat__device_near_byte(const void *from, int is_there)
{
    return leat__device_load(from, 1, is_there);
}

/* Four bytes from there, from a multiple of four. */
static inline uint32_t leat__device_near_word(const void *from)
{
    return leat__device_load(from, 4, 1);
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
    /* Bytes of pixels that a warp has near it. Fewer have too few loads in
       flight, more leave too little of the cache that they share for means. */
    LEAT__NEAR = 1920,
    LEAT__NEAR_SPREAD = 2304, /* and three rows of 227 pixels */
    /* Of a unit whose pixels it reads from where they are: */
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

/* Whether a warp has the pixels of its unit near it before it reads them. */
static LEAT__DEVICE_FUNCTION inline int
leat__transform_is_near(leat__transform_way way)
{
    return way == LEAT__SAME_ORDER || way == LEAT__TO_PLANES ||
           way == LEAT__INTERLEAVED;
}

/* Into units of so many rows, or pieces of so many columns. */
static inline void leat__transform_divide(leat__transform_batch *batch,
                                          uint32_t rows, uint32_t columns)
{
    uint32_t width = (uint32_t)batch->job.width;
    batch->unit = rows;
    batch->units = leat__divide_up(batch->rows, batch->unit);
    batch->piece = columns;
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
    /* As leat__transform_is_near, which is the device's. */
    if (batch->way != LEAT__FROM_PLANES && batch->way != LEAT__ANY_ORDER) {
        uint32_t most = batch->way == LEAT__TO_PLANES ? LEAT__NEAR_SPREAD - 15
                                                      : LEAT__NEAR - 15;
        uint32_t columns = most / (uint32_t)step;
        uint32_t rows = columns / width;
        leat__transform_divide(batch, rows > 0 ? rows : 1, columns);
        return;
    }
    uint32_t size = job->top_type == LEAT_FLOAT32 ? 4
                    : job->top_type == LEAT_UINT8 ? 1
                                                  : 2;
    leat__transform_divide(batch,
                           leat__divide_up(LEAT__UNIT / (1 + size), batch->row),
                           leat__divide_up(LEAT__PIECE, batch->channels));
}

/* The same for the batch that is the `k`th after the first. */
static LEAT__DEVICE_FUNCTION inline leat__transform_batch
leat__transform_batch_at(const leat__transform_batch *first, uint32_t k)
{
    leat__transform_batch batch = *first;
    leat_device_transform *job = &batch.job;
    size_t bytes = k * job->stride;
    const void *choices = (const char *)job->choices + bytes;
    job->pixels += bytes;
    job->choices = (const leat_device_choice *)choices;
    job->top = (char *)job->top + k * job->top_stride;
    return batch;
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

/* How many rows of the strip are before that of an element, the number of which
   is given twofold. */
static LEAT__DEVICE_FUNCTION inline uint32_t
leat__transform_row_of(const leat__transform_batch *batch, uint32_t twice)
{
    return (uint32_t)(leat__device_product(twice, batch->reciprocal) >> 32);
}

/* Columns of a row at which a word begins that is no other row's too. */
static LEAT__DEVICE_FUNCTION inline uint32_t
leat__transform_whole_columns(const leat__transform_batch *batch,
                              leat_dtype type)
{
    uint32_t pack = (uint32_t)leat__transform_pack(type);
    return batch->row < pack ? 0 : batch->row - pack + 1;
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

#endif
