/* range:START,STOP,STEP, whole numbers as samples. */
#include "readers/range.h"
#include "base/error.h"
#include "base/memory.h"

#include <leat/decorators.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef struct range_reader {
    leat_reader reader;
    int64_t start, step, count;
    int64_t next; /* index; used by one caller at a time */
    atomic_bool cancelled;
} range_reader;

static int range_fields(leat_reader *reader, const leat_field_spec **out,
                        int *n)
{
    static const leat_field_spec value = {.name = "value", .dtype = LEAT_INT64};
    (void)reader;
    *out = &value;
    *n = 1;
    return LEAT_OK;
}

static int check_running(const range_reader *range)
{
    if (!atomic_load_explicit(&range->cancelled, memory_order_relaxed))
        return LEAT_OK;
    return leat_error(LEAT_ECANCELLED, "range: reading was cancelled");
}

static int fill(const range_reader *range, int64_t index, leat_sample *sample)
{
    /* Modulo 2^64, as no value that is given overflows. */
    uint64_t value =
        (uint64_t)range->start + (uint64_t)index * (uint64_t)range->step;
    void *data = leat_sample_take(sample, sizeof(value));
    if (!data)
        return LEAT_ENOMEM;
    memcpy(data, &value, sizeof(value));
    sample->stable = 0;
    sample->from.source = "range";
    sample->from.record = index;
    return leat_sample_set(sample, sample->nfields, LEAT_INT64, 0, NULL, data);
}

static int range_next(leat_reader *reader, leat_sample *const out[], int n,
                      int *got)
{
    range_reader *range = (range_reader *)reader;
    int status = check_running(range);
    for (; !status && *got < n; *got += !status) {
        if (range->next == range->count)
            return LEAT_END;
        status = fill(range, range->next, out[*got]);
        range->next += !status;
    }
    return status;
}

static int range_read_at(leat_reader *reader, const leat_position at[],
                         leat_sample *const out[], int n, int *got)
{
    const range_reader *range = (const range_reader *)reader;
    int status = check_running(range);
    for (; !status && *got < n; *got += !status)
        status = fill(range, at[*got].index, out[*got]);
    return status;
}

static int range_skip(leat_reader *reader, int64_t n, int64_t *skipped)
{
    range_reader *range = (range_reader *)reader;
    int64_t left = range->count - range->next;
    int status = check_running(range);
    if (status)
        return status;
    *skipped = n < left ? n : left;
    range->next += *skipped;
    return *skipped == n ? LEAT_OK : LEAT_END;
}

static int range_count(leat_reader *reader, int64_t *out)
{
    *out = ((range_reader *)reader)->count;
    return LEAT_OK;
}

static int range_seek(leat_reader *reader, leat_position position,
                      leat_token *mark)
{
    range_reader *range = (range_reader *)reader;
    (void)mark;
    if (position.index > range->count)
        return leat_error(LEAT_EINVAL,
                          "range: sample %lld is out of range: there are %lld",
                          (long long)position.index, (long long)range->count);
    range->next = position.index;
    return LEAT_OK;
}

/* Its arguments, which the token has anyway, are all there is. */
static int range_save(leat_reader *reader, leat_token *token)
{
    (void)reader;
    (void)token;
    return LEAT_OK;
}

static int range_restore(leat_reader *reader, leat_token *token)
{
    (void)token;
    ((range_reader *)reader)->next = 0;
    return LEAT_OK;
}

static void range_cancel(leat_reader *reader)
{
    atomic_store(&((range_reader *)reader)->cancelled, true);
}

static void range_close(leat_reader *reader)
{
    leat__free(reader);
}

static const leat_reader_ops range_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "range",
    .fields = range_fields,
    .next = range_next,
    .seek = range_seek,
    .cancel = range_cancel,
    .close = range_close,
    .count = range_count,
    .read_at = range_read_at,
    .skip = range_skip,
    .save = range_save,
    .restore = range_restore,
};

/* Values from `start` on, before `stop`, in either direction. */
static uint64_t count_values(int64_t start, int64_t stop, int64_t step)
{
    if (step > 0 ? start >= stop : start <= stop)
        return 0;
    uint64_t distance = step > 0 ? (uint64_t)stop - (uint64_t)start
                                 : (uint64_t)start - (uint64_t)stop;
    uint64_t stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    return (distance - 1) / stride + 1;
}

static int range_open(const leat_open *open, leat_reader **out)
{
    const leat_args *args = open->args;
    bool has_stop = leat_args_has(args, "stop");
    int64_t first = leat_args_number(args, "start");
    int64_t start = has_stop ? first : 0;
    int64_t stop = has_stop ? leat_args_number(args, "stop") : first;
    int64_t step = leat_args_number(args, "step");
    if (step == 0)
        return leat_error(LEAT_EINVAL, "range: step is 0: expected another "
                                       "number");
    uint64_t count = count_values(start, stop, step);
    if (count > LEAT_ENDLESS)
        return leat_error(LEAT_EINVAL,
                          "range: %llu values: expected at most %lld",
                          (unsigned long long)count, (long long)LEAT_ENDLESS);
    range_reader *range = leat__alloc_zero(1, sizeof(*range));
    if (!range)
        return LEAT_ENOMEM;
    range->reader.ops = &range_ops;
    range->start = start;
    range->step = step;
    range->count = (int64_t)count;
    *out = &range->reader;
    return LEAT_OK;
}

static const leat_argument range_arguments[] = {
    {.name = "start",
     .kind = LEAT_ARGUMENT_NUMBER,
     .positional = 1,
     .required = 1,
     .help = "the first value; alone, the end of those from 0"},
    {.name = "stop",
     .kind = LEAT_ARGUMENT_NUMBER,
     .positional = 1,
     .help = "the end, which is no longer given"},
    {.name = "step",
     .kind = LEAT_ARGUMENT_NUMBER,
     .positional = 1,
     .initial = "1",
     .help = "from one value to the next, also below 0"},
    {0},
};

const leat_reader_type leat__range_type = {
    .size = sizeof(leat_reader_type),
    .name = "range",
    .help = "whole numbers, as an int64 field \"value\"",
    .arguments = range_arguments,
    .argument_size = sizeof(leat_argument),
    .open = range_open,
};

int leat_pipeline_range(leat_pipeline **out, int64_t start, int64_t stop,
                        int64_t step)
{
    char text[80];
    snprintf(text, sizeof(text), "%lld,%lld,%lld", (long long)start,
             (long long)stop, (long long)step);
    return leat_pipeline_create(out, &leat__range_type, text, NULL, NULL, NULL,
                                0);
}
