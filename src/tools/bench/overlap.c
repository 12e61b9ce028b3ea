/*
 * DESIGN. Three runs on the caller's stream, each between two events: forwards
 * alone, kernels alone, and in alternation. The first batches of a run are left
 * out, as the layer made them before the run began. The host waits only for the
 * end of a run, so the device always has work queued.
 */
#include "tools/bench/overlap.h"

#include "tools/bench/bench.h"
#include "tools/cli/interrupt.h"

#include <leat/ext/device.h>
#include <leat/ext/reader.h>

#include <string.h>

enum { FEWEST = 64, MOST = 1024 };

/* A run takes about so long. */
static const double run_seconds = 0.5;

struct run {
    struct layer_source *source;
    leat_event timer[2];
    int forwards;   /* or only kernels */
    double kernels; /* seconds each; 0: none */
};

static int check_device(leat_device *device)
{
    if (!device)
        return leat_error(LEAT_EINVAL,
                          "--overlap is for a device with memory of its own, "
                          "such as cuda:0");
    const leat_device_ops *ops = device->ops;
    if (!ops->occupy || !ops->timer_create || !ops->event_elapsed)
        return leat_error(LEAT_EUNSUPPORTED,
                          "%s has no kernels and timers to measure with",
                          leat_device_name(device));
    return LEAT_OK;
}

static int take_batches(const struct run *run, int n)
{
    struct layer_source *source = run->source;
    leat_device *device = source->device;
    int status = LEAT_OK;
    for (int i = 0; i < n && !status; i++) {
        if (run->forwards)
            status = layer_source_forward(source);
        if (!status && run->kernels > 0)
            status = device->ops->occupy(device, run->kernels, source->stream);
        if (!status)
            status = interrupt_check();
    }
    return status;
}

/* Batches that may be there before the run begins, and one more. */
static int stock(const struct layer_source *source)
{
    leat_stats stats;
    memset(&stats, 0, sizeof(stats));
    stats.size = sizeof(stats);
    (void)leat_data_layer_stats(source->layer, &stats);
    return (int)stats.batches_in_use + 1;
}

/* The device's seconds for each of `n` batches. */
static int time_run(const struct run *run, int n, double *out)
{
    struct layer_source *source = run->source;
    leat_device *device = source->device;
    const leat_device_ops *ops = device->ops;
    double seconds = 0;
    int status = take_batches(run, stock(source));
    if (!status)
        status = ops->event_record(device, run->timer[0], source->stream);
    if (!status)
        status = take_batches(run, n);
    if (!status)
        status = ops->event_record(device, run->timer[1], source->stream);
    if (!status)
        status = ops->event_synchronize(device, run->timer[1]);
    if (!status)
        status =
            ops->event_elapsed(device, run->timer[0], run->timer[1], &seconds);
    *out = seconds / n;
    return status;
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

static int measure(struct overlap *out, struct run *run, double seconds)
{
    run->forwards = 1;
    int status = time_run(run, FEWEST, &out->copies);
    int n = batches_for(out->copies + seconds);
    if (!status)
        status = time_run(run, n, &out->copies);
    run->forwards = 0;
    run->kernels = seconds > 0 ? seconds : out->copies;
    if (!status)
        status = time_run(run, n, &out->kernels);
    run->forwards = 1;
    if (!status)
        status = time_run(run, n, &out->together);
    out->batches = n;
    out->share = hidden_share(out->copies, out->kernels, out->together);
    return status;
}

int overlap_measure(struct overlap *out, struct layer_source *source,
                    double seconds)
{
    struct run run = {.source = source};
    struct overlap result = {0};
    leat_device *device = source->device;
    int status = check_device(device);
    if (status)
        return status;
    status = device->ops->timer_create(device, &run.timer[0]);
    if (status)
        return status;
    status = device->ops->timer_create(device, &run.timer[1]);
    if (!status) {
        status = measure(&result, &run, seconds);
        device->ops->event_destroy(device, run.timer[1]);
    }
    device->ops->event_destroy(device, run.timer[0]);
    if (!status)
        *out = result;
    return status;
}
