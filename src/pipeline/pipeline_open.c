/* Opens a pipeline's readers, upstream readers first, and closes readers. */
#include "base/cancel.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/random.h"
#include "pipeline/opening.h"
#include "pipeline/pipeline.h"
#include "pipeline/reader_chain.h"
#include "pipeline/reader_form.h"
#include "pipeline/reader_state.h"
#include "pipeline/reader_table.h"

#include <string.h>

/* Operations of leat_choice for the seeds of a pipeline's readers. */
enum { SEED_OF_UPSTREAM = 0x75, SEED_OF_ANOTHER = 0x61 };

/* What all readers of a pipeline are opened with. */
typedef struct open_values {
    leat_open_options options;
    int64_t ahead_bytes; /* as in leat_open */
    bool is_again;       /* by leat_open_again */
} open_values;

static int open_reader(const leat_pipeline *pipeline, const open_values *values,
                       int depth, leat_reader_figures *figures,
                       leat_reader **out);

static uint64_t derive_seed(uint64_t seed, uint32_t operation, int64_t number)
{
    uint32_t words[4];
    leat__random_words(seed, 0, number, operation, words);
    return (uint64_t)words[1] << 32 | words[0];
}

/*
 * Opens the upstream readers; `*n` of them are open, also on failure. One that
 * passes all on does not count for the seeds, as it does not for tokens.
 */
static int open_upstream(const leat_pipeline *pipeline,
                         const open_values *values, int depth,
                         leat_reader_figures *figures, leat_reader *upstream[],
                         int *n)
{
    open_values own = *values;
    int status = LEAT_OK;
    *n = 0;
    if (pipeline->type->opens_upstream)
        return LEAT_OK;
    own.options.drop_behind |= pipeline->type->drops_behind != 0;
    for (; *n < pipeline->nupstream && !status; *n += !status) {
        const leat_pipeline *one = pipeline->upstream[*n];
        leat_reader_figures *its = leat__reader_chain_add(
            figures, one->type->name, pipeline->nupstream > 1 ? *n : -1);
        if (!pipeline->type->passes_on)
            own.options.seed =
                derive_seed(values->options.seed, SEED_OF_UPSTREAM, *n);
        status = open_reader(one, &own, depth + 1, its, &upstream[*n]);
        if (!status)
            upstream[*n]->state->is_part = true;
    }
    return status;
}

/*
 * Checks the reader's table, and closes the reader together with its upstream
 * readers if it is incomplete, unless it lacks `close` as well.
 */
static int check_opened(const leat_pipeline *pipeline, leat_reader *reader)
{
    if (!reader || !reader->ops)
        return leat_error(LEAT_EINVAL,
                          "the reader \"%s\" opened without its operations",
                          pipeline->type->name);
    const leat_reader_ops *ops = reader->ops;
    int status = leat__reader_ops_check(ops, pipeline->type->name);
    if (status && ops->size >= LEAT__READER_OPS_MIN && ops->close) {
        char line[LEAT__ERROR_MAX];
        leat__error_save(line);
        ops->close(reader);
        return leat_error(status, "%s", line);
    }
    return status;
}

/* A failure without a line gets one, so that an older one is not reported. */
static int call_open(const leat_pipeline *pipeline, const open_values *values,
                     int depth, leat_reader_figures *figures,
                     leat_reader *const upstream[], leat_reader **out)
{
    const leat_open_options *options = &values->options;
    const leat_open open = {
        .size = sizeof(open),
        .args = &pipeline->args,
        .upstream = pipeline->type->opens_upstream ? NULL : upstream,
        .pipeline = pipeline->upstream,
        .nupstream = pipeline->nupstream,
        .seed = options->seed,
        .phase = options->phase,
        .rank = options->rank,
        .world_size = options->world_size,
        .allocator = options->allocator,
        .max_memory = options->max_memory,
        .threads = options->threads,
        .drop_behind = options->drop_behind,
        .ahead_bytes = values->ahead_bytes,
        .depth = depth,
        .figures = figures,
    };
    unsigned lines = leat__error_lines();
    int status = pipeline->type->open(&open, out);
    if (status && !leat__status_is_error(status))
        return leat_error(LEAT_ESTATE,
                          "the reader \"%s\": open returned %d, expected "
                          "LEAT_OK or an error of leat/status.h",
                          pipeline->type->name, status);
    if (status < 0 && leat__error_lines() == lines)
        return leat_error(status, "the reader \"%s\" does not open: %s",
                          pipeline->type->name, leat_status_text(status));
    return status;
}

