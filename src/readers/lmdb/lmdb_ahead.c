#include "readers/lmdb/lmdb_ahead.h"

#include <string.h>

/* What a look while warm covers, and how often there is one: a look at more
   costs a walk over small records what it can feel. */
#define GLANCE_BYTES ((size_t)256 << 10)
#define GLANCE_EVERY ((size_t)4 << 20)
#define GLANCE_LEAST 4 /* records */

/* The window is begun with a 32nd, so that the first record comes soon. */
#define RAMP 5

/* A step ahead is an 8th of the window. */
#define STEPS 8

/* Turns bytes into leaves and records, at most a lap of these. */
static void measure(leat__lmdb_ahead *ahead, int values)
{
    const leat__lmdb_storage *storage = ahead->storage;
    const leat__lmdb_meta *meta = &storage->map->meta;
    int64_t entries = (int64_t)meta->entries;
    int64_t records = (int64_t)(ahead->window / storage->record_bytes) + 1;
    int64_t glance = (int64_t)(GLANCE_EVERY / storage->record_bytes);
    if (values && meta->overflow_pages)
        ahead->lead_records = records < entries ? records : entries;
    /* Leaves must be there before their values can be asked for. */
    ahead->lead_leaves =
        ahead->lead_records
            ? 2 * (int64_t)(ahead->window / storage->leaf_bytes) + 2
            : (int64_t)(ahead->window / meta->page_size) + 1;
    /* The counts of pages may be wrong. */
    uint64_t branches = (uint64_t)ahead->lead_leaves;
    if (meta->branch_pages > 0 && meta->leaf_pages / meta->branch_pages > 1)
        branches /= meta->leaf_pages / meta->branch_pages;
    ahead->lead_branches = (int64_t)branches + 2;
    ahead->page_scouts = meta->depth - 1;
    if (ahead->page_scouts > LEAT__LMDB_PAGE_SCOUTS)
        ahead->page_scouts = LEAT__LMDB_PAGE_SCOUTS;
    if (ahead->page_scouts < 1)
        ahead->page_scouts = 1;
    ahead->glance_records = glance > GLANCE_LEAST ? glance : GLANCE_LEAST;
}

void leat__lmdb_ahead_init(leat__lmdb_ahead *out,
                           const leat__lmdb_storage *storage, size_t window,
                           int values)
{
    memset(out, 0, sizeof(*out));
    out->storage = storage;
    out->window = window < storage->map->size ? window : storage->map->size;
    out->is_fresh = 1;
    measure(out, values);
    if (storage->map->meta.entries == 0)
        out->due_leaves = out->due_records = INT64_MAX;
}

/* Where the walk goes on, or near it: at the leaf's next value or its last. */
static size_t next_place(const leat__lmdb_map *map,
                         const leat__lmdb_walker *walk)
{
    const leat__lmdb_page *leaf = &walk->leaf;
    leat__lmdb_node node;
    if (leaf->count == 0)
        return 0;
    uint32_t slot = walk->slot < leaf->count ? walk->slot : leaf->count - 1;
    if (leat__lmdb_map_node(map, leaf, slot, &node))
        return 0;
    if (node.value)
        return (size_t)(node.value - map->base);
    return node.overflow <= map->meta.last_page
               ? (size_t)node.overflow * map->meta.page_size
               : 0;
}

/* Whether what comes next is in memory; at first, the file as a whole. */
static int is_warm(leat__lmdb_ahead *ahead, const leat__lmdb_walker *walk)
{
    const leat__lmdb_map *map = ahead->storage->map;
    if (ahead->is_fresh) {
        ahead->is_fresh = 0;
        return !leat__lmdb_storage_may_block(ahead->storage);
    }
    size_t offset = next_place(map, walk);
    size_t left = map->size - offset;
    leat__lmdb_span span = {offset, left < GLANCE_BYTES ? left : GLANCE_BYTES};
    return leat__lmdb_storage_absent(ahead->storage, span) == 0;
}

static void ask(leat__lmdb_ahead *ahead, leat__lmdb_span spans[], int n)
{
    size_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += spans[i].bytes;
    if (leat__lmdb_storage_ask(ahead->storage, spans, n))
        ahead->calm = 0;
    else
        ahead->calm += bytes;
}

/* The next page for a scout, `up` levels above the leaves; past the end, the
   first one again. LEAT_END: there is none, or damage, which the walk meets. */
static int next_page(leat__lmdb_ahead *ahead, int up, uint64_t *page)
{
    leat__lmdb_walker *scout = &ahead->page_scout[up];
    int64_t lap = scout->leaves;
    int status = leat__lmdb_walker_page(scout, page);
    if (status == LEAT_END && lap > 0) {
        if (up == 0)
            ahead->leaf_scout_past += lap;
        leat__lmdb_walker_init(scout, ahead->storage->map);
        leat__lmdb_walker_raise(scout, up);
        status = leat__lmdb_walker_page(scout, page);
    }
    ahead->is_over |= status != LEAT_OK;
    return status ? LEAT_END : LEAT_OK;
}

/* The next page of a level is asked for; for each branch that is opened to find
   it, another one, further on, is. */
static int scout_page(leat__lmdb_ahead *ahead, int up, leat__lmdb_span *out)
{
    const leat__lmdb_walker *scout = &ahead->page_scout[up];
    uint64_t parent = leat__lmdb_walker_parent(scout), page = 0;
    if (next_page(ahead, up, &page))
        return LEAT_END;
    *out = leat__lmdb_storage_leaf(ahead->storage, page);
    leat__lmdb_span span;
    if (up + 1 < ahead->page_scouts &&
        leat__lmdb_walker_parent(scout) != parent &&
        !scout_page(ahead, up + 1, &span))
        (void)leat__lmdb_storage_ask(ahead->storage, &span, 1);
    return LEAT_OK;
}

