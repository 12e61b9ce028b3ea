/*
 * DESIGN. A data reader owns the open reader and the place in the sequence. It
 * fills runs: boxes for consecutive samples of one batch, which travel from the
 * free queue through whoever fills them to a worker and back.
 *
 * Four ways to fill, the same bytes each time. Threaded: a producer thread
 * fills runs ahead and pushes them into the full queue. Merged: take fills the
 * run on the caller's thread. Located: take only asks the reader where the
 * run's samples lie, which is quick, and the worker reads them itself, in
 * parallel with the others. Random access: take only notes which they are. With
 * a thread it is that which tells the reader ahead what each batch will read.
 *
 * The place (everything below "the filler's") belongs to the producer thread
 * when there is one, else to the caller of take; callers of take are serialised
 * by the prefetcher's claim lock. The queues have their own locks, under which
 * no other is taken; `lock` only keeps cancel and start apart. Stopping: cancel
 * closes both queues and cancels the reader, so nobody stays blocked; destroy
 * joins the thread before it frees.
 */
#include "layer/data_reader.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/queue.h"
#include "base/random.h"
#include "base/thread.h"
#include "readers/pipeline.h"

#include <stdatomic.h>
#include <string.h>

/* Pointers handed to one call of next, dropped samples included. */
#define LOOKAHEAD 256

struct leat__data_reader {
    leat__data_reader_options options;
    leat_reader *reader;
    int random_access;
    int locates;   /* finding samples is serial, reading them is not */
    int64_t count; /* samples in an epoch; with random access */
    int64_t back;  /* the same where samples can be read again; else 0 */
    leat__queue *free;
    leat__queue *full;
    int run_size;
    leat__run **runs; /* all of them, for freeing */
    int nruns;
    leat__run **peeked; /* of one sample each, before all others */
    int npeeked;
    pthread_mutex_t lock;
    int cancelled; /* protected by lock, as is making and closing the queues */
    leat__thread thread;

    /* the filler's */
    leat__place window; /* where the current batch begins */
    int in_batch;       /* samples of it handed out */
    int64_t cursor;     /* global position of the reader's next record */
    int64_t epoch;      /* of that record */
    int64_t index;
    int64_t skip; /* records between the cursor and our next sample */
    int stuck;    /* the status after which nothing comes; 0: running */
    char stuck_line[LEAT__ERROR_MAX];
    leat_sample dropped; /* box for other ranks' records */
    leat__mt19937 generator;
    int taken_peeks; /* of those peeked, how many were taken */

    /* written by the filler or a worker, read by anybody */
    atomic_int_fast64_t items;
    atomic_int_fast64_t bytes;
    atomic_int_fast64_t busy;
    atomic_int_fast64_t blocked_full;
    atomic_int is_filling;
};

static void run_destroy(leat__run *run, int capacity)
{
    if (!run)
        return;
    for (int i = 0; run->sample && i < capacity; i++) {
        leat_sample_finish(run->sample[i]);
        leat__free(run->sample[i]);
    }
    leat__free(run->sample);
    leat__free(run->index);
    leat__free(run->locator);
    leat__free(run->epoch);
    leat__free(run->draws);
    leat__bad_list_finish(&run->bad);
    leat__free(run);
}

static int run_create(leat__run **out, int capacity,
                      const leat__data_reader_options *options)
{
    size_t n = (size_t)capacity;
    leat__run *run = leat__alloc_zero(1, sizeof(*run));
    if (!run)
        return LEAT_ENOMEM;
    run->sample = leat__alloc_zero(n, sizeof(*run->sample));
    run->index = leat__alloc_zero(n, sizeof(*run->index));
    run->locator = leat__alloc_zero(n, sizeof(*run->locator));
    run->epoch = leat__alloc_zero(n, sizeof(*run->epoch));
    run->draws =
        leat__alloc_zero(n * (size_t)options->draws, sizeof(*run->draws));
    if (!run->sample || !run->index || !run->locator || !run->epoch ||
        !run->draws)
        goto fail;
    for (int i = 0; i < capacity; i++) {
        run->sample[i] = leat__alloc_zero(1, sizeof(**run->sample));
        if (!run->sample[i])
            goto fail;
        leat_sample_init(run->sample[i]);
        run->sample[i]->allocator = options->boxes;
    }
    *out = run;
    return LEAT_OK;

fail:
    run_destroy(run, capacity);
    return LEAT_ENOMEM;
}

