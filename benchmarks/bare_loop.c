#include "bare_loop.h"

#include <lmdb.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The compiler makes each of these loops for several kinds of vectors. */
#if defined(__x86_64__) && defined(__GNUC__) &&                                \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define WIDE                                                                   \
    __attribute__((target_clones("arch=skylake-avx512", "avx2", "default")))
#else
#define WIDE
#endif

/* Of the next image, fetched while this one is converted. */
#define FETCHED_BYTES 1024
#define LINE_BYTES 64

/* Fields of a Datum. */
enum { CHANNELS = 1, HEIGHT, WIDTH, DATA, LABEL };

struct bare_loop {
    bare_order order;
    MDB_env *env;
    MDB_txn *txn;
    MDB_cursor *cursor;
    size_t image_bytes; /* of a record */
    size_t top_bytes;
    unsigned char *ring;
    float *labels;
    int slot;
    uint64_t random;
    MDB_val next; /* the record that is converted next */
    bare_image last;
};

static const float mean_value[] = {104, 117, 123};

WIDE static void scale_pixels(float *restrict to,
                              const unsigned char *restrict from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (float)from[i] * 0.00390625f;
}

WIDE static void widen_pixels(float *restrict to,
                              const unsigned char *restrict from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (float)from[i];
}

WIDE static void subtract_mean(float *restrict to,
                               const unsigned char *restrict from, int n,
                               float mean)
{
    for (int i = 0; i < n; i++)
        to[i] = (float)from[i] - mean;
}

/* As above, the last pixel first. */
WIDE static void subtract_mean_mirrored(float *restrict to,
                                        const unsigned char *restrict from,
                                        int n, float mean)
{
    for (int i = 0; i < n; i++)
        to[i] = (float)from[n - 1 - i] - mean;
}

WIDE static void mirror_bytes(unsigned char *restrict to,
                              const unsigned char *restrict from, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = from[n - 1 - i];
}

static void crop_row(const bare_loop *loop, unsigned char *top,
                     const unsigned char *from, int channel)
{
    int n = loop->order.crop;
    float mean = mean_value[channel % 3];
    if (loop->order.job == BARE_CROP_BYTES && loop->last.is_mirrored)
        mirror_bytes(top, from, n);
    else if (loop->order.job == BARE_CROP_BYTES)
        memcpy(top, from, (size_t)n);
    else if (loop->last.is_mirrored)
        subtract_mean_mirrored((float *)(void *)top, from, n, mean);
    else
        subtract_mean((float *)(void *)top, from, n, mean);
}

/* A number in [0, n), of an xorshift generator. */
static int draw(bare_loop *loop, int n)
{
    loop->random ^= loop->random << 13;
    loop->random ^= loop->random >> 7;
    loop->random ^= loop->random << 17;
    return (int)((loop->random >> 32) * (uint64_t)n >> 32);
}

static void crop_image(bare_loop *loop, unsigned char *top)
{
    const bare_order *order = &loop->order;
    size_t crop = (size_t)order->crop, width = (size_t)order->width;
    size_t row_bytes = loop->top_bytes / crop / (size_t)order->channels;
    loop->last.row = draw(loop, order->height - order->crop + 1);
    loop->last.column = draw(loop, order->width - order->crop + 1);
    loop->last.is_mirrored = draw(loop, 2);
    const unsigned char *from = loop->last.pixels +
                                (size_t)loop->last.row * width +
                                (size_t)loop->last.column;
    for (int c = 0; c < order->channels; c++) {
        for (size_t row = 0; row < crop; row++, top += row_bytes)
            crop_row(loop, top, from + row * width, c);
        from += (size_t)order->height * width;
    }
}

static void convert(bare_loop *loop, unsigned char *top)
{
    float *floats = (float *)(void *)top;
    if (loop->order.job == BARE_SCALED)
        scale_pixels(floats, loop->last.pixels, loop->image_bytes);
    else if (loop->order.job == BARE_FLOATS)
        widen_pixels(floats, loop->last.pixels, loop->image_bytes);
    else
        crop_image(loop, top);
}

