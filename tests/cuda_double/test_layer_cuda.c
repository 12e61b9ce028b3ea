/*
 * The hand-off to cuda:N over the double: the bytes that a caller's kernels
 * see, the calls that are made for them, and that every rule of the protocol is
 * needed.
 */
#include "sight.h"
#include "support/feed.h"
#include "support/suite.h"

#include <check.h>
#include <leat/cuda.h>
#include <leat/ext/device.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEPS 40
#define BATCH 4
#define STREAMS 3

static leat_pipeline *pipeline;
static leat_data_layer_options options;
static cudaStream_t stream[STREAMS];

static void set_up(void)
{
    const leat_data_layer_options defaults = LEAT_DATA_LAYER_OPTIONS_INIT;
    options = defaults;
    options.batch_size = BATCH;
    options.device = "cuda:0";
    options.prefetch = 2;
    cuda_double_reset();
    for (int i = 0; i < STREAMS; i++)
        stream[i] = cuda_double_stream();
    pipeline = feed_pipeline();
    cuda_double_forget();
}

static void check_nothing_lives(void)
{
    cuda_double_living living = cuda_double_count();
    ck_assert_int_eq(living.streams, 0);
    ck_assert_int_eq(living.events, 0);
    ck_assert_int_eq(living.device_bytes, 0);
    ck_assert_int_eq(living.pinned_bytes, 0);
}

static void tear_down(void)
{
    leat_pipeline_unref(pipeline);
    for (int i = 0; i < STREAMS; i++)
        ck_assert_int_eq(cudaStreamDestroy(stream[i]), cudaSuccess);
    check_nothing_lives();
    ck_assert_int_eq(cuda_double_count().destroyed_busy, 0);
    ck_assert_int_eq(cudaPeekAtLastError(), cudaSuccess);
}

static void forward(feed_layer *feed, cudaStream_t on)
{
    cuda_double_set_next(on);
    int status = leat_cuda_forward(feed->layer, feed->top, 2, on);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
}

/* Samples that a caller with so many streams, used in turn, sees wrongly. */
static int run_on(int streams)
{
    sight seen[STEPS * BATCH] = {0};
    feed_layer feed = feed_open(pipeline, &options);
    for (int i = 0; i < STEPS; i++) {
        forward(&feed, stream[i % streams]);
        sight_launch(feed.top, BATCH, seen + i * BATCH, 0, stream[i % streams]);
    }
    for (int i = 0; i < streams; i++)
        ck_assert_int_eq(cudaStreamSynchronize(stream[i]), cudaSuccess);
    feed_close(&feed);
    return sight_count_wrong(seen, STEPS * BATCH);
}

/*
 * Late streams, and eager ones; any depth. Tops that are copied into are the
 * caller's to order among its streams.
 */
START_TEST(kernels_see_each_batch_whole)
{
    options.top_mode = _i % 2 ? LEAT_TOP_COPY : LEAT_TOP_LEND;
    options.help = _i / 2 % 2;
    cuda_double_set_eager(_i / 4);
    for (int prefetch = 1; prefetch < 4; prefetch++) {
        options.prefetch = prefetch;
        int most = options.top_mode == LEAT_TOP_COPY ? 1 : STREAMS;
        for (int streams = 1; streams <= most; streams++)
            ck_assert_int_eq(run_on(streams), 0);
    }
}
END_TEST

START_TEST(the_default_stream_will_do)
{
    cudaStream_t mine = stream[0];
    stream[0] = NULL;
    ck_assert_int_eq(run_on(1), 0);
    stream[0] = mine;
}
END_TEST

START_TEST(an_early_release_names_all_streams_that_read)
{
    sight seen[STEPS * BATCH] = {0};
    feed_layer feed = feed_open(pipeline, &options);
    leat_stream both[] = {leat_cuda_stream(stream[0]),
                          leat_cuda_stream(stream[1])};
    cudaEvent_t event;
    ck_assert_int_eq(cudaEventCreateWithFlags(&event, cudaEventDefault), 0);
    for (int i = 0; i < STEPS; i++) {
        forward(&feed, stream[0]);
        ck_assert_int_eq(cudaEventRecord(event, stream[0]), cudaSuccess);
        ck_assert_int_eq(cudaStreamWaitEvent(stream[1], event, 0), cudaSuccess);
        sight_launch(feed.top, BATCH, seen + i * BATCH, 0, stream[1]);
        ck_assert_int_eq(leat_data_layer_release(feed.layer, both, 2), LEAT_OK);
        ck_assert_ptr_null(leat_data_layer_batch(feed.layer));
    }
    ck_assert_int_eq(cudaStreamSynchronize(stream[1]), cudaSuccess);
    ck_assert_int_eq(cudaEventDestroy(event), cudaSuccess);
    ck_assert_int_eq(sight_count_wrong(seen, STEPS * BATCH), 0);
    feed_close(&feed);
}
END_TEST

