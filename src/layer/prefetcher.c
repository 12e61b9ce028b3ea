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
 * the publisher's guards the sequence and the copy stream; each batch has one
 * for its shape and failure. Order: claim before a batch's, the publisher's
 * before a batch's, never claim and the publisher's together; queues' own
 * locks, and the relay's, are innermost. Nobody sleeps under a lock but for
 * storage that the merged reader waits for, and for the shape of a batch whose
 * first run is in work.
 *
 * Stopping: cancel closes the queues and cancels the reader, whereupon every
 * wait returns; destroy joins the workers, then frees. Work under way is
 * finished: it is a run at most.
 */
#include "layer/prefetcher.h"
#include "base/clock.h"
#include "base/counter.h"
#include "base/memory.h"
#include "layer/worker.h"

#include <limits.h>
#include <stdio.h>

struct leat__prefetcher {
    leat__prefetcher_options options;
    leat__queue *free;
    leat__queue *full;
    leat__slots slots;
    leat__uploader uploader;
    leat__worker *workers; /* the last one is the caller's */
    leat__relay *relay;    /* NULL where nothing stands in */
    atomic_int cancelled;
    atomic_int was_full;    /* workers ran out of slots since the last growth */
    atomic_int circulating; /* slots in use; the caller's, read by anybody */
    int rests;              /* workers are not woken; the caller's */

    char apart[LEAT__CACHE_LINE]; /* what is written often from the rest */
    pthread_mutex_t claim;
    /* protected by claim */
    leat__batch *open;
    int64_t next_number;
    int stopped; /* the data reader gives nothing any more */

    char apart_too[LEAT__CACHE_LINE];
    leat__publisher publisher;
};

typedef enum claim_result { CLAIMED, NO_SLOT, NO_RUN, STOPPED } claim_result;

static int was_filled_by(const void *slot, const void *who)
{
    return ((const leat__batch *)slot)->filler == who;
}

/*
 * The slot whose memory is likeliest in the cache; with a device's own memory
 * the one that was given back first, as the upload waits for its consumers.
 */
static int take_slot(leat__prefetcher *self, const leat__worker *who,
                     void **slot)
{
    if (self->options.device->ops->unified)
        return leat__queue_pick(self->free, slot, was_filled_by, who);
    return leat__queue_pop(self->free, slot, 0);
}

static claim_result claim_locked(leat__prefetcher *self,
                                 const leat__worker *who, leat__run **out)
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

static claim_result claim(leat__prefetcher *self, const leat__worker *who,
                          leat__run **out)
{
    leat__mutex_lock_soon(&self->claim);
    claim_result result = claim_locked(self, who, out);
    pthread_mutex_unlock(&self->claim);
    return result;
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
    int late = half < n - 2 ? half : n - 2;
    leat__queue_wake_at(self->free, self->rests ? INT_MAX : late);
}

static void *worker_body(void *argument)
{
    leat__worker *self = argument;
    leat__prefetcher *prefetcher = self->prefetcher;
    leat__run *run;
    int running = 1;
    leat__thread_be_patient();
    while (running && !atomic_load(&prefetcher->cancelled)) {
        int64_t begin;
        switch (claim(prefetcher, self, &run)) {
        case CLAIMED:
            leat__worker_work(self, run);
            break;
        case NO_SLOT:
            begin = leat__clock_now();
            atomic_store(&prefetcher->was_full, 1);
            running = !leat__queue_wait(prefetcher->free, LEAT__FOREVER);
            leat__counter_add(&self->blocked_full, leat__clock_now() - begin);
            break;
        case NO_RUN:
            begin = leat__clock_now();
            running = !leat__data_reader_wait(prefetcher->options.reader);
            leat__counter_add(&self->blocked_empty, leat__clock_now() - begin);
            break;
        case STOPPED:
            running = 0;
            break;
        }
    }
    return NULL;
}

/* The slots that are in use from the start. */
static void circulate(leat__prefetcher *self)
{
    int n = self->options.circulating;
    for (int i = 0; i < n; i++)
        (void)leat__queue_push(self->free, &self->slots.batch[i]);
    atomic_store(&self->circulating, n);
    wake_late(self);
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
    (void)leat__queue_push(self->free, &self->slots.batch[n]);
}

static void wake(leat__prefetcher *self)
{
    grow(self);
    leat__queue_kick(self->free);
}

