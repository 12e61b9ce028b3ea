/*
 * lmdb_snapshot.h: an LMDB file as one transaction left it, mapped and pinned.
 *
 * Readers that find the same state share the snapshot, and with it one slot in
 * the lock file, one map and one index.
 */
#ifndef LEAT_READERS_LMDB_SNAPSHOT_H
#define LEAT_READERS_LMDB_SNAPSHOT_H

#include "readers/lmdb/lmdb_index.h"
#include "readers/lmdb/lmdb_storage.h"

#include <stdbool.h>

typedef struct leat__lmdb_snapshot leat__lmdb_snapshot;

/*
 * Opens the latest state of the LMDB at `path`. Owned by the caller (reference
 * counted): leat__lmdb_snapshot_close. Errors: LEAT_EIO, LEAT_EFORMAT,
 * LEAT_ENOMEM. Thread safety: any thread.
 */
int leat__lmdb_snapshot_open(leat__lmdb_snapshot **out, const char *path);

/* A forked child does nothing to its parent's. */
void leat__lmdb_snapshot_close(leat__lmdb_snapshot *snapshot);

/*
 * Whether it is of a process that this one was forked from: its slot is the
 * parent's, and so a writer may overwrite its pages when the parent is done.
 */
bool leat__lmdb_snapshot_is_inherited(const leat__lmdb_snapshot *snapshot);

/* Its pages, mapped as long as the snapshot is open. Any thread. */
const leat__lmdb_map *
leat__lmdb_snapshot_map(const leat__lmdb_snapshot *snapshot);

/* Where they come from; likewise. */
const leat__lmdb_storage *
leat__lmdb_snapshot_storage(const leat__lmdb_snapshot *snapshot);

/*
 * Its index, made by whoever asks first, who reads `window` bytes ahead;
 * borrowed until close. Others who ask wait for it.
 * Errors: LEAT_EFORMAT, LEAT_ENOMEM. Any thread.
 */
int leat__lmdb_snapshot_index(leat__lmdb_snapshot *snapshot, size_t window,
                              const leat__lmdb_index **out);

#endif
