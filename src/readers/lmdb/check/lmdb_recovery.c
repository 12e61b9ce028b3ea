/*
 * Two steps: `find` scans the pages for records and damage, and `next` keeps
 * some of them as lookahead, to judge the order of keys.
 */
#include "readers/lmdb/check/lmdb_recovery.h"
#include "base/memory.h"

#include <stdbool.h>
#include <string.h>

void leat__lmdb_recovery_init_shared(leat__lmdb_recovery *out,
                                     const leat__lmdb_map *map,
                                     const leat__lmdb_storage *storage,
                                     unsigned char *met)
{
    memset(out, 0, sizeof(*out));
    out->map = map;
    out->storage = storage;
    out->is_cold = storage && leat__mapped_file_may_block(&storage->file);
    out->levels = map->meta.depth - 1;
    out->use.name = map->name;
    out->use.bits = met;
    out->use.borrows_bits = true;
}

int leat__lmdb_recovery_init(leat__lmdb_recovery *out,
                             const leat__lmdb_map *map,
                             const leat__lmdb_storage *storage)
{
    unsigned char *met = leat__lmdb_page_bits(map->meta.last_page);
    if (!met)
        return LEAT_ENOMEM;
    leat__lmdb_recovery_init_shared(out, map, storage, met);
    out->use.borrows_bits = false;
    return LEAT_OK;
}

void leat__lmdb_recovery_finish(leat__lmdb_recovery *recovery)
{
    leat__lmdb_page_use_finish(&recovery->use);
}

/* Turns the thread's error line into an event. */
static void set_damage(leat__lmdb_recovery *recovery, leat__lmdb_event *event,
                       int status, uint64_t page, int64_t lost)
{
    event->status = status;
    event->page = page;
    event->lost = lost;
    leat__error_save(event->line);
    if (lost < 0)
        recovery->has_gaps = true;
}

/* Awaits the page, so that a storage failure is an error and not a signal. */
static int await(const leat__lmdb_recovery *recovery, uint64_t page)
{
    if (!recovery->storage || page > recovery->map->meta.last_page)
        return LEAT_OK;
    leat__span span = leat__lmdb_storage_leaf(recovery->storage, page);
    return leat__mapped_file_await(&recovery->storage->file, &span, 1, NULL);
}

static int open_page(leat__lmdb_recovery *recovery, uint64_t number,
                     leat__lmdb_page_type type, leat__lmdb_page *out)
{
    leat__lmdb_page page;
    int status = await(recovery, number);
    if (!status)
        status = leat__lmdb_map_page(recovery->map, number, type, &page);
    if (!status && !recovery->jumps)
        status = leat__lmdb_page_use_mark(&recovery->use, number, 1);
    if (!status)
        *out = page;
    return status;
}

/* Prefetches the leaves below a branch. */
static void ask_children(const leat__lmdb_recovery *recovery,
                         const leat__lmdb_page *page)
{
    leat__span spans[LEAT__SPANS_MAX];
    int n = 0;
    for (uint32_t slot = 0; slot < page->count; slot++) {
        uint64_t child;
        if (leat__lmdb_map_child(recovery->map, page, slot, &child) ||
            child > recovery->map->meta.last_page)
            continue;
        spans[n++] = leat__lmdb_storage_leaf(recovery->storage, child);
        if (n == LEAT__SPANS_MAX || slot + 1 == page->count) {
            leat__mapped_file_ask(&recovery->storage->file, spans, n);
            n = 0;
        }
    }
}

/* Opens the branches to the first leaf under page `*number`, `level` branches
 * below the root, whose number it then is; damage on the path becomes an event.
 */
static int descend(leat__lmdb_recovery *recovery, uint64_t *number, int level,
                   leat__lmdb_event *event)
{
    for (; level < recovery->levels; level++) {
        leat__lmdb_page *page = &recovery->branch[level].page;
        uint64_t branch = *number;
        int status = open_page(recovery, branch, LEAT__LMDB_BRANCH, page);
        if (!status) {
            recovery->branch[level].slot = 0;
            recovery->branches = level + 1;
            status = leat__lmdb_map_child(recovery->map, page, 0, number);
        }
        if (status) {
            set_damage(recovery, event, status, branch, -1);
            return status;
        }
    }
    return LEAT_OK;
}

