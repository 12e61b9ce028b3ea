/* The double's memory: of devices, pinned, and copies between them. */
#include "cuda_double/cuda_double_state.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE ((size_t)4096)
#define GARBAGE 0xa5

/* A piece of memory; base 0: a free place. Relaxed, so as to order nothing. */
typedef struct memory_range {
    _Atomic(struct CUctx_st *) context;
    atomic_uintptr_t base;
    atomic_size_t bytes;
    _Atomic(char *) torn; /* what the device has of it since a fork; or NULL */
    atomic_uintptr_t forked; /* its base when the last fork began */
} memory_range;

static atomic_size_t memory_size = (size_t)1 << 30;
static atomic_size_t pinnable = SIZE_MAX;
static atomic_int registers = 1;
static atomic_int blocking;
static memory_range allocated[DOUBLE_RANGES];
static memory_range pinned[DOUBLE_RANGES];
static atomic_int nranges; /* of both, the first so many were ever in use */
static atomic_size_t pinned_bytes;

/* At `place`, or anywhere where that is NULL. */
static char *map(int file, char *place)
{
    int flags = MAP_SHARED | MAP_NORESERVE | (place ? MAP_FIXED : 0);
    void *memory = mmap(place, DOUBLE_WINDOW, PROT_NONE, flags, file, 0);
    if (memory == MAP_FAILED)
        abort();
    return memory;
}

static void map_unused_devices(void)
{
    for (int i = 0; i < CUDA_DOUBLE_DEVICES; i++) {
        double_device *device = &double_devices[i];
        if (atomic_load(&device->used))
            continue;
        int file = memfd_create("cuda_double", MFD_CLOEXEC);
        if (file < 0 || ftruncate(file, (off_t)DOUBLE_WINDOW))
            abort();
        device->window = map(file, device->window);
        device->bytes = map(file, device->bytes);
        close(file);
    }
}

/*
 * At the start: no thread may see a device without its memory, and which GPUs
 * are visible is the tests' to say. A forked child
 * has memory of its own, unless its parent had used the device: then it has
 * none.
 */
__attribute__((constructor)) static void map_devices(void)
{
    unsetenv("CUDA_VISIBLE_DEVICES");
    map_unused_devices();
    if (pthread_atfork(NULL, NULL, map_unused_devices))
        abort();
}

double_device *double_owner(const void *address)
{
    for (int i = 0; i < CUDA_DOUBLE_DEVICES; i++) {
        double_device *device = &double_devices[i];
        uintptr_t base = (uintptr_t)device->window;
        if ((uintptr_t)address - base < DOUBLE_WINDOW)
            return device;
    }
    return NULL;
}

void *cuda_double_bytes(const void *address)
{
    if ((uintptr_t)address & DOUBLE_MAPPED)
        return (void *)((uintptr_t)address & ~DOUBLE_MAPPED);
    double_device *device = double_owner(address);
    return device ? device->bytes + ((const char *)address - device->window)
                  : NULL;
}

static void use_ranges(int n)
{
    int before = atomic_load_explicit(&nranges, memory_order_relaxed);
    while (before < n && !atomic_compare_exchange_weak_explicit(
                             &nranges, &before, n, memory_order_relaxed,
                             memory_order_relaxed))
        continue;
}

static int ranges_used(void)
{
    return atomic_load_explicit(&nranges, memory_order_relaxed);
}

static void note(memory_range *ranges, const void *base, size_t bytes)
{
    for (int i = 0; i < DOUBLE_RANGES; i++) {
        uintptr_t none = 0;
        if (!atomic_compare_exchange_strong_explicit(
                &ranges[i].base, &none, (uintptr_t)base, memory_order_relaxed,
                memory_order_relaxed))
            continue;
        atomic_store_explicit(&ranges[i].bytes, bytes, memory_order_relaxed);
        atomic_store_explicit(&ranges[i].context, double_context(),
                              memory_order_relaxed);
        use_ranges(i + 1);
        return;
    }
    abort();
}