void leat__prefetcher_rest(leat__prefetcher *self, int rest)
{
    if (self->rests == rest)
        return;
    self->rests = rest;
    wake_late(self);
    if (!rest)
        leat__queue_kick(self->free);
}

int leat__prefetcher_next(leat__prefetcher *self, leat__batch **out,
                          int64_t deadline, int help)
{
    leat__worker *caller = &self->workers[self->options.workers];
    void *item;
    leat__run *run;
    int has_woken = deadline == 0;
    for (;;) {
        /* A deadline passes while there is still work to do. */
        if (deadline != LEAT__FOREVER && leat__clock_now() >= deadline)
            help = 0;
        if (!has_woken && !(self->rests && help)) {
            wake(self);
            has_woken = 1;
        }
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
            leat__worker_work(caller, run);
        else
            help = 0;
    }
}

int leat__prefetcher_mark(leat__prefetcher *self, leat__batch *batch,
                          const leat_stream *streams, int n)
{
    return leat__uploader_mark(&self->uploader, batch, streams, n);
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
    return self->uploader.stream;
}

static int create_worker(leat__prefetcher *self, leat__worker *one)
{
    one->prefetcher = self;
    one->options = &self->options;
    one->slots = &self->slots;
    one->publisher = &self->publisher;
    one->relay = self->relay;
    return leat__worker_init(one);
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

static int set_up(leat__prefetcher *self)
{
    const leat__prefetcher_options *options = &self->options;
    int status = leat__queue_create(&self->free, options->slots);
    if (status == LEAT_OK)
        status = leat__queue_create(&self->full, options->slots);
    if (status == LEAT_OK)
        status = leat__publisher_init(&self->publisher, self->full,
                                      &self->uploader, options->slots);
    if (status == LEAT_OK)
        status = leat__slots_init(&self->slots, options);
    if (status == LEAT_OK)
        status = leat__uploader_init(&self->uploader, options->device,
                                     options->transformer, &options->shape);
    if (status == LEAT_OK)
        status = create_workers(self);
    if (status)
        return status;
    circulate(self);
    return start_threads(self);
}

int leat__prefetcher_create(leat__prefetcher **out,
                            const leat__prefetcher_options *options)
{
    leat__prefetcher *self = leat__alloc_zero(1, sizeof(*self));
    if (!self)
        return LEAT_ENOMEM;
    self->options = *options;
    int status = leat__mutex_init(&self->claim);
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
    leat__uploader_wait(&self->uploader, self->slots.batch, self->slots.n);
    for (int i = 0; i < n; i++)
        leat__worker_finish(&self->workers[i]);
    leat__relay_destroy(self->relay);
    leat__slots_finish(&self->slots);
    leat__publisher_finish(&self->publisher);
    leat__uploader_finish(&self->uploader);
    leat__queue_destroy(self->free);
    leat__queue_destroy(self->full);
    pthread_mutex_destroy(&self->claim);
    leat__free(self->workers);
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
        now.working += at == LEAT__AT_WORK;
        now.reading += at == LEAT__AT_READING;
        now.copying += at == LEAT__AT_COPY;
    }
    return now;
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
        const leat__worker *one = &self->workers[i];
        transform->items += atomic_load(&one->items);
        transform->bytes += atomic_load(&one->bytes);
        transform->busy += leat__counter_seconds(&one->busy);
        transform->blocked_empty += leat__counter_seconds(&one->blocked_empty);
        transform->blocked_full += leat__counter_seconds(&one->blocked_full);
        stats->image_warnings += atomic_load(&one->warnings);
    }
    stats->nstages = 2;
    stats->helped_runs =
        atomic_load(&self->workers[self->options.workers].runs);
    stats->slots = atomic_load(&self->circulating);
    stats->grown_slots = atomic_load(&self->slots.grown);
    int64_t bytes =
        self->slots.slab_bytes + atomic_load(&self->slots.grown_bytes);
    if (self->options.device->ops->unified) {
        stats->memory.host += bytes;
        return;
    }
    if (self->slots.is_pageable)
        stats->memory.pageable += bytes;
    else
        stats->memory.pinned += bytes;
    stats->memory.device += bytes + self->slots.top_bytes +
                            (int64_t)self->uploader.kernel.bytes +
                            atomic_load(&self->slots.grown_tops);
    stats->stage[2] = (leat_stage_stats){.name = "copy"};
    stats->stage[2].bytes = atomic_load(&self->uploader.bytes);
    stats->nstages = 3;
}
