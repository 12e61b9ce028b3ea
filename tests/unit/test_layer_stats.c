/* Statistics tell apart what the threads, and forward, wait for. */
#include "decorators/prefetch/prefetch_buffer.h"
#include "layer/batch.h"
#include "support/layer_fixture.h"
#include "support/scripted_source.h"
#include "support/suite.h"
#include "support/timed_readers.h"

#include <check.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
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

/* A decorator over the fixture's images, with a layer above it. */
static layer_fixture open_over(timed_plan *plan, int threaded)
{
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    options.batch_size = 4;
    options.reader_thread = threaded ? LEAT_READER_ON : LEAT_READER_OFF;
    leat_pipeline *pipeline = timed_over(plan, layer_fixture_pipeline());
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    leat_pipeline_unref(pipeline);
    return fixture;
}

START_TEST(each_reader_of_a_chain_is_listed)
{
    timed_plan map = {.type.name = "map", .defers = 1, .memory = 4321};
    layer_fixture fixture = open_over(&map, _i);
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    leat_stats stats = read_stats(&fixture);
    int64_t image = LAYER_FIXTURE_PIXELS + (int64_t)sizeof(int32_t);
    ck_assert_int_eq(stats.nreaders, 2);
    ck_assert_str_eq(stats.reader[0].path, "map");
    ck_assert_str_eq(stats.reader[1].path, "map/memory");
    for (int i = 0; i < 2; i++) {
        ck_assert_int_ge(stats.reader[i].items, 80);
        ck_assert_int_ge(stats.reader[i].bytes, 80 * image);
        ck_assert_double_gt(stats.reader[i].busy, 0);
    }
    ck_assert_int_eq(stats.reader[0].memory, 4321);
    ck_assert_int_eq(stats.memory.readers, 4321);
    ck_assert_int_eq(stats.peak.readers, 4321);
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(a_reader_alone_has_the_figures_of_its_stage)
{
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    options.batch_size = 4;
    leat_pipeline *pipeline = layer_fixture_pipeline();
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    leat_pipeline_unref(pipeline);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    leat_stats stats = read_stats(&fixture);
    ck_assert_int_eq(stats.nreaders, 1);
    ck_assert_str_eq(stats.reader[0].path, "memory");
    ck_assert_int_eq(stats.reader[0].items, stats.stage[0].items);
    ck_assert_int_eq(stats.reader[0].bytes, stats.stage[0].bytes);
    ck_assert_double_eq(stats.reader[0].busy, stats.stage[0].busy);
    ck_assert_double_eq(stats.reader[0].blocked, 0);
    layer_fixture_close(&fixture);
}
END_TEST

static void report_a_wait(leat_reader *reader)
{
    leat_reader_add_blocked(reader, (int64_t)1 << 40);
}

/* As the stage, which takes waits for work. */
START_TEST(a_reader_alone_that_waits_is_not_busy)
{
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    options.batch_size = 1;
    timed_plan source = {
        .type.name = "source", .samples = 5, .also = report_a_wait};
    leat_pipeline *pipeline = timed_pipeline(&source, NULL, 0);
    leat_data_layer *layer;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    leat_pipeline_unref(pipeline);
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_OK);
    leat_stats stats = {.size = sizeof(stats)};
    ck_assert_int_eq(leat_data_layer_stats(layer, &stats), LEAT_OK);
    ck_assert_double_gt(stats.reader[0].blocked, 1000);
    ck_assert_double_eq(stats.reader[0].busy, 0);
    leat_data_layer_destroy(layer);
}
END_TEST

/* A caller that was compiled when there were no readers in the structure. */
START_TEST(a_shorter_structure_is_filled_as_far_as_it_goes)
{
    timed_plan map = {.type.name = "map", .memory = 1};
    layer_fixture fixture = open_over(&map, 0);
    leat_stats stats;
    memset(&stats, 0x5a, sizeof(stats));
    stats.size = offsetof(leat_stats, nreaders);
    ck_assert_int_eq(leat_data_layer_stats(fixture.layer, &stats), LEAT_OK);
    ck_assert_int_eq(stats.nreaders, 0x5a5a5a5a);
    ck_assert_int_eq(stats.memory.readers, 1);
    layer_fixture_close(&fixture);
}
END_TEST

