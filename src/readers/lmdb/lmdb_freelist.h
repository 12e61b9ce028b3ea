/*
 * lmdb_freelist.h: the pages that a transaction found free.
 *
 * LMDB keeps them in a tree of its own: under the number of each transaction
 * the pages that it freed. A page that was appended and freed again within one
 * transaction is never written, so a sound file may end before its last page.
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
 * The tree of free pages as a map, `name` for its errors; both are borrowed.
 * LEAT_EFORMAT: it cannot be where the meta page says.
 */
int leat__lmdb_freelist_map(leat__lmdb_map *out, const char *name,
                            const leat__lmdb_map *map);

/* What lies under a key of that tree. LEAT_EFORMAT: nothing that makes sense.
 */
int leat__lmdb_freed_read(leat__lmdb_freed *out, const char *name,
                          const unsigned char *key, size_t key_size,
                          const unsigned char *value, size_t value_size);

/*
 * Stands before the first transaction of `map`'s snapshot, whose bytes are
 * borrowed. LEAT_EFORMAT: the tree cannot be where the meta page says.
 */
int leat__lmdb_freelist_init(leat__lmdb_freelist *list,
                             const leat__lmdb_map *map);

/* LEAT_OK; LEAT_END; LEAT_EFORMAT, again and again. */
int leat__lmdb_freelist_next(leat__lmdb_freelist *list, leat__lmdb_freed *out);

/* Page `i` of them, below out->n. */
uint64_t leat__lmdb_freed_page(const leat__lmdb_freed *freed, size_t i);

/*
 * Takes the pages behind the file's end off meta->last_page if all of them are
 * free, so that none is looked for. LEAT_EFORMAT: truncated.
 */
int leat__lmdb_freelist_cut(leat__lmdb_meta *meta, const char *name,
                            const void *base, size_t size);

#endif
