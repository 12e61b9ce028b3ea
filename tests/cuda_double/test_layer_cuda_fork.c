/* A layer on cuda:0 in a forked child: the runtime is asked nothing. And one in
   a process that ends. */
#include "layer_stage.h"
#include "sight.h"
#include "support/child.h"
#include "support/suite.h"

#include <check.h>
#include <leat/cuda.h>
#include <leat/log.h>
#include <stdatomic.h>
#include <string.h>

static int is_refused(void)
{
    return strstr(leat_last_error(), "another process") != NULL;
}

static void use_and_destroy(void *argument)
{
    layer_fixture *fixture = argument;
    int calls;
    cuda_double_forget();
    for (int i = 0; i < STAGE_STREAMS; i++) {
        cudaStream_t on = stage_stream[i];
        child_check(leat_cuda_forward(fixture->layer, fixture->top, 2, on) ==
                    LEAT_ESTATE);
        child_check(leat_cuda_release(fixture->layer, on) == LEAT_ESTATE);
    }
    child_check(leat_data_layer_forward(fixture->layer, fixture->top, 2,
                                        LEAT_HOST) == LEAT_ESTATE);
    const int64_t shape[] = {4, 8};
    for (int i = 0; i < 2; i++) {
        leat_blob *top = fixture->top[i];
        child_check(!leat_blob_cpu_data(top) && is_refused());
        child_check(!leat_blob_gpu_data(top) && is_refused());
        child_check(!leat_blob_mutable_cpu_data(top) && is_refused());
        child_check(!leat_blob_mutable_gpu_data(top) && is_refused());
        child_check(leat_blob_bytes(top) > 0);
    }
    for (int i = 0; i < 2; i++) {
        leat_blob *top = fixture->top[i];
        child_check(leat_blob_reshape(top, LEAT_FLOAT32, 2, shape) == LEAT_OK);
        child_check(!leat_blob_mutable_cpu_data(top) && is_refused());
        child_check(!leat_blob_gpu_data(top) && is_refused());
    }
    leat_data_layer_cancel(fixture->layer);
    layer_fixture_close(fixture);
    (void)cuda_double_calls(&calls);
    child_check(calls == 0);
}

/* With a stream at work, and pages of both kinds. */
START_TEST(a_parents_layer_asks_the_runtime_nothing)
{
    stage_options.top_mode = (leat_top_mode)(_i % 2);
    if (_i / 2)
        cuda_double_set_registers(0);
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    for (int i = 0; i < STAGE_STEPS; i++)
        stage_forward(&fixture, stage_stream[0]);
    child_run_amid_threads(use_and_destroy, &fixture);
    for (int i = 0; i < STAGE_STEPS; i++)
        stage_forward(&fixture, stage_stream[0]);
    layer_fixture_close(&fixture);
}
END_TEST

static void do_nothing(void *argument)
{
    (void)argument;
}

/* What was pinned is not the child's, whatever it has in its place. */
static void fork_again(void *argument)
{
    (void)argument;
    child_run_amid_threads(do_nothing, NULL);
}

/* The device must not go on with pages that only the child still has. */
START_TEST(a_fork_leaves_pinned_pages_with_the_parent)
{
    sight seen[STAGE_STEPS * STAGE_BATCH] = {0};
    cuda_double_set_registers(_i == 0);
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    for (int i = 0; i < STAGE_STEPS; i++) {
        if (i == 1)
            child_run_amid_threads(fork_again, NULL);
        stage_forward(&fixture, stage_stream[0]);
        sight_launch(fixture.top, STAGE_BATCH, seen + i * STAGE_BATCH, 0,
                     stage_stream[0]);
    }
    ck_assert_int_eq(cudaStreamSynchronize(stage_stream[0]), cudaSuccess);
    ck_assert_int_eq(sight_count_wrong(seen, STAGE_STEPS * STAGE_BATCH), 0);
    layer_fixture_close(&fixture);
}
END_TEST

