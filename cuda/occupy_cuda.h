/* occupy_cuda.h: launches kernels for measurements. */
#ifndef LEAT_CUDA_OCCUPY_CUDA_H
#define LEAT_CUDA_OCCUPY_CUDA_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Each is enqueued on the stream, whose device is the current one. */

/* Only takes time. */
cudaError_t leat__cuda_occupy_launch(double seconds, cudaStream_t stream);

/* Ends when the word, in mapped memory, is not 0, or after `seconds`. */
cudaError_t leat__cuda_hold_launch(const uint32_t *release, double seconds,
                                   cudaStream_t stream);

/*
 * Copies between the device's memory and mapped host memory, of which `to` or
 * `from` is the device's address; all are multiples of 16.
 */
cudaError_t leat__cuda_copy_launch(void *to, const void *from, size_t bytes,
                                   cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
