/*
 * Plain files are mapped: begin notes where their chunks are, and a chunk's
 * checksum is looked at by the first thread that reads a record of it, which
 * several may do at once. What is compressed, or no file, is a stream, whose
 * filter gives plain chunks that have been looked at.
 */
#include "readers/recordio/recordio.h"
#include "base/error.h"
#include "base/memory.h"
#include "pipeline/opening.h"
#include "readers/record/record_pipeline.h"
#include "readers/record/record_reader.h"
#include "readers/recordio/recordio_chunk.h"
#include "readers/recordio/recordio_filter.h"
#include "readers/recordio/recordio_table.h"

#include <string.h>

typedef struct recordio_format {
    leat__record_format format;
    const leat__recordio_dialect *dialect; /* of mapped files */
    leat__recordio_table *file;            /* of a mapped reader; else NULL */
    int nfiles;
    int64_t most; /* bytes of these; 0: no limit */
} recordio_format;

/* Of a walk. */
enum {
    CHUNK_END,   /* offset of its end; 0: at a header */
    RECORDS_LEFT /* in it */
};

static int parse_header(const recordio_format *io,
                        leat__recordio_header *header,
                        const unsigned char *bytes)
{
    return leat__recordio_parse_header(header, io->dialect, bytes);
}

/* Of mapped files: up to a header that is damaged, of which the walk has an
   error. */
static int recordio_begin(leat__record_format *format,
                          const leat__record_window *window, uint64_t size,
                          leat__record_file *out)
{
    recordio_format *io = (recordio_format *)format;
    if (!io->file)
        return LEAT_OK;
    leat__recordio_table *table = &io->file[out->number];
    int64_t *memory = &format->memory;
    leat__recordio_header header;
    int status = LEAT_OK;
    uint64_t at = 0;
    while (!status && size - at >= LEAT__RECORDIO_HEADER &&
           !parse_header(io, &header, window->bytes + at)) {
        status = leat__recordio_table_add(table, at, memory, io->most);
        at += LEAT__RECORDIO_HEADER;
        at += header.stored < size - at ? header.stored : size - at;
    }
    if (!status)
        status = leat__recordio_table_add(table, at, memory, io->most);
    return status ? status : leat__recordio_table_end(table);
}

/* A chunk that the filter refused. */
static int bad_chunk(const unsigned char *bytes)
{
    const leat__recordio_dialect *fluid = &leat__recordio_fluid;
    if (leat__get_u32(bytes + fluid->compressor_at) == LEAT__RECORDIO_BAD_DATA)
        return leat_error(LEAT_EDATA, "its chunk cannot be decompressed");
    return leat_error(LEAT_EDATA,
                      "the checksum of its chunk is %08x, expected %08x",
                      leat__get_u32(bytes + fluid->nrecords_at),
                      leat__get_u32(bytes + fluid->checksum_at));
}

static bool is_refused(const recordio_format *io, const unsigned char *bytes)
{
    return !io->file && leat__get_u32(bytes + io->dialect->compressor_at) >=
                            LEAT__RECORDIO_BAD_DATA;
}

/* Goes into the chunk at walk->offset; past one that the filter refused. */
static int enter_chunk(const recordio_format *io,
                       const leat__record_window *window,
                       leat__record_walk *walk)
{
    const unsigned char *bytes =
        window->bytes + (walk->offset - window->offset);
    uint64_t left = window->offset + window->size - walk->offset;
    leat__recordio_header header;
    if (left == 0 && window->is_last)
        return LEAT_END;
    if (left < LEAT__RECORDIO_HEADER && !window->is_last) {
        walk->needed = LEAT__RECORDIO_HEADER;
        return LEAT_AGAIN;
    }
    if (left < LEAT__RECORDIO_HEADER)
        return leat_error(LEAT_EFORMAT,
                          "the file is cut: %llu bytes are left of a chunk's "
                          "header of %d",
                          (unsigned long long)left, LEAT__RECORDIO_HEADER);
    if (is_refused(io, bytes)) {
        walk->offset += LEAT__RECORDIO_HEADER;
        walk->record++;
        return bad_chunk(bytes);
    }
    int status = parse_header(io, &header, bytes);
    if (status)
        return status;
    if (header.packing != LEAT__RECORDIO_PLAIN)
        return leat_error(LEAT_EFORMAT,
                          "the chunk is compressed, and those before it are "
                          "not: read the file through a pipe");
    left -= LEAT__RECORDIO_HEADER;
    walk->needed = (size_t)LEAT__RECORDIO_HEADER + header.stored;
    if (io->file && header.stored > left && !window->is_last)
        return LEAT_AGAIN;
    if (io->file && header.stored > left)
        return leat_error(LEAT_EFORMAT,
                          "the file is cut: %llu bytes are left of a chunk of "
                          "%u",
                          (unsigned long long)left, header.stored);
    walk->offset += LEAT__RECORDIO_HEADER;
    walk->own[CHUNK_END] = walk->offset + header.stored;
    walk->own[RECORDS_LEFT] = header.nrecords;
    return LEAT_OK;
}

