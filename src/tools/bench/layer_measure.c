#include "tools/bench/layer_measure.h"

#include "base/clock.h"
#include "base/thread.h"
#include "tools/bench/bench.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/cli/progress.h"

#include <leat/ext/device.h>
#include <leat/ext/reader.h>

#include <string.h>
#include <sys/resource.h>
#include <time.h>

static const double warm_up_seconds = 0.02;

/* Seconds of the processor that this thread has had. */
static double thread_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Some microseconds of multiplications within the first cache. */
static void multiply(void)
{
    static float matrix[1024];
    for (int round = 0; round < 16; round++)
        for (int i = 0; i < 1024; i++)
            matrix[i] = matrix[i] * 0.5f + (float)round;
    /* The compiler must not drop stores that are never read. */
    __asm__ volatile("" : : "r"(matrix) : "memory");
}

/*
 * Keeps one core busy, as a net on the CPU does. Its work does not shrink when
 * the caller's thread loses its core, so the thread's own time counts.
 */
static void caller_compute(double milliseconds)
{
    if (milliseconds <= 0)
        return;
    double end = thread_seconds() + 1e-3 * milliseconds;
    do
        multiply();
    while (thread_seconds() < end && !interrupt_check());
}

/* Leaves the cores alone, as a net on a GPU does. In parts: a signal that comes
   just before one does not end it. */
static void caller_sleep(double milliseconds)
{
    static const double part_most = 100;
    while (milliseconds > 0 && !interrupt_check()) {
        double part = milliseconds < part_most ? milliseconds : part_most;
        const struct timespec pause = {0, (long)(1e6 * part)};
        nanosleep(&pause, NULL);
        milliseconds -= part;
    }
}

static int64_t peak_rss(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (int64_t)usage.ru_maxrss * 1024;
}

/* Adds the stages' work between two readings. */
static void add_stages(leat_stats *sum, const leat_stats *before,
                       const leat_stats *after)
{
    const leat_stats so_far = *sum;
    *sum = *after;
    sum->waited += so_far.waited - before->waited;
    sum->elapsed += so_far.elapsed - before->elapsed;
    sum->helped_chunks += so_far.helped_chunks - before->helped_chunks;
    sum->helped += so_far.helped - before->helped;
    sum->blocked_lock += so_far.blocked_lock - before->blocked_lock;
    sum->bad_records += so_far.bad_records - before->bad_records;
    sum->jpeg_fast += so_far.jpeg_fast - before->jpeg_fast;
    sum->jpeg_library += so_far.jpeg_library - before->jpeg_library;
    for (int i = 0; i < after->nstages; i++) {
        const leat_stage_stats *from = &before->stage[i];
        const leat_stage_stats *old = &so_far.stage[i];
        leat_stage_stats *to = &sum->stage[i];
        to->items += old->items - from->items;
        to->bytes += old->bytes - from->bytes;
        to->busy += old->busy - from->busy;
        to->blocked_empty += old->blocked_empty - from->blocked_empty;
        to->blocked_full += old->blocked_full - from->blocked_full;
    }
}

/* A member's, around a slice. */
struct reading {
    leat_stats before;
    leat_stats after;
};

static void read_stats(const struct layer_group *group,
                       struct reading *readings, bool is_after)
{
    for (int i = 0; i < group->n; i++) {
        leat_stats *stats = is_after ? &readings[i].after : &readings[i].before;
        stats->size = sizeof(*stats);
        output_require(leat_data_layer_stats(group->member[i].layer, stats));
    }
}

/* What the caller does with a batch. Returns the seconds it computed. */
static double consume(const struct layer_options *options)
{
    caller_compute(options->compute_ms);
    caller_sleep(options->sleep_ms);
    return 1e-3 * options->compute_ms;
}

