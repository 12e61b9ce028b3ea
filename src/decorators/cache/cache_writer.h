/*
 * cache_writer.h: makes a directory of cache_directory.h, in PATH.partial until
 * it is whole.
 */
#ifndef LEAT_DECORATORS_CACHE_CACHE_WRITER_H
#define LEAT_DECORATORS_CACHE_CACHE_WRITER_H

#include "decorators/cache/cache_directory.h"
#include "decorators/cache/cache_entry.h"

#include <stdint.h>

typedef struct leat__cache_writer leat__cache_writer;

/*
 * Begins to make the directory. Its index may take max_memory, unless that is
 * 0. Errors: LEAT_ESTATE where another process, or
 * another reader of this one, is making it; LEAT_EINVAL for a path that is
 * something else, and for files of others in PATH.partial; LEAT_EIO;
 * LEAT_ENOMEM. LEAT_AGAIN: another process has completed or removed it at the
 * same moment.
 */
int leat__cache_writer_create(leat__cache_writer **out, const char *path,
                              const leat_token *identity, int64_t max_memory);

/*
 * Writes an entry; `*written` is then the number of entries, or 0 if it was
 * there before. Errors: LEAT_EIO, LEAT_ENOMEM; LEAT_ELIMIT for an index of more
 * than max_memory; all is removed then. Any threads.
 */
int leat__cache_writer_add(leat__cache_writer *writer, int64_t index,
                           const leat__cache_item *item, int64_t *written);

/* Completes the directory, which has all entries from 0 on, and needs no memory
 * any more. Errors: LEAT_EIO, also where somebody has removed or replaced
 * PATH.partial. */
int leat__cache_writer_finish(leat__cache_writer *writer);

/* Opens the directory that it has completed, wherever the path leads by now.
 * Errors: those of leat__cache_directory_open. */
int leat__cache_writer_open(leat__cache_directory **out,
                            const leat__cache_writer *writer);

/* Bytes that it takes. Any threads. */
int64_t leat__cache_writer_memory(const leat__cache_writer *writer);

/* Removes what is not whole. Takes NULL. */
void leat__cache_writer_destroy(leat__cache_writer *writer);

#endif
