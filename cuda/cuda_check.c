#include "cuda_check.h"
#include "base/error.h"

int leat__cuda_error(int ordinal, cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return LEAT_OK;
    /* Ours was a call that the caller did not see fail. */
    (void)cudaGetLastError();
    return leat_error(error == cudaErrorMemoryAllocation ? LEAT_ENOMEM
                                                         : LEAT_EDEVICE,
                      "cuda:%d: %s: %s (%s)", ordinal, what,
                      cudaGetErrorString(error), cudaGetErrorName(error));
}

cudaError_t leat__cuda_enter(leat_device *device, leat__cuda_visit *visit)
{
    visit->device = (const leat__cuda_device *)device;
    visit->mode = cudaStreamCaptureModeRelaxed;
    cudaError_t error = cudaGetDevice(&visit->before);
    if (error)
        visit->before = visit->device->ordinal;
    cudaError_t exchanged = cudaThreadExchangeStreamCaptureMode(&visit->mode);
    if (exchanged)
        visit->mode = cudaStreamCaptureModeGlobal;
    if (visit->before != visit->device->ordinal)
        error = cudaSetDevice(visit->device->ordinal);
    return error ? error : exchanged;
}

int leat__cuda_leave(const leat__cuda_visit *visit, cudaError_t error,
                     const char *what)
{
    int ordinal = visit->device->ordinal;
    enum cudaStreamCaptureMode mode = visit->mode;
    cudaError_t restored = cudaThreadExchangeStreamCaptureMode(&mode);
    if (visit->before != ordinal) {
        cudaError_t set = cudaSetDevice(visit->before);
        restored = restored ? restored : set;
    }
    return leat__cuda_error(ordinal, error ? error : restored, what);
}