START_TEST(an_early_release_waits_for_forwards_stream_unnamed)
{
    sight seen[STEPS * BATCH] = {0};
    feed_layer feed = feed_open(pipeline, &options);
    const leat_stream further = leat_cuda_stream(stream[1]);
    for (int i = 0; i < STEPS; i++) {
        forward(&feed, stream[0]);
        sight_launch(feed.top, BATCH, seen + i * BATCH, 0, stream[0]);
        ck_assert_int_eq(leat_data_layer_release(feed.layer, &further, 1),
                         LEAT_OK);
    }
    ck_assert_int_eq(cudaStreamSynchronize(stream[0]), cudaSuccess);
    ck_assert_int_eq(sight_count_wrong(seen, STEPS * BATCH), 0);
    feed_close(&feed);
}
END_TEST

START_TEST(layers_on_one_device_and_on_several_do_not_meet)
{
    static const char *const names[] = {"cuda:0", "cuda:0", "cuda:1"};
    sight seen[STREAMS][STEPS * BATCH];
    feed_layer feed[STREAMS];
    cudaStream_t on[STREAMS];
    memset(seen, 0, sizeof(seen));
    for (int k = 0; k < STREAMS; k++) {
        options.device = names[k];
        feed[k] = feed_open(pipeline, &options);
        ck_assert_int_eq(cudaSetDevice(k / 2), cudaSuccess);
        on[k] = cuda_double_stream();
    }
    /* The thread's current device is none of leat's business. */
    ck_assert_int_eq(cudaSetDevice(1), cudaSuccess);
    for (int i = 0; i < STEPS; i++) {
        for (int k = 0; k < STREAMS; k++) {
            forward(&feed[k], on[k]);
            sight_launch(feed[k].top, BATCH, seen[k] + i * BATCH, 0, on[k]);
        }
    }
    for (int k = 0; k < STREAMS; k++) {
        ck_assert_int_eq(cudaStreamSynchronize(on[k]), cudaSuccess);
        ck_assert_int_eq(cudaStreamDestroy(on[k]), cudaSuccess);
        ck_assert_int_eq(sight_count_wrong(seen[k], STEPS * BATCH), 0);
        feed_close(&feed[k]);
    }
    int current;
    ck_assert_int_eq(cudaGetDevice(&current), cudaSuccess);
    ck_assert_int_eq(current, 1);
}
END_TEST

static int is_call(const cuda_double_call *call, const char *name)
{
    return strcmp(call->name, name) == 0;
}

START_TEST(a_forward_costs_one_wait_and_one_record_on_the_callers_stream)
{
    options.help = 0;
    feed_layer feed = feed_open(pipeline, &options);
    cuda_double_forget();
    for (int i = 0; i < STEPS; i++)
        forward(&feed, stream[0]);
    leat_data_layer_destroy(feed.layer);
    feed.layer = NULL;
    int n;
    const cuda_double_call *call = cuda_double_calls(&n);
    int waits = 0, records = 0, others = 0, host_waits = 0;
    for (int i = 0; i < n; i++) {
        if (call[i].stream != stream[0])
            continue;
        if (is_call(&call[i], "cudaStreamWaitEvent"))
            waits++;
        else if (is_call(&call[i], "cudaEventRecord"))
            records++;
        else if (!is_call(&call[i], "cudaStreamIsCapturing"))
            others++;
    }
    /* Destroy waits on the host, behind the last forward's wait. */
    int forwards = 0;
    for (int i = 0; i < n && forwards < STEPS; i++) {
        forwards += call[i].stream == stream[0] &&
                    is_call(&call[i], "cudaStreamWaitEvent");
        host_waits += call[i].thread == cuda_double_thread() &&
                      strstr(call[i].name, "Synchronize") != NULL;
    }
    ck_assert_int_eq(waits, STEPS);
    ck_assert_int_eq(records, STEPS);
    ck_assert_int_eq(others, 0);
    ck_assert_int_eq(host_waits, 0);
    feed_close(&feed);
}
END_TEST

