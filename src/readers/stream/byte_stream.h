/*
 * byte_stream.h: the bytes of a file in order, decompressed where it is
 * compressed, through a window that grows as far as it has to.
 */
#ifndef LEAT_READERS_BYTE_STREAM_H
#define LEAT_READERS_BYTE_STREAM_H

#include "readers/stream/byte_source.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum leat__compression {
    LEAT__COMPRESSION_AUTO, /* GZIP where the file begins with its magic */
    LEAT__COMPRESSION_NONE,
    LEAT__COMPRESSION_GZIP, /* members one after another; zeros may follow */
    LEAT__COMPRESSION_ZLIB  /* likewise */
} leat__compression;

/* The words of an argument `compression`, in that order. */
#define LEAT__COMPRESSION_WORDS "AUTO|NONE|GZIP|ZLIB"
#define LEAT__COMPRESSION_HELP                                                 \
    "of the files; AUTO finds gzip by its magic, not zlib"

/*
 * Reads files in the place of a stream's own source, and gives what they hold
 * as other bytes. cancel and memory are called on any thread, the others by one
 * at a time.
 */
typedef struct leat__byte_filter leat__byte_filter;
struct leat__byte_filter {
    int (*open)(leat__byte_filter *filter, const char *path,
                leat__compression compression, leat_reader *reader);
    /* Up to `n` bytes, at least one; *got is 0 at the end. */
    int (*read)(leat__byte_filter *filter, void *out, size_t n, size_t *got);
    void (*close)(leat__byte_filter *filter); /* the file */
    leat__file_version (*version)(const leat__byte_filter *filter);
    void (*cancel)(leat__byte_filter *filter);
    int64_t (*memory)(const leat__byte_filter *filter); /* bytes held */
};

/*
 * One caller at a time; cancel and memory on any thread between init and
 * finish. A stream reads many files, one after another, and keeps its memory.
 *
 * Errors name the file, and where data is at fault the byte of the uncompressed
 * data, or of the file where its compression is.
 */
typedef struct leat__byte_stream {
    /* The window: `left` bytes from `next` on, which begin at `offset` of the
       uncompressed data. */
    const unsigned char *next;
    size_t left;
    int64_t offset;
    bool ended; /* nothing follows the window */

    unsigned char *window;
    size_t capacity; /* of the window now */
    size_t limit;    /* and at most */
    int small_fills; /* in a row, that need little of the window */
    leat__compression compression;
    bool knows_compression;          /* it is no longer AUTO */
    struct leat__inflater *inflater; /* NULL: none was needed yet */
    leat__byte_filter *filter;       /* borrowed; NULL: none; set after init */
    atomic_size_t memory;
    leat__byte_source source;
} leat__byte_stream;

/*
 * `limit` is the most bytes that can be asked for at once; the window may have
 * 64 KiB more. `reader` is the one whose waiting is counted; NULL: none.
 */
void leat__byte_stream_init(leat__byte_stream *stream, size_t limit,
                            leat_reader *reader);
void leat__byte_stream_finish(leat__byte_stream *stream);

/*
 * Opens a file, after closing the one before; `path` is borrowed while it is
 * open, "-" standard input. Errors: LEAT_EIO, LEAT_ESTATE.
 */
int leat__byte_stream_open(leat__byte_stream *stream, const char *path,
                           leat__compression compression);
void leat__byte_stream_close(leat__byte_stream *stream);

/* Of the open file; the size is -1 if that is no regular one. */
leat__file_version leat__byte_stream_version(const leat__byte_stream *stream);

/*
 * Whether a path is a regular file without compression, of which no stream is
 * needed; a pipe is not opened. Errors: LEAT_EIO.
 */
int leat__byte_stream_probe(const char *path, leat__compression compression,
                            bool *is_plain);

/* leat__byte_stream_need beyond the window. */
int leat__byte_stream_fill(leat__byte_stream *stream, size_t want);

/*
 * Has at least `want` bytes in the window, at most `limit`, or all that are
 * left where that is fewer. The window may move. Errors: LEAT_EIO;
 * LEAT_EFORMAT for compressed data that is damaged or ends early; LEAT_ENOMEM;
 * LEAT_ECANCELLED. What is in the window then is good.
 */
static inline int leat__byte_stream_need(leat__byte_stream *stream, size_t want)
{
    return stream->left >= want ? LEAT_OK
                                : leat__byte_stream_fill(stream, want);
}

/* Passes by `n` bytes of the window. */
static inline void leat__byte_stream_consume(leat__byte_stream *stream,
                                             size_t n)
{
    stream->next += n;
    stream->left -= n;
    stream->offset += (int64_t)n;
}

/*
 * Reads `n` bytes to `out`, beside the window where they are many. *got is
 * fewer at the end, and with an error. Errors: those of need.
 */
int leat__byte_stream_read(leat__byte_stream *stream, void *out, size_t n,
                           size_t *got);

/*
 * Passes by up to `n` bytes: *skipped is fewer at the end. Those of a regular
 * file that is not compressed are not read. Errors: those of need.
 */
int leat__byte_stream_skip(leat__byte_stream *stream, int64_t n,
                           int64_t *skipped);

/* Makes waiting and all further reads LEAT_ECANCELLED. */
void leat__byte_stream_cancel(leat__byte_stream *stream);

/* Bytes held. Any thread. */
int64_t leat__byte_stream_memory(const leat__byte_stream *stream);

#endif
