#include "readers/record/stream_cursor.h"
#include "base/error.h"
#include "base/memory.h"
#include "data/token.h"
#include "readers/stream/byte_source.h"

#include <string.h>

/* Room for a format's headers beside the longest record. */
#define HEADERS ((uint64_t)64 << 10)

int leat__stream_cursor_init(leat__stream_cursor *out, leat_reader *reader,
                             leat__record_format *format,
                             const leat__file_list *files,
                             const leat_open *open)
{
    leat__stream_cursor cursor = {
        .files = files,
        .format = format,
        .compression =
            (leat__compression)leat_args_number(open->args, "compression"),
        .limit = leat__record_limit_of(open),
        .begun = leat__alloc_zero((size_t)files->n, sizeof(*cursor.begun))};
    if (!cursor.begun)
        return LEAT_ENOMEM;
    *out = cursor;
    leat__byte_stream_init(&out->stream, out->limit.bytes + HEADERS, reader);
    out->stream.filter = format->filter;
    return LEAT_OK;
}

void leat__stream_cursor_finish(leat__stream_cursor *cursor)
{
    leat__byte_stream_finish(&cursor->stream);
    leat__free(cursor->begun);
}

int leat__stream_cursor_bad_record(const leat__stream_cursor *cursor, int file,
                                   int64_t record, uint64_t offset, int status)
{
    return leat__error_context(status,
                               "%s: record %lld at byte %llu of the "
                               "uncompressed data",
                               cursor->files->path[file], (long long)record,
                               (unsigned long long)offset);
}

static leat__record_window window_of(const leat__byte_stream *stream)
{
    static const unsigned char none[1];
    return (leat__record_window){stream->left ? stream->next : none,
                                 stream->left, (uint64_t)stream->offset,
                                 stream->ended, NULL};
}

int leat__stream_cursor_go_to(leat__stream_cursor *cursor, uint64_t offset)
{
    int64_t skipped, n = (int64_t)offset - cursor->stream.offset;
    if (n <= 0)
        return LEAT_OK;
    int status = leat__byte_stream_skip(&cursor->stream, n, &skipped);
    if (status || skipped == n)
        return status;
    return leat_error(LEAT_EFORMAT,
                      "%s: ends at byte %lld of the uncompressed data, before "
                      "byte %llu, where a record is",
                      cursor->files->path[cursor->file],
                      (long long)cursor->stream.offset,
                      (unsigned long long)offset);
}

/* Has more bytes in the window, `want` where that is possible. */
static int see_more(leat__stream_cursor *cursor, uint64_t want)
{
    leat__byte_stream *stream = &cursor->stream;
    if (want <= stream->left)
        want = (uint64_t)stream->left + 1;
    if (want <= cursor->limit.bytes + HEADERS)
        return leat__byte_stream_need(stream, (size_t)want);
    int status =
        leat__record_limit_refuse(&cursor->limit, LEAT_EFORMAT, want, "");
    return leat__stream_cursor_bad_record(
        cursor, cursor->file, cursor->walk.record, cursor->walk.offset, status);
}

/* Calls the format's begin with as many bytes as it needs. */
static int call_begin(leat__stream_cursor *cursor, leat__record_file *out)
{
    int status = LEAT_AGAIN;
    if (!cursor->format->ops->begin)
        return LEAT_OK;
    while (status == LEAT_AGAIN) {
        leat__record_window window = window_of(&cursor->stream);
        *out = (leat__record_file){.number = cursor->file};
        status = cursor->format->ops->begin(cursor->format, &window, UINT64_MAX,
                                            out);
        if (status < 0)
            return leat__error_context(status, "%s",
                                       cursor->files->path[cursor->file]);
        if (status == LEAT_AGAIN &&
            (status = see_more(cursor, out->first)) == 0)
            status = LEAT_AGAIN;
    }
    return status;
}

/* Another pass reads what the first one did. */
static int open_stream(leat__stream_cursor *cursor)
{
    const char *path = cursor->files->path[cursor->file];
    int status =
        leat__byte_stream_open(&cursor->stream, path, cursor->compression);
    return status ? status
                  : leat__file_version_check(
                        cursor->begun[cursor->file].version,
                        leat__byte_stream_version(&cursor->stream), path);
}

