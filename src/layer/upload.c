/*
 * DESIGN. An upload is enqueued in one go:
 *
 *     copies       wait consumed | copy | record copied |
 *     transforms                                  wait copied | transform |
 *                                                 record ready
 *
 * Without a transform `ready` comes right after `copied`. Each call takes the
 * driver some microseconds beside a busy bus, more than small batches take
 * there: so batches that are neighbours in memory share a copy, its events and
 * a transform. A copy waits for the consumers of what it overwrites, never for
 * a transform that they wait for anyway; so the bus is idle only where
 * consumers or the host are late. The host side is free once the copy is over;
 * where a caller pushed it, once the consumers are done, too.
 *
 * `consumed` covers the transform of the former contents, because a consumer
 * waits for `ready`. Where none did, since the batch came back undelivered, the
 * next copy waits for `ready` itself.
 */
#include "layer/upload.h"
#include "base/counter.h"
#include "base/error.h"
#include "base/trace.h"

#include <string.h>

/* An error counts as no: the next call reports it. */
static bool is_complete(leat_device *device, leat_event event)
{
    int result = 0;
    return device->ops->event_query &&
           !device->ops->event_query(device, event, &result) && result;
}

/* Forgets the uses of the former contents that are over. Whether none is left.
 */
static bool is_unused(leat_device *device, leat__batch *batch)
{
    if (batch->is_transformed && !batch->is_awaited)
        batch->is_awaited = is_complete(device, batch->ready);
    while (batch->nconsumed > 0 &&
           is_complete(device, batch->consumed[batch->nconsumed - 1]))
        batch->nconsumed--;
    return batch->nconsumed == 0 &&
           (!batch->is_transformed || batch->is_awaited);
}

/* Whether one copy and one transform take both. */
static bool is_followed(const leat__batch *batch, const leat__batch *next)
{
    const leat__batch_shape *shape = &batch->shape;
    const leat__batch_shape *other = &next->shape;
    if (next->failed >= 0 || next->n != batch->n || next->slab != batch->slab ||
        next->offset != batch->offset + batch->capacity ||
        shape->bytes != batch->capacity || other->bytes != shape->bytes ||
        other->is_cropped != shape->is_cropped)
        return false;
    const leat__top *top = &shape->top[shape->crop_top];
    const leat__top *same = &other->top[other->crop_top];
    return !shape->is_cropped ||
           (next->top_slab == batch->top_slab &&
            next->top_offset == batch->top_offset + batch->top_capacity &&
            next->top_capacity == batch->top_capacity &&
            other->choices == shape->choices &&
            other->pixel_layout == shape->pixel_layout &&
            same->offset == top->offset &&
            memcmp(same->image, top->image, sizeof(top->image)) == 0);
}

int leat__upload_run(leat__device_copy *copy, leat__batch *const batch[], int n)
{
    int run = 1;
    size_t each = batch[0]->shape.bytes;
    if (copy->device->ops->unified || batch[0]->failed >= 0 || batch[0]->n == 0)
        return 1;
    (void)is_unused(copy->device, batch[0]);
    while (run < n && ((size_t)run + 1) * each <= LEAT__UPLOAD_BYTES &&
           is_followed(batch[run - 1], batch[run]) &&
           is_unused(copy->device, batch[run]))
        run++;
    return run;
}

/*
 * A copy that the call itself makes would keep the thread until the consumers
 * are done, too.
 */
static int await_room(leat__device_copy *copy, const leat__batch *batch)
{
    if (!batch->slab->is_pageable || !batch->upload.has_room)
        return LEAT_OK;
    return copy->device->ops->event_synchronize(copy->device, batch->room);
}

static int enqueue_copy(leat__device_copy *copy, leat__batch *const batch[],
                        int n)
{
    leat_device *device = copy->device;
    const leat__slab *slab = batch[0]->slab;
    size_t first = batch[0]->offset;
    size_t end = batch[n - 1]->offset + batch[n - 1]->shape.bytes;
    int status = await_room(copy, batch[0]);
    if (status)
        return status;
    leat__trace_begin(LEAT__SPAN_UPLOAD);
    leat__device_copy_note_waiter(copy, 1);
    status = device->ops->copy(device, (char *)slab->device_memory + first,
                               (char *)slab->host + first, end - first,
                               LEAT_COPY_TO_DEVICE, copy->copies);
    leat__device_copy_note_waiter(copy, -1);
    leat__trace_end();
    return status;
}

static int enqueue_kernel(leat__device_copy *copy, const leat__batch *batch,
                          int n)
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
    job.further = n - 1;
    job.stride = batch->capacity;
    job.top_stride = batch->top_capacity;
    leat__trace_begin(LEAT__SPAN_KERNEL);
    int status =
        copy->device->ops->transform(copy->device, &job, copy->transforms);
    leat__trace_end();
    return status;
}

