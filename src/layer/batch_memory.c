/*
 * DESIGN. The memory of a batch is a part of a slab that its device's batches
 * share from the start. One that needs more gets a slab of its own, and keeps
 * it, so that batches which are alike allocate nothing. Under max_memory all
 * may not have room for the largest: from the time that one grew beyond its
 * share, a batch that needs less than half of its slab frees that and goes back
 * to the memory it had first, before others find no room. Only the thread that
 * prepares a batch changes its memory.
 */
#include "base/error.h"
#include "base/memory.h"
#include "layer/batch.h"

#include <string.h>

void leat__batch_set_top(leat__batch *batch, leat__slab *slab, size_t offset,
                         size_t capacity)
{
    leat__slab_ref(slab);
    leat__slab_unref(batch->top_slab);
    batch->top_slab = slab;
    batch->top_offset = offset;
    batch->top_capacity = capacity;
}

/* Streams may still use the memory about to be freed; one of them a transform
 * whose top nobody waited for. */
static int await_streams(leat__batch *batch)
{
    leat_device *device = batch->slab->device;
    int status = LEAT_OK;
    if (batch->is_transformed && !batch->is_awaited)
        status = device->ops->event_synchronize(device, batch->ready);
    for (int i = 0; i < batch->nconsumed && !status; i++)
        status = device->ops->event_synchronize(device, batch->consumed[i]);
    return status;
}

static bool has_limit(const leat__batch *batch)
{
    return batch->budget && batch->budget->limit > 0;
}

/* Takes memory that a batch is to grow to from what all may take. */
static int take_budget(const leat__batch *batch, size_t bytes)
{
    leat__batch_budget *budget = batch->budget;
    if (!has_limit(batch))
        return LEAT_OK;
    size_t before = atomic_fetch_add(&budget->in_use, bytes);
    if (before <= budget->limit && bytes <= budget->limit - before)
        return LEAT_OK;
    atomic_fetch_sub(&budget->in_use, bytes);
    return leat_error(LEAT_ELIMIT,
                      "%s: max_memory leaves %zu bytes for a device's batches, "
                      "which take %zu, and one of larger samples needs %zu "
                      "more; expected more memory or a smaller prefetch",
                      budget->name, budget->limit, before, bytes);
}

static void give_budget(const leat__batch *batch, size_t bytes)
{
    if (has_limit(batch))
        atomic_fetch_sub(&batch->budget->in_use, bytes);
}

/* On the host and, if the device has memory of its own, there, too. */
static size_t sides(const leat__batch *batch)
{
    return batch->slab->device->ops->unified ? 1 : 2;
}

static size_t own_host(const leat__batch *batch)
{
    return (size_t)(batch->own_bytes + batch->own_pageable);
}

/* Whether all batches have room for what this one grew to. */
static void check_share(const leat__batch *batch)
{
    size_t own = own_host(batch) * sides(batch) + (size_t)batch->own_tops;
    if (has_limit(batch) && own > batch->budget->share)
        atomic_store(&batch->budget->is_tight, true);
}

static void account(leat__batch *batch)
{
    int64_t bytes = (int64_t)batch->capacity;
    bool is_pageable = batch->slab->is_pageable;
    atomic_store(&batch->own_bytes, is_pageable ? 0 : bytes);
    atomic_store(&batch->own_pageable, is_pageable ? bytes : 0);
    atomic_fetch_add(&batch->growths, 1);
    check_share(batch);
}

static int make_slab(const leat__batch *batch, size_t bytes, leat__slab **out)
{
    leat__slab *slab;
    int status = leat__slab_create(&slab, batch->slab->device, bytes);
    if (status)
        return status;
    slab->must_pin = batch->slab->must_pin;
    leat__slab_set_allocator(slab, leat__slab_allocator(batch->slab));
    status = leat__slab_ensure_host(slab);
    if (!status)
        status = leat__slab_ensure_device(slab);
    if (status) {
        leat__slab_unref(slab);
        return status;
    }
    *out = slab;
    return LEAT_OK;
}

static int grow_host(leat__batch *batch, size_t bytes, size_t kept)
{
    leat__slab *slab;
    size_t own = own_host(batch);
    int status = take_budget(batch, bytes * sides(batch));
    if (status)
        return status;
    status = make_slab(batch, bytes, &slab);
    give_budget(batch, (status ? bytes : own) * sides(batch));
    if (status)
        return status;
    if (kept > 0)
        memcpy(slab->host, (const char *)batch->slab->host + batch->offset,
               kept);
    if (own == 0 && has_limit(batch))
        batch->home =
            (leat__batch_home){batch->slab, batch->offset, batch->capacity};
    else
        leat__slab_unref(batch->slab);
    batch->slab = slab;
    batch->offset = 0;
    batch->capacity = bytes;
    account(batch);
    return LEAT_OK;
}

