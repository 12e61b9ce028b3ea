/*
 * Two steps: `find` goes through the pages and says what stands where, and
 * `next` holds some of that back, to judge the order of keys by those behind.
 */
#include "readers/lmdb/check/lmdb_salvage.h"
#include "base/memory.h"

#include <string.h>

void leat__lmdb_salvage_init_beside(leat__lmdb_salvage *out,
                                    const leat__lmdb_map *map,
                                    const leat__lmdb_storage *storage,
                                    unsigned char *met)
{
    memset(out, 0, sizeof(*out));
    out->map = map;
    out->storage = storage;
    out->is_cold = storage && leat__lmdb_storage_may_block(storage);
    out->levels = map->meta.depth - 1;
    out->met = met;
    out->borrows_met = 1;
}

int leat__lmdb_salvage_init(leat__lmdb_salvage *out, const leat__lmdb_map *map,
                            const leat__lmdb_storage *storage)
{
    unsigned char *met =
        leat__alloc_zero((size_t)(map->meta.last_page / 8 + 1), 1);
    if (!met)
        return LEAT_ENOMEM;
    leat__lmdb_salvage_init_beside(out, map, storage, met);
    out->borrows_met = 0;
    return LEAT_OK;
}

void leat__lmdb_salvage_finish(leat__lmdb_salvage *salvage)
{
    if (!salvage->borrows_met)
        leat__free(salvage->met);
    salvage->met = NULL;
}

/* Makes the thread's error line an event. */
static void tell(leat__lmdb_salvage *salvage, leat__lmdb_event *event,
                 int status, uint64_t page, int64_t lost)
{
    event->status = status;
    event->page = page;
    event->lost = lost;
    leat__error_save(event->line);
    if (lost < 0)
        salvage->has_gaps = 1;
}

/* Storage that fails must not end in a signal. */
static int await(const leat__lmdb_salvage *salvage, uint64_t page)
{
    if (!salvage->storage || page > salvage->map->meta.last_page)
        return LEAT_OK;
    leat__lmdb_span span = leat__lmdb_storage_leaf(salvage->storage, page);
    return leat__lmdb_storage_await(salvage->storage, &span, 1);
}

/* Notes that the pages are in use, which lie inside the file. */
static int meet(leat__lmdb_salvage *salvage, uint64_t page, uint64_t pages)
{
    for (uint64_t i = page; i < page + pages && !salvage->jumps; i++) {
        unsigned char bit = (unsigned char)(1U << (i % 8));
        if (salvage->met[i / 8] & bit)
            return leat_error(LEAT_EFORMAT,
                              "%s: page %llu is damaged, or another one that "
                              "points to it: it is met a second time",
                              salvage->map->name, (unsigned long long)i);
        salvage->met[i / 8] |= bit;
    }
    return LEAT_OK;
}

static int open_page(leat__lmdb_salvage *salvage, uint64_t number,
                     leat__lmdb_kind kind, leat__lmdb_page *out)
{
    leat__lmdb_page page;
    int status = await(salvage, number);
    if (!status)
        status = leat__lmdb_map_page(salvage->map, number, kind, &page);
    if (!status)
        status = meet(salvage, number, 1);
    if (!status)
        *out = page;
    return status;
}

/* Has storage read the leaves below a branch. */
static void ask_children(const leat__lmdb_salvage *salvage,
                         const leat__lmdb_page *page)
{
    leat__lmdb_span spans[LEAT__LMDB_SPANS_MAX];
    int n = 0;
    for (uint32_t slot = 0; slot < page->count; slot++) {
        uint64_t child;
        if (leat__lmdb_map_child(salvage->map, page, slot, &child) ||
            child > salvage->map->meta.last_page)
            continue;
        spans[n++] = leat__lmdb_storage_leaf(salvage->storage, child);
        if (n == LEAT__LMDB_SPANS_MAX || slot + 1 == page->count) {
            leat__lmdb_storage_ask(salvage->storage, spans, n);
            n = 0;
        }
    }
}