/* Finds the next leaf, in the branches alone; LEAT_END after the last one. */
static int find_leaf(leat__lmdb_recovery *recovery, uint64_t *number,
                     leat__lmdb_event *event)
{
    const leat__lmdb_map *map = recovery->map;
    recovery->leaves++;
    if (!recovery->is_inside) {
        recovery->is_inside = true;
        *number = map->meta.root;
        return *number == LEAT__LMDB_NO_PAGE
                   ? LEAT_END
                   : descend(recovery, number, 0, event);
    }
    for (int level = recovery->branches - 1; level >= 0; level--) {
        const leat__lmdb_page *page = &recovery->branch[level].page;
        uint32_t slot = recovery->branch[level].slot + 1;
        if (slot == page->count)
            continue;
        recovery->branch[level].slot = slot;
        recovery->branches = level + 1;
        int status = leat__lmdb_map_child(map, page, slot, number);
        if (!status)
            return descend(recovery, number, level + 1, event);
        set_damage(recovery, event, status, page->number, -1);
        return status;
    }
    return LEAT_END;
}

/* Opens a leaf that was found. The first one of its branch has the others
 * prefetched, unless only samples are read. */
static int open_leaf(leat__lmdb_recovery *recovery, uint64_t number,
                     leat__lmdb_event *event)
{
    int lowest = recovery->levels - 1;
    if (recovery->is_cold && lowest >= 0 && !recovery->jumps &&
        recovery->branch[lowest].slot == 0)
        ask_children(recovery, &recovery->branch[lowest].page);
    int status = open_page(recovery, number, LEAT__LMDB_LEAF, &recovery->leaf);
    if (status)
        set_damage(recovery, event, status, number, -1);
    else
        recovery->slot = 0;
    return status;
}

/* Opens the next leaf; LEAT_END after the last one. */
static int next_leaf(leat__lmdb_recovery *recovery, leat__lmdb_event *event)
{
    uint64_t number;
    int status = find_leaf(recovery, &number, event);
    return status ? status : open_leaf(recovery, number, event);
}

/* The branch key that leads to the leaf: that of the lowest branch in which the
 * path does not take the first node. */
static void find_low(const leat__lmdb_recovery *recovery,
                     leat__lmdb_event *event)
{
    event->low = NULL;
    for (int level = recovery->branches - 1; level >= 0; level--) {
        const leat__lmdb_page *page = &recovery->branch[level].page;
        uint32_t slot = recovery->branch[level].slot;
        if (slot == 0)
            continue;
        if (leat__lmdb_map_separator(recovery->map, page, slot, &event->low,
                                     &event->low_size))
            event->low = NULL;
        event->low_page = page->number;
        return;
    }
}

/* Finds the value on its overflow pages, which no other record may share. */
static int find_value(leat__lmdb_recovery *recovery, leat__lmdb_node *node)
{
    if (node->value)
        return LEAT_OK;
    leat__lmdb_node found = *node;
    uint64_t page = node->overflow;
    int status = await(recovery, page);
    if (!status)
        status = leat__lmdb_map_overflow(recovery->map, &found);
    if (status)
        return status;
    uint64_t pages = leat__lmdb_map_overflow_pages(recovery->map, node);
    const unsigned char *end = found.value + found.value_size - 1;
    uint64_t needed =
        (uint64_t)(end - recovery->map->base) / recovery->map->meta.page_size -
        page + 1;
    if (!recovery->jumps)
        status =
            leat__lmdb_page_use_mark_value(&recovery->use, page, needed, pages);
    if (!status)
        *node = found;
    return status;
}

/* After the last record: the next count of pages that takes another's. */
static int find_conflict(leat__lmdb_recovery *recovery, leat__lmdb_event *event)
{
    uint64_t page;
    int status = recovery->jumps
                     ? LEAT_OK
                     : leat__lmdb_page_use_check(&recovery->use, &page);
    if (status)
        set_damage(recovery, event, status, page, 0);
    return status;
}

