/*
 * lmdb_readahead.h: reads ahead of a walk over an LMDB that is not in memory.
 *
 * While what the walk comes to is in memory, nothing happens but a look now and
 * then. When it is not, scouts go ahead of the walk in its own order: one over
 * the leaves asks for values, one over the branches asks for leaves, two more
 * for the branches themselves, each so early that the next one needs not wait.
 * They ask in sorted spans. Once two windows lay in memory they rest again.
 */
#ifndef LEAT_READERS_LMDB_READAHEAD_H
#define LEAT_READERS_LMDB_READAHEAD_H

#include "readers/lmdb/lmdb_storage.h"
#include "readers/lmdb/lmdb_walker.h"

#include <stdbool.h>

/* How far read-ahead goes where nobody says, in bytes. */
#define LEAT__LMDB_WINDOW ((size_t)32 << 20)

/* A kernel that reads so far ahead keeps storage busy in a walk, with larger
   pages at less cost than it has for being asked. */
#define LEAT__LMDB_KERNEL_ENOUGH ((size_t)4 << 20)

/* Scouts over pages: leaves, the branches above them, those above these. */
#define LEAT__LMDB_PAGE_CURSORS 3

/* Leaves and records are counted over all laps, from the first one on. */
typedef struct leat__lmdb_readahead {
    const leat__lmdb_storage *storage; /* borrowed */
    size_t window;                     /* bytes; 0: nothing is asked for */
    int64_t lead_branches;             /* what the window is in branches */
    int64_t lead_leaves;               /* in leaves */
    int64_t lead_records;              /* and in records; 0: no values */
    int64_t probe_records;             /* between two looks while warm */

    bool is_cold;          /* the walk comes to what is not in memory */
    bool is_fresh;         /* nothing was looked at yet */
    bool is_positioned;    /* the scouts stand ahead of the walk */
    bool is_over;          /* a cursor met damage, which the walk will report */
    int ramp;              /* the window is as yet this many times halved */
    size_t resident_bytes; /* bytes found in memory since any were not */
    int page_cursors;
    leat__lmdb_walker page_cursor[LEAT__LMDB_PAGE_CURSORS];
    leat__lmdb_walker value_cursor;
    int64_t leaf_cursor_past; /* leaves of its earlier laps */
    int64_t value_cursor_past;
    int64_t past_leaves; /* of the walk's earlier laps */
    int64_t past_records;

    /* The walk's own leaves and records at which to call extend. */
    int64_t due_leaves;
    int64_t due_records;
} leat__lmdb_readahead;

/*
 * For a walk over the storage's map; without `values` only leaves are fetched.
 * With a window of 0 it only tells whether the walk is cold.
 */
void leat__lmdb_readahead_init(leat__lmdb_readahead *out,
                               const leat__lmdb_storage *storage, size_t window,
                               int values);

/*
 * Looks and asks for what the walk comes to. May block as the storage does. By
 * way of leat__lmdb_readahead_follow.
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
 * Told before the walk begins anew (`next_lap`), or goes elsewhere. Where it
 * begins anew at its end, the scouts have done so already, and stay.
 */
void leat__lmdb_readahead_restart(leat__lmdb_readahead *ahead,
                                  const leat__lmdb_walker *walk, int next_lap);

#endif
