/* From a pipeline to running threads, and back. */
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"
#include "layer/autotune.h"
#include "layer/layer_state.h"
#include "pipeline/pipeline.h"
#include "pipeline/reader_chain.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* From so many cores on, one is for copies alone. */
enum { MANY_CORES = 4 };

static bool may_block(const leat_data_layer_group *group)
{
    return leat__pipeline_may_block(group->pipeline);
}

static bool is_threaded(const leat_data_layer_group *group)
{
    leat_reader_thread choice = group->options.values.reader_thread;
    return choice == LEAT_READER_ON ||
           (choice == LEAT_READER_AUTO && may_block(group));
}

/* Shows the new reader to cancel, which may have come before it. */
static int adopt_reader(leat_data_layer_group *group, leat__data_reader *reader)
{
    pthread_mutex_lock(&group->lock);
    group->reader = reader;
    bool cancelled = atomic_load(&group->cancelled);
    pthread_mutex_unlock(&group->lock);
    return cancelled
               ? leat_error(LEAT_ECANCELLED, "%s: the layer was cancelled",
                            group->options.name)
               : LEAT_OK;
}

static int adopt_prefetcher(leat_data_layer_group *group,
                            leat__prefetcher *prefetcher)
{
    pthread_mutex_lock(&group->lock);
    group->prefetcher = prefetcher;
    if (atomic_load(&group->cancelled))
        leat__prefetcher_cancel(prefetcher);
    pthread_mutex_unlock(&group->lock);
    return LEAT_OK;
}

/* Whether batches are on both sides of a bus for some member. */
static bool has_memory(const leat_data_layer_group *group)
{
    bool result = false;
    for (int i = 0; i < group->n; i++)
        result = result || !group->device[i]->ops->unified;
    return result;
}

/*
 * Forward never calls code that may block for ever, such as a user's callback.
 * Nor does it work on a batch of another member, which may wait for that one's
 * stream: streams may wait for each other in each step, and so for what this
 * caller has yet to enqueue.
 */
bool leat__group_may_help(const leat_data_layer_group *group)
{
    return group->options.values.caller_helps == LEAT_CALLER_HELPS_AUTO &&
           (is_threaded(group) || !may_block(group)) &&
           (group->n == 1 || !has_memory(group));
}

/* Whether a thread copies to the devices, and does nothing else. */
static bool has_copy_thread(const leat_data_layer_group *group)
{
    return has_memory(group) && group->cores >= MANY_CORES;
}

static int count_workers(const leat_data_layer_group *group, bool computes)
{
    int workers = group->options.values.workers;
    return workers > 0
               ? workers
               : leat__autotune_workers(group->cores, group->may_help,
                                        has_copy_thread(group), computes);
}

leat_open_options leat__group_open_options(const leat_data_layer_group *group)
{
    const leat_data_layer_options *values = &group->options.values;
    return (leat_open_options){
        .size = sizeof(leat_open_options),
        .seed = group->seed,
        .phase = values->phase,
        .rank = group->step > 1 ? values->rank : 0,
        .world_size = group->step,
        .allocator = values->host_allocator,
        .max_memory = values->max_memory < INT64_MAX
                          ? (int64_t)values->max_memory
                          : INT64_MAX,
        .threads = count_workers(group, true),
    };
}

static int open_reader(leat_data_layer_group *group, leat_token *token)
{
    const leat_open_options open = leat__group_open_options(group);
    const leat_data_layer_options *values = &group->options.values;
    int draws = values->rng == LEAT_RNG_CAFFE ? group->plan.draws : 0;
    const leat__data_reader_options options = {
        .source =
            {
                .pipeline = group->pipeline,
                .buffers = values->host_allocator,
                .batch_size = (int)values->batch_size,
                .rank = group->step > 1 ? values->rank : 0,
                .step = group->step,
                .epoch_end = values->epoch_end,
                .collects = values->on_error != LEAT_ON_ERROR_FAIL,
                .draws = draws,
                .whole_batches = group->options.list.is_variable,
                .seed = (uint32_t)group->seed + (uint32_t)values->rank,
            },
        .open = &open,
        .threaded = is_threaded(group),
        .probes = values->reader_thread == LEAT_READER_AUTO,
        .probe_every = LEAT__PROBE_EVERY,
        .probe_pause = LEAT__PROBE_PAUSE,
        .owner = group,
    };
    leat__data_reader *reader;
    leat__opening *outer = leat__opening_begin(&group->opening);
    int status =
        leat__data_reader_create(&reader, &options, &group->start, token);
    leat__opening_end(outer);
    return status ? status : adopt_reader(group, reader);
}

/*
 * With random access the claimant of a chunk reads it, even beside a thread:
 * forward claims none that may block for ever.
 */
