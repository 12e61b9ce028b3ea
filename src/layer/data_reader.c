/*
 * DESIGN. A data reader owns the open reader and the place in the sequence, a
 * filler. That fills runs: boxes for consecutive samples of one batch.
 *
 * Four ways to fill, the same bytes each time. Threaded: a producer thread
 * fills runs ahead; they travel from the free queue through it and the full
 * queue to a worker, and back. In the others there are no queues: each taker
 * has a run of its own, which no other core's cache knows. Merged: take fills
 * it on the caller's thread. Located: take only asks the reader where the run's
 * samples lie, which is quick, and the worker reads them itself, in parallel
 * with the others. Random access: take only notes which they are; this one may
 * have the thread, too, which tells the reader ahead what each batch will read.
 *
 * The filler, and the place with it, belongs to the producer thread when there
 * is one, else to the caller of take; callers of take are serialised by the
 * prefetcher's claim lock. The queues have their own locks, under which no
 * other is taken; `lock` only keeps cancel and start apart. Stopping: cancel
 * closes both queues and cancels the reader, so nobody stays blocked; destroy
 * joins the thread before it frees.
 */
#include "layer/data_reader.h"
#include "base/clock.h"
#include "base/counter.h"
#include "base/memory.h"
#include "base/queue.h"
#include "base/thread.h"
#include "layer/filler.h"

struct leat__data_reader {
    leat__data_reader_options options;
    leat_reader *reader;
    int64_t back; /* samples in an epoch, where they can be read again; or 0 */
    leat__queue *free;
    leat__queue *full;
    int run_size;
    leat__run **runs; /* all of them; without a thread, taker i has run i */
    int nruns;
    leat__run **peeked; /* of one sample each, before all others */
    int npeeked;
    pthread_mutex_t lock;
    atomic_int cancelled; /* set under lock, as queues are made and closed */
    leat__thread thread;

    leat__filler filler; /* the filling thread's */
    int taken_peeks;     /* of those peeked; of who calls take */

    atomic_int_fast64_t blocked_full; /* read by anybody */
};

static void destroy_runs(leat__data_reader *self)
{
    for (int i = 0; i < self->nruns; i++)
        leat__run_destroy(self->runs[i], self->run_size);
    leat__free(self->runs);
    leat__queue_destroy(self->free);
    leat__queue_destroy(self->full);
    for (int i = 0; i < self->npeeked; i++)
        leat__run_destroy(self->peeked[i], 1);
    leat__free(self->peeked);
}

/* What samples need of boxes, as far as those that were peeked at tell. */
static size_t measure_boxes(const leat__data_reader *self)
{
    size_t most = 0;
    for (int i = 0; i < self->npeeked; i++) {
        const leat_sample *sample = self->peeked[i]->sample[0];
        most = sample->box_size > most ? sample->box_size : most;
    }
    return most;
}

/* A run may be wanted first long after the others: its boxes are made now. */
static int create_runs(leat__data_reader *self, int run_size, int n)
{
    size_t box_bytes = measure_boxes(self);
    int status = LEAT_OK;
    self->run_size = run_size;
    self->runs = leat__alloc_zero((size_t)n, sizeof(*self->runs));
    if (!self->runs)
        return LEAT_ENOMEM;
    while (status == LEAT_OK && self->nruns < n) {
        status = leat__run_create(&self->runs[self->nruns], run_size,
                                  self->options.draws, self->options.boxes);
        if (status == LEAT_OK)
            status = leat__run_reserve(self->runs[self->nruns++], run_size,
                                       box_bytes);
    }
    return status;
}

/* With all runs in the free one. */
static int create_queues(leat__data_reader *self)
{
    pthread_mutex_lock(&self->lock);
    int status = leat__queue_create(&self->free, self->nruns);
    if (status == LEAT_OK)
        status = leat__queue_create(&self->full, self->nruns);
    pthread_mutex_unlock(&self->lock);
    for (int i = 0; i < self->nruns && status == LEAT_OK; i++)
        leat__queue_push(self->free, self->runs[i]);
    return status;
}

int leat__data_reader_create(leat__data_reader **out,
                             const leat__data_reader_options *options,
                             const leat__place *start, leat_token *identity)
{
    leat__data_reader *self = leat__alloc_zero(1, sizeof(*self));
    if (!self)
        return LEAT_ENOMEM;
    self->options = *options;
    int status = leat__mutex_init(&self->lock);
    if (status) {
        leat__free(self);
        return status;
    }
    status = leat_pipeline_open(options->pipeline, &self->reader);
    if (status)
        goto fail;
    if (options->probe && leat_reader_may_block(self->reader))
        self->options.threaded = 1;
    status = leat__filler_init(&self->filler, self->reader, &self->options);
    if (status == LEAT_OK && options->collects &&
        leat_reader_is_random_access(self->reader))
        status = leat_reader_count(self->reader, &self->back);
    if (status)
        goto fail;
    if (identity)
        status = leat_reader_restore(self->reader, identity);
    if (status)
        goto fail;
    leat__filler_go_to(&self->filler, start);
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
    destroy_runs(self);
    leat__filler_finish(&self->filler);
    leat_reader_close(self->reader);
    pthread_mutex_destroy(&self->lock);
    leat__free(self);
}

leat_reader *leat__data_reader_reader(leat__data_reader *self)
{
    return self->reader;
}

int leat__data_reader_is_threaded(const leat__data_reader *self)
{
    return self->options.threaded;
}

