/*
 * lmdb_storage.h: which pages of a mapped LMDB lie in memory, and telling the
 * kernel which ones should.
 *
 * All of it changes how long a read takes, never what is read. May be called
 * from any thread.
 */
#ifndef LEAT_READERS_LMDB_STORAGE_H
#define LEAT_READERS_LMDB_STORAGE_H

#include "readers/lmdb/lmdb_map.h"

#include <stdbool.h>

/* Spans that one call takes. */
#define LEAT__LMDB_SPANS_MAX 256

/* Bytes of the file, and of the map. */
typedef struct leat__lmdb_span {
    size_t offset;
    size_t bytes;
} leat__lmdb_span;

typedef struct leat__lmdb_storage {
    const leat__lmdb_map *map; /* borrowed */
    int fd;                    /* of its file; borrowed */
    bool can_see; /* the kernel tells us what lies in memory: a file of ours */
    size_t page;  /* the system's */
    size_t kernel_ahead; /* bytes that the kernel reads ahead; 0: not known */
    size_t
        record_bytes;  /* averages over the tree: a record with its share of */
    size_t leaf_bytes; /* leaves, a leaf with its values; at least 1 */
} leat__lmdb_storage;

void leat__lmdb_storage_init(leat__lmdb_storage *out, const leat__lmdb_map *map,
                             int fd);

/* The leaf itself, or the overflow pages of the node's value; cut to the map.
 */
leat__lmdb_span leat__lmdb_storage_leaf(const leat__lmdb_storage *storage,
                                        uint64_t page);
leat__lmdb_span leat__lmdb_storage_value(const leat__lmdb_storage *storage,
                                         const leat__lmdb_node *node);

/*
 * The system's pages of the span that are not in memory. Where the kernel does
 * not tell, the first and last are tried; where nothing tells, they count.
 */
size_t leat__lmdb_storage_absent(const leat__lmdb_storage *storage,
                                 leat__lmdb_span span);

/* Whether more than a few of pages from all over the file are not in memory. */
bool leat__lmdb_storage_may_block(const leat__lmdb_storage *storage);

/*
 * Asks the kernel to read what is not in memory, and does not wait for it. The
 * spans, at most LEAT__LMDB_SPANS_MAX, are sorted and joined in place. Returns
 * the pages that were absent.
 */
size_t leat__lmdb_storage_ask(const leat__lmdb_storage *storage,
                              leat__lmdb_span spans[], int n);

/*
 * Waits until the spans, treated likewise, lie in memory, and maps them.
 * LEAT_EIO where storage fails, where a plain access would raise SIGBUS.
 */
int leat__lmdb_storage_await(const leat__lmdb_storage *storage,
                             leat__lmdb_span spans[], int n);

/* Unmaps the spans, treated likewise, and drops them from memory. */
void leat__lmdb_storage_drop(const leat__lmdb_storage *storage,
                             leat__lmdb_span spans[], int n);

#endif
