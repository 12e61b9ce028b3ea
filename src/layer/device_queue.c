/*
 * DESIGN. A batch goes round: from the free stack, by a worker's or a caller's
 * claim, through their hands, into `finished` until those before it are there
 * too, by upload into `ready`, to the caller, and back. A claim waits here only
 * for a free batch.
 *
 * Locks: a queue's guards its free stack; that of all guards the sequence, and
 * serialises the uploads, under which a batch's own lock and that of `ready`
 * are taken. `ready` has room for all batches of its device, so a push never
 * waits.
 */
#include "layer/device_queue.h"
#include "base/clock.h"
#include "base/counter.h"
#include "base/thread.h"

#include <string.h>

/* What the device computes lies in its memory alone. */
static int make_tops(leat__device_queue *queue,
                     const leat__device_queue_options *options)
{
    size_t each = options->shape.top_bytes;
    size_t bytes;
    if (!options->shape.is_cropped)
        return LEAT_OK;
    if (leat__multiply(each, (size_t)queue->n, &bytes))
        return leat_error(LEAT_EINVAL, "%d tops of %zu bytes overflow",
                          queue->n, each);
    queue->tally = leat__host_tally_create();
    if (!queue->tally)
        return LEAT_ENOMEM;
    leat__slab *slab;
    int status = leat__slab_create(&slab, queue->device, bytes);
    if (status)
        return status;
    leat__slab_set_tally(slab, queue->tally);
    status = leat__slab_ensure_device(slab);
    for (int i = 0; i < queue->n && !status; i++)
        leat__batch_set_top(&queue->batch[i], slab, (size_t)i * each, each);
    leat__slab_unref(slab);
    queue->top_bytes = (int64_t)bytes;
    return status;
}

/* One slab for all batches: pinning is cheapest for few large allocations. */
static int make_slab(leat__device_queue *queue, leat__slab **out, size_t bytes,
                     const leat__device_queue_options *options)
{
    leat__slab *slab;
    int status = leat__slab_create(&slab, queue->device, bytes);
    if (status)
        return status;
    slab->must_pin = options->must_pin;
    leat__slab_set_allocator(slab, queue->device->ops->unified
                                       ? options->host_slabs
                                       : options->pinned_slabs);
    status = leat__slab_ensure_host(slab);
    if (!status)
        status = leat__slab_ensure_device(slab);
    if (status) {
        leat__slab_unref(slab);
        return status;
    }
    queue->slab_bytes = (int64_t)bytes;
    queue->is_pageable = slab->is_pageable;
    *out = slab;
    return LEAT_OK;
}

static int make_batches(leat__device_queue *queue,
                        const leat__device_queue_options *options)
{
    size_t each = options->room > options->shape.bytes ? options->room
                                                       : options->shape.bytes;
    size_t n = (size_t)options->batches;
    size_t bytes;
    if (leat__multiply(each, n, &bytes))
        return leat_error(LEAT_EINVAL, "%zu batches of %zu bytes overflow", n,
                          each);
    queue->batch = leat__alloc_aligned_zero(n * sizeof(*queue->batch));
    queue->free = leat__alloc_zero(n, sizeof(*queue->free));
    if (!queue->batch || !queue->free)
        return LEAT_ENOMEM;
    queue->n = options->batches;
    leat__slab *slab;
    int status = make_slab(queue, &slab, bytes, options);
    if (status)
        return status;
    /* Pinned memory is there. Other memory is populated by the workers, each
       batch's by the first one in it; one of its pages gives the node. */
    bool is_lazy = queue->device->ops->unified || slab->is_pageable;
    if (is_lazy && bytes > 0)
        status = leat__populate(slab->host, 1);
    if (!status)
        queue->host_node = leat__numa_node_of(slab->host);
    for (int i = 0; i < queue->n && !status; i++) {
        status = leat__batch_init(&queue->batch[i], slab, (size_t)i * each,
                                  each, options->batch_size, is_lazy);
        queue->batch[i].slot = i;
    }
    leat__slab_unref(slab);
    for (int i = 0; i < queue->n && !status && options->is_variable; i++)
        status =
            leat__batch_make_variable(&queue->batch[i], options->shape.ntop);
    return status ? status : make_tops(queue, options);
}

/* What they take from the start is part of it. */
static void set_budget(leat__device_queue *queue,
                       const leat__device_queue_options *options)
{
    size_t sides = queue->device->ops->unified ? 1 : 2;
    queue->budget.name = options->name;
    queue->budget.limit = options->max_memory;
    atomic_store(&queue->budget.in_use,
                 (size_t)queue->slab_bytes * sides + (size_t)queue->top_bytes);
    for (int i = 0; i < queue->n; i++)
        queue->batch[i].budget = &queue->budget;
}

