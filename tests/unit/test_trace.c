/* What a tracer is told; this test brings the program's own. */
#include "base/trace.h"
#include "support/layer_fixture.h"

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static atomic_int begun[LEAT__SPANS];
static atomic_int inside[LEAT__SPANS]; /* of which within a wait */
static atomic_int unbalanced;
static atomic_int readers;
static atomic_int workers;

/* The calling thread's open spans. */
static _Thread_local leat__span open_span[8];
static _Thread_local int depth;

static void begin(leat__span span)
{
    atomic_fetch_add(&begun[span], 1);
    if (depth > 0 && open_span[0] == LEAT__SPAN_WAIT)
        atomic_fetch_add(&inside[span], 1);
    if (depth < 8)
        open_span[depth] = span;
    depth++;
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
    .end = end,
    .name_thread = name_thread,
};

/* In the place of the library's. */
const leat__trace_ops *const leat__tracer = &ops;

static void run(leat_data_layer_options *options, int batches)
{
    options->batch_size = 4;
    leat_pipeline *pipeline = layer_fixture_pipeline();
    layer_fixture fixture = layer_fixture_open(pipeline, options);
    for (int i = 0; i < batches; i++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    layer_fixture_close(&fixture);
    leat_pipeline_unref(pipeline);
}

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