START_TEST(a_batch_is_uploaded_once_and_nothing_comes_back)
{
    feed_layer feed = feed_open(pipeline, &options);
    for (int i = 0; i < STEPS; i++) {
        cudaStream_t on = stream[i % STREAMS];
        sight seen[BATCH];
        forward(&feed, on);
        sight_launch(feed.top, BATCH, seen, 0, on);
        ck_assert_int_eq(cudaStreamSynchronize(on), cudaSuccess);
    }
    leat_stats stats = {.size = sizeof(stats)};
    ck_assert_int_eq(leat_data_layer_stats(feed.layer, &stats), LEAT_OK);
    feed_close(&feed);
    int n;
    const cuda_double_call *call = cuda_double_calls(&n);
    int uploads = 0, others = 0;
    size_t bytes = 0;
    for (int i = 0; i < n; i++) {
        if (!is_call(&call[i], "cudaMemcpyAsync"))
            continue;
        uploads += call[i].flags == cudaMemcpyHostToDevice;
        others += call[i].flags != cudaMemcpyHostToDevice;
        bytes += call[i].bytes;
    }
    ck_assert_int_eq(others, 0);
    ck_assert_int_ge(uploads, STEPS);
    ck_assert_int_le(uploads, STEPS + options.prefetch + 1);
    /* Two tops, each rounded up to what devices like. */
    size_t batch = (BATCH * FEED_PIXELS * sizeof(float) + 255) / 256 * 256 +
                   (BATCH * sizeof(float) + 255) / 256 * 256;
    ck_assert_uint_eq(bytes, (size_t)uploads * batch);
    ck_assert_int_gt(stats.memory.pinned, 0);
    ck_assert_int_eq(stats.memory.pageable, 0);
}
END_TEST

START_TEST(nothing_waits_for_a_whole_device_in_the_steady_state)
{
    feed_layer feed = feed_open(pipeline, &options);
    cuda_double_forget();
    for (int i = 0; i < STEPS; i++)
        forward(&feed, stream[0]);
    int n;
    leat_data_layer_cancel(feed.layer);
    ck_assert_int_eq(leat_cuda_forward(feed.layer, feed.top, 2, stream[0]),
                     LEAT_ECANCELLED);
    feed_close(&feed);
    const cuda_double_call *call = cuda_double_calls(&n);
    for (int i = 0; i < n; i++) {
        ck_assert(!is_call(&call[i], "cudaMalloc"));
        ck_assert(!is_call(&call[i], "cudaHostRegister"));
        ck_assert(!is_call(&call[i], "cudaStreamCreateWithFlags"));
        ck_assert(!is_call(&call[i], "cudaEventCreateWithFlags"));
        ck_assert(!is_call(&call[i], "cudaDeviceSynchronize"));
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
    sight seen[STEPS * BATCH] = {0};
    options.prefetch = 2 + _i % 3;
    /* A caller that works waits as workers do: host code is free here, so it
       would find itself there all the time. */
    options.help = 0;
    size_t batch = (BATCH * FEED_PIXELS * sizeof(float) + 255) / 256 * 256 +
                   (BATCH * sizeof(float) + 255) / 256 * 256;
    cuda_double_set_bus((double)batch / ((copy_us - 5) * 1e3), 5);
    feed_layer feed = feed_open(pipeline, &options);
    double begin = cuda_double_time(stream[0]);
    for (int i = 0; i < STEPS; i++) {
        forward(&feed, stream[0]);
        sight_launch(feed.top, BATCH, seen + i * BATCH, us, stream[0]);
    }
    double took = cuda_double_time(stream[0]) - begin;
    /* The first copy cannot be hidden, nor the last kernel. */
    double ideal = STEPS * longer + (us < copy_us ? us : copy_us);
    ck_assert_double_ge(took, ideal - 1);
    ck_assert_msg(ideal / took >= 0.95, "%g us of %g", took, ideal);
    ck_assert_int_eq(sight_count_wrong(seen, STEPS * BATCH), 0);
    feed_close(&feed);
    int n, waits = 0, records = 0, launches = 0;
    const cuda_double_call *call = cuda_double_calls(&n);
    for (int i = 0; i < n; i++) {
        int is_mine = call[i].stream == stream[0];
        waits += is_mine && is_call(&call[i], "cudaStreamWaitEvent");
        records += is_mine && is_call(&call[i], "cudaEventRecord");
        launches += is_mine && is_call(&call[i], "cuda_double_launch");
        ck_assert(!is_mine || !is_call(&call[i], "cudaMemcpyAsync"));
    }
    ck_assert_int_eq(waits, STEPS);
    ck_assert_int_eq(launches, STEPS);
    ck_assert_int_le(records, STEPS);
    ck_assert_int_ge(records, STEPS - 1);
}
END_TEST

START_TEST(kernels_wait_where_a_device_does_one_thing_at_a_time)
{
    sight seen[STEPS * BATCH] = {0};
    options.help = 0;
    cuda_double_set_bus(0, 100);
    cuda_double_set_one_engine(1);
    feed_layer feed = feed_open(pipeline, &options);
    double begin = cuda_double_time(stream[0]);
    for (int i = 0; i < STEPS; i++) {
        forward(&feed, stream[0]);
        sight_launch(feed.top, BATCH, seen + i * BATCH, 100, stream[0]);
    }
    double took = cuda_double_time(stream[0]) - begin;
    ck_assert_msg(took >= 1.9 * STEPS * 100, "%g us", took);
    feed_close(&feed);
}
END_TEST

START_TEST(a_host_consumer_reads_what_was_never_copied_back)
{
    feed_layer feed = feed_open(pipeline, &options);
    for (int i = 0; i < STEPS; i++) {
        ck_assert_int_eq(feed_forward(&feed), LEAT_OK);
        ck_assert_float_eq(feed_label(&feed, 3),
                           (float)(1000 + (BATCH * i + 3) % FEED_COUNT));
    }
    feed_close(&feed);
    int n;
    const cuda_double_call *call = cuda_double_calls(&n);
    for (int i = 0; i < n; i++) {
        if (is_call(&call[i], "cudaMemcpyAsync"))
            ck_assert_uint_eq(call[i].flags, cudaMemcpyHostToDevice);
    }
}
END_TEST

START_TEST(a_capturing_stream_is_refused_and_others_go_on)
{
    options.top_mode = LEAT_TOP_COPY;
    feed_layer feed = feed_open(pipeline, &options);
    cuda_double_set_capturing(stream[0], 1);
    ck_assert_int_eq(leat_cuda_forward(feed.layer, feed.top, 2, stream[0]),
                     LEAT_ESTATE);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "captured"));
    /* The workers go on, which a capture in global mode would forbid. */
    for (int i = 0; i < 8; i++)
        forward(&feed, stream[1]);
    cuda_double_set_capturing(stream[0], 0);
    forward(&feed, stream[0]);
    feed_close(&feed);
}
END_TEST

