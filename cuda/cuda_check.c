/*
 * The runtime works in the thread's current context, and makes the primary one
 * of GPU 0 where a thread has none: hundreds of megabytes there, or an error
 * where that GPU is another process'. So the context is pushed before the
 * runtime is called, and popped afterwards, which brings back whatever the
 * caller had: none, another device's, or one of the driver's API.
 */
#include "cuda_check.h"
#include "base/error.h"
#include "base/log.h"
#include "base/thread.h"
#include "driver_cuda.h"

#include <stdatomic.h>

/* From then on neither runtime nor driver is called. */
static atomic_bool is_unloaded;

/* Handlers of exit() may run after the runtime's own. */
static int report_unloaded(int ordinal, const char *what)
{
    if (!atomic_exchange(&is_unloaded, true))
        leat__log(LEAT_LOG_WARNING,
                  "cuda:%d: the process exits and CUDA's runtime is unloaded: "
                  "destroy layers and blobs before; nothing is waited for or "
                  "freed on a GPU any more",
                  ordinal);
    return leat_error(LEAT_EDEVICE,
                      "cuda:%d: %s: the process exits and CUDA's runtime is "
                      "unloaded",
                      ordinal, what);
}

/* What to do about it, where CUDA's words do not say. */
static const char *remedy_of(cudaError_t error)
{
    if (error == cudaErrorDevicesUnavailable)
        return ": another process has this GPU for itself (nvidia-smi -q -d "
               "COMPUTE shows its mode)";
    if (leat__cuda_is_gone(error))
        return ": the program reset the GPU (cudaDeviceReset) that leat was "
               "using; only a new process can use it again";
    return "";
}

int leat__cuda_error(int ordinal, cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return LEAT_OK;
    if (error == cudaErrorCudartUnloading)
        return report_unloaded(ordinal, what);
    /* Ours, if a call of the runtime failed: the caller did not see it. */
    if (cudaPeekAtLastError() == error)
        (void)cudaGetLastError();
    return leat_error(
        error == cudaErrorMemoryAllocation ? LEAT_ENOMEM : LEAT_EDEVICE,
        "cuda:%d: %s: %s (%s)%s", ordinal, what, cudaGetErrorString(error),
        cudaGetErrorName(error), remedy_of(error));
}

cudaError_t leat__cuda_identify(leat__cuda_device *cuda)
{
    const leat__cuda_driver *driver = &leat__cuda_driver_api;
    if (!driver->context_id)
        return cudaSuccess;
    return (cudaError_t)driver->context_id(cuda->context, &cuda->context_id);
}

/*
 * What was made in the context is gone with it, though the handle may name
 * another one by now, in which these handles must not be used.
 */
static cudaError_t check_identity(leat__cuda_device *cuda)
{
    unsigned long long id = 0;
    if (!cuda->context_id)
        return cudaSuccess;
    cudaError_t error =
        (cudaError_t)leat__cuda_driver_api.context_id(cuda->context, &id);
    if (!error && id != cuda->context_id)
        error = cudaErrorContextIsDestroyed;
    if (leat__cuda_is_gone(error))
        atomic_store(&cuda->is_gone, true);
    return error;
}

/* The driver's results have the values of the runtime's errors. */
static cudaError_t make_current(leat__cuda_visit *visit)
{
    const leat__cuda_driver *driver = &leat__cuda_driver_api;
    CUcontext wanted = visit->device->context;
    CUcontext current = NULL;
    CUresult result = driver->get_current(&current);
    if (result || current == wanted)
        return (cudaError_t)result;
    if (!current && leat__thread_is_own())
        return (cudaError_t)driver->set_current(wanted);
    result = driver->push_current(wanted);
    visit->is_pushed = result == CUDA_SUCCESS;
    return (cudaError_t)result;
}

static cudaError_t enter_context(leat__cuda_visit *visit)
{
    if (atomic_load_explicit(&is_unloaded, memory_order_relaxed))
        return cudaErrorCudartUnloading;
    if (atomic_load_explicit(&visit->device->is_gone, memory_order_relaxed))
        return cudaErrorContextIsDestroyed;
    cudaError_t error = make_current(visit);
    return error ? error : check_identity(visit->device);
}

cudaError_t leat__cuda_enter_plainly(leat_device *device,
                                     leat__cuda_visit *visit)
{
    *visit = (leat__cuda_visit){
        .device = (leat__cuda_device *)device,
        .mode = cudaStreamCaptureModeRelaxed,
    };
    return enter_context(visit);
}

cudaError_t leat__cuda_enter(leat_device *device, leat__cuda_visit *visit)
{
    cudaError_t error = leat__cuda_enter_plainly(device, visit);
    if (error)
        return error;
    error = cudaThreadExchangeStreamCaptureMode(&visit->mode);
    visit->is_relaxed = error == cudaSuccess;
    return error;
}

/* What was done is done, be it that the thread's state cannot be restored. */
int leat__cuda_leave(const leat__cuda_visit *visit, cudaError_t error,
                     const char *what)
{
    enum cudaStreamCaptureMode mode = visit->mode;
    CUcontext popped;
    if (visit->is_relaxed && cudaThreadExchangeStreamCaptureMode(&mode))
        (void)cudaGetLastError();
    if (visit->is_pushed)
        (void)leat__cuda_driver_api.pop_current(&popped);
    return leat__cuda_error(visit->device->ordinal, error, what);
}
