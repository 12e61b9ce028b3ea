/*
 * Each CUDA call of a layer's life fails in turn, once or from then on, from
 * opening the device to destroy: the caller gets one error, nothing hangs and
 * nothing stays.
 */
#include "layer_stage.h"
#include "living.h"
#include "support/bad_records.h"
#include "support/child.h"
#include "support/sanitizer.h"
#include "support/suite.h"

#include <check.h>
#include <leat/cuda.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define STEPS 9
#define NAMES 64
#define RECORDS 20
#define LEAK_CHECKS 29 /* one in so many */

/* What layers are like whose calls differ. */
typedef struct way {
    leat_top_mode top_mode;
    leat_transform_on transform_on;
    int on_host; /* forwards of these are for the host: */
    int is_pageable;
    int grows; /* batches outgrow their memory */
} way;

/* Copies into tops are the caller's to order among its streams. */
enum { NONE, THIRD, ALL };

static const way ways[] = {
    {LEAT_TOP_LEND, LEAT_TRANSFORM_ON_CPU, THIRD, 0, 0},
    {LEAT_TOP_COPY, LEAT_TRANSFORM_ON_CPU, NONE, 0, 0},
    {LEAT_TOP_COPY, LEAT_TRANSFORM_ON_CPU, ALL, 0, 0},
    {LEAT_TOP_LEND, LEAT_TRANSFORM_ON_DEVICE, THIRD, 0, 0},
    {LEAT_TOP_COPY, LEAT_TRANSFORM_ON_DEVICE, NONE, 0, 0},
    {LEAT_TOP_LEND, LEAT_TRANSFORM_ON_CPU, THIRD, 1, 0},
    {LEAT_TOP_COPY, LEAT_TRANSFORM_ON_DEVICE, ALL, 1, 0},
    {LEAT_TOP_LEND, LEAT_TRANSFORM_ON_CPU, THIRD, 0, 1},
    {LEAT_TOP_LEND, LEAT_TRANSFORM_ON_DEVICE, THIRD, 0, 1},
};
#define WAYS ((int)(sizeof(ways) / sizeof(ways[0])))

/* A life until its first error, and what became of it. */
typedef struct life {
    layer_fixture fixture;
    leat_pipeline *pipeline;
    int on_host;
    int records;
    int is_forwards; /* the error came from a forward */
    char line[512];
} life;

static const float mean = 1;
static bad_records grown;

static void begin(life *self, const way *one)
{
    static leat_transform_options transform;
    const leat_transform_options none = LEAT_TRANSFORM_OPTIONS_INIT;
    transform = none;
    transform.mean_value = &mean;
    transform.mean_values = 1;
    stage_options.transform = &transform;
    stage_options.top_mode = one->top_mode;
    stage_options.transform_on = one->transform_on;
    stage_options.batch_size = one->grows ? 1 : STAGE_BATCH;
    cuda_double_reset();
    cuda_double_set_pinnable(one->is_pageable ? 0 : SIZE_MAX);
    cuda_double_set_blocking(one->is_pageable);
    memset(self, 0, sizeof(*self));
    self->on_host = one->on_host;
    self->pipeline = stage_pipeline;
    self->records = LAYER_FIXTURE_COUNT;
    if (!one->grows)
        return;
    grown = (bad_records){.count = RECORDS};
    for (int i = 0; i < RECORDS; i += 3)
        grown.kind[i] = BAD_RECORDS_SMALL;
    self->pipeline = bad_records_pipeline(&grown);
    self->records = RECORDS;
}

static int set_up_layer(life *self)
{
    leat_device *device;
    layer_fixture *fixture = &self->fixture;
    int status = leat_device_find(&device, stage_options.device);
    if (!status)
        status = leat_data_layer_create(&fixture->layer, self->pipeline,
                                        &stage_options);
    for (int i = 0; i < 2 && !status; i++)
        status = leat_blob_create(&fixture->top[i], device);
    if (!status)
        status = leat_data_layer_setup(fixture->layer, fixture->top, 2);
    return status;
}

/* By a stream, or on the host, which looks at the bytes. */
static int step(life *self, int i)
{
    layer_fixture *fixture = &self->fixture;
    bool is_host =
        self->on_host == ALL || (self->on_host == THIRD && i % 3 == 2);
    leat_stream stream =
        leat_cuda_stream(stage_stream[self->on_host ? i % 2 : 0]);
    if (is_host)
        stream = LEAT_HOST;
    int status =
        leat_data_layer_forward(fixture->layer, fixture->top, 2, stream);
    self->is_forwards = status != LEAT_OK;
    if (status)
        return status;
    if (!leat_blob_gpu_data(fixture->top[0]))
        return LEAT_EDEVICE;
    if (!is_host)
        return LEAT_OK;
    const float *label = leat_blob_cpu_data(fixture->top[1]);
    if (!label || !leat_blob_cpu_data(fixture->top[0]))
        return LEAT_EDEVICE;
    int64_t first = leat_data_layer_batch(fixture->layer)->from[0].record;
    ck_assert_int_eq(first, stage_options.batch_size * i % self->records);
    ck_assert_float_eq(*label, (float)(1000 + first));
    return LEAT_OK;
}

