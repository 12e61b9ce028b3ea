/*
 * DESIGN. A claimant, a worker thread or a caller that finds nothing ready,
 * claims the next chunk of the open batch, opening the next one if there is
 * none, and works on it without a lock. Claims follow the sequence, and so do
 * the batches of several devices: a device whose batches are not taken stops
 * all. A worker that finds no free batch, or no chunk, sleeps until that may be
 * different: it takes an event count's ticket before it checks. A worker whose
 * claim leaves a batch for others wakes one more, which does the same: so no
 * worker sleeps for long while there is work. wakeup.h describes when the first
 * one is woken.
 *
 * Locks: `claim` guards which batch is open and serialises the data reader;
 * device_queue's guard free batches, the sequence and the copy streams; each
 * batch has one for its shape and failure. Order: claim before any other; the
 * sequence's before a batch's; those of queues, event counts and of the carry
 * chain are innermost. The only sleeps under a lock are for storage that a
 * claim reads, and for the shape of a batch whose first chunk is in work.
 *
 * Stopping: cancel closes queues and event counts and cancels the reader,
 * whereupon every wait returns; destroy joins the workers, then frees. Work
 * under way is finished: it is a chunk at most.
 */
#include "layer/prefetcher.h"
#include "base/clock.h"
#include "base/counter.h"
#include "base/thread.h"
#include "layer/autotune.h"

#include <stdbool.h>
#include <stdio.h>

struct claimant {
    leat__worker worker;
    int number;
    leat__prefetcher *prefetcher;
    leat__thread thread;
};

/* Aligned: fields written often have a cache line each, apart from the rest. */
struct leat__prefetcher {
    pthread_mutex_t claim;
    /* protected by claim */
    leat__batch *open;
    int64_t next_number;
    bool stopped;              /* the data reader gives nothing any more */
    atomic_int out_of_batches; /* the device that had none free for the next
                                  batch; -1; read by anybody */

    leat__device_queues queues;
    leat__prefetcher_options options;
    struct claimant *claimant;      /* the last ones are the devices' callers */
    leat__carry_chain *carry_chain; /* NULL where bad records fail */
    atomic_bool cancelled;
};

typedef enum claim_result { CLAIMED, NO_BATCH, NO_CHUNK, STOPPED } claim_result;

/*
 * A chunk and the batch that it goes into; or the event that the claimant waits
 * for.
 */
typedef struct claimed {
    leat__chunk *chunk;
    leat__batch *batch;
    leat__device_queue *queue; /* with NO_BATCH: where none was free */
    int64_t number;            /* of the batch that it would have opened */
    int64_t room;  /* tickets of the event counts of free batches, */
    int64_t input; /* and chunks */
} claimed;

/* A core's own cache has what it wrote last, up to so much: servers' have 2
   MiB, and as many bytes are read as written. */
#define CORE_CACHE ((int64_t)1 << 20)

/* Batches that are being copied or transformed, or the caller's. */
enum { AFTER = 3 };

/*
 * Whether much of the batch, just opened, will be in the workers' own caches
 * when a device reads it, which is slow there: few others are written between.
 * Else workers write through their caches, since stores past them slow the
 * device's reads of the batches before.
 */
static bool is_read_soon(const leat__prefetcher *prefetcher,
                         const leat__device_queue *queue)
{
    /* What it grew to may be given back at this time. */
    int64_t bytes = queue->slab_bytes / queue->n;
    const leat__device_queues *all = &prefetcher->queues;
    unsigned filling =
        (unsigned)prefetcher->next_number -
        (unsigned)atomic_load_explicit(&all->nfinished, memory_order_relaxed);
    int before = atomic_load(&queue->circulating) -
                 atomic_load_explicit(&queue->nfree, memory_order_relaxed) -
                 (int)filling / all->n - AFTER;
    return (before > 0 ? before + 1 : 1) * bytes <
           prefetcher->options.workers * CORE_CACHE;
}

