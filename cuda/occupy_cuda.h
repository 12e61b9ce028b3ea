/* occupy_cuda.h: launches a kernel that only takes time. */
#ifndef LEAT_CUDA_OCCUPY_CUDA_H
#define LEAT_CUDA_OCCUPY_CUDA_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Enqueues it on the stream, whose device is the current one. */
cudaError_t leat__cuda_occupy_launch(double seconds, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
