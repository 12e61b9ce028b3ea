/*
 * What a profiler hears of a layer's work through NVTX's own loader: over the
 * double of the CUDA runtime, so that batches are uploaded and transformed.
 */
#include "support/child.h"
#include "support/layer_fixture.h"
#include "support/timed_readers.h"

#include <check.h>
#include <cuda_double.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCHES 6

static void run_a_layer(int threaded)
{
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    options.batch_size = 4;
    options.device = "cuda:0";
    options.transform_on = LEAT_TRANSFORM_ON_DEVICE;
    options.workers = 2;
    if (threaded)
        options.reader_thread = LEAT_READER_ON;
    cuda_double_reset();
    timed_plan map = {.type.name = "map"};
    leat_pipeline *pipeline = timed_over(&map, layer_fixture_pipeline());
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    for (int i = 0; i < BATCHES; i++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    layer_fixture_close(&fixture);
    leat_pipeline_unref(pipeline);
}

/* A function of the tool that NVTX loaded; 0 where it did not. */
static int ask(const char *name, void *function)
{
    void *module = dlopen(LEAT_INJECTION, RTLD_LAZY | RTLD_NOLOAD);
    void *found = module ? dlsym(module, name) : NULL;
    memcpy(function, &found, sizeof(found));
    return found != NULL;
}

static int count(const char *function, const char *name)
{
    int (*counts)(const char *);
    ck_assert_msg(ask(function, (void *)&counts), "the tool was not loaded");
    return counts(name);
}

START_TEST(a_tool_sees_each_stage_in_a_domain_of_leats_own)
{
    setenv("NVTX_INJECTION64_PATH", LEAT_INJECTION, 1);
    run_a_layer(_i);
    ck_assert_int_eq(count("has_domain", "leat"), 1);
    /* A batch is uploaded, and transformed there, once. */
    ck_assert_int_ge(count("ranges_begun", "upload"), BATCHES);
    ck_assert_int_eq(count("ranges_begun", "kernel"),
                     count("ranges_begun", "upload"));
    ck_assert_int_ge(count("ranges_begun", "read"), BATCHES);
    ck_assert_int_ge(count("ranges_begun", "transform"), BATCHES);
    /* The readers by their paths. */
    ck_assert_int_ge(count("paths_begun", "map"), BATCHES);
    ck_assert_int_ge(count("paths_begun", "map/memory"), BATCHES);
    int (*unbalanced)(void);
    ck_assert(ask("ranges_unbalanced", (void *)&unbalanced));
    ck_assert_int_eq(unbalanced(), 0);
    ck_assert_int_eq(count("threads_named", "leat-worker-0"), 1);
    ck_assert_int_eq(count("threads_named", "leat-worker-1"), 1);
    ck_assert_int_eq(count("threads_named", "leat-reader"), _i);
}
END_TEST

START_TEST(without_a_tool_nothing_is_loaded)
{
    unsetenv("NVTX_INJECTION64_PATH");
    run_a_layer(_i);
    int (*counts)(const char *);
    ck_assert(!ask("has_domain", (void *)&counts));
}
END_TEST

START_TEST(a_tool_that_is_not_there_is_no_error)
{
    setenv("NVTX_INJECTION64_PATH", "/nowhere/tool.so", 1);
    run_a_layer(_i);
}
END_TEST

static int forks;

static void read_a_sample(void *unused)
{
    (void)unused;
    leat_pipeline *pipeline;
    leat_reader *reader;
    leat_sample sample;
    leat_sample_init(&sample);
    child_check(leat_pipeline_parse(&pipeline, "range:3 | take:2") == LEAT_OK);
    child_check(leat_pipeline_open(pipeline, &reader) == LEAT_OK);
    child_check(leat_reader_next(reader, &sample) == LEAT_OK);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
}

static void fork_a_child(void)
{
    child_run_amid_threads(read_a_sample, NULL);
    forks++;
}

START_TEST(a_child_that_is_forked_while_nvtx_begins_reads)
{
    char address[32];
    void (*function)(void) = fork_a_child;
    void *pointer;
    memcpy(&pointer, &function, sizeof(pointer));
    snprintf(address, sizeof(address), "%p", pointer);
    setenv("NVTX_INJECTION64_PATH", LEAT_INJECTION, 1);
    setenv("LEAT_INJECTION_CALLS", address, 1);
    run_a_layer(0);
    ck_assert_int_eq(forks, 1);
    ck_assert_int_eq(count("has_domain", "leat"), 1);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("nvtx");
    tcase_add_loop_test(tcase, a_tool_sees_each_stage_in_a_domain_of_leats_own,
                        0, 2);
    tcase_add_loop_test(tcase, without_a_tool_nothing_is_loaded, 0, 2);
    tcase_add_loop_test(tcase, a_tool_that_is_not_there_is_no_error, 0, 2);
    tcase_add_test(tcase, a_child_that_is_forked_while_nvtx_begins_reads);
    Suite *suite = suite_create("trace_nvtx");
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    /* Each test is a process of its own: NVTX looks for a tool once. */
    srunner_set_fork_status(runner, CK_FORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
