/*
 * DESIGN. Batches go round in lanes, one for each device: a lane's free queue
 * holds its empty slots, workers claim chunks of the batch that is open,
 * transform them into its slot, and whoever puts the last sample in place
 * publishes the batch and its finished successors in sequence: upload, then its
 * lane's full queue, from which the lane's caller pops. Batch k is lane k mod
 * lanes'.
 *
 * Anybody may work: the worker threads, and a caller in next while nothing is
 * ready. A worker that finds no free slot, or no chunk, sleeps on the queue
 * where that will appear; back-pressure is nothing but an empty free queue.
 * Batches are opened in sequence, so with several lanes one whose batches
 * nobody takes brings all to rest. A caller may take the slot that a worker was
 * woken for, and the sequence go on in the next lane: opening a batch stirs
 * those who wait for that slot, so that workers re-check and wait on the queue
 * that the next batch needs.
 *
 * Locks: `claim` guards which batch is open and serialises the data reader;
 * the batch order's guards the sequence and the copy streams; each batch has
 * one for its shape and failure. They are taken in this order: claim before a
 * batch's, the batch order's before a batch's, never claim and the batch
 * order's together; those of the queues and of the carry chain are innermost.
 * Nobody sleeps under a lock but for storage that the merged reader waits for,
 * and for the shape of a batch whose first chunk is in work.
 *
 * Stopping: cancel closes the queues and cancels the reader, whereupon every
 * wait returns; destroy joins the workers, then frees. Work under way is
 * finished: it is a chunk at most. Behind a failure that ends the sequence the
 * batch order closes the full queues, so that the other lanes' callers wake.
 */
#include "layer/prefetcher.h"
#include "base/clock.h"
#include "base/counter.h"
#include "layer/wakeup.h"
#include "layer/worker.h"

#include <stdio.h>

/* Aligned: what is written often is a cache line each, apart from the rest. */
struct leat__prefetcher {
    pthread_mutex_t claim;
    /* protected by claim */
    leat__batch *open;
    int64_t next_number;
    int stopped;             /* the data reader gives nothing any more */
    atomic_int out_of_slots; /* the lane that had none for the next batch; -1;
                                read by anybody */

    leat__batch_order order;

    leat__prefetcher_options options;
    leat__lane *lanes;
    leat__worker *workers;          /* the last ones are the lanes' callers' */
    leat__carry_chain *carry_chain; /* NULL where nothing stands in */
    atomic_int cancelled;
};

typedef enum claim_result { CLAIMED, NO_SLOT, NO_CHUNK, STOPPED } claim_result;

/* What a claim that found no slot, or no chunk, is to wait for. */
typedef struct shortage {
    leat__lane *lane;
    int64_t stirs;
    int64_t number; /* of the batch that it would have opened */
    int64_t ticket; /* for the data reader, where it had no chunk */
} shortage;

/* The next batch, in its lane's slot. */
static int open_batch(leat__prefetcher *self, const leat__worker *who,
                      shortage *out)
{
    int i = (int)(self->next_number % self->options.lanes);
    leat__lane *lane = &self->lanes[i];
    out->lane = lane;
    out->number = self->next_number;
    if (!lane->is_alone)
        out->stirs = leat__queue_stirs(lane->free);
    int status = leat__lane_take(lane, who, &self->open);
    atomic_store_explicit(&self->out_of_slots, status == LEAT_AGAIN ? i : -1,
                          memory_order_relaxed);
    if (status)
        return status;
    leat__batch_begin(self->open, self->next_number++);
    if (!lane->is_alone)
        leat__queue_stir(lane->free);
    return LEAT_OK;
}

