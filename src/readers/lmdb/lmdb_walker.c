#include "readers/lmdb/lmdb_walker.h"

#include <stdbool.h>
#include <string.h>

/* How many leaves ahead of the walk headers and nodes are prefetched. */
enum { HEADERS_AHEAD = 4, NODES_AHEAD = 2 };

void leat__lmdb_walker_init(leat__lmdb_walker *walker,
                            const leat__lmdb_map *map)
{
    walker->map = map;
    walker->record = 0;
    walker->leaves = 0;
    walker->leaf = (leat__lmdb_page){0};
    walker->slot = 0;
    walker->levels = map->meta.depth - 1;
    walker->branches = 0;
    walker->is_ahead = false;
    walker->is_inside = false;
    walker->fetches = false;
    walker->last_key = NULL;
    walker->failure = LEAT_OK;
}

static int fail(leat__lmdb_walker *walker, int status)
{
    walker->failure = status;
    leat__error_save(walker->failure_line);
    return status;
}

static int fail_again(const leat__lmdb_walker *walker)
{
    return leat_error(walker->failure, "%s", walker->failure_line);
}

static int seek(leat__lmdb_walker *walker, int64_t index);

/* Opens the pages that a jump passed by. */
__attribute__((noinline)) static int arrive(leat__lmdb_walker *walker)
{
    int64_t record = walker->record;
    leat__lmdb_walker_init(walker, walker->map);
    int status = seek(walker, record);
    return status < 0 ? fail(walker, status) : LEAT_OK;
}

/* Before each step. */
static inline int begin(leat__lmdb_walker *walker)
{
    if (walker->failure)
        return fail_again(walker);
    return walker->is_ahead ? arrive(walker) : LEAT_OK;
}

/* Opens a leaf whose records do not exceed the meta page's number. */
static int open_leaf(leat__lmdb_walker *walker, uint64_t number)
{
    const leat__lmdb_map *map = walker->map;
    int status =
        leat__lmdb_map_page(map, number, LEAT__LMDB_LEAF, &walker->leaf);
    if (status)
        return status;
    walker->slot = 0;
    walker->leaves++;
    if (walker->leaf.count > map->meta.entries - (uint64_t)walker->record)
        return leat_error(LEAT_EFORMAT,
                          "%s: damaged: %llu records were expected, page %llu "
                          "has more",
                          map->name, (unsigned long long)map->meta.entries,
                          (unsigned long long)number);
    return LEAT_OK;
}

/* Finds the first page of the walked level under page `number`, `level`
 * branches below the root. */
static int descend(leat__lmdb_walker *walker, uint64_t number, int level,
                   uint64_t *leaf)
{
    const leat__lmdb_map *map = walker->map;
    for (; level < walker->levels; level++) {
        leat__lmdb_page *page = &walker->branch[level].page;
        int status = leat__lmdb_map_page(map, number, LEAT__LMDB_BRANCH, page);
        if (!status)
            status = leat__lmdb_map_child(map, page, 0, &number);
        if (status)
            return status;
        walker->branch[level].slot = 0;
        walker->branches = level + 1;
    }
    *leaf = number;
    return LEAT_OK;
}

static int end_of_walk(const leat__lmdb_walker *walker)
{
    uint64_t entries = walker->map->meta.entries;
    if ((uint64_t)walker->record == entries)
        return LEAT_END;
    return leat_error(LEAT_EFORMAT,
                      "%s: damaged: %llu records were expected, %lld found",
                      walker->map->name, (unsigned long long)entries,
                      (long long)walker->record);
}

/* Steps to the next leaf, or page of the level; LEAT_END after the last. */
static inline int find_leaf(leat__lmdb_walker *walker, uint64_t *leaf)
{
    if (!walker->is_inside) {
        if (walker->map->meta.root == LEAT__LMDB_NO_PAGE)
            return LEAT_END;
        walker->is_inside = true;
        return descend(walker, walker->map->meta.root, 0, leaf);
    }
    for (int level = walker->branches - 1; level >= 0; level--) {
        uint32_t slot = walker->branch[level].slot + 1;
        const leat__lmdb_page *page = &walker->branch[level].page;
        if (slot == page->count)
            continue;
        uint64_t child = 0;
        int status = leat__lmdb_map_child(walker->map, page, slot, &child);
        if (status)
            return status;
        walker->branch[level].slot = slot;
        return descend(walker, child, level + 1, leaf);
    }
    return LEAT_END;
}

