/*
 * lmdb_lock.h: LMDB's lock file and its reader slots.
 *
 * A writer overwrites no page of a transaction that a reader slot holds. leat
 * implements liblmdb's protocol instead of using liblmdb, which follows links,
 * trusts every byte, waits without limit, and loses a slot when the process
 * closes another descriptor of the file.
 */
#ifndef LEAT_READERS_LMDB_LOCK_H
#define LEAT_READERS_LMDB_LOCK_H

#include "readers/lmdb/lmdb_file.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * One per lock file in the process, shared (reference counted) by its
 * environments. The caller serialises all calls but those marked "Any thread".
 */
typedef struct leat__lmdb_lock leat__lmdb_lock;

/* A transaction whose pages are not overwritten. */
typedef struct leat__lmdb_pin {
    uint64_t txnid;
    int64_t slot; /* the reader slot that holds it; -1: none */
} leat__lmdb_pin;

/*
 * Opens the lock file of `file`, or creates an empty one, without following
 * links. Locks and writes nothing. Owned by the caller: leat__lmdb_lock_close.
 * If the file cannot be opened, *code is the system's error, *out is NULL and
 * the status LEAT_OK; else *code is 0. Errors: LEAT_EIO if it is not a regular
 * file; LEAT_ENOMEM.
 */
int leat__lmdb_lock_open(leat__lmdb_lock **out, const leat__lmdb_file *file,
                         int *code);

bool leat__lmdb_lock_is_same(const leat__lmdb_lock *a,
                             const leat__lmdb_lock *b);

/* Whether a writer that opens `path` uses this lock file. */
bool leat__lmdb_lock_is_at(const leat__lmdb_lock *lock, const char *path);

/* Whether another process uses the lock file at `path`: `otherwise` where this
 * one may not look. Errors: LEAT_EIO, LEAT_ENOMEM where there is no descriptor
 * or memory. */
int leat__lmdb_lock_find_user(const char *path, bool otherwise, bool *out);

/*
 * Joins the users of the lock file, and initialises it if there are no others.
 * Waits for those that initialise it until 5 s after `began` (leat__clock_now).
 * With *code as above the lock is not held and nothing can be pinned. Errors:
 * LEAT_EIO if it is not a lock file, is damaged while in use, or another
 * process holds it for too long. Any thread, while no other has the lock.
 */
int leat__lmdb_lock_join(leat__lmdb_lock *lock, const leat__lmdb_file *file,
                         int64_t began, int *code);

/* Whether join succeeded, so that transactions can be pinned. */
bool leat__lmdb_lock_is_held(const leat__lmdb_lock *lock);

/*
 * Switches the lock to `file`, which replaced the data file that the process
 * held it for: that one's slots stay, and its readers go by its meta pages. If
 * there is no room for that, *code is ENOSPC, the lock as it was and the status
 * LEAT_OK; else *code is 0. Errors: LEAT_EIO when another process still uses it
 * for the old one.
 */
int leat__lmdb_lock_follow(leat__lmdb_lock *lock, const leat__lmdb_file *file,
                           int *code);

/*
 * Called when the process no longer has the data file open: its inode may be
 * reused by another file, which follow would mistake for it.
 */
void leat__lmdb_lock_leave(leat__lmdb_lock *lock, const leat__lmdb_file *file);

/* Takes a reference; close drops one. Close takes NULL. */
leat__lmdb_lock *leat__lmdb_lock_ref(leat__lmdb_lock *lock);
void leat__lmdb_lock_close(leat__lmdb_lock *lock);

/*
 * In a child after fork: releases the maps and descriptors of all locks, also
 * of those that are being opened, which are shared with the parent: its locks
 * would otherwise last as long as the child. Locks and slots remain the
 * parent's.
 */
void leat__lmdb_lock_forget_all(void);

/*
 * The latest committed transaction of `file`: the lock's, or the file's own
 * where the lock is not held or is another file's. Errors: LEAT_EIO,
 * LEAT_EFORMAT. Any thread.
 */
int leat__lmdb_lock_latest(const leat__lmdb_lock *lock,
                           const leat__lmdb_file *file, uint64_t *out);

/* Checks that the lock's, if it is the data file's, is one of the two that the
 * file has. Errors: LEAT_EIO, LEAT_EFORMAT. Any thread. */
int leat__lmdb_lock_check_latest(const leat__lmdb_lock *lock,
                                 const leat__lmdb_file *file);

/*
 * Checks that transaction `id`, which the data file has a later one than, is
 * the latest all the same: a writer is about to say that it is not, or died
 * before. LEAT_AGAIN: it is not, or the lock is another file's. Errors:
 * LEAT_EIO where no writer is, so that the file is another one than the lock's
 * users have. Any thread.
 */
int leat__lmdb_lock_check_overtaken(const leat__lmdb_lock *lock,
                                    const leat__lmdb_file *file, uint64_t id);

/*
 * Checks the lock for an opening that needs no slot; LEAT_OK where it is not
 * held. `began` as below. Errors: LEAT_EIO if the table is damaged, or a
 * process holds it for too long. Any thread.
 */
int leat__lmdb_lock_check(leat__lmdb_lock *lock, int64_t began);

/*
 * Takes a slot for the latest transaction of `file`, as leat__lmdb_lock_latest
 * has it. `began`: when the caller did, by leat__clock_now. *code is ENOSPC or
 * EDQUOT where the file system has no room for one, and *out not set; else 0.
 * Errors: LEAT_EIO if all are taken, the table is damaged, or a process holds
 * it for too long; LEAT_EFORMAT. Any thread.
 */
int leat__lmdb_lock_pin(leat__lmdb_lock *lock, const leat__lmdb_file *file,
                        int64_t began, leat__lmdb_pin *out, int *code);

/* Releases the slot. Any thread. */
void leat__lmdb_lock_unpin(leat__lmdb_lock *lock, const leat__lmdb_pin *pin);

#endif
