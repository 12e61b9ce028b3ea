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
#define LEAT__RECORDIO_DIALECTS 3

/* Where the numbers are in a header, and what they mean. */
typedef struct leat__recordio_dialect {
    const char *name;
    int nrecords_at, checksum_at, compressor_at, stored_at;
    /* Of the bytes before, 0 if there are none, and these. */
    uint32_t (*checksum)(uint32_t before, const void *bytes, size_t size);
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

/* A file as one of a dialect. */
typedef struct leat__recordio_trial {
    uint64_t begin;                             /* of a chunk */
    uint64_t at;                                /* bytes of it, looked at */
    unsigned char bytes[LEAT__RECORDIO_HEADER]; /* the first of these */
    leat__recordio_header header;
    uint32_t checksum; /* of the stored bytes so far */
    int chunks;        /* before it */
    bool is_refuted;   /* a header makes no sense */
} leat__recordio_trial;

/* Finds the dialect of a file, whose bytes it sees in order. */
typedef struct leat__recordio_probe {
    const leat__recordio_dialect *dialect;
    bool is_sure;    /* or else it is the first that may be */
    uint64_t needed; /* bytes of the file, to be more sure */
    leat__recordio_trial trial[LEAT__RECORDIO_DIALECTS];
} leat__recordio_probe;

/*
 * Begins with the first header of a file, which has `size` bytes or more; fewer
 * than a header's only if those are all. `likely`, if not NULL, is before all
 * others that may be. Errors: LEAT_EFORMAT where it is none of any dialect,
 * with another format's name where that is known.
 */
int leat__recordio_probe_begin(leat__recordio_probe *out,
                               const leat__recordio_dialect *likely,
                               const unsigned char *bytes, size_t size);

/*
 * Looks at the next `n` bytes, from the file's first on. The only dialect whose
 * headers make sense is sure, as is the first one by which the checksum of a
 * chunk's bytes is right. True: no more bytes need be looked at.
 */
bool leat__recordio_probe_look(leat__recordio_probe *probe,
                               const unsigned char *bytes, size_t n);

#endif
