/*
 * DESIGN. Batches go round: the free queue holds empty slots, workers claim
 * runs of the batch that is open, transform them into its slot, and whoever
 * puts the last sample in place publishes the batch and its finished successors
 * in sequence: upload, then the full queue, from which the caller pops.
 *
 * Anybody may work: the worker threads, and the caller in next while nothing is
 * ready. A worker that finds no free slot, or no run, sleeps on the queue where
 * that will appear; back-pressure is nothing but the empty free queue.
 *
 * Locks: `claim` guards which batch is open and serialises the data reader;
 * `publish` guards the sequence and the copy stream; each batch has one for its
 * shape and failure. Order: claim before a batch's, publish before a batch's,
 * never claim and publish together; queues' own locks, and the relay's, are
 * innermost. Nobody
 * sleeps under a lock but for storage that the merged reader waits for, and for
 * the shape of a batch whose first run is in work.
 *
 * Stopping: cancel closes the queues and cancels the reader, whereupon every
 * wait returns; destroy joins the workers, then frees. Work under way is
 * finished: it is a run at most.
 */
#include "layer/prefetcher.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/queue.h"
#include "base/thread.h"
#include "data/transformer.h"
#include "layer/kernel.h"

#include <stdio.h>
#include <string.h>

/* What a worker is at. */
typedef enum whereabout { WAITING, READING, WORKING, COPYING } whereabout;

/* One thread's tools: a worker's, or the caller's for helping. */
typedef struct worker {
    struct leat__prefetcher *prefetcher;
    leat__assembler assembler;
    leat__stand_in stand_in; /* zeroed where nothing stands in */
    leat__thread thread;
    atomic_int_fast64_t items;
    atomic_int_fast64_t bytes;
    atomic_int_fast64_t busy;
    atomic_int_fast64_t blocked_empty;
    atomic_int_fast64_t blocked_full;
    atomic_int_fast64_t runs;
    atomic_int_fast64_t warnings;
    atomic_int at;                /* a whereabout */
    char apart[LEAT__CACHE_LINE]; /* from the next worker's */
} worker;

struct leat__prefetcher {
    leat__prefetcher_options options;
    leat__queue *free;
    leat__queue *full;
    leat__batch *batches;
    leat_stream stream;
    int has_stream;
    worker *workers;     /* the last one is the caller's */
    leat__relay *relay;  /* NULL where nothing stands in */
    leat__kernel kernel; /* where the device transforms */
    int64_t slab_bytes;
    int64_t top_bytes; /* of tops that the device computes */
    int is_pageable;   /* the slab's host side is not pinned */
    atomic_int_fast64_t grown_slots;
    atomic_int_fast64_t grown_bytes;
    atomic_int_fast64_t grown_tops; /* bytes */
    atomic_int_fast64_t uploads;
    atomic_int cancelled;
    atomic_int was_full;    /* workers ran out of slots since the last growth */
    atomic_int circulating; /* slots in use; the caller's, read by anybody */

    char apart[LEAT__CACHE_LINE]; /* what is written often from the rest */
    pthread_mutex_t claim;
    /* protected by claim */
    leat__batch *open;
    int64_t next_number;
    int stopped; /* the data reader gives nothing any more */

    char apart_too[LEAT__CACHE_LINE];
    pthread_mutex_t publish;
    /* protected by publish */
    leat__batch **finished; /* by number modulo slots */
    int64_t next_published;
};

typedef enum claim_result { CLAIMED, NO_SLOT, NO_RUN, STOPPED } claim_result;

static void add(atomic_int_fast64_t *counter, int64_t value)
{
    atomic_fetch_add_explicit(counter, value, memory_order_relaxed);
}

static void go(worker *self, whereabout to)
{
    atomic_store_explicit(&self->at, (int)to, memory_order_relaxed);
}

/* The error line names what failed; `run` has sample `i` of the batch, or is
   NULL. */
