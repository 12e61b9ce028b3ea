/* Fills chunks from an open reader: in order, or by index. */
#include "base/clock.h"
#include "base/counter.h"
#include "base/trace.h"
#include "data/sample.h"
#include "layer/chunk.h"
#include "pipeline/pipeline.h"

#include <string.h>

/* Positions handed to one call of advise. */
#define ADVISED_MAX 256

/* A way to fill a chunk. */
typedef struct leat__read_way {
    void (*fill)(leat__chunk_source *source, leat__chunk *chunk, int want);
    /* By the worker; NULL: nothing, unless the reader defers samples. */
    int (*read)(leat_reader *reader, leat__chunk *chunk, int i, int *got);
} leat__read_way;

/* Nothing comes any more: the chunk ends its batch with this status. */
static void get_stuck(leat__chunk_source *source, leat__chunk *chunk,
                      int status)
{
    source->stuck = status;
    leat__error_save(source->stuck_line);
    chunk->is_last = true;
    /* The samples of an unfinished batch come first, then the end. */
    if (status == LEAT_END &&
        (chunk->first + chunk->n > 0 || leat__sampler_is_cut(&source->sampler)))
        return;
    if (chunk->failed < 0) {
        chunk->failed = chunk->n;
        chunk->status = status;
        leat__error_save(chunk->line);
    }
}

static int begin_epoch(leat__chunk_source *source, int64_t epoch)
{
    const leat_position begin = {epoch, 0};
    int status = leat_reader_seek(source->reader, begin, NULL);
    /* A single pass is all there is. */
    return status == LEAT_EUNSUPPORTED ? LEAT_END : status;
}

/*
 * A resume after the last batch of a single pass may lie beyond its end, by
 * less than that batch. One that passes two epochs is of other data. With a
 * known count a rank passes by the epochs that have no sample for it.
 */
static bool is_beyond(const leat__chunk_source *source)
{
    const leat__sampler *sampler = &source->sampler;
    int64_t left = sampler->window.position - sampler->cursor;
    return sampler->count == 0 && source->found > 0 && left > sampler->width;
}

static int next_epoch(leat__chunk_source *source)
{
    const leat__sampler *sampler = &source->sampler;
    const char *text = leat_pipeline_text(source->options.pipeline);
    if (is_beyond(source))
        return leat_error(LEAT_EINVAL,
                          "%s: the resume token is of other data: it lies more "
                          "than an epoch beyond the end of one, of %lld "
                          "samples",
                          text, (long long)source->found);
    if (sampler->index == 0)
        return leat_error(LEAT_EFORMAT, "%s: there are no samples in it", text);
    if (sampler->count > 0 && sampler->index != sampler->count)
        return leat_error(LEAT_EFORMAT,
                          "%s: it ended after %lld samples, but its count is "
                          "%lld",
                          text, (long long)sampler->index,
                          (long long)sampler->count);
    source->found = sampler->index;
    int status = begin_epoch(source, sampler->epoch + 1);
    if (!status)
        leat__sampler_next_epoch(&source->sampler);
    return status;
}

static int too_few(const leat__chunk_source *source, int64_t samples)
{
    const leat__chunk_source_options *options = &source->options;
    return leat_error(LEAT_EINVAL,
                      "%s: epoch_end is DROP, but an epoch of %lld samples "
                      "fills no batch of %lld; expected a smaller batch, or "
                      "PARTIAL or PAD",
                      leat_pipeline_text(options->pipeline), (long long)samples,
                      (long long)options->batch_size * options->step);
}

/* The epoch ended before the batch was full: a chunk has all there is of it. */
static int drop(leat__chunk_source *source, leat__chunk *chunk)
{
    leat__sampler *sampler = &source->sampler;
    int status =
        sampler->window.index > 0 ? LEAT_OK : too_few(source, sampler->index);
    leat__sampler_restart(sampler);
    chunk->n = 0;
    chunk->bad.n = 0;
    chunk->failed = -1;
    chunk->ending.status = LEAT_OK;
    return status;
}

/* From the end of an epoch into the next one. Whether the batch goes on. */
static bool go_on(leat__chunk_source *source, leat__chunk *chunk, int status)
{
    bool is_cut = status == LEAT_END && leat__sampler_is_cut(&source->sampler);
    bool drops = source->options.epoch_end == LEAT_EPOCH_END_DROP;
    if (is_cut && drops && drop(source, chunk))
        status = LEAT_EINVAL;
    if (status == LEAT_END)
        status = next_epoch(source);
    if (status)
        get_stuck(source, chunk, status);
    chunk->is_last |= is_cut && !drops;
    return !chunk->is_last;
}

