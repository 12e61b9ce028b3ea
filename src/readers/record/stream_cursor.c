#include "readers/record/stream_cursor.h"
#include "base/error.h"
#include "base/memory.h"

#include <string.h>

/* Room for a format's headers beside the longest record. */
#define HEADERS ((uint64_t)64 << 10)

int leat__stream_cursor_init(leat__stream_cursor *out, leat_reader *reader,
                             leat__record_format *format,
                             const leat__file_list *files,
                             const leat_args *args)
{
    leat__stream_cursor cursor = {
        .files = files,
        .format = format,
        .compression = (leat__compression)leat_args_number(args, "compression"),
        .max_record = (uint64_t)leat_args_number(args, "max_record"),
        .begun = leat__alloc_zero((size_t)files->n, sizeof(*cursor.begun))};
    if (!cursor.begun)
        return LEAT_ENOMEM;
    *out = cursor;
    leat__byte_stream_init(&out->stream, out->max_record + HEADERS, reader);
    out->stream.filter = format->filter;
    return LEAT_OK;
}

void leat__stream_cursor_finish(leat__stream_cursor *self)
{
    leat__byte_stream_finish(&self->stream);
    leat__free(self->begun);
}

int leat__stream_cursor_bad_record(const leat__stream_cursor *self, int file,
                                   int64_t record, uint64_t offset, int status)
{
    return leat__error_context(status,
                               "%s: record %lld at byte %llu of the "
                               "uncompressed data",
                               self->files->path[file], (long long)record,
                               (unsigned long long)offset);
}

static leat__record_window window_of(const leat__byte_stream *stream)
{
    static const unsigned char none[1];
    return (leat__record_window){stream->left ? stream->next : none,
                                 stream->left, (uint64_t)stream->offset,
                                 stream->ended};
}

int leat__stream_cursor_go_to(leat__stream_cursor *self, uint64_t offset)
{
    int64_t skipped, n = (int64_t)offset - self->stream.offset;
    if (n <= 0)
        return LEAT_OK;
    int status = leat__byte_stream_skip(&self->stream, n, &skipped);
    if (status || skipped == n)
        return status;
    return leat_error(LEAT_EFORMAT,
                      "%s: ends at byte %lld of the uncompressed data, before "
                      "byte %llu, where a record is",
                      self->files->path[self->file],
                      (long long)self->stream.offset,
                      (unsigned long long)offset);
}

/* Has more bytes in the window, `want` where that is possible. */
static int see_more(leat__stream_cursor *self, uint64_t want)
{
    leat__byte_stream *stream = &self->stream;
    if (want <= stream->left)
        want = (uint64_t)stream->left + 1;
    if (want <= self->max_record + HEADERS)
        return leat__byte_stream_need(stream, (size_t)want);
    int status = leat_error(LEAT_EFORMAT,
                            "it has %llu bytes, and max_record is %llu: give "
                            "another max_record= to read it",
                            (unsigned long long)want,
                            (unsigned long long)self->max_record);
    return leat__stream_cursor_bad_record(self, self->file, self->walk.record,
                                          self->walk.offset, status);
}

/* Calls the format's begin with as many bytes as it needs. */
static int call_begin(leat__stream_cursor *self, leat__record_file *out)
{
    int status = LEAT_AGAIN;
    if (!self->format->ops->begin)
        return LEAT_OK;
    while (status == LEAT_AGAIN) {
        leat__record_window window = window_of(&self->stream);
        *out = (leat__record_file){.number = self->file};
        status =
            self->format->ops->begin(self->format, &window, UINT64_MAX, out);
        if (status < 0)
            return leat__error_context(status, "%s",
                                       self->files->path[self->file]);
        if (status == LEAT_AGAIN && (status = see_more(self, out->first)) == 0)
            status = LEAT_AGAIN;
    }
    return status;
}

int leat__stream_cursor_begin(leat__stream_cursor *self)
{
    leat__record_file file = {.number = self->file};
    leat__begun_file *begun = &self->begun[self->file];
    int status = leat__byte_stream_open(
        &self->stream, self->files->path[self->file], self->compression);
    if (!status)
        status = call_begin(self, &file);
    if (status)
        return status;
    if (!begun->is_begun)
        begun->file = file;
    else if (memcmp(&begun->file, &file, sizeof(file)) != 0)
        return leat_error(LEAT_EFORMAT, "%s: changed since it was read before",
                          self->files->path[self->file]);
    begun->is_begun = true;
    self->walk = (leat__record_walk){.offset = file.first};
    self->at = self->nspans = 0;
    self->is_open = true;
    return LEAT_OK;
}

static void leave_file(leat__stream_cursor *self)
{
    leat__byte_stream_close(&self->stream);
    self->is_open = false;
    self->file++;
}

