/* Caffe's transform as a map: test_transform has the arithmetic itself. */
#include "base/memory.h"
#include "support/map_fixture.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/choice.h>
#include <leat/decorators.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 37, C = 3, H = 8, W = 9, SIZE = C * H * W, CROP = 5 };

static unsigned char pixels[COUNT][SIZE];
static int32_t labels[COUNT];
static const leat_memory_field fields[] = {
    {"data", LEAT_UINT8, 3, {C, H, W}, pixels},
    {"label", LEAT_INT32, 0, {0}, labels},
};

static leat_pipeline *memory(void)
{
    leat_pipeline *made = NULL;
    for (int i = 0; i < COUNT; i++) {
        labels[i] = i;
        for (int k = 0; k < SIZE; k++)
            pixels[i][k] = (unsigned char)(i * 7 + k * 13);
    }
    ck_assert_int_eq(leat_pipeline_memory(&made, fields, 2, COUNT), LEAT_OK);
    return made;
}

static const float means[] = {104, 117.5f, 123};

static leat_transform_options image_options(void)
{
    leat_transform_options options = LEAT_TRANSFORM_OPTIONS_INIT;
    options.crop_size = CROP;
    options.mirror = true;
    options.scale = 0.00390625f;
    options.mean_value = means;
    options.mean_values = 3;
    return options;
}

/* The pixels of some batches. */
static float *forward(const leat_pipeline *pipeline,
                      const leat_transform_options *transform, leat_phase phase,
                      int workers, int batches)
{
    enum { BATCH = 8, BYTES = BATCH * C * CROP * CROP * sizeof(float) };
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    leat_data_layer *layer;
    leat_blob *top[2];
    char *out = malloc((size_t)batches * BYTES);
    options.batch_size = BATCH;
    options.random_seed = 7;
    options.phase = phase;
    options.workers = workers;
    if (transform)
        options.transform = transform;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(leat_blob_create(&top[i], NULL), LEAT_OK);
    int status = leat_data_layer_setup(layer, top, 2);
    ck_assert_msg(!status, "%s", leat_last_error());
    for (int k = 0; k < batches; k++) {
        status = leat_data_layer_forward(layer, top, 2, LEAT_HOST);
        ck_assert_msg(!status, "%s", leat_last_error());
        ck_assert_uint_eq(leat_blob_bytes(top[0]), BYTES);
        memcpy(out + (size_t)k * BYTES, leat_blob_cpu_data(top[0]), BYTES);
    }
    leat_data_layer_destroy(layer);
    for (int i = 0; i < 2; i++)
        leat_blob_destroy(top[i]);
    return (float *)(void *)out;
}

/* Over two epochs and a half, with any number of workers. */
START_TEST(choices_and_values_are_those_of_a_layer_of_the_same_seed)
{
    leat_transform_map_options options = LEAT_TRANSFORM_MAP_OPTIONS_INIT;
    leat_transform_options image = image_options();
    options.seed = 7;
    options.has_seed = 1;
    for (int phase = 0; phase < 2; phase++)
        for (int i = 0; i < 3; i++) {
            leat_pipeline *base = memory(), *ordered, *mapped;
            ck_assert_int_eq(
                i == 1 ? leat_pipeline_repeat(&ordered, base, 2)
                       : leat_pipeline_take(&ordered, base, i ? 20 : -1),
                LEAT_OK);
            ck_assert_int_eq(
                leat_pipeline_transform(&mapped, ordered, &image, &options),
                LEAT_OK);
            float *expected =
                forward(ordered, &image, (leat_phase)phase, 1, 12);
            for (int workers = 1; workers < 4; workers++) {
                float *found =
                    forward(mapped, NULL, (leat_phase)phase, workers, 12);
                ck_assert_mem_eq(found, expected,
                                 12 * 8 * C * CROP * CROP * sizeof(float));
                free(found);
            }
            free(expected);
            leat_pipeline_unref(mapped);
            leat_pipeline_unref(ordered);
            leat_pipeline_unref(base);
        }
}
END_TEST