static void fail_batch(leat__batch *batch, const leat__run *run, int i,
                       int status)
{
    char line[LEAT__ERROR_MAX];
    leat__error_save(line);
    const leat_provenance *from = NULL;
    if (run && i >= run->first && i < run->first + run->n)
        from = &run->sample[i - run->first]->from;
    leat__batch_fail(batch, i, status, from, line);
}

/* A first record that tells no shape leaves it to those before it. */
static int find_shape(worker *self, leat__batch *batch, const leat__run *run,
                      leat__batch_shape *out)
{
    int is_bad = run->bad.n > 0 && run->bad.item[0].place == 0;
    int status = LEAT_EDATA;
    if (!is_bad)
        status = leat__assembler_shape(&self->assembler, run->sample[0], out);
    if (status == LEAT_EDATA && self->prefetcher->relay)
        status = leat__stand_in_shape(&self->stand_in, batch, run, out);
    return status;
}

/*
 * The first sample decides the shape. The slot's host side may still be on its
 * way to the device: that upload is waited for here, where nobody holds a lock.
 */
static void prepare_batch(worker *self, leat__batch *batch, leat__run *run)
{
    leat__prefetcher *prefetcher = self->prefetcher;
    leat_device *device = prefetcher->options.device;
    leat__batch_shape shape;
    if (run->n == 0 || run->failed == 0) {
        leat__batch_set_shape(batch, NULL);
        return;
    }
    size_t capacity = batch->capacity;
    size_t top_capacity = batch->top_capacity;
    int status = LEAT_OK;
    if (!device->ops->unified) {
        go(self, COPYING);
        status = device->ops->event_synchronize(device, batch->ready);
        go(self, WORKING);
    }
    if (status == LEAT_OK)
        status = find_shape(self, batch, run, &shape);
    if (status == LEAT_OK)
        status = leat__batch_reserve(batch, &shape);
    if (batch->capacity > capacity) {
        add(&prefetcher->grown_slots, 1);
        add(&prefetcher->grown_bytes, (int64_t)batch->capacity);
    }
    if (batch->top_capacity > top_capacity)
        add(&prefetcher->grown_tops, (int64_t)batch->top_capacity);
    if (status)
        fail_batch(batch, run, 0, status);
    leat__batch_set_shape(batch, status ? NULL : &shape);
}

static int upload(leat__prefetcher *self, leat__batch *batch)
{
    leat_device *device = self->options.device;
    if (device->ops->unified)
        return LEAT_OK;
    int status = LEAT_OK;
    for (int i = 0; i < batch->nconsumed && status == LEAT_OK; i++)
        status =
            device->ops->stream_wait(device, self->stream, batch->consumed[i]);
    if (status == LEAT_OK) {
        batch->nconsumed = 0;
        status = device->ops->copy(
            device, (char *)batch->slab->memory + batch->offset,
            (char *)batch->slab->host + batch->offset, batch->shape.bytes,
            LEAT_COPY_TO_DEVICE, self->stream);
    }
    if (status == LEAT_OK && batch->shape.is_cropped)
        status = leat__kernel_enqueue(&self->kernel, batch, self->stream);
    if (status == LEAT_OK)
        status = device->ops->event_record(device, batch->ready, self->stream);
    add(&self->uploads, (int64_t)batch->shape.bytes);
    return status;
}

/* Hands on what is finished, in sequence. */
static void publish(leat__prefetcher *self, leat__batch *done)
{
    int slots = self->options.slots;
    pthread_mutex_lock(&self->publish);
    self->finished[done->number % slots] = done;
    leat__batch *batch;
    while ((batch = self->finished[self->next_published % slots]) != NULL) {
        self->finished[self->next_published % slots] = NULL;
        self->next_published++;
        if (batch->failed < 0) {
            int status = upload(self, batch);
            if (status)
                fail_batch(batch, NULL, 0, status);
        }
        /* There is room for every slot: only a closed queue refuses. */
        (void)leat__queue_push(self->full, batch);
    }
    pthread_mutex_unlock(&self->publish);
}

