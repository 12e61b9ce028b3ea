/* skip:N, what follows the first samples of each epoch. */
#include "base/error.h"
#include "base/memory.h"
#include "data/token.h"
#include "decorators/decorators.h"
#include "decorators/index_map.h"

#include <leat/decorators.h>

#include <stdbool.h>
#include <stdio.h>

/* `skip` of a reader that leaves all out. */
#define ALL INT64_MAX

/* Over a stream `count` and `positions` of the map are not used. */
typedef struct skip_reader {
    leat__index_map map;
    int64_t skip;  /* samples left out of each epoch */
    bool is_found; /* the first sample is found by its index */
    int64_t left;  /* to be passed by before the next sample */
    int64_t at;    /* the upstream index of a stream */
} skip_reader;

static leat_reader *upstream_of(const skip_reader *skip)
{
    return skip->map.decorator.upstream[0];
}

/* Nobody gets as far as where the sum would overflow. */
static int64_t add(int64_t a, int64_t b)
{
    return a < LEAT_ENDLESS - 1 - b ? a + b : LEAT_ENDLESS - 1;
}

static void shift_positions(const leat__index_map *map,
                            const leat_position at[], int n,
                            leat_position from[], int upstream[])
{
    const skip_reader *skip = (const skip_reader *)map;
    for (int i = 0; i < n; i++) {
        from[i] = (leat_position){at[i].epoch, add(at[i].index, skip->skip)};
        upstream[i] = 0;
    }
}

/* Goes to the first sample that is given, unless the reader is there. */
static int pass_by(skip_reader *skip)
{
    int64_t passed;
    int status = leat__decorator_check_running(&skip->map.decorator);
    if (status || skip->left == 0)
        return status;
    if (skip->left == ALL)
        return LEAT_END;
    if (skip->is_found) {
        const leat_position first = {skip->map.next.epoch, skip->skip};
        status = leat_reader_seek(upstream_of(skip), first, NULL);
        passed = status ? 0 : skip->left;
    } else {
        status = leat_reader_skip(upstream_of(skip), skip->left, &passed);
    }
    skip->left -= passed;
    skip->at = add(skip->at, passed);
    return status;
}

static int skip_next(leat_reader *reader, leat_sample *const out[], int n,
                     int *got)
{
    skip_reader *skip = (skip_reader *)reader;
    int status = pass_by(skip);
    if (!status)
        status = leat_reader_pull(upstream_of(skip), out, n, got);
    skip->at = add(skip->at, *got + (status == LEAT_EDATA));
    return status;
}

static int skip_skip(leat_reader *reader, int64_t n, int64_t *skipped)
{
    skip_reader *skip = (skip_reader *)reader;
    int status = pass_by(skip);
    if (!status)
        status = leat_reader_skip(upstream_of(skip), n, skipped);
    skip->at = add(skip->at, *skipped);
    return status;
}

static int skip_seek(leat_reader *reader, leat_position position,
                     leat_token *mark)
{
    skip_reader *skip = (skip_reader *)reader;
    (void)mark;
    if (position.index > skip->map.count)
        return leat__index_map_seek(reader, position, mark);
    leat_position from = {position.epoch, 0};
    if (position.index > 0)
        from.index = add(position.index, skip->skip);
    int status = leat_reader_seek(upstream_of(skip), from, NULL);
    if (status)
        return status;
    skip->map.next = position;
    skip->left = position.index > 0 ? 0 : skip->skip;
    skip->at = from.index;
    return LEAT_OK;
}

static int skip_seek_mark(leat_reader *reader, leat_position position,
                          leat_token *mark)
{
    skip_reader *skip = (skip_reader *)reader;
    if (!mark)
        return skip_seek(reader, position, NULL);
    int64_t state[2];
    int status = leat__token_get_counts(mark, "skip", state, 2);
    if (!status && state[1] > skip->skip)
        status = leat_error(LEAT_EINVAL, "skip: %lld are not to be left out",
                            (long long)state[1]);
    if (status)
        return status;
    const leat_position from = {position.epoch, state[0]};
    status = leat_reader_seek(upstream_of(skip), from, mark);
    if (status)
        return status;
    skip->map.next = position;
    skip->at = state[0];
    skip->left = state[1];
    return LEAT_OK;
}