/* The next batch of the sequence. */
static int open_batch(leat__prefetcher *prefetcher, claimed *out)
{
    out->number = prefetcher->next_number;
    out->queue = leat__device_queues_of(&prefetcher->queues, out->number);
    int status = leat__device_queue_take(out->queue, &prefetcher->open);
    int missing = status ? (int)(out->queue - prefetcher->queues.queue) : -1;
    atomic_store_explicit(&prefetcher->out_of_batches, missing,
                          memory_order_relaxed);
    if (status)
        return status;
    leat__batch *batch = prefetcher->open;
    leat__batch_begin(batch, prefetcher->next_number++);
    batch->is_streamed = is_read_soon(prefetcher, out->queue);
    return LEAT_OK;
}

static claim_result claim_locked(leat__prefetcher *prefetcher,
                                 const struct claimant *claimant, claimed *out)
{
    if (prefetcher->stopped)
        return STOPPED;
    if (!prefetcher->open && open_batch(prefetcher, out))
        return NO_BATCH;
    int status =
        leat__data_reader_take(prefetcher->options.worker.reader,
                               claimant->number, &out->chunk, &out->input);
    if (status)
        return status == LEAT_AGAIN ? NO_CHUNK : STOPPED;
    leat__chunk *chunk = out->chunk;
    leat__batch *batch = out->batch = prefetcher->open;
    if (prefetcher->carry_chain)
        leat__carry_chain_enter(prefetcher->carry_chain, chunk);
    if (chunk->is_last) {
        batch->after = chunk->after;
        leat__mark_copy(&batch->mark, &chunk->mark);
        batch->valid = chunk->first + chunk->n;
        batch->n = prefetcher->options.worker.pads ? batch->size : batch->valid;
        prefetcher->open = NULL;
    }
    /* Nothing follows a failure without samples. One after a sample ends a
       batch that an earlier bad record may fail instead: this one comes next,
       with the failure. */
    if (batch->valid == 0 && chunk->failed == 0)
        prefetcher->stopped = true;
    return CLAIMED;
}

/* Whether another worker would find a batch. */
static bool has_more_locked(const leat__prefetcher *prefetcher)
{
    const leat__device_queue *next =
        leat__device_queues_of(&prefetcher->queues, prefetcher->next_number);
    return !prefetcher->stopped &&
           (prefetcher->open ||
            atomic_load_explicit(&next->nfree, memory_order_relaxed) > 0);
}

static claim_result claim(leat__prefetcher *prefetcher,
                          const struct claimant *claimant, claimed *out)
{
    out->room = leat__event_count_ticket(&prefetcher->queues.room);
    leat__mutex_lock_spinning(&prefetcher->claim);
    claim_result result = claim_locked(prefetcher, claimant, out);
    /* A caller has woken the workers that it needs, or works alone. */
    bool wakes = result == CLAIMED &&
                 claimant->number < prefetcher->options.workers &&
                 leat__event_count_has_sleepers(&prefetcher->queues.room) &&
                 has_more_locked(prefetcher);
    pthread_mutex_unlock(&prefetcher->claim);
    if (wakes)
        leat__event_count_wake_one(&prefetcher->queues.room);
    return result;
}

/*
 * Waits until a batch may be free, or a timed wait is over. Beside other
 * devices each free batch wakes, so there is no need for one; on the caller's
 * own core the caller decides when.
 */
static int wait_for_batch(leat__prefetcher *prefetcher, const claimed *missing,
                          leat__timed_wait *timing, int64_t now)
{
    leat__device_queue *queue = missing->queue;
    int64_t end = LEAT__FOREVER;
    atomic_store(&queue->was_full, true);
    if (prefetcher->options.may_time_waits && queue->is_alone)
        end = leat__timed_wait_until(
            timing, now, missing->number,
            leat__wake_threshold(atomic_load(&queue->circulating), true));
    return leat__event_count_wait(&prefetcher->queues.room, missing->room, end);
}

