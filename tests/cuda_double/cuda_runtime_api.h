/*
 * cuda_runtime_api.h: as much of the CUDA runtime's interface as leat uses, in
 * C, for the test double. Names, values and signatures are the runtime's;
 * runtime_agreement.c holds them against NVIDIA's header where there is one.
 */
#ifndef LEAT_TESTS_CUDA_RUNTIME_API_H
#define LEAT_TESTS_CUDA_RUNTIME_API_H

#include <stddef.h>

/* The double plays this version of the runtime. */
#define CUDART_VERSION 13000

/* Each error: its name, value and text. */
#define CUDA_DOUBLE_ERROR_MAP(X)                                               \
    X(Success, 0, "no error")                                                  \
    X(ErrorInvalidValue, 1, "invalid argument")                                \
    X(ErrorMemoryAllocation, 2, "out of memory")                               \
    X(ErrorCudartUnloading, 4, "driver shutting down")                         \
    X(ErrorInvalidConfiguration, 9, "invalid configuration argument")          \
    X(ErrorInsufficientDriver, 35,                                             \
      "CUDA driver version is insufficient for CUDA runtime version")          \
    X(ErrorDevicesUnavailable, 46,                                             \
      "CUDA-capable device(s) is/are busy or unavailable")                     \
    X(ErrorNoDevice, 100, "no CUDA-capable device is detected")                \
    X(ErrorInvalidDevice, 101, "invalid device ordinal")                       \
    X(ErrorDeviceUninitialized, 201, "invalid device context")                 \
    X(ErrorNoKernelImageForDevice, 209,                                        \
      "no kernel image is available for execution on the device")              \
    X(ErrorECCUncorrectable, 214, "uncorrectable ECC error encountered")       \
    X(ErrorOperatingSystem, 304,                                               \
      "OS call failed or operation not supported on this OS")                  \
    X(ErrorInvalidResourceHandle, 400, "invalid resource handle")              \
    X(ErrorIllegalState, 401,                                                  \
      "the operation cannot be performed in the present state")                \
    X(ErrorNotReady, 600, "device not ready")                                  \
    X(ErrorIllegalAddress, 700, "an illegal memory access was encountered")    \
    X(ErrorContextIsDestroyed, 709, "context is destroyed")                    \
    X(ErrorHostMemoryNotRegistered, 713,                                       \
      "pointer does not correspond to a registered memory region")             \
    X(ErrorLaunchFailure, 719, "unspecified launch failure")                   \
    X(ErrorNotPermitted, 800, "operation not permitted")                       \
    X(ErrorNotSupported, 801, "operation not supported")                       \
    X(ErrorStreamCaptureUnsupported, 900,                                      \
      "operation not permitted when stream is capturing")                      \
    X(ErrorStreamCaptureInvalidated, 901,                                      \
      "operation failed due to a previous error during capture")               \
    X(ErrorStreamCaptureIsolation, 905,                                        \
      "dependency created on uncaptured work in another stream")               \
    X(ErrorStreamCaptureImplicit, 906,                                         \
      "operation would make the legacy stream depend on a capturing blocking " \
      "stream")                                                                \
    X(ErrorUnknown, 999, "unknown error")

enum cudaError {
#define CUDA_DOUBLE_ERROR_CODE(name, code, text) cuda##name = code,
    CUDA_DOUBLE_ERROR_MAP(CUDA_DOUBLE_ERROR_CODE)
#undef CUDA_DOUBLE_ERROR_CODE
};
typedef enum cudaError cudaError_t;

enum cudaMemcpyKind {
    cudaMemcpyHostToHost = 0,
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3,
    cudaMemcpyDefault = 4
};

enum cudaStreamCaptureStatus {
    cudaStreamCaptureStatusNone = 0,
    cudaStreamCaptureStatusActive = 1,
    cudaStreamCaptureStatusInvalidated = 2
};

enum cudaStreamCaptureMode {
    cudaStreamCaptureModeGlobal = 0,
    cudaStreamCaptureModeThreadLocal = 1,
    cudaStreamCaptureModeRelaxed = 2
};

enum cudaDeviceAttr {
    cudaDevAttrL2CacheSize = 38,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76,
    cudaDevAttrHostRegisterSupported = 99
};

enum cudaDriverEntryPointQueryResult {
    cudaDriverEntryPointSuccess = 0,
    cudaDriverEntryPointSymbolNotFound = 1,
    cudaDriverEntryPointVersionNotSufficent = 2 /* so spelled */
};

#define cudaEnableLegacyStream 0x01
#define cudaStreamNonBlocking 0x01
#define cudaEventDefault 0x00
#define cudaEventBlockingSync 0x01
#define cudaEventDisableTiming 0x02
#define cudaHostAllocPortable 0x01
#define cudaHostRegisterPortable 0x01
#define cudaHostRegisterMapped 0x02
#define cudaStreamLegacy ((cudaStream_t)0x1)
#define cudaStreamPerThread ((cudaStream_t)0x2)

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;

const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);

cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute,
                                   int device);
cudaError_t cudaDeviceGetPCIBusId(char *id, int size, int device);
cudaError_t
cudaGetDriverEntryPointByVersion(const char *name, void **function,
                                 unsigned int version, unsigned long long flags,
                                 enum cudaDriverEntryPointQueryResult *found);

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned int flags);
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned int flags);
cudaError_t cudaHostUnregister(void *memory);
cudaError_t cudaHostGetDevicePointer(void **device, void *memory,
                                     unsigned int flags);
cudaError_t cudaMalloc(void **memory, size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                            enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemset(void *memory, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes,
                            cudaStream_t stream);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream,
                                         unsigned int flags, int priority);
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned int flags);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                  enum cudaStreamCaptureStatus *status);
cudaError_t
cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode);

cudaError_t cudaStreamBeginCapture(cudaStream_t stream,
                                   enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec,
                                          cudaGraph_t graph,
                                          unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start,
                                 cudaEvent_t end);

#endif
