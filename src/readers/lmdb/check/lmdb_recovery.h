/*
 * lmdb_recovery.h: a recovery scan returns every readable record of an LMDB,
 * damaged or not.
 *
 * It makes the walker's checks and continues after damage: after a page with
 * its neighbour, after a record with the next one. Each page is read only once,
 * however many pointers lead to it, so that the scan ends.
 */
#ifndef LEAT_READERS_LMDB_RECOVERY_H
#define LEAT_READERS_LMDB_RECOVERY_H

#include "base/error.h"
#include "readers/lmdb/check/lmdb_page_use.h"
#include "readers/lmdb/lmdb_storage.h"

#include <stdbool.h>

/* A record, or damage. */
typedef struct leat__lmdb_event {
    int status; /* LEAT_OK: a record; LEAT_EFORMAT, LEAT_EIO: damage */
    leat__lmdb_node node; /* of damage: key NULL if there is no record */
    uint64_t page;        /* the record's leaf, or the damaged page */
    int64_t lost;         /* records lost by damage: 1, 0, or -1: unknown */
    char line[LEAT__ERROR_MAX]; /* of damage */

    /* With a leaf's first record, the branch key that leads to the leaf; else
     * NULL. */
    const unsigned char *low;
    size_t low_size;
    uint64_t low_page;
} leat__lmdb_event;

/* Events of lookahead, to decide which of two keys is out of order. */
#define LEAT__LMDB_LOOKAHEAD 6

typedef struct leat__lmdb_recovery {
    const leat__lmdb_map *map;         /* borrowed, as the next */
    const leat__lmdb_storage *storage; /* NULL: all lies in memory */
    leat__lmdb_page_use use;
    bool jumps; /* pages may be reached again */

    leat__lmdb_page leaf;
    uint32_t slot;   /* of the next record in the leaf */
    uint64_t leaves; /* found so far, the open one included */
    int levels;      /* of branches */
    int branches;    /* open branches */
    bool is_inside;  /* 0: before the first leaf */
    bool is_cold;    /* pages are prefetched */
    struct {
        leat__lmdb_page page;
        uint32_t slot; /* of the child that is open */
    } branch[LEAT__LMDB_DEPTH_MAX];

    /* Found, not yet returned. */
    leat__lmdb_event event[LEAT__LMDB_LOOKAHEAD];
    int at, held;
    bool is_given;                 /* event[at] was returned */
    bool is_over;                  /* the scan has ended */
    leat__lmdb_event aside;        /* damage outside the sequence */
    int64_t found;                 /* records found, damaged ones included */
    bool has_gaps;                 /* unknown numbers of records were lost */
    const unsigned char *last_key; /* of the latest good record returned */
    size_t last_key_size;
} leat__lmdb_recovery;

/* Positions the scan before the first record. LEAT_ENOMEM. */
int leat__lmdb_recovery_init(leat__lmdb_recovery *out,
                             const leat__lmdb_map *map,
                             const leat__lmdb_storage *storage);
/* The same over another tree of the file, which shares the bits `met` of
 * another scan (borrowed), so that no page can be in both trees. Cannot fail.
 */
void leat__lmdb_recovery_init_shared(leat__lmdb_recovery *out,
                                     const leat__lmdb_map *map,
                                     const leat__lmdb_storage *storage,
                                     unsigned char *met);
void leat__lmdb_recovery_finish(leat__lmdb_recovery *recovery);

/*
 * Positions the scan before the first record of the leaf at `share` of all
 * leaves, from 0 to 1; from now on pages may be reached again. Leaves are
 * counted in the branches, of which a jump forward reads those passed.
 */
void leat__lmdb_recovery_jump(leat__lmdb_recovery *recovery, double share);

/*
 * The next record, its value found, or the next damage: LEAT_OK or LEAT_END.
 * Borrowed until the next call.
 */
int leat__lmdb_recovery_next(leat__lmdb_recovery *recovery,
                             const leat__lmdb_event **out);

#endif