static void *worker_body(void *argument)
{
    struct claimant *claimant = argument;
    leat__prefetcher *prefetcher = claimant->prefetcher;
    leat__worker *worker = &claimant->worker;
    claimed got;
    leat__timed_wait timing = {0};
    bool running = true;
    leat__thread_use_batch_scheduling();
    int64_t idle = leat__clock_now(); /* without a chunk since then */
    while (running && !atomic_load(&prefetcher->cancelled)) {
        leat__counter_wait_begin(&worker->blocked_lock, idle);
        switch (claim(prefetcher, claimant, &got)) {
        case CLAIMED:
            leat__counter_wait_end(&worker->blocked_lock, got.chunk->claimed);
            idle = leat__worker_work(worker, got.chunk, got.batch);
            break;
        case NO_BATCH:
            idle = leat__clock_now();
            leat__counter_wait_end(&worker->blocked_lock, idle);
            leat__counter_wait_begin(&worker->blocked_full, idle);
            running = !wait_for_batch(prefetcher, &got, &timing, idle);
            idle = leat__clock_now();
            leat__counter_wait_end(&worker->blocked_full, idle);
            break;
        case NO_CHUNK:
            idle = leat__clock_now();
            leat__counter_wait_end(&worker->blocked_lock, idle);
            leat__counter_wait_begin(&worker->blocked_empty, idle);
            running = !leat__data_reader_wait(prefetcher->options.worker.reader,
                                              got.input);
            idle = leat__clock_now();
            leat__counter_wait_end(&worker->blocked_empty, idle);
            break;
        case STOPPED:
            leat__counter_wait_end(&worker->blocked_lock, idle);
            running = false;
            break;
        }
    }
    return NULL;
}

/* Why a closed queue gives nothing, in the error line too. */
static int end_status(leat__prefetcher *prefetcher)
{
    int status = LEAT_OK;
    if (!atomic_load(&prefetcher->cancelled))
        status = leat__device_queues_ended(&prefetcher->queues);
    return status ? status : LEAT_ECANCELLED;
}

int leat__prefetcher_next(leat__prefetcher *prefetcher, int i,
                          leat__batch **out, int64_t deadline, bool help)
{
    leat__device_queue *queue = &prefetcher->queues.queue[i];
    struct claimant *caller =
        &prefetcher->claimant[prefetcher->options.workers + i];
    void *item;
    claimed got;
    bool has_pressed = deadline == 0;
    for (;;) {
        if (!has_pressed && !(queue->is_inline && help)) {
            leat__device_queue_press(&prefetcher->queues, queue);
            has_pressed = true;
        }
        bool is_coming = leat__device_queues_has_finished(&prefetcher->queues);
        int64_t wait = help && !is_coming ? 0 : deadline;
        int status = leat__queue_pop(queue->ready, &item, wait);
        if (atomic_load(&prefetcher->cancelled))
            status = LEAT_ECANCELLED;
        if (!status) {
            *out = item;
            return LEAT_OK;
        }
        if (status == LEAT_ECANCELLED)
            return end_status(prefetcher);
        if (wait == deadline)
            return status;
        /* A deadline passes while there is still work to do. */
        if (deadline != LEAT__FOREVER && leat__clock_now() >= deadline)
            return LEAT_AGAIN;
        if (claim(prefetcher, caller, &got) == CLAIMED)
            (void)leat__worker_work(&caller->worker, got.chunk, got.batch);
        else
            help = false;
    }
}

void leat__prefetcher_set_inline(leat__prefetcher *prefetcher, int i,
                                 bool is_inline)
{
    leat__device_queue_set_inline(&prefetcher->queues,
                                  &prefetcher->queues.queue[i], is_inline);
}

int leat__prefetcher_mark(leat__prefetcher *prefetcher, leat__batch *batch,
                          const leat_stream *streams, int n)
{
    leat__device_queue *queue =
        leat__device_queues_of(&prefetcher->queues, batch->number);
    return leat__device_copy_mark(&queue->copy, batch, streams, n);
}

