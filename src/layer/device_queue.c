/*
 * DESIGN. A batch goes round: from the free stack, by a worker's or a caller's
 * claim, through their hands, into `finished` until those before it are there
 * too, by upload into `ready`, to the caller, and back. Nothing holds a worker
 * back but an empty free stack.
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
static int make_tops(leat__device_queue *self,
                     const leat__device_queue_options *options)
{
    size_t each = options->shape.top_bytes;
    size_t bytes;
    if (!options->shape.is_cropped)
        return LEAT_OK;
    if (leat__multiply(each, (size_t)self->n, &bytes))
        return leat_error(LEAT_EINVAL, "%d tops of %zu bytes overflow", self->n,
                          each);
    leat__slab *slab;
    int status = leat__slab_create(&slab, self->device, bytes);
    if (status)
        return status;
    status = leat__slab_ensure_device(slab);
    for (int i = 0; i < self->n && status == LEAT_OK; i++)
        leat__batch_set_top(&self->batch[i], slab, (size_t)i * each, each);
    leat__slab_unref(slab);
    self->top_bytes = (int64_t)bytes;
    return status;
}

/* One slab for all batches: few large allocations are what pinning wants. */
static int make_slab(leat__device_queue *self, leat__slab **out, size_t bytes,
                     const leat__device_queue_options *options)
{
    leat__slab *slab;
    int status = leat__slab_create(&slab, self->device, bytes);
    if (status)
        return status;
    slab->must_pin = options->must_pin;
    leat__slab_set_allocator(slab, self->device->ops->unified
                                       ? options->host_slabs
                                       : options->pinned_slabs);
    status = leat__slab_ensure_host(slab);
    if (status == LEAT_OK)
        status = leat__slab_ensure_device(slab);
    if (status) {
        leat__slab_unref(slab);
        return status;
    }
    self->slab_bytes = (int64_t)bytes;
    self->is_pageable = slab->is_pageable;
    *out = slab;
    return LEAT_OK;
}

static int make_batches(leat__device_queue *self,
                        const leat__device_queue_options *options)
{
    size_t each = options->shape.bytes;
    size_t n = (size_t)options->batches;
    size_t bytes;
    if (leat__multiply(each, n, &bytes))
        return leat_error(LEAT_EINVAL, "%zu batches of %zu bytes overflow", n,
                          each);
    self->batch = leat__alloc_aligned_zero(n * sizeof(*self->batch));
    self->free = leat__alloc_zero(n, sizeof(*self->free));
    if (!self->batch || !self->free)
        return LEAT_ENOMEM;
    self->n = options->batches;
    leat__slab *slab;
    int status = make_slab(self, &slab, bytes, options);
    if (status)
        return status;
    /* Pinned memory is there. Other memory is populated by the workers, each
     * batch's by the first one in it; a page of it tells the node. */
    bool is_lazy = self->device->ops->unified || slab->is_pageable;
    if (is_lazy && bytes > 0)
        status = leat__populate(slab->host, 1);
    if (status == LEAT_OK)
        self->host_node = leat__numa_node_of(slab->host);
    for (int i = 0; i < self->n && status == LEAT_OK; i++)
        status = leat__batch_init(&self->batch[i], slab, (size_t)i * each, each,
                                  options->batch_size, is_lazy);
    leat__slab_unref(slab);
    return status ? status : make_tops(self, options);
}

static int init_queue(leat__device_queue *self, leat_device *device,
                      bool is_alone, const leat__device_queue_options *options)
{
    int status = leat__mutex_init(&self->lock);
    if (status)
        return status;
    self->device = device;
    self->is_alone = is_alone;
    status = leat__queue_create(&self->ready, options->batches);
    if (status == LEAT_OK)
        status = make_batches(self, options);
    if (status == LEAT_OK)
        status = leat__device_copy_init(&self->copy, device,
                                        options->transformer, &options->shape);
    if (status)
        return status;
    for (int i = 0; i < options->circulating; i++)
        self->free[i] = &self->batch[i];
    atomic_store(&self->nfree, options->circulating);
    atomic_store(&self->circulating, options->circulating);
    return LEAT_OK;
}

