/*
 * lmdb_environment.h: liblmdb's environments, one for each file.
 *
 * LMDB forbids a process to open a file twice, since closing either would drop
 * the locks of both. So all readers of a file share its environment, whatever
 * path they came by.
 */
#ifndef LEAT_READERS_LMDB_ENVIRONMENT_H
#define LEAT_READERS_LMDB_ENVIRONMENT_H

#include "readers/lmdb_file.h"

#include <lmdb.h>
#include <pthread.h>

typedef struct leat__lmdb_environment {
    leat__lmdb_file file; /* immutable */
    MDB_env *env;         /* immutable; its contents by `lock` */

    /* Guarded by the lock of the list of environments. */
    struct leat__lmdb_environment *next;
    int references;

    pthread_mutex_t lock; /* protects the rest and every use of env */
    struct leat__lmdb_snapshot *snapshots;
    int is_broken; /* liblmdb lost its map */
} leat__lmdb_environment;

/*
 * Opens the file at `path`, or takes a reference if it is open. Without a lock
 * file, and where none can be made, no reader's slot protects the pages from a
 * writer. Errors: LEAT_EIO, LEAT_EFORMAT, LEAT_ENOMEM. Any thread.
 */
int leat__lmdb_environment_open(leat__lmdb_environment **out, const char *path);

/* One reference less; the last one closes the environment. Any thread. */
void leat__lmdb_environment_close(leat__lmdb_environment *environment);

/*
 * Begins a read transaction on the latest snapshot; the caller holds the lock.
 * Errors: LEAT_EIO, LEAT_ENOMEM.
 */
int leat__lmdb_environment_begin(leat__lmdb_environment *environment,
                                 MDB_txn **out);

#endif
