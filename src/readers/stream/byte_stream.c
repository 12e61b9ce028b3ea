#include "readers/stream/byte_stream.h"
#include "base/error.h"
#include "base/memory.h"
#include "readers/stream/inflater.h"

#include <limits.h>
#include <string.h>

/* The window at first; more than one read of a pipe gives. */
#define WINDOW_MIN ((size_t)128 << 10)

/* Fills in a row for which an eighth of a larger window would do, after which
 * it is made small again: not so soon that records of mixed sizes resize it. */
#define SMALL_FILLS 16

/* From here on bytes are read to their place, without the window. */
#define DIRECT_MIN ((size_t)16 << 10)

/* Room that a window at its limit has for bytes after those asked for. */
#define AHEAD ((size_t)64 << 10)

/* Room after the window. A pipe of packets (O_DIRECT) loses what a read has no
 * room for. */
#define PACKET ((size_t)PIPE_BUF)

void leat__byte_stream_init(leat__byte_stream *stream, size_t limit,
                            leat_reader *reader)
{
    memset(stream, 0, sizeof(*stream));
    stream->limit =
        limit > SIZE_MAX - AHEAD - PACKET ? SIZE_MAX - PACKET : limit + AHEAD;
    stream->ended = true;
    atomic_init(&stream->memory, 0);
    leat__byte_source_init(&stream->source, reader);
}

void leat__byte_stream_finish(leat__byte_stream *stream)
{
    leat__byte_source_finish(&stream->source);
    leat__inflater_destroy(stream->inflater);
    leat__free_pages(stream->window, stream->capacity + PACKET);
}

static void count_memory(leat__byte_stream *stream)
{
    size_t bytes = stream->capacity ? stream->capacity + PACKET : 0;
    if (stream->inflater)
        bytes += leat__inflater_memory();
    atomic_store_explicit(&stream->memory, bytes, memory_order_relaxed);
}

/* A file that has ended needs no room for its longest record. */
static void empty_window(leat__byte_stream *stream)
{
    if (stream->capacity > WINDOW_MIN) {
        unsigned char *window = leat__resize_pages(
            stream->window, stream->capacity + PACKET, WINDOW_MIN + PACKET);
        if (window) {
            stream->window = window;
            stream->capacity = WINDOW_MIN;
            stream->small_fills = 0;
            count_memory(stream);
        }
    }
    stream->next = stream->window;
    stream->left = 0;
}

void leat__byte_stream_close(leat__byte_stream *stream)
{
    leat__byte_source_close(&stream->source);
    if (stream->filter)
        stream->filter->close(stream->filter);
    empty_window(stream);
    stream->ended = true;
}

static int begin_inflater(leat__byte_stream *stream)
{
    if (!stream->inflater) {
        int status = leat__inflater_create(&stream->inflater);
        if (status)
            return status;
        count_memory(stream);
    }
    leat__inflater_begin(stream->inflater);
    return LEAT_OK;
}

static int open_source(leat__byte_stream *stream, const char *path,
                       leat__compression compression)
{
    leat__byte_filter *filter = stream->filter;
    int status = LEAT_OK;
    if (filter)
        return filter->open(filter, path, compression, stream->source.reader);
    if (compression != LEAT__COMPRESSION_NONE)
        status = begin_inflater(stream);
    if (status)
        return leat__error_context(status, "%s", path);
    return leat__byte_source_open(&stream->source, path);
}

int leat__byte_stream_open(leat__byte_stream *stream, const char *path,
                           leat__compression compression)
{
    leat__byte_stream_close(stream);
    int status = open_source(stream, path, compression);
    if (status)
        return status;
    stream->source.path = path;
    stream->offset = 0;
    stream->ended = false;
    stream->compression = compression;
    stream->knows_compression = compression != LEAT__COMPRESSION_AUTO;
    if (compression != LEAT__COMPRESSION_NONE && !stream->filter)
        leat__inflater_set_format(stream->inflater,
                                  compression == LEAT__COMPRESSION_ZLIB);
    return LEAT_OK;
}

leat__file_version leat__byte_stream_version(const leat__byte_stream *stream)
{
    return stream->filter ? stream->filter->version(stream->filter)
                          : stream->source.version;
}

int leat__byte_stream_probe(const char *path, leat__compression compression,
                            bool *is_plain)
{
    unsigned char magic[LEAT__GZIP_MAGIC];
    leat__byte_source source;
    leat__file_version version;
    size_t got = 0, more = 1;
    int status = leat__byte_source_check(path, &version);
    *is_plain = version.size >= 0 && compression <= LEAT__COMPRESSION_NONE;
    if (status || !*is_plain || compression == LEAT__COMPRESSION_NONE)
        return status;
    leat__byte_source_init(&source, NULL);
    status = leat__byte_source_open(&source, path);
    /* A file system may give fewer bytes than there are. */
    while (!status && more && got < sizeof(magic)) {
        status = leat__byte_source_read(&source, magic + got,
                                        sizeof(magic) - got, &more);
        got += more;
    }
    leat__byte_source_finish(&source);
    *is_plain = !leat__inflater_is_gzip(magic, got);
    return status;
}

static int find_compression(leat__byte_stream *stream)
{
    bool is_gzip;
    int status =
        leat__inflater_probe(stream->inflater, &stream->source, &is_gzip);
    if (status)
        return status;
    stream->compression =
        is_gzip ? LEAT__COMPRESSION_GZIP : LEAT__COMPRESSION_AUTO;
    stream->knows_compression = true;
    return LEAT_OK;
}

/*
 * The next bytes, which begin at `offset`. What is still AUTO is not
 * compressed, but its beginning is in the inflater.
 */
