#include "gpu_layer.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

enum { IMAGES = 97, CHANNELS = 3, SIDE = 36, CROP = 28 };

static const char *const usual[] = {"cuda:0"};
static const char *const *names = usual;
static int nnames = 1;

leat_pipeline *gpu_pipeline(void)
{
    static unsigned char pixels[IMAGES][CHANNELS * SIDE * SIDE];
    static int32_t labels[IMAGES];
    uint32_t state = 1;
    for (int i = 0; i < IMAGES; i++) {
        labels[i] = 1000 + i;
        for (size_t j = 0; j < sizeof(pixels[i]); j++) {
            state = state * 1664525 + 1013904223;
            pixels[i][j] = (unsigned char)(state >> 24);
        }
    }
    const leat_memory_field fields[] = {
        {"data", LEAT_UINT8, 3, {CHANNELS, SIDE, SIDE}, pixels},
        {"label", LEAT_INT32, 0, {0}, labels},
    };
    leat_pipeline *pipeline;
    ck_assert_int_eq(leat_pipeline_memory(&pipeline, fields, 2, IMAGES),
                     LEAT_OK);
    return pipeline;
}

void gpu_options(leat_data_layer_options *options,
                 leat_transform_options *transform)
{
    static const float mean[] = {104, 117, 123};
    const leat_data_layer_options defaults = LEAT_DATA_LAYER_OPTIONS_INIT;
    const leat_transform_options none = LEAT_TRANSFORM_OPTIONS_INIT;
    *transform = none;
    transform->crop_size = CROP;
    transform->mirror = true;
    transform->scale = 0.0078125f;
    transform->mean_value = mean;
    transform->mean_values = CHANNELS;
    *options = defaults;
    options->batch_size = GPU_BATCH;
    options->random_seed = 7;
    options->transform = transform;
}

gpu_layer gpu_layer_of(leat_data_layer *layer, const char *device, int steps)
{
    gpu_layer feed = {.layer = layer, .steps = steps};
    ck_assert_int_eq(leat_device_find(&feed.device, device), LEAT_OK);
    const leat_device_ops *ops = feed.device->ops;
    for (int i = 0; i < 2; i++)
        feed.bytes[i] = leat_blob_bytes(leat_data_layer_top(layer, i));
    void *seen;
    ck_assert_int_eq(
        ops->host_alloc(feed.device,
                        (size_t)steps * (feed.bytes[0] + feed.bytes[1]), &seen),
        LEAT_OK);
    feed.seen = seen;
    for (int i = 0; i < GPU_STREAMS; i++) {
        ck_assert_int_eq(ops->stream_create(feed.device, &feed.stream[i]),
                         LEAT_OK);
        ck_assert_int_eq(ops->event_create(feed.device, &feed.event[i]),
                         LEAT_OK);
    }
    return feed;
}

/* The layer on a device, set up with tops of its own. */
static leat_data_layer *open_layer(const leat_pipeline *pipeline,
                                   const leat_data_layer_options *options)
{
    leat_data_layer *layer;
    int status = leat_data_layer_create(&layer, pipeline, options);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    status = leat_data_layer_setup(layer, NULL, 0);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    return layer;
}

gpu_layer gpu_layer_open(const leat_pipeline *pipeline,
                         const leat_data_layer_options *options,
                         const char *device, int steps)
{
    leat_data_layer_options there = *options;
    there.device = device;
    return gpu_layer_of(open_layer(pipeline, &there), device, steps);
}

leat_data_layer *gpu_twin(const leat_pipeline *pipeline,
                          const leat_data_layer_options *options)
{
    leat_data_layer_options here = *options;
    here.device = "cpu";
    here.transform_on = LEAT_TRANSFORM_ON_CPU;
    here.top_mode = LEAT_TOP_LEND;
    return open_layer(pipeline, &here);
}

void gpu_layer_close(gpu_layer *feed, int has_layer)
{
    const leat_device_ops *ops = feed->device->ops;
    gpu_layer_wait(feed);
    if (has_layer)
        leat_data_layer_destroy(feed->layer);
    for (int i = 0; i < GPU_STREAMS; i++) {
        ops->event_destroy(feed->device, feed->event[i]);
        ops->stream_destroy(feed->device, feed->stream[i]);
    }
    ops->host_free(feed->device, feed->seen,
                   (size_t)feed->steps * (feed->bytes[0] + feed->bytes[1]));
}

void gpu_layer_forward(gpu_layer *feed, int s)
{
    int status = leat_data_layer_forward(feed->layer, NULL, 0, feed->stream[s]);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
}

/* Where in a row of batches, data before labels, a top of one lies. */
static size_t offset_of(const gpu_layer *feed, int step, int top)
{
    return (size_t)step * (feed->bytes[0] + feed->bytes[1]) +
           (top ? feed->bytes[0] : 0);
}

void gpu_layer_fetch(gpu_layer *feed, int step, int top, int s)
{
    const leat_device_ops *ops = feed->device->ops;
    const void *data =
        leat_blob_gpu_data(leat_data_layer_top(feed->layer, top));
    ck_assert_ptr_nonnull(data);
    ck_assert_int_lt(step, feed->steps);
    if (feed->late > 0)
        ck_assert_int_eq(ops->occupy(feed->device, feed->late, feed->stream[s]),
                         LEAT_OK);
    ck_assert_int_eq(
        ops->copy(feed->device, feed->seen + offset_of(feed, step, top), data,
                  feed->bytes[top], LEAT_COPY_TO_HOST, feed->stream[s]),
        LEAT_OK);
}

void gpu_layer_order(gpu_layer *feed, int s, int after)
{
    const leat_device_ops *ops = feed->device->ops;
    ck_assert_int_eq(
        ops->event_record(feed->device, feed->event[s], feed->stream[s]),
        LEAT_OK);
    ck_assert_int_eq(
        ops->stream_wait(feed->device, feed->stream[after], feed->event[s]),
        LEAT_OK);
}

void gpu_layer_wait(gpu_layer *feed)
{
    for (int i = 0; i < GPU_STREAMS; i++)
        ck_assert_int_eq(feed->device->ops->stream_synchronize(feed->device,
                                                               feed->stream[i]),
                         LEAT_OK);
}

static int is_batch(const gpu_layer *feed, int step, leat_data_layer *twin)
{
    for (int i = 0; i < 2; i++) {
        leat_blob *top = leat_data_layer_top(twin, i);
        ck_assert_uint_eq(leat_blob_bytes(top), feed->bytes[i]);
        if (memcmp(feed->seen + offset_of(feed, step, i),
                   leat_blob_cpu_data(top), feed->bytes[i]) != 0)
            return 0;
    }
    return 1;
}

int gpu_count_wrong(const gpu_layer *feed, leat_data_layer *twin, int steps,
                    int every, int first)
{
    int wrong = 0;
    for (int k = 0; k < steps * every; k++) {
        int status = leat_data_layer_forward(twin, NULL, 0, LEAT_HOST);
        ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
        if (k % every == first)
            wrong += !is_batch(feed, k / every, twin);
    }
    return wrong;
}

static int find_all(void)
{
    leat_device *found;
    for (int i = 0; i < nnames; i++) {
        if (leat_device_find(&found, names[i]) == LEAT_OK)
            continue;
        printf("skipped: %s\n", leat_last_error());
        return 77;
    }
    return 0;
}

int gpu_take_devices(int argc, char **argv)
{
    if (argc > 1) {
        names = (const char *const *)argv + 1;
        nnames = argc - 1;
    }
    return suite_look_first(find_all);
}

const char *gpu_device(int i)
{
    return names[i < nnames ? i : 0];
}
