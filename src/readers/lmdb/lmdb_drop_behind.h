/*
 * lmdb_drop_behind.h: drops what a walk over an LMDB has left behind.
 *
 * A cursor follows the walk in its own order, so far behind that samples lent
 * out are not hit: those would be read from storage again, unharmed.
 */
#ifndef LEAT_READERS_LMDB_DROP_BEHIND_H
#define LEAT_READERS_LMDB_DROP_BEHIND_H

#include "readers/lmdb/lmdb_storage.h"
#include "readers/lmdb/lmdb_walker.h"

#include <stdbool.h>

/* What stays behind the walk where nobody says, in bytes. */
#define LEAT__LMDB_KEPT ((size_t)64 << 20)

/* Records are counted over all laps, from the first one on. */
typedef struct leat__lmdb_drop_behind {
    const leat__lmdb_storage *storage; /* borrowed */
    int64_t kept;                      /* records behind the walk */
    int64_t step;                      /* records dropped in one go */
    bool is_positioned;                /* the cursor stands behind the walk */
    leat__lmdb_walker cursor;
    uint64_t leaf;       /* the page that it is in; 0: none */
    int64_t cursor_past; /* records of its earlier laps */
    int64_t past;        /* and of the walk's */
    int64_t due;         /* the walk's own record at which to call sweep */
} leat__lmdb_drop_behind;

/*
 * Keeps about `kept` bytes behind the walk and expects `ahead` bytes before it;
 * does nothing where that is the whole file.
 */
void leat__lmdb_drop_behind_init(leat__lmdb_drop_behind *out,
                                 const leat__lmdb_storage *storage, size_t kept,
                                 size_t ahead);

/* Drops what is too far behind. By way of leat__lmdb_drop_behind_follow. */
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
                                    int next_lap);

#endif
