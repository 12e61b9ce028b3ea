/*
 * DESIGN. A data reader owns the open reader and a chunk source, which fills
 * chunks from it. Either a producer thread fills them ahead: they travel from
 * the free queue through it and the full queue to a worker, and back. Or takers
 * do, each a chunk of its own, which no other core's cache holds; there no
 * queue is used. Both deliver the same samples.
 *
 * The source belongs to the producer thread while `is_threaded`, else to the
 * caller of take; callers of take are serialised by the prefetcher's claim
 * lock. Where the reader can tell whether storage blocks, and the options leave
 * the choice to it, the source changes hands between two chunks: its owner
 * probes the storage every `probe_every`, and where an epoch begins, and gives
 * it away by storing `is_threaded`. The thread does so after its last push, so
 * a taker that sees the store and then finds the full queue empty has had all
 * that was filled. A taker calls the thread back by `turn`.
 *
 * `input` counts what ends the wait of a taker that found no chunk: a push, or
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
#include "pipeline/pipeline.h"

typedef struct chunk_list {
    leat__chunk **chunk;
    int n;
} chunk_list;

struct leat__data_reader {
    leat__data_reader_options options;
    leat_reader *reader;
    bool adapts;   /* who fills follows the storage */
    int64_t count; /* samples in an epoch, where they can be read again; or 0 */
    leat__queue *free;
    leat__queue *full;
    chunk_list ahead;     /* those that go through the queues */
    chunk_list own;       /* taker i has chunk i */
    chunk_list previewed; /* of one sample each, before all others */
    leat__event_count input;
    pthread_mutex_t lock;
    pthread_cond_t turn;  /* the thread fills from now on, or is cancelled */
    atomic_int cancelled; /* set under lock, as queues are made and closed */
    leat__thread thread;

    atomic_int is_threaded; /* the thread owns what follows, else takers do */
    leat__chunk_source source;
    int64_t probed_at; /* the clock at the owner's last probe, */
    int64_t probed_epoch;

    /* Of takers. */
    int taken_previews; /* of those previewed */
    bool drained;       /* the full queue is empty and stays so */

    atomic_int_fast64_t blocked_full; /* read by anybody */
};

static void destroy_chunks(chunk_list *list)
{
    for (int i = 0; i < list->n; i++)
        leat__chunk_destroy(list->chunk[i]);
    leat__free(list->chunk);
}

/* The largest buffer that a previewed sample needed. */
static size_t measure_buffers(const leat__data_reader *self)
{
    size_t most = 0;
    for (int i = 0; i < self->previewed.n; i++) {
        const leat_sample *sample = self->previewed.chunk[i]->sample[0];
        most = sample->buffer_size > most ? sample->buffer_size : most;
    }
    return most;
}

/* With their buffers: a chunk may be needed first long after the others. */
static int create_chunks(leat__data_reader *self, chunk_list *list,
                         int chunk_size, int n)
{
    size_t buffer_bytes = measure_buffers(self);
    int status = LEAT_OK;
    list->chunk = leat__alloc_zero((size_t)n, sizeof(leat__chunk *));
    if (!list->chunk)
        return LEAT_ENOMEM;
    while (status == LEAT_OK && list->n < n) {
        status = leat__chunk_create(&list->chunk[list->n], chunk_size,
                                    self->options.source.draws,
                                    self->options.source.buffers);
        if (status == LEAT_OK)
            status = leat__chunk_reserve(list->chunk[list->n++], buffer_bytes);
    }
    return status;
}

/* With all chunks of the thread's in the free one. */
static int create_queues(leat__data_reader *self)
{
    int n = self->ahead.n;
    pthread_mutex_lock(&self->lock);
    int status = leat__queue_create(&self->free, n);
    if (status == LEAT_OK)
        status = leat__queue_create(&self->full, n);
    pthread_mutex_unlock(&self->lock);
    for (int i = 0; i < n && status == LEAT_OK; i++) {
        self->ahead.chunk[i]->is_queued = 1;
        leat__queue_push(self->free, self->ahead.chunk[i]);
    }
    return status;
}

