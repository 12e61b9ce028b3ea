#include "layer/device_copy.h"
#include "base/clock.h"
#include "base/counter.h"
#include "base/error.h"
#include "base/thread.h"
#include "base/trace.h"

static int upload_means(leat__device_copy *self, const void *means,
                        size_t count)
{
    leat_device *device = self->device;
    self->mean_bytes = count * sizeof(float);
    int status = device->ops->alloc(device, self->mean_bytes, &self->means);
    if (status)
        return status;
    status = device->ops->copy(device, self->means, means, self->mean_bytes,
                               LEAT_COPY_TO_DEVICE, self->stream);
    int waited = device->ops->stream_synchronize(device, self->stream);
    return status ? status : waited;
}

static int init_transform(leat__device_copy *self,
                          const leat__transform_job *plan, int channels)
{
    if (!self->device->ops->transform)
        return leat_error(LEAT_EUNSUPPORTED,
                          "%s has no transform of its own: transform_on must "
                          "be CPU",
                          self->device->name);
    self->transform = (leat_device_transform){
        .mean_values = plan->mean_values,
        .mean_height = plan->mean_height,
        .mean_width = plan->mean_width,
        .scale = (float)plan->scale,
        .top_type = plan->top_type,
        .layout = plan->layout,
    };
    int status = LEAT_OK;
    if (plan->mean)
        status = upload_means(self, plan->mean,
                              (size_t)channels * (size_t)plan->mean_height *
                                  (size_t)plan->mean_width);
    else if (plan->mean_value)
        status =
            upload_means(self, plan->mean_value, (size_t)plan->mean_values);
    self->transform.mean = plan->mean ? self->means : NULL;
    self->transform.mean_value = plan->mean ? NULL : self->means;
    return status;
}

int leat__device_copy_init(leat__device_copy *self, leat_device *device,
                           const leat_transformer *transformer,
                           const leat__batch_shape *shape)
{
    self->device = device;
    int status = leat__mutex_init(&self->lock);
    self->has_lock = status == LEAT_OK;
    if (status == LEAT_OK && !device->ops->unified) {
        status = device->ops->stream_create(device, &self->stream);
        self->has_stream = status == LEAT_OK;
    }
    if (status == LEAT_OK && shape->is_cropped)
        status = init_transform(self, leat__transformer_plan(transformer),
                                shape->image[0]);
    return status;
}

void leat__device_copy_finish(leat__device_copy *self)
{
    leat_device *device = self->device;
    if (self->means)
        device->ops->free(device, self->means, self->mean_bytes);
    if (self->has_stream)
        device->ops->stream_destroy(device, self->stream);
    if (self->has_lock)
        pthread_mutex_destroy(&self->lock);
}

/*
 * A thread begins (1) or ends (-1) to wait for a copy, or to be in the call
 * that makes one. Threads relieve each other, so that there may be somebody all
 * the time: what is over counts at once.
 */
static void note_waiter(leat__device_copy *self, int change)
{
    pthread_mutex_lock(&self->lock);
    int64_t now = leat__clock_now();
    if (self->waiters > 0)
        leat__counter_add(&self->busy, now - self->since);
    self->since = now;
    self->waiters += change;
    pthread_mutex_unlock(&self->lock);
}

/*
 * A copy that the call itself makes would keep the thread until the consumers
 * are done, too.
 */
static int await_room(leat__device_copy *self, const leat__batch *batch)
{
    if (!batch->slab->is_pageable || !batch->has_room)
        return LEAT_OK;
    return self->device->ops->event_synchronize(self->device, batch->room);
}

static int enqueue_copy(leat__device_copy *self, leat__batch *batch)
{
    leat_device *device = self->device;
    int status = await_room(self, batch);
    if (status)
        return status;
    leat__trace_begin(LEAT__SPAN_UPLOAD);
    note_waiter(self, 1);
    status = device->ops->copy(
        device, (char *)batch->slab->device_memory + batch->offset,
        (char *)batch->slab->host + batch->offset, batch->shape.bytes,
        LEAT_COPY_TO_DEVICE, self->stream);
    note_waiter(self, -1);
    leat__trace_end();
    return status;
}

