/*
 * DESIGN. A batch belongs to one party at a time: free, to nobody; filling, to
 * the workers that hold its chunks; completed, to its device's queue;
 * delivered, to the caller. While it fills, the worker with the first chunk
 * alone decides its shape and may move its memory; the others wait for that
 * under the batch's lock, and then write disjoint samples without it. The last
 * one to finish, according to `outstanding`, hands the batch on.
 */
#include "layer/batch.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/shape.h"
#include "base/thread.h"

#include <stdbool.h>
#include <string.h>

/* One that takes long: the host sleeps meanwhile if it can. */
static int create_long(leat_device *device, leat_event *out)
{
    return device->ops->event_create_sleeping
               ? device->ops->event_create_sleeping(device, out)
               : device->ops->event_create(device, out);
}

static int create_events(leat_device *device, leat__batch *batch)
{
    bool is_long = batch->capacity > LEAT__UPLOAD_BYTES / 2;
    int status = create_long(device, &batch->room);
    if (status)
        return status;
    status = is_long ? create_long(device, &batch->copied)
                     : device->ops->event_create(device, &batch->copied);
    if (status)
        goto fail_room;
    status = leat__fence_create(&batch->written, device);
    if (status)
        goto fail_copied;
    /* One stream is common; further ones get theirs when they come. */
    status = leat__fence_create(&batch->read, device);
    if (status)
        goto fail_written;
    batch->ready = batch->written->event;
    batch->consumed[0] = batch->read->event;
    batch->events = 1;
    return LEAT_OK;

fail_written:
    leat__fence_unref(batch->written);
fail_copied:
    device->ops->event_destroy(device, batch->copied);
fail_room:
    device->ops->event_destroy(device, batch->room);
    return status;
}

size_t leat__batch_overhead(int size)
{
    return sizeof(leat__batch) +
           (size_t)size * (sizeof(leat_provenance) + LEAT__KEY_MAX);
}

int leat__batch_init(leat__batch *batch, leat__slab *slab, size_t offset,
                     size_t capacity, int size, bool is_lazy)
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
    batch->capacity = capacity;
    if (!device->ops->unified) {
        status = create_events(device, batch);
        if (status)
            goto fail_cond;
    }
    leat__slab_ref(slab);
    batch->slab = slab;
    batch->offset = offset;
    batch->size = size;
    batch->is_lazy = is_lazy;
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
        device->ops->event_destroy(device, batch->room);
        device->ops->event_destroy(device, batch->copied);
        leat__fence_unref(batch->written);
        leat__fence_unref(batch->read);
        for (int i = 1; i < batch->events; i++)
            device->ops->event_destroy(device, batch->consumed[i]);
    }
    leat__slab_unref(batch->slab);
    leat__slab_unref(batch->top_slab);
    leat__slab_unref(batch->home.slab);
    leat__slab_unref(batch->top_home.slab);
    pthread_cond_destroy(&batch->shaped);
    pthread_mutex_destroy(&batch->lock);
    leat__bad_list_finish(&batch->bad);
    leat_token_finish(&batch->mark);

    leat__free(batch->sample);
    leat__free(batch->extent);
    leat__free(batch->keys);
    leat__free(batch->from);
    memset(batch, 0, sizeof(*batch));
}

int leat__batch_make_variable(leat__batch *batch, int ntop)
{
    batch->extent = leat__alloc_zero((size_t)ntop, sizeof(*batch->extent));
    batch->sample =
        leat__alloc_zero((size_t)batch->size, sizeof(*batch->sample));
    return batch->extent && batch->sample ? LEAT_OK : LEAT_ENOMEM;
}

void leat__batch_begin(leat__batch *batch, int64_t number)
{
    batch->number = number;
    batch->n = batch->valid = batch->size;
    atomic_store_explicit(&batch->outstanding, batch->size,
                          memory_order_relaxed);
    batch->state = LEAT__SHAPE_OPEN;
    batch->failed = -1;
    batch->status = LEAT_OK;
    batch->ending.status = LEAT_OK;
    batch->bad.n = 0;
    batch->populates = batch->is_lazy;
    batch->is_lazy = false;
}

int leat__batch_populate(const leat__batch *batch, int first, int n)
{
    int status = LEAT_OK;
    for (int i = 0; i < batch->shape.ntop && !status; i++)
        status = leat__populate(leat__batch_at(batch, i, first),
                                batch->shape.top[i].bytes * (size_t)n);
    return status;
}

int leat__top_full_shape(const leat__top *top, int64_t n,
                         int64_t shape[LEAT_MAX_DIMS])
{
    int axes = top->is_batch ? 0 : 1;
    memcpy(shape + axes, top->shape, (size_t)top->ndim * sizeof(shape[0]));
    /* A group's rows are its first axis; without a group there are none. */
    if (!top->is_batch || n == 0)
        shape[0] = n;
    return top->ndim + axes;
}

/* Not written then: the caller's cache has it too. */
static bool has_shape(const leat__batch *batch, const leat__batch_shape *shape)
{
    return !shape->is_cropped && !batch->shape.is_cropped &&
           leat__batch_shape_is_same(&batch->shape, shape);
}

static void set_shape(leat__batch *batch, const leat__batch_shape *shape)
{
    if (shape && !has_shape(batch, shape))
        batch->shape = *shape;
    batch->state = shape ? LEAT__SHAPE_KNOWN : LEAT__SHAPE_FAILED;
}

