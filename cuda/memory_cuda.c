/*
 * Pinned memory is the system's pages on the device's NUMA node, registered; or
 * cudaHostAlloc's, where the driver cannot register pages. What is cleared on
 * the device is cleared on a stream of its own. Freeing may wait for whatever
 * runs on the device, as cudaFree and cudaFreeHost do, so a layer frees at
 * destroy, and in between only when a batch outgrows its memory.
 */
#include "memory_cuda.h"
#include "base/memory.h"

#include <linux/mempolicy.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Kernels for measurements reach it, too. */
#define REGISTER_FLAGS (cudaHostRegisterPortable | cudaHostRegisterMapped)

#define LONG_BITS (8 * (int)sizeof(long))

static leat__cuda_device *own(leat_device *device)
{
    return (leat__cuda_device *)device;
}

/* A hint: if it is refused, the kernel places the pages. */
static void prefer_node(void *memory, size_t bytes, int node)
{
    if (node < 0 || node >= LEAT__CUDA_NODES_MAX)
        return;
    unsigned long mask[LEAT__CUDA_NODES_MAX / LONG_BITS] = {0};
    mask[node / LONG_BITS] = 1ul << node % LONG_BITS;
    (void)syscall(SYS_mbind, memory, bytes, MPOL_PREFERRED, mask,
                  (unsigned long)LEAT__CUDA_NODES_MAX, 0);
}

/* A size of 0 is one that the runtime takes. */
static size_t at_least_one(size_t bytes)
{
    return bytes ? bytes : 1;
}

/*
 * System pages on that node, pinned by registration. A child of fork()
 * gets none of them: of a page that both have, who writes first gets a copy,
 * and the device would go on with the page that the child has.
 */
static cudaError_t pin_pages(int node, size_t bytes, void **out)
{
    void *memory = leat__alloc_pages(bytes);
    if (!memory)
        return cudaErrorMemoryAllocation;
    prefer_node(memory, bytes, node);
    if (madvise(memory, at_least_one(bytes), MADV_DONTFORK)) {
        leat__free_pages(memory, bytes);
        return cudaErrorOperatingSystem;
    }
    memset(memory, 0, bytes);
    cudaError_t error =
        cudaHostRegister(memory, at_least_one(bytes), REGISTER_FLAGS);
    if (error)
        leat__free_pages(memory, bytes);
    else
        *out = memory;
    return error;
}

static cudaError_t alloc_pinned(const leat__cuda_device *cuda, int node,
                                size_t bytes, void **out)
{
    if (cuda->registers)
        return pin_pages(node, bytes, out);
    cudaError_t error =
        cudaHostAlloc(out, at_least_one(bytes), cudaHostAllocPortable);
    if (error == cudaSuccess)
        memset(*out, 0, bytes);
    return error;
}

static cudaError_t free_pinned(const leat__cuda_device *cuda, void *memory,
                               size_t bytes)
{
    if (!cuda->registers)
        return cudaFreeHost(memory);
    cudaError_t error = cudaHostUnregister(memory);
    leat__free_pages(memory, bytes);
    return error;
}

bool leat__cuda_memory_is_refusal(cudaError_t error)
{
    return error == cudaErrorNotSupported || error == cudaErrorNotPermitted ||
           error == cudaErrorOperatingSystem;
}

int leat__cuda_memory_host_alloc(leat_device *device, size_t bytes, void **out)
{
    return leat__cuda_memory_host_alloc_on(device, own(device)->node, bytes,
                                           out);
}

int leat__cuda_memory_host_alloc_on(leat_device *device, int node, size_t bytes,
                                    void **out)
{
    leat__cuda_visit visit;
    void *memory = NULL;
    cudaError_t error = leat__cuda_enter(device, &visit);
    if (error == cudaSuccess)
        error = alloc_pinned(own(device), node, bytes, &memory);
    char what[64];
    snprintf(what, sizeof(what), "pinning %zu bytes of host memory", bytes);
    int status = leat__cuda_leave(&visit, error, what);
    if (!status)
        *out = memory;
    else if (memory)
        (void)free_pinned(own(device), memory, bytes);
    return status == LEAT_EDEVICE && leat__cuda_memory_is_refusal(error)
               ? LEAT_ENOMEM
               : status;
}

void leat__cuda_memory_host_free(leat_device *device, void *memory,
                                 size_t bytes)
{
    leat__cuda_visit visit;
    cudaError_t entered = leat__cuda_enter(device, &visit);
    cudaError_t error = entered;
    if (leat__cuda_can_free(entered))
        error = free_pinned(own(device), memory, bytes);
    else if (leat__cuda_is_gone(entered) && own(device)->registers)
        leat__free_pages(memory, bytes); /* which its end has unpinned */
    error = entered ? entered : error;
    /* A device that is lost lets go of everything by itself. */
    (void)leat__cuda_leave(&visit, error, "unpinning host memory");
}

/* On a stream of its own: the default one may wait for all others. */
static cudaError_t clear(void *memory, size_t bytes)
{
    cudaStream_t stream;
    cudaError_t error =
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (error)
        return error;
    error = cudaMemsetAsync(memory, 0, bytes, stream);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(stream);
    if (!leat__cuda_can_free(error))
        return error;
    cudaError_t destroyed = cudaStreamDestroy(stream);
    return error ? error : destroyed;
}

static cudaError_t alloc_cleared(size_t bytes, void **out)
{
    void *memory;
    cudaError_t error = cudaMalloc(&memory, at_least_one(bytes));
    if (error)
        return error;
    error = clear(memory, at_least_one(bytes));
    if (error == cudaSuccess)
        *out = memory;
    else if (leat__cuda_can_free(error))
        (void)cudaFree(memory);
    return error;
}

int leat__cuda_memory_alloc(leat_device *device, size_t bytes, void **out)
{
    leat__cuda_visit visit;
    void *memory = NULL;
    cudaError_t error = leat__cuda_enter(device, &visit);
    if (error == cudaSuccess)
        error = alloc_cleared(bytes, &memory);
    char what[64];
    snprintf(what, sizeof(what), "allocating %zu bytes on the device", bytes);
    int status = leat__cuda_leave(&visit, error, what);
    if (!status)
        *out = memory;
    else if (memory)
        (void)cudaFree(memory);
    return status;
}

void leat__cuda_memory_free(leat_device *device, void *memory, size_t bytes)
{
    (void)bytes;
    leat__cuda_visit visit;
    cudaError_t entered = leat__cuda_enter(device, &visit);
    cudaError_t error = entered;
    if (leat__cuda_can_free(entered))
        error = cudaFree(memory);
    error = entered ? entered : error;
    (void)leat__cuda_leave(&visit, error, "freeing memory of the device");
}

cudaError_t leat__cuda_memory_try_pinning(leat__cuda_device *cuda)
{
    int supported = 0;
    cudaError_t error = cudaDeviceGetAttribute(
        &supported, cudaDevAttrHostRegisterSupported, cuda->ordinal);
    if (error || !supported)
        return error;
    void *page;
    error = pin_pages(cuda->node, 1, &page);
    cuda->registers = error != cudaErrorNotSupported;
    if (error)
        return error;
    error = cudaHostUnregister(page);
    leat__free_pages(page, 1);
    return error;
}
