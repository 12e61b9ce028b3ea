/* driver_cuda.h: functions of the CUDA driver's API, which the runtime finds.
 */
#ifndef LEAT_CUDA_DRIVER_CUDA_H
#define LEAT_CUDA_DRIVER_CUDA_H

#include <cuda.h>
#include <cuda_runtime_api.h>

/* Each as in cuda.h. */
typedef struct leat__cuda_driver {
    CUresult (*device_get)(CUdevice *out, int ordinal);
    CUresult (*primary_retain)(CUcontext *out, CUdevice device);
    CUresult (*primary_release)(CUdevice device);
    CUresult (*get_current)(CUcontext *out);
    CUresult (*set_current)(CUcontext context);
    CUresult (*push_current)(CUcontext context);
    CUresult (*pop_current)(CUcontext *out);
    CUresult (*context_device)(CUdevice *out);
    CUresult (*stream_context)(CUstream stream, CUcontext *out);
    /* From 12.5 on: of a stream of a green context that one and the primary
       one. NULL: the driver or the toolkit is older. */
    CUresult (*stream_contexts)(CUstream stream, CUcontext *out, void **green);
    /* Of 12.0 and later. NULL: likewise. */
    CUresult (*context_id)(CUcontext context, unsigned long long *out);
} leat__cuda_driver;

/* Written once, before the first device is open. */
extern leat__cuda_driver leat__cuda_driver_api;

/*
 * Looks the functions up. One caller at a time. Errors: LEAT_EDEVICE, naming
 * the function.
 */
int leat__cuda_driver_load(int ordinal);

#endif
