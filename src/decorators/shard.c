/* shard:N,I, the samples I, I + N, I + 2N ... of each epoch. */
#include "base/error.h"
#include "base/memory.h"
#include "data/sample.h"
#include "data/token.h"
#include "decorators/decorators.h"
#include "decorators/index_map.h"

#include <leat/decorators.h>

#include <stdbool.h>
#include <stdio.h>

/* Over a stream `count` and `positions` of the map are not used. */
typedef struct shard_reader {
    leat__index_map map;
    int64_t shards;
    int64_t index;     /* which one */
    bool requires_all; /* no shard may be empty */
    int64_t at;        /* upstream samples of this epoch taken from a stream */
} shard_reader;

static leat_reader *upstream_of(const shard_reader *shard)
{
    return shard->map.decorator.upstream[0];
}

/* The index upstream of sample `i`, where nobody gets if it overflows. */
static int64_t index_of(const shard_reader *shard, int64_t i)
{
    int64_t index;
    return __builtin_mul_overflow(i, shard->shards, &index) ||
                   index > LEAT_ENDLESS - 1 - shard->index
               ? LEAT_ENDLESS - 1
               : index + shard->index;
}

static void spread_positions(const leat__index_map *map,
                             const leat_position at[], int n,
                             leat_position from[], int upstream[])
{
    const shard_reader *shard = (const shard_reader *)map;
    for (int i = 0; i < n; i++) {
        from[i] = (leat_position){at[i].epoch, index_of(shard, at[i].index)};
        upstream[i] = 0;
    }
}

static int too_few(const shard_reader *shard, int64_t available)
{
    return leat_error(LEAT_EINVAL,
                      "shard: %lld samples are too few for %lld shards that "
                      "may not be empty: expected fewer shards, or without "
                      "require_non_empty",
                      (long long)available, (long long)shard->shards);
}

/* Passes by what other shards have before the next sample of this one. */
static int pass_by(shard_reader *shard)
{
    int64_t rest = (shard->at + shard->shards - shard->index) % shard->shards;
    int64_t passed = 0;
    int status = LEAT_OK;
    if (rest > 0)
        status =
            leat_reader_skip(upstream_of(shard), shard->shards - rest, &passed);
    shard->at += passed;
    return status;
}

static int shard_next(leat_reader *reader, leat_sample *const out[], int n,
                      int *got)
{
    shard_reader *shard = (shard_reader *)reader;
    int status = LEAT_OK;
    size_t bytes = 0;
    while (!status && *got < n && bytes < LEAT__CALL_BYTES) {
        int some = 0;
        size_t before = out[*got]->buffer_size;
        status = pass_by(shard);
        if (!status)
            status = leat_reader_pull(upstream_of(shard), out + *got,
                                      shard->shards == 1 ? n : 1, &some);
        shard->at += some + (status == LEAT_EDATA);
        bytes += leat__sample_added(out + *got, 1, before);
        *got += some;
        if (shard->shards == 1)
            break;
    }
    if (status == LEAT_END && shard->requires_all && shard->at < shard->shards)
        return too_few(shard, shard->at);
    return status;
}

static int shard_seek(leat_reader *reader, leat_position position,
                      leat_token *mark)
{
    shard_reader *shard = (shard_reader *)reader;
    leat_position from = {position.epoch, 0};
    int status = LEAT_OK;
    if (mark)
        status = leat__token_get_counts(mark, "shard", &from.index, 1);
    else if (position.index > 0) /* just after the sample before */
        from.index = index_of(shard, position.index - 1) + 1;
    if (!status)
        status = leat_reader_seek(upstream_of(shard), from, mark);
    if (!status)
        shard->at = from.index;
    return status;
}

/* The index upstream, and then the mark there. */
static int shard_mark(leat_reader *reader, leat_token *token)
{
    const shard_reader *shard = (const shard_reader *)reader;
    int status = leat_token_put(token, &shard->at, sizeof(shard->at));
    return status ? status : leat__decorator_mark(reader, token);
}

