/* prefetch:N,threads=T reads up to N samples ahead on threads of its own. */
#include "base/counter.h"
#include "base/memory.h"
#include "base/options.h"
#include "decorators/decorators.h"
#include "decorators/prefetch/prefetch_reader.h"
#include "pipeline/pipeline.h"
#include "pipeline/reader_table.h"

#include <leat/decorators.h>

#include <stdio.h>

enum {
    AUTO_FIRST = 16,    /* slots for each thread, once a sample is there */
    AUTO_MAX = 1024,    /* slots in all */
    UNORDERED_SPAN = 4, /* how far the oldest sample may be overtaken */
    THREADS_MAX = 256
};

/* The memory up to which AUTO doubles, where the caller sets no limit. */
#define AUTO_BYTES ((int64_t)256 << 20)

static int prefetch_count(leat_reader *reader, int64_t *out)
{
    return leat_reader_count(((leat__prefetch *)reader)->decorator.upstream[0],
                             out);
}

static int prefetch_read_at(leat_reader *reader, const leat_position at[],
                            leat_sample *const out[], int n, int *got)
{
    return leat_reader_pull_at(
        ((leat__prefetch *)reader)->decorator.upstream[0], at, out, n, got);
}

static void prefetch_advise(leat_reader *reader, const leat_position at[],
                            int n)
{
    leat_reader_advise(((leat__prefetch *)reader)->decorator.upstream[0], at,
                       n);
}

static int64_t prefetch_memory(leat_reader *reader)
{
    return leat__counter_get(&((leat__prefetch *)reader)->buffer.memory);
}

/* One sample has room always. */
static int64_t prefetch_reserves(leat_reader *reader)
{
    leat__prefetch *prefetch = (leat__prefetch *)reader;
    int slots = prefetch->is_auto ? 1 : prefetch->most;
    int64_t least = slots * (int64_t)sizeof(leat__prefetch_slot) +
                    (int64_t)atomic_load_explicit(&prefetch->first_bytes,
                                                  memory_order_relaxed);
    return least > prefetch->max_bytes ? least : prefetch->max_bytes;
}

/* ---- Its forms ---------------------------------------------------------- */

#define PREFETCH_OPS                                                           \
    .size = sizeof(leat_reader_ops), .name = "prefetch",                       \
    .fields = leat__prefetch_fields, .next = leat__prefetch_next,              \
    .seek = leat__prefetch_seek, .cancel = leat__prefetch_cancel,              \
    .close = leat__prefetch_close, .count = prefetch_count,                    \
    .skip = leat__prefetch_skip, .may_block = leat__decorator_may_block,       \
    .memory = prefetch_memory, .reserves = prefetch_reserves,                  \
    .is_endless = leat__decorator_is_any_endless
#define PREFETCH_RESUMES                                                       \
    .can_seek = leat__decorator_can_seek, .save = leat__prefetch_save,         \
    .restore = leat__prefetch_restore

/* A layer that reads by index does so on its workers, through read_at. */
static const leat_reader_ops random_access_ops = {
    PREFETCH_OPS,
    PREFETCH_RESUMES,
    .read_at = prefetch_read_at,
    .advise = prefetch_advise,
};

static const leat_reader_ops stream_ops = {PREFETCH_OPS, PREFETCH_RESUMES};

static const leat_reader_ops marked_ops = {
    PREFETCH_OPS,
    PREFETCH_RESUMES,
    .mark = leat__prefetch_mark,
};

static int refuse_save(leat_reader *reader, leat_token *token)
{
    (void)reader;
    (void)token;
    return leat_error(LEAT_ESTATE,
                      "prefetch: the order of arrival cannot be saved; leave "
                      "unordered out");
}

static const leat_reader_ops unordered_ops = {
    PREFETCH_OPS,
    .can_seek = leat__reader_no,
    .save = refuse_save,
    .restore = refuse_save,
};

static const leat_reader_ops *choose_ops(leat_reader *upstream,
                                         bool is_unordered)
{
    if (is_unordered)
        return &unordered_ops;
    if (leat_reader_has_mark(upstream))
        return &marked_ops;
    return leat_reader_is_random_access(upstream) ? &random_access_ops
                                                  : &stream_ops;
}

