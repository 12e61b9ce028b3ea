/* unbatch, the rows of each sample's first axis as samples. */
#include "base/error.h"
#include "base/memory.h"
#include "data/sample.h"
#include "data/token.h"
#include "decorators/batch_rows.h"
#include "decorators/decorator.h"
#include "decorators/decorators.h"
#include "decorators/group_pool.h"
#include "decorators/grouping.h"
#include "pipeline/reader_table.h"

#include <leat/decorators.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

/* Positions mapped in one go. */
#define AT_ONCE 64

typedef struct unbatch_reader {
    leat__decorator decorator; /* first */
    leat__group_pool pool;     /* batches that read_at reads */
    int64_t samples;           /* upstream, over random access */
    leat__batch_rows rows;
    atomic_int_fast64_t bytes; /* of `held` */
    /* of one caller at a time */
    bool is_planned;
    leat_sample held;   /* the batch whose rows come next */
    int64_t row, nrows; /* given, and in it */
    int64_t first;      /* row that is given first of the next batch */
    bool is_bad;        /* all of its rows are */
    char line[LEAT__ERROR_MAX];
    leat_token begin; /* the mark in front of the batch */
} unbatch_reader;

static leat_reader *upstream_of(const unbatch_reader *unbatch)
{
    return unbatch->decorator.upstream[0];
}

static int plan(unbatch_reader *unbatch)
{
    const leat_field_spec *in;
    int n;
    if (unbatch->is_planned)
        return LEAT_OK;
    int status = leat_reader_fields(upstream_of(unbatch), &in, &n);
    if (!status)
        status = leat__batch_rows_plan(&unbatch->rows, in, n);
    unbatch->is_planned = !status;
    return status;
}

/* The next batch. One that is bad has as many bad rows as are promised. */
static int load(unbatch_reader *unbatch)
{
    leat_reader *upstream = upstream_of(unbatch);
    leat_sample *held = &unbatch->held;
    int got;
    int64_t rows = 0;
    unbatch->begin.size = 0;
    int status = LEAT_OK;
    if (leat_reader_has_mark(&unbatch->decorator.reader))
        status = leat_reader_mark(upstream, &unbatch->begin);
    leat_sample_clear(held);
    unbatch->row = unbatch->nrows = 0;
    if (!status)
        status = leat_reader_pull(upstream, &held, 1, &got);
    if (!status)
        status = leat_reader_materialize(upstream, &held, 1, &got);
    if (!status)
        status = leat__batch_rows_count(&unbatch->rows, held, &rows);
    atomic_store_explicit(&unbatch->bytes, (int64_t)held->buffer_size,
                          memory_order_relaxed);
    unbatch->is_bad = status == LEAT_EDATA;
    if (status && !unbatch->is_bad)
        return status;
    if (unbatch->is_bad) {
        leat__error_save(unbatch->line);
        rows = unbatch->rows.per_batch >= 0 ? unbatch->rows.per_batch : 1;
    }
    unbatch->nrows = rows;
    unbatch->row = unbatch->first;
    unbatch->first = 0;
    if (unbatch->row <= rows)
        return LEAT_OK;
    return leat_error(LEAT_EINVAL,
                      "unbatch: there is no row %lld in a batch "
                      "of %lld: the mark is of other data",
                      (long long)unbatch->row, (long long)rows);
}

static int unbatch_next(leat_reader *reader, leat_sample *const out[], int n,
                        int *got)
{
    unbatch_reader *unbatch = (unbatch_reader *)reader;
    int status = plan(unbatch);
    size_t bytes = 0;
    while (*got < n && !status && bytes < LEAT__CALL_BYTES) {
        status = leat__decorator_check_running(&unbatch->decorator);
        while (!status && unbatch->row == unbatch->nrows)
            status = load(unbatch);
        if (status)
            break;
        if (unbatch->is_bad) {
            unbatch->row++;
            (void)leat__grouping_name(&unbatch->held, false, out[*got]);
            return leat_error(LEAT_EDATA, "%s", unbatch->line);
        }
        size_t before = out[*got]->buffer_size;
        status = leat__batch_rows_give(&unbatch->rows, &unbatch->held,
                                       unbatch->row, out[*got]);
        bytes += leat__sample_added(out + *got, 1, before);
        unbatch->row += !status;
        *got += !status;
    }
    return status;
}

/* Rows that are passed by are not copied; those of a bad batch count, too. */
static int unbatch_skip(leat_reader *reader, int64_t n, int64_t *skipped)
{
    unbatch_reader *unbatch = (unbatch_reader *)reader;
    int status = plan(unbatch);
    while (*skipped < n && !status) {
        int64_t rows = unbatch->nrows - unbatch->row, most = n - *skipped;
        unbatch->row += rows < most ? rows : most;
        *skipped += rows < most ? rows : most;
        if (*skipped < n)
            status = load(unbatch);
    }
    return status;
}

static int unbatch_fields(leat_reader *reader, const leat_field_spec **out,
                          int *n)
{
    unbatch_reader *unbatch = (unbatch_reader *)reader;
    int status = plan(unbatch);
    if (status)
        return status;
    *out = unbatch->rows.spec;
    *n = unbatch->rows.n;
    return LEAT_OK;
}

