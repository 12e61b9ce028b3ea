/*
 * lmdb_writer.h: a new LMDB database, all of it or nothing.
 *
 * Records go to a part (part.h), in commits of a few megabytes. With a recipe
 * each commit is on disk before the next one begins, and the same order goes on
 * behind the last one.
 */
#ifndef LEAT_TOOLS_DATABASE_LMDB_WRITER_H
#define LEAT_TOOLS_DATABASE_LMDB_WRITER_H

#include "tools/database/part.h"

#include <stddef.h>

struct lmdb_writer;

/* Begins what is ordered. Errors: those of part_open, LEAT_EFORMAT. */
int lmdb_writer_open(struct lmdb_writer **out, const struct part_order *order);

const struct part *lmdb_writer_part(const struct lmdb_writer *writer);

/* Records that it holds, those of a run before included. */
int64_t lmdb_writer_records(const struct lmdb_writer *writer);

/*
 * The last record; borrowed until the next call. LEAT_END: there is none.
 * Errors: LEAT_EIO.
 */
int lmdb_writer_last(struct lmdb_writer *writer, const void **key,
                     size_t *key_size, const void **value, size_t *size);

/*
 * Appends a record; keys must ascend in byte order.
 * Errors: LEAT_EINVAL for a key out of order or too long, LEAT_EIO.
 */
int lmdb_writer_put(struct lmdb_writer *writer, const void *key,
                    size_t key_size, const void *value, size_t size);

/*
 * Makes the database appear at its path, on disk. `remembered` is what a run of
 * the same order is told of it, should this one be killed before close.
 * Errors: LEAT_EIO.
 */
int lmdb_writer_publish(struct lmdb_writer *writer, int64_t remembered);

/* Size of the file in bytes, once published. */
int64_t lmdb_writer_bytes(const struct lmdb_writer *writer);

/*
 * Commits what can be, and has close leave it for the same order. Says how many
 * records that are.
 */
int64_t lmdb_writer_keep(struct lmdb_writer *writer);

/*
 * Frees the writer; what was neither published nor kept vanishes. Takes NULL.
 */
void lmdb_writer_close(struct lmdb_writer *writer);

#endif
