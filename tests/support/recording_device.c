#include "support/recording_device.h"
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static recording_device *of(leat_device *device)
{
    return (recording_device *)device;
}

static void record(recording_device *self, const char *format, ...)
{
    size_t used = strlen(self->calls);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(self->calls + used, sizeof(self->calls) - used, format,
              arguments);
    va_end(arguments);
}

static int outcome(recording_device *self, const char *call)
{
    if (self->fail_at < 0 || self->fail_at-- > 0)
        return LEAT_OK;
    return leat_error(LEAT_EDEVICE, "%s failed", call);
}

static int device_alloc(leat_device *device, size_t bytes, void **out)
{
    record(of(device), "alloc %zu; ", bytes);
    int status = outcome(of(device), "alloc");
    if (status == LEAT_OK)
        *out = calloc(1, bytes);
    return status;
}

static void device_free(leat_device *device, void *memory, size_t bytes)
{
    record(of(device), "free %zu; ", bytes);
    free(memory);
}

static int device_copy(leat_device *device, void *to, const void *from,
                       size_t bytes, leat_copy_direction direction,
                       leat_stream stream)
{
    record(of(device), "copy %zu %s on %zu; ", bytes,
           direction == LEAT_COPY_TO_DEVICE ? "to the device" : "elsewhere",
           (size_t)stream);
    if (of(device)->act)
        of(device)->act();
    int status = outcome(of(device), "copy");
    if (status == LEAT_OK)
        memcpy(to, from, bytes);
    return status;
}

static int device_stream_create(leat_device *device, leat_stream *out)
{
    record(of(device), "create stream; ");
    int status = outcome(of(device), "stream_create");
    if (status == LEAT_OK)
        *out = (leat_stream)++of(device)->streams;
    return status;
}

static int device_stream_create_high_priority(leat_device *device,
                                              leat_stream *out)
{
    record(of(device), "create stream of high priority; ");
    int status = outcome(of(device), "stream_create_high_priority");
    if (status == LEAT_OK)
        *out = (leat_stream)++of(device)->streams;
    return status;
}

static void device_stream_destroy(leat_device *device, leat_stream stream)
{
    record(of(device), "destroy stream %zu; ", (size_t)stream);
}

static int device_stream_synchronize(leat_device *device, leat_stream stream)
{
    record(of(device), "sync stream %zu; ", (size_t)stream);
    return outcome(of(device), "stream_synchronize");
}

static int device_event_create(leat_device *device, leat_event *out)
{
    record(of(device), "create event; ");
    int status = outcome(of(device), "event_create");
    if (status == LEAT_OK)
        *out = (leat_event)101 + (leat_event)of(device)->events++;
    return status;
}

static int device_event_record(leat_device *device, leat_event event,
                               leat_stream stream)
{
    record(of(device), "record %zu on %zu; ", (size_t)event, (size_t)stream);
    return outcome(of(device), "event_record");
}

static int device_stream_wait(leat_device *device, leat_stream stream,
                              leat_event event)
{
    record(of(device), "%zu waits for %zu; ", (size_t)stream, (size_t)event);
    return outcome(of(device), "stream_wait");
}

static int device_event_synchronize(leat_device *device, leat_event event)
{
    record(of(device), "sync %zu; ", (size_t)event);
    if (of(device)->act)
        of(device)->act();
    return outcome(of(device), "event_synchronize");
}

static int device_event_query(leat_device *device, leat_event event,
                              int *is_complete)
{
    record(of(device), "query %zu; ", (size_t)event);
    *is_complete = of(device)->answers;
    return outcome(of(device), "event_query");
}

static int device_transform(leat_device *device,
                            const leat_device_transform *what,
                            leat_stream stream)
{
    record(of(device), "transform %d on %zu; ", (int)what->images,
           (size_t)stream);
    of(device)->what = *what;
    return outcome(of(device), "transform");
}

void recording_device_init(recording_device *device)
{
    *device = (recording_device){
        .base = {.name = "recording"},
        .ops = {.size = sizeof(leat_device_ops),
                .name = "recording",
                .alloc = device_alloc,
                .free = device_free,
                .copy = device_copy,
                .stream_create = device_stream_create,
                .stream_destroy = device_stream_destroy,
                .stream_synchronize = device_stream_synchronize,
                .event_create = device_event_create,
                .event_record = device_event_record,
                .stream_wait = device_stream_wait,
                .event_synchronize = device_event_synchronize,
                .event_query = device_event_query,
                .transform = device_transform,
                .stream_create_high_priority =
                    device_stream_create_high_priority},
        .fail_at = -1};
    device->base.ops = &device->ops;
}

const char *recording_device_look(recording_device *device)
{
    static char seen[sizeof(device->calls)];
    memcpy(seen, device->calls, sizeof(seen));
    device->calls[0] = 0;
    return seen;
}
