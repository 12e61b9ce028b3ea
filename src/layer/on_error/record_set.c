/* An open hash table of indices into a dense array of marks. */
#include "layer/on_error/record_set.h"
#include "base/memory.h"
#include "base/random.h"

#include <leat/status.h>
#include <stdbool.h>
#include <string.h>

#define CAPACITY_MIN 32

/* FNV-1a. */
uint64_t leat__record_set_source(const char *name, size_t size)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)name[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* The slot of the record, or the empty one where it belongs. */
static size_t find(const leat__record_set *set, const leat__record_mark *mark)
{
    uint64_t hash = (mark->source ^ set->salt) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 32) + (uint64_t)mark->record;
    hash *= UINT64_C(0x9e3779b97f4a7c15);
    size_t i = (size_t)(hash >> 32) & (set->capacity - 1);
    while (set->slot[i]) {
        const leat__record_mark *known = &set->mark[set->slot[i] - 1];
        if (known->source == mark->source && known->record == mark->record)
            break;
        i = (i + 1) & (set->capacity - 1);
    }
    return i;
}

static void fill_slots(leat__record_set *set)
{
    memset(set->slot, 0, set->capacity * sizeof(*set->slot));
    for (size_t i = 0; i < set->n; i++)
        set->slot[find(set, &set->mark[i])] = i + 1;
}

static int grow(leat__record_set *set)
{
    size_t capacity = set->capacity ? 2 * set->capacity : CAPACITY_MIN;
    size_t *slot = leat__alloc_zero(capacity, sizeof(*slot));
    if (!slot)
        return LEAT_ENOMEM;
    leat__record_mark *mark =
        leat__realloc(set->mark, capacity / 2 * sizeof(*mark));
    if (!mark) {
        leat__free(slot);
        return LEAT_ENOMEM;
    }
    if (!set->slot && leat__random_seed(&set->salt))
        set->salt = 0; /* only slow at worst */
    leat__free(set->slot);
    set->slot = slot;
    set->mark = mark;
    set->capacity = capacity;
    fill_slots(set);
    return LEAT_OK;
}

int leat__record_set_add(leat__record_set *set, const leat__record_mark *mark)
{
    if (leat__record_set_has(set, mark))
        return 0;
    if (leat__record_set_is_full(set))
        return LEAT_ELIMIT;
    if (set->n == set->capacity / 2 && grow(set))
        return LEAT_ENOMEM;
    size_t at = find(set, mark);
    set->mark[set->n++] = *mark;
    set->slot[at] = set->n;
    return 1;
}

bool leat__record_set_is_full(const leat__record_set *set)
{
    return set->n >= (set->limit ? set->limit : LEAT__RECORD_SET_MAX);
}

bool leat__record_set_has(const leat__record_set *set,
                          const leat__record_mark *mark)
{
    return set->n > 0 && set->slot[find(set, mark)] != 0;
}

void leat__record_set_rewind(leat__record_set *set, int64_t epoch,
                             int64_t position)
{
    size_t kept = 0;
    for (size_t i = 0; i < set->n; i++) {
        const leat__record_mark *mark = &set->mark[i];
        if (mark->epoch < epoch ||
            (mark->epoch == epoch && mark->position < position))
            set->mark[kept++] = *mark;
    }
    if (kept == set->n)
        return;
    set->n = kept;
    fill_slots(set);
}

void leat__record_set_finish(leat__record_set *set)
{
    leat__free(set->mark);
    leat__free(set->slot);
    memset(set, 0, sizeof(*set));
}
