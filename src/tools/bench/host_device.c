#include "tools/bench/host_device.h"

#include "base/clock.h"
#include "base/memory.h"
#include "tools/bench/host.h"

#include <leat/ext/reader.h>

#include <stdio.h>
#include <string.h>

static int host_alloc_on(leat_device *device, int node, size_t bytes,
                         void **out)
{
    (void)device;
    void *memory = leat__alloc_pages(bytes);
    if (!memory)
        return LEAT_ENOMEM;
    (void)host_place(memory, bytes, node);
    int status = leat__populate(memory, bytes);
    if (status)
        leat__free_pages(memory, bytes);
    else
        *out = memory;
    return status;
}

static int host_alloc(leat_device *device, size_t bytes, void **out)
{
    return host_alloc_on(device, -1, bytes, out);
}

static void host_free(leat_device *device, void *memory, size_t bytes)
{
    (void)device;
    leat__free_pages(memory, bytes);
}

static int copy(leat_device *device, void *to, const void *from, size_t bytes,
                leat_copy_direction direction, leat_stream stream)
{
    (void)device;
    (void)direction;
    (void)stream;
    memcpy(to, from, bytes);
    return LEAT_OK;
}

static int stream_create(leat_device *device, leat_stream *out)
{
    (void)device;
    *out = 0;
    return LEAT_OK;
}

/* All is done when the call that enqueues it returns. */
static void stream_destroy(leat_device *device, leat_stream stream)
{
    (void)device;
    (void)stream;
}

static int stream_synchronize(leat_device *device, leat_stream stream)
{
    (void)device;
    (void)stream;
    return LEAT_OK;
}

static int create_timer(leat_device *device, leat_event *out)
{
    (void)device;
    int64_t *time = leat__alloc_zero(1, sizeof(*time));
    if (!time)
        return LEAT_ENOMEM;
    *out = (leat_event)time;
    return LEAT_OK;
}

static void event_destroy(leat_device *device, leat_event event)
{
    (void)device;
    leat__free((void *)event);
}

static int event_record(leat_device *device, leat_event event,
                        leat_stream stream)
{
    (void)device;
    (void)stream;
    *(int64_t *)event = leat__clock_now();
    return LEAT_OK;
}

static int stream_wait(leat_device *device, leat_stream stream,
                       leat_event event)
{
    (void)device;
    (void)stream;
    (void)event;
    return LEAT_OK;
}

static int event_synchronize(leat_device *device, leat_event event)
{
    return stream_wait(device, 0, event);
}

static int event_elapsed(leat_device *device, leat_event from, leat_event to,
                         double *out)
{
    (void)device;
    *out = 1e-9 * (double)(*(int64_t *)to - *(int64_t *)from);
    return LEAT_OK;
}

static const leat_device_ops ops = {
    .size = sizeof(leat_device_ops),
    .name = "host",
    .unified = 1,
    .host_alloc = host_alloc,
    .host_free = host_free,
    .alloc = host_alloc,
    .free = host_free,
    .copy = copy,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_synchronize = stream_synchronize,
    .event_create = create_timer,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .stream_wait = stream_wait,
    .event_synchronize = event_synchronize,
    .timer_create = create_timer,
    .event_elapsed = event_elapsed,
    .host_alloc_on = host_alloc_on,
};

leat_device *host_device_of(leat_device *device)
{
    static leat_device host = {.ops = &ops};
    if (!device->ops->unified)
        return device;
    snprintf(host.name, sizeof(host.name), "%s", leat_device_name(device));
    return &host;
}
