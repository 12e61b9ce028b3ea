/*
 * The hand-off to cuda:N over the double: the bytes that a caller's kernels
 * see, the calls that are made for them, and that every rule of the protocol is
 * needed.
 */
#include "layer_stage.h"
#include "sight.h"
#include "support/suite.h"

#include <check.h>
#include <leat/cuda.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Late streams, and eager ones; any depth. Tops that are copied into are the
 * caller's to order among its streams.
 */
START_TEST(kernels_see_each_batch_whole)
{
    stage_options.top_mode = _i % 2 ? LEAT_TOP_COPY : LEAT_TOP_LEND;
    stage_options.caller_helps =
        (_i / 2 % 2) ? LEAT_CALLER_HELPS_AUTO : LEAT_CALLER_HELPS_OFF;
    cuda_double_set_eager(_i / 4);
    for (int prefetch = 1; prefetch < 4; prefetch++) {
        stage_options.prefetch = prefetch;
        int most = stage_options.top_mode == LEAT_TOP_COPY ? 1 : STAGE_STREAMS;
        for (int streams = 1; streams <= most; streams++)
            ck_assert_int_eq(stage_run_on(streams), 0);
    }
}
END_TEST

START_TEST(the_default_stream_will_do)
{
    cudaStream_t mine = stage_stream[0];
    stage_stream[0] = NULL;
    ck_assert_int_eq(stage_run_on(1), 0);
    stage_stream[0] = mine;
}
END_TEST