static int enqueue_kernel(leat__device_copy *self, const leat__batch *batch)
{
    const leat__batch_shape *shape = &batch->shape;
    const char *uploaded =
        (const char *)batch->slab->device_memory + batch->offset;
    leat_device_transform job = self->transform;
    job.pixels = (const unsigned char *)uploaded + shape->top[0].offset;
    job.choices =
        (const leat_device_choice *)(const void *)(uploaded + shape->choices);
    job.top = (char *)batch->top_slab->device_memory + batch->top_offset;
    job.pixel_layout = shape->pixel_layout;
    job.images = batch->n;
    job.channels = shape->image[0];
    job.height = shape->image[1];
    job.width = shape->image[2];
    leat__trace_begin(LEAT__SPAN_KERNEL);
    int status = self->device->ops->transform(self->device, &job, self->stream);
    leat__trace_end();
    return status;
}

int leat__device_copy_upload(leat__device_copy *self, leat__batch *batch)
{
    leat_device *device = self->device;
    if (device->ops->unified)
        return LEAT_OK;
    int status = LEAT_OK;
    for (int i = 0; i < batch->nconsumed && status == LEAT_OK; i++)
        status =
            device->ops->stream_wait(device, self->stream, batch->consumed[i]);
    batch->has_room = 0;
    if (status == LEAT_OK && batch->nconsumed > 0) {
        status = device->ops->event_record(device, batch->room, self->stream);
        batch->has_room = status == LEAT_OK;
    }
    if (status == LEAT_OK) {
        batch->nconsumed = 0;
        status = enqueue_copy(self, batch);
    }
    if (status == LEAT_OK && batch->shape.is_cropped)
        status = enqueue_kernel(self, batch);
    if (status == LEAT_OK)
        status = device->ops->event_record(device, batch->ready, self->stream);
    leat__counter_add(&self->batches, 1);
    leat__counter_add(&self->bytes, (int64_t)batch->shape.bytes);
    return status;
}

int leat__device_copy_await(leat__device_copy *self, const leat__batch *batch)
{
    leat_device *device = self->device;
    int status = LEAT_OK;
    if (batch->has_room)
        status = device->ops->event_synchronize(device, batch->room);
    if (status)
        return status;
    note_waiter(self, 1);
    status = device->ops->event_synchronize(device, batch->ready);
    note_waiter(self, -1);
    return status;
}

int leat__device_copy_synchronize(leat__device_copy *self)
{
    note_waiter(self, 1);
    int status =
        self->device->ops->stream_synchronize(self->device, self->stream);
    note_waiter(self, -1);
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
        batch->events += status == LEAT_OK;
    }
    if (status == LEAT_OK)
        status = device->ops->event_record(device, batch->consumed[k], stream);
    if (status == LEAT_OK)
        batch->nconsumed++;
    return status;
}

int leat__device_copy_mark(leat__device_copy *self, leat__batch *batch,
                           const leat_stream *streams, int n)
{
    leat_device *device = self->device;
    int first = LEAT_OK;
    char line[LEAT__ERROR_MAX];
    if (device->ops->unified)
        return LEAT_OK;
    for (int i = 0; i < n; i++) {
        if (streams[i] == LEAT_HOST)
            continue;
        int status = record_stream(device, batch, streams[i]);
        if (status == LEAT_OK)
            continue;
        if (first == LEAT_OK) {
            first = status;
            leat__error_save(line);
        }
        /* The end cannot be marked, so it is waited for. */
        (void)device->ops->stream_synchronize(device, streams[i]);
    }
    return first ? leat_error(first, "%s", line) : LEAT_OK;
}

void leat__device_copy_wait(leat__device_copy *self, const leat__batch *batches,
                            int n)
{
    leat_device *device = self->device;
    if (!self->has_stream)
        return;
    (void)device->ops->stream_synchronize(device, self->stream);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < batches[i].nconsumed; k++)
            (void)device->ops->event_synchronize(device,
                                                 batches[i].consumed[k]);
}
