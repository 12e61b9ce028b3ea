/* batch:N, each N samples as one. */
#include "base/error.h"
#include "decorators/decorators.h"
#include "decorators/grouper.h"

#include <leat/decorators.h>

#include <stdbool.h>
#include <stdio.h>

typedef leat__grouper batch_reader;

/*
 * Passes by the rest of a batch that has a bad record, which is bad as a whole:
 * then the samples of all others are where they were. Its first bad record is
 * named; samples before that are completed, as one of them may be worse.
 */
static int step_over(batch_reader *batch, leat__group *group)
{
    leat_reader *upstream = batch->decorator.upstream[0];
    char line[LEAT__ERROR_MAX];
    int64_t rest = batch->size - group->n - 1, skipped;
    int got;
    leat__error_save(line);
    int status = leat_reader_skip(upstream, rest, &skipped);
    if (status && (status != LEAT_END || batch->drops_last))
        return status;
    status = leat_reader_materialize(upstream, group->sample, group->n, &got);
    if (!status)
        return leat_error(LEAT_EDATA, "%s", line);
    group->n = got;
    return status;
}

static int pull_batch(batch_reader *batch, leat__group *group)
{
    leat_reader *upstream = batch->decorator.upstream[0];
    int status = LEAT_OK;
    while (group->n < batch->size && !status) {
        int got, n = leat__group_pool_at_once(&batch->pool,
                                              (int)batch->size - group->n);
        status = leat__group_clear(&batch->pool, group, group->n, n);
        if (status)
            return status;
        status = leat_reader_pull(upstream, group->sample + group->n, n, &got);
        group->n += got;
    }
    if (status == LEAT_EDATA)
        return step_over(batch, group);
    bool is_short = status == LEAT_END && group->n > 0 && !batch->drops_last;
    return is_short ? LEAT_OK : status;
}

/* One batch: its samples are many already. */
static int batch_next(leat_reader *reader, leat_sample *const out[], int n,
                      int *got)
{
    batch_reader *batch = (batch_reader *)reader;
    (void)n;
    leat__group *group;
    int status = leat__grouper_plan(batch);
    if (!status)
        status = leat__group_pool_take(&batch->pool, &group);
    if (status)
        return status;
    status = pull_batch(batch, group);
    if (status)
        return leat__grouper_fail(batch, group, group->n, status, out[0]);
    status = leat__group_pool_bind(&batch->pool, group, out[0]);
    if (status)
        leat__group_pool_give_back(&batch->pool, group);
    *got = !status;
    return status;
}

static int refuse_index(int64_t index, int64_t count)
{
    return leat_error(LEAT_EINVAL,
                      "batch: batch %lld is out of range: there are %lld",
                      (long long)index, (long long)count);
}

/* Of an epoch without an end the batches whose samples all have a position. */
static int64_t count_whole(const batch_reader *batch, int64_t count)
{
    return count == LEAT_ENDLESS ? LEAT_ENDLESS / batch->size : count;
}

static int batch_read_at(leat_reader *reader, const leat_position at[],
                         leat_sample *const out[], int n, int *got)
{
    const batch_reader *batch = (batch_reader *)reader;
    int64_t count = LEAT_ENDLESS / batch->size;
    return batch->samples == LEAT_ENDLESS && at[0].index >= count
               ? refuse_index(at[0].index, count)
               : leat__grouper_read_at(reader, at, out, n, got);
}

static int batch_seek(leat_reader *reader, leat_position position,
                      leat_token *mark)
{
    const batch_reader *batch = (batch_reader *)reader;
    int64_t count;
    int status = leat_reader_count(reader, &count);
    if (!status && position.index > count_whole(batch, count) && !mark)
        return refuse_index(position.index, count_whole(batch, count));
    /* Where the end is not known the last batch may be short: it is read. */
    bool has_end = batch->samples >= 0 || position.index == 0 || mark;
    leat_position to = {position.epoch, position.index - !has_end};
    to.index = leat__grouper_begin(batch, to.index);
    status = leat__decorator_seek(reader, to, mark);
    if (status || has_end)
        return status;
    int64_t skipped;
    status =
        leat_reader_skip(batch->decorator.upstream[0], batch->size, &skipped);
    return status == LEAT_END && skipped > 0 ? LEAT_OK : status;
}

