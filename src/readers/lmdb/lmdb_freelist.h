/*
 * lmdb_freelist.h: the freelist, the pages that LMDB may reuse.
 *
 * LMDB keeps it in a tree of its own, which maps the number of each transaction
 * to the pages that it freed. A page that is appended and freed within one
 * transaction is never written, so an intact file may end before its last page.
 */
#ifndef LEAT_READERS_LMDB_FREELIST_H
#define LEAT_READERS_LMDB_FREELIST_H

#include "readers/lmdb/lmdb_walker.h"

typedef struct leat__lmdb_freelist {
    leat__lmdb_map map; /* of the tree of free pages */
    leat__lmdb_walker walker;
} leat__lmdb_freelist;

/* What one transaction freed; a view into the map. */
typedef struct leat__lmdb_freed {
    uint64_t txnid;
    const unsigned char *pages; /* n numbers, 8 bytes each */
    size_t n;
} leat__lmdb_freed;

/*
 * The tree of the freelist as a map, with `name` in its errors; both are
 * borrowed. LEAT_EFORMAT: the meta page's root is invalid.
 */
int leat__lmdb_freelist_map(leat__lmdb_map *out, const char *name,
                            const leat__lmdb_map *map);

/* Parses a record of that tree. LEAT_EFORMAT: malformed. */
int leat__lmdb_freed_read(leat__lmdb_freed *out, const char *name,
                          const unsigned char *key, size_t key_size,
                          const unsigned char *value, size_t value_size);

/*
 * Positions the list before the first transaction of `map`'s snapshot, whose
 * bytes are borrowed. LEAT_EFORMAT: the meta page's root is invalid.
 */
int leat__lmdb_freelist_init(leat__lmdb_freelist *list,
                             const leat__lmdb_map *map);

/* LEAT_OK; LEAT_END; LEAT_EFORMAT, from every further call too. */
int leat__lmdb_freelist_next(leat__lmdb_freelist *list, leat__lmdb_freed *out);

/* Page `i` of the transaction, i < freed->n. */
uint64_t leat__lmdb_freed_page(const leat__lmdb_freed *freed, size_t i);

/*
 * Reduces meta->last_page to the file's end if all pages past it are free,
 * since they were never written. LEAT_EFORMAT: truncated.
 */
int leat__lmdb_freelist_cut(leat__lmdb_meta *meta, const char *name,
                            const void *base, size_t size);

#endif
