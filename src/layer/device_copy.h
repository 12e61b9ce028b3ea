/* device_copy.h: the streams by which batches come to a device, and waits for
 * what is enqueued there. */
#ifndef LEAT_LAYER_DEVICE_COPY_H
#define LEAT_LAYER_DEVICE_COPY_H

#include "data/transformer.h"
#include "device/transform_job.h"
#include "layer/batch.h"

/*
 * On a device that computes in host memory there is nothing to do.
 *
 * Nothing reports how long a copy takes, but threads that have to wait for one
 * note it, be it in the call that makes it, as is usual from pageable memory:
 * `busy` is the time in which anybody did. Consumers that still read a batch
 * delay its copy, which is not the copy's time; that is what an upload's `room`
 * is for.
 */
typedef struct leat__device_copy {
    leat_device *device;
    /* The layer's own streams. A transform has one of high priority, so that
       the bus never waits for a kernel; it exists where the device transforms.
     */
    leat_stream copies;
    leat_stream transforms;
    bool has_copies;
    bool has_transforms;
    /* The device's transform: the values that all batches share. */
    leat_device_transform transform;
    void *means; /* on the device; NULL: none */
    size_t mean_bytes;
    int64_t uploads;                    /* so many were enqueued; the */
    leat__upload latest[LEAT__UPLOADS]; /* latest ones, by number */
    /* read by anybody */
    atomic_int_fast64_t copied;  /* the number of an upload that is over */
    atomic_int_fast64_t batches; /* uploaded */
    atomic_int_fast64_t bytes;
    atomic_int_fast64_t busy;  /* nanoseconds */
    atomic_int waiters;        /* threads that wait for copies, or make one */
    atomic_int_fast64_t since; /* the time up to which they are counted */
} leat__device_copy;

/*
 * For batches like `shape`; uploads the transformer's means where the device
 * transforms, and waits for that. Errors: LEAT_EDEVICE, LEAT_ENOMEM,
 * LEAT_EUNSUPPORTED where it would have to transform and cannot.
 */
int leat__device_copy_init(leat__device_copy *device_copy, leat_device *device,
                           const leat_transformer *transformer,
                           const leat__batch_shape *shape);
/* Takes a zeroed one too. Nothing that it enqueued is under way. */
void leat__device_copy_finish(leat__device_copy *device_copy);

/*
 * Notes that the `n` streams read the batch until this point: its next upload
 * waits for them. Errors: LEAT_EDEVICE, LEAT_EINVAL; then a stream that could
 * not be noted has been waited for.
 */
int leat__device_copy_mark(leat__device_copy *device_copy, leat__batch *batch,
                           const leat_stream *streams, int n);

/*
 * The batch's consumer waits until its tops are there: the thread, for
 * LEAT_HOST, or else the stream. Errors: LEAT_EDEVICE.
 */
int leat__device_copy_await(leat__device_copy *device_copy, leat__batch *batch,
                            leat_stream stream);

/*
 * Waits until an upload has read the host side, which may then be filled again.
 * Any thread. Errors: LEAT_EDEVICE.
 */
int leat__device_copy_await_host(leat__device_copy *device_copy,
                                 const leat__upload *upload);

/*
 * Waits for the consumers of the batch, whose pushes may read its host side, if
 * any was pushed. The thread that fills it. Errors: LEAT_EDEVICE.
 */
int leat__device_copy_await_pushes(leat__device_copy *device_copy,
                                   const leat__batch *batch);

/*
 * A thread begins (1) or ends (-1) to wait for a copy, or to be in the call
 * that makes one. Threads relieve each other, so that there may be somebody all
 * the time: finished copies count at once.
 */
void leat__device_copy_note_waiter(leat__device_copy *device_copy, int change);

/* Waits for all copies that were enqueued. Errors: LEAT_EDEVICE. */
int leat__device_copy_synchronize(leat__device_copy *device_copy);

/* Waits until nobody touches the memory of these `n` batches any more. */
void leat__device_copy_wait(leat__device_copy *device_copy,
                            const leat__batch *batches, int n);

#endif
