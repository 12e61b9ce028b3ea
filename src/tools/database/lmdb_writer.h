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

#include <lmdb.h>
#include <stddef.h>

/*
 * Owned by the caller, which reads the first group only; zeroed: none is open.
 */
struct lmdb_writer {
    struct staging staging;
    int64_t records; /* that it holds, those of an earlier run included */
    int64_t bytes;   /* of the file, once published */

    int64_t committed; /* of the records */
    bool durable;      /* commits wait for the disk */
    bool keep;         /* the staging directory outlives the writer */
    size_t page;       /* bytes of one: the system's, or those found */
    size_t map_size;   /* of the environment */
    size_t used;       /* bytes of it, at most */
    size_t dirty;      /* bytes put since the last commit */
    MDB_env *env;
    MDB_txn *txn; /* NULL between two */
    MDB_dbi dbi;
};

/* Begins or resumes. Errors: those of staging_open, LEAT_EFORMAT; then it is
   zero. */
int lmdb_writer_open(struct lmdb_writer *writer,
                     const struct staging_options *options);

/*
 * The last record; borrowed until the next call. LEAT_END: there is none.
 * Errors: LEAT_EIO.
 */
int lmdb_writer_last(struct lmdb_writer *writer, MDB_val *key, MDB_val *value);

/*
 * Appends a record; keys must ascend in byte order.
 * Errors: LEAT_EINVAL for a key out of order or too long, LEAT_EIO.
 */
int lmdb_writer_put(struct lmdb_writer *writer, const void *key,
                    size_t key_size, const void *value, size_t size);

/*
 * Makes the database appear at its path, on disk. `result` is saved for a
 * rerun, should this run be killed before close. Errors: those of
 * staging_publish.
 */
int lmdb_writer_publish(struct lmdb_writer *writer, int64_t result);

/*
 * Commits as much as possible, and has close keep it for a rerun. Returns the
 * number of its records.
 */
int64_t lmdb_writer_keep(struct lmdb_writer *writer);

/* Removes a database that was neither published nor kept. */
void lmdb_writer_close(struct lmdb_writer *writer);

#endif
