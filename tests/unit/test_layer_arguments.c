/* A layer that is called or told wrongly says so, and goes on as before. */
#include "support/late_device.h"
#include "support/layer_fixture.h"
#include "support/suite.h"

#include <leat/ext/device.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <leat/image.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static leat_pipeline *pipeline;
static leat_data_layer_options options;
static leat_transform_options transform;

static void set_up(void)
{
    layer_fixture_options(&options, &transform);
    options.batch_size = 5;
    options.random_seed = 1;
    pipeline = layer_fixture_pipeline();
}

static void tear_down(void)
{
    leat_pipeline_unref(pipeline);
}

static void assert_refused(int status, int expected, const char *word)
{
    ck_assert_int_eq(status, expected);
    ck_assert_msg(strstr(leat_last_error(), word), "%s", leat_last_error());
}

/* That creating with the options, as they are now, fails for this reason. */
static void assert_no_layer(const char *word)
{
    leat_data_layer *layer;
    assert_refused(leat_data_layer_create(&layer, pipeline, &options),
                   LEAT_EINVAL, word);
}

/* Every field that holds one of a few words: the first number after them, and
   others. The line names the field, the number and the words. */
START_TEST(a_choice_that_does_not_exist_is_refused)
{
    const struct {
        const char *name;
        void *field; /* an int, or an enum of its size */
        int words;
        const char *expected;
    } fields[] = {
        {"phase", &options.phase, 2, "TRAIN or TEST"},
        {"layout", &options.layout, 2, "NCHW or NHWC"},
        {"top_mode", &options.top_mode, 2, "LEND or COPY"},
        {"rng", &options.rng, 2, "LEAT or CAFFE"},
        {"reader_thread", &options.reader_thread, 3, "AUTO, ON or OFF"},
        {"caller_helps", &options.caller_helps, 2, "AUTO or OFF"},
        {"on_error", &options.on_error, 3, "FAIL, ZERO or REPLACE"},
        {"transform_on", &options.transform_on, 2, "CPU or DEVICE"},
        {"top_type", &options.top_type, 77,
         "FLOAT32, FLOAT64, FLOAT16, BFLOAT16 or UINT8"},
        {"label_type", &options.label_type, 77,
         "FLOAT32, FLOAT64, INT32, INT64 or UINT8"}};
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        const int wrong[] = {fields[i].words, 77, -1, INT_MAX, INT_MIN};
        for (size_t k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++) {
            char line[128];
            int before;
            memcpy(&before, fields[i].field, sizeof(before));
            memcpy(fields[i].field, &wrong[k], sizeof(wrong[k]));
            snprintf(line, sizeof(line), "%s is %d: expected %s",
                     fields[i].name, wrong[k], fields[i].expected);
            assert_no_layer(line);
            memcpy(fields[i].field, &before, sizeof(before));
        }
    }
    leat_data_layer *layer;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    leat_data_layer_destroy(layer);
}
END_TEST

START_TEST(a_transformer_of_a_phase_or_layout_that_is_none_is_refused)
{
    leat_transformer *none;
    assert_refused(leat_transformer_create(&none, NULL, (leat_phase)2,
                                           LEAT_FLOAT32, LEAT_NCHW),
                   LEAT_EINVAL, "phase is 2: expected TRAIN or TEST");
    assert_refused(leat_transformer_create(&none, NULL, LEAT_TEST, LEAT_FLOAT32,
                                           (leat_layout)-1),
                   LEAT_EINVAL, "layout is -1: expected NCHW or NHWC");
}
END_TEST

static int next_of_none(void *pass, leat_sample *sample)
{
    (void)pass;
    (void)sample;
    return LEAT_END;
}

