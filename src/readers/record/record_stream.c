/*
 * Files of a format in order: compressed ones, pipes, standard input.
 *
 * DESIGN
 *
 * One caller at a time opens file after file, walks over the window of the byte
 * stream, and copies each record that the walk found from there, or from the
 * file itself, into its sample. Where the format has work for other threads,
 * the copy is all that next does: materialize finds it in the sample's buffer,
 * with a head that says where it came from. It uses nothing else but the
 * format, the paths and `begun`, whose elements are written once, before the
 * first sample of their file. No locks; cancel is the byte stream's.
 *
 * A mark is a file, an offset of its uncompressed data and the record there.
 */
#include "readers/record/record_stream.h"
#include "base/error.h"
#include "base/memory.h"

#include <string.h>

/* Records that one walk looks for. */
#define SPANS 64

/* Room for a format's headers beside the longest record. */
#define HEADERS ((uint64_t)64 << 10)

/* Before a deferred record in its sample's buffer. */
typedef struct record_head {
    uint64_t offset;
    uint64_t size;
    int64_t file;
} record_head;

/* Keeps the record aligned as the buffer is. */
#define HEAD_BYTES LEAT__ALIGNMENT

typedef struct begun_file {
    bool is_begun;
    leat__record_file file;
} begun_file;

typedef struct record_stream {
    leat_reader reader;
    leat_reader_ops ops;         /* under the format's name */
    leat__record_format *format; /* immutable, as the next five */
    leat__file_list files;
    bool rereads; /* all files are regular: another pass is possible */
    leat__compression compression;
    uint64_t max_record;
    uint64_t identity[2]; /* files, and a hash of their sizes */

    leat__byte_stream stream;

    /* Used by one caller at a time. */
    begun_file *begun; /* an element a file */
    int file;          /* the current one; files.n: the end */
    bool is_open;      /* and begun */
    leat__record_walk walk;
    leat__record_span spans[SPANS]; /* found by the walk; from `at` on not yet
                                       given */
    int at, nspans;
    int64_t record; /* of spans[at] in its file */
} record_stream;

static record_stream *stream_of(leat_reader *reader)
{
    return (record_stream *)reader;
}

/* Names file, record and byte before the error's line. */
static int bad_record(const record_stream *self, int file, int64_t record,
                      uint64_t offset, int status)
{
    return leat__error_context(status,
                               "%s: record %lld at byte %llu of the "
                               "uncompressed data",
                               self->files.path[file], (long long)record,
                               (unsigned long long)offset);
}

static leat__record_window window_of(const leat__byte_stream *stream)
{
    static const unsigned char none[1];
    return (leat__record_window){stream->left ? stream->next : none,
                                 stream->left, (uint64_t)stream->offset,
                                 stream->ended};
}

/* Moves the window to `offset`, unless the stream has passed it. */
static int go_to(record_stream *self, uint64_t offset)
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
                      self->files.path[self->file],
                      (long long)self->stream.offset,
                      (unsigned long long)offset);
}

/* Has more bytes in the window, `want` where that is possible. */
static int see_more(record_stream *self, uint64_t want)
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
    return bad_record(self, self->file, self->walk.record, self->walk.offset,
                      status);
}

/* Calls the format's begin with as many bytes as it needs. */
static int call_begin(record_stream *self, leat__record_file *out)
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
                                       self->files.path[self->file]);
        if (status == LEAT_AGAIN && (status = see_more(self, out->first)) == 0)
            status = LEAT_AGAIN;
    }
    return status;
}

/* Opens the current file and looks at its beginning. */
static int begin_file(record_stream *self)
{
    leat__record_file file = {.number = self->file};
    begun_file *begun = &self->begun[self->file];
    int status = leat__byte_stream_open(
        &self->stream, self->files.path[self->file], self->compression);
    if (!status)
        status = call_begin(self, &file);
    if (status)
        return status;
    if (!begun->is_begun)
        begun->file = file;
    else if (memcmp(&begun->file, &file, sizeof(file)) != 0)
        return leat_error(LEAT_EFORMAT, "%s: changed since it was read before",
                          self->files.path[self->file]);
    begun->is_begun = true;
    self->walk = (leat__record_walk){.offset = file.first};
    self->at = self->nspans = 0;
    self->is_open = true;
    return LEAT_OK;
}

static void leave_file(record_stream *self)
{
    leat__byte_stream_close(&self->stream);
    self->is_open = false;
    self->file++;
}