static void finish_samples(leat__prefetcher *self, leat__batch *batch, int n)
{
    if (atomic_fetch_sub(&batch->outstanding, n) == n)
        publish(self, batch);
}

static int was_filled_by(const void *slot, const void *who)
{
    return ((const leat__batch *)slot)->filler == who;
}

/*
 * The slot whose memory is likeliest in the cache; with a device's own memory
 * the one that was given back first, as the upload waits for its consumers.
 */
static int take_slot(leat__prefetcher *self, const worker *who, void **slot)
{
    if (self->options.device->ops->unified)
        return leat__queue_pick(self->free, slot, was_filled_by, who);
    return leat__queue_pop(self->free, slot, 0);
}

static claim_result claim_locked(leat__prefetcher *self, const worker *who,
                                 leat__run **out)
{
    if (self->stopped)
        return STOPPED;
    if (!self->open) {
        void *slot;
        int status = take_slot(self, who, &slot);
        if (status)
            return status == LEAT_AGAIN ? NO_SLOT : STOPPED;
        self->open = slot;
        self->open->filler = who;
        leat__batch_begin(self->open, self->next_number++);
    }
    leat__run *run;
    int status = leat__data_reader_take(self->options.reader, who, &run);
    if (status)
        return status == LEAT_AGAIN ? NO_RUN : STOPPED;
    leat__batch *batch = self->open;
    run->batch = batch;
    if (self->relay)
        leat__relay_enter(self->relay, run);
    if (run->last) {
        batch->after = run->after;
        batch->n = run->first + run->n;
        self->open = NULL;
    }
    /* After such a run there is nothing to take. */
    if (run->failed >= 0 && run->status != LEAT_EDATA)
        self->stopped = 1;
    *out = run;
    return CLAIMED;
}

static claim_result claim(leat__prefetcher *self, const worker *who,
                          leat__run **out)
{
    leat__mutex_lock_soon(&self->claim);
    claim_result result = claim_locked(self, who, out);
    pthread_mutex_unlock(&self->claim);
    return result;
}

/* The samples of a good run, into their places. */
static void place(worker *self, leat__batch *batch, leat__run *run)
{
    int status;
    int failed = 0;
    if (self->prefetcher->relay) {
        status = leat__stand_in_place(&self->stand_in, batch, run, &failed);
        if (status == LEAT_OK)
            status = leat__batch_note_bad(batch, run);
    } else {
        int i = 0;
        status =
            leat__assembler_place(&self->assembler, batch, run, &i, run->n);
        failed = run->first + i;
    }
    if (status)
        fail_batch(batch, run, failed, status);
    add(&self->bytes, (int64_t)batch->shape.top[0].bytes * run->n);
}

static void work(worker *self, leat__run *run)
{
    leat__prefetcher *prefetcher = self->prefetcher;
    leat__batch *batch = run->batch;
    int n = run->n;
    int64_t begin = leat__clock_now();
    go(self, READING);
    leat__data_reader_read(prefetcher->options.reader, run);
    go(self, WORKING);
    if (run->failed >= 0)
        leat__batch_fail(batch, run->first + run->failed, run->status,
                         run->failed < n ? &run->sample[run->failed]->from
                                         : NULL,
                         run->line);
    if (prefetcher->relay)
        leat__stand_in_begin(&self->stand_in);
    if (run->first == 0)
        prepare_batch(self, batch, run);
    int has_shape = leat__batch_wait_shape(batch);
    if (has_shape && run->failed < 0)
        place(self, batch, run);
    if (prefetcher->relay)
        leat__stand_in_end(&self->stand_in, batch, run, has_shape);
    /* Samples that a batch cut short will never have count as done. */
    if (run->last)
        n += batch->size - batch->n;
    add(&self->items, run->n);
    add(&self->runs, 1);
    atomic_store(&self->warnings,
                 leat__transformer_warnings(self->assembler.transformer));
    leat__data_reader_give(prefetcher->options.reader, run);
    finish_samples(prefetcher, batch, n);
    go(self, WAITING);
    add(&self->busy, leat__clock_now() - begin);
}