/* Keeps the first memory of a top that grows. */
static void keep_top(leat__batch *batch)
{
    if (batch->own_tops > 0 || !has_limit(batch))
        return;
    batch->top_home = (leat__batch_home){batch->top_slab, batch->top_offset,
                                         batch->top_capacity};
    batch->top_slab = NULL;
}

static int make_top(leat__batch *batch, size_t bytes)
{
    leat__slab *slab;
    int status = leat__slab_create(&slab, batch->slab->device, bytes);
    if (status)
        return status;
    if (batch->top_slab)
        leat__slab_set_tally(slab, batch->top_slab->tally);
    leat__slab_set_device_only(slab);
    status = leat__slab_ensure_device(slab);
    if (!status) {
        keep_top(batch);
        leat__batch_set_top(batch, slab, 0, bytes);
        atomic_store(&batch->own_tops, (int64_t)bytes);
        check_share(batch);
    }
    leat__slab_unref(slab);
    return status;
}

static int grow_top(leat__batch *batch, size_t bytes)
{
    size_t own = (size_t)batch->own_tops;
    int status = take_budget(batch, bytes);
    if (status)
        return status;
    status = make_top(batch, bytes);
    give_budget(batch, status ? bytes : own);
    return status;
}

/* Whether others may need memory that a batch grew to and now needs `bytes` of.
 */
static bool is_spare(const leat__batch *batch, size_t own, size_t bytes)
{
    return bytes < own / 2 && has_limit(batch) &&
           atomic_load(&batch->budget->is_tight);
}

/* Back to the memory before, which has room for `kept`. */
static void shrink_host(leat__batch *batch, size_t kept)
{
    leat__batch_home *home = &batch->home;
    if (kept > 0)
        memcpy((char *)home->slab->host + home->offset,
               (const char *)batch->slab->host + batch->offset, kept);
    size_t own = own_host(batch) * sides(batch);
    leat__slab_unref(batch->slab);
    give_budget(batch, own);
    atomic_store(&batch->own_bytes, 0);
    atomic_store(&batch->own_pageable, 0);
    batch->slab = home->slab;
    batch->offset = home->offset;
    batch->capacity = home->capacity;
    home->slab = NULL;
}

static void shrink_top(leat__batch *batch)
{
    leat__batch_home *home = &batch->top_home;
    leat__slab_unref(batch->top_slab);
    give_budget(batch, (size_t)batch->own_tops);
    atomic_store(&batch->own_tops, 0);
    batch->top_slab = home->slab;
    batch->top_offset = home->offset;
    batch->top_capacity = home->capacity;
    home->slab = NULL;
}

int leat__batch_reserve(leat__batch *batch, const leat__batch_shape *shape)
{
    /* What variable tops need is not known yet. */
    bool is_host_spare =
        !batch->extent && is_spare(batch, own_host(batch), shape->bytes);
    bool is_top_spare =
        is_spare(batch, (size_t)batch->own_tops, shape->top_bytes);
    if (shape->bytes <= batch->capacity &&
        shape->top_bytes <= batch->top_capacity && !is_host_spare &&
        !is_top_spare)
        return LEAT_OK;
    int status = await_streams(batch);
    if (status)
        return status;
    if (is_host_spare)
        shrink_host(batch, 0);
    if (is_top_spare)
        shrink_top(batch);
    if (shape->bytes > batch->capacity)
        status = grow_host(batch, shape->bytes, 0);
    if (!status && shape->top_bytes > batch->top_capacity)
        status = grow_top(batch, shape->top_bytes);
    return status;
}

int leat__batch_extend(leat__batch *batch, size_t bytes, size_t kept)
{
    bool is_host_spare =
        is_spare(batch, own_host(batch), bytes) && kept <= batch->home.capacity;
    if (bytes <= batch->capacity && !is_host_spare)
        return LEAT_OK;
    int status = await_streams(batch);
    if (!status && is_host_spare)
        shrink_host(batch, kept);
    if (status || bytes <= batch->capacity)
        return status;
    status = grow_host(batch, bytes + bytes / 4, kept);
    /* A reserve for the next batch, where there is room for it. */
    return status == LEAT_ELIMIT ? grow_host(batch, bytes, kept) : status;
}