/* Every type and layout, by the transformer itself. */
START_TEST(each_type_and_layout_is_the_transformers)
{
    static const leat_dtype types[] = {LEAT_FLOAT32, LEAT_FLOAT64, LEAT_FLOAT16,
                                       LEAT_BFLOAT16, LEAT_UINT8};
    leat_sample sample;
    leat_sample_init(&sample);
    for (int t = 0; t < 5; t++)
        for (int layout = 0; layout < 2; layout++) {
            leat_transform_map_options options = {.size = sizeof(options),
                                                  .field = "data",
                                                  .dtype = types[t],
                                                  .layout = (leat_layout)layout,
                                                  .seed = 99,
                                                  .has_seed = 1,
                                                  .choices = 3};
            leat_transform_options image = image_options();
            if (types[t] == LEAT_UINT8)
                image = (leat_transform_options){
                    .size = sizeof(image), .crop_size = CROP, .mirror = true};
            leat_pipeline *base = memory(), *made;
            leat_transformer *oracle;
            leat_reader *reader;
            const leat_field_spec *spec;
            int n;
            ck_assert_int_eq(
                leat_pipeline_transform(&made, base, &image, &options),
                LEAT_OK);
            ck_assert_int_eq(leat_pipeline_open(made, &reader), LEAT_OK);
            ck_assert_int_eq(leat_transformer_create(&oracle, &image,
                                                     LEAT_TRAIN, types[t],
                                                     (leat_layout)layout),
                             LEAT_OK);
            ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
            for (int i = COUNT - 1; i >= 0; i--) {
                const leat_field field = {.dtype = LEAT_UINT8,
                                          .ndim = 3,
                                          .shape = {C, H, W},
                                          .data = pixels[i],
                                          .bytes = SIZE};
                const int shape[] = {C, CROP, CROP};
                uint32_t words[4];
                double expected[C * CROP * CROP];
                leat_choice(99, 0, i, 3, words);
                ck_assert_int_eq(leat_transformer_apply(oracle, &field,
                                                        LEAT_RNG_LEAT, words,
                                                        shape, expected),
                                 LEAT_OK);
                ck_assert_int_eq(map_fixture_read(reader, i, &sample), LEAT_OK);
                ck_assert_int_eq(sample.field[0].dtype, types[t]);
                ck_assert_int_eq(spec[0].dtype, types[t]);
                ck_assert_mem_eq(sample.field[0].data, expected,
                                 sample.field[0].bytes);
                for (int k = 0; k < 3; k++) {
                    ck_assert_int_eq(sample.field[0].shape[k],
                                     k == (layout ? 2 : 0) ? C : CROP);
                    ck_assert_int_eq(spec[0].shape[k],
                                     sample.field[0].shape[k]);
                }
            }
            int64_t before = leat__alloc_count();
            for (int i = 0; i < COUNT; i++)
                ck_assert_int_eq(map_fixture_read(reader, i, &sample), LEAT_OK);
            ck_assert_int_eq(leat__alloc_count(), before);
            leat_transformer_destroy(oracle);
            leat_reader_close(reader);
            leat_pipeline_unref(made);
            leat_pipeline_unref(base);
        }
    leat_sample_finish(&sample);
}
END_TEST

START_TEST(code_and_text_make_equal_pipelines)
{
    leat_transform_map_options options = LEAT_TRANSFORM_MAP_OPTIONS_INIT;
    leat_transform_options image = image_options();
    leat_pipeline *base = memory(), *made;
    options.field = "data";
    options.seed = 5;
    options.has_seed = 1;
    ck_assert_int_eq(leat_pipeline_transform(&made, base, &image, &options),
                     LEAT_OK);
    ck_assert_msg(
        strstr(leat_pipeline_text(made),
               "| transform:data,crop_size=5,mirror=1,scale=0.00390625,"
               "mean_value=(104,117.5,123),type=FLOAT32,layout=CHW,seed=5,"
               "choices=0,max_image_bytes=0"),
        "%s", leat_pipeline_text(made));
    leat_pipeline_unref(made);
    ck_assert_int_eq(leat_pipeline_transform(&made, base, NULL, NULL), LEAT_OK);
    leat_pipeline_unref(made);
    options.dtype = LEAT_INT8;
    ck_assert_int_eq(leat_pipeline_transform(&made, base, NULL, &options),
                     LEAT_EINVAL);
    leat_pipeline_unref(base);
}
END_TEST

