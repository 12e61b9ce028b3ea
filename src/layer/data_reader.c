/*
 * DESIGN. A data reader owns the open reader and a chunk source, which fills
 * chunks from it. Either a producer thread fills them ahead: they travel from
 * the free queue through it and the full queue to a worker, and back. Or takers
 * do, each a chunk of its own, which no other core's cache holds; there no
 * queue is used. Both deliver the same samples.
 *
 * The source belongs to the producer thread while `is_threaded`, else to the
 * caller of take; callers of take are serialised by the prefetcher's claim
 * lock. Where the reader can report whether storage blocks, and the options
 * leave the choice to it, the source changes hands between two chunks: its
 * owner probes the storage every `probe_every`, and where an epoch begins, but
 * no more often than its probes' cost allows, and gives it away by storing
 * `is_threaded`. The thread does so after its last push, so a taker that sees
 * the store and then finds the full queue empty has had all that was filled. A
 * taker calls the thread back by `turn`.
 *
 * `input` counts the events that wake a taker that found no chunk: a push, or
 * the source changing hands. The queues and `input` have their own locks, under
 * which no other is taken; `lock` guards `turn`, and keeps cancel and start
 * apart. Stopping: cancel closes queues and `input`, signals `turn` and cancels
 * the reader, so nobody stays blocked; destroy joins the thread before it
 * frees.
 */
#include "layer/data_reader.h"
#include "base/clock.h"
#include "base/counter.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/queue.h"
#include "base/thread.h"
#include "layer/chunk_pool.h"
#include "pipeline/opening.h"
#include "pipeline/pipeline.h"

#include <stdbool.h>

/* A probe of many inputs takes long: at most one part of the time in so many
 * is for probes. */
enum { PROBE_PART = 50 };

struct leat__data_reader {
    leat__data_reader_options options;
    leat_reader *reader;
    bool adapts;   /* the filling thread follows the storage */
    int64_t count; /* samples in an epoch, where they can be read again; or 0 */
    leat__queue *full;
    leat__chunk_pool ahead;  /* the thread's, which go through `full` */
    leat__chunk_list own;    /* taker i has chunk i */
    leat__previews previews; /* before all others */
    leat__event_count input;
    pthread_mutex_t lock;
    pthread_cond_t turn;   /* the thread fills from now on, or is cancelled */
    atomic_bool cancelled; /* set under lock, as queues are made and closed */
    leat__thread thread;

    atomic_bool is_threaded; /* the thread owns what follows, else takers do */
    leat__chunk_source source;
    int64_t probed_at; /* the clock at the owner's last probe, */
    int64_t probed_epoch;
    int64_t probe_cost; /* nanoseconds */

    /* Of takers. */
    bool drained; /* the full queue is empty and stays so */

    atomic_int_fast64_t blocked_full; /* read by anybody */
};

/* With their buffers: a chunk may be needed first long after the others. */
static int create_own(leat__data_reader *data_reader,
                      const leat__data_reader_chunks *chunks)
{
    const leat__chunk_source_options *source = &data_reader->options.source;
    return leat__chunk_list_create(&data_reader->own, chunks->takers,
                                   chunks->size, source->draws, source->buffers,
                                   chunks->sample_buffer, chunks->own_buffers);
}

/* The thread's, likewise, and the queues that they go through. */
static int create_ahead(leat__data_reader *data_reader,
                        const leat__data_reader_chunks *chunks)
{
    const leat__chunk_source_options *source = &data_reader->options.source;
    const leat__chunk_pool_options options = {
        .n = chunks->ahead.n,
        .capacity = chunks->ahead_size,
        .draws = source->draws,
        .buffers = source->buffers,
        .sample_buffer = chunks->sample_buffer,
        .part = chunks->ahead.buffers,
        .most = chunks->ahead.all,
        .least = chunks->takers,
    };
    int status = leat__chunk_pool_create(&data_reader->ahead, &options);
    pthread_mutex_lock(&data_reader->lock);
    if (!status)
        status = leat__chunk_pool_open(&data_reader->ahead);
    if (!status)
        status = leat__queue_create(&data_reader->full, options.n);
    pthread_mutex_unlock(&data_reader->lock);
    return status;
}

static int create_locks(leat__data_reader *data_reader)
{
    int status = leat__mutex_init(&data_reader->lock);
    if (status)
        return status;
    status = leat__cond_init(&data_reader->turn);
    if (status)
        goto fail_lock;
    status = leat__event_count_init(&data_reader->input);
    if (status)
        goto fail_turn;
    return LEAT_OK;

fail_turn:
    pthread_cond_destroy(&data_reader->turn);
fail_lock:
    pthread_mutex_destroy(&data_reader->lock);
    return status;
}

