/*
 * interleave: some samples of each of several readers in turn, as tf.data's.
 *
 * The readers are the upstream ones, by index where their counts are known; or
 * a template makes them, one for each name that the upstream reader gives.
 */
#include "decorators/interleave/interleave.h"
#include "base/memory.h"
#include "base/options.h"
#include "decorators/argument_text.h"
#include "decorators/decorators.h"

#include <string.h>

/* Readers of a template that have turns. */
enum { TEMPLATE_CYCLE = 4 };

int leat__interleave_fields(leat_reader *reader, const leat_field_spec **out,
                            int *n)
{
    const leat__interleave *interleave = (const leat__interleave *)reader;
    *out = interleave->fields.spec;
    *n = interleave->fields.n;
    return LEAT_OK;
}

void leat__interleave_finish(leat__interleave *interleave)
{
    if (interleave->template)
        leat__template_finish(interleave);
    leat__field_list_finish(&interleave->fields);
    leat__turns_destroy(interleave->turns);
    leat__free(interleave->slot);
}

void leat__interleave_close(leat_reader *reader)
{
    leat__interleave_finish((leat__interleave *)reader);
    leat__decorator_close(reader);
}

static int64_t interleave_memory(leat_reader *reader)
{
    const leat__turns *turns = ((leat__interleave *)reader)->turns;
    return (int64_t)(turns->segment_room * sizeof(*turns->segment) +
                     turns->turn_room * sizeof(*turns->turn));
}

static void interleave_positions(const leat__index_map *map,
                                 const leat_position at[], int n,
                                 leat_position from[], int upstream[])
{
    const leat__turns *turns = ((const leat__interleave *)map)->turns;
    leat__turn_cursor cursor = {.segment = NULL};
    for (int i = 0; i < n; i++) {
        from[i].epoch = at[i].epoch;
        upstream[i] =
            leat__turns_find(turns, &cursor, at[i].index, &from[i].index);
    }
}

static const leat_reader_ops interleave_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "interleave",
    .fields = leat__interleave_fields,
    .next = leat__index_map_next,
    .seek = leat__index_map_seek,
    .cancel = leat__decorator_cancel,
    .close = leat__interleave_close,
    .count = leat__index_map_count,
    .read_at = leat__index_map_read_at,
    .advise = leat__index_map_advise,
    .save = leat__decorator_save,
    .restore = leat__index_map_restore,
    .may_block = leat__decorator_may_block,
    .check = leat__decorator_check,
    .memory = interleave_memory,
};

/* By index, if all inputs have it and the plan is not too long. */
static int plan_turns(leat__interleave *interleave)
{
    const leat__decorator *decorator = &interleave->map.decorator;
    int n = decorator->nupstream;
    int64_t *count = leat__alloc_zero((size_t)n, sizeof(*count));
    int status = count ? LEAT_OK : LEAT_ENOMEM;
    bool is_random_access = true;
    for (int i = 0; i < n && !status && is_random_access; i++) {
        is_random_access = leat_reader_is_random_access(decorator->upstream[i]);
        if (is_random_access)
            status = leat_reader_count(decorator->upstream[i], &count[i]);
    }
    if (!status && is_random_access)
        status = leat__turns_create(&interleave->turns, count, n,
                                    interleave->cycle, interleave->block);
    leat__free(count);
    return status == LEAT_ELIMIT ? LEAT_OK : status;
}

static int begin_upstream(leat__interleave *interleave)
{
    leat__decorator *decorator = &interleave->map.decorator;
    int status =
        leat__field_list_merge_all(&interleave->fields, "interleave",
                                   decorator->upstream, decorator->nupstream);
    if (!status)
        status = plan_turns(interleave);
    decorator->reader.ops =
        interleave->turns ? &interleave_ops : &leat__interleave_stream_ops;
    interleave->map.positions = interleave_positions;
    if (interleave->turns)
        interleave->map.count = interleave->turns->count;
    return status;
}