/* What the readers hold leaves less for batches, two of which are needed. */
START_TEST(readers_memory_counts_against_max_memory)
{
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    options.batch_size = 4;
    options.prefetch = 3;
    timed_plan map = {.type.name = "map", .memory = 1000000};
    leat_pipeline *pipeline = timed_over(&map, layer_fixture_pipeline());
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    int64_t batches = read_stats(&fixture).memory.host;
    layer_fixture_close(&fixture);
    ck_assert_int_gt(batches, 0);
    for (int missing = 0; missing <= 1; missing++) {
        leat_data_layer *layer;
        options.max_memory =
            (size_t)(map.memory + batches / 2 - missing * batches / 4) +
            2 * leat__batch_overhead(4);
        ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                         LEAT_OK);
        int status = leat_data_layer_setup(layer, NULL, 0);
        ck_assert_int_eq(status, missing ? LEAT_ELIMIT : LEAT_OK);
        if (missing)
            ck_assert_ptr_nonnull(strstr(leat_last_error(),
                                         ", and its readers need 1000000, map "
                                         "1000000"));
        leat_stats stats = {.size = sizeof(stats)};
        ck_assert_int_eq(leat_data_layer_stats(layer, &stats), LEAT_OK);
        ck_assert_int_le(stats.memory.host, batches / 2);
        leat_data_layer_destroy(layer);
    }
    leat_pipeline_unref(pipeline);
}
END_TEST

/* As many as `_i` of prefetch together may hold a quarter, which setup leaves
   them whatever their threads hold by then. */
START_TEST(readers_that_read_ahead_share_a_quarter_of_max_memory)
{
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    const leat_prefetch_options ahead = {.size = sizeof(ahead), .samples = 2};
    leat_pipeline *pipeline = layer_fixture_pipeline();
    for (int i = 0; i < _i; i++) {
        leat_pipeline *upstream = pipeline;
        ck_assert_int_eq(leat_pipeline_prefetch(&pipeline, upstream, &ahead),
                         LEAT_OK);
        leat_pipeline_unref(upstream);
    }
    options.batch_size = 64;
    options.prefetch = 1;
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    int64_t two = read_stats(&fixture).memory.host +
                  2 * (int64_t)leat__batch_overhead(64);
    layer_fixture_close(&fixture);
    int64_t slots = _i * ahead.samples * (int64_t)sizeof(leat__prefetch_slot);
    for (int lacking = 0; lacking <= 1; lacking++) {
        leat_data_layer *layer;
        options.max_memory =
            (size_t)((two + slots) / 3 * 4 + 8 * (_i + 1) - lacking * two / 16);
        ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                         LEAT_OK);
        int status = leat_data_layer_setup(layer, NULL, 0);
        ck_assert_msg(status == (lacking ? LEAT_ELIMIT : LEAT_OK), "%s",
                      leat_last_error());
        if (lacking)
            ck_assert_ptr_nonnull(strstr(leat_last_error(), ", prefetch "));
        leat_data_layer_destroy(layer);
    }
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
    tcase_add_loop_test(tcase, each_reader_of_a_chain_is_listed, 0, 2);
    tcase_add_test(tcase, a_reader_alone_has_the_figures_of_its_stage);
    tcase_add_test(tcase, a_reader_alone_that_waits_is_not_busy);
    tcase_add_test(tcase, a_shorter_structure_is_filled_as_far_as_it_goes);
    tcase_add_test(tcase, readers_memory_counts_against_max_memory);
    tcase_add_loop_test(
        tcase, readers_that_read_ahead_share_a_quarter_of_max_memory, 1, 6);
    return suite_run(suite);
}
