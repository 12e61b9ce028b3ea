/* leat/blob.h: an n-dimensional array in synced host and device memory. */
#ifndef LEAT_BLOB_H
#define LEAT_BLOB_H

#include <leat/device.h>
#include <leat/dtype.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Caffe's Blob: a shape and a type over memory that exists on the host, on the
 * device, or on both, and is copied only when it must be. A blob lent by a data
 * layer shares the layer's memory (reference counted).
 *
 * In a forked child a parent's blob on a device that computes in host memory is
 * the child's own copy. On any other device it has a copy of pageable host
 * memory alone; everything else is LEAT_ESTATE. Destroying it calls neither the
 * device nor allocator hooks.
 *
 * No call is a cancellation point (pthread_cancel), as none of a layer's is.
 */
typedef struct leat_blob leat_blob;

/** The side with the newest contents. On the device `cpu` both sides are the
 * same memory. */
typedef enum leat_head {
    LEAT_UNINITIALIZED = 0,
    LEAT_HEAD_AT_CPU,
    LEAT_HEAD_AT_GPU,
    LEAT_SYNCED
} leat_head;

/**
 * Creates a blob without axes and elements on `device`; NULL: the device `cpu`.
 * Owned by the caller: leat_blob_destroy. Errors: LEAT_ENOMEM. Thread safety:
 * any thread.
 */
LEAT_API int leat_blob_create(leat_blob **out, leat_device *device);

/**
 * Frees the blob, and its memory unless others share it. Takes NULL.
 * Thread safety: one caller a blob.
 */
LEAT_API void leat_blob_destroy(leat_blob *blob);

/**
 * Sets the blob's type and shape. Memory and contents are kept if the memory is
 * the blob's own and large enough; otherwise new memory, which is zero, is
 * allocated at first use. Errors: LEAT_EINVAL for more than LEAT_MAX_DIMS axes,
 * a negative dimension or an overflowing product; LEAT_ENOMEM; LEAT_EDEVICE
 * where a device that still writes to the old memory cannot be waited for,
 * which then stays. Thread safety: one caller a blob.
 */
LEAT_API int leat_blob_reshape(leat_blob *blob, leat_dtype dtype, int ndim,
                               const int64_t shape[]);

/**
 * @name Properties
 *
 * Thread safety: one caller a blob.
 *
 * @{
 */
/** The type of its elements; FLOAT32 before the first reshape. */
LEAT_API leat_dtype leat_blob_dtype(const leat_blob *blob);
/** The number of its axes, 0 to LEAT_MAX_DIMS. */
LEAT_API int leat_blob_ndim(const leat_blob *blob);
/** Dimension `axis`, counted from the end when negative; 1 if out of range. */
LEAT_API int64_t leat_blob_dim(const leat_blob *blob, int axis);
/** The dimensions, ndim of them; borrowed until reshape or forward. */
LEAT_API const int64_t *leat_blob_shape(const leat_blob *blob);
/** The number of elements: the product of the dimensions; 0 without axes. */
LEAT_API int64_t leat_blob_count(const leat_blob *blob);
/** The size of the contents in bytes. */
LEAT_API size_t leat_blob_bytes(const leat_blob *blob);
/** The side with the newest contents. */
LEAT_API leat_head leat_blob_head(const leat_blob *blob);
/** The device that it was created on. */
LEAT_API leat_device *leat_blob_device(const leat_blob *blob);
/** @} */

/**
 * @name The contents
 *
 * Row-major, on the host or on the device, copied first if necessary; the
 * mutable functions make that side the newest. Borrowed until reshape, the next
 * forward into this blob, or destroy.
 *
 * The host's side comes after all that a data layer still does to the contents,
 * whatever stream forward was given. What else is enqueued, such as the
 * caller's kernels that write the device's side, is the caller's to wait for.
 *
 * NULL on error: the blob has no shape, memory is short, the device failed, or
 * the data layer that lent the contents has taken them back (LEAT_ESTATE: after
 * release, restore, or a forward into other tops or without a batch); see
 * leat_last_error. Blocks for the copy; its completion wakes the caller. Thread
 * safety: one caller a blob.
 *
 * @{
 */
/** On the host, to read. */
LEAT_API const void *leat_blob_cpu_data(leat_blob *blob);
/** On the host, to write. */
LEAT_API void *leat_blob_mutable_cpu_data(leat_blob *blob);
/** On the device, to read. */
LEAT_API const void *leat_blob_gpu_data(leat_blob *blob);
/** On the device, to write. */
LEAT_API void *leat_blob_mutable_gpu_data(leat_blob *blob);
/** @} */

/**
 * Enqueues the copy of the host's contents to the device on `stream` (Caffe's
 * async_gpu_push). The host side must not change until the stream has passed
 * this point, nor may the blob or its data layer be destroyed; of a lent top
 * that the device computed the copy is over on return, so its push stays
 * outside a capture. Errors: LEAT_ENOMEM, LEAT_EDEVICE, LEAT_ESTATE when the
 * blob has no shape, its newest contents are not on the host, its batch was
 * returned to its data layer, or such a top's stream is being captured into a
 * graph. Thread safety: one caller a blob.
 */
LEAT_API int leat_blob_async_gpu_push(leat_blob *blob, leat_stream stream);

#ifdef __cplusplus
}
#endif
#endif
