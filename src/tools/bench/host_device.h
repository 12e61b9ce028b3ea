/*
 * host_device.h: a device that computes in host memory, with the streams,
 * copies and timers of one that has its own, so that it is measured like those.
 */
#ifndef LEAT_TOOLS_BENCH_HOST_DEVICE_H
#define LEAT_TOOLS_BENCH_HOST_DEVICE_H

#include <leat/ext/device.h>

/*
 * The device itself if it has memory of its own. Else one of the same name,
 * whose copies are memcpy by the calling thread and whose timers are the host's
 * clock; borrowed, and valid until the next call.
 */
leat_device *host_device_of(leat_device *device);

#endif