static int add_peek(leat__data_reader *self, leat__run **out)
{
    if (!self->peeked)
        self->peeked = leat__alloc_zero(LEAT__PEEKS_MAX, sizeof(leat__run *));
    if (!self->peeked)
        return LEAT_ENOMEM;
    if (self->npeeked == LEAT__PEEKS_MAX)
        return leat_error(LEAT_EINVAL, "%d samples were looked at already",
                          LEAT__PEEKS_MAX);
    int status =
        leat__run_create(out, 1, self->options.draws, self->options.boxes);
    if (status)
        return status;
    (*out)->is_peeked = 1;
    self->peeked[self->npeeked++] = *out;
    return LEAT_OK;
}

int leat__data_reader_peek(leat__data_reader *self, const leat_sample **out)
{
    leat__run *run;
    int status = add_peek(self, &run);
    if (status)
        return status;
    leat__filler_fill(&self->filler, run, 1);
    leat__data_reader_read(self, run);
    if (run->n == 0 || run->failed == 0)
        return leat_error(
            self->filler.stuck ? self->filler.stuck : run->status, "%s",
            self->filler.stuck ? self->filler.stuck_line : run->line);
    if (run->bad.n > 0)
        return leat_error(LEAT_EDATA, "%s", run->bad.item[0].line);
    *out = run->sample[0];
    return LEAT_OK;
}

static void *produce(void *argument)
{
    leat__data_reader *self = argument;
    void *item;
    int stuck = 0;
    while (!stuck) {
        int64_t begin = leat__clock_now();
        if (leat__queue_pop(self->free, &item, LEAT__FOREVER))
            break;
        leat__counter_add_alone(&self->blocked_full, leat__clock_now() - begin);
        leat__run *run = item;
        /* One run more than the one that got stuck: the layer's last batch. */
        stuck = self->filler.stuck;
        leat__filler_fill(&self->filler, run, self->run_size);
        if (leat__queue_push(self->full, run))
            break;
    }
    return NULL;
}

int leat__data_reader_start(leat__data_reader *self, int run_size, int takers,
                            int ahead)
{
    int threaded = self->options.threaded;
    int status = create_runs(self, run_size, threaded ? ahead : takers);
    if (status == LEAT_OK && threaded)
        status = create_queues(self);
    pthread_mutex_lock(&self->lock);
    if (atomic_load(&self->cancelled) && status == LEAT_OK)
        status = leat_error(LEAT_ECANCELLED, "the layer was cancelled");
    pthread_mutex_unlock(&self->lock);
    if (status == LEAT_OK && threaded)
        status =
            leat__thread_start(&self->thread, "leat-reader", produce, self);
    return status;
}

/* What the thread has filled. */
static int take_filled(leat__data_reader *self, leat__run **out)
{
    void *item;
    int status = leat__queue_pop(self->full, &item, 0);
    if (status == LEAT_OK)
        *out = item;
    return status;
}

static int take_ready(leat__data_reader *self, leat__run **out)
{
    int status = LEAT_OK;
    if (self->taken_peeks < self->npeeked)
        *out = self->peeked[self->taken_peeks++];
    else
        status = take_filled(self, out);
    if (status == LEAT_OK)
        (*out)->begun = leat__clock_now();
    return status;
}

int leat__data_reader_take(leat__data_reader *self, int taker, leat__run **out)
{
    if (self->taken_peeks < self->npeeked || self->options.threaded)
        return take_ready(self, out);
    if (atomic_load(&self->cancelled))
        return LEAT_ECANCELLED;
    *out = self->runs[taker];
    leat__filler_fill(&self->filler, *out, self->run_size);
    return LEAT_OK;
}

int leat__data_reader_wait(leat__data_reader *self)
{
    return leat__queue_wait(self->full, LEAT__FOREVER);
}

void leat__data_reader_read(leat__data_reader *self, leat__run *run)
{
    if (run->unread)
        leat__run_read(run, self->reader, self->filler.locates,
                       self->options.collects);
}

void leat__data_reader_give(leat__data_reader *self, leat__run *run)
{
    /* A queue has room for all its runs: only a closed one refuses. */
    if (self->options.threaded && !run->is_peeked)
        (void)leat__queue_push(self->free, run);
}

int leat__data_reader_looks_back(const leat__data_reader *self)
{
    return self->back > 0;
}

int leat__data_reader_read_beside(leat__data_reader *self, int way,
                                  int64_t *epoch, int64_t *index,
                                  leat_sample *sample)
{
    int64_t position = *epoch * self->back + *index + way;
    if (position < 0)
        return LEAT_END;
    *epoch = position / self->back;
    *index = position % self->back;
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
    if (self->free)
        leat__queue_close(self->free);
    if (self->full)
        leat__queue_close(self->full);
    pthread_mutex_unlock(&self->lock);
}

static void add_reading(leat__run *const run[], int n, int64_t *bytes,
                        int64_t *busy)
{
    for (int i = 0; i < n; i++) {
        *bytes += atomic_load(&run[i]->bytes);
        *busy += atomic_load(&run[i]->busy);
    }
}

int leat__data_reader_is_filling(const leat__data_reader *self)
{
    return atomic_load_explicit(&self->filler.is_filling, memory_order_relaxed);
}

void leat__data_reader_stats(const leat__data_reader *self,
                             leat_stage_stats *out)
{
    int64_t bytes = atomic_load(&self->filler.bytes);
    int64_t busy = atomic_load(&self->filler.busy);
    add_reading(self->runs, self->nruns, &bytes, &busy);
    add_reading(self->peeked, self->npeeked, &bytes, &busy);
    *out = (leat_stage_stats){
        .name = "reader",
        .threads = self->options.threaded,
        .items = atomic_load(&self->filler.items),
        .bytes = bytes,
        .busy = (double)busy * 1e-9,
        .blocked_full = leat__counter_seconds(&self->blocked_full),
    };
}