static bool has_thread(const leat__data_reader *data_reader)
{
    return data_reader->options.threaded || data_reader->adapts;
}

/* Whether the reader may block, as it says now. */
static bool probe(leat__data_reader *data_reader)
{
    int64_t begin = leat__clock_now();
    bool blocks = leat_reader_may_block(data_reader->reader);
    data_reader->probed_at = leat__clock_now();
    data_reader->probe_cost = data_reader->probed_at - begin;
    return blocks;
}

/* Who fills first, and whether that may change. */
static void settle_owner(leat__data_reader *data_reader)
{
    data_reader->adapts = data_reader->options.probes &&
                          !data_reader->options.threaded &&
                          leat__reader_can_probe(data_reader->reader);
    bool threaded = data_reader->options.threaded ||
                    (data_reader->options.probes && probe(data_reader));
    if (!data_reader->adapts)
        data_reader->options.threaded = threaded;
    atomic_store(&data_reader->is_threaded, threaded);
    data_reader->drained = !threaded;
}

/* Settles who reads, and goes to `start`, which may read all before it. */
static int go_to(leat__data_reader *data_reader, const leat__position *start,
                 leat_token *token)
{
    const leat__chunk_source_options *source = &data_reader->options.source;
    settle_owner(data_reader);
    int status = leat__chunk_source_init(&data_reader->source,
                                         data_reader->reader, source);
    if (!status && source->collects &&
        leat_reader_is_random_access(data_reader->reader))
        status = leat_reader_count(data_reader->reader, &data_reader->count);
    if (status)
        return status;
    if (token)
        status = leat_reader_restore(data_reader->reader, token);
    if (status && status != LEAT_EUNSUPPORTED)
        return status;
    bool is_marked = token && token->cursor < token->size &&
                     leat_reader_has_mark(data_reader->reader);
    leat__chunk_source_go_to(&data_reader->source, start,
                             is_marked ? token : NULL);
    return LEAT_OK;
}

static void cancel_reader(void *reader)
{
    leat_reader_cancel(reader);
}

int leat__data_reader_create(leat__data_reader **out,
                             const leat__data_reader_options *options,
                             const leat__position *start, leat_token *token)
{
    leat__data_reader *data_reader = leat__alloc_zero(1, sizeof(*data_reader));
    if (!data_reader)
        return LEAT_ENOMEM;
    data_reader->options = *options;
    data_reader->own.cancelled = &data_reader->cancelled;
    data_reader->ahead.list.cancelled = &data_reader->cancelled;
    int64_t limit = options->open ? options->open->max_memory : 0;
    data_reader->previews.most =
        limit > 0 ? (size_t)limit : LEAT__PREVIEWS_BYTES;
    int status = create_locks(data_reader);
    if (status) {
        leat__free(data_reader);
        return status;
    }
    status = leat_pipeline_open_with(options->source.pipeline, options->open,
                                     &data_reader->reader);
    if (!status) {
        /* Nobody else has the reader yet, who could cancel it. */
        leat__opening_step step;
        leat__opening_enter(&step, cancel_reader, data_reader->reader);
        status = go_to(data_reader, start, token);
        leat__opening_leave(&step);
    }
    if (status)
        leat__data_reader_destroy(data_reader);
    else
        *out = data_reader;
    return status;
}

void leat__data_reader_destroy(leat__data_reader *data_reader)
{
    if (!data_reader)
        return;
    leat__data_reader_cancel(data_reader);
    leat__thread_join(&data_reader->thread);
    leat__queue_destroy(data_reader->full);
    leat__chunk_pool_destroy(&data_reader->ahead);
    leat__chunk_list_destroy(&data_reader->own);
    leat__chunk_list_destroy(&data_reader->previews.list);
    leat_reader_close(data_reader->reader);
    leat__event_count_finish(&data_reader->input);
    pthread_cond_destroy(&data_reader->turn);
    pthread_mutex_destroy(&data_reader->lock);
    leat__free(data_reader);
}

leat_reader *leat__data_reader_reader(leat__data_reader *data_reader)
{
    return data_reader->reader;
}

int leat__data_reader_preview(leat__data_reader *data_reader,
                              const leat_sample **out)
{
    return leat__previews_next(&data_reader->previews, &data_reader->source,
                               atomic_load(&data_reader->is_threaded), out);
}

int leat__data_reader_preview_batch(leat__data_reader *data_reader,
                                    const leat_sample ***out, int *n)
{
    return leat__previews_batch(&data_reader->previews, out, n);
}

