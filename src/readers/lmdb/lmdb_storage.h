/*
 * lmdb_storage.h: probes which pages of a mapped LMDB are in memory, and has
 * the kernel read or drop pages.
 *
 * Affects the time that a read takes, never its result. May be called from any
 * thread.
 */
#ifndef LEAT_READERS_LMDB_STORAGE_H
#define LEAT_READERS_LMDB_STORAGE_H

#include "readers/lmdb/lmdb_map.h"

#include <stdbool.h>

/* The most spans in one call. */
#define LEAT__LMDB_SPANS_MAX 256

/* A byte range of the file, and of the map. */
typedef struct leat__lmdb_span {
    size_t offset;
    size_t bytes;
} leat__lmdb_span;

typedef struct leat__lmdb_storage {
    const leat__lmdb_map *map; /* borrowed */
    int fd;                    /* of its file; borrowed */
    bool can_see;              /* mincore reports residency: the file is ours */
    size_t page;               /* the system's page size */
    size_t kernel_ahead; /* the kernel's own read-ahead in bytes; 0: unknown */
    size_t record_bytes; /* averages: a record with its share of */
    size_t leaf_bytes; /* the leaves, and a leaf with its values; at least 1 */
} leat__lmdb_storage;

void leat__lmdb_storage_init(leat__lmdb_storage *out, const leat__lmdb_map *map,
                             int fd);

/* The leaf, or the overflow pages of the node's value, cut to the map. */
leat__lmdb_span leat__lmdb_storage_leaf(const leat__lmdb_storage *storage,
                                        uint64_t page);
leat__lmdb_span leat__lmdb_storage_value(const leat__lmdb_storage *storage,
                                         const leat__lmdb_node *node);

/*
 * The number of system pages of the span that are not in memory. If mincore
 * reports nothing, only the first and last page are probed; if that fails too,
 * they count as absent.
 */
size_t leat__lmdb_storage_absent(const leat__lmdb_storage *storage,
                                 leat__lmdb_span span);

/* Whether more than a few of the pages sampled from the whole file are not in
 * memory. */
bool leat__lmdb_storage_may_block(const leat__lmdb_storage *storage);

/*
 * Requests the absent pages from the kernel without waiting. The spans, at most
 * LEAT__LMDB_SPANS_MAX, are sorted and joined in the array. Returns the number
 * of absent pages.
 */
size_t leat__lmdb_storage_ask(const leat__lmdb_storage *storage,
                              leat__lmdb_span spans[], int n);

/*
 * Waits until the spans, sorted likewise, are in memory, and maps them.
 * LEAT_EIO if the storage fails, where a plain access would raise SIGBUS.
 */
int leat__lmdb_storage_await(const leat__lmdb_storage *storage,
                             leat__lmdb_span spans[], int n);

/* Unmaps the spans, sorted likewise, and drops them from memory. */
void leat__lmdb_storage_drop(const leat__lmdb_storage *storage,
                             leat__lmdb_span spans[], int n);

#endif
