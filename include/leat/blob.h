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
 * In a forked child a blob of its parent's on a device that computes in host
 * memory is the child's own copy. On any other device only pageable host memory
 * can be read there; all else is LEAT_ESTATE. Destroying it asks neither a
 * device nor an allocator's hooks for anything.
 */
typedef struct leat_blob leat_blob;

/** Where the newest contents are. On the device `cpu` the two are one. */
typedef enum leat_head {
    LEAT_UNINITIALIZED = 0,
    LEAT_HEAD_AT_CPU,
    LEAT_HEAD_AT_GPU,
    LEAT_SYNCED
} leat_head;

/**
 * Makes a blob of no axes and no elements on `device`; NULL: the device `cpu`.
 * Owned by the caller: leat_blob_destroy. Errors: LEAT_ENOMEM.
 * Thread safety: any thread.
 */
LEAT_API int leat_blob_create(leat_blob **out, leat_device *device);

/**
 * Frees the blob, and its memory unless others share it. Takes NULL.
 * Thread safety: one caller a blob.
 */
LEAT_API void leat_blob_destroy(leat_blob *blob);

/**
 * Gives the blob a type and shape. Memory is kept, with what is in it, if it is
 * large enough and the blob's own, else allocated at first use. New memory is
 * zero.
 * Errors: LEAT_EINVAL for more than LEAT_MAX_DIMS axes, a negative dimension or
 * an overflowing product; LEAT_ENOMEM. Thread safety: one caller a blob.
 */
LEAT_API int leat_blob_reshape(leat_blob *blob, leat_dtype dtype, int ndim,
                               const int64_t shape[]);

/**
 * @name What a blob is
 * Thread safety: one caller a blob.
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
/** Where the newest contents are. */
LEAT_API leat_head leat_blob_head(const leat_blob *blob);
/** The device that it was made on. */
LEAT_API leat_device *leat_blob_device(const leat_blob *blob);
/** @} */

/**
 * @name The contents
 * Row-major, on the host or on the device, after the copy that is needed, if
 * any; the mutable ones make that side the newest. Borrowed until reshape, the
 * next forward into this blob, or destroy.
 *
 * NULL on error: the blob has no shape, memory is short, the device failed, or
 * its contents were lent by a data layer that has them back (LEAT_ESTATE: after
 * release, restore, or a forward into other tops or without a batch); see
 * leat_last_error. Blocks for the copy; the device's end of it wakes the
 * caller. Thread safety: one caller a blob.
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
 * Brings the host's contents to the device on `stream` without waiting
 * (Caffe's async_gpu_push). The host side must not change until the stream has
 * passed this point. Errors: LEAT_ENOMEM, LEAT_EDEVICE, LEAT_ESTATE when the
 * blob has no shape, its newest contents are not on the host, or its batch went
 * back to its data layer.
 * Thread safety: one caller a blob.
 */
LEAT_API int leat_blob_async_gpu_push(leat_blob *blob, leat_stream stream);

#ifdef __cplusplus
}
#endif
#endif