/* One call of the format's walk. LEAT_AGAIN: more of the file is in sight. */
static int call_walk(record_stream *self, int n)
{
    int found;
    int status = go_to(self, self->walk.offset);
    if (status)
        return status;
    leat__record_window window = window_of(&self->stream);
    self->record = self->walk.record;
    status = self->format->ops->walk(
        self->format, &self->begun[self->file].file, &window, &self->walk,
        self->spans, n < SPANS ? n : SPANS, &found);
    if (!status)
        self->nspans = found;
    if (status == LEAT_EDATA || status == LEAT_EFORMAT)
        return bad_record(self, self->file, self->record, self->spans[0].offset,
                          status);
    if (status != LEAT_AGAIN)
        return status;
    if (window.is_last)
        return leat_error(LEAT_EFORMAT,
                          "%s: ends in record %lld at byte %llu of the "
                          "uncompressed data",
                          self->files.path[self->file],
                          (long long)self->walk.record,
                          (unsigned long long)self->walk.offset);
    status = go_to(self, self->walk.offset);
    if (!status)
        status = see_more(self, self->walk.needed);
    return status ? status : LEAT_AGAIN;
}

/* Has spans, or an error; LEAT_END after the last file. */
static int find_spans(record_stream *self, int n)
{
    while (self->at == self->nspans) {
        int status = LEAT_OK;
        if (!self->is_open && self->file == self->files.n)
            return LEAT_END;
        if (!self->is_open)
            status = begin_file(self);
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

static void set_source(const record_stream *self, leat_sample *sample,
                       int64_t record)
{
    int file = self->file < self->files.n ? self->file : self->files.n - 1;
    sample->stable = 0;
    sample->from.source = self->files.path[file];
    sample->from.record = record;
    sample->from.key = NULL;
    sample->from.key_size = 0;
}

/* The record's bytes, after a head, at `*place` of the sample's buffer. */
static int copy_record(record_stream *self, const leat__record_span *span,
                       leat_sample *sample, size_t head, size_t *place)
{
    size_t got;
    if (span->size > self->max_record) {
        int status =
            leat_error(LEAT_EDATA,
                       "it has %llu bytes, and max_record is %llu: give "
                       "another max_record= to read it",
                       (unsigned long long)span->size,
                       (unsigned long long)self->max_record);
        return bad_record(self, self->file, self->record, span->offset, status);
    }
    int status = go_to(self, span->offset);
    if (status)
        return status;
    unsigned char *buffer = leat_sample_take(sample, head + span->size + 1);
    if (!buffer)
        return LEAT_ENOMEM;
    *place = (size_t)(buffer - (unsigned char *)sample->buffer);
    status =
        leat__byte_stream_read(&self->stream, buffer + head, span->size, &got);
    if (status || got == span->size)
        return status;
    status = leat_error(LEAT_EFORMAT,
                        "the file ends after %zu of its %llu "
                        "bytes",
                        got, (unsigned long long)span->size);
    return bad_record(self, self->file, self->record, span->offset, status);
}

static int call_read(const record_stream *self, int file, int64_t record,
                     const unsigned char *bytes, const leat__record_span *span,
                     leat_sample *sample)
{
    leat__record_window window = {bytes, span->size, span->offset, true};
    leat_sample *const out[] = {sample};
    int got;
    int status = self->format->ops->read(self->format, &self->begun[file].file,
                                         &window, span, out, 1, &got);
    return status ? bad_record(self, file, record, span->offset, status)
                  : LEAT_OK;
}

static int give_deferred(record_stream *self, const leat__record_span *span,
                         leat_sample *sample)
{
    size_t place;
    int status = copy_record(self, span, sample, HEAD_BYTES, &place);
    if (status)
        return status;
    const record_head head = {span->offset, span->size, self->file};
    memcpy((char *)sample->buffer + place, &head, sizeof(head));
    sample->locator = (leat_locator){self->record, place};
    sample->deferred = 1;
    return LEAT_OK;
}

static int give(record_stream *self, const leat__record_span *span,
                leat_sample *sample)
{
    size_t place;
    set_source(self, sample, self->record);
    if (self->format->defers)
        return give_deferred(self, span, sample);
    int status = copy_record(self, span, sample, 0, &place);
    if (status)
        return status;
    return call_read(self, self->file, self->record,
                     (unsigned char *)sample->buffer + place, span, sample);
}

static int record_stream_next(leat_reader *reader, leat_sample *const out[],
                              int n, int *got)
{
    record_stream *self = stream_of(reader);
    int status = find_spans(self, n);
    if (status) {
        set_source(self, out[0], self->record);
        return status;
    }
    while (!status && *got < n && self->at < self->nspans) {
        status = give(self, &self->spans[self->at], out[*got]);
        if (status && status != LEAT_EDATA)
            break;
        *got += !status;
        self->at++;
        self->record++;
    }
    return status;
}

static int record_stream_materialize(leat_reader *reader,
                                     leat_sample *const out[], int n, int *got)
{
    record_stream *self = stream_of(reader);
    int status = LEAT_OK;
    while (!status && *got < n) {
        leat_sample *sample = out[*got];
        const unsigned char *place =
            (unsigned char *)sample->buffer + sample->locator.where;
        record_head head;
        memcpy(&head, place, sizeof(head));
        const leat__record_span span = {head.offset, head.size};
        sample->stable = 0;
        sample->from.source = self->files.path[head.file];
        sample->from.record = sample->locator.record;
        sample->from.key = NULL;
        status = call_read(self, (int)head.file, sample->locator.record,
                           place + HEAD_BYTES, &span, sample);
        *got += !status;
    }
    return status;
}

static int record_stream_skip(leat_reader *reader, int64_t n, int64_t *skipped)
{
    record_stream *self = stream_of(reader);
    int status = find_spans(self, n < SPANS ? (int)n : SPANS);
    if (status)
        return status;
    while (*skipped < n && self->at < self->nspans) {
        self->at++;
        self->record++;
        ++*skipped;
    }
    return LEAT_OK;
}

static int record_stream_fields(leat_reader *reader,
                                const leat_field_spec **out, int *n)
{
    record_stream *self = stream_of(reader);
    if (self->format->nspec == 0 && !self->is_open && self->file == 0) {
        int status = begin_file(self);
        if (status)
            return status;
    }
    *out = self->format->spec;
    *n = self->format->nspec;
    return LEAT_OK;
}

static void rewind_files(record_stream *self)
{
    leat__byte_stream_close(&self->stream);
    self->file = 0;
    self->is_open = false;
    self->at = self->nspans = 0;
    self->record = 0;
    self->walk = (leat__record_walk){0};
}

/* What was not passed yet need not be read again. */
static int go_to_begin(record_stream *self)
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
                          self->files.path[0]);
    rewind_files(self);
    return LEAT_OK;
}

