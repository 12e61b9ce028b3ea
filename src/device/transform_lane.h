/*
 * transform_lane.h: the work of a lane in the transform of a batch: one
 * function of batch, image, unit and lane, index arithmetic included. No lane
 * needs another. Shared with device kernels as transform_job.h is.
 *
 * DESIGN. A row of the top is contiguous, so a warp writes it in words of 4
 * bytes, one float or two halves or four bytes, 32 neighbours at once, which
 * are a whole line of the cache: lines that two stores share took an H200 a
 * third of its rate. The few elements before the first whole word of a row and
 * after its last are written one by one. A warp first brings the pixels of its
 * unit near it, 16 bytes a lane at once, since few loads of single bytes are
 * ever in flight. From there they are read byte by byte: where
 * the next element's pixel lies depends on the layouts and on mirroring alone,
 * as a step that is known when compiling. So the loads of a lane, of which 8
 * are in flight, differ by constants, and no word is divided between two rows.
 *
 * Where tops interleave three channels, every third element has the same
 * channel: three addresses and three means serve a whole pass. Rows of other
 * numbers of channels that change their order divide for every element.
 */
#ifndef LEAT_DEVICE_TRANSFORM_LANE_H
#define LEAT_DEVICE_TRANSFORM_LANE_H

#include "device/transform_batch.h"

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

/* The pixel of an element, if that is there. */
static LEAT__DEVICE_FUNCTION inline uint32_t
leat__transform_pixel(const leat__transform_source *source,
                      leat__transform_kind kind, int is_there)
{
    return leat__transform_is_near(kind.way)
               ? leat__device_near_byte(source->pixel, is_there)
               : leat__device_load(source->pixel, 1, is_there);
}

