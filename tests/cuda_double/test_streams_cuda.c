/* The streams that a caller may give to forward and release. */
#define CUDA_API_PER_THREAD_DEFAULT_STREAM /* as nvcc's option does */
#include "layer_stage.h"
#include "sight.h"
#include "support/rows_source.h"
#include "support/suite.h"

#include <check.h>
#include <leat/cuda.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <unistd.h>

/* Two threads that step one layer in turn, each with tops of its own. */
typedef struct turns {
    layer_fixture *fixture;
    leat_blob *top[2][2];
    sem_t turn[2];
    sight *seen;
} turns;

typedef struct thread_of_two {
    turns *both;
    int number;
} thread_of_two;

static void *step_in_turn(void *argument)
{
    const thread_of_two *self = argument;
    turns *both = self->both;
    for (int i = self->number; i < STAGE_STEPS; i += 2) {
        leat_blob **top = both->top[self->number];
        sem_wait(&both->turn[self->number]);
        int status = leat_cuda_forward(both->fixture->layer, top, 2,
                                       cudaStreamPerThread);
        ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
        sight_launch(top, STAGE_BATCH, both->seen + i * STAGE_BATCH, 0,
                     cudaStreamPerThread);
        sem_post(&both->turn[1 - self->number]);
    }
    ck_assert_int_eq(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
    return NULL;
}

static void make_tops(turns *both)
{
    leat_device *device;
    ck_assert_int_eq(leat_device_find(&device, "cuda:0"), LEAT_OK);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(sem_init(&both->turn[i], 0, i == 0), 0);
        for (int k = 0; k < 2; k++)
            ck_assert_int_eq(leat_blob_create(&both->top[i][k], device),
                             LEAT_OK);
    }
}

START_TEST(a_threads_own_stream_is_recorded_before_forward_returns)
{
    sight seen[STAGE_STEPS * STAGE_BATCH] = {0};
    stage_options.top_mode = LEAT_TOP_COPY;
    stage_options.transform_on = (leat_transform_on)_i;
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    turns both = {.fixture = &fixture, .seen = seen};
    thread_of_two thread[2] = {{&both, 0}, {&both, 1}};
    pthread_t id[2];
    make_tops(&both);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&id[i], NULL, step_in_turn, &thread[i]),
                         0);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_join(id[i], NULL), 0);
    ck_assert_int_eq(sight_count_wrong(seen, STAGE_STEPS * STAGE_BATCH), 0);
    layer_fixture_close(&fixture);
    for (int i = 0; i < 4; i++)
        leat_blob_destroy(both.top[i / 2][i % 2]);
}
END_TEST

/* What is recorded later would be another thread's. */
START_TEST(a_threads_own_stream_is_refused_where_it_would_be_kept)
{
    sight seen[STAGE_BATCH] = {0};
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    ck_assert_int_eq(
        leat_cuda_forward(fixture.layer, fixture.top, 2, cudaStreamPerThread),
        LEAT_EINVAL);
    ck_assert_msg(strstr(leat_last_error(), "cudaStreamPerThread") &&
                      strstr(leat_last_error(), "COPY"),
                  "%s", leat_last_error());
    /* Nothing was consumed. */
    stage_forward(&fixture, stage_stream[0]);
    sight_launch(fixture.top, STAGE_BATCH, seen, 0, stage_stream[0]);
    /* The call itself records it. */
    ck_assert_int_eq(leat_cuda_release(fixture.layer, cudaStreamPerThread),
                     LEAT_OK);
    ck_assert_int_eq(cudaStreamSynchronize(stage_stream[0]), cudaSuccess);
    ck_assert_int_eq(sight_count_wrong(seen, STAGE_BATCH), 0);
    layer_fixture_close(&fixture);
}
END_TEST

/* In a file compiled as this one is. */
START_TEST(the_default_stream_of_a_thread_is_no_common_one)
{
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    ck_assert_int_eq(leat_cuda_forward(fixture.layer, fixture.top, 2, NULL),
                     LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "cudaStreamPerThread"));
    ck_assert_int_eq(leat_data_layer_forward(fixture.layer, fixture.top, 2, 0),
                     LEAT_OK);
    layer_fixture_close(&fixture);
}
END_TEST