static void count_batch(const leat_batch *batch,
                        const struct layer_options *options,
                        struct layer_result *result, int i)
{
    if (!result->batches)
        result->first_epoch = batch->epoch;
    result->batches++;
    result->samples += batch->valid;
    result->share[i].batches++;
    result->share[i].samples += batch->valid;
    /* The number of a batch's epoch tells of the end one batch late, and the
       first batch may lie in the middle of one. */
    bool is_over = result->pass > 0
                       ? (double)result->samples >=
                             (double)result->pass * (double)options->epochs
                       : batch->epoch - result->first_epoch >= options->epochs;
    result->ended = options->epochs && is_over;
}

/* A batch of each layer, from the time `now` on; returns the time after it.
   What is taken is counted in `result`, if there is one. */
static double take_step(struct layer_group *group, double now,
                        const struct layer_options *options,
                        struct layer_result *result)
{
    for (int i = 0; i < group->n; i++) {
        double start = now;
        output_require(layer_source_forward(&group->member[i]));
        now = leat__clock_seconds();
        if (!result)
            continue;
        latency_add(&result->waits, now - start);
        const leat_batch *batch = leat_data_layer_batch(group->member[i].layer);
        if (batch)
            count_batch(batch, options, result, i);
    }
    return now;
}

/* A last slice that the end of an epoch cuts short is too noisy to count. */
static void keep_slice(struct layer_result *result, int64_t samples,
                       double seconds)
{
    if (result->slices > 0 && seconds < LIMIT_SLICE / 2)
        return;
    result->slice[result->slices++ % LAYER_SLICES_KEPT] =
        bench_share((double)samples, seconds);
}

static void add_stats(struct layer_result *result, int n,
                      const struct reading *readings)
{
    const leat_stage_stats *read = &readings[0].after.stage[0];
    for (int i = 0; i < n; i++)
        add_stages(&result->share[i].stats, &readings[i].before,
                   &readings[i].after);
    /* What was read is not yet delivered: the mean bytes of a record count. */
    result->payload = (double)result->samples *
                      bench_share((double)read->bytes, (double)read->items);
}

/* Takes batches for the time of a slice, or to the end of the last epoch. */
static void run_slice(struct layer_group *group,
                      const struct layer_options *options,
                      struct layer_result *result)
{
    /* Larger than what a small stack has left. */
    static struct reading readings[LAYER_GROUP_MOST];
    memset(readings, 0, sizeof(readings));
    int64_t samples = result->samples;
    read_stats(group, readings, false);
    double queued = bench_queued_seconds(); /* which allocates */
    int64_t allocations = bench_allocations();
    double cpu = bench_cpu_seconds();
    double start = leat__clock_seconds(), now = start;
    while (now - start < LIMIT_SLICE && !result->ended && !interrupt_check()) {
        take_step(group, now, options, result);
        result->cpu -= consume(options);
        now = leat__clock_seconds();
    }
    for (int i = 0; i < group->n; i++)
        output_require(layer_source_wait(&group->member[i]));
    if (group->member[0].device || group->group)
        now = leat__clock_seconds();
    result->allocations += bench_allocations() - allocations;
    result->cpu += bench_cpu_seconds() - cpu;
    result->queued += bench_queued_seconds() - queued;
    result->seconds += now - start;
    keep_slice(result, result->samples - samples, now - start);
    read_stats(group, readings, true);
    add_stats(result, group->n, readings);
    output_require(interrupt_check());
}

/* Waits until the layer's threads are idle: twice no processor time. */
static void settle(void)
{
    for (int quiet = 0, tries = 0;
         quiet < 2 && tries < 500 && !interrupt_check(); tries++) {
        double cpu = bench_cpu_seconds();
        caller_sleep(10);
        quiet = bench_cpu_seconds() - cpu < 0.0005 ? quiet + 1 : 0;
    }
}

/* Takes the batches that are ready, and goes on until all threads run. */
static void warm_up(struct layer_group *group,
                    const struct layer_options *options)
{
    leat_data_layer *layer = group->member[0].layer;
    int prefetch = leat_data_layer_get_options(layer)->prefetch;
    int steps = prefetch < 4 ? 5 : prefetch + 1;
    double now = leat__clock_seconds(), end = now + warm_up_seconds;
    for (int i = 0; i < steps || now < end; i++) {
        now = take_step(group, now, options, NULL);
        consume(options);
        output_require(interrupt_check());
    }
}

