/* A layer on cuda:0 where memory, calls or the device itself fail. */
#include "layer_stage.h"
#include "living.h"
#include "sight.h"
#include "support/suite.h"

#include <check.h>
#include <leat/cuda.h>
#include <stdio.h>
#include <string.h>

START_TEST(what_cannot_be_pinned_is_pageable_and_told)
{
    cuda_double_set_pinnable(0);
    cuda_double_set_registers(_i % 2);
    cuda_double_set_blocking(_i / 2 % 2);
    stage_options.transform_on = (leat_transform_on)(_i / 4);
    for (int streams = 1; streams <= STAGE_STREAMS; streams++)
        ck_assert_int_eq(stage_run_on(streams), 0);
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    leat_stats stats = {.size = sizeof(stats)};
    ck_assert_int_eq(leat_data_layer_stats(fixture.layer, &stats), LEAT_OK);
    ck_assert_int_eq(stats.memory.pinned, 0);
    ck_assert_int_gt(stats.memory.pageable, 0);
    if (_i / 4)
        ck_assert_int_gt(stats.memory.device, stats.memory.pageable);
    else
        ck_assert_int_eq(stats.memory.device, stats.memory.pageable);
    layer_fixture_close(&fixture);
}
END_TEST

/* Setup fails; the line has the word. */
static void check_setup_fails(int status, const char *word)
{
    leat_data_layer *layer;
    leat_blob *top[2];
    leat_device *device;
    ck_assert_int_eq(leat_device_find(&device, stage_options.device), LEAT_OK);
    ck_assert_int_eq(
        leat_data_layer_create(&layer, stage_pipeline, &stage_options), 0);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(leat_blob_create(&top[i], device), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_setup(layer, top, 2), status);
    ck_assert_msg(strstr(leat_last_error(), word) != NULL, "%s",
                  leat_last_error());
    leat_data_layer_destroy(layer);
    leat_blob_destroy(top[0]);
    leat_blob_destroy(top[1]);
}

START_TEST(an_unpinnable_host_is_an_error_where_pinned_is_demanded)
{
    cuda_double_set_pinnable(0);
    stage_options.must_pin = 1;
    check_setup_fails(LEAT_ENOMEM, "pinning");
}
END_TEST

START_TEST(a_device_too_small_is_told_with_the_bytes_wanted)
{
    cuda_double_set_memory(2048);
    check_setup_fails(LEAT_ENOMEM, "bytes on the device: out of memory");
}
END_TEST

/* One life of a layer; its first error. */
static int live(layer_fixture *fixture)
{
    leat_device *device;
    int status = leat_device_find(&device, stage_options.device);
    if (status == LEAT_OK)
        status = leat_data_layer_create(&fixture->layer, stage_pipeline,
                                        &stage_options);
    for (int i = 0; i < 2 && status == LEAT_OK; i++)
        status = leat_blob_create(&fixture->top[i], device);
    if (status == LEAT_OK)
        status = leat_data_layer_setup(fixture->layer, fixture->top, 2);
    int streams = stage_options.top_mode == LEAT_TOP_COPY ? 1 : STAGE_STREAMS;
    for (int i = 0; i < 8 && status == LEAT_OK; i++) {
        cudaStream_t on = stage_stream[i % streams];
        status = leat_cuda_forward(fixture->layer, fixture->top, 2, on);
        if (status == LEAT_OK && i % 2)
            status = leat_cuda_release(fixture->layer, on);
    }
    return status;
}

/* Sets ever more memory, until the layer has enough; how often it had not. */
static int count_refusals(void (*set)(size_t), size_t step, const char *words)
{
    for (int refused = 0;; refused++) {
        layer_fixture fixture = {0};
        ck_assert_uint_lt((size_t)refused * step, 1 << 20);
        set((size_t)refused * step);
        int status = live(&fixture);
        if (status) {
            ck_assert_int_eq(status, LEAT_ENOMEM);
            ck_assert_msg(strstr(leat_last_error(), "cuda:0: ") != NULL &&
                              strstr(leat_last_error(), words) != NULL,
                          "%s", leat_last_error());
        }
        layer_fixture_close(&fixture);
        living_check_none();
        if (status == LEAT_OK)
            return refused;
    }
}

/* Everything that a layer has there, and each thing in turn is too much. */
START_TEST(a_device_of_any_size_that_is_too_small_is_one_error)
{
    const float mean = 1;
    leat_transform_options transform = LEAT_TRANSFORM_OPTIONS_INIT;
    transform.mean_value = &mean;
    transform.mean_values = 1;
    stage_options.transform = &transform;
    stage_options.top_mode = _i % 2 ? LEAT_TOP_COPY : LEAT_TOP_LEND;
    stage_options.transform_on = (leat_transform_on)(_i / 2);
    ck_assert_int_gt(
        count_refusals(cuda_double_set_memory, 64, "bytes on the device"), 20);
}
END_TEST

