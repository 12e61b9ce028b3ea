/* snappy.h: blocks compressed by Snappy, where leat is built with its library.
 */
#ifndef LEAT_READERS_SNAPPY_H
#define LEAT_READERS_SNAPPY_H

#include <leat/status.h>

#include <stddef.h>

/*
 * The bytes that a block decompresses to. Errors: LEAT_EFORMAT for what is no
 * block; LEAT_EUNSUPPORTED where leat was built without libsnappy.
 */
int leat__snappy_length(const void *bytes, size_t size, size_t *out);

/* Decompresses a block into `out`, of that many bytes. */
int leat__snappy_unpack(const void *bytes, size_t size, void *out,
                        size_t length);

#endif