/* The chunk's records do not fill it; the walk goes on after it. */
static int leave_bad_chunk(leat__record_walk *walk, leat__record_span *out)
{
    uint64_t end = walk->own[CHUNK_END], left = walk->own[RECORDS_LEFT];
    uint64_t at = walk->offset;
    walk->offset = end;
    walk->own[CHUNK_END] = 0;
    walk->record++;
    /* What `read` refuses as well: no length fits there. */
    out->offset = end - (LEAT__RECORDIO_LENGTH - 1);
    if (left == 0)
        return leat_error(LEAT_EDATA,
                          "its chunk has %llu bytes after its last record",
                          (unsigned long long)(end - at));
    return leat_error(LEAT_EDATA,
                      "its chunk's header promises %llu records more than the "
                      "%llu bytes after them hold",
                      (unsigned long long)left, (unsigned long long)(end - at));
}

/*
 * The record at walk->offset, in a chunk. LEAT_END: the chunk ends there.
 * LEAT_ESTATE: its records do not fill it.
 */
static int find_record(const leat__record_window *window,
                       leat__record_walk *walk, leat__record_span *out)
{
    uint64_t room = walk->own[CHUNK_END] - walk->offset;
    if (room == 0 && walk->own[RECORDS_LEFT] == 0)
        return LEAT_END;
    if (room < LEAT__RECORDIO_LENGTH || walk->own[RECORDS_LEFT] == 0)
        return LEAT_ESTATE;
    /* A record that a stream has yet to read may end beyond the window. */
    uint64_t end = window->offset + window->size;
    if (walk->offset > end || end - walk->offset < LEAT__RECORDIO_LENGTH) {
        walk->needed = LEAT__RECORDIO_LENGTH;
        return window->is_last ? LEAT_ESTATE : LEAT_AGAIN;
    }
    uint64_t length =
        leat__get_u32(window->bytes + (walk->offset - window->offset));
    if (length > room - LEAT__RECORDIO_LENGTH)
        return LEAT_ESTATE;
    *out = (leat__record_span){walk->offset, LEAT__RECORDIO_LENGTH + length};
    walk->offset += out->size;
    walk->own[RECORDS_LEFT]--;
    walk->record++;
    return LEAT_OK;
}

static int recordio_walk(const leat__record_format *format,
                         const leat__record_file *file,
                         const leat__record_window *window,
                         leat__record_walk *walk, leat__record_span out[],
                         int n, int *got)
{
    const recordio_format *io = (const recordio_format *)format;
    int status = LEAT_OK, found = 0;
    (void)file;
    while (!status && found < n) {
        if (walk->own[CHUNK_END] == 0) {
            if (found > 0)
                break;
            out[0].offset = walk->offset;
            status = enter_chunk(io, window, walk);
            continue;
        }
        status = find_record(window, walk, &out[found]);
        if (status == LEAT_END) {
            walk->own[CHUNK_END] = 0;
            status = LEAT_OK;
        } else if (status == LEAT_OK) {
            found++;
        } else if (status == LEAT_ESTATE && found == 0) {
            status = leave_bad_chunk(walk, &out[0]);
        }
    }
    *got = found;
    return found > 0 ? LEAT_OK : status;
}

/* Looks at the checksum of a chunk, whose header is at `begin`, once. */
static int check_chunk(const recordio_format *io,
                       const leat__record_window *window, uint64_t begin,
                       uint64_t size, atomic_uchar *state)
{
    leat__recordio_header header;
    const unsigned char *bytes = window->bytes + begin;
    int known = atomic_load_explicit(state, memory_order_relaxed);
    if (parse_header(io, &header, bytes) || header.stored != size)
        return leat_error(LEAT_EDATA, "the header of its chunk has changed");
    if (known == LEAT__RECORDIO_CHUNK_UNKNOWN) {
        known = io->dialect->checksum(0, bytes + LEAT__RECORDIO_HEADER,
                                      header.stored) == header.checksum
                    ? LEAT__RECORDIO_CHUNK_GOOD
                    : LEAT__RECORDIO_CHUNK_BAD;
        atomic_store_explicit(state, (unsigned char)known,
                              memory_order_relaxed);
    }
    if (known == LEAT__RECORDIO_CHUNK_GOOD)
        return LEAT_OK;
    return leat_error(LEAT_EDATA,
                      "the checksum of its chunk, at byte %llu, is not the "
                      "%08x of the chunk's header",
                      (unsigned long long)begin, header.checksum);
}

