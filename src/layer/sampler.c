#include "layer/sampler.h"
#include "base/clock.h"
#include "base/counter.h"
#include "base/trace.h"
#include "pipeline/pipeline.h"

#include <string.h>

/* Pointers handed to one call of next, dropped samples included. */
#define LOOKAHEAD 256

static int is_random_access(const leat__sampler *self)
{
    if (!leat_reader_is_random_access(self->reader))
        return 0;
    /* A file alone, in order, is walked faster than it is looked up. */
    return self->options->step > 1 ||
           leat__pipeline_has_upstream(self->options->pipeline);
}

int leat__sampler_init(leat__sampler *self, leat_reader *reader,
                       const leat__data_reader_options *options)
{
    self->options = options;
    self->reader = reader;
    leat_sample_init(&self->dropped);
    self->dropped.allocator = options->buffers;
    self->random_access = is_random_access(self);
    self->locates = !self->random_access && options->step == 1 &&
                    leat_reader_can_locate(reader);
    if (!self->random_access)
        return LEAT_OK;
    return leat_reader_count(reader, &self->count);
}

void leat__sampler_finish(leat__sampler *self)
{
    leat_sample_finish(&self->dropped);
}

/* Caffe's chain: the parent's second word seeds the transformer. */
static void seed_generator(leat__sampler *self, int64_t samples_before)
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

void leat__sampler_go_to(leat__sampler *self, const leat__position *start)
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

/* Nothing comes any more: the chunk ends its batch with this status. */
static void get_stuck(leat__sampler *self, leat__chunk *chunk, int status)
{
    self->stuck = status;
    leat__error_save(self->stuck_line);
    chunk->last = 1;
    /* The samples of an unfinished batch come first, then the end. */
    if (status == LEAT_END && chunk->first + chunk->n > 0)
        return;
    if (chunk->failed < 0) {
        chunk->failed = chunk->n;
        chunk->status = status;
        leat__error_save(chunk->line);
    }
}

/* One record passed: ours or another rank's. Returns our place, or -1. */
static int pass_record(leat__sampler *self, leat__chunk *chunk)
{
    int64_t index = self->index++;
    self->cursor++;
    if (self->skip > 0) {
        self->skip--;
        return -1;
    }
    int i = chunk->n++;
    chunk->index[i] = index;
    chunk->epoch[i] = self->epoch;
    self->skip = self->options->step - 1;
    return i;
}

/* Records before ours. */
static void pass_by(leat__sampler *self, int n)
{
    self->index += n;
    self->cursor += n;
    self->skip -= n;
}

/* Records of which each is ours. */
static void take_records(leat__sampler *self, leat__chunk *chunk, int n)
{
    for (int k = 0; k < n; k++) {
        chunk->index[chunk->n + k] = self->index + k;
        chunk->epoch[chunk->n + k] = self->epoch;
    }
    chunk->n += n;
    self->index += n;
    self->cursor += n;
}

/* Buffers for the next records, in order: ours, and one to drop the rest in. */
static int line_up(const leat__sampler *self, leat__chunk *chunk, int want,
                   leat_sample *out[LOOKAHEAD])
{
    int n = 0;
    int64_t skip = self->skip;
    for (int next = chunk->n; next < want && n < LOOKAHEAD; n++) {
        if (skip > 0) {
            out[n] = (leat_sample *)(uintptr_t)&self->dropped;
            skip--;
        } else {
            out[n] = chunk->sample[next++];
            skip = self->options->step - 1;
        }
    }
    return n;
}

static int next_epoch(leat__sampler *self)
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
static int go_on(leat__sampler *self, leat__chunk *chunk, int status)
{
    if (status == LEAT_END)
        status = next_epoch(self);
    if (status)
        get_stuck(self, chunk, status);
    return status == LEAT_OK;
}

static void fill_in_order(leat__sampler *self, leat__chunk *chunk, int want)
{
    leat_sample *out[LOOKAHEAD];
    while (chunk->n < want) {
        int n = line_up(self, chunk, want, out);
        int got;
        int status = leat_reader_next_batch(self->reader, out, n, &got);
        int64_t bytes = 0;
        for (int k = 0; k < got; k++) {
            int i = pass_record(self, chunk);
            if (i < 0)
                continue;
            leat__chunk_place(chunk, i);
            bytes += leat__chunk_payload(chunk, i);
        }
        leat__counter_add_alone(&self->bytes, bytes);
        if (status == LEAT_EDATA) {
            int i = pass_record(self, chunk);
            if (i >= 0)
                leat__chunk_fail(chunk, i, status, self->options->collects);
        } else if (status && !go_on(self, chunk, status)) {
            return;
        }
    }
}