int leat__reader_attach(leat_reader *reader, leat_pipeline *pipeline,
                        leat_reader *const upstream[], int n, int depth,
                        struct leat_reader_figures *figures)
{
    struct leat_reader_state *state =
        leat__alloc_zero(1, sizeof(*state) + (size_t)n * sizeof(*upstream));
    if (!state)
        return LEAT_ENOMEM;
    leat_sample_init(&state->scratch);
    state->upstream = n == 1 ? upstream[0] : NULL;
    state->ninputs = n;
    for (int i = 0; i < n; i++)
        state->input[i] = upstream[i];
    state->depth = depth;
    state->defers = LEAT__HAS(reader, materialize) ||
                    (n == 1 && upstream[0]->state->defers);
    state->figures = figures;
    reader->state = state;
    reader->pipeline = pipeline;
    leat_pipeline_ref(pipeline);
    leat__reader_chain_attach(reader);
    return LEAT_OK;
}

static bool reads_once(leat_reader *reader, leat_reader *const upstream[],
                       int n)
{
    bool is_once = false;
    if (LEAT__HAS(reader, reads_once))
        return reader->ops->reads_once(reader) != 0;
    for (int i = 0; i < n; i++)
        is_once |= upstream[i]->state->reads_once;
    return is_once;
}

/* The upstream readers of one that is opened. */
typedef struct upstream_list {
    leat_reader *const *reader;
    int n;
} upstream_list;

static void cancel_upstream(void *object)
{
    const upstream_list *list = object;
    for (int i = 0; i < list->n; i++)
        leat_reader_cancel(list->reader[i]);
}

/*
 * A decorator whose upstream readers all have it takes one form whenever it is
 * opened. Over a stream a cache has random access once all is kept, and so have
 * decorators over that, but for those that have their own.
 */
static bool has_lasting_access(const leat_reader *reader,
                               leat_reader *const upstream[], int n)
{
    const leat_reader_type *type = reader->pipeline->type;
    bool lasts = !type->opens_upstream;
    for (int i = 0; i < n; i++)
        lasts &= upstream[i]->state->lasting_access;
    return (lasts || type->own_access) && leat_reader_is_random_access(reader);
}

/* One that has random access and an order of its own reads by number. */
static void note_random(const leat_reader *reader)
{
    const struct leat_reader_state *state = reader->state;
    if (reader->pipeline->type->keeps_order ||
        !leat_reader_is_random_access(reader))
        return;
    for (int i = 0; i < state->ninputs; i++)
        leat__reader_set_random(state->input[i]);
}

static int open_with(const leat_pipeline *pipeline, const open_values *values,
                     int depth, leat_reader_figures *figures,
                     leat_reader *upstream[], leat_reader **out)
{
    leat_reader *reader = NULL;
    int n;
    int status = open_upstream(pipeline, values, depth, figures, upstream, &n);
    if (!status) {
        upstream_list list = {upstream, n};
        leat__opening_step step;
        leat__opening_enter(&step, cancel_upstream, &list);
        status = call_open(pipeline, values, depth, figures, upstream, &reader);
        leat__opening_leave(&step);
    }
    if (status) {
        while (n > 0)
            leat_reader_close(upstream[--n]);
        return status;
    }
    status = check_opened(pipeline, reader);
    if (status)
        return status;
    /* Only the count of references changes, atomically. */
    status = leat__reader_attach(reader, (leat_pipeline *)(uintptr_t)pipeline,
                                 upstream, n, depth, figures);
    if (status) {
        reader->ops->close(reader);
        return status;
    }
    reader->state->is_again = values->is_again;
    reader->state->form = leat__reader_form(reader, upstream, n);
    reader->state->reads_once = reads_once(reader, upstream, n);
    reader->state->lasting_access = has_lasting_access(reader, upstream, n);
    note_random(reader);
    *out = reader;
    return LEAT_OK;
}

static int open_reader(const leat_pipeline *pipeline, const open_values *values,
                       int depth, leat_reader_figures *figures,
                       leat_reader **out)
{
    leat_reader **upstream =
        leat__alloc_zero((size_t)pipeline->nupstream, sizeof(*upstream));
    if (!upstream)
        return LEAT_ENOMEM;
    int status = open_with(pipeline, values, depth, figures, upstream, out);
    leat__free(upstream);
    if (status < 0 && pipeline->origin)
        return leat__error_context(status, "%s", pipeline->origin);
    return status;
}

int leat_open_options_init(leat_open_options *options)
{
    const leat_open_options defaults = LEAT_OPEN_OPTIONS_INIT;
    return leat__options_init(options, &defaults, sizeof(defaults));
}

