/*
 * DESIGN. An upload is enqueued in one go under the lock of all queues:
 *
 *     copies       wait consumed | copy | record copied |
 *     transforms                                  wait copied | transform |
 *                                                 record ready
 *
 * Without a transform `ready` comes right after the copy, and `copied` is not
 * used. A copy waits for the consumers of what it overwrites, never for a
 * transform that they wait for anyway; so the bus is idle only where consumers
 * or the host are late. The host side is free once the copy is over.
 *
 * `consumed` covers the transform of the former contents, because a consumer
 * waits for `ready`. Where none did, since the batch came back undelivered, the
 * next copy waits for `ready` itself.
 */
#include "layer/device_copy.h"
#include "base/clock.h"
#include "base/counter.h"
#include "base/error.h"
#include "base/thread.h"
#include "base/trace.h"

static int upload_means(leat__device_copy *copy, const void *means,
                        size_t count)
{
    leat_device *device = copy->device;
    copy->mean_bytes = count * sizeof(float);
    int status = device->ops->alloc(device, copy->mean_bytes, &copy->means);
    if (status)
        return status;
    status = device->ops->copy(device, copy->means, means, copy->mean_bytes,
                               LEAT_COPY_TO_DEVICE, copy->copies);
    int waited = device->ops->stream_synchronize(device, copy->copies);
    return status ? status : waited;
}

static int create_transforms(leat__device_copy *copy)
{
    const leat_device_ops *ops = copy->device->ops;
    int status =
        ops->stream_create_high_priority
            ? ops->stream_create_high_priority(copy->device, &copy->transforms)
            : ops->stream_create(copy->device, &copy->transforms);
    copy->has_transforms = !status;
    return status;
}

static int init_transform(leat__device_copy *copy,
                          const leat__transform_job *plan, int channels)
{
    if (!copy->device->ops->transform)
        return leat_error(LEAT_EUNSUPPORTED,
                          "%s has no transform of its own: transform_on must "
                          "be CPU",
                          copy->device->name);
    int status = create_transforms(copy);
    if (status)
        return status;
    copy->transform = (leat_device_transform){
        .mean_values = plan->mean_values,
        .mean_height = plan->mean_height,
        .mean_width = plan->mean_width,
        .scale = (float)plan->scale,
        .top_type = plan->top_type,
        .layout = plan->layout,
    };
    if (plan->mean)
        status = upload_means(copy, plan->mean,
                              (size_t)channels * (size_t)plan->mean_height *
                                  (size_t)plan->mean_width);
    else if (plan->mean_value)
        status =
            upload_means(copy, plan->mean_value, (size_t)plan->mean_values);
    copy->transform.mean = plan->mean ? copy->means : NULL;
    copy->transform.mean_value = plan->mean ? NULL : copy->means;
    /* Now: the first batch is launched under the queues' lock. */
    if (!status && copy->device->ops->transform_load)
        status =
            copy->device->ops->transform_load(copy->device, &copy->transform);
    return status;
}

int leat__device_copy_init(leat__device_copy *copy, leat_device *device,
                           const leat_transformer *transformer,
                           const leat__batch_shape *shape)
{
    int status = LEAT_OK;
    copy->device = device;
    if (!device->ops->unified) {
        status = device->ops->stream_create(device, &copy->copies);
        copy->has_copies = !status;
    }
    if (!status && shape->is_cropped)
        status = init_transform(copy, leat__transformer_plan(transformer),
                                shape->top[shape->crop_top].image[0]);
    return status;
}

void leat__device_copy_finish(leat__device_copy *copy)
{
    leat_device *device = copy->device;
    if (copy->means)
        device->ops->free(device, copy->means, copy->mean_bytes);
    if (copy->has_transforms)
        device->ops->stream_destroy(device, copy->transforms);
    if (copy->has_copies)
        device->ops->stream_destroy(device, copy->copies);
}

/*
 * A thread begins (1) or ends (-1) to wait for a copy, or to be in the call
 * that makes one. Threads relieve each other, so that there may be somebody all
 * the time: finished copies count at once. Two changes at one moment may take
 * each other's nanoseconds; a lock would make threads wait for each other.
 */
static void note_waiter(leat__device_copy *copy, int change)
{
    int64_t now = leat__clock_now();
    int64_t since = atomic_exchange(&copy->since, now);
    if (atomic_fetch_add(&copy->waiters, change) > 0 && now > since)
        leat__counter_add(&copy->busy, now - since);
}

/*
 * A copy that the call itself makes would keep the thread until the consumers
 * are done, too.
 */
static int await_room(leat__device_copy *copy, const leat__batch *batch)
{
    if (!batch->slab->is_pageable || !batch->has_room)
        return LEAT_OK;
    return copy->device->ops->event_synchronize(copy->device, batch->room);
}

static int enqueue_copy(leat__device_copy *copy, leat__batch *batch)
{
    leat_device *device = copy->device;
    int status = await_room(copy, batch);
    if (status)
        return status;
    leat__trace_begin(LEAT__SPAN_UPLOAD);
    note_waiter(copy, 1);
    status = device->ops->copy(
        device, (char *)batch->slab->device_memory + batch->offset,
        (char *)batch->slab->host + batch->offset, batch->shape.bytes,
        LEAT_COPY_TO_DEVICE, copy->copies);
    note_waiter(copy, -1);
    leat__trace_end();
    return status;
}