/* Its mean, likewise. */
static LEAT__DEVICE_FUNCTION inline float
leat__transform_mean(const leat__transform_source *source,
                     leat__transform_kind kind, int is_there)
{
    float mean;
    if (!kind.has_image)
        return source->value;
    uint32_t word = leat__device_load(source->mean, 4, is_there);
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
 * A lane's words of a pass, every 32nd from that of `element` on, as far as
 * they begin in the strip and before `end`, but for those that two rows share.
 * All loads come before all stores. Nothing is skipped but loads and stores: a
 * branch for each word takes more than what it saves.
 */
static LEAT__DEVICE_FUNCTION inline void leat__transform_pass(
    const leat__transform_batch *batch, const leat__transform_strip *strip,
    leat__transform_kind kind, const leat__transform_source sources[3],
    uint32_t element, uint32_t end, char *top)
{
    enum { MOST = 16 };
    const int pack = leat__transform_pack(kind.type);
    const int loads = leat__transform_loads(kind);
    const int is_value = !kind.has_image && kind.way != LEAT__ANY_ORDER;
    const uint32_t last = leat__transform_whole_columns(batch, kind.type);
    uint32_t pixels[MOST + 3];
    float mean[MOST + 3];
    int is_whole[MOST];
    LEAT__DEVICE_UNROLL
    for (int i = 0; i < loads; i += pack) {
        uint32_t twice = 2 * element + (uint32_t)(2 * i * LEAT__LANES);
        leat__transform_distance distance = {0, 0};
        is_whole[i] = twice < 2 * end;
        if (leat__transform_jumps(kind)) {
            uint32_t row = leat__transform_row_of(batch, twice);
            distance = leat__transform_distance_of(batch, kind, row);
            if (pack > 1)
                is_whole[i] &= row * (2 * batch->minus_row) + twice < 2 * last;
        }
        LEAT__DEVICE_UNROLL
        for (int k = i; k < i + pack; k++) {
            int n = i * LEAT__LANES + k - i;
            leat__transform_source source =
                kind.way == LEAT__ANY_ORDER
                    ? leat__transform_source_of(batch, strip, kind,
                                                element + (uint32_t)n)
                    : leat__transform_source_at(sources, kind, n);
            source = leat__transform_jump(kind, source, distance);
            pixels[k] = leat__transform_pixel(&source, kind, is_whole[i]);
            if (!is_value)
                mean[k] = leat__transform_mean(&source, kind, is_whole[i]);
        }
    }
    LEAT__DEVICE_UNROLL
    for (int i = 0; i < loads; i += pack) {
        LEAT__DEVICE_UNROLL
        for (int k = i; k < i + pack && is_value; k++)
            mean[k] = leat__transform_source_at(sources, kind,
                                                i * LEAT__LANES + k - i)
                          .value;
        uint32_t word = leat__transform_word(kind.type, pixels + i, mean + i,
                                             batch->job.scale);
        if (is_whole[i])
            leat__device_store(top + i / pack * LEAT__LANES * 4, word, 4);
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
        batch, kind, leat__transform_row_of(batch, 2 * element));
    leat__transform_source source = leat__transform_jump(
        kind, leat__transform_source_of(batch, strip, kind, element), distance);
    float mean[2] = {leat__transform_mean(&source, kind, 1), 0};
    uint32_t pixels[4] = {leat__transform_pixel(&source, kind, 1), 0, 0, 0};
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

/* Bytes that go to the top as they are, and from whole words into such; those
   that begin before `end`. */
static LEAT__DEVICE_FUNCTION inline void
leat__transform_copy(const leat__transform_strip *strip, uint32_t element,
                     uint32_t end)
{
    enum { WORDS = 8 };
    uint32_t words[WORDS];
    LEAT__DEVICE_LOOP
    for (; (int)element < (int)end; element += 4 * LEAT__LANES * WORDS) {
        const unsigned char *from = strip->pixels + (int64_t)(int)element;
        char *top = strip->top + (int64_t)(int)element;
        LEAT__DEVICE_UNROLL
        for (int i = 0; i < WORDS; i++)
            if (element + (uint32_t)(i * LEAT__LANES * 4) < end)
                words[i] = leat__device_near_word(from + i * LEAT__LANES * 4);
        LEAT__DEVICE_UNROLL
        for (int i = 0; i < WORDS; i++)
            if (element + (uint32_t)(i * LEAT__LANES * 4) < end)
                leat__device_store(top + i * LEAT__LANES * 4, words[i], 4);
    }
}

/*
 * The lane's part of a strip. The words that a warp stores at once are a line
 * of the cache, so that `element` is below 0 in lanes before the strip's first
 * word. Where channels are divided, sources are found ahead of it.
 */
static LEAT__DEVICE_FUNCTION inline void
leat__transform_write(const leat__transform_batch *batch,
                      const leat__transform_strip *strip,
                      leat__transform_kind kind, uint32_t lane)
{
    const int is_mixed =
        kind.way == LEAT__INTERLEAVED || kind.way == LEAT__FROM_PLANES;
    const int ahead = is_mixed ? 3 * 4 * LEAT__LANES : 0;
    const uint32_t pack = (uint32_t)leat__transform_pack(kind.type);
    const int pass = leat__transform_loads(kind) * LEAT__LANES;
    uint32_t place = (uint32_t)(uintptr_t)strip->top / (4 / pack);
    uint32_t line = (place + pack - 1) / pack % LEAT__LANES;
    uint32_t element = ((0 - place) & (pack - 1)) + (lane - line) * pack;
    uint32_t end = strip->length < pack ? 0 : strip->length - pack + 1;
    if (pack > 1)
        leat__transform_ends(batch, strip, kind, lane);
    if (kind.type == LEAT_UINT8 && kind.way == LEAT__SAME_ORDER &&
        kind.sign > 0 && ((uintptr_t)(strip->pixels + element) & 3) == 0) {
        leat__transform_copy(strip, element, end);
        return;
    }
    char *top = strip->top + (int64_t)(int)element * (int)(4 / pack);
    leat__transform_source sources[3];
    LEAT__DEVICE_UNROLL
    for (int i = 0; i < 3; i++)
        sources[i] = leat__transform_source_of(batch, strip, kind,
                                               element + (uint32_t)(ahead + i));
    LEAT__DEVICE_UNROLL
    for (int i = 0; i < 3; i++)
        sources[i] = leat__transform_source_at(&sources[i], kind, -ahead);
    LEAT__DEVICE_LOOP
    while ((int)element < (int)strip->length) {
        leat__transform_pass(batch, strip, kind, sources, element, end, top);
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

/* Pixels of a unit from `from` on, and where the warp reads them. */
typedef struct leat__transform_near {
    const unsigned char *from;
    const unsigned char *pixels;
} leat__transform_near;

static LEAT__DEVICE_FUNCTION inline leat__transform_near
leat__transform_fetch(const leat__transform_batch *batch,
                      leat__transform_kind kind, int64_t image,
                      const leat_device_choice *choice, uint32_t plane,
                      uint32_t row, uint32_t column, uint32_t lane)
{
    const leat_device_transform *job = &batch->job;
    leat__transform_strip strip =
        leat__transform_open(batch, kind, image, choice, plane, row, column);
    uint32_t step = (uint32_t)leat__transform_step(batch, kind.way);
    uint32_t width = (uint32_t)job->width;
    uint32_t columns =
        batch->piece < width - column ? batch->piece : width - column;
    uint32_t bytes = ((strip.rows - 1) * width + columns) * step;
    leat__transform_near near = {strip.pixels, NULL};
    if (choice->mirror)
        near.from -= (columns - 1) * step;
    near.pixels =
        leat__device_fetch(near.from, bytes, job->pixels,
                           job->pixels + job->images * (int64_t)batch->count,
                           lane, kind.way == LEAT__TO_PLANES);
    return near;
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
    if (kind.way == LEAT__TO_PLANES || kind.way == LEAT__ANY_ORDER)
        together = batch->planes;
    leat__transform_near near = {NULL, NULL};
    if (leat__transform_is_near(kind.way))
        near = leat__transform_fetch(batch, kind, image, &choice, plane, row,
                                     column, lane);
    LEAT__DEVICE_LOOP
    for (uint32_t i = 0; i < together; i++) {
        leat__transform_strip strip = leat__transform_open(
            batch, kind, image, &choice, plane + i, row, column);
        if (leat__transform_is_near(kind.way))
            strip.pixels = near.pixels + (int)(strip.pixels - near.from);
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
    for (uint32_t k = (uint32_t)batch->job.further + 1; k-- > 0;) {
        leat__transform_batch one = leat__transform_batch_at(batch, k);
        for (int64_t image = one.job.images; image-- > 0;)
            for (uint32_t unit = one.warps; unit-- > 0;)
                for (uint32_t lane = LEAT__LANES; lane-- > 0;)
                    leat__transform_work(&one, kind, image, unit, lane);
    }
}

#endif