/* This rank's next records, as many as the chunk wants; some may be deferred.
 */
static int pull(leat__chunk_source *source, leat__chunk *chunk, int n)
{
    leat_sample **out = chunk->sample + chunk->n;
    int got, deferred;
    if (chunk->is_used)
        leat__chunk_clear(chunk, chunk->n, n);
    chunk->is_used = true;
    int status = leat__reader_pull(source->reader, out, n, &got, &deferred);
    if (deferred > 0)
        chunk->read = leat__chunk_materialize;
    leat__sampler_take(&source->sampler, got, chunk->at + chunk->n);
    chunk->n += got;
    if (status != LEAT_EDATA)
        return status;
    leat__sampler_take(&source->sampler, 1, chunk->at + chunk->n);
    leat__chunk_fail(chunk, chunk->n++, status, source->options.collects);
    return LEAT_OK;
}

/* Passes by the records of other ranks before this one's, at most `n`. */
static int pass_by(leat__chunk_source *source, int64_t n)
{
    int64_t skipped;
    int64_t skip = source->sampler.skip;
    int status =
        leat_reader_skip(source->reader, n < skip ? n : skip, &skipped);
    leat__sampler_drop(&source->sampler, skipped);
    return status;
}

/* Where the end of an epoch ends a batch, only its last chunk may find it. */
static bool may_end_early(const leat__chunk_source *source)
{
    return !source->options.whole_batches &&
           (source->options.epoch_end == LEAT_EPOCH_END_WRAP ||
            source->sampler.count > 0);
}

static void fill_in_order(leat__chunk_source *source, leat__chunk *chunk,
                          int want)
{
    const leat__sampler *sampler = &source->sampler;
    bool may_end = may_end_early(source);
    size_t held = 0;
    int64_t left;
    while ((!may_end || !chunk->is_full) &&
           (left = leat__sampler_span(sampler, chunk->n, want - chunk->n)) >
               0) {
        int had = chunk->n;
        int room = leat__chunk_call_size(want - had);
        int n = sampler->step > 1 ? 1 : room;
        int status =
            sampler->skip > 0 ? pass_by(source, left) : pull(source, chunk, n);
        if (status && !go_on(source, chunk, status))
            return;
        held += leat__chunk_buffers(chunk, had);
        chunk->is_full = held > chunk->most;
    }
}

static void fill_by_index(leat__chunk_source *source, leat__chunk *chunk,
                          int want)
{
    if (source->count == 0) {
        get_stuck(source, chunk, next_epoch(source));
        return;
    }
    leat__sampler *sampler = &source->sampler;
    while (chunk->n < want) {
        int64_t epoch =
            sampler->epoch + (sampler->index + sampler->skip) / source->count;
        int status =
            epoch > sampler->epoch ? begin_epoch(source, epoch) : LEAT_OK;
        if (status) {
            get_stuck(source, chunk, status);
            return;
        }
        leat__sampler_jump(sampler, source->count);
        leat__sampler_take(sampler, 1, &chunk->at[chunk->n++]);
    }
}

/* Tells the reader which samples the batch that begins here takes. */
static void advise(const leat__chunk_source *source)
{
    leat_position ahead[ADVISED_MAX];
    const leat__sampler *sampler = &source->sampler;
    int64_t at = sampler->index + sampler->skip;
    for (int done = 0; done < sampler->size;) {
        int n = 0;
        for (; n < ADVISED_MAX && done < sampler->size; n++, done++) {
            ahead[n] = (leat_position){sampler->epoch + at / source->count,
                                       at % source->count};
            at += sampler->step;
        }
        leat_reader_advise(source->reader, ahead, n);
    }
}

static void fill_ahead_by_index(leat__chunk_source *source, leat__chunk *chunk,
                                int want)
{
    if (source->count > 0 && source->sampler.in_batch == 0)
        advise(source);
    fill_by_index(source, chunk, want);
}

/* In order: one thread reads at a time, and workers do what it defers. By
   index: they read in parallel. */
static const leat__read_way in_order = {fill_in_order, NULL};
static const leat__read_way by_index = {fill_by_index, leat__chunk_read_at};
static const leat__read_way ahead_by_index = {fill_ahead_by_index,
                                              leat__chunk_read_at};

