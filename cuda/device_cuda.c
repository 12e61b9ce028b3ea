/*
 * `cuda:N`: the device table over the CUDA runtime.
 *
 * Handles are the runtime's own, cast, of the device's primary context. Every
 * call is a visit: the thread's current context, capture mode and last error
 * are its caller's, and stay. No
 * call but those that synchronise waits, and none waits for a whole device:
 * streams do not block on the default one. Freeing memory is the exception, see
 * memory_cuda.c.
 */
#include "base/ascii.h"
#include "base/error.h"
#include "base/memory.h"
#include "cuda_check.h"
#include "device/device.h"
#include "driver_cuda.h"
#include "memory_cuda.h"
#include "occupy_cuda.h"
#include "stream_cuda.h"
#include "transform_cuda.h"

#include <stdio.h>
#include <stdlib.h>

#define VISIBLE_MAX 200 /* bytes of it in a line */

static leat__cuda_device *own(leat_device *device)
{
    return (leat__cuda_device *)device;
}

/* What hides devices from the process, or another order: " (...)"; or "". */
static const char *describe_visible(char text[], size_t size)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    text[0] = '\0';
    if (visible)
        snprintf(text, size, " (CUDA_VISIBLE_DEVICES is \"%s\")", visible);
    return text;
}

/* Why the runtime has no devices, and the remedy. */
static int no_devices(int ordinal, cudaError_t error)
{
    char visible[VISIBLE_MAX];
    int driver = 0;
    int runtime = CUDART_VERSION;
    (void)cudaGetLastError();
    (void)cudaDriverGetVersion(&driver);
    (void)cudaRuntimeGetVersion(&runtime);
    if (driver == 0 && error != cudaErrorNoDevice)
        return leat_error(LEAT_EDEVICE,
                          "cuda:%d: there is no NVIDIA driver on this machine "
                          "(no libcuda.so.1); the device \"cpu\" is there",
                          ordinal);
    if (error == cudaErrorInsufficientDriver)
        return leat_error(LEAT_EDEVICE,
                          "cuda:%d: the NVIDIA driver is for CUDA %d.%d, this "
                          "build of leat for %d.%d: a newer driver or a build "
                          "with an older toolkit is needed",
                          ordinal, driver / 1000, driver % 1000 / 10,
                          runtime / 1000, runtime % 1000 / 10);
    if (error == cudaErrorNoDevice)
        return leat_error(LEAT_EDEVICE,
                          "cuda:%d: no NVIDIA GPU is visible here%s; the "
                          "device \"cpu\" is there",
                          ordinal, describe_visible(visible, sizeof(visible)));
    return leat__cuda_error(ordinal, error, "looking for devices");
}

static int check_ordinal(int ordinal)
{
    char visible[VISIBLE_MAX];
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error)
        return no_devices(ordinal, error);
    if (count == 0)
        return no_devices(ordinal, cudaErrorNoDevice);
    if (ordinal >= count)
        return leat_error(LEAT_EINVAL,
                          "there is no device \"cuda:%d\": the GPUs that are "
                          "visible here are cuda:0 to cuda:%d%s",
                          ordinal, count - 1,
                          describe_visible(visible, sizeof(visible)));
    return LEAT_OK;
}

/* Where sysfs has the device: "0000:65:00.0". */
static cudaError_t find_bus_id(int ordinal, char id[], int size)
{
    cudaError_t error = cudaDeviceGetPCIBusId(id, size, ordinal);
    if (error)
        return error;
    for (char *c = id; *c; c++)
        *c = leat__ascii_lower(*c);
    return cudaSuccess;
}

/* The NUMA node of the device from sysfs; below 0: unknown. */
static int find_node(int ordinal)
{
    char id[32];
    char path[96];
    int node = -1;
    if (find_bus_id(ordinal, id, (int)sizeof(id))) {
        (void)cudaGetLastError();
        return -1;
    }
    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/numa_node", id);
    FILE *file = fopen(path, "re");
    if (!file)
        return -1;
    if (fscanf(file, "%d", &node) != 1 || node < 0 ||
        node >= LEAT__CUDA_NODES_MAX)
        node = -1;
    fclose(file);
    return node;
}

