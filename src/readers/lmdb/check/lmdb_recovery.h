/*
 * lmdb_recovery.h: all that can be read of an LMDB, damaged or not.
 *
 * The checks are the walker's, and go on behind what they find: behind a page
 * with its neighbour, behind a record with the next one. A page is read once,
 * whoever points to it, so that the walk ends.
 */
#ifndef LEAT_READERS_LMDB_RECOVERY_H
#define LEAT_READERS_LMDB_RECOVERY_H

#include "base/error.h"
#include "readers/lmdb/lmdb_storage.h"

#include <stdbool.h>

/* A record, or damage. */
typedef struct leat__lmdb_event {
    int status; /* LEAT_OK: a record; LEAT_EFORMAT, LEAT_EIO: damage */
    leat__lmdb_node node; /* of damage: key NULL where it is no record's */
    uint64_t page;        /* a record's leaf, or what is damaged */
    int64_t lost;         /* by damage: a record, none, or -1: unknown */
    char line[LEAT__ERROR_MAX]; /* of damage */

    /* The key that leads to the leaf, with its first record; else NULL. */
    const unsigned char *low;
    size_t low_size;
    uint64_t low_page;
} leat__lmdb_event;

/* Events that are looked ahead at, to tell which of two keys is out of order.
 */
#define LEAT__LMDB_LOOKAHEAD 6

typedef struct leat__lmdb_recovery {
    const leat__lmdb_map *map;         /* borrowed, as the next */
    const leat__lmdb_storage *storage; /* NULL: all lies in memory */
    unsigned char *met; /* a bit for each page; owned, unless it is borrowed */
    bool borrows_met;
    bool jumps; /* pages may be met again */

    leat__lmdb_page leaf;
    uint32_t slot;  /* of the next record in the leaf */
    int levels;     /* of branches */
    int branches;   /* that are open */
    bool is_inside; /* 0: before the first leaf */
    bool is_cold;   /* pages are asked for ahead */
    struct {
        leat__lmdb_page page;
        uint32_t slot; /* of the child that is open */
    } branch[LEAT__LMDB_DEPTH_MAX];

    /* Found, not yet given. */
    leat__lmdb_event event[LEAT__LMDB_LOOKAHEAD];
    int at, held;
    bool is_given;                 /* the one at `at` was */
    bool is_over;                  /* nothing more to find */
    leat__lmdb_event aside;        /* damage that has no place among them */
    int64_t found;                 /* records, damaged ones included */
    bool has_gaps;                 /* pages of records are lost */
    const unsigned char *last_key; /* that was given, of a good record */
    size_t last_key_size;
} leat__lmdb_recovery;

/* Stands before the first record. LEAT_ENOMEM. */
int leat__lmdb_recovery_init(leat__lmdb_recovery *out,
                             const leat__lmdb_map *map,
                             const leat__lmdb_storage *storage);
/* The same over another tree of the file: bits of pages met are another
   recovery's, borrowed, so that no page may be in both. Cannot fail. */
void leat__lmdb_recovery_init_shared(leat__lmdb_recovery *out,
                                     const leat__lmdb_map *map,
                                     const leat__lmdb_storage *storage,
                                     unsigned char *met);
void leat__lmdb_recovery_finish(leat__lmdb_recovery *recovery);

/*
 * Stands before the first record of the leaf at about `share` of the way, from
 * 0 to 1; from now on pages may be met again.
 */
void leat__lmdb_recovery_jump(leat__lmdb_recovery *recovery, double share);

/*
 * The next record, its value found, or the next damage: LEAT_OK and LEAT_END
 * alone. Borrowed until the next call.
 */
int leat__lmdb_recovery_next(leat__lmdb_recovery *recovery,
                             const leat__lmdb_event **out);

#endif
