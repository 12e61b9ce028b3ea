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
#include "layer/upload.h"

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
    leat__slab_set_device_only(slab);
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

/* Has idle batches give back what they grew to: those of a device once nothing
 * reads their host sides. */
static void trim(void *owner)
{
    leat__device_queue *queue = owner;
    for (int i = 0; i < queue->n; i++) {
        leat__batch *batch = &queue->batch[i];
        if (!leat__batch_take_idle(batch))
            continue;
        int status = leat__device_copy_await_host(&queue->copy, &batch->upload);
        if (!status)
            status = leat__device_copy_await_pushes(&queue->copy, batch);
        if (!status)
            (void)leat__batch_trim(batch);
    }
}

/* What a batch takes from the start. In leat's own memory of a device that
 * computes there it does once it circulates: nothing populates it before. */
static size_t first_bytes(const leat__device_queue *queue)
{
    return (size_t)queue->slab_bytes / (size_t)queue->n;
}

/* What they take from the start is part of it. */
static void set_budget(leat__device_queue *queue,
                       const leat__device_queue_options *options)
{
    leat__batch_budget *budget = &queue->budget;
    bool unified = queue->device->ops->unified;
    size_t bytes = (size_t)queue->slab_bytes * (unified ? 1 : 2) +
                   (size_t)queue->top_bytes;
    budget->name = options->name;
    budget->limit = options->max_memory;
    budget->share = options->max_memory > bytes
                        ? (options->max_memory - bytes) / (size_t)queue->n
                        : 0;
    queue->is_lazy = unified && !options->host_slabs;
    budget->in_use = queue->is_lazy
                         ? first_bytes(queue) * (size_t)options->circulating
                         : bytes;
    budget->trim = trim;
    budget->owner = queue;
    for (int i = 0; i < queue->n; i++)
        queue->batch[i].budget = budget;
}

static int init_queue(leat__device_queue *queue, leat_device *device,
                      bool is_alone, const leat__device_queue_options *options)
{
    int status = leat__mutex_init(&queue->lock);
    if (status)
        return status;
    status = leat__batch_budget_init(&queue->budget);
    if (status) {
        pthread_mutex_destroy(&queue->lock);
        return status;
    }
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
    leat__batch_budget_finish(&queue->budget);
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
    status = leat__event_count_init(&queues->done);
    if (status)
        goto fail_room;
    status = leat__mutex_init(&queues->lock);
    if (status)
        goto fail_done;
    return LEAT_OK;

fail_done:
    leat__event_count_finish(&queues->done);
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
    queues->has_thread = options->has_thread;
    queues->uploader.owner = options->owner;
    int status = init_order(queues);
    if (status)
        return status;
    queues->queue =
        leat__alloc_aligned_zero((size_t)n * sizeof(*queues->queue));
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
    leat__thread_join(&queues->uploader);
    for (int i = 0; i < queues->n; i++)
        finish_queue(&queues->queue[i]);
    leat__free(queues->queue);
    pthread_mutex_destroy(&queues->lock);
    leat__event_count_finish(&queues->done);
    leat__event_count_finish(&queues->room);
    leat__free(queues->finished);
}

/* Which of `n` free batches is taken. With a device's own memory the next one,
 * or that given back first: its upload waits for its consumers. */
static int choose_free(const leat__device_queue *queue, int n)
{
    if (queue->device->ops->unified)
        return n - 1;
    for (int i = 0; i < n; i++)
        if (queue->free[i]->slot == queue->next_slot)
            return i;
    return 0;
}