static int copy_options(leat_open_options *out,
                        const leat_open_options *options)
{
    const leat_open_options defaults = LEAT_OPEN_OPTIONS_INIT;
    *out = defaults;
    int status = leat__options_copy(out, options, sizeof(*out));
    if (status)
        return leat__error_context(status, "opening");
    out->world_size += out->world_size == 0;
    if (out->phase != LEAT_TRAIN && out->phase != LEAT_TEST)
        return leat_error(LEAT_EINVAL, "phase is %d: expected TRAIN or TEST",
                          (int)out->phase);
    if (out->world_size < 1 || out->rank < 0 || out->rank >= out->world_size)
        return leat_error(LEAT_EINVAL,
                          "rank %d of world_size %d: expected 0 to world_size "
                          "- 1",
                          out->rank, out->world_size);
    if (out->max_memory < 0 || out->threads < 0)
        return leat_error(LEAT_EINVAL,
                          "max_memory %lld, threads %d: expected 0 or more",
                          (long long)out->max_memory, out->threads);
    return LEAT_OK;
}

/* What each of `ahead` readers may hold of `bytes`; 0: no limit. */
static int64_t share_ahead(int64_t bytes, int64_t ahead)
{
    int64_t part = bytes / (ahead > 0 ? ahead : 1);
    return part > 0 || bytes == 0 ? part : 1;
}

/* The reader that delivers, and the chain of all that it reads. */
static int open_chain(const leat_pipeline *pipeline,
                      const leat_open_options *options, leat_reader **out)
{
    int64_t quarter = options->max_memory / 4 + (options->max_memory % 4 != 0);
    const open_values values = {.options = *options,
                                .ahead_bytes =
                                    share_ahead(quarter, pipeline->ahead)};
    leat__reader_chain *chain;
    int status = leat__reader_chain_create(&chain, pipeline->type->name);
    if (status)
        return status;
    status = open_reader(pipeline, &values, 1, &chain->reader[0], out);
    if (status)
        leat__reader_chain_destroy(chain);
    return status;
}

int leat_pipeline_open_with(const leat_pipeline *pipeline,
                            const leat_open_options *options, leat_reader **out)
{
    leat_open_options values;
    leat_reader *reader;
    int status = copy_options(&values, options);
    if (status)
        return status;
    int cancel = leat__cancel_disable();
    status = open_chain(pipeline, &values, &reader);
    leat__cancel_restore(cancel);
    if (!status)
        *out = reader;
    return status;
}

int leat_pipeline_open(const leat_pipeline *pipeline, leat_reader **out)
{
    return leat_pipeline_open_with(pipeline, NULL, out);
}

int leat_open_again(const leat_open *open, const leat_pipeline *pipeline,
                    int64_t number, leat_reader **out)
{
    const open_values values = {
        .options = {.size = sizeof(values.options),
                    .seed = derive_seed(open->seed, SEED_OF_ANOTHER, number),
                    .phase = open->phase,
                    .rank = open->rank,
                    .world_size = open->world_size,
                    .allocator = open->allocator,
                    .max_memory = open->max_memory,
                    .threads = open->threads,
                    .drop_behind = open->drop_behind},
        .ahead_bytes = share_ahead(open->ahead_bytes, pipeline->ahead),
        .is_again = true,
    };
    leat_reader_figures *figures =
        leat__reader_chain_add(open->figures, pipeline->type->name, -1);
    leat_reader *reader;
    int cancel = leat__cancel_disable();
    int status =
        open_reader(pipeline, &values, open->depth + 1, figures, &reader);
    leat__cancel_restore(cancel);
    if (!status)
        *out = reader;
    return status;
}

uint64_t leat_open_seed(const leat_open *open)
{
    return leat_args_has(open->args, "seed")
               ? (uint64_t)leat_args_number(open->args, "seed")
               : open->seed;
}

static void destroy_state(struct leat_reader_state *state)
{
    for (int i = 0; i < state->held_capacity; i++)
        leat_sample_finish(&state->held[i]);
    leat__free(state->held);
    leat_sample_finish(&state->scratch);
    leat__free(state);
}

void leat_reader_close(leat_reader *reader)
{
    if (!reader)
        return;
    leat_pipeline *pipeline = reader->pipeline;
    struct leat_reader_state *state = reader->state;
    leat__reader_chain *chain = state->figures->chain;
    bool delivers = state->depth == 1;
    if (delivers && leat__reader_chain_abandon(chain, reader))
        return;
    int cancel = leat__cancel_disable();
    leat__reader_chain_detach(reader);
    reader->ops->close(reader);
    destroy_state(state);
    if (delivers)
        leat__reader_chain_destroy(chain);
    leat_pipeline_unref(pipeline);
    leat__cancel_restore(cancel);
}