/* Blobs that have the last share of a layer's memory. */
static void destroy_tops(void *argument)
{
    layer_fixture *fixture = argument;
    int calls;
    cuda_double_forget();
    for (int i = 0; i < 2; i++)
        leat_blob_destroy(fixture->top[i]);
    (void)cuda_double_calls(&calls);
    child_check(calls == 0);
}

START_TEST(tops_that_outlive_their_layer_ask_the_runtime_nothing)
{
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    stage_forward(&fixture, stage_stream[0]);
    leat_data_layer_destroy(fixture.layer);
    child_run(destroy_tops, &fixture);
    for (int i = 0; i < 2; i++)
        leat_blob_destroy(fixture.top[i]);
}
END_TEST

/* Pageable memory is the child's as any other. */
static void read_pageable(void *argument)
{
    layer_fixture *fixture = argument;
    const float *labels = leat_blob_cpu_data(fixture->top[1]);
    child_check(labels && labels[0] == 1000);
    child_check(!leat_blob_gpu_data(fixture->top[1]) && is_refused());
    leat_data_layer_destroy(fixture->layer);
    child_check(labels[0] == 1000);
    destroy_tops(fixture);
}

START_TEST(pageable_memory_that_was_lent_is_read_in_the_child)
{
    cuda_double_set_pinnable(0);
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    child_run_amid_threads(read_pageable, &fixture);
    layer_fixture_close(&fixture);
}
END_TEST

static atomic_int lines;

static void hear(void *user, leat_log_level level, const char *line)
{
    (void)user;
    (void)level;
    atomic_fetch_add(&lines, strstr(line, "unloaded") != NULL);
}

/* As a handler of exit() does whose layer nobody has destroyed before. */
static void destroy_at_exit(void *argument)
{
    int calls;
    (void)argument;
    stage_set_up();
    leat_log_set(hear, NULL, LEAT_LOG_WARNING);
    layer_fixture fixture[2];
    for (int i = 0; i < 2; i++) {
        stage_options.transform_on = (leat_transform_on)i;
        fixture[i] = layer_fixture_open(stage_pipeline, &stage_options);
        for (int k = 0; k < STAGE_STEPS; k++)
            stage_forward(&fixture[i], stage_stream[0]);
    }
    /* Nobody will ever come to it. */
    cuda_double_hold(stage_stream[0]);
    cuda_double_unload();
    cuda_double_forget();
    child_check(leat_cuda_forward(fixture[0].layer, fixture[0].top, 2,
                                  stage_stream[0]) == LEAT_EDEVICE);
    child_check(strstr(leat_last_error(), "unloaded") != NULL);
    for (int i = 0; i < 2; i++)
        layer_fixture_close(&fixture[i]);
    (void)cuda_double_calls(&calls);
    /* Of each thread that did not know it yet. */
    child_check(calls <= 8);
    child_check(atomic_load(&lines) == 1);
}

/* In a process of its own, which is over then. */
START_TEST(a_runtime_that_is_unloaded_is_told_once_and_waited_for_never)
{
    child_run_amid_threads(destroy_at_exit, NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layer_cuda_fork");
    TCase *tcase = tcase_create("layer_cuda_fork");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, stage_set_up, stage_tear_down);
    tcase_add_loop_test(tcase, a_parents_layer_asks_the_runtime_nothing, 0, 4);
    tcase_add_loop_test(tcase, a_fork_leaves_pinned_pages_with_the_parent, 0,
                        2);
    tcase_add_test(tcase,
                   tops_that_outlive_their_layer_ask_the_runtime_nothing);
    tcase_add_test(tcase, pageable_memory_that_was_lent_is_read_in_the_child);
    tcase = tcase_create("exit");
    suite_add_tcase(suite, tcase);
    tcase_add_test(
        tcase, a_runtime_that_is_unloaded_is_told_once_and_waited_for_never);
    return suite_run(suite);
}