static int create_locks(leat__data_reader *self)
{
    int status = leat__mutex_init(&self->lock);
    if (status)
        return status;
    status = leat__cond_init(&self->turn);
    if (status)
        goto fail_lock;
    status = leat__event_count_init(&self->input);
    if (status)
        goto fail_turn;
    return LEAT_OK;

fail_turn:
    pthread_cond_destroy(&self->turn);
fail_lock:
    pthread_mutex_destroy(&self->lock);
    return status;
}

static bool has_thread(const leat__data_reader *self)
{
    return self->options.threaded || self->adapts;
}

/* Who fills first, and whether that may change. */
static void settle_owner(leat__data_reader *self)
{
    self->adapts = self->options.probes && !self->options.threaded &&
                   leat__reader_can_probe(self->reader);
    bool threaded =
        self->options.threaded ||
        (self->options.probes && leat_reader_may_block(self->reader));
    if (!self->adapts)
        self->options.threaded = threaded;
    atomic_store(&self->is_threaded, threaded);
    self->drained = !threaded;
    self->probed_at = leat__clock_now();
}

int leat__data_reader_create(leat__data_reader **out,
                             const leat__data_reader_options *options,
                             const leat__position *start, leat_token *identity)
{
    leat__data_reader *self = leat__alloc_zero(1, sizeof(*self));
    if (!self)
        return LEAT_ENOMEM;
    self->options = *options;
    int status = create_locks(self);
    if (status) {
        leat__free(self);
        return status;
    }
    status = leat_pipeline_open(options->source.pipeline, &self->reader);
    if (status)
        goto fail;
    settle_owner(self);
    status =
        leat__chunk_source_init(&self->source, self->reader, &options->source);
    if (status == LEAT_OK && options->source.collects &&
        leat_reader_is_random_access(self->reader))
        status = leat_reader_count(self->reader, &self->count);
    if (status)
        goto fail;
    if (identity)
        status = leat_reader_restore(self->reader, identity);
    if (status)
        goto fail;
    leat__chunk_source_go_to(&self->source, start);
    *out = self;
    return LEAT_OK;

fail:
    leat__data_reader_destroy(self);
    return status;
}

void leat__data_reader_destroy(leat__data_reader *self)
{
    if (!self)
        return;
    leat__data_reader_cancel(self);
    leat__thread_join(&self->thread);
    leat__queue_destroy(self->free);
    leat__queue_destroy(self->full);
    destroy_chunks(&self->ahead);
    destroy_chunks(&self->own);
    destroy_chunks(&self->previewed);
    leat__chunk_source_finish(&self->source);
    leat_reader_close(self->reader);
    leat__event_count_finish(&self->input);
    pthread_cond_destroy(&self->turn);
    pthread_mutex_destroy(&self->lock);
    leat__free(self);
}

leat_reader *leat__data_reader_reader(leat__data_reader *self)
{
    return self->reader;
}

static int add_preview(leat__data_reader *self, leat__chunk **out)
{
    chunk_list *list = &self->previewed;
    if (!list->chunk)
        list->chunk =
            leat__alloc_zero(LEAT__PREVIEWS_MAX, sizeof(leat__chunk *));
    if (!list->chunk)
        return LEAT_ENOMEM;
    if (list->n == LEAT__PREVIEWS_MAX)
        return leat_error(LEAT_EINVAL, "%d samples were previewed already",
                          LEAT__PREVIEWS_MAX);
    int status = leat__chunk_create(out, 1, self->options.source.draws,
                                    self->options.source.buffers);
    if (status == LEAT_OK)
        list->chunk[list->n++] = *out;
    return status;
}

int leat__data_reader_preview(leat__data_reader *self, const leat_sample **out)
{
    leat__chunk *chunk;
    leat__chunk_source *source = &self->source;
    int status = add_preview(self, &chunk);
    if (status)
        return status;
    leat__chunk_source_fill(source, chunk, atomic_load(&self->is_threaded));
    leat__data_reader_read(self, chunk);
    if (chunk->n == 0 || chunk->failed == 0)
        return leat_error(source->stuck ? source->stuck : chunk->status, "%s",
                          source->stuck ? source->stuck_line : chunk->line);
    if (chunk->bad.n > 0)
        return leat_error(LEAT_EDATA, "%s", chunk->bad.item[0].line);
    *out = chunk->sample[0];
    return LEAT_OK;
}

