/* lmdb_copy.h: the records of a database, copied to one that is being made. */
#ifndef LEAT_TOOLS_DATABASE_LMDB_COPY_H
#define LEAT_TOOLS_DATABASE_LMDB_COPY_H

#include "tools/database/lmdb_writer.h"

struct lmdb_copy;

/*
 * Opens and checks a database. Its records stay as they are until close,
 * whoever writes. `path` is borrowed until then.
 * Errors: LEAT_EFORMAT, LEAT_EUNSUPPORTED, LEAT_EIO, LEAT_ENOMEM.
 */
int lmdb_copy_open(struct lmdb_copy **out, const char *path);

int64_t lmdb_copy_records(const struct lmdb_copy *copy);

/* The last key; borrowed until close. Size 0: there are no records. */
void lmdb_copy_last_key(const struct lmdb_copy *copy, const char **key,
                        size_t *size);

/*
 * Puts a record, from the one behind the writer's last on. LEAT_END when all
 * are there. Errors: those of lmdb_writer_put.
 */
int lmdb_copy_step(struct lmdb_copy *copy, struct lmdb_writer *writer);

/* Takes NULL. */
void lmdb_copy_close(struct lmdb_copy *copy);

#endif