/* Nothing of leat's may end up in a graph, nor copies be drawn into one. */
START_TEST(a_stream_captured_since_forward_gets_nothing)
{
    feed_layer feed = feed_open(pipeline, &options);
    const leat_stream further = (leat_stream)stream[1];
    int before = cuda_double_captured();
    forward(&feed, stream[0]);
    cuda_double_set_capturing(stream[0], 1);
    ck_assert_int_eq(leat_data_layer_release(feed.layer, NULL, 0), LEAT_ESTATE);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "captured"));
    ck_assert_int_eq(leat_cuda_forward(feed.layer, feed.top, 2, stream[1]),
                     LEAT_ESTATE);
    /* The batch is still there. */
    ck_assert_ptr_nonnull(leat_data_layer_batch(feed.layer));
    cuda_double_set_capturing(stream[0], 0);
    cuda_double_set_capturing(stream[1], 1);
    ck_assert_int_eq(leat_data_layer_release(feed.layer, &further, 1),
                     LEAT_ESTATE);
    cuda_double_set_capturing(stream[1], 0);
    ck_assert_int_eq(leat_data_layer_release(feed.layer, &further, 1), LEAT_OK);
    forward(&feed, stream[1]);
    cuda_double_set_capturing(stream[1], 1);
    feed_close(&feed);
    ck_assert_int_eq(cuda_double_captured(), before);
    cuda_double_set_capturing(stream[1], 0);
}
END_TEST

/* Two on one device, one on another, each with a stream of its own. */
START_TEST(every_layer_of_several_costs_what_one_does)
{
    static const char *const names[] = {"cuda:0", "cuda:0", "cuda:1"};
    feed_layer feed[STREAMS];
    cudaStream_t on[STREAMS];
    for (int k = 0; k < STREAMS; k++) {
        options.device = names[k];
        options.transform_on = (leat_transform_on)_i;
        ck_assert_int_eq(cudaSetDevice(k / 2), cudaSuccess);
        on[k] = cuda_double_stream();
        feed[k] = feed_open(pipeline, &options);
    }
    cuda_double_forget();
    for (int i = 0; i < STEPS; i++) {
        for (int k = 0; k < STREAMS; k++)
            forward(&feed[k], on[k]);
    }
    for (int k = 0; k < STREAMS; k++) {
        leat_data_layer_destroy(feed[k].layer);
        feed[k].layer = NULL;
    }
    int n, waits[STREAMS] = {0}, records[STREAMS] = {0}, uploads[2] = {0};
    const cuda_double_call *call = cuda_double_calls(&n);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < STREAMS; k++) {
            int is_own = call[i].stream == on[k];
            waits[k] += is_own && is_call(&call[i], "cudaStreamWaitEvent");
            records[k] += is_own && is_call(&call[i], "cudaEventRecord");
        }
        if (!is_call(&call[i], "cudaMemcpyAsync"))
            continue;
        ck_assert_uint_eq(call[i].flags, cudaMemcpyHostToDevice);
        ck_assert_int_lt(call[i].device, 2);
        uploads[call[i].device]++;
    }
    for (int k = 0; k < STREAMS; k++) {
        ck_assert_int_eq(waits[k], STEPS);
        ck_assert_int_eq(records[k], STEPS);
        ck_assert_int_eq(cudaStreamDestroy(on[k]), cudaSuccess);
        feed_close(&feed[k]);
    }
    /* Batches that were there before, or that nobody took. */
    int spare = options.prefetch + 1;
    ck_assert_int_ge(uploads[0], 2 * (STEPS - spare));
    ck_assert_int_le(uploads[0], 2 * (STEPS + spare));
    ck_assert_int_ge(uploads[1], STEPS - spare);
    ck_assert_int_le(uploads[1], STEPS + spare);
}
END_TEST