static void place_scouts(leat__lmdb_ahead *ahead, const leat__lmdb_walker *walk)
{
    for (int up = 0; up < ahead->page_scouts; up++) {
        ahead->page_scout[up] = *walk;
        leat__lmdb_walker_raise(&ahead->page_scout[up], up);
    }
    ahead->leaf_scout_past = ahead->past_leaves;
    ahead->value_scout = *walk;
    ahead->value_scout_past = ahead->past_records;
    ahead->is_placed = 1;
    ahead->ramp = RAMP;
    ahead->calm = 0;
    /* From the top: a scout finds the branches that it opens asked for. */
    for (int up = ahead->page_scouts - 1; up > 0; up--) {
        leat__lmdb_span span;
        int64_t n = up == 1 ? ahead->lead_branches : 2;
        while (n-- > 0 && !scout_page(ahead, up, &span))
            (void)leat__lmdb_storage_ask(ahead->storage, &span, 1);
    }
}

/* Asks for leaves up to the one of that number. */
static void ask_leaves(leat__lmdb_ahead *ahead, int64_t until)
{
    leat__lmdb_span spans[LEAT__LMDB_SPANS_MAX];
    const leat__lmdb_walker *scout = &ahead->page_scout[0];
    int n = 0;
    while (!ahead->is_over && ahead->leaf_scout_past + scout->leaves < until) {
        if (!scout_page(ahead, 0, &spans[n]))
            n++;
        if (n == LEAT__LMDB_SPANS_MAX) {
            ask(ahead, spans, n);
            n = 0;
        }
    }
    ask(ahead, spans, n);
}

/* The next record's value for the scout, likewise. */
static int scout_value(leat__lmdb_ahead *ahead, leat__lmdb_span *out)
{
    leat__lmdb_walker *scout = &ahead->value_scout;
    leat__lmdb_node node;
    int64_t lap = scout->record;
    int status = leat__lmdb_walker_node(scout, &node);
    if (status == LEAT_END && lap > 0) {
        ahead->value_scout_past += lap;
        leat__lmdb_walker_init(scout, ahead->storage->map);
        status = leat__lmdb_walker_node(scout, &node);
    }
    ahead->is_over |= status != LEAT_OK;
    if (status)
        return LEAT_END;
    *out = leat__lmdb_storage_value(ahead->storage, &node);
    return LEAT_OK;
}

/* Asks for the values of records up to the one of that number. */
static void ask_values(leat__lmdb_ahead *ahead, int64_t until)
{
    leat__lmdb_span spans[LEAT__LMDB_SPANS_MAX];
    const leat__lmdb_walker *scout = &ahead->value_scout;
    int n = 0;
    while (!ahead->is_over && ahead->value_scout_past + scout->record < until) {
        if (!scout_value(ahead, &spans[n]))
            n++;
        if (n == LEAT__LMDB_SPANS_MAX) {
            ask(ahead, spans, n);
            n = 0;
        }
    }
    ask(ahead, spans, n);
}

/* A part of the window, by which the scouts lead or after which they go on. */
static int64_t part(int64_t lead, int ramp, int steps)
{
    int64_t some = (lead >> ramp) / steps;
    return some > 0 ? some : 1;
}

static void rest(leat__lmdb_ahead *ahead, const leat__lmdb_walker *walk)
{
    ahead->is_cold = 0;
    ahead->is_placed = 0;
    ahead->due_leaves = INT64_MAX;
    ahead->due_records = walk->record + ahead->glance_records;
}

void leat__lmdb_ahead_extend(leat__lmdb_ahead *ahead,
                             const leat__lmdb_walker *walk)
{
    if (ahead->window == 0) {
        int is_cold = !is_warm(ahead, walk);
        rest(ahead, walk);
        ahead->is_cold = is_cold;
        return;
    }
    if (ahead->is_over || (!ahead->is_cold && is_warm(ahead, walk))) {
        rest(ahead, walk);
        return;
    }
    ahead->is_cold = 1;
    if (!ahead->is_placed)
        place_scouts(ahead, walk);
    int ramp = ahead->ramp;
    int64_t leaves = ahead->past_leaves + walk->leaves;
    int64_t records = ahead->past_records + walk->record;
    ask_leaves(ahead, leaves + part(ahead->lead_leaves, ramp, 1));
    ahead->due_leaves = walk->leaves + part(ahead->lead_leaves, ramp, STEPS);
    ahead->due_records = INT64_MAX;
    if (ahead->lead_records) {
        ask_values(ahead, records + part(ahead->lead_records, ramp, 1));
        ahead->due_records =
            walk->record + part(ahead->lead_records, ramp, STEPS);
    }
    if (ramp > 0)
        ahead->ramp--;
    if (ahead->calm >= 2 * ahead->window)
        rest(ahead, walk);
}

void leat__lmdb_ahead_restart(leat__lmdb_ahead *ahead,
                              const leat__lmdb_walker *walk, int next_lap)
{
    if (ahead->due_records == INT64_MAX && ahead->due_leaves == INT64_MAX)
        return;
    if (next_lap && leat__lmdb_walker_is_at_end(walk)) {
        ahead->past_records += walk->record;
        ahead->past_leaves += walk->leaves;
    } else {
        ahead->is_placed = 0;
    }
    if (ahead->is_cold) {
        ahead->due_leaves = ahead->due_records = 0;
        return;
    }
    ahead->due_records -= walk->record;
}
