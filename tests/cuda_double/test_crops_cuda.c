/*
 * Transforms on cuda:N over the double where records are bad, encoded or of
 * mixed shapes: batch by batch the same as on the CPU.
 */
#include "cuda_double.h"
#include "support/bad_records.h"
#include "support/layer_fixture.h"
#include "support/suite.h"

#include <check.h>
#include <leat/cuda.h>
#include <leat/ext/reader.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 24
#define FILES 3
#define PINNABLE 8192 /* bytes: the first slots, and little more */
#define ROW 256 /* of images that grow: more than slots are rounded up to */

static leat_data_layer_options options;
static leat_transform_options transform;

static void set_up(void)
{
    layer_fixture_options(&options, &transform);
    transform.mirror = 1;
    transform.scale = 0.25f;
    options.random_seed = 5;
    options.prefetch = 2;
    cuda_double_reset();
}

/* Status or checksum of each batch. */
static void collect(const leat_pipeline *pipeline, const char *device,
                    leat_transform_on on, uint32_t out[STEPS])
{
    options.device = device;
    options.transform_on = on;
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    for (int i = 0; i < STEPS; i++) {
        int status = layer_fixture_forward(&fixture);
        ck_assert(status == LEAT_OK || status == LEAT_EDATA);
        out[i] = status ? (uint32_t)status : layer_fixture_digest(&fixture);
    }
    layer_fixture_close(&fixture);
}

static void check_alike(const leat_pipeline *pipeline)
{
    uint32_t expected[STEPS], found[STEPS];
    collect(pipeline, "cpu", LEAT_TRANSFORM_ON_CPU, expected);
    collect(pipeline, "cuda:0", LEAT_TRANSFORM_ON_DEVICE, found);
    ck_assert_mem_eq(found, expected, sizeof(found));
    ck_assert_uint_ne(expected[0], expected[1]);
    cuda_double_living living = cuda_double_count();
    ck_assert_int_eq(living.device_bytes, 0);
    ck_assert_int_eq(living.pinned_bytes, 0);
}

