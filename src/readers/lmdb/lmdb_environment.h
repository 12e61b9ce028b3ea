/*
 * lmdb_environment.h: an LMDB data file together with its lock file.
 *
 * All readers of both files share one environment, whatever their paths. The
 * same data file with another lock file is another environment, since a writer
 * checks the slots of one lock file only; so is another data file with the same
 * lock file, for example after the first was replaced.
 */
#ifndef LEAT_READERS_LMDB_ENVIRONMENT_H
#define LEAT_READERS_LMDB_ENVIRONMENT_H

#include "readers/lmdb/lmdb_file.h"
#include "readers/lmdb/lmdb_lock.h"

#include <pthread.h>
#include <stdbool.h>

typedef struct leat__lmdb_environment leat__lmdb_environment;

struct leat__lmdb_environment {
    /* Immutable, but fd is the latest opening's, under the same number. */
    leat__lmdb_file file;
    leat__lmdb_lock *lock; /* immutable; NULL: it could not be opened */
    unsigned generation;   /* of the process; see base/fork.h */

    /* Protected by the lock of the list of environments. */
    _Atomic(leat__lmdb_environment *) next;
    int references;

    pthread_mutex_t opening_lock;   /* held while a snapshot is opened */
    pthread_mutex_t snapshots_lock; /* protects the rest */
    struct leat__lmdb_snapshot *snapshots;
};

/*
 * Opens the file at `path`, or takes a reference if it is open. If there is no
 * lock file and none can be created, no reader slot protects the pages from a
 * writer. Errors: LEAT_EIO, LEAT_EFORMAT, LEAT_ENOMEM. Any thread.
 */
int leat__lmdb_environment_open(leat__lmdb_environment **out, const char *path);

/*
 * Drops a reference; the last one closes the environment. In a forked child a
 * parent's environment is left alone. Any thread.
 */
void leat__lmdb_environment_close(leat__lmdb_environment *environment);

/* Whether it belongs to an ancestor of this process. */
bool leat__lmdb_environment_is_inherited(
    const leat__lmdb_environment *environment);

/* Whether another process has the lock file open now, or may have. Any thread.
 */
bool leat__lmdb_environment_is_used(const leat__lmdb_environment *environment);

/* Logs that nothing protects what is read, as of the system's error `code`. */
void leat__lmdb_environment_warn(const leat__lmdb_environment *environment,
                                 int code);

/* The latest transaction of the file. */
int leat__lmdb_environment_latest(const leat__lmdb_environment *environment,
                                  uint64_t *out);

/*
 * Pins the latest transaction, by a reader slot if there is a lock file and
 * room for one: else *code is the system's error; 0: there is, or the lack of a
 * lock file was reported. Must be unpinned before the environment is closed.
 * `began`: when the caller did, by leat__clock_now. Errors: LEAT_EIO,
 * LEAT_EFORMAT.
 */
int leat__lmdb_environment_pin(leat__lmdb_environment *environment,
                               int64_t began, leat__lmdb_pin *out, int *code);
void leat__lmdb_environment_unpin(leat__lmdb_environment *environment,
                                  const leat__lmdb_pin *pin);

#endif