/* The index upstream and what is to be left out, and then the mark there. */
static int skip_mark(leat_reader *reader, leat_token *token)
{
    const skip_reader *skip = (const skip_reader *)reader;
    const int64_t state[] = {skip->at, skip->left};
    int status = leat_token_put(token, state, sizeof(state));
    return status ? status : leat__decorator_mark(reader, token);
}

static int skip_restore(leat_reader *reader, leat_token *token)
{
    skip_reader *skip = (skip_reader *)reader;
    int status = leat__index_map_restore(reader, token);
    if (status)
        return status;
    skip->left = skip->skip;
    skip->at = 0;
    return LEAT_OK;
}

static const leat_reader_ops skip_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "skip",
    .fields = leat__decorator_fields,
    .next = skip_next,
    .seek = skip_seek,
    .cancel = leat__decorator_cancel,
    .close = leat__decorator_close,
    .count = leat__index_map_count,
    .read_at = leat__index_map_read_at,
    .advise = leat__index_map_advise,
    .skip = skip_skip,
    .can_seek = leat__decorator_can_seek,
    .save = leat__decorator_save,
    .restore = skip_restore,
    .may_block = leat__decorator_may_block,
};

static const leat_reader_ops skip_stream_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "skip",
    .fields = leat__decorator_fields,
    .next = skip_next,
    .seek = skip_seek_mark,
    .cancel = leat__decorator_cancel,
    .close = leat__decorator_close,
    .skip = skip_skip,
    .can_seek = leat__decorator_can_seek,
    .mark = skip_mark,
    .save = leat__decorator_save,
    .restore = skip_restore,
    .may_block = leat__decorator_may_block,
};

/* Over random access nothing beyond the end is skipped. */
static int set_count(skip_reader *skip)
{
    int64_t available;
    int status = leat_reader_count(upstream_of(skip), &available);
    if (status)
        return status;
    if (skip->skip > available)
        skip->skip = available;
    skip->map.positions = shift_positions;
    skip->map.count = available == LEAT_ENDLESS && skip->skip < available
                          ? LEAT_ENDLESS
                          : available - skip->skip;
    skip->is_found = leat_reader_can_seek(upstream_of(skip));
    return LEAT_OK;
}

static int skip_open(const leat_open *open, leat_reader **out)
{
    bool is_random_access = leat_reader_is_random_access(open->upstream[0]);
    skip_reader *skip = leat__decorator_new(
        open, is_random_access ? &skip_ops : &skip_stream_ops, sizeof(*skip));
    if (!skip)
        return LEAT_ENOMEM;
    skip->skip = leat_args_number(open->args, "count");
    if (skip->skip < 0)
        skip->skip = ALL;
    skip->map.count = LEAT_ENDLESS;
    int status = is_random_access ? set_count(skip) : LEAT_OK;
    if (status) {
        leat__free(skip);
        return status;
    }
    skip->left = skip->skip;
    *out = &skip->map.decorator.reader;
    return LEAT_OK;
}

static const leat_argument skip_arguments[] = {
    {.name = "count",
     .kind = LEAT_ARGUMENT_NUMBER,
     .positional = 1,
     .required = 1,
     .min = -1,
     .max = INT64_MAX,
     .help = "samples of each epoch to leave out; -1: all"},
    {0},
};

const leat_reader_type leat__skip_type = {
    .size = sizeof(leat_reader_type),
    .name = "skip",
    .help = "what follows the first samples of each epoch",
    .arguments = skip_arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 1,
    .max_upstream = 1,
    .keeps_order = 1,
    .open = skip_open,
};

int leat_pipeline_skip(leat_pipeline **out, leat_pipeline *upstream,
                       int64_t count)
{
    char text[32];
    snprintf(text, sizeof(text), "%lld", (long long)count);
    return leat_pipeline_create(out, &leat__skip_type, text, NULL, NULL,
                                &upstream, 1);
}
