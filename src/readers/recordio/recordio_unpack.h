/* recordio_unpack.h: decompresses what a chunk stores. */
#ifndef LEAT_READERS_RECORDIO_UNPACK_H
#define LEAT_READERS_RECORDIO_UNPACK_H

#include "readers/record/record_limit.h"
#include "readers/recordio/recordio_chunk.h"

#include <stdatomic.h>

/* A buffer that keeps its memory; zero at first. */
typedef struct leat__recordio_buffer {
    unsigned char *bytes;
    size_t size;
    size_t capacity;
    leat__record_limit limit;     /* of capacity */
    const atomic_bool *cancelled; /* the reading; or NULL */
} leat__recordio_buffer;

void leat__recordio_buffer_finish(leat__recordio_buffer *buffer);

/*
 * Decompresses stored bytes into `out`, whose contents they replace. Errors:
 * LEAT_EFORMAT for damaged ones; LEAT_ELIMIT for more than the limit;
 * LEAT_EUNSUPPORTED for snappy where leat is built without it; LEAT_ENOMEM;
 * LEAT_ECANCELLED.
 */
int leat__recordio_unpack(leat__recordio_packing packing,
                          const unsigned char *bytes, size_t size,
                          leat__recordio_buffer *out);

#endif