START_TEST(copied_tops_keep_their_addresses)
{
    options.top_mode = LEAT_TOP_COPY;
    feed_layer feed = feed_open(pipeline, &options);
    forward(&feed, stream[0]);
    const void *data = leat_blob_gpu_data(feed.top[0]);
    const void *label = leat_blob_gpu_data(feed.top[1]);
    for (int i = 0; i < 8; i++) {
        forward(&feed, stream[0]);
        ck_assert_ptr_eq(leat_blob_gpu_data(feed.top[0]), data);
        ck_assert_ptr_eq(leat_blob_gpu_data(feed.top[1]), label);
    }
    feed_close(&feed);
}
END_TEST

/* With calls that copy at once, too. */
START_TEST(what_cannot_be_pinned_is_pageable_and_told)
{
    cuda_double_set_pinnable(0);
    cuda_double_set_registers(_i % 2);
    cuda_double_set_blocking(_i / 2);
    for (int streams = 1; streams <= STREAMS; streams++)
        ck_assert_int_eq(run_on(streams), 0);
    feed_layer feed = feed_open(pipeline, &options);
    leat_stats stats = {.size = sizeof(stats)};
    ck_assert_int_eq(leat_data_layer_stats(feed.layer, &stats), LEAT_OK);
    ck_assert_int_eq(stats.memory.pinned, 0);
    ck_assert_int_gt(stats.memory.pageable, 0);
    ck_assert_int_eq(stats.memory.pageable, stats.memory.device);
    feed_close(&feed);
}
END_TEST

/* Setup fails; the line has the word. */
static void check_setup_fails(int status, const char *word)
{
    leat_data_layer *layer;
    leat_blob *top[2];
    leat_device *device;
    ck_assert_int_eq(leat_device_find(&device, options.device), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options), 0);
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
    options.must_pin = 1;
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
static int live(feed_layer *feed)
{
    leat_device *device;
    int status = leat_device_find(&device, options.device);
    if (status == LEAT_OK)
        status = leat_data_layer_create(&feed->layer, pipeline, &options);
    for (int i = 0; i < 2 && status == LEAT_OK; i++)
        status = leat_blob_create(&feed->top[i], device);
    if (status == LEAT_OK)
        status = leat_data_layer_setup(feed->layer, feed->top, 2);
    int streams = options.top_mode == LEAT_TOP_COPY ? 1 : STREAMS;
    for (int i = 0; i < 8 && status == LEAT_OK; i++) {
        cudaStream_t on = stream[i % streams];
        status = leat_cuda_forward(feed->layer, feed->top, 2, on);
        if (status == LEAT_OK && i % 2)
            status = leat_cuda_release(feed->layer, on);
    }
    return status;
}

START_TEST(every_call_that_fails_ends_in_one_clean_error)
{
    int told = 0;
    const float mean = 1;
    leat_transform_options transform = LEAT_TRANSFORM_OPTIONS_INIT;
    transform.mean_value = &mean;
    transform.mean_values = 1;
    options.transform = &transform;
    options.top_mode = _i % 2 ? LEAT_TOP_COPY : LEAT_TOP_LEND;
    options.transform_on = (leat_transform_on)(_i / 2 % 2);
    if (_i / 4) {
        cuda_double_set_pinnable(0);
        cuda_double_set_blocking(1);
    }
    for (int n = 0;; n++) {
        feed_layer feed = {0};
        cuda_double_fail_at(n, cudaErrorUnknown);
        int status = live(&feed);
        const char *failed = cuda_double_failed();
        char line[512];
        snprintf(line, sizeof(line), "%s", leat_last_error());
        cuda_double_fail_at(-1, cudaSuccess);
        if (status) {
            ck_assert_int_eq(status, LEAT_EDEVICE);
            ck_assert_ptr_nonnull(failed);
            ck_assert_msg(strstr(line, "cuda:0: ") &&
                              strstr(line, "cudaErrorUnknown"),
                          "%s", line);
            told++;
        }
        feed_close(&feed);
        check_nothing_lives();
        ck_assert_int_eq(cudaGetLastError(), cudaSuccess);
        if (!failed && n > 30)
            break;
        ck_assert_int_lt(n, 1000);
    }
    ck_assert_int_gt(told, 30);
    cuda_double_reset();
}
END_TEST

