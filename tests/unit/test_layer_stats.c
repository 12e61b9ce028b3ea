/* Statistics tell apart what the threads, and forward, wait for. */
#include "support/layer_fixture.h"
#include "support/scripted_source.h"
#include "support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

static leat_stats read_stats(const layer_fixture *fixture)
{
    leat_stats stats = {.size = sizeof(stats)};
    ck_assert_int_eq(leat_data_layer_stats(fixture->layer, &stats), LEAT_OK);
    return stats;
}

/* The watchdog ends it if the time never shows. */
START_TEST(a_wait_for_room_counts_while_it_goes_on)
{
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    options.batch_size = 4;
    options.workers = 2;
    leat_pipeline *pipeline = layer_fixture_pipeline();
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    leat_stats stats;
    do {
        stats = read_stats(&fixture);
    } while (stats.stage[1].blocked_full < 0.1);
    ck_assert_str_eq(leat_stats_bound_by(&stats, NULL), "consumer");
    layer_fixture_close(&fixture);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(what_forward_does_itself_is_told_apart_from_waiting)
{
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    options.batch_size = 4;
    options.workers = 1;
    options.caller_helps = _i ? LEAT_CALLER_HELPS_AUTO : LEAT_CALLER_HELPS_OFF;
    leat_pipeline *pipeline = layer_fixture_pipeline();
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    leat_stats stats;
    do {
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        stats = read_stats(&fixture);
    } while (_i ? stats.helped_chunks < 10 : stats.batches < 1000);
    if (_i)
        ck_assert_double_gt(stats.helped, 0);
    else
        ck_assert_double_eq(stats.helped, 0);
    ck_assert_double_le(stats.helped, stats.waited);
    layer_fixture_close(&fixture);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(workers_that_wait_for_each_other_are_told)
{
    static long pause = 2000000;
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    options.batch_size = 4;
    options.workers = 3;
    options.caller_helps = LEAT_CALLER_HELPS_OFF;
    options.reader_thread = LEAT_READER_OFF;
    leat_pipeline *pipeline = scripted_source_slow_pipeline(&pause);
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    leat_stats before = read_stats(&fixture);
    for (int i = 0; i < 40; i++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    leat_stats after = read_stats(&fixture);
    double span = after.elapsed - before.elapsed;
    ck_assert_double_gt(after.blocked_lock - before.blocked_lock, span / 2);
    ck_assert_str_eq(leat_stats_bound_by(&after, &before), "storage");
    layer_fixture_close(&fixture);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* The files that are mapped are asked for by the first free descriptor. */
START_TEST(no_file_stays_open_where_there_is_no_standard_input)
{
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    options.batch_size = 4;
    leat_pipeline *pipeline = layer_fixture_pipeline();
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    int input = dup(STDIN_FILENO);
    ck_assert_int_gt(input, STDIN_FILENO);
    ck_assert_int_eq(close(STDIN_FILENO), 0);
    ck_assert_int_gt(read_stats(&fixture).memory.mapped, 0);
    int is_open = fcntl(STDIN_FILENO, F_GETFD) >= 0;
    ck_assert_int_eq(dup2(input, STDIN_FILENO), STDIN_FILENO);
    close(input);
    ck_assert_int_eq(is_open, 0);
    layer_fixture_close(&fixture);
    leat_pipeline_unref(pipeline);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layer_stats");
    TCase *tcase = tcase_create("layer_stats");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, a_wait_for_room_counts_while_it_goes_on);
    tcase_add_loop_test(
        tcase, what_forward_does_itself_is_told_apart_from_waiting, 0, 2);
    tcase_add_test(tcase, workers_that_wait_for_each_other_are_told);
    tcase_add_test(tcase, no_file_stays_open_where_there_is_no_standard_input);
    return suite_run(suite);
}
