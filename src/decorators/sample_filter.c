#include "decorators/sample_filter.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/sample.h"
#include "data/token.h"
#include "pipeline/reader_table.h"

#include <limits.h>

#define LOG_INTERVAL (10 * INT64_C(1000000000))

/* Pulls between two looks at the clock. */
enum { PULLS_PER_LOOK = 256 };

static leat__sample_filter *filter_of(leat_reader *reader)
{
    return (leat__sample_filter *)reader;
}

/* What a sample has of others', to which a dropped one returns. */
typedef struct fields_before {
    int nfields;
    int stable;
    size_t taken;
} fields_before;

static void drop(leat_sample *sample, const fields_before *before)
{
    if (before->nfields == 0) {
        leat_sample_clear(sample);
        return;
    }
    sample->nfields = before->nfields;
    sample->stable = before->stable;
    sample->taken = before->taken;
    sample->deferred = 0;
}

static int test(leat__sample_filter *filter, leat_sample *sample, bool *keeps)
{
    const leat_provenance *from = &sample->from;
    int first = sample->nfields - filter->ngiven;
    int status = LEAT_OK;
    if (first < 0)
        status = leat_error(LEAT_EDATA, "it has %d fields, expected %d",
                            sample->nfields, filter->ngiven);
    if (!status)
        status = filter->kind->test(filter, sample, first, keeps);
    if (status != LEAT_EDATA)
        return status;
    return leat__error_context(status, "%s: %s: record %lld", filter->ops.name,
                               from->source ? from->source : "?",
                               (long long)from->record);
}

static int grow_held(leat__sample_filter *filter, int n)
{
    leat_sample *held = leat__alloc_zero((size_t)n, sizeof(*held));
    if (!held)
        return LEAT_ENOMEM;
    for (int i = 0; i < n; i++) {
        if (i < filter->held_capacity)
            leat_sample_swap(&held[i], &filter->held[i]);
        else
            held[i].allocator = filter->allocator;
    }
    leat__free(filter->held);
    filter->held = held;
    filter->held_capacity = n;
    return LEAT_OK;
}

static void count_held(leat__sample_filter *filter)
{
    int64_t bytes = 0;
    for (int i = 0; i < filter->held_capacity; i++)
        bytes += (int64_t)(sizeof(leat_sample) + filter->held[i].buffer_size);
    atomic_store_explicit(&filter->held_bytes, bytes, memory_order_relaxed);
}

/* Holds samples that an error leaves; those held before are after them. */
static int hold(leat__sample_filter *filter, leat_sample *const out[], int n)
{
    if (n == 0)
        return LEAT_OK;
    if (filter->held_at == filter->nheld) {
        if (filter->held_capacity < n && grow_held(filter, n))
            return LEAT_ENOMEM;
        filter->held_at = filter->nheld = n;
    }
    for (int i = n - 1; i >= 0; i--)
        leat__sample_exchange(&filter->held[--filter->held_at], out[i]);
    count_held(filter);
    return LEAT_OK;
}

/* Samples that were held, or the upstream reader's next. */
static int pull(leat__sample_filter *filter, leat_sample *const out[], int n,
                int *got)
{
    leat_reader *upstream = filter->decorator.upstream[0];
    *got = 0;
    while (*got < n && filter->held_at < filter->nheld)
        leat__sample_exchange(&filter->held[filter->held_at++], out[(*got)++]);
    if (*got > 0)
        return LEAT_OK;
    filter->pulled.index += filter->done;
    filter->done = 0;
    filter->mark.size = 0;
    int status = n > 1 ? leat_reader_mark(upstream, &filter->mark) : LEAT_OK;
    /* Before a bad record there is none; of one sample nothing is held. */
    if (status == LEAT_ESTATE)
        n = 1;
    else if (status)
        return status;
    status = leat_reader_pull(upstream, out, n, got);
    filter->done += status == LEAT_EDATA;
    return status;
}

/* Tests samples from `*at` on, and gives those that are kept in the first
 * places, `*got` of them so far, until one fails. */
static int test_all(leat__sample_filter *filter, leat_sample *const out[],
                    int n, const fields_before *before, int *at, int *got)
{
    for (; *at < n; ++*at) {
        bool keeps = false;
        int status = test(filter, out[*at], &keeps);
        if (status)
            return status;
        filter->done++;
        if (!keeps)
            drop(out[*at], before);
        else if (*at != (*got)++)
            leat_sample_swap(out[*got - 1], out[*at]);
    }
    return LEAT_OK;
}

/* A run of samples, complete, of which those that are kept come first. */
static int filter_some(leat__sample_filter *filter, leat_sample *const out[],
                       int n, int *got)
{
    leat_reader *upstream = filter->decorator.upstream[0];
    const fields_before before = {out[0]->nfields, out[0]->stable,
                                  out[0]->taken};
    int pulled, complete, at = 0;
    char line[LEAT__ERROR_MAX];
    int status = leat__decorator_check_running(&filter->decorator);
    if (!status)
        status = pull(filter, out, n, &pulled);
    if (status)
        return status;
    status = leat_reader_materialize(upstream, out, pulled, &complete);
    for (int i = 0; i < complete; i++)
        out[i]->deferred = 0;
    if (status)
        leat__error_save(line);
    int tested = test_all(filter, out, complete, &before, &at, got);
    if (!tested && status)
        tested = leat_error(status, "%s", line);
    if (tested != LEAT_EDATA)
        return tested;
    if (at < complete && status)
        leat__sample_refuse(out[complete], status, line);
    filter->done++;
    leat__error_save(line);
    if (hold(filter, out + at + 1, pulled - at - 1))
        return LEAT_ENOMEM;
    if (at != *got)
        leat_sample_swap(out[*got], out[at]);
    return leat_error(LEAT_EDATA, "%s", line);
}