int64_t leat__data_reader_samples(const leat__data_reader *data_reader)
{
    const leat__chunk_source *source = &data_reader->source;
    return source->length > 0 ? source->length : source->sampler.cursor;
}

int64_t leat__data_reader_found(const leat__data_reader *data_reader)
{
    return data_reader->source.found;
}

bool leat__data_reader_needs_batches(const leat__data_reader *data_reader)
{
    return leat__chunk_source_needs_batches(&data_reader->source);
}

/* Waits until the source is the thread's. False: cancelled. */
static bool await_turn(leat__data_reader *data_reader)
{
    if (atomic_load_explicit(&data_reader->is_threaded, memory_order_acquire))
        return true;
    pthread_mutex_lock(&data_reader->lock);
    while (!atomic_load(&data_reader->is_threaded) &&
           !atomic_load(&data_reader->cancelled))
        pthread_cond_wait(&data_reader->turn, &data_reader->lock);
    pthread_mutex_unlock(&data_reader->lock);
    return !atomic_load(&data_reader->cancelled);
}

/* A new epoch may find in memory the records that the last one read. */
static bool is_probe_due(const leat__data_reader *data_reader, int64_t now)
{
    int64_t since = now - data_reader->probed_at;
    if (since / PROBE_PART < data_reader->probe_cost)
        return false;
    return since >= data_reader->options.probe_every ||
           (data_reader->source.sampler.epoch != data_reader->probed_epoch &&
            since >= data_reader->options.probe_pause);
}

/* Whether the owner of the source, at `now`, is to give it away. */
static bool is_other_turn(leat__data_reader *data_reader, int64_t now)
{
    if (!data_reader->adapts || data_reader->source.stuck ||
        !is_probe_due(data_reader, now))
        return false;
    data_reader->probed_epoch = data_reader->source.sampler.epoch;
    return probe(data_reader) != atomic_load_explicit(&data_reader->is_threaded,
                                                      memory_order_relaxed);
}

/* From now on takers fill: nothing of the source is the thread's any more. */
static void hand_to_takers(leat__data_reader *data_reader)
{
    leat__log(LEAT_LOG_INFO,
              "%s is in memory: workers read it, and the thread rests",
              leat_pipeline_text(data_reader->options.source.pipeline));
    atomic_store_explicit(&data_reader->is_threaded, false,
                          memory_order_release);
    leat__event_count_wake_all(&data_reader->input);
}

static void hand_to_thread(leat__data_reader *data_reader)
{
    leat__log(LEAT_LOG_INFO, "%s is no longer in memory: a thread reads ahead",
              leat_pipeline_text(data_reader->options.source.pipeline));
    data_reader->drained = false;
    pthread_mutex_lock(&data_reader->lock);
    atomic_store_explicit(&data_reader->is_threaded, true,
                          memory_order_release);
    pthread_cond_signal(&data_reader->turn);
    pthread_mutex_unlock(&data_reader->lock);
}

static void *produce(void *argument)
{
    leat__data_reader *data_reader = argument;
    leat__chunk *chunk;
    int stuck = 0;
    while (!stuck && await_turn(data_reader)) {
        int64_t begin = leat__clock_now();
        if (leat__chunk_pool_take(&data_reader->ahead, &chunk))
            break;
        leat__counter_add_exclusive(&data_reader->blocked_full,
                                    leat__clock_now() - begin);
        /* After a failure one more chunk is filled, which carries the status
           to the layer's last batch. */
        stuck = data_reader->source.stuck;
        leat__chunk_source_fill(&data_reader->source, chunk, true);
        leat__chunk_pool_count(&data_reader->ahead, chunk);
        bool is_over = is_other_turn(data_reader, begin);
        if (leat__queue_push(data_reader->full, chunk))
            break;
        leat__event_count_wake_one(&data_reader->input);
        if (is_over)
            hand_to_takers(data_reader);
    }
    return NULL;
}

int leat__data_reader_start(leat__data_reader *data_reader,
                            const leat__data_reader_chunks *chunks)
{
    int status = LEAT_OK;
    if (!data_reader->options.threaded)
        status = create_own(data_reader, chunks);
    if (!status && has_thread(data_reader))
        status = create_ahead(data_reader, chunks);
    pthread_mutex_lock(&data_reader->lock);
    if (atomic_load(&data_reader->cancelled) && !status)
        status = leat_error(LEAT_ECANCELLED, "the layer was cancelled");
    pthread_mutex_unlock(&data_reader->lock);
    data_reader->thread.owner = data_reader->options.owner;
    if (!status && has_thread(data_reader))
        status = leat__thread_start(&data_reader->thread, "leat-reader",
                                    produce, data_reader);
    return status;
}

