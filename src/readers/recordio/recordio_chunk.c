#include "readers/recordio/recordio_chunk.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "readers/record/record_format.h"

#include <string.h>
#include <zlib.h>

/* dmlc-core's, of MXNet and XGBoost, has no chunks. */
#define DMLC_MAGIC UINT32_C(0xced7230a)

static uint32_t crc32_ieee(uint32_t before, const void *bytes, size_t size)
{
    return (uint32_t)crc32_z(before, bytes, size);
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
    .checksum = leat__crc32c,
    .packing = {LEAT__RECORDIO_UNKNOWN, LEAT__RECORDIO_PLAIN,
                LEAT__RECORDIO_SNAPPY, LEAT__RECORDIO_GZIP},
};

static const leat__recordio_dialect *const dialects[LEAT__RECORDIO_DIALECTS] = {
    &leat__recordio_fluid, &leat__recordio_go, &leat__recordio_elasticdl};

/* Chunks of a file whose checksums are looked at to find its dialect. */
enum { CHUNKS_MAX = 16 };

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

/* The header of a trial's chunk is complete. */
static void begin_chunk(leat__recordio_trial *trial,
                        const leat__recordio_dialect *dialect)
{
    read_header(&trial->header, dialect, trial->bytes);
    trial->is_refuted = leat__get_u32(trial->bytes) != LEAT__RECORDIO_MAGIC ||
                        trial->header.packing == LEAT__RECORDIO_UNKNOWN;
    trial->checksum = 0;
}

static uint64_t chunk_size(const leat__recordio_trial *trial)
{
    return trial->at < LEAT__RECORDIO_HEADER
               ? LEAT__RECORDIO_HEADER
               : (uint64_t)LEAT__RECORDIO_HEADER + trial->header.stored;
}

/* Whether the checksum of a chunk that ends in these bytes is right. That of no
   bytes is the same in all dialects. */
static bool try_bytes(leat__recordio_trial *trial,
                      const leat__recordio_dialect *dialect,
                      const unsigned char *bytes, size_t n)
{
    while (!trial->is_refuted && trial->chunks < CHUNKS_MAX) {
        bool is_header = trial->at < LEAT__RECORDIO_HEADER;
        uint64_t left = chunk_size(trial) - trial->at;
        size_t more = n < left ? n : (size_t)left;
        if (is_header)
            memcpy(trial->bytes + trial->at, bytes, more);
        else
            trial->checksum = dialect->checksum(trial->checksum, bytes, more);
        trial->at += more;
        bytes += more;
        n -= more;
        if (more < left)
            return false;
        if (is_header) {
            begin_chunk(trial, dialect);
        } else if (trial->header.stored > 0 &&
                   trial->checksum == trial->header.checksum) {
            return true;
        } else {
            trial->begin += trial->at;
            trial->at = 0;
            trial->chunks++;
        }
    }
    return false;
}

/* Whether no more bytes need be looked at: one dialect is left, or none, or no
   chunk told them apart. */
static bool settle(leat__recordio_probe *probe)
{
    int left = 0, last = 0;
    probe->needed = UINT64_MAX;
    for (int i = 0; i < LEAT__RECORDIO_DIALECTS; i++) {
        const leat__recordio_trial *trial = &probe->trial[i];
        if (trial->is_refuted)
            continue;
        if (trial->chunks == CHUNKS_MAX)
            return true;
        uint64_t end = trial->begin + chunk_size(trial);
        if (end < probe->needed)
            probe->needed = end;
        last = i;
        left++;
    }
    if (left == 1) {
        probe->dialect = dialects[last];
        probe->is_sure = true;
    }
    return left <= 1;
}

int leat__recordio_probe_begin(leat__recordio_probe *out,
                               const leat__recordio_dialect *likely,
                               const unsigned char *bytes, size_t size)
{
    leat__recordio_probe probe = {0};
    int status = size < 4 ? LEAT_OK : check_magic(bytes);
    if (status)
        return status;
    if (size < LEAT__RECORDIO_HEADER)
        return leat_error(LEAT_EFORMAT,
                          "ends in the first chunk's header, after %zu bytes",
                          size);
    for (int i = LEAT__RECORDIO_DIALECTS - 1; i >= 0; i--) {
        leat__recordio_header header;
        read_header(&header, dialects[i], bytes);
        probe.trial[i].is_refuted = header.packing == LEAT__RECORDIO_UNKNOWN;
        if (!probe.trial[i].is_refuted &&
            (!probe.dialect || probe.dialect != likely))
            probe.dialect = dialects[i];
    }
    if (!probe.dialect)
        return leat_error(LEAT_EFORMAT,
                          "the first chunk's header is damaged: it is none of "
                          "PaddlePaddle's or ElasticDL's");
    settle(&probe);
    *out = probe;
    return LEAT_OK;
}

bool leat__recordio_probe_look(leat__recordio_probe *probe,
                               const unsigned char *bytes, size_t n)
{
    for (int i = 0; i < LEAT__RECORDIO_DIALECTS && !probe->is_sure; i++) {
        probe->is_sure = try_bytes(&probe->trial[i], dialects[i], bytes, n);
        if (probe->is_sure)
            probe->dialect = dialects[i];
    }
    return probe->is_sure || settle(probe);
}