static int begin(leat__interleave *interleave, const leat_open *open)
{
    bool is_template = leat_args_has(open->args, "pipeline");
    int64_t cycle = leat_args_number(open->args, "cycle");
    if (is_template && open->nupstream != 1)
        return leat_error(LEAT_EINVAL,
                          "interleave: a pipeline (...{}) needs 1 upstream "
                          "reader, of names, got %d",
                          open->nupstream);
    if (cycle == 0)
        cycle = is_template ? TEMPLATE_CYCLE : open->nupstream;
    if (!is_template && cycle > open->nupstream)
        cycle = open->nupstream;
    interleave->cycle = (int)cycle;
    interleave->block = leat_args_number(open->args, "block");
    interleave->slot =
        leat__alloc_zero((size_t)cycle, sizeof(*interleave->slot));
    if (!interleave->slot)
        return LEAT_ENOMEM;
    return is_template ? leat__template_begin(interleave, open)
                       : begin_upstream(interleave);
}

static int interleave_open(const leat_open *open, leat_reader **out)
{
    leat__interleave *interleave = leat__decorator_new(
        open, &leat__interleave_template_ops, sizeof(*interleave));
    if (!interleave)
        return LEAT_ENOMEM;
    int status = begin(interleave, open);
    if (status) {
        leat__interleave_finish(interleave);
        leat__free(interleave);
        return status;
    }
    *out = &interleave->map.decorator.reader;
    return LEAT_OK;
}

static const leat_argument interleave_arguments[] = {
    {.name = "pipeline",
     .kind = LEAT_ARGUMENT_PIPELINE,
     .positional = 1,
     .help = "a reader for each name of the upstream reader, which is put in "
             "the place of {}; none: the upstream readers"},
    {.name = "cycle",
     .kind = LEAT_ARGUMENT_NUMBER,
     .min = 1,
     .max = LEAT_MAX_UPSTREAM,
     .help =
         "readers that have turns at a time; none: all, or 4 of a pipeline"},
    {.name = "block",
     .kind = LEAT_ARGUMENT_NUMBER,
     .initial = "1",
     .min = 1,
     .max = INT64_MAX,
     .help = "samples of a turn"},
    {.name = "ahead",
     .kind = LEAT_ARGUMENT_NUMBER,
     .keeps_samples = 1,
     .initial = "1",
     .max = 1024,
     .help = "readers of a pipeline that are opened before their turn"},
    {0},
};

const leat_reader_type leat__interleave_type = {
    .size = sizeof(leat_reader_type),
    .name = "interleave",
    .help = "some samples of each of several readers in turn",
    .arguments = interleave_arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 1,
    .max_upstream = LEAT_MAX_UPSTREAM,
    .open = interleave_open,
};

int leat_interleave_options_init(leat_interleave_options *options)
{
    const leat_interleave_options defaults = LEAT_INTERLEAVE_OPTIONS_INIT;
    return leat__options_init(options, &defaults, sizeof(defaults));
}

static void write_options(leat__argument_text *text,
                          const leat_interleave_options *values)
{
    if (values->pipeline) {
        leat__argument_text_add(text, "(");
        leat__argument_text_add(text, values->pipeline);
        leat__argument_text_add(text, ")");
    }
    if (values->cycle != 0)
        leat__argument_text_add_number(text, "cycle", values->cycle);
    if (values->block != 0)
        leat__argument_text_add_number(text, "block", values->block);
    if (values->ahead != 0)
        leat__argument_text_add_number(text, "ahead",
                                       values->ahead < 0 ? 0 : values->ahead);
}

int leat_pipeline_interleave(leat_pipeline **out,
                             leat_pipeline *const upstream[], int n,
                             const leat_interleave_options *options)
{
    leat_interleave_options values = LEAT_INTERLEAVE_OPTIONS_INIT;
    leat__argument_text text = {0};
    int status = leat__options_copy(&values, options, sizeof(values));
    if (status)
        return status;
    write_options(&text, &values);
    status = text.status;
    if (!status)
        status = leat_pipeline_create(out, &leat__interleave_type, text.text,
                                      NULL, NULL, upstream, n);
    leat__argument_text_finish(&text);
    return status;
}
