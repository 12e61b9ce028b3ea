/*
 * Files of a format in order: compressed ones, pipes, standard input.
 *
 * DESIGN
 *
 * One caller at a time follows the cursor, and copies each record that it found
 * from the window of the byte stream, or from the file itself, into its sample.
 * Where the format has work for other threads, the copy is all that next does:
 * materialize finds it in the sample's buffer, with a head that says where it
 * came from. It uses nothing else but the format, the paths and the cursor's
 * `begun`, whose elements are written once, before the first sample of their
 * file. No locks; cancel is the byte stream's.
 */
#include "readers/record/record_stream.h"
#include "base/error.h"
#include "base/memory.h"
#include "pipeline/reader_table.h"
#include "readers/record/stream_cursor.h"

#include <string.h>

/* Before a deferred record in its sample's buffer. */
typedef struct record_head {
    uint64_t offset;
    uint64_t size;
    int64_t file;
} record_head;

/* Keeps the record aligned as the buffer is. */
#define HEAD_BYTES LEAT__ALIGNMENT

typedef struct record_stream {
    leat_reader reader;
    leat_reader_ops ops;         /* under the format's name */
    leat__record_format *format; /* owned, as the list is */
    leat__file_list list;
    uint64_t identity[2]; /* files, and a hash of their sizes */
    uint64_t revision;    /* a hash of their times of modification */
    leat__stream_cursor cursor;
} record_stream;

static record_stream *stream_of(leat_reader *reader)
{
    return (record_stream *)reader;
}

static void set_source(const leat__stream_cursor *cursor, leat_sample *sample)
{
    int file =
        cursor->file < cursor->files->n ? cursor->file : cursor->files->n - 1;
    sample->stable = 0;
    sample->from.source = cursor->files->path[file];
    sample->from.record = cursor->record;
    sample->from.key = NULL;
    sample->from.key_size = 0;
}

/* The record's bytes, after a head, at `*place` of the sample's buffer. */
static int copy_record(leat__stream_cursor *cursor,
                       const leat__record_span *span, leat_sample *sample,
                       size_t head, size_t *place)
{
    size_t got;
    if (span->size > cursor->limit.bytes) {
        int status = leat__record_limit_refuse(&cursor->limit, LEAT_EDATA,
                                               span->size, "");
        return leat__stream_cursor_bad_record(
            cursor, cursor->file, cursor->record, span->offset, status);
    }
    int status = leat__stream_cursor_go_to(cursor, span->offset);
    if (status)
        return status;
    unsigned char *buffer = leat_sample_take(sample, head + span->size + 1);
    if (!buffer)
        return LEAT_ENOMEM;
    *place = (size_t)(buffer - (unsigned char *)sample->buffer);
    status = leat__byte_stream_read(&cursor->stream, buffer + head, span->size,
                                    &got);
    if (status || got == span->size)
        return status;
    status = leat_error(LEAT_EFORMAT,
                        "the file ends after %zu of its %llu "
                        "bytes",
                        got, (unsigned long long)span->size);
    return leat__stream_cursor_bad_record(cursor, cursor->file, cursor->record,
                                          span->offset, status);
}

static int call_read(const leat__stream_cursor *cursor, int file,
                     int64_t record, const unsigned char *bytes,
                     const leat__record_span *span, leat_sample *sample)
{
    leat__record_window window = {bytes, span->size, span->offset, true, NULL};
    leat_sample *const out[] = {sample};
    int got;
    int status = cursor->format->ops->read(
        cursor->format, &cursor->begun[file].file, &window, span, out, 1, &got);
    return status ? leat__stream_cursor_bad_record(cursor, file, record,
                                                   span->offset, status)
                  : LEAT_OK;
}

