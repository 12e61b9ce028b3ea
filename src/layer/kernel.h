/* kernel.h: the transform of whole batches by a device. */
#ifndef LEAT_LAYER_KERNEL_H
#define LEAT_LAYER_KERNEL_H

#include "device/transform_job.h"
#include "layer/batch.h"

/* What all batches have in common, means in the device's memory included. */
typedef struct leat__kernel {
    leat_device *device;
    leat_device_transform model; /* all but a batch's own */
    void *means;                 /* on the device; NULL: none */
    size_t bytes;
} leat__kernel;

/*
 * Uploads the means of `plan` on `stream` and waits for it. `channels` are the
 * images'. Errors: LEAT_EUNSUPPORTED where the device has no transform,
 * LEAT_ENOMEM, LEAT_EDEVICE.
 */
int leat__kernel_init(leat__kernel *kernel, leat_device *device,
                      const leat__transform_job *plan, int channels,
                      leat_stream stream);
/* Takes a zeroed one too. No work of the kernel is under way. */
void leat__kernel_finish(leat__kernel *kernel);

/* Enqueues the transform of a batch that was uploaded on that stream. */
int leat__kernel_enqueue(const leat__kernel *kernel, const leat__batch *batch,
                         leat_stream stream);

#endif