/* The samples of an epoch; 0: unknown, or shared with other ranks. */
static int64_t find_pass(const leat_data_layer *layer)
{
    int64_t count = 0;
    if (leat_data_layer_count(layer, &count))
        return 0;
    if (count == LEAT_ENDLESS)
        message_fail("the pipeline has no end: add | take:N, or measure by "
                     "--seconds");
    if (leat_data_layer_get_options(layer)->world_size > 1)
        return 0;
    return count;
}

static void run_slices(struct layer_group *group, struct limit *limit,
                       const struct layer_options *options,
                       struct layer_result *result)
{
    struct progress progress;
    progress_start(&progress, "batches", -1, options->json);
    do {
        if (limit) {
            settle();
            limit_run(limit, LIMIT_SLICE, &result->limited);
        }
        if (limit || !result->batches)
            warm_up(group, options);
        run_slice(group, options, result);
        progress_update(&progress, result->batches);
    } while (options->epochs ? !result->ended
                             : result->seconds < options->seconds);
    progress_finish(&progress);
}

/* The limit's first slice is for caches and clocks. */
static struct limit *open_limit(const struct layer_group *group, bool row_copy)
{
    struct limit_result ignored = {0};
    settle();
    interrupt_catch_opening();
    struct limit *limit =
        limit_open(group->member[0].layer, row_copy, bench_workers(0));
    interrupt_catch();
    limit_run(limit, LIMIT_SLICE, &ignored);
    return limit;
}

leat_stage_stats layer_copies(const leat_stats *stats)
{
    for (int i = 0; i < stats->nstages; i++)
        if (strcmp(stats->stage[i].name, "copy") == 0)
            return stats->stage[i];
    return (leat_stage_stats){0};
}

/*
 * How much of the deliveries a caller's kernels hide, by three runs on the
 * caller's stream, each between two events: forwards alone, kernels alone, and
 * in alternation. The first batches of a run are left out, as the layer made
 * them before the run began. The host waits only for the end of a run, so the
 * device always has work queued.
 */
enum { FEWEST = 64, MOST = 1024 };

/* A run takes about so long. */
static const double run_seconds = 0.5;

struct overlap_run {
    struct layer_source *source;
    leat_event timer[2];
    int forwards;   /* or only kernels */
    double kernels; /* seconds each; 0: none */
};

static void check_overlap_device(leat_device *device)
{
    if (!device)
        message_fail("--overlap is for a device with memory of its own, such "
                     "as cuda:0");
    const leat_device_ops *ops = device->ops;
    if (!ops->occupy || !ops->timer_create || !ops->event_elapsed)
        message_fail("%s has no kernels and timers to measure with",
                     leat_device_name(device));
}

static void take_batches(const struct overlap_run *run, int n)
{
    struct layer_source *source = run->source;
    leat_device *device = source->device;
    for (int i = 0; i < n; i++) {
        if (run->forwards)
            output_require(layer_source_forward(source));
        if (run->kernels > 0)
            output_require(
                device->ops->occupy(device, run->kernels, source->stream));
        output_require(interrupt_check());
    }
}

/* Batches that may be there before the run begins, and one more. */
static int stock(const struct layer_source *source)
{
    leat_stats stats = {.size = sizeof(stats)};
    (void)leat_data_layer_stats(source->layer, &stats);
    return (int)stats.batches_in_use + 1;
}

/* The device's seconds for each of `n` batches. */
static double time_run(const struct overlap_run *run, int n)
{
    const struct layer_source *source = run->source;
    leat_device *device = source->device;
    const leat_device_ops *ops = device->ops;
    const leat_event *timer = run->timer;
    double seconds = 0;
    take_batches(run, stock(source));
    output_require(ops->event_record(device, timer[0], source->stream));
    take_batches(run, n);
    output_require(ops->event_record(device, timer[1], source->stream));
    output_require(ops->event_synchronize(device, timer[1]));
    output_require(ops->event_elapsed(device, timer[0], timer[1], &seconds));
    return seconds / n;
}