/* Everything that a layer has there, and each thing in turn is too much. */
START_TEST(a_device_of_any_size_that_is_too_small_is_one_error)
{
    const float mean = 1;
    int refused = 0;
    leat_transform_options transform = LEAT_TRANSFORM_OPTIONS_INIT;
    transform.mean_value = &mean;
    transform.mean_values = 1;
    options.transform = &transform;
    options.top_mode = _i % 2 ? LEAT_TOP_COPY : LEAT_TOP_LEND;
    options.transform_on = (leat_transform_on)(_i / 2);
    for (size_t bytes = 0;; bytes += 64) {
        feed_layer feed = {0};
        cuda_double_set_memory(bytes);
        int status = live(&feed);
        if (status) {
            ck_assert_int_eq(status, LEAT_ENOMEM);
            ck_assert_msg(strstr(leat_last_error(), "cuda:0: ") &&
                              strstr(leat_last_error(), "bytes on the device"),
                          "%s", leat_last_error());
            refused++;
        }
        feed_close(&feed);
        check_nothing_lives();
        if (status == LEAT_OK)
            break;
        ck_assert_uint_lt(bytes, 1 << 20);
    }
    ck_assert_int_gt(refused, 20);
}
END_TEST

/* Batches that are pinned in part would be pageable in part. */
START_TEST(a_host_of_which_too_little_can_be_pinned_is_one_error)
{
    int refused = 0;
    options.must_pin = 1;
    for (size_t bytes = 0;; bytes += 256) {
        feed_layer feed = {0};
        cuda_double_set_pinnable(bytes);
        int status = live(&feed);
        if (status) {
            ck_assert_int_eq(status, LEAT_ENOMEM);
            ck_assert_msg(strstr(leat_last_error(), "pinning") != NULL, "%s",
                          leat_last_error());
            refused++;
        }
        feed_close(&feed);
        check_nothing_lives();
        if (status == LEAT_OK)
            break;
        ck_assert_uint_lt(bytes, 1 << 20);
    }
    ck_assert_int_gt(refused, 4);
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
    leat_data_layer *none = (leat_data_layer *)&options;
    leat_data_layer *layer = none;
    cuda_double_set_devices(cases[_i].devices);
    cuda_double_set_driver(cases[_i].driver);
    options.device = cases[_i].device;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     cases[_i].status);
    ck_assert_msg(strstr(leat_last_error(), cases[_i].word) != NULL, "%s",
                  leat_last_error());
    ck_assert_ptr_eq(layer, none);
    cuda_double_reset();
    options.device = "cuda:1";
    feed_layer feed = feed_open(pipeline, &options);
    feed_close(&feed);
}
END_TEST

START_TEST(a_release_names_up_to_eight_streams)
{
    leat_stream many[9];
    sight seen[BATCH] = {0};
    for (int i = 0; i < 9; i++)
        many[i] = leat_cuda_stream(stream[i % STREAMS]);
    feed_layer feed = feed_open(pipeline, &options);
    forward(&feed, stream[0]);
    sight_launch(feed.top, BATCH, seen, 0, stream[0]);
    ck_assert_int_eq(leat_data_layer_release(feed.layer, many, 9), LEAT_EINVAL);
    ck_assert_ptr_nonnull(leat_data_layer_batch(feed.layer));
    ck_assert_int_eq(leat_data_layer_release(feed.layer, many, 8), LEAT_OK);
    for (int i = 0; i < 2 * options.prefetch; i++)
        forward(&feed, stream[0]);
    ck_assert_int_eq(cudaStreamSynchronize(stream[0]), cudaSuccess);
    ck_assert_int_eq(sight_count_wrong(seen, BATCH), 0);
    feed_close(&feed);
}
END_TEST

START_TEST(a_device_lost_in_mid_run_is_an_error_and_hangs_nothing)
{
    options.transform_on = (leat_transform_on)(_i % 2);
    options.top_mode = _i / 2 ? LEAT_TOP_COPY : LEAT_TOP_LEND;
    for (int n = 0; n < 12; n++) {
        feed_layer feed = {0};
        cuda_double_set_eager(n % 2);
        cuda_double_lose_at(n, cudaErrorECCUncorrectable);
        int status = live(&feed);
        for (int i = 0; i < 2 * STEPS && status == LEAT_OK; i++) {
            status = leat_cuda_forward(feed.layer, feed.top, 2, stream[0]);
            if (status == LEAT_OK && cudaStreamSynchronize(stream[0]))
                (void)cudaGetLastError();
        }
        ck_assert_int_eq(status, LEAT_EDEVICE);
        ck_assert_msg(strstr(leat_last_error(), "ECC") != NULL, "%s",
                      leat_last_error());
        if (feed.layer)
            ck_assert_int_eq(
                leat_cuda_forward(feed.layer, feed.top, 2, stream[0]) < 0, 1);
        feed_close(&feed);
        check_nothing_lives();
        cuda_double_reset();
    }
}
END_TEST

