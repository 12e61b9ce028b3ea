#include "layer/batch_pool.h"
#include "base/counter.h"
#include "base/memory.h"

/* What the device computes lies in its memory alone. */
static int make_tops(leat__batch_pool *self, leat_device *device,
                     const leat__prefetcher_options *options)
{
    size_t each = options->shape.top_bytes;
    size_t bytes;
    if (!options->shape.is_cropped)
        return LEAT_OK;
    if (leat__multiply(each, (size_t)options->slots, &bytes))
        return leat_error(LEAT_EINVAL, "%d tops of %zu bytes overflow",
                          options->slots, each);
    leat__slab *slab;
    int status = leat__slab_create(&slab, device, bytes);
    if (status)
        return status;
    status = leat__slab_make_memory(slab);
    for (int i = 0; i < options->slots && status == LEAT_OK; i++)
        leat__batch_set_top(&self->batch[i], slab, (size_t)i * each, each);
    leat__slab_unref(slab);
    self->top_bytes = (int64_t)bytes;
    return status;
}

/* One slab for all pool: few large allocations are what pinning wants. */
static int make_batches(leat__batch_pool *self, leat_device *device,
                        const leat__prefetcher_options *options)
{
    size_t slot = options->shape.bytes;
    size_t bytes;
    if (leat__multiply(slot, (size_t)options->slots, &bytes))
        return leat_error(LEAT_EINVAL, "%d batches of %zu bytes overflow",
                          options->slots, slot);
    size_t n = (size_t)options->slots;
    self->batch = leat__alloc_aligned_zero(n * sizeof(*self->batch));
    if (!self->batch)
        return LEAT_ENOMEM;
    self->n = options->slots;
    leat__slab *slab;
    int status = leat__slab_create(&slab, device, bytes);
    if (status)
        return status;
    slab->must_pin = options->must_pin;
    leat__slab_use(slab, device->ops->unified ? options->host_slabs
                                              : options->pinned_slabs);
    status = leat__slab_make_host(slab);
    if (status == LEAT_OK)
        status = leat__slab_make_memory(slab);
    self->is_pageable = slab->is_pageable;
    /* Pinned memory is there. Other memory is populated by the workers, each
     * slot by its first batch; a page of it tells the node. */
    int is_lazy = device->ops->unified || slab->is_pageable;
    if (status == LEAT_OK && is_lazy && bytes > 0)
        status = leat__touch(slab->host, 1);
    if (status == LEAT_OK)
        self->host_node = leat__memory_node(slab->host);
    for (int i = 0; i < options->slots && status == LEAT_OK; i++)
        status = leat__batch_init(&self->batch[i], slab, (size_t)i * slot, slot,
                                  options->spec.batch_size, is_lazy);
    leat__slab_unref(slab);
    self->slab_bytes = (int64_t)bytes;
    return status;
}

int leat__batch_pool_init(leat__batch_pool *self, leat_device *device,
                          const leat__prefetcher_options *options)
{
    int status = make_batches(self, device, options);
    return status ? status : make_tops(self, device, options);
}

void leat__batch_pool_finish(leat__batch_pool *self)
{
    for (int i = 0; i < self->n; i++)
        leat__batch_finish(&self->batch[i]);
    leat__free(self->batch);
}

/* A slot that never grew lies in the slab of all, and has nothing of its own.
 */
static int64_t own_bytes(const leat__slab *slab, size_t capacity)
{
    return slab && slab->bytes == capacity ? (int64_t)capacity : 0;
}

static atomic_int_fast64_t *account_of(leat__batch_pool *self,
                                       const leat__batch *batch)
{
    return batch->slab->is_pageable ? &self->grown_pageable
                                    : &self->grown_bytes;
}

int leat__batch_pool_reserve(leat__batch_pool *self, leat__batch *batch,
                             const leat__batch_shape *shape)
{
    size_t capacity = batch->capacity;
    size_t top_capacity = batch->top_capacity;
    /* What grows again lets go of what it had grown to. */
    atomic_int_fast64_t *account = account_of(self, batch);
    int64_t own = own_bytes(batch->slab, capacity);
    int64_t own_top = own_bytes(batch->top_slab, top_capacity);
    int status = leat__batch_reserve(batch, shape);
    if (batch->capacity > capacity) {
        leat__counter_add(&self->grown, 1);
        leat__counter_add(account, -own);
        leat__counter_add(account_of(self, batch), (int64_t)batch->capacity);
    }
    if (batch->top_capacity > top_capacity)
        leat__counter_add(&self->grown_tops,
                          (int64_t)batch->top_capacity - own_top);
    return status;
}
