/* A mean image of another shape than the images is no fault of any record. */
#include "support/bad_records.h"
#include "support/layer_fixture.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[] = "/tmp/leat-mean-XXXXXX";
static bad_records plan;
static leat_data_layer_options options;
static leat_transform_options transform;

static void set_up(void)
{
    const bad_records none = {.count = 20};
    const leat_data_layer_options defaults = LEAT_DATA_LAYER_OPTIONS_INIT;
    const leat_transform_options no_transform = LEAT_TRANSFORM_OPTIONS_INIT;
    plan = none;
    options = defaults;
    transform = no_transform;
    transform.mean_file = path;
    options.batch_size = 4;
    options.random_seed = 11;
    options.transform = &transform;
}

static void save_mean(int height, int width)
{
    static const float values[BAD_RECORDS_CHANNELS * 8 * 8];
    ck_assert_int_eq(
        leat_mean_save(path, BAD_RECORDS_CHANNELS, height, width, values),
        LEAT_OK);
}

static int open_layer(layer_fixture *fixture)
{
    leat_pipeline *pipeline = bad_records_pipeline(&plan);
    ck_assert_int_eq(
        leat_data_layer_create(&fixture->layer, pipeline, &options), LEAT_OK);
    leat_pipeline_unref(pipeline);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(leat_blob_create(&fixture->top[i], NULL), LEAT_OK);
    return leat_data_layer_setup(fixture->layer, fixture->top, 2);
}

static void assert_line(const char *part)
{
    ck_assert_msg(strstr(leat_last_error(), part), "\"%s\" lacks \"%s\"",
                  leat_last_error(), part);
}

static void set_policy(int policy)
{
    options.on_error = (leat_on_error)policy;
    options.max_errors = policy ? 9 : -1;
}

/* With and without crop, in all ways to read, whatever becomes of records. */
START_TEST(setup_names_the_mean_and_both_shapes)
{
    save_mean(BAD_RECORDS_HEIGHT, BAD_RECORDS_WIDTH - 1);
    for (int policy = 0; policy < 3; policy++)
        for (int way = 0; way < BAD_RECORDS_WAYS; way++)
            for (int crop = 0; crop <= 2; crop += 2) {
                /* The first record that can be read is the one to look at. */
                int is_after = policy > 0 && crop;
                plan.kind[0] =
                    is_after ? BAD_RECORDS_UNREADABLE : BAD_RECORDS_GOOD;
                plan.way = (bad_records_way)way;
                transform.crop_size = crop;
                set_policy(policy);
                layer_fixture fixture;
                ck_assert_int_eq(open_layer(&fixture), LEAT_EINVAL);
                assert_line(path);
                assert_line("2 x 5 x 5");
                assert_line("2 x 5 x 6");
                ck_assert_ptr_null(strstr(leat_last_error(), "record"));
                layer_fixture_close(&fixture);
            }
}
END_TEST

/* Record `odd` is smaller than the others, which the crop alone allows. */
static void meet_odd(int odd, int workers)
{
    memset(plan.kind, 0, sizeof(plan.kind));
    plan.kind[odd] = BAD_RECORDS_SMALL;
    options.workers = workers;
    layer_fixture fixture;
    ck_assert_int_eq(open_layer(&fixture), LEAT_OK);
    for (int batch = 0; batch < odd / 4; batch++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    char record[32];
    snprintf(record, sizeof(record), "record %d", odd);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_EINVAL);
        assert_line(path);
        assert_line("2 x 5 x 6");
        assert_line("2 x 2 x 6");
        assert_line(record);
    }
    leat_stats stats = {.size = sizeof(stats)};
    ck_assert_int_eq(leat_data_layer_stats(fixture.layer, &stats), LEAT_OK);
    ck_assert_int_eq(stats.bad_records, 0);
    layer_fixture_close(&fixture);
}

START_TEST(a_record_that_the_mean_does_not_fit_is_not_a_bad_one)
{
    save_mean(BAD_RECORDS_HEIGHT, BAD_RECORDS_WIDTH);
    transform.crop_size = 2;
    for (int policy = 0; policy < 3; policy++)
        for (int way = 0; way < BAD_RECORDS_WAYS; way++)
            for (int workers = 1; workers < 4; workers++) {
                plan.way = (bad_records_way)way;
                set_policy(policy);
                /* In the middle of a batch, and where it decides its shape. */
                meet_odd(9, workers);
                meet_odd(12, workers);
            }
}
END_TEST

START_TEST(without_the_mean_such_a_record_is_good)
{
    transform.mean_file = NULL;
    transform.crop_size = 2;
    plan.kind[9] = BAD_RECORDS_SMALL;
    layer_fixture fixture;
    ck_assert_int_eq(open_layer(&fixture), LEAT_OK);
    for (int batch = 0; batch < 10; batch++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    layer_fixture_close(&fixture);
}
END_TEST

int main(void)
{
    int file = mkstemp(path);
    if (file < 0)
        return EXIT_FAILURE;
    close(file);
    Suite *suite = suite_create("layer_mean");
    TCase *tcase = tcase_create("layer_mean");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, set_up, NULL);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, setup_names_the_mean_and_both_shapes);
    tcase_add_test(tcase, a_record_that_the_mean_does_not_fit_is_not_a_bad_one);
    tcase_add_test(tcase, without_the_mean_such_a_record_is_good);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    (void)remove(path);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
