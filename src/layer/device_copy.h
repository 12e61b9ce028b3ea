/* device_copy.h: hands batches to the device, and hears when they come free. */
#ifndef LEAT_LAYER_DEVICE_COPY_H
#define LEAT_LAYER_DEVICE_COPY_H

#include "data/transformer.h"
#include "layer/kernel.h"

/*
 * On a device that computes in host memory there is nothing to hand over.
 *
 * Nobody is told how long a copy takes, but whoever has to wait for one notes
 * it, be it in the call that makes it, as is usual from pageable memory: `busy`
 * is the time in which anybody did. Consumers that still read a slot hold its
 * copy up, which is not the copy's time; that is what `room` is for.
 */
typedef struct leat__device_copy {
    leat_device *device;
    leat_stream stream; /* the layer's own */
    int has_stream;
    leat__kernel kernel; /* where the device transforms */
    /* read by anybody */
    atomic_int_fast64_t batches; /* uploaded */
    atomic_int_fast64_t bytes;
    atomic_int_fast64_t busy; /* nanoseconds */
    int has_lock;
    pthread_mutex_t lock;
    /* protected by lock */
    int waiters;   /* threads that wait for copies, or make one */
    int64_t since; /* the time up to which they are counted */
} leat__device_copy;

/*
 * For batches like `shape`. Errors: LEAT_EDEVICE, LEAT_ENOMEM,
 * LEAT_EUNSUPPORTED.
 */
int leat__device_copy_init(leat__device_copy *device_copy, leat_device *device,
                           const leat_transformer *transformer,
                           const leat__batch_shape *shape);
/* Takes a zeroed one too. Nothing that it enqueued is under way. */
void leat__device_copy_finish(leat__device_copy *device_copy);

/*
 * Enqueues the upload, and the transform, of a batch behind those who still
 * read its slot's last contents. One caller at a time. Errors: LEAT_EDEVICE.
 */
int leat__device_copy_upload(leat__device_copy *device_copy,
                             leat__batch *batch);

/*
 * Notes that the `n` streams read the batch until this point: its next upload
 * waits for them. Errors: LEAT_EDEVICE, LEAT_EINVAL; then a stream that could
 * not be noted has been waited for.
 */
int leat__device_copy_mark(leat__device_copy *device_copy, leat__batch *batch,
                           const leat_stream *streams, int n);

/*
 * Waits until the batch's last upload is over. Any thread. Errors:
 * LEAT_EDEVICE.
 */
int leat__device_copy_await(leat__device_copy *device_copy,
                            const leat__batch *batch);

/* Waits for all that was enqueued on its stream. Errors: LEAT_EDEVICE. */
int leat__device_copy_synchronize(leat__device_copy *device_copy);

/* Waits until nobody touches the memory of these `n` batches any more. */
void leat__device_copy_wait(leat__device_copy *device_copy,
                            const leat__batch *batches, int n);

#endif
