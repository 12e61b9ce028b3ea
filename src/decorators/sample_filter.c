#include "decorators/sample_filter.h"
#include "base/error.h"
#include "base/memory.h"

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

/* The next sample, complete, and whether it is given. */
static int take_one(leat__sample_filter *filter, leat_sample *sample,
                    bool *keeps)
{
    leat_reader *upstream = filter->decorator.upstream[0];
    int got;
    int status = leat__decorator_check_running(&filter->decorator);
    if (!status)
        status = leat_reader_pull(upstream, &sample, 1, &got);
    if (status && status != LEAT_EDATA)
        return status;
    filter->taken.index++;
    if (!status && sample->deferred)
        status = leat_reader_materialize(upstream, &sample, 1, &got);
    sample->deferred = 0;
    return status ? status : test(filter, sample, keeps);
}

static int filter_next(leat_reader *reader, leat_sample *const out[], int n,
                       int *got)
{
    leat__sample_filter *filter = filter_of(reader);
    while (*got < n) {
        leat_sample *sample = out[*got];
        const fields_before before = {sample->nfields, sample->stable,
                                      sample->taken};
        bool keeps = false;
        int status = take_one(filter, sample, &keeps);
        if (status)
            return status;
        if (keeps)
            ++*got;
        else
            drop(sample, &before);
    }
    return LEAT_OK;
}

static int filter_seek(leat_reader *reader, leat_position position,
                       leat_token *mark)
{
    leat__sample_filter *filter = filter_of(reader);
    leat_position to = {position.epoch, 0};
    if (position.index > 0 && !mark)
        return leat_error(LEAT_EUNSUPPORTED,
                          "%s: no index finds a sample again: expected 0, or a "
                          "mark",
                          reader->ops->name);
    int status = mark ? leat_token_get(mark, &to, sizeof(to)) : LEAT_OK;
    if (!status && (to.epoch < 0 || to.index < 0))
        status =
            leat_error(LEAT_EINVAL, "%s: the mark is none", reader->ops->name);
    if (!status)
        status = leat__decorator_seek(reader, to, mark);
    if (!status)
        filter->taken = to;
    return status;
}

/* Before the upstream reader's, which seek needs it for. */
static int filter_mark(leat_reader *reader, leat_token *token)
{
    const leat__sample_filter *filter = filter_of(reader);
    int status = leat_token_put(token, &filter->taken, sizeof(filter->taken));
    return status ? status : leat__decorator_mark(reader, token);
}

static int filter_can_seek(leat_reader *reader)
{
    (void)reader;
    return 0;
}

static int filter_restore(leat_reader *reader, leat_token *token)
{
    int status = leat__decorator_restore(reader, token);
    if (!status)
        filter_of(reader)->taken = (leat_position){0, 0};
    return status;
}

static void filter_cancel(leat_reader *reader)
{
    leat__sample_filter *filter = filter_of(reader);
    leat__decorator_cancel(reader);
    if (filter->kind->cancel)
        filter->kind->cancel(filter);
}

static const leat_reader_ops filter_ops = {
    .size = sizeof(leat_reader_ops),
    .fields = leat__decorator_fields,
    .next = filter_next,
    .seek = filter_seek,
    .cancel = filter_cancel,
    .close = leat__decorator_close,
    .can_seek = filter_can_seek,
    .mark = filter_mark,
    .save = leat__decorator_save,
    .restore = filter_restore,
    .may_block = leat__decorator_may_block,
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
