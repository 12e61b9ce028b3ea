/*
 * repeat:N, several epochs of the upstream reader as one: pass k of epoch e is
 * its epoch e N + k, in the order that it has there.
 */
#include "base/error.h"
#include "base/memory.h"
#include "data/token.h"
#include "decorators/decorators.h"
#include "decorators/index_map.h"

#include <leat/decorators.h>

#include <stdbool.h>
#include <stdio.h>

/* `times` of a reader that repeats for ever. */
#define FOR_EVER INT64_MAX

typedef struct repeat_reader {
    leat__index_map map; /* over a stream, of it `next.epoch` alone is used */
    int64_t times;
    int64_t length; /* of an upstream epoch; -1: unknown */
    int64_t pass;   /* in this epoch; `times`: it has ended */
    int64_t taken;  /* samples of this pass */
} repeat_reader;

static leat_reader *upstream_of(const repeat_reader *repeat)
{
    return repeat->map.decorator.upstream[0];
}

/* Its epoch upstream; what overflows begins anew. An endless epoch counts as
 * one pass, so that another one begins with another pass. */
static int64_t epoch_of(const repeat_reader *repeat, int64_t epoch,
                        int64_t pass)
{
    uint64_t times = repeat->times == FOR_EVER ? 1 : (uint64_t)repeat->times;
    return (int64_t)(((uint64_t)epoch * times + (uint64_t)pass) & INT64_MAX);
}

static void wrap_positions(const leat__index_map *map, const leat_position at[],
                           int n, leat_position from[], int upstream[])
{
    const repeat_reader *repeat = (const repeat_reader *)map;
    int64_t length = repeat->length;
    for (int i = 0; i < n; i++) {
        int64_t index = at[i].index;
        int64_t pass = index < length ? 0 : index / length;
        from[i].epoch = epoch_of(repeat, at[i].epoch, pass);
        from[i].index = index - pass * length;
        upstream[i] = 0;
    }
}

/* After the end of a pass; LEAT_END after the last one, and over nothing. */
static int begin_pass(repeat_reader *repeat)
{
    if (repeat->length == 0 ||
        (repeat->times == FOR_EVER && repeat->taken == 0))
        return LEAT_END;
    int64_t pass = repeat->pass + 1;
    if (pass < repeat->times) {
        const leat_position first = {
            epoch_of(repeat, repeat->map.next.epoch, pass), 0};
        int status = leat_reader_seek(upstream_of(repeat), first, NULL);
        if (status) /* A single pass is all there is. */
            return status == LEAT_EUNSUPPORTED ? LEAT_END : status;
    }
    repeat->pass = pass;
    repeat->taken = 0;
    return pass < repeat->times ? LEAT_OK : LEAT_END;
}

static int repeat_next(leat_reader *reader, leat_sample *const out[], int n,
                       int *got)
{
    repeat_reader *repeat = (repeat_reader *)reader;
    int status;
    do {
        status = leat__decorator_check_running(&repeat->map.decorator);
        if (status)
            return status;
        if (repeat->pass == repeat->times)
            return LEAT_END;
        status = leat_reader_pull(upstream_of(repeat), out, n, got);
        repeat->taken += *got + (status == LEAT_EDATA);
        if (status != LEAT_END)
            return status;
        status = begin_pass(repeat);
    } while (!status);
    return status;
}

static int repeat_skip(leat_reader *reader, int64_t n, int64_t *skipped)
{
    repeat_reader *repeat = (repeat_reader *)reader;
    int status = LEAT_OK;
    while (!status && *skipped < n) {
        int64_t more = 0;
        status = leat__decorator_check_running(&repeat->map.decorator);
        if (!status && repeat->pass == repeat->times)
            status = LEAT_END;
        if (status)
            return status;
        status = leat_reader_skip(upstream_of(repeat), n - *skipped, &more);
        repeat->taken += more;
        *skipped += more;
        if (status == LEAT_END)
            status = begin_pass(repeat);
    }
    return status;
}

static int go_to_pass(repeat_reader *repeat, int64_t epoch, int64_t pass,
                      int64_t taken, leat_token *mark)
{
    /* After the last pass the upstream reader stands at its end. */
    bool is_over = pass > 0 && pass == repeat->times;
    const leat_position from = {epoch_of(repeat, epoch, pass - is_over),
                                is_over && !mark ? repeat->length : taken};
    int status = leat_reader_seek(upstream_of(repeat), from, mark);
    if (status)
        return status;
    repeat->map.next.epoch = epoch;
    repeat->pass = pass;
    repeat->taken = taken;
    return LEAT_OK;
}

static int repeat_seek(leat_reader *reader, leat_position position,
                       leat_token *mark)
{
    repeat_reader *repeat = (repeat_reader *)reader;
    int64_t length = repeat->length;
    (void)mark;
    if (length >= 0 && position.index > repeat->map.count)
        return leat__index_map_seek(reader, position, NULL);
    if (position.index == 0)
        return go_to_pass(repeat, position.epoch, 0, 0, NULL);
    if (length < 0)
        return leat_error(LEAT_EUNSUPPORTED,
                          "repeat: sample %lld cannot be found by its index, "
                          "as the length of a pass is unknown",
                          (long long)position.index);
    return go_to_pass(repeat, position.epoch, position.index / length,
                      position.index % length, NULL);
}