static void destroy_runs(leat__data_reader *self)
{
    for (int i = 0; i < self->nruns; i++)
        run_destroy(self->runs[i], self->run_size);
    leat__free(self->runs);
    leat__queue_destroy(self->free);
    leat__queue_destroy(self->full);
    for (int i = 0; i < self->npeeked; i++)
        run_destroy(self->peeked[i], 1);
    leat__free(self->peeked);
}

static int create_runs(leat__data_reader *self, int run_size, int n)
{
    self->run_size = run_size;
    self->runs = leat__alloc_zero((size_t)n, sizeof(*self->runs));
    if (!self->runs)
        return LEAT_ENOMEM;
    pthread_mutex_lock(&self->lock);
    int status = leat__queue_create(&self->free, n);
    if (status == LEAT_OK)
        status = leat__queue_create(&self->full, n);
    pthread_mutex_unlock(&self->lock);
    while (status == LEAT_OK && self->nruns < n) {
        status = run_create(&self->runs[self->nruns], run_size, &self->options);
        if (status == LEAT_OK)
            leat__queue_push(self->free, self->runs[self->nruns++]);
    }
    return status;
}

/* Caffe's chain: the parent's second word seeds the transformer. */
static void seed_generator(leat__data_reader *self, int64_t samples_before)
{
    if (self->options.draws == 0)
        return;
    leat__mt19937_seed(&self->generator, self->options.seed);
    leat__mt19937_next(&self->generator);
    uint32_t seed = leat__mt19937_next(&self->generator);
    leat__mt19937_seed(&self->generator, seed);
    for (int64_t i = 0; i < samples_before * self->options.draws; i++)
        leat__mt19937_next(&self->generator);
}

/* Stands at `start`, the beginning of a batch. The reader is fresh. */
static void go_to(leat__data_reader *self, const leat__place *start)
{
    int step = self->options.step;
    int64_t behind = start->position % step;
    int64_t wanted =
        start->position + (self->options.rank - behind + step) % step;
    self->window = *start;
    seed_generator(self, (wanted - self->options.rank) / step);
    if (start->position == 0 || self->random_access) {
        self->cursor = start->position;
        self->skip = wanted - start->position;
        if (self->random_access && self->count > 0) {
            self->epoch = start->position / self->count;
            self->index = start->position % self->count;
        }
        return;
    }
    self->epoch = start->epoch;
    self->skip = wanted - start->position;
    int64_t count;
    if (leat_reader_count(self->reader, &count) == LEAT_OK && count > 0 &&
        leat_reader_seek(self->reader, start->position % count) == LEAT_OK) {
        self->epoch = start->position / count;
        self->index = start->position % count;
        self->cursor = start->position;
        return;
    }
    /* Without seek the records before it are read and dropped. */
    self->cursor = start->position - start->index;
    self->skip += start->index;
}

static int is_random_access(const leat__data_reader *self)
{
    if (!leat_reader_is_random_access(self->reader))
        return 0;
    /* A file alone, in order, is walked faster than it is looked up. */
    return self->options.step > 1 ||
           leat__pipeline_has_upstream(self->options.pipeline);
}

int leat__data_reader_create(leat__data_reader **out,
                             const leat__data_reader_options *options,
                             const leat__place *start, leat_token *identity)
{
    leat__data_reader *self = leat__alloc_zero(1, sizeof(*self));
    if (!self)
        return LEAT_ENOMEM;
    self->options = *options;
    leat_sample_init(&self->dropped);
    self->dropped.allocator = options->boxes;
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
    self->random_access = is_random_access(self);
    self->locates = !self->random_access && !self->options.threaded &&
                    options->step == 1 && leat_reader_can_locate(self->reader);
    if (self->random_access)
        status = leat_reader_count(self->reader, &self->count);
    if (status == LEAT_OK && options->collects &&
        leat_reader_is_random_access(self->reader))
        status = leat_reader_count(self->reader, &self->back);
    if (status)
        goto fail;
    if (identity)
        status = leat_reader_restore(self->reader, identity);
    if (status)
        goto fail;
    go_to(self, start);
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
    leat_sample_finish(&self->dropped);
    leat_reader_close(self->reader);
    pthread_mutex_destroy(&self->lock);
    leat__free(self);
}