static int cuda_copy(leat_device *device, void *to, const void *from,
                     size_t bytes, leat_copy_direction direction,
                     leat_stream stream)
{
    static const struct {
        enum cudaMemcpyKind kind;
        const char *what;
    } ways[] = {
        [LEAT_COPY_TO_DEVICE] = {cudaMemcpyHostToDevice, "copying to it"},
        [LEAT_COPY_TO_HOST] = {cudaMemcpyDeviceToHost, "copying from it"},
        [LEAT_COPY_ON_DEVICE] = {cudaMemcpyDeviceToDevice, "copying on it"},
    };
    if (bytes == 0)
        return LEAT_OK;
    leat__cuda_visit visit;
    cudaError_t error = leat__cuda_enter(device, &visit);
    if (error == cudaSuccess)
        error = cudaMemcpyAsync(to, from, bytes, ways[direction].kind,
                                (cudaStream_t)stream);
    return leat__cuda_leave(&visit, error, ways[direction].what);
}

static int create_event(leat_device *device, unsigned int flags,
                        leat_event *out)
{
    leat__cuda_visit visit;
    cudaEvent_t event = NULL;
    cudaError_t error = leat__cuda_enter(device, &visit);
    if (error == cudaSuccess)
        error = cudaEventCreateWithFlags(&event, flags);
    int status = leat__cuda_leave(&visit, error, "making an event");
    if (!status)
        *out = (leat_event)event;
    else if (event)
        (void)cudaEventDestroy(event);
    return status;
}

/* One that interrupts the host whenever it completes makes the copies of small
   batches a tenth slower in a virtual machine. */
static int cuda_event_create(leat_device *device, leat_event *out)
{
    return create_event(device, cudaEventDisableTiming, out);
}

static int cuda_event_create_sleeping(leat_device *device, leat_event *out)
{
    return create_event(device, cudaEventBlockingSync | cudaEventDisableTiming,
                        out);
}

static int cuda_timer_create(leat_device *device, leat_event *out)
{
    return create_event(device, cudaEventBlockingSync, out);
}

static void cuda_event_destroy(leat_device *device, leat_event event)
{
    leat__cuda_visit visit;
    cudaError_t entered = leat__cuda_enter(device, &visit);
    cudaError_t error = entered;
    if (leat__cuda_can_free(entered))
        error = cudaEventDestroy((cudaEvent_t)event);
    error = entered ? entered : error;
    (void)leat__cuda_leave(&visit, error, "letting go of an event");
}

static int cuda_event_record(leat_device *device, leat_event event,
                             leat_stream stream)
{
    leat__cuda_visit visit;
    cudaError_t error = leat__cuda_enter_plainly(device, &visit);
    if (error == cudaSuccess)
        error = cudaEventRecord((cudaEvent_t)event, (cudaStream_t)stream);
    return leat__cuda_leave(&visit, error, "recording an event");
}

static int cuda_stream_wait(leat_device *device, leat_stream stream,
                            leat_event event)
{
    leat__cuda_visit visit;
    cudaError_t error = leat__cuda_enter_plainly(device, &visit);
    if (error == cudaSuccess)
        error =
            cudaStreamWaitEvent((cudaStream_t)stream, (cudaEvent_t)event, 0);
    return leat__cuda_leave(&visit, error, "making a stream wait");
}

static int cuda_event_synchronize(leat_device *device, leat_event event)
{
    leat__cuda_visit visit;
    cudaError_t error = leat__cuda_enter(device, &visit);
    if (error == cudaSuccess)
        error = cudaEventSynchronize((cudaEvent_t)event);
    return leat__cuda_leave(&visit, error, "waiting for an event");
}

static int cuda_event_query(leat_device *device, leat_event event,
                            int *is_complete)
{
    leat__cuda_visit visit;
    cudaError_t error = leat__cuda_enter(device, &visit);
    if (error == cudaSuccess)
        error = cudaEventQuery((cudaEvent_t)event);
    *is_complete = error == cudaSuccess;
    if (error == cudaErrorNotReady) {
        if (cudaPeekAtLastError() == error)
            (void)cudaGetLastError();
        error = cudaSuccess;
    }
    return leat__cuda_leave(&visit, error, "looking at an event");
}