START_TEST(tables_with_a_flag_that_is_none_are_refused)
{
    leat_device_ops device = {
        .size = sizeof(device), .name = "flagged", .unified = 2};
    leat_reader_type type = {
        .size = sizeof(type), .name = "flagged", .may_block = -1};
    leat_field_spec field = {.name = "data", .dtype = (leat_dtype)77};
    leat_callbacks callbacks = {.size = sizeof(callbacks),
                                .fields = &field,
                                .nfields = 1,
                                .next = next_of_none};
    leat_pipeline *none;
    assert_refused(leat_device_register(&device), LEAT_EINVAL,
                   "unified is 2: expected 0 or 1");
    assert_refused(leat_reader_register(&type), LEAT_EINVAL,
                   "may_block is -1: expected 0 or 1");
    assert_refused(leat_pipeline_callback(&none, &callbacks, NULL), LEAT_EINVAL,
                   "unknown dtype 77");
}
END_TEST

/* The resume token has no room for them: it would name another number. */
START_TEST(more_ranks_than_a_token_can_name_are_refused)
{
    options.world_size = 65536;
    assert_no_layer("world_size is 65536: expected 0 to 65535 ranks");
    options.world_size = 65536 + 1;
    assert_no_layer("world_size is 65537");
    options.world_size = 65535;
    options.rank = 65534;
    options.rng = LEAT_RNG_CAFFE;
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    leat_token token;
    leat_token_init(&token);
    ck_assert_int_eq(leat_data_layer_save(fixture.layer, &token), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_restore(fixture.layer, &token), LEAT_OK);
    layer_fixture_close(&fixture);
    options.world_size = 65534;
    options.rank = 65533;
    fixture = layer_fixture_open(pipeline, &options);
    assert_refused(leat_data_layer_restore(fixture.layer, &token), LEAT_EINVAL,
                   "saved with 65535, here 65534");
    layer_fixture_close(&fixture);
    leat_token_finish(&token);
}
END_TEST

/* What a caller's shorter struct does not have is not looked at. */
START_TEST(options_end_where_the_caller_says)
{
    leat_data_layer *layer;
    options.size = offsetof(leat_data_layer_options, max_errors);
    options.max_errors = -5;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    ck_assert_int_eq(leat_data_layer_get_options(layer)->max_errors, -1);
    leat_data_layer_destroy(layer);
}
END_TEST

START_TEST(an_image_may_take_a_share_of_the_memory)
{
    static const struct {
        size_t max_memory, asked, expected;
    } cases[] = {
        {0, 0, LEAT_IMAGE_BYTES_DEFAULT},
        {0, 1, 1},
        {1 << 20, 0, (size_t)64 << 20},
        {1 << 20, 5, 5},
        {(size_t)400 << 20, 0, (size_t)100 << 20},
        {(size_t)4 << 30, 0, LEAT_IMAGE_BYTES_DEFAULT},
        {(size_t)4 << 30, (size_t)3 << 30, (size_t)3 << 30},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        leat_data_layer *layer;
        options.max_memory = cases[i].max_memory;
        options.max_image_bytes = cases[i].asked;
        ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                         LEAT_OK);
        ck_assert_uint_eq(leat_data_layer_get_options(layer)->max_image_bytes,
                          cases[i].expected);
        leat_data_layer_destroy(layer);
    }
    /* A caller's older options do not have it. */
    leat_data_layer *layer;
    options.max_memory = 0;
    options.size = offsetof(leat_data_layer_options, max_image_bytes);
    options.max_image_bytes = 7;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    ck_assert_uint_eq(leat_data_layer_get_options(layer)->max_image_bytes,
                      LEAT_IMAGE_BYTES_DEFAULT);
    leat_data_layer_destroy(layer);
}
END_TEST

START_TEST(transform_options_end_where_the_caller_says)
{
    leat_data_layer *layer;
    transform.size = offsetof(leat_transform_options, mean_values);
    transform.scale = 2;
    transform.mean_values = -1;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    const leat_transform_options *known =
        leat_data_layer_get_options(layer)->transform;
    ck_assert_float_eq(known->scale, 2);
    ck_assert_int_eq(known->mean_values, 0);
    ck_assert_uint_eq(known->size, sizeof(*known));
    leat_data_layer_destroy(layer);
}
END_TEST

