#include "layer/filler.h"
#include "base/clock.h"
#include "base/counter.h"
#include "base/trace.h"
#include "pipeline/pipeline.h"

#include <string.h>

/* Pointers handed to one call of next, dropped samples included. */
#define LOOKAHEAD 256

static int is_random_access(const leat__filler *self)
{
    if (!leat_reader_is_random_access(self->reader))
        return 0;
    /* A file alone, in order, is walked faster than it is looked up. */
    return self->options->step > 1 ||
           leat__pipeline_has_upstream(self->options->pipeline);
}

int leat__filler_init(leat__filler *self, leat_reader *reader,
                      const leat__data_reader_options *options)
{
    self->options = options;
    self->reader = reader;
    leat_sample_init(&self->dropped);
    self->dropped.allocator = options->boxes;
    self->random_access = is_random_access(self);
    self->locates = !self->random_access && options->step == 1 &&
                    leat_reader_can_locate(reader);
    if (!self->random_access)
        return LEAT_OK;
    return leat_reader_count(reader, &self->count);
}

void leat__filler_finish(leat__filler *self)
{
    leat_sample_finish(&self->dropped);
}

/* Caffe's chain: the parent's second word seeds the transformer. */
static void seed_generator(leat__filler *self, int64_t samples_before)
{
    if (self->options->draws == 0)
        return;
    leat__mt19937_seed(&self->generator, self->options->seed);
    leat__mt19937_next(&self->generator);
    uint32_t seed = leat__mt19937_next(&self->generator);
    leat__mt19937_seed(&self->generator, seed);
    leat__mt19937_skip(&self->generator, (uint64_t)samples_before *
                                             (uint64_t)self->options->draws);
}

void leat__filler_go_to(leat__filler *self, const leat__place *start)
{
    int step = self->options->step;
    int64_t behind = start->position % step;
    int64_t wanted =
        start->position + (self->options->rank - behind + step) % step;
    self->window = *start;
    seed_generator(self, (wanted - self->options->rank) / step);
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

/* Nothing comes any more: the run ends its batch with this status. */
static void get_stuck(leat__filler *self, leat__run *run, int status)
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
static int pass_record(leat__filler *self, leat__run *run)
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
    self->skip = self->options->step - 1;
    return i;
}

/* Records before ours. */
static void pass_by(leat__filler *self, int n)
{
    self->index += n;
    self->cursor += n;
    self->skip -= n;
}

/* Records of which each is ours. */
static void take_records(leat__filler *self, leat__run *run, int n)
{
    for (int k = 0; k < n; k++) {
        run->index[run->n + k] = self->index + k;
        run->epoch[run->n + k] = self->epoch;
    }
    run->n += n;
    self->index += n;
    self->cursor += n;
}

/* Boxes for the next records, in order: ours, and one to drop the rest in. */
static int line_up(const leat__filler *self, leat__run *run, int want,
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
            skip = self->options->step - 1;
        }
    }
    return n;
}

static int next_epoch(leat__filler *self)
{
    if (self->index == 0)
        return leat_error(LEAT_EFORMAT, "%s: there are no samples in it",
                          leat_pipeline_text(self->options->pipeline));
    int status = leat_reader_reset(self->reader);
    if (status == LEAT_OK) {
        self->epoch++;
        self->index = 0;
    }
    /* A single pass is all there is. */
    return status == LEAT_EUNSUPPORTED ? LEAT_END : status;
}

/* At the end of an epoch into the next one; 0: nothing comes any more. */
static int go_on(leat__filler *self, leat__run *run, int status)
{
    if (status == LEAT_END)
        status = next_epoch(self);
    if (status)
        get_stuck(self, run, status);
    return status == LEAT_OK;
}

static void fill_in_order(leat__filler *self, leat__run *run, int want)
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
            leat__run_place(run, i);
            bytes += leat__run_payload(run, i);
        }
        leat__counter_add_alone(&self->bytes, bytes);
        if (status == LEAT_EDATA) {
            int i = pass_record(self, run);
            if (i >= 0)
                leat__run_fail(run, i, status, self->options->collects);
        } else if (status && !go_on(self, run, status)) {
            return;
        }
    }
}

