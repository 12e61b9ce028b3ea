/* A forward that waits says so, once in a while, and for whom. */
#include "layer/diagnose/activity.h"
#include "layer/diagnose/waiting.h"
#include "support/late_device.h"
#include "support/layer_fixture.h"
#include "support/scripted_source.h"

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

START_TEST(the_stage_is_told_from_where_the_threads_are)
{
    static const struct {
        leat__activity now;
        leat__bottleneck behind;
    } cases[] = {
        {{4, 0, 1, 0, -1}, LEAT__BOTTLENECK_READER},
        {{4, 1, 1, 0, -1}, LEAT__BOTTLENECK_READER},
        {{4, 0, 4, 0, -1}, LEAT__BOTTLENECK_READER},
        {{4, 4, 0, 0, -1}, LEAT__BOTTLENECK_WORKERS},
        {{4, 4, 1, 0, -1}, LEAT__BOTTLENECK_WORKERS},
        {{4, 1, 0, 0, -1}, LEAT__BOTTLENECK_WORKERS},
        {{4, 0, 0, 2, -1}, LEAT__BOTTLENECK_COPY},
        {{4, 0, 1, 1, -1}, LEAT__BOTTLENECK_COPY},
        {{4, 2, 0, 2, -1}, LEAT__BOTTLENECK_WORKERS},
        {{4, 0, 0, 0, -1}, LEAT__BOTTLENECK_NOBODY},
        /* It does not wait for its own device, which has no batch free. */
        {{4, 0, 0, 0, 0}, LEAT__BOTTLENECK_NOBODY},
        {{4, 0, 1, 0, 1}, LEAT__BOTTLENECK_MEMBER},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        ck_assert_msg(leat__activity_judge(&cases[i].now, 0) == cases[i].behind,
                      "case %zu", i);
    const leat__activity first = {4, 0, 0, 0, 0};
    ck_assert_int_eq(leat__activity_judge(&first, 1), LEAT__BOTTLENECK_MEMBER);
}
END_TEST

/* The lines that speak of waiting, and what ends the wait. */
static char heard[512];
static int lines;
static void (*then)(void);

static void hear(void *user, leat_log_level level, const char *line)
{
    (void)user;
    if (!strstr(line, "wait"))
        return;
    ck_assert_int_eq(level, LEAT_LOG_INFO);
    snprintf(heard, sizeof(heard), "%s", line);
    lines++;
    if (then)
        then();
}

static leat_data_layer *waiting;

static void cancel(void)
{
    leat_data_layer_cancel(waiting);
}

START_TEST(a_reader_that_never_comes_is_named)
{
    scripted_source blocked = SCRIPTED_SOURCE_INIT;
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    blocked.blocks = 4;
    options.batch_size = 3;
    leat_pipeline *pipeline = scripted_source_pipeline(&blocked);
    leat_log_set(hear, NULL, LEAT_LOG_INFO);
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    waiting = fixture.layer;
    then = cancel;
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_ECANCELLED);
    ck_assert_int_eq(lines, 1);
    ck_assert_str_eq(heard, "data: waiting for data for 1.0 s: the reader of "
                            "callback is behind, whose storage is cold or may "
                            "block");
    layer_fixture_close(&fixture);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(a_try_that_ends_before_says_nothing)
{
    scripted_source blocked = SCRIPTED_SOURCE_INIT;
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    blocked.blocks = 4;
    options.batch_size = 3;
    leat_pipeline *pipeline = scripted_source_pipeline(&blocked);
    leat_log_set(hear, NULL, LEAT_LOG_INFO);
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(leat_data_layer_try_forward(fixture.layer, fixture.top,
                                                     2, LEAT_HOST, 5),
                         LEAT_AGAIN);
    ck_assert_int_eq(lines, 0);
    layer_fixture_close(&fixture);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(short_waits_are_summed_up_and_told_once)
{
    static long pause = 20000000;
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    options.batch_size = 2;
    leat_pipeline *pipeline = scripted_source_slow_pipeline(&pause);
    leat_log_set(hear, NULL, LEAT_LOG_INFO);
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    for (int i = 0; i < 40; i++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(lines, 1);
    ck_assert_ptr_eq(strstr(heard, "data: waited for data 1."), heard);
    ck_assert_ptr_nonnull(strstr(heard, "bound by storage"));
    /* Each of 80 samples took 20 ms, some of them before the first forward. */
    leat_stats stats = {.size = sizeof(stats)};
    ck_assert_int_eq(leat_data_layer_stats(fixture.layer, &stats), LEAT_OK);
    ck_assert_double_gt(stats.waited, 1);
    ck_assert_double_lt(stats.waited, stats.elapsed);
    layer_fixture_close(&fixture);
    leat_pipeline_unref(pipeline);
}
END_TEST

static leat_device *device;

static void let_go(void)
{
    late_device_let_go_all(device);
}

/* The second worker, with the rest of the batch, waits for the first. */
START_TEST(a_device_that_does_not_copy_is_named)
{
    enum { PIXELS = 3 << 18 };
    static unsigned char rows[4][PIXELS];
    static const int32_t labels[4];
    const leat_memory_field fields[] = {
        {"data", LEAT_UINT8, 1, {PIXELS}, rows},
        {"label", LEAT_INT32, 0, {0}, labels},
    };
    late_device_register();
    ck_assert_int_eq(leat_device_find(&device, "late:0"), LEAT_OK);
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    options.batch_size = 4;
    options.device = "late:0";
    options.prefetch = 1;
    options.caller_helps = LEAT_CALLER_HELPS_OFF;
    options.workers = 2;
    leat_pipeline *pipeline;
    ck_assert_int_eq(leat_pipeline_memory(&pipeline, fields, 2, 4), LEAT_OK);
    leat_log_set(hear, NULL, LEAT_LOG_INFO);
    leat_stream stream;
    ck_assert_int_eq(device->ops->stream_create(device, &stream), LEAT_OK);
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    late_device_hold_all(device);
    then = let_go;
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(
            leat_data_layer_forward(fixture.layer, fixture.top, 2, stream),
            LEAT_OK);
    ck_assert_int_eq(lines, 1);
    ck_assert_str_eq(heard, "data: waiting for data for 1.0 s: the copies to "
                            "late:0 are behind");
    device->ops->stream_synchronize(device, stream);
    layer_fixture_close(&fixture);
    device->ops->stream_destroy(device, stream);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Lets the device go after more than the second that forward is patient. */
static void *let_go_later(void *unused)
{
    const struct timespec pause = {.tv_sec = 1, .tv_nsec = 100000000};
    late_device_await(device, late_device_stream(device, 0), 1);
    nanosleep(&pause, NULL);
    late_device_let_go_all(device);
    return unused;
}

/* The batch is made, and its copy under way, when forward begins to wait. */
START_TEST(a_copy_that_the_host_waits_for_is_named)
{
    late_device_register();
    ck_assert_int_eq(leat_device_find(&device, "late:0"), LEAT_OK);
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    options.batch_size = 2;
    options.device = "late:0";
    leat_pipeline *pipeline = layer_fixture_pipeline();
    leat_log_set(hear, NULL, LEAT_LOG_INFO);
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    pthread_t thread;
    late_device_hold_all(device);
    ck_assert_int_eq(pthread_create(&thread, NULL, let_go_later, NULL), 0);
    ck_assert_int_eq(
        leat_data_layer_forward(fixture.layer, fixture.top, 2, LEAT_HOST),
        LEAT_OK);
    pthread_join(thread, NULL);
    ck_assert_int_eq(lines, 1);
    ck_assert_ptr_eq(strstr(heard, "data: waited for data 1."), heard);
    ck_assert_ptr_nonnull(strstr(heard, "the copies to late:0 are behind"));
    leat_stats stats = {.size = sizeof(stats)};
    ck_assert_int_eq(leat_data_layer_stats(fixture.layer, &stats), LEAT_OK);
    ck_assert_double_gt(stats.waited, 1);
    ck_assert_str_eq(stats.stage[2].name, "copy");
    ck_assert_int_ge(stats.stage[2].items, 1);
    ck_assert_int_ge(stats.stage[2].bytes,
                     (int64_t)leat_blob_bytes(fixture.top[0]));
    layer_fixture_close(&fixture);
    leat_pipeline_unref(pipeline);
}
END_TEST

static void set_up(void)
{
    unsetenv("LEAT_LOG_LEVEL");
    lines = 0;
    then = NULL;
}

static void tear_down(void)
{
    leat_log_set(NULL, NULL, LEAT_LOG_NONE);
}

int main(void)
{
    Suite *suite = suite_create("waiting");
    TCase *tcase = tcase_create("waiting");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 120);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, the_stage_is_told_from_where_the_threads_are);
    tcase_add_test(tcase, a_reader_that_never_comes_is_named);
    tcase_add_test(tcase, a_try_that_ends_before_says_nothing);
    tcase_add_test(tcase, short_waits_are_summed_up_and_told_once);
    tcase_add_test(tcase, a_device_that_does_not_copy_is_named);
    tcase_add_test(tcase, a_copy_that_the_host_waits_for_is_named);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