START_TEST(a_transform_that_promises_values_must_bring_them)
{
    const float mean = 50;
    transform.mean_values = 2;
    assert_no_layer("mean_value");
    transform.mean_values = 0;
    transform.mean_value = &mean;
    assert_no_layer("mean_values is 0");
}
END_TEST

/* A row is as high as a crop of 1. */
START_TEST(what_is_no_image_is_not_cropped)
{
    static const unsigned char rows[3][7];
    const leat_memory_field field = {"data", LEAT_UINT8, 1, {7}, rows};
    leat_pipeline *numbers;
    leat_data_layer *layer;
    leat_blob *top;
    ck_assert_int_eq(leat_pipeline_memory(&numbers, &field, 1, 3), LEAT_OK);
    transform.crop_size = 1;
    ck_assert_int_eq(leat_data_layer_create(&layer, numbers, &options),
                     LEAT_OK);
    ck_assert_int_eq(leat_blob_create(&top, NULL), LEAT_OK);
    assert_refused(leat_data_layer_setup(layer, &top, 1), LEAT_EINVAL,
                   "crop_size");
    leat_blob_destroy(top);
    leat_data_layer_destroy(layer);
    leat_pipeline_unref(numbers);
}
END_TEST

START_TEST(more_tops_than_a_sample_has_fields_are_refused)
{
    const char *names[LEAT_MAX_FIELDS + 2] = {NULL};
    for (int i = 0; i <= LEAT_MAX_FIELDS; i++)
        names[i] = "a";
    options.tops = names;
    assert_no_layer("tops");
}
END_TEST

START_TEST(before_setup_there_is_nothing_to_save_or_restore)
{
    leat_data_layer *layer;
    leat_token token;
    leat_token_init(&token);
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    assert_refused(leat_data_layer_save(layer, &token), LEAT_ESTATE, "setup");
    assert_refused(leat_data_layer_restore(layer, &token), LEAT_ESTATE,
                   "setup");
    leat_token_finish(&token);
    leat_data_layer_destroy(layer);
}
END_TEST

START_TEST(a_token_that_is_none_or_of_another_generator_is_refused)
{
    leat_token token;
    leat_token_init(&token);
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(leat_data_layer_save(fixture.layer, &token), LEAT_OK);
    assert_refused(leat_data_layer_restore(fixture.layer, NULL), LEAT_EINVAL,
                   "no resume token");
    /* A place after its own position, an epoch that is, a position where none
       can be counted. */
    leat_token wrong;
    leat_token_init(&wrong);
    ck_assert_int_eq(leat_token_put(&wrong, token.bytes, token.size), LEAT_OK);
    wrong.bytes[12] = 9;
    assert_refused(leat_data_layer_restore(fixture.layer, &wrong), LEAT_EINVAL,
                   "no position");
    wrong.bytes[12] = 0;
    wrong.bytes[11] = 0x7f;
    assert_refused(leat_data_layer_restore(fixture.layer, &wrong), LEAT_EINVAL,
                   "no position");
    wrong.bytes[11] = 0;
    wrong.bytes[20] = 9;
    assert_refused(leat_data_layer_restore(fixture.layer, &wrong), LEAT_EINVAL,
                   "no position");
    leat_token_finish(&wrong);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    layer_fixture_close(&fixture);
    options.rng = LEAT_RNG_CAFFE;
    fixture = layer_fixture_open(pipeline, &options);
    assert_refused(leat_data_layer_restore(fixture.layer, &token), LEAT_EINVAL,
                   "another rng");
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    layer_fixture_close(&fixture);
    leat_token_finish(&token);
}
END_TEST