/* Where storage is read in its own order, a walk is faster than lookups. */
static bool reads_by_index(const leat__chunk_source *source)
{
    return leat_reader_is_random_access(source->reader) &&
           (source->options.step > 1 ||
            !leat__pipeline_keeps_order(source->options.pipeline));
}

/* Where batches end with an epoch: its length, if that is known by now. */
static int end_epochs(leat__chunk_source *source)
{
    const leat__chunk_source_options *options = &source->options;
    int64_t all = (int64_t)options->batch_size * options->step;
    int64_t count = source->length;
    if (options->epoch_end == LEAT_EPOCH_END_DROP && count > 0 && count < all)
        return too_few(source, count);
    leat__sampler_end_epochs(&source->sampler, options->epoch_end, count);
    return LEAT_OK;
}

int leat__chunk_source_init(leat__chunk_source *source, leat_reader *reader,
                            const leat__chunk_source_options *options)
{
    source->options = *options;
    source->reader = reader;
    source->way = source->ahead_way = &in_order;
    source->marks = leat_reader_has_mark(reader);
    leat__sampler_init(&source->sampler, options->batch_size, options->rank,
                       options->step);
    bool ends_epochs = options->epoch_end != LEAT_EPOCH_END_WRAP;
    bool is_by_index = reads_by_index(source);
    int status = leat_reader_count(reader, &source->length);
    if (status)
        source->length = 0;
    if (status && status != LEAT_EUNSUPPORTED && (ends_epochs || is_by_index))
        return status;
    if (is_by_index) {
        leat__reader_set_random(reader);
        source->way = &by_index;
        source->ahead_way = &ahead_by_index;
        source->count = source->length;
    }
    return ends_epochs ? end_epochs(source) : LEAT_OK;
}

/* Caffe's chain: the parent's second word seeds the transformer. */
static void seed_generator(leat__chunk_source *source, int64_t samples_before)
{
    if (source->options.draws == 0)
        return;
    leat__mt19937_seed(&source->generator, source->options.seed);
    leat__mt19937_next(&source->generator);
    uint32_t seed = leat__mt19937_next(&source->generator);
    leat__mt19937_seed(&source->generator, seed);
    leat__mt19937_skip(&source->generator, (uint64_t)samples_before *
                                               (uint64_t)source->options.draws);
    source->drawn = samples_before;
}

/* By the mark, or the index. */
static int seek(leat__chunk_source *source, const leat__position *start,
                leat_token *mark)
{
    leat_position to = {start->epoch, start->index};
    if (mark) {
        int status = leat_reader_seek(source->reader, to, mark);
        if (!status)
            leat__sampler_at(&source->sampler, start);
        return status;
    }
    if (source->length > 0) {
        leat__sampler_seek(&source->sampler, start, source->length);
        to = (leat_position){source->sampler.epoch, source->sampler.index};
    } else {
        leat__sampler_at(&source->sampler, start);
    }
    /* By index the reader is asked for a new epoch alone. */
    if (source->count > 0 && to.epoch == 0)
        return LEAT_OK;
    if (source->count > 0)
        to.index = 0;
    return leat_reader_seek(source->reader, to, NULL);
}

/*
 * To the beginning of its epoch, from where the records before it are read and
 * dropped. A reader that cannot seek at all is at the beginning of the first.
 */
static int go_to_epoch(leat__chunk_source *source, const leat__position *start)
{
    const leat_position begin = {start->epoch, 0};
    int status = leat_reader_seek(source->reader, begin, NULL);
    leat__sampler_rewind(&source->sampler, start);
    return status == LEAT_EUNSUPPORTED && start->epoch == 0 ? LEAT_OK : status;
}

void leat__chunk_source_go_to(leat__chunk_source *source,
                              const leat__position *start, leat_token *mark)
{
    seed_generator(source, leat__sampler_before(&source->sampler, start));
    int status = start->position == 0 ? LEAT_OK : seek(source, start, mark);
    if (status == LEAT_EUNSUPPORTED || status == LEAT_EINVAL ||
        status == LEAT_END)
        status = go_to_epoch(source, start);
    if (!status)
        return;
    source->stuck = status == LEAT_EUNSUPPORTED ? LEAT_END : status;
    leat__error_save(source->stuck_line);
}