static int give_deferred(leat__stream_cursor *cursor,
                         const leat__record_span *span, leat_sample *sample)
{
    size_t place;
    int status = copy_record(cursor, span, sample, HEAD_BYTES, &place);
    if (status)
        return status;
    const record_head head = {span->offset, span->size, cursor->file};
    memcpy((char *)sample->buffer + place, &head, sizeof(head));
    sample->locator = (leat_locator){cursor->record, place};
    sample->deferred = 1;
    return LEAT_OK;
}

static int give(leat__stream_cursor *cursor, const leat__record_span *span,
                leat_sample *sample)
{
    size_t place;
    set_source(cursor, sample);
    if (cursor->format->defers)
        return give_deferred(cursor, span, sample);
    int status = copy_record(cursor, span, sample, 0, &place);
    if (status)
        return status;
    return call_read(cursor, cursor->file, cursor->record,
                     (unsigned char *)sample->buffer + place, span, sample);
}

static int record_stream_next(leat_reader *reader, leat_sample *const out[],
                              int n, int *got)
{
    leat__stream_cursor *cursor = &stream_of(reader)->cursor;
    int status = leat__stream_cursor_find(cursor, n);
    if (status) {
        set_source(cursor, out[0]);
        return status;
    }
    while (!status && *got < n && cursor->at < cursor->nspans) {
        status = give(cursor, &cursor->spans[cursor->at], out[*got]);
        if (status && status != LEAT_EDATA)
            break;
        *got += !status;
        cursor->at++;
        cursor->record++;
    }
    return status;
}

static int record_stream_materialize(leat_reader *reader,
                                     leat_sample *const out[], int n, int *got)
{
    leat__stream_cursor *cursor = &stream_of(reader)->cursor;
    int status = LEAT_OK;
    while (!status && *got < n) {
        leat_sample *sample = out[*got];
        const unsigned char *place =
            (unsigned char *)sample->buffer + sample->locator.where;
        record_head head;
        memcpy(&head, place, sizeof(head));
        const leat__record_span span = {head.offset, head.size};
        sample->stable = 0;
        sample->from.source = cursor->files->path[head.file];
        sample->from.record = sample->locator.record;
        sample->from.key = NULL;
        status = call_read(cursor, (int)head.file, sample->locator.record,
                           place + HEAD_BYTES, &span, sample);
        *got += !status;
    }
    return status;
}

static int record_stream_skip(leat_reader *reader, int64_t n, int64_t *skipped)
{
    return leat__stream_cursor_skip(&stream_of(reader)->cursor, n, skipped);
}

static int record_stream_fields(leat_reader *reader,
                                const leat_field_spec **out, int *n)
{
    leat__stream_cursor *cursor = &stream_of(reader)->cursor;
    const leat__record_format *format = cursor->format;
    if (format->nspec == 0 && !cursor->is_open && cursor->file == 0) {
        int status = leat__stream_cursor_begin(cursor);
        if (status)
            return status;
    }
    *out = format->spec;
    *n = format->nspec;
    return LEAT_OK;
}

static int record_stream_seek(leat_reader *reader, leat_position position,
                              leat_token *token)
{
    record_stream *stream = stream_of(reader);
    if (token)
        return leat__stream_cursor_seek(&stream->cursor, token);
    if (position.index != 0)
        return leat_error(LEAT_EUNSUPPORTED,
                          "%s: compressed files and pipes are read in order",
                          stream->list.path[0]);
    return leat__stream_cursor_rewind(&stream->cursor);
}

static int record_stream_mark(leat_reader *reader, leat_token *token)
{
    return leat__stream_cursor_mark(&stream_of(reader)->cursor, token);
}

static int record_stream_save(leat_reader *reader, leat_token *token)
{
    const record_stream *stream = stream_of(reader);
    return leat_token_put(token, stream->identity, sizeof(stream->identity));
}

static int record_stream_revision(leat_reader *reader, leat_token *token)
{
    const record_stream *stream = stream_of(reader);
    for (int i = 0; i < stream->list.n; i++)
        if (stream->cursor.begun[i].version.size < 0)
            return leat_error(LEAT_EUNSUPPORTED,
                              "%s: a pipe or device has no identity",
                              stream->list.path[i]);
    return leat_token_put(token, &stream->revision, sizeof(stream->revision));
}

