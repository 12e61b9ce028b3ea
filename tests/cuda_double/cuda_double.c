/* The machine that the double plays: devices, what each call does first, the
 * log. */
#include "base/thread.h"
#include "cuda_double/cuda_double_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* LEAT_DOUBLE_CORES: as if the machine had so many, or else two; with four and
   more a layer has a thread that uploads. */
__attribute__((constructor)) static void count_cores(void)
{
    const char *cores = getenv("LEAT_DOUBLE_CORES");
    leat__thread_pretend_cores(cores ? atoi(cores) : 2);
}

#define CALLS (1 << 17)

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
static atomic_size_t l2_size;
static atomic_int captures; /* global ones, which concern all threads */
static atomic_int captured_calls;
static atomic_int blocking_captures; /* for these the default stream waits */

static atomic_int nthreads;
static _Thread_local int thread_number = -1;
static cuda_double_call calls[CALLS];
static atomic_int ncalls;
static atomic_int forgotten; /* of them, the first so many */

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
    if (call->stream && double_is_stream(call->stream)) {
        double_check_alive(call->stream->context, &call->stream->is_gone);
        double_check_undestroyed(call->stream, name);
    }
    if (call->event)
        double_check_alive(call->event->context, &call->event->is_gone);
    if (double_is_faulty(name))
        return double_fault();
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
    if (!error && double_is_faulty(__func__))
        error = double_fault();
    return double_leave(error);
}

static int attribute_of_device(enum cudaDeviceAttr attribute)
{
    switch (attribute) {
    case cudaDevAttrHostRegisterSupported:
        return double_registers();
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

void cuda_double_set_l2(size_t bytes)
{
    atomic_store(&l2_size, bytes);
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
        .pinned_bytes = (int64_t)double_pinned_bytes(),
        .destroyed_busy = atomic_load(&double_busy),
    };
}
