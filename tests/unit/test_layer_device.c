/*
 * The hand-off to a device whose streams run as late as allowed: what is not
 * ordered by an event shows as wrong bytes.
 */
#include "base/thread.h"
#include "support/late_device.h"
#include "support/layer_fixture.h"
#include "support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 40

static leat_device *device;
static leat_pipeline *pipeline;
static leat_data_layer_options options;
static leat_stream stream[3];
static float *kept; /* pinned: what the consumer saw, step by step */

static void set_up(void)
{
    const leat_data_layer_options defaults = LEAT_DATA_LAYER_OPTIONS_INIT;
    options = defaults;
    options.batch_size = 4;
    options.device = "late:0";
    options.prefetch = 2;
    late_device_register();
    ck_assert_int_eq(leat_device_find(&device, "late:0"), LEAT_OK);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(device->ops->stream_create(device, &stream[i]), 0);
    void *memory;
    ck_assert_int_eq(device->ops->host_alloc(device, STEPS * 16, &memory), 0);
    kept = memory;
    pipeline = layer_fixture_pipeline();
}

static void tear_down(void)
{
    leat_pipeline_unref(pipeline);
    device->ops->host_free(device, kept, STEPS * 16);
    for (int i = 0; i < 3; i++)
        device->ops->stream_destroy(device, stream[i]);
    late_device_counts counts = late_device_count(device);
    ck_assert_int_eq(counts.live_bytes, 0);
    ck_assert_int_eq(counts.live_host_bytes, 0);
    ck_assert_int_eq(counts.events, 0);
    ck_assert_int_eq(counts.streams, 0);
}

/* The consumer's work of a step: it reads the labels, some time later. */
static void consume(layer_fixture *fixture, int step, leat_stream on)
{
    const void *labels = leat_blob_gpu_data(fixture->top[1]);
    ck_assert_ptr_nonnull(labels);
    ck_assert_int_eq(device->ops->copy(device, kept + step * 4, labels, 16,
                                       LEAT_COPY_TO_HOST, on),
                     LEAT_OK);
}

static void check_kept(void)
{
    for (int p = 0; p < STEPS * 4; p++)
        ck_assert_float_eq(kept[p], (float)(1000 + p % LAYER_FIXTURE_COUNT));
}

static void run_on(int streams)
{
    for (int prefetch = 1; prefetch < 4; prefetch++) {
        options.prefetch = prefetch;
        layer_fixture fixture = layer_fixture_open(pipeline, &options);
        memset(kept, 0, STEPS * 16);
        for (int i = 0; i < STEPS; i++) {
            leat_stream on = stream[i % streams];
            ck_assert_int_eq(
                leat_data_layer_forward(fixture.layer, fixture.top, 2, on),
                LEAT_OK);
            consume(&fixture, i, on);
        }
        for (int i = 0; i < streams; i++)
            device->ops->stream_synchronize(device, stream[i]);
        check_kept();
        layer_fixture_close(&fixture);
    }
}

START_TEST(a_batch_is_not_overwritten_while_the_stream_reads_it)
{
    run_on(1);
}
END_TEST

START_TEST(so_it_is_with_another_stream_at_every_forward)
{
    run_on(3);
}
END_TEST

START_TEST(copied_tops_are_ordered_the_same)
{
    options.top_mode = LEAT_TOP_COPY;
    run_on(1);
}
END_TEST

