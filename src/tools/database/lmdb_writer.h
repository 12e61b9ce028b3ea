/*
 * lmdb_writer.h: a new LMDB database, all of it or nothing.
 *
 * Records go to a staging directory (staging.h), in commits of a few megabytes.
 * With a journal each commit is on disk before the next one begins, and the
 * same arguments resume after the last one.
 */
#ifndef LEAT_TOOLS_DATABASE_LMDB_WRITER_H
#define LEAT_TOOLS_DATABASE_LMDB_WRITER_H

#include "tools/database/staging.h"

#include <stddef.h>

struct lmdb_writer;

/* Begins or resumes. Errors: those of staging_open, LEAT_EFORMAT. */
int lmdb_writer_open(struct lmdb_writer **out,
                     const struct staging_options *options);

/* Borrowed until close. */
const struct staging *lmdb_writer_staging(const struct lmdb_writer *writer);

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
 * Makes the database appear at its path, on disk. `result` is saved for a
 * rerun, should this run be killed before close.
 * Errors: LEAT_EIO.
 */
int lmdb_writer_publish(struct lmdb_writer *writer, int64_t result);

/* Size of the file in bytes, once published. */
int64_t lmdb_writer_bytes(const struct lmdb_writer *writer);

/*
 * Commits what can be, and has close keep it for a rerun. Returns the number of
 * its records.
 */
int64_t lmdb_writer_keep(struct lmdb_writer *writer);

/*
 * Frees the writer; what was neither published nor kept vanishes. Takes NULL.
 */
void lmdb_writer_close(struct lmdb_writer *writer);

#endif