void leat__batch_set_shape(leat__batch *batch, const leat__batch_shape *shape,
                           bool is_whole)
{
    if (is_whole) {
        set_shape(batch, shape);
        return;
    }
    pthread_mutex_lock(&batch->lock);
    set_shape(batch, shape);
    pthread_cond_broadcast(&batch->shaped);
    pthread_mutex_unlock(&batch->lock);
}

bool leat__batch_wait_shape(leat__batch *batch)
{
    pthread_mutex_lock(&batch->lock);
    while (batch->state == LEAT__SHAPE_OPEN)
        pthread_cond_wait(&batch->shaped, &batch->lock);
    bool is_known = batch->state == LEAT__SHAPE_KNOWN;
    pthread_mutex_unlock(&batch->lock);
    return is_known;
}

void leat__batch_fail(leat__batch *batch, int i, int status,
                      const leat_provenance *from, const char *line)
{
    pthread_mutex_lock(&batch->lock);
    leat__failure_note(&batch->ending, i, status, line);
    if (batch->failed < 0 || i < batch->failed) {
        batch->failed = i;
        batch->status = status;
        leat__bad_set(&batch->culprit, i, from, line);
    }
    pthread_mutex_unlock(&batch->lock);
}

int leat__batch_note_bad(leat__batch *batch, const leat__bad_list *bad,
                         int first)
{
    if (bad->n == 0)
        return LEAT_OK;
    pthread_mutex_lock(&batch->lock);
    int status = leat__bad_list_append(&batch->bad, bad, first);
    pthread_mutex_unlock(&batch->lock);
    return status;
}

void leat__batch_note_padding(leat__batch *batch, int i)
{
    batch->from[i] = (leat_provenance){
        .record = -1,
        .epoch = leat__batch_cut_epoch(batch),
        .position = -1,
        .replacement = LEAT_REPLACEMENT_PADDING,
    };
}

void leat__batch_keep_key(leat__batch *batch, int i)
{
    leat_provenance *from = &batch->from[i];
    if (from->key)
        leat__key_keep(batch->keys + (size_t)i * LEAT__KEY_MAX, from);
}

bool leat__batch_shape_is_same(const leat__batch_shape *one,
                               const leat__batch_shape *other)
{
    bool same = one->ntop == other->ntop;
    for (int i = 0; same && i < one->ntop; i++) {
        const leat__top *a = &one->top[i];
        const leat__top *b = &other->top[i];
        same = a->dtype == b->dtype && a->ndim == b->ndim &&
               memcmp(a->image, b->image, sizeof(a->image)) == 0 &&
               memcmp(a->shape, b->shape,
                      (size_t)a->ndim * sizeof(a->shape[0])) == 0;
    }
    return same;
}

/* The bytes of `n` samples of a top, each of whose elements takes `each`. */
static int measure_top(const leat__top *top, size_t each, int n, size_t *bytes,
                       size_t *whole)
{
    return !leat__shape_bytes(top->ndim, top->shape, each, bytes) ||
           leat__multiply(*bytes, (size_t)n, whole) || *whole > SIZE_MAX / 4;
}

static size_t align(size_t offset)
{
    offset += LEAT__TOP_ALIGNMENT - 1;
    return offset - offset % LEAT__TOP_ALIGNMENT;
}

/* Of crops: the tops uploaded after them, and the one computed from them. */
static int lay_out_crops(leat__batch_shape *shape, int size)
{
    size_t one;
    const leat__top *top = &shape->top[shape->crop_top];
    if (top->bytes > INT32_MAX)
        return leat_error(LEAT_EINVAL,
                          "top %d: a crop takes %zu bytes: expected at most %d",
                          shape->crop_top, top->bytes, INT32_MAX);
    if (measure_top(top, leat_dtype_size(top->dtype), size, &one,
                    &shape->top_bytes))
        return leat_error(LEAT_EINVAL,
                          "top %d: a batch of %d takes more than %zu bytes",
                          shape->crop_top, size, SIZE_MAX);
    shape->top_bytes = align(shape->top_bytes);
    shape->choices = shape->bytes;
    shape->bytes += align((size_t)size * sizeof(leat_device_choice));
    return LEAT_OK;
}

int leat__batch_shape_lay_out(leat__batch_shape *shape, int size)
{
    size_t offset = 0;
    shape->top_bytes = 0;
    shape->choices = 0;
    for (int i = 0; i < shape->ntop; i++) {
        leat__top *top = &shape->top[i];
        bool is_crop = i == shape->crop_top && shape->is_cropped;
        size_t whole;
        /* The batch's own dimension comes first. */
        int most = LEAT_MAX_DIMS - !top->is_batch;
        if (top->ndim < 0 || top->ndim > most)
            return leat_error(LEAT_EINVAL,
                              "top %d: a field has %d dimensions, expected at "
                              "most %d",
                              i, top->ndim, most);
        if (top->is_variable) {
            top->bytes = 0;
            top->offset = offset;
            continue;
        }
        if (measure_top(top, is_crop ? 1 : leat_dtype_size(top->dtype), size,
                        &top->bytes, &whole) ||
            whole > SIZE_MAX / 2 - offset - LEAT__TOP_ALIGNMENT)
            return leat_error(LEAT_EINVAL,
                              "top %d: a batch of %d takes more than %zu bytes",
                              i, size, SIZE_MAX / 2 - offset);
        top->offset = offset;
        offset = align(offset + whole);
    }
    shape->bytes = offset;
    int status = shape->is_cropped ? lay_out_crops(shape, size) : LEAT_OK;
    shape->fixed = shape->bytes;
    return status;
}