static claim_result claim_locked(leat__prefetcher *self,
                                 const leat__worker *who, leat__chunk **out,
                                 shortage *missing)
{
    if (self->stopped)
        return STOPPED;
    if (!self->open) {
        int status = open_batch(self, who, missing);
        if (status)
            return status == LEAT_AGAIN ? NO_SLOT : STOPPED;
    }
    leat__chunk *chunk;
    int status =
        leat__data_reader_take(self->options.reader, (int)(who - self->workers),
                               &chunk, &missing->ticket);
    if (status)
        return status == LEAT_AGAIN ? NO_CHUNK : STOPPED;
    leat__batch *batch = self->open;
    chunk->batch = batch;
    if (self->carry_chain)
        leat__carry_chain_enter(self->carry_chain, chunk);
    if (chunk->last) {
        batch->after = chunk->after;
        batch->n = chunk->first + chunk->n;
        self->open = NULL;
    }
    /* After such a chunk there is nothing to take. */
    if (chunk->failed >= 0 && chunk->status != LEAT_EDATA)
        self->stopped = 1;
    *out = chunk;
    return CLAIMED;
}

static claim_result claim(leat__prefetcher *self, const leat__worker *who,
                          leat__chunk **out, shortage *missing)
{
    leat__mutex_lock_soon(&self->claim);
    claim_result result = claim_locked(self, who, out, missing);
    pthread_mutex_unlock(&self->claim);
    return result;
}

/*
 * Waits until the slot is there, or the sequence has gone on without, or a
 * timed wait is over. Beside other lanes each slot wakes, so there is no need
 * for one; on the caller's own core the caller says when.
 */
static int wait_for_slot(const leat__prefetcher *self, const shortage *missing,
                         leat__timed_wait *timing, int64_t now)
{
    leat__lane *lane = missing->lane;
    int64_t end = LEAT__FOREVER;
    atomic_store(&lane->was_full, 1);
    if (!lane->is_alone)
        return leat__queue_wait_stirred(lane->free, missing->stirs);
    if (self->options.may_time_waits)
        end = leat__timed_wait_until(timing, now, missing->number,
                                     leat__lane_late(lane));
    int status = leat__queue_wait(lane->free, end);
    return status == LEAT_AGAIN ? LEAT_OK : status;
}

static void *worker_body(void *argument)
{
    leat__worker *self = argument;
    leat__prefetcher *prefetcher = self->prefetcher;
    leat__chunk *chunk;
    shortage missing;
    leat__timed_wait timing = {0};
    int running = 1;
    leat__thread_be_patient();
    int64_t idle = leat__clock_now(); /* since when it has looked for a chunk */
    while (running && !atomic_load(&prefetcher->cancelled)) {
        leat__counter_begin(&self->blocked_lock, idle);
        switch (claim(prefetcher, self, &chunk, &missing)) {
        case CLAIMED:
            leat__counter_end(&self->blocked_lock, chunk->claimed);
            idle = leat__worker_work(self, chunk);
            break;
        case NO_SLOT:
            idle = leat__clock_now();
            leat__counter_end(&self->blocked_lock, idle);
            leat__counter_begin(&self->blocked_full, idle);
            running = !wait_for_slot(prefetcher, &missing, &timing, idle);
            idle = leat__clock_now();
            leat__counter_end(&self->blocked_full, idle);
            break;
        case NO_CHUNK:
            idle = leat__clock_now();
            leat__counter_end(&self->blocked_lock, idle);
            leat__counter_begin(&self->blocked_empty, idle);
            running = !leat__data_reader_wait(prefetcher->options.reader,
                                              missing.ticket);
            idle = leat__clock_now();
            leat__counter_end(&self->blocked_empty, idle);
            break;
        case STOPPED:
            leat__counter_end(&self->blocked_lock, idle);
            running = 0;
            break;
        }
    }
    return NULL;
}

/* Why a closed queue gives nothing, in the error line too. */
static int tell_end(leat__prefetcher *self)
{
    int status = LEAT_OK;
    if (!atomic_load(&self->cancelled))
        status = leat__batch_order_ended(&self->order);
    return status ? status : LEAT_ECANCELLED;
}

/* Nothing is ready: whoever waits for a slot is to look, were there one. */
static void wake_workers(leat__lane *lane)
{
    leat__lane_grow(lane);
    leat__queue_kick(lane->free);
}

