/*
 * cache_directory.h: the samples of a data set on disk: a directory that is
 * made whole or not at all.
 *
 * It has two files: `data`, the entries of cache_entry.h one after the other,
 * and `index`, which has the data set's identity and the place, size and
 * checksum of each entry, and a checksum of its own. Both are written in
 * PATH.partial (cache_partial.h), synced, and then that is renamed to PATH.
 */
#ifndef LEAT_DECORATORS_CACHE_CACHE_DIRECTORY_H
#define LEAT_DECORATORS_CACHE_CACHE_DIRECTORY_H

#include "decorators/cache/cache_format.h"

#include <leat/ext/reader.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct leat__cache_directory leat__cache_directory;

/*
 * Opens a directory that is whole, and was made of the data set with that
 * identity. LEAT_AGAIN: there is none yet. Errors: LEAT_EINVAL for another data
 * set's; LEAT_EFORMAT for a damaged one; LEAT_ELIMIT for one whose index takes
 * more than max_memory (0: no limit); LEAT_EIO; LEAT_ENOMEM.
 */
int leat__cache_directory_open(leat__cache_directory **out, const char *path,
                               const leat_token *identity, int64_t max_memory);

/* The same by a descriptor of the directory, which stays the caller's, wherever
 * the path leads by now. LEAT_EIO where it has no index. */
int leat__cache_directory_open_at(leat__cache_directory **out, int at,
                                  const char *path, const leat_token *identity,
                                  int64_t max_memory);
void leat__cache_directory_close(leat__cache_directory *directory);

/* The number of entries. */
int64_t leat__cache_directory_count(const leat__cache_directory *directory);

/* Whether the data are not in memory. Any thread. */
bool leat__cache_directory_may_block(const leat__cache_directory *directory);

/* Bytes of memory for each entry: its place, and whether it was checked. */
#define LEAT__CACHE_INDEX_UNIT ((int64_t)sizeof(leat__cache_place) + 1)

/* LEAT_ELIMIT: the index of so many entries takes more than max_memory (0: no
 * limit). */
int leat__cache_check_count(int64_t count, int64_t max_memory);

/* The bytes of memory that the index takes. */
int64_t leat__cache_directory_memory(const leat__cache_directory *directory);

/*
 * An entry, valid until close; its checksum is compared the first time. Errors:
 * LEAT_EDATA. Any threads.
 */
int leat__cache_directory_at(leat__cache_directory *directory, int64_t index,
                             const void **entry, size_t *size);

#endif