START_TEST(wrong_tops_are_refused_and_the_batch_is_not_lost)
{
    leat_device *late;
    leat_blob *elsewhere;
    late_device_register();
    ck_assert_int_eq(leat_device_find(&late, "late:0"), LEAT_OK);
    ck_assert_int_eq(leat_blob_create(&elsewhere, late), LEAT_OK);
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    leat_blob *const away[2] = {fixture.top[0], elsewhere};
    assert_refused(leat_data_layer_forward(fixture.layer, away, 2, LEAT_HOST),
                   LEAT_EINVAL, "top 1 is on late:0, the layer on cpu");
    assert_refused(
        leat_data_layer_forward(fixture.layer, fixture.top, 1, LEAT_HOST),
        LEAT_EINVAL, "2 tops");
    leat_blob *const same[2] = {fixture.top[0], fixture.top[0]};
    assert_refused(leat_data_layer_forward(fixture.layer, same, 2, LEAT_HOST),
                   LEAT_EINVAL, "tops 0 and 1 are the same blob");
    assert_refused(leat_data_layer_setup(fixture.layer, fixture.top, 1),
                   LEAT_EINVAL, "2 tops");
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_float_eq(layer_fixture_label(&fixture, 0), 1000);
    layer_fixture_close(&fixture);
    leat_blob_destroy(elsewhere);
}
END_TEST

START_TEST(setup_wants_blobs_and_takes_them_later_all_the_same)
{
    leat_data_layer *layer;
    leat_blob *top[2] = {NULL, NULL};
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    ck_assert_str_eq(leat_data_layer_top_name(layer, 1), "label");
    ck_assert_ptr_null(leat_data_layer_top_name(layer, 2));
    ck_assert_int_eq(leat_blob_create(&top[0], NULL), LEAT_OK);
    assert_refused(leat_data_layer_setup(layer, top, 2), LEAT_EINVAL,
                   "top 1 is NULL");
    assert_refused(leat_data_layer_setup(layer, NULL, 2), LEAT_EINVAL,
                   "`top` is NULL, with 2 tops");
    leat_blob *const same[2] = {top[0], top[0]};
    assert_refused(leat_data_layer_setup(layer, same, 2), LEAT_EINVAL,
                   "tops 0 and 1 are the same blob");
    ck_assert_int_eq(leat_blob_create(&top[1], NULL), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_setup(layer, top, 2), LEAT_OK);
    leat_data_layer_destroy(layer);
    leat_blob_destroy(top[0]);
    leat_blob_destroy(top[1]);
}
END_TEST

START_TEST(a_release_names_at_most_eight_streams)
{
    leat_stream streams[9] = {LEAT_HOST};
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    assert_refused(leat_data_layer_release(fixture.layer, streams, 9),
                   LEAT_EINVAL, "0 to 8 streams");
    ck_assert_ptr_nonnull(leat_data_layer_batch(fixture.layer));
    layer_fixture_close(&fixture);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layer_arguments");
    TCase *tcase = tcase_create("layer_arguments");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, a_choice_that_does_not_exist_is_refused);
    tcase_add_test(tcase,
                   a_transformer_of_a_phase_or_layout_that_is_none_is_refused);
    tcase_add_test(tcase, tables_with_a_flag_that_is_none_are_refused);
    tcase_add_test(tcase, more_ranks_than_a_token_can_name_are_refused);
    tcase_add_test(tcase, options_end_where_the_caller_says);
    tcase_add_test(tcase, an_image_may_take_a_share_of_the_memory);
    tcase_add_test(tcase, transform_options_end_where_the_caller_says);
    tcase_add_test(tcase, a_transform_that_promises_values_must_bring_them);
    tcase_add_test(tcase, what_is_no_image_is_not_cropped);
    tcase_add_test(tcase, more_tops_than_a_sample_has_fields_are_refused);
    tcase_add_test(tcase, before_setup_there_is_nothing_to_save_or_restore);
    tcase_add_test(tcase,
                   a_token_that_is_none_or_of_another_generator_is_refused);
    tcase_add_test(tcase, wrong_tops_are_refused_and_the_batch_is_not_lost);
    tcase_add_test(tcase, setup_wants_blobs_and_takes_them_later_all_the_same);
    tcase_add_test(tcase, a_release_names_at_most_eight_streams);
    return suite_run(suite);
}