START_TEST(an_early_release_names_all_streams_that_read)
{
    sight seen[STAGE_STEPS * STAGE_BATCH] = {0};
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    leat_stream both[] = {leat_cuda_stream(stage_stream[0]),
                          leat_cuda_stream(stage_stream[1])};
    cudaEvent_t event;
    ck_assert_int_eq(cudaEventCreateWithFlags(&event, cudaEventDefault), 0);
    for (int i = 0; i < STAGE_STEPS; i++) {
        stage_forward(&fixture, stage_stream[0]);
        ck_assert_int_eq(cudaEventRecord(event, stage_stream[0]), cudaSuccess);
        ck_assert_int_eq(cudaStreamWaitEvent(stage_stream[1], event, 0),
                         cudaSuccess);
        sight_launch(fixture.top, STAGE_BATCH, seen + i * STAGE_BATCH, 0,
                     stage_stream[1]);
        ck_assert_int_eq(leat_data_layer_release(fixture.layer, both, 2),
                         LEAT_OK);
        ck_assert_ptr_null(leat_data_layer_batch(fixture.layer));
    }
    ck_assert_int_eq(cudaStreamSynchronize(stage_stream[1]), cudaSuccess);
    ck_assert_int_eq(cudaEventDestroy(event), cudaSuccess);
    ck_assert_int_eq(sight_count_wrong(seen, STAGE_STEPS * STAGE_BATCH), 0);
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(an_early_release_waits_for_forwards_stream_unnamed)
{
    sight seen[STAGE_STEPS * STAGE_BATCH] = {0};
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    const leat_stream further = leat_cuda_stream(stage_stream[1]);
    for (int i = 0; i < STAGE_STEPS; i++) {
        stage_forward(&fixture, stage_stream[0]);
        sight_launch(fixture.top, STAGE_BATCH, seen + i * STAGE_BATCH, 0,
                     stage_stream[0]);
        ck_assert_int_eq(leat_data_layer_release(fixture.layer, &further, 1),
                         LEAT_OK);
    }
    ck_assert_int_eq(cudaStreamSynchronize(stage_stream[0]), cudaSuccess);
    ck_assert_int_eq(sight_count_wrong(seen, STAGE_STEPS * STAGE_BATCH), 0);
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(layers_on_one_device_and_on_several_do_not_meet)
{
    static const char *const names[] = {"cuda:0", "cuda:0", "cuda:1"};
    sight seen[STAGE_STREAMS][STAGE_STEPS * STAGE_BATCH];
    layer_fixture fixture[STAGE_STREAMS];
    cudaStream_t on[STAGE_STREAMS];
    memset(seen, 0, sizeof(seen));
    for (int k = 0; k < STAGE_STREAMS; k++) {
        stage_options.device = names[k];
        fixture[k] = layer_fixture_open(stage_pipeline, &stage_options);
        ck_assert_int_eq(cudaSetDevice(k / 2), cudaSuccess);
        on[k] = cuda_double_stream();
    }
    /* The thread's current device is none of leat's business. */
    ck_assert_int_eq(cudaSetDevice(1), cudaSuccess);
    for (int i = 0; i < STAGE_STEPS; i++) {
        for (int k = 0; k < STAGE_STREAMS; k++) {
            stage_forward(&fixture[k], on[k]);
            sight_launch(fixture[k].top, STAGE_BATCH, seen[k] + i * STAGE_BATCH,
                         0, on[k]);
        }
    }
    for (int k = 0; k < STAGE_STREAMS; k++) {
        ck_assert_int_eq(cudaStreamSynchronize(on[k]), cudaSuccess);
        ck_assert_int_eq(sight_count_wrong(seen[k], STAGE_STEPS * STAGE_BATCH),
                         0);
        layer_fixture_close(&fixture[k]);
        ck_assert_int_eq(cudaStreamDestroy(on[k]), cudaSuccess);
    }
    int current;
    ck_assert_int_eq(cudaGetDevice(&current), cudaSuccess);
    ck_assert_int_eq(current, 1);
}
END_TEST

START_TEST(a_forward_costs_one_wait_and_one_record_on_the_callers_stream)
{
    stage_options.caller_helps = LEAT_CALLER_HELPS_OFF;
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    cuda_double_forget();
    for (int i = 0; i < STAGE_STEPS; i++)
        stage_forward(&fixture, stage_stream[0]);
    leat_data_layer_destroy(fixture.layer);
    fixture.layer = NULL;
    int n;
    const cuda_double_call *call = cuda_double_calls(&n);
    int waits = 0, records = 0, others = 0, host_waits = 0;
    for (int i = 0; i < n; i++) {
        if (call[i].stream != stage_stream[0])
            continue;
        if (stage_is_call(&call[i], "cudaStreamWaitEvent"))
            waits++;
        else if (stage_is_call(&call[i], "cudaEventRecord"))
            records++;
        else if (!stage_is_call(&call[i], "cudaStreamIsCapturing"))
            others++;
    }
    /* Destroy waits on the host, after the last forward's wait. */
    int forwards = 0;
    for (int i = 0; i < n && forwards < STAGE_STEPS; i++) {
        forwards += call[i].stream == stage_stream[0] &&
                    stage_is_call(&call[i], "cudaStreamWaitEvent");
        host_waits += call[i].thread == cuda_double_thread() &&
                      strstr(call[i].name, "Synchronize") != NULL;
    }
    ck_assert_int_eq(waits, STAGE_STEPS);
    ck_assert_int_eq(records, STAGE_STEPS);
    ck_assert_int_eq(others, 0);
    ck_assert_int_eq(host_waits, 0);
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(a_batch_is_uploaded_once_and_nothing_comes_back)
{
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    for (int i = 0; i < STAGE_STEPS; i++) {
        cudaStream_t on = stage_stream[i % STAGE_STREAMS];
        sight seen[STAGE_BATCH];
        stage_forward(&fixture, on);
        sight_launch(fixture.top, STAGE_BATCH, seen, 0, on);
        ck_assert_int_eq(cudaStreamSynchronize(on), cudaSuccess);
    }
    leat_stats stats = {.size = sizeof(stats)};
    ck_assert_int_eq(leat_data_layer_stats(fixture.layer, &stats), LEAT_OK);
    layer_fixture_close(&fixture);
    int n;
    const cuda_double_call *call = cuda_double_calls(&n);
    int uploads = 0, others = 0;
    size_t bytes = 0;
    for (int i = 0; i < n; i++) {
        if (!stage_is_call(&call[i], "cudaMemcpyAsync"))
            continue;
        uploads += call[i].flags == cudaMemcpyHostToDevice;
        others += call[i].flags != cudaMemcpyHostToDevice;
        bytes += call[i].bytes;
    }
    ck_assert_int_eq(others, 0);
    ck_assert_int_ge(uploads, STAGE_STEPS);
    ck_assert_int_le(uploads, STAGE_STEPS + stage_options.prefetch + 1);
    /* Two tops, each rounded up to what devices like. */
    size_t batch =
        (STAGE_BATCH * LAYER_FIXTURE_PIXELS * sizeof(float) + 255) / 256 * 256 +
        (STAGE_BATCH * sizeof(float) + 255) / 256 * 256;
    ck_assert_uint_eq(bytes, (size_t)uploads * batch);
    ck_assert_int_gt(stats.memory.pinned, 0);
    ck_assert_int_eq(stats.memory.pageable, 0);
}
END_TEST

START_TEST(nothing_waits_for_a_whole_device_in_the_steady_state)
{
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    cuda_double_forget();
    for (int i = 0; i < STAGE_STEPS; i++)
        stage_forward(&fixture, stage_stream[0]);
    int n;
    leat_data_layer_cancel(fixture.layer);
    ck_assert_int_eq(
        leat_cuda_forward(fixture.layer, fixture.top, 2, stage_stream[0]),
        LEAT_ECANCELLED);
    layer_fixture_close(&fixture);
    const cuda_double_call *call = cuda_double_calls(&n);
    for (int i = 0; i < n; i++) {
        ck_assert(!stage_is_call(&call[i], "cudaMalloc"));
        ck_assert(!stage_is_call(&call[i], "cudaHostRegister"));
        ck_assert(!stage_is_call(&call[i], "cudaStreamCreateWithFlags"));
        ck_assert(!stage_is_call(&call[i], "cudaEventCreateWithFlags"));
        ck_assert(!stage_is_call(&call[i], "cudaDeviceSynchronize"));
    }
}
END_TEST

/*
 * Kernels half as long as copies, as long, and twice as long, in modelled time:
 * the shorter ones cost nothing, and no call is made for it that a forward does
 * not need.
 */
START_TEST(copies_and_kernels_overlap)
{
    const double copy_us = 100;
    const double us = copy_us * (_i / 3 == 0 ? 1 : _i / 3 == 1 ? 0.5 : 2);
    const double longer = us > copy_us ? us : copy_us;
    sight seen[STAGE_STEPS * STAGE_BATCH] = {0};
    stage_options.prefetch = 2 + _i % 3;
    /* A caller that works waits as workers do: host code is free here, so it
       would find itself there all the time. */
    stage_options.caller_helps = LEAT_CALLER_HELPS_OFF;
    size_t batch =
        (STAGE_BATCH * LAYER_FIXTURE_PIXELS * sizeof(float) + 255) / 256 * 256 +
        (STAGE_BATCH * sizeof(float) + 255) / 256 * 256;
    cuda_double_set_bus((double)batch / ((copy_us - 5) * 1e3), 5);
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    double begin = cuda_double_time(stage_stream[0]);
    for (int i = 0; i < STAGE_STEPS; i++) {
        stage_forward(&fixture, stage_stream[0]);
        sight_launch(fixture.top, STAGE_BATCH, seen + i * STAGE_BATCH, us,
                     stage_stream[0]);
    }
    double took = cuda_double_time(stage_stream[0]) - begin;
    /* The first copy cannot be hidden, nor the last kernel. */
    double ideal = STAGE_STEPS * longer + (us < copy_us ? us : copy_us);
    ck_assert_double_ge(took, ideal - 1);
    ck_assert_msg(ideal / took >= 0.95, "%g us of %g", took, ideal);
    ck_assert_int_eq(sight_count_wrong(seen, STAGE_STEPS * STAGE_BATCH), 0);
    layer_fixture_close(&fixture);
    int n, waits = 0, records = 0, launches = 0;
    const cuda_double_call *call = cuda_double_calls(&n);
    for (int i = 0; i < n; i++) {
        int is_mine = call[i].stream == stage_stream[0];
        waits += is_mine && stage_is_call(&call[i], "cudaStreamWaitEvent");
        records += is_mine && stage_is_call(&call[i], "cudaEventRecord");
        launches += is_mine && stage_is_call(&call[i], "cuda_double_launch");
        ck_assert(!is_mine || !stage_is_call(&call[i], "cudaMemcpyAsync"));
    }
    ck_assert_int_eq(waits, STAGE_STEPS);
    ck_assert_int_eq(launches, STAGE_STEPS);
    ck_assert_int_le(records, STAGE_STEPS);
    ck_assert_int_ge(records, STAGE_STEPS - 1);
}
END_TEST

START_TEST(kernels_wait_where_a_device_does_one_thing_at_a_time)
{
    sight seen[STAGE_STEPS * STAGE_BATCH] = {0};
    stage_options.caller_helps = LEAT_CALLER_HELPS_OFF;
    cuda_double_set_bus(0, 100);
    cuda_double_set_one_engine(1);
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    double begin = cuda_double_time(stage_stream[0]);
    for (int i = 0; i < STAGE_STEPS; i++) {
        stage_forward(&fixture, stage_stream[0]);
        sight_launch(fixture.top, STAGE_BATCH, seen + i * STAGE_BATCH, 100,
                     stage_stream[0]);
    }
    double took = cuda_double_time(stage_stream[0]) - begin;
    ck_assert_msg(took >= 1.9 * STAGE_STEPS * 100, "%g us", took);
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(a_host_consumer_reads_what_was_never_copied_back)
{
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    for (int i = 0; i < STAGE_STEPS; i++) {
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        ck_assert_float_eq(
            layer_fixture_label(&fixture, 3),
            (float)(1000 + (STAGE_BATCH * i + 3) % LAYER_FIXTURE_COUNT));
    }
    layer_fixture_close(&fixture);
    int n;
    const cuda_double_call *call = cuda_double_calls(&n);
    for (int i = 0; i < n; i++) {
        if (stage_is_call(&call[i], "cudaMemcpyAsync"))
            ck_assert_uint_eq(call[i].flags, cudaMemcpyHostToDevice);
    }
}
END_TEST

START_TEST(a_capturing_stream_is_refused_and_others_go_on)
{
    stage_options.top_mode = LEAT_TOP_COPY;
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    cuda_double_set_capturing(stage_stream[0], 1);
    ck_assert_int_eq(
        leat_cuda_forward(fixture.layer, fixture.top, 2, stage_stream[0]),
        LEAT_ESTATE);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "captured"));
    /* The workers go on, which a capture in global mode would forbid. */
    for (int i = 0; i < 8; i++)
        stage_forward(&fixture, stage_stream[1]);
    cuda_double_set_capturing(stage_stream[0], 0);
    stage_forward(&fixture, stage_stream[0]);
    layer_fixture_close(&fixture);
}
END_TEST

/* Nothing of leat's may end up in a graph, nor copies be drawn into one. */
START_TEST(a_stream_captured_since_forward_gets_nothing)
{
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    const leat_stream further = (leat_stream)stage_stream[1];
    int before = cuda_double_captured();
    stage_forward(&fixture, stage_stream[0]);
    cuda_double_set_capturing(stage_stream[0], 1);
    ck_assert_int_eq(leat_data_layer_release(fixture.layer, NULL, 0),
                     LEAT_ESTATE);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "captured"));
    ck_assert_int_eq(
        leat_cuda_forward(fixture.layer, fixture.top, 2, stage_stream[1]),
        LEAT_ESTATE);
    /* The batch is still there. */
    ck_assert_ptr_nonnull(leat_data_layer_batch(fixture.layer));
    cuda_double_set_capturing(stage_stream[0], 0);
    cuda_double_set_capturing(stage_stream[1], 1);
    ck_assert_int_eq(leat_data_layer_release(fixture.layer, &further, 1),
                     LEAT_ESTATE);
    cuda_double_set_capturing(stage_stream[1], 0);
    ck_assert_int_eq(leat_data_layer_release(fixture.layer, &further, 1),
                     LEAT_OK);
    stage_forward(&fixture, stage_stream[1]);
    cuda_double_set_capturing(stage_stream[1], 1);
    layer_fixture_close(&fixture);
    ck_assert_int_eq(cuda_double_captured(), before);
    cuda_double_set_capturing(stage_stream[1], 0);
}
END_TEST

