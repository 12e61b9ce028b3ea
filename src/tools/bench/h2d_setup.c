#include "tools/bench/h2d_setup.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "tools/bench/host.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"

/* A device takes some thousand entries before it makes the host wait. */
enum { MOST_ENQUEUED = 512 };

static const double warm_seconds = 0.3;
static const size_t warm_bytes = (size_t)1 << 20;

/* To find out whether the launch of a kernel waits for its end. */
static const double probe_seconds = 0.02;
enum { PROBES = 5 };

static void check_device(const leat_device *device)
{
    if (!device->ops->timer_create || !device->ops->event_elapsed)
        message_fail("%s has no events that measure time",
                     leat_device_name(device));
}

static int take_pinned(struct h2d *bench, void **out)
{
    leat_device *device = bench->device;
    const struct h2d_options *options = &bench->options;
    if (options->has_node && device->ops->host_alloc_on)
        return device->ops->host_alloc_on(device, options->node, options->bytes,
                                          out);
    return device->ops->host_alloc(device, options->bytes, out);
}

/* On the device's node, as far as the system allows. */
static int take_pageable(struct h2d *bench)
{
    leat_device *device = bench->device;
    size_t bytes = bench->options.bytes;
    bench->pageable = leat__alloc_pages(bytes);
    if (!bench->pageable)
        return LEAT_ENOMEM;
    if (device->ops->numa_node)
        (void)host_place(bench->pageable, bytes,
                         device->ops->numa_node(device));
    return leat__populate(bench->pageable, bytes);
}

static int take_memory(struct h2d *bench)
{
    leat_device *device = bench->device;
    const struct h2d_options *options = &bench->options;
    void *release = NULL;
    int status = take_pinned(bench, &bench->pinned);
    if (!status)
        status = interrupt_check();
    if (!status)
        status = take_pinned(bench, &bench->back);
    if (!status)
        status = interrupt_check();
    if (!status && options->pageable)
        status = take_pageable(bench);
    if (!status)
        status = interrupt_check();
    if (!status)
        status = device->ops->alloc(device, options->bytes, &bench->memory);
    if (!status && options->to_host)
        status = device->ops->alloc(device, options->bytes, &bench->source);
    if (!status && device->ops->stream_hold)
        status = device->ops->host_alloc(device, sizeof(uint32_t), &release);
    bench->release = release;
    return status;
}

static void take_streams(struct h2d *bench)
{
    leat_device *device = bench->device;
    const leat_device_ops *ops = device->ops;
    output_require(ops->timer_create(device, &bench->start));
    for (; bench->nstreams < bench->options.streams; bench->nstreams++) {
        int i = bench->nstreams;
        output_require(ops->stream_create(device, &bench->stream[i]));
        output_require(ops->event_create(device, &bench->joined[i]));
        output_require(ops->timer_create(device, &bench->done[i]));
    }
}

void h2d_release(struct h2d *h2d, uint32_t value)
{
    if (h2d->release)
        __atomic_store_n(h2d->release, value, __ATOMIC_RELEASE);
}

void h2d_require(struct h2d *h2d, int status)
{
    if (status < 0)
        h2d_release(h2d, 1);
    output_require(status);
}

/* The seconds that the call takes which holds the stream so long at most. */
static double time_hold(struct h2d *h2d, uint32_t value)
{
    leat_device *device = h2d->device;
    h2d_release(h2d, value);
    double begin = leat__clock_seconds();
    h2d_require(h2d, device->ops->stream_hold(device, h2d->release,
                                              probe_seconds, h2d->stream[0]));
    double seconds = leat__clock_seconds() - begin;
    h2d_release(h2d, 1);
    h2d_require(h2d, device->ops->stream_synchronize(device, h2d->stream[0]));
    return seconds;
}

/*
 * Launches may block, as with CUDA_LAUNCH_BLOCKING and in some tools that check
 * kernels: then a stream that is held holds the host. The first launch, which
 * holds nothing, may load the kernel.
 */
static void probe_hold(struct h2d *h2d)
{
    if (!h2d->release)
        return;
    (void)time_hold(h2d, 1);
    for (int i = 0; i < PROBES && !h2d->holds; i++)
        h2d->holds = time_hold(h2d, 0) < probe_seconds / 2;
}

struct h2d *h2d_open(leat_device *device, const struct h2d_options *options)
{
    check_device(device);
    struct h2d *bench = leat__alloc_zero(1, sizeof(*bench));
    if (!bench)
        return NULL;
    bench->device = device;
    bench->options = *options;
    bench->most_enqueued = MOST_ENQUEUED;
    int status = take_memory(bench);
    if (status == LEAT_ENOMEM) {
        h2d_close(bench);
        return NULL;
    }
    output_require(status);
    take_streams(bench);
    probe_hold(bench);
    return bench;
}

void h2d_warm_up(struct h2d *h2d)
{
    leat_device *device = h2d->device;
    size_t bytes =
        h2d->options.bytes < warm_bytes ? h2d->options.bytes : warm_bytes;
    double begin = leat__clock_seconds();
    do {
        h2d_require(h2d,
                    device->ops->copy(device, h2d->memory, h2d->pinned, bytes,
                                      LEAT_COPY_TO_DEVICE, h2d->stream[0]));
        h2d_require(h2d,
                    device->ops->stream_synchronize(device, h2d->stream[0]));
        h2d_require(h2d, interrupt_check());
    } while (leat__clock_seconds() - begin < warm_seconds);
}

static void free_memory(struct h2d *h2d)
{
    leat_device *device = h2d->device;
    const leat_device_ops *ops = device->ops;
    size_t bytes = h2d->options.bytes;
    if (h2d->release)
        ops->host_free(device, h2d->release, sizeof(uint32_t));
    if (h2d->source)
        ops->free(device, h2d->source, bytes);
    if (h2d->memory)
        ops->free(device, h2d->memory, bytes);
    leat__free_pages(h2d->pageable, bytes);
    if (h2d->back)
        ops->host_free(device, h2d->back, bytes);
    if (h2d->pinned)
        ops->host_free(device, h2d->pinned, bytes);
}

void h2d_close(struct h2d *h2d)
{
    if (!h2d)
        return;
    leat_device *device = h2d->device;
    const leat_device_ops *ops = device->ops;
    for (int i = 0; i < h2d->nstreams; i++) {
        (void)ops->stream_synchronize(device, h2d->stream[i]);
        ops->stream_destroy(device, h2d->stream[i]);
        ops->event_destroy(device, h2d->joined[i]);
        ops->event_destroy(device, h2d->done[i]);
    }
    if (h2d->start)
        ops->event_destroy(device, h2d->start);
    free_memory(h2d);
    leat__free(h2d);
}

bool h2d_holds(const struct h2d *h2d)
{
    return h2d->holds;
}

int h2d_node(const struct h2d *h2d, bool pinned)
{
    return leat__numa_node_of(pinned ? h2d->pinned : h2d->pageable);
}
