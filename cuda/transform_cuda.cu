/* The transform on the device: a thin shell around the shared body. */
#define LEAT__DEVICE_FUNCTION __device__
#define LEAT__DEVICE_UNROLL _Pragma("unroll")
#define LEAT__DEVICE_LOOP _Pragma("unroll 1")

#include "device/float16.h"

#include <cuda_runtime.h>
#include <leat/ext/device.h>
#include <stdint.h>

/*
 * Nothing that a kernel reads is written while it runs: by the read-only way.
 * Compilers make a branch of a condition around several loads, so that it is
 * written as the predicate that it is.
 */
static __device__ inline uint32_t leat__device_load(const void *from, int bytes,
                                                    int is_there)
{
    uint32_t word;
    if (bytes == 4)
        asm("{ .reg .pred p; setp.ne.s32 p, %2, 0;"
            " @p ld.global.nc.u32 %0, [%1]; }"
            : "=r"(word)
            : "l"(from), "r"(is_there));
    else
        asm("{ .reg .pred p; setp.ne.s32 p, %2, 0;"
            " @p ld.global.nc.u8 %0, [%1]; }"
            : "=r"(word)
            : "l"(from), "r"(is_there));
    return word;
}

/* Not every nvcc finds out what memory that is. */
static __device__ inline void leat__device_store(void *to, uint32_t word,
                                                 int bytes)
{
    __builtin_assume(__isGlobal(to));
    if (bytes == 4)
        *static_cast<uint32_t *>(to) = word;
    else if (bytes == 2)
        *static_cast<uint16_t *>(to) = static_cast<uint16_t>(word);
    else
        *static_cast<unsigned char *>(to) = static_cast<unsigned char>(word);
}

/* Volatile, or else every use of a product has parameters of its own to load.
 */
static __device__ inline uint64_t leat__device_product(uint32_t a, uint32_t b)
{
    uint64_t product;
    asm volatile("mul.wide.u32 %0, %1, %2;" : "=l"(product) : "r"(a), "r"(b));
    return product;
}

static __device__ inline leat_device_choice
leat__device_choice_load(const leat_device_choice *from)
{
    uint4 words = __ldg(reinterpret_cast<const uint4 *>(from));
    leat_device_choice choice;
    choice.h_off = static_cast<int32_t>(words.x);
    choice.w_off = static_cast<int32_t>(words.y);
    choice.mirror = words.z;
    choice.is_zero = words.w;
    return choice;
}

/*
 * The device rounds to nearest and ties to even itself, but has a NaN of its
 * own: as a signed number the only half that is more than leat's.
 */
static __device__ inline uint32_t leat__device_halves(leat_dtype type,
                                                      float low, float high)
{
#if __CUDA_ARCH__ >= 800
    uint32_t word;
    if (type == LEAT_FLOAT16)
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    else
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return __vmins2(word, type == LEAT_FLOAT16 ? 0x7e007e00 : 0x7fc07fc0);
#else
    if (type == LEAT_FLOAT16)
        return leat__float16(low) | (uint32_t)leat__float16(high) << 16;
    return leat__bfloat16(low) | (uint32_t)leat__bfloat16(high) << 16;
#endif
}

static __device__ inline const unsigned char *
leat__device_fetch(const unsigned char *from, uint32_t bytes,
                   const unsigned char *first, const unsigned char *last,
                   uint32_t lane, int spreads);

/* Volatile, as that memory is written before. */
static __device__ inline uint32_t leat__device_near_byte(const void *from,
                                                         int is_there)
{
    uint32_t byte;
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %2, 0;"
                 " @p ld.shared.u8 %0, [%1]; }"
                 : "=r"(byte)
                 : "r"((uint32_t)__cvta_generic_to_shared(from)),
                   "r"(is_there));
    return byte;
}

static __device__ inline uint32_t leat__device_near_word(const void *from)
{
    __builtin_assume(__isShared(from));
    return *static_cast<const uint32_t *>(from);
}

#include "device/transform_lane.h"
#include "transform_cuda.h"