int leat__prefetcher_give(leat__prefetcher *prefetcher, leat__batch *batch,
                          const leat_stream *streams, int n)
{
    int status = leat__prefetcher_mark(prefetcher, batch, streams, n);
    leat__device_queue_give(
        &prefetcher->queues,
        leat__device_queues_of(&prefetcher->queues, batch->number), batch);
    return status;
}

leat__device_copy *leat__prefetcher_copy(leat__prefetcher *prefetcher, int i)
{
    return &prefetcher->queues.queue[i].copy;
}

int leat__prefetcher_slots(const leat__prefetcher *prefetcher, int i)
{
    return prefetcher->queues.queue[i].n;
}

void leat__prefetcher_end(leat__prefetcher *prefetcher, int status,
                          const char *line)
{
    leat__device_queues_end(&prefetcher->queues, status, line);
}

void leat__prefetcher_cancel(leat__prefetcher *prefetcher)
{
    atomic_store(&prefetcher->cancelled, true);
    leat__data_reader_cancel(prefetcher->options.worker.reader);
    leat__device_queues_close(&prefetcher->queues);
}

static int create_claimants(leat__prefetcher *prefetcher)
{
    const leat__prefetcher_options *options = &prefetcher->options;
    int n = options->workers + options->devices;
    prefetcher->claimant =
        leat__alloc_zero((size_t)n, sizeof(*prefetcher->claimant));
    if (!prefetcher->claimant)
        return LEAT_ENOMEM;
    int status = LEAT_OK;
    if (options->worker.on_error != LEAT_ON_ERROR_FAIL)
        status = leat__carry_chain_create(
            &prefetcher->carry_chain, n, options->worker.buffers,
            options->at_start ? LEAT__CARRY_NONE : LEAT__CARRY_UNKNOWN);
    for (int i = 0; i < n && !status; i++) {
        struct claimant *one = &prefetcher->claimant[i];
        one->prefetcher = prefetcher;
        one->number = i;
        status =
            leat__worker_init(&one->worker, &options->worker,
                              &prefetcher->queues, prefetcher->carry_chain);
    }
    return status;
}

static int start_threads(leat__prefetcher *prefetcher)
{
    const leat__prefetcher_options *options = &prefetcher->options;
    int size = options->ahead_size;
    int takers = options->workers + options->devices;
    const leat__autotune_ahead ahead = {
        .chunk_size = size,
        .batch_size = options->worker.spec.batch_size,
        .batches = options->devices * (options->queue.batches - 1),
        .takers = takers,
        .buffer_bytes = options->ahead_bytes,
        .max_memory = options->queue.max_memory,
    };
    const leat__data_reader_chunks chunks = {
        .size = options->chunk_size,
        .takers = takers,
        .ahead_size = size,
        .sample_buffer = options->sample_buffer,
        .own_buffers =
            leat__autotune_own_buffers(takers, options->queue.max_memory),
        .ahead = leat__autotune_chunks_ahead(&ahead),
    };
    int status = leat__data_reader_start(options->worker.reader, &chunks);
    for (int i = 0; i < options->workers && !status; i++) {
        struct claimant *one = &prefetcher->claimant[i];
        char name[16];
        one->thread.owner = options->owner;
        snprintf(name, sizeof(name), "leat-worker-%d", i % 100);
        status = leat__thread_start(&one->thread, name, worker_body, one);
    }
    return status;
}

static int set_up(leat__prefetcher *prefetcher)
{
    const leat__prefetcher_options *options = &prefetcher->options;
    int status = leat__device_queues_init(&prefetcher->queues, options->device,
                                          options->devices, &options->queue);
    if (!status)
        status = create_claimants(prefetcher);
    if (!status)
        status = leat__device_queues_start(&prefetcher->queues);
    return status ? status : start_threads(prefetcher);
}

