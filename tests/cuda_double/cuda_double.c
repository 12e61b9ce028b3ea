/* The machine that the double plays: devices, memory, faults, the log. */
#include "cuda_double/cuda_double_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE ((size_t)4096)
#define CALLS (1 << 17)
#define GARBAGE 0xa5

/* A piece of memory; base 0: a free place. Relaxed, so as to order nothing. */
typedef struct memory_range {
    _Atomic(struct CUctx_st *) context;
    atomic_uintptr_t base;
    atomic_size_t bytes;
    _Atomic(char *) torn; /* what the device has of it since a fork; or NULL */
} memory_range;

double_device double_devices[CUDA_DOUBLE_DEVICES];
atomic_int double_eager;
atomic_int double_unloaded;
atomic_int_fast64_t double_bus_latency;
atomic_int_fast64_t double_call_cost;
atomic_int_fast64_t double_query_cost;
atomic_int_fast64_t double_wake_cost;
atomic_int double_computes = 1;
atomic_int double_launch_blocking;
atomic_int double_one_engine;
_Atomic double double_bus_bandwidth;
_Atomic double double_memory_bandwidth;
atomic_int_fast64_t double_streams, double_events, double_busy;
atomic_int double_mutant;
_Atomic(cudaStream_t) double_next;
_Thread_local int64_t double_host_time;
atomic_int_fast64_t double_latest;
static _Thread_local cudaError_t last_error;
static _Thread_local enum cudaStreamCaptureMode capture_mode;
static _Thread_local int own_captures; /* not relaxed ones */

static atomic_int ndevices = 2;
static atomic_int driver = CUDART_VERSION;
static atomic_size_t memory_size = (size_t)1 << 30;
static atomic_size_t l2_size;
static atomic_size_t pinnable = SIZE_MAX;
static atomic_int registers = 1;
static atomic_int blocking;
static atomic_int captures; /* global ones, which concern all threads */
static atomic_int captured_calls;
static atomic_int blocking_captures; /* for these the default stream waits */

static memory_range allocated[DOUBLE_RANGES];
static memory_range pinned[DOUBLE_RANGES];
static atomic_int nranges; /* of both, the first so many were ever in use */
static atomic_size_t pinned_bytes;

enum {
    FAULT_OF_CALL,   /* it fails */
    FAULT_OF_DEVICE, /* the device is lost */
    FAULT_OF_CONTEXT /* its primary context is destroyed */
};
static atomic_int_fast64_t fault = -1;
static atomic_int fault_error;
static atomic_int fault_kind;
static _Atomic(const char *) fault_name; /* of the calls counted; NULL: all */
static _Atomic(const char *) failed;
static atomic_int_fast64_t loss = -1;
static atomic_int loss_error;

static atomic_int nthreads;
static _Thread_local int thread_number = -1;
static cuda_double_call calls[CALLS];
static atomic_int ncalls;
static atomic_int forgotten; /* of them, the first so many */

/* Whether this is the one that `counter` counts down to. */
static int is_turn(atomic_int_fast64_t *counter)
{
    int_fast64_t left = atomic_load_explicit(counter, memory_order_relaxed);
    while (left >= 0 && !atomic_compare_exchange_weak_explicit(
                            counter, &left, left - 1, memory_order_relaxed,
                            memory_order_relaxed))
        continue;
    return left == 0;
}

int cuda_double_thread(void)
{
    if (thread_number < 0)
        thread_number =
            atomic_fetch_add_explicit(&nthreads, 1, memory_order_relaxed);
    return thread_number;
}

static void log_call(const char *name, const cuda_double_call *call)
{
    int i = atomic_fetch_add_explicit(&ncalls, 1, memory_order_relaxed);
    if (i >= CALLS)
        return;
    calls[i] = *call;
    calls[i].name = name;
    calls[i].device = double_ordinal();
    calls[i].thread = cuda_double_thread();
}

/*
 * CUDA_VISIBLE_DEVICES: the GPUs that the process sees, by number or by UUID,
 * up to the first that there is not. Of the parts of a GPU (MIG) it sees one.
 */
static int list_visible(int out[CUDA_DOUBLE_DEVICES])
{
    const char *text = getenv("CUDA_VISIBLE_DEVICES");
    int all = atomic_load(&ndevices);
    int n = 0;
    for (int i = 0; !text && i < all; i++)
        out[n++] = i;
    while (text && *text && n < CUDA_DOUBLE_DEVICES) {
        char *end;
        int is_part = strncmp(text, "MIG-", 4) == 0;
        long i = is_part ? 0 : strtol(text, &end, 10);
        if (!is_part && (end == text || i < 0 || i >= all))
            break;
        out[n++] = (int)i;
        text = is_part ? NULL : end + (*end == ',');
    }
    return n;
}

