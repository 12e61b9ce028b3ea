#include "layer/lane.h"
#include "base/counter.h"

#include <limits.h>

/* Beside other lanes each slot wakes: their callers may wait for what comes
   behind it. */
int leat__lane_late(const leat__lane *self)
{
    int n = atomic_load(&self->circulating);
    int half = (n + 1) / 2;
    int late = half < n - 2 ? half : n - 2;
    return self->is_alone && late > 1 ? late : 1;
}

static void wake_late(leat__lane *self)
{
    leat__queue_wake_at(self->free,
                        self->rests ? INT_MAX : leat__lane_late(self));
}

/* The slots that are in use from the start. */
static void circulate(leat__lane *self, int n)
{
    for (int i = 0; i < n; i++)
        (void)leat__queue_push(self->free, &self->pool.batch[i]);
    atomic_store(&self->circulating, n);
    wake_late(self);
}

int leat__lane_init(leat__lane *self, leat_device *device,
                    const leat__prefetcher_options *options)
{
    self->device = device;
    self->is_alone = options->lanes == 1;
    int status = leat__queue_create(&self->free, options->slots);
    if (status == LEAT_OK)
        status = leat__queue_create(&self->full, options->slots);
    if (status == LEAT_OK)
        status = leat__batch_pool_init(&self->pool, device, options);
    if (status == LEAT_OK)
        status = leat__device_copy_init(&self->device_copy, device,
                                        options->transformer, &options->shape);
    for (int i = 0; i < options->slots && status == LEAT_OK; i++)
        self->pool.batch[i].lane = self;
    if (status == LEAT_OK)
        circulate(self, options->circulating);
    return status;
}

void leat__lane_finish(leat__lane *self)
{
    if (!self->device)
        return;
    leat__device_copy_wait(&self->device_copy, self->pool.batch, self->pool.n);
    leat__batch_pool_finish(&self->pool);
    leat__device_copy_finish(&self->device_copy);
    leat__queue_destroy(self->free);
    leat__queue_destroy(self->full);
}

static int was_filled_by(const void *slot, const void *who)
{
    return ((const leat__batch *)slot)->filled_by == who;
}

/*
 * The slot whose memory is likeliest in the cache; with a device's own memory
 * the one that was given back first, as the upload waits for its consumers.
 */
int leat__lane_take(leat__lane *self, const void *who, leat__batch **out)
{
    void *slot;
    int status = self->device->ops->unified
                     ? leat__queue_pick(self->free, &slot, was_filled_by, who)
                     : leat__queue_pop(self->free, &slot, 0);
    if (status == LEAT_OK) {
        *out = slot;
        (*out)->filled_by = who;
    }
    return status;
}

/*
 * Empty now and full before: the stages run by turns, and a deeper queue lets
 * each go on while the other pauses.
 */
void leat__lane_grow(leat__lane *self)
{
    int n = atomic_load(&self->circulating);
    if (n == self->pool.n || !atomic_exchange(&self->was_full, 0))
        return;
    atomic_store(&self->circulating, n + 1);
    wake_late(self);
    (void)leat__queue_push(self->free, &self->pool.batch[n]);
}

void leat__lane_rest(leat__lane *self, int rest)
{
    if (self->rests == rest)
        return;
    self->rests = rest;
    wake_late(self);
    if (!rest)
        leat__queue_kick(self->free);
}

void leat__lane_close(leat__lane *self)
{
    if (self->free)
        leat__queue_close(self->free);
    if (self->full)
        leat__queue_close(self->full);
}

/* What `slots` of the lane's batches take, and those that grew. */
static leat_memory_stats measure(const leat__lane *self, int64_t slots)
{
    const leat__batch_pool *all = &self->pool;
    int64_t n = all->n > 0 ? all->n : 1;
    int64_t first = all->slab_bytes / n * slots;
    int64_t pageable = atomic_load(&all->grown_pageable);
    int64_t bytes = atomic_load(&all->grown_bytes);
    if (all->is_pageable)
        pageable += first;
    else
        bytes += first;
    if (self->device->ops->unified)
        return (leat_memory_stats){.host = bytes};
    return (leat_memory_stats){
        .pinned = bytes,
        .pageable = pageable,
        .device = bytes + pageable + all->top_bytes / n * slots +
                  (int64_t)self->device_copy.kernel.bytes +
                  atomic_load(&all->grown_tops),
    };
}

void leat__lane_stats(const leat__lane *self, leat_stats *stats)
{
    const leat__batch_pool *slots = &self->pool;
    const leat_device_ops *ops = self->device->ops;
    stats->device_node = ops->numa_node ? ops->numa_node(self->device) : -1;
    stats->host_node = slots->host_node;
    stats->slots = atomic_load(&self->circulating);
    stats->grown_slots = atomic_load(&slots->grown);
    stats->memory = measure(self, slots->n);
    /* What went into circulation stays there. */
    stats->peak = measure(self, stats->slots);
    if (ops->unified)
        return;
    stats->stage[stats->nstages++] = (leat_stage_stats){
        .name = "copy",
        .items = atomic_load(&self->device_copy.batches),
        .bytes = atomic_load(&self->device_copy.bytes),
        .busy = leat__counter_seconds(&self->device_copy.busy),
    };
}
