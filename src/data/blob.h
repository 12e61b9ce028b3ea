/* blob.h: lets a data layer lend its memory to blobs. */
#ifndef LEAT_DATA_BLOB_H
#define LEAT_DATA_BLOB_H

#include "data/syncedmem.h"

/*
 * Makes the blob a view of `slab` (shared) from `offset` on, and frees its own
 * memory. The layer that fills the slab defines how long the contents are
 * valid; the device writes them until `written` (shared; NULL: no more).
 * Errors: LEAT_EINVAL, as of reshape; LEAT_EDEVICE.
 */
int leat__blob_lend(leat_blob *blob, leat_dtype dtype, int ndim,
                    const int64_t shape[], leat__slab *slab, size_t offset,
                    leat_head head, leat__fence *written);

/*
 * The stream is at device memory of the blob's own no more, which may then be
 * freed; LEAT_HOST is at none. Errors: LEAT_EDEVICE.
 */
int leat__blob_drain(const leat_blob *blob, leat_stream stream);

/*
 * leat_blob_reshape for what comes on `stream`: where the contents outgrow
 * their memory, what the stream was given before is over when that is freed.
 * Errors: those of leat_blob_reshape.
 */
int leat__blob_reshape_after(leat_blob *blob, leat_dtype dtype, int ndim,
                             const int64_t shape[], leat_stream stream);

/*
 * Lets go of memory that was lent: the blob keeps its shape, and has no
 * contents until it is lent or reshaped again. Does nothing to other blobs.
 */
void leat__blob_let_go(leat_blob *blob);

/*
 * The contents on that side (HEAD_AT_CPU, HEAD_AT_GPU), to be overwritten
 * entirely: as leat_blob_mutable_..., but nothing is copied there first.
 * Errors: LEAT_ENOMEM, LEAT_EDEVICE.
 */
int leat__blob_overwrite(leat_blob *blob, leat_head side, void **out);

/* leat__syncedmem_await of the contents. */
int leat__blob_await(const leat_blob *blob, leat_stream stream);

/* The device overwrites the contents until `written` (shared; NULL: no more).
 */
void leat__blob_set_written(leat_blob *blob, leat__fence *written);

#endif
