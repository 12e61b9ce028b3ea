/*
 * Compiled against NVIDIA's header where there is one, and against the double's
 * own: both must have these values and signatures.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stddef.h>

#define IS(name, value)                                                        \
    _Static_assert((long)(name) == (value), #name " is " #value)

IS(cudaSuccess, 0);
IS(cudaErrorInvalidValue, 1);
IS(cudaErrorMemoryAllocation, 2);
IS(cudaErrorCudartUnloading, 4);
IS(cudaErrorInsufficientDriver, 35);
IS(cudaErrorDevicesUnavailable, 46);
IS(cudaErrorNoDevice, 100);
IS(cudaErrorInvalidDevice, 101);
IS(cudaErrorDeviceUninitialized, 201);
IS(cudaErrorNoKernelImageForDevice, 209);
IS(cudaErrorECCUncorrectable, 214);
IS(cudaErrorInvalidResourceHandle, 400);
IS(cudaErrorIllegalState, 401);
IS(cudaErrorNotReady, 600);
IS(cudaErrorContextIsDestroyed, 709);
IS(cudaErrorHostMemoryNotRegistered, 713);
IS(cudaErrorLaunchFailure, 719);
IS(cudaErrorOperatingSystem, 304);
IS(cudaErrorNotPermitted, 800);
IS(cudaErrorNotSupported, 801);
IS(cudaErrorStreamCaptureUnsupported, 900);
IS(cudaErrorStreamCaptureInvalidated, 901);
IS(cudaErrorStreamCaptureIsolation, 905);
IS(cudaErrorStreamCaptureImplicit, 906);
IS(cudaErrorUnknown, 999);
IS(cudaMemcpyHostToHost, 0);
IS(cudaMemcpyHostToDevice, 1);
IS(cudaMemcpyDeviceToHost, 2);
IS(cudaMemcpyDeviceToDevice, 3);
IS(cudaMemcpyDefault, 4);
IS(cudaStreamCaptureStatusNone, 0);
IS(cudaStreamCaptureStatusActive, 1);
IS(cudaStreamCaptureStatusInvalidated, 2);
IS(cudaStreamCaptureModeGlobal, 0);
IS(cudaStreamCaptureModeThreadLocal, 1);
IS(cudaStreamCaptureModeRelaxed, 2);
IS(cudaDevAttrL2CacheSize, 38);
IS(cudaDevAttrComputeCapabilityMajor, 75);
IS(cudaDevAttrComputeCapabilityMinor, 76);
IS(cudaDevAttrHostRegisterSupported, 99);
IS(cudaStreamNonBlocking, 1);
IS(cudaEventDefault, 0);
IS(cudaEventBlockingSync, 1);
IS(cudaEventDisableTiming, 2);
IS(cudaHostAllocPortable, 1);
IS(cudaHostRegisterPortable, 1);
IS(cudaEnableLegacyStream, 1);
IS(cudaDriverEntryPointSuccess, 0);
IS(cudaDriverEntryPointSymbolNotFound, 1);
IS(CUDA_SUCCESS, 0);
IS(CUDA_ERROR_INVALID_VALUE, cudaErrorInvalidValue);
IS(CUDA_ERROR_DEINITIALIZED, cudaErrorCudartUnloading);
IS(CUDA_ERROR_INVALID_DEVICE, cudaErrorInvalidDevice);
IS(CUDA_ERROR_INVALID_CONTEXT, 201);
IS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cudaErrorContextIsDestroyed);
IS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cudaErrorStreamCaptureUnsupported);
IS(cudaHostRegisterMapped, 2);

/* Each is assigned to what the double says it is. */
typedef struct signatures {
    const char *(*get_error_name)(cudaError_t);
    const char *(*get_error_string)(cudaError_t);
    cudaError_t (*get_last_error)(void);
    cudaError_t (*peek_at_last_error)(void);
    cudaError_t (*driver_get_version)(int *);
    cudaError_t (*runtime_get_version)(int *);
    cudaError_t (*get_device_count)(int *);
    cudaError_t (*get_device)(int *);
    cudaError_t (*set_device)(int);
    cudaError_t (*device_synchronize)(void);
    cudaError_t (*device_get_attribute)(int *, enum cudaDeviceAttr, int);
    cudaError_t (*device_get_pci_bus_id)(char *, int, int);
    cudaError_t (*host_alloc)(void **, size_t, unsigned int);
    cudaError_t (*free_host)(void *);
    cudaError_t (*host_register)(void *, size_t, unsigned int);
    cudaError_t (*host_unregister)(void *);
    cudaError_t (*host_get_device_pointer)(void **, void *, unsigned int);
    cudaError_t (*malloc)(void **, size_t);
    cudaError_t (*free)(void *);
    cudaError_t (*memcpy_async)(void *, const void *, size_t,
                                enum cudaMemcpyKind, cudaStream_t);
    cudaError_t (*memset)(void *, int, size_t);
    cudaError_t (*memset_async)(void *, int, size_t, cudaStream_t);
    cudaError_t (*stream_create)(cudaStream_t *, unsigned int);
    cudaError_t (*stream_create_with_priority)(cudaStream_t *, unsigned int,
                                               int);
    cudaError_t (*get_stream_priority_range)(int *, int *);
    cudaError_t (*stream_destroy)(cudaStream_t);
    cudaError_t (*stream_synchronize)(cudaStream_t);
    cudaError_t (*stream_wait_event)(cudaStream_t, cudaEvent_t, unsigned int);
    cudaError_t (*stream_is_capturing)(cudaStream_t,
                                       enum cudaStreamCaptureStatus *);
    cudaError_t (*exchange_mode)(enum cudaStreamCaptureMode *);
    cudaError_t (*begin_capture)(cudaStream_t, enum cudaStreamCaptureMode);
    cudaError_t (*end_capture)(cudaStream_t, cudaGraph_t *);
    cudaError_t (*graph_instantiate)(cudaGraphExec_t *, cudaGraph_t,
                                     unsigned long long);
    cudaError_t (*graph_launch)(cudaGraphExec_t, cudaStream_t);
    cudaError_t (*graph_exec_destroy)(cudaGraphExec_t);
    cudaError_t (*graph_destroy)(cudaGraph_t);
    cudaError_t (*event_create)(cudaEvent_t *, unsigned int);
    cudaError_t (*event_destroy)(cudaEvent_t);
    cudaError_t (*event_record)(cudaEvent_t, cudaStream_t);
    cudaError_t (*event_synchronize)(cudaEvent_t);
    cudaError_t (*event_query)(cudaEvent_t);
    cudaError_t (*event_elapsed_time)(float *, cudaEvent_t, cudaEvent_t);
#if CUDART_VERSION >= 12050
    cudaError_t (*get_driver_entry_point)(
        const char *, void **, unsigned int, unsigned long long,
        enum cudaDriverEntryPointQueryResult *);
#endif
    CUresult (*device_get)(CUdevice *, int);
    CUresult (*primary_retain)(CUcontext *, CUdevice);
    CUresult (*primary_release)(CUdevice);
    CUresult (*get_current)(CUcontext *);
    CUresult (*set_current)(CUcontext);
    CUresult (*push_current)(CUcontext);
    CUresult (*pop_current)(CUcontext *);
    CUresult (*context_device)(CUdevice *);
    CUresult (*stream_context)(CUstream, CUcontext *);
#if CUDART_VERSION >= 12000
    CUresult (*context_id)(CUcontext, unsigned long long *);
#endif
#if CUDART_VERSION >= 12050
    CUresult (*stream_contexts)(CUstream, CUcontext *, CUgreenCtx *);
#endif
} signatures;