/* Without samples it has the offsets of ragged tops, after the fixed ones. */
static bool has_bytes(const leat__batch *batch)
{
    return batch->n > 0 || batch->shape.bytes > batch->shape.fixed;
}

/* What reads or writes the former contents; `room` is where it ends. */
static int enqueue_waits(leat__device_copy *copy, leat__batch *batch)
{
    leat_device *device = copy->device;
    int status = LEAT_OK;
    batch->upload.has_room = false;
    if (batch->is_transformed && !batch->is_awaited)
        status = device->ops->stream_wait(device, copy->copies, batch->ready);
    for (int i = 0; i < batch->nconsumed && !status; i++)
        status =
            device->ops->stream_wait(device, copy->copies, batch->consumed[i]);
    if (!status && batch->nconsumed > 0) {
        status = device->ops->event_record(device, batch->room, copy->copies);
        batch->upload.has_room = !status;
    }
    if (!status)
        batch->nconsumed = 0;
    return status;
}

/* On the stream of transforms, after the copy. */
static int enqueue_transform(leat__device_copy *copy,
                             leat__batch *const batch[], int n)
{
    leat_device *device = copy->device;
    for (int i = 0; i < n; i++) {
        batch[i]->is_transformed = true;
        batch[i]->is_awaited = false;
    }
    int status =
        device->ops->stream_wait(device, copy->transforms, batch[0]->copied);
    return status ? status : enqueue_kernel(copy, batch[0], n);
}

static void note_upload(leat__device_copy *copy, leat__batch *const batch[],
                        int n)
{
    leat__upload upload = batch[0]->upload;
    upload.begin = upload.end = copy->latest[copy->uploads % LEAT__UPLOADS].end;
    upload.number = ++copy->uploads;
    upload.batches = n;
    upload.room = batch[0]->room;
    upload.over = batch[0]->copied;
    upload.end += n * (int64_t)batch[0]->shape.bytes;
    for (int i = 0; i < n; i++)
        batch[i]->upload = upload;
    copy->latest[upload.number % LEAT__UPLOADS] = upload;
}

/* No event covers what was enqueued, and the batches are filled again, perhaps
 * in other memory. */
static int give_up(leat__device_copy *copy, int status)
{
    char line[LEAT__ERROR_MAX];
    leat__error_save(line);
    leat__device_copy_wait(copy, NULL, 0);
    return leat_error(status, "%s", line);
}

int leat__upload_enqueue(leat__device_copy *copy, leat__batch *const batch[],
                         int n)
{
    leat_device *device = copy->device;
    if (device->ops->unified)
        return LEAT_OK;
    bool transforms = batch[0]->n > 0 && batch[0]->shape.is_cropped;
    leat_stream last = transforms ? copy->transforms : copy->copies;
    int status = LEAT_OK;
    for (int i = 0; i < n && !status; i++) {
        status = enqueue_waits(copy, batch[i]);
        if (!status)
            batch[i]->is_transformed = false;
    }
    if (!status && has_bytes(batch[0]))
        status = enqueue_copy(copy, batch, n);
    if (!status)
        status =
            device->ops->event_record(device, batch[0]->copied, copy->copies);
    if (!status && transforms)
        status = enqueue_transform(copy, batch, n);
    for (int i = 0; i < n && !status; i++)
        status = device->ops->event_record(device, batch[i]->ready, last);
    if (!status)
        note_upload(copy, batch, n);
    leat__counter_add(&copy->batches, n);
    leat__counter_add(&copy->bytes, n * (int64_t)batch[0]->shape.bytes);
    return status ? give_up(copy, status) : LEAT_OK;
}

int leat__upload_pace(leat__device_copy *copy)
{
    const leat__upload *last = &copy->latest[copy->uploads % LEAT__UPLOADS];
    int64_t number = copy->uploads - 1;
    int64_t each = number > 0 ? (last->end - last->begin) / last->batches : 0;
    int64_t oldest = copy->uploads - LEAT__UPLOADS + 1;
    /* Of such batches no two share an upload. */
    if (2 * each > LEAT__UPLOAD_BYTES)
        return LEAT_OK;
    while (number > 0 && number > oldest &&
           last->end - copy->latest[number % LEAT__UPLOADS].begin <=
               LEAT__UPLOAD_BYTES)
        number--;
    return number > 0 ? leat__device_copy_await_host(
                            copy, &copy->latest[number % LEAT__UPLOADS])
                      : LEAT_OK;
}
