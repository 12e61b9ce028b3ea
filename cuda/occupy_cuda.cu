/*
 * Kernels for measurements. Those that take time are a thread that looks at the
 * clock, so that they end whatever becomes of the host.
 */
#include <cuda_runtime.h>

#include "occupy_cuda.h"

/* Of the copy: enough loads in flight for any bus. */
#define BLOCK 256
#define BLOCKS_MAX 1024

static __device__ unsigned long long nanoseconds()
{
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

static __global__ void occupy(unsigned long long length)
{
    unsigned long long begin = nanoseconds();
    while (nanoseconds() - begin < length)
        continue;
}

static __global__ void hold(const volatile uint32_t *release,
                            unsigned long long length)
{
    unsigned long long begin = nanoseconds();
    while (!*release && nanoseconds() - begin < length)
        continue;
}

static __global__ void __launch_bounds__(BLOCK)
    copy(uint4 *to, const uint4 *from, size_t words)
{
    size_t stride = (size_t)gridDim.x * BLOCK;
    size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x;
    for (; i + 3 * stride < words; i += 4 * stride) {
        uint4 a = from[i];
        uint4 b = from[i + stride];
        uint4 c = from[i + 2 * stride];
        uint4 d = from[i + 3 * stride];
        to[i] = a;
        to[i + stride] = b;
        to[i + 2 * stride] = c;
        to[i + 3 * stride] = d;
    }
    for (; i < words; i += stride)
        to[i] = from[i];
}

extern "C" cudaError_t leat__cuda_occupy_launch(double seconds,
                                                cudaStream_t stream)
{
    unsigned long long length = (unsigned long long)(1e9 * seconds);
    void *arguments[] = {&length};
    return cudaLaunchKernel((const void *)occupy, dim3(1), dim3(1), arguments,
                            0, stream);
}

extern "C" cudaError_t leat__cuda_hold_launch(const uint32_t *release,
                                              double seconds,
                                              cudaStream_t stream)
{
    unsigned long long length = (unsigned long long)(1e9 * seconds);
    void *arguments[] = {&release, &length};
    return cudaLaunchKernel((const void *)hold, dim3(1), dim3(1), arguments, 0,
                            stream);
}

extern "C" cudaError_t leat__cuda_copy_launch(void *to, const void *from,
                                              size_t bytes, cudaStream_t stream)
{
    size_t words = bytes / sizeof(uint4);
    size_t blocks = (words + BLOCK - 1) / BLOCK;
    if (blocks == 0)
        return cudaSuccess;
    if (blocks > BLOCKS_MAX)
        blocks = BLOCKS_MAX;
    void *arguments[] = {&to, &from, &words};
    return cudaLaunchKernel((const void *)copy, dim3((unsigned)blocks),
                            dim3(BLOCK), arguments, 0, stream);
}