int leat__prefetcher_next(leat__prefetcher *self, int lane_number,
                          leat__batch **out, int64_t deadline, int help)
{
    leat__lane *lane = &self->lanes[lane_number];
    leat__worker *caller = &self->workers[self->options.workers + lane_number];
    void *item;
    leat__chunk *chunk;
    shortage missing;
    int has_woken = deadline == 0;
    for (;;) {
        if (!has_woken && !(lane->rests && help)) {
            wake_workers(lane);
            has_woken = 1;
        }
        int64_t wait = help ? 0 : deadline;
        int status = leat__queue_pop(lane->full, &item, wait);
        if (atomic_load(&self->cancelled))
            status = LEAT_ECANCELLED;
        if (status == LEAT_OK) {
            *out = item;
            return LEAT_OK;
        }
        if (status == LEAT_ECANCELLED)
            return tell_end(self);
        if (wait == deadline)
            return status;
        /* A deadline passes while there is still work to do. */
        if (deadline != LEAT__FOREVER && leat__clock_now() >= deadline)
            return LEAT_AGAIN;
        if (claim(self, caller, &chunk, &missing) == CLAIMED)
            (void)leat__worker_work(caller, chunk);
        else
            help = 0;
    }
}

void leat__prefetcher_rest(leat__prefetcher *self, int lane, int rest)
{
    leat__lane_rest(&self->lanes[lane], rest);
}

int leat__prefetcher_mark(leat__batch *batch, const leat_stream *streams, int n)
{
    return leat__device_copy_mark(&batch->lane->device_copy, batch, streams, n);
}

int leat__prefetcher_give(leat__batch *batch, const leat_stream *streams, int n)
{
    int status = leat__prefetcher_mark(batch, streams, n);
    (void)leat__queue_push(batch->lane->free, batch);
    return status;
}

void leat__prefetcher_cancel(leat__prefetcher *self)
{
    atomic_store(&self->cancelled, 1);
    leat__data_reader_cancel(self->options.reader);
    for (int i = 0; self->lanes && i < self->options.lanes; i++)
        leat__lane_close(&self->lanes[i]);
}

void leat__prefetcher_end(leat__prefetcher *self, int status, const char *line)
{
    leat__batch_order_end(&self->order, status, line);
}

leat_stream leat__prefetcher_stream(const leat__prefetcher *self, int lane)
{
    return self->lanes[lane].device_copy.stream;
}

static int create_worker(leat__prefetcher *self, leat__worker *one)
{
    one->prefetcher = self;
    one->options = &self->options;
    one->order = &self->order;
    one->carry_chain = self->carry_chain;
    return leat__worker_init(one);
}

static int create_workers(leat__prefetcher *self)
{
    int n = self->options.workers + self->options.lanes;
    self->workers = leat__alloc_zero((size_t)n, sizeof(*self->workers));
    if (!self->workers)
        return LEAT_ENOMEM;
    int status = LEAT_OK;
    if (self->options.on_error != LEAT_ON_ERROR_FAIL)
        status = leat__carry_chain_create(
            &self->carry_chain, n, self->options.buffers,
            self->options.at_start ? LEAT__CARRY_NONE : LEAT__CARRY_UNKNOWN);
    for (int i = 0; i < n && status == LEAT_OK; i++)
        status = create_worker(self, &self->workers[i]);
    return status;
}

static int start_threads(leat__prefetcher *self)
{
    const leat__prefetcher_options *options = &self->options;
    /* A thread that reads ahead fills as many samples as there are slots to put
       them in; at least a chunk for everybody's hands, and one more. */
    int size = options->ahead_size;
    int chunks_in_batch = (options->spec.batch_size + size - 1) / size;
    int takers = options->workers + options->lanes;
    int ahead = chunks_in_batch * options->lanes * (options->slots - 1);
    const leat__data_reader_chunks chunks = {
        .size = options->chunk_size,
        .takers = takers,
        .ahead_size = size,
        .ahead = ahead > takers ? ahead : takers + 1,
    };
    int status = leat__data_reader_start(options->reader, &chunks);
    for (int i = 0; i < options->workers && status == LEAT_OK; i++) {
        char name[16];
        self->workers[i].thread.owner = options->owner;
        snprintf(name, sizeof(name), "leat-worker-%d", i % 100);
        status = leat__thread_start(&self->workers[i].thread, name, worker_body,
                                    &self->workers[i]);
    }
    return status;
}

