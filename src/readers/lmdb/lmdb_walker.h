/*
 * lmdb_walker.h: the records of an LMDB file in key order, from checked pages.
 *
 * Every page is reached at most once: keys must ascend strictly from leaf to
 * leaf and no leaf under a branch may be empty, so a second visit would break
 * the order. At the end the number of records must be the meta page's.
 */
#ifndef LEAT_READERS_LMDB_WALKER_H
#define LEAT_READERS_LMDB_WALKER_H

#include "base/error.h"
#include "readers/lmdb/lmdb_node.h"

#include <stdbool.h>

/* A record; its views point into the map. */
typedef struct leat__lmdb_entry {
    int64_t record;   /* its number, from 0 */
    uint64_t address; /* see leat__lmdb_node */
    const unsigned char *key;
    size_t key_size;
    const unsigned char *value;
    size_t value_size;
} leat__lmdb_entry;

typedef struct leat__lmdb_walker {
    /* Changed by each step: one cache line. */
    int64_t record; /* number of the next record */
    int64_t leaves; /* passed so far, or pages of the level */
    leat__lmdb_page leaf;
    const unsigned char *last_key; /* of the latest record; NULL: none */
    size_t last_key_size;
    uint32_t slot; /* of the next record in the leaf */
    int branches;  /* open branches */
    bool is_ahead; /* it jumped: the pages are still to be opened */
    uint64_t next; /* then, the address of the next record; 0: none */

    const leat__lmdb_map *map;
    int levels;     /* of branches above the walked level */
    bool is_inside; /* false: before the first leaf */
    bool fetches;   /* prefetches the next leaves into the cache: they are in
                       memory */
    int failure;    /* sticky until the walk restarts */
    struct {
        leat__lmdb_page page;
        uint32_t slot; /* of the child that is open */
    } branch[LEAT__LMDB_DEPTH_MAX];
    char failure_line[LEAT__ERROR_MAX];
} leat__lmdb_walker;

/* Positions the walker before the first record; `map` is borrowed. Also
 * restarts. */
void leat__lmdb_walker_init(leat__lmdb_walker *walker,
                            const leat__lmdb_map *map);

/* Whether all records were returned. */
static inline bool leat__lmdb_walker_is_at_end(const leat__lmdb_walker *walker)
{
    return (uint64_t)walker->record == walker->map->meta.entries;
}

/*
 * Returns up to `n` records. LEAT_OK with *got from 1 to n; LEAT_END with *got
 * 0; LEAT_EFORMAT, sticky, after the last record that could be reached.
 */
int leat__lmdb_walker_next(leat__lmdb_walker *walker, leat__lmdb_entry out[],
                           int n, int *got);

/* The same for the addresses of records (see leat__lmdb_node). */
int leat__lmdb_walker_addresses(leat__lmdb_walker *walker, uint64_t out[],
                                int n, int *got);

/*
 * Positions the walker before record `record`, from 0 to the number of records,
 * which is at `address`, or 0 where there is none. Touches no page: the step
 * after it opens them, and reports what is wrong with them.
 */
static inline void leat__lmdb_walker_jump(leat__lmdb_walker *walker,
                                          int64_t record, uint64_t address)
{
    walker->record = record;
    walker->next = address;
    walker->is_ahead = true;
}

/*
 * Prefetches the walk's next leaves into this core's cache. Called when another
 * thread takes the walk over; the leaves are in memory.
 */
void leat__lmdb_walker_fetch(const leat__lmdb_walker *walker);

/*
 * The next record's node, whose value is not looked up. Otherwise the same.
 */
int leat__lmdb_walker_node(leat__lmdb_walker *walker, leat__lmdb_node *out);

/*
 * From now on the walker walks the pages `up` levels above the leaves, only by
 * leat__lmdb_walker_page: it is positioned after its current page. `up` is less
 * than the depth of the tree.
 */
void leat__lmdb_walker_raise(leat__lmdb_walker *walker, int up);

/*
 * The next page of the level; only the branches above it are touched. LEAT_OK,
 * LEAT_END, LEAT_EFORMAT as above; init and raise restart it.
 */
int leat__lmdb_walker_page(leat__lmdb_walker *walker, uint64_t *out);

/* The parent branch of the latest page; 0: none. */
static inline uint64_t leat__lmdb_walker_parent(const leat__lmdb_walker *walker)
{
    return walker->branches > 0
               ? walker->branch[walker->branches - 1].page.number
               : 0;
}

/*
 * Positions the walker before record `index`, from 0 to the number of records.
 * Touches leaves and branches only, and only later ones when moving forward.
 */
int leat__lmdb_walker_seek(leat__lmdb_walker *walker, int64_t index);

/*
 * The first and the last record, found through the outermost branches.
 * LEAT_END: no records. Values are not looked up.
 */
int leat__lmdb_walker_first(const leat__lmdb_map *map, leat__lmdb_node *out);
int leat__lmdb_walker_last(const leat__lmdb_map *map, leat__lmdb_node *out);

#endif