/* Opens the first leaf under page `number`, `level` branches below the root;
   what is in the way is an event. */
static int descend(leat__lmdb_salvage *salvage, uint64_t number, int level,
                   leat__lmdb_event *event)
{
    int status;
    for (; level < salvage->levels; level++) {
        leat__lmdb_page *page = &salvage->branch[level].page;
        status = open_page(salvage, number, LEAT__LMDB_BRANCH, page);
        if (status)
            goto damaged;
        salvage->branch[level].slot = 0;
        salvage->branches = level + 1;
        if (salvage->is_cold && level + 1 == salvage->levels)
            ask_children(salvage, page);
        uint64_t branch = number;
        status = leat__lmdb_map_child(salvage->map, page, 0, &number);
        if (status) {
            number = branch;
            goto damaged;
        }
    }
    status = open_page(salvage, number, LEAT__LMDB_LEAF, &salvage->leaf);
    if (status)
        goto damaged;
    salvage->slot = 0;
    return LEAT_OK;

damaged:
    tell(salvage, event, status, number, -1);
    return status;
}

/* Opens the next leaf; LEAT_END behind the last one. */
static int next_leaf(leat__lmdb_salvage *salvage, leat__lmdb_event *event)
{
    const leat__lmdb_map *map = salvage->map;
    if (!salvage->is_inside) {
        salvage->is_inside = 1;
        return map->meta.root == LEAT__LMDB_NO_PAGE
                   ? LEAT_END
                   : descend(salvage, map->meta.root, 0, event);
    }
    for (int level = salvage->branches - 1; level >= 0; level--) {
        const leat__lmdb_page *page = &salvage->branch[level].page;
        uint32_t slot = salvage->branch[level].slot + 1;
        if (slot == page->count)
            continue;
        uint64_t child = 0;
        salvage->branch[level].slot = slot;
        salvage->branches = level + 1;
        int status = leat__lmdb_map_child(map, page, slot, &child);
        if (!status)
            return descend(salvage, child, level + 1, event);
        tell(salvage, event, status, page->number, -1);
        return status;
    }
    return LEAT_END;
}

/* The key by which the branches lead to the leaf: that of the lowest one where
   it does not hang on the first node. */
static void find_low(const leat__lmdb_salvage *salvage, leat__lmdb_event *event)
{
    event->low = NULL;
    for (int level = salvage->branches - 1; level >= 0; level--) {
        const leat__lmdb_page *page = &salvage->branch[level].page;
        uint32_t slot = salvage->branch[level].slot;
        if (slot == 0)
            continue;
        if (leat__lmdb_map_separator(salvage->map, page, slot, &event->low,
                                     &event->low_size))
            event->low = NULL;
        event->low_page = page->number;
        return;
    }
}

/* The value on its overflow pages, which no other record may have. */
static int find_value(leat__lmdb_salvage *salvage, leat__lmdb_node *node)
{
    if (node->value)
        return LEAT_OK;
    leat__lmdb_node found = *node;
    int status = await(salvage, node->overflow);
    if (!status)
        status = leat__lmdb_map_overflow(salvage->map, &found);
    if (!status)
        status = meet(salvage, node->overflow,
                      leat__lmdb_map_overflow_pages(salvage->map, node));
    if (!status)
        *node = found;
    return status;
}

static int check_count(leat__lmdb_salvage *salvage, leat__lmdb_event *event)
{
    int64_t expected = (int64_t)salvage->map->meta.entries;
    if (salvage->jumps || salvage->has_gaps || salvage->found == expected)
        return LEAT_END;
    int64_t lost = expected - salvage->found;
    int status = leat_error(
        LEAT_EFORMAT, "%s: damaged: %lld records were expected, %lld found",
        salvage->map->name, (long long)expected, (long long)salvage->found);
    tell(salvage, event, status, LEAT__LMDB_NO_PAGE, lost > 0 ? lost : 0);
    return LEAT_OK;
}