const signatures runtime_signatures = {
    cudaGetErrorName,
    cudaGetErrorString,
    cudaGetLastError,
    cudaPeekAtLastError,
    cudaDriverGetVersion,
    cudaRuntimeGetVersion,
    cudaGetDeviceCount,
    cudaGetDevice,
    cudaSetDevice,
    cudaDeviceSynchronize,
    cudaDeviceGetAttribute,
    cudaDeviceGetPCIBusId,
    cudaHostAlloc,
    cudaFreeHost,
    cudaHostRegister,
    cudaHostUnregister,
    cudaHostGetDevicePointer,
    cudaMalloc,
    cudaFree,
    cudaMemcpyAsync,
    cudaMemset,
    cudaMemsetAsync,
    cudaStreamCreateWithFlags,
    cudaStreamCreateWithPriority,
    cudaDeviceGetStreamPriorityRange,
    cudaStreamDestroy,
    cudaStreamSynchronize,
    cudaStreamWaitEvent,
    cudaStreamIsCapturing,
    cudaThreadExchangeStreamCaptureMode,
    cudaStreamBeginCapture,
    cudaStreamEndCapture,
    cudaGraphInstantiateWithFlags,
    cudaGraphLaunch,
    cudaGraphExecDestroy,
    cudaGraphDestroy,
    cudaEventCreateWithFlags,
    cudaEventDestroy,
    cudaEventRecord,
    cudaEventSynchronize,
    cudaEventQuery,
    cudaEventElapsedTime,
#if CUDART_VERSION >= 12050
    cudaGetDriverEntryPointByVersion,
#endif
    cuDeviceGet,
    cuDevicePrimaryCtxRetain,
    cuDevicePrimaryCtxRelease,
    cuCtxGetCurrent,
    cuCtxSetCurrent,
    cuCtxPushCurrent,
    cuCtxPopCurrent,
    cuCtxGetDevice,
    cuStreamGetCtx,
#if CUDART_VERSION >= 12000
    cuCtxGetId,
#endif
#if CUDART_VERSION >= 12050
    cuStreamGetCtx_v2,
#endif
};
