#include "readers/recordio/recordio_chunk.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "readers/record/record_format.h"

#include <string.h>
#include <zlib.h>

/* dmlc-core's, of MXNet and XGBoost, has no chunks. */
#define DMLC_MAGIC UINT32_C(0xced7230a)

static uint32_t crc32_ieee(const void *bytes, size_t size)
{
    return (uint32_t)crc32_z(0, bytes, size);
}

static uint32_t crc32_castagnoli(const void *bytes, size_t size)
{
    return leat__crc32c(0, bytes, size);
}

const leat__recordio_dialect leat__recordio_fluid = {
    .name = "PaddlePaddle Fluid's",
    .nrecords_at = 4,
    .checksum_at = 8,
    .compressor_at = 12,
    .stored_at = 16,
    .checksum = crc32_ieee,
    .packing = {LEAT__RECORDIO_PLAIN, LEAT__RECORDIO_SNAPPY_STREAM,
                LEAT__RECORDIO_GZIP, LEAT__RECORDIO_UNKNOWN},
};

const leat__recordio_dialect leat__recordio_go = {
    .name = "PaddlePaddle Go's",
    .nrecords_at = 16,
    .checksum_at = 4,
    .compressor_at = 8,
    .stored_at = 12,
    .checksum = crc32_ieee,
    .packing = {LEAT__RECORDIO_PLAIN, LEAT__RECORDIO_SNAPPY_FRAMING,
                LEAT__RECORDIO_GZIP, LEAT__RECORDIO_UNKNOWN},
};

const leat__recordio_dialect leat__recordio_elasticdl = {
    .name = "ElasticDL's",
    .nrecords_at = 4,
    .checksum_at = 8,
    .compressor_at = 12,
    .stored_at = 16,
    .checksum = crc32_castagnoli,
    .packing = {LEAT__RECORDIO_UNKNOWN, LEAT__RECORDIO_PLAIN,
                LEAT__RECORDIO_SNAPPY, LEAT__RECORDIO_GZIP},
};

static const leat__recordio_dialect *const dialects[] = {
    &leat__recordio_fluid, &leat__recordio_go, &leat__recordio_elasticdl};

#define DIALECTS (int)(sizeof(dialects) / sizeof(dialects[0]))

static void read_header(leat__recordio_header *out,
                        const leat__recordio_dialect *dialect,
                        const unsigned char *bytes)
{
    out->nrecords = leat__get_u32(bytes + dialect->nrecords_at);
    out->checksum = leat__get_u32(bytes + dialect->checksum_at);
    out->compressor = leat__get_u32(bytes + dialect->compressor_at);
    out->stored = leat__get_u32(bytes + dialect->stored_at);
    out->packing = LEAT__RECORDIO_UNKNOWN;
    if (out->compressor < LEAT__RECORDIO_COMPRESSORS)
        out->packing = dialect->packing[out->compressor];
}

static int check_magic(const unsigned char *bytes)
{
    uint32_t magic = leat__get_u32(bytes);
    if (magic == LEAT__RECORDIO_MAGIC)
        return LEAT_OK;
    if (magic == DMLC_MAGIC)
        return leat_error(LEAT_EFORMAT,
                          "this is dmlc's RecordIO, of MXNet and XGBoost, "
                          "expected PaddlePaddle's");
    return leat_error(LEAT_EFORMAT,
                      "not a chunk of RecordIO: it begins with %08x, expected "
                      "%08x",
                      magic, LEAT__RECORDIO_MAGIC);
}

int leat__recordio_parse_header(leat__recordio_header *out,
                                const leat__recordio_dialect *dialect,
                                const unsigned char *bytes)
{
    int status = check_magic(bytes);
    if (status)
        return status;
    read_header(out, dialect, bytes);
    if (out->packing == LEAT__RECORDIO_UNKNOWN)
        return leat_error(LEAT_EFORMAT,
                          "its header is damaged: %s RecordIO has no "
                          "compressor %u",
                          dialect->name, out->compressor);
    return LEAT_OK;
}

/* Of the dialects by whose header more bytes are needed, the least. */
int leat__recordio_find_dialect(const leat__recordio_dialect **out,
                                const unsigned char *bytes, size_t size,
                                bool is_last, uint64_t *needed)
{
    const leat__recordio_dialect *possible = NULL;
    *needed = size < LEAT__RECORDIO_HEADER ? LEAT__RECORDIO_HEADER : 0;
    if (size < LEAT__RECORDIO_HEADER && !is_last)
        return LEAT_AGAIN;
    int status = size < 4 ? LEAT_OK : check_magic(bytes);
    if (status)
        return status;
    if (size < LEAT__RECORDIO_HEADER)
        return leat_error(LEAT_EFORMAT,
                          "ends in the first chunk's header, after %zu bytes",
                          size);
    for (int i = 0; i < DIALECTS; i++) {
        leat__recordio_header header;
        read_header(&header, dialects[i], bytes);
        if (header.packing == LEAT__RECORDIO_UNKNOWN)
            continue;
        if (!possible)
            possible = dialects[i];
        uint64_t whole = (uint64_t)LEAT__RECORDIO_HEADER + header.stored;
        if (whole > size) {
            *needed = !*needed || whole < *needed ? whole : *needed;
        } else if (dialects[i]->checksum(bytes + LEAT__RECORDIO_HEADER,
                                         header.stored) == header.checksum) {
            *out = dialects[i];
            return LEAT_OK;
        }
    }
    if (*needed && !is_last)
        return LEAT_AGAIN;
    if (!possible)
        return leat_error(LEAT_EFORMAT,
                          "the first chunk's header is damaged: it is none of "
                          "PaddlePaddle's or ElasticDL's");
    *out = possible;
    return LEAT_OK;
}
