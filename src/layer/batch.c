/*
 * DESIGN. A batch belongs to one party at a time: free, to nobody; filling, to
 * the workers that hold its runs; full, to the queue; delivered, to the caller.
 * While it fills, the worker with the first run alone decides its shape and may
 * move its slot; the others wait for that under the batch's lock, and then
 * write disjoint samples without it. The last one to finish, as `outstanding`
 * tells, hands the batch on.
 */
#include "layer/batch.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/thread.h"

#include <string.h>

int leat__batch_init(leat__batch *batch, leat__slab *slab, size_t offset,
                     size_t capacity, int size)
{
    memset(batch, 0, sizeof(*batch));
    batch->from = leat__alloc_zero((size_t)size, sizeof(*batch->from));
    batch->keys = leat__alloc_zero((size_t)size, LEAT__KEY_MAX);
    if (!batch->from || !batch->keys)
        goto fail_memory;
    int status = leat__mutex_init(&batch->lock);
    if (status)
        goto fail_memory;
    status = leat__cond_init(&batch->shaped);
    if (status)
        goto fail_lock;
    leat_device *device = slab->device;
    if (!device->ops->unified) {
        status = device->ops->event_create(device, &batch->ready);
        if (status)
            goto fail_cond;
    }
    leat__slab_ref(slab);
    batch->slab = slab;
    batch->offset = offset;
    batch->capacity = capacity;
    batch->size = size;
    return LEAT_OK;

fail_cond:
    pthread_cond_destroy(&batch->shaped);
fail_lock:
    pthread_mutex_destroy(&batch->lock);
    leat__free(batch->keys);
    leat__free(batch->from);
    memset(batch, 0, sizeof(*batch));
    return status;
fail_memory:
    leat__free(batch->keys);
    leat__free(batch->from);
    memset(batch, 0, sizeof(*batch));
    return LEAT_ENOMEM;
}

void leat__batch_finish(leat__batch *batch)
{
    if (!batch->slab)
        return;
    leat_device *device = batch->slab->device;
    if (!device->ops->unified) {
        device->ops->event_destroy(device, batch->ready);
        for (int i = 0; i < batch->events; i++)
            device->ops->event_destroy(device, batch->consumed[i]);
    }
    leat__slab_unref(batch->slab);
    pthread_cond_destroy(&batch->shaped);
    pthread_mutex_destroy(&batch->lock);
    leat__free(batch->keys);
    leat__free(batch->from);
    memset(batch, 0, sizeof(*batch));
}

void leat__batch_begin(leat__batch *batch, int64_t number)
{
    batch->number = number;
    batch->n = batch->size;
    atomic_store(&batch->outstanding, batch->size);
    pthread_mutex_lock(&batch->lock);
    batch->state = LEAT__SHAPE_OPEN;
    batch->failed = -1;
    batch->status = LEAT_OK;
    pthread_mutex_unlock(&batch->lock);
}

int leat__batch_reserve(leat__batch *batch, size_t bytes)
{
    if (bytes <= batch->capacity)
        return LEAT_OK;
    leat__slab *slab;
    int status = leat__slab_create(&slab, batch->slab->device, bytes);
    if (status)
        return status;
    status = leat__slab_make_host(slab);
    if (status == LEAT_OK)
        status = leat__slab_make_memory(slab);
    if (status) {
        leat__slab_unref(slab);
        return status;
    }
    leat__slab_unref(batch->slab);
    batch->slab = slab;
    batch->offset = 0;
    batch->capacity = bytes;
    return LEAT_OK;
}

void leat__batch_set_shape(leat__batch *batch, const leat__batch_shape *shape)
{
    pthread_mutex_lock(&batch->lock);
    if (shape)
        batch->shape = *shape;
    batch->state = shape ? LEAT__SHAPE_KNOWN : LEAT__SHAPE_FAILED;
    pthread_cond_broadcast(&batch->shaped);
    pthread_mutex_unlock(&batch->lock);
}

int leat__batch_wait_shape(leat__batch *batch)
{
    pthread_mutex_lock(&batch->lock);
    while (batch->state == LEAT__SHAPE_OPEN)
        pthread_cond_wait(&batch->shaped, &batch->lock);
    int known = batch->state == LEAT__SHAPE_KNOWN;
    pthread_mutex_unlock(&batch->lock);
    return known;
}

void leat__batch_fail(leat__batch *batch, int i, int status, const char *line)
{
    pthread_mutex_lock(&batch->lock);
    if (batch->failed < 0 || i < batch->failed) {
        batch->failed = i;
        batch->status = status;
        memcpy(batch->line, line, sizeof(batch->line));
    }
    pthread_mutex_unlock(&batch->lock);
}

void leat__batch_note(leat__batch *batch, int i, const leat_sample *sample)
{
    leat_provenance *from = &batch->from[i];
    *from = sample->from;
    if (sample->stable || !from->key)
        return;
    char *key = batch->keys + (size_t)i * LEAT__KEY_MAX;
    if (from->key_size > LEAT__KEY_MAX)
        from->key_size = LEAT__KEY_MAX;
    memcpy(key, from->key, from->key_size);
    from->key = key;
}

int leat__batch_shape_lay_out(leat__batch_shape *shape, int size)
{
    size_t offset = 0;
    for (int i = 0; i < shape->ntop; i++) {
        leat__top *top = &shape->top[i];
        size_t bytes = leat_dtype_size(top->dtype);
        for (int k = 0; k < top->ndim; k++) {
            if (top->shape[k] < 0 ||
                leat__multiply(bytes, (size_t)top->shape[k], &bytes))
                return leat_error(LEAT_EINVAL, "top %d: its size overflows", i);
        }
        size_t whole;
        if (leat__multiply(bytes, (size_t)size, &whole) ||
            whole > SIZE_MAX / 2 - offset - LEAT__TOP_ALIGNMENT)
            return leat_error(LEAT_EINVAL,
                              "top %d: a batch of %d overflows its size", i,
                              size);
        top->bytes = bytes;
        top->offset = offset;
        offset += whole + LEAT__TOP_ALIGNMENT - 1;
        offset -= offset % LEAT__TOP_ALIGNMENT;
    }
    shape->bytes = offset;
    return LEAT_OK;
}