/*
 * Waking a worker costs more than handing a batch over. While a batch is ready
 * besides the caller's, and half of the slots are in use, an empty one wakes
 * nobody; who finds nothing ready wakes them all the same.
 */
static void wake_late(leat__prefetcher *self)
{
    int n = atomic_load(&self->circulating);
    int half = (n + 1) / 2;
    leat__queue_wake_at(self->free, half < n - 2 ? half : n - 2);
}

static void *worker_body(void *argument)
{
    worker *self = argument;
    leat__prefetcher *prefetcher = self->prefetcher;
    leat__run *run;
    int running = 1;
    leat__thread_be_patient();
    while (running && !atomic_load(&prefetcher->cancelled)) {
        int64_t begin;
        switch (claim(prefetcher, self, &run)) {
        case CLAIMED:
            work(self, run);
            break;
        case NO_SLOT:
            begin = leat__clock_now();
            atomic_store(&prefetcher->was_full, 1);
            running = !leat__queue_wait(prefetcher->free, LEAT__FOREVER);
            add(&self->blocked_full, leat__clock_now() - begin);
            break;
        case NO_RUN:
            begin = leat__clock_now();
            running = !leat__data_reader_wait(prefetcher->options.reader);
            add(&self->blocked_empty, leat__clock_now() - begin);
            break;
        case STOPPED:
            running = 0;
            break;
        }
    }
    return NULL;
}

/*
 * Empty now and full before: the stages run by turns, and a deeper queue lets
 * each go on while the other pauses. Called by the caller alone.
 */
static void grow(leat__prefetcher *self)
{
    int n = atomic_load(&self->circulating);
    if (n == self->options.slots || !atomic_exchange(&self->was_full, 0))
        return;
    atomic_store(&self->circulating, n + 1);
    wake_late(self);
    (void)leat__queue_push(self->free, &self->batches[n]);
}

int leat__prefetcher_next(leat__prefetcher *self, leat__batch **out,
                          int64_t deadline, int help)
{
    worker *caller = &self->workers[self->options.workers];
    void *item;
    leat__run *run;
    if (deadline != 0) {
        grow(self);
        leat__queue_kick(self->free);
    }
    for (;;) {
        /* A deadline passes while there is still work to do. */
        if (deadline != LEAT__FOREVER && leat__clock_now() >= deadline)
            help = 0;
        int64_t wait = help ? 0 : deadline;
        int status = leat__queue_pop(self->full, &item, wait);
        if (atomic_load(&self->cancelled))
            status = LEAT_ECANCELLED;
        if (status == LEAT_OK) {
            *out = item;
            return LEAT_OK;
        }
        if (status != LEAT_AGAIN || wait == deadline)
            return status;
        if (claim(self, caller, &run) == CLAIMED)
            work(caller, run);
        else
            help = 0;
    }
}

/*
 * Where a stream's use of the batch ends; beside those that an upload which
 * failed did not come to wait for.
 */
static int record_stream(leat_device *device, leat__batch *batch,
                         leat_stream stream)
{
    int k = batch->nconsumed;
    int status = LEAT_OK;
    if (k == LEAT__STREAMS_MAX)
        return leat_error(LEAT_EINVAL, "more than %d streams use a batch", k);
    if (k == batch->events) {
        status = device->ops->event_create(device, &batch->consumed[k]);
        batch->events += status == LEAT_OK;
    }
    if (status == LEAT_OK)
        status = device->ops->event_record(device, batch->consumed[k], stream);
    if (status == LEAT_OK)
        batch->nconsumed++;
    return status;
}

static int record_consumed(leat__prefetcher *self, leat__batch *batch,
                           const leat_stream *streams, int n)
{
    leat_device *device = self->options.device;
    int first = LEAT_OK;
    char line[LEAT__ERROR_MAX];
    for (int i = 0; i < n; i++) {
        if (streams[i] == LEAT_HOST)
            continue;
        int status = record_stream(device, batch, streams[i]);
        if (status == LEAT_OK)
            continue;
        if (first == LEAT_OK) {
            first = status;
            leat__error_save(line);
        }
        /* The end cannot be marked, so it is waited for. */
        (void)device->ops->stream_synchronize(device, streams[i]);
    }
    return first ? leat_error(first, "%s", line) : LEAT_OK;
}