leat_reader *leat__data_reader_reader(leat__data_reader *self)
{
    return self->reader;
}

static void add(atomic_int_fast64_t *counter, int64_t value)
{
    atomic_fetch_add_explicit(counter, value, memory_order_relaxed);
}

static int64_t payload(const leat_sample *sample)
{
    int64_t bytes = 0;
    for (int i = 0; i < sample->nfields; i++)
        bytes += (int64_t)sample->field[i].bytes;
    return bytes;
}

/* Says which place a sample has. */
static void place_sample(leat__run *run, int i)
{
    run->sample[i]->from.epoch = run->epoch[i];
    run->sample[i]->from.position = run->index[i];
}

/* Notes the first failure of a run, or a bad record; the line is the thread's.
 */
static void fail_sample(leat__data_reader *self, leat__run *run, int i,
                        int status)
{
    place_sample(run, i);
    if (status == LEAT_EDATA && self->options.collects) {
        status = leat__bad_list_add(&run->bad, i, &run->sample[i]->from);
        if (status == LEAT_OK)
            return;
    }
    if (run->failed >= 0)
        return;
    run->failed = i;
    run->status = status;
    leat__error_save(run->line);
}

/* Nothing comes any more: the run ends its batch with this status. */
static void get_stuck(leat__data_reader *self, leat__run *run, int status)
{
    self->stuck = status;
    leat__error_save(self->stuck_line);
    run->last = 1;
    /* The samples of an unfinished batch come first, then the end. */
    if (status == LEAT_END && run->first + run->n > 0)
        return;
    if (run->failed < 0) {
        run->failed = run->n;
        run->status = status;
        leat__error_save(run->line);
    }
}

/* One record passed: ours or another rank's. Returns our place, or -1. */
static int pass_record(leat__data_reader *self, leat__run *run)
{
    int64_t index = self->index++;
    self->cursor++;
    if (self->skip > 0) {
        self->skip--;
        return -1;
    }
    int i = run->n++;
    run->index[i] = index;
    run->epoch[i] = self->epoch;
    self->skip = self->options.step - 1;
    return i;
}

/* Boxes for the next records, in order: ours, and one to drop the rest in. */
static int line_up(const leat__data_reader *self, leat__run *run, int want,
                   leat_sample *out[LOOKAHEAD])
{
    int n = 0;
    int64_t skip = self->skip;
    for (int next = run->n; next < want && n < LOOKAHEAD; n++) {
        if (skip > 0) {
            out[n] = (leat_sample *)(uintptr_t)&self->dropped;
            skip--;
        } else {
            out[n] = run->sample[next++];
            skip = self->options.step - 1;
        }
    }
    return n;
}

static int next_epoch(leat__data_reader *self)
{
    if (self->index == 0)
        return leat_error(LEAT_EFORMAT, "%s: there are no samples in it",
                          leat_pipeline_text(self->options.pipeline));
    int status = leat_reader_reset(self->reader);
    if (status == LEAT_OK) {
        self->epoch++;
        self->index = 0;
    }
    /* A single pass is all there is. */
    return status == LEAT_EUNSUPPORTED ? LEAT_END : status;
}

/* At the end of an epoch into the next one; 0: nothing comes any more. */
static int go_on(leat__data_reader *self, leat__run *run, int status)
{
    if (status == LEAT_END)
        status = next_epoch(self);
    if (status)
        get_stuck(self, run, status);
    return status == LEAT_OK;
}

static void fill_in_order(leat__data_reader *self, leat__run *run, int want)
{
    leat_sample *out[LOOKAHEAD];
    while (run->n < want) {
        int n = line_up(self, run, want, out);
        int got;
        int status = leat_reader_next_batch(self->reader, out, n, &got);
        int64_t bytes = 0;
        for (int k = 0; k < got; k++) {
            int i = pass_record(self, run);
            if (i < 0)
                continue;
            place_sample(run, i);
            bytes += payload(run->sample[i]);
        }
        add(&self->bytes, bytes);
        if (status == LEAT_EDATA) {
            int i = pass_record(self, run);
            if (i >= 0)
                fail_sample(self, run, i, status);
        } else if (status && !go_on(self, run, status)) {
            return;
        }
    }
}