static void settle_help(leat_data_layer_group *group)
{
    const leat_reader *reader = leat__data_reader_reader(group->reader);
    if (!may_block(group) || !leat_reader_is_random_access(reader))
        return;
    group->may_help = false;
    group->member[0].mode.is_possible = false;
}

/* What its readers are left, and in words, for an error, the one that needs
 * most. */
static size_t reserve_readers(const leat_data_layer_group *group, char *out,
                              size_t size)
{
    leat_reader_stats reader[LEAT_MAX_READER_STATS];
    int n = leat__reader_chain_reserves(leat__data_reader_reader(group->reader),
                                        reader);
    int most = 0;
    size_t bytes = 0;
    for (int i = 0; i < n; i++) {
        bytes += (size_t)reader[i].memory;
        most = reader[i].memory > reader[most].memory ? i : most;
    }
    *out = 0;
    if (bytes > 0)
        snprintf(out, size, ", and its readers need %zu, %s %zu", bytes,
                 reader[most].path, (size_t)reader[most].memory);
    return bytes;
}

/* What the batches of a member may take, beside the readers. */
static size_t share_memory(const leat_data_layer_group *group, size_t reserved)
{
    size_t all = group->options.values.max_memory;
    size_t share = (all > reserved ? all - reserved : 0) / (size_t)group->n;
    return share + (all > 0 && share == 0); /* 0 is no limit */
}

/*
 * As many batches for each member as prefetch and max_memory allow, of which
 * the readers have their part already; `*limit` is what a member's may take.
 */
static int count_batches(const leat_data_layer_group *group,
                         const leat__batch_shape *shape,
                         leat__autotune_batches *out, size_t *limit)
{
    char readers[LEAT_READER_PATH_MAX + 80];
    const leat_data_layer_options *values = &group->options.values;
    size_t reserved = reserve_readers(group, readers, sizeof(readers));
    size_t each = group->room * (has_memory(group) ? 2 : 1) + shape->top_bytes +
                  leat__batch_overhead((int)values->batch_size);
    *limit = share_memory(group, reserved);
    if (!leat__autotune_count_batches(out, values->prefetch, each, *limit))
        return leat_error(LEAT_ELIMIT,
                          "%s: max_memory is %zu bytes, but the smallest "
                          "prefetch takes two batches of %zu%s%s",
                          values->name, values->max_memory, each,
                          group->n > 1 ? " for each device" : "", readers);
    /* What is taken at once leaves half for larger samples. */
    if (values->prefetch == LEAT_PREFETCH_AUTO && values->max_memory > 0 &&
        (has_memory(group) || values->host_allocator) &&
        out->all > 2 * out->circulating)
        out->all /= 2;
    if (values->prefetch != LEAT_PREFETCH_AUTO && out->all <= values->prefetch)
        leat__log(
            LEAT_LOG_INFO, "%s: prefetch %d shrinks to %d for max_memory %zu",
            values->name, values->prefetch, out->all - 1, values->max_memory);
    for (int i = 0; i < group->n; i++)
        leat__log(LEAT_LOG_INFO,
                  "%s: %d batches of %zu bytes on %s, %d of them in use",
                  group->member[i].name, out->all, group->room,
                  group->device[i]->name, out->circulating);
    return LEAT_OK;
}

/* The identity of the data set, for resume tokens, where readers know it. */
static int identify(leat_data_layer_group *group)
{
    leat_reader *reader = leat__data_reader_reader(group->reader);
    group->has_mark = leat_reader_has_mark(reader);
    group->can_seek = leat_reader_can_seek(reader);
    group->reads_to_resume = !group->has_mark && !group->can_seek;
    if (group->identity.size > 0)
        return LEAT_OK;
    int status = leat_reader_save(reader, &group->identity);
    if (!status && leat__reader_reads_once(reader))
        status = leat_error(LEAT_ESTATE,
                            "what %s has read of a pipe or device is gone: no "
                            "run can be resumed",
                            leat_pipeline_text(group->pipeline));
    group->cannot_resume = status == LEAT_ESTATE;
    if (group->cannot_resume) {
        leat__error_save(group->cannot_resume_line);
        group->identity.size = 0;
    }
    return status == LEAT_EUNSUPPORTED || group->cannot_resume ? LEAT_OK
                                                               : status;
}

/* With several ranks the record before is often another's: it must be had. */
static int check_policy(const leat_data_layer_group *group)
{
    if (group->options.values.on_error != LEAT_ON_ERROR_REPLACE ||
        group->step == 1 || leat__data_reader_can_reread(group->reader))
        return LEAT_OK;
    return leat_error(
        LEAT_EINVAL,
        "%s: on_error REPLACE with %d ranks needs records that can "
        "be read in any order, and those of %s cannot; expected "
        "ZERO or FAIL",
        group->options.name, group->step, leat_pipeline_text(group->pipeline));
}