int leat__prefetcher_create(leat__prefetcher **out,
                            const leat__prefetcher_options *options)
{
    leat__prefetcher *prefetcher =
        leat__alloc_aligned_zero(sizeof(*prefetcher));
    if (!prefetcher)
        return LEAT_ENOMEM;
    prefetcher->options = *options;
    atomic_init(&prefetcher->out_of_batches, -1);
    int status = leat__mutex_init(&prefetcher->claim);
    if (status) {
        leat__free(prefetcher);
        return status;
    }
    status = set_up(prefetcher);
    if (status) {
        char line[LEAT__ERROR_MAX];
        leat__error_save(line);
        leat__prefetcher_destroy(prefetcher);
        return leat_error(status, "%s", line);
    }
    *out = prefetcher;
    return LEAT_OK;
}

void leat__prefetcher_destroy(leat__prefetcher *prefetcher)
{
    if (!prefetcher)
        return;
    leat__prefetcher_cancel(prefetcher);
    int n = prefetcher->claimant
                ? prefetcher->options.workers + prefetcher->options.devices
                : 0;
    for (int i = 0; i < n; i++)
        leat__thread_join(&prefetcher->claimant[i].thread);
    for (int i = 0; i < n; i++)
        leat__worker_finish(&prefetcher->claimant[i].worker);
    leat__carry_chain_destroy(prefetcher->carry_chain);
    leat__device_queues_finish(&prefetcher->queues);
    pthread_mutex_destroy(&prefetcher->claim);
    leat__free(prefetcher->claimant);
    leat__free(prefetcher);
}

leat__activity leat__prefetcher_activity(const leat__prefetcher *prefetcher)
{
    leat__activity now = {
        .workers = prefetcher->options.workers,
        .reading =
            leat__data_reader_is_filling(prefetcher->options.worker.reader),
        .out_of_batches = atomic_load_explicit(&prefetcher->out_of_batches,
                                               memory_order_relaxed),
    };
    for (int i = 0; i < now.workers; i++) {
        int activity = atomic_load_explicit(
            &prefetcher->claimant[i].worker.activity, memory_order_relaxed);
        now.working += activity == LEAT__WORKING;
        now.reading += activity == LEAT__READING;
        now.copying += activity == LEAT__COPYING;
        if (activity != LEAT__IDLE)
            now.out_of_batches = -1;
    }
    if (atomic_load(&prefetcher->queues.is_copying)) {
        now.copying++;
        now.out_of_batches = -1;
    }
    return now;
}

void leat__prefetcher_stats(const leat__prefetcher *prefetcher, int i,
                            leat_stats *stats)
{
    leat_stage_stats *transform = &stats->stage[1];
    int workers = prefetcher->options.workers;
    const leat__worker *caller = &prefetcher->claimant[workers + i].worker;
    int64_t now = leat__clock_now();
    leat__data_reader_stats(prefetcher->options.worker.reader,
                            &stats->stage[0]);
    *transform = (leat_stage_stats){
        .name = prefetcher->options.decodes ? "decode" : "transform",
        .threads = workers,
    };
    for (int k = 0; k < workers + prefetcher->options.devices; k++) {
        const leat__worker *one = &prefetcher->claimant[k].worker;
        transform->items += atomic_load(&one->items);
        transform->bytes += atomic_load(&one->bytes);
        transform->busy += leat__counter_seconds(&one->busy);
        transform->blocked_empty +=
            leat__counter_waited(&one->blocked_empty, now);
        transform->blocked_full +=
            leat__counter_waited(&one->blocked_full, now);
        stats->blocked_lock += leat__counter_waited(&one->blocked_lock, now);
        stats->image_warnings += atomic_load(&one->warnings);
        stats->jpeg_fast += atomic_load(&one->jpeg_fast);
        stats->jpeg_library += atomic_load(&one->jpeg_library);
    }
    stats->nstages = 2;
    stats->helped_chunks = atomic_load(&caller->chunks);
    stats->helped = leat__counter_seconds(&caller->busy) +
                    leat__counter_seconds(&caller->reading);
    leat__device_queue_stats(&prefetcher->queues, &prefetcher->queues.queue[i],
                             stats);
}