static cudaError_t machine_error(void)
{
    int visible[CUDA_DOUBLE_DEVICES];
    if (atomic_load(&double_unloaded))
        return cudaErrorCudartUnloading;
    if (atomic_load(&driver) / 1000 < CUDART_VERSION / 1000)
        return cudaErrorInsufficientDriver;
    return list_visible(visible) == 0 ? cudaErrorNoDevice : cudaSuccess;
}

/* Whether this call fails; or its device or context ends just before it. */
static int is_faulty(const char *name)
{
    const char *wanted = atomic_load(&fault_name);
    if ((wanted && strcmp(wanted, name) != 0) || !is_turn(&fault))
        return 0;
    atomic_store(&failed, name);
    int kind = atomic_load(&fault_kind);
    if (kind == FAULT_OF_CONTEXT)
        cuda_double_destroy_primary(double_ordinal());
    if (kind == FAULT_OF_DEVICE)
        cuda_double_lose(double_ordinal(),
                         (cudaError_t)atomic_load(&fault_error));
    return kind == FAULT_OF_CALL;
}

cudaError_t double_enter(const char *name, const cuda_double_call *call,
                         int traits)
{
    log_call(name, call);
    if (traits & DOUBLE_ALWAYS)
        return cudaSuccess;
    if (traits & DOUBLE_QUERY)
        double_host_time += atomic_load(&double_query_cost);
    if (call->stream && double_is_stream(call->stream) &&
        strcmp(name, "cudaStreamIsCapturing") != 0)
        atomic_fetch_add(&captured_calls,
                         atomic_load(&call->stream->capturing));
    if (call->stream && double_is_stream(call->stream))
        double_check_alive(call->stream->context);
    if (call->event)
        double_check_alive(call->event->context);
    if (is_faulty(name))
        return (cudaError_t)atomic_load(&fault_error);
    cudaError_t error = machine_error();
    if (error)
        return error;
    if (traits & DOUBLE_NO_CONTEXT)
        return cudaSuccess;
    error = double_context_ensure();
    if (error)
        return error;
    int lost = atomic_load(&double_devices[double_ordinal()].lost);
    if (lost)
        return (cudaError_t)lost;
    if ((traits & DOUBLE_UNSAFE) &&
        (atomic_load(&captures) > 0 || own_captures > 0) &&
        capture_mode != cudaStreamCaptureModeRelaxed)
        return cudaErrorStreamCaptureUnsupported;
    return cudaSuccess;
}

cudaError_t double_leave(cudaError_t error)
{
    if (error)
        last_error = error;
    if (error == cudaErrorContextIsDestroyed)
        double_know_destroyed();
    return error;
}

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

void double_maybe_lose(double_device *device)
{
    if (is_turn(&loss))
        atomic_store(&device->lost, atomic_load(&loss_error));
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
            atomic_load(&pinned[i].torn))
            continue;
        char *copy = malloc(bytes);
        if (!copy)
            abort();
        atomic_store(&pinned[i].torn, memcpy(copy, (void *)base, bytes));
    }
}