/* Only where the samples lie; those before ours are passed by. */
static void fill_by_locating(leat__data_reader *self, leat__run *run, int want)
{
    run->unread = 1;
    while (run->n < want) {
        int n = want - run->n;
        if (self->skip > 0 && self->skip < n)
            n = (int)self->skip;
        int got;
        int status =
            leat_reader_locate(self->reader, run->locator + run->n, n, &got);
        for (int k = 0; k < got; k++)
            pass_record(self, run);
        if (status && !go_on(self, run, status))
            return;
    }
}

/* Tells the reader which samples the batch that begins here takes. */
static void advise(leat__data_reader *self)
{
    int64_t index[LOOKAHEAD];
    int64_t at = self->index + self->skip;
    for (int done = 0; done < self->options.batch_size;) {
        int n = 0;
        for (; n < LOOKAHEAD && done < self->options.batch_size; n++, done++) {
            index[n] = at % self->count;
            at += self->options.step;
        }
        leat_reader_advise(self->reader, index, n);
    }
}

static void fill_by_index(leat__data_reader *self, leat__run *run, int want)
{
    if (self->count == 0) {
        get_stuck(self, run, next_epoch(self));
        return;
    }
    if (self->options.threaded && self->in_batch == 0)
        advise(self);
    while (run->n < want) {
        int64_t ahead = self->index + self->skip;
        self->epoch += ahead / self->count;
        self->index = ahead % self->count;
        self->cursor += self->skip;
        self->skip = 0;
        pass_record(self, run);
    }
    run->unread = 1;
}

static void draw_words(leat__data_reader *self, leat__run *run)
{
    for (int i = 0; i < run->n * self->options.draws; i++)
        run->draws[i] = leat__mt19937_next(&self->generator);
}

/* The place behind the batch, where every rank stands after it. */
static void end_batch(leat__data_reader *self, leat__run *run)
{
    self->window.position +=
        (int64_t)self->options.batch_size * self->options.step;
    self->window.epoch = self->epoch;
    self->window.index = self->index + self->window.position - self->cursor;
    run->last = 1;
    run->after = self->window;
    self->in_batch = 0;
}

/* Nothing follows: whoever resumes here finds the end again. */
static void end_pass(leat__data_reader *self, leat__run *run)
{
    self->window.position += (int64_t)self->in_batch * self->options.step;
    self->window.epoch = self->epoch;
    self->window.index = self->index;
    run->after = self->window;
    self->in_batch = 0;
}

static void fill(leat__data_reader *self, leat__run *run, int capacity)
{
    int room = self->options.batch_size - self->in_batch;
    int want = room < capacity ? room : capacity;
    run->first = self->in_batch;
    run->n = 0;
    run->last = 0;
    run->failed = -1;
    run->status = LEAT_OK;
    run->unread = 0;
    run->bad.n = 0;
    run->batch = NULL;
    run->taken = NULL;
    run->handed = NULL;
    run->after = self->window;
    if (self->stuck) {
        run->last = 1;
        run->failed = 0;
        run->status = self->stuck;
        memcpy(run->line, self->stuck_line, sizeof(run->line));
        return;
    }
    int64_t begin = leat__clock_now();
    atomic_store_explicit(&self->is_filling, 1, memory_order_relaxed);
    if (self->random_access)
        fill_by_index(self, run, want);
    else if (self->locates)
        fill_by_locating(self, run, want);
    else
        fill_in_order(self, run, want);
    atomic_store_explicit(&self->is_filling, 0, memory_order_relaxed);
    draw_words(self, run);
    self->in_batch += run->n;
    if (self->in_batch == self->options.batch_size)
        end_batch(self, run);
    else if (run->last)
        end_pass(self, run);
    add(&self->items, run->n);
    add(&self->busy, leat__clock_now() - begin);
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
    int status = run_create(out, 1, &self->options);
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
    fill(self, run, 1);
    leat__data_reader_read(self, run);
    if (run->n == 0 || run->failed == 0)
        return leat_error(self->stuck ? self->stuck : run->status, "%s",
                          self->stuck ? self->stuck_line : run->line);
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
        add(&self->blocked_full, leat__clock_now() - begin);
        leat__run *run = item;
        /* One run more than the one that got stuck: the layer's last batch. */
        stuck = self->stuck;
        fill(self, run, self->run_size);
        if (leat__queue_push(self->full, run))
            break;
    }
    return NULL;
}

