/* Batches made ahead for one caller and for two: how they are taken, given
 * back, ended and cancelled.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "base/queue.h"
#include "base/thread.h"
#include "layer/prefetcher.h"
#include "support/layer_fixture.h"
#include "support/suite.h"
#include "support/watchdog.h"

#include <check.h>
#include <string.h>

enum { SECONDS = 60, BATCH = 4, DEVICES = 2, AHEAD = 2 };

static int batches; /* of a device */
static size_t room; /* bytes of a batch, if more than its shape's */

static leat_pipeline *pipeline;
static leat__data_reader *reader;
static leat_transformer *transformer;
static leat__top_plan plan;
static leat__prefetcher *prefetcher;

static void open_reader(leat__worker_options *worker, bool threaded)
{
    const leat__position beginning = {0};
    const leat_sample *first;
    const leat_transform_options transform = LEAT_TRANSFORM_OPTIONS_INIT;
    pipeline = layer_fixture_pipeline();
    const leat__data_reader_options source = {
        .source = {.pipeline = pipeline, .batch_size = BATCH, .step = 1},
        .threaded = threaded,
    };
    ck_assert_int_eq(
        leat__data_reader_create(&reader, &source, &beginning, NULL), LEAT_OK);
    ck_assert_int_eq(leat_transformer_create(&transformer, &transform,
                                             LEAT_TEST, LEAT_FLOAT32,
                                             LEAT_NCHW),
                     LEAT_OK);
    *worker = (leat__worker_options){
        .reader = reader,
        .image = &transformer,
        .spec = {.batch_size = BATCH, .plan = &plan},
        .step = 1,
    };
    ck_assert_int_eq(
        leat__top_plan_usual(&plan, 2, LEAT_FLOAT32, LEAT_INT32, NULL, 0),
        LEAT_OK);
    ck_assert_int_eq(leat__data_reader_preview(reader, &first), LEAT_OK);
    ck_assert_int_eq(leat__batch_spec_shape(&worker->spec, &transformer, first,
                                            &worker->shape),
                     LEAT_OK);
}

static int try_start(int devices, int workers, bool threaded, int fail_at)
{
    leat_device *cpu;
    leat__worker_options worker;
    open_reader(&worker, threaded);
    ck_assert_int_eq(leat_device_find(&cpu, "cpu"), LEAT_OK);
    leat_device *const device[DEVICES] = {cpu, cpu};
    const leat__prefetcher_options options = {
        .worker = worker,
        .queue = {.transformer = transformer,
                  .shape = worker.shape,
                  .batch_size = BATCH,
                  .room = room,
                  .batches = batches,
                  .circulating = batches},
        .device = device,
        .devices = devices,
        .workers = workers,
        .at_start = true,
        .may_time_waits = true,
        .chunk_size = 3,
        .ahead_size = 2,
    };
    leat__alloc_fail_at(fail_at);
    int status = leat__prefetcher_create(&prefetcher, &options);
    leat__alloc_fail_at(-1);
    return status;
}

static void start(int devices, int workers, bool threaded)
{
    ck_assert_int_eq(try_start(devices, workers, threaded, -1), LEAT_OK);
}

static void stop(void)
{
    leat__prefetcher_destroy(prefetcher);
    prefetcher = NULL;
    leat__data_reader_destroy(reader);
    leat_transformer_destroy(transformer);
    leat_pipeline_unref(pipeline);
}

static void set_up(void)
{
    prefetcher = NULL;
    batches = AHEAD + 1;
    room = 0;
    watchdog_start(SECONDS);
}

static void tear_down(void)
{
    watchdog_stop();
}

static leat__batch *next(int i, bool help)
{
    leat__batch *batch = NULL;
    ck_assert_int_eq(
        leat__prefetcher_next(prefetcher, i, &batch, LEAT__FOREVER, help),
        LEAT_OK);
    return batch;
}

static void give(leat__batch *batch)
{
    ck_assert_int_eq(leat__prefetcher_give(prefetcher, batch, NULL, 0),
                     LEAT_OK);
}

/* Batch `number` of the sequence, whoever made it. */
static void check_batch(const leat__batch *batch, int64_t number)
{
    ck_assert_int_eq(batch->number, number);
    ck_assert_int_eq(batch->status, LEAT_OK);
    ck_assert_int_eq(batch->n, BATCH);
    ck_assert_int_eq(batch->after.position, (number + 1) * BATCH);
    for (int k = 0; k < BATCH; k++) {
        int record = (int)(number * BATCH + k) % LAYER_FIXTURE_COUNT;
        const float *image = leat__batch_at(batch, 0, k);
        ck_assert_int_eq(*(const int32_t *)leat__batch_at(batch, 1, k),
                         1000 + record);
        ck_assert(image[LAYER_FIXTURE_PIXELS - 1] ==
                  (float)layer_fixture_pixel(record, 1, 4, 5));
    }
}

