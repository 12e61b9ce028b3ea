/*
 * idx_header.h: what an IDX file begins with.
 *
 * The file is an array: two zero bytes, the type of its elements, the number of
 * its dimensions, those as big-endian 32-bit numbers, and the elements,
 * big-endian. A record is what the first dimension counts.
 */
#ifndef LEAT_READERS_IDX_HEADER_H
#define LEAT_READERS_IDX_HEADER_H

#include <leat/sample.h>

#include <stddef.h>
#include <stdint.h>

/* Bytes of the longest one. */
#define LEAT__IDX_HEADER_MAX (4 + 4 * LEAT_MAX_DIMS)

typedef struct leat__idx_header {
    leat_dtype dtype;
    size_t size;    /* of the header */
    uint64_t count; /* the first dimension */
    uint64_t bytes; /* of a record */
    int ndim;       /* of a record */
    int64_t shape[LEAT_MAX_DIMS];
} leat__idx_header;

static inline uint32_t leat__idx_big_endian(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 |
           (uint32_t)bytes[2] << 8 | bytes[3];
}

/*
 * Of a file's first `size` bytes. LEAT_AGAIN: out->size are needed. Errors:
 * LEAT_EFORMAT.
 */
int leat__idx_header_parse(leat__idx_header *out, const unsigned char *bytes,
                           size_t size);

/* The error of a file of `size` bytes, of which more are needed. */
int leat__idx_header_cut(size_t size);

#endif