static int create_lanes(leat__prefetcher *self)
{
    const leat__prefetcher_options *options = &self->options;
    self->lanes =
        leat__alloc_zero((size_t)options->lanes, sizeof(*self->lanes));
    if (!self->lanes)
        return LEAT_ENOMEM;
    int status = LEAT_OK;
    for (int i = 0; i < options->lanes && status == LEAT_OK; i++)
        status = leat__lane_init(&self->lanes[i], options->device[i], options);
    if (status)
        return status;
    return leat__batch_order_init(&self->order, self->lanes, options->lanes,
                                  options->lanes * options->slots);
}

static int set_up(leat__prefetcher *self)
{
    int status = create_lanes(self);
    if (status == LEAT_OK)
        status = create_workers(self);
    return status ? status : start_threads(self);
}

int leat__prefetcher_create(leat__prefetcher **out,
                            const leat__prefetcher_options *options)
{
    leat__prefetcher *self = leat__alloc_aligned_zero(sizeof(*self));
    if (!self)
        return LEAT_ENOMEM;
    self->options = *options;
    atomic_init(&self->out_of_slots, -1);
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
    leat__prefetcher_cancel(self);
    int n = self->workers ? self->options.workers + self->options.lanes : 0;
    for (int i = 0; i < n; i++)
        leat__thread_join(&self->workers[i].thread);
    for (int i = 0; i < n; i++)
        leat__worker_finish(&self->workers[i]);
    leat__carry_chain_destroy(self->carry_chain);
    for (int i = 0; self->lanes && i < self->options.lanes; i++)
        leat__lane_finish(&self->lanes[i]);
    leat__batch_order_finish(&self->order);
    pthread_mutex_destroy(&self->claim);
    leat__free(self->workers);
    leat__free(self->lanes);
    leat__free(self);
}

leat__activity leat__prefetcher_activity(const leat__prefetcher *self)
{
    leat__activity now = {
        .workers = self->options.workers,
        .reading = leat__data_reader_is_filling(self->options.reader),
        .out_of_slots =
            atomic_load_explicit(&self->out_of_slots, memory_order_relaxed),
    };
    for (int i = 0; i < now.workers; i++) {
        int at =
            atomic_load_explicit(&self->workers[i].at, memory_order_relaxed);
        now.working += at == LEAT__AT_WORK;
        now.reading += at == LEAT__AT_READING;
        now.copying += at == LEAT__AT_COPY;
        if (at != LEAT__AT_REST)
            now.out_of_slots = -1;
    }
    return now;
}

void leat__prefetcher_stats(const leat__prefetcher *self, int lane,
                            leat_stats *stats)
{
    leat_stage_stats *reader = &stats->stage[0];
    leat_stage_stats *transform = &stats->stage[1];
    int workers = self->options.workers;
    const leat__worker *caller = &self->workers[workers + lane];
    int64_t now = leat__clock_now();
    leat__data_reader_stats(self->options.reader, reader);
    *transform = (leat_stage_stats){
        .name = self->options.decodes ? "decode" : "transform",
        .threads = workers,
    };
    for (int i = 0; i < workers + self->options.lanes; i++) {
        const leat__worker *one = &self->workers[i];
        transform->items += atomic_load(&one->items);
        transform->bytes += atomic_load(&one->bytes);
        transform->busy += leat__counter_seconds(&one->busy);
        transform->blocked_empty +=
            leat__counter_waited(&one->blocked_empty, now);
        transform->blocked_full +=
            leat__counter_waited(&one->blocked_full, now);
        stats->blocked_lock += leat__counter_waited(&one->blocked_lock, now);
        stats->image_warnings += atomic_load(&one->warnings);
    }
    stats->nstages = 2;
    stats->helped_chunks = atomic_load(&caller->chunks);
    stats->helped = leat__counter_seconds(&caller->busy) +
                    leat__counter_seconds(&caller->reading);
    leat__lane_stats(&self->lanes[lane], stats);
}
