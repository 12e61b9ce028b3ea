#include "readers/recordio/recordio_filter.h"
#include "base/error.h"
#include "base/memory.h"
#include "readers/recordio/recordio_unpack.h"

#include <string.h>

/* Memory of a payload that is not worth freeing. */
#define PAYLOAD_KEPT ((size_t)256 << 10)

typedef struct recordio_filter {
    leat__byte_filter filter;
    leat__byte_stream stream; /* of the file */
    leat__record_limit limit;
    const leat__recordio_dialect *likely;  /* or NULL */
    const leat__recordio_dialect *dialect; /* NULL: not known yet */
    unsigned char header[LEAT__RECORDIO_HEADER];
    leat__recordio_buffer payload;
    atomic_size_t payload_memory;
    size_t given; /* of header and payload */
} recordio_filter;

static recordio_filter *filter_of(leat__byte_filter *filter)
{
    return (recordio_filter *)filter;
}

/* Nothing is left to give. */
static void empty(recordio_filter *io)
{
    io->payload.size = 0;
    io->given = LEAT__RECORDIO_HEADER;
}

static int filter_open(leat__byte_filter *filter, const char *path,
                       leat__compression compression, leat_reader *reader)
{
    recordio_filter *io = filter_of(filter);
    io->dialect = NULL;
    io->stream.source.reader = reader;
    empty(io);
    return leat__byte_stream_open(&io->stream, path, compression);
}

/* Frees what a rare long chunk took, once another one has been given, or the
 * file has ended. */
static void trim_payload(recordio_filter *io)
{
    leat__recordio_buffer *payload = &io->payload;
    if (payload->capacity <= PAYLOAD_KEPT ||
        payload->size > payload->capacity / 8)
        return;
    leat__free_pages(payload->bytes, payload->capacity);
    payload->bytes = NULL;
    payload->capacity = 0;
    atomic_store_explicit(&io->payload_memory, 0, memory_order_relaxed);
}

static void filter_close(leat__byte_filter *filter)
{
    recordio_filter *io = filter_of(filter);
    leat__byte_stream_close(&io->stream);
    empty(io);
    trim_payload(io);
}

static leat__file_version filter_version(const leat__byte_filter *filter)
{
    return leat__byte_stream_version(
        &((const recordio_filter *)filter)->stream);
}

static void filter_cancel(leat__byte_filter *filter)
{
    leat__byte_stream_cancel(&filter_of(filter)->stream);
}

static int64_t filter_memory(const leat__byte_filter *filter)
{
    const recordio_filter *io = (const recordio_filter *)filter;
    return leat__byte_stream_memory(&io->stream) +
           (int64_t)atomic_load_explicit(&io->payload_memory,
                                         memory_order_relaxed);
}

static int bad_chunk(const recordio_filter *io, int status)
{
    return leat__error_context(status, "%s: chunk at byte %lld",
                               io->stream.source.path,
                               (long long)io->stream.offset);
}

/* By bytes that may be held, however many more are. */
static int find_dialect(recordio_filter *io)
{
    const uint64_t most = io->limit.bytes + LEAT__RECORDIO_HEADER;
    leat__byte_stream *stream = &io->stream;
    leat__recordio_probe probe;
    size_t seen = 0;
    int status = leat__recordio_probe_begin(&probe, io->likely, stream->next,
                                            stream->left);
    if (status)
        return bad_chunk(io, status);
    for (;;) {
        size_t end = stream->left < most ? stream->left : (size_t)most;
        if (leat__recordio_probe_look(&probe, stream->next + seen, end - seen))
            break;
        seen = end;
        if (stream->ended || probe.needed > most)
            break;
        status = leat__byte_stream_need(stream, (size_t)probe.needed);
        if (status)
            return status;
    }
    io->dialect = probe.dialect;
    return LEAT_OK;
}

static void put_u32(unsigned char *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(value >> 8 * i);
}

static void write_header(recordio_filter *io, uint32_t nrecords,
                         uint32_t checksum, uint32_t compressor)
{
    const leat__recordio_dialect *fluid = &leat__recordio_fluid;
    put_u32(io->header, LEAT__RECORDIO_MAGIC);
    put_u32(io->header + fluid->nrecords_at, nrecords);
    put_u32(io->header + fluid->checksum_at, checksum);
    put_u32(io->header + fluid->compressor_at, compressor);
    put_u32(io->header + fluid->stored_at, (uint32_t)io->payload.size);
    io->given = 0;
}