/* The images from `first` on that one launch has. */
static leat_device_transform slice_of(const leat_device_transform *what,
                                      int64_t first)
{
    leat_device_transform slice = *what;
    size_t elements = (size_t)first * (size_t)what->channels *
                      (size_t)what->height * (size_t)what->width;
    slice.pixels += elements;
    slice.choices += first;
    slice.top = (char *)what->top + elements * leat_dtype_size(what->top_type);
    slice.images -= first;
    if (slice.images > LEAT__CUDA_IMAGES_MAX)
        slice.images = LEAT__CUDA_IMAGES_MAX;
    return slice;
}

static int cuda_transform(leat_device *device,
                          const leat_device_transform *what, leat_stream stream)
{
    leat__cuda_visit visit;
    cudaError_t error = leat__cuda_enter(device, &visit);
    for (int64_t first = 0; first < what->images && error == cudaSuccess;
         first += LEAT__CUDA_IMAGES_MAX) {
        leat_device_transform slice = slice_of(what, first);
        error = leat__cuda_transform_launch(&slice, (cudaStream_t)stream);
    }
    return leat__cuda_leave(&visit, error, "launching the transform");
}

static int cuda_transform_load(leat_device *device,
                               const leat_device_transform *what)
{
    leat__cuda_visit visit;
    cudaError_t error = leat__cuda_enter(device, &visit);
    if (error == cudaSuccess)
        error = leat__cuda_transform_load(what);
    return leat__cuda_leave(&visit, error, "loading the transform");
}

static int cuda_occupy(leat_device *device, double seconds, leat_stream stream)
{
    leat__cuda_visit visit;
    cudaError_t error = leat__cuda_enter(device, &visit);
    if (error == cudaSuccess)
        error = leat__cuda_occupy_launch(seconds, (cudaStream_t)stream);
    return leat__cuda_leave(&visit, error, "launching a kernel");
}

static int cuda_stream_hold(leat_device *device, const uint32_t *release,
                            double seconds, leat_stream stream)
{
    leat__cuda_visit visit;
    void *mapped = NULL;
    cudaError_t error = leat__cuda_enter(device, &visit);
    if (error == cudaSuccess)
        error = cudaHostGetDevicePointer(&mapped, (void *)release, 0);
    if (error == cudaSuccess)
        error = leat__cuda_hold_launch(mapped, seconds, (cudaStream_t)stream);
    return leat__cuda_leave(&visit, error, "holding a stream");
}

static int cuda_kernel_copy(leat_device *device, void *to, const void *from,
                            size_t bytes, leat_copy_direction direction,
                            leat_stream stream)
{
    leat__cuda_visit visit;
    void *mapped = NULL;
    int is_upload = direction == LEAT_COPY_TO_DEVICE;
    cudaError_t error = leat__cuda_enter(device, &visit);
    if (error == cudaSuccess)
        error =
            cudaHostGetDevicePointer(&mapped, is_upload ? (void *)from : to, 0);
    if (error == cudaSuccess)
        error = leat__cuda_copy_launch(is_upload ? to : mapped,
                                       is_upload ? mapped : from, bytes,
                                       (cudaStream_t)stream);
    return leat__cuda_leave(&visit, error, "launching a copy");
}

static int cuda_event_elapsed(leat_device *device, leat_event from,
                              leat_event to, double *out)
{
    float milliseconds = 0;
    leat__cuda_visit visit;
    cudaError_t error = leat__cuda_enter(device, &visit);
    if (error == cudaSuccess)
        error = cudaEventElapsedTime(&milliseconds, (cudaEvent_t)from,
                                     (cudaEvent_t)to);
    int status =
        leat__cuda_leave(&visit, error, "asking for the time between events");
    if (!status)
        *out = 1e-3 * (double)milliseconds;
    return status;
}