/* The upstream epoch is needed first, so the pass stands before its mark. */
static int repeat_seek_mark(leat_reader *reader, leat_position position,
                            leat_token *mark)
{
    repeat_reader *repeat = (repeat_reader *)reader;
    int64_t at[2];
    if (!mark)
        return repeat_seek(reader, position, NULL);
    int status = leat__token_get_counts(mark, "repeat", at, 2);
    if (status)
        return status;
    if (at[0] > repeat->times)
        return leat_error(LEAT_EINVAL, "repeat: there is no pass %lld",
                          (long long)at[0]);
    return go_to_pass(repeat, position.epoch, at[0], at[1], mark);
}

static int repeat_mark(leat_reader *reader, leat_token *token)
{
    const repeat_reader *repeat = (const repeat_reader *)reader;
    const int64_t at[] = {repeat->pass, repeat->taken};
    int status = leat_token_put(token, at, sizeof(at));
    return status ? status : leat__decorator_mark(reader, token);
}

static int repeat_can_seek(leat_reader *reader)
{
    return ((repeat_reader *)reader)->length >= 0 &&
           leat__decorator_can_seek(reader);
}

static int repeat_restore(leat_reader *reader, leat_token *token)
{
    repeat_reader *repeat = (repeat_reader *)reader;
    int status = leat__index_map_restore(reader, token);
    if (!status)
        repeat->pass = repeat->taken = 0;
    return status;
}

/* A single pass, which ends, is not told from what begins again. */
static int repeat_is_endless(leat_reader *reader)
{
    const repeat_reader *repeat = (const repeat_reader *)reader;
    if (repeat->times == 0 || repeat->length == 0)
        return 0;
    return repeat->times == FOR_EVER ||
           leat_reader_is_endless(upstream_of(repeat));
}

static const leat_reader_ops repeat_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "repeat",
    .fields = leat__decorator_fields,
    .next = repeat_next,
    .seek = repeat_seek,
    .cancel = leat__decorator_cancel,
    .close = leat__decorator_close,
    .count = leat__index_map_count,
    .read_at = leat__index_map_read_at,
    .advise = leat__index_map_advise,
    .skip = repeat_skip,
    .can_seek = repeat_can_seek,
    .save = leat__decorator_save,
    .restore = repeat_restore,
    .may_block = leat__decorator_may_block,
    .is_endless = repeat_is_endless,
};

static const leat_reader_ops repeat_stream_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "repeat",
    .fields = leat__decorator_fields,
    .next = repeat_next,
    .seek = repeat_seek_mark,
    .cancel = leat__decorator_cancel,
    .close = leat__decorator_close,
    .skip = repeat_skip,
    .can_seek = repeat_can_seek,
    .mark = repeat_mark,
    .save = leat__decorator_save,
    .restore = repeat_restore,
    .may_block = leat__decorator_may_block,
    .is_endless = repeat_is_endless,
};

static int64_t multiply(int64_t length, int64_t times)
{
    int64_t count;
    if (length == 0 || times == 0)
        return 0;
    if (times == FOR_EVER || __builtin_mul_overflow(length, times, &count))
        return LEAT_ENDLESS;
    return count;
}

static int set_length(repeat_reader *repeat)
{
    int status = leat_reader_count(upstream_of(repeat), &repeat->length);
    if (status == LEAT_EUNSUPPORTED)
        repeat->length = -1;
    else if (status)
        return status;
    repeat->map.positions = wrap_positions;
    repeat->map.count = multiply(repeat->length, repeat->times);
    return LEAT_OK;
}

static int repeat_open(const leat_open *open, leat_reader **out)
{
    bool is_random_access = leat_reader_is_random_access(open->upstream[0]);
    repeat_reader *repeat = leat__decorator_new(
        open, is_random_access ? &repeat_ops : &repeat_stream_ops,
        sizeof(*repeat));
    if (!repeat)
        return LEAT_ENOMEM;
    repeat->times = leat_args_number(open->args, "times");
    if (repeat->times < 0)
        repeat->times = FOR_EVER;
    int status = set_length(repeat);
    if (status) {
        leat__free(repeat);
        return status;
    }
    *out = &repeat->map.decorator.reader;
    return LEAT_OK;
}

static const leat_argument repeat_arguments[] = {
    {.name = "times",
     .kind = LEAT_ARGUMENT_NUMBER,
     .positional = 1,
     .initial = "-1",
     .min = -1,
     .max = INT64_MAX,
     .help = "passes that make an epoch; -1: without an end"},
    {0},
};

const leat_reader_type leat__repeat_type = {
    .size = sizeof(leat_reader_type),
    .name = "repeat",
    .help = "several passes as one epoch",
    .arguments = repeat_arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 1,
    .max_upstream = 1,
    .keeps_order = 1,
    .open = repeat_open,
};

int leat_pipeline_repeat(leat_pipeline **out, leat_pipeline *upstream,
                         int64_t times)
{
    char text[32];
    snprintf(text, sizeof(text), "%lld", (long long)times);
    return leat_pipeline_create(out, &leat__repeat_type, text, NULL, NULL,
                                &upstream, 1);
}
