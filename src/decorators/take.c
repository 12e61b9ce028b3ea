/* take:N, the first samples of each epoch. */
#include "base/error.h"
#include "base/memory.h"
#include "data/token.h"
#include "decorators/decorators.h"
#include "decorators/index_map.h"

#include <leat/decorators.h>

#include <stdbool.h>
#include <stdio.h>

/* Over a stream `positions` is not used, and `count` is what was asked for. */
typedef leat__index_map take_reader;

static void keep_positions(const leat__index_map *map, const leat_position at[],
                           int n, leat_position from[], int upstream[])
{
    (void)map;
    for (int i = 0; i < n; i++) {
        from[i] = at[i];
        upstream[i] = 0;
    }
}

static int take_next(leat_reader *reader, leat_sample *const out[], int n,
                     int *got)
{
    take_reader *take = (take_reader *)reader;
    int64_t left = take->count - take->next.index;
    if (left == 0)
        return LEAT_END;
    int status = leat_reader_pull(take->decorator.upstream[0], out,
                                  n < left ? n : (int)left, got);
    take->next.index += *got + (status == LEAT_EDATA);
    return status;
}

static int take_skip(leat_reader *reader, int64_t n, int64_t *skipped)
{
    take_reader *take = (take_reader *)reader;
    int64_t left = take->count - take->next.index;
    if (left == 0)
        return LEAT_END;
    int status = leat_reader_skip(take->decorator.upstream[0],
                                  n < left ? n : left, skipped);
    take->next.index += *skipped;
    return status;
}

static int take_seek(leat_reader *reader, leat_position position,
                     leat_token *mark)
{
    take_reader *take = (take_reader *)reader;
    if (!mark && position.index > take->count)
        return leat__index_map_seek(reader, position, NULL);
    int status = leat__decorator_seek(reader, position, mark);
    if (!status && mark)
        status = leat__token_get_counts(mark, "take", &position.index, 1);
    if (!status && position.index > take->count)
        status = leat_error(LEAT_EINVAL, "take: %lld is not a position",
                            (long long)position.index);
    if (!status)
        take->next = position;
    return status;
}

static int take_mark(leat_reader *reader, leat_token *token)
{
    const take_reader *take = (const take_reader *)reader;
    int status = leat__decorator_mark(reader, token);
    return status ? status
                  : leat_token_put(token, &take->next.index,
                                   sizeof(take->next.index));
}

/* Unless it takes all. */
static int take_is_endless(leat_reader *reader)
{
    const leat__index_map *map = (const leat__index_map *)reader;
    return map->count == INT64_MAX &&
           leat_reader_is_endless(map->decorator.upstream[0]);
}

static const leat_reader_ops take_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "take",
    .fields = leat__decorator_fields,
    .next = take_next,
    .seek = take_seek,
    .cancel = leat__decorator_cancel,
    .close = leat__decorator_close,
    .count = leat__index_map_count,
    .read_at = leat__index_map_read_at,
    .advise = leat__index_map_advise,
    .skip = take_skip,
    .can_seek = leat__decorator_can_seek,
    .save = leat__decorator_save,
    .restore = leat__index_map_restore,
    .may_block = leat__decorator_may_block,
};

static const leat_reader_ops take_stream_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "take",
    .fields = leat__decorator_fields,
    .next = take_next,
    .seek = take_seek,
    .cancel = leat__decorator_cancel,
    .close = leat__decorator_close,
    .skip = take_skip,
    .can_seek = leat__decorator_can_seek,
    .is_endless = take_is_endless,
    .mark = take_mark,
    .save = leat__decorator_save,
    .restore = leat__index_map_restore,
    .may_block = leat__decorator_may_block,
};

static int take_open(const leat_open *open, leat_reader **out)
{
    leat_reader *upstream = open->upstream[0];
    bool is_random_access = leat_reader_is_random_access(upstream);
    take_reader *take = leat__decorator_new(
        open, is_random_access ? &take_ops : &take_stream_ops, sizeof(*take));
    if (!take)
        return LEAT_ENOMEM;
    take->positions = keep_positions;
    take->count = leat_args_number(open->args, "count");
    if (take->count < 0)
        take->count = INT64_MAX;
    int64_t available = INT64_MAX;
    int status =
        is_random_access ? leat_reader_count(upstream, &available) : LEAT_OK;
    if (status) {
        leat__free(take);
        return status;
    }
    if (take->count > available)
        take->count = available;
    *out = &take->decorator.reader;
    return LEAT_OK;
}

static const leat_argument take_arguments[] = {
    {.name = "count",
     .kind = LEAT_ARGUMENT_NUMBER,
     .positional = 1,
     .required = 1,
     .min = -1,
     .max = INT64_MAX,
     .help = "samples of each epoch; -1: all"},
    {0},
};

const leat_reader_type leat__take_type = {
    .size = sizeof(leat_reader_type),
    .name = "take",
    .help = "the first samples of each epoch",
    .arguments = take_arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 1,
    .max_upstream = 1,
    .keeps_order = 1,
    .open = take_open,
};

int leat_pipeline_take(leat_pipeline **out, leat_pipeline *upstream,
                       int64_t count)
{
    char text[32];
    snprintf(text, sizeof(text), "%lld", (long long)count);
    return leat_pipeline_create(out, &leat__take_type, text, NULL, NULL,
                                &upstream, 1);
}
