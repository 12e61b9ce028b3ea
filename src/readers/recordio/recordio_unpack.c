#include "readers/recordio/recordio_unpack.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/memory.h"
#include "readers/record/record_format.h"
#include "readers/recordio/snappy.h"

#include <stdbool.h>
#include <string.h>
#include <zlib.h>

/* Bytes that are inflated between two looks at whether reading was cancelled.
 */
#define INFLATED_BYTES ((size_t)16 << 20)

void leat__recordio_buffer_finish(leat__recordio_buffer *buffer)
{
    leat__free_pages(buffer->bytes, buffer->capacity);
    *buffer = (leat__recordio_buffer){0};
}

/* Has memory, and room in it for `more` bytes after those that are there. */
static int reserve(leat__recordio_buffer *out, size_t more)
{
    size_t capacity = out->capacity ? out->capacity : (size_t)64 << 10;
    size_t limit = (size_t)out->limit.bytes;
    if (more > limit || out->size > limit - more)
        return leat__record_limit_refuse(&out->limit, LEAT_ELIMIT,
                                         (uint64_t)out->size + more,
                                         " or more when it is decompressed");
    if (out->bytes && out->size + more <= out->capacity)
        return LEAT_OK;
    while (capacity < out->size + more)
        capacity = capacity < limit / 2 ? capacity * 2 : limit;
    unsigned char *bytes =
        leat__resize_pages(out->bytes, out->capacity, capacity);
    if (!bytes)
        return LEAT_ENOMEM;
    out->bytes = bytes;
    out->capacity = capacity;
    return LEAT_OK;
}

static int append(leat__recordio_buffer *out, const unsigned char *bytes,
                  size_t size)
{
    int status = reserve(out, size);
    if (status || size == 0)
        return status;
    memcpy(out->bytes + out->size, bytes, size);
    out->size += size;
    return LEAT_OK;
}

static int append_block(leat__recordio_buffer *out, const unsigned char *bytes,
                        size_t size)
{
    size_t length;
    int status = leat__snappy_length(bytes, size, &length);
    if (!status)
        status = reserve(out, length);
    if (!status)
        status =
            leat__snappy_unpack(bytes, size, out->bytes + out->size, length);
    out->size += status ? 0 : length;
    return status;
}

/* A block with the masked CRC-32C of what it decompresses to. */
static int append_checked(leat__recordio_buffer *out, bool is_packed,
                          const unsigned char *bytes, size_t size,
                          uint32_t checksum)
{
    size_t before = out->size;
    int status =
        is_packed ? append_block(out, bytes, size) : append(out, bytes, size);
    if (status)
        return status;
    uint32_t found = 0;
    if (out->size > before)
        found = leat__crc32c(0, out->bytes + before, out->size - before);
    if (leat__crc32c_mask(found) == checksum)
        return LEAT_OK;
    return leat_error(LEAT_EFORMAT,
                      "the checksum of a block of snappy is %08x, expected "
                      "%08x",
                      leat__crc32c_mask(found), checksum);
}

static int ends_early(void)
{
    return leat_error(LEAT_EFORMAT, "the snappy data of its chunk ends early");
}

static uint32_t big_endian(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 |
           (uint32_t)bytes[2] << 8 | bytes[3];
}

/* snappystream's: a magic, then blocks: whether it is compressed (1 byte), the
   length (2), the checksum (4), all big-endian. */
static int unpack_stream(const unsigned char *bytes, size_t size,
                         leat__recordio_buffer *out)
{
    static const char magic[7] = "snappy";
    enum { BLOCK = 7 };
    if (size < sizeof(magic) || memcmp(bytes, magic, sizeof(magic)) != 0)
        return leat_error(LEAT_EFORMAT,
                          "its chunk does not begin as snappy data");
    for (size_t at = sizeof(magic); at < size;) {
        if (size - at < BLOCK)
            return ends_early();
        const unsigned char *block = bytes + at;
        size_t length = (size_t)block[1] << 8 | block[2];
        if (length > size - at - BLOCK)
            return ends_early();
        int status = append_checked(out, block[0] != 0, block + BLOCK, length,
                                    big_endian(block + 3));
        if (status)
            return status;
        at += BLOCK + length;
    }
    return LEAT_OK;
}

