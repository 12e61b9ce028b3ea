/* stream_cuda.h: streams, leat's own and those that a caller gives. As the
 * device table has them. */
#ifndef LEAT_CUDA_STREAM_CUDA_H
#define LEAT_CUDA_STREAM_CUDA_H

#include <leat/ext/device.h>

int leat__cuda_stream_create(leat_device *device, leat_stream *out);
int leat__cuda_stream_create_high_priority(leat_device *device,
                                           leat_stream *out);
void leat__cuda_stream_destroy(leat_device *device, leat_stream stream);
int leat__cuda_stream_synchronize(leat_device *device, leat_stream stream);
int leat__cuda_stream_is_capturing(leat_device *device, leat_stream stream);

/* LEAT_EINVAL for a stream of another device, of a context of its own, or, to
 * be kept for later calls, one that each thread has its own of. */
int leat__cuda_stream_check(leat_device *device, leat_stream stream,
                            int is_kept);

#endif
