/* device.h: the built-in devices. */
#ifndef LEAT_DEVICE_DEVICE_H
#define LEAT_DEVICE_DEVICE_H

#include <leat/ext/device.h>

extern const leat_device_ops leat__cpu_device_ops;
extern const leat_device_ops leat__cuda_device_ops; /* in builds with CUDA */

#endif