static int init_queue(leat__device_queue *queue, leat_device *device,
                      bool is_alone, const leat__device_queue_options *options)
{
    int status = leat__mutex_init(&queue->lock);
    if (status)
        return status;
    queue->device = device;
    queue->is_alone = is_alone;
    status = leat__queue_create(&queue->ready, options->batches);
    if (!status)
        status = make_batches(queue, options);
    if (!status)
        status = leat__device_copy_init(&queue->copy, device,
                                        options->transformer, &options->shape);
    if (status)
        return status;
    set_budget(queue, options);
    for (int i = 0; i < options->circulating; i++)
        queue->free[i] = &queue->batch[i];
    atomic_store(&queue->nfree, options->circulating);
    atomic_store(&queue->circulating, options->circulating);
    return LEAT_OK;
}

static void finish_queue(leat__device_queue *queue)
{
    if (!queue->device)
        return;
    leat__device_copy_wait(&queue->copy, queue->batch, queue->n);
    for (int i = 0; i < queue->n; i++)
        leat__batch_finish(&queue->batch[i]);
    leat__host_tally_unref(queue->tally);
    leat__device_copy_finish(&queue->copy);
    leat__queue_destroy(queue->ready);
    leat__free(queue->free);
    leat__free(queue->batch);
    pthread_mutex_destroy(&queue->lock);
}

static int init_order(leat__device_queues *queues)
{
    queues->finished =
        leat__alloc_zero((size_t)queues->capacity, sizeof(leat__batch *));
    if (!queues->finished)
        return LEAT_ENOMEM;
    int status = leat__event_count_init(&queues->room);
    if (status)
        goto fail_finished;
    status = leat__mutex_init(&queues->lock);
    if (status)
        goto fail_room;
    return LEAT_OK;

fail_room:
    leat__event_count_finish(&queues->room);
fail_finished:
    leat__free(queues->finished);
    queues->finished = NULL;
    return status;
}

int leat__device_queues_init(leat__device_queues *queues,
                             leat_device *const devices[], int n,
                             const leat__device_queue_options *options)
{
    memset(queues, 0, sizeof(*queues));
    queues->capacity = n * options->batches;
    int status = init_order(queues);
    if (status)
        return status;
    queues->queue = leat__alloc_zero((size_t)n, sizeof(*queues->queue));
    if (!queues->queue)
        return LEAT_ENOMEM;
    queues->n = n;
    for (int i = 0; i < n && !status; i++)
        status = init_queue(&queues->queue[i], devices[i], n == 1, options);
    return status;
}

void leat__device_queues_finish(leat__device_queues *queues)
{
    if (!queues->finished)
        return;
    for (int i = 0; i < queues->n; i++)
        finish_queue(&queues->queue[i]);
    leat__free(queues->queue);
    pthread_mutex_destroy(&queues->lock);
    leat__event_count_finish(&queues->room);
    leat__free(queues->finished);
}