START_TEST(a_layer_is_destroyed_while_copies_and_kernels_are_under_way)
{
    options.transform_on = (leat_transform_on)_i;
    for (int n = 1; n < 6; n++) {
        sight seen[6 * BATCH] = {0};
        feed_layer feed = feed_open(pipeline, &options);
        for (int i = 0; i < n; i++) {
            forward(&feed, stream[i % STREAMS]);
            sight_launch(feed.top, BATCH, seen + i * BATCH, 0,
                         stream[i % STREAMS]);
        }
        /* The kernels run although their memory goes right after. */
        feed_close(&feed);
        ck_assert_int_eq(sight_count_wrong(seen, n * BATCH), 0);
    }
}
END_TEST

/* 0 when all is seen as it should be. */
static int judge(void)
{
    int wrong = 0;
    for (int prefetch = 1; prefetch < 4; prefetch++) {
        options.prefetch = prefetch;
        for (int on = 0; on < 2; on++) {
            options.transform_on = (leat_transform_on)on;
            wrong += run_on(1) + run_on(2) + run_on(STREAMS);
        }
    }
    sight seen[BATCH] = {0};
    feed_layer feed = feed_open(pipeline, &options);
    forward(&feed, stream[0]);
    sight_launch(feed.top, BATCH, seen, 0, stream[0]);
    feed_close(&feed);
    return wrong + sight_count_wrong(seen, BATCH);
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
        set_up();
        cuda_double_set_mutant((cuda_double_mutant)_i);
        _exit(judge() ? 1 : 0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    int holds = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    ck_assert_int_eq(holds, _i == CUDA_DOUBLE_FAITHFUL);
}
END_TEST

static char mean_file[] = "/tmp/leat_mean_XXXXXX";

/* The transform of trial `i`; mean values or, of the uncropped image, a file.
 */
static void choose_transform(int i, leat_transform_options *transform)
{
    static const float values[] = {3.25f, 100.1f};
    const leat_transform_options none = LEAT_TRANSFORM_OPTIONS_INIT;
    *transform = none;
    transform->crop_size = i % 3 ? 3 : 0;
    transform->mirror = i / 2 % 2;
    options.layout = i / 4 % 2 ? LEAT_NHWC : LEAT_NCHW;
    options.rng = i % 5 ? LEAT_RNG_LEAT : LEAT_RNG_CAFFE;
    if (options.top_type == LEAT_UINT8)
        return;
    transform->scale = 0.017f;
    if (i % 4 == 1)
        transform->mean_file = mean_file;
    transform->mean_value = values;
    transform->mean_values = i % 4 == 2 ? 1 : i % 4 == 3 ? 2 : 0;
}

typedef struct bytes_arguments {
    const void *from;
    void *to;
    size_t n;
} bytes_arguments;

static void take_bytes(void *argument)
{
    const bytes_arguments *self = argument;
    memcpy(self->to, cuda_double_bytes(self->from), self->n);
}

/* What a kernel finds in both tops, batch by batch. */
static size_t collect(const char *device, leat_transform_on on, char *out)
{
    options.device = device;
    options.transform_on = on;
    feed_layer feed = feed_open(pipeline, &options);
    size_t used = 0;
    for (int i = 0; i < STEPS; i++) {
        int is_host = strcmp(device, "cpu") == 0;
        if (is_host)
            ck_assert_int_eq(feed_forward(&feed), LEAT_OK);
        else
            forward(&feed, stream[0]);
        for (int k = 0; k < 2; k++) {
            size_t n = leat_blob_bytes(feed.top[k]);
            if (is_host) {
                memcpy(out + used, leat_blob_cpu_data(feed.top[k]), n);
            } else {
                bytes_arguments arguments = {leat_blob_gpu_data(feed.top[k]),
                                             out + used, n};
                ck_assert_int_eq(cuda_double_launch(take_bytes, &arguments,
                                                    sizeof(arguments), 0,
                                                    stream[0]),
                                 cudaSuccess);
            }
            used += n;
        }
    }
    ck_assert_int_eq(cudaStreamSynchronize(stream[0]), cudaSuccess);
    feed_close(&feed);
    return used;
}

START_TEST(a_device_transform_gives_the_bytes_of_the_cpu)
{
    static const leat_dtype types[] = {LEAT_FLOAT32, LEAT_FLOAT16,
                                       LEAT_BFLOAT16, LEAT_UINT8};
    static char expected[STEPS * BATCH * (FEED_PIXELS + 1) * sizeof(float)];
    static char found[sizeof(expected)];
    float mean[FEED_PIXELS];
    leat_transform_options transform;
    int file = mkstemp(mean_file);
    ck_assert_int_ge(file, 0);
    close(file);
    for (int i = 0; i < FEED_PIXELS; i++)
        mean[i] = (float)i * 1.37f;
    ck_assert_int_eq(
        leat_mean_save(mean_file, FEED_CHANNELS, FEED_HEIGHT, FEED_WIDTH, mean),
        LEAT_OK);
    options.random_seed = 11;
    options.transform = &transform;
    options.top_type = types[_i];
    for (int i = 0; i < 16; i++) {
        choose_transform(i, &transform);
        options.top_mode = i / 8 ? LEAT_TOP_COPY : LEAT_TOP_LEND;
        memset(found, 0, sizeof(found));
        size_t n = collect("cpu", LEAT_TRANSFORM_ON_CPU, expected);
        ck_assert_uint_eq(collect("cuda:0", LEAT_TRANSFORM_ON_DEVICE, found),
                          n);
        ck_assert_msg(memcmp(found, expected, n) == 0, "trial %d", i);
        ck_assert_uint_eq(collect("cuda:0", LEAT_TRANSFORM_ON_CPU, found), n);
        ck_assert_int_eq(memcmp(found, expected, n), 0);
    }
    ck_assert_int_eq(unlink(mean_file), 0);
}
END_TEST

START_TEST(a_device_transform_uploads_bytes_and_computes_once)
{
    options.transform_on = LEAT_TRANSFORM_ON_DEVICE;
    feed_layer feed = feed_open(pipeline, &options);
    for (int i = 0; i < STEPS; i++)
        forward(&feed, stream[0]);
    ck_assert_int_eq(leat_blob_head(feed.top[0]), LEAT_HEAD_AT_GPU);
    leat_stats stats = {.size = sizeof(stats)};
    ck_assert_int_eq(leat_data_layer_stats(feed.layer, &stats), LEAT_OK);
    ck_assert_int_gt(stats.memory.device, 2 * stats.memory.pinned);
    feed_close(&feed);
    int n;
    const cuda_double_call *call = cuda_double_calls(&n);
    int uploads = 0, launches = 0;
    for (int i = 0; i < n; i++) {
        if (is_call(&call[i], "cudaMemcpyAsync")) {
            /* Crops, labels, choices. */
            ck_assert_uint_eq(call[i].bytes, 256 + 256 + 256);
            uploads++;
        }
        launches += is_call(&call[i], "cuda_double_launch");
    }
    ck_assert_int_ge(uploads, STEPS);
    ck_assert_int_eq(launches, uploads);
}
END_TEST

START_TEST(the_cpu_can_read_what_the_device_computed)
{
    options.transform_on = LEAT_TRANSFORM_ON_DEVICE;
    feed_layer feed = feed_open(pipeline, &options);
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(feed_forward(&feed), LEAT_OK);
        const float *data = leat_blob_cpu_data(feed.top[0]);
        ck_assert_ptr_nonnull(data);
        for (int k = 0; k < BATCH; k++)
            ck_assert_float_eq(
                data[k * FEED_PIXELS + 7],
                (float)feed_pixel((i * BATCH + k) % FEED_COUNT, 0, 1, 1));
    }
    feed_close(&feed);
}
END_TEST

