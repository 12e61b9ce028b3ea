/* drop_behind: the files below it drop pages that were read in order. */
#include "base/memory.h"
#include "decorators/decorator.h"
#include "decorators/decorators.h"

#include <leat/decorators.h>

/* It only passes calls on: what it asks for was told to the files at open. */
static int drop_count(leat_reader *reader, int64_t *out)
{
    return leat_reader_count(((leat__decorator *)reader)->upstream[0], out);
}

static int drop_read_at(leat_reader *reader, const leat_position at[],
                        leat_sample *const out[], int n, int *got)
{
    return leat_reader_pull_at(((leat__decorator *)reader)->upstream[0], at,
                               out, n, got);
}

static void drop_advise(leat_reader *reader, const leat_position at[], int n)
{
    leat_reader_advise(((leat__decorator *)reader)->upstream[0], at, n);
}

static int drop_skip(leat_reader *reader, int64_t n, int64_t *skipped)
{
    return leat_reader_skip(((leat__decorator *)reader)->upstream[0], n,
                            skipped);
}

#define DROP_OPS                                                               \
    .size = sizeof(leat_reader_ops), .name = "drop_behind",                    \
    .fields = leat__decorator_fields, .next = leat__decorator_next,            \
    .seek = leat__decorator_seek, .cancel = leat__decorator_cancel,            \
    .close = leat__decorator_close, .count = drop_count, .skip = drop_skip,    \
    .can_seek = leat__decorator_can_seek, .save = leat__decorator_save,        \
    .restore = leat__decorator_restore,                                        \
    .may_block = leat__decorator_may_block,                                    \
    .is_endless = leat__decorator_is_any_endless

static const leat_reader_ops random_access_ops = {
    DROP_OPS, .read_at = drop_read_at, .advise = drop_advise};

static const leat_reader_ops stream_ops = {DROP_OPS};

static const leat_reader_ops marked_ops = {DROP_OPS,
                                           .mark = leat__decorator_mark};

static int drop_open(const leat_open *open, leat_reader **out)
{
    leat_reader *upstream = open->upstream[0];
    const leat_reader_ops *ops = &stream_ops;
    if (leat_reader_has_mark(upstream))
        ops = &marked_ops;
    else if (leat_reader_is_random_access(upstream))
        ops = &random_access_ops;
    leat__decorator *decorator =
        leat__decorator_new(open, ops, sizeof(*decorator));
    if (!decorator)
        return LEAT_ENOMEM;
    *out = &decorator->reader;
    return LEAT_OK;
}

const leat_reader_type leat__drop_behind_type = {
    .size = sizeof(leat_reader_type),
    .name = "drop_behind",
    .help = "files below it drop pages from memory that were read in order",
    .min_upstream = 1,
    .max_upstream = 1,
    .passes_on = 1,
    .keeps_order = 1,
    .drops_behind = 1,
    .open = drop_open,
};

int leat_pipeline_drop_behind(leat_pipeline **out, leat_pipeline *upstream)
{
    return leat_pipeline_create(out, &leat__drop_behind_type, NULL, NULL, NULL,
                                &upstream, 1);
}
