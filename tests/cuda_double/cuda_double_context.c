/*
 * DESIGN. A thread has a stack of contexts, the top of which is current. The
 * runtime works in the current one; where there is none it makes the primary
 * context of the device last set, GPU 0 from the start, and leaves it current.
 * A primary context exists while the runtime or a retain of the driver's API
 * keeps it. Contexts live until the process ends, because streams and events
 * name them.
 */
#include "cuda_double/cuda_double_state.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH 16

static _Thread_local struct CUctx_st *stack[DEPTH];
static _Thread_local int depth;
static _Thread_local int chosen; /* the device of a thread without a context */
static atomic_int taken[CUDA_DOUBLE_DEVICES];

static struct CUctx_st *current(void)
{
    return depth > 0 ? stack[depth - 1] : NULL;
}

static int ordinal_of(const struct CUctx_st *context)
{
    return (int)(context->device - double_devices);
}

int double_ordinal(void)
{
    return current() ? ordinal_of(current()) : chosen;
}

/* Makes it exist; the runtime keeps it for good. */
static cudaError_t make_primary(int ordinal, int is_runtimes)
{
    double_device *device = &double_devices[ordinal];
    struct CUctx_st *primary = &device->primary;
    if (atomic_load(&device->lost))
        return (cudaError_t)atomic_load(&device->lost);
    if (atomic_load(&taken[ordinal]) && !atomic_load(&primary->retained))
        return cudaErrorDevicesUnavailable;
    if (!is_runtimes || !atomic_exchange(&primary->is_runtimes, 1))
        atomic_fetch_add(&primary->retained, 1);
    return cudaSuccess;
}

static int is_there(const struct CUctx_st *context)
{
    return atomic_load(&context->retained) > 0;
}

cudaError_t double_context_set(int ordinal)
{
    cudaError_t error = make_primary(ordinal, 1);
    if (error &&
        error != (cudaError_t)atomic_load(&double_devices[ordinal].lost))
        return error;
    chosen = ordinal;
    depth = depth > 0 ? depth : 1;
    stack[depth - 1] = &double_devices[ordinal].primary;
    return error;
}

cudaError_t double_context_ensure(void)
{
    struct CUctx_st *context = current();
    if (!context)
        return double_context_set(chosen);
    return atomic_load(&context->destroyed) ? cudaErrorContextIsDestroyed
                                            : cudaSuccess;
}

/* Its default stream's thread is started by the first who asks. */
static void start(struct CUctx_st *context)
{
    int state = 0;
    if (atomic_compare_exchange_strong(&context->started, &state, 1)) {
        context->by_default.context = context;
        double_stream_start(&context->by_default, context->device);
        atomic_store(&context->started, 2);
    }
    while (atomic_load_explicit(&context->started, memory_order_acquire) != 2)
        sched_yield();
}

struct CUctx_st *double_context(void)
{
    if (!current() && double_context_set(chosen))
        abort();
    start(current());
    return current();
}

double_device *double_here(void)
{
    return double_context()->device;
}

/* At the start: devices know their contexts. */
__attribute__((constructor)) static void make_contexts(void)
{
    for (int i = 0; i < CUDA_DOUBLE_DEVICES; i++) {
        struct CUctx_st *primary = &double_devices[i].primary;
        primary->device = &double_devices[i];
        primary->root = primary;
    }
}

static CUcontext make_context(int device, struct CUctx_st *root)
{
    /* Of those kept on purpose. */
    static struct CUctx_st made[64];
    static atomic_int n;
    int i = atomic_fetch_add(&n, 1);
    if (i == 64)
        abort();
    made[i].device = &double_devices[device];
    made[i].root = root ? root : &made[i];
    atomic_store(&made[i].retained, 1);
    atomic_fetch_add(&double_devices[device].contexts, 1);
    return &made[i];
}

CUcontext cuda_double_context(int device)
{
    return make_context(device, NULL);
}

CUcontext cuda_double_green_context(int device)
{
    if (make_primary(device, 0))
        abort();
    return make_context(device, &double_devices[device].primary);
}

static atomic_int destructions;
static _Thread_local int known; /* of them, by this thread */

static void end_all(struct CUctx_st *context)
{
    double_end_streams(context);
    double_end_events(context);
    double_end_memory(context);
}

void cuda_double_destroy_primary(int device)
{
    struct CUctx_st *context = &double_devices[device].primary;
    if (atomic_load(&context->destroyed))
        return;
    atomic_store(&context->destroyed, atomic_fetch_add(&destructions, 1) + 1);
    end_all(context);
}

void cuda_double_revive_primary(int device)
{
    struct CUctx_st *context = &double_devices[device].primary;
    context->by_default.is_gone = 0;
    atomic_fetch_add(&context->revivals, 1);
    atomic_store(&context->destroyed, 0);
}

cudaError_t double_context_keep(void)
{
    cudaError_t error = double_context_ensure();
    if (error)
        end_all(current());
    return double_leave(error);
}

void double_know_destroyed(void)
{
    known = atomic_load(&destructions);
}