static int restore(life *self)
{
    leat_token token;
    leat_token_init(&token);
    int status = leat_data_layer_save(self->fixture.layer, &token);
    if (!status)
        status = leat_data_layer_restore(self->fixture.layer, &token);
    leat_token_finish(&token);
    return status;
}

static int live(life *self)
{
    const leat_stream further = leat_cuda_stream(stage_stream[2]);
    int status = set_up_layer(self);
    for (int i = 0; i < STEPS && !status; i++) {
        status = step(self, i);
        if (!status && i % 4 == 1)
            status = leat_data_layer_release(self->fixture.layer, &further, 1);
        if (!status && i == 4)
            status = restore(self);
    }
    snprintf(self->line, sizeof(self->line), "%s", leat_last_error());
    return status;
}

/* The same error again, where it is forward's. */
static void check_error(life *self, int status, const char *name)
{
    ck_assert_int_eq(status, LEAT_EDEVICE);
    ck_assert_msg(strstr(self->line, "cuda:0: ") && strstr(self->line, name),
                  "%s", self->line);
    if (!self->is_forwards)
        return;
    ck_assert_int_eq(leat_cuda_forward(self->fixture.layer, self->fixture.top,
                                       2, stage_stream[0]),
                     status);
    ck_assert_str_eq(leat_last_error(), self->line);
}

static void end(life *self)
{
    layer_fixture_close(&self->fixture);
    cuda_double_fail_at(-1, cudaSuccess);
    if (self->pipeline != stage_pipeline)
        leat_pipeline_unref(self->pipeline);
    living_check_none();
    ck_assert_int_eq(cudaPeekAtLastError(), cudaSuccess);
}

static int has(const char *const names[], int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return 1;
    return 0;
}

/*
 * The runtime's calls of one life, by name. Left out are those that cannot
 * fail, and the driver's: a context that is lost does not come back.
 */
static int list_calls(const way *one, const char *names[])
{
    static const char *const infallible[] = {
        "cudaGetDevice", "cudaDriverGetVersion", "cudaRuntimeGetVersion",
        "cudaThreadExchangeStreamCaptureMode"};
    life self;
    int calls;
    int n = 0;
    begin(&self, one);
    ck_assert_int_eq(live(&self), LEAT_OK);
    end(&self);
    const cuda_double_call *call = cuda_double_calls(&calls);
    for (int i = 0; i < calls; i++) {
        const char *name = call[i].name;
        if (strncmp(name, "cuda", 4) != 0 || has(infallible, 4, name) ||
            has(names, n, name))
            continue;
        ck_assert_int_lt(n, NAMES);
        names[n++] = name;
    }
    return n;
}

/* Whether call `i` of that name was made, and failed. */
static int fail_call(const way *one, const char *name, int i, int *errors)
{
    life self;
    begin(&self, one);
    cuda_double_fail_named(name, i, cudaErrorUnknown);
    int status = live(&self);
    if (status)
        check_error(&self, status, "cudaErrorUnknown");
    *errors += status != LEAT_OK;
    layer_fixture_close(&self.fixture);
    self.fixture = (layer_fixture){0};
    int has_failed = cuda_double_failed() != NULL;
    end(&self);
    return has_failed;
}

START_TEST(a_call_that_fails_is_one_error)
{
    const char *names[NAMES];
    const int step = IS_SANITIZED ? 5 : 1;
    leat_device *device;
    int errors = 0;
    ck_assert_int_eq(leat_device_find(&device, "cuda:0"), LEAT_OK);
    int n = list_calls(&ways[_i], names);
    ck_assert_int_ge(n, 14);
    for (int k = 0; k < n; k++) {
        int i = 0;
        while (fail_call(&ways[_i], names[k], i, &errors))
            i += i < 3 ? 1 : step;
        ck_assert_msg(i > 0, "%s has not failed", names[k]);
    }
    ck_assert_int_gt(errors, 30);
    cuda_double_reset();
}
END_TEST

