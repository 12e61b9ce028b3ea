/*
 * lmdb_lock.h: LMDB's lock file and the reader slots in it.
 *
 * A writer overwrites no page that the transaction of a reader slot uses. leat
 * follows liblmdb's protocol itself instead of having liblmdb open the file:
 * liblmdb follows links, trusts every byte, waits for ever, and loses a slot
 * when the process closes another descriptor of the file.
 */
#ifndef LEAT_READERS_LMDB_LOCK_H
#define LEAT_READERS_LMDB_LOCK_H

#include "readers/lmdb/lmdb_file.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * One for each lock file in the process, shared (reference counted) by the
 * environments that use it. Not thread-safe but for the three functions that
 * say so: the caller serialises the others.
 */
typedef struct leat__lmdb_lock leat__lmdb_lock;

/* A transaction whose pages stay as they are. */
typedef struct leat__lmdb_pin {
    uint64_t txnid;
    int64_t slot; /* that holds it */
} leat__lmdb_pin;

/*
 * Opens the lock file of `file`, or creates an empty one, without following a
 * link. Nothing is locked and no byte is written yet. Owned by the caller:
 * leat__lmdb_lock_close. *code is 0, or the system's error where the process
 * may not or cannot open it; then *out is NULL and the status LEAT_OK.
 * Errors: LEAT_EIO when something else than a file is there; LEAT_ENOMEM.
 */
int leat__lmdb_lock_open(leat__lmdb_lock **out, const leat__lmdb_file *file,
                         int *code);

bool leat__lmdb_lock_is_same(const leat__lmdb_lock *a,
                             const leat__lmdb_lock *b);

/*
 * Locks it as a user of the database, and makes it anew where there is no
 * other. *code as above: the lock then is none, and cannot be pinned. Errors:
 * LEAT_EIO when it is no lock file, is damaged while others use it, or others
 * hold it for too long.
 */
int leat__lmdb_lock_join(leat__lmdb_lock *lock, const leat__lmdb_file *file,
                         int *code);

/* Whether join succeeded, so that transactions can be pinned. */
bool leat__lmdb_lock_is_held(const leat__lmdb_lock *lock);

/*
 * Makes it speak of `file` when the process held it for another data file,
 * which was replaced by this one. Errors: LEAT_EIO when another process uses
 * it for the other one.
 */
int leat__lmdb_lock_follow(leat__lmdb_lock *lock, const leat__lmdb_file *file);

/*
 * Told when nothing of the process has the data file open any more: its inode
 * may become another file's, for which follow would take the lock's
 * transaction.
 */
void leat__lmdb_lock_leave(leat__lmdb_lock *lock, const leat__lmdb_file *file);

/* One reference more; close gives one back. NULL is none. */
leat__lmdb_lock *leat__lmdb_lock_ref(leat__lmdb_lock *lock);
void leat__lmdb_lock_close(leat__lmdb_lock *lock);

/*
 * In a child after fork: gives up the map and the descriptor that it shares
 * with its parent. The locks and slots are the parent's and stay, but would not
 * end before the child does.
 */
void leat__lmdb_lock_forget(leat__lmdb_lock *lock);

/* The latest committed transaction. Any thread. */
uint64_t leat__lmdb_lock_latest(const leat__lmdb_lock *lock);

/*
 * Takes a slot for the latest transaction. Errors: LEAT_EIO when all are taken,
 * the table is damaged or somebody holds it for too long. Any thread.
 */
int leat__lmdb_lock_pin(leat__lmdb_lock *lock, leat__lmdb_pin *out);

/* Gives the slot back. Any thread. */
void leat__lmdb_lock_unpin(leat__lmdb_lock *lock, const leat__lmdb_pin *pin);

#endif
