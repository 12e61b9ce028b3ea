/* lmdb_index.h: the address of each record of a snapshot, 8 bytes a record. */
#ifndef LEAT_READERS_LMDB_INDEX_H
#define LEAT_READERS_LMDB_INDEX_H

#include "readers/lmdb/lmdb_readahead.h"

/* Immutable once built. */
typedef struct leat__lmdb_index {
    const leat__lmdb_map *map; /* borrowed */
    int64_t count;
    uint64_t address[];
} leat__lmdb_index;

/*
 * Builds the index by one walk over the leaves; values are not touched.
 * `ahead`, if not NULL, reads ahead of it. Errors: LEAT_EFORMAT, LEAT_ENOMEM.
 */
int leat__lmdb_index_create(leat__lmdb_index **out, const leat__lmdb_map *map,
                            leat__lmdb_readahead *ahead);
void leat__lmdb_index_destroy(leat__lmdb_index *index); /* takes NULL */

/*
 * An index that a walk fills on its way, whose `count` is that of the records
 * noted so far. NULL: no memory. Owned by the caller.
 */
leat__lmdb_index *leat__lmdb_index_begin(const leat__lmdb_map *map);

/*
 * Notes the addresses of `n` records from `record` on, as far as they follow
 * those noted before. Returns whether all records of the map are noted.
 */
bool leat__lmdb_index_note(leat__lmdb_index *index, int64_t record,
                           const uint64_t addresses[], int n);

/* The bytes that an index of all records takes. */
int64_t leat__lmdb_index_bytes(const leat__lmdb_map *map);

/* The record of that number, in [0, count). Thread safety: any thread. */
int leat__lmdb_index_read(const leat__lmdb_index *index, int64_t record,
                          leat__lmdb_entry *out);

#endif
