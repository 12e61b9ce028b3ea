#include "base/clock.h"
#include "base/memory.h"
#include "layer/data_reader.h"
#include "support/planted.h"
#include "support/source.h"
#include "support/suite.h"

#include <check.h>

#define RUNS 6
#define RUN_SIZE 4

static leat__data_reader *open_reader(source *source, leat_pipeline **pipeline)
{
    leat__data_reader *reader;
    const leat_sample *sample;
    const leat__place start = {0};
    source->count = 100;
    *pipeline = source_pipeline(source);
    leat__data_reader_options options = {
        .pipeline = *pipeline, .batch_size = RUN_SIZE, .step = 1};
    ck_assert_int_eq(leat__data_reader_create(&reader, &options, &start, NULL),
                     LEAT_OK);
    ck_assert_int_eq(leat__data_reader_peek(reader, &sample), LEAT_OK);
    ck_assert_ptr_nonnull(sample->box);
    return reader;
}

/* Which of them are used is up to who is fast; none may be missing boxes. */
START_TEST(the_boxes_of_all_runs_are_made_at_start)
{
    source source = SOURCE_INIT;
    leat_pipeline *pipeline;
    leat__data_reader *reader = open_reader(&source, &pipeline);
    leat__run *run[RUNS + 1];
    ck_assert_int_eq(leat__data_reader_start(reader, RUN_SIZE, RUNS, 0),
                     LEAT_OK);
    int64_t before = leat__alloc_count();
    for (int i = 0; i <= RUNS; i++) {
        ck_assert_int_eq(leat__data_reader_take(reader, i - 1, &run[i]),
                         LEAT_OK);
        leat__data_reader_read(reader, run[i]);
        ck_assert_int_eq(run[i]->status, LEAT_OK);
        ck_assert_int_eq(run[i]->n, i ? RUN_SIZE - (i == 1) : 1);
    }
    ck_assert_int_eq(leat__alloc_count() - before, 0);
    for (int i = 0; i <= RUNS; i++)
        leat__data_reader_give(reader, run[i]);
    leat__data_reader_destroy(reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(a_start_survives_every_failed_allocation)
{
    int status = LEAT_ENOMEM;
    for (int n = 0; status == LEAT_ENOMEM; n++) {
        source source = SOURCE_INIT;
        leat_pipeline *pipeline;
        leat__data_reader *reader = open_reader(&source, &pipeline);
        leat__alloc_fail_at(n);
        status = leat__data_reader_start(reader, RUN_SIZE, RUNS, 0);
        leat__alloc_fail_at(-1);
        ck_assert(status == LEAT_OK || status == LEAT_ENOMEM);
        ck_assert(status == LEAT_ENOMEM || n > RUNS * RUN_SIZE);
        leat__data_reader_destroy(reader);
        leat_pipeline_unref(pipeline);
    }
}
END_TEST

/* What a taker did is counted from there on, and a run may be its first. */
START_TEST(behind_the_end_too_a_run_says_when_it_began)
{
    const planted planted = {
        .count = 2, .way = PLANTED_IN_ORDER, .single_pass = 1};
    leat_pipeline *pipeline = planted_pipeline(&planted);
    const leat__data_reader_options options = {
        .pipeline = pipeline, .batch_size = RUN_SIZE, .step = 1};
    const leat__place start = {0};
    leat__data_reader *reader;
    leat__run *run;
    ck_assert_int_eq(leat__data_reader_create(&reader, &options, &start, NULL),
                     LEAT_OK);
    ck_assert_int_eq(leat__data_reader_start(reader, RUN_SIZE, 2, 0), LEAT_OK);
    int64_t before = leat__clock_now();
    ck_assert_int_eq(leat__data_reader_take(reader, 0, &run), LEAT_OK);
    ck_assert(run->n == 2 && run->last);
    ck_assert_int_ge(run->begun, before);
    ck_assert_int_eq(leat__data_reader_take(reader, 1, &run), LEAT_OK);
    ck_assert_int_eq(run->status, LEAT_END);
    ck_assert_int_ge(run->begun, before);
    leat__data_reader_destroy(reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* The number of its fields may be anything, in the box that it left. */
START_TEST(an_unreadable_record_is_not_counted)
{
    const planted planted = {.count = RUN_SIZE,
                             .kind = {[1] = PLANTED_UNREADABLE},
                             .way = PLANTED_LOCATED};
    leat_pipeline *pipeline = planted_pipeline(&planted);
    const leat__data_reader_options options = {.pipeline = pipeline,
                                               .batch_size = RUN_SIZE,
                                               .step = 1,
                                               .collects = _i};
    const leat__place start = {0};
    leat__data_reader *reader;
    leat__run *run;
    leat_stage_stats stats;
    int image = PLANTED_CHANNELS * PLANTED_HEIGHT * PLANTED_WIDTH;
    ck_assert_int_eq(leat__data_reader_create(&reader, &options, &start, NULL),
                     LEAT_OK);
    ck_assert_int_eq(leat__data_reader_start(reader, RUN_SIZE, 1, 0), LEAT_OK);
    ck_assert_int_eq(leat__data_reader_take(reader, 0, &run), LEAT_OK);
    leat__data_reader_read(reader, run);
    leat__data_reader_stats(reader, &stats);
    ck_assert_int_eq(run->bad.n, _i);
    ck_assert_int_eq(run->failed, _i ? -1 : 1);
    ck_assert_int_eq(stats.bytes, _i ? (RUN_SIZE - 1) * (image + 4) : 0);
    leat__data_reader_destroy(reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("data_reader");
    TCase *tests = tcase_create("data_reader");
    tcase_add_test(tests, the_boxes_of_all_runs_are_made_at_start);
    tcase_add_test(tests, a_start_survives_every_failed_allocation);
    tcase_add_loop_test(tests, an_unreadable_record_is_not_counted, 0, 2);
    tcase_add_test(tests, behind_the_end_too_a_run_says_when_it_began);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