/* Of a record at `at` of a mapped file: *room bytes up to its chunk's end. */
static int check_record(const recordio_format *io, int64_t number,
                        const leat__record_window *window, uint64_t at,
                        uint64_t *room)
{
    leat__recordio_table *file = &io->file[number];
    if (file->n == 0)
        return leat_error(LEAT_EDATA, "it is beyond the end of the file");
    int64_t chunk = leat__recordio_table_find(file, at);
    uint64_t begin = file->offset[chunk], end = file->offset[chunk + 1];
    uint64_t from = begin + LEAT__RECORDIO_HEADER;
    if (at < from || at > end || end - at < LEAT__RECORDIO_LENGTH)
        return leat_error(LEAT_EDATA,
                          "its chunk's records do not fill the chunk");
    *room = end - at;
    atomic_uchar *state = &file->state[chunk];
    return atomic_load_explicit(state, memory_order_relaxed) ==
                   LEAT__RECORDIO_CHUNK_GOOD
               ? LEAT_OK
               : check_chunk(io, window, begin, end - from, state);
}

static inline int read_record(const recordio_format *io,
                              const leat__record_file *file,
                              const leat__record_window *window,
                              const leat__record_span *span,
                              leat_sample *sample)
{
    uint64_t at = span->offset - window->offset;
    uint64_t room = window->size - at;
    int status = LEAT_OK;
    if (io->file)
        status = check_record(io, file->number, window, at, &room);
    if (status)
        return status;
    const unsigned char *bytes = window->bytes + at;
    uint64_t length = leat__get_u32(bytes);
    if (length > room - LEAT__RECORDIO_LENGTH)
        return leat_error(LEAT_EDATA,
                          "its length is %llu, and its chunk has %llu bytes "
                          "more",
                          (unsigned long long)length,
                          (unsigned long long)room - LEAT__RECORDIO_LENGTH);
    return leat__record_append_bytes(sample, bytes + LEAT__RECORDIO_LENGTH,
                                     (size_t)length);
}

static int recordio_read(const leat__record_format *format,
                         const leat__record_file *file,
                         leat__record_window *window,
                         const leat__record_span span[],
                         leat_sample *const out[], int n, int *got)
{
    const recordio_format *io = (const recordio_format *)format;
    int status = LEAT_OK;
    for (*got = 0; !status && *got < n; *got += !status)
        status = read_record(io, file, window, &span[*got], out[*got]);
    return status;
}

/* Counts the records of the chunk before the one at walk->offset. */
static int recordio_resume(const leat__record_format *format,
                           const leat__record_file *file,
                           const leat__record_window *window,
                           leat__record_walk *walk)
{
    const recordio_format *io = (const recordio_format *)format;
    leat__recordio_table *chunks = &io->file[file->number];
    uint64_t wanted = walk->offset;
    int64_t record = walk->record;
    leat__record_span span;
    if (chunks->n == 0)
        return LEAT_OK;
    walk->offset = chunks->offset[leat__recordio_table_find(chunks, wanted)];
    int status = enter_chunk(io, window, walk);
    while (!status && walk->offset < wanted)
        status = find_record(window, walk, &span);
    walk->record = record;
    return status == LEAT_ESTATE || status == LEAT_END ? LEAT_OK : status;
}

static void recordio_destroy(leat__record_format *format)
{
    recordio_format *io = (recordio_format *)format;
    for (int i = 0; i < io->nfiles; i++)
        leat__recordio_table_finish(&io->file[i]);
    leat__free(io->file);
    leat__recordio_filter_destroy(format->filter);
    leat__free(io);
}

static const leat__record_format_ops recordio_ops = {
    .name = "recordio",
    .begin = recordio_begin,
    .walk = recordio_walk,
    .read = recordio_read,
    .resume = recordio_resume,
    .destroy = recordio_destroy,
};

/* Opens a file that can be mapped, *is_plain, and has its first header. */
static int open_plain(leat__byte_stream *stream, const char *path,
                      leat__compression compression, bool *is_plain)
{
    int status = leat__byte_stream_probe(path, compression, is_plain);
    if (status || !*is_plain)
        return status;
    status = leat__byte_stream_open(stream, path, LEAT__COMPRESSION_NONE);
    return status ? status
                  : leat__byte_stream_need(stream, LEAT__RECORDIO_HEADER);
}

