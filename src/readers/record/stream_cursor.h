/*
 * stream_cursor.h: where a pass over files that are read in order is.
 *
 * It opens file after file as a byte stream, and walks over the stream's
 * window. A mark is a file, an offset of its uncompressed data and the record
 * there.
 */
#ifndef LEAT_READERS_STREAM_CURSOR_H
#define LEAT_READERS_STREAM_CURSOR_H

#include "readers/file_list.h"
#include "readers/record/record_format.h"
#include "readers/record/record_limit.h"
#include "readers/stream/byte_stream.h"

/* Records that one walk looks for. */
#define LEAT__STREAM_SPANS 64

typedef struct leat__begun_file {
    leat__file_version version; /* when the reader was opened */
    bool is_begun;
    leat__record_file file;
} leat__begun_file;

/* Used by one caller at a time, but for what is immutable. */
typedef struct leat__stream_cursor {
    const leat__file_list *files; /* immutable, as the next four; borrowed, */
    leat__record_format *format;  /* as this is */
    bool rereads; /* all files are regular: another pass is possible */
    leat__compression compression;
    leat__record_limit limit;
    leat__byte_stream stream;
    leat__begun_file *begun; /* one of each file, written once each */
    int file;                /* the current one; files->n: the end */
    bool is_open;            /* and begun */
    leat__record_walk walk;
    leat__record_span spans[LEAT__STREAM_SPANS]; /* found; from `at` on not yet
                                                    given */
    int at, nspans;
    int64_t record; /* of spans[at] in its file */
} leat__stream_cursor;

/* At the beginning of the first file, which is not opened; `rereads` and each
 * file's version are still to be set. Waiting counts as the reader's. Errors:
 * LEAT_ENOMEM. */
int leat__stream_cursor_init(leat__stream_cursor *out, leat_reader *reader,
                             leat__record_format *format,
                             const leat__file_list *files,
                             const leat_open *open);
void leat__stream_cursor_finish(leat__stream_cursor *cursor);

/* Names file, record and byte before the error's line. */
int leat__stream_cursor_bad_record(const leat__stream_cursor *cursor, int file,
                                   int64_t record, uint64_t offset, int status);

/* LEAT_EIO if a file was written since the reader was opened. A pipe is read
 * once, and cannot change. Any thread. */
int leat__stream_cursor_check(const leat__stream_cursor *cursor, int file);

/* Opens the current file and looks at its beginning. */
int leat__stream_cursor_begin(leat__stream_cursor *cursor);

/* Has spans from `at` on, where `n` more are wanted, or an error; LEAT_END
 * after the last file. */
int leat__stream_cursor_find(leat__stream_cursor *cursor, int n);

/* Moves the window to `offset`, unless the stream has passed it. */
int leat__stream_cursor_go_to(leat__stream_cursor *cursor, uint64_t offset);

/* Passes over the spans that one walk finds, at most `n`. */
int leat__stream_cursor_skip(leat__stream_cursor *cursor, int64_t n,
                             int64_t *skipped);

/* Goes to the beginning; what was not passed yet is not read again.
 * LEAT_EUNSUPPORTED for a pipe. */
int leat__stream_cursor_rewind(leat__stream_cursor *cursor);

int leat__stream_cursor_mark(const leat__stream_cursor *cursor,
                             leat_token *token);
int leat__stream_cursor_seek(leat__stream_cursor *cursor, leat_token *token);

#endif
