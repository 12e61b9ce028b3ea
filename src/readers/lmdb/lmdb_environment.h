/*
 * lmdb_environment.h: an LMDB data file with the lock file that it is used by.
 *
 * All readers of both share one environment, whatever path they came by. The
 * same data file by another lock file is another environment, since a writer
 * looks at the slots of one lock file; and so is another data file by the same
 * lock file, as when the first was replaced.
 */
#ifndef LEAT_READERS_LMDB_ENVIRONMENT_H
#define LEAT_READERS_LMDB_ENVIRONMENT_H

#include "readers/lmdb/lmdb_file.h"
#include "readers/lmdb/lmdb_lock.h"

#include <pthread.h>
#include <stdbool.h>

typedef struct leat__lmdb_environment leat__lmdb_environment;

struct leat__lmdb_environment {
    leat__lmdb_file file;  /* immutable, as the next two */
    leat__lmdb_lock *lock; /* NULL: none could be opened */
    unsigned generation;   /* of the process, see base/fork.h */

    /* Guarded by the lock of the list of environments. */
    _Atomic(leat__lmdb_environment *) next;
    int references;

    pthread_mutex_t snapshots_lock; /* protects the rest */
    struct leat__lmdb_snapshot *snapshots;
};

/*
 * Opens the file at `path`, or takes a reference if it is open. Without a lock
 * file, and where none can be made, no reader's slot protects the pages from a
 * writer. Errors: LEAT_EIO, LEAT_EFORMAT, LEAT_ENOMEM. Any thread.
 */
int leat__lmdb_environment_open(leat__lmdb_environment **out, const char *path);

/*
 * One reference less; the last one closes the environment. A forked child does
 * nothing to its parent's. Any thread.
 */
void leat__lmdb_environment_close(leat__lmdb_environment *environment);

/* Whether it is of a process that this one was forked from. */
bool leat__lmdb_environment_is_inherited(
    const leat__lmdb_environment *environment);

/* The latest transaction of the file. */
int leat__lmdb_environment_latest(const leat__lmdb_environment *environment,
                                  uint64_t *out);

/*
 * Pins the latest transaction, by a slot where there is a lock file. Unpinned
 * before the environment is closed. Errors: LEAT_EIO, LEAT_EFORMAT.
 */
int leat__lmdb_environment_pin(leat__lmdb_environment *environment,
                               leat__lmdb_pin *out);
void leat__lmdb_environment_unpin(leat__lmdb_environment *environment,
                                  const leat__lmdb_pin *pin);

#endif
