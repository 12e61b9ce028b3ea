/*
 * DESIGN. Three runs on the caller's stream, each between two events: forwards
 * alone, kernels alone, and in alternation. The first batches of a run are left
 * out, as the layer made them before the run began. The host waits only for the
 * end of a run, so the device always has work queued.
 */
#include "tools/bench/overlap.h"

#include "tools/bench/bench.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"

#include <leat/ext/device.h>
#include <leat/ext/reader.h>

enum { FEWEST = 64, MOST = 1024 };

/* A run takes about so long. */
static const double run_seconds = 0.5;

struct run {
    struct layer_source *source;
    leat_event timer[2];
    int forwards;   /* or only kernels */
    double kernels; /* seconds each; 0: none */
};

static void check_device(leat_device *device)
{
    if (!device)
        message_fail("--overlap is for a device with memory of its own, such "
                     "as cuda:0");
    const leat_device_ops *ops = device->ops;
    if (!ops->occupy || !ops->timer_create || !ops->event_elapsed)
        message_fail("%s has no kernels and timers to measure with",
                     leat_device_name(device));
}

static void take_batches(const struct run *run, int n)
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
static double time_run(const struct run *run, int n)
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

void overlap_measure(struct overlap *out, struct layer_source *source,
                     double seconds)
{
    struct run run = {.source = source, .forwards = 1};
    leat_device *device = source->device;
    check_device(device);
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