/* Waits until the source is the thread's. False: cancelled. */
static bool await_turn(leat__data_reader *self)
{
    if (atomic_load_explicit(&self->is_threaded, memory_order_acquire))
        return true;
    pthread_mutex_lock(&self->lock);
    while (!atomic_load(&self->is_threaded) && !atomic_load(&self->cancelled))
        pthread_cond_wait(&self->turn, &self->lock);
    pthread_mutex_unlock(&self->lock);
    return !atomic_load(&self->cancelled);
}

/* An epoch that begins may find in memory what the one before it read. */
static bool is_probe_due(const leat__data_reader *self, int64_t now)
{
    int64_t since = now - self->probed_at;
    return since >= self->options.probe_every ||
           (self->source.sampler.epoch != self->probed_epoch &&
            since >= self->options.probe_pause);
}

/* Whether the owner of the source, at `now`, is to give it away. */
static bool is_other_turn(leat__data_reader *self, int64_t now)
{
    if (!self->adapts || self->source.stuck || !is_probe_due(self, now))
        return false;
    self->probed_at = now;
    self->probed_epoch = self->source.sampler.epoch;
    return leat_reader_may_block(self->reader) !=
           atomic_load_explicit(&self->is_threaded, memory_order_relaxed);
}

/* From now on takers fill: nothing of the source is the thread's any more. */
static void hand_to_takers(leat__data_reader *self)
{
    leat__log(LEAT_LOG_INFO,
              "%s is in memory: workers read it, and the thread rests",
              leat_pipeline_text(self->options.source.pipeline));
    atomic_store_explicit(&self->is_threaded, 0, memory_order_release);
    leat__event_count_wake_all(&self->input);
}

static void hand_to_thread(leat__data_reader *self)
{
    leat__log(LEAT_LOG_INFO, "%s is no longer in memory: a thread reads ahead",
              leat_pipeline_text(self->options.source.pipeline));
    self->drained = false;
    pthread_mutex_lock(&self->lock);
    atomic_store_explicit(&self->is_threaded, 1, memory_order_release);
    pthread_cond_signal(&self->turn);
    pthread_mutex_unlock(&self->lock);
}

static void *produce(void *argument)
{
    leat__data_reader *self = argument;
    void *item;
    int stuck = 0;
    while (!stuck && await_turn(self)) {
        int64_t begin = leat__clock_now();
        if (leat__queue_pop(self->free, &item, LEAT__FOREVER))
            break;
        leat__counter_add_exclusive(&self->blocked_full,
                                    leat__clock_now() - begin);
        leat__chunk *chunk = item;
        /* One chunk more than the one that got stuck: the layer's last batch.
         */
        stuck = self->source.stuck;
        leat__chunk_source_fill(&self->source, chunk, true);
        bool is_over = is_other_turn(self, begin);
        if (leat__queue_push(self->full, chunk))
            break;
        leat__event_count_wake_one(&self->input);
        if (is_over)
            hand_to_takers(self);
    }
    return NULL;
}

int leat__data_reader_start(leat__data_reader *self,
                            const leat__data_reader_chunks *chunks)
{
    int status = LEAT_OK;
    if (!self->options.threaded)
        status = create_chunks(self, &self->own, chunks->size, chunks->takers);
    if (status == LEAT_OK && has_thread(self))
        status = create_chunks(self, &self->ahead, chunks->ahead_size,
                               chunks->ahead);
    if (status == LEAT_OK && has_thread(self))
        status = create_queues(self);
    pthread_mutex_lock(&self->lock);
    if (atomic_load(&self->cancelled) && status == LEAT_OK)
        status = leat_error(LEAT_ECANCELLED, "the layer was cancelled");
    pthread_mutex_unlock(&self->lock);
    self->thread.owner = self->options.owner;
    if (status == LEAT_OK && has_thread(self))
        status =
            leat__thread_start(&self->thread, "leat-reader", produce, self);
    return status;
}

/* What the thread has filled. */
static int take_filled(leat__data_reader *self, leat__chunk **out)
{
    void *item;
    int status = leat__queue_pop(self->full, &item, 0);
    if (status == LEAT_OK)
        *out = item;
    return status;
}

