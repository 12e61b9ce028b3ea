#include "layer/chunk.h"
#include "base/clock.h"
#include "base/counter.h"
#include "base/memory.h"
#include "base/trace.h"
#include "pipeline/pipeline.h"

#include <string.h>

/* Pointers handed to one call of next, dropped samples included. */
#define LOOKAHEAD 256

void leat__chunk_destroy(leat__chunk *self)
{
    if (!self)
        return;
    for (int i = 0; self->sample && i < self->capacity; i++) {
        leat_sample_finish(self->sample[i]);
        leat__free(self->sample[i]);
    }
    leat__free(self->sample);
    leat__free(self->index);
    leat__free(self->locator);
    leat__free(self->epoch);
    leat__free(self->words);
    leat__bad_list_finish(&self->bad);
    leat__free(self);
}

int leat__chunk_create(leat__chunk **out, int capacity, int draws,
                       const leat_allocator *buffers)
{
    size_t n = (size_t)capacity;
    leat__chunk *self = leat__alloc_zero(1, sizeof(*self));
    if (!self)
        return LEAT_ENOMEM;
    self->capacity = capacity;
    self->sample = leat__alloc_zero(n, sizeof(*self->sample));
    self->index = leat__alloc_zero(n, sizeof(*self->index));
    self->locator = leat__alloc_zero(n, sizeof(*self->locator));
    self->epoch = leat__alloc_zero(n, sizeof(*self->epoch));
    self->words = leat__alloc_zero(n * (size_t)draws, sizeof(*self->words));
    if (!self->sample || !self->index || !self->locator || !self->epoch ||
        !self->words)
        goto fail;
    for (int i = 0; i < capacity; i++) {
        self->sample[i] = leat__alloc_zero(1, sizeof(**self->sample));
        if (!self->sample[i])
            goto fail;
        leat_sample_init(self->sample[i]);
        self->sample[i]->allocator = buffers;
    }
    *out = self;
    return LEAT_OK;

fail:
    leat__chunk_destroy(self);
    return LEAT_ENOMEM;
}

int leat__chunk_reserve(leat__chunk *self, size_t bytes)
{
    int status = LEAT_OK;
    for (int i = 0; status == LEAT_OK && i < self->capacity; i++)
        status = leat_sample_reserve(self->sample[i], bytes);
    return status;
}

static void set_position(leat__chunk *self, int i)
{
    self->sample[i]->from.epoch = self->epoch[i];
    self->sample[i]->from.position = self->index[i];
}

/*
 * Notes the first failure of the chunk, at sample `i`, or where those are
 * collected a bad record (LEAT_EDATA); the line is the thread's.
 */
static void fail(leat__chunk *self, int i, int status, bool collects)
{
    set_position(self, i);
    if (status == LEAT_EDATA && collects) {
        status = leat__bad_list_add(&self->bad, i, &self->sample[i]->from);
        if (status == LEAT_OK)
            return;
    }
    if (self->failed >= 0)
        return;
    self->failed = i;
    self->status = status;
    leat__error_save(self->line);
}

static int read_located(leat_reader *reader, leat__chunk *self, int i, int *got)
{
    return leat_reader_read_located(reader, self->locator + i, self->sample + i,
                                    self->n - i, got);
}

static int read_at(leat_reader *reader, leat__chunk *self, int i, int *got)
{
    /* A reader in any order may go by the epoch. */
    for (int k = i; k < self->n; k++)
        self->sample[k]->from.epoch = self->epoch[k];
    return leat_reader_read_at(reader, self->index + i, self->sample + i,
                               self->n - i, got);
}

static void read_samples(leat__chunk *self, leat_reader *reader, bool collects)
{
    int i = 0;
    while (i < self->n) {
        int got;
        int status = self->read(reader, self, i, &got);
        i += got;
        if (status == LEAT_EDATA) {
            fail(self, i++, status, collects);
        } else if (status) {
            fail(self, i, status, collects);
            return;
        }
    }
}

/*
 * Sets the samples' positions, those before a failure too: one may yet turn out
 * to be bad. Returns the bytes of what was read; what a reader left in the
 * buffers of other samples, their number of fields too, may be anything.
 */
static int64_t settle(leat__chunk *self)
{
    int64_t bytes = 0;
    int bad = 0;
    for (int i = 0; i < self->n; i++) {
        set_position(self, i);
        if (bad < self->bad.n && self->bad.item[bad].sample == i)
            bad++;
        else if (self->failed < 0)
            bytes += leat__chunk_payload(self, i);
    }
    return bytes;
}

void leat__chunk_read(leat__chunk *self, leat_reader *reader, bool collects)
{
    if (!self->read)
        return;
    leat__trace_begin(LEAT__SPAN_READ);
    read_samples(self, reader, collects);
    leat__trace_end();
    self->read = NULL;
    leat__counter_add_exclusive(&self->bytes, settle(self));
    int64_t now = leat__clock_now();
    leat__counter_add_exclusive(&self->busy, now - self->begun);
    self->begun = now;
}