static int cuda_describe(leat_device *device, leat_device_description *out)
{
    int ordinal = own(device)->ordinal;
    int major = 0;
    int minor = 0;
    int l2 = 0;
    leat_device_description what = {.bus_id = ""};
    leat__cuda_visit visit;
    cudaError_t error = leat__cuda_enter(device, &visit);
    if (error == cudaSuccess)
        error = find_bus_id(ordinal, what.bus_id, (int)sizeof(what.bus_id));
    if (error == cudaSuccess)
        error = cudaDriverGetVersion(&what.driver_version);
    if (error == cudaSuccess)
        error = cudaRuntimeGetVersion(&what.runtime_version);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(
            &major, cudaDevAttrComputeCapabilityMajor, ordinal);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(
            &minor, cudaDevAttrComputeCapabilityMinor, ordinal);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, ordinal);
    what.capability = 10 * major + minor;
    what.l2_bytes = l2;
    int status = leat__cuda_leave(&visit, error, "asking what it is");
    if (!status)
        *out = what;
    return status;
}

static int cuda_numa_node(leat_device *device)
{
    return own(device)->node;
}

/* Retained until the process ends: nothing is made in another context. */
static int retain_context(leat__cuda_device *cuda, CUdevice *device)
{
    int status = leat__cuda_driver_load(cuda->ordinal);
    if (status)
        return status;
    const leat__cuda_driver *driver = &leat__cuda_driver_api;
    CUresult result = driver->device_get(device, cuda->ordinal);
    if (!result)
        result = driver->primary_retain(&cuda->context, *device);
    return leat__cuda_error(cuda->ordinal, (cudaError_t)result,
                            "making its context");
}

static int try_pinning(leat__cuda_device *cuda)
{
    leat__cuda_visit visit;
    cudaError_t error = leat__cuda_enter(&cuda->device, &visit);
    if (error == cudaSuccess)
        error = leat__cuda_memory_try_pinning(cuda);
    /* Pinning may succeed later: host_alloc tries again. */
    if (error == cudaErrorMemoryAllocation ||
        leat__cuda_memory_is_refusal(error)) {
        (void)cudaGetLastError();
        error = cudaSuccess;
    }
    return leat__cuda_leave(&visit, error, "opening the device");
}

static int cuda_open(int ordinal, leat_device **out)
{
    CUdevice device;
    int status = check_ordinal(ordinal);
    if (status)
        return status;
    leat__cuda_device *cuda = leat__alloc_zero(1, sizeof(*cuda));
    if (!cuda)
        return LEAT_ENOMEM;
    cuda->ordinal = ordinal;
    cuda->node = find_node(ordinal);
    status = retain_context(cuda, &device);
    if (status)
        goto fail_device;
    status = leat__cuda_error(ordinal, leat__cuda_identify(cuda),
                              "making its context");
    if (!status)
        status = try_pinning(cuda);
    if (status)
        goto fail_context;
    *out = &cuda->device;
    return LEAT_OK;

fail_context:
    (void)leat__cuda_driver_api.primary_release(device);
fail_device:
    leat__free(cuda);
    return status;
}

const leat_device_ops leat__cuda_device_ops = {
    .size = sizeof(leat_device_ops),
    .name = "cuda",
    .open = cuda_open,
    .host_alloc = leat__cuda_memory_host_alloc,
    .host_free = leat__cuda_memory_host_free,
    .alloc = leat__cuda_memory_alloc,
    .free = leat__cuda_memory_free,
    .copy = cuda_copy,
    .stream_create = leat__cuda_stream_create,
    .stream_destroy = leat__cuda_stream_destroy,
    .stream_synchronize = leat__cuda_stream_synchronize,
    .stream_is_capturing = leat__cuda_stream_is_capturing,
    .event_create = cuda_event_create,
    .event_destroy = cuda_event_destroy,
    .event_record = cuda_event_record,
    .stream_wait = cuda_stream_wait,
    .event_synchronize = cuda_event_synchronize,
    .transform = cuda_transform,
    .timer_create = cuda_timer_create,
    .event_elapsed = cuda_event_elapsed,
    .describe = cuda_describe,
    .occupy = cuda_occupy,
    .numa_node = cuda_numa_node,
    .stream_check = leat__cuda_stream_check,
    .stream_create_high_priority = leat__cuda_stream_create_high_priority,
    .stream_hold = cuda_stream_hold,
    .kernel_copy = cuda_kernel_copy,
    .host_alloc_on = leat__cuda_memory_host_alloc_on,
    .transform_load = cuda_transform_load,
    .event_create_sleeping = cuda_event_create_sleeping,
    .event_query = cuda_event_query,
};
