/* A kernel that takes its time: one thread, which looks at the clock. */
#include <cuda_runtime.h>

#include "occupy_cuda.h"

static __device__ unsigned long long nanoseconds()
{
    unsigned long long now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    return now;
}

static __global__ void occupy(unsigned long long length)
{
    unsigned long long begin = nanoseconds();
    while (nanoseconds() - begin < length)
        continue;
}

extern "C" cudaError_t leat__cuda_occupy_launch(double seconds,
                                                cudaStream_t stream)
{
    unsigned long long length = (unsigned long long)(1e9 * seconds);
    void *arguments[] = {&length};
    return cudaLaunchKernel((const void *)occupy, dim3(1), dim3(1), arguments,
                            0, stream);
}