/* Samples that are left out take their words, too: a position has its own. */
static void draw_words(leat__chunk_source *source, leat__chunk *chunk)
{
    int draws = source->options.draws;
    if (draws == 0)
        return;
    int64_t first = leat__sampler_ordinal(&source->sampler);
    leat__mt19937_skip(&source->generator,
                       (uint64_t)(first - source->drawn) * (uint64_t)draws);
    for (int i = 0; i < chunk->n * draws; i++)
        chunk->words[i] = leat__mt19937_next(&source->generator);
    source->drawn = first + chunk->n;
}

static void begin(leat__chunk_source *source, leat__chunk *chunk)
{
    chunk->first = source->sampler.in_batch;
    chunk->n = 0;
    chunk->is_last = false;
    chunk->is_full = false;
    chunk->failed = -1;
    chunk->status = LEAT_OK;
    chunk->ending.status = LEAT_OK;
    chunk->read = NULL;
    chunk->bad.n = 0;
    chunk->follows_gap = false;
    chunk->taken = NULL;
    chunk->handed = NULL;
    chunk->after = source->sampler.window;
    chunk->mark.size = 0;
    chunk->begun = chunk->claimed = leat__clock_now();
}

/* Passes by the records of other ranks up to the end of the batch. */
static int pass_to_end(leat__chunk_source *source, const leat__chunk *chunk)
{
    const leat__sampler *sampler = &source->sampler;
    int64_t left;
    int status = LEAT_OK;
    while (!status && (left = chunk->after.position - sampler->cursor) > 0) {
        status = pass_by(source, left);
        if (status == LEAT_END)
            status = next_epoch(source);
    }
    return status;
}

/*
 * Sets where the batch ends that the chunk completes, with the reader's mark:
 * the same on every rank, wherever its own last record was. Without a length of
 * epochs that takes reading on.
 */
static void settle_end(leat__chunk_source *source, leat__chunk *chunk)
{
    const leat__sampler *sampler = &source->sampler;
    leat__position *after = &chunk->after;
    if (!source->marks && source->length > 0) {
        after->epoch = after->position / source->length;
        after->index = after->position % source->length;
        return;
    }
    int status = source->stuck ? LEAT_OK : pass_to_end(source, chunk);
    if (!status && !source->stuck && source->marks)
        status = leat_reader_mark(source->reader, &chunk->mark);
    after->epoch = sampler->epoch;
    after->index = sampler->index + after->position - sampler->cursor;
    if (!status)
        return;
    source->stuck = status;
    leat__error_save(source->stuck_line);
    chunk->mark.size = 0;
}

static void fill(leat__chunk_source *source, leat__chunk *chunk,
                 const leat__read_way *way)
{
    leat__sampler *sampler = &source->sampler;
    int want = leat__sampler_room(sampler, chunk->capacity);
    chunk->read = way->read;
    atomic_store_explicit(&source->is_filling, true, memory_order_relaxed);
    leat__trace_begin(LEAT__SPAN_READ);
    way->fill(source, chunk, want);
    draw_words(source, chunk);
    chunk->follows_gap = chunk->first == 0 && sampler->follows_gap &&
                         leat_reader_is_random_access(source->reader);
    if (chunk->is_last)
        leat__sampler_end(sampler, &chunk->after);
    else
        chunk->is_last =
            leat__sampler_hand_out(sampler, chunk->n, &chunk->after);
    if (chunk->is_last)
        settle_end(source, chunk);
    leat__trace_end();
    atomic_store_explicit(&source->is_filling, false, memory_order_relaxed);
    leat__counter_add_exclusive(&source->items, chunk->n);
    if (!chunk->read)
        leat__counter_add_exclusive(&source->bytes, leat__chunk_settle(chunk));
}

bool leat__chunk_source_needs_batches(const leat__chunk_source *source)
{
    return source->options.whole_batches ||
           (source->options.epoch_end == LEAT_EPOCH_END_DROP &&
            source->sampler.count == 0);
}

void leat__chunk_source_fill(leat__chunk_source *source, leat__chunk *chunk,
                             bool ahead)
{
    begin(source, chunk);
    if (source->stuck) {
        chunk->is_last = true;
        chunk->failed = 0;
        chunk->status = source->stuck;
        memcpy(chunk->line, source->stuck_line, sizeof(chunk->line));
        return;
    }
    int64_t begun = chunk->begun;
    fill(source, chunk, ahead ? source->ahead_way : source->way);
    /* The worker that reads the samples goes on at once. */
    if (chunk->read && !ahead)
        return;
    chunk->begun = leat__clock_now();
    leat__counter_add_exclusive(&source->busy, chunk->begun - begun);
}
