/* Transforms on cuda:0 by the double: the CPU's bytes, and what they cost. */
#include "layer_stage.h"
#include "sight.h"
#include "support/suite.h"

#include <check.h>
#include <leat/cuda.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    stage_options.layout = i / 4 % 2 ? LEAT_NHWC : LEAT_NCHW;
    stage_options.rng = i % 5 ? LEAT_RNG_LEAT : LEAT_RNG_CAFFE;
    if (stage_options.top_type == LEAT_UINT8)
        return;
    transform->scale = 0.017f;
    if (i % 4 == 1)
        transform->mean_file = mean_file;
    transform->mean_values = i % 4 == 2 ? 1 : i % 4 == 3 ? 2 : 0;
    transform->mean_value = transform->mean_values ? values : NULL;
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
    stage_options.device = device;
    stage_options.transform_on = on;
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    size_t used = 0;
    for (int i = 0; i < STAGE_STEPS; i++) {
        int is_host = strcmp(device, "cpu") == 0;
        if (is_host)
            ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        else
            stage_forward(&fixture, stage_stream[0]);
        for (int k = 0; k < 2; k++) {
            size_t n = leat_blob_bytes(fixture.top[k]);
            if (is_host) {
                memcpy(out + used, leat_blob_cpu_data(fixture.top[k]), n);
            } else {
                bytes_arguments arguments = {leat_blob_gpu_data(fixture.top[k]),
                                             out + used, n};
                ck_assert_int_eq(cuda_double_launch(take_bytes, &arguments,
                                                    sizeof(arguments), 0,
                                                    stage_stream[0]),
                                 cudaSuccess);
            }
            used += n;
        }
    }
    ck_assert_int_eq(cudaStreamSynchronize(stage_stream[0]), cudaSuccess);
    layer_fixture_close(&fixture);
    return used;
}