/* The next record or damage, in the order of the pages. LEAT_OK or LEAT_END. */
static int find(leat__lmdb_salvage *salvage, leat__lmdb_event *event)
{
    event->node = (leat__lmdb_node){0};
    event->low = NULL;
    while (salvage->slot == salvage->leaf.count) {
        int status = next_leaf(salvage, event);
        if (status == LEAT_END) {
            salvage->is_over = 1;
            return check_count(salvage, event);
        }
        if (status)
            return LEAT_OK;
    }
    uint32_t slot = salvage->slot++;
    leat__lmdb_node *node = &event->node;
    int status = leat__lmdb_map_node(salvage->map, &salvage->leaf, slot, node);
    if (!status)
        status = find_value(salvage, node);
    salvage->found++;
    if (status) {
        tell(salvage, event, status, salvage->leaf.number, 1);
        return LEAT_OK;
    }
    event->status = LEAT_OK;
    event->page = salvage->leaf.number;
    if (slot == 0)
        find_low(salvage, event);
    return LEAT_OK;
}

static leat__lmdb_event *held(leat__lmdb_salvage *salvage, int i)
{
    return &salvage->event[(salvage->at + i) % LEAT__LMDB_LOOK_AHEAD];
}

/* Looks ahead until two records stand behind the first event. */
static void look_ahead(leat__lmdb_salvage *salvage)
{
    int records = 0;
    for (int i = 1; i < salvage->held; i++)
        records += held(salvage, i)->status == LEAT_OK;
    while (salvage->held < LEAT__LMDB_LOOK_AHEAD && records < 2 &&
           !salvage->is_over) {
        leat__lmdb_event *event = held(salvage, salvage->held);
        if (find(salvage, event) == LEAT_END)
            break;
        records += salvage->held > 0 && event->status == LEAT_OK;
        salvage->held++;
    }
}

static int ascends(const leat__lmdb_salvage *salvage,
                   const leat__lmdb_event *first,
                   const leat__lmdb_event *second)
{
    return leat__lmdb_map_ascends(salvage->map, first->node.key,
                                  first->node.key_size, second->node.key,
                                  second->node.key_size);
}

static int is_behind_last(const leat__lmdb_salvage *salvage,
                          const unsigned char *key, size_t key_size)
{
    return !salvage->last_key ||
           leat__lmdb_map_ascends(salvage->map, salvage->last_key,
                                  salvage->last_key_size, key, key_size);
}

/*
 * Whether the key is in its place. Of two keys in the wrong order the one is
 * damaged without which those around it are in order.
 */
static int is_in_order(leat__lmdb_salvage *salvage,
                       const leat__lmdb_event *event)
{
    const leat__lmdb_event *behind[2] = {NULL, NULL};
    int n = 0;
    if (!is_behind_last(salvage, event->node.key, event->node.key_size))
        return 0;
    for (int i = 1; i < salvage->held && n < 2; i++)
        if (held(salvage, i)->status == LEAT_OK)
            behind[n++] = held(salvage, i);
    if (n < 2 || ascends(salvage, event, behind[0]))
        return 1;
    return ascends(salvage, event, behind[1]) ||
           !is_behind_last(salvage, behind[0]->node.key,
                           behind[0]->node.key_size);
}

/* Whether the branches' key lies between the record and the one before. */
static int is_led_to(const leat__lmdb_salvage *salvage,
                     const leat__lmdb_event *event)
{
    return !event->low ||
           (is_behind_last(salvage, event->low, event->low_size) &&
            !leat__lmdb_map_ascends(salvage->map, event->node.key,
                                    event->node.key_size, event->low,
                                    event->low_size));
}