/* Batches that are pinned in part would be pageable in part. */
START_TEST(a_host_of_which_too_little_can_be_pinned_is_one_error)
{
    stage_options.must_pin = 1;
    ck_assert_int_gt(count_refusals(cuda_double_set_pinnable, 256, "pinning"),
                     4);
}
END_TEST

/* No layer comes of it, and the same call works once the device is there. */
START_TEST(a_layer_on_a_device_that_is_not_there_is_refused_with_the_reason)
{
    static const struct {
        const char *device;
        int devices, driver;
        int status;
        const char *word;
    } cases[] = {
        {"tpu:0", 2, CUDART_VERSION, LEAT_EINVAL, "there are: "},
        {"cuda:2", 2, CUDART_VERSION, LEAT_EINVAL, "cuda:0 to cuda:1"},
        {"cuda:1", 0, CUDART_VERSION, LEAT_EDEVICE, "no NVIDIA GPU"},
        {"cuda:1", 2, 12040, LEAT_EDEVICE, "for CUDA 12.4"},
        {"cuda:1", 2, 0, LEAT_EDEVICE, "no NVIDIA driver"},
    };
    leat_data_layer *none = (leat_data_layer *)&stage_options;
    leat_data_layer *layer = none;
    cuda_double_set_devices(cases[_i].devices);
    cuda_double_set_driver(cases[_i].driver);
    stage_options.device = cases[_i].device;
    ck_assert_int_eq(
        leat_data_layer_create(&layer, stage_pipeline, &stage_options),
        cases[_i].status);
    ck_assert_msg(strstr(leat_last_error(), cases[_i].word) != NULL, "%s",
                  leat_last_error());
    ck_assert_ptr_eq(layer, none);
    cuda_double_reset();
    stage_options.device = "cuda:1";
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(a_release_names_up_to_eight_streams)
{
    leat_stream many[9];
    sight seen[STAGE_BATCH] = {0};
    for (int i = 0; i < 9; i++)
        many[i] = leat_cuda_stream(stage_stream[i % STAGE_STREAMS]);
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    stage_forward(&fixture, stage_stream[0]);
    sight_launch(fixture.top, STAGE_BATCH, seen, 0, stage_stream[0]);
    ck_assert_int_eq(leat_data_layer_release(fixture.layer, many, 9),
                     LEAT_EINVAL);
    ck_assert_ptr_nonnull(leat_data_layer_batch(fixture.layer));
    ck_assert_int_eq(leat_data_layer_release(fixture.layer, many, 8), LEAT_OK);
    for (int i = 0; i < 2 * stage_options.prefetch; i++)
        stage_forward(&fixture, stage_stream[0]);
    ck_assert_int_eq(cudaStreamSynchronize(stage_stream[0]), cudaSuccess);
    ck_assert_int_eq(sight_count_wrong(seen, STAGE_BATCH), 0);
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(a_device_lost_in_mid_run_is_an_error_and_hangs_nothing)
{
    stage_options.transform_on = (leat_transform_on)(_i % 2);
    stage_options.top_mode = _i / 2 ? LEAT_TOP_COPY : LEAT_TOP_LEND;
    for (int n = 0; n < 12; n++) {
        layer_fixture fixture = {0};
        cuda_double_set_eager(n % 2);
        cuda_double_lose_at(n, cudaErrorECCUncorrectable);
        int status = live(&fixture);
        for (int i = 0; i < 2 * STAGE_STEPS && status == LEAT_OK; i++) {
            status = leat_cuda_forward(fixture.layer, fixture.top, 2,
                                       stage_stream[0]);
            if (status == LEAT_OK && cudaStreamSynchronize(stage_stream[0]))
                (void)cudaGetLastError();
        }
        ck_assert_int_eq(status, LEAT_EDEVICE);
        ck_assert_msg(strstr(leat_last_error(), "ECC") != NULL, "%s",
                      leat_last_error());
        if (fixture.layer)
            ck_assert_int_eq(leat_cuda_forward(fixture.layer, fixture.top, 2,
                                               stage_stream[0]) < 0,
                             1);
        layer_fixture_close(&fixture);
        living_check_none();
        cuda_double_reset();
    }
}
END_TEST

/* With either as the caller's current device. */
START_TEST(a_lost_device_is_one_error_and_its_neighbour_goes_on)
{
    static const char *const names[] = {"cuda:0", "cuda:1"};
    sight seen[STAGE_STEPS * STAGE_BATCH] = {0};
    layer_fixture fixture[2];
    cudaStream_t on[2];
    int status = LEAT_OK;
    char line[512] = "";
    stage_options.transform_on = (leat_transform_on)(_i / 2 % 2);
    stage_options.top_mode = _i / 4 ? LEAT_TOP_COPY : LEAT_TOP_LEND;
    for (int k = 0; k < 2; k++) {
        ck_assert_int_eq(cudaSetDevice(k), cudaSuccess);
        on[k] = cuda_double_stream();
        stage_options.device = names[k];
        fixture[k] = layer_fixture_open(stage_pipeline, &stage_options);
    }
    ck_assert_int_eq(cudaSetDevice(_i % 2), cudaSuccess);
    for (int i = 0; i < STAGE_STEPS; i++) {
        if (i == 10)
            cuda_double_lose(0, cudaErrorECCUncorrectable);
        int before = status;
        status = leat_cuda_forward(fixture[0].layer, fixture[0].top, 2, on[0]);
        if (before) {
            ck_assert_int_eq(status, before);
            ck_assert_str_eq(leat_last_error(), line);
        }
        snprintf(line, sizeof(line), "%s", leat_last_error());
        stage_forward(&fixture[1], on[1]);
        ck_assert_int_eq(cudaSetDevice(1), cudaSuccess);
        sight_launch(fixture[1].top, STAGE_BATCH, seen + i * STAGE_BATCH, 0,
                     on[1]);
        (void)cudaSetDevice(_i % 2);
    }
    (void)cudaGetLastError();
    ck_assert_int_eq(status, LEAT_EDEVICE);
    ck_assert_ptr_nonnull(strstr(line, "cuda:0: "));
    ck_assert_int_eq(cudaSetDevice(1), cudaSuccess);
    ck_assert_int_eq(cudaStreamSynchronize(on[1]), cudaSuccess);
    ck_assert_int_eq(sight_count_wrong(seen, STAGE_STEPS * STAGE_BATCH), 0);
    for (int k = 0; k < 2; k++) {
        layer_fixture_close(&fixture[k]);
        (void)cudaStreamDestroy(on[k]);
    }
    (void)cudaGetLastError();
    cuda_double_reset();
}
END_TEST

START_TEST(a_layer_is_destroyed_while_copies_and_kernels_are_under_way)
{
    stage_options.transform_on = (leat_transform_on)_i;
    for (int n = 1; n < 6; n++) {
        sight seen[6 * STAGE_BATCH] = {0};
        layer_fixture fixture =
            layer_fixture_open(stage_pipeline, &stage_options);
        for (int i = 0; i < n; i++) {
            stage_forward(&fixture, stage_stream[i % STAGE_STREAMS]);
            sight_launch(fixture.top, STAGE_BATCH, seen + i * STAGE_BATCH, 0,
                         stage_stream[i % STAGE_STREAMS]);
        }
        /* The kernels run although their memory goes right after. */
        layer_fixture_close(&fixture);
        ck_assert_int_eq(sight_count_wrong(seen, n * STAGE_BATCH), 0);
    }
}
END_TEST

/* The device goes on where a call by which destroy waits for it has failed. */
START_TEST(memory_is_freed_after_its_kernel_where_a_wait_fails)
{
    stage_options.transform_on = (leat_transform_on)_i;
    stage_options.prefetch = 2;
    for (int n = 0; n < 12; n++) {
        sight seen[3 * STAGE_BATCH] = {0};
        layer_fixture fixture =
            layer_fixture_open(stage_pipeline, &stage_options);
        for (int i = 0; i < 3; i++) {
            stage_forward(&fixture, stage_stream[0]);
            sight_launch(fixture.top, STAGE_BATCH, seen + i * STAGE_BATCH, 5,
                         stage_stream[0]);
        }
        cuda_double_fail_named("cuCtxGetCurrent", n, cudaErrorUnknown);
        layer_fixture_close(&fixture);
        cuda_double_fail_at(-1, cudaSuccess);
        ck_assert_int_eq(cudaStreamSynchronize(stage_stream[0]), cudaSuccess);
        ck_assert_int_eq(sight_count_wrong(seen, 3 * STAGE_BATCH), 0);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layer_cuda_faults");
    TCase *tcase = tcase_create("layer_cuda_faults");
    tcase_add_checked_fixture(tcase, stage_set_up, stage_tear_down);
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, what_cannot_be_pinned_is_pageable_and_told, 0,
                        8);
    tcase_add_test(tcase,
                   an_unpinnable_host_is_an_error_where_pinned_is_demanded);
    tcase_add_test(tcase, a_device_too_small_is_told_with_the_bytes_wanted);
    tcase_add_loop_test(
        tcase, a_device_of_any_size_that_is_too_small_is_one_error, 0, 4);
    tcase_add_test(tcase,
                   a_host_of_which_too_little_can_be_pinned_is_one_error);
    tcase_add_loop_test(
        tcase, a_layer_on_a_device_that_is_not_there_is_refused_with_the_reason,
        0, 5);
    tcase_add_test(tcase, a_release_names_up_to_eight_streams);
    tcase_add_loop_test(
        tcase, a_device_lost_in_mid_run_is_an_error_and_hangs_nothing, 0, 4);
    tcase_add_loop_test(
        tcase, a_lost_device_is_one_error_and_its_neighbour_goes_on, 0, 8);
    tcase_add_loop_test(
        tcase, a_layer_is_destroyed_while_copies_and_kernels_are_under_way, 0,
        2);
    tcase_add_loop_test(
        tcase, memory_is_freed_after_its_kernel_where_a_wait_fails, 0, 2);
    return suite_run(suite);
}
