#include "readers/lmdb/lmdb_readahead.h"

#include <stdbool.h>
#include <string.h>

/* Bytes that a probe covers, and the distance between two probes: larger probes
 * measurably slow a walk over small records. */
#define PROBE_BYTES ((size_t)256 << 10)
#define PROBE_EVERY ((size_t)4 << 20)
#define PROBE_RECORDS_MIN 4 /* records */

/* The window starts at a 32nd, so that the first record is returned soon. */
#define RAMP 5

/* The cursors advance by an 8th of the window at a time. */
#define STEPS 8

/* Converts the window to leaves and records, at most all of them. */
static void measure(leat__lmdb_readahead *ahead, int values)
{
    const leat__lmdb_storage *storage = ahead->storage;
    const leat__lmdb_meta *meta = &storage->map->meta;
    int64_t entries = (int64_t)meta->entries;
    int64_t records = (int64_t)(ahead->window / storage->record_bytes) + 1;
    int64_t probe = (int64_t)(PROBE_EVERY / storage->record_bytes);
    if (values && meta->overflow_pages)
        ahead->lead_records = records < entries ? records : entries;
    /* Leaves must be resident before their values can be requested. */
    ahead->lead_leaves =
        ahead->lead_records
            ? 2 * (int64_t)(ahead->window / storage->leaf_bytes) + 2
            : (int64_t)(ahead->window / meta->page_size) + 1;
    /* The meta page's counts may be wrong. */
    uint64_t branches = (uint64_t)ahead->lead_leaves;
    if (meta->branch_pages > 0 && meta->leaf_pages / meta->branch_pages > 1)
        branches /= meta->leaf_pages / meta->branch_pages;
    ahead->lead_branches = (int64_t)branches + 2;
    ahead->page_cursors = meta->depth - 1;
    if (ahead->page_cursors > LEAT__LMDB_PAGE_CURSORS)
        ahead->page_cursors = LEAT__LMDB_PAGE_CURSORS;
    if (ahead->page_cursors < 1)
        ahead->page_cursors = 1;
    ahead->probe_records =
        probe > PROBE_RECORDS_MIN ? probe : PROBE_RECORDS_MIN;
}

void leat__lmdb_readahead_init(leat__lmdb_readahead *out,
                               const leat__lmdb_storage *storage, size_t window,
                               int values)
{
    memset(out, 0, sizeof(*out));
    out->storage = storage;
    out->window = window < storage->map->size ? window : storage->map->size;
    out->is_fresh = true;
    measure(out, values);
    if (storage->map->meta.entries == 0)
        out->due_leaves = out->due_records = INT64_MAX;
}

/* The approximate offset at which the walk continues: the leaf's next or last
 * value. */