static void begin_at(unbatch_reader *unbatch, int64_t row)
{
    unbatch->row = unbatch->nrows = 0;
    unbatch->first = row;
}

/* By the mark: the batch, and the rows of it that were given. */
static int seek_marked(unbatch_reader *unbatch, leat_position position,
                       leat_token *mark)
{
    int64_t row = 0;
    const leat_position to = {position.epoch, 0};
    int status = leat_reader_seek(upstream_of(unbatch), to, mark);
    if (!status)
        status = leat__token_get_counts(mark, "unbatch", &row, 1);
    if (status)
        return status;
    begin_at(unbatch, row);
    if (row == 0)
        return LEAT_OK;
    status = plan(unbatch);
    if (!status)
        status = load(unbatch);
    if (status != LEAT_END)
        return status;
    return leat_error(LEAT_EINVAL, "unbatch: there is no batch: the mark is of "
                                   "other data");
}

static int unbatch_count(leat_reader *reader, int64_t *out)
{
    const unbatch_reader *unbatch = (const unbatch_reader *)reader;
    bool is_endless =
        unbatch->samples > LEAT_ENDLESS / (unbatch->rows.per_batch + 1);
    *out =
        is_endless ? LEAT_ENDLESS : unbatch->samples * unbatch->rows.per_batch;
    return LEAT_OK;
}

static int unbatch_seek(leat_reader *reader, leat_position position,
                        leat_token *mark)
{
    unbatch_reader *unbatch = (unbatch_reader *)reader;
    if (mark)
        return seek_marked(unbatch, position, mark);
    int status = position.index > 0 ? plan(unbatch) : LEAT_OK;
    if (status)
        return status;
    if (position.index > 0 && unbatch->rows.per_batch < 1)
        return leat_error(LEAT_EUNSUPPORTED,
                          "unbatch: rows before sample %lld are not known",
                          (long long)position.index);
    int64_t count = LEAT_ENDLESS;
    if (leat_reader_is_random_access(reader))
        (void)unbatch_count(reader, &count);
    if (position.index > count)
        return leat_error(LEAT_EINVAL,
                          "unbatch: sample %lld is out of range: there are "
                          "%lld",
                          (long long)position.index, (long long)count);
    int64_t rows = unbatch->rows.per_batch > 0 ? unbatch->rows.per_batch : 1;
    const leat_position to = {position.epoch, position.index / rows};
    status = leat_reader_seek(upstream_of(unbatch), to, NULL);
    if (!status)
        begin_at(unbatch, position.index % rows);
    return status;
}

static int unbatch_mark(leat_reader *reader, leat_token *token)
{
    const unbatch_reader *unbatch = (const unbatch_reader *)reader;
    bool is_inside = unbatch->row < unbatch->nrows;
    int64_t row = is_inside ? unbatch->row : unbatch->first;
    int status = is_inside ? leat_token_put(token, unbatch->begin.bytes,
                                            unbatch->begin.size)
                           : leat_reader_mark(upstream_of(unbatch), token);
    return status ? status : leat_token_put(token, &row, sizeof(row));
}

static int unbatch_restore(leat_reader *reader, leat_token *token)
{
    int status = leat__decorator_restore(reader, token);
    if (!status)
        begin_at((unbatch_reader *)reader, 0);
    return status;
}

static leat_position batch_of(const unbatch_reader *unbatch, leat_position row)
{
    return (leat_position){row.epoch, row.index / unbatch->rows.per_batch};
}

static bool is_same(leat_position a, leat_position b)
{
    return a.epoch == b.epoch && a.index == b.index;
}

/* The line of the batch's error, which all of its rows have. */
static const char *copy_line(leat_sample *batch)
{
    char line[LEAT__ERROR_MAX];
    leat__error_save(line);
    char *copy = leat__sample_take(batch, sizeof(line));
    return copy ? memcpy(copy, line, sizeof(line)) : NULL;
}

/* Reads the batch at `at`; a bad one has a line. */
static int read_batch(unbatch_reader *unbatch, leat_position at,
                      leat__group *group)
{
    int64_t rows;
    int got;
    int status = leat__group_clear(&unbatch->pool, group, 0, 1);
    if (status)
        return status;
    leat_sample *batch = group->sample[0];
    status = leat_reader_pull_at(upstream_of(unbatch), &at, &batch, 1, &got);
    if (!status)
        status = leat__batch_rows_count(&unbatch->rows, batch, &rows);
    if (status == LEAT_EDATA) {
        group->line = copy_line(batch);
        status = group->line ? LEAT_OK : LEAT_ENOMEM;
    }
    leat__group_pool_count(&unbatch->pool, group);
    if (!status)
        group->kept = at;
    return status;
}