/* The page `ahead` leaves later in the same branch; 0: none. */
static uint64_t leaf_ahead(const leat__lmdb_walker *walker, uint32_t ahead)
{
    if (!walker->branches)
        return 0;
    int level = walker->branches - 1;
    const leat__lmdb_page *page = &walker->branch[level].page;
    uint32_t slot = walker->branch[level].slot + ahead;
    uint64_t number = 0;
    if (slot >= page->count ||
        leat__lmdb_map_child(walker->map, page, slot, &number))
        return 0;
    return number;
}

static void fetch_header(const leat__lmdb_walker *walker, uint32_t ahead)
{
    uint64_t number = leaf_ahead(walker, ahead);
    if (number)
        leat__lmdb_map_fetch_header(walker->map, number);
}

static void fetch_nodes(const leat__lmdb_walker *walker, uint32_t ahead)
{
    uint64_t number = leaf_ahead(walker, ahead);
    if (number)
        leat__lmdb_map_fetch_nodes(walker->map, number);
}

/*
 * Nodes are spread over their pages, so each would be a cache miss. The headers
 * of leaves further ahead are prefetched, and the nodes of nearer ones, whose
 * headers have arrived.
 */
static void fetch_leaves(const leat__lmdb_walker *walker)
{
    fetch_header(walker, HEADERS_AHEAD);
    fetch_nodes(walker, NODES_AHEAD);
}

void leat__lmdb_walker_fetch(const leat__lmdb_walker *walker)
{
    if (walker->is_ahead)
        return;
    for (uint32_t i = 0; i <= HEADERS_AHEAD; i++)
        fetch_header(walker, i);
    for (uint32_t i = 0; i <= NODES_AHEAD; i++)
        fetch_nodes(walker, i);
}

/* Not inlined: its size would slow the loops over records. */
__attribute__((noinline)) static int next_leaf(leat__lmdb_walker *walker)
{
    uint64_t number = 0;
    int status = find_leaf(walker, &number);
    if (status == LEAT_END)
        return end_of_walk(walker);
    if (status)
        return status;
    if (walker->fetches)
        fetch_leaves(walker);
    return open_leaf(walker, number);
}

/* Checks that the node's key follows the previous one, and keeps it. */
static inline int check_order(leat__lmdb_walker *walker,
                              const leat__lmdb_node *node)
{
    if (walker->last_key &&
        !leat__lmdb_map_ascends(walker->map, walker->last_key,
                                walker->last_key_size, node->key,
                                node->key_size)) {
        char text[LEAT__KEY_TEXT_MAX];
        return leat_error(
            LEAT_EFORMAT,
            "%s: page %llu is damaged: key %s of record %lld does not "
            "follow the key before it",
            walker->map->name, (unsigned long long)(node->address >> 16),
            leat__key_text(text, node->key, node->key_size),
            (long long)walker->record);
    }
    walker->last_key = node->key;
    walker->last_key_size = node->key_size;
    return LEAT_OK;
}

/* The next record's node, from this leaf or the next one. */
static inline int next_node(leat__lmdb_walker *walker, leat__lmdb_node *node)
{
    int status;
    while (walker->slot == walker->leaf.count)
        if ((status = next_leaf(walker)))
            return status;
    status =
        leat__lmdb_map_node(walker->map, &walker->leaf, walker->slot, node);
    return status ? status : check_order(walker, node);
}

static inline void step(leat__lmdb_walker *walker)
{
    walker->slot++;
    walker->record++;
}

/* Returns the good prefix first; the next call returns the failure. */
static int finish(leat__lmdb_walker *walker, int status, int done, int *got)
{
    if (status < 0)
        fail(walker, status);
    *got = done;
    return done ? LEAT_OK : status;
}

int leat__lmdb_walker_next(leat__lmdb_walker *walker, leat__lmdb_entry out[],
                           int n, int *got)
{
    int done = 0;
    int status = begin(walker);
    *got = 0;
    if (status)
        return status;
    while (done < n) {
        leat__lmdb_node node;
        if ((status = next_node(walker, &node)) ||
            (status = leat__lmdb_map_overflow(walker->map, &node)))
            break;
        out[done++] =
            (leat__lmdb_entry){walker->record, node.address, node.key,
                               node.key_size,  node.value,   node.value_size};
        step(walker);
    }
    return finish(walker, status, done, got);
}