START_TEST(a_device_transform_gives_the_bytes_of_the_cpu)
{
    static const leat_dtype types[] = {LEAT_FLOAT32, LEAT_FLOAT16,
                                       LEAT_BFLOAT16, LEAT_UINT8};
    static char expected[STAGE_STEPS * STAGE_BATCH *
                         (LAYER_FIXTURE_PIXELS + 1) * sizeof(float)];
    static char found[sizeof(expected)];
    float mean[LAYER_FIXTURE_PIXELS];
    leat_transform_options transform;
    int file = mkstemp(mean_file);
    ck_assert_int_ge(file, 0);
    close(file);
    for (int i = 0; i < LAYER_FIXTURE_PIXELS; i++)
        mean[i] = (float)i * 1.37f;
    ck_assert_int_eq(leat_mean_save(mean_file, LAYER_FIXTURE_CHANNELS,
                                    LAYER_FIXTURE_HEIGHT, LAYER_FIXTURE_WIDTH,
                                    mean),
                     LEAT_OK);
    stage_options.random_seed = 11;
    stage_options.transform = &transform;
    stage_options.top_type = types[_i];
    for (int i = 0; i < 16; i++) {
        choose_transform(i, &transform);
        stage_options.top_mode = i / 8 ? LEAT_TOP_COPY : LEAT_TOP_LEND;
        /* So many that neighbours share uploads, the more so where consumers
           are through at once. */
        stage_options.prefetch = i % 3 ? 24 : 4;
        cuda_double_set_eager(i % 2);
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
    stage_options.transform_on = LEAT_TRANSFORM_ON_DEVICE;
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    for (int i = 0; i < STAGE_STEPS; i++)
        stage_forward(&fixture, stage_stream[0]);
    ck_assert_int_eq(leat_blob_head(fixture.top[0]), LEAT_HEAD_AT_GPU);
    leat_stats stats = {.size = sizeof(stats)};
    ck_assert_int_eq(leat_data_layer_stats(fixture.layer, &stats), LEAT_OK);
    ck_assert_int_gt(stats.memory.device, 2 * stats.memory.pinned);
    layer_fixture_close(&fixture);
    int n;
    const cuda_double_call *call = cuda_double_calls(&n);
    int uploads = 0, launches = 0;
    for (int i = 0; i < n; i++) {
        if (stage_is_call(&call[i], "cudaMemcpyAsync")) {
            /* Crops, labels, choices. */
            ck_assert_uint_eq(call[i].bytes, 256 + 256 + 256);
            uploads++;
        }
        launches += stage_is_call(&call[i], "cuda_double_launch");
    }
    ck_assert_int_ge(uploads, STAGE_STEPS);
    ck_assert_int_eq(launches, uploads);
}
END_TEST

/* By the thread that calls setup, before a worker launches one. */
START_TEST(kernels_are_loaded_at_setup)
{
    static const leat_dtype types[] = {LEAT_FLOAT32, LEAT_FLOAT16,
                                       LEAT_BFLOAT16, LEAT_UINT8};
    stage_options.transform_on = LEAT_TRANSFORM_ON_DEVICE;
    stage_options.top_type = types[_i];
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    for (int i = 0; i < STAGE_STEPS; i++)
        stage_forward(&fixture, stage_stream[0]);
    layer_fixture_close(&fixture);
    int n, loads = 0;
    const cuda_double_call *call = cuda_double_calls(&n);
    for (int i = 0; i < n; i++) {
        ck_assert(!stage_is_call(&call[i], "lazy load"));
        if (!stage_is_call(&call[i], "cudaFuncGetAttributes"))
            continue;
        ck_assert_int_eq(call[i].thread, cuda_double_thread());
        loads++;
    }
    ck_assert_int_eq(loads, 1);
}
END_TEST

/* The stream on which `event` was recorded before call `i`. */
static cudaStream_t recorded_on(const cuda_double_call *call, int i,
                                cudaEvent_t event)
{
    while (i-- > 0) {
        if (call[i].event == event &&
            stage_is_call(&call[i], "cudaEventRecord"))
            return call[i].stream;
    }
    return NULL;
}

/*
 * Copies wait for consumers alone; transforms, on a stream of the highest
 * priority, for the copy that comes right before them.
 */
START_TEST(no_copy_waits_for_a_transform)
{
    stage_options.transform_on = LEAT_TRANSFORM_ON_DEVICE;
    stage_options.prefetch = 1 + _i;
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    for (int i = 0; i < STAGE_STEPS; i++)
        stage_forward(&fixture, stage_stream[0]);
    layer_fixture_close(&fixture);
    int n, urgent = 0, copy_waits = 0, transform_waits = 0, launches = 0;
    const cuda_double_call *call = cuda_double_calls(&n);
    cudaStream_t copies = NULL, transforms = NULL;
    for (int i = 0; i < n; i++) {
        if (stage_is_call(&call[i], "cudaMemcpyAsync"))
            copies = call[i].stream;
        if (stage_is_call(&call[i], "cuda_double_launch"))
            transforms = call[i].stream;
    }
    ck_assert_ptr_nonnull(copies);
    ck_assert_ptr_nonnull(transforms);
    ck_assert_ptr_ne(copies, transforms);
    for (int i = 0; i < n; i++) {
        urgent += stage_is_call(&call[i], "cudaStreamCreateWithPriority") &&
                  call[i].priority == -5 &&
                  call[i].flags == cudaStreamNonBlocking;
        launches += stage_is_call(&call[i], "cuda_double_launch");
        if (!stage_is_call(&call[i], "cudaStreamWaitEvent"))
            continue;
        cudaStream_t other = recorded_on(call, i, call[i].event);
        if (call[i].stream == copies) {
            ck_assert_ptr_eq(other, stage_stream[0]);
            copy_waits++;
        } else if (call[i].stream == transforms) {
            ck_assert_ptr_eq(other, copies);
            transform_waits++;
        } else {
            ck_assert_ptr_eq(other, transforms);
        }
    }
    ck_assert_int_eq(urgent, 1);
    ck_assert_int_eq(transform_waits, launches);
    /* The first ones overwrite nothing. */
    ck_assert_int_ge(copy_waits, launches - stage_options.prefetch - 1);
    ck_assert_int_le(copy_waits, launches);
}
END_TEST

/* Copies of 100 us, transforms of so many: the longer ones are all that shows.
 */
START_TEST(transforms_and_copies_overlap)
{
    static const double transform_us[] = {10, 90, 250};
    const double us = transform_us[_i];
    const double longer = us > 100 ? us : 100;
    stage_options.transform_on = LEAT_TRANSFORM_ON_DEVICE;
    stage_options.caller_helps = LEAT_CALLER_HELPS_OFF;
    stage_options.prefetch = 2;
    cuda_double_set_bus(0, 100);
    /* Each element of the top is read as 1 byte and written as 4. */
    cuda_double_set_memory_bus(5 * STAGE_BATCH * LAYER_FIXTURE_PIXELS /
                               (us * 1e3));
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    double begin = cuda_double_time(stage_stream[0]);
    for (int i = 0; i < STAGE_STEPS; i++)
        stage_forward(&fixture, stage_stream[0]);
    double took = cuda_double_time(stage_stream[0]) - begin;
    double ideal = STAGE_STEPS * longer + (us < 100 ? us : 100);
    ck_assert_double_ge(took, ideal - 1);
    ck_assert_msg(ideal / took >= 0.99, "%g us of %g", took, ideal);
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(the_cpu_can_read_what_the_device_computed)
{
    stage_options.transform_on = LEAT_TRANSFORM_ON_DEVICE;
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    for (int i = 0; i < 5; i++) {
        sight seen[STAGE_BATCH] = {0};
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        /* Forward has waited: so can any stream. */
        sight_launch(fixture.top, STAGE_BATCH, seen, 0, stage_stream[1]);
        ck_assert_int_eq(cudaStreamSynchronize(stage_stream[1]), cudaSuccess);
        for (int k = 0; k < STAGE_BATCH; k++)
            ck_assert_float_eq(
                seen[k].label,
                (float)(1000 + (i * STAGE_BATCH + k) % LAYER_FIXTURE_COUNT));
        const float *data = leat_blob_cpu_data(fixture.top[0]);
        ck_assert_ptr_nonnull(data);
        for (int k = 0; k < STAGE_BATCH; k++)
            ck_assert_float_eq(
                data[k * LAYER_FIXTURE_PIXELS + 7],
                (float)layer_fixture_pixel(
                    (i * STAGE_BATCH + k) % LAYER_FIXTURE_COUNT, 0, 1, 1));
    }
    layer_fixture_close(&fixture);
}
END_TEST

/* The stream that forward was given has not come to it yet; nor is it waited
   for by the caller. */
START_TEST(the_cpu_can_read_a_top_that_a_stream_still_writes)
{
    int wrong = 0;
    stage_options.transform_on = (leat_transform_on)(_i % 2);
    stage_options.top_mode = _i / 2 ? LEAT_TOP_COPY : LEAT_TOP_LEND;
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    for (int i = 0; i < 5; i++) {
        stage_forward(&fixture, stage_stream[i % STAGE_STREAMS]);
        const float *data = leat_blob_cpu_data(fixture.top[0]);
        const float *label = leat_blob_cpu_data(fixture.top[1]);
        ck_assert(data && label);
        for (int k = 0; k < STAGE_BATCH; k++) {
            int at = (i * STAGE_BATCH + k) % LAYER_FIXTURE_COUNT;
            wrong += data[k * LAYER_FIXTURE_PIXELS + 7] !=
                         (float)layer_fixture_pixel(at, 0, 1, 1) ||
                     label[k] != (float)(1000 + at);
        }
    }
    ck_assert_int_eq(wrong, 0);
    layer_fixture_close(&fixture);
}
END_TEST

/* A change of the host's must not get into a copy that is under way. */
START_TEST(the_cpu_can_write_a_top_that_a_stream_still_reads)
{
    sight seen[STAGE_BATCH] = {0};
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    stage_forward(&fixture, stage_stream[0]);
    sight_launch(fixture.top, STAGE_BATCH, seen, 0, stage_stream[0]);
    float *label = leat_blob_mutable_cpu_data(fixture.top[1]);
    for (int k = 0; k < STAGE_BATCH; k++)
        label[k] = -1;
    ck_assert_int_eq(cudaStreamSynchronize(stage_stream[0]), cudaSuccess);
    ck_assert_int_eq(sight_count_wrong(seen, STAGE_BATCH), 0);
    layer_fixture_close(&fixture);
}
END_TEST

/* Tops know what writes them even without their layer. */
START_TEST(a_top_that_is_written_outlives_its_layer)
{
    stage_options.transform_on = (leat_transform_on)(_i % 2);
    stage_options.top_mode = _i / 2 ? LEAT_TOP_COPY : LEAT_TOP_LEND;
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    stage_forward(&fixture, stage_stream[0]);
    leat_data_layer_destroy(fixture.layer);
    fixture.layer = NULL;
    const float *data = leat_blob_cpu_data(fixture.top[0]);
    ck_assert_ptr_nonnull(data);
    ck_assert_float_eq(data[7], (float)layer_fixture_pixel(0, 0, 1, 1));
    layer_fixture_close(&fixture);
}
END_TEST

/* Of more batches than there are at a time. */
static void read_tops(layer_fixture *fixture)
{
    for (int i = 0; i < 20; i++) {
        const float *data = leat_blob_cpu_data(fixture->top[0]);
        const float *label = leat_blob_cpu_data(fixture->top[1]);
        ck_assert(data && label);
        ck_assert_float_eq(
            data[7], (float)layer_fixture_pixel((int)label[0] - 1000, 0, 1, 1));
        ck_assert_int_eq(layer_fixture_forward(fixture), LEAT_OK);
    }
}

START_TEST(host_memory_for_a_top_that_the_device_computed_is_counted)
{
    int64_t before = 0;
    leat_stats stats = {.size = sizeof(stats)};
    stage_options.transform_on = LEAT_TRANSFORM_ON_DEVICE;
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(leat_data_layer_stats(fixture.layer, &stats), LEAT_OK);
        ck_assert_int_eq(stats.memory.pinned, cuda_double_count().pinned_bytes);
        if (i == 0) {
            before = stats.memory.pinned;
            ck_assert_int_eq(stats.memory.pageable, 0);
            cuda_double_set_pinnable(_i ? (size_t)before : SIZE_MAX);
            read_tops(&fixture);
        }
    }
    /* Of one top, however many batches there are. */
    int64_t bytes = (int64_t)leat_blob_bytes(fixture.top[0]);
    ck_assert_int_eq(stats.memory.pinned - before, _i ? 0 : bytes);
    ck_assert_int_eq(stats.memory.pageable, _i ? bytes : 0);
    layer_fixture_close(&fixture);
}
END_TEST

/* The streams that read the host's side are late. */
START_TEST(what_is_pushed_is_read_before_the_host_side_is_refilled)
{
    sight seen[STAGE_STEPS * STAGE_BATCH] = {0};
    stage_options.transform_on = LEAT_TRANSFORM_ON_CPU;
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    for (int i = 0; i < STAGE_STEPS; i++) {
        stage_forward(&fixture, stage_stream[0]);
        float *label = leat_blob_mutable_cpu_data(fixture.top[1]);
        ck_assert_ptr_nonnull(label);
        for (int k = 0; k < STAGE_BATCH; k++)
            label[k] = (float)(-1 - i);
        ck_assert_int_eq(leat_cuda_push(fixture.top[1], stage_stream[0]),
                         LEAT_OK);
        sight_launch(fixture.top, STAGE_BATCH, seen + i * STAGE_BATCH, 0,
                     stage_stream[0]);
    }
    ck_assert_int_eq(cudaStreamSynchronize(stage_stream[0]), cudaSuccess);
    for (int k = 0; k < STAGE_STEPS * STAGE_BATCH; k++)
        ck_assert_float_eq(seen[k].label, (float)(-1 - k / STAGE_BATCH));
    layer_fixture_close(&fixture);
}
END_TEST

/* The host's copy of one top serves the next one, too. */
START_TEST(what_is_pushed_back_is_there_before_the_next_top_is_read)
{
    sight seen[STAGE_BATCH] = {0};
    stage_options.transform_on = LEAT_TRANSFORM_ON_DEVICE;
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    stage_forward(&fixture, stage_stream[0]);
    sight_launch(fixture.top, 0, seen, 1e4, stage_stream[0]);
    float *data = leat_blob_mutable_cpu_data(fixture.top[0]);
    ck_assert_ptr_nonnull(data);
    for (int64_t i = 0; i < leat_blob_count(fixture.top[0]); i++)
        data[i] = -5;
    ck_assert_int_eq(leat_cuda_push(fixture.top[0], stage_stream[0]), LEAT_OK);
    sight_launch(fixture.top, STAGE_BATCH, seen, 0, stage_stream[0]);
    stage_forward(&fixture, stage_stream[1]);
    ck_assert_ptr_nonnull(leat_blob_cpu_data(fixture.top[0]));
    ck_assert_int_eq(cudaStreamSynchronize(stage_stream[0]), cudaSuccess);
    for (int k = 0; k < STAGE_BATCH; k++)
        ck_assert_float_eq(seen[k].pixel, -5);
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(doubles_are_not_made_on_a_device)
{
    leat_data_layer *layer;
    stage_options.transform_on = LEAT_TRANSFORM_ON_DEVICE;
    stage_options.top_type = LEAT_FLOAT64;
    ck_assert_int_eq(
        leat_data_layer_create(&layer, stage_pipeline, &stage_options),
        LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "float64"));
}
END_TEST

/* The image that is transformed there need not come first, nor be the only one:
   all else is uploaded as it is. */
START_TEST(a_list_of_tops_has_one_image_transformed_there)
{
    static const leat_top lists[][2] = {
        {{.size = sizeof(leat_top), .name = "label", .dtype = LEAT_INT64},
         {.size = sizeof(leat_top), .name = "data", .is_image = true}},
        {{.size = sizeof(leat_top), .name = "data", .is_image = true},
         {.size = sizeof(leat_top),
          .name = "again",
          .field = "data",
          .is_image = true,
          .dtype = LEAT_FLOAT16,
          .choices_of = "data"}},
        {{.size = sizeof(leat_top),
          .name = "again",
          .field = "data",
          .is_image = true},
         {.size = sizeof(leat_top), .name = "data", .is_image = true}}};
    static char expected[STAGE_STEPS * STAGE_BATCH * 2 * LAYER_FIXTURE_PIXELS *
                         sizeof(float)];
    static char found[sizeof(expected)];
    leat_transform_options transform = LEAT_TRANSFORM_OPTIONS_INIT;
    transform.crop_size = 3;
    transform.mirror = true;
    transform.scale = 0.017f;
    stage_options.random_seed = 11;
    stage_options.transform = &transform;
    stage_options.top = lists[_i];
    stage_options.ntop = 2;
    size_t n = collect("cpu", LEAT_TRANSFORM_ON_CPU, expected);
    ck_assert_uint_eq(collect("cuda:0", LEAT_TRANSFORM_ON_DEVICE, found), n);
    ck_assert_int_eq(memcmp(found, expected, n), 0);
    ck_assert_uint_eq(collect("cuda:0", LEAT_TRANSFORM_ON_CPU, found), n);
    ck_assert_int_eq(memcmp(found, expected, n), 0);
}
END_TEST

/* The first top's is waited for; the labels' becomes a part of the graph. */
START_TEST(a_push_leaves_a_capture_as_it_is)
{
    cudaGraph_t graph = NULL;
    stage_options.transform_on = LEAT_TRANSFORM_ON_DEVICE;
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    stage_forward(&fixture, stage_stream[0]);
    for (int i = 0; i < 2; i++)
        ck_assert_ptr_nonnull(leat_blob_mutable_cpu_data(fixture.top[i]));
    ck_assert_int_eq(
        cudaStreamBeginCapture(stage_stream[0], cudaStreamCaptureModeGlobal),
        cudaSuccess);
    ck_assert_int_eq(leat_cuda_push(fixture.top[0], stage_stream[0]),
                     LEAT_ESTATE);
    ck_assert_int_eq(leat_cuda_push(fixture.top[1], stage_stream[0]), LEAT_OK);
    ck_assert_int_eq(cudaStreamEndCapture(stage_stream[0], &graph),
                     cudaSuccess);
    ck_assert_int_eq(cudaGraphDestroy(graph), cudaSuccess);
    ck_assert_int_eq(leat_cuda_push(fixture.top[0], stage_stream[0]), LEAT_OK);
    layer_fixture_close(&fixture);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layer_cuda_transform");
    TCase *tcase = tcase_create("layer_cuda_transform");
    tcase_add_checked_fixture(tcase, stage_set_up, stage_tear_down);
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, a_list_of_tops_has_one_image_transformed_there,
                        0, 3);
    tcase_add_loop_test(tcase, a_device_transform_gives_the_bytes_of_the_cpu, 0,
                        4);
    tcase_add_test(tcase, a_device_transform_uploads_bytes_and_computes_once);
    tcase_add_loop_test(tcase, kernels_are_loaded_at_setup, 0, 4);
    tcase_add_loop_test(tcase, no_copy_waits_for_a_transform, 0, 3);
    tcase_add_loop_test(tcase, transforms_and_copies_overlap, 0, 3);
    tcase_add_test(tcase, the_cpu_can_read_what_the_device_computed);
    tcase_add_loop_test(
        tcase, the_cpu_can_read_a_top_that_a_stream_still_writes, 0, 4);
    tcase_add_test(tcase, the_cpu_can_write_a_top_that_a_stream_still_reads);
    tcase_add_loop_test(tcase, a_top_that_is_written_outlives_its_layer, 0, 4);
    tcase_add_loop_test(
        tcase, host_memory_for_a_top_that_the_device_computed_is_counted, 0, 2);
    tcase_add_test(tcase,
                   what_is_pushed_is_read_before_the_host_side_is_refilled);
    tcase_add_test(tcase,
                   what_is_pushed_back_is_there_before_the_next_top_is_read);
    tcase_add_test(tcase, a_push_leaves_a_capture_as_it_is);
    tcase_add_test(tcase, doubles_are_not_made_on_a_device);
    return suite_run(suite);
}