int leat__prefetcher_mark(leat__prefetcher *self, leat__batch *batch,
                          const leat_stream *streams, int n)
{
    if (self->options.device->ops->unified)
        return LEAT_OK;
    return record_consumed(self, batch, streams, n);
}

int leat__prefetcher_give(leat__prefetcher *self, leat__batch *batch,
                          const leat_stream *streams, int n)
{
    int status = leat__prefetcher_mark(self, batch, streams, n);
    (void)leat__queue_push(self->free, batch);
    return status;
}

void leat__prefetcher_cancel(leat__prefetcher *self)
{
    atomic_store(&self->cancelled, 1);
    leat__data_reader_cancel(self->options.reader);
    leat__queue_close(self->free);
    leat__queue_close(self->full);
}

leat_stream leat__prefetcher_stream(const leat__prefetcher *self)
{
    return self->stream;
}

/* What the device computes lies in its memory alone. */
static int create_tops(leat__prefetcher *self)
{
    const leat__prefetcher_options *options = &self->options;
    size_t each = options->shape.top_bytes;
    size_t bytes;
    if (!options->shape.is_cropped)
        return LEAT_OK;
    if (leat__multiply(each, (size_t)options->slots, &bytes))
        return leat_error(LEAT_EINVAL, "%d tops of %zu bytes overflow",
                          options->slots, each);
    leat__slab *slab;
    int status = leat__slab_create(&slab, options->device, bytes);
    if (status)
        return status;
    status = leat__slab_make_memory(slab);
    for (int i = 0; i < options->slots && status == LEAT_OK; i++)
        leat__batch_set_top(&self->batches[i], slab, (size_t)i * each, each);
    leat__slab_unref(slab);
    self->top_bytes = (int64_t)bytes;
    return status;
}

/* One slab for all slots: few large allocations are what pinning wants. */
static int create_batches(leat__prefetcher *self)
{
    const leat__prefetcher_options *options = &self->options;
    size_t slot = options->shape.bytes;
    size_t bytes;
    if (leat__multiply(slot, (size_t)options->slots, &bytes))
        return leat_error(LEAT_EINVAL, "%d batches of %zu bytes overflow",
                          options->slots, slot);
    self->batches =
        leat__alloc_zero((size_t)options->slots, sizeof(*self->batches));
    self->finished =
        leat__alloc_zero((size_t)options->slots, sizeof(leat__batch *));
    if (!self->batches || !self->finished)
        return LEAT_ENOMEM;
    leat__slab *slab;
    int status = leat__slab_create(&slab, options->device, bytes);
    if (status)
        return status;
    slab->must_pin = options->must_pin;
    leat__slab_use(slab, options->slabs);
    status = leat__slab_make_host(slab);
    if (status == LEAT_OK)
        status = leat__slab_make_memory(slab);
    self->is_pageable = slab->is_pageable;
    /* Pinned memory is there; slots in reserve cost nothing until used. */
    if (status == LEAT_OK &&
        (options->device->ops->unified || slab->is_pageable))
        status = leat__touch(slab->host, slot * (size_t)options->circulating);
    for (int i = 0; i < options->slots && status == LEAT_OK; i++) {
        status = leat__batch_init(&self->batches[i], slab, (size_t)i * slot,
                                  slot, options->assembly.batch_size);
        if (status == LEAT_OK && i < options->circulating)
            leat__queue_push(self->free, &self->batches[i]);
    }
    atomic_store(&self->circulating, options->circulating);
    wake_late(self);
    leat__slab_unref(slab);
    self->slab_bytes = (int64_t)bytes;
    return status;
}