int leat__stream_cursor_begin(leat__stream_cursor *cursor)
{
    leat__record_file file = {.number = cursor->file};
    leat__begun_file *begun = &cursor->begun[cursor->file];
    int status = open_stream(cursor);
    if (!status)
        status = call_begin(cursor, &file);
    if (status)
        return status;
    if (!begun->is_begun)
        begun->file = file;
    else if (memcmp(&begun->file, &file, sizeof(file)) != 0)
        return leat_error(LEAT_EFORMAT, "%s: changed since it was read before",
                          cursor->files->path[cursor->file]);
    begun->is_begun = true;
    cursor->walk = (leat__record_walk){.offset = file.first};
    cursor->at = cursor->nspans = 0;
    cursor->is_open = true;
    return LEAT_OK;
}

static void leave_file(leat__stream_cursor *cursor)
{
    leat__byte_stream_close(&cursor->stream);
    cursor->is_open = false;
    cursor->file++;
}

/* One call of the format's walk. LEAT_AGAIN: more of the file is in sight. */
static int call_walk(leat__stream_cursor *cursor, int n)
{
    int found;
    int status = leat__stream_cursor_go_to(cursor, cursor->walk.offset);
    if (status)
        return status;
    leat__record_window window = window_of(&cursor->stream);
    cursor->record = cursor->walk.record;
    status = cursor->format->ops->walk(
        cursor->format, &cursor->begun[cursor->file].file, &window,
        &cursor->walk, cursor->spans,
        n < LEAT__STREAM_SPANS ? n : LEAT__STREAM_SPANS, &found);
    if (!status)
        cursor->nspans = found;
    if (status == LEAT_EDATA || status == LEAT_EFORMAT)
        return leat__stream_cursor_bad_record(cursor, cursor->file,
                                              cursor->record,
                                              cursor->spans[0].offset, status);
    if (status != LEAT_AGAIN)
        return status;
    if (window.is_last)
        return leat_error(LEAT_EFORMAT,
                          "%s: ends in record %lld at byte %llu of the "
                          "uncompressed data",
                          cursor->files->path[cursor->file],
                          (long long)cursor->walk.record,
                          (unsigned long long)cursor->walk.offset);
    status = leat__stream_cursor_go_to(cursor, cursor->walk.offset);
    if (!status)
        status = see_more(cursor, cursor->walk.needed);
    return status ? status : LEAT_AGAIN;
}

int leat__stream_cursor_find(leat__stream_cursor *cursor, int n)
{
    /* What has been read already may become very much. */
    int running = leat__byte_source_check_running(&cursor->stream.source);
    if (running)
        return running;
    while (cursor->at == cursor->nspans) {
        int status = LEAT_OK;
        if (!cursor->is_open && cursor->file == cursor->files->n)
            return LEAT_END;
        if (!cursor->is_open)
            status = leat__stream_cursor_begin(cursor);
        cursor->at = cursor->nspans = 0;
        while (!status && cursor->nspans == 0) {
            status = call_walk(cursor, n);
            if (status == LEAT_AGAIN)
                status = LEAT_OK;
        }
        if (status == LEAT_END)
            leave_file(cursor);
        else if (status)
            return status;
    }
    return LEAT_OK;
}

int leat__stream_cursor_skip(leat__stream_cursor *cursor, int64_t n,
                             int64_t *skipped)
{
    int status = leat__stream_cursor_find(
        cursor, n < LEAT__STREAM_SPANS ? (int)n : LEAT__STREAM_SPANS);
    if (status)
        return status;
    while (*skipped < n && cursor->at < cursor->nspans) {
        cursor->at++;
        cursor->record++;
        ++*skipped;
    }
    return LEAT_OK;
}

int leat__stream_cursor_check(const leat__stream_cursor *cursor, int file)
{
    const char *path = cursor->files->path[file];
    leat__file_version opened = cursor->begun[file].version, now;
    if (opened.size < 0)
        return LEAT_OK;
    int status = leat__byte_source_check(path, &now);
    return status ? status : leat__file_version_check(opened, now, path);
}

static void rewind_files(leat__stream_cursor *cursor)
{
    leat__byte_stream_close(&cursor->stream);
    cursor->file = 0;
    cursor->is_open = false;
    cursor->at = cursor->nspans = 0;
    cursor->record = 0;
    cursor->walk = (leat__record_walk){0};
}