int leat__data_reader_start(leat__data_reader *self, int run_size, int runs)
{
    int status = create_runs(self, run_size, runs);
    pthread_mutex_lock(&self->lock);
    if (self->cancelled && status == LEAT_OK)
        status = leat_error(LEAT_ECANCELLED, "the layer was cancelled");
    pthread_mutex_unlock(&self->lock);
    if (status == LEAT_OK && self->options.threaded)
        status =
            leat__thread_start(&self->thread, "leat-reader", produce, self);
    return status;
}

static int was_taken_by(const void *run, const void *who)
{
    return ((const leat__run *)run)->taker == who;
}

int leat__data_reader_take(leat__data_reader *self, const void *who,
                           leat__run **out)
{
    if (self->taken_peeks < self->npeeked) {
        *out = self->peeked[self->taken_peeks++];
        return LEAT_OK;
    }
    void *item;
    int status = self->options.threaded
                     ? leat__queue_pop(self->full, &item, 0)
                     : leat__queue_pick(self->free, &item, was_taken_by, who);
    if (status)
        return status;
    *out = item;
    (*out)->taker = who;
    if (!self->options.threaded)
        fill(self, *out, self->run_size);
    return LEAT_OK;
}

int leat__data_reader_wait(leat__data_reader *self)
{
    return leat__queue_wait(self->options.threaded ? self->full : self->free,
                            LEAT__FOREVER);
}

static void read_samples(leat__data_reader *self, leat__run *run)
{
    int i = 0;
    for (int k = 0; k < run->n; k++)
        run->sample[k]->from.epoch = run->epoch[k];
    while (i < run->n) {
        int got;
        int status =
            self->locates
                ? leat_reader_read_located(self->reader, run->locator + i,
                                           run->sample + i, run->n - i, &got)
                : leat_reader_read_at(self->reader, run->index + i,
                                      run->sample + i, run->n - i, &got);
        i += got;
        if (status == LEAT_EDATA) {
            fail_sample(self, run, i++, status);
        } else if (status) {
            fail_sample(self, run, i, status);
            return;
        }
    }
}

void leat__data_reader_read(leat__data_reader *self, leat__run *run)
{
    if (!run->unread)
        return;
    int64_t begin = leat__clock_now();
    run->unread = 0;
    read_samples(self, run);
    int64_t bytes = 0;
    int bad = 0;
    for (int i = 0; i < run->n && run->failed < 0; i++) {
        place_sample(run, i);
        if (bad < run->bad.n && run->bad.item[bad].place == i)
            bad++;
        else
            bytes += payload(run->sample[i]);
    }
    add(&run->bytes, bytes);
    add(&run->busy, leat__clock_now() - begin);
}

void leat__data_reader_give(leat__data_reader *self, leat__run *run)
{
    /* A queue has room for all its runs: only a closed one refuses. */
    if (!run->is_peeked)
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
    self->cancelled = 1;
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
    return atomic_load_explicit(&self->is_filling, memory_order_relaxed);
}

void leat__data_reader_stats(const leat__data_reader *self,
                             leat_stage_stats *out)
{
    int64_t bytes = atomic_load(&self->bytes);
    int64_t busy = atomic_load(&self->busy);
    add_reading(self->runs, self->nruns, &bytes, &busy);
    add_reading(self->peeked, self->npeeked, &bytes, &busy);
    *out = (leat_stage_stats){
        .name = "reader",
        .threads = self->options.threaded,
        .items = atomic_load(&self->items),
        .bytes = bytes,
        .busy = (double)busy * 1e-9,
        .blocked_full = (double)atomic_load(&self->blocked_full) * 1e-9,
    };
}