START_TEST(an_early_release_waits_for_all_streams_it_names)
{
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    for (int i = 0; i < STEPS; i++) {
        ck_assert_int_eq(
            leat_data_layer_forward(fixture.layer, fixture.top, 2, stream[0]),
            LEAT_OK);
        /* Stream 1 reads what stream 0 was given, after an event. */
        leat_event event;
        ck_assert_int_eq(device->ops->event_create(device, &event), LEAT_OK);
        device->ops->event_record(device, event, stream[0]);
        device->ops->stream_wait(device, stream[1], event);
        consume(&fixture, i, stream[1]);
        device->ops->event_destroy(device, event);
        ck_assert_int_eq(leat_data_layer_release(fixture.layer, stream, 2),
                         LEAT_OK);
    }
    device->ops->stream_synchronize(device, stream[1]);
    check_kept();
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(a_released_batch_is_given_out_on_neither_side)
{
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(
        leat_data_layer_forward(fixture.layer, fixture.top, 2, stream[0]),
        LEAT_OK);
    ck_assert_ptr_nonnull(leat_blob_gpu_data(fixture.top[0]));
    ck_assert_int_eq(leat_data_layer_release(fixture.layer, NULL, 0), LEAT_OK);
    ck_assert_ptr_null(leat_blob_gpu_data(fixture.top[0]));
    ck_assert_ptr_null(leat_blob_mutable_gpu_data(fixture.top[1]));
    ck_assert_ptr_null(leat_blob_cpu_data(fixture.top[0]));
    layer_fixture_close(&fixture);
}
END_TEST

static const leat_stage_stats *copy_stage(const leat_stats *stats)
{
    for (int i = 0; i < stats->nstages; i++)
        if (strcmp(stats->stage[i].name, "copy") == 0)
            return &stats->stage[i];
    ck_abort_msg("no stage copies");
    return NULL;
}

/* Where there are four cores. */
START_TEST(the_thread_that_uploads_is_counted)
{
    for (int cores = 3; cores <= 4; cores++) {
        leat_stats stats = {.size = sizeof(stats)};
        leat__thread_pretend_cores(cores);
        layer_fixture fixture = layer_fixture_open(pipeline, &options);
        ck_assert_int_eq(leat_data_layer_stats(fixture.layer, &stats), LEAT_OK);
        layer_fixture_close(&fixture);
        ck_assert_int_eq(copy_stage(&stats)->threads, cores == 4);
    }
    leat__thread_pretend_cores(0);
}
END_TEST

START_TEST(one_upload_a_batch_and_one_wait_and_record_a_forward)
{
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    for (int i = 0; i < STEPS; i++)
        ck_assert_int_eq(
            leat_data_layer_forward(fixture.layer, fixture.top, 2, stream[0]),
            LEAT_OK);
    leat_stats stats = {.size = sizeof(stats)};
    ck_assert_int_eq(leat_data_layer_stats(fixture.layer, &stats), LEAT_OK);
    leat_data_layer_destroy(fixture.layer);
    fixture.layer = NULL;
    late_device_counts counts = late_device_count(device);
    ck_assert_int_eq(counts.copies[LEAT_COPY_TO_HOST], 0);
    ck_assert_int_eq(counts.copies[LEAT_COPY_ON_DEVICE], 0);
    /* Batches delivered and those made ahead of them. */
    int64_t made = counts.copies[LEAT_COPY_TO_DEVICE];
    ck_assert_int_ge(made, STEPS);
    ck_assert_int_le(made, STEPS + options.prefetch + 1);
    /* `copied` and `ready` for each upload, `consumed` for each batch given
       back, and `room` for each upload after one of these. */
    int64_t slots = options.prefetch + 1;
    ck_assert_int_eq(counts.records, 2 * made + STEPS + made - slots);
    const leat_stage_stats *copies = copy_stage(&stats);
    ck_assert_int_ge(copies->items, STEPS);
    ck_assert_int_le(copies->items, made);
    ck_assert_int_eq(copies->bytes * made,
                     copies->items * counts.bytes[LEAT_COPY_TO_DEVICE]);
    ck_assert_int_gt(stats.memory.pinned, 0);
    ck_assert_int_eq(stats.memory.pinned, stats.memory.device);
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(a_host_consumer_reads_without_a_copy_back)
{
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    for (int i = 0; i < STEPS; i++) {
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        ck_assert_int_eq(leat_blob_head(fixture.top[0]), LEAT_SYNCED);
        ck_assert_float_eq(layer_fixture_label(&fixture, 3),
                           (float)(1000 + (4 * i + 3) % LAYER_FIXTURE_COUNT));
    }
    ck_assert_int_eq(late_device_count(device).copies[LEAT_COPY_TO_HOST], 0);
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(forward_never_waits_for_the_device)
{
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    late_device_hold(device, stream[0]);
    for (int i = 0; i < options.prefetch; i++) {
        ck_assert_int_eq(
            leat_data_layer_forward(fixture.layer, fixture.top, 2, stream[0]),
            LEAT_OK);
        consume(&fixture, i, stream[0]);
    }
    late_device_let_go(device, stream[0]);
    device->ops->stream_synchronize(device, stream[0]);
    for (int p = 0; p < 4 * options.prefetch; p++)
        ck_assert_float_eq(kept[p], (float)(1000 + p));
    layer_fixture_close(&fixture);
}
END_TEST

#define BIG 32768 /* bytes of an image: each is a run by itself */

static leat_pipeline *big_images(void)
{
    static unsigned char pixels[4][BIG];
    static int32_t labels[4];
    const leat_memory_field fields[] = {
        {"data", LEAT_UINT8, 3, {1, 128, 256}, pixels},
        {"label", LEAT_INT32, 0, {0}, labels},
    };
    leat_pipeline *images;
    ck_assert_int_eq(leat_pipeline_memory(&images, fields, 2, 4), LEAT_OK);
    return images;
}

/* What bounds a consumer whose every batch its stream computes for so long. */
static void judge(leat_stream on, double seconds,
                  char verdict[LEAT_VERDICT_MAX])
{
    leat_pipeline *images = big_images();
    leat_stats before = {.size = sizeof(before)};
    leat_stats after = {.size = sizeof(after)};
    options.workers = 3;
    layer_fixture fixture = layer_fixture_open(images, &options);
    for (int i = 0; i < STEPS; i++) {
        /* Until the slots have gone round there is room for all. */
        if (i == 8)
            leat_data_layer_stats(fixture.layer, &before);
        ck_assert_int_eq(
            leat_data_layer_forward(fixture.layer, fixture.top, 2, on),
            LEAT_OK);
        if (seconds > 0)
            ck_assert_int_eq(device->ops->occupy(device, seconds, on), LEAT_OK);
    }
    leat_data_layer_stats(fixture.layer, &after);
    ck_assert_int_eq(leat_stats_verdict(&after, &before, verdict), LEAT_OK);
    layer_fixture_close(&fixture);
    leat_pipeline_unref(images);
    late_device_take_time(device, 0);
}

/* Streams and the host, blobs that borrow and blobs that own, with and without
   help. */
START_TEST(slow_copies_are_what_bounds)
{
    char verdict[LEAT_VERDICT_MAX];
    options.top_mode = _i & 1 ? LEAT_TOP_COPY : LEAT_TOP_LEND;
    options.caller_helps =
        (_i & 2) != 0 ? LEAT_CALLER_HELPS_AUTO : LEAT_CALLER_HELPS_OFF;
    late_device_take_time(device, 20000000);
    judge(_i & 4 ? LEAT_HOST : stream[0], 0, verdict);
    ck_assert_msg(strstr(verdict, "bound by copy: ") == verdict &&
                      strstr(verdict, "; fewer bytes would help"),
                  "%s", verdict);
}
END_TEST

START_TEST(a_slow_stream_of_the_consumer_is_not_taken_for_copies)
{
    char verdict[LEAT_VERDICT_MAX];
    options.caller_helps = _i ? LEAT_CALLER_HELPS_AUTO : LEAT_CALLER_HELPS_OFF;
    late_device_take_time(device, 1);
    judge(stream[0], 0.02, verdict);
    ck_assert_msg(strstr(verdict, "bound by the consumer: ") == verdict &&
                      strstr(verdict, "; its streams give batches back late"),
                  "%s", verdict);
}
END_TEST

START_TEST(a_capturing_stream_is_refused)
{
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    late_device_set_capturing(device, stream[0], 1);
    ck_assert_int_eq(
        leat_data_layer_forward(fixture.layer, fixture.top, 2, stream[0]),
        LEAT_ESTATE);
    late_device_set_capturing(device, stream[0], 0);
    ck_assert_int_eq(
        leat_data_layer_forward(fixture.layer, fixture.top, 2, stream[0]),
        LEAT_OK);
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(a_top_on_another_device_is_refused)
{
    leat_data_layer *layer;
    leat_blob *top;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options), 0);
    ck_assert_int_eq(leat_blob_create(&top, NULL), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_setup(layer, &top, 1), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "late:0"));
    leat_data_layer_destroy(layer);
    leat_blob_destroy(top);
}
END_TEST

START_TEST(a_layer_is_destroyed_while_copies_are_under_way)
{
    for (int n = 0; n < 6; n++) {
        layer_fixture fixture = layer_fixture_open(pipeline, &options);
        for (int i = 0; i < n; i++)
            ck_assert_int_eq(leat_data_layer_forward(fixture.layer, fixture.top,
                                                     2, stream[i % 3]),
                             LEAT_OK);
        leat_data_layer_destroy(fixture.layer);
        fixture.layer = NULL;
        if (n > 0)
            ck_assert_float_eq(
                layer_fixture_label(&fixture, 0),
                (float)(1000 + 4 * (n - 1) % LAYER_FIXTURE_COUNT));
        layer_fixture_close(&fixture);
    }
    ck_assert_int_eq(late_device_count(device).destroyed_busy, 0);
}
END_TEST

START_TEST(a_stream_may_go_once_its_batch_is_given_back)
{
    leat_stream own;
    ck_assert_int_eq(device->ops->stream_create(device, &own), LEAT_OK);
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(
        leat_data_layer_forward(fixture.layer, fixture.top, 2, own), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_release(fixture.layer, NULL, 0), LEAT_OK);
    device->ops->stream_destroy(device, own);
    int64_t before = late_device_count(device).used_destroyed;
    layer_fixture_close(&fixture);
    ck_assert_int_eq(late_device_count(device).used_destroyed, before);
}
END_TEST

/* Setup and some forwards, with call number n of the device failing. */
static int run_with_fault(int n)
{
    leat_data_layer *layer;
    leat_blob *top[2];
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options), 0);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(leat_blob_create(&top[i], device), LEAT_OK);
    late_device_fail_at(n);
    int status = leat_data_layer_setup(layer, top, 2);
    for (int i = 0; i < 8 && status == LEAT_OK; i++)
        status = leat_data_layer_forward(layer, top, 2, stream[i % 2]);
    int failed = late_device_has_failed();
    late_device_fail_at(-1);
    ck_assert(status == LEAT_OK || status == LEAT_EDEVICE);
    if (status == LEAT_EDEVICE)
        ck_assert(failed);
    leat_data_layer_destroy(layer);
    leat_blob_destroy(top[0]);
    leat_blob_destroy(top[1]);
    return failed;
}