/* The rows of one batch, as many as follow each other. */
static int give_rows(const unbatch_reader *unbatch, const leat__group *group,
                     const leat_position at[], leat_sample *const out[], int n,
                     int *got)
{
    const leat_sample *batch = group->sample[0];
    int status = LEAT_OK;
    if (group->line) {
        (void)leat__grouping_name(batch, false, out[0]);
        return leat_error(LEAT_EDATA, "%s", group->line);
    }
    while (*got < n && !status &&
           is_same(batch_of(unbatch, at[*got]), group->kept)) {
        status = leat__batch_rows_give(&unbatch->rows, batch,
                                       at[*got].index % unbatch->rows.per_batch,
                                       out[*got]);
        *got += !status;
    }
    return status;
}

static int unbatch_read_at(leat_reader *reader, const leat_position at[],
                           leat_sample *const out[], int n, int *got)
{
    unbatch_reader *unbatch = (unbatch_reader *)reader;
    const leat_position from = batch_of(unbatch, at[0]);
    leat__group *group;
    int status = leat__decorator_check_running(&unbatch->decorator);
    if (!status)
        status = leat__group_pool_take_kept(&unbatch->pool, from, &group);
    if (status)
        return status;
    if (!is_same(group->kept, from))
        status = read_batch(unbatch, from, group);
    if (!status)
        status = give_rows(unbatch, group, at, out, n, got);
    leat__group_pool_give_back(&unbatch->pool, group);
    return status;
}

static void unbatch_advise(leat_reader *reader, const leat_position at[], int n)
{
    const unbatch_reader *unbatch = (const unbatch_reader *)reader;
    leat_position from[AT_ONCE];
    for (int i = 0, used = 0; i < n; i++) {
        leat_position one = batch_of(unbatch, at[i]);
        if (used == 0 || !is_same(from[used - 1], one))
            from[used++] = one;
        if (used < AT_ONCE && i + 1 < n)
            continue;
        leat_reader_advise(upstream_of(unbatch), from, used);
        used = 0;
    }
}

static int64_t unbatch_memory(leat_reader *reader)
{
    unbatch_reader *unbatch = (unbatch_reader *)reader;
    return atomic_load_explicit(&unbatch->bytes, memory_order_relaxed) +
           atomic_load_explicit(&unbatch->pool.bytes, memory_order_relaxed);
}

static void release(unbatch_reader *unbatch)
{
    leat__group_pool_finish(&unbatch->pool);
    leat_sample_finish(&unbatch->held);
    leat_token_finish(&unbatch->begin);
}

static void unbatch_close(leat_reader *reader)
{
    release((unbatch_reader *)reader);
    leat__decorator_close(reader);
}

/* clang-format off */
#define UNBATCH_OPS                                                            \
    .size = sizeof(leat_reader_ops), .name = "unbatch",                        \
    .fields = unbatch_fields, .next = unbatch_next, .seek = unbatch_seek,      \
    .cancel = leat__decorator_cancel, .close = unbatch_close,                  \
    .skip = unbatch_skip, .save = leat__decorator_save,                        \
    .restore = unbatch_restore,                                                \
    .may_block = leat__decorator_may_block, .memory = unbatch_memory
/* clang-format on */

static const leat_reader_ops unbatch_ops = {
    UNBATCH_OPS,
    .count = unbatch_count,
    .read_at = unbatch_read_at,
    .advise = unbatch_advise,
    .can_seek = leat__decorator_can_seek,
};

static const leat_reader_ops unbatch_stream_ops = {
    UNBATCH_OPS,
    .can_seek = leat__reader_no,
    .mark = unbatch_mark,
};

/* Random access where each sample has as many rows as the others. */
static int choose(unbatch_reader *unbatch)
{
    leat_reader *upstream = upstream_of(unbatch);
    if (!leat_reader_is_random_access(upstream))
        return LEAT_OK;
    int status = plan(unbatch);
    if (!status)
        status = leat_reader_count(upstream, &unbatch->samples);
    if (!status && unbatch->rows.per_batch > 0)
        unbatch->decorator.reader.ops = &unbatch_ops;
    return status;
}

static int unbatch_open(const leat_open *open, leat_reader **out)
{
    unbatch_reader *unbatch =
        leat__decorator_new(open, &unbatch_stream_ops, sizeof(*unbatch));
    if (!unbatch)
        return LEAT_ENOMEM;
    leat_sample_init(&unbatch->held);
    unbatch->held.allocator = open->allocator;
    leat_token_init(&unbatch->begin);
    int status = leat__group_pool_init(&unbatch->pool, "unbatch", open, 1);
    if (!status) {
        status = choose(unbatch);
        if (status)
            release(unbatch);
    }
    if (status) {
        leat__free(unbatch);
        return status;
    }
    *out = &unbatch->decorator.reader;
    return LEAT_OK;
}

const leat_reader_type leat__unbatch_type = {
    .size = sizeof(leat_reader_type),
    .name = "unbatch",
    .help = "the rows of each sample's first axis as samples",
    .min_upstream = 1,
    .max_upstream = 1,
    .keeps_order = 1,
    .open = unbatch_open,
};

int leat_pipeline_unbatch(leat_pipeline **out, leat_pipeline *upstream)
{
    return leat_pipeline_create(out, &leat__unbatch_type, NULL, NULL, NULL,
                                &upstream, 1);
}