/* Each way of reading, with and without a caller that helps. */
START_TEST(each_device_gets_its_batches_in_sequence)
{
    enum { ROUNDS = 40 };
    for (int devices = 1; devices <= DEVICES; devices++) {
        for (int way = 0; way < 4; way++) {
            start(devices, 1 + way, way % 2);
            for (int64_t number = 0; number < ROUNDS * devices; number++) {
                leat__batch *batch = next((int)(number % devices), way / 2);
                check_batch(batch, number);
                give(batch);
            }
            stop();
        }
    }
}
END_TEST

typedef struct caller {
    int number;
    leat__thread thread;
} caller;

static void *take_batches(void *argument)
{
    const caller *self = argument;
    for (int k = 0; k < 200; k++) {
        leat__batch *batch = next(self->number, k % 3 == 0);
        check_batch(batch, (int64_t)k * DEVICES + self->number);
        give(batch);
    }
    return NULL;
}

START_TEST(devices_may_have_callers_of_their_own)
{
    caller other = {.number = 1};
    caller own = {.number = 0};
    start(DEVICES, 2, false);
    ck_assert_int_eq(
        leat__thread_start(&other.thread, "caller", take_batches, &other),
        LEAT_OK);
    take_batches(&own);
    leat__thread_join(&other.thread);
    stop();
}
END_TEST

/* Its first `n` batches, none of which is given back. */
static void take_without_giving(int i, int n, leat__batch *out[])
{
    for (int k = 0; k < n; k++)
        out[k] = next(i, false);
}

START_TEST(no_batch_comes_while_the_caller_holds_them_all)
{
    leat__batch *held[AHEAD + 1];
    leat__batch *batch;
    start(1, 1, false);
    take_without_giving(0, AHEAD + 1, held);
    ck_assert_int_eq(leat__prefetcher_next(prefetcher, 0, &batch, 0, false),
                     LEAT_AGAIN);
    ck_assert_int_eq(leat__prefetcher_next(prefetcher, 0, &batch,
                                           leat__clock_now() + 1000000, true),
                     LEAT_AGAIN);
    /* Its contents stay, marked or not, until it is given back. */
    ck_assert_int_eq(leat__prefetcher_mark(prefetcher, held[0], NULL, 0),
                     LEAT_OK);
    for (int k = 0; k <= AHEAD; k++)
        check_batch(held[k], k);
    give(held[1]);
    batch = next(0, false);
    ck_assert_ptr_eq(batch, held[1]);
    check_batch(batch, AHEAD + 1);
    check_batch(held[0], 0);
    stop();
}
END_TEST

/* One worker's cache holds a MiB of what it wrote: here four batches, beside
   the three that may be on their way to the caller. */
START_TEST(batches_are_streamed_until_as_many_wait_as_fill_a_cache)
{
    leat__batch *held[12];
    batches = 12;
    room = (size_t)256 << 10;
    start(1, 1, false);
    take_without_giving(0, 12, held);
    for (int k = 0; k < 12; k++)
        ck_assert_msg(held[k]->is_streamed == (k < 6), "batch %d", k);
    stop();
}
END_TEST

START_TEST(batches_as_large_as_the_caches_are_not_streamed)
{
    leat__batch *held[AHEAD + 1];
    for (int workers = 1; workers <= 2; workers++) {
        room = (size_t)1 << 20;
        start(1, workers, false);
        take_without_giving(0, AHEAD + 1, held);
        for (int k = 0; k <= AHEAD; k++)
            ck_assert_int_eq(held[k]->is_streamed, workers == 2);
        stop();
    }
}
END_TEST

/* Claims follow the sequence: one that takes nothing brings all to rest. */
START_TEST(a_device_that_takes_nothing_holds_the_others_up)
{
    leat__batch *batch;
    leat__activity now;
    int64_t number = 0;
    start(DEVICES, 2, false);
    /* Until the other's are all full. */
    for (int k = 0; k < AHEAD + 2; k++, number += DEVICES) {
        batch = next(0, k % 2);
        check_batch(batch, number);
        give(batch);
    }
    ck_assert_int_eq(leat__prefetcher_next(prefetcher, 0, &batch,
                                           leat__clock_now() + 1000000, true),
                     LEAT_AGAIN);
    do
        now = leat__prefetcher_activity(prefetcher);
    while (now.out_of_batches < 0);
    ck_assert_int_eq(now.out_of_batches, 1);
    for (int k = 0; k <= AHEAD; k++) {
        batch = next(1, false);
        check_batch(batch, (int64_t)k * DEVICES + 1);
        give(batch);
    }
    check_batch(next(0, false), number);
    stop();
}
END_TEST