/* What the thread has filled. */
static int take_filled(leat__data_reader *data_reader, leat__chunk **out)
{
    void *item;
    int status = leat__queue_pop(data_reader->full, &item, 0);
    if (!status)
        *out = item;
    return status;
}

/* The taker fills its own, and probes whether the thread is to go on. */
static int take_own(leat__data_reader *data_reader, int taker,
                    leat__chunk **out)
{
    if (atomic_load(&data_reader->cancelled))
        return LEAT_ECANCELLED;
    leat__chunk *chunk = *out = data_reader->own.chunk[taker];
    leat__chunk_source_fill(&data_reader->source, chunk, false);
    if (is_other_turn(data_reader, chunk->begun))
        hand_to_thread(data_reader);
    return LEAT_OK;
}

int leat__data_reader_take(leat__data_reader *data_reader, int taker,
                           leat__chunk **out, int64_t *ticket)
{
    int status = LEAT_OK;
    bool is_preview = leat__previews_take(&data_reader->previews, out);
    if (!is_preview && data_reader->drained)
        return take_own(data_reader, taker, out);
    if (!is_preview) {
        *ticket = leat__event_count_ticket(&data_reader->input);
        bool is_threaded = atomic_load_explicit(&data_reader->is_threaded,
                                                memory_order_acquire);
        status = take_filled(data_reader, out);
        data_reader->drained = status == LEAT_AGAIN && !is_threaded;
        if (data_reader->drained)
            return take_own(data_reader, taker, out);
    }
    if (!status)
        (*out)->begun = (*out)->claimed = leat__clock_now();
    return status;
}

int leat__data_reader_wait(leat__data_reader *data_reader, int64_t ticket)
{
    return leat__event_count_wait(&data_reader->input, ticket, LEAT__FOREVER);
}

void leat__data_reader_read(leat__data_reader *data_reader, leat__chunk *chunk)
{
    leat__chunk_read(chunk, data_reader->reader,
                     data_reader->options.source.collects);
}

void leat__data_reader_give(leat__data_reader *data_reader, leat__chunk *chunk)
{
    if (chunk->is_queued)
        leat__chunk_pool_give(&data_reader->ahead, chunk);
}

bool leat__data_reader_can_reread(const leat__data_reader *data_reader)
{
    return data_reader->count > 0;
}

int leat__data_reader_read_neighbor(leat__data_reader *data_reader, int step,
                                    int64_t *epoch, int64_t *index,
                                    leat_sample *sample)
{
    int64_t position = *epoch * data_reader->count + *index + step;
    if (position < 0)
        return LEAT_END;
    *epoch = position / data_reader->count;
    *index = position % data_reader->count;
    const leat_position at = {*epoch, *index};
    int got;
    int status =
        leat_reader_read_at(data_reader->reader, &at, &sample, 1, &got);
    sample->from.epoch = *epoch;
    sample->from.position = *index;
    return status;
}

void leat__data_reader_cancel(leat__data_reader *data_reader)
{
    if (data_reader->reader)
        leat_reader_cancel(data_reader->reader);
    pthread_mutex_lock(&data_reader->lock);
    atomic_store(&data_reader->cancelled, true);
    pthread_cond_broadcast(&data_reader->turn);
    leat__chunk_pool_close(&data_reader->ahead);
    if (data_reader->full)
        leat__queue_close(data_reader->full);
    pthread_mutex_unlock(&data_reader->lock);
    leat__event_count_close(&data_reader->input);
}

static void add_reading(const leat__chunk_list *list, int64_t *bytes,
                        int64_t *busy)
{
    for (int i = 0; i < list->n; i++) {
        *bytes += atomic_load(&list->chunk[i]->bytes);
        *busy += atomic_load(&list->chunk[i]->busy);
    }
}

bool leat__data_reader_is_filling(const leat__data_reader *data_reader)
{
    return atomic_load_explicit(&data_reader->source.is_filling,
                                memory_order_relaxed);
}

void leat__data_reader_stats(const leat__data_reader *data_reader,
                             leat_stage_stats *out)
{
    int64_t bytes = atomic_load(&data_reader->source.bytes);
    int64_t busy = atomic_load(&data_reader->source.busy);
    add_reading(&data_reader->ahead.list, &bytes, &busy);
    add_reading(&data_reader->own, &bytes, &busy);
    add_reading(&data_reader->previews.list, &bytes, &busy);
    *out = (leat_stage_stats){
        .name = "reader",
        .threads = atomic_load(&data_reader->is_threaded),
        .items = atomic_load(&data_reader->source.items),
        .bytes = bytes,
        .busy = (double)busy * 1e-9,
        .blocked_full = leat__counter_seconds(&data_reader->blocked_full),
    };
}
