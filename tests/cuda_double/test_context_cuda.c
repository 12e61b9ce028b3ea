/* Contexts: the device's primary one is the only one that leat makes or uses,
   and a caller's own is current as before after every call. */
#include "cuda_double.h"
#include "support/child.h"
#include "support/layer_fixture.h"
#include "support/suite.h"

#include <check.h>
#include <leat.h>
#include <leat/cuda.h>
#include <leat/ext/device.h>
#include <string.h>

#define BATCH 4
#define BYTES ((size_t)10000)

static leat_pipeline *pipeline;
static leat_data_layer_options options;

static void set_up(void)
{
    const leat_data_layer_options defaults = LEAT_DATA_LAYER_OPTIONS_INIT;
    options = defaults;
    options.batch_size = BATCH;
    options.prefetch = 2;
    options.device = "cuda:1";
    cuda_double_reset();
    pipeline = layer_fixture_pipeline();
}

static void tear_down(void)
{
    leat_pipeline_unref(pipeline);
    cuda_double_living living = cuda_double_count();
    ck_assert_int_eq(living.streams, 0);
    ck_assert_int_eq(living.events, 0);
    ck_assert_int_eq(living.device_bytes, 0);
    ck_assert_int_eq(living.pinned_bytes, 0);
}

static void check_current(CUcontext wanted)
{
    CUcontext current = (CUcontext)&current;
    ck_assert_int_eq(cuCtxGetCurrent(&current), CUDA_SUCCESS);
    ck_assert_ptr_eq(current, wanted);
}

static void check_forward(layer_fixture *fixture, leat_stream stream)
{
    int status =
        leat_data_layer_forward(fixture->layer, fixture->top, 2, stream);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
}

/* A layer's life, in which `wanted` stays current. */
static void live(CUcontext wanted)
{
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    check_current(wanted);
    for (int i = 0; i < 6; i++) {
        check_forward(&fixture, i % 2 ? LEAT_HOST : 0);
        check_current(wanted);
        ck_assert_ptr_nonnull(leat_blob_cpu_data(fixture.top[0]));
        check_current(wanted);
        ck_assert_ptr_nonnull(leat_blob_gpu_data(fixture.top[0]));
        check_current(wanted);
        if (i == 3)
            ck_assert_int_eq(leat_data_layer_release(fixture.layer, NULL, 0),
                             LEAT_OK);
        check_current(wanted);
    }
    layer_fixture_close(&fixture);
    check_current(wanted);
}

/* Every way to deliver, host and device. */
static void live_in_all_ways(CUcontext wanted)
{
    for (int way = 0; way < 4; way++) {
        options.top_mode = way % 2 ? LEAT_TOP_COPY : LEAT_TOP_LEND;
        options.transform_on =
            way / 2 ? LEAT_TRANSFORM_ON_DEVICE : LEAT_TRANSFORM_ON_CPU;
        live(wanted);
    }
}

START_TEST(a_layer_on_one_gpu_makes_no_context_on_another)
{
    live_in_all_ways(NULL);
    ck_assert_int_eq(cuda_double_contexts(0), 0);
    ck_assert_int_eq(cuda_double_contexts(1), 1);
}
END_TEST

START_TEST(a_gpu_that_another_process_has_does_not_matter_to_the_rest)
{
    cuda_double_set_taken(0, 1);
    live_in_all_ways(NULL);
}
END_TEST

START_TEST(a_gpu_that_another_process_has_is_refused_and_can_be_had_later)
{
    leat_device *device = NULL;
    cuda_double_set_taken(1, 1);
    ck_assert_int_eq(leat_device_find(&device, "cuda:1"), LEAT_EDEVICE);
    ck_assert_msg(strstr(leat_last_error(), "cuda:1: ") &&
                      strstr(leat_last_error(), "busy or unavailable"),
                  "%s", leat_last_error());
    ck_assert_ptr_null(device);
    cuda_double_set_taken(1, 0);
    live(NULL);
}
END_TEST

