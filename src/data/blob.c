#include "data/blob.h"
#include "base/cancel.h"
#include "base/counter.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/memory.h"

#include <stdbool.h>
#include <string.h>

struct leat_blob {
    leat_device *device;
    unsigned generation; /* of the process that created it: base/fork.h */
    leat_dtype dtype;
    int ndim;
    int64_t shape[LEAT_MAX_DIMS];
    int64_t count;
    leat__syncedmem mem;
    bool lent;       /* mem is a view of a data layer's slab */
    int64_t recalls; /* the slab's recalls at the time of lending */
};

int leat_blob_create(leat_blob **out, leat_device *device)
{
    int status = device ? LEAT_OK : leat_device_find(&device, "cpu");
    if (!status)
        status = leat__fork_watch();
    if (status)
        return status;
    leat_blob *blob = leat__alloc_zero(1, sizeof(*blob));
    if (!blob)
        return LEAT_ENOMEM;
    blob->device = device;
    blob->generation = leat__fork_generation();
    blob->dtype = LEAT_FLOAT32;
    *out = blob;
    return LEAT_OK;
}

/*
 * What may wait for a device, which may hold locks then, is no cancellation
 * point. What hold returned is restored.
 */
static int hold_cancel(const leat_blob *blob)
{
    return blob->device->ops->unified ? -1 : leat__cancel_disable();
}

static void restore_cancel(int cancel)
{
    if (cancel >= 0)
        leat__cancel_restore(cancel);
}

/*
 * The device writes to memory of the blob's own no more, which is to be freed;
 * what was lent is the layer's to wait for.
 */
static int let_end(const leat_blob *blob)
{
    return blob->mem.slab && !blob->lent
               ? leat__syncedmem_await_writes(&blob->mem)
               : LEAT_OK;
}

void leat_blob_destroy(leat_blob *blob)
{
    if (!blob)
        return;
    int cancel = hold_cancel(blob);
    (void)let_end(blob);
    leat__syncedmem_clear(&blob->mem);
    restore_cancel(cancel);
    leat__free(blob);
}

/* The number of elements and bytes of a shape. */
static int measure(leat_dtype dtype, int ndim, const int64_t shape[],
                   int64_t *count, size_t *bytes)
{
    size_t total = leat_dtype_size(dtype);
    if (total == 0 || ndim < 0 || ndim > LEAT_MAX_DIMS)
        return leat_error(LEAT_EINVAL,
                          "a blob has 0 to %d axes of a known type, not %d",
                          LEAT_MAX_DIMS, ndim);
    for (int i = 0; i < ndim; i++) {
        if (shape[i] < 0)
            return leat_error(LEAT_EINVAL, "dimension %d is %lld", i,
                              (long long)shape[i]);
        if (leat__multiply(total, (size_t)shape[i], &total) ||
            total > INT64_MAX)
            return leat_error(LEAT_EINVAL,
                              "the product of the dimensions overflows");
    }
    *bytes = ndim == 0 ? 0 : total;
    *count = (int64_t)(*bytes / leat_dtype_size(dtype));
    return LEAT_OK;
}

static void set_shape(leat_blob *blob, leat_dtype dtype, int ndim,
                      const int64_t shape[], int64_t count)
{
    blob->dtype = dtype;
    blob->ndim = ndim;
    if (ndim > 0)
        memmove(blob->shape, shape, (size_t)ndim * sizeof(shape[0]));
    blob->count = count;
}

/* Whether the memory holds `bytes`. What was never allocated may be too much.
 */
static bool can_keep(const leat_blob *blob, size_t bytes)
{
    const leat__slab *slab = blob->mem.slab;
    return !blob->lent && slab && bytes <= slab->bytes &&
           (bytes == slab->bytes || slab->host || slab->device_memory) &&
           !leat__slab_is_foreign(slab);
}

/*
 * Gives the blob new memory; on failure it keeps the old. A parent's blob gets
 * the parent's in a forked child, too, which may not ask the device for it.
 */
static int replace_memory(leat_blob *blob, size_t bytes)
{
    leat__slab *slab;
    int status = leat__slab_create(&slab, blob->device, bytes);
    if (status)
        return status;
    if (!blob->device->ops->unified)
        slab->generation = blob->generation;
    int cancel = hold_cancel(blob);
    status = let_end(blob);
    if (!status) {
        leat__syncedmem_clear(&blob->mem);
        blob->mem.slab = slab;
        blob->lent = false;
    } else {
        leat__slab_unref(slab);
    }
    restore_cancel(cancel);
    return status;
}

int leat_blob_reshape(leat_blob *blob, leat_dtype dtype, int ndim,
                      const int64_t shape[])
{
    int64_t count;
    size_t bytes;
    int status = measure(dtype, ndim, shape, &count, &bytes);
    if (status)
        return status;
    if (!can_keep(blob, bytes))
        status = replace_memory(blob, bytes);
    if (status)
        return status;
    /* The whole slab is synced: a smaller shape may grow again. */
    blob->mem.bytes = blob->mem.slab->bytes;
    set_shape(blob, dtype, ndim, shape, count);
    return LEAT_OK;
}

int leat__blob_drain(const leat_blob *blob, leat_stream stream)
{
    const leat_device_ops *ops = blob->device->ops;
    const leat__slab *slab = blob->lent ? NULL : blob->mem.slab;
    if (!slab || !slab->device_memory || ops->unified || stream == LEAT_HOST ||
        leat__slab_is_foreign(slab))
        return LEAT_OK;
    return ops->stream_synchronize(blob->device, stream);
}