int leat__device_queue_take(leat__device_queue *queue, leat__batch **out)
{
    if (atomic_load_explicit(&queue->nfree, memory_order_relaxed) == 0)
        return LEAT_AGAIN;
    pthread_mutex_lock(&queue->lock);
    int n = atomic_load_explicit(&queue->nfree, memory_order_relaxed);
    if (n > 0) {
        /* With a device's own memory the one that was given back first: its
           upload waits for its consumers. */
        int i = queue->device->ops->unified ? n - 1 : 0;
        leat__batch **from = queue->free + i;
        *out = *from;
        memmove(from, from + 1, (size_t)(n - 1 - i) * sizeof(*from));
        atomic_store_explicit(&queue->nfree, n - 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&queue->lock);
    return n > 0 ? LEAT_OK : LEAT_AGAIN;
}

/* Returns how many are free. */
static int push(leat__device_queue *queue, leat__batch *batch)
{
    pthread_mutex_lock(&queue->lock);
    int n = atomic_load_explicit(&queue->nfree, memory_order_relaxed);
    queue->free[n] = batch;
    atomic_store_explicit(&queue->nfree, n + 1, memory_order_relaxed);
    pthread_mutex_unlock(&queue->lock);
    return n + 1;
}

void leat__device_queue_give(leat__device_queues *all,
                             leat__device_queue *queue, leat__batch *batch)
{
    int n = push(queue, batch);
    int threshold =
        leat__wake_threshold(atomic_load(&queue->circulating), queue->is_alone);
    if (n < threshold || queue->is_inline)
        leat__event_count_add(&all->room);
    else
        leat__event_count_wake_one(&all->room);
}

/*
 * The caller finds no batch ready, and the workers found none free since the
 * last growth: they wait for each other by turns. One more batch lets each go
 * on while the other pauses.
 */
static void grow(leat__device_queue *queue)
{
    int n = atomic_load(&queue->circulating);
    if (n == queue->n || !atomic_exchange(&queue->was_full, false))
        return;
    atomic_store(&queue->circulating, n + 1);
    (void)push(queue, &queue->batch[n]);
}

void leat__device_queue_press(leat__device_queues *all,
                              leat__device_queue *queue)
{
    grow(queue);
    if (atomic_load_explicit(&queue->nfree, memory_order_relaxed) > 0)
        leat__event_count_wake_all(&all->room);
}

void leat__device_queue_set_inline(leat__device_queues *all,
                                   leat__device_queue *queue, bool is_inline)
{
    if (queue->is_inline == is_inline)
        return;
    queue->is_inline = is_inline;
    if (!is_inline)
        leat__event_count_wake_all(&all->room);
}

static void fail_batch(leat__batch *batch, int status)
{
    char line[LEAT__ERROR_MAX];
    leat__error_save(line);
    leat__batch_fail(batch, 0, status, NULL, line);
}

/* What is ready can still be taken. */
static void end_locked(leat__device_queues *queues, int status,
                       const char *line)
{
    queues->ended = status;
    memcpy(queues->line, line, sizeof(queues->line));
    for (int i = 0; i < queues->n; i++)
        leat__queue_close(queues->queue[i].ready);
}

static void make_ready_locked(leat__device_queues *queues, leat__batch *batch)
{
    leat__device_queue *queue = leat__device_queues_of(queues, batch->number);
    if (batch->failed < 0) {
        int status = leat__device_copy_upload(&queue->copy, batch);
        if (status)
            fail_batch(batch, status);
    }
    int status = batch->failed < 0 ? LEAT_OK : batch->status;
    char line[LEAT__ERROR_MAX];
    if (status)
        memcpy(line, batch->culprit.line, sizeof(line));
    /* Only a closed queue refuses it. From now on it is the caller's. */
    (void)leat__queue_push(queue->ready, batch);
    if (status && status != LEAT_EDATA)
        end_locked(queues, status, line);
}

static void complete(leat__device_queues *queues, leat__batch *done)
{
    int capacity = queues->capacity;
    pthread_mutex_lock(&queues->lock);
    queues->finished[done->number % capacity] = done;
    leat__batch *batch;
    while (!queues->ended &&
           (batch = queues->finished[queues->next % capacity]) != NULL) {
        queues->finished[queues->next % capacity] = NULL;
        queues->next++;
        make_ready_locked(queues, batch);
    }
    pthread_mutex_unlock(&queues->lock);
}

int64_t leat__device_queues_complete(leat__device_queues *queues,
                                     leat__batch *batch, int n)
{
    /* After the last sample the batch may be another's. */
    bool may_copy = !batch->slab->device->ops->unified;
    if (atomic_fetch_sub(&batch->outstanding, n) != n)
        return 0;
    int64_t begin = may_copy ? leat__clock_now() : 0;
    complete(queues, batch);
    return may_copy ? leat__clock_now() - begin : 0;
}

void leat__device_queues_end(leat__device_queues *queues, int status,
                             const char *line)
{
    pthread_mutex_lock(&queues->lock);
    if (!queues->ended)
        end_locked(queues, status, line);
    pthread_mutex_unlock(&queues->lock);
}

int leat__device_queues_ended(leat__device_queues *queues)
{
    pthread_mutex_lock(&queues->lock);
    int status = queues->ended;
    if (status)
        (void)leat_error(status, "%s", queues->line);
    pthread_mutex_unlock(&queues->lock);
    return status;
}

void leat__device_queues_close(leat__device_queues *queues)
{
    if (!queues->finished)
        return;
    leat__event_count_close(&queues->room);
    for (int i = 0; i < queues->n; i++)
        if (queues->queue[i].ready)
            leat__queue_close(queues->queue[i].ready);
}

/* The memory of `batches` of them, and the extra memory of grown ones. */
static leat_memory_stats measure(const leat__device_queue *queue,
                                 int64_t batches)
{
    int64_t n = queue->n > 0 ? queue->n : 1;
    int64_t shared = queue->slab_bytes / n * batches;
    int64_t tops = queue->top_bytes / n * batches;
    int64_t pageable = queue->is_pageable ? shared : 0;
    int64_t bytes = queue->is_pageable ? 0 : shared;
    for (int i = 0; i < queue->n; i++) {
        bytes += atomic_load(&queue->batch[i].own_bytes);
        pageable += atomic_load(&queue->batch[i].own_pageable);
        tops += atomic_load(&queue->batch[i].own_tops);
    }
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

void leat__device_queue_stats(const leat__device_queue *queue,
                              leat_stats *stats)
{
    const leat_device_ops *ops = queue->device->ops;
    stats->device_node = ops->numa_node ? ops->numa_node(queue->device) : -1;
    stats->host_node = queue->host_node;
    stats->batches_in_use = atomic_load(&queue->circulating);
    stats->grown_batches = 0;
    for (int i = 0; i < queue->n; i++)
        stats->grown_batches += atomic_load(&queue->batch[i].growths);
    stats->memory = measure(queue, queue->n);
    /* What went into circulation stays there. */
    stats->peak = measure(queue, stats->batches_in_use);
    if (ops->unified)
        return;
    stats->stage[stats->nstages++] = (leat_stage_stats){
        .name = "copy",
        .items = atomic_load(&queue->copy.batches),
        .bytes = atomic_load(&queue->copy.bytes),
        .busy = leat__counter_seconds(&queue->copy.busy),
    };
}
