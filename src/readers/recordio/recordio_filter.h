/*
 * recordio_filter.h: a RecordIO file of any dialect and compression as one of
 * Fluid's that is not compressed, and whose checksums have been looked at.
 */
#ifndef LEAT_READERS_RECORDIO_FILTER_H
#define LEAT_READERS_RECORDIO_FILTER_H

#include "readers/record/record_limit.h"
#include "readers/recordio/recordio_chunk.h"
#include "readers/stream/byte_stream.h"

/*
 * In the place of the compressor, of a chunk without stored bytes: its checksum
 * is wrong, found is the number of records; or its data cannot be decompressed.
 */
#define LEAT__RECORDIO_BAD_CHECKSUM UINT32_C(0xfffffffe)
#define LEAT__RECORDIO_BAD_DATA UINT32_C(0xfffffffd)

/* The limit is a chunk's, stored and decompressed. A file that is not sure of
   its dialect is of the likely one, if not NULL, where it may be. */
int leat__recordio_filter_create(leat__byte_filter **out,
                                 const leat__recordio_dialect *likely,
                                 const leat__record_limit *limit);
void leat__recordio_filter_destroy(leat__byte_filter *filter);

#endif
