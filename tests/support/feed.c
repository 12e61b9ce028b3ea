#include "support/feed.h"

#include <check.h>
#include <sched.h>
#include <zlib.h>

static unsigned char pixels[FEED_COUNT][FEED_PIXELS];
static int32_t labels[FEED_COUNT];

int feed_pixel(int i, int c, int h, int w)
{
    int j = (c * FEED_HEIGHT + h) * FEED_WIDTH + w;
    return (31 * i + j) % 256;
}

leat_pipeline *feed_pipeline(void)
{
    for (int i = 0; i < FEED_COUNT; i++) {
        labels[i] = 1000 + i;
        for (int j = 0; j < FEED_PIXELS; j++)
            pixels[i][j] = (unsigned char)(31 * i + j);
    }
    const leat_memory_field fields[] = {
        {"data",
         LEAT_UINT8,
         3,
         {FEED_CHANNELS, FEED_HEIGHT, FEED_WIDTH},
         pixels},
        {"label", LEAT_INT32, 0, {0}, labels},
    };
    leat_pipeline *pipeline;
    ck_assert_int_eq(leat_pipeline_memory(&pipeline, fields, 2, FEED_COUNT),
                     LEAT_OK);
    return pipeline;
}

void feed_options(leat_data_layer_options *options,
                  leat_transform_options *transform)
{
    const leat_data_layer_options defaults = LEAT_DATA_LAYER_OPTIONS_INIT;
    const leat_transform_options none = LEAT_TRANSFORM_OPTIONS_INIT;
    *options = defaults;
    *transform = none;
    options->transform = transform;
}

feed_layer feed_open(const leat_pipeline *pipeline,
                     const leat_data_layer_options *options)
{
    feed_layer feed;
    int status = leat_data_layer_create(&feed.layer, pipeline, options);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    leat_device *device = NULL;
    if (options->device)
        ck_assert_int_eq(leat_device_find(&device, options->device), LEAT_OK);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(leat_blob_create(&feed.top[i], device), LEAT_OK);
    status = leat_data_layer_setup(feed.layer, feed.top, 2);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    return feed;
}

void feed_close(feed_layer *feed)
{
    leat_data_layer_destroy(feed->layer);
    leat_blob_destroy(feed->top[0]);
    leat_blob_destroy(feed->top[1]);
}

int feed_forward(feed_layer *feed)
{
    return leat_data_layer_forward(feed->layer, feed->top, 2, LEAT_HOST);
}

float feed_label(feed_layer *feed, int i)
{
    return ((const float *)leat_blob_cpu_data(feed->top[1]))[i];
}

uint32_t feed_digest(feed_layer *feed)
{
    uLong sum = 0;
    for (int i = 0; i < 2; i++)
        sum = crc32_z(sum, leat_blob_cpu_data(feed->top[i]),
                      leat_blob_bytes(feed->top[i]));
    return (uint32_t)sum;
}

void feed_use_one_core(int one)
{
    static cpu_set_t before;
    cpu_set_t only;
    int core = 0;
    if (!one) {
        ck_assert_int_eq(sched_setaffinity(0, sizeof(before), &before), 0);
        return;
    }
    ck_assert_int_eq(sched_getaffinity(0, sizeof(before), &before), 0);
    while (!CPU_ISSET(core, &before))
        core++;
    CPU_ZERO(&only);
    CPU_SET(core, &only);
    ck_assert_int_eq(sched_setaffinity(0, sizeof(only), &only), 0);
}
