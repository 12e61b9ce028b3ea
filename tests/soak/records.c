#include "records.h"
#include "dice.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static void *take(size_t bytes)
{
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory)
        abort();
    return memory;
}

size_t record_elements(const record *record)
{
    return (size_t)record->channels * (size_t)record->height *
           (size_t)record->width;
}

static size_t put_big_endian(unsigned char *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (unsigned char)(value >> (24 - 8 * i));
    return 4;
}

static size_t put_chunk(unsigned char *to, const char *name, const void *data,
                        size_t bytes)
{
    size_t n = put_big_endian(to, (uint32_t)bytes);
    memcpy(to + n, name, 4);
    memcpy(to + n + 4, data, bytes);
    uLong sum = crc32(0, to + n, (uInt)bytes + 4);
    n += bytes + 4;
    return n + put_big_endian(to + n, (uint32_t)sum);
}

/* Rows of interleaved pixels; in colour red comes first there, last here. */
static size_t put_rows(unsigned char *to, const record *record)
{
    size_t n = 0;
    for (int y = 0; y < record->height; y++) {
        to[n++] = 0;
        for (int x = 0; x < record->width; x++)
            for (int c = record->channels - 1; c >= 0; c--)
                to[n++] =
                    record
                        ->pixels[(c * record->height + y) * record->width + x];
    }
    return n;
}

/* The pixels as a PNG of 8 bits, grey or in colour. */
static void store_png(record *record)
{
    unsigned char rows[PIXELS_MAX + SIDE_MAX];
    unsigned char packed[2 * PIXELS_MAX + 256];
    unsigned char header[13] = {0};
    uLongf size = sizeof(packed);
    size_t bytes = put_rows(rows, record);
    if (compress(packed, &size, rows, bytes) != Z_OK)
        abort();
    size_t n = put_big_endian(header, (uint32_t)record->width);
    n += put_big_endian(header + n, (uint32_t)record->height);
    header[n++] = 8;
    header[n] = record->channels == 3 ? 2 : 0;
    unsigned char *file = take(size + 128);
    memcpy(file, "\x89PNG\r\n\x1a\n", 8);
    size_t at = 8 + put_chunk(file + 8, "IHDR", header, sizeof(header));
    at += put_chunk(file + at, "IDAT", packed, size);
    size_t whole = at + put_chunk(file + at, "IEND", "", 0);
    record->file = file;
    /* Cut within its pixels, or within what says how many there are. */
    record->file_size = !record->is_bad ? whole
                        : once_in(2)    ? at - 4 - size / 2
                                        : 20;
}

/* As libpng does it for OpenCV: shares of 32768, the rest cut off. */
static unsigned char grey(unsigned char blue, unsigned char green,
                          unsigned char red)
{
    if (red == green && red == blue)
        return red;
    return (unsigned char)((9797 * red + 19234 * green + 3737 * blue) >> 15);
}

/* What decoding will make of the pixels. */
static void force_channels(record *record, force force)
{
    size_t n = (size_t)record->height * (size_t)record->width;
    unsigned char *from = record->pixels;
    int channels = force == FORCE_COLOR ? 3 : 1;
    if (force == FORCE_NONE || channels == record->channels)
        return;
    unsigned char *pixels = take(n * (size_t)channels);
    for (size_t i = 0; i < n; i++) {
        if (channels == 1)
            pixels[i] = grey(from[i], from[n + i], from[2 * n + i]);
        for (size_t c = 0; channels == 3 && c < 3; c++)
            pixels[c * n + i] = from[i];
    }
    free(from);
    record->pixels = pixels;
    record->channels = channels;
}

static void fill(record *record, storage storage)
{
    size_t n = record_elements(record);
    if (storage == STORED_FLOATS)
        record->values = take(n * sizeof(float));
    else
        record->pixels = take(n);
    for (size_t k = 0; k < n; k++) {
        if (storage == STORED_FLOATS)
            record->values[k] = (float)(int32_t)dice() * 1e-5f;
        else
            record->pixels[k] = (unsigned char)dice();
    }
}

record *records_make(const records_options *options)
{
    int is_png = options->storage == STORED_PNG;
    int channels = is_png ? 1 + 2 * below(2) : between(1, CHANNELS_MAX);
    int height = between(1, SIDE_MAX - 4);
    int width = between(1, SIDE_MAX - 4);
    record *records = calloc((size_t)options->count, sizeof(*records));
    if (!records)
        abort();
    for (int64_t i = 0; i < options->count; i++) {
        record *record = &records[i];
        record->number = i;
        record->channels = channels;
        if (is_png && options->force != FORCE_NONE)
            record->channels = 1 + 2 * below(2);
        record->height = height + (options->varies && i > 0 ? below(4) : 0);
        record->width = width + (options->varies && i > 0 ? below(4) : 0);
        record->is_bad = options->bad_in && once_in(options->bad_in);
        record->is_unreadable = record->is_bad && (!is_png || once_in(3));
        record->label = once_in(5) ? (int32_t)dice() : below(1000);
        record->more[0] = (int32_t)dice();
        record->more[1] = below(256);
        fill(record, options->storage);
        if (is_png)
            store_png(record);
        if (is_png)
            force_channels(record, options->force);
    }
    return records;
}

void records_free(record *records, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        free(records[i].pixels);
        free(records[i].values);
        free(records[i].file);
    }
    free(records);
}

static size_t put_varint(unsigned char *to, uint64_t value)
{
    size_t n = 0;
    for (; value >= 128; value >>= 7)
        to[n++] = (unsigned char)(value | 128);
    to[n++] = (unsigned char)value;
    return n;
}

static size_t put_field(unsigned char *to, int field, uint64_t value)
{
    size_t n = put_varint(to, (uint64_t)field << 3);
    return n + put_varint(to + n, value);
}

static size_t put_bytes(unsigned char *to, int field, const void *bytes,
                        size_t size)
{
    size_t n = put_varint(to, (uint64_t)field << 3 | 2);
    n += put_varint(to + n, size);
    memcpy(to + n, bytes, size);
    return n + size;
}

/* As protobuf would write it. */
size_t record_encode(const record *record, unsigned char *to)
{
    size_t count = record_elements(record);
    size_t n = 0;
    if (!record->file) {
        n += put_field(to, 1, (uint64_t)record->channels);
        n += put_field(to + n, 2, (uint64_t)record->height);
        n += put_field(to + n, 3, (uint64_t)record->width);
    }
    if (record->values)
        n += put_bytes(to + n, 6, record->values, count * sizeof(float));
    else if (record->file)
        n += put_bytes(to + n, 4, record->file, record->file_size);
    else
        n += put_bytes(to + n, 4, record->pixels, count);
    if (record->file)
        n += put_field(to + n, 7, 1);
    if (record->is_unreadable)
        return n - 1;
    return n + put_field(to + n, 5, (uint64_t)(int64_t)record->label);
}
