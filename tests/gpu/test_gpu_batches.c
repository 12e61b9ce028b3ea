/*
 * Ten thousand batches of a layer on a GPU beside the CPU's, byte for byte:
 * each type of top, layout, way of transforming and mode in turn, by three
 * streams that are a little late. LEAT_GPU_BATCHES is another number of them.
 */
#include "gpu_layer.h"
#include "support/suite.h"

#include <check.h>

#define WINDOW 50 /* batches that are fetched before they are compared */
#define WAYS 32
#define LATE 0.00002

static const leat_dtype types[] = {LEAT_FLOAT32, LEAT_FLOAT16, LEAT_BFLOAT16,
                                   LEAT_UINT8};

static int batches_of_a_way(void)
{
    const char *text = getenv("LEAT_GPU_BATCHES");
    int all = text ? atoi(text) : 10000;
    return (all + WAYS - 1) / WAYS;
}

static void choose_way(leat_data_layer_options *options,
                       leat_transform_options *transform, int way)
{
    gpu_options(options, transform);
    options->top_type = types[way % 4];
    if (options->top_type == LEAT_UINT8) {
        transform->mean_values = 0;
        transform->mean_value = NULL;
        transform->scale = 1;
    }
    options->layout = way / 4 % 2 ? LEAT_NHWC : LEAT_NCHW;
    options->transform_on =
        way / 8 % 2 ? LEAT_TRANSFORM_ON_CPU : LEAT_TRANSFORM_ON_DEVICE;
    options->top_mode = way / 16 ? LEAT_TOP_COPY : LEAT_TOP_LEND;
    /* So many that neighbours share uploads. */
    if (way / 2 % 2)
        options->prefetch = 48;
}

/* A window's batches, on streams in turn. */
static void fetch_window(gpu_layer *feed, int steps, leat_top_mode mode)
{
    for (int i = 0; i < steps; i++) {
        int s = i % GPU_STREAMS;
        gpu_layer_forward(feed, s);
        for (int top = 0; top < 2; top++)
            gpu_layer_fetch(feed, i, top, s);
        if (mode == LEAT_TOP_COPY)
            gpu_layer_order(feed, s, (i + 1) % GPU_STREAMS);
    }
    gpu_layer_wait(feed);
}

START_TEST(all_batches_are_the_cpus)
{
    leat_data_layer_options options;
    leat_transform_options transform;
    leat_pipeline *pipeline = gpu_pipeline();
    choose_way(&options, &transform, _i);
    gpu_layer feed = gpu_layer_open(pipeline, &options, gpu_device(0), WINDOW);
    leat_data_layer *twin = gpu_twin(pipeline, &options);
    feed.late = LATE;
    for (int left = batches_of_a_way(); left > 0; left -= WINDOW) {
        int steps = left < WINDOW ? left : WINDOW;
        fetch_window(&feed, steps, options.top_mode);
        ck_assert_int_eq(gpu_count_wrong(&feed, twin, steps, 1, 0), 0);
    }
    leat_data_layer_destroy(twin);
    gpu_layer_close(&feed, 1);
    leat_pipeline_unref(pipeline);
}
END_TEST

int main(int argc, char **argv)
{
    int absent = gpu_take_devices(argc, argv);
    if (absent)
        return absent;
    Suite *suite = suite_create("gpu_batches");
    TCase *tcase = tcase_create("gpu_batches");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, all_batches_are_the_cpus, 0, WAYS);
    return suite_run(suite);
}
