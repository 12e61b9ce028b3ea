/*
 * lmdb_writer.h: a new LMDB database, all of it or nothing.
 *
 * Records go to a directory PATH.leat-part beside the target, which takes the
 * target's place at the end. What a killed run left there is used again by the
 * next one; two runs at a time are told apart by a lock.
 */
#ifndef LEAT_TOOLS_LMDB_WRITER_H
#define LEAT_TOOLS_LMDB_WRITER_H

#include <leat/status.h>

struct lmdb_writer;

/*
 * Begins a database that will be `path`. An existing one is replaced only with
 * `force`, at the end, and only if it is a database directory.
 * Errors: LEAT_EINVAL when something is in the way, LEAT_EIO, LEAT_ENOMEM.
 */
int lmdb_writer_open(struct lmdb_writer **out, const char *path, int force);

/*
 * Appends a record; keys must ascend in byte order.
 * Errors: LEAT_EINVAL for a key out of order, LEAT_EIO.
 */
int lmdb_writer_put(struct lmdb_writer *writer, const char *key,
                    const void *value, size_t size);

/* Makes the database appear at its path, on disk. Errors: LEAT_EIO. */
int lmdb_writer_publish(struct lmdb_writer *writer);

/* Size of the file in bytes, once published. */
int64_t lmdb_writer_bytes(const struct lmdb_writer *writer);

/* Frees the writer; what was not published vanishes. Takes NULL. */
void lmdb_writer_close(struct lmdb_writer *writer);

#endif
