/*
 * lmdb_drop_behind.h: drops pages from memory once a walk over an LMDB has
 * passed them.
 *
 * A cursor follows the walk in its own order, at a distance that spares samples
 * still in use: their pages would be read from storage again.
 */
#ifndef LEAT_READERS_LMDB_DROP_BEHIND_H
#define LEAT_READERS_LMDB_DROP_BEHIND_H

#include "readers/lmdb/lmdb_storage.h"
#include "readers/lmdb/lmdb_walker.h"

#include <stdbool.h>

/* Records are counted over all passes, from the first one. */
typedef struct leat__lmdb_drop_behind {
    const leat__lmdb_storage *storage; /* borrowed */
    int64_t kept;       /* records between the cursor and the walk */
    int64_t step;       /* records dropped at a time */
    bool is_positioned; /* the cursor follows the walk */
    leat__lmdb_walker cursor;
    uint64_t leaf;       /* the cursor's page; 0: none */
    int64_t cursor_past; /* records of its earlier passes */
    int64_t past;        /* and of the walk's earlier passes */
    int64_t due;         /* the walk's record at which to call advance */
} leat__lmdb_drop_behind;

/*
 * Keeps about `kept` bytes after the walk has passed them, beside `ahead` bytes
 * of read-ahead; does nothing if together they are the whole file.
 */
void leat__lmdb_drop_behind_init(leat__lmdb_drop_behind *out,
                                 const leat__lmdb_storage *storage, size_t kept,
                                 size_t ahead);

/* Drops the pages that are due. Called by leat__lmdb_drop_behind_follow. */
void leat__lmdb_drop_behind_advance(leat__lmdb_drop_behind *behind,
                                    const leat__lmdb_walker *walk);

/* Called after steps of the walk. */
static inline void leat__lmdb_drop_behind_follow(leat__lmdb_drop_behind *behind,
                                                 const leat__lmdb_walker *walk)
{
    if (walk->record >= behind->due)
        leat__lmdb_drop_behind_advance(behind, walk);
}

/* As leat__lmdb_readahead_restart. */
void leat__lmdb_drop_behind_restart(leat__lmdb_drop_behind *behind,
                                    const leat__lmdb_walker *walk,
                                    int next_pass);

#endif
