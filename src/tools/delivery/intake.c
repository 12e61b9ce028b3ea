#include "tools/delivery/intake.h"

#include "tools/database/database.h"

#include <leat/ext/device.h>
#include <leat/ext/reader.h>

#include <string.h>

/* The stream that reads the batches, where a device has any. */
static int open_stream(struct intake *intake, const char *name)
{
    leat_device *device;
    int status = leat_device_find(&device, name);
    if (status || device->ops->unified)
        return status;
    status = device->ops->stream_create(device, &intake->stream);
    if (!status)
        intake->device = device;
    return status;
}

/* A net file that leaves the size open takes it; what it says wins. */
static int check_batch(const struct intake *intake,
                       const struct intake_options *options)
{
    const leat_data_layer_options *in_force =
        leat_data_layer_get_options(intake->layer);
    if (!options->batch || in_force->batch_size == options->batch)
        return LEAT_OK;
    return leat_error(LEAT_EINVAL,
                      "--batch %lld: %s says the size of a batch itself; leave "
                      "--batch out",
                      (long long)options->batch, options->net);
}

static int create_from_net(struct intake *intake,
                           const struct intake_options *options,
                           const leat_data_layer_options *layer_options)
{
    int status = leat_data_layer_create_from_net(
        &intake->layer, options->net, layer_options->phase, layer_options);
    return status ? status : check_batch(intake, options);
}

int intake_create(struct intake *intake, const struct intake_options *options)
{
    leat_data_layer_options layer_options = LEAT_DATA_LAYER_OPTIONS_INIT;
    int status = intake_options_fill(options, &layer_options);
    if (!status && options->device)
        status = open_stream(intake, options->device);
    if (status)
        return status;
    if (options->net)
        return create_from_net(intake, options, &layer_options);

    leat_transform_options transform = LEAT_TRANSFORM_OPTIONS_INIT;
    intake_options_fill_transform(options, &transform);
    layer_options.transform = &transform;
    leat_pipeline *pipeline;
    status = database_pipeline(&pipeline, options->reader);
    if (status)
        return status;
    status = leat_data_layer_create(&intake->layer, pipeline, &layer_options);
    leat_pipeline_unref(pipeline);
    return status;
}

int intake_setup(struct intake *intake)
{
    int ntop = leat_data_layer_top_count(intake->layer);
    if (ntop < 0)
        return ntop;
    if (ntop > LEAT_MAX_FIELDS)
        return leat_error(LEAT_EUNSUPPORTED, "%d tops, more than %d", ntop,
                          LEAT_MAX_FIELDS);
    intake->ntop = ntop;
    for (int i = 0; i < intake->ntop; i++) {
        int status = leat_blob_create(&intake->top[i], intake->device);
        if (status)
            return status;
    }
    return leat_data_layer_setup(intake->layer, intake->top, intake->ntop);
}

int intake_forward(struct intake *intake)
{
    int status =
        leat_data_layer_forward(intake->layer, intake->top, intake->ntop,
                                intake->device ? intake->stream : LEAT_HOST);
    if (status == LEAT_END)
        return leat_error(LEAT_EDATA, "the data has ended");
    return status;
}

int intake_wait(struct intake *intake)
{
    leat_device *device = intake->device;
    return device ? device->ops->stream_synchronize(device, intake->stream)
                  : LEAT_OK;
}

/* Enqueues the copy of a top, out of the device's own memory. */
static int copy_back(struct intake *intake, int i)
{
    leat_device *device = intake->device;
    leat_blob *top = intake->top[i];
    int status = LEAT_OK;
    if (!intake->copy[i])
        status = leat_blob_create(&intake->copy[i], NULL);
    if (status)
        return status;
    leat_blob *copy = intake->copy[i];
    status = leat_blob_reshape(copy, leat_blob_dtype(top), leat_blob_ndim(top),
                               leat_blob_shape(top));
    size_t bytes = leat_blob_bytes(copy);
    if (status || bytes == 0)
        return status;
    const void *from = leat_blob_gpu_data(top);
    void *to = leat_blob_mutable_cpu_data(copy);
    if (!from || !to)
        return LEAT_ENOMEM;
    return device->ops->copy(device, to, from, bytes, LEAT_COPY_TO_HOST,
                             intake->stream);
}

int intake_fetch(struct intake *intake, leat_blob *out[LEAT_MAX_FIELDS])
{
    int status = LEAT_OK;
    for (int i = 0; !status && intake->device && i < intake->ntop; i++)
        status = copy_back(intake, i);
    int waited = intake_wait(intake);
    if (status || waited)
        return status ? status : waited;
    for (int i = 0; i < intake->ntop; i++)
        out[i] = intake->device ? intake->copy[i] : intake->top[i];
    return LEAT_OK;
}

int64_t intake_bad_records(const struct intake *intake)
{
    leat_stats stats = {.size = sizeof(stats)};
    (void)leat_data_layer_stats(intake->layer, &stats);
    return stats.bad_records;
}

void intake_destroy(struct intake *intake)
{
    leat_data_layer_destroy(intake->layer);
    for (int i = 0; i < LEAT_MAX_FIELDS; i++) {
        leat_blob_destroy(intake->top[i]);
        leat_blob_destroy(intake->copy[i]);
    }
    if (intake->device)
        intake->device->ops->stream_destroy(intake->device, intake->stream);
    memset(intake, 0, sizeof(*intake));
}