/* One call of the format's walk. LEAT_AGAIN: more of the file is in sight. */
static int call_walk(leat__stream_cursor *self, int n)
{
    int found;
    int status = leat__stream_cursor_go_to(self, self->walk.offset);
    if (status)
        return status;
    leat__record_window window = window_of(&self->stream);
    self->record = self->walk.record;
    status = self->format->ops->walk(
        self->format, &self->begun[self->file].file, &window, &self->walk,
        self->spans, n < LEAT__STREAM_SPANS ? n : LEAT__STREAM_SPANS, &found);
    if (!status)
        self->nspans = found;
    if (status == LEAT_EDATA || status == LEAT_EFORMAT)
        return leat__stream_cursor_bad_record(self, self->file, self->record,
                                              self->spans[0].offset, status);
    if (status != LEAT_AGAIN)
        return status;
    if (window.is_last)
        return leat_error(LEAT_EFORMAT,
                          "%s: ends in record %lld at byte %llu of the "
                          "uncompressed data",
                          self->files->path[self->file],
                          (long long)self->walk.record,
                          (unsigned long long)self->walk.offset);
    status = leat__stream_cursor_go_to(self, self->walk.offset);
    if (!status)
        status = see_more(self, self->walk.needed);
    return status ? status : LEAT_AGAIN;
}

int leat__stream_cursor_find(leat__stream_cursor *self, int n)
{
    while (self->at == self->nspans) {
        int status = LEAT_OK;
        if (!self->is_open && self->file == self->files->n)
            return LEAT_END;
        if (!self->is_open)
            status = leat__stream_cursor_begin(self);
        self->at = self->nspans = 0;
        while (!status && self->nspans == 0) {
            status = call_walk(self, n);
            if (status == LEAT_AGAIN)
                status = LEAT_OK;
        }
        if (status == LEAT_END)
            leave_file(self);
        else if (status)
            return status;
    }
    return LEAT_OK;
}

int leat__stream_cursor_skip(leat__stream_cursor *self, int64_t n,
                             int64_t *skipped)
{
    int status = leat__stream_cursor_find(
        self, n < LEAT__STREAM_SPANS ? (int)n : LEAT__STREAM_SPANS);
    if (status)
        return status;
    while (*skipped < n && self->at < self->nspans) {
        self->at++;
        self->record++;
        ++*skipped;
    }
    return LEAT_OK;
}

static void rewind_files(leat__stream_cursor *self)
{
    leat__byte_stream_close(&self->stream);
    self->file = 0;
    self->is_open = false;
    self->at = self->nspans = 0;
    self->record = 0;
    self->walk = (leat__record_walk){0};
}

int leat__stream_cursor_rewind(leat__stream_cursor *self)
{
    uint64_t first = self->begun[0].file.first;
    if (self->file == 0 && !self->is_open)
        return LEAT_OK;
    if (self->file == 0 && (uint64_t)self->stream.offset <= first) {
        self->walk = (leat__record_walk){.offset = first};
        self->at = self->nspans = 0;
        return LEAT_OK;
    }
    if (!self->rereads)
        return leat_error(LEAT_EUNSUPPORTED,
                          "%s: a pipe or device is read once; a second epoch "
                          "needs a file",
                          self->files->path[0]);
    rewind_files(self);
    return LEAT_OK;
}

/* The record in its file at which next continues. */
static int64_t current_record(const leat__stream_cursor *self)
{
    return self->at < self->nspans ? self->record : self->walk.record;
}

/* Walks over the first `record` records of the file. */
static int walk_to(leat__stream_cursor *self, int64_t record)
{
    while (current_record(self) < record) {
        int64_t skipped = 0;
        int status = leat__stream_cursor_skip(
            self, record - current_record(self), &skipped);
        if (status && status != LEAT_EDATA)
            return status;
    }
    return LEAT_OK;
}

typedef struct stream_mark {
    int64_t file;
    uint64_t offset;
    int64_t record;
} stream_mark;

static int seek(leat__stream_cursor *self, const stream_mark *mark)
{
    if (mark->file < 0 || mark->file > self->files->n || mark->record < 0 ||
        mark->offset > INT64_MAX)
        return leat_error(LEAT_EINVAL, "%s: the mark is none of these files",
                          self->files->path[0]);
    int status = leat__stream_cursor_rewind(self);
    if (status)
        return status;
    /* What a pipe has is read to its end, others are not opened. */
    while (!status && self->file < mark->file) {
        int64_t skipped;
        if (!self->rereads && !self->is_open)
            status = leat__stream_cursor_begin(self);
        if (!status && !self->rereads)
            status = leat__byte_stream_skip(&self->stream, INT64_MAX, &skipped);
        if (!status)
            leave_file(self);
    }
    self->at = self->nspans = 0;
    self->record = 0;
    if (status || self->file == self->files->n)
        return status;
    if (!self->is_open)
        status = leat__stream_cursor_begin(self);
    if (status || mark->record == 0)
        return status;
    if (self->format->ops->resume)
        return walk_to(self, mark->record);
    self->walk.offset = mark->offset;
    self->walk.record = self->record = mark->record;
    return leat__stream_cursor_go_to(self, mark->offset);
}

int leat__stream_cursor_seek(leat__stream_cursor *self, leat_token *token)
{
    stream_mark mark;
    int status = leat_token_get(token, &mark, sizeof(mark));
    return status ? status : seek(self, &mark);
}

int leat__stream_cursor_mark(const leat__stream_cursor *self, leat_token *token)
{
    stream_mark mark = {self->file, 0, 0};
    if (self->is_open) {
        mark.offset = self->at < self->nspans ? self->spans[self->at].offset
                                              : self->walk.offset;
        mark.record = current_record(self);
    }
    return leat_token_put(token, &mark, sizeof(mark));
}
