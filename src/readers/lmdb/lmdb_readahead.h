/*
 * lmdb_readahead.h: reads ahead of a walk over an LMDB that is not in memory.
 *
 * While the pages ahead are resident, only an occasional residency probe is
 * made. Otherwise prefetch cursors run ahead of the walk in its own order: one
 * over the leaves requests values, one over the branches requests leaves, and
 * two more request the branches, each early enough that the next cursor does
 * not block. Requests are sorted into spans. After two windows of resident
 * pages the cursors stop again.
 */
#ifndef LEAT_READERS_LMDB_READAHEAD_H
#define LEAT_READERS_LMDB_READAHEAD_H

#include "readers/lmdb/lmdb_storage.h"
#include "readers/lmdb/lmdb_walker.h"

#include <stdbool.h>

/* Page cursors: over leaves, and over two levels of branches above them. */
#define LEAT__LMDB_PAGE_CURSORS 3

/* Leaves and records are counted over all passes, from the first one. */
typedef struct leat__lmdb_readahead {
    const leat__lmdb_storage *storage; /* borrowed */
    size_t window;                     /* bytes; 0: nothing is requested */
    int64_t lead_branches;             /* the window in branches */
    int64_t lead_leaves;               /* in leaves */
    int64_t lead_records;  /* in records; 0: values are not prefetched */
    int64_t probe_records; /* between two probes while resident */

    bool is_cold;       /* the pages ahead are not in memory */
    bool is_fresh;      /* nothing was probed yet */
    bool is_positioned; /* the cursors are ahead of the walk */
    bool is_over;       /* a cursor met damage, which the walk will report */
    int ramp; /* the window is halved this many times while it ramps up */
    size_t
        resident_bytes; /* bytes found resident since the last that were not */
    int page_cursors;
    leat__lmdb_walker page_cursor[LEAT__LMDB_PAGE_CURSORS];
    leat__lmdb_walker value_cursor;
    int64_t leaf_cursor_past; /* leaves of its earlier passes */
    int64_t value_cursor_past;
    int64_t past_leaves; /* of the walk's earlier passes */
    int64_t past_records;

    /* The walk's own leaves and records at which to call extend. */
    int64_t due_leaves;
    int64_t due_records;
} leat__lmdb_readahead;

/*
 * For a walk over the storage's map; without `values` only leaves are
 * prefetched. With a window of 0 it only determines is_cold.
 */
void leat__lmdb_readahead_init(leat__lmdb_readahead *out,
                               const leat__lmdb_storage *storage, size_t window,
                               int values);

/*
 * Probes, and requests the pages ahead. May block as the storage does. Called
 * by leat__lmdb_readahead_follow.
 */
void leat__lmdb_readahead_extend(leat__lmdb_readahead *ahead,
                                 const leat__lmdb_walker *walk);

/* Called before each step of the walk, of a few hundred records at most. */
static inline void leat__lmdb_readahead_follow(leat__lmdb_readahead *ahead,
                                               const leat__lmdb_walker *walk)
{
    if (walk->record >= ahead->due_records || walk->leaves >= ahead->due_leaves)
        leat__lmdb_readahead_extend(ahead, walk);
}

/*
 * Called before the walk restarts (`next_pass`) or seeks. If it restarts at its
 * end, the cursors have wrapped around already and keep their positions.
 */
void leat__lmdb_readahead_restart(leat__lmdb_readahead *ahead,
                                  const leat__lmdb_walker *walk, int next_pass);

#endif