static void finish_queue(leat__device_queue *self)
{
    if (!self->device)
        return;
    leat__device_copy_wait(&self->copy, self->batch, self->n);
    for (int i = 0; i < self->n; i++)
        leat__batch_finish(&self->batch[i]);
    leat__device_copy_finish(&self->copy);
    leat__queue_destroy(self->ready);
    leat__free(self->free);
    leat__free(self->batch);
    pthread_mutex_destroy(&self->lock);
}

static int init_order(leat__device_queues *self)
{
    self->finished =
        leat__alloc_zero((size_t)self->capacity, sizeof(leat__batch *));
    if (!self->finished)
        return LEAT_ENOMEM;
    int status = leat__event_count_init(&self->room);
    if (status)
        goto fail_finished;
    status = leat__mutex_init(&self->lock);
    if (status)
        goto fail_room;
    return LEAT_OK;

fail_room:
    leat__event_count_finish(&self->room);
fail_finished:
    leat__free(self->finished);
    self->finished = NULL;
    return status;
}

int leat__device_queues_init(leat__device_queues *self,
                             leat_device *const devices[], int n,
                             const leat__device_queue_options *options)
{
    memset(self, 0, sizeof(*self));
    self->capacity = n * options->batches;
    int status = init_order(self);
    if (status)
        return status;
    self->queue = leat__alloc_zero((size_t)n, sizeof(*self->queue));
    if (!self->queue)
        return LEAT_ENOMEM;
    self->n = n;
    for (int i = 0; i < n && status == LEAT_OK; i++)
        status = init_queue(&self->queue[i], devices[i], n == 1, options);
    return status;
}

void leat__device_queues_finish(leat__device_queues *self)
{
    if (!self->finished)
        return;
    for (int i = 0; i < self->n; i++)
        finish_queue(&self->queue[i]);
    leat__free(self->queue);
    pthread_mutex_destroy(&self->lock);
    leat__event_count_finish(&self->room);
    leat__free(self->finished);
}