/* Only where the samples lie; those before ours are passed by. */
static void fill_by_locating(leat__filler *self, leat__run *run, int want)
{
    run->unread = run->is_located = 1;
    while (run->n < want) {
        int n = want - run->n;
        int is_behind = self->skip > 0;
        if (is_behind && self->skip < n)
            n = (int)self->skip;
        int got;
        int status =
            leat_reader_locate(self->reader, run->locator + run->n, n, &got);
        if (is_behind)
            pass_by(self, got);
        else
            take_records(self, run, got);
        if (status && !go_on(self, run, status))
            return;
    }
}

/* Tells the reader which samples the batch that begins here takes. */
static void advise(leat__filler *self)
{
    int64_t index[LOOKAHEAD];
    int64_t at = self->index + self->skip;
    for (int done = 0; done < self->options->batch_size;) {
        int n = 0;
        for (; n < LOOKAHEAD && done < self->options->batch_size; n++, done++) {
            index[n] = at % self->count;
            at += self->options->step;
        }
        leat_reader_advise(self->reader, index, n);
    }
}

static void fill_by_index(leat__filler *self, leat__run *run, int want,
                          int ahead)
{
    if (self->count == 0) {
        get_stuck(self, run, next_epoch(self));
        return;
    }
    if (ahead && self->in_batch == 0)
        advise(self);
    while (run->n < want) {
        int64_t at = self->index + self->skip;
        self->epoch += at / self->count;
        self->index = at % self->count;
        self->cursor += self->skip;
        self->skip = 0;
        pass_record(self, run);
    }
    run->unread = 1;
}

static void draw_words(leat__filler *self, leat__run *run)
{
    for (int i = 0; i < run->n * self->options->draws; i++)
        run->draws[i] = leat__mt19937_next(&self->generator);
}

/* The place behind the batch, where every rank stands after it. */
static void end_batch(leat__filler *self, leat__run *run)
{
    self->window.position +=
        (int64_t)self->options->batch_size * self->options->step;
    self->window.epoch = self->epoch;
    self->window.index = self->index + self->window.position - self->cursor;
    run->last = 1;
    run->after = self->window;
    self->in_batch = 0;
}

/* Nothing follows: whoever resumes here finds the end again. */
static void end_pass(leat__filler *self, leat__run *run)
{
    self->window.position += (int64_t)self->in_batch * self->options->step;
    self->window.epoch = self->epoch;
    self->window.index = self->index;
    run->after = self->window;
    self->in_batch = 0;
}

void leat__filler_fill(leat__filler *self, leat__run *run, int ahead)
{
    int room = self->options->batch_size - self->in_batch;
    int want = room < run->capacity ? room : run->capacity;
    run->first = self->in_batch;
    run->n = 0;
    run->last = 0;
    run->failed = -1;
    run->status = LEAT_OK;
    run->unread = run->is_located = 0;
    run->bad.n = 0;
    run->batch = NULL;
    run->taken = NULL;
    run->handed = NULL;
    run->after = self->window;
    run->begun = run->claimed = leat__clock_now();
    if (self->stuck) {
        run->last = 1;
        run->failed = 0;
        run->status = self->stuck;
        memcpy(run->line, self->stuck_line, sizeof(run->line));
        return;
    }
    int64_t begin = run->begun;
    atomic_store_explicit(&self->is_filling, 1, memory_order_relaxed);
    leat__trace_begin(LEAT__SPAN_READ);
    if (self->random_access)
        fill_by_index(self, run, want, ahead);
    else if (self->locates && !ahead)
        fill_by_locating(self, run, want);
    else
        fill_in_order(self, run, want);
    leat__trace_end();
    atomic_store_explicit(&self->is_filling, 0, memory_order_relaxed);
    draw_words(self, run);
    self->in_batch += run->n;
    if (self->in_batch == self->options->batch_size)
        end_batch(self, run);
    else if (run->last)
        end_pass(self, run);
    leat__counter_add_alone(&self->items, run->n);
    /* The worker that reads what is unread goes on at once. */
    if (run->unread && !ahead)
        return;
    run->begun = leat__clock_now();
    leat__counter_add_alone(&self->busy, run->begun - begin);
}
