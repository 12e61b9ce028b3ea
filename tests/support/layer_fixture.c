#include "support/layer_fixture.h"

#include <check.h>
#include <sched.h>
#include <zlib.h>

static unsigned char pixels[LAYER_FIXTURE_COUNT][LAYER_FIXTURE_PIXELS];
static int32_t labels[LAYER_FIXTURE_COUNT];

int layer_fixture_pixel(int i, int c, int h, int w)
{
    int j = (c * LAYER_FIXTURE_HEIGHT + h) * LAYER_FIXTURE_WIDTH + w;
    return (31 * i + j) % 256;
}

leat_pipeline *layer_fixture_pipeline(void)
{
    for (int i = 0; i < LAYER_FIXTURE_COUNT; i++) {
        labels[i] = 1000 + i;
        for (int j = 0; j < LAYER_FIXTURE_PIXELS; j++)
            pixels[i][j] = (unsigned char)(31 * i + j);
    }
    const leat_memory_field fields[] = {
        {"data",
         LEAT_UINT8,
         3,
         {LAYER_FIXTURE_CHANNELS, LAYER_FIXTURE_HEIGHT, LAYER_FIXTURE_WIDTH},
         pixels},
        {"label", LEAT_INT32, 0, {0}, labels},
    };
    leat_pipeline *pipeline;
    ck_assert_int_eq(
        leat_pipeline_memory(&pipeline, fields, 2, LAYER_FIXTURE_COUNT),
        LEAT_OK);
    return pipeline;
}

void layer_fixture_options(leat_data_layer_options *options,
                           leat_transform_options *transform)
{
    const leat_data_layer_options defaults = LEAT_DATA_LAYER_OPTIONS_INIT;
    const leat_transform_options none = LEAT_TRANSFORM_OPTIONS_INIT;
    *options = defaults;
    *transform = none;
    options->transform = transform;
}

layer_fixture layer_fixture_open(const leat_pipeline *pipeline,
                                 const leat_data_layer_options *options)
{
    layer_fixture fixture;
    int status = leat_data_layer_create(&fixture.layer, pipeline, options);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    leat_device *device = NULL;
    if (options->device)
        ck_assert_int_eq(leat_device_find(&device, options->device), LEAT_OK);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(leat_blob_create(&fixture.top[i], device), LEAT_OK);
    status = leat_data_layer_setup(fixture.layer, fixture.top, 2);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    return fixture;
}

void layer_fixture_close(layer_fixture *fixture)
{
    leat_data_layer_destroy(fixture->layer);
    leat_blob_destroy(fixture->top[0]);
    leat_blob_destroy(fixture->top[1]);
}

int layer_fixture_forward(layer_fixture *fixture)
{
    return leat_data_layer_forward(fixture->layer, fixture->top, 2, LEAT_HOST);
}

float layer_fixture_label(layer_fixture *fixture, int i)
{
    return ((const float *)leat_blob_cpu_data(fixture->top[1]))[i];
}

uint32_t layer_fixture_digest(layer_fixture *fixture)
{
    uLong sum = 0;
    for (int i = 0; i < 2; i++)
        sum = crc32_z(sum, leat_blob_cpu_data(fixture->top[i]),
                      leat_blob_bytes(fixture->top[i]));
    return (uint32_t)sum;
}

void layer_fixture_use_one_core(int one)
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

uint32_t layer_fixture_sample_digest(layer_fixture *fixture, int i)
{
    uLong sum = 0;
    for (int t = 0; t < 2; t++) {
        size_t bytes = leat_blob_bytes(fixture->top[t]) /
                       (size_t)leat_blob_shape(fixture->top[t])[0];
        const char *data = leat_blob_cpu_data(fixture->top[t]);
        sum = crc32_z(sum, (const Bytef *)data + (size_t)i * bytes, bytes);
    }
    return (uint32_t)sum;
}
