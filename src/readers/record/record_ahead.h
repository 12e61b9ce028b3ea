/*
 * record_ahead.h: reads ahead of a pass over files that are not in memory, and
 * drops what it has passed.
 *
 * While the bytes ahead are resident, only an occasional residency probe is
 * made. Otherwise a window of them is requested ahead of the pass, across the
 * ends of files, until two windows in a row were found resident. Offsets count
 * over all files and all passes, so that the last file's end is followed by the
 * first file's beginning.
 */
#ifndef LEAT_READERS_RECORD_AHEAD_H
#define LEAT_READERS_RECORD_AHEAD_H

#include "readers/record/record_files.h"

typedef struct leat__record_ahead {
    const leat__record_files *files; /* borrowed */
    size_t window;                   /* bytes; 0: nothing is requested */
    size_t kept;     /* after the pass; SIZE_MAX: nothing is dropped */
    uint64_t past;   /* bytes of the passes before */
    uint64_t asked;  /* up to here; after `from`: not in use */
    uint64_t from;   /* dropped up to here */
    size_t resident; /* bytes found resident since the last that were not */
    int ramp;      /* the window is halved this many times while it ramps up */
    bool is_cold;  /* the bytes ahead are not in memory */
    bool is_fresh; /* nothing was probed yet */
    uint64_t due;  /* the pass's own offset at which to look again */
} leat__record_ahead;

/* For a pass from offset 0 on. */
void leat__record_ahead_init(leat__record_ahead *out,
                             const leat__record_files *files, size_t window,
                             size_t kept);

/* Probes, requests and drops. Called by leat__record_ahead_follow, of whose
 * pass `own` is the offset. */
void leat__record_ahead_extend(leat__record_ahead *ahead, uint64_t own);

/* Called before each step of a pass, which is at offset `at` of all files. */
static inline void leat__record_ahead_follow(leat__record_ahead *ahead,
                                             uint64_t at)
{
    if (at >= ahead->due)
        leat__record_ahead_extend(ahead, at);
}

/* Called where the pass, at `at`, goes to `to`: at the end, to 0 with
 * `next_pass`. */
void leat__record_ahead_restart(leat__record_ahead *ahead, uint64_t at,
                                uint64_t to, bool next_pass);

#endif
