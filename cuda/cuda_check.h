/*
 * cuda_check.h: a visit to the CUDA runtime, which leaves no traces in the
 * calling thread but leat's error line.
 */
#ifndef LEAT_CUDA_CUDA_CHECK_H
#define LEAT_CUDA_CUDA_CHECK_H

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <leat/ext/device.h>
#include <stdatomic.h>
#include <stdbool.h>

/* A device of this type. */
typedef struct leat__cuda_device {
    leat_device device;
    int ordinal;
    CUcontext context;             /* the primary one, retained for good */
    unsigned long long context_id; /* of it; 0: the driver has none */
    atomic_bool is_gone;           /* it was destroyed; stays so */
    int node;      /* of NUMA, nearest to the device; below 0: unknown */
    int registers; /* the system's pages can be pinned */
} leat__cuda_device;

/* The state of the thread that the visit restores. */
typedef struct leat__cuda_visit {
    leat__cuda_device *device;
    bool is_pushed;  /* the device's context, above the thread's own */
    bool is_relaxed; /* `mode` was exchanged */
    enum cudaStreamCaptureMode mode;
} leat__cuda_visit;

/*
 * Makes the device's primary context the thread's current one, and lets the
 * thread do what is unsafe for captures of its own while another thread
 * captures: leat takes part in none. A thread of leat's that has no context
 * keeps this one.
 */
cudaError_t leat__cuda_enter(leat_device *device, leat__cuda_visit *visit);

/*
 * The same for calls that no capture forbids, such as recording an event on a
 * stream that is not captured: the thread's capture mode stays as it is.
 */
cudaError_t leat__cuda_enter_plainly(leat_device *device,
                                     leat__cuda_visit *visit);

/*
 * Reads the context's id, by which enter knows it. The driver makes a context
 * that was destroyed anew under its old handle.
 */
cudaError_t leat__cuda_identify(leat__cuda_device *cuda);

/*
 * Whether `error`, of enter or of a call, says that the device's context is
 * destroyed, as by cudaDeviceReset. What was made in it is gone with it.
 */
static inline bool leat__cuda_is_gone(cudaError_t error)
{
    return error == cudaErrorContextIsDestroyed ||
           error == cudaErrorDeviceUninitialized;
}

/*
 * Whether something is freed although enter, or a call, gave `error`: it is,
 * unless the context is gone, whose handles must not be used, or the process
 * exits and the runtime is unloaded.
 */
static inline bool leat__cuda_can_free(cudaError_t error)
{
    return error != cudaErrorCudartUnloading && !leat__cuda_is_gone(error);
}

/*
 * Restores what was, the thread's last CUDA error included, and makes a
 * status of `error`: "cuda:0: <what>: <CUDA's words>".
 */
int leat__cuda_leave(const leat__cuda_visit *visit, cudaError_t error,
                     const char *what);

/* The same status and line, if no state has to be restored. */
int leat__cuda_error(int ordinal, cudaError_t error, const char *what);

#endif