/* As it waits for what the caller's stream does with the top's own memory. */
START_TEST(a_top_is_recalled_where_the_hand_off_of_a_later_one_fails)
{
    const int64_t dim = 4;
    leat_stream stream = leat_cuda_stream(stage_stream[0]);
    life self;
    leat_device *device;
    begin(&self, &ways[0]);
    ck_assert_int_eq(leat_device_find(&device, "cuda:0"), LEAT_OK);
    ck_assert_int_eq(set_up_layer(&self), LEAT_OK);
    leat_blob *top[2] = {self.fixture.top[0], NULL};
    ck_assert_int_eq(leat_data_layer_forward(self.fixture.layer,
                                             self.fixture.top, 2, stream),
                     LEAT_OK);
    ck_assert_ptr_nonnull(leat_blob_gpu_data(top[0]));
    ck_assert_int_eq(leat_blob_create(&top[1], device), LEAT_OK);
    ck_assert_int_eq(leat_blob_reshape(top[1], LEAT_FLOAT32, 1, &dim), LEAT_OK);
    ck_assert_ptr_nonnull(leat_blob_mutable_gpu_data(top[1]));
    cuda_double_fail_named("cudaStreamSynchronize", 0, cudaErrorUnknown);
    ck_assert_int_eq(
        leat_data_layer_forward(self.fixture.layer, top, 2, stream),
        LEAT_EDEVICE);
    cuda_double_fail_at(-1, cudaSuccess);
    ck_assert_ptr_null(leat_blob_gpu_data(top[0]));
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "given back"));
    leat_blob_destroy(top[1]);
    end(&self);
}
END_TEST

/* The ways begin at different calls, where not all are taken. */
START_TEST(a_device_lost_at_any_call_is_one_error)
{
    const int step = IS_SANITIZED ? 5 : 1;
    int status = LEAT_EDEVICE;
    int fault = _i % step;
    for (; status; fault += step) {
        life self;
        begin(&self, &ways[_i]);
        cuda_double_lose_at_call(fault, cudaErrorECCUncorrectable);
        status = live(&self);
        if (status)
            check_error(&self, status, "cudaErrorECCUncorrectable");
        end(&self);
        ck_assert_int_lt(fault, 2000);
    }
    ck_assert_int_gt(fault, 30);
    cuda_double_reset();
}
END_TEST

/* In a process of its own: a context does not come back. */
typedef struct end_of_context {
    const way *way;
    int call;
    int *was_there; /* in memory that is shared */
} end_of_context;

static void lose_context(void *argument)
{
    const end_of_context *self = argument;
    life one;
    stage_set_up();
    begin(&one, self->way);
    cuda_double_destroy_at_call(self->call);
    int status = live(&one);
    if (status)
        check_error(&one, status,
                    "cudaErrorContextIsDestroyed): the program reset the GPU");
    layer_fixture_close(&one.fixture);
    one.fixture = (layer_fixture){0};
    *self->was_there = cuda_double_failed() != NULL;
    end(&one);
    leat_pipeline_unref(stage_pipeline);
}

/* By the caller, and amid any call of leat's; as above. */
START_TEST(a_context_destroyed_at_any_call_is_one_error)
{
    const int step = IS_SANITIZED ? 13 : 3;
    end_of_context each = {.way = &ways[_i], .call = _i % step};
    each.was_there = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(each.was_there, MAP_FAILED);
    int is_there = 1;
    for (; is_there && each.call < 2000; each.call += step) {
        /* A look for leaks takes long. */
        if (each.call % LEAK_CHECKS == 0)
            child_run(lose_context, &each);
        else
            child_run_amid_threads(lose_context, &each);
        is_there = *each.was_there;
    }
    ck_assert_int_gt(each.call, 100);
    ck_assert_int_eq(munmap(each.was_there, sizeof(int)), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layer_cuda_calls");
    TCase *tcase = tcase_create("layer_cuda_calls");
    tcase_add_checked_fixture(tcase, stage_set_up, stage_tear_down);
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, a_call_that_fails_is_one_error, 0, WAYS);
    tcase_add_test(tcase,
                   a_top_is_recalled_where_the_hand_off_of_a_later_one_fails);
    tcase_add_loop_test(tcase, a_device_lost_at_any_call_is_one_error, 0, WAYS);
    tcase = tcase_create("contexts");
    tcase_set_timeout(tcase, 120);
    suite_add_tcase(suite, tcase);
    /* Forked amid threads, a child may hang in TSan's own locks. */
    if (!IS_THREAD_SANITIZED)
        tcase_add_loop_test(tcase, a_context_destroyed_at_any_call_is_one_error,
                            0, WAYS);
    return suite_run(suite);
}
