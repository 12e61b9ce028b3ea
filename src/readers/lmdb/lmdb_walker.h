/*
 * lmdb_walker.h: the records of an LMDB file in key order, from checked pages.
 *
 * Every page is met at most once: keys must ascend strictly from leaf to leaf
 * and no leaf may be empty, so a page met again would break the order. At the
 * end as many records have been met as the meta page promised.
 */
#ifndef LEAT_READERS_LMDB_WALKER_H
#define LEAT_READERS_LMDB_WALKER_H

#include "base/error.h"
#include "readers/lmdb/lmdb_map.h"

#include <stdbool.h>

/* A record; its views point into the map. */
typedef struct leat__lmdb_entry {
    int64_t record; /* its number, from 0 */
    const unsigned char *key;
    size_t key_size;
    const unsigned char *value;
    size_t value_size;
} leat__lmdb_entry;

typedef struct leat__lmdb_walker {
    /* What each step changes: as long as a cache line. */
    int64_t record; /* the number of the next one */
    int64_t leaves; /* met so far, or pages of the level */
    leat__lmdb_page leaf;
    const unsigned char *last_key; /* that was met; NULL: none */
    size_t last_key_size;
    uint32_t slot; /* of the next record in the leaf */
    int branches;  /* that are open */

    const leat__lmdb_map *map;
    int levels;     /* of branches above what is walked over */
    bool is_inside; /* 0: before the first leaf */
    bool fetches;   /* the next leaves into the cache: they are in memory */
    int failure;    /* returned again until the walk begins anew */
    struct {
        leat__lmdb_page page;
        uint32_t slot; /* of the child that is open */
    } branch[LEAT__LMDB_DEPTH_MAX];
    char failure_line[LEAT__ERROR_MAX];
} leat__lmdb_walker;

/* Stands before the first record; `map` is borrowed. Also begins anew. */
void leat__lmdb_walker_init(leat__lmdb_walker *walker,
                            const leat__lmdb_map *map);

/* Whether all records were met. */
static inline bool leat__lmdb_walker_is_at_end(const leat__lmdb_walker *walker)
{
    return (uint64_t)walker->record == walker->map->meta.entries;
}

/*
 * Gives up to `n` records. LEAT_OK with *got from 1 to n; LEAT_END with *got 0;
 * LEAT_EFORMAT, again and again, behind the last record that could be reached.
 */
int leat__lmdb_walker_next(leat__lmdb_walker *walker, leat__lmdb_entry out[],
                           int n, int *got);

/* The same for the places of records (see leat__lmdb_node). */
int leat__lmdb_walker_addresses(leat__lmdb_walker *walker, uint64_t out[],
                                int n, int *got);

/*
 * Fetches into the cache what the walk needs next, as it does itself as long as
 * it stays in one thread: for who takes it over from another. The leaves are in
 * memory.
 */
void leat__lmdb_walker_fetch(const leat__lmdb_walker *walker);

/*
 * The next record's node; its value is not looked for. Otherwise the same.
 */
int leat__lmdb_walker_node(leat__lmdb_walker *walker, leat__lmdb_node *out);

/*
 * From now on the walker goes over the pages `up` levels above the leaves, by
 * leat__lmdb_walker_page alone: it stands behind the page that it is in. `up`
 * is less than the depth of the tree.
 */
void leat__lmdb_walker_raise(leat__lmdb_walker *walker, int up);

/*
 * The next page of the level, which is not touched: only the branches above it
 * are. LEAT_OK, LEAT_END, LEAT_EFORMAT as above; at the end init alone helps,
 * and raise.
 */
int leat__lmdb_walker_page(leat__lmdb_walker *walker, uint64_t *out);

/* The branch whose child the latest page was; 0 where there is none. */
static inline uint64_t leat__lmdb_walker_parent(const leat__lmdb_walker *walker)
{
    return walker->branches > 0
               ? walker->branch[walker->branches - 1].page.number
               : 0;
}

/*
 * Stands before record `index`, from 0 to the number of records. Touches leaves
 * and branches only, and those behind the present one when going forward.
 */
int leat__lmdb_walker_seek(leat__lmdb_walker *walker, int64_t index);

/*
 * The first and the last record, by way of the outermost branches alone.
 * LEAT_END: there is none. Values are not looked for.
 */
int leat__lmdb_walker_first(const leat__lmdb_map *map, leat__lmdb_node *out);
int leat__lmdb_walker_last(const leat__lmdb_map *map, leat__lmdb_node *out);

#endif
