#include "layer/device_copy.h"
#include "base/clock.h"
#include "base/counter.h"
#include "base/error.h"
#include "device/device.h"

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
    int waited = leat__device_finish_stream(device, copy->copies);
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
 * Two changes at one moment may take each other's nanoseconds; a lock would
 * make threads wait for each other.
 */
void leat__device_copy_note_waiter(leat__device_copy *copy, int change)
{
    int64_t now = leat__clock_now();
    int64_t since = atomic_exchange(&copy->since, now);
    if (atomic_fetch_add(&copy->waiters, change) > 0 && now > since)
        leat__counter_add(&copy->busy, now - since);
}

/* Copies end in the order of their uploads: what somebody waited for is over
 * with all before it, for everybody. */
static void note_copied(leat__device_copy *copy, int64_t number)
{
    int_fast64_t known = atomic_load(&copy->copied);
    while (known < number &&
           !atomic_compare_exchange_weak(&copy->copied, &known, number))
        continue;
}

/* The time before `room` is the consumers' of the former contents. */
int leat__device_copy_await_host(leat__device_copy *copy,
                                 const leat__upload *upload)
{
    leat_device *device = copy->device;
    int status = LEAT_OK;
    if (atomic_load(&copy->copied) >= upload->number)
        return LEAT_OK;
    if (upload->has_room)
        status = device->ops->event_synchronize(device, upload->room);
    if (status)
        return status;
    leat__device_copy_note_waiter(copy, 1);
    status = device->ops->event_synchronize(device, upload->over);
    leat__device_copy_note_waiter(copy, -1);
    if (!status)
        note_copied(copy, upload->number);
    return status;
}

int leat__device_copy_await_pushes(leat__device_copy *copy,
                                   const leat__batch *batch)
{
    const leat_device_ops *ops = copy->device->ops;
    int status = LEAT_OK;
    if (!batch->slab ||
        !atomic_load_explicit(&batch->slab->is_pushed, memory_order_relaxed))
        return LEAT_OK;
    for (int k = 0; k < batch->nconsumed && !status; k++)
        status = ops->event_synchronize(copy->device, batch->consumed[k]);
    return status;
}

static int await_ready(leat__device_copy *copy, const leat__batch *batch)
{
    int status = leat__device_copy_await_host(copy, &batch->upload);
    if (status || !batch->is_transformed)
        return status;
    leat__device_copy_note_waiter(copy, 1);
    status = copy->device->ops->event_synchronize(copy->device, batch->ready);
    leat__device_copy_note_waiter(copy, -1);
    return status;
}

int leat__device_copy_await(leat__device_copy *copy, leat__batch *batch,
                            leat_stream stream)
{
    leat_device *device = copy->device;
    int status = stream == LEAT_HOST
                     ? await_ready(copy, batch)
                     : device->ops->stream_wait(device, stream, batch->ready);
    batch->is_awaited = !status;
    return status;
}

int leat__device_copy_synchronize(leat__device_copy *copy)
{
    leat__device_copy_note_waiter(copy, 1);
    int status =
        copy->device->ops->stream_synchronize(copy->device, copy->copies);
    leat__device_copy_note_waiter(copy, -1);
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
        (void)leat__device_finish_stream(device, streams[i]);
    }
    return first ? leat_error(first, "%s", line) : LEAT_OK;
}

/* As leat__device_finish_stream. */
static void finish_event(leat_device *device, leat_event event)
{
    if (device->ops->event_synchronize(device, event))
        (void)device->ops->event_synchronize(device, event);
}

void leat__device_copy_wait(leat__device_copy *copy, const leat__batch *batches,
                            int n)
{
    leat_device *device = copy->device;
    if (!copy->has_copies)
        return;
    (void)leat__device_finish_stream(device, copy->copies);
    if (copy->has_transforms)
        (void)leat__device_finish_stream(device, copy->transforms);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < batches[i].nconsumed; k++)
            finish_event(device, batches[i].consumed[k]);
}