/* A way to fill a chunk; what remains to be read is up to the worker. */
typedef struct leat__read_way {
    void (*fill)(leat__chunk_source *self, leat__chunk *chunk, int want);
    int (*read)(leat_reader *reader, leat__chunk *chunk, int i, int *got);
} leat__read_way;

/* Nothing comes any more: the chunk ends its batch with this status. */
static void get_stuck(leat__chunk_source *self, leat__chunk *chunk, int status)
{
    self->stuck = status;
    leat__error_save(self->stuck_line);
    chunk->is_last = true;
    /* The samples of an unfinished batch come first, then the end. */
    if (status == LEAT_END && chunk->first + chunk->n > 0)
        return;
    if (chunk->failed < 0) {
        chunk->failed = chunk->n;
        chunk->status = status;
        leat__error_save(chunk->line);
    }
}

static int next_epoch(leat__chunk_source *self)
{
    if (self->sampler.index == 0)
        return leat_error(LEAT_EFORMAT, "%s: there are no samples in it",
                          leat_pipeline_text(self->options.pipeline));
    int status = leat_reader_reset(self->reader);
    if (status == LEAT_OK)
        leat__sampler_next_epoch(&self->sampler);
    /* A single pass is all there is. */
    return status == LEAT_EUNSUPPORTED ? LEAT_END : status;
}

/* From the end of an epoch into the next one. Whether anything still comes. */
static bool go_on(leat__chunk_source *self, leat__chunk *chunk, int status)
{
    if (status == LEAT_END)
        status = next_epoch(self);
    if (status)
        get_stuck(self, chunk, status);
    return status == LEAT_OK;
}

/* One record was read: the chunk's sample that it is, or -1. */
static int pass(leat__chunk_source *self, leat__chunk *chunk)
{
    int i = chunk->n;
    if (!leat__sampler_pass(&self->sampler, &chunk->epoch[i], &chunk->index[i]))
        return -1;
    chunk->n++;
    return i;
}

/* Buffers for the next records, in order: ours, and one to drop the rest in. */
static int line_up(leat__chunk_source *self, leat__chunk *chunk, int want,
                   leat_sample *out[LOOKAHEAD])
{
    int n = 0;
    int64_t skip = self->sampler.skip;
    for (int next = chunk->n; next < want && n < LOOKAHEAD; n++) {
        if (skip > 0) {
            out[n] = &self->dropped;
            skip--;
        } else {
            out[n] = chunk->sample[next++];
            skip = self->sampler.step - 1;
        }
    }
    return n;
}

static void fill_in_order(leat__chunk_source *self, leat__chunk *chunk,
                          int want)
{
    leat_sample *out[LOOKAHEAD];
    while (chunk->n < want) {
        int n = line_up(self, chunk, want, out);
        int got;
        int status = leat_reader_next_batch(self->reader, out, n, &got);
        int64_t bytes = 0;
        for (int k = 0; k < got; k++) {
            int i = pass(self, chunk);
            if (i < 0)
                continue;
            set_position(chunk, i);
            bytes += leat__chunk_payload(chunk, i);
        }
        leat__counter_add_exclusive(&self->bytes, bytes);
        if (status == LEAT_EDATA) {
            int i = pass(self, chunk);
            if (i >= 0)
                fail(chunk, i, status, self->options.collects);
        } else if (status && !go_on(self, chunk, status)) {
            return;
        }
    }
}

/* Only where the samples lie; those before ours are passed by. */
static void fill_by_locating(leat__chunk_source *self, leat__chunk *chunk,
                             int want)
{
    leat__sampler *sampler = &self->sampler;
    while (chunk->n < want) {
        int n = want - chunk->n;
        bool drops = sampler->skip > 0;
        if (drops && sampler->skip < n)
            n = (int)sampler->skip;
        int got;
        int status = leat_reader_locate(self->reader, chunk->locator + chunk->n,
                                        n, &got);
        if (drops) {
            leat__sampler_drop(sampler, got);
        } else {
            leat__sampler_take(sampler, got, chunk->epoch + chunk->n,
                               chunk->index + chunk->n);
            chunk->n += got;
        }
        if (status && !go_on(self, chunk, status))
            return;
    }
}

static void fill_by_index(leat__chunk_source *self, leat__chunk *chunk,
                          int want)
{
    if (self->count == 0) {
        get_stuck(self, chunk, next_epoch(self));
        return;
    }
    while (chunk->n < want) {
        leat__sampler_jump(&self->sampler, self->count);
        (void)pass(self, chunk);
    }
}

/* Tells the reader which samples the batch that begins here takes. */
static void advise(const leat__chunk_source *self)
{
    int64_t index[LOOKAHEAD];
    const leat__sampler *sampler = &self->sampler;
    int64_t at = sampler->index + sampler->skip;
    for (int done = 0; done < sampler->batch_size;) {
        int n = 0;
        for (; n < LOOKAHEAD && done < sampler->batch_size; n++, done++) {
            index[n] = at % self->count;
            at += sampler->step;
        }
        leat_reader_advise(self->reader, index, n);
    }
}