/* Four words, if they are there; else any. */
static __device__ inline uint4 load_four(const uint4 *from, int is_there)
{
    uint4 words;
    asm("{ .reg .pred p; setp.ne.s32 p, %5, 0;"
        " @p ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4]; }"
        : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
        : "l"(from), "r"(is_there));
    return words;
}

/* Each warp of the block has so many bytes of its shared memory. */
template <int most>
static __device__ inline const unsigned char *
fetch(const unsigned char *from, uint32_t bytes, const unsigned char *first,
      const unsigned char *last, uint32_t lane)
{
    enum { WORDS = most / 16, LOADS = (WORDS + 31) / LEAT__LANES };
    static __shared__ uint4 near[LEAT__WARPS][WORDS];
    uint4 *to = near[threadIdx.x / LEAT__LANES];
    uint32_t before =
        static_cast<uint32_t>(reinterpret_cast<uintptr_t>(from)) % 16;
    uint32_t words = (before + bytes + 15) / 16;
    const uint4 *source = reinterpret_cast<const uint4 *>(from - before);
    if (from - before >= first && from - before + 16 * words <= last) {
        uint4 word[LOADS];
#pragma unroll
        for (uint32_t k = 0; k < LOADS; k++) {
            uint32_t i = lane + k * LEAT__LANES;
            if (LOADS <= 4)
                word[k] = load_four(source + i, i < words);
            else if (i < words) /* by a branch: few registers are left */
                word[k] = __ldg(source + i);
        }
#pragma unroll
        for (uint32_t k = 0; k < LOADS; k++)
            if (lane + k * LEAT__LANES < words)
                to[lane + k * LEAT__LANES] = word[k];
    } else {
        unsigned char *byte = reinterpret_cast<unsigned char *>(to) + before;
#pragma unroll 1
        for (uint32_t i = lane; i < bytes; i += LEAT__LANES)
            byte[i] = __ldg(from + i);
    }
    __syncwarp();
    return reinterpret_cast<unsigned char *>(to) + before;
}

static __device__ inline const unsigned char *
leat__device_fetch(const unsigned char *from, uint32_t bytes,
                   const unsigned char *first, const unsigned char *last,
                   uint32_t lane, int spreads)
{
    return spreads ? fetch<LEAT__NEAR_SPREAD>(from, bytes, first, last, lane)
                   : fetch<LEAT__NEAR>(from, bytes, first, last, lane);
}

/* Blocks that a processor is to have at once: at least three quarters of its
   threads, of which there are 1024, 1536 or 2048. */
#if __CUDA_ARCH__ < 800
#define BLOCKS 3
#elif (__CUDA_ARCH__ > 800 && __CUDA_ARCH__ < 900) || __CUDA_ARCH__ >= 1100
#define BLOCKS 5
#else
#define BLOCKS 6
#endif

/* Kernels for 10.x (GB200) take more registers than others. */
#if __CUDA_ARCH__ / 100 == 10
#define IS_TIGHT true
#else
#define IS_TIGHT false
#endif

/* The batch of the grid's layer; where registers are short, launches have one
   batch each. */
static __device__ inline leat__transform_batch
find_batch(const leat__transform_batch *first)
{
    return IS_TIGHT ? *first : leat__transform_batch_at(first, blockIdx.z);
}

/* The blocks that leave enough registers: a mean image takes some where pixels
   stay where they are. */
static constexpr int blocks_of(leat__transform_way way, bool has_image)
{
    return (has_image && way == LEAT__FROM_PLANES) ||
                   (has_image && way == LEAT__ANY_ORDER) ||
                   (IS_TIGHT && way == LEAT__TO_PLANES)
               ? BLOCKS - 1
               : BLOCKS;
}

/* A block has neighbouring images, which share what they need of the mean. */
template <leat_dtype type, leat__transform_way way, bool has_image>
static __global__ void __launch_bounds__(LEAT__WARPS *LEAT__LANES,
                                         blocks_of(way, has_image))
    transform(const leat__transform_batch first)
{
    const leat__transform_kind kind = {type, way, has_image, 0};
    const leat__transform_batch batch = find_batch(&first);
    uint32_t image =
        (blockIdx.y * blockDim.x + threadIdx.x) / (unsigned)LEAT__LANES;
    if (image < batch.job.images)
        leat__transform_work(&batch, kind, image, blockIdx.x,
                             threadIdx.x % LEAT__LANES);
}