/* Copies are recorded with the call: the stream need not outlive it. */
START_TEST(a_stream_that_was_copied_on_may_be_destroyed)
{
    stage_options.top_mode = LEAT_TOP_COPY;
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    for (int i = 0; i < STAGE_STEPS; i++) {
        cudaStream_t on = cuda_double_stream();
        stage_forward(&fixture, on);
        ck_assert_int_eq(cudaStreamDestroy(on), cudaSuccess);
    }
    ck_assert_int_eq(leat_data_layer_release(fixture.layer, NULL, 0), LEAT_OK);
    layer_fixture_close(&fixture);
    /* No call names a stream that was destroyed before. */
    int n;
    const cuda_double_call *call = cuda_double_calls(&n);
    for (int i = 0; i < n; i++)
        for (int k = i + 1;
             stage_is_call(&call[i], "cudaStreamDestroy") && k < n; k++)
            ck_assert_ptr_ne(call[k].stream, call[i].stream);
}
END_TEST

/* Streams: of another device, and of a context of the caller's own. */
static cudaStream_t make_foreign_stream(int is_own_context)
{
    CUcontext context;
    if (is_own_context)
        context = cuda_double_context(0);
    else
        ck_assert_int_eq(cuDevicePrimaryCtxRetain(&context, 1), CUDA_SUCCESS);
    ck_assert_int_eq(cuCtxPushCurrent(context), CUDA_SUCCESS);
    cudaStream_t stream = cuda_double_stream();
    ck_assert_int_eq(cuCtxPopCurrent(&context), CUDA_SUCCESS);
    return stream;
}

/* Nobody reads the first batch, so no stream has to wait for that; its copy is
   still to run when the next one's is over. */
START_TEST(a_batch_that_nobody_read_does_not_come_after_the_next)
{
    stage_options.top_mode = LEAT_TOP_COPY;
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    stage_forward(&fixture, stage_stream[0]);
    stage_forward(&fixture, stage_stream[1]);
    ck_assert_int_eq(cudaStreamSynchronize(stage_stream[1]), cudaSuccess);
    ck_assert_int_eq(cudaStreamSynchronize(stage_stream[0]), cudaSuccess);
    for (int i = 0; i < STAGE_BATCH; i++)
        ck_assert_double_eq((double)layer_fixture_label(&fixture, i),
                            1000 + STAGE_BATCH + i);
    layer_fixture_close(&fixture);
}
END_TEST

/* A kernel of the caller's over a ragged top of one sample. */
typedef struct row_look {
    const int32_t *row;
    int length;
    int *right;
} row_look;

static void look_at_row(void *argument)
{
    const row_look *self = argument;
    const int32_t *row = cuda_double_bytes(self->row);
    int right = 0;
    for (int k = 0; k < self->length; k++)
        right += row[k] % 100 == k;
    *self->right += right == self->length;
}

static leat_data_layer *open_rows(leat_pipeline *rows)
{
    static const leat_top tokens = {
        .size = sizeof(leat_top), .name = "tokens", .form = LEAT_TOP_RAGGED};
    leat_data_layer *layer;
    stage_options.top_mode = LEAT_TOP_COPY;
    stage_options.batch_size = 1;
    stage_options.top = &tokens;
    stage_options.ntop = 1;
    ck_assert_int_eq(leat_data_layer_create(&layer, rows, &stage_options), 0);
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_OK);
    return layer;
}

/* Copies and reads of its earlier memory are still to run when a longer sample
   comes: on the same stream, on the next one, or for the host. */
START_TEST(a_copied_top_outgrows_no_memory_that_a_stream_is_at)
{
    enum { SAMPLES = 10 };
    rows_source source = ROWS_SOURCE_INIT;
    leat_pipeline *rows = rows_source_pipeline(&source);
    leat_data_layer *layer = open_rows(rows);
    leat_blob *top = leat_data_layer_top(layer, 0);
    int right = 0, looks = 0;
    for (int i = 0; i < SAMPLES; i++) {
        cudaStream_t on = stage_stream[_i == 1 ? i % STAGE_STREAMS : 0];
        leat_stream stream =
            _i == 2 && i % 2 ? LEAT_HOST : leat_cuda_stream(on);
        ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, stream), 0);
        ck_assert_int_eq(leat_blob_dim(top, 0), rows_source_length(i));
        row_look look = {leat_blob_gpu_data(top), rows_source_length(i),
                         &right};
        if (_i > 0 || look.length == 0)
            continue;
        looks++;
        ck_assert_int_eq(
            cuda_double_launch(look_at_row, &look, sizeof(look), 0, on),
            cudaSuccess);
    }
    for (int i = 0; i < STAGE_STREAMS; i++)
        ck_assert_int_eq(cudaStreamSynchronize(stage_stream[i]), cudaSuccess);
    ck_assert_int_eq(right, looks);
    leat_data_layer_destroy(layer);
    leat_pipeline_unref(rows);
}
END_TEST