static int batches_for(double seconds)
{
    double n = seconds > 0 ? run_seconds / seconds : MOST;
    return n < FEWEST ? FEWEST : n > MOST ? MOST : (int)n;
}

/* How much of the shorter of two times was hidden: 1 all of it, 0 nothing. */
static double hidden_share(double one, double other, double together)
{
    double shorter = one < other ? one : other;
    double share = bench_share(one + other - together, shorter);
    return share < 0 ? 0 : share > 1 ? 1 : share;
}

/* Kernels are `seconds` long, or, with 0, as long as the delivery of a batch
   takes. */
static void measure_overlap(struct overlap *out, struct layer_source *source,
                            double seconds)
{
    struct overlap_run run = {.source = source, .forwards = 1};
    leat_device *device = source->device;
    check_overlap_device(device);
    for (int i = 0; i < 2; i++)
        output_require(device->ops->timer_create(device, &run.timer[i]));
    out->copies = time_run(&run, FEWEST);
    out->batches = batches_for(out->copies + seconds);
    out->copies = time_run(&run, out->batches);
    run.forwards = 0;
    run.kernels = seconds > 0 ? seconds : out->copies;
    out->kernels = time_run(&run, out->batches);
    run.forwards = 1;
    out->together = time_run(&run, out->batches);
    out->share = hidden_share(out->copies, out->kernels, out->together);
    for (int i = 0; i < 2; i++)
        device->ops->event_destroy(device, run.timer[i]);
}

/*
 * What any call of the driver takes a caller that has done something else for
 * so long, so that nothing of it is in a cache: forward makes three. The
 * median. After pauses that are too long to repeat, nothing.
 */
static double measure_driver_call(const struct layer_source *member,
                                  const struct layer_options *options)
{
    enum { CALLS = 21 };
    static const double longest_ms = 50;
    leat_device *device = member->device;
    double pause = options->compute_ms + options->sleep_ms;
    double seconds[CALLS];
    if (!device->ops->stream_is_capturing || pause <= 0 || pause > longest_ms)
        return 0;
    for (int i = 0; i < CALLS; i++) {
        consume(options);
        output_require(interrupt_check());
        double start = leat__clock_seconds();
        (void)device->ops->stream_is_capturing(device, member->stream);
        seconds[i] = leat__clock_seconds() - start;
    }
    return bench_spread_of(seconds, CALLS).median;
}

/* What single devices have besides, measured while the layer is idle. */
static void measure_device(struct layer_result *out,
                           struct layer_source *member,
                           const struct layer_options *options)
{
    leat_stage_stats copy = layer_copies(&out->share[0].stats);
    size_t bytes = copy.items > 0 ? (size_t)(copy.bytes / copy.items) : 0;
    if (options->overlap)
        measure_overlap(&out->overlap, member, 1e-3 * options->kernel_ms);
    if (!member->device)
        return;
    settle();
    out->driver_call = measure_driver_call(member, options);
    h2d_measure_ceiling(&out->ceiling, member->device, bytes);
}

void layer_measure(struct layer_result *out, struct layer_group *group,
                   const struct layer_options *options)
{
    struct limit *limit = NULL;
    double start = leat__clock_seconds();
    /* As a caller's that has launched kernels: the GPU's context stays. */
    leat__thread_set_own();
    interrupt_catch_opening();
    layer_group_open(group, &options->source);
    if (options->epochs)
        out->pass = find_pass(group->member[0].layer);
    interrupt_catch();
    out->first_batch = take_step(group, start, options, NULL) - start;
    if (options->limit)
        limit = open_limit(group, options->row_copy);
    run_slices(group, limit, options, out);
    out->peak_rss = peak_rss();
    limit_close(limit);
    if (options->limit)
        bandwidth_measure(&out->bandwidth);
    if (!group->group)
        measure_device(out, &group->member[0], options);
}