static int create_worker(leat__prefetcher *self, worker *one)
{
    one->prefetcher = self;
    int status = leat__assembler_init(&one->assembler, &self->options.assembly,
                                      self->options.transformer);
    if (status || !self->relay)
        return status;
    const leat__stand_in_options options = {
        .on_error = self->options.on_error,
        .step = self->options.step,
        .reader = self->options.reader,
        .relay = self->relay,
        .fallback = &self->options.shape,
        .boxes = self->options.boxes,
    };
    return leat__stand_in_init(&one->stand_in, &options, &one->assembler);
}

static int create_workers(leat__prefetcher *self)
{
    int n = self->options.workers + 1;
    self->workers = leat__alloc_zero((size_t)n, sizeof(*self->workers));
    if (!self->workers)
        return LEAT_ENOMEM;
    int status = LEAT_OK;
    if (self->options.on_error != LEAT_ON_ERROR_FAIL)
        status = leat__relay_create(
            &self->relay, n, self->options.boxes,
            self->options.at_start ? LEAT__BATON_NONE : LEAT__BATON_UNKNOWN);
    for (int i = 0; i < n && status == LEAT_OK; i++)
        status = create_worker(self, &self->workers[i]);
    return status;
}

static int start_threads(leat__prefetcher *self)
{
    const leat__prefetcher_options *options = &self->options;
    /* A run in the hands of each worker and of the caller, and as many samples
       waiting as there are slots to put them in. */
    int runs_in_batch = (options->assembly.batch_size + options->run_size - 1) /
                        options->run_size;
    int runs = options->workers + 2;
    if (runs < runs_in_batch * (options->slots - 1))
        runs = runs_in_batch * (options->slots - 1);
    int status =
        leat__data_reader_start(options->reader, options->run_size, runs);
    for (int i = 0; i < options->workers && status == LEAT_OK; i++) {
        char name[16];
        snprintf(name, sizeof(name), "leat-worker-%d", i % 100);
        status = leat__thread_start(&self->workers[i].thread, name, worker_body,
                                    &self->workers[i]);
    }
    return status;
}

static int init_locks(leat__prefetcher *self)
{
    int status = leat__mutex_init(&self->claim);
    if (status)
        return status;
    status = leat__mutex_init(&self->publish);
    if (status)
        pthread_mutex_destroy(&self->claim);
    return status;
}

static int set_up(leat__prefetcher *self)
{
    leat_device *device = self->options.device;
    int status = leat__queue_create(&self->free, self->options.slots);
    if (status == LEAT_OK)
        status = leat__queue_create(&self->full, self->options.slots);
    if (status == LEAT_OK)
        status = create_batches(self);
    if (status == LEAT_OK && !device->ops->unified) {
        status = device->ops->stream_create(device, &self->stream);
        self->has_stream = status == LEAT_OK;
    }
    if (status == LEAT_OK)
        status = create_tops(self);
    if (status == LEAT_OK && self->options.shape.is_cropped)
        status =
            leat__kernel_init(&self->kernel, device,
                              leat__transformer_plan(self->options.transformer),
                              self->options.shape.image[0], self->stream);
    if (status == LEAT_OK)
        status = create_workers(self);
    return status ? status : start_threads(self);
}

int leat__prefetcher_create(leat__prefetcher **out,
                            const leat__prefetcher_options *options)
{
    leat__prefetcher *self = leat__alloc_zero(1, sizeof(*self));
    if (!self)
        return LEAT_ENOMEM;
    self->options = *options;
    int status = init_locks(self);
    if (status) {
        leat__free(self);
        return status;
    }
    status = set_up(self);
    if (status) {
        char line[LEAT__ERROR_MAX];
        leat__error_save(line);
        leat__prefetcher_destroy(self);
        return leat_error(status, "%s", line);
    }
    *out = self;
    return LEAT_OK;
}