/* Sample i of a single pass has i + 1 pages of bytes. */
static int give_longer(void *pass, leat_sample *sample)
{
    enum { PAGE = 4096, SAMPLES = 24 };
    static const unsigned char bytes[SAMPLES * PAGE];
    int64_t length =
        sample->from.record < SAMPLES ? (sample->from.record + 1) * PAGE : 0;
    (void)pass;
    sample->stable = 1;
    return length == 0
               ? LEAT_END
               : leat_sample_set(sample, 0, LEAT_UINT8, 1, &length, bytes);
}

static leat_pipeline *make_longer(void)
{
    static const leat_field_spec tokens = {
        .name = "tokens", .dtype = LEAT_UINT8, .ndim = 1, .shape = {-1}};
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = &tokens,
                                      .nfields = 1,
                                      .next = give_longer};
    leat_pipeline *longer;
    ck_assert_int_eq(leat_pipeline_callback(&longer, &callbacks, NULL), 0);
    return longer;
}

/* The upload's copy is still to run when its end cannot be recorded. The batch
   comes back, and longer samples are put there. */
START_TEST(a_batch_whose_upload_failed_is_outgrown_after_its_copy)
{
    leat_pipeline *longer = make_longer();
    cuda_double_fail_named("cudaEventRecord", _i, cudaErrorUnknown);
    leat_data_layer *layer = open_rows(longer);
    leat_stream stream = leat_cuda_stream(stage_stream[0]);
    int status = LEAT_OK;
    while (!status)
        status = leat_data_layer_forward(layer, NULL, 0, stream);
    ck_assert_int_eq(status, LEAT_EDEVICE);
    cuda_double_fail_at(-1, cudaSuccess);
    /* Time for the workers to do so. */
    usleep(50000);
    ck_assert_int_eq(cudaStreamSynchronize(stage_stream[0]), cudaSuccess);
    leat_data_layer_destroy(layer);
    leat_pipeline_unref(longer);
}
END_TEST

/* Another layer lends the tops its memory instead. */
static leat_data_layer *lend_to(layer_fixture *fixture)
{
    leat_data_layer *lender;
    stage_options.top_mode = LEAT_TOP_LEND;
    ck_assert_int_eq(
        leat_data_layer_create(&lender, stage_pipeline, &stage_options), 0);
    ck_assert_int_eq(leat_data_layer_setup(lender, fixture->top, 2), LEAT_OK);
    ck_assert_int_eq(
        leat_cuda_forward(lender, fixture->top, 2, stage_stream[1]), LEAT_OK);
    return lender;
}

/* The stream that a batch is lent on is still to read the copy before. */
START_TEST(a_copied_top_is_lent_over_after_its_readers)
{
    sight seen[STAGE_BATCH] = {0};
    stage_options.top_mode = LEAT_TOP_COPY;
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    stage_forward(&fixture, stage_stream[1]);
    sight_launch(fixture.top, STAGE_BATCH, seen, 0, stage_stream[1]);
    leat_data_layer *lender = lend_to(&fixture);
    ck_assert_int_eq(cudaStreamSynchronize(stage_stream[1]), cudaSuccess);
    ck_assert_int_eq(sight_count_wrong(seen, STAGE_BATCH), 0);
    leat_data_layer_destroy(lender);
    layer_fixture_close(&fixture);
}
END_TEST