static int check_count(leat__lmdb_recovery *recovery, leat__lmdb_event *event)
{
    int64_t expected = (int64_t)recovery->map->meta.entries;
    if (recovery->jumps || recovery->has_gaps || recovery->found == expected)
        return LEAT_END;
    int64_t lost = expected - recovery->found;
    int status = leat_error(
        LEAT_EFORMAT, "%s: damaged: %lld records were expected, %lld found",
        recovery->map->name, (long long)expected, (long long)recovery->found);
    set_damage(recovery, event, status, LEAT__LMDB_NO_PAGE,
               lost > 0 ? lost : 0);
    return LEAT_OK;
}

/* The next record or damage, in the order of the pages. LEAT_OK or LEAT_END. */
static int find(leat__lmdb_recovery *recovery, leat__lmdb_event *event)
{
    event->node = (leat__lmdb_node){0};
    event->low = NULL;
    while (recovery->slot == recovery->leaf.count) {
        int status = next_leaf(recovery, event);
        if (status == LEAT_END && find_conflict(recovery, event))
            return LEAT_OK;
        if (status == LEAT_END) {
            recovery->is_over = true;
            return check_count(recovery, event);
        }
        if (status)
            return LEAT_OK;
    }
    uint32_t slot = recovery->slot++;
    leat__lmdb_node *node = &event->node;
    int status =
        leat__lmdb_map_node(recovery->map, &recovery->leaf, slot, node);
    if (!status)
        status = find_value(recovery, node);
    recovery->found++;
    if (status) {
        set_damage(recovery, event, status, recovery->leaf.number, 1);
        return LEAT_OK;
    }
    event->status = LEAT_OK;
    event->page = recovery->leaf.number;
    if (slot == 0)
        find_low(recovery, event);
    return LEAT_OK;
}

static leat__lmdb_event *held(leat__lmdb_recovery *recovery, int i)
{
    return &recovery->event[(recovery->at + i) % LEAT__LMDB_LOOKAHEAD];
}

/* Fills the lookahead until two records follow the first event. */
static void fill_lookahead(leat__lmdb_recovery *recovery)
{
    int records = 0;
    for (int i = 1; i < recovery->held; i++)
        records += held(recovery, i)->status == LEAT_OK;
    while (recovery->held < LEAT__LMDB_LOOKAHEAD && records < 2 &&
           !recovery->is_over) {
        leat__lmdb_event *event = held(recovery, recovery->held);
        if (find(recovery, event) == LEAT_END)
            break;
        records += recovery->held > 0 && event->status == LEAT_OK;
        recovery->held++;
    }
}

static bool ascends(const leat__lmdb_recovery *recovery,
                    const leat__lmdb_event *first,
                    const leat__lmdb_event *second)
{
    return leat__lmdb_map_ascends(recovery->map, first->node.key,
                                  first->node.key_size, second->node.key,
                                  second->node.key_size);
}

static bool follows_last(const leat__lmdb_recovery *recovery,
                         const unsigned char *key, size_t key_size)
{
    return !recovery->last_key ||
           leat__lmdb_map_ascends(recovery->map, recovery->last_key,
                                  recovery->last_key_size, key, key_size);
}

/*
 * Whether the key is in order. Of two keys in the wrong order, the damaged one
 * is that without which its neighbours are in order.
 */
static bool is_in_order(leat__lmdb_recovery *recovery,
                        const leat__lmdb_event *event)
{
    const leat__lmdb_event *next[2] = {NULL, NULL};
    int n = 0;
    if (!follows_last(recovery, event->node.key, event->node.key_size))
        return false;
    for (int i = 1; i < recovery->held && n < 2; i++)
        if (held(recovery, i)->status == LEAT_OK)
            next[n++] = held(recovery, i);
    if (n < 2 || ascends(recovery, event, next[0]))
        return true;
    return ascends(recovery, event, next[1]) ||
           !follows_last(recovery, next[0]->node.key, next[0]->node.key_size);
}

/* Whether the branches' key lies between the record and the one before. */
static bool is_reachable(const leat__lmdb_recovery *recovery,
                         const leat__lmdb_event *event)
{
    return !event->low ||
           (follows_last(recovery, event->low, event->low_size) &&
            !leat__lmdb_map_ascends(recovery->map, event->node.key,
                                    event->node.key_size, event->low,
                                    event->low_size));
}

