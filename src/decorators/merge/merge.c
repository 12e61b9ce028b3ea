/* merge, samples of several readers in the order of their arrival. */
#include "base/counter.h"
#include "base/error.h"
#include "base/memory.h"
#include "decorators/decorator.h"
#include "decorators/decorators.h"
#include "decorators/field_list.h"
#include "decorators/merge/arrivals.h"
#include "pipeline/reader_state.h"
#include "pipeline/reader_table.h"

#include <leat/decorators.h>

#include <stdio.h>

/* The most inputs. */
enum { INPUTS_MAX = 256 };

typedef struct merge_reader {
    leat__decorator decorator; /* first */
    leat__field_list fields;
    leat__arrivals arrivals;
} merge_reader;

static merge_reader *merge_of(leat_reader *reader)
{
    return (merge_reader *)reader;
}

static int merge_fields(leat_reader *reader, const leat_field_spec **out,
                        int *n)
{
    *out = merge_of(reader)->fields.spec;
    *n = merge_of(reader)->fields.n;
    return LEAT_OK;
}

static int merge_next(leat_reader *reader, leat_sample *const out[], int n,
                      int *got)
{
    return leat__arrivals_next(&merge_of(reader)->arrivals, out, n, got);
}

static int merge_seek(leat_reader *reader, leat_position position,
                      leat_token *mark)
{
    merge_reader *merge = merge_of(reader);
    int status = LEAT_OK;
    (void)mark;
    if (position.index > 0)
        return leat_error(LEAT_EUNSUPPORTED,
                          "merge: no index finds a sample again that comes in "
                          "the order of its arrival");
    leat__arrivals_pause(&merge->arrivals);
    for (int i = 0; i < merge->decorator.nupstream && !status; i++)
        status = leat__reader_seek_input(reader, merge->decorator.upstream[i],
                                         position, NULL);
    leat__arrivals_resume(&merge->arrivals, status == LEAT_OK);
    return status;
}

static void merge_cancel(leat_reader *reader)
{
    leat__decorator_cancel(reader);
    leat__arrivals_cancel(&merge_of(reader)->arrivals);
}

static void merge_close(leat_reader *reader)
{
    merge_reader *merge = merge_of(reader);
    leat__arrivals_finish(&merge->arrivals);
    leat__field_list_finish(&merge->fields);
    leat__decorator_close(reader);
}

static int merge_count(leat_reader *reader, int64_t *out)
{
    const leat__decorator *decorator = &merge_of(reader)->decorator;
    int64_t sum = 0;
    int status = LEAT_OK;
    for (int i = 0; i < decorator->nupstream && !status; i++) {
        int64_t count;
        status = leat_reader_count(decorator->upstream[i], &count);
        if (!status)
            sum = sum < LEAT_ENDLESS - count ? sum + count : LEAT_ENDLESS;
    }
    if (!status)
        *out = sum;
    return status;
}

static int merge_save(leat_reader *reader, leat_token *token)
{
    (void)reader;
    (void)token;
    return leat_error(LEAT_ESTATE,
                      "merge: the order of arrival cannot be saved; expected "
                      "interleave or mix, whose order comes again");
}

static int64_t merge_memory(leat_reader *reader)
{
    return leat__counter_get(&merge_of(reader)->arrivals.bytes);
}

static int64_t merge_reserves(leat_reader *reader)
{
    return leat__arrivals_most(&merge_of(reader)->arrivals);
}

static const leat_reader_ops merge_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "merge",
    .fields = merge_fields,
    .next = merge_next,
    .seek = merge_seek,
    .cancel = merge_cancel,
    .close = merge_close,
    .count = merge_count,
    .can_seek = leat__reader_no,
    .save = merge_save,
    .check = leat__decorator_check,
    .is_endless = leat__decorator_is_any_endless,
    .restore = merge_save,
    .memory = merge_memory,
    .reserves = merge_reserves,
};

static int merge_open(const leat_open *open, leat_reader **out)
{
    if (open->world_size > 1)
        return leat_error(LEAT_EUNSUPPORTED,
                          "merge: with %d ranks each would have another order "
                          "of arrival; expected interleave or mix",
                          open->world_size);
    merge_reader *merge = leat__decorator_new(open, &merge_ops, sizeof(*merge));
    if (!merge)
        return LEAT_ENOMEM;
    const leat__arrivals_options options = {
        .reader = &merge->decorator.reader,
        .upstream = merge->decorator.upstream,
        .n = merge->decorator.nupstream,
        .buffer = (int)leat_args_number(open->args, "buffer"),
        .allocator = open->allocator,
        .max_memory = open->max_memory,
        .ahead_bytes = open->ahead_bytes,
    };
    int status = leat__field_list_merge_all(&merge->fields, "merge",
                                            options.upstream, options.n);
    if (!status)
        status = leat__arrivals_init(&merge->arrivals, &options);
    if (status) {
        leat__field_list_finish(&merge->fields);
        leat__free(merge);
        return status;
    }
    *out = &merge->decorator.reader;
    return LEAT_OK;
}

static const leat_argument merge_arguments[] = {
    {.name = "buffer",
     .kind = LEAT_ARGUMENT_NUMBER,
     .keeps_samples = 1,
     .initial = "8",
     .min = 1,
     .max = 65536,
     .help = "samples that are read ahead of each input"},
    {0},
};

const leat_reader_type leat__merge_type = {
    .size = sizeof(leat_reader_type),
    .name = "merge",
    .help = "samples of several readers in the order of their arrival",
    .arguments = merge_arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 1,
    .max_upstream = INPUTS_MAX,
    .may_block = 1,
    .reads_ahead = 1,
    .open = merge_open,
};

int leat_pipeline_merge(leat_pipeline **out, leat_pipeline *const upstream[],
                        int n, int buffer)
{
    char text[32] = "";
    if (buffer != 0)
        snprintf(text, sizeof(text), "buffer=%d", buffer);
    return leat_pipeline_create(out, &leat__merge_type, text, NULL, NULL,
                                upstream, n);
}