/* The record in its file at which next continues. */
static int64_t current_record(const record_stream *self)
{
    return self->at < self->nspans ? self->record : self->walk.record;
}

/* Walks over the first `record` records of the file. */
static int walk_to(record_stream *self, int64_t record)
{
    while (current_record(self) < record) {
        int64_t skipped = 0;
        int status = record_stream_skip(
            &self->reader, record - current_record(self), &skipped);
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

static int seek_mark(record_stream *self, const stream_mark *mark)
{
    if (mark->file < 0 || mark->file > self->files.n || mark->record < 0 ||
        mark->offset > INT64_MAX)
        return leat_error(LEAT_EINVAL, "%s: the mark is none of these files",
                          self->files.path[0]);
    int status = go_to_begin(self);
    if (status)
        return status;
    /* What a pipe has is read to its end, others are not opened. */
    while (!status && self->file < mark->file) {
        int64_t skipped;
        if (!self->rereads && !self->is_open)
            status = begin_file(self);
        if (!status && !self->rereads)
            status = leat__byte_stream_skip(&self->stream, INT64_MAX, &skipped);
        if (!status)
            leave_file(self);
    }
    self->at = self->nspans = 0;
    self->record = 0;
    if (status || self->file == self->files.n)
        return status;
    if (!self->is_open)
        status = begin_file(self);
    if (status || mark->record == 0)
        return status;
    if (self->format->ops->resume)
        return walk_to(self, mark->record);
    self->walk.offset = mark->offset;
    self->walk.record = self->record = mark->record;
    return go_to(self, mark->offset);
}

static int record_stream_seek(leat_reader *reader, leat_position position,
                              leat_token *token)
{
    record_stream *self = stream_of(reader);
    stream_mark mark;
    if (token) {
        int status = leat_token_get(token, &mark, sizeof(mark));
        return status ? status : seek_mark(self, &mark);
    }
    if (position.index != 0)
        return leat_error(LEAT_EUNSUPPORTED,
                          "%s: compressed files and pipes are read in order",
                          self->files.path[0]);
    return go_to_begin(self);
}

static int record_stream_mark(leat_reader *reader, leat_token *token)
{
    const record_stream *self = stream_of(reader);
    stream_mark mark = {self->file, 0, 0};
    if (self->is_open) {
        mark.offset = self->at < self->nspans ? self->spans[self->at].offset
                                              : self->walk.offset;
        mark.record = current_record(self);
    }
    return leat_token_put(token, &mark, sizeof(mark));
}

static int record_stream_save(leat_reader *reader, leat_token *token)
{
    const record_stream *self = stream_of(reader);
    return leat_token_put(token, self->identity, sizeof(self->identity));
}

static int record_stream_restore(leat_reader *reader, leat_token *token)
{
    record_stream *self = stream_of(reader);
    uint64_t identity[2];
    int status = leat_token_get(token, identity, sizeof(identity));
    if (status)
        return status;
    if (memcmp(identity, self->identity, sizeof(identity)) != 0)
        return leat_error(LEAT_EINVAL,
                          "%s: the %d files have not the number and sizes of "
                          "those that the token is of, which were %llu",
                          self->files.path[0], self->files.n,
                          (unsigned long long)identity[0]);
    return go_to_begin(self);
}

static void record_stream_cancel(leat_reader *reader)
{
    leat__byte_stream_cancel(&stream_of(reader)->stream);
}

static int record_stream_can_seek(leat_reader *reader)
{
    (void)reader;
    return 0;
}

/* Storage is read where next is called, and decompressed. */
static int record_stream_may_block(leat_reader *reader)
{
    (void)reader;
    return 1;
}

static int64_t record_stream_memory(leat_reader *reader)
{
    return leat__byte_stream_memory(&stream_of(reader)->stream);
}

static void record_stream_close(leat_reader *reader)
{
    record_stream *self = stream_of(reader);
    leat__byte_stream_finish(&self->stream);
    leat__record_format_destroy(self->format);
    leat__file_list_close(&self->files);
    leat__free(self->begun);
    leat__free(self);
}

static const leat_reader_ops record_stream_ops = {
    .size = sizeof(leat_reader_ops),
    .fields = record_stream_fields,
    .next = record_stream_next,
    .seek = record_stream_seek,
    .cancel = record_stream_cancel,
    .close = record_stream_close,
    .materialize = record_stream_materialize,
    .skip = record_stream_skip,
    .can_seek = record_stream_can_seek,
    .mark = record_stream_mark,
    .save = record_stream_save,
    .restore = record_stream_restore,
    .may_block = record_stream_may_block,
    .memory = record_stream_memory,
};

/* Looks at each file: one that is missing is an error before the first is
   read. */
static int check_files(record_stream *self)
{
    uint64_t hash = 0xcbf29ce484222325u;
    self->rereads = true;
    for (int i = 0; i < self->files.n; i++) {
        int64_t size;
        int status = leat__byte_source_check(self->files.path[i], &size);
        if (status)
            return status;
        self->rereads = self->rereads && size >= 0;
        hash = (hash ^ (uint64_t)size) * 0x100000001b3u;
    }
    self->identity[0] = (uint64_t)self->files.n;
    self->identity[1] = hash;
    return LEAT_OK;
}

int leat__record_stream_open(const leat_open *open, leat__record_format *format,
                             leat__file_list *files, leat_reader **out)
{
    record_stream *self = leat__alloc_zero(1, sizeof(*self));
    if (!self)
        return LEAT_ENOMEM;
    self->ops = record_stream_ops;
    self->ops.name = format->ops->name;
    self->reader.ops = &self->ops;
    self->format = format;
    self->files = *files;
    self->compression =
        (leat__compression)leat_args_number(open->args, "compression");
    self->max_record = (uint64_t)leat_args_number(open->args, "max_record");
    int status = check_files(self);
    if (!status) {
        self->begun = leat__alloc_zero((size_t)files->n, sizeof(*self->begun));
        status = self->begun ? LEAT_OK : LEAT_ENOMEM;
    }
    if (status) {
        leat__free(self);
        return status;
    }
    leat__byte_stream_init(&self->stream, self->max_record + HEADERS,
                           &self->reader);
    self->stream.filter = format->filter;
    *files = (leat__file_list){0};
    *out = &self->reader;
    return LEAT_OK;
}
