/* transform_cuda.h: launches the transform's kernel; the tests have a double.
 */
#ifndef LEAT_CUDA_TRANSFORM_CUDA_H
#define LEAT_CUDA_TRANSFORM_CUDA_H

#include <cuda_runtime_api.h>
#include <leat/ext/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Images of a launch at most: a grid has 65535 blocks along y, each with 8. */
#define LEAT__CUDA_IMAGES_MAX ((int64_t)65535 * 8)

/* Enqueues it on the stream, whose device is the current one. */
cudaError_t leat__cuda_transform_launch(const leat_device_transform *job,
                                        cudaStream_t stream);

/* Loads the kernels of jobs like this one in the current context. */
cudaError_t leat__cuda_transform_load(const leat_device_transform *job);

#ifdef __cplusplus
}
#endif
#endif
