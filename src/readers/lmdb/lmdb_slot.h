/* lmdb_slot.h: the reader slots in LMDB's lock file. */
#ifndef LEAT_READERS_LMDB_SLOT_H
#define LEAT_READERS_LMDB_SLOT_H

#include "readers/lmdb/lmdb_lock_file.h"

#include <stdint.h>

/* `began` is that of leat__lmdb_lock_wait. */

/*
 * Frees all slots with this process's number. Called once, right after its byte
 * was locked: they belong to a dead process that had the same id. *code is
 * ENOSPC where the file system has no room for that, else 0. Errors: LEAT_EIO,
 * LEAT_ENOMEM.
 */
int leat__lmdb_slot_clear_own(leat__lmdb_lock_file *lock, int64_t began,
                              int *code);

/*
 * Does what slot_take does but for taking one: frees those that were left,
 * waits for the table and checks it. Errors: LEAT_EIO if it is damaged, or a
 * process holds it for too long. Any thread.
 */
int leat__lmdb_slot_check(leat__lmdb_lock_file *lock, int64_t began);

/*
 * Takes a slot, which holds no transaction yet. *code is ENOSPC or EDQUOT where
 * the file system has no room for one, and *out not set; else 0. Errors:
 * LEAT_EIO if all are taken, the table is damaged, or a process holds it for
 * too long. Any thread.
 */
int leat__lmdb_slot_take(leat__lmdb_lock_file *lock, int64_t began,
                         int64_t *out, int *code);

/* Frees the slot. Where the file system has no room for that, it stays taken
 * until a slot is taken or released when there is, or the process ends. Any
 * thread. */
void leat__lmdb_slot_release(leat__lmdb_lock_file *lock, int64_t at);

/* Frees all of this process, none of which is in use. */
void leat__lmdb_slot_release_all(leat__lmdb_lock_file *lock);

#endif