int leat__device_queue_take(leat__device_queue *self, leat__batch **out)
{
    if (atomic_load_explicit(&self->nfree, memory_order_relaxed) == 0)
        return LEAT_AGAIN;
    pthread_mutex_lock(&self->lock);
    int n = atomic_load_explicit(&self->nfree, memory_order_relaxed);
    if (n > 0) {
        /* With a device's own memory the one that was given back first: its
           upload waits for its consumers. */
        int i = self->device->ops->unified ? n - 1 : 0;
        leat__batch **from = self->free + i;
        *out = *from;
        memmove(from, from + 1, (size_t)(n - 1 - i) * sizeof(*from));
        atomic_store_explicit(&self->nfree, n - 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&self->lock);
    return n > 0 ? LEAT_OK : LEAT_AGAIN;
}

/* Returns how many are free. */
static int push(leat__device_queue *self, leat__batch *batch)
{
    pthread_mutex_lock(&self->lock);
    int n = atomic_load_explicit(&self->nfree, memory_order_relaxed);
    self->free[n] = batch;
    atomic_store_explicit(&self->nfree, n + 1, memory_order_relaxed);
    pthread_mutex_unlock(&self->lock);
    return n + 1;
}

void leat__device_queue_give(leat__device_queues *all, leat__device_queue *self,
                             leat__batch *batch)
{
    int n = push(self, batch);
    int threshold =
        leat__wake_threshold(atomic_load(&self->circulating), self->is_alone);
    if (n < threshold || self->is_inline)
        leat__event_count_add(&all->room);
    else
        leat__event_count_wake_one(&all->room);
}

/*
 * None is free now and all were ready before: the stages run by turns, and a
 * deeper queue lets each go on while the other pauses.
 */
static void grow(leat__device_queue *self)
{
    int n = atomic_load(&self->circulating);
    if (n == self->n || !atomic_exchange(&self->was_full, 0))
        return;
    atomic_store(&self->circulating, n + 1);
    (void)push(self, &self->batch[n]);
}

void leat__device_queue_press(leat__device_queues *all,
                              leat__device_queue *self)
{
    grow(self);
    if (atomic_load_explicit(&self->nfree, memory_order_relaxed) > 0)
        leat__event_count_wake_all(&all->room);
}

void leat__device_queue_set_inline(leat__device_queues *all,
                                   leat__device_queue *self, bool is_inline)
{
    if (self->is_inline == is_inline)
        return;
    self->is_inline = is_inline;
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
static void end_locked(leat__device_queues *self, int status, const char *line)
{
    self->ended = status;
    memcpy(self->line, line, sizeof(self->line));
    for (int i = 0; i < self->n; i++)
        leat__queue_close(self->queue[i].ready);
}

static void make_ready_locked(leat__device_queues *self, leat__batch *batch)
{
    leat__device_queue *queue = leat__device_queues_of(self, batch->number);
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
        end_locked(self, status, line);
}

static void complete(leat__device_queues *self, leat__batch *done)
{
    int capacity = self->capacity;
    pthread_mutex_lock(&self->lock);
    self->finished[done->number % capacity] = done;
    leat__batch *batch;
    while (!self->ended &&
           (batch = self->finished[self->next % capacity]) != NULL) {
        self->finished[self->next % capacity] = NULL;
        self->next++;
        make_ready_locked(self, batch);
    }
    pthread_mutex_unlock(&self->lock);
}

int64_t leat__device_queues_complete(leat__device_queues *self,
                                     leat__batch *batch, int n)
{
    /* After the last sample the batch may be another's. */
    bool may_copy = !batch->slab->device->ops->unified;
    if (atomic_fetch_sub(&batch->outstanding, n) != n)
        return 0;
    int64_t begin = may_copy ? leat__clock_now() : 0;
    complete(self, batch);
    return may_copy ? leat__clock_now() - begin : 0;
}

void leat__device_queues_end(leat__device_queues *self, int status,
                             const char *line)
{
    pthread_mutex_lock(&self->lock);
    if (!self->ended)
        end_locked(self, status, line);
    pthread_mutex_unlock(&self->lock);
}

int leat__device_queues_ended(leat__device_queues *self)
{
    pthread_mutex_lock(&self->lock);
    int status = self->ended;
    if (status)
        (void)leat_error(status, "%s", self->line);
    pthread_mutex_unlock(&self->lock);
    return status;
}

void leat__device_queues_close(leat__device_queues *self)
{
    if (!self->finished)
        return;
    leat__event_count_close(&self->room);
    for (int i = 0; i < self->n; i++)
        if (self->queue[i].ready)
            leat__queue_close(self->queue[i].ready);
}

/* What `batches` of them take, and what those that grew take besides. */
static leat_memory_stats measure(const leat__device_queue *self,
                                 int64_t batches)
{
    int64_t n = self->n > 0 ? self->n : 1;
    int64_t shared = self->slab_bytes / n * batches;
    int64_t tops = self->top_bytes / n * batches;
    int64_t pageable = self->is_pageable ? shared : 0;
    int64_t bytes = self->is_pageable ? 0 : shared;
    for (int i = 0; i < self->n; i++) {
        bytes += atomic_load(&self->batch[i].own_bytes);
        pageable += atomic_load(&self->batch[i].own_pageable);
        tops += atomic_load(&self->batch[i].own_tops);
    }
    if (self->device->ops->unified)
        return (leat_memory_stats){.host = bytes};
    return (leat_memory_stats){
        .pinned = bytes,
        .pageable = pageable,
        .device = bytes + pageable + tops + (int64_t)self->copy.mean_bytes,
    };
}

void leat__device_queue_stats(const leat__device_queue *self, leat_stats *stats)
{
    const leat_device_ops *ops = self->device->ops;
    stats->device_node = ops->numa_node ? ops->numa_node(self->device) : -1;
    stats->host_node = self->host_node;
    stats->slots = atomic_load(&self->circulating);
    stats->grown_slots = 0;
    for (int i = 0; i < self->n; i++)
        stats->grown_slots += atomic_load(&self->batch[i].growths);
    stats->memory = measure(self, self->n);
    /* What went into circulation stays there. */
    stats->peak = measure(self, stats->slots);
    if (ops->unified)
        return;
    stats->stage[stats->nstages++] = (leat_stage_stats){
        .name = "copy",
        .items = atomic_load(&self->copy.batches),
        .bytes = atomic_load(&self->copy.bytes),
        .busy = leat__counter_seconds(&self->copy.busy),
    };
}
