/* A batch's tops are lent to blobs, or copied into them. */
#include "layer/tops/hand_off.h"

#include "base/clock.h"
#include "data/blob.h"
#include "layer/diagnose/waiting.h"

#include <stdbool.h>
#include <string.h>

static leat__device_copy *device_copy(const leat_data_layer *layer)
{
    return leat__prefetcher_copy(layer->group->prefetcher, layer->number);
}

/* What is enqueued on `stream` from now on sees the batch on the device. */
static int await(const leat_data_layer *layer, leat__batch *batch,
                 leat_stream stream)
{
    if (layer->device->ops->unified)
        return LEAT_OK;
    return leat__device_copy_await(device_copy(layer), batch, stream);
}

/* A top as the batch has it: shape, and where it begins. */
typedef struct view {
    int ndim;
    int64_t shape[LEAT_MAX_DIMS];
    size_t offset;
} view;

static void look(const leat__batch *batch, int i, view *out)
{
    const leat__top *top = &batch->shape.top[i];
    if (!batch->extent) {
        out->ndim = leat__top_full_shape(top, batch->n, out->shape);
        out->offset = top->offset;
        return;
    }
    const leat__extent *extent = &batch->extent[i];
    out->ndim = extent->ndim;
    out->offset = extent->offset;
    memcpy(out->shape, extent->shape, sizeof(out->shape));
}

/* Whether the top is one that the device computes: the host has none of it. */
static bool is_computed(const leat__batch *batch, int i)
{
    return batch->shape.is_cropped && i == batch->shape.crop_top;
}

static int lend(const leat_data_layer *layer, leat__batch *batch, int i,
                leat_blob *blob, leat_stream stream)
{
    const leat__top *top = &batch->shape.top[i];
    view at;
    int status = leat__blob_drain(blob, stream);
    if (status)
        return status;
    look(batch, i, &at);
    if (is_computed(batch, i))
        return leat__blob_lend(blob, top->dtype, at.ndim, at.shape,
                               batch->top_slab, batch->top_offset,
                               LEAT_HEAD_AT_GPU, batch->written);
    leat_head head =
        layer->device->ops->unified ? LEAT_HEAD_AT_CPU : LEAT_SYNCED;
    return leat__blob_lend(blob, top->dtype, at.ndim, at.shape, batch->slab,
                           batch->offset + at.offset, head, batch->written);
}

/* Where the top lies on the device. */
static const void *device_top(const leat__batch *batch, int i, size_t offset)
{
    if (is_computed(batch, i))
        return (const char *)batch->top_slab->device_memory + batch->top_offset;
    return (const char *)batch->slab->device_memory + batch->offset + offset;
}

/* Where the wait fails the copy may go on, and the blob's memory stays until
 * its end. */
static int finish_host_copy(const leat_data_layer *layer, leat__batch *batch,
                            leat_blob *blob)
{
    char line[LEAT__ERROR_MAX];
    leat__device_copy *copy = device_copy(layer);
    int status = leat__device_copy_synchronize(copy);
    leat__blob_set_written(blob, status ? batch->read : NULL);
    if (!status)
        return LEAT_OK;
    leat__error_save(line);
    (void)leat__device_copy_mark(copy, batch, &copy->copies, 1);
    return leat_error(status, "%s", line);
}

/* Into the blob's own memory, which keeps its address. */
static int copy(const leat_data_layer *layer, leat__batch *batch, int i,
                leat_blob *blob, leat_stream stream)
{
    const leat__top *top = &batch->shape.top[i];
    leat_device *device = layer->device;
    bool unified = device->ops->unified;
    bool host = stream == LEAT_HOST && !unified;
    view at;
    look(batch, i, &at);
    if (host)
        stream = device_copy(layer)->copies;
    int status =
        leat__blob_reshape_after(blob, top->dtype, at.ndim, at.shape, stream);
    if (status)
        return status;
    size_t bytes = leat_blob_bytes(blob);
    void *to;
    status = leat__blob_overwrite(
        blob, unified ? LEAT_HEAD_AT_CPU : LEAT_HEAD_AT_GPU, &to);
    if (status)
        return status;
    if (bytes == 0)
        return LEAT_OK;
    if (unified) {
        memcpy(to, (char *)batch->slab->host + batch->offset + at.offset,
               bytes);
        return LEAT_OK;
    }
    /* A batch before may still be copied there on another stream. */
    status = leat__blob_await(blob, stream);
    if (!status)
        status = device->ops->copy(device, to, device_top(batch, i, at.offset),
                                   bytes, LEAT_COPY_ON_DEVICE, stream);
    if (status)
        return status;
    if (host)
        return finish_host_copy(layer, batch, blob);
    /* Recorded with the last copy. */
    leat__blob_set_written(blob, batch->read);
    return LEAT_OK;
}

/* A consumer on the host that waits for a copy waits for data. */
static int hand_out(leat_data_layer *layer, leat__batch *batch,
                    leat_blob *const top[], int ntop, leat_stream stream)
{
    bool waits = stream == LEAT_HOST && !layer->device->ops->unified;
    bool is_logged = leat__waiting_is_logged();
    int64_t begin = waits || is_logged ? leat__clock_now() : 0;
    int status = await(layer, batch, stream);
    if (is_logged)
        leat__waiting_for_copy(layer, begin, leat__clock_now());
    bool lends = layer->values.top_mode == LEAT_TOP_LEND;
    for (int i = 0; i < ntop && !status; i++)
        status = lends ? lend(layer, batch, i, top[i], stream)
                       : copy(layer, batch, i, top[i], stream);
    if (waits) {
        int64_t end = leat__clock_now();
        layer->waited += end - begin;
        if (is_logged && !status)
            leat__waiting_over(layer, end);
    }
    return status;
}

/*
 * What was copied is read by the copies alone, so their end is recorded at
 * once: the stream may be gone later, or be another one by the same name.
 */
static int finish_copies(leat_data_layer *layer, leat__batch *batch,
                         leat_stream *stream)
{
    leat_stream used = *stream;
    if (layer->values.top_mode == LEAT_TOP_LEND)
        return LEAT_OK;
    *stream = LEAT_HOST;
    return leat__prefetcher_mark(layer->group->prefetcher, batch, &used, 1);
}

int leat__data_layer_hand_off(leat_data_layer *layer, leat__batch *batch,
                              leat_blob *const top[], int ntop,
                              leat_stream *stream)
{
    int status = hand_out(layer, batch, top, ntop, *stream);
    return status ? status : finish_copies(layer, batch, stream);
}