/*
 * The number of the first batch. Where batches end with an epoch of unknown
 * length, an earlier one tells it: all are of the same length. After a restore
 * at the end of the first one, the preview has met that.
 */
static int number_batches(leat_data_layer_group *group)
{
    const leat__position *start = &group->start;
    leat_epoch_end epoch_end = group->options.values.epoch_end;
    int64_t all = group->options.values.batch_size * group->step;
    int64_t count = 0;
    group->first_number = start->position / all;
    if (epoch_end == LEAT_EPOCH_END_WRAP)
        return LEAT_OK;
    int status =
        leat_reader_count(leat__data_reader_reader(group->reader), &count);
    if (status == LEAT_EUNSUPPORTED)
        count = start->epoch > 0
                    ? (start->position - start->index) / start->epoch
                    : leat__data_reader_found(group->reader);
    else if (status)
        return status;
    if (count <= 0 || count == LEAT_ENDLESS)
        return LEAT_OK;
    bool drops = epoch_end == LEAT_EPOCH_END_DROP;
    int64_t batches = count / all + (!drops && count % all > 0);
    group->first_number =
        start->position / count * batches + start->position % count / all;
    return LEAT_OK;
}

/* A restore may go to the end; a setup has to begin with a sample. */
static int no_sample(const leat_data_layer_group *group)
{
    return leat_error(LEAT_EINVAL,
                      "%s: %s has a single pass of %lld samples, and none for "
                      "rank %d of %d; expected one for each rank at least",
                      group->options.name, leat_pipeline_text(group->pipeline),
                      (long long)leat__data_reader_samples(group->reader),
                      group->options.values.rank, group->step);
}

/* Resets a member's counters. */
static void begin(leat_data_layer *member, const leat__position *start)
{
    member->taken = 0;
    member->waited = 0;
    member->batches = 0;
    member->samples = 0;
    leat__bad_record_log_begin(&member->bad_records, start->epoch,
                               start->index);
    memset(&member->waiting, 0, sizeof(member->waiting));
}

static void log_memory(const leat_data_layer *member)
{
    leat_stats stats = {.size = sizeof(stats)};
    if (!leat__log_is_enabled(LEAT_LOG_INFO) ||
        leat_data_layer_stats(member, &stats))
        return;
    const leat_memory_stats *all = &stats.memory;
    const leat_memory_stats *used = &stats.peak;
    leat__log(LEAT_LOG_INFO,
              "%s: memory reserved for batches, and of it in use, in bytes: "
              "pinned %lld, %lld; pageable %lld, %lld; device %lld, %lld; host "
              "%lld, %lld; files mapped %lld; held by readers %lld",
              member->name, (long long)all->pinned, (long long)used->pinned,
              (long long)all->pageable, (long long)used->pageable,
              (long long)all->device, (long long)used->device,
              (long long)all->host, (long long)used->host,
              (long long)all->mapped, (long long)all->readers);
}

static int start_prefetcher(leat_data_layer_group *group,
                            const leat__batch_spec *spec,
                            const leat_sample *sample,
                            const leat__batch_shape *shape)
{
    const leat_data_layer_options *values = &group->options.values;
    leat__autotune_batches batches;
    size_t limit;
    int status = count_batches(group, shape, &batches, &limit);
    if (status)
        return status;
    bool decodes;
    size_t sample_bytes =
        leat__group_measure_sample(group, shape, sample, &decodes);
    int workers = count_workers(group, decodes || !shape->is_cropped);
    bool is_batch = leat__data_reader_needs_batches(group->reader);
    bool has_thread = has_copy_thread(group);
    /* Neighbours share a copy: so many come into use. Workers are in a quarter
       of them, so that what a device reads has left their caches. */
    int in_use = has_thread ? batches.all : batches.circulating;
    const leat__autotune_load load = {
        .sample_bytes = sample_bytes,
        .buffer_bytes = sample->buffer_size,
        .batch_size = spec->batch_size,
        .workers = workers,
        .batches = has_thread && in_use > 4 ? group->n * (in_use - 1) / 4
                                            : group->n * (in_use - 1),
        .takers = workers + group->n,
        .max_memory = limit,
    };
    bool is_whole = group->plan.is_variable;
    const leat__prefetcher_options options = {
        .worker =
            {
                .reader = group->reader,
                .image = group->images.transformer,
                .buffers = values->host_allocator,
                .spec = *spec,
                .shape = *shape,
                .on_error = values->on_error,
                .step = group->step,
                .pads = values->epoch_end == LEAT_EPOCH_END_PAD,
            },
        .queue =
            {
                .transformer = group->images.transformer[0],
                .is_variable = is_whole,
                .room = group->room,
                .host_slabs = values->host_allocator,
                .pinned_slabs = values->pinned_allocator,
                .shape = *shape,
                .batch_size = spec->batch_size,
                .must_pin = values->must_pin,
                .name = values->name,
                .max_memory = limit,
                .batches = batches.all,
                .circulating = batches.circulating,
                .has_thread = has_thread,
                .owner = group,
            },
        .device = group->device,
        .devices = group->n,
        .workers = workers,
        .at_start = group->start.position == 0,
        .decodes = decodes,
        .may_time_waits = group->cores > 1,
        .chunk_size = is_batch ? spec->batch_size
                               : leat__autotune_chunk_size(&load, false),
        .ahead_size = is_batch ? spec->batch_size
                               : leat__autotune_chunk_size(&load, true),
        .sample_buffer = sample->buffer_size,
        .ahead_bytes =
            sample->buffer_size * (is_batch ? (size_t)spec->batch_size : 1),
        .owner = group,
    };
    leat__prefetcher *prefetcher;
    status = leat__prefetcher_create(&prefetcher, &options);
    if (status)
        return status;
    group->begun = leat__clock_now();
    status = adopt_prefetcher(group, prefetcher);
    for (int i = 0; i < group->n; i++)
        log_memory(&group->member[i]);
    return status;
}

