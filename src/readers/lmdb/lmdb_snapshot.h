/*
 * lmdb_snapshot.h: an LMDB file as of one transaction, mapped and pinned.
 *
 * Readers of the same transaction share the snapshot, and with it one reader
 * slot, one map and one index.
 */
#ifndef LEAT_READERS_LMDB_SNAPSHOT_H
#define LEAT_READERS_LMDB_SNAPSHOT_H

#include "readers/lmdb/lmdb_index.h"
#include "readers/lmdb/lmdb_storage.h"

#include <stdbool.h>

typedef struct leat__lmdb_snapshot leat__lmdb_snapshot;

/*
 * Opens the latest snapshot of the LMDB at `path`. Owned by the caller
 * (reference counted): leat__lmdb_snapshot_close. Errors: LEAT_EIO,
 * LEAT_EFORMAT, LEAT_ENOMEM. Thread safety: any thread.
 */
int leat__lmdb_snapshot_open(leat__lmdb_snapshot **out, const char *path);

/* In a forked child a parent's snapshot is left alone. */
void leat__lmdb_snapshot_close(leat__lmdb_snapshot *snapshot);

/*
 * Whether no slot protects its pages, as there is no lock file or room:
 * then a writer may overwrite them. Constant. Any thread.
 */
bool leat__lmdb_snapshot_is_exposed(const leat__lmdb_snapshot *snapshot);

/* Whether another process has the lock file open now, or may have. Any thread.
 */
bool leat__lmdb_snapshot_is_used(const leat__lmdb_snapshot *snapshot);

/*
 * LEAT_EIO if the file was overwritten by anything but LMDB, as far as its meta
 * pages show it, or if it is exposed and a writer may have overwritten pages.
 * Any thread.
 */
int leat__lmdb_snapshot_check(const leat__lmdb_snapshot *snapshot);

/*
 * After an error of its pages, with its line: LEAT_EFORMAT, and a line that
 * says so, if the file was overwritten by anything but LMDB; LEAT_EIO likewise
 * if it is exposed and a writer may have overwritten pages; else `status` and
 * the same line. Any thread.
 */
int leat__lmdb_snapshot_explain(const leat__lmdb_snapshot *snapshot,
                                int status);

/* Its map, valid while the snapshot is open. Any thread. */
const leat__lmdb_map *
leat__lmdb_snapshot_map(const leat__lmdb_snapshot *snapshot);

/* Its storage; likewise. */
const leat__lmdb_storage *
leat__lmdb_snapshot_storage(const leat__lmdb_snapshot *snapshot);

/*
 * Its index, borrowed until close. The first caller builds it, with `window`
 * bytes of read-ahead; others wait for it. Errors: LEAT_EFORMAT, LEAT_ENOMEM.
 * Any thread.
 */
int leat__lmdb_snapshot_index(leat__lmdb_snapshot *snapshot, size_t window,
                              const leat__lmdb_index **out);

/* The index, if there is one by now; or NULL. Any thread. */
const leat__lmdb_index *
leat__lmdb_snapshot_known_index(leat__lmdb_snapshot *snapshot);

/*
 * Makes a complete index, which is the snapshot's from now on, its index, if it
 * has none yet. Any thread.
 */
void leat__lmdb_snapshot_give_index(leat__lmdb_snapshot *snapshot,
                                    leat__lmdb_index *index);

/* The index's memory; 0 before there is one. Any thread. */
int64_t leat__lmdb_snapshot_index_bytes(leat__lmdb_snapshot *snapshot);

#endif