static int record_stream_reads_once(leat_reader *reader)
{
    return !stream_of(reader)->cursor.rereads;
}

static int record_stream_check(leat_reader *reader)
{
    const record_stream *stream = stream_of(reader);
    int status = LEAT_OK;
    for (int i = 0; i < stream->list.n && !status; i++)
        status = leat__stream_cursor_check(&stream->cursor, i);
    return status;
}

static int record_stream_restore(leat_reader *reader, leat_token *token)
{
    record_stream *stream = stream_of(reader);
    uint64_t identity[2];
    int status = leat_token_get(token, identity, sizeof(identity));
    if (status)
        return status;
    if (memcmp(identity, stream->identity, sizeof(identity)) != 0)
        return leat_error(LEAT_EINVAL,
                          "%s: the token is of another number of files than "
                          "%d, or of files of other sizes",
                          stream->list.path[0], stream->list.n);
    return leat__stream_cursor_rewind(&stream->cursor);
}

static void record_stream_cancel(leat_reader *reader)
{
    leat__byte_stream_cancel(&stream_of(reader)->cursor.stream);
}

/* Storage is read where next is called, and decompressed. */
static int record_stream_may_block(leat_reader *reader)
{
    (void)reader;
    return 1;
}

static int64_t record_stream_memory(leat_reader *reader)
{
    return leat__byte_stream_memory(&stream_of(reader)->cursor.stream);
}

static void record_stream_close(leat_reader *reader)
{
    record_stream *stream = stream_of(reader);
    leat__stream_cursor_finish(&stream->cursor);
    leat__record_format_destroy(stream->format);
    leat__file_list_close(&stream->list);
    leat__free(stream);
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
    .can_seek = leat__reader_no,
    .mark = record_stream_mark,
    .save = record_stream_save,
    .restore = record_stream_restore,
    .may_block = record_stream_may_block,
    .memory = record_stream_memory,
    .revision = record_stream_revision,
    .check = record_stream_check,
    .reads_once = record_stream_reads_once,
};

/* Looks at each file: one that is missing is an error before the first is
   read. */
static int check_files(record_stream *stream)
{
    uint64_t hash = 0xcbf29ce484222325u;
    leat__stream_cursor *cursor = &stream->cursor;
    cursor->rereads = true;
    stream->revision = stream->format->revision;
    for (int i = 0; i < stream->list.n; i++) {
        leat__file_version *version = &cursor->begun[i].version;
        int status = leat__byte_source_check(stream->list.path[i], version);
        if (status)
            return status;
        if (version->size >= 0)
            stream->revision =
                leat__file_hash_modified(stream->revision, version->modified);
        else
            cursor->rereads = false;
        hash = (hash ^ (uint64_t)version->size) * 0x100000001b3u;
    }
    stream->identity[0] = (uint64_t)stream->list.n;
    stream->identity[1] = hash;
    return LEAT_OK;
}

int leat__record_stream_open(const leat_open *open, leat__record_format *format,
                             leat__file_list *files, leat_reader **out)
{
    record_stream *stream = leat__alloc_zero(1, sizeof(*stream));
    if (!stream)
        return LEAT_ENOMEM;
    stream->ops = record_stream_ops;
    stream->ops.name = format->ops->name;
    stream->reader.ops = &stream->ops;
    stream->format = format;
    stream->list = *files;
    int status = leat__stream_cursor_init(&stream->cursor, &stream->reader,
                                          format, &stream->list, open);
    if (status) {
        leat__free(stream);
        return status;
    }
    status = check_files(stream);
    if (!status)
        status = leat__file_list_check(&stream->list);
    if (status) {
        leat__stream_cursor_finish(&stream->cursor);
        leat__free(stream);
        return status;
    }
    *files = (leat__file_list){0};
    *out = &stream->reader;
    return LEAT_OK;
}
