/*
 * lmdb_storage.h: an LMDB as a mapped file, with its averages, and the spans of
 * its pages and values.
 */
#ifndef LEAT_READERS_LMDB_STORAGE_H
#define LEAT_READERS_LMDB_STORAGE_H

#include "readers/lmdb/lmdb_node.h"
#include "readers/mapped_file.h"

typedef struct leat__lmdb_storage {
    const leat__lmdb_map *map; /* borrowed */
    leat__mapped_file file;    /* with its file, which is borrowed */
    size_t record_bytes;       /* averages: a record with its share of */
    size_t leaf_bytes; /* the leaves, and a leaf with its values; at least 1 */
} leat__lmdb_storage;

void leat__lmdb_storage_init(leat__lmdb_storage *out, const leat__lmdb_map *map,
                             int fd);

/* The leaf, or the overflow pages of the node's value, cut to the map. */
leat__span leat__lmdb_storage_leaf(const leat__lmdb_storage *storage,
                                   uint64_t page);
leat__span leat__lmdb_storage_value(const leat__lmdb_storage *storage,
                                    const leat__lmdb_node *node);

#endif