/* The caller's: of the driver's API and green, on leat's device and another. */
START_TEST(a_callers_context_survives_every_call)
{
    CUcontext mine = _i % 2 ? cuda_double_green_context(_i / 2)
                            : cuda_double_context(_i / 2);
    ck_assert_int_eq(cuCtxPushCurrent(mine), CUDA_SUCCESS);
    live_in_all_ways(mine);
    ck_assert_int_eq(cuCtxPopCurrent(&mine), CUDA_SUCCESS);
    check_current(NULL);
}
END_TEST

START_TEST(a_callers_device_survives_every_call)
{
    int current = -1;
    ck_assert_int_eq(cudaSetDevice(_i), cudaSuccess);
    CUcontext mine;
    ck_assert_int_eq(cuCtxGetCurrent(&mine), CUDA_SUCCESS);
    live_in_all_ways(mine);
    ck_assert_int_eq(cudaGetDevice(&current), cudaSuccess);
    ck_assert_int_eq(current, _i);
}
END_TEST

START_TEST(leats_threads_set_their_context_once)
{
    options.caller_helps = LEAT_CALLER_HELPS_OFF;
    cuda_double_forget();
    live(NULL);
    int n;
    int sets = 0;
    const cuda_double_call *call = cuda_double_calls(&n);
    for (int i = 0; i < n; i++) {
        ck_assert_str_ne(call[i].name, "cudaSetDevice");
        if (call[i].thread == cuda_double_thread())
            continue;
        ck_assert_str_ne(call[i].name, "cuCtxPushCurrent");
        for (int k = 0; strcmp(call[i].name, "cuCtxSetCurrent") == 0 && k < i;
             k++)
            ck_assert(call[k].thread != call[i].thread ||
                      strcmp(call[k].name, "cuCtxSetCurrent") != 0);
        sets += strcmp(call[i].name, "cuCtxSetCurrent") == 0;
    }
    ck_assert_int_gt(sets, 0);
}
END_TEST

/* What was asked for is done: that is the call's result. */
START_TEST(a_state_that_cannot_be_restored_is_no_error)
{
    leat_device *device;
    void *memory;
    ck_assert_int_eq(leat_device_find(&device, "cuda:1"), LEAT_OK);
    int n = 0;
    int restores = 0;
    for (;; n++) {
        cuda_double_fail_at(n, cudaErrorUnknown);
        int status = device->ops->host_alloc(device, BYTES, &memory);
        const char *failed = cuda_double_failed();
        cuda_double_fail_at(-1, cudaSuccess);
        if (status == LEAT_OK)
            device->ops->host_free(device, memory, BYTES);
        ck_assert_int_eq(cudaPeekAtLastError(), cudaSuccess);
        if (!failed)
            break;
        int is_restore = strcmp(failed, "cuCtxPopCurrent") == 0;
        ck_assert_int_eq(status, is_restore ? LEAT_OK : LEAT_EDEVICE);
        restores += is_restore;
    }
    ck_assert_int_eq(restores, 1);
    check_current(NULL);
}
END_TEST

/* A device is opened once in a process, so each call fails in a child. */
static void open_with_failure(void *argument)
{
    leat_device *device;
    CUcontext current = NULL;
    cuda_double_fail_at(*(const int *)argument, cudaErrorUnknown);
    int status = leat_device_find(&device, "cuda:1");
    const char *failed = cuda_double_failed();
    cuda_double_fail_at(-1, cudaSuccess);
    child_check(failed != NULL);
    child_check(status == LEAT_OK || status == LEAT_EDEVICE);
    child_check(cuda_double_contexts(1) == (status == LEAT_OK));
    child_check(cuda_double_contexts(0) == 0);
    child_check(cuCtxGetCurrent(&current) == CUDA_SUCCESS && !current);
    child_check(cudaPeekAtLastError() == cudaSuccess);
}