int leat__stream_cursor_rewind(leat__stream_cursor *cursor)
{
    uint64_t first = cursor->begun[0].file.first;
    if (cursor->file == 0 && !cursor->is_open)
        return LEAT_OK;
    if (cursor->file == 0 && (uint64_t)cursor->stream.offset <= first) {
        cursor->walk = (leat__record_walk){.offset = first};
        cursor->at = cursor->nspans = 0;
        return leat__stream_cursor_check(cursor, 0);
    }
    if (!cursor->rereads)
        return leat_error(LEAT_EUNSUPPORTED,
                          "%s: a pipe or device is read once; a second epoch "
                          "needs a file",
                          cursor->files->path[0]);
    rewind_files(cursor);
    return LEAT_OK;
}

/* The record in its file at which next continues. */
static int64_t current_record(const leat__stream_cursor *cursor)
{
    return cursor->at < cursor->nspans ? cursor->record : cursor->walk.record;
}

/* Walks over the first `record` records of the file. */
static int walk_to(leat__stream_cursor *cursor, int64_t record)
{
    while (current_record(cursor) < record) {
        int64_t skipped = 0;
        int status = leat__stream_cursor_skip(
            cursor, record - current_record(cursor), &skipped);
        if (status && status != LEAT_EDATA)
            return status;
    }
    return LEAT_OK;
}

typedef struct stream_mark {
    int64_t file;
    int64_t offset;
    int64_t record;
} stream_mark;

static int refuse_mark(const leat__stream_cursor *cursor)
{
    return leat_error(LEAT_EINVAL, "%s: the mark is none of these files",
                      cursor->files->path[0]);
}

/* Whether the record may begin at the offset. Where all have the same size, no
 * walk would notice that it does not. */
static bool may_begin(const leat__record_file *file, const stream_mark *mark)
{
    uint64_t offset = (uint64_t)mark->offset, from = offset - file->first;
    if (offset < file->first)
        return false;
    return !file->stride ||
           (mark->record <= file->count && from % file->stride == 0 &&
            from / file->stride == (uint64_t)mark->record);
}

static int seek(leat__stream_cursor *cursor, const stream_mark *mark)
{
    if (mark->file > cursor->files->n)
        return refuse_mark(cursor);
    int status = leat__stream_cursor_rewind(cursor);
    if (status)
        return status;
    /* What a pipe has is read to its end, others are not opened, but for the
       first where the fields are not known without. */
    while (!status && cursor->file < mark->file) {
        int64_t skipped;
        bool must_open = !cursor->rereads || cursor->format->nspec == 0;
        if (must_open && !cursor->is_open)
            status = leat__stream_cursor_begin(cursor);
        if (!status && !cursor->rereads)
            status =
                leat__byte_stream_skip(&cursor->stream, INT64_MAX, &skipped);
        if (!status)
            leave_file(cursor);
    }
    cursor->at = cursor->nspans = 0;
    cursor->record = 0;
    if (status || cursor->file == cursor->files->n)
        return status;
    if (!cursor->is_open)
        status = leat__stream_cursor_begin(cursor);
    if (status || mark->record == 0)
        return status;
    if (!may_begin(&cursor->begun[cursor->file].file, mark))
        return refuse_mark(cursor);
    if (cursor->format->ops->resume)
        return walk_to(cursor, mark->record);
    cursor->walk.offset = (uint64_t)mark->offset;
    cursor->walk.record = cursor->record = mark->record;
    return leat__stream_cursor_go_to(cursor, cursor->walk.offset);
}

int leat__stream_cursor_seek(leat__stream_cursor *cursor, leat_token *token)
{
    int64_t state[3];
    int status =
        leat__token_get_counts(token, cursor->files->path[0], state, 3);
    if (status)
        return status;
    const stream_mark mark = {state[0], state[1], state[2]};
    return seek(cursor, &mark);
}

int leat__stream_cursor_mark(const leat__stream_cursor *cursor,
                             leat_token *token)
{
    stream_mark mark = {cursor->file, 0, 0};
    if (cursor->is_open) {
        mark.offset = (int64_t)(cursor->at < cursor->nspans
                                    ? cursor->spans[cursor->at].offset
                                    : cursor->walk.offset);
        mark.record = current_record(cursor);
    }
    return leat_token_put(token, &mark, sizeof(mark));
}