int leat__blob_reshape_after(leat_blob *blob, leat_dtype dtype, int ndim,
                             const int64_t shape[], leat_stream stream)
{
    int64_t count;
    size_t bytes;
    int status = measure(dtype, ndim, shape, &count, &bytes);
    if (!status && !can_keep(blob, bytes))
        status = leat__blob_drain(blob, stream);
    return status ? status : leat_blob_reshape(blob, dtype, ndim, shape);
}

static bool is_same_loan(const leat_blob *blob, leat_dtype dtype, int ndim,
                         const int64_t shape[], const leat__slab *slab)
{
    bool same = blob->lent && blob->mem.slab == slab && blob->dtype == dtype &&
                blob->ndim == ndim;
    for (int i = 0; same && i < ndim; i++)
        same = blob->shape[i] == shape[i];
    return same;
}

int leat__blob_lend(leat_blob *blob, leat_dtype dtype, int ndim,
                    const int64_t shape[], leat__slab *slab, size_t offset,
                    leat_head head, leat__fence *written)
{
    int64_t count;
    size_t bytes;
    int64_t recalls = leat__counter_get(&slab->recalls);
    if (is_same_loan(blob, dtype, ndim, shape, slab)) {
        blob->recalls = recalls;
        blob->mem.offset = offset;
        blob->mem.head = head;
        leat__syncedmem_set_written(&blob->mem, written);
        return LEAT_OK;
    }
    int status = measure(dtype, ndim, shape, &count, &bytes);
    if (status)
        return status;
    if (blob->mem.slab != slab) {
        status = let_end(blob);
        if (status)
            return status;
        leat__syncedmem_view(&blob->mem, slab);
    }
    blob->mem.offset = offset;
    blob->mem.bytes = bytes;
    blob->mem.head = head;
    leat__syncedmem_set_written(&blob->mem, written);
    blob->lent = true;
    blob->recalls = recalls;
    set_shape(blob, dtype, ndim, shape, count);
    return LEAT_OK;
}

void leat__blob_let_go(leat_blob *blob)
{
    if (blob->lent)
        leat__syncedmem_clear(&blob->mem);
}

int leat__blob_overwrite(leat_blob *blob, leat_head side, void **out)
{
    return leat__syncedmem_overwrite(&blob->mem, side, out);
}

int leat__blob_await(const leat_blob *blob, leat_stream stream)
{
    return leat__syncedmem_await(&blob->mem, stream);
}

void leat__blob_set_written(leat_blob *blob, leat__fence *written)
{
    leat__syncedmem_set_written(&blob->mem, written);
}

leat_dtype leat_blob_dtype(const leat_blob *blob)
{
    return blob->dtype;
}

int leat_blob_ndim(const leat_blob *blob)
{
    return blob->ndim;
}

int64_t leat_blob_dim(const leat_blob *blob, int axis)
{
    int i = axis < 0 ? axis + blob->ndim : axis;
    return i >= 0 && i < blob->ndim ? blob->shape[i] : 1;
}

const int64_t *leat_blob_shape(const leat_blob *blob)
{
    return blob->shape;
}

int64_t leat_blob_count(const leat_blob *blob)
{
    return blob->count;
}

size_t leat_blob_bytes(const leat_blob *blob)
{
    return (size_t)blob->count * leat_dtype_size(blob->dtype);
}

leat_head leat_blob_head(const leat_blob *blob)
{
    return blob->mem.head;
}

leat_device *leat_blob_device(const leat_blob *blob)
{
    return blob->device;
}

/*
 * A blob without a shape has no memory, and the memory of a blob whose batch
 * was returned is being refilled.
 */
static bool has_memory(const leat_blob *blob)
{
    const leat__slab *slab = blob->mem.slab;
    if (!slab && !blob->lent) {
        leat_error(LEAT_ESTATE, "the blob has no shape yet");
        return false;
    }
    if (!blob->lent ||
        (slab && blob->recalls == leat__counter_get(&slab->recalls)))
        return true;
    leat_error(LEAT_ESTATE,
               "the blob's batch was given back to its data layer; read it "
               "before release and the next forward, or use top_mode COPY");
    return false;
}

static void *contents(leat_blob *blob, leat_head side, bool will_write)
{
    if (!has_memory(blob))
        return NULL;
    int cancel = hold_cancel(blob);
    void *at = side == LEAT_HEAD_AT_CPU
                   ? leat__syncedmem_cpu(&blob->mem, will_write)
                   : leat__syncedmem_gpu(&blob->mem, will_write);
    restore_cancel(cancel);
    return at;
}

const void *leat_blob_cpu_data(leat_blob *blob)
{
    return contents(blob, LEAT_HEAD_AT_CPU, false);
}

void *leat_blob_mutable_cpu_data(leat_blob *blob)
{
    return contents(blob, LEAT_HEAD_AT_CPU, true);
}

const void *leat_blob_gpu_data(leat_blob *blob)
{
    return contents(blob, LEAT_HEAD_AT_GPU, false);
}

void *leat_blob_mutable_gpu_data(leat_blob *blob)
{
    return contents(blob, LEAT_HEAD_AT_GPU, true);
}

int leat_blob_async_gpu_push(leat_blob *blob, leat_stream stream)
{
    if (!has_memory(blob))
        return LEAT_ESTATE;
    int cancel = hold_cancel(blob);
    int status = leat__syncedmem_push(&blob->mem, stream);
    restore_cancel(cancel);
    return status;
}