START_TEST(every_call_that_fails_ends_in_one_clean_error)
{
    int n = 0;
    while (run_with_fault(n))
        ck_assert_int_lt(n++, 1000);
    ck_assert_int_gt(n, 20);
}
END_TEST

START_TEST(restore_waits_for_what_a_stream_still_copies)
{
    leat_token token;
    leat_token_init(&token);
    options.top_mode = LEAT_TOP_COPY;
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(leat_data_layer_save(fixture.layer, &token), LEAT_OK);
    ck_assert_int_eq(
        leat_data_layer_forward(fixture.layer, fixture.top, 2, stream[0]),
        LEAT_OK);
    ck_assert_int_eq(leat_data_layer_restore(fixture.layer, &token), LEAT_OK);
    ck_assert_int_eq(device->ops->stream_synchronize(device, stream[0]),
                     LEAT_OK);
    ck_assert_float_eq(layer_fixture_label(&fixture, 3), 1003);
    layer_fixture_close(&fixture);
    leat_token_finish(&token);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layer_device");
    TCase *tcase = tcase_create("layer_device");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, a_batch_is_not_overwritten_while_the_stream_reads_it);
    tcase_add_test(tcase, so_it_is_with_another_stream_at_every_forward);
    tcase_add_test(tcase, copied_tops_are_ordered_the_same);
    tcase_add_test(tcase, an_early_release_waits_for_all_streams_it_names);
    tcase_add_test(tcase, a_released_batch_is_given_out_on_neither_side);
    tcase_add_test(tcase, the_thread_that_uploads_is_counted);
    tcase_add_test(tcase, one_upload_a_batch_and_one_wait_and_record_a_forward);
    tcase_add_test(tcase, a_host_consumer_reads_without_a_copy_back);
    tcase_add_test(tcase, forward_never_waits_for_the_device);
    tcase_add_loop_test(tcase, slow_copies_are_what_bounds, 0, 8);
    tcase_add_loop_test(
        tcase, a_slow_stream_of_the_consumer_is_not_taken_for_copies, 0, 2);
    tcase_add_test(tcase, a_capturing_stream_is_refused);
    tcase_add_test(tcase, a_top_on_another_device_is_refused);
    tcase_add_test(tcase, a_layer_is_destroyed_while_copies_are_under_way);
    tcase_add_test(tcase, a_stream_may_go_once_its_batch_is_given_back);
    tcase_add_test(tcase, every_call_that_fails_ends_in_one_clean_error);
    tcase_add_test(tcase, restore_waits_for_what_a_stream_still_copies);
    return suite_run(suite);
}