/* The framing format: type (1 byte), length (3), and that many bytes, which
   begin with the checksum (4) of data; all little-endian. */
static int unpack_framing(const unsigned char *bytes, size_t size,
                          leat__recordio_buffer *out)
{
    enum { FRAME = 4, CHECKSUM = 4, PACKED = 0, STORED = 1, SKIPPABLE = 0x80 };
    for (size_t at = 0; at < size;) {
        if (size - at < FRAME)
            return ends_early();
        const unsigned char *frame = bytes + at;
        size_t length = leat__get_u32(frame) >> 8;
        if (length > size - at - FRAME)
            return ends_early();
        at += FRAME + length;
        if (frame[0] >= SKIPPABLE)
            continue;
        if (frame[0] > STORED || length < CHECKSUM)
            return leat_error(LEAT_EFORMAT,
                              "the snappy data of its chunk is damaged");
        int status =
            append_checked(out, frame[0] == PACKED, frame + FRAME + CHECKSUM,
                           length - CHECKSUM, leat__get_u32(frame + FRAME));
        if (status)
            return status;
    }
    return LEAT_OK;
}

static void *allocate(void *context, uInt n, uInt size)
{
    (void)context;
    return leat__alloc_zero(n, size);
}

static void release(void *context, void *memory)
{
    (void)context;
    leat__free(memory);
}

static bool is_cancelled(const leat__recordio_buffer *out)
{
    return out->cancelled &&
           atomic_load_explicit(out->cancelled, memory_order_relaxed);
}

static int unpack_gzip(const unsigned char *bytes, size_t size,
                       leat__recordio_buffer *out)
{
    z_stream z = {.zalloc = allocate, .zfree = release};
    if (inflateInit2(&z, 15 + 16) != Z_OK)
        return leat__error_memory(0);
    z.next_in = (unsigned char *)(uintptr_t)bytes;
    z.avail_in = (unsigned)size;
    int code = Z_OK, status = LEAT_OK;
    while (!status && code == Z_OK) {
        status = is_cancelled(out)
                     ? leat_error(LEAT_ECANCELLED, "reading was cancelled")
                     : reserve(out, 1);
        if (status)
            break;
        size_t room = out->capacity - out->size;
        z.next_out = out->bytes + out->size;
        z.avail_out = (unsigned)(room < INFLATED_BYTES ? room : INFLATED_BYTES);
        code = inflate(&z, Z_NO_FLUSH);
        out->size = (size_t)(z.next_out - out->bytes);
    }
    if (!status && code == Z_MEM_ERROR)
        status = leat__error_memory(0);
    else if (!status && code != Z_STREAM_END)
        status = leat_error(LEAT_EFORMAT,
                            "the gzip data of its chunk is damaged: %s",
                            z.msg ? z.msg : "it ends early");
    inflateEnd(&z);
    return status;
}

int leat__recordio_unpack(leat__recordio_packing packing,
                          const unsigned char *bytes, size_t size,
                          leat__recordio_buffer *out)
{
    out->size = 0;
    switch (packing) {
    case LEAT__RECORDIO_SNAPPY_STREAM:
        return unpack_stream(bytes, size, out);
    case LEAT__RECORDIO_SNAPPY_FRAMING:
        return unpack_framing(bytes, size, out);
    case LEAT__RECORDIO_SNAPPY:
        return append_block(out, bytes, size);
    case LEAT__RECORDIO_GZIP:
        return unpack_gzip(bytes, size, out);
    default:
        return append(out, bytes, size);
    }
}
