#include "readers/recordio/recordio_table.h"
#include "base/error.h"
#include "base/memory.h"

/* Of a chunk. */
enum { ENTRY = sizeof(uint64_t) + sizeof(atomic_uchar) };

int leat__recordio_table_add(leat__recordio_table *table, uint64_t offset,
                             int64_t *memory, int64_t most)
{
    *memory += ENTRY;
    if (most > 0 && *memory > most)
        return leat_error(LEAT_ELIMIT,
                          "the table of chunks takes %lld bytes or more, %d "
                          "for each, but max_memory is %lld: expected a larger "
                          "one",
                          (long long)*memory, ENTRY, (long long)most);
    if (table->n == table->capacity) {
        int64_t capacity = table->capacity ? table->capacity * 2 : 16;
        uint64_t *more =
            leat__realloc(table->offset, (size_t)capacity * sizeof(*more));
        if (!more)
            return LEAT_ENOMEM;
        table->offset = more;
        table->capacity = capacity;
    }
    table->offset[table->n++] = offset;
    return LEAT_OK;
}

int leat__recordio_table_end(leat__recordio_table *table)
{
    table->n--;
    table->state =
        leat__alloc_zero((size_t)table->n + 1, sizeof(*table->state));
    return table->state ? LEAT_OK : LEAT_ENOMEM;
}

int64_t leat__recordio_table_find(leat__recordio_table *table, uint64_t at)
{
    int64_t first = atomic_load_explicit(&table->last, memory_order_relaxed);
    int64_t end = table->n;
    if (table->offset[first] <= at &&
        (first + 1 == end || at < table->offset[first + 1]))
        return first;
    for (first = 0; end - first > 1;) {
        int64_t middle = first + (end - first) / 2;
        if (table->offset[middle] <= at)
            first = middle;
        else
            end = middle;
    }
    atomic_store_explicit(&table->last, first, memory_order_relaxed);
    return first;
}

void leat__recordio_table_finish(leat__recordio_table *table)
{
    leat__free(table->offset);
    leat__free(table->state);
}
