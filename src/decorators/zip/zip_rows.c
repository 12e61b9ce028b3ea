#include "decorators/zip/zip_rows.h"
#include "base/counter.h"
#include "base/error.h"
#include "base/memory.h"
#include "data/sample.h"

#include <stdint.h>
#include <string.h>

static int64_t bytes_of(const leat__zip_rows *rows)
{
    size_t bytes = sizeof(*rows);
    for (int i = 0; i < LEAT__ZIP_ROWS; i++)
        bytes += rows->sample[i].buffer_size;
    return (int64_t)bytes;
}

static leat__zip_rows *create(leat__zip_pool *pool)
{
    leat__zip_rows *rows = leat__alloc_zero(1, sizeof(*rows));
    if (!rows)
        return NULL;
    for (int i = 0; i < LEAT__ZIP_ROWS; i++) {
        rows->at[i] = &rows->sample[i];
        rows->sample[i].allocator = pool->allocator;
    }
    return rows;
}

static void destroy(leat__zip_rows *rows)
{
    for (int i = 0; i < LEAT__ZIP_ROWS; i++)
        leat_sample_finish(&rows->sample[i]);
    leat__free(rows);
}

leat__zip_rows *leat__zip_pool_take(leat__zip_pool *pool)
{
    for (int i = 0; i < LEAT__ZIP_POOL; i++) {
        if (!atomic_load_explicit(&pool->rows[i], memory_order_relaxed))
            continue;
        leat__zip_rows *rows = atomic_exchange(&pool->rows[i], NULL);
        if (!rows)
            continue;
        leat__counter_add(&pool->bytes, -bytes_of(rows));
        return rows;
    }
    return create(pool);
}

void leat__zip_pool_give(leat__zip_pool *pool, leat__zip_rows *rows)
{
    /* Once it is in the pool, it may be another thread's already. */
    int64_t bytes = bytes_of(rows);
    leat__counter_add(&pool->bytes, bytes);
    for (int i = 0; i < LEAT__ZIP_POOL; i++) {
        leat__zip_rows *none = NULL;
        if (atomic_compare_exchange_strong(&pool->rows[i], &none, rows))
            return;
    }
    leat__counter_add(&pool->bytes, -bytes);
    destroy(rows);
}

void leat__zip_pool_finish(leat__zip_pool *pool)
{
    for (int i = 0; i < LEAT__ZIP_POOL; i++) {
        leat__zip_rows *rows = atomic_load(&pool->rows[i]);
        if (rows)
            destroy(rows);
    }
}

void leat__zip_origin_keep(leat__zip_origin *origin, const leat_sample *sample)
{
    origin->from = sample->from;
    origin->key_at = (uintptr_t)sample->from.key - (uintptr_t)sample->buffer;
    origin->is_in_buffer =
        sample->from.key && origin->key_at < sample->buffer_size;
}

void leat__zip_origin_set(leat__zip_origin *origin, leat_sample *sample,
                          leat_provenance *other)
{
    *other = sample->from;
    if (origin->is_in_buffer)
        origin->from.key = (const char *)sample->buffer + origin->key_at;
    sample->from = origin->from;
}

/* Copies what `*data` points to into the buffer of `to`. */
static int copy_view(leat_sample *to, const void **data, size_t bytes)
{
    if (!*data || bytes == 0)
        return LEAT_OK;
    void *copy = leat__sample_take(to, bytes);
    if (!copy)
        return LEAT_ENOMEM;
    memcpy(copy, *data, bytes);
    *data = copy;
    return LEAT_OK;
}

/* Copies those views of fields [first, end), which are of `from`, that do not
 * outlive it. */
static int copy_fields(leat_sample *to, const leat_sample *from, int first,
                       int end)
{
    int status = LEAT_OK;
    for (int i = first; i < end && !status; i++)
        if (!leat__sample_lasts(from, to->field[i].data))
            status = copy_view(to, &to->field[i].data, to->field[i].bytes);
    return status;
}

static int append(leat_sample *to, const leat_sample *from)
{
    int first = to->nfields;
    memcpy(&to->field[first], from->field,
           (size_t)from->nfields * sizeof(from->field[0]));
    to->nfields += from->nfields;
    to->stable &= from->stable;
    return copy_fields(to, from, first, to->nfields);
}

/* What `to` has goes before the fields of `from`, in the buffer of that. */
static int prepend(leat_sample *to, leat_sample *from)
{
    leat_sample_swap(to, from);
    int n = from->nfields;
    memmove(&to->field[n], to->field,
            (size_t)to->nfields * sizeof(to->field[0]));
    memcpy(to->field, from->field, (size_t)n * sizeof(to->field[0]));
    to->nfields += n;
    to->from.source = from->from.source;
    to->from.record = from->from.record;
    to->from.key = from->from.key;
    to->from.key_size = from->from.key_size;
    to->from.key_cut = from->from.key_cut;
    int status = copy_fields(to, from, 0, n);
    return status || leat__sample_lasts(from, to->from.key)
               ? status
               : copy_view(to, &to->from.key, to->from.key_size);
}

int leat__zip_join(leat_sample *to, leat_sample *from)
{
    if (to->nfields + from->nfields > LEAT_MAX_FIELDS)
        return leat_error(LEAT_ESTATE,
                          "zip: a sample has %d fields beside %d of other "
                          "inputs, more than were promised",
                          from->nfields, to->nfields);
    bool is_larger = !from->stable && from->taken > to->taken;
    return is_larger ? prepend(to, from) : append(to, from);
}