START_TEST(bad_records_are_replaced_as_on_the_cpu)
{
    bad_records plan = {.count = 20, .way = (bad_records_way)(_i / 3)};
    plan.kind[2] = BAD_RECORDS_UNREADABLE;
    plan.kind[3] = BAD_RECORDS_SHORT;
    plan.kind[9] = BAD_RECORDS_SHAPELESS;
    plan.kind[13] = BAD_RECORDS_UNLABELED;
    options.batch_size = 4;
    options.on_error = (leat_on_error)(_i % 3);
    leat_pipeline *pipeline = bad_records_pipeline(&plan);
    check_alike(pipeline);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Status or checksum of each batch, and its shape. */
static void collect_shapes(const leat_pipeline *pipeline, const char *device,
                           leat_transform_on on, int64_t out[STEPS][4])
{
    options.device = device;
    options.transform_on = on;
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    for (int i = 0; i < STEPS; i++) {
        int status = layer_fixture_forward(&fixture);
        ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
        out[i][0] = (int64_t)layer_fixture_digest(&fixture);
        out[i][1] = leat_blob_dim(fixture.top[0], 0);
        out[i][2] = leat_data_layer_batch(fixture.layer)->valid;
        out[i][3] = leat_data_layer_batch(fixture.layer)->epoch;
    }
    layer_fixture_close(&fixture);
}

/* Short batches, padding after crops, and batches without a sample. */
START_TEST(epochs_end_as_on_the_cpu)
{
    static const struct {
        int count, batch, ranks;
    } cases[] = {{11, 4, 1}, {7, 2, 3}, {3, 2, 5}};
    bad_records plan = {.way = (bad_records_way)(_i % 3)};
    const float means[] = {7, 9}; /* nor are they taken off the padding */
    int64_t expected[STEPS][4], found[STEPS][4];
    transform.mean_value = means;
    transform.mean_values = 2;
    for (int i = 0; i < 3; i++)
        for (int end = LEAT_EPOCH_END_DROP; end <= LEAT_EPOCH_END_PAD; end++) {
            plan.count = cases[i].count;
            options.batch_size = cases[i].batch;
            options.world_size = cases[i].ranks;
            options.rank = cases[i].ranks - 1;
            options.top_mode = (leat_top_mode)(_i / 3);
            options.epoch_end = (leat_epoch_end)end;
            if (plan.count < options.batch_size * options.world_size &&
                end == LEAT_EPOCH_END_DROP)
                continue;
            leat_pipeline *pipeline = bad_records_pipeline(&plan);
            collect_shapes(pipeline, "cpu", LEAT_TRANSFORM_ON_CPU, expected);
            collect_shapes(pipeline, "cuda:0", LEAT_TRANSFORM_ON_DEVICE, found);
            ck_assert_mem_eq(found, expected, sizeof(found));
            collect_shapes(pipeline, "cuda:0", LEAT_TRANSFORM_ON_CPU, found);
            ck_assert_mem_eq(found, expected, sizeof(found));
            leat_pipeline_unref(pipeline);
        }
}
END_TEST

/* The first record is small: slots and tops grow with the next. */
START_TEST(slots_grow_as_on_the_cpu)
{
    bad_records plan = {.count = 20, .way = (bad_records_way)_i};
    for (int i = 0; i < 20; i += 3)
        plan.kind[i] = BAD_RECORDS_SMALL;
    options.batch_size = 1;
    leat_pipeline *pipeline = bad_records_pipeline(&plan);
    check_alike(pipeline);
    leat_pipeline_unref(pipeline);
}
END_TEST

static char file[FILES][4096];
static size_t file_bytes[FILES];
static int32_t number;

static void load(int i, const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/images/%s", LEAT_TEST_DATA, name);
    FILE *from = fopen(path, "rb");
    ck_assert_msg(from != NULL, "%s", path);
    file_bytes[i] = fread(file[i], 1, sizeof(file[i]), from);
    ck_assert_int_eq(fclose(from), 0);
    ck_assert_uint_gt(file_bytes[i], 0);
}

static int open_images(void *user, void **pass)
{
    number = 0;
    *pass = user;
    return LEAT_OK;
}

static int reset_images(void *pass)
{
    (void)pass;
    number = 0;
    return LEAT_OK;
}

/* Seven in a pass; the one before the last is no image. */
static int next_image(void *pass, leat_sample *sample)
{
    static const int32_t labels[] = {0, 1, 2, 3, 4, 5, 6};
    int i = number % FILES;
    (void)pass;
    if (number == 7)
        return LEAT_END;
    const int32_t *label = &labels[number++];
    sample->nfields = 2;
    sample->field[0] = (leat_field){.dtype = LEAT_BYTES,
                                    .ndim = 1,
                                    .shape = {(int64_t)file_bytes[i]},
                                    .data = file[i],
                                    .bytes = *label == 5 ? 9 : file_bytes[i]};
    sample->field[0].shape[0] = (int64_t)sample->field[0].bytes;
    sample->field[1] =
        (leat_field){.dtype = LEAT_INT32, .data = label, .bytes = 4};
    return LEAT_OK;
}

/* Cropped in batches, and whole, each of its own shape. */
START_TEST(encoded_images_go_on_as_on_the_cpu)
{
    static const leat_field_spec fields[] = {
        {.name = "data", .dtype = LEAT_BYTES, .ndim = 1, .shape = {-1}},
        {.name = "label", .dtype = LEAT_INT32}};
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = fields,
                                      .nfields = 2,
                                      .open = open_images,
                                      .next = next_image,
                                      .reset = reset_images};
    leat_pipeline *pipeline;
    load(0, "baseline-444.jpg");
    load(1, "40x3.jpg");
    load(2, "exif-6.jpg");
    transform.crop_size = _i / 3 ? 3 : 0;
    options.batch_size = _i / 3 ? 3 : 1;
    options.on_error = (leat_on_error)(_i % 3);
    ck_assert_int_eq(leat_pipeline_callback(&pipeline, &callbacks, NULL),
                     LEAT_OK);
    check_alike(pipeline);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Each image is a row higher than the one before it. */
static int next_higher(void *pass, leat_sample *sample)
{
    static unsigned char pixels[STEPS * ROW];
    static const int32_t label = 1;
    (void)pass;
    if (number == STEPS)
        return LEAT_END;
    memset(pixels, ++number, sizeof(pixels));
    sample->nfields = 2;
    sample->field[0] = (leat_field){.dtype = LEAT_UINT8,
                                    .ndim = 3,
                                    .shape = {1, number, ROW},
                                    .data = pixels,
                                    .bytes = (size_t)number * ROW};
    sample->field[1] =
        (leat_field){.dtype = LEAT_INT32, .data = &label, .bytes = 4};
    return LEAT_OK;
}

typedef struct sum_arguments {
    const float *data;
    int64_t count;
    double *out;
} sum_arguments;

static void sum(void *argument)
{
    const sum_arguments *self = argument;
    const float *data = cuda_double_bytes(self->data);
    for (int64_t i = 0; i < self->count; i++)
        *self->out += (double)data[i];
}

/*
 * The memory that a slot outgrows goes when nobody reads it any more. With _i
 * of 2 and 3 what slots grow into cannot be pinned.
 */
START_TEST(slots_grow_after_the_streams_that_read_them)
{
    static const leat_field_spec fields[] = {
        {.name = "data", .dtype = LEAT_UINT8, .ndim = 3, .shape = {1, -1, ROW}},
        {.name = "label", .dtype = LEAT_INT32}};
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = fields,
                                      .nfields = 2,
                                      .open = open_images,
                                      .next = next_higher,
                                      .reset = reset_images};
    leat_pipeline *pipeline;
    double sums[STEPS] = {0};
    transform.scale = 1;
    options.batch_size = 1;
    options.device = "cuda:0";
    options.transform_on = (leat_transform_on)(_i % 2);
    if (_i >= 2)
        cuda_double_set_pinnable(PINNABLE);
    ck_assert_int_eq(leat_pipeline_callback(&pipeline, &callbacks, NULL),
                     LEAT_OK);
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    leat_stats stats = {.size = sizeof(stats)};
    ck_assert_int_eq(leat_data_layer_stats(fixture.layer, &stats), LEAT_OK);
    ck_assert_int_gt(stats.memory.pinned, 0);
    cudaStream_t on = cuda_double_stream();
    for (int i = 0; i < STEPS; i++) {
        ck_assert_int_eq(leat_cuda_forward(fixture.layer, fixture.top, 2, on),
                         LEAT_OK);
        sum_arguments arguments = {leat_blob_gpu_data(fixture.top[0]),
                                   leat_blob_count(fixture.top[0]), &sums[i]};
        ck_assert_int_eq(
            cuda_double_launch(sum, &arguments, sizeof(arguments), 0, on),
            cudaSuccess);
    }
    ck_assert_int_eq(cudaStreamSynchronize(on), cudaSuccess);
    for (int i = 0; i < STEPS; i++)
        ck_assert_double_eq(sums[i], (i + 1.0) * (i + 1.0) * ROW);
    ck_assert_int_eq(leat_data_layer_stats(fixture.layer, &stats), LEAT_OK);
    ck_assert_int_gt(stats.grown_batches, STEPS / 2);
    ck_assert_int_eq(stats.memory.pageable > 0, _i >= 2);
    ck_assert_int_eq(stats.memory.pinned + stats.memory.pageable <
                         stats.memory.device,
                     _i % 2);
    layer_fixture_close(&fixture);
    ck_assert_int_eq(cudaStreamDestroy(on), cudaSuccess);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(pixels_of_float32_are_refused_by_name)
{
    static const float pixels[8];
    static const int32_t labels[2];
    const leat_memory_field fields[] = {
        {"data", LEAT_FLOAT32, 3, {1, 2, 2}, pixels},
        {"label", LEAT_INT32, 0, {0}, labels}};
    leat_pipeline *pipeline;
    leat_data_layer *layer;
    leat_blob *top[2];
    leat_device *device;
    options.batch_size = 1;
    options.device = "cuda:0";
    options.transform_on = LEAT_TRANSFORM_ON_DEVICE;
    ck_assert_int_eq(leat_pipeline_memory(&pipeline, fields, 2, 2), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options), 0);
    ck_assert_int_eq(leat_device_find(&device, "cuda:0"), LEAT_OK);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(leat_blob_create(&top[i], device), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_setup(layer, top, 2), LEAT_EINVAL);
    ck_assert_msg(strstr(leat_last_error(), "the pixels are float32") != NULL,
                  "%s", leat_last_error());
    leat_data_layer_destroy(layer);
    leat_blob_destroy(top[0]);
    leat_blob_destroy(top[1]);
    leat_pipeline_unref(pipeline);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("crops_cuda");
    TCase *tcase = tcase_create("crops_cuda");
    tcase_add_checked_fixture(tcase, set_up, NULL);
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, bad_records_are_replaced_as_on_the_cpu, 0, 9);
    tcase_add_loop_test(tcase, epochs_end_as_on_the_cpu, 0, 6);
    tcase_add_loop_test(tcase, slots_grow_as_on_the_cpu, 0, 3);
    tcase_add_loop_test(tcase, encoded_images_go_on_as_on_the_cpu, 0, 6);
    tcase_add_loop_test(tcase, slots_grow_after_the_streams_that_read_them, 0,
                        4);
    tcase_add_test(tcase, pixels_of_float32_are_refused_by_name);
    return suite_run(suite);
}
