/* The kernels' launch functions in the double: a loop over the grid. */
#include "cuda_double/cuda_double_state.h"
#include "device/transform_lane.h"
#include "occupy_cuda.h"
#include "transform_cuda.h"

#include <string.h>

/* Device addresses become those of the bytes, here on the stream's thread. */
static void transform(void *argument)
{
    leat_device_transform job = *(const leat_device_transform *)argument;
    job.pixels = cuda_double_bytes(job.pixels);
    job.choices = cuda_double_bytes(job.choices);
    job.top = cuda_double_bytes(job.top);
    job.mean = job.mean ? cuda_double_bytes(job.mean) : NULL;
    job.mean_value = job.mean_value ? cuda_double_bytes(job.mean_value) : NULL;
    leat__transform_batch batch;
    leat__transform_batch_init(&batch, &job);
    leat__transform_run(&batch);
}

/* What becomes of a device whose kernel reads or writes where no memory is. */
static void lose(void *argument)
{
    double_device *device = *(double_device **)argument;
    atomic_store(&device->lost, cudaErrorIllegalAddress);
}

static int has_addresses(const leat_device_transform *job)
{
    return double_owner(job->pixels) && double_owner(job->choices) &&
           double_owner(job->top) && (!job->mean || double_owner(job->mean)) &&
           (!job->mean_value || double_owner(job->mean_value));
}

/*
 * As the runtime loads kernels lazily: one that is not loaded is loaded by its
 * launch, which the log says.
 */
static atomic_int is_loaded[CUDA_DOUBLE_DEVICES][32];

cudaError_t leat__cuda_transform_load(const leat_device_transform *job)
{
    cudaError_t error =
        double_enter("cudaFuncGetAttributes", &(cuda_double_call){0}, 0);
    if (!error)
        atomic_store(&is_loaded[double_ordinal()][job->top_type], 1);
    return double_leave(error);
}

/* Blocks that a grid may have along y; a block has up to 8 images. */
#define MOST_BLOCKS 65535

static int is_too_much(const leat_device_transform *job)
{
    return (job->images + LEAT__WARPS - 1) / LEAT__WARPS > MOST_BLOCKS;
}

cudaError_t leat__cuda_transform_launch(const leat_device_transform *job,
                                        cudaStream_t stream)
{
    double_device *device = double_here();
    size_t elements = (size_t)job->images * (size_t)job->channels *
                      (size_t)job->height * (size_t)job->width *
                      (size_t)(job->further + 1);
    size_t bytes = elements * (1 + leat_dtype_size(job->top_type));
    if (is_too_much(job))
        return double_leave(cudaErrorInvalidConfiguration);
    if (!has_addresses(job))
        return cuda_double_launch(lose, &device, sizeof(device), 0, stream);
    if (!atomic_exchange(&is_loaded[double_ordinal()][job->top_type], 1))
        (void)double_enter("lazy load", &(cuda_double_call){0}, DOUBLE_ALWAYS);
    double us = (double)double_memory_time(bytes) * 1e-3;
    void (*body)(void *) = atomic_load(&double_computes) ? transform : NULL;
    return cuda_double_launch(body, (void *)(uintptr_t)job, sizeof(*job), us,
                              stream);
}

cudaError_t leat__cuda_occupy_launch(double seconds, cudaStream_t stream)
{
    return cuda_double_launch(NULL, NULL, 0, 1e6 * seconds, stream);
}

cudaError_t leat__cuda_hold_launch(const uint32_t *release, double seconds,
                                   cudaStream_t stream)
{
    return cuda_double_launch_hold(release, seconds, stream);
}

typedef struct copy_job {
    void *to;
    const void *from;
    size_t bytes;
} copy_job;

static void copy(void *argument)
{
    const copy_job *job = argument;
    memcpy(cuda_double_bytes(job->to), cuda_double_bytes(job->from),
           job->bytes);
}

/* Over the bus, without what a copy engine takes to begin. */
cudaError_t leat__cuda_copy_launch(void *to, const void *from, size_t bytes,
                                   cudaStream_t stream)
{
    double bandwidth = atomic_load(&double_bus_bandwidth);
    copy_job job = {to, from, bytes};
    return cuda_double_launch(
        copy, &job, sizeof(job),
        bandwidth > 0 ? 1e-3 * (double)bytes / bandwidth : 0, stream);
}