/* The chunk is in the window. */
static int unpack_chunk(recordio_filter *io,
                        const leat__recordio_header *header)
{
    const unsigned char *stored = io->stream.next + LEAT__RECORDIO_HEADER;
    uint32_t found = io->dialect->checksum(0, stored, header->stored);
    uint32_t compressor = 0, nrecords = header->nrecords;
    trim_payload(io);
    io->payload.size = 0;
    if (found != header->checksum) {
        compressor = LEAT__RECORDIO_BAD_CHECKSUM;
        nrecords = found;
    } else {
        int status = leat__recordio_unpack(header->packing, stored,
                                           header->stored, &io->payload);
        atomic_store_explicit(&io->payload_memory, io->payload.capacity,
                              memory_order_relaxed);
        if (status && status != LEAT_EFORMAT) {
            empty(io); /* the next read is of this chunk again */
            return bad_chunk(io, status);
        }
        if (status) {
            compressor = LEAT__RECORDIO_BAD_DATA;
            io->payload.size = 0;
        }
    }
    write_header(io, nrecords, header->checksum, compressor);
    leat__byte_stream_consume(&io->stream,
                              LEAT__RECORDIO_HEADER + header->stored);
    return LEAT_OK;
}

static int cut_off(const recordio_filter *io, uint64_t whole)
{
    int status =
        leat_error(LEAT_EFORMAT, "the file is cut: %zu bytes are left of %llu",
                   io->stream.left, (unsigned long long)whole);
    return bad_chunk(io, status);
}

/* Has a chunk to give, unless the file has ended. */
static int next_chunk(recordio_filter *io)
{
    leat__recordio_header header;
    leat__byte_stream *stream = &io->stream;
    int status = leat__byte_source_check_running(&stream->source);
    if (!status)
        status = leat__byte_stream_need(stream, LEAT__RECORDIO_HEADER);
    if (status || stream->left == 0)
        return status;
    if (!io->dialect)
        status = find_dialect(io);
    if (status)
        return status;
    if (stream->left < LEAT__RECORDIO_HEADER)
        return cut_off(io, LEAT__RECORDIO_HEADER);
    status = leat__recordio_parse_header(&header, io->dialect, stream->next);
    if (status)
        return bad_chunk(io, status);
    uint64_t whole = (uint64_t)LEAT__RECORDIO_HEADER + header.stored;
    if (header.stored > io->limit.bytes) {
        status = leat__record_limit_refuse(&io->limit, LEAT_EFORMAT,
                                           header.stored, "");
        return bad_chunk(io, status);
    }
    status = leat__byte_stream_need(stream, (size_t)whole);
    if (status)
        return status;
    return stream->left < whole ? cut_off(io, whole)
                                : unpack_chunk(io, &header);
}

static int filter_read(leat__byte_filter *filter, void *out, size_t n,
                       size_t *got)
{
    recordio_filter *io = filter_of(filter);
    *got = 0;
    if (io->given == LEAT__RECORDIO_HEADER + io->payload.size) {
        int status = next_chunk(io);
        if (status || io->given == LEAT__RECORDIO_HEADER + io->payload.size)
            return status;
    }
    const unsigned char *from;
    size_t left;
    if (io->given < LEAT__RECORDIO_HEADER) {
        from = io->header + io->given;
        left = LEAT__RECORDIO_HEADER - io->given;
    } else {
        from = io->payload.bytes + (io->given - LEAT__RECORDIO_HEADER);
        left = LEAT__RECORDIO_HEADER + io->payload.size - io->given;
    }
    *got = n < left ? n : left;
    memcpy(out, from, *got);
    io->given += *got;
    return LEAT_OK;
}

int leat__recordio_filter_create(leat__byte_filter **out,
                                 const leat__recordio_dialect *likely,
                                 const leat__record_limit *limit)
{
    recordio_filter *io = leat__alloc_zero(1, sizeof(*io));
    if (!io)
        return LEAT_ENOMEM;
    io->filter =
        (leat__byte_filter){filter_open,    filter_read,   filter_close,
                            filter_version, filter_cancel, filter_memory};
    io->likely = likely;
    io->limit = io->payload.limit = *limit;
    io->payload.cancelled = &io->stream.source.cancelled;
    atomic_init(&io->payload_memory, 0);
    leat__byte_stream_init(&io->stream, limit->bytes + LEAT__RECORDIO_HEADER,
                           NULL);
    empty(io);
    *out = &io->filter;
    return LEAT_OK;
}

void leat__recordio_filter_destroy(leat__byte_filter *filter)
{
    if (!filter)
        return;
    recordio_filter *io = filter_of(filter);
    leat__byte_stream_finish(&io->stream);
    leat__recordio_buffer_finish(&io->payload);
    leat__free(io);
}