/* A varint at *at, which moves on; UINT64_MAX where the bytes end. */
static uint64_t take_varint(const unsigned char **at, const unsigned char *end)
{
    uint64_t value = 0;
    for (int shift = 0; *at < end && shift < 63; shift += 7) {
        unsigned byte = *(*at)++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
    return UINT64_MAX;
}

/* Finds pixels and label in a Datum that has nothing else but its shape. */
static int take_datum(bare_loop *loop, const MDB_val *record)
{
    const unsigned char *at = record->mv_data;
    const unsigned char *end = at + record->mv_size;
    loop->last.pixels = NULL;
    loop->last.label = 0;
    while (at < end) {
        unsigned tag = *at++;
        uint64_t value = take_varint(&at, end);
        if (tag == (DATA << 3 | 2) && value == loop->image_bytes &&
            value <= (size_t)(end - at)) {
            loop->last.pixels = at;
            at += value;
        } else if (tag == LABEL << 3) {
            loop->last.label = (int)value;
        } else if (tag > WIDTH << 3 || (tag & 7) != 0) {
            return 1;
        }
    }
    return !loop->last.pixels;
}

static int fail(const bare_loop *loop, int code)
{
    fprintf(stderr, "%s: %s\n", loop->order.path, mdb_strerror(code));
    return 1;
}

/* Moves on to the next record, and fetches the beginning of it. */
static int step(bare_loop *loop)
{
    MDB_val key;
    int code = mdb_cursor_get(loop->cursor, &key, &loop->next, MDB_NEXT);
    if (code == MDB_NOTFOUND)
        code = mdb_cursor_get(loop->cursor, &key, &loop->next, MDB_FIRST);
    if (code)
        return fail(loop, code);
    size_t n = loop->next.mv_size;
    for (size_t i = 0; i < n && i < FETCHED_BYTES; i += LINE_BYTES)
        __builtin_prefetch((const char *)loop->next.mv_data + i);
    return 0;
}

int bare_loop_run(bare_loop *loop, int n)
{
    for (int i = 0; i < n; i++) {
        MDB_val record = loop->next;
        if (step(loop))
            return 1;
        if (take_datum(loop, &record)) {
            fprintf(stderr, "%s: a record of another shape\n",
                    loop->order.path);
            return 1;
        }
        unsigned char *top = loop->ring + (size_t)loop->slot * loop->top_bytes;
        convert(loop, top);
        loop->labels[loop->slot] = (float)loop->last.label;
        loop->last.top = top;
        loop->slot = (loop->slot + 1) % loop->order.slots;
    }
    return 0;
}

bare_image bare_loop_last(const bare_loop *loop)
{
    return loop->last;
}

static int open_database(bare_loop *loop)
{
    MDB_dbi database;
    int code = mdb_env_create(&loop->env);
    if (!code)
        code = mdb_env_open(loop->env, loop->order.path,
                            MDB_RDONLY | MDB_NOTLS | MDB_NOLOCK, 0);
    if (!code)
        code = mdb_txn_begin(loop->env, NULL, MDB_RDONLY, &loop->txn);
    if (!code)
        code = mdb_dbi_open(loop->txn, NULL, 0, &database);
    if (!code)
        code = mdb_cursor_open(loop->txn, database, &loop->cursor);
    return code ? fail(loop, code) : 0;
}

static int go_to_start(bare_loop *loop, int i, int n)
{
    MDB_stat stat;
    int code = mdb_stat(loop->txn, mdb_cursor_dbi(loop->cursor), &stat);
    if (code)
        return fail(loop, code);
    size_t steps = stat.ms_entries * (size_t)i / (size_t)n + 1;
    for (size_t k = 0; k < steps; k++)
        if (step(loop))
            return 1;
    return 0;
}

/* All of the ring is touched before it is measured. */
static int take_ring(bare_loop *loop)
{
    const bare_order *order = &loop->order;
    size_t planes = (size_t)order->channels;
    int is_crop = order->job == BARE_CROP || order->job == BARE_CROP_BYTES;
    size_t slots = (size_t)order->slots;
    loop->image_bytes = planes * (size_t)order->height * (size_t)order->width;
    loop->top_bytes = is_crop
                          ? planes * (size_t)order->crop * (size_t)order->crop
                          : loop->image_bytes;
    if (order->job != BARE_CROP_BYTES)
        loop->top_bytes *= sizeof(float);
    size_t bytes = (slots * loop->top_bytes + 63) / 64 * 64;
    loop->ring = aligned_alloc(64, bytes);
    loop->labels = calloc(slots, sizeof(float));
    if (!loop->ring || !loop->labels) {
        fprintf(stderr, "out of memory\n");
        return 1;
    }
    memset(loop->ring, 1, bytes);
    return 0;
}

bare_loop *bare_loop_open(const bare_order *order, int i, int n)
{
    bare_loop *loop = calloc(1, sizeof(*loop));
    if (!loop) {
        fprintf(stderr, "out of memory\n");
        return NULL;
    }
    loop->order = *order;
    loop->random = 0x9e3779b97f4a7c15u + (uint64_t)i;
    if (take_ring(loop) || open_database(loop) || go_to_start(loop, i, n)) {
        bare_loop_close(loop);
        return NULL;
    }
    return loop;
}

void bare_loop_close(bare_loop *loop)
{
    if (loop->cursor)
        mdb_cursor_close(loop->cursor);
    if (loop->txn)
        mdb_txn_abort(loop->txn);
    if (loop->env)
        mdb_env_close(loop->env);
    free(loop->ring);
    free(loop->labels);
    free(loop);
}
