/* The transform on the device: a thin shell around the shared body. */
#define LEAT__DEVICE_FUNCTION __host__ __device__
/* A thread's part of the top begins at a multiple of 16 bytes. */
#define LEAT__DEVICE_STORE(to, from)                                           \
    (*reinterpret_cast<uint4 *>(to) = leat__pack(from))

#include <cuda_runtime.h>
#include <string.h>

template <class T>
static __host__ __device__ inline uint4 leat__pack(const T *from)
{
    uint4 packed;
    memcpy(&packed, from, sizeof(packed));
    return packed;
}

#include "device/transform_batch.h"
#include "transform_cuda.h"

#define BLOCK 256

template <leat_dtype type>
static __global__ void __launch_bounds__(BLOCK)
    transform(const leat_device_transform job)
{
    int64_t thread = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (type == LEAT_FLOAT32)
        leat__transform_work_float32(&job, thread);
    else if (type == LEAT_FLOAT16)
        leat__transform_work_float16(&job, thread);
    else if (type == LEAT_BFLOAT16)
        leat__transform_work_bfloat16(&job, thread);
    else
        leat__transform_work_uint8(&job, thread);
}

static const void *find_kernel(leat_dtype type)
{
    if (type == LEAT_FLOAT32)
        return (const void *)transform<LEAT_FLOAT32>;
    if (type == LEAT_FLOAT16)
        return (const void *)transform<LEAT_FLOAT16>;
    if (type == LEAT_BFLOAT16)
        return (const void *)transform<LEAT_BFLOAT16>;
    return (const void *)transform<LEAT_UINT8>;
}

extern "C" cudaError_t
leat__cuda_transform_launch(const leat_device_transform *job,
                            cudaStream_t stream)
{
    int64_t threads = leat__transform_threads(job);
    if (threads == 0)
        return cudaSuccess;
    void *arguments[] = {const_cast<leat_device_transform *>(job)};
    dim3 blocks((unsigned)((threads + BLOCK - 1) / BLOCK));
    return cudaLaunchKernel(find_kernel(job->top_type), blocks, dim3(BLOCK),
                            arguments, 0, stream);
}
