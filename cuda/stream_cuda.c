#include "stream_cuda.h"
#include "base/error.h"
#include "cuda_check.h"
#include "driver_cuda.h"

int leat__cuda_stream_create(leat_device *device, leat_stream *out)
{
    leat__cuda_visit visit;
    cudaStream_t stream = NULL;
    cudaError_t error = leat__cuda_enter(device, &visit);
    if (error == cudaSuccess)
        error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    int status = leat__cuda_leave(&visit, error, "making a stream");
    if (!status)
        *out = (leat_stream)stream;
    else if (stream)
        (void)cudaStreamDestroy(stream);
    return status;
}

int leat__cuda_stream_create_high_priority(leat_device *device,
                                           leat_stream *out)
{
    leat__cuda_visit visit;
    cudaStream_t stream = NULL;
    int highest = 0;
    cudaError_t error = leat__cuda_enter(device, &visit);
    if (error == cudaSuccess)
        error = cudaDeviceGetStreamPriorityRange(NULL, &highest);
    if (error == cudaSuccess)
        error = cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                             highest);
    int status = leat__cuda_leave(&visit, error, "making a stream");
    if (!status)
        *out = (leat_stream)stream;
    else if (stream)
        (void)cudaStreamDestroy(stream);
    return status;
}

void leat__cuda_stream_destroy(leat_device *device, leat_stream stream)
{
    leat__cuda_visit visit;
    cudaError_t entered = leat__cuda_enter(device, &visit);
    cudaError_t error = entered;
    if (leat__cuda_can_free(entered))
        error = cudaStreamDestroy((cudaStream_t)stream);
    error = entered ? entered : error;
    (void)leat__cuda_leave(&visit, error, "letting go of a stream");
}

int leat__cuda_stream_synchronize(leat_device *device, leat_stream stream)
{
    leat__cuda_visit visit;
    cudaError_t error = leat__cuda_enter(device, &visit);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize((cudaStream_t)stream);
    return leat__cuda_leave(&visit, error, "waiting for a stream");
}

/*
 * The default stream cannot be asked while one that it waits for is captured,
 * and what is enqueued on it would spoil that. Other errors count as no: the
 * next call on the stream reports them.
 */
int leat__cuda_stream_is_capturing(leat_device *device, leat_stream stream)
{
    enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    leat__cuda_visit visit;
    cudaError_t error = leat__cuda_enter_plainly(device, &visit);
    if (error == cudaSuccess)
        error = cudaStreamIsCapturing((cudaStream_t)stream, &capture);
    (void)leat__cuda_leave(&visit, error, "looking at a stream");
    return error == cudaErrorStreamCaptureImplicit ||
           (error == cudaSuccess && capture != cudaStreamCaptureStatusNone);
}

/* The context of a stream, or the primary one that its green context is of. */
static CUresult find_context(CUstream stream, CUcontext *out)
{
    const leat__cuda_driver *driver = &leat__cuda_driver_api;
    void *green;
    return driver->stream_contexts
               ? driver->stream_contexts(stream, out, &green)
               : driver->stream_context(stream, out);
}

/* Events are of the device's primary context, and so must be the stream. */
static int refuse_context(const leat__cuda_device *cuda, CUcontext context)
{
    const leat__cuda_driver *driver = &leat__cuda_driver_api;
    CUdevice found = cuda->ordinal;
    CUresult result = driver->push_current(context);
    if (!result) {
        result = driver->context_device(&found);
        (void)driver->pop_current(&context);
    }
    if (result)
        return leat__cuda_error(cuda->ordinal, (cudaError_t)result,
                                "looking at a stream");
    if (found != cuda->ordinal)
        return leat_error(LEAT_EINVAL,
                          "cuda:%d: the stream belongs to cuda:%d; expected "
                          "one of the layer's own device",
                          cuda->ordinal, found);
    return leat_error(LEAT_EINVAL,
                      "cuda:%d: the stream belongs to a context of your own; "
                      "expected one of the device's primary context, which the "
                      "CUDA runtime uses, or of a green context",
                      cuda->ordinal);
}

int leat__cuda_stream_check(leat_device *device, leat_stream stream,
                            int is_kept)
{
    const leat__cuda_device *cuda = (leat__cuda_device *)device;
    cudaStream_t handle = (cudaStream_t)stream;
    CUcontext context = NULL;
    if (handle == cudaStreamPerThread && is_kept)
        return leat_error(LEAT_EINVAL,
                          "cuda:%d: cudaStreamPerThread is another stream in "
                          "each thread, and the batch's end is recorded by a "
                          "later call: give forward a stream of your own, or "
                          "set top_mode to COPY",
                          cuda->ordinal);
    /* Of whatever context is current: the device's, in a visit. */
    if (!handle || handle == cudaStreamLegacy || handle == cudaStreamPerThread)
        return LEAT_OK;
    leat__cuda_visit visit;
    cudaError_t error = leat__cuda_enter_plainly(device, &visit);
    if (error == cudaSuccess)
        error = (cudaError_t)find_context(handle, &context);
    int status = leat__cuda_leave(&visit, error, "looking at a stream");
    if (status || context == cuda->context)
        return status;
    return refuse_context(cuda, context);
}
