/*
 * What is told to bound a fixture to cuda:N whose host memory cannot be pinned,
 * so that the calls which copy wait. The clock is the double's: copies and
 * kernels take what the model says, and what the CPU does takes nothing.
 */
#include "cuda_double.h"
#include "support/layer_fixture.h"
#include "support/suite.h"

#include <check.h>
#include <leat.h>
#include <leat/cuda.h>
#include <string.h>
#include <time.h>

#define STEPS 40
#define BYTES 32768  /* of an image: each is a run by itself */
#define COUNT 4      /* images, and in a batch */
#define COPY_US 1310 /* of a batch at the least, at 0.1 GB/s */

int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);

int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
    if (clock != CLOCK_MONOTONIC)
        return __real_clock_gettime(clock, out);
    int64_t now = cuda_double_now();
    *out = (struct timespec){.tv_sec = 1 + now / 1000000000,
                             .tv_nsec = now % 1000000000};
    return 0;
}

static leat_data_layer_options options;
static leat_pipeline *images;
static cudaStream_t stream;

static void set_up(void)
{
    static unsigned char pixels[COUNT][BYTES];
    static int32_t labels[COUNT];
    const leat_memory_field fields[] = {
        {"data", LEAT_UINT8, 3, {1, 128, 256}, pixels},
        {"label", LEAT_INT32, 0, {0}, labels},
    };
    const leat_data_layer_options defaults = LEAT_DATA_LAYER_OPTIONS_INIT;
    options = defaults;
    options.batch_size = COUNT;
    options.device = "cuda:0";
    options.prefetch = 2;
    options.workers = 1;
    options.caller_helps = LEAT_CALLER_HELPS_OFF;
    options.top_type = LEAT_UINT8;
    cuda_double_reset();
    cuda_double_set_pinnable(0);
    cuda_double_set_blocking(1);
    cuda_double_set_bus(0.1, 0);
    stream = cuda_double_stream();
    ck_assert_int_eq(leat_pipeline_memory(&images, fields, 2, COUNT), LEAT_OK);
}

static void tear_down(void)
{
    leat_pipeline_unref(images);
    ck_assert_int_eq(cudaStreamDestroy(stream), cudaSuccess);
}

/*
 * What bounds a consumer that waits all the time and whose every batch its
 * stream computes for so long. The one worker alone waits for anything in
 * modelled time, so that the figures are the same each time.
 */
static leat_stats judge(leat_stream on, double kernel_us,
                        char verdict[LEAT_VERDICT_MAX])
{
    leat_stats stats = {.size = sizeof(stats)};
    layer_fixture fixture = layer_fixture_open(images, &options);
    for (int i = 0; i < STEPS; i++) {
        ck_assert_int_eq(
            leat_data_layer_forward(fixture.layer, fixture.top, 2, on),
            LEAT_OK);
        if (kernel_us > 0)
            ck_assert_int_eq(
                cuda_double_launch(NULL, NULL, 0, kernel_us, stream), 0);
    }
    leat_data_layer_stats(fixture.layer, &stats);
    stats.waited = stats.elapsed;
    ck_assert_int_eq(leat_stats_verdict(&stats, NULL, verdict), LEAT_OK);
    layer_fixture_close(&fixture);
    ck_assert_str_eq(stats.stage[1].name, "transform");
    ck_assert_str_eq(stats.stage[2].name, "copy");
    return stats;
}

START_TEST(copies_from_pageable_memory_are_told_as_copies)
{
    char verdict[LEAT_VERDICT_MAX];
    leat_stats stats =
        judge(_i ? LEAT_HOST : leat_cuda_stream(stream), 0, verdict);
    ck_assert_msg(strstr(verdict, "bound by copy: ") == verdict, "%s", verdict);
    ck_assert_double_eq(stats.stage[1].busy, 0);
    ck_assert_double_ge(stats.stage[2].busy, 1e-6 * COPY_US * STEPS);
}
END_TEST

/* The call that copies after them has to wait for them, too. */
START_TEST(a_slow_stream_of_the_consumer_is_not_taken_for_such_copies)
{
    char verdict[LEAT_VERDICT_MAX];
    leat_stats stats = judge(leat_cuda_stream(stream), 20 * COPY_US, verdict);
    ck_assert_msg(strstr(verdict, "bound by the consumer: ") == verdict &&
                      strstr(verdict, "; its streams give batches back late"),
                  "%s", verdict);
    ck_assert_double_eq(stats.stage[1].busy, 0);
    ck_assert_double_le(stats.stage[2].busy, 0.1 * stats.elapsed);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("verdict_cuda");
    TCase *tcase = tcase_create("verdict_cuda");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, copies_from_pageable_memory_are_told_as_copies,
                        0, 2);
    tcase_add_test(tcase,
                   a_slow_stream_of_the_consumer_is_not_taken_for_such_copies);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
