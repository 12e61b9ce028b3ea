/*
 * lmdb_freelist_check.h: whether each page of an LMDB file is in use once, or
 * free once.
 *
 * The tree of records does not say which other pages hold something: a page
 * that is listed as free and is in use will be overwritten by whoever writes
 * next. The freelist walks the list of free pages, as a recovery, and compares.
 */
#ifndef LEAT_READERS_LMDB_FREELIST_CHECK_H
#define LEAT_READERS_LMDB_FREELIST_CHECK_H

#include "readers/lmdb/check/lmdb_recovery.h"
#include "readers/lmdb/lmdb_freelist.h"

#include <stdbool.h>

typedef struct leat__lmdb_freelist_check {
    const leat__lmdb_map *map; /* borrowed */
    char *name;                /* of the list, for errors; owned */
    leat__lmdb_map list;       /* the tree of free pages */
    leat__lmdb_recovery
        recovery;           /* over it; marks its pages with the records' */
    unsigned char *listed;  /* a bit for each page; owned */
    leat__lmdb_freed freed; /* the part of the list that is open */
    size_t at;              /* in it */
    bool is_damaged;        /* the list is */
    leat__lmdb_event event; /* the latest */
} leat__lmdb_freelist_check;

/*
 * Begins behind a recovery of all records of `map`, whose bits `met` are, both
 * borrowed; `storage` as of recovery. LEAT_EFORMAT: the list cannot be where
 * the meta page says; LEAT_ENOMEM.
 */
int leat__lmdb_freelist_check_init(leat__lmdb_freelist_check *out,
                                   const leat__lmdb_map *map,
                                   const leat__lmdb_storage *storage,
                                   unsigned char *met);
void leat__lmdb_freelist_check_finish(leat__lmdb_freelist_check *freelist);

/*
 * The next damage, borrowed until the next call: LEAT_OK and LEAT_END alone.
 * None costs a record.
 */
int leat__lmdb_freelist_check_next(leat__lmdb_freelist_check *freelist,
                                   const leat__lmdb_event **out);

/* At the end: pages in use, those of the list included, and pages listed. */
void leat__lmdb_freelist_check_count(const leat__lmdb_freelist_check *freelist,
                                     uint64_t *used, uint64_t *listed);

#endif