/* Nobody reads it; the copy is still to run. */
START_TEST(a_copied_top_is_freed_after_its_copy)
{
    const int64_t shape[] = {1000, 1000};
    leat_data_layer *lender = NULL;
    stage_options.top_mode = LEAT_TOP_COPY;
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    stage_forward(&fixture, stage_stream[0]);
    if (_i == 2)
        lender = lend_to(&fixture);
    for (int i = 0; i < 2; i++) {
        if (_i == 1)
            ck_assert_int_eq(
                leat_blob_reshape(fixture.top[i], LEAT_FLOAT32, 2, shape), 0);
        leat_blob_destroy(fixture.top[i]);
        fixture.top[i] = NULL;
    }
    ck_assert_int_eq(cudaStreamSynchronize(stage_stream[0]), cudaSuccess);
    leat_data_layer_destroy(lender);
    layer_fixture_close(&fixture);
}
END_TEST

/* Another layer's forward into the tops fails where it makes the stream, or
 * the host's copy, wait for them; from 2 on in any call of the host's copy. The
 * device goes on. */
START_TEST(a_copied_top_is_freed_after_its_copy_where_forward_failed)
{
    const int64_t shape[] = {1000, 1000};
    leat_data_layer *second;
    stage_options.top_mode = LEAT_TOP_COPY;
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    ck_assert_int_eq(
        leat_data_layer_create(&second, stage_pipeline, &stage_options), 0);
    ck_assert_int_eq(leat_data_layer_setup(second, NULL, 0), LEAT_OK);
    stage_forward(&fixture, stage_stream[0]);
    leat_stream stream =
        _i == 0 ? leat_cuda_stream(stage_stream[1]) : LEAT_HOST;
    if (_i < 2)
        cuda_double_fail_named("cudaStreamWaitEvent", _i == 0,
                               cudaErrorUnknown);
    else
        cuda_double_fail_named("cuCtxGetCurrent", _i - 2, cudaErrorUnknown);
    int status = leat_data_layer_forward(second, fixture.top, 2, stream);
    ck_assert(status == LEAT_EDEVICE || (_i >= 2 && !status));
    cuda_double_fail_at(-1, cudaSuccess);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(
            leat_blob_reshape(fixture.top[i], LEAT_FLOAT32, 2, shape), 0);
    ck_assert_int_eq(cudaStreamSynchronize(stage_stream[0]), cudaSuccess);
    leat_data_layer_destroy(second);
    layer_fixture_close(&fixture);
}
END_TEST

/* A thread that is to be cancelled, and what it does with a copied top. */
typedef struct last_call {
    leat_blob **top;
    int which;
    int is_back;
} last_call;

static void *call_and_end(void *argument)
{
    /* Static: ASan takes a cancelled thread's arrays for its own stack's. */
    static const int64_t shape[] = {1000, 1000};
    last_call *call = argument;
    pthread_cancel(pthread_self());
    switch (call->which) {
    case 0:
        (void)leat_blob_cpu_data(*call->top);
        break;
    case 1:
        (void)leat_blob_mutable_cpu_data(*call->top);
        (void)leat_blob_mutable_gpu_data(*call->top);
        break;
    case 2:
        (void)leat_blob_reshape(*call->top, LEAT_FLOAT32, 2, shape);
        break;
    default:
        leat_blob_destroy(*call->top);
        *call->top = NULL;
    }
    call->is_back = 1;
    pthread_testcancel();
    return NULL;
}