START_TEST(samples_that_do_not_fit_are_bad_and_options_refused)
{
    leat_sample sample;
    leat_sample_init(&sample);
    leat_pipeline_unref(memory());
    leat_reader *reader =
        map_fixture_open(fields, 2, 1, "transform:crop_size=9");
    ck_assert_ptr_nonnull(reader);
    ck_assert_int_eq(map_fixture_read(reader, 0, &sample), LEAT_EDATA);
    ck_assert_msg(strstr(leat_last_error(),
                         "transform: memory: record 0: field \"data\": "
                         "crop_size is 9, the image is only 8 x 9"),
                  "%s", leat_last_error());
    leat_reader_close(reader);
    reader = map_fixture_open(
        fields, 2, 1, "reshape:data=-1 | transform:data,scale=2,type=FLOAT64");
    ck_assert_int_eq(map_fixture_read(reader, 0, &sample), LEAT_OK);
    ck_assert_int_eq(sample.field[0].ndim, 1);
    for (int k = 0; k < SIZE; k++)
        ck_assert_double_eq(map_fixture_number(&sample, 0, k),
                            2 * pixels[0][k]);
    leat_reader_close(reader);
    reader = map_fixture_open(fields, 2, 1,
                              "reshape:data=-1 | transform:data,crop_size=2");
    ck_assert_int_eq(map_fixture_read(reader, 0, &sample), LEAT_EDATA);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "crop_size is for images"));
    leat_reader_close(reader);
    map_fixture_refuses(fields, 2, "transform:label",
                        "transform: field \"label\" is int32: expected");
    map_fixture_refuses(fields, 2, "transform:image",
                        "there is no field \"image\"");
    map_fixture_refuses(fields, 2, "transform:scale=x", "scale: expected");
    map_fixture_refuses(fields, 2, "transform:mean_value=(1,b)",
                        "mean_value: expected a number, found 'b'");
    map_fixture_refuses(fields, 2, "transform:type=UINT8,scale=2",
                        "scale must be 1");
    map_fixture_refuses(fields, 2, "transform:mean_file=/nowhere/mean",
                        "/nowhere/mean");
    map_fixture_refuses(fields, 2, "transform:force_color=1,force_gray=1",
                        "only one of the two");
    leat_sample_finish(&sample);
}
END_TEST

/* An image and its mask, in one pass, cut alike. */
START_TEST(two_transforms_of_one_seed_choose_alike)
{
    leat_sample sample;
    leat_sample_init(&sample);
    leat_pipeline_unref(memory());
    leat_reader *reader = map_fixture_open(
        fields, 2, COUNT,
        "select:image=data,mask=data | "
        "transform:image,crop_size=4,mirror=1,seed=3,type=UINT8 | "
        "transform:mask,crop_size=4,mirror=1,seed=3,type=UINT8");
    ck_assert_msg(reader, "%s", leat_last_error());
    for (int i = 0; i < COUNT; i++) {
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        ck_assert_mem_eq(sample.field[0].data, sample.field[1].data, C * 4 * 4);
    }
    leat_reader_close(reader);
    leat_sample_finish(&sample);
}
END_TEST

static int read_with_fault(leat_pipeline *pipeline, int64_t n)
{
    leat_reader *reader = NULL;
    leat_sample sample;
    leat_sample_init(&sample);
    leat__alloc_fail_at(n);
    int64_t last = leat__alloc_count() + n;
    int status = leat_pipeline_open(pipeline, &reader);
    if (!status)
        status = leat_reader_next(reader, &sample);
    leat__alloc_fail_at(-1);
    ck_assert_msg(status == LEAT_OK || status == LEAT_ENOMEM, "%s",
                  leat_last_error());
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    return leat__alloc_count() > last;
}

/* One pass takes some milliseconds, one for each value minutes. */
START_TEST(many_mean_values_are_read_in_one_pass)
{
    enum { VALUES = 200000 };
    char *text = malloc(2 * VALUES + 64);
    leat_reader *reader;
    size_t at = (size_t)sprintf(
        text, "random:1,shape=3x2x2,dtype=uint8 | transform:mean_value=(1");
    for (int i = 1; i < VALUES; i++)
        at += (size_t)sprintf(text + at, ",1");
    memcpy(text + at, ")", 2);
    leat_pipeline *pipeline;
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, text), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
    free(text);
}
END_TEST

START_TEST(every_failing_allocation_is_an_error)
{
    leat_transform_options image = image_options();
    leat_pipeline *base = memory(), *made = NULL;
    int status = LEAT_ENOMEM;
    for (int64_t n = 0; status; n++) {
        leat__alloc_fail_at(n);
        status = leat_pipeline_transform(&made, base, &image, NULL);
        leat__alloc_fail_at(-1);
        ck_assert(status == LEAT_OK || status == LEAT_ENOMEM);
    }
    for (int64_t n = 0; read_with_fault(made, n);)
        n++;
    leat_pipeline_unref(made);
    leat_pipeline_unref(base);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("transform");
    TCase *tcase = tcase_create("transform");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase,
                   choices_and_values_are_those_of_a_layer_of_the_same_seed);
    tcase_add_test(tcase, each_type_and_layout_is_the_transformers);
    tcase_add_test(tcase, code_and_text_make_equal_pipelines);
    tcase_add_test(tcase, samples_that_do_not_fit_are_bad_and_options_refused);
    tcase_add_test(tcase, two_transforms_of_one_seed_choose_alike);
    tcase_add_test(tcase, many_mean_values_are_read_in_one_pass);
    tcase_add_test(tcase, every_failing_allocation_is_an_error);
    return suite_run(suite);
}