/* The record is fine, and found by a walk, but not by its key. */
static void tell_misled(leat__lmdb_salvage *salvage,
                        const leat__lmdb_event *event)
{
    char key[LEAT__KEY_TEXT_MAX], low[LEAT__KEY_TEXT_MAX];
    int status = leat_error(
        LEAT_EFORMAT,
        "%s: page %llu is damaged: its key %s leads to page %llu, which begins "
        "with %s; such keys cannot be looked up",
        salvage->map->name, (unsigned long long)event->low_page,
        leat__key_text(low, event->low, event->low_size),
        (unsigned long long)event->page,
        leat__key_text(key, event->node.key, event->node.key_size));
    salvage->aside.node = (leat__lmdb_node){0};
    tell(salvage, &salvage->aside, status, event->low_page, 0);
}

static void tell_out_of_order(leat__lmdb_salvage *salvage,
                              leat__lmdb_event *event)
{
    char key[LEAT__KEY_TEXT_MAX];
    int status = leat_error(
        LEAT_EFORMAT, "%s: page %llu is damaged: the key %s is out of order",
        salvage->map->name, (unsigned long long)event->page,
        leat__key_text(key, event->node.key, event->node.key_size));
    tell(salvage, event, status, event->page, 1);
}

int leat__lmdb_salvage_next(leat__lmdb_salvage *salvage,
                            const leat__lmdb_event **out)
{
    if (salvage->is_given) {
        salvage->is_given = 0;
        salvage->at = (salvage->at + 1) % LEAT__LMDB_LOOK_AHEAD;
        salvage->held--;
    }
    look_ahead(salvage);
    if (!salvage->held)
        return LEAT_END;
    leat__lmdb_event *event = held(salvage, 0);
    *out = event;
    salvage->is_given = 1;
    if (event->status)
        return LEAT_OK;
    if (!is_in_order(salvage, event)) {
        tell_out_of_order(salvage, event);
        return LEAT_OK;
    }
    if (!is_led_to(salvage, event)) {
        tell_misled(salvage, event);
        event->low = NULL;
        salvage->is_given = 0;
        *out = &salvage->aside;
        return LEAT_OK;
    }
    salvage->last_key = event->node.key;
    salvage->last_key_size = event->node.key_size;
    return LEAT_OK;
}

/* What is in the way of a jump is an event, and the walk goes on behind it. */
static void tell_in_the_way(leat__lmdb_salvage *salvage, int status,
                            uint64_t page)
{
    leat__lmdb_event *event = held(salvage, salvage->held++);
    event->node = (leat__lmdb_node){0};
    event->low = NULL;
    tell(salvage, event, status, page, -1);
}

void leat__lmdb_salvage_jump(leat__lmdb_salvage *salvage, double share)
{
    const leat__lmdb_map *map = salvage->map;
    uint64_t number = map->meta.root;
    int status;
    salvage->jumps = 1;
    salvage->held = salvage->is_given = salvage->is_over = 0;
    salvage->slot = salvage->leaf.count = 0;
    salvage->last_key = NULL;
    salvage->branches = 0;
    salvage->is_inside = salvage->levels > 0;
    for (int level = 0; level < salvage->levels; level++) {
        leat__lmdb_page *page = &salvage->branch[level].page;
        status = open_page(salvage, number, LEAT__LMDB_BRANCH, page);
        if (status) {
            tell_in_the_way(salvage, status, number);
            return;
        }
        double at = share * page->count;
        uint32_t slot = at < page->count ? (uint32_t)at : page->count - 1;
        share = at - slot;
        salvage->branch[level].slot = slot;
        salvage->branches = level + 1;
        status = leat__lmdb_map_child(map, page, slot, &number);
        if (status) {
            tell_in_the_way(salvage, status, page->number);
            return;
        }
    }
    /* The next leaf is then this one. */
    if (salvage->levels > 0)
        salvage->branch[salvage->levels - 1].slot--;
}