/* Two on one device, one on another, each with a stream of its own. */
START_TEST(every_layer_of_several_costs_what_one_does)
{
    static const char *const names[] = {"cuda:0", "cuda:0", "cuda:1"};
    layer_fixture fixture[STAGE_STREAMS];
    cudaStream_t on[STAGE_STREAMS];
    for (int k = 0; k < STAGE_STREAMS; k++) {
        stage_options.device = names[k];
        stage_options.transform_on = (leat_transform_on)_i;
        ck_assert_int_eq(cudaSetDevice(k / 2), cudaSuccess);
        on[k] = cuda_double_stream();
        fixture[k] = layer_fixture_open(stage_pipeline, &stage_options);
    }
    cuda_double_forget();
    for (int i = 0; i < STAGE_STEPS; i++) {
        for (int k = 0; k < STAGE_STREAMS; k++)
            stage_forward(&fixture[k], on[k]);
    }
    for (int k = 0; k < STAGE_STREAMS; k++) {
        leat_data_layer_destroy(fixture[k].layer);
        fixture[k].layer = NULL;
    }
    int n, waits[STAGE_STREAMS] = {0}, records[STAGE_STREAMS] = {0},
           uploads[2] = {0};
    const cuda_double_call *call = cuda_double_calls(&n);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < STAGE_STREAMS; k++) {
            int is_own = call[i].stream == on[k];
            waits[k] +=
                is_own && stage_is_call(&call[i], "cudaStreamWaitEvent");
            records[k] += is_own && stage_is_call(&call[i], "cudaEventRecord");
        }
        if (!stage_is_call(&call[i], "cudaMemcpyAsync"))
            continue;
        ck_assert_uint_eq(call[i].flags, cudaMemcpyHostToDevice);
        ck_assert_int_lt(call[i].device, 2);
        uploads[call[i].device]++;
    }
    for (int k = 0; k < STAGE_STREAMS; k++) {
        ck_assert_int_eq(waits[k], STAGE_STEPS);
        ck_assert_int_eq(records[k], STAGE_STEPS);
        ck_assert_int_eq(cudaStreamDestroy(on[k]), cudaSuccess);
        layer_fixture_close(&fixture[k]);
    }
    /* Batches that were there before, or that nobody took. */
    int spare = stage_options.prefetch + 1;
    ck_assert_int_ge(uploads[0], 2 * (STAGE_STEPS - spare));
    ck_assert_int_le(uploads[0], 2 * (STAGE_STEPS + spare));
    ck_assert_int_ge(uploads[1], STAGE_STEPS - spare);
    ck_assert_int_le(uploads[1], STAGE_STEPS + spare);
}
END_TEST