static int init_shared(leat__prefetch *prefetch)
{
    int status = leat__mutex_init(&prefetch->lock);
    if (status)
        return status;
    status = leat__cond_init(&prefetch->work);
    if (status)
        goto fail_lock;
    status = leat__cond_init(&prefetch->changed);
    if (!status)
        return LEAT_OK;
    pthread_cond_destroy(&prefetch->work);
fail_lock:
    pthread_mutex_destroy(&prefetch->lock);
    return status;
}

/* Room for `size` slots, `n` of them at first. */
static int init_buffers(leat__prefetch *prefetch, int size, int n,
                        const leat_allocator *allocator)
{
    size_t window =
        (size_t)size * (prefetch->is_unordered ? UNORDERED_SPAN : 1);
    prefetch->most = size;
    prefetch->given = leat__alloc_zero((size_t)size, sizeof(void *));
    prefetch->spent = leat__alloc_zero((size_t)size, sizeof(void *));
    prefetch->thread =
        leat__alloc_zero((size_t)prefetch->nthreads, sizeof(leat__thread));
    if (!prefetch->given || !prefetch->spent || !prefetch->thread)
        return LEAT_ENOMEM;
    return leat__prefetch_buffer_init(&prefetch->buffer, (int)window, n,
                                      allocator);
}

/* Slots of a number that is given are made at once. */
static int check_memory(const leat_open *open, int64_t samples)
{
    int64_t bytes = samples * (int64_t)sizeof(leat__prefetch_slot);
    if (open->max_memory == 0 || bytes <= open->max_memory)
        return LEAT_OK;
    return leat_error(LEAT_ELIMIT,
                      "prefetch: %lld samples take %lld bytes or more, but "
                      "max_memory is %lld: expected fewer, or auto",
                      (long long)samples, (long long)bytes,
                      (long long)open->max_memory);
}

/* What may be held, slots included: never more than the caller's limit. */
static int64_t choose_bytes(const leat_open *open, int64_t samples)
{
    int64_t bytes = leat_args_number(open->args, "max_bytes");
    if (open->max_memory == 0)
        return samples > 0 ? 0 : bytes > 0 ? bytes : AUTO_BYTES;
    if (samples > 0)
        bytes =
            open->ahead_bytes + samples * (int64_t)sizeof(leat__prefetch_slot);
    else if (bytes == 0)
        bytes = open->ahead_bytes;
    return bytes < open->max_memory ? bytes : open->max_memory;
}

static int init(leat__prefetch *prefetch, const leat_open *open)
{
    leat_reader *upstream = open->upstream[0];
    int64_t samples = leat_args_number(open->args, "samples");
    prefetch->nthreads = (int)leat_args_number(open->args, "threads");
    prefetch->is_unordered = leat_args_number(open->args, "unordered") > 0;
    prefetch->has_mark =
        !prefetch->is_unordered && leat_reader_has_mark(upstream);
    prefetch->by_index = leat_reader_is_random_access(upstream) &&
                         !leat_reader_has_mark(upstream) &&
                         !leat__pipeline_keeps_order(open->pipeline[0]);
    if (prefetch->by_index)
        leat__reader_set_random(upstream);
    prefetch->is_auto = samples <= 0;
    prefetch->chunk = 1;
    prefetch->recent.largest = -1;
    int usual = AUTO_FIRST * prefetch->nthreads;
    prefetch->usual = usual < AUTO_MAX ? usual : AUTO_MAX;
    prefetch->max_bytes = choose_bytes(open, samples);
    int status = prefetch->by_index
                     ? leat_reader_count(upstream, &prefetch->count)
                     : LEAT_OK;
    if (!status && !prefetch->is_auto)
        status = check_memory(open, samples);
    if (!status && prefetch->is_auto)
        status = init_buffers(prefetch, AUTO_MAX, 1, open->allocator);
    else if (!status)
        status =
            init_buffers(prefetch, (int)samples, (int)samples, open->allocator);
    return status;
}