static size_t next_offset(const leat__lmdb_map *map,
                          const leat__lmdb_walker *walk)
{
    const leat__lmdb_page *leaf = &walk->leaf;
    leat__lmdb_node node;
    if (walk->is_ahead)
        return (size_t)(walk->next >> 16) * map->meta.page_size;
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

/* Whether the next pages are in memory; at first, the file as a whole. */
static bool is_resident(leat__lmdb_readahead *ahead,
                        const leat__lmdb_walker *walk)
{
    const leat__lmdb_map *map = ahead->storage->map;
    if (ahead->is_fresh) {
        ahead->is_fresh = false;
        return !leat__mapped_file_may_block(&ahead->storage->file);
    }
    size_t offset = next_offset(map, walk);
    size_t left = map->size - offset;
    leat__span span = {offset, left < PROBE_BYTES ? left : PROBE_BYTES};
    return leat__mapped_file_absent(&ahead->storage->file, span) == 0;
}

static void ask(leat__lmdb_readahead *ahead, leat__span spans[], int n)
{
    size_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += spans[i].bytes;
    if (leat__mapped_file_ask(&ahead->storage->file, spans, n))
        ahead->resident_bytes = 0;
    else
        ahead->resident_bytes += bytes;
}

/* The next page of a cursor, `up` levels above the leaves; after the last page,
 * the first one again. LEAT_END: none, or damage, which the walk will report.
 */
static int next_page(leat__lmdb_readahead *ahead, int up, uint64_t *page)
{
    leat__lmdb_walker *cursor = &ahead->page_cursor[up];
    int64_t pass = cursor->leaves;
    int status = leat__lmdb_walker_page(cursor, page);
    if (status == LEAT_END && pass > 0) {
        if (up == 0)
            ahead->leaf_cursor_past += pass;
        leat__lmdb_walker_init(cursor, ahead->storage->map);
        leat__lmdb_walker_raise(cursor, up);
        status = leat__lmdb_walker_page(cursor, page);
    }
    ahead->is_over |= status != LEAT_OK;
    return status ? LEAT_END : LEAT_OK;
}

/* Advances a cursor by a page; for each branch that it opens, the cursor above
 * requests one further ahead. */
static int advance_page_cursor(leat__lmdb_readahead *ahead, int up,
                               leat__span *out)
{
    const leat__lmdb_walker *cursor = &ahead->page_cursor[up];
    uint64_t parent = leat__lmdb_walker_parent(cursor), page = 0;
    if (next_page(ahead, up, &page))
        return LEAT_END;
    *out = leat__lmdb_storage_leaf(ahead->storage, page);
    leat__span span;
    if (up + 1 < ahead->page_cursors &&
        leat__lmdb_walker_parent(cursor) != parent &&
        !advance_page_cursor(ahead, up + 1, &span))
        (void)leat__mapped_file_ask(&ahead->storage->file, &span, 1);
    return LEAT_OK;
}

static void set_cursors(leat__lmdb_readahead *ahead,
                        const leat__lmdb_walker *walk)
{
    for (int up = 0; up < ahead->page_cursors; up++) {
        ahead->page_cursor[up] = *walk;
        leat__lmdb_walker_raise(&ahead->page_cursor[up], up);
    }
    ahead->leaf_cursor_past = ahead->past_leaves;
    ahead->value_cursor = *walk;
    ahead->value_cursor_past = ahead->past_records;
    ahead->is_positioned = true;
    ahead->ramp = RAMP;
    ahead->resident_bytes = 0;
    /* From the top, so that the branches that a cursor opens were requested
     * before. */
    for (int up = ahead->page_cursors - 1; up > 0; up--) {
        leat__span span;
        int64_t n = up == 1 ? ahead->lead_branches : 2;
        while (n-- > 0 && !advance_page_cursor(ahead, up, &span))
            (void)leat__mapped_file_ask(&ahead->storage->file, &span, 1);
    }
}

/* Requests leaves up to number `until`. */
static void ask_leaves(leat__lmdb_readahead *ahead, int64_t until)
{
    leat__span spans[LEAT__SPANS_MAX];
    const leat__lmdb_walker *cursor = &ahead->page_cursor[0];
    int n = 0;
    while (!ahead->is_over &&
           ahead->leaf_cursor_past + cursor->leaves < until) {
        if (!advance_page_cursor(ahead, 0, &spans[n]))
            n++;
        if (n == LEAT__SPANS_MAX) {
            ask(ahead, spans, n);
            n = 0;
        }
    }
    ask(ahead, spans, n);
}

/* Advances the value cursor by a record, likewise. */
static int advance_value_cursor(leat__lmdb_readahead *ahead, leat__span *out)
{
    leat__lmdb_walker *cursor = &ahead->value_cursor;
    leat__lmdb_node node;
    int64_t pass = cursor->record;
    int status = leat__lmdb_walker_node(cursor, &node);
    if (status == LEAT_END && pass > 0) {
        ahead->value_cursor_past += pass;
        leat__lmdb_walker_init(cursor, ahead->storage->map);
        status = leat__lmdb_walker_node(cursor, &node);
    }
    ahead->is_over |= status != LEAT_OK;
    if (status)
        return LEAT_END;
    *out = leat__lmdb_storage_value(ahead->storage, &node);
    return LEAT_OK;
}

/* Requests the values of records up to number `until`. */
static void ask_values(leat__lmdb_readahead *ahead, int64_t until)
{
    leat__span spans[LEAT__SPANS_MAX];
    const leat__lmdb_walker *cursor = &ahead->value_cursor;
    int n = 0;
    while (!ahead->is_over &&
           ahead->value_cursor_past + cursor->record < until) {
        if (!advance_value_cursor(ahead, &spans[n]))
            n++;
        if (n == LEAT__SPANS_MAX) {
            ask(ahead, spans, n);
            n = 0;
        }
    }
    ask(ahead, spans, n);
}

/* A part of the window: the cursors' lead, or their step. */
static int64_t part(int64_t lead, int ramp, int steps)
{
    int64_t some = (lead >> ramp) / steps;
    return some > 0 ? some : 1;
}

static void stop(leat__lmdb_readahead *ahead, const leat__lmdb_walker *walk)
{
    ahead->is_cold = false;
    ahead->is_positioned = false;
    ahead->due_leaves = INT64_MAX;
    ahead->due_records = walk->record + ahead->probe_records;
}

void leat__lmdb_readahead_extend(leat__lmdb_readahead *ahead,
                                 const leat__lmdb_walker *walk)
{
    if (ahead->window == 0) {
        bool is_cold = !is_resident(ahead, walk);
        stop(ahead, walk);
        ahead->is_cold = is_cold;
        return;
    }
    if (ahead->is_over || (!ahead->is_cold && is_resident(ahead, walk))) {
        stop(ahead, walk);
        return;
    }
    ahead->is_cold = true;
    if (!ahead->is_positioned)
        set_cursors(ahead, walk);
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
    if (ahead->resident_bytes >= 2 * ahead->window)
        stop(ahead, walk);
}

void leat__lmdb_readahead_restart(leat__lmdb_readahead *ahead,
                                  const leat__lmdb_walker *walk, int next_pass)
{
    if (ahead->due_records == INT64_MAX && ahead->due_leaves == INT64_MAX)
        return;
    if (next_pass && leat__lmdb_walker_is_at_end(walk)) {
        ahead->past_records += walk->record;
        ahead->past_leaves += walk->leaves;
    } else {
        ahead->is_positioned = false;
    }
    if (ahead->is_cold) {
        ahead->due_leaves = ahead->due_records = 0;
        return;
    }
    ahead->due_records -= walk->record;
}
