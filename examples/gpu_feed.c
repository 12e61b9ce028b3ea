#include "gpu_feed.h"

#include <stdio.h>

static int fail(const char *line)
{
    fprintf(stderr, "%s\n", line);
    return GPU_FEED_FAILED;
}

int gpu_feed_check(cudaError_t error)
{
    return error ? fail(cudaGetErrorString(error)) : GPU_FEED_DONE;
}

int gpu_feed_open(gpu_feed *feed, const char *net, leat_phase phase,
                  leat_top_mode mode)
{
    leat_device *device;
    const leat_data_layer_options options = {
        .size = sizeof(options),
        .device = "cuda:0",
        .random_seed = 1,
        .top_mode = mode,
        /* Bytes cross the bus, and the device makes floats of them. */
        .transform_on = LEAT_TRANSFORM_ON_DEVICE,
    };
    if (leat_device_find(&device, options.device)) {
        fprintf(stderr, "skipped: %s\n", leat_last_error());
        return GPU_FEED_NO_GPU;
    }
    if (leat_data_layer_create_from_net(&feed->layer, net, phase, &options) ||
        leat_data_layer_setup(feed->layer, NULL, 0) ||
        !(feed->top[0] = leat_data_layer_top(feed->layer, 0)) ||
        !(feed->top[1] = leat_data_layer_top(feed->layer, 1)))
        return fail(leat_last_error());
    if (leat_blob_dtype(feed->top[0]) != LEAT_FLOAT32 ||
        leat_blob_dtype(feed->top[1]) != LEAT_FLOAT32)
        return fail("the tops must be float32");
    feed->images = (int)leat_blob_dim(feed->top[0], 0);
    feed->pixels = (int)(leat_blob_count(feed->top[0]) / feed->images);
    return GPU_FEED_DONE;
}

void gpu_feed_close(gpu_feed *feed)
{
    leat_data_layer_destroy(feed->layer);
}

int gpu_feed_next(gpu_feed *feed, const float **images, const float **labels,
                  cudaStream_t stream)
{
    if (leat_cuda_forward(feed->layer, NULL, 0, stream))
        return fail(leat_last_error());
    if (leat_blob_count(feed->top[0]) != (int64_t)feed->images * feed->pixels)
        return fail("the images differ in shape from batch to batch");
    feed->valid = (int)leat_data_layer_batch(feed->layer)->valid;
    *images = leat_blob_gpu_data(feed->top[0]);
    *labels = leat_blob_gpu_data(feed->top[1]);
    return *images && *labels ? GPU_FEED_DONE : fail(leat_last_error());
}