/* Forgets the piece that begins there; its size, or SIZE_MAX. */
static size_t strike(memory_range *ranges, const void *base)
{
    int n = base ? ranges_used() : 0;
    for (int i = 0; i < n; i++) {
        if (atomic_load_explicit(&ranges[i].base, memory_order_relaxed) !=
            (uintptr_t)base)
            continue;
        size_t bytes =
            atomic_load_explicit(&ranges[i].bytes, memory_order_relaxed);
        /* What is pinned there next was not there at a fork in progress. */
        atomic_store(&ranges[i].forked, 0);
        free(atomic_exchange(&ranges[i].torn, NULL));
        uintptr_t found = (uintptr_t)base;
        if (!atomic_compare_exchange_strong_explicit(&ranges[i].base, &found, 0,
                                                     memory_order_relaxed,
                                                     memory_order_relaxed))
            return SIZE_MAX; /* by its context's end */
        return bytes;
    }
    return SIZE_MAX;
}

static int is_within(memory_range *ranges, const void *place, size_t bytes)
{
    int n = ranges_used();
    for (int i = 0; i < n; i++) {
        uintptr_t base =
            atomic_load_explicit(&ranges[i].base, memory_order_relaxed);
        size_t size =
            atomic_load_explicit(&ranges[i].bytes, memory_order_relaxed);
        if (base && (uintptr_t)place >= base && bytes <= size &&
            (uintptr_t)place - base <= size - bytes)
            return 1;
    }
    return 0;
}

/*
 * After a fork parent and child share their pages until one of them writes, and
 * the writer gets another page: the device goes on with the one that was
 * pinned. A page that the child does not get (MADV_DONTFORK) stays the
 * parent's.
 */
static void tear(uintptr_t begin, uintptr_t end)
{
    int n = ranges_used();
    for (int i = 0; i < n; i++) {
        uintptr_t base = atomic_load(&pinned[i].base);
        size_t bytes = atomic_load(&pinned[i].bytes);
        if (!base || base < begin || base >= end ||
            base != atomic_load(&pinned[i].forked) ||
            atomic_load(&pinned[i].torn))
            continue;
        char *copy = malloc(bytes);
        if (!copy)
            abort();
        atomic_store(&pinned[i].torn, memcpy(copy, (void *)base, bytes));
    }
}

/* What another thread pins from now on, it may pin after the fork. */
static void note_fork(void)
{
    int n = ranges_used();
    for (int i = 0; i < n; i++)
        atomic_store(&pinned[i].forked, atomic_load(&pinned[i].base));
}

/* In a child what is pinned is the parent's, and CUDA does not work. */
static atomic_bool is_parents;

static void note_child(void)
{
    atomic_store(&is_parents, atomic_load(&pinned_bytes) > 0);
}

static void tear_pages_of_a_fork(void)
{
    char line[512];
    unsigned long begin = 0, end = 0;
    bool is_pinned =
        atomic_load(&pinned_bytes) > 0 && !atomic_load(&is_parents);
    FILE *maps = is_pinned ? fopen("/proc/self/smaps", "re") : NULL;
    while (maps && fgets(line, sizeof(line), maps)) {
        if (strncmp(line, "VmFlags:", 8) == 0 && !strstr(line, " dc"))
            tear(begin, end);
        else if (line[0] >= '0' && strchr(line, '-'))
            (void)sscanf(line, "%lx-%lx ", &begin, &end);
    }
    if (maps)
        fclose(maps);
}

__attribute__((constructor)) static void watch_forks(void)
{
    if (pthread_atfork(note_fork, tear_pages_of_a_fork, note_child))
        abort();
}

char *double_dma_address(const char *host)
{
    int n = atomic_load(&pinned_bytes) ? ranges_used() : 0;
    for (int i = 0; i < n; i++) {
        char *torn =
            atomic_load_explicit(&pinned[i].torn, memory_order_relaxed);
        uintptr_t base =
            atomic_load_explicit(&pinned[i].base, memory_order_relaxed);
        size_t size =
            atomic_load_explicit(&pinned[i].bytes, memory_order_relaxed);
        if (torn && base && (uintptr_t)host - base < size)
            return torn + ((uintptr_t)host - base);
    }
    return (char *)(uintptr_t)host;
}

