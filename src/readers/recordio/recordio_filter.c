#include "readers/recordio/recordio_filter.h"
#include "base/error.h"
#include "base/memory.h"
#include "readers/recordio/recordio_unpack.h"

#include <string.h>

typedef struct recordio_filter {
    leat__byte_filter filter;
    leat__byte_stream stream; /* of the file */
    size_t limit;
    const leat__recordio_dialect *dialect; /* NULL: not known yet */
    unsigned char header[LEAT__RECORDIO_HEADER];
    leat__recordio_buffer payload;
    size_t given; /* of header and payload */
} recordio_filter;

static recordio_filter *filter_of(leat__byte_filter *filter)
{
    return (recordio_filter *)filter;
}

/* Nothing is left to give. */
static void empty(recordio_filter *self)
{
    self->payload.size = 0;
    self->given = LEAT__RECORDIO_HEADER;
}

static int filter_open(leat__byte_filter *filter, const char *path,
                       leat__compression compression, leat_reader *reader)
{
    recordio_filter *self = filter_of(filter);
    self->dialect = NULL;
    self->stream.source.reader = reader;
    empty(self);
    return leat__byte_stream_open(&self->stream, path, compression);
}

static void filter_close(leat__byte_filter *filter)
{
    leat__byte_stream_close(&filter_of(filter)->stream);
}

static void filter_cancel(leat__byte_filter *filter)
{
    leat__byte_stream_cancel(&filter_of(filter)->stream);
}

static int bad_chunk(const recordio_filter *self, int status)
{
    return leat__error_context(status, "%s: chunk at byte %lld",
                               self->stream.source.path,
                               (long long)self->stream.offset);
}

static int find_dialect(recordio_filter *self)
{
    leat__byte_stream *stream = &self->stream;
    uint64_t needed;
    int status;
    bool is_last = stream->ended;
    while ((status = leat__recordio_find_dialect(&self->dialect, stream->next,
                                                 stream->left, is_last,
                                                 &needed)) == LEAT_AGAIN) {
        is_last = needed > self->limit + LEAT__RECORDIO_HEADER;
        if (is_last)
            continue;
        status = leat__byte_stream_need(stream, (size_t)needed);
        if (status)
            return status;
        is_last = stream->ended;
    }
    return status ? bad_chunk(self, status) : LEAT_OK;
}

static void put_u32(unsigned char *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(value >> 8 * i);
}

static void write_header(recordio_filter *self, uint32_t nrecords,
                         uint32_t checksum, uint32_t compressor)
{
    const leat__recordio_dialect *fluid = &leat__recordio_fluid;
    put_u32(self->header, LEAT__RECORDIO_MAGIC);
    put_u32(self->header + fluid->nrecords_at, nrecords);
    put_u32(self->header + fluid->checksum_at, checksum);
    put_u32(self->header + fluid->compressor_at, compressor);
    put_u32(self->header + fluid->stored_at, (uint32_t)self->payload.size);
    self->given = 0;
}

/* The chunk is in the window. */
static int unpack_chunk(recordio_filter *self,
                        const leat__recordio_header *header)
{
    const unsigned char *stored = self->stream.next + LEAT__RECORDIO_HEADER;
    uint32_t found = self->dialect->checksum(stored, header->stored);
    uint32_t compressor = 0, nrecords = header->nrecords;
    self->payload.size = 0;
    if (found != header->checksum) {
        compressor = LEAT__RECORDIO_BAD_CHECKSUM;
        nrecords = found;
    } else {
        int status = leat__recordio_unpack(header->packing, stored,
                                           header->stored, &self->payload);
        if (status && status != LEAT_EFORMAT)
            return bad_chunk(self, status);
        if (status) {
            compressor = LEAT__RECORDIO_BAD_DATA;
            self->payload.size = 0;
        }
    }
    write_header(self, nrecords, header->checksum, compressor);
    leat__byte_stream_consume(&self->stream,
                              LEAT__RECORDIO_HEADER + header->stored);
    return LEAT_OK;
}

static int cut_off(const recordio_filter *self, uint64_t whole)
{
    int status =
        leat_error(LEAT_EFORMAT, "the file is cut: %zu bytes are left of %llu",
                   self->stream.left, (unsigned long long)whole);
    return bad_chunk(self, status);
}

/* Has a chunk to give, unless the file has ended. */
static int next_chunk(recordio_filter *self)
{
    leat__recordio_header header;
    leat__byte_stream *stream = &self->stream;
    int status = leat__byte_stream_need(stream, LEAT__RECORDIO_HEADER);
    if (status || stream->left == 0)
        return status;
    if (!self->dialect)
        status = find_dialect(self);
    if (status)
        return status;
    if (stream->left < LEAT__RECORDIO_HEADER)
        return cut_off(self, LEAT__RECORDIO_HEADER);
    status = leat__recordio_parse_header(&header, self->dialect, stream->next);
    if (status)
        return bad_chunk(self, status);
    uint64_t whole = (uint64_t)LEAT__RECORDIO_HEADER + header.stored;
    if (header.stored > self->limit) {
        status = leat_error(LEAT_EFORMAT,
                            "it has %llu bytes, and max_record is %zu: give "
                            "another max_record= to read it",
                            (unsigned long long)header.stored, self->limit);
        return bad_chunk(self, status);
    }
    status = leat__byte_stream_need(stream, (size_t)whole);
    if (status)
        return status;
    return stream->left < whole ? cut_off(self, whole)
                                : unpack_chunk(self, &header);
}

static int filter_read(leat__byte_filter *filter, void *out, size_t n,
                       size_t *got)
{
    recordio_filter *self = filter_of(filter);
    *got = 0;
    if (self->given == LEAT__RECORDIO_HEADER + self->payload.size) {
        int status = next_chunk(self);
        if (status || self->given == LEAT__RECORDIO_HEADER + self->payload.size)
            return status;
    }
    const unsigned char *from;
    size_t left;
    if (self->given < LEAT__RECORDIO_HEADER) {
        from = self->header + self->given;
        left = LEAT__RECORDIO_HEADER - self->given;
    } else {
        from = self->payload.bytes + (self->given - LEAT__RECORDIO_HEADER);
        left = LEAT__RECORDIO_HEADER + self->payload.size - self->given;
    }
    *got = n < left ? n : left;
    memcpy(out, from, *got);
    self->given += *got;
    return LEAT_OK;
}

int leat__recordio_filter_create(leat__byte_filter **out, size_t limit)
{
    recordio_filter *self = leat__alloc_zero(1, sizeof(*self));
    if (!self)
        return LEAT_ENOMEM;
    self->filter = (leat__byte_filter){filter_open, filter_read, filter_close,
                                       filter_cancel};
    self->limit = limit;
    self->payload.limit = limit;
    leat__byte_stream_init(&self->stream, limit + LEAT__RECORDIO_HEADER, NULL);
    empty(self);
    *out = &self->filter;
    return LEAT_OK;
}

void leat__recordio_filter_destroy(leat__byte_filter *filter)
{
    if (!filter)
        return;
    recordio_filter *self = filter_of(filter);
    leat__byte_stream_finish(&self->stream);
    leat__recordio_buffer_finish(&self->payload);
    leat__free(self);
}