START_TEST(doubles_are_not_made_on_a_device)
{
    leat_data_layer *layer;
    options.transform_on = LEAT_TRANSFORM_ON_DEVICE;
    options.top_type = LEAT_FLOAT64;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "float64"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layer_cuda");
    TCase *tcase = tcase_create("layer_cuda");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
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
    tcase = tcase_create("transform");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, a_device_transform_gives_the_bytes_of_the_cpu, 0,
                        4);
    tcase_add_test(tcase, a_device_transform_uploads_bytes_and_computes_once);
    tcase_add_test(tcase, the_cpu_can_read_what_the_device_computed);
    tcase_add_test(tcase, doubles_are_not_made_on_a_device);
    tcase = tcase_create("faults");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, what_cannot_be_pinned_is_pageable_and_told, 0,
                        4);
    tcase_add_test(tcase,
                   an_unpinnable_host_is_an_error_where_pinned_is_demanded);
    tcase_add_test(tcase, a_device_too_small_is_told_with_the_bytes_wanted);
    tcase_add_loop_test(tcase, every_call_that_fails_ends_in_one_clean_error, 0,
                        8);
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
        tcase, a_layer_is_destroyed_while_copies_and_kernels_are_under_way, 0,
        2);
    tcase = tcase_create("mutants");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, each_rule_of_the_protocol_is_needed, 0,
                        CUDA_DOUBLE_MUTANTS);
    return suite_run(suite);
}
