/* What a tracer is told; this test brings the program's own. */
#include "base/trace.h"
#include "support/layer_fixture.h"
#include "support/timed_readers.h"

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static atomic_int begun[LEAT__SPANS];
static atomic_int inside[LEAT__SPANS]; /* of which within a wait */
static atomic_int unbalanced;
static atomic_int maps, sources; /* calls of readers, by path */
static atomic_int readers;
static atomic_int workers;

/* The calling thread's open spans. */
static _Thread_local leat__span open_span[8];
static _Thread_local int depth;

static void push(leat__span span)
{
    if (depth < 8)
        open_span[depth] = span;
    depth++;
}

static void begin(leat__span span)
{
    atomic_fetch_add(&begun[span], 1);
    if (depth > 0 && open_span[0] == LEAT__SPAN_WAIT)
        atomic_fetch_add(&inside[span], 1);
    push(span);
}

static void begin_named(const char *name)
{
    bool is_upstream = strcmp(name, "map/memory") == 0;
    bool is_map = strcmp(name, "map") == 0;
    atomic_fetch_add(&maps, is_map);
    atomic_fetch_add(&sources, is_upstream);
    atomic_fetch_add(&unbalanced, !is_map && !is_upstream);
    push(LEAT__SPAN_READ);
}

static void end(void)
{
    atomic_fetch_add(&unbalanced, depth == 0);
    depth--;
}

static void name_thread(const char *name)
{
    char own[16] = "";
    pthread_getname_np(pthread_self(), own, sizeof(own));
    atomic_fetch_add(&unbalanced, strcmp(own, name) != 0);
    atomic_fetch_add(&readers, strcmp(name, "leat-reader") == 0);
    atomic_fetch_add(&workers, strncmp(name, "leat-worker-", 12) == 0);
}

static const leat__trace_ops ops = {
    .begin = begin,
    .begin_named = begin_named,
    .end = end,
    .name_thread = name_thread,
};

/* In the place of the library's. */
const leat__trace_ops *const leat__tracer = &ops;

static void run_over(leat_pipeline *pipeline, leat_data_layer_options *options,
                     int batches)
{
    options->batch_size = 4;
    layer_fixture fixture = layer_fixture_open(pipeline, options);
    for (int i = 0; i < batches; i++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    layer_fixture_close(&fixture);
    leat_pipeline_unref(pipeline);
}

static void run(leat_data_layer_options *options, int batches)
{
    run_over(layer_fixture_pipeline(), options, batches);
}

START_TEST(each_reader_of_a_chain_has_its_span)
{
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    timed_plan map = {.type.name = "map"};
    options.workers = 2;
    options.reader_thread = _i ? LEAT_READER_ON : LEAT_READER_OFF;
    run_over(timed_over(&map, layer_fixture_pipeline()), &options, 10);
    ck_assert_int_ge(maps, 10);
    ck_assert_int_ge(sources, 10);
    ck_assert_int_eq(unbalanced, 0);
    ck_assert_int_eq(depth, 0);
}
END_TEST

START_TEST(each_stage_has_its_span)
{
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    options.workers = 2;
    options.reader_thread = _i ? LEAT_READER_ON : LEAT_READER_OFF;
    run(&options, 10);
    ck_assert_int_ge(begun[LEAT__SPAN_READ], 10);
    ck_assert_int_ge(begun[LEAT__SPAN_TRANSFORM], 10);
    ck_assert_int_eq(begun[LEAT__SPAN_UPLOAD], 0);
    ck_assert_int_eq(begun[LEAT__SPAN_KERNEL], 0);
    ck_assert_int_eq(maps + sources, 0);
    ck_assert_int_eq(workers, 2);
    ck_assert_int_eq(readers, _i);
    ck_assert_int_eq(unbalanced, 0);
    ck_assert_int_eq(depth, 0);
}
END_TEST

START_TEST(a_forward_that_waits_says_so_and_its_help_lies_within)
{
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    options.workers = 1;
    options.prefetch = 1;
    options.reader_thread = LEAT_READER_OFF;
    /* Until it has once found nothing ready and done the work itself. */
    for (int i = 0; i < 1000 && inside[LEAT__SPAN_TRANSFORM] == 0; i++)
        run(&options, 50);
    ck_assert_int_gt(begun[LEAT__SPAN_WAIT], 0);
    ck_assert_int_gt(inside[LEAT__SPAN_TRANSFORM], 0);
    ck_assert_int_gt(inside[LEAT__SPAN_READ], 0);
    ck_assert_int_eq(inside[LEAT__SPAN_WAIT], 0);
    ck_assert_int_eq(unbalanced, 0);
    ck_assert_int_eq(depth, 0);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("trace");
    tcase_add_loop_test(tcase, each_stage_has_its_span, 0, 2);
    tcase_add_loop_test(tcase, each_reader_of_a_chain_has_its_span, 0, 2);
    tcase_add_test(tcase,
                   a_forward_that_waits_says_so_and_its_help_lies_within);
    Suite *suite = suite_create("trace");
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_FORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