static int enqueue_kernel(leat__device_copy *copy, const leat__batch *batch)
{
    const leat__batch_shape *shape = &batch->shape;
    const char *uploaded =
        (const char *)batch->slab->device_memory + batch->offset;
    leat_device_transform job = copy->transform;
    const leat__top *crops = &shape->top[shape->crop_top];
    job.pixels = (const unsigned char *)uploaded + crops->offset;
    job.choices =
        (const leat_device_choice *)(const void *)(uploaded + shape->choices);
    job.top = (char *)batch->top_slab->device_memory + batch->top_offset;
    job.pixel_layout = shape->pixel_layout;
    job.images = batch->n;
    job.channels = crops->image[0];
    job.height = crops->image[1];
    job.width = crops->image[2];
    leat__trace_begin(LEAT__SPAN_KERNEL);
    int status =
        copy->device->ops->transform(copy->device, &job, copy->transforms);
    leat__trace_end();
    return status;
}

/* What reads or writes the former contents; `room` is where it ends. */
static int enqueue_waits(leat__device_copy *copy, leat__batch *batch)
{
    leat_device *device = copy->device;
    int status = LEAT_OK;
    batch->has_room = false;
    if (batch->is_transformed && !batch->is_awaited)
        status = device->ops->stream_wait(device, copy->copies, batch->ready);
    for (int i = 0; i < batch->nconsumed && !status; i++)
        status =
            device->ops->stream_wait(device, copy->copies, batch->consumed[i]);
    if (!status && batch->nconsumed > 0) {
        status = device->ops->event_record(device, batch->room, copy->copies);
        batch->has_room = !status;
    }
    if (!status)
        batch->nconsumed = 0;
    return status;
}

/* On the stream of transforms, after the copy. */
static int enqueue_transform(leat__device_copy *copy, leat__batch *batch)
{
    leat_device *device = copy->device;
    int status = device->ops->event_record(device, batch->copied, copy->copies);
    batch->is_transformed = !status;
    batch->is_awaited = false;
    if (!status)
        status =
            device->ops->stream_wait(device, copy->transforms, batch->copied);
    return status ? status : enqueue_kernel(copy, batch);
}

int leat__device_copy_upload(leat__device_copy *copy, leat__batch *batch)
{
    leat_device *device = copy->device;
    if (device->ops->unified)
        return LEAT_OK;
    bool has_rows = batch->n > 0;
    bool transforms = has_rows && batch->shape.is_cropped;
    int status = enqueue_waits(copy, batch);
    if (!status)
        batch->is_transformed = false;
    if (!status && has_rows)
        status = enqueue_copy(copy, batch);
    if (!status && transforms)
        status = enqueue_transform(copy, batch);
    if (!status)
        status = device->ops->event_record(
            device, batch->ready, transforms ? copy->transforms : copy->copies);
    leat__counter_add(&copy->batches, 1);
    leat__counter_add(&copy->bytes, (int64_t)batch->shape.bytes);
    return status;
}

/* The time before `room` is the consumers' of the former contents. */
static int await_event(leat__device_copy *copy, const leat__batch *batch,
                       leat_event event)
{
    leat_device *device = copy->device;
    int status = LEAT_OK;
    if (batch->has_room)
        status = device->ops->event_synchronize(device, batch->room);
    if (status)
        return status;
    note_waiter(copy, 1);
    status = device->ops->event_synchronize(device, event);
    note_waiter(copy, -1);
    return status;
}

int leat__device_copy_await_host(leat__device_copy *copy,
                                 const leat__batch *batch)
{
    return await_event(copy, batch,
                       batch->is_transformed ? batch->copied : batch->ready);
}

int leat__device_copy_await(leat__device_copy *copy, leat__batch *batch,
                            leat_stream stream)
{
    leat_device *device = copy->device;
    int status = stream == LEAT_HOST
                     ? await_event(copy, batch, batch->ready)
                     : device->ops->stream_wait(device, stream, batch->ready);
    batch->is_awaited = !status;
    return status;
}

int leat__device_copy_synchronize(leat__device_copy *copy)
{
    note_waiter(copy, 1);
    int status =
        copy->device->ops->stream_synchronize(copy->device, copy->copies);
    note_waiter(copy, -1);
    return status;
}

/*
 * Where a stream's use of the batch ends; beside those that an upload which
 * failed did not come to wait for.
 */
static int record_stream(leat_device *device, leat__batch *batch,
                         leat_stream stream)
{
    int k = batch->nconsumed;
    int status = LEAT_OK;
    if (k == LEAT__STREAMS_MAX)
        return leat_error(LEAT_EINVAL, "more than %d streams use a batch", k);
    if (k == batch->events) {
        status = device->ops->event_create(device, &batch->consumed[k]);
        batch->events += !status;
    }
    if (!status)
        status = device->ops->event_record(device, batch->consumed[k], stream);
    if (!status)
        batch->nconsumed++;
    return status;
}

int leat__device_copy_mark(leat__device_copy *copy, leat__batch *batch,
                           const leat_stream *streams, int n)
{
    leat_device *device = copy->device;
    int first = LEAT_OK;
    char line[LEAT__ERROR_MAX];
    if (device->ops->unified)
        return LEAT_OK;
    for (int i = 0; i < n; i++) {
        if (streams[i] == LEAT_HOST)
            continue;
        int status = record_stream(device, batch, streams[i]);
        if (!status)
            continue;
        if (!first) {
            first = status;
            leat__error_save(line);
        }
        /* The end cannot be marked, so it is waited for. */
        (void)device->ops->stream_synchronize(device, streams[i]);
    }
    return first ? leat_error(first, "%s", line) : LEAT_OK;
}

void leat__device_copy_wait(leat__device_copy *copy, const leat__batch *batches,
                            int n)
{
    leat_device *device = copy->device;
    if (!copy->has_copies)
        return;
    (void)device->ops->stream_synchronize(device, copy->copies);
    if (copy->has_transforms)
        (void)device->ops->stream_synchronize(device, copy->transforms);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < batches[i].nconsumed; k++)
            (void)device->ops->event_synchronize(device,
                                                 batches[i].consumed[k]);
}
