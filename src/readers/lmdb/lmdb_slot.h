/* lmdb_slot.h: the reader slots in LMDB's lock file. */
#ifndef LEAT_READERS_LMDB_SLOT_H
#define LEAT_READERS_LMDB_SLOT_H

#include "readers/lmdb/lmdb_lock_file.h"

#include <stdint.h>

/* `began` is that of leat__lmdb_lock_wait. */

/*
 * Frees all slots with this process's number. Called right after its byte was
 * locked: they belong to a dead process that had the same id. Errors: LEAT_EIO.
 */
int leat__lmdb_slot_clear_own(leat__lmdb_lock_file *lock, int64_t began);

/*
 * Takes a slot, which holds no transaction yet. Errors: LEAT_EIO if all are
 * taken, the table is damaged, or a process holds it for too long. Any thread.
 */
int leat__lmdb_slot_take(leat__lmdb_lock_file *lock, int64_t began,
                         int64_t *out);

#endif
