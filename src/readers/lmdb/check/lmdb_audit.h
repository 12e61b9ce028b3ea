/*
 * lmdb_audit.h: whether each page of an LMDB file is in use once, or free once.
 *
 * The tree of records does not say which other pages hold something: a page
 * that is listed as free and is in use will be overwritten by whoever writes
 * next. The audit walks the list of free pages, as a salvage, and compares.
 */
#ifndef LEAT_READERS_LMDB_AUDIT_H
#define LEAT_READERS_LMDB_AUDIT_H

#include "readers/lmdb/check/lmdb_salvage.h"
#include "readers/lmdb/lmdb_free.h"

typedef struct leat__lmdb_audit {
    const leat__lmdb_map *map;  /* borrowed */
    char *name;                 /* of the list, for errors; owned */
    leat__lmdb_map list;        /* the tree of free pages */
    leat__lmdb_salvage salvage; /* over it; marks its pages with the records' */
    unsigned char *listed;      /* a bit for each page; owned */
    leat__lmdb_freed freed;     /* the part of the list that is open */
    size_t at;                  /* in it */
    int is_damaged;             /* the list is */
    leat__lmdb_event event;     /* the latest */
} leat__lmdb_audit;

/*
 * Begins behind a salvage of all records of `map`, whose bits `met` are, both
 * borrowed; `storage` as of salvage. LEAT_EFORMAT: the list cannot be where the
 * meta page says; LEAT_ENOMEM.
 */
int leat__lmdb_audit_init(leat__lmdb_audit *out, const leat__lmdb_map *map,
                          const leat__lmdb_storage *storage,
                          unsigned char *met);
void leat__lmdb_audit_finish(leat__lmdb_audit *audit);

/*
 * The next damage, borrowed until the next call: LEAT_OK and LEAT_END alone.
 * None costs a record.
 */
int leat__lmdb_audit_next(leat__lmdb_audit *audit,
                          const leat__lmdb_event **out);

/* At the end: pages in use, those of the list included, and pages listed. */
void leat__lmdb_audit_count(const leat__lmdb_audit *audit, uint64_t *used,
                            uint64_t *listed);

#endif
