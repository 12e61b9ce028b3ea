/*
 * reader_every: a decorator that maps positions, and so stays random-access
 * over a reader that is. It touches no sample.
 */
#include "own_reader.h"

#include <stdlib.h>

#define AT_ONCE 64

typedef struct every_reader {
    leat_reader reader;
    leat_reader *upstream; /* owned */
    int64_t step;
    int64_t count;
    leat_position next; /* of the one caller at a time */
} every_reader;

static int every_fields(leat_reader *reader, const leat_field_spec **out,
                        int *n)
{
    return leat_reader_fields(((every_reader *)reader)->upstream, out, n);
}

/* May return fewer than n samples; the caller asks for the rest again. */
static int every_read_at(leat_reader *reader, const leat_position at[],
                         leat_sample *const out[], int n, int *got)
{
    every_reader *every = (every_reader *)reader;
    leat_position mapped[AT_ONCE];
    n = n < AT_ONCE ? n : AT_ONCE;
    for (int i = 0; i < n; i++)
        mapped[i] = (leat_position){at[i].epoch, at[i].index * every->step};
    return leat_reader_pull_at(every->upstream, mapped, out, n, got);
}

static void every_advise(leat_reader *reader, const leat_position at[], int n)
{
    every_reader *every = (every_reader *)reader;
    for (int i = 0; i < n; i++) {
        const leat_position mapped = {at[i].epoch, at[i].index * every->step};
        leat_reader_advise(every->upstream, &mapped, 1);
    }
}

static int every_may_block(leat_reader *reader)
{
    return leat_reader_may_block(((every_reader *)reader)->upstream);
}

static int every_next(leat_reader *reader, leat_sample *const out[], int n,
                      int *got)
{
    every_reader *every = (every_reader *)reader;
    leat_position at[AT_ONCE];
    int64_t left = every->count - every->next.index;
    if (left == 0)
        return LEAT_END;
    n = n < AT_ONCE ? n : AT_ONCE;
    n = n < left ? n : (int)left;
    for (int i = 0; i < n; i++)
        at[i] = (leat_position){every->next.epoch, every->next.index + i};
    int status = every_read_at(reader, at, out, n, got);
    every->next.index += *got + (status == LEAT_EDATA);
    return status;
}

static int every_seek(leat_reader *reader, leat_position position,
                      leat_token *mark)
{
    every_reader *every = (every_reader *)reader;
    (void)mark;
    if (position.index > every->count)
        return leat_error(LEAT_EINVAL, "position %lld: expected 0 to %lld",
                          (long long)position.index, (long long)every->count);
    every->next = position;
    return LEAT_OK;
}

static int every_count(leat_reader *reader, int64_t *out)
{
    *out = ((const every_reader *)reader)->count;
    return LEAT_OK;
}

/* The step stands in the pipeline's text, of which the layer keeps a hash. */
static int every_save(leat_reader *reader, leat_token *token)
{
    return leat_reader_save(((every_reader *)reader)->upstream, token);
}

static int every_restore(leat_reader *reader, leat_token *token)
{
    int status = leat_reader_restore(((every_reader *)reader)->upstream, token);
    return status ? status : every_seek(reader, (leat_position){0, 0}, NULL);
}

static void every_cancel(leat_reader *reader)
{
    leat_reader_cancel(((every_reader *)reader)->upstream);
}

static void every_close(leat_reader *reader)
{
    leat_reader_close(((every_reader *)reader)->upstream);
    free(reader);
}

static const leat_reader_ops every_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "every",
    .fields = every_fields,
    .next = every_next,
    .seek = every_seek,
    .cancel = every_cancel,
    .close = every_close,
    .count = every_count,
    .read_at = every_read_at,
    .save = every_save,
    .restore = every_restore,
    .may_block = every_may_block,
    .advise = every_advise,
};

static int every_open(const leat_open *open, leat_reader **out)
{
    int64_t step = leat_args_number(open->args, "step");
    int64_t count;
    if (!leat_reader_is_random_access(open->upstream[0]))
        return leat_error(LEAT_EUNSUPPORTED,
                          "every: what it reads must be random-access");
    int status = leat_reader_count(open->upstream[0], &count);
    if (status)
        return status;
    every_reader *every = calloc(1, sizeof(*every));
    if (!every)
        return leat_error(LEAT_ENOMEM, "no memory for a reader");
    every->reader.ops = &every_ops;
    every->upstream = open->upstream[0];
    every->step = step;
    every->count = (count + step - 1) / step;
    *out = &every->reader;
    return LEAT_OK;
}

static const leat_argument every_arguments[] = {
    {.name = "step",
     .kind = LEAT_ARGUMENT_NUMBER,
     .initial = "2",
     .min = 1,
     .max = INT32_MAX,
     .help = "the distance of two samples that are given"},
    {0},
};

const leat_reader_type reader_every = {
    .size = sizeof(leat_reader_type),
    .name = "every",
    .help = "each K-th sample",
    .arguments = every_arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 1,
    .max_upstream = 1,
    .open = every_open,
};
