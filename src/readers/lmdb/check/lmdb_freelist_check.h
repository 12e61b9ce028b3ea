/*
 * lmdb_freelist_check.h: checks that each page of an LMDB file is used once, or
 * free once.
 *
 * The next writer overwrites a page that is in use but on the freelist. The
 * check scans the freelist as lmdb_recovery.h scans the records, and compares
 * the two.
 */
#ifndef LEAT_READERS_LMDB_FREELIST_CHECK_H
#define LEAT_READERS_LMDB_FREELIST_CHECK_H

#include "readers/lmdb/check/lmdb_recovery.h"
#include "readers/lmdb/lmdb_freelist.h"

#include <stdbool.h>

typedef struct leat__lmdb_freelist_check {
    const leat__lmdb_map *map; /* borrowed */
    char *name;                /* of the freelist, for errors; owned */
    leat__lmdb_map list;       /* the tree of free pages */
    leat__lmdb_recovery
        recovery; /* over `list`; marks its pages in the records' bits */
    unsigned char *listed;  /* a bit for each page; owned */
    leat__lmdb_freed freed; /* the open part of the list */
    size_t at;              /* index in `freed` */
    int events;             /* returned so far */
    bool is_cut;            /* they were too many: the check has ended */
    leat__lmdb_event event; /* the latest one */
} leat__lmdb_freelist_check;

/*
 * Starts after a recovery scan of all records of `map`, whose bits are `met`;
 * both are borrowed, as is `storage`. LEAT_EFORMAT: the meta page's freelist
 * root is invalid; LEAT_ENOMEM.
 */
int leat__lmdb_freelist_check_init(leat__lmdb_freelist_check *out,
                                   const leat__lmdb_map *map,
                                   const leat__lmdb_storage *storage,
                                   unsigned char *met);
void leat__lmdb_freelist_check_finish(leat__lmdb_freelist_check *freelist);

/*
 * The next damage, borrowed until the next call: LEAT_OK or LEAT_END. It never
 * loses records. After 10000 the next one says that there are more, and is the
 * last: `is_cut`.
 */
int leat__lmdb_freelist_check_next(leat__lmdb_freelist_check *freelist,
                                   const leat__lmdb_event **out);

/* After LEAT_END, unless `is_cut`: pages in use, including the freelist's own,
 * and pages on it. */
void leat__lmdb_freelist_check_count(const leat__lmdb_freelist_check *freelist,
                                     uint64_t *used, uint64_t *listed);

#endif