static void fill_ahead_by_index(leat__chunk_source *self, leat__chunk *chunk,
                                int want)
{
    if (self->count > 0 && self->sampler.in_batch == 0)
        advise(self);
    fill_by_index(self, chunk, want);
}

/* In order: one thread reads at a time. Located: finding samples is serial,
   reading them is not. By index: both run in parallel. */
static const leat__read_way in_order = {fill_in_order, NULL};
static const leat__read_way located = {fill_by_locating, read_located};
static const leat__read_way by_index = {fill_by_index, read_at};
static const leat__read_way ahead_by_index = {fill_ahead_by_index, read_at};

/* A file alone, in order, is walked faster than it is looked up. */
static bool reads_by_index(const leat__chunk_source *self)
{
    return leat_reader_is_random_access(self->reader) &&
           (self->options.step > 1 ||
            leat__pipeline_has_upstream(self->options.pipeline));
}

int leat__chunk_source_init(leat__chunk_source *self, leat_reader *reader,
                            const leat__chunk_source_options *options)
{
    self->options = *options;
    self->reader = reader;
    self->way = self->ahead_way = &in_order;
    leat_sample_init(&self->dropped);
    self->dropped.allocator = options->buffers;
    leat__sampler_init(&self->sampler, options->batch_size, options->rank,
                       options->step);
    if (reads_by_index(self)) {
        self->way = &by_index;
        self->ahead_way = &ahead_by_index;
        return leat_reader_count(reader, &self->count);
    }
    if (options->step == 1 && leat_reader_can_locate(reader))
        self->way = &located;
    return LEAT_OK;
}

void leat__chunk_source_finish(leat__chunk_source *self)
{
    leat_sample_finish(&self->dropped);
}

/* Caffe's chain: the parent's second word seeds the transformer. */
static void seed_generator(leat__chunk_source *self, int64_t samples_before)
{
    if (self->options.draws == 0)
        return;
    leat__mt19937_seed(&self->generator, self->options.seed);
    leat__mt19937_next(&self->generator);
    uint32_t seed = leat__mt19937_next(&self->generator);
    leat__mt19937_seed(&self->generator, seed);
    leat__mt19937_skip(&self->generator, (uint64_t)samples_before *
                                             (uint64_t)self->options.draws);
}

void leat__chunk_source_go_to(leat__chunk_source *self,
                              const leat__position *start)
{
    leat__sampler *sampler = &self->sampler;
    int64_t count = self->count;
    seed_generator(self, leat__sampler_before(sampler, start));
    if (count == 0 && start->position > 0 &&
        (leat_reader_count(self->reader, &count) != LEAT_OK || count <= 0 ||
         leat_reader_seek(self->reader, start->position % count) != LEAT_OK))
        count = 0;
    if (count > 0)
        leat__sampler_seek(sampler, start, count);
    else /* Without seek the records before it are read and dropped. */
        leat__sampler_rewind(sampler, start);
}

static void draw_words(leat__chunk_source *self, leat__chunk *chunk)
{
    for (int i = 0; i < chunk->n * self->options.draws; i++)
        chunk->words[i] = leat__mt19937_next(&self->generator);
}

static void begin(leat__chunk_source *self, leat__chunk *chunk)
{
    chunk->first = self->sampler.in_batch;
    chunk->n = 0;
    chunk->is_last = false;
    chunk->failed = -1;
    chunk->status = LEAT_OK;
    chunk->read = NULL;
    chunk->bad.n = 0;
    chunk->taken = NULL;
    chunk->handed = NULL;
    chunk->after = self->sampler.window;
    chunk->begun = chunk->claimed = leat__clock_now();
}

static void fill(leat__chunk_source *self, leat__chunk *chunk,
                 const leat__read_way *way)
{
    leat__sampler *sampler = &self->sampler;
    int want = leat__sampler_room(sampler, chunk->capacity);
    chunk->read = way->read;
    atomic_store_explicit(&self->is_filling, 1, memory_order_relaxed);
    leat__trace_begin(LEAT__SPAN_READ);
    way->fill(self, chunk, want);
    leat__trace_end();
    atomic_store_explicit(&self->is_filling, 0, memory_order_relaxed);
    draw_words(self, chunk);
    if (leat__sampler_hand_out(sampler, chunk->n, &chunk->after))
        chunk->is_last = true;
    else if (chunk->is_last)
        leat__sampler_end(sampler, &chunk->after);
    leat__counter_add_exclusive(&self->items, chunk->n);
}

void leat__chunk_source_fill(leat__chunk_source *self, leat__chunk *chunk,
                             bool ahead)
{
    begin(self, chunk);
    if (self->stuck) {
        chunk->is_last = true;
        chunk->failed = 0;
        chunk->status = self->stuck;
        memcpy(chunk->line, self->stuck_line, sizeof(chunk->line));
        return;
    }
    int64_t begun = chunk->begun;
    fill(self, chunk, ahead ? self->ahead_way : self->way);
    /* The worker that reads the samples goes on at once. */
    if (chunk->read && !ahead)
        return;
    chunk->begun = leat__clock_now();
    leat__counter_add_exclusive(&self->busy, chunk->begun - begun);
}
