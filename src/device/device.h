/* device.h: the built-in devices. */
#ifndef LEAT_DEVICE_DEVICE_H
#define LEAT_DEVICE_DEVICE_H

#include <leat/ext/device.h>

extern const leat_device_ops leat__cpu_device_ops;
extern const leat_device_ops leat__cuda_device_ops; /* in builds with CUDA */

/*
 * Waits for a stream before memory that it uses is freed or changes: again
 * where that fails, since the device may go on. The status of the first try.
 */
static inline int leat__device_finish_stream(leat_device *device,
                                             leat_stream stream)
{
    int status = device->ops->stream_synchronize(device, stream);
    if (status)
        (void)device->ops->stream_synchronize(device, stream);
    return status;
}

#endif
