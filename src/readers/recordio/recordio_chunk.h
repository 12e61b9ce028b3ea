/*
 * recordio_chunk.h: chunks of RecordIO files, in the three dialects that begin
 * with the same magic: PaddlePaddle Fluid's, PaddlePaddle Go's and ElasticDL's.
 *
 * A chunk is a header of five numbers, little-endian, and stored bytes, which
 * are the payload or what compresses it. The payload is records: the length in
 * four bytes, little-endian, and the bytes.
 */
#ifndef LEAT_READERS_RECORDIO_CHUNK_H
#define LEAT_READERS_RECORDIO_CHUNK_H

#include <leat/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LEAT__RECORDIO_MAGIC UINT32_C(0x01020304)
#define LEAT__RECORDIO_HEADER 20

/* Before each record of a payload. */
#define LEAT__RECORDIO_LENGTH 4

typedef enum leat__recordio_packing {
    LEAT__RECORDIO_PLAIN,
    LEAT__RECORDIO_SNAPPY_STREAM,  /* snappystream 0.2.8's */
    LEAT__RECORDIO_SNAPPY_FRAMING, /* "sNaPpY" */
    LEAT__RECORDIO_SNAPPY,         /* one block */
    LEAT__RECORDIO_GZIP,
    LEAT__RECORDIO_UNKNOWN
} leat__recordio_packing;

#define LEAT__RECORDIO_COMPRESSORS 4

/* Where the numbers are in a header, and what they mean. */
typedef struct leat__recordio_dialect {
    const char *name;
    int nrecords_at, checksum_at, compressor_at, stored_at;
    uint32_t (*checksum)(const void *bytes, size_t size);
    leat__recordio_packing packing[LEAT__RECORDIO_COMPRESSORS];
} leat__recordio_dialect;

extern const leat__recordio_dialect leat__recordio_fluid;
extern const leat__recordio_dialect leat__recordio_go;
extern const leat__recordio_dialect leat__recordio_elasticdl;

typedef struct leat__recordio_header {
    uint32_t nrecords;
    uint32_t checksum; /* of the stored bytes */
    uint32_t compressor;
    uint32_t stored; /* bytes after the header */
    leat__recordio_packing packing;
} leat__recordio_header;

/*
 * Parses a header of LEAT__RECORDIO_HEADER bytes. Errors: LEAT_EFORMAT for
 * another magic, whose format the line names where it is known, and for a
 * compressor that the dialect does not have.
 */
int leat__recordio_parse_header(leat__recordio_header *out,
                                const leat__recordio_dialect *dialect,
                                const unsigned char *bytes);

/*
 * The dialect of a file by its first `size` bytes: the one by which the first
 * chunk's checksum is right. LEAT_AGAIN: *needed bytes tell more. Where no
 * checksum is right, or the file ends before, the one whose header makes sense.
 * Errors: LEAT_EFORMAT where there is none.
 */
int leat__recordio_find_dialect(const leat__recordio_dialect **out,
                                const unsigned char *bytes, size_t size,
                                bool is_last, uint64_t *needed);

#endif