/* Only where the samples lie; those before ours are passed by. */
static void fill_by_locating(leat__sampler *self, leat__chunk *chunk, int want)
{
    chunk->unread = chunk->is_located = 1;
    while (chunk->n < want) {
        int n = want - chunk->n;
        int is_behind = self->skip > 0;
        if (is_behind && self->skip < n)
            n = (int)self->skip;
        int got;
        int status = leat_reader_locate(self->reader, chunk->locator + chunk->n,
                                        n, &got);
        if (is_behind)
            pass_by(self, got);
        else
            take_records(self, chunk, got);
        if (status && !go_on(self, chunk, status))
            return;
    }
}

/* Tells the reader which samples the batch that begins here takes. */
static void advise(leat__sampler *self)
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

static void fill_by_index(leat__sampler *self, leat__chunk *chunk, int want,
                          int ahead)
{
    if (self->count == 0) {
        get_stuck(self, chunk, next_epoch(self));
        return;
    }
    if (ahead && self->in_batch == 0)
        advise(self);
    while (chunk->n < want) {
        int64_t at = self->index + self->skip;
        self->epoch += at / self->count;
        self->index = at % self->count;
        self->cursor += self->skip;
        self->skip = 0;
        pass_record(self, chunk);
    }
    chunk->unread = 1;
}

static void draw_words(leat__sampler *self, leat__chunk *chunk)
{
    for (int i = 0; i < chunk->n * self->options->draws; i++)
        chunk->draws[i] = leat__mt19937_next(&self->generator);
}

/* The place behind the batch, where every rank stands after it. */
static void end_batch(leat__sampler *self, leat__chunk *chunk)
{
    self->window.position +=
        (int64_t)self->options->batch_size * self->options->step;
    self->window.epoch = self->epoch;
    self->window.index = self->index + self->window.position - self->cursor;
    chunk->last = 1;
    chunk->after = self->window;
    self->in_batch = 0;
}

/* Nothing follows: whoever resumes here finds the end again. */
static void end_pass(leat__sampler *self, leat__chunk *chunk)
{
    self->window.position += (int64_t)self->in_batch * self->options->step;
    self->window.epoch = self->epoch;
    self->window.index = self->index;
    chunk->after = self->window;
    self->in_batch = 0;
}

void leat__sampler_fill(leat__sampler *self, leat__chunk *chunk, int ahead)
{
    int room = self->options->batch_size - self->in_batch;
    int want = room < chunk->capacity ? room : chunk->capacity;
    chunk->first = self->in_batch;
    chunk->n = 0;
    chunk->last = 0;
    chunk->failed = -1;
    chunk->status = LEAT_OK;
    chunk->unread = chunk->is_located = 0;
    chunk->bad.n = 0;
    chunk->batch = NULL;
    chunk->taken = NULL;
    chunk->handed = NULL;
    chunk->after = self->window;
    chunk->begun = chunk->claimed = leat__clock_now();
    if (self->stuck) {
        chunk->last = 1;
        chunk->failed = 0;
        chunk->status = self->stuck;
        memcpy(chunk->line, self->stuck_line, sizeof(chunk->line));
        return;
    }
    int64_t begin = chunk->begun;
    atomic_store_explicit(&self->is_filling, 1, memory_order_relaxed);
    leat__trace_begin(LEAT__SPAN_READ);
    if (self->random_access)
        fill_by_index(self, chunk, want, ahead);
    else if (self->locates && !ahead)
        fill_by_locating(self, chunk, want);
    else
        fill_in_order(self, chunk, want);
    leat__trace_end();
    atomic_store_explicit(&self->is_filling, 0, memory_order_relaxed);
    draw_words(self, chunk);
    self->in_batch += chunk->n;
    if (self->in_batch == self->options->batch_size)
        end_batch(self, chunk);
    else if (chunk->last)
        end_pass(self, chunk);
    leat__counter_add_alone(&self->items, chunk->n);
    /* The worker that reads what is unread goes on at once. */
    if (chunk->unread && !ahead)
        return;
    chunk->begun = leat__clock_now();
    leat__counter_add_alone(&self->busy, chunk->begun - begin);
}