START_TEST(a_device_that_does_not_open_keeps_no_context)
{
    for (int fault = 0; fault < 16; fault++)
        child_run(open_with_failure, &fault);
}
END_TEST

START_TEST(a_context_that_its_caller_destroys_is_an_error_and_no_other_is_made)
{
    leat_device *device;
    void *memory;
    ck_assert_int_eq(leat_device_find(&device, "cuda:1"), LEAT_OK);
    cuda_double_destroy_primary(1);
    ck_assert_int_eq(device->ops->alloc(device, BYTES, &memory), LEAT_EDEVICE);
    ck_assert_msg(strstr(leat_last_error(), "context is destroyed"), "%s",
                  leat_last_error());
    check_current(NULL);
    ck_assert_int_eq(cuda_double_contexts(0), 0);
}
END_TEST

/* What was made in the old one is not used in the new one, nor freed. */
START_TEST(a_context_that_comes_again_under_its_handle_is_another_one)
{
    leat_device *device;
    leat_stream stream;
    leat_event event;
    void *memory;
    ck_assert_int_eq(leat_device_find(&device, "cuda:1"), LEAT_OK);
    const leat_device_ops *ops = device->ops;
    ck_assert_int_eq(ops->stream_create(device, &stream), LEAT_OK);
    ck_assert_int_eq(ops->event_create(device, &event), LEAT_OK);
    cuda_double_destroy_primary(1);
    if (_i)
        ck_assert_int_eq(ops->alloc(device, BYTES, &memory), LEAT_EDEVICE);
    cuda_double_revive_primary(1);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(ops->event_record(device, event, stream),
                         LEAT_EDEVICE);
        ck_assert_msg(strstr(leat_last_error(), "only a new process"), "%s",
                      leat_last_error());
    }
    ops->event_destroy(device, event);
    ops->stream_destroy(device, stream);
    check_current(NULL);
    /* The program's own goes on. */
    ck_assert_int_eq(cudaSetDevice(1), cudaSuccess);
    ck_assert_int_eq(cudaMalloc(&memory, BYTES), cudaSuccess);
    ck_assert_int_eq(cudaFree(memory), cudaSuccess);
}
END_TEST

/* As where a call of the driver's fails, which leaves no error of its own. */
START_TEST(a_callers_last_error_survives_a_context_that_is_gone)
{
    leat_device *device;
    void *memory;
    ck_assert_int_eq(leat_device_find(&device, "cuda:1"), LEAT_OK);
    cuda_double_destroy_primary(1);
    ck_assert_int_eq(cudaSetDevice(99), cudaErrorInvalidDevice);
    ck_assert_int_eq(device->ops->alloc(device, BYTES, &memory), LEAT_EDEVICE);
    ck_assert_int_eq(cudaGetLastError(), cudaErrorInvalidDevice);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("context_cuda");
    TCase *tcase = tcase_create("context_cuda");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_layer_on_one_gpu_makes_no_context_on_another);
    tcase_add_test(tcase,
                   a_gpu_that_another_process_has_does_not_matter_to_the_rest);
    tcase_add_test(
        tcase, a_gpu_that_another_process_has_is_refused_and_can_be_had_later);
    tcase_add_loop_test(tcase, a_callers_context_survives_every_call, 0, 4);
    tcase_add_loop_test(tcase, a_callers_device_survives_every_call, 0, 2);
    tcase_add_test(tcase, leats_threads_set_their_context_once);
    tcase_add_test(tcase, a_state_that_cannot_be_restored_is_no_error);
    tcase_add_test(tcase, a_device_that_does_not_open_keeps_no_context);
    tcase_add_test(
        tcase,
        a_context_that_its_caller_destroys_is_an_error_and_no_other_is_made);
    tcase_add_loop_test(
        tcase, a_context_that_comes_again_under_its_handle_is_another_one, 0,
        2);
    tcase_add_test(tcase, a_callers_last_error_survives_a_context_that_is_gone);
    return suite_run(suite);
}
