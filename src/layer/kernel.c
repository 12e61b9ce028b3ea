#include "layer/kernel.h"
#include "base/error.h"

static int upload_means(leat__kernel *kernel, const void *means, size_t count,
                        leat_stream stream)
{
    leat_device *device = kernel->device;
    kernel->bytes = count * sizeof(float);
    int status = device->ops->alloc(device, kernel->bytes, &kernel->means);
    if (status)
        return status;
    status = device->ops->copy(device, kernel->means, means, kernel->bytes,
                               LEAT_COPY_TO_DEVICE, stream);
    int waited = device->ops->stream_synchronize(device, stream);
    return status ? status : waited;
}

int leat__kernel_init(leat__kernel *kernel, leat_device *device,
                      const leat__transform_job *plan, int channels,
                      leat_stream stream)
{
    if (!device->ops->transform)
        return leat_error(LEAT_EUNSUPPORTED,
                          "%s has no transform of its own: transform_on must "
                          "be CPU",
                          device->name);
    kernel->device = device;
    kernel->model = (leat_device_transform){.mean_values = plan->mean_values,
                                            .mean_height = plan->mean_height,
                                            .mean_width = plan->mean_width,
                                            .scale = (float)plan->scale,
                                            .top_type = plan->top_type,
                                            .layout = plan->layout};
    int status = LEAT_OK;
    if (plan->mean)
        status = upload_means(kernel, plan->mean,
                              (size_t)channels * (size_t)plan->mean_height *
                                  (size_t)plan->mean_width,
                              stream);
    else if (plan->mean_value)
        status = upload_means(kernel, plan->mean_value,
                              (size_t)plan->mean_values, stream);
    kernel->model.mean = plan->mean ? kernel->means : NULL;
    kernel->model.mean_value = plan->mean ? NULL : kernel->means;
    return status;
}

void leat__kernel_finish(leat__kernel *kernel)
{
    leat_device *device = kernel->device;
    if (kernel->means)
        device->ops->free(device, kernel->means, kernel->bytes);
    *kernel = (leat__kernel){0};
}

int leat__kernel_enqueue(const leat__kernel *kernel, const leat__batch *batch,
                         leat_stream stream)
{
    const leat__batch_shape *shape = &batch->shape;
    const char *slot = (const char *)batch->slab->memory + batch->offset;
    leat_device_transform what = kernel->model;
    what.pixels = (const unsigned char *)slot + shape->top[0].offset;
    what.choices =
        (const leat_device_choice *)(const void *)(slot + shape->choices);
    what.top = (char *)batch->top_slab->memory + batch->top_offset;
    what.pixel_layout = shape->pixel_layout;
    what.images = batch->n;
    what.channels = shape->image[0];
    what.height = shape->image[1];
    what.width = shape->image[2];
    leat_device *device = kernel->device;
    return device->ops->transform(device, &what, stream);
}