int leat__device_queue_take(leat__device_queue *queue, leat__batch **out)
{
    if (atomic_load_explicit(&queue->nfree, memory_order_relaxed) == 0)
        return LEAT_AGAIN;
    pthread_mutex_lock(&queue->lock);
    int n = atomic_load_explicit(&queue->nfree, memory_order_relaxed);
    if (n > 0) {
        int i = choose_free(queue, n);
        leat__batch **from = queue->free + i;
        *out = *from;
        queue->next_slot = (*out)->slot + 1 < queue->n ? (*out)->slot + 1 : 0;
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
    leat__batch_set_idle(batch);
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
    if (queue->is_lazy &&
        !leat__batch_budget_add(&queue->budget, first_bytes(queue)))
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

/* Whether the sequence goes on. */
static bool push_ready(leat__device_queues *queues, leat__device_queue *queue,
                       leat__batch *batch)
{
    int status = batch->ending.status;
    char line[LEAT__ERROR_MAX];
    if (status)
        memcpy(line, batch->ending.line, sizeof(line));
    /* Only a closed queue refuses it. From now on it is the caller's. */
    (void)leat__queue_push(queue->ready, batch);
    if (!status)
        return true;
    leat__device_queues_end(queues, status, line);
    return false;
}

/* Batches that one upload takes. By one thread at a time. */
static void make_ready(leat__device_queues *queues, leat__device_queue *queue,
                       leat__batch *const run[], int n)
{
    int status = LEAT_OK;
    if (run[0]->failed < 0)
        status = leat__upload_enqueue(&queue->copy, run, n);
    if (status)
        fail_batch(run[0], status);
    for (int i = 0; i < n && push_ready(queues, queue, run[i]); i++)
        continue;
    /* What ails the device, the next upload says. */
    if (queues->has_thread && queue->is_alone)
        (void)leat__upload_pace(&queue->copy);
}

/* The batches that come next, as far as they are finished: a quarter of all at
 * most, since what waits for others of its copy is late. */
static int look_locked(const leat__device_queues *queues, leat__batch *next[])
{
    int n = 0;
    while (!queues->ended && n < LEAT__UPLOAD_BATCHES &&
           (n == 0 || n < queues->capacity / 4)) {
        next[n] = queues->finished[(queues->next + n) % queues->capacity];
        if (!next[n])
            break;
        n++;
    }
    return n;
}

static void take_locked(leat__device_queues *queues, int n)
{
    for (int i = 0; i < n; i++)
        queues->finished[queues->next++ % queues->capacity] = NULL;
    atomic_fetch_add(&queues->ntaken, n);
}

/* One thread does; it takes along what others finish meanwhile. */
static void make_all_ready(leat__device_queues *queues)
{
    leat__batch *next[LEAT__UPLOAD_BATCHES];
    int n = 0;
    leat__mutex_lock_spinning(&queues->lock);
    bool is_other = queues->is_uploading;
    queues->is_uploading = true;
    while (!is_other && (n = look_locked(queues, next)) > 0) {
        leat__device_queue *queue =
            leat__device_queues_of(queues, next[0]->number);
        if (n > 1) {
            pthread_mutex_unlock(&queues->lock);
            n = leat__upload_run(&queue->copy, next, n);
            leat__mutex_lock_spinning(&queues->lock);
        }
        take_locked(queues, n);
        pthread_mutex_unlock(&queues->lock);
        make_ready(queues, queue, next, n);
        leat__mutex_lock_spinning(&queues->lock);
    }
    queues->is_uploading = is_other;
    pthread_mutex_unlock(&queues->lock);
}

static void complete(leat__device_queues *queues, leat__batch *done)
{
    leat__mutex_lock_spinning(&queues->lock);
    queues->finished[done->number % queues->capacity] = done;
    atomic_fetch_add(&queues->nfinished, 1);
    pthread_mutex_unlock(&queues->lock);
    if (queues->has_thread)
        leat__event_count_wake_one(&queues->done);
    else
        make_all_ready(queues);
}

/* Nanoseconds for which the thread that uploads looks for a batch before it
 * sleeps: as long as it would take to wake. */
enum { SPIN = 100000 };

static void await_finished(const leat__device_queues *queues, int known)
{
    int64_t end = leat__clock_now() + SPIN;
    while (atomic_load_explicit(&queues->nfinished, memory_order_relaxed) ==
               known &&
           leat__clock_now() < end)
        leat__thread_pause();
}

/*
 * What the driver keeps of streams moves from core to core with the threads
 * that call it: beside an H200 an upload took 72 us among 15 workers, and 12 to
 * 20 in one thread.
 */
static void *upload(void *argument)
{
    leat__device_queues *queues = argument;
    int status = LEAT_OK;
    while (!status) {
        int64_t ticket = leat__event_count_ticket(&queues->done);
        int known = atomic_load(&queues->nfinished);
        atomic_store(&queues->is_copying, true);
        make_all_ready(queues);
        atomic_store(&queues->is_copying, false);
        await_finished(queues, known);
        status = leat__event_count_wait(&queues->done, ticket, LEAT__FOREVER);
    }
    return NULL;
}

int leat__device_queues_start(leat__device_queues *queues)
{
    return queues->has_thread ? leat__thread_start(&queues->uploader,
                                                   "leat-copy", upload, queues)
                              : LEAT_OK;
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
    leat__event_count_close(&queues->done);
    for (int i = 0; i < queues->n; i++)
        if (queues->queue[i].ready)
            leat__queue_close(queues->queue[i].ready);
}