START_TEST(no_call_of_a_copied_top_is_a_cancellation_point)
{
    pthread_t thread;
    void *result;
    stage_options.top_mode = LEAT_TOP_COPY;
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    stage_forward(&fixture, stage_stream[0]);
    last_call call = {&fixture.top[0], _i, 0};
    ck_assert_int_eq(pthread_create(&thread, NULL, call_and_end, &call), 0);
    ck_assert_int_eq(pthread_join(thread, &result), 0);
    ck_assert_ptr_eq(result, PTHREAD_CANCELED);
    ck_assert_int_eq(call.is_back, 1);
    ck_assert_int_eq(cudaStreamSynchronize(stage_stream[0]), cudaSuccess);
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(a_stream_of_another_device_or_context_is_refused_by_name)
{
    const char *name = _i ? "context of your own" : "cuda:1";
    cudaStream_t foreign = make_foreign_stream(_i);
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    sight seen[STAGE_BATCH] = {0};
    ck_assert_int_eq(leat_cuda_forward(fixture.layer, fixture.top, 2, foreign),
                     LEAT_EINVAL);
    ck_assert_msg(strstr(leat_last_error(), name), "%s", leat_last_error());
    stage_forward(&fixture, stage_stream[0]);
    sight_launch(fixture.top, STAGE_BATCH, seen, 0, stage_stream[0]);
    leat_stream both[] = {(leat_stream)stage_stream[1], (leat_stream)foreign};
    ck_assert_int_eq(leat_data_layer_release(fixture.layer, both, 2),
                     LEAT_EINVAL);
    ck_assert_msg(strstr(leat_last_error(), name), "%s", leat_last_error());
    /* Nothing was changed. */
    ck_assert_ptr_nonnull(leat_data_layer_batch(fixture.layer));
    ck_assert_int_eq(leat_data_layer_release(fixture.layer, both, 1), LEAT_OK);
    ck_assert_int_eq(cudaStreamSynchronize(stage_stream[0]), cudaSuccess);
    ck_assert_int_eq(sight_count_wrong(seen, STAGE_BATCH), 0);
    layer_fixture_close(&fixture);
    ck_assert_int_eq(cudaStreamDestroy(foreign), cudaSuccess);
}
END_TEST

START_TEST(a_stream_of_a_green_context_will_do)
{
    CUcontext green = cuda_double_green_context(0);
    cudaStream_t before = stage_stream[0];
    ck_assert_int_eq(cuCtxPushCurrent(green), CUDA_SUCCESS);
    stage_stream[0] = cuda_double_stream();
    ck_assert_int_eq(stage_run_on(1), 0);
    ck_assert_int_eq(cudaStreamDestroy(stage_stream[0]), cudaSuccess);
    ck_assert_int_eq(cuCtxPopCurrent(&green), CUDA_SUCCESS);
    stage_stream[0] = before;
}
END_TEST

/* Once for a stream that stays. */
START_TEST(a_stream_is_looked_at_once)
{
    int n, looks = 0;
    layer_fixture fixture = layer_fixture_open(stage_pipeline, &stage_options);
    cuda_double_forget();
    for (int i = 0; i < STAGE_STEPS; i++)
        stage_forward(&fixture, stage_stream[0]);
    leat_data_layer_destroy(fixture.layer);
    fixture.layer = NULL;
    const cuda_double_call *call = cuda_double_calls(&n);
    for (int i = 0; i < n; i++)
        looks += stage_is_call(&call[i], "cuStreamGetCtx_v2");
    ck_assert_int_eq(looks, 1);
    layer_fixture_close(&fixture);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("streams_cuda");
    TCase *tcase = tcase_create("streams_cuda");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, stage_set_up, stage_tear_down);
    tcase_add_loop_test(
        tcase, a_threads_own_stream_is_recorded_before_forward_returns, 0, 2);
    tcase_add_test(tcase,
                   a_threads_own_stream_is_refused_where_it_would_be_kept);
    tcase_add_test(tcase, the_default_stream_of_a_thread_is_no_common_one);
    tcase_add_test(tcase, a_stream_that_was_copied_on_may_be_destroyed);
    tcase_add_test(tcase,
                   a_batch_that_nobody_read_does_not_come_after_the_next);
    tcase_add_loop_test(
        tcase, a_copied_top_outgrows_no_memory_that_a_stream_is_at, 0, 3);
    tcase_add_loop_test(
        tcase, a_batch_whose_upload_failed_is_outgrown_after_its_copy, 0, 8);
    tcase_add_test(tcase, a_copied_top_is_lent_over_after_its_readers);
    tcase_add_loop_test(tcase, a_copied_top_is_freed_after_its_copy, 0, 3);
    tcase_add_loop_test(
        tcase, a_copied_top_is_freed_after_its_copy_where_forward_failed, 0,
        26);
    tcase_add_loop_test(tcase, no_call_of_a_copied_top_is_a_cancellation_point,
                        0, 4);
    tcase_add_loop_test(
        tcase, a_stream_of_another_device_or_context_is_refused_by_name, 0, 2);
    tcase_add_test(tcase, a_stream_of_a_green_context_will_do);
    tcase_add_test(tcase, a_stream_is_looked_at_once);
    return suite_run(suite);
}