static void tear_pages_of_a_fork(void)
{
    char line[512];
    unsigned long begin = 0, end = 0;
    FILE *maps =
        atomic_load(&pinned_bytes) ? fopen("/proc/self/smaps", "re") : NULL;
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
    if (pthread_atfork(NULL, tear_pages_of_a_fork, NULL))
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

const char *cudaGetErrorName(cudaError_t error)
{
    switch (error) {
#define CASE(name, code, text)                                                 \
    case cuda##name:                                                           \
        return "cuda" #name;
        CUDA_DOUBLE_ERROR_MAP(CASE)
#undef CASE
    }
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
    switch (error) {
#define CASE(name, code, text)                                                 \
    case cuda##name:                                                           \
        return text;
        CUDA_DOUBLE_ERROR_MAP(CASE)
#undef CASE
    }
    return "unrecognized error code";
}

cudaError_t cudaPeekAtLastError(void)
{
    return last_error;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = atomic_load(&driver);
    return double_enter(__func__, &(cuda_double_call){0}, DOUBLE_ALWAYS);
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return double_enter(__func__, &(cuda_double_call){0}, DOUBLE_ALWAYS);
}

cudaError_t cudaGetDeviceCount(int *count)
{
    cudaError_t error =
        double_enter(__func__, &(cuda_double_call){0}, DOUBLE_NO_CONTEXT);
    int visible[CUDA_DOUBLE_DEVICES];
    *count = error ? 0 : list_visible(visible);
    return double_leave(error);
}

cudaError_t cudaGetDevice(int *device)
{
    *device = double_ordinal();
    return double_enter(__func__, &(cuda_double_call){0}, DOUBLE_ALWAYS);
}

cudaError_t cudaSetDevice(int device)
{
    log_call(__func__, &(cuda_double_call){.flags = (unsigned int)device});
    cudaError_t error = machine_error();
    if (!error && (device < 0 || device >= atomic_load(&ndevices)))
        error = cudaErrorInvalidDevice;
    if (error)
        return double_leave(error);
    error = double_context_set(device);
    if (!error && is_faulty(__func__))
        error = (cudaError_t)atomic_load(&fault_error);
    return double_leave(error);
}

static int attribute_of_device(enum cudaDeviceAttr attribute)
{
    switch (attribute) {
    case cudaDevAttrHostRegisterSupported:
        return atomic_load(&registers);
    case cudaDevAttrL2CacheSize:
        return (int)atomic_load(&l2_size);
    default:
        return 9;
    }
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute,
                                   int device)
{
    (void)device;
    cudaError_t error =
        double_enter(__func__, &(cuda_double_call){0}, DOUBLE_NO_CONTEXT);
    if (!error)
        *value = attribute_of_device(attribute);
    return double_leave(error);
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int size, int device)
{
    cudaError_t error =
        double_enter(__func__, &(cuda_double_call){0}, DOUBLE_NO_CONTEXT);
    int visible[CUDA_DOUBLE_DEVICES];
    if (!error && device >= list_visible(visible))
        error = cudaErrorInvalidDevice;
    if (!error)
        snprintf(id, (size_t)size, "FFFF:%02X:00.0", visible[device]);
    return double_leave(error);
}

cudaError_t
cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    enum cudaStreamCaptureMode before = capture_mode;
    cudaError_t error =
        double_enter(__func__, &(cuda_double_call){0}, DOUBLE_ALWAYS);
    if (!error)
        error = double_context_ensure();
    if (error)
        return double_leave(error);
    capture_mode = *mode;
    *mode = before;
    return cudaSuccess;
}

void cuda_double_set_capturing(cudaStream_t stream, int capturing)
{
    struct CUstream_st *self = double_stream_of(stream);
    int change = capturing - atomic_exchange(&self->capturing, capturing);
    atomic_fetch_add(&captures, change);
    if (!(self->flags & cudaStreamNonBlocking))
        atomic_fetch_add(&blocking_captures, change);
}

void double_note_capture(struct CUstream_st *stream,
                         enum cudaStreamCaptureMode mode, int change)
{
    atomic_store(&stream->capturing, change > 0);
    if (mode == cudaStreamCaptureModeGlobal)
        atomic_fetch_add(&captures, change);
    if (mode != cudaStreamCaptureModeRelaxed)
        own_captures += change;
    if (!(stream->flags & cudaStreamNonBlocking))
        atomic_fetch_add(&blocking_captures, change);
}

int cuda_double_captured(void)
{
    return atomic_load(&captured_calls);
}

int double_is_captured_implicitly(cudaStream_t stream)
{
    return (!stream || stream == cudaStreamLegacy) &&
           atomic_load(&blocking_captures) > 0;
}

void cuda_double_set_devices(int n)
{
    atomic_store(&ndevices, n);
}

void cuda_double_set_driver(int version)
{
    atomic_store(&driver, version);
}

int cuda_double_driver(void)
{
    return atomic_load(&driver);
}

void cuda_double_set_memory(size_t bytes)
{
    atomic_store(&memory_size, bytes);
}

void cuda_double_set_l2(size_t bytes)
{
    atomic_store(&l2_size, bytes);
}

void cuda_double_set_pinnable(size_t bytes)
{
    atomic_store(&pinnable, bytes);
}

void cuda_double_set_registers(int value)
{
    atomic_store(&registers, value);
}

void cuda_double_set_bus(double gb_per_s, double latency_us)
{
    atomic_store(&double_bus_bandwidth, gb_per_s);
    atomic_store(&double_bus_latency, (int64_t)(latency_us * 1e3));
}

void cuda_double_set_call(double us)
{
    atomic_store(&double_call_cost, (int64_t)(us * 1e3));
}

void cuda_double_set_memory_bus(double gb_per_s)
{
    atomic_store(&double_memory_bandwidth, gb_per_s);
}

void cuda_double_set_query(double us)
{
    atomic_store(&double_query_cost, (int64_t)(us * 1e3));
}