void double_check_alive(const struct CUctx_st *context, const int *is_gone)
{
    int number = atomic_load(&context->destroyed);
    if (number > 0 && number <= known)
        abort();
    if (number == 0 && atomic_load(&context->revivals) > 0 && *is_gone)
        abort();
}

int cuda_double_contexts(int device)
{
    double_device *self = &double_devices[device];
    return is_there(&self->primary) + atomic_load(&self->contexts);
}

void cuda_double_set_taken(int device, int value)
{
    atomic_store(&taken[device], value);
}

static CUresult enter(const char *name)
{
    return (CUresult)double_enter(name, &(cuda_double_call){0},
                                  DOUBLE_NO_CONTEXT);
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    CUresult result = enter(__func__);
    if (!result)
        *device = ordinal;
    return result;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    CUresult result = enter(__func__);
    if (!result)
        result = (CUresult)make_primary(device, 0);
    if (!result)
        *context = &double_devices[device].primary;
    return result;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    CUresult result = enter(__func__);
    atomic_fetch_sub(&double_devices[device].primary.retained, 1);
    return result;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    CUresult result = enter(__func__);
    if (!result)
        *context = current();
    return result;
}

static CUresult check(const struct CUctx_st *context)
{
    return is_there(context) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    CUresult result = enter(__func__);
    if (!result && context)
        result = check(context);
    if (result)
        return result;
    if (!context) {
        depth -= depth > 0;
        return CUDA_SUCCESS;
    }
    depth = depth > 0 ? depth : 1;
    stack[depth - 1] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context)
{
    CUresult result = enter(__func__);
    if (!result)
        result = check(context);
    if (result)
        return result;
    if (depth == DEPTH)
        abort();
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

/* Unlike these, which take a handle for what it once was. */
CUresult cuCtxGetId(CUcontext context, unsigned long long *id)
{
    CUresult result = enter(__func__);
    if (!result && !is_there(context))
        result = CUDA_ERROR_INVALID_CONTEXT;
    if (!result && atomic_load(&context->destroyed)) {
        double_know_destroyed();
        result = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    if (!result)
        *id = (unsigned long long)(uintptr_t)context +
              (unsigned long long)atomic_load(&context->revivals);
    return result;
}

/* An error does not keep the context. */
CUresult cuCtxPopCurrent(CUcontext *context)
{
    CUresult result = enter(__func__);
    if (depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    *context = stack[--depth];
    return result;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    CUresult result = enter(__func__);
    if (!result && !current())
        result = CUDA_ERROR_INVALID_CONTEXT;
    if (!result)
        *device = ordinal_of(current());
    return result;
}

/* Unlike the question whether it is captured, this one ends the capture. */
static CUresult context_of(CUstream stream, CUcontext *context)
{
    if (double_is_stream(stream) && atomic_load(&stream->capturing)) {
        (void)double_capture_spoil(stream);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    *context = double_is_stream(stream) ? stream->context : current();
    return *context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
    CUresult result = enter(__func__);
    return result ? result : context_of(stream, context);
}

CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext *context,
                           CUgreenCtx *green)
{
    CUcontext found;
    CUresult result = enter(__func__);
    if (!result)
        result = context_of(stream, &found);
    if (result)
        return result;
    *context = found->root;
    *green = found == found->root ? NULL : (CUgreenCtx)found;
    return CUDA_SUCCESS;
}

/* Of a name with several versions the newest comes first. */
static const struct {
    const char *name;
    int version;
    void (*function)(void);
} entries[] = {
#define ENTRY(name)                                                            \
    {                                                                          \
#name, 11040, (void (*)(void))name                                     \
    }
    ENTRY(cuDeviceGet),
    ENTRY(cuDevicePrimaryCtxRetain),
    ENTRY(cuDevicePrimaryCtxRelease),
    ENTRY(cuCtxGetCurrent),
    ENTRY(cuCtxSetCurrent),
    ENTRY(cuCtxPushCurrent),
    ENTRY(cuCtxPopCurrent),
    ENTRY(cuCtxGetDevice),
    {"cuCtxGetId", 12000, (void (*)(void))cuCtxGetId},
    {"cuStreamGetCtx", 12050, (void (*)(void))cuStreamGetCtx_v2},
    ENTRY(cuStreamGetCtx),
#undef ENTRY
};

cudaError_t
cudaGetDriverEntryPointByVersion(const char *name, void **function,
                                 unsigned int version, unsigned long long flags,
                                 enum cudaDriverEntryPointQueryResult *found)
{
    cudaError_t error =
        double_enter(__func__, &(cuda_double_call){.flags = (unsigned)flags},
                     DOUBLE_NO_CONTEXT);
    if (!error && (int)version > cuda_double_driver())
        error = cudaErrorInvalidValue;
    if (error)
        return double_leave(error);
    *function = NULL;
    *found = cudaDriverEntryPointSymbolNotFound;
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        if (*function || entries[i].version > (int)version ||
            strcmp(entries[i].name, name) != 0)
            continue;
        memcpy(function, &entries[i].function, sizeof(*function));
        *found = cudaDriverEntryPointSuccess;
    }
    return cudaSuccess;
}