static size_t whole_pages(size_t bytes)
{
    return bytes ? (bytes + PAGE - 1) / PAGE * PAGE : PAGE;
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    cudaError_t error = double_enter(
        __func__, &(cuda_double_call){.bytes = bytes}, DOUBLE_UNSAFE);
    if (error)
        return double_leave(error);
    double_device *device = double_here();
    size_t whole = whole_pages(bytes) + PAGE;
    size_t limit = atomic_load(&memory_size);
    size_t live = atomic_load_explicit(&device->live, memory_order_relaxed);
    if (bytes > limit || live > limit - bytes)
        return double_leave(cudaErrorMemoryAllocation);
    size_t offset =
        atomic_fetch_add_explicit(&device->used, whole, memory_order_relaxed);
    if (offset + whole > DOUBLE_WINDOW ||
        mprotect(device->bytes + offset, whole - PAGE, PROT_READ | PROT_WRITE))
        abort();
    memset(device->bytes + offset, GARBAGE, bytes);
    atomic_fetch_add_explicit(&device->live, bytes, memory_order_relaxed);
    note(allocated, device->window + offset, bytes);
    error = double_context_keep();
    if (!error)
        *memory = device->window + offset;
    return error;
}

cudaError_t cudaFree(void *memory)
{
    cudaError_t error =
        double_enter(__func__, &(cuda_double_call){0}, DOUBLE_UNSAFE);
    size_t bytes = strike(allocated, memory);
    if (bytes == SIZE_MAX)
        return double_leave(memory ? cudaErrorInvalidValue : error);
    atomic_fetch_sub_explicit(&double_owner(memory)->live, bytes,
                              memory_order_relaxed);
    void *place = cuda_double_bytes(memory);
    madvise(place, whole_pages(bytes), MADV_REMOVE);
    mprotect(place, whole_pages(bytes), PROT_NONE);
    return double_leave(error);
}

static cudaError_t pin(void *memory, size_t bytes)
{
    size_t before =
        atomic_fetch_add_explicit(&pinned_bytes, bytes, memory_order_relaxed);
    size_t limit = atomic_load(&pinnable);
    if (bytes > limit || before > limit - bytes) {
        atomic_fetch_sub_explicit(&pinned_bytes, bytes, memory_order_relaxed);
        return cudaErrorMemoryAllocation;
    }
    note(pinned, memory, bytes);
    return double_context_keep();
}

static cudaError_t unpin(const void *memory, size_t *bytes)
{
    *bytes = strike(pinned, memory);
    if (*bytes == SIZE_MAX)
        return cudaErrorHostMemoryNotRegistered;
    atomic_fetch_sub_explicit(&pinned_bytes, *bytes, memory_order_relaxed);
    return cudaSuccess;
}

/* Those of the context; how many bytes. */
static size_t strike_all(memory_range *ranges, const struct CUctx_st *context)
{
    int n = ranges_used();
    size_t bytes = 0;
    for (int i = 0; i < n; i++) {
        size_t found = 0;
        uintptr_t base =
            atomic_load_explicit(&ranges[i].base, memory_order_relaxed);
        if (base && atomic_load_explicit(&ranges[i].context,
                                         memory_order_relaxed) == context)
            found = strike(ranges, (const void *)base);
        bytes += found == SIZE_MAX ? 0 : found;
    }
    return bytes;
}

void double_end_memory(struct CUctx_st *context)
{
    atomic_fetch_sub(&context->device->live, strike_all(allocated, context));
    atomic_fetch_sub(&pinned_bytes, strike_all(pinned, context));
}

cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned int flags)
{
    cudaError_t error = double_enter(
        __func__, &(cuda_double_call){.bytes = bytes, .flags = flags},
        DOUBLE_UNSAFE);
    if (!error && !atomic_load(&registers))
        error = cudaErrorNotSupported;
    if (!error && (!memory || bytes == 0))
        error = cudaErrorInvalidValue;
    return double_leave(error ? error : pin(memory, bytes));
}

cudaError_t cudaHostUnregister(void *memory)
{
    cudaError_t error =
        double_enter(__func__, &(cuda_double_call){0}, DOUBLE_UNSAFE);
    size_t bytes;
    cudaError_t unpinned = unpin(memory, &bytes);
    return double_leave(error ? error : unpinned);
}