template <leat_dtype type, bool has_image>
static const void *find_kernel(leat__transform_way way)
{
    if (way == LEAT__SAME_ORDER)
        return (const void *)transform<type, LEAT__SAME_ORDER, has_image>;
    if (way == LEAT__TO_PLANES)
        return (const void *)transform<type, LEAT__TO_PLANES, has_image>;
    if (way == LEAT__INTERLEAVED)
        return (const void *)transform<type, LEAT__INTERLEAVED, has_image>;
    if (way == LEAT__FROM_PLANES)
        return (const void *)transform<type, LEAT__FROM_PLANES, has_image>;
    return (const void *)transform<type, LEAT__ANY_ORDER, has_image>;
}

template <leat_dtype type>
static const void *find_kernel(const leat_device_transform *job,
                               leat__transform_way way)
{
    return job->mean ? find_kernel<type, true>(way)
                     : find_kernel<type, false>(way);
}

static const void *find_kernel(const leat_device_transform *job,
                               leat__transform_way way)
{
    if (job->top_type == LEAT_FLOAT32)
        return find_kernel<LEAT_FLOAT32>(job, way);
    if (job->top_type == LEAT_FLOAT16)
        return find_kernel<LEAT_FLOAT16>(job, way);
    if (job->top_type == LEAT_BFLOAT16)
        return find_kernel<LEAT_BFLOAT16>(job, way);
    return find_kernel<LEAT_UINT8, false>(way);
}

/*
 * The runtime loads a kernel lazily: with the first call that asks for it. The
 * way is the batches' to say, so that all ways are loaded.
 */
extern "C" cudaError_t
leat__cuda_transform_load(const leat_device_transform *job)
{
    static const leat__transform_way ways[] = {
        LEAT__SAME_ORDER, LEAT__TO_PLANES, LEAT__INTERLEAVED, LEAT__FROM_PLANES,
        LEAT__ANY_ORDER};
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < 5 && error == cudaSuccess; i++) {
        cudaFuncAttributes attributes;
        error = cudaFuncGetAttributes(&attributes, find_kernel(job, ways[i]));
    }
    return error;
}

/* Makes `batch` the one that is the `k`th after the first. */
static void place(leat__transform_batch *batch,
                  const leat_device_transform *job, size_t k)
{
    const void *choices = (const char *)job->choices + k * job->stride;
    batch->job.pixels = job->pixels + k * job->stride;
    batch->job.choices = (const leat_device_choice *)choices;
    batch->job.top = (char *)job->top + k * job->top_stride;
}

/* Whether a launch has one batch, as find_batch says; where that is not known,
   too. */
static bool takes_one(const void *kernel)
{
    cudaFuncAttributes attributes;
    if (cudaFuncGetAttributes(&attributes, kernel))
        return true;
    /* Not the machine code's: that of a later GPU may be made of this PTX. */
    return attributes.ptxVersion / 10 == 10;
}

extern "C" cudaError_t
leat__cuda_transform_launch(const leat_device_transform *job,
                            cudaStream_t stream)
{
    leat__transform_batch batch;
    leat__transform_batch_init(&batch, job);
    if (job->images == 0 || batch.count == 0)
        return cudaSuccess;
    const void *kernel = find_kernel(job, batch.way);
    uint32_t warps = leat__transform_warps(job);
    uint32_t batches = (uint32_t)job->further + 1;
    uint32_t together = batches > 1 && takes_one(kernel) ? 1 : batches;
    dim3 grid(batch.warps, (unsigned)((job->images + warps - 1) / warps),
              together);
    cudaError_t error = cudaSuccess;
    for (uint32_t k = 0; k < batches && error == cudaSuccess; k += together) {
        place(&batch, job, k);
        void *arguments[] = {&batch};
        error = cudaLaunchKernel(kernel, grid, dim3(warps * LEAT__LANES),
                                 arguments, 0, stream);
    }
    return error;
}