/* The taker fills its own, and probes whether the thread is to go on. */
static int take_own(leat__data_reader *self, int taker, leat__chunk **out)
{
    if (atomic_load(&self->cancelled))
        return LEAT_ECANCELLED;
    leat__chunk *chunk = *out = self->own.chunk[taker];
    leat__chunk_source_fill(&self->source, chunk, false);
    if (is_other_turn(self, chunk->begun))
        hand_to_thread(self);
    return LEAT_OK;
}

int leat__data_reader_take(leat__data_reader *self, int taker,
                           leat__chunk **out, int64_t *ticket)
{
    int status = LEAT_OK;
    if (self->taken_previews < self->previewed.n) {
        *out = self->previewed.chunk[self->taken_previews++];
    } else if (self->drained) {
        return take_own(self, taker, out);
    } else {
        *ticket = leat__event_count_ticket(&self->input);
        int is_threaded =
            atomic_load_explicit(&self->is_threaded, memory_order_acquire);
        status = take_filled(self, out);
        self->drained = status == LEAT_AGAIN && !is_threaded;
        if (self->drained)
            return take_own(self, taker, out);
    }
    if (status == LEAT_OK)
        (*out)->begun = (*out)->claimed = leat__clock_now();
    return status;
}

int leat__data_reader_wait(leat__data_reader *self, int64_t ticket)
{
    return leat__event_count_wait(&self->input, ticket, LEAT__FOREVER);
}

void leat__data_reader_read(leat__data_reader *self, leat__chunk *chunk)
{
    leat__chunk_read(chunk, self->reader, self->options.source.collects);
}

void leat__data_reader_give(leat__data_reader *self, leat__chunk *chunk)
{
    /* A queue has room for all its chunks: only a closed one refuses. */
    if (chunk->is_queued)
        (void)leat__queue_push(self->free, chunk);
}

bool leat__data_reader_can_reread(const leat__data_reader *self)
{
    return self->count > 0;
}

int leat__data_reader_read_neighbor(leat__data_reader *self, int step,
                                    int64_t *epoch, int64_t *index,
                                    leat_sample *sample)
{
    int64_t position = *epoch * self->count + *index + step;
    if (position < 0)
        return LEAT_END;
    *epoch = position / self->count;
    *index = position % self->count;
    sample->from.epoch = *epoch;
    int got;
    int status = leat_reader_read_at(self->reader, index, &sample, 1, &got);
    sample->from.epoch = *epoch;
    sample->from.position = *index;
    return status;
}

void leat__data_reader_cancel(leat__data_reader *self)
{
    if (self->reader)
        leat_reader_cancel(self->reader);
    pthread_mutex_lock(&self->lock);
    atomic_store(&self->cancelled, 1);
    pthread_cond_broadcast(&self->turn);
    if (self->free)
        leat__queue_close(self->free);
    if (self->full)
        leat__queue_close(self->full);
    pthread_mutex_unlock(&self->lock);
    leat__event_count_close(&self->input);
}

static void add_reading(const chunk_list *list, int64_t *bytes, int64_t *busy)
{
    for (int i = 0; i < list->n; i++) {
        *bytes += atomic_load(&list->chunk[i]->bytes);
        *busy += atomic_load(&list->chunk[i]->busy);
    }
}

bool leat__data_reader_is_filling(const leat__data_reader *self)
{
    return atomic_load_explicit(&self->source.is_filling, memory_order_relaxed);
}

void leat__data_reader_stats(const leat__data_reader *self,
                             leat_stage_stats *out)
{
    int64_t bytes = atomic_load(&self->source.bytes);
    int64_t busy = atomic_load(&self->source.busy);
    add_reading(&self->ahead, &bytes, &busy);
    add_reading(&self->own, &bytes, &busy);
    add_reading(&self->previewed, &bytes, &busy);
    *out = (leat_stage_stats){
        .name = "reader",
        .threads = atomic_load(&self->is_threaded),
        .items = atomic_load(&self->source.items),
        .bytes = bytes,
        .busy = (double)busy * 1e-9,
        .blocked_full = leat__counter_seconds(&self->blocked_full),
    };
}