static int check_ranks(const leat_open *open)
{
    if (open->world_size == 1 || !leat_args_number(open->args, "unordered"))
        return LEAT_OK;
    return leat_error(LEAT_EINVAL,
                      "prefetch: unordered gives each of the %d ranks another "
                      "order, so that together they would not read every "
                      "sample once; leave unordered out",
                      open->world_size);
}

static int prefetch_open(const leat_open *open, leat_reader **out)
{
    bool is_unordered = leat_args_number(open->args, "unordered") > 0;
    int status = check_ranks(open);
    if (status)
        return status;
    leat__prefetch *prefetch = leat__decorator_new(
        open, choose_ops(open->upstream[0], is_unordered), sizeof(*prefetch));
    if (!prefetch)
        return LEAT_ENOMEM;
    status = init_shared(prefetch);
    if (status)
        goto fail_self;
    status = init(prefetch, open);
    if (status)
        goto fail_shared;
    *out = &prefetch->decorator.reader;
    return LEAT_OK;

fail_shared:
    leat__prefetch_finish(prefetch);
fail_self:
    leat__free(prefetch);
    return status;
}

static const leat_argument prefetch_arguments[] = {
    {.name = "samples",
     .kind = LEAT_ARGUMENT_NUMBER,
     .positional = 1,
     .keeps_samples = 1,
     .initial = "auto",
     .min = -1,
     .max = 1 << 20,
     .words = "auto",
     .help = "samples read ahead; auto, 0 or -1: 16 a thread, doubled whenever "
             "the caller finds none, as far as max_bytes allows"},
    {.name = "threads",
     .kind = LEAT_ARGUMENT_NUMBER,
     .keeps_samples = 1,
     .initial = "1",
     .min = 1,
     .max = THREADS_MAX,
     .help = "threads that read, started by the first sample asked for"},
    {.name = "max_bytes",
     .kind = LEAT_ARGUMENT_BYTES,
     .keeps_samples = 1,
     .initial = "0",
     .max = INT64_MAX,
     .help = "memory that auto may take, of which one sample has room always; "
             "0: its part of a quarter of the caller's limit, or 256M"},
    {.name = "unordered",
     .kind = LEAT_ARGUMENT_NUMBER,
     .keeps_samples = 1,
     .initial = "0",
     .max = 1,
     .help = "1: samples come as they are ready; neither ranks nor save"},
    {0},
};

const leat_reader_type leat__prefetch_type = {
    .size = sizeof(leat_reader_type),
    .name = "prefetch",
    .help = "reads ahead on threads of its own",
    .arguments = prefetch_arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 1,
    .max_upstream = 1,
    .passes_on = 1,
    .keeps_order = 1,
    .reads_ahead = 1,
    .open = prefetch_open,
};

int leat_prefetch_options_init(leat_prefetch_options *options)
{
    const leat_prefetch_options defaults = LEAT_PREFETCH_OPTIONS_INIT;
    return leat__options_init(options, &defaults, sizeof(defaults));
}

int leat_pipeline_prefetch(leat_pipeline **out, leat_pipeline *upstream,
                           const leat_prefetch_options *options)
{
    leat_prefetch_options values = LEAT_PREFETCH_OPTIONS_INIT;
    char text[128];
    int status = leat__options_copy(&values, options, sizeof(values));
    if (status)
        return status;
    int used =
        values.samples > 0 || values.samples < -1
            ? snprintf(text, sizeof(text), "%lld", (long long)values.samples)
            : snprintf(text, sizeof(text), "auto");
    if (values.threads != 0 && values.threads != 1)
        used += snprintf(text + used, sizeof(text) - (size_t)used,
                         ",threads=%d", values.threads);
    if (values.max_bytes != 0)
        used += snprintf(text + used, sizeof(text) - (size_t)used,
                         ",max_bytes=%lld", (long long)values.max_bytes);
    if (values.unordered)
        snprintf(text + used, sizeof(text) - (size_t)used, ",unordered=1");
    return leat_pipeline_create(out, &leat__prefetch_type, text, NULL, NULL,
                                &upstream, 1);
}