/* Nobody may touch a slot's memory any more when it goes. */
static void wait_for_device(leat__prefetcher *self)
{
    leat_device *device = self->options.device;
    if (device->ops->unified)
        return;
    if (self->has_stream)
        (void)device->ops->stream_synchronize(device, self->stream);
    for (int i = 0; self->batches && i < self->options.slots; i++) {
        leat__batch *batch = &self->batches[i];
        for (int k = 0; k < batch->nconsumed; k++)
            (void)device->ops->event_synchronize(device, batch->consumed[k]);
    }
}

void leat__prefetcher_destroy(leat__prefetcher *self)
{
    if (!self)
        return;
    atomic_store(&self->cancelled, 1);
    leat__data_reader_cancel(self->options.reader);
    if (self->free)
        leat__queue_close(self->free);
    if (self->full)
        leat__queue_close(self->full);
    int n = self->workers ? self->options.workers + 1 : 0;
    for (int i = 0; i < n; i++)
        leat__thread_join(&self->workers[i].thread);
    wait_for_device(self);
    for (int i = 0; i < n; i++) {
        leat__stand_in_finish(&self->workers[i].stand_in);
        leat__assembler_finish(&self->workers[i].assembler);
    }
    leat__relay_destroy(self->relay);
    for (int i = 0; self->batches && i < self->options.slots; i++)
        leat__batch_finish(&self->batches[i]);
    leat__kernel_finish(&self->kernel);
    if (self->has_stream)
        self->options.device->ops->stream_destroy(self->options.device,
                                                  self->stream);
    leat__queue_destroy(self->free);
    leat__queue_destroy(self->full);
    pthread_mutex_destroy(&self->publish);
    pthread_mutex_destroy(&self->claim);
    leat__free(self->workers);
    leat__free(self->finished);
    leat__free(self->batches);
    leat__free(self);
}

leat__whereabouts leat__prefetcher_whereabouts(const leat__prefetcher *self)
{
    leat__whereabouts now = {
        .workers = self->options.workers,
        .reading = leat__data_reader_is_filling(self->options.reader),
    };
    for (int i = 0; i < now.workers; i++) {
        int at =
            atomic_load_explicit(&self->workers[i].at, memory_order_relaxed);
        now.working += at == WORKING;
        now.reading += at == READING;
        now.copying += at == COPYING;
    }
    return now;
}

static double seconds(const atomic_int_fast64_t *nanoseconds)
{
    return (double)atomic_load(nanoseconds) * 1e-9;
}

void leat__prefetcher_stats(const leat__prefetcher *self, leat_stats *stats)
{
    leat_stage_stats *reader = &stats->stage[0];
    leat_stage_stats *transform = &stats->stage[1];
    leat__data_reader_stats(self->options.reader, reader);
    *transform = (leat_stage_stats){
        .name = self->options.decodes ? "decode" : "transform",
        .threads = self->options.workers,
    };
    for (int i = 0; i <= self->options.workers; i++) {
        const worker *one = &self->workers[i];
        transform->items += atomic_load(&one->items);
        transform->bytes += atomic_load(&one->bytes);
        transform->busy += seconds(&one->busy);
        transform->blocked_empty += seconds(&one->blocked_empty);
        transform->blocked_full += seconds(&one->blocked_full);
        stats->image_warnings += atomic_load(&one->warnings);
    }
    stats->nstages = 2;
    stats->helped_runs =
        atomic_load(&self->workers[self->options.workers].runs);
    stats->slots = atomic_load(&self->circulating);
    stats->grown_slots = atomic_load(&self->grown_slots);
    int64_t bytes = self->slab_bytes + atomic_load(&self->grown_bytes);
    if (self->options.device->ops->unified) {
        stats->memory.host += bytes;
        return;
    }
    if (self->is_pageable)
        stats->memory.pageable += bytes;
    else
        stats->memory.pinned += bytes;
    stats->memory.device += bytes + self->top_bytes +
                            (int64_t)self->kernel.bytes +
                            atomic_load(&self->grown_tops);
    stats->stage[2] = (leat_stage_stats){.name = "copy"};
    stats->stage[2].bytes = atomic_load(&self->uploads);
    stats->nstages = 3;
}