/* Reports a good record that a walk finds but a lookup by key does not. */
static void report_misled(leat__lmdb_recovery *recovery,
                          const leat__lmdb_event *event)
{
    char key[LEAT__KEY_TEXT_MAX], low[LEAT__KEY_TEXT_MAX];
    int status = leat_error(
        LEAT_EFORMAT,
        "%s: page %llu is damaged: its key %s leads to page %llu, which begins "
        "with %s; such keys cannot be looked up",
        recovery->map->name, (unsigned long long)event->low_page,
        leat__key_text(low, event->low, event->low_size),
        (unsigned long long)event->page,
        leat__key_text(key, event->node.key, event->node.key_size));
    recovery->aside.node = (leat__lmdb_node){0};
    set_damage(recovery, &recovery->aside, status, event->low_page, 0);
}

static void report_out_of_order(leat__lmdb_recovery *recovery,
                                leat__lmdb_event *event)
{
    char key[LEAT__KEY_TEXT_MAX];
    int status = leat_error(
        LEAT_EFORMAT, "%s: page %llu is damaged: the key %s is out of order",
        recovery->map->name, (unsigned long long)event->page,
        leat__key_text(key, event->node.key, event->node.key_size));
    set_damage(recovery, event, status, event->page, 1);
}

int leat__lmdb_recovery_next(leat__lmdb_recovery *recovery,
                             const leat__lmdb_event **out)
{
    if (recovery->is_given) {
        recovery->is_given = false;
        recovery->at = (recovery->at + 1) % LEAT__LMDB_LOOKAHEAD;
        recovery->held--;
    }
    fill_lookahead(recovery);
    if (!recovery->held)
        return LEAT_END;
    leat__lmdb_event *event = held(recovery, 0);
    *out = event;
    recovery->is_given = true;
    if (event->status)
        return LEAT_OK;
    if (!is_in_order(recovery, event)) {
        report_out_of_order(recovery, event);
        return LEAT_OK;
    }
    if (!is_reachable(recovery, event)) {
        report_misled(recovery, event);
        event->low = NULL;
        recovery->is_given = false;
        *out = &recovery->aside;
        return LEAT_OK;
    }
    recovery->last_key = event->node.key;
    recovery->last_key_size = event->node.key_size;
    return LEAT_OK;
}

/* Passes over leaves that lie in the branch that is open, all but the last of
 * them and up to `target`. */
static void pass_leaves(leat__lmdb_recovery *recovery, uint64_t target)
{
    int lowest = recovery->levels - 1;
    if (lowest < 0 || recovery->branches <= lowest)
        return;
    uint64_t left =
        recovery->branch[lowest].page.count - 1 - recovery->branch[lowest].slot;
    uint64_t wanted = target - recovery->leaves;
    uint64_t passed = wanted < left ? wanted : left;
    recovery->branch[lowest].slot += (uint32_t)passed;
    recovery->leaves += passed;
}

void leat__lmdb_recovery_jump(leat__lmdb_recovery *recovery, double share)
{
    const leat__lmdb_meta *meta = &recovery->map->meta;
    /* A damaged count of leaves is no more than one of all pages. */
    uint64_t leaves = meta->leaf_pages <= meta->last_page ? meta->leaf_pages
                                                          : meta->last_page;
    double last = leaves > 0 ? (double)(leaves - 1) : 0;
    uint64_t target = (uint64_t)(last * (share < 1 ? share : 1) + 0.5);
    recovery->jumps = true;
    recovery->held = recovery->is_given = recovery->is_over = false;
    recovery->slot = recovery->leaf.count = 0;
    recovery->last_key = NULL;
    /* Past damage the leaves are not counted. */
    if (!recovery->is_inside || target < recovery->leaves ||
        recovery->has_gaps) {
        recovery->has_gaps = false;
        recovery->is_inside = false;
        recovery->branches = 0;
        recovery->leaves = 0;
    }
    /* `leaves` counts those that were found: the next one is the target. */
    while (recovery->leaves < target) {
        leat__lmdb_event *event = held(recovery, 0);
        uint64_t number;
        int status = find_leaf(recovery, &number, event);
        if (status && status != LEAT_END) {
            /* The scan continues after it. */
            event->node = (leat__lmdb_node){0};
            event->low = NULL;
            recovery->held = 1;
        }
        if (status)
            return;
        pass_leaves(recovery, target);
    }
}
