/* The transform on the device: a thin shell around the shared body. */
#define LEAT__DEVICE_FUNCTION __device__
#define LEAT__DEVICE_UNROLL _Pragma("unroll")

#include <cuda_runtime.h>
#include <stdint.h>

/* Nothing that a kernel reads is written while it runs: by the read-only way.
 */
static __device__ inline void leat__words_load(uint32_t to[], const void *from,
                                               int n)
{
    if (n == 4) {
        uint4 words = __ldg(static_cast<const uint4 *>(from));
        to[0] = words.x;
        to[1] = words.y;
        to[2] = words.z;
        to[3] = words.w;
    } else if (n == 2) {
        uint2 words = __ldg(static_cast<const uint2 *>(from));
        to[0] = words.x;
        to[1] = words.y;
    } else {
        to[0] = __ldg(static_cast<const unsigned int *>(from));
    }
}

static __device__ inline void leat__words_store(void *to, const uint32_t from[],
                                                int n)
{
    (void)n;
    *static_cast<uint4 *>(to) = make_uint4(from[0], from[1], from[2], from[3]);
}

/* The device's own rounding, to nearest and ties to even, with leat's NaN. */
static __device__ inline uint16_t leat__device_float16(float value)
{
    uint16_t half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
    return value == value ? half : (uint16_t)0x7e00;
}

#include "device/transform_batch.h"
#include "transform_cuda.h"

#define BLOCK 256

template <leat_dtype type>
static __global__ void __launch_bounds__(BLOCK)
    transform(const leat__transform_batch batch)
{
    int64_t thread = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    leat__transform_batch_work_as(&batch, thread, type);
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

/* The runtime loads a kernel lazily: with the first call that asks for it. */
extern "C" cudaError_t
leat__cuda_transform_load(const leat_device_transform *job)
{
    cudaFuncAttributes attributes;
    return cudaFuncGetAttributes(&attributes, find_kernel(job->top_type));
}

extern "C" cudaError_t
leat__cuda_transform_launch(const leat_device_transform *job,
                            cudaStream_t stream)
{
    leat__transform_batch batch;
    leat__transform_batch_init(&batch, job);
    int64_t threads = leat__transform_batch_threads(&batch);
    if (threads == 0)
        return cudaSuccess;
    void *arguments[] = {&batch};
    dim3 blocks((unsigned)((threads + BLOCK - 1) / BLOCK));
    return cudaLaunchKernel(find_kernel(job->top_type), blocks, dim3(BLOCK),
                            arguments, 0, stream);
}
