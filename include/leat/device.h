/* leat/device.h: the devices to which batches are delivered, `cpu` and
 * `cuda:N`. */
#ifndef LEAT_DEVICE_H
#define LEAT_DEVICE_H

#include <leat/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A device; valid as long as the process. */
typedef struct leat_device leat_device;

/**
 * A stream of the device, as a plain handle: for `cuda:N` a cudaStream_t cast
 * to leat_stream. 0 is the device's default stream.
 */
typedef uintptr_t leat_stream;

/** Not a stream: the CPU will read. */
#define LEAT_HOST UINTPTR_MAX

/**
 * Finds a device by name: "cpu", or one of a registered type, "type:ordinal".
 * A type that computes in host memory has a single device, of ordinal 0. The
 * device is shared and valid as long as the process. Errors: LEAT_EINVAL
 * for an unknown name, listing those known; LEAT_EDEVICE; LEAT_ENOMEM. Thread
 * safety: any thread.
 */
LEAT_API int leat_device_find(leat_device **out, const char *name);

/** The device's name, such as "cuda:0". Static. Thread safety: any thread. */
LEAT_API const char *leat_device_name(const leat_device *device);

#ifdef __cplusplus
}
#endif
#endif