/* The dialect, *is_sure, of an open file. */
static int find_dialect(recordio_format *io, leat__byte_stream *stream,
                        bool *is_sure)
{
    const char *path = stream->source.path;
    leat__recordio_probe probe;
    int status =
        leat__recordio_probe_begin(&probe, NULL, stream->next, stream->left);
    if (status)
        return leat__error_context(status, "%s", path);
    while (!status && stream->left > 0 &&
           !leat__recordio_probe_look(&probe, stream->next, stream->left)) {
        leat__byte_stream_consume(stream, stream->left);
        status = leat__opening_check(path);
        if (!status)
            status = leat__byte_stream_need(stream, 1);
    }
    if (status)
        return status;
    *is_sure = probe.is_sure;
    if (*is_sure || !io->dialect)
        io->dialect = probe.dialect;
    return LEAT_OK;
}

/* Whether an open file's first chunk is compressed. */
static int probe_chunk(const recordio_format *io, leat__byte_stream *stream,
                       bool *is_packed)
{
    leat__recordio_header header;
    *is_packed = false;
    if (stream->left < LEAT__RECORDIO_HEADER)
        return LEAT_OK;
    int status = parse_header(io, &header, stream->next);
    if (status)
        return leat__error_context(status, "%s", stream->source.path);
    *is_packed = header.packing != LEAT__RECORDIO_PLAIN;
    return LEAT_OK;
}

/* Whether a file is compressed, in any way, or cannot be mapped. The dialect is
   that of the first file that is sure of its own, or else the first file's. */
static int probe_files(recordio_format *io, leat__compression compression,
                       const leat__file_list *files, bool *is_stream)
{
    leat__byte_stream stream;
    bool is_plain = true, is_sure = false, is_packed = false;
    int status = LEAT_OK;
    leat__byte_stream_init(&stream, LEAT__RECORDIO_HEADER, NULL);
    for (int i = 0; !status && is_plain && !is_sure && i < files->n; i++) {
        status = open_plain(&stream, files->path[i], compression, &is_plain);
        if (!status && is_plain && stream.left > 0)
            status = find_dialect(io, &stream, &is_sure);
    }
    for (int i = 0; !status && is_plain && !is_packed && i < files->n; i++) {
        status = open_plain(&stream, files->path[i], compression, &is_plain);
        if (!status && is_plain)
            status = probe_chunk(io, &stream, &is_packed);
    }
    leat__byte_stream_finish(&stream);
    *is_stream = !is_plain || is_packed;
    return status;
}

/* Files are mapped where none is compressed, in any way. */
static int choose_form(recordio_format *io, const leat_open *open,
                       const leat__file_list *files)
{
    leat__compression compression =
        (leat__compression)leat_args_number(open->args, "compression");
    leat__record_limit limit = leat__record_limit_of(open);
    bool is_stream;
    int status = probe_files(io, compression, files, &is_stream);
    if (status)
        return status;
    const leat__recordio_dialect *likely = io->dialect;
    if (is_stream || !io->dialect)
        io->dialect = &leat__recordio_fluid;
    if (is_stream)
        return leat__recordio_filter_create(&io->format.filter, likely, &limit);
    io->format.defers = true;
    io->file = leat__alloc_zero((size_t)files->n, sizeof(*io->file));
    io->nfiles = io->file ? files->n : 0;
    io->most = open->max_memory;
    return io->file ? LEAT_OK : LEAT_ENOMEM;
}

static int recordio_open(const leat_open *open, leat_reader **out)
{
    leat__file_list files = {0};
    recordio_format *io = leat__alloc_zero(1, sizeof(*io));
    if (!io)
        return LEAT_ENOMEM;
    io->format.ops = &recordio_ops;
    io->format.nspec = 1;
    io->format.spec[0] = (leat_field_spec){
        .name = "record", .dtype = LEAT_BYTES, .ndim = 1, .shape = {-1}};
    int status = leat__file_list_open(&files, open);
    if (!status)
        status = choose_form(io, open, &files);
    if (!status && io->format.filter)
        status = leat__record_stream_open(open, &io->format, &files, out);
    else if (!status)
        return leat__record_reader_open_files(open, &io->format, &files, out);
    leat__file_list_close(&files);
    if (status)
        recordio_destroy(&io->format);
    return status;
}

static const leat_argument recordio_arguments[] = {
    LEAT__RECORD_ARGUMENTS,
    {0},
};

const leat_reader_type leat__recordio_reader_type = {
    .size = sizeof(leat_reader_type),
    .name = "recordio",
    .help = "PaddlePaddle's RecordIO: the bytes of each record",
    .arguments = recordio_arguments,
    .argument_size = sizeof(leat_argument),
    .open = recordio_open,
};

int leat_pipeline_recordio(leat_pipeline **out, const char *const path[], int n,
                           const leat_file_options *options)
{
    return leat__record_pipeline(out, &leat__recordio_reader_type, path, n, "",
                                 options);
}