void cuda_double_set_wake(double us)
{
    atomic_store(&double_wake_cost, (int64_t)(us * 1e3));
}

void cuda_double_set_computes(int computes)
{
    atomic_store(&double_computes, computes);
}

void cuda_double_set_one_engine(int one_engine)
{
    atomic_store(&double_one_engine, one_engine);
}

void cuda_double_set_eager(int eager)
{
    atomic_store(&double_eager, eager);
}

void cuda_double_set_blocking(int value)
{
    atomic_store(&blocking, value);
}

void cuda_double_set_launch_blocking(int value)
{
    atomic_store(&double_launch_blocking, value);
}

void cuda_double_set_mutant(cuda_double_mutant mutant)
{
    atomic_store(&double_mutant, (int)mutant);
}

void cuda_double_set_next(cudaStream_t stream)
{
    atomic_store(&double_next, stream);
}

static void set_fault(int kind, const char *name, int64_t n, cudaError_t error)
{
    atomic_store(&fault, -1);
    atomic_store(&failed, NULL);
    atomic_store(&fault_kind, kind);
    atomic_store(&fault_name, name);
    atomic_store(&fault_error, (int)error);
    atomic_store(&fault, n);
}

void cuda_double_fail_at(int64_t n, cudaError_t error)
{
    set_fault(FAULT_OF_CALL, NULL, n, error);
}

void cuda_double_fail_named(const char *name, int64_t n, cudaError_t error)
{
    set_fault(FAULT_OF_CALL, name, n, error);
}

void cuda_double_lose_at_call(int64_t n, cudaError_t error)
{
    set_fault(FAULT_OF_DEVICE, NULL, n, error);
}

void cuda_double_destroy_at_call(int64_t n)
{
    set_fault(FAULT_OF_CONTEXT, NULL, n, cudaSuccess);
}

const char *cuda_double_failed(void)
{
    return atomic_load(&failed);
}

void cuda_double_lose(int device, cudaError_t error)
{
    atomic_store(&double_devices[device].lost, (int)error);
}

void cuda_double_lose_at(int64_t n, cudaError_t error)
{
    atomic_store(&loss_error, (int)error);
    atomic_store(&loss, n);
}

void cuda_double_reset(void)
{
    cuda_double_set_devices(2);
    cuda_double_set_driver(CUDART_VERSION);
    cuda_double_set_memory((size_t)1 << 30);
    cuda_double_set_l2(0);
    cuda_double_set_pinnable(SIZE_MAX);
    cuda_double_set_registers(1);
    cuda_double_set_bus(0, 0);
    cuda_double_set_call(0);
    cuda_double_set_memory_bus(0);
    cuda_double_set_query(0);
    cuda_double_set_wake(0);
    cuda_double_set_computes(1);
    cuda_double_set_one_engine(0);
    cuda_double_set_eager(0);
    cuda_double_set_blocking(0);
    cuda_double_set_launch_blocking(0);
    cuda_double_set_mutant(CUDA_DOUBLE_FAITHFUL);
    cuda_double_fail_at(-1, cudaSuccess);
    cuda_double_lose_at(-1, cudaSuccess);
    for (int i = 0; i < CUDA_DOUBLE_DEVICES; i++) {
        atomic_store(&double_devices[i].lost, 0);
        cuda_double_set_taken(i, 0);
        for (int bus = 0; bus < 3; bus++)
            atomic_store(&double_devices[i].bus_free[bus], 0);
    }
    atomic_store(&double_busy, 0);
    double_host_time = 0;
    atomic_store(&double_latest, 0);
    last_error = cudaSuccess;
    atomic_store(&ncalls, 0);
    atomic_store(&forgotten, 0);
}

const cuda_double_call *cuda_double_calls(int *n)
{
    int made = atomic_load(&ncalls);
    if (made > CALLS)
        abort();
    *n = made - atomic_load(&forgotten);
    return calls + made - *n;
}

void cuda_double_forget(void)
{
    /* Others may be writing theirs: no place is used again. */
    atomic_store(&forgotten, atomic_load(&ncalls));
}

cuda_double_living cuda_double_count(void)
{
    int64_t device_bytes = 0;
    for (int i = 0; i < CUDA_DOUBLE_DEVICES; i++)
        device_bytes += (int64_t)atomic_load(&double_devices[i].live);
    return (cuda_double_living){
        .streams = atomic_load(&double_streams),
        .events = atomic_load(&double_events),
        .device_bytes = device_bytes,
        .pinned_bytes = (int64_t)atomic_load(&pinned_bytes),
        .destroyed_busy = atomic_load(&double_busy),
    };
}