static int read_on(leat__byte_stream *stream, int64_t offset, void *out,
                   size_t n, size_t *got)
{
    if (stream->filter)
        return stream->filter->read(stream->filter, out, n, got);
    int status = stream->knows_compression ? LEAT_OK : find_compression(stream);
    if (status)
        return status;
    if (stream->compression == LEAT__COMPRESSION_GZIP ||
        stream->compression == LEAT__COMPRESSION_ZLIB)
        return leat__inflater_read(stream->inflater, &stream->source, offset,
                                   out, n, got);
    if (stream->compression == LEAT__COMPRESSION_AUTO) {
        leat__inflater_drain(stream->inflater, out, n, got);
        if (*got > 0)
            return LEAT_OK;
        stream->compression = LEAT__COMPRESSION_NONE;
    }
    return leat__byte_source_read(&stream->source, out, n, got);
}

/* Only what is left moves to the front. */
static void move_to_front(leat__byte_stream *stream)
{
    if (stream->left > 0 && stream->next != stream->window)
        memmove(stream->window, stream->next, stream->left);
    stream->next = stream->window;
}

/*
 * The window's size for `want` bytes, more than are left: doubled until they
 * fit, and some time after a long record small again.
 */
static size_t size_for(leat__byte_stream *stream, size_t want)
{
    size_t size = stream->capacity;
    bool is_large = size > WINDOW_MIN && want <= size / 8;
    stream->small_fills = is_large ? stream->small_fills + 1 : 0;
    if (size == 0 || stream->small_fills == SMALL_FILLS)
        size = stream->limit < WINDOW_MIN ? stream->limit : WINDOW_MIN;
    while (size < want)
        size = size < stream->limit / 2 ? size * 2 : stream->limit;
    return size;
}

/* What is left is at the window's front. */
static int resize(leat__byte_stream *stream, size_t want)
{
    size_t size = size_for(stream, want);
    if (size == stream->capacity)
        return LEAT_OK;
    unsigned char *window = leat__resize_pages(
        stream->window, stream->capacity + PACKET, size + PACKET);
    if (!window && size < stream->capacity)
        return LEAT_OK;
    if (!window)
        return leat__error_context(LEAT_ENOMEM, "%s: byte %lld",
                                   stream->source.path,
                                   (long long)stream->offset);
    stream->window = window;
    stream->next = window;
    stream->capacity = size;
    count_memory(stream);
    return LEAT_OK;
}

int leat__byte_stream_fill(leat__byte_stream *stream, size_t want)
{
    if (want > stream->limit)
        return leat_error(LEAT_ELIMIT,
                          "%s: byte %lld: %zu bytes are more than the window "
                          "of %zu may have",
                          stream->source.path, (long long)stream->offset, want,
                          stream->limit);
    int status = LEAT_OK;
    /* No more than that ahead, whatever room a long record has left. */
    size_t room = want + WINDOW_MIN;
    if (!stream->ended) {
        move_to_front(stream);
        status = resize(stream, want);
    }
    if (room > stream->capacity)
        room = stream->capacity;
    while (!status && stream->left < want && !stream->ended) {
        size_t got = 0;
        status = read_on(stream, stream->offset + (int64_t)stream->left,
                         stream->window + stream->left,
                         room + PACKET - stream->left, &got);
        stream->left += got;
        stream->ended = !status && got == 0;
    }
    return status;
}

int leat__byte_stream_read(leat__byte_stream *stream, void *out, size_t n,
                           size_t *got)
{
    int status = LEAT_OK;
    *got = 0;
    while (!status && *got < n) {
        size_t left = n - *got, more = 0;
        unsigned char *to = (unsigned char *)out + *got;
        if (stream->left == 0 && left >= DIRECT_MIN && !stream->ended) {
            status = read_on(stream, stream->offset, to, left, &more);
            stream->offset += (int64_t)more;
            stream->ended = !status && more == 0;
        } else {
            status = leat__byte_stream_need(stream, 1);
            more = left < stream->left ? left : stream->left;
            if (more > 0) {
                memcpy(to, stream->next, more);
                leat__byte_stream_consume(stream, more);
            }
        }
        *got += more;
        if (more == 0 && stream->ended)
            break;
    }
    return status;
}

/* Without reading, where the file stands at the end of the window. */
static int skip_source(leat__byte_stream *stream, int64_t n, int64_t *skipped)
{
    int64_t more = 0;
    if (stream->compression != LEAT__COMPRESSION_NONE || stream->filter ||
        stream->ended)
        return LEAT_OK;
    int status = leat__byte_source_skip(&stream->source, n, &more);
    stream->offset += more;
    *skipped += more;
    return status;
}

int leat__byte_stream_skip(leat__byte_stream *stream, int64_t n,
                           int64_t *skipped)
{
    int status = LEAT_OK;
    *skipped = 0;
    while (!status && *skipped < n) {
        int64_t left = n - *skipped;
        if (stream->left == 0)
            status = skip_source(stream, left, skipped);
        left = n - *skipped;
        if (status || left == 0)
            break;
        status = leat__byte_stream_need(stream, 1);
        size_t more =
            (uint64_t)left < stream->left ? (size_t)left : stream->left;
        if (more == 0)
            break;
        leat__byte_stream_consume(stream, more);
        *skipped += (int64_t)more;
    }
    return status;
}

void leat__byte_stream_cancel(leat__byte_stream *stream)
{
    leat__byte_source_cancel(&stream->source);
    if (stream->filter)
        stream->filter->cancel(stream->filter);
}

int64_t leat__byte_stream_memory(const leat__byte_stream *stream)
{
    const leat__byte_filter *filter = stream->filter;
    int64_t bytes =
        (int64_t)atomic_load_explicit(&stream->memory, memory_order_relaxed);
    return filter ? bytes + filter->memory(filter) : bytes;
}
