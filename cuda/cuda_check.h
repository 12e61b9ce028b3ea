/*
 * cuda_check.h: a visit to the CUDA runtime, which leaves no traces in the
 * calling thread but leat's error line.
 */
#ifndef LEAT_CUDA_CUDA_CHECK_H
#define LEAT_CUDA_CUDA_CHECK_H

#include <cuda_runtime_api.h>
#include <leat/ext/device.h>

/* A device of this type. */
typedef struct leat__cuda_device {
    leat_device device;
    int ordinal;
    int node;      /* of NUMA, that the device is next to; below 0: unknown */
    int registers; /* the system's pages can be pinned */
} leat__cuda_device;

/* What the thread had before. */
typedef struct leat__cuda_visit {
    const leat__cuda_device *device;
    int before;
    enum cudaStreamCaptureMode mode;
} leat__cuda_visit;

/*
 * Makes the device the thread's current one, and lets the thread do what is
 * unsafe for captures of its own while another thread captures: leat takes part
 * in none.
 */
cudaError_t leat__cuda_enter(leat_device *device, leat__cuda_visit *visit);

/*
 * Puts back what was, the thread's last CUDA error included, and makes a
 * status of `error`: "cuda:0: <what>: <CUDA's words>".
 */
int leat__cuda_leave(const leat__cuda_visit *visit, cudaError_t error,
                     const char *what);

/* The same status and line, if no state has to be restored. */
int leat__cuda_error(int ordinal, cudaError_t error, const char *what);

#endif