START_TEST(after_the_end_what_is_ready_can_still_be_taken)
{
    static const char gone[LEAT__ERROR_MAX] = "the other device is gone";
    static const char late[LEAT__ERROR_MAX] = "too late to count";
    leat__batch *held[AHEAD + 1];
    leat__batch *batch;
    start(1, 1, false);
    take_without_giving(0, AHEAD + 1, held);
    give(held[0]);
    batch = next(0, false);
    give(batch);
    /* Another one is made or not; what comes is in sequence. */
    leat__prefetcher_end(prefetcher, LEAT_EIO, gone);
    leat__prefetcher_end(prefetcher, LEAT_EDEVICE, late);
    int64_t number = AHEAD + 2;
    int status;
    while ((status = leat__prefetcher_next(prefetcher, 0, &batch, LEAT__FOREVER,
                                           true)) == LEAT_OK)
        check_batch(batch, number++);
    ck_assert_int_le(number, AHEAD + 3);
    ck_assert_int_eq(status, LEAT_EIO);
    ck_assert_str_eq(leat_last_error(), gone);
    stop();
}
END_TEST

static void *cancel(void *unused)
{
    leat__prefetcher_cancel(prefetcher);
    return unused;
}

/* Before or amid the wait, as it comes. */
START_TEST(cancel_ends_every_wait)
{
    for (int help = 0; help <= 1; help++) {
        leat__batch *held[AHEAD + 1];
        leat__batch *batch;
        leat__thread other = {0};
        start(1, 2, _i);
        take_without_giving(0, AHEAD + 1, held);
        ck_assert_int_eq(leat__thread_start(&other, "cancels", cancel, NULL),
                         LEAT_OK);
        ck_assert_int_eq(
            leat__prefetcher_next(prefetcher, 0, &batch, LEAT__FOREVER, help),
            LEAT_ECANCELLED);
        leat__thread_join(&other);
        ck_assert_int_eq(leat__prefetcher_next(prefetcher, 0, &batch, 0, help),
                         LEAT_ECANCELLED);
        stop();
    }
}
END_TEST

START_TEST(it_is_destroyed_amid_its_work)
{
    for (int k = 0; k < 50; k++) {
        start(DEVICES, 1 + k % 4, _i);
        if (k % 2)
            give(next(0, k % 3 == 0));
        stop();
    }
}
END_TEST

START_TEST(a_caller_in_inline_mode_makes_chunks_itself)
{
    leat_stats stats = {.size = sizeof(stats)};
    start(1, 1, false);
    leat__prefetcher_set_inline(prefetcher, 0, true);
    for (int64_t number = 0; number < 200; number++) {
        leat__batch *batch = next(0, true);
        check_batch(batch, number);
        give(batch);
    }
    leat__prefetcher_stats(prefetcher, 0, &stats);
    ck_assert_int_gt(stats.helped_chunks, 0);
    ck_assert(stats.helped > 0);
    ck_assert_int_eq(stats.nstages, 2);
    ck_assert_str_eq(stats.stage[1].name, "transform");
    ck_assert_int_eq(stats.stage[1].threads, 1);
    ck_assert_int_ge(stats.stage[1].items, 200 * BATCH);
    stop();
}
END_TEST

/* Which is known once they sleep: no batch is free, and none is in work. */
START_TEST(a_device_out_of_batches_is_named)
{
    leat__batch *held[AHEAD + 1];
    leat__activity now;
    start(1, 2, false);
    take_without_giving(0, AHEAD + 1, held);
    do
        now = leat__prefetcher_activity(prefetcher);
    while (now.out_of_batches < 0);
    ck_assert_int_eq(now.workers, 2);
    ck_assert_int_eq(now.working + now.reading + now.copying, 0);
    ck_assert_int_eq(now.out_of_batches, 0);
    stop();
}
END_TEST

START_TEST(a_start_survives_every_failed_allocation)
{
    int status = LEAT_ENOMEM;
    for (int n = 0; status == LEAT_ENOMEM; n++) {
        status = try_start(DEVICES, 2, n % 2, n);
        ck_assert(status == LEAT_OK || status == LEAT_ENOMEM);
        stop();
    }
    ck_assert_int_eq(status, LEAT_OK);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("prefetcher");
    TCase *tcase = tcase_create("prefetcher");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, each_device_gets_its_batches_in_sequence);
    tcase_add_test(tcase, devices_may_have_callers_of_their_own);
    tcase_add_test(tcase, no_batch_comes_while_the_caller_holds_them_all);
    tcase_add_test(tcase,
                   batches_are_streamed_until_as_many_wait_as_fill_a_cache);
    tcase_add_test(tcase, batches_as_large_as_the_caches_are_not_streamed);
    tcase_add_test(tcase, a_device_that_takes_nothing_holds_the_others_up);
    tcase_add_test(tcase, after_the_end_what_is_ready_can_still_be_taken);
    tcase_add_loop_test(tcase, cancel_ends_every_wait, 0, 2);
    tcase_add_loop_test(tcase, it_is_destroyed_amid_its_work, 0, 2);
    tcase_add_test(tcase, a_caller_in_inline_mode_makes_chunks_itself);
    tcase_add_test(tcase, a_device_out_of_batches_is_named);
    tcase_add_test(tcase, a_start_survives_every_failed_allocation);
    return suite_run(suite);
}