static int shard_restore(leat_reader *reader, leat_token *token)
{
    int status = leat__index_map_restore(reader, token);
    if (!status)
        ((shard_reader *)reader)->at = 0;
    return status;
}

static const leat_reader_ops shard_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "shard",
    .fields = leat__decorator_fields,
    .next = leat__index_map_next,
    .seek = leat__index_map_seek,
    .cancel = leat__decorator_cancel,
    .close = leat__decorator_close,
    .count = leat__index_map_count,
    .read_at = leat__index_map_read_at,
    .advise = leat__index_map_advise,
    .save = leat__decorator_save,
    .restore = leat__index_map_restore,
    .may_block = leat__decorator_may_block,
};

static const leat_reader_ops shard_stream_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "shard",
    .fields = leat__decorator_fields,
    .next = shard_next,
    .seek = shard_seek,
    .cancel = leat__decorator_cancel,
    .close = leat__decorator_close,
    .can_seek = leat__decorator_can_seek,
    .mark = shard_mark,
    .save = leat__decorator_save,
    .restore = shard_restore,
    .may_block = leat__decorator_may_block,
};

/* Its part of all samples, over random access. */
static int set_count(shard_reader *shard)
{
    int64_t available;
    int status = leat_reader_count(upstream_of(shard), &available);
    if (status)
        return status;
    if (shard->requires_all && available < shard->shards)
        return too_few(shard, available);
    shard->map.positions = spread_positions;
    if (available == LEAT_ENDLESS)
        shard->map.count = LEAT_ENDLESS;
    else if (available > shard->index)
        shard->map.count = (available - shard->index - 1) / shard->shards + 1;
    return LEAT_OK;
}

static int shard_open(const leat_open *open, leat_reader **out)
{
    bool is_random_access = leat_reader_is_random_access(open->upstream[0]);
    int64_t shards = leat_args_number(open->args, "shards");
    int64_t index = leat_args_number(open->args, "index");
    if (index >= shards)
        return leat_error(LEAT_EINVAL,
                          "shard: index %lld of %lld shards: expected 0 to "
                          "%lld",
                          (long long)index, (long long)shards,
                          (long long)shards - 1);
    shard_reader *shard = leat__decorator_new(
        open, is_random_access ? &shard_ops : &shard_stream_ops,
        sizeof(*shard));
    if (!shard)
        return LEAT_ENOMEM;
    shard->shards = shards;
    shard->index = index;
    shard->requires_all = leat_args_number(open->args, "require_non_empty");
    int status = is_random_access ? set_count(shard) : LEAT_OK;
    if (status) {
        leat__free(shard);
        return status;
    }
    *out = &shard->map.decorator.reader;
    return LEAT_OK;
}

static const leat_argument shard_arguments[] = {
    {.name = "shards",
     .kind = LEAT_ARGUMENT_NUMBER,
     .positional = 1,
     .required = 1,
     .min = 1,
     .max = INT64_MAX / 2,
     .help = "shards into which each epoch is divided"},
    {.name = "index",
     .kind = LEAT_ARGUMENT_NUMBER,
     .positional = 1,
     .required = 1,
     .max = INT64_MAX / 2,
     .help = "which of them, from 0"},
    {.name = "require_non_empty",
     .kind = LEAT_ARGUMENT_NUMBER,
     .initial = "0",
     .max = 1,
     .help = "1: fewer samples than shards are an error"},
    {0},
};

const leat_reader_type leat__shard_type = {
    .size = sizeof(leat_reader_type),
    .name = "shard",
    .help = "every N-th sample of each epoch",
    .arguments = shard_arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 1,
    .max_upstream = 1,
    .open = shard_open,
};

int leat_pipeline_shard(leat_pipeline **out, leat_pipeline *upstream,
                        int64_t shards, int64_t index, int require_non_empty)
{
    char text[96];
    snprintf(text, sizeof(text), "%lld,%lld%s", (long long)shards,
             (long long)index, require_non_empty ? ",require_non_empty=1" : "");
    return leat_pipeline_create(out, &leat__shard_type, text, NULL, NULL,
                                &upstream, 1);
}
