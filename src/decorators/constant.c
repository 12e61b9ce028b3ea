/*
 * constant:N, one sample of the upstream reader N times. It is read when the
 * pipeline is opened, and does not change from then on, so that any thread
 * gives views of it.
 */
#include "base/error.h"
#include "base/memory.h"
#include "decorators/decorators.h"
#include "decorators/index_map.h"
#include "pipeline/reader_table.h"

#include <leat/decorators.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef struct constant_reader {
    leat__index_map map; /* `positions` is not used */
    leat_sample sample;  /* self-contained */
} constant_reader;

static int fill(const constant_reader *constant, leat_sample *out)
{
    const leat_sample *from = &constant->sample;
    if (out->nfields + from->nfields > LEAT_MAX_FIELDS)
        return leat_error(LEAT_EINVAL,
                          "constant: a sample has %d fields, and %d are added: "
                          "expected at most %d in sum",
                          out->nfields, from->nfields, LEAT_MAX_FIELDS);
    memcpy(&out->field[out->nfields], from->field,
           (size_t)from->nfields * sizeof(from->field[0]));
    out->nfields += from->nfields;
    out->from.source = from->from.source;
    out->from.record = from->from.record;
    out->from.key = from->from.key;
    out->from.key_size = from->from.key_size;
    return LEAT_OK;
}

static int constant_read_at(leat_reader *reader, const leat_position at[],
                            leat_sample *const out[], int n, int *got)
{
    const constant_reader *constant = (const constant_reader *)reader;
    int status = leat__decorator_check_running(&constant->map.decorator);
    (void)at;
    for (; !status && *got < n; *got += !status)
        status = fill(constant, out[*got]);
    return status;
}

static int constant_next(leat_reader *reader, leat_sample *const out[], int n,
                         int *got)
{
    constant_reader *constant = (constant_reader *)reader;
    int64_t left = constant->map.count - constant->map.next.index;
    if (left == 0)
        return LEAT_END;
    int status =
        constant_read_at(reader, NULL, out, n < left ? n : (int)left, got);
    constant->map.next.index += *got;
    return status;
}

static int constant_skip(leat_reader *reader, int64_t n, int64_t *skipped)
{
    constant_reader *constant = (constant_reader *)reader;
    int64_t left = constant->map.count - constant->map.next.index;
    int status = leat__decorator_check_running(&constant->map.decorator);
    if (status)
        return status;
    *skipped = n < left ? n : left;
    constant->map.next.index += *skipped;
    return *skipped == n ? LEAT_OK : LEAT_END;
}

static int64_t constant_memory(leat_reader *reader)
{
    return (int64_t)((constant_reader *)reader)->sample.buffer_size;
}

static void constant_close(leat_reader *reader)
{
    leat_sample_finish(&((constant_reader *)reader)->sample);
    leat__decorator_close(reader);
}

static int constant_is_endless(leat_reader *reader)
{
    return ((const constant_reader *)reader)->map.count == LEAT_ENDLESS;
}

static const leat_reader_ops constant_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "constant",
    .fields = leat__decorator_fields,
    .next = constant_next,
    .seek = leat__index_map_seek,
    .cancel = leat__decorator_cancel,
    .close = constant_close,
    .count = leat__index_map_count,
    .read_at = constant_read_at,
    .skip = constant_skip,
    .save = leat__decorator_save,
    .restore = leat__index_map_restore,
    .may_block = leat__reader_no,
    .memory = constant_memory,
    .is_endless = constant_is_endless,
};

/* How many samples may be bad where the epoch may have no end. */
enum { BAD_MAX = 1 << 18 };

/* The first good sample. LEAT_END: there is none. */
static int read_sample(constant_reader *constant)
{
    leat_reader *upstream = constant->map.decorator.upstream[0];
    leat_sample *out[] = {&constant->sample};
    int64_t count, bad = 0;
    int status, got;
    bool has_end =
        !leat_reader_count(upstream, &count) && count != LEAT_ENDLESS;
    do {
        leat_sample_clear(out[0]);
        status = leat_reader_pull(upstream, out, 1, &got);
        if (!status)
            status = leat_reader_materialize(upstream, out, 1, &got);
    } while (status == LEAT_EDATA && (++bad < BAD_MAX || has_end));
    if (status == LEAT_EDATA)
        return leat__error_context(LEAT_EFORMAT,
                                   "constant: the first %d samples are bad, "
                                   "the last of them",
                                   BAD_MAX);
    return status ? status : leat_sample_own(&constant->sample);
}

static int constant_open(const leat_open *open, leat_reader **out)
{
    constant_reader *constant =
        leat__decorator_new(open, &constant_ops, sizeof(*constant));
    if (!constant)
        return LEAT_ENOMEM;
    leat_sample_init(&constant->sample);
    constant->sample.allocator = open->allocator;
    constant->map.count = leat_args_number(open->args, "count");
    if (constant->map.count < 0)
        constant->map.count = LEAT_ENDLESS;
    int status = read_sample(constant);
    if (status == LEAT_END)
        constant->map.count = 0;
    else if (status) {
        leat_sample_finish(&constant->sample);
        leat__free(constant);
        return status;
    }
    *out = &constant->map.decorator.reader;
    return LEAT_OK;
}

static const leat_argument constant_arguments[] = {
    {.name = "count",
     .kind = LEAT_ARGUMENT_NUMBER,
     .positional = 1,
     .initial = "-1",
     .min = -1,
     .max = INT64_MAX,
     .help = "how often; -1: without an end"},
    {0},
};

const leat_reader_type leat__constant_type = {
    .size = sizeof(leat_reader_type),
    .name = "constant",
    .help = "the first sample, again and again",
    .arguments = constant_arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 1,
    .max_upstream = 1,
    .own_access = 1,
    .open = constant_open,
};

int leat_pipeline_constant(leat_pipeline **out, leat_pipeline *upstream,
                           int64_t count)
{
    char text[32];
    snprintf(text, sizeof(text), "%lld", (long long)count);
    return leat_pipeline_create(out, &leat__constant_type, text, NULL, NULL,
                                &upstream, 1);
}