static int batch_skip(leat_reader *reader, int64_t n, int64_t *skipped)
{
    const batch_reader *batch = (batch_reader *)reader;
    int64_t most = INT64_MAX / batch->size, samples;
    n = n < most ? n : most;
    int status = leat_reader_skip(batch->decorator.upstream[0], n * batch->size,
                                  &samples);
    bool has_failed = status && status != LEAT_END;
    *skipped = has_failed ? samples / batch->size
                          : leat__grouper_groups(batch, samples);
    return status == LEAT_END && *skipped == n ? LEAT_OK : status;
}

/* One batch: how many there are is the number of threads that read. */
static int64_t batch_reserves(leat_reader *reader)
{
    return atomic_load_explicit(&((batch_reader *)reader)->pool.first,
                                memory_order_relaxed);
}

/* clang-format off */
#define BATCH_OPS                                                              \
    .size = sizeof(leat_reader_ops), .name = "batch",                          \
    .fields = leat__grouper_fields, .next = batch_next, .seek = batch_seek,    \
    .cancel = leat__decorator_cancel, .close = leat__grouper_close,            \
    .materialize = leat__grouper_materialize, .count = leat__grouper_count,    \
    .skip = batch_skip, .can_seek = leat__decorator_can_seek,                  \
    .save = leat__decorator_save, .restore = leat__decorator_restore,          \
    .may_block = leat__decorator_may_block, .memory = leat__grouper_memory,    \
    .reserves = batch_reserves
/* clang-format on */

static const leat_reader_ops batch_ops = {
    BATCH_OPS,
    .read_at = batch_read_at,
    .advise = leat__grouper_advise,
};

static const leat_reader_ops batch_stream_ops = {
    BATCH_OPS,
    .mark = leat__decorator_mark,
};

static int batch_open(const leat_open *open, leat_reader **out)
{
    bool is_random_access = leat_reader_is_random_access(open->upstream[0]);
    int64_t size = leat_args_number(open->args, "size");
    leat__grouper *batch;
    int status = leat__grouper_new(
        open, is_random_access ? &batch_ops : &batch_stream_ops, sizeof(*batch),
        (int)size, &batch);
    if (status)
        return status;
    batch->drops_last = leat_args_number(open->args, "drop_last");
    status = leat__grouper_set_window(batch, size, size, 1);
    if (status) {
        leat__grouper_free(batch);
        return status;
    }
    *out = &batch->decorator.reader;
    return LEAT_OK;
}

static const leat_argument batch_arguments[] = {
    {.name = "size",
     .kind = LEAT_ARGUMENT_NUMBER,
     .positional = 1,
     .required = 1,
     .min = 1,
     .max = LEAT__GROUP_MAX,
     .help = "samples of a batch"},
    LEAT__GROUPING_ARGUMENTS,
    LEAT__DROP_LAST_ARGUMENT,
    {0},
};

const leat_reader_type leat__batch_type = {
    .size = sizeof(leat_reader_type),
    .name = "batch",
    .help = "several samples as one, along a new first axis",
    .arguments = batch_arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 1,
    .max_upstream = 1,
    .keeps_order = 1,
    .open = batch_open,
};

int leat_pipeline_batch(leat_pipeline **out, leat_pipeline *upstream,
                        int64_t size, const leat_group_options *options)
{
    char scalars[32];
    snprintf(scalars, sizeof(scalars), "%lld", (long long)size);
    return leat__grouper_create(out, &leat__batch_type, upstream, scalars,
                                options);
}