START_TEST(copied_tops_keep_their_addresses)
{
    stage_options.top_mode = LEAT_TOP_COPY;
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    stage_forward(&fixture, stage_stream[0]);
    const void *data = leat_blob_gpu_data(fixture.top[0]);
    const void *label = leat_blob_gpu_data(fixture.top[1]);
    for (int i = 0; i < 8; i++) {
        stage_forward(&fixture, stage_stream[0]);
        ck_assert_ptr_eq(leat_blob_gpu_data(fixture.top[0]), data);
        ck_assert_ptr_eq(leat_blob_gpu_data(fixture.top[1]), label);
    }
    layer_fixture_close(&fixture);
}
END_TEST

/* With calls that copy at once, too. */
/* 0 when all is seen as it should be. */
static int judge(void)
{
    int wrong = 0;
    for (int prefetch = 1; prefetch < 4; prefetch++) {
        stage_options.prefetch = prefetch;
        for (int on = 0; on < 2; on++) {
            stage_options.transform_on = (leat_transform_on)on;
            wrong +=
                stage_run_on(1) + stage_run_on(2) + stage_run_on(STAGE_STREAMS);
        }
    }
    sight seen[STAGE_BATCH] = {0};
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    stage_forward(&fixture, stage_stream[0]);
    sight_launch(fixture.top, STAGE_BATCH, seen, 0, stage_stream[0]);
    layer_fixture_close(&fixture);
    return wrong + sight_count_wrong(seen, STAGE_BATCH);
}

