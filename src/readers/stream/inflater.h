/* inflater.h: decompresses what a byte source reads: gzip and zlib. */
#ifndef LEAT_READERS_INFLATER_H
#define LEAT_READERS_INFLATER_H

#include "readers/stream/byte_source.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes by which gzip is known. */
#define LEAT__GZIP_MAGIC 3

/* Whether a file that begins with these bytes is compressed by gzip. */
bool leat__inflater_is_gzip(const unsigned char *bytes, size_t size);

/* One caller at a time. It is used for many files, and keeps its memory. */
typedef struct leat__inflater leat__inflater;

int leat__inflater_create(leat__inflater **out);
void leat__inflater_destroy(leat__inflater *inflater); /* takes NULL */

/* Begins a file, which is of zlib's format, or else gzip's. */
void leat__inflater_begin(leat__inflater *inflater);
void leat__inflater_set_format(leat__inflater *inflater, bool is_zlib);

/*
 * Whether the source begins with a gzip member, of which it reads a few bytes,
 * at its beginning only. Errors: those of the source.
 */
int leat__inflater_probe(leat__inflater *inflater, leat__byte_source *source,
                         bool *is_gzip);

/*
 * Gives up to `n` bytes that were read as they are, without decompressing: what
 * probe has read. *got is 0 when there are no more.
 */
void leat__inflater_drain(leat__inflater *inflater, void *out, size_t n,
                          size_t *got);

/*
 * Decompresses up to `n` bytes, at least one; *got is 0 at the end of the file.
 * `offset` is that of the first in the uncompressed data, for errors. Errors:
 * those of the source; LEAT_EFORMAT; LEAT_ENOMEM.
 */
int leat__inflater_read(leat__inflater *inflater, leat__byte_source *source,
                        int64_t offset, void *out, size_t n, size_t *got);

/* Bytes held. */
size_t leat__inflater_memory(void);

#endif
