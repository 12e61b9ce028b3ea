/* What a device's batches take, and what is copied to it. */
#include "base/counter.h"
#include "layer/device_queue.h"

/* The memory of `batches` of them, and what they grew to. */
static leat_memory_stats measure(const leat__device_queue *queue,
                                 int64_t batches,
                                 const leat__batch_grown *grown)
{
    int64_t n = queue->n > 0 ? queue->n : 1;
    int64_t shared = queue->slab_bytes / n * batches;
    int64_t tops = queue->top_bytes / n * batches + atomic_load(&grown->tops);
    int64_t pageable =
        (queue->is_pageable ? shared : 0) + atomic_load(&grown->pageable);
    int64_t bytes =
        (queue->is_pageable ? 0 : shared) + atomic_load(&grown->bytes);
    if (queue->device->ops->unified)
        return (leat_memory_stats){.host = bytes};
    /* What blobs have the host read of tops that the device computed. */
    const leat__host_tally *tally = queue->tally;
    return (leat_memory_stats){
        .pinned = bytes + (tally ? atomic_load(&tally->pinned) : 0),
        .pageable = pageable + (tally ? atomic_load(&tally->pageable) : 0),
        .device = bytes + pageable + tops + (int64_t)queue->copy.mean_bytes,
    };
}

void leat__device_queue_stats(const leat__device_queues *all,
                              const leat__device_queue *queue,
                              leat_stats *stats)
{
    const leat_device_ops *ops = queue->device->ops;
    stats->device_node = ops->numa_node ? ops->numa_node(queue->device) : -1;
    stats->host_node = queue->host_node;
    stats->batches_in_use = atomic_load(&queue->circulating);
    stats->grown_batches = atomic_load(&queue->budget.growths);
    stats->memory = measure(queue, queue->n, &queue->budget.grown);
    /* Those that are not in use come into it as far as there is room. */
    int64_t limit = (int64_t)queue->budget.limit;
    if (queue->is_lazy && limit > 0 && stats->memory.host > limit)
        stats->memory.host = limit;
    /* What went into circulation stays there. */
    stats->peak = measure(queue, stats->batches_in_use, &queue->budget.most);
    if (ops->unified)
        return;
    stats->stage[stats->nstages++] = (leat_stage_stats){
        .name = "copy",
        .threads = all->has_thread ? 1 : 0,
        .items = atomic_load(&queue->copy.batches),
        .bytes = atomic_load(&queue->copy.bytes),
        .busy = leat__counter_seconds(&queue->copy.busy),
    };
}