static int start(leat_data_layer_group *group, int ntop, leat_token *token,
                 leat__batch_shape *shape)
{
    const leat_data_layer_options *values = &group->options.values;
    /* Also on failure: the notes belong to another start. */
    for (int i = 0; i < group->n; i++)
        begin(&group->member[i], &group->start);
    int status = open_reader(group, token);
    if (!status)
        settle_help(group);
    if (!status)
        status = check_policy(group);
    if (!status)
        status = identify(group);
    if (!status)
        status = leat__group_plan_tops(group, ntop);
    if (status)
        return status;
    const leat__batch_spec spec = {
        .batch_size = (int)values->batch_size,
        .plan = &group->plan,
        .layout = values->layout,
        .rng = values->rng,
        .seed = group->seed,
        .crops = values->transform_on == LEAT_TRANSFORM_ON_DEVICE &&
                 has_memory(group) && group->plan.images > 0,
    };
    leat_sample spare;
    leat_sample_init(&spare);
    spare.allocator = values->host_allocator;
    const leat_sample *sample;
    status = leat__group_find_shape(group, token != NULL, &spec, &spare,
                                    &sample, shape);
    if (status == LEAT_END && !token)
        status = no_sample(group);
    if (!status)
        status = number_batches(group);
    if (!status)
        status = leat__group_measure_batch(group, shape);
    if (!status)
        status = start_prefetcher(group, &spec, sample, shape);
    leat_sample_finish(&spare);
    return status;
}

int leat__group_start(leat_data_layer_group *group, int ntop, leat_token *token,
                      leat__batch_shape *shape)
{
    const void *owner = leat__thread_set_owner(group);
    group->is_starting = true;
    int status = start(group, ntop, token, shape);
    group->is_starting = false;
    (void)leat__thread_set_owner(owner);
    return status;
}

/*
 * A failed device cannot be waited for: the stop goes on all the same. So it
 * does for a stream that is captured, on which no event can be recorded; the
 * caller is told not to do that. Without a batch the stream may be gone, and
 * nothing is asked of it.
 */
static void let_go(leat_data_layer *member, leat__prefetcher *prefetcher)
{
    if (!member->current)
        return;
    leat_device *device = member->device;
    leat_stream stream = member->stream;
    bool captures = stream != LEAT_HOST && device->ops->stream_is_capturing &&
                    device->ops->stream_is_capturing(device, stream);
    if (!captures)
        (void)leat__prefetcher_mark(prefetcher, member->current,
                                    &member->stream, 1);
    member->current = NULL;
}

/* The group that the calling thread stops. */
static _Thread_local const leat_data_layer_group *stopping;

bool leat__group_is_stopping(const leat_data_layer_group *group)
{
    return stopping == group;
}

void leat__group_stop(leat_data_layer_group *group)
{
    const leat_data_layer_group *outer = stopping;
    const void *owner = leat__thread_set_owner(group);
    stopping = group;
    pthread_mutex_lock(&group->lock);
    leat__prefetcher *prefetcher = group->prefetcher;
    leat__data_reader *reader = group->reader;
    group->prefetcher = NULL;
    group->reader = NULL;
    pthread_mutex_unlock(&group->lock);
    for (int i = 0; i < group->n; i++)
        let_go(&group->member[i], prefetcher);
    leat__prefetcher_destroy(prefetcher);
    leat__data_reader_destroy(reader);
    stopping = outer;
    (void)leat__thread_set_owner(owner);
}