/*
 * In a process of its own, which a broken rule may crash; made before there is
 * a thread that it would lack.
 */
START_TEST(each_rule_of_the_protocol_is_needed)
{
    fflush(stdout);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        stage_set_up();
        cuda_double_set_mutant((cuda_double_mutant)_i);
        _exit(judge() ? 1 : 0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    int holds = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    ck_assert_int_eq(holds, _i == CUDA_DOUBLE_FAITHFUL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layer_cuda");
    TCase *tcase = tcase_create("layer_cuda");
    tcase_add_checked_fixture(tcase, stage_set_up, stage_tear_down);
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, kernels_see_each_batch_whole, 0, 8);
    tcase_add_test(tcase, the_default_stream_will_do);
    tcase_add_test(tcase, an_early_release_names_all_streams_that_read);
    tcase_add_test(tcase, an_early_release_waits_for_forwards_stream_unnamed);
    tcase_add_test(tcase, layers_on_one_device_and_on_several_do_not_meet);
    tcase_add_test(
        tcase, a_forward_costs_one_wait_and_one_record_on_the_callers_stream);
    tcase_add_test(tcase, a_batch_is_uploaded_once_and_nothing_comes_back);
    tcase_add_test(tcase, nothing_waits_for_a_whole_device_in_the_steady_state);
    tcase_add_loop_test(tcase, copies_and_kernels_overlap, 0, 9);
    tcase_add_test(tcase, kernels_wait_where_a_device_does_one_thing_at_a_time);
    tcase_add_test(tcase, a_host_consumer_reads_what_was_never_copied_back);
    tcase_add_test(tcase, a_capturing_stream_is_refused_and_others_go_on);
    tcase_add_test(tcase, a_stream_captured_since_forward_gets_nothing);
    tcase_add_loop_test(tcase, every_layer_of_several_costs_what_one_does, 0,
                        2);
    tcase_add_test(tcase, copied_tops_keep_their_addresses);
    tcase = tcase_create("mutants");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, each_rule_of_the_protocol_is_needed, 0,
                        CUDA_DOUBLE_MUTANTS);
    return suite_run(suite);
}