cudaError_t cudaHostGetDevicePointer(void **device, void *memory,
                                     unsigned int flags)
{
    cudaError_t error =
        double_enter(__func__, &(cuda_double_call){.flags = flags}, 0);
    if (!error && (flags || !is_within(pinned, memory, 1)))
        error = cudaErrorInvalidValue;
    if (!error)
        *device = (void *)((uintptr_t)memory | DOUBLE_MAPPED);
    return double_leave(error);
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned int flags)
{
    cudaError_t error = double_enter(
        __func__, &(cuda_double_call){.bytes = bytes, .flags = flags},
        DOUBLE_UNSAFE);
    if (error)
        return double_leave(error);
    void *pages = mmap(NULL, whole_pages(bytes), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return double_leave(cudaErrorMemoryAllocation);
    memset(pages, GARBAGE, bytes);
    /* As the driver does. */
    if (madvise(pages, whole_pages(bytes), MADV_DONTFORK))
        abort();
    error = pin(pages, bytes);
    if (error)
        munmap(pages, whole_pages(bytes));
    else
        *memory = pages;
    return double_leave(error);
}

cudaError_t cudaFreeHost(void *memory)
{
    cudaError_t error =
        double_enter(__func__, &(cuda_double_call){0}, DOUBLE_UNSAFE);
    size_t bytes;
    cudaError_t unpinned = unpin(memory, &bytes);
    if (!unpinned)
        munmap(memory, whole_pages(bytes));
    return double_leave(error ? error : unpinned);
}

/* What a copy between host and device takes on the host's side. */
static void *stage(const void *from, size_t bytes)
{
    void *copy = malloc(bytes ? bytes : 1);
    if (!copy)
        abort();
    return memcpy(copy, from, bytes);
}

static cudaError_t copy(void *to, const void *from, size_t bytes,
                        enum cudaMemcpyKind kind, struct CUstream_st *stream)
{
    int to_device = kind == cudaMemcpyHostToDevice;
    int to_host = kind == cudaMemcpyDeviceToHost;
    if ((!to_host && !is_within(allocated, to, bytes)) ||
        (!to_device && !is_within(allocated, from, bytes)) ||
        (to_host && double_owner(to)) || (to_device && double_owner(from)))
        return cudaErrorInvalidValue;
    double_operation what = {.kind = DOUBLE_COPY,
                             .to = to_host ? to : cuda_double_bytes(to),
                             .from = to_device ? from : cuda_double_bytes(from),
                             .bytes = bytes,
                             .bus = to_device ? 1
                                    : to_host ? 2
                                              : 0};
    /* A graph's copy takes what is there when it runs. */
    if (double_capture_take(stream, &what))
        return cudaSuccess;
    /* Pageable memory is read before the call returns, or written. */
    if (to_device && !is_within(pinned, from, bytes)) {
        what.staged = stage(from, bytes);
        what.from = what.staged;
    }
    cudaError_t error = double_enqueue(stream, what);
    if (!error && ((what.staged && atomic_load(&blocking)) ||
                   (to_host && !is_within(pinned, to, bytes))))
        error = double_drain(stream);
    return error;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                            enum cudaMemcpyKind kind, cudaStream_t stream)
{
    cudaError_t error = double_enter(
        __func__,
        &(cuda_double_call){.stream = stream, .bytes = bytes, .flags = kind},
        0);
    if (!error)
        error = copy(to, from, bytes, kind, double_stream_of(stream));
    return double_leave(error);
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes,
                            cudaStream_t stream)
{
    cudaError_t error = double_enter(
        __func__, &(cuda_double_call){.stream = stream, .bytes = bytes}, 0);
    if (!error && !is_within(allocated, memory, bytes))
        error = cudaErrorInvalidValue;
    if (error)
        return double_leave(error);
    double_operation what = {.kind = DOUBLE_SET,
                             .to = cuda_double_bytes(memory),
                             .value = value,
                             .bytes = bytes};
    return double_leave(double_enqueue(double_stream_of(stream), what));
}

/* Of device memory it does not wait. */
cudaError_t cudaMemset(void *memory, int value, size_t bytes)
{
    return cudaMemsetAsync(memory, value, bytes, NULL);
}

int double_registers(void)
{
    return atomic_load(&registers);
}

size_t double_pinned_bytes(void)
{
    return atomic_load(&pinned_bytes);
}

void cuda_double_set_memory(size_t bytes)
{
    atomic_store(&memory_size, bytes);
}

void cuda_double_set_pinnable(size_t bytes)
{
    atomic_store(&pinnable, bytes);
}

void cuda_double_set_registers(int value)
{
    atomic_store(&registers, value);
}

void cuda_double_set_blocking(int value)
{
    atomic_store(&blocking, value);
}