/* Over an endless reader a predicate that is never true has no end. */
static void report_search(const leat__sample_filter *filter, int64_t dropped,
                          int64_t *last)
{
    int64_t now = leat__clock_now();
    if (*last == 0)
        *last = now;
    if (now - *last < LOG_INTERVAL)
        return;
    *last = now;
    leat__log(LEAT_LOG_WARNING, "%s: none of the last %lld samples is kept",
              filter->ops.name, (long long)dropped);
}

/* What joins several readers asks for one sample at a time. */
static int filter_next(leat_reader *reader, leat_sample *const out[], int n,
                       int *got)
{
    leat__sample_filter *filter = filter_of(reader);
    int64_t begin = filter->pulled.index + filter->done, last = 0;
    int status = filter_some(filter, out, n, got);
    for (int pulls = 0; !status && *got == 0; pulls++) {
        if (pulls % PULLS_PER_LOOK == 0)
            report_search(filter, filter->pulled.index + filter->done - begin,
                          &last);
        status = filter_some(filter, out, n, got);
    }
    return status;
}

static void drop_held(leat__sample_filter *filter)
{
    filter->held_at = filter->nheld = 0;
    filter->done = 0;
}

static int filter_seek(leat_reader *reader, leat_position position,
                       leat_token *mark)
{
    leat__sample_filter *filter = filter_of(reader);
    leat_position to = {position.epoch, 0};
    int64_t done = 0, skipped;
    if (position.index > 0 && !mark)
        return leat_error(LEAT_EUNSUPPORTED,
                          "%s: no index finds a sample again: expected 0, or a "
                          "mark",
                          reader->ops->name);
    const char *name = reader->ops->name;
    int status = mark ? leat__token_get_position(mark, name, &to) : LEAT_OK;
    if (!status && mark)
        status = leat__token_get_counts(mark, name, &done, 1);
    if (!status && done > INT_MAX)
        status = leat_error(LEAT_EINVAL, "%s: the mark is none", name);
    if (!status)
        status = leat__decorator_seek(reader, to, mark);
    if (!status && done > 0)
        status =
            leat_reader_skip(filter->decorator.upstream[0], done, &skipped);
    if (status)
        return status;
    drop_held(filter);
    filter->pulled = to;
    filter->pulled.index += done;
    return LEAT_OK;
}

/* Before the upstream reader's, which seek needs it for. */
static int filter_mark(leat_reader *reader, leat_token *token)
{
    const leat__sample_filter *filter = filter_of(reader);
    bool holds = filter->held_at < filter->nheld;
    leat_position at = filter->pulled;
    int64_t done = holds ? filter->done : 0;
    at.index += filter->done - done;
    int status = leat_token_put(token, &at, sizeof(at));
    if (!status)
        status = leat_token_put(token, &done, sizeof(done));
    if (status)
        return status;
    return holds ? leat_token_put(token, filter->mark.bytes, filter->mark.size)
                 : leat__decorator_mark(reader, token);
}

static int filter_restore(leat_reader *reader, leat_token *token)
{
    int status = leat__decorator_restore(reader, token);
    if (status)
        return status;
    drop_held(filter_of(reader));
    filter_of(reader)->pulled = (leat_position){0, 0};
    return LEAT_OK;
}

static void filter_cancel(leat_reader *reader)
{
    leat__sample_filter *filter = filter_of(reader);
    leat__decorator_cancel(reader);
    if (filter->kind->cancel)
        filter->kind->cancel(filter);
}

static int64_t filter_memory(leat_reader *reader)
{
    return (int64_t)atomic_load_explicit(&filter_of(reader)->held_bytes,
                                         memory_order_relaxed);
}

static void finish(leat__sample_filter *filter)
{
    for (int i = 0; i < filter->held_capacity; i++)
        leat_sample_finish(&filter->held[i]);
    leat__free(filter->held);
    leat_token_finish(&filter->mark);
}

static void filter_close(leat_reader *reader)
{
    finish(filter_of(reader));
    leat__decorator_close(reader);
}

static const leat_reader_ops filter_ops = {
    .size = sizeof(leat_reader_ops),
    .fields = leat__decorator_fields,
    .next = filter_next,
    .seek = filter_seek,
    .cancel = filter_cancel,
    .close = filter_close,
    .can_seek = leat__reader_no,
    .mark = filter_mark,
    .save = leat__decorator_save,
    .restore = filter_restore,
    .may_block = leat__decorator_may_block,
    .memory = filter_memory,
};

int leat__sample_filter_new(leat__sample_filter **out, const leat_open *open,
                            const leat__filter_kind *kind, size_t size)
{
    leat__sample_filter *filter = leat__decorator_new(open, &filter_ops, size);
    if (!filter)
        return LEAT_ENOMEM;
    filter->ops = filter_ops;
    filter->ops.name = kind->name;
    filter->decorator.reader.ops = &filter->ops;
    filter->kind = kind;
    filter->allocator = open->allocator;
    leat_token_init(&filter->mark);
    int status =
        leat_reader_fields(open->upstream[0], &filter->given, &filter->ngiven);
    if (status == LEAT_END) {
        filter->ngiven = 0;
        status = LEAT_OK;
    }
    if (status) {
        leat__free(filter);
        return status;
    }
    *out = filter;
    return LEAT_OK;
}

int leat__sample_filter_opened(leat__sample_filter *filter, int status,
                               leat_reader **out)
{
    if (!status) {
        *out = &filter->decorator.reader;
        return LEAT_OK;
    }
    status = leat__error_context(status, "%s", filter->ops.name);
    leat__free(filter);
    return status;
}