int leat__lmdb_walker_addresses(leat__lmdb_walker *walker, uint64_t out[],
                                int n, int *got)
{
    int done = 0;
    int status = begin(walker);
    *got = 0;
    if (status)
        return status;
    while (done < n) {
        leat__lmdb_node node;
        if ((status = next_node(walker, &node)))
            break;
        out[done++] = node.address;
        step(walker);
    }
    return finish(walker, status, done, got);
}

int leat__lmdb_walker_node(leat__lmdb_walker *walker, leat__lmdb_node *out)
{
    int status = begin(walker);
    if (status)
        return status;
    status = next_node(walker, out);
    if (status)
        return status < 0 ? fail(walker, status) : status;
    step(walker);
    return LEAT_OK;
}

void leat__lmdb_walker_raise(leat__lmdb_walker *walker, int up)
{
    if (walker->is_ahead)
        (void)arrive(walker);
    walker->levels -= up;
    if (walker->branches > walker->levels)
        walker->branches = walker->levels;
}

int leat__lmdb_walker_page(leat__lmdb_walker *walker, uint64_t *out)
{
    int status = begin(walker);
    if (status)
        return status;
    status = find_leaf(walker, out);
    if (status)
        return status < 0 ? fail(walker, status) : status;
    walker->leaves++;
    return LEAT_OK;
}

/* Leaves the open leaf, having looked at its first and last key. */
static int skip_leaf(leat__lmdb_walker *walker)
{
    leat__lmdb_node node;
    uint32_t left = walker->leaf.count - walker->slot;
    int status = next_node(walker, &node);
    if (!status && left > 1) {
        walker->slot = walker->leaf.count - 1;
        status = next_node(walker, &node);
    }
    if (status)
        return status;
    walker->slot = walker->leaf.count;
    walker->record += left;
    return LEAT_OK;
}

static int seek(leat__lmdb_walker *walker, int64_t index)
{
    while (walker->record < index) {
        int64_t left = (int64_t)walker->leaf.count - walker->slot;
        int status;
        if (left && left > index - walker->record) {
            walker->slot += (uint32_t)(index - walker->record);
            walker->record = index;
            return LEAT_OK;
        }
        status = left ? skip_leaf(walker) : next_leaf(walker);
        if (status == LEAT_END)
            return end_of_walk(walker);
        if (status)
            return status;
    }
    return LEAT_OK;
}

int leat__lmdb_walker_seek(leat__lmdb_walker *walker, int64_t index)
{
    const leat__lmdb_map *map = walker->map;
    if (index < 0 || (uint64_t)index > map->meta.entries)
        return leat_error(
            LEAT_EINVAL, "%s: record %lld is out of range: there are %llu",
            map->name, (long long)index, (unsigned long long)map->meta.entries);
    if (walker->failure || walker->is_ahead || index < walker->record)
        leat__lmdb_walker_init(walker, map);
    int status = seek(walker, index);
    return status < 0 ? fail(walker, status) : LEAT_OK;
}

/* The record that the outermost nodes of all branches lead to. */
static int outermost(const leat__lmdb_map *map, bool is_last,
                     leat__lmdb_node *out)
{
    leat__lmdb_page page;
    uint64_t number = map->meta.root;
    int status;
    if (!map->meta.entries)
        return LEAT_END;
    for (int level = 1; level < map->meta.depth; level++) {
        status = leat__lmdb_map_page(map, number, LEAT__LMDB_BRANCH, &page);
        if (!status)
            status = leat__lmdb_map_child(
                map, &page, is_last ? page.count - 1 : 0, &number);
        if (status)
            return status;
    }
    status = leat__lmdb_map_page(map, number, LEAT__LMDB_LEAF, &page);
    if (status)
        return status;
    return leat__lmdb_map_node(map, &page, is_last ? page.count - 1 : 0, out);
}

int leat__lmdb_walker_first(const leat__lmdb_map *map, leat__lmdb_node *out)
{
    return outermost(map, false, out);
}

int leat__lmdb_walker_last(const leat__lmdb_map *map, leat__lmdb_node *out)
{
    return outermost(map, true, out);
}
