/* What the uploader asks of a device, call by call, and what a failure leaves.
 */
#include "base/clock.h"
#include "base/counter.h"
#include "layer/device_copy.h"
#include "support/recording_device.h"
#include "support/suite.h"

#include <check.h>
#include <string.h>

enum { ROOM = 51, READY = 52, CONSUMED = 61, BYTES = 300, OFFSET = 100 };

static recording_device device;
static leat__device_copy uploader;
static leat__slab slab;
static leat__batch batch;
static unsigned char host[1000], memory[1000];

static void begin_uploader(void)
{
    static const leat__batch_shape plain;
    ck_assert_int_eq(
        leat__device_copy_init(&uploader, &device.base, NULL, &plain), LEAT_OK);
    recording_device_look(&device);
}

static void end_uploader(void)
{
    leat__device_copy_finish(&uploader);
    memset(&uploader, 0, sizeof(uploader));
}

/* A batch of BYTES in a slot that begins at OFFSET. */
static void set_up(void)
{
    recording_device_init(&device);
    memset(&uploader, 0, sizeof(uploader));
    memset(&batch, 0, sizeof(batch));
    memset(memory, 0, sizeof(memory));
    for (size_t i = 0; i < sizeof(host); i++)
        host[i] = (unsigned char)(i % 251 + 1);
    slab = (leat__slab){.device = &device.base, .host = host, .memory = memory};
    batch.slab = &slab;
    batch.offset = OFFSET;
    batch.shape.bytes = BYTES;
    batch.room = ROOM;
    batch.ready = READY;
    for (int i = 0; i < LEAT__STREAMS_MAX; i++)
        batch.consumed[i] = (leat_event)CONSUMED + (leat_event)i;
    begin_uploader();
}

static void tear_down(void)
{
    end_uploader();
}

#define assert_calls(expected)                                                 \
    ck_assert_str_eq(recording_device_look(&device), expected)

static void use_streams(int n)
{
    batch.nconsumed = batch.events = n;
}

START_TEST(an_upload_is_a_copy_and_a_mark)
{
    ck_assert_int_eq(leat__device_copy_upload(&uploader, &batch), LEAT_OK);
    assert_calls("copy 300 to the device on 1; record 52 on 1; ");
    ck_assert_int_eq(batch.has_room, 0);
    /* The slot and nothing beside it. */
    ck_assert_int_eq(memory[OFFSET - 1], 0);
    ck_assert_mem_eq(memory + OFFSET, host + OFFSET, BYTES);
    ck_assert_int_eq(memory[OFFSET + BYTES], 0);
    ck_assert_int_eq(uploader.batches, 1);
    ck_assert_int_eq(uploader.bytes, BYTES);
    ck_assert_int_eq(leat__device_copy_upload(&uploader, &batch), LEAT_OK);
    ck_assert_int_eq(uploader.batches, 2);
    ck_assert_int_eq(uploader.bytes, 2 * BYTES);
}
END_TEST

START_TEST(it_comes_behind_all_that_use_the_slot)
{
    use_streams(2);
    ck_assert_int_eq(leat__device_copy_upload(&uploader, &batch), LEAT_OK);
    assert_calls("1 waits for 61; 1 waits for 62; record 51 on 1; "
                 "copy 300 to the device on 1; record 52 on 1; ");
    ck_assert_int_eq(batch.has_room, 1);
    ck_assert_int_eq(batch.nconsumed, 0);
    /* Nobody uses it any more. */
    ck_assert_int_eq(leat__device_copy_upload(&uploader, &batch), LEAT_OK);
    assert_calls("copy 300 to the device on 1; record 52 on 1; ");
    ck_assert_int_eq(batch.has_room, 0);
}
END_TEST

/* The call that copies from it would keep the thread until they are through. */
START_TEST(pageable_memory_is_copied_when_the_slot_is_free)
{
    slab.is_pageable = 1;
    ck_assert_int_eq(leat__device_copy_upload(&uploader, &batch), LEAT_OK);
    assert_calls("copy 300 to the device on 1; record 52 on 1; ");
    use_streams(1);
    ck_assert_int_eq(leat__device_copy_upload(&uploader, &batch), LEAT_OK);
    assert_calls("1 waits for 61; record 51 on 1; sync 51; "
                 "copy 300 to the device on 1; record 52 on 1; ");
}
END_TEST

START_TEST(a_device_transforms_behind_the_copy)
{
    leat__slab top = {.memory = memory};
    batch.shape.is_cropped = 1;
    batch.top_slab = &top;
    batch.n = 7;
    uploader.kernel.device = &device.base;
    ck_assert_int_eq(leat__device_copy_upload(&uploader, &batch), LEAT_OK);
    assert_calls("copy 300 to the device on 1; transform 7 on 1; "
                 "record 52 on 1; ");
}
END_TEST

/*
 * Nothing comes behind a call that failed. Streams that were not waited for are
 * still to be.
 */
START_TEST(an_upload_ends_at_the_first_call_that_fails)
{
    static const struct {
        const char *calls;
        const char *line;
        int nconsumed;
        int has_room;
    } cases[] = {
        {"1 waits for 61; ", "stream_wait failed", 2, 0},
        {"1 waits for 61; 1 waits for 62; ", "stream_wait failed", 2, 0},
        {"1 waits for 61; 1 waits for 62; record 51 on 1; ",
         "event_record failed", 2, 0},
        {"1 waits for 61; 1 waits for 62; record 51 on 1; sync 51; ",
         "event_synchronize failed", 0, 1},
        {"1 waits for 61; 1 waits for 62; record 51 on 1; sync 51; "
         "copy 300 to the device on 1; ",
         "copy failed", 0, 1},
        {"1 waits for 61; 1 waits for 62; record 51 on 1; sync 51; "
         "copy 300 to the device on 1; transform 0 on 1; ",
         "transform failed", 0, 1},
        {"1 waits for 61; 1 waits for 62; record 51 on 1; sync 51; "
         "copy 300 to the device on 1; transform 0 on 1; record 52 on 1; ",
         "event_record failed", 0, 1},
    };
    leat__slab top = {.memory = memory};
    slab.is_pageable = 1;
    batch.shape.is_cropped = 1;
    batch.top_slab = &top;
    uploader.kernel.device = &device.base;
    for (int n = 0; n < (int)(sizeof(cases) / sizeof(cases[0])); n++) {
        use_streams(2);
        batch.has_room = 1;
        device.fail_at = n;
        ck_assert_int_eq(leat__device_copy_upload(&uploader, &batch),
                         LEAT_EDEVICE);
        ck_assert_str_eq(leat_last_error(), cases[n].line);
        assert_calls(cases[n].calls);
        ck_assert_int_eq(batch.nconsumed, cases[n].nconsumed);
        ck_assert_int_eq(batch.has_room, cases[n].has_room);
    }
}
END_TEST

START_TEST(a_copy_is_awaited_from_its_begin_to_its_end)
{
    ck_assert_int_eq(leat__device_copy_await(&uploader, &batch), LEAT_OK);
    assert_calls("sync 52; ");
    batch.has_room = 1;
    ck_assert_int_eq(leat__device_copy_await(&uploader, &batch), LEAT_OK);
    assert_calls("sync 51; sync 52; ");
    device.fail_at = 0;
    ck_assert_int_eq(leat__device_copy_await(&uploader, &batch), LEAT_EDEVICE);
    assert_calls("sync 51; ");
    device.fail_at = 1;
    ck_assert_int_eq(leat__device_copy_await(&uploader, &batch), LEAT_EDEVICE);
    assert_calls("sync 51; sync 52; ");
}
END_TEST

START_TEST(the_uploaders_own_stream_is_what_is_synchronized)
{
    ck_assert_int_eq(leat__device_copy_synchronize(&uploader), LEAT_OK);
    assert_calls("sync stream 1; ");
    device.fail_at = 0;
    ck_assert_int_eq(leat__device_copy_synchronize(&uploader), LEAT_EDEVICE);
}
END_TEST

START_TEST(each_stream_that_reads_gets_an_event_which_is_used_again)
{
    static const leat_stream streams[] = {7, LEAT_HOST, 8};
    ck_assert_int_eq(leat__device_copy_mark(&uploader, &batch, streams, 3),
                     LEAT_OK);
    assert_calls("create event; record 101 on 7; "
                 "create event; record 102 on 8; ");
    ck_assert_int_eq(batch.nconsumed, 2);
    ck_assert_int_eq(batch.events, 2);
    ck_assert_int_eq(leat__device_copy_mark(&uploader, &batch, streams, 1),
                     LEAT_OK);
    assert_calls("create event; record 103 on 7; ");
    ck_assert_int_eq(batch.nconsumed, 3);
    batch.nconsumed = 0;
    ck_assert_int_eq(leat__device_copy_mark(&uploader, &batch, streams, 3),
                     LEAT_OK);
    assert_calls("record 101 on 7; record 102 on 8; ");
    ck_assert_int_eq(batch.events, 3);
    ck_assert_int_eq(leat__device_copy_mark(&uploader, &batch, NULL, 0),
                     LEAT_OK);
    assert_calls("");
}
END_TEST

/* Its end cannot be marked, so it is waited for; the others are marked. */
START_TEST(a_stream_that_cannot_be_marked_is_waited_for)
{
    static const leat_stream streams[] = {7, 8};
    device.fail_at = 0;
    ck_assert_int_eq(leat__device_copy_mark(&uploader, &batch, streams, 2),
                     LEAT_EDEVICE);
    ck_assert_str_eq(leat_last_error(), "event_create failed");
    assert_calls("create event; sync stream 7; "
                 "create event; record 101 on 8; ");
    ck_assert_int_eq(batch.nconsumed, 1);
    ck_assert_int_eq(batch.events, 1);
    batch.nconsumed = 0;
    device.fail_at = 0;
    ck_assert_int_eq(leat__device_copy_mark(&uploader, &batch, streams, 1),
                     LEAT_EDEVICE);
    ck_assert_str_eq(leat_last_error(), "event_record failed");
    assert_calls("record 101 on 7; sync stream 7; ");
    ck_assert_int_eq(batch.nconsumed, 0);
    ck_assert_int_eq(batch.events, 1);
}
END_TEST

START_TEST(a_batch_knows_nine_streams_at_most)
{
    static const leat_stream streams[] = {7, 8};
    use_streams(LEAT__STREAMS_MAX - 1);
    device.events = 8;
    ck_assert_int_eq(leat__device_copy_mark(&uploader, &batch, streams, 2),
                     LEAT_EINVAL);
    ck_assert_str_eq(leat_last_error(), "more than 9 streams use a batch");
    assert_calls("create event; record 109 on 7; sync stream 8; ");
    ck_assert_int_eq(batch.nconsumed, LEAT__STREAMS_MAX);
    ck_assert_int_eq(batch.events, LEAT__STREAMS_MAX);
}
END_TEST

/* The first failure is told, though waiting for another stream failed too. */
START_TEST(the_first_of_several_failures_is_told)
{
    static const leat_stream streams[] = {7, 8, 9};
    use_streams(LEAT__STREAMS_MAX);
    device.fail_at = 0;
    ck_assert_int_eq(leat__device_copy_mark(&uploader, &batch, streams, 3),
                     LEAT_EINVAL);
    ck_assert_str_eq(leat_last_error(), "more than 9 streams use a batch");
    assert_calls("sync stream 7; sync stream 8; sync stream 9; ");
}
END_TEST

START_TEST(the_end_of_all_use_is_awaited)
{
    static leat__batch batches[2];
    memset(batches, 0, sizeof(batches));
    batches[0].nconsumed = 2;
    batches[0].consumed[0] = 61;
    batches[0].consumed[1] = 62;
    batches[1].nconsumed = 1;
    batches[1].consumed[0] = 71;
    leat__device_copy_wait(&uploader, batches, 2);
    assert_calls("sync stream 1; sync 61; sync 62; sync 71; ");
    leat__device_copy_wait(&uploader, batches, 1);
    assert_calls("sync stream 1; sync 61; sync 62; ");
    /* What fails hides nothing that may still be in use. */
    device.fail_at = 0;
    leat__device_copy_wait(&uploader, batches, 2);
    assert_calls("sync stream 1; sync 61; sync 62; sync 71; ");
}
END_TEST

START_TEST(a_device_in_host_memory_is_asked_for_nothing)
{
    static const leat_stream streams[] = {7};
    end_uploader();
    device.ops.unified = 1;
    begin_uploader();
    ck_assert_int_eq(uploader.has_stream, 0);
    use_streams(1);
    ck_assert_int_eq(leat__device_copy_upload(&uploader, &batch), LEAT_OK);
    ck_assert_int_eq(leat__device_copy_mark(&uploader, &batch, streams, 1),
                     LEAT_OK);
    leat__device_copy_wait(&uploader, &batch, 1);
    ck_assert_int_eq(uploader.batches, 0);
    ck_assert_int_eq(batch.nconsumed, 1);
    end_uploader();
    assert_calls("");
}
END_TEST

START_TEST(what_was_made_goes_when_a_call_of_the_beginning_fails)
{
    static const char *const calls[] = {
        "create stream; ",
        "create stream; alloc 4; destroy stream 1; ",
        "create stream; alloc 4; copy 4 to the device on 2; sync stream 2; "
        "free 4; destroy stream 2; ",
        "create stream; alloc 4; copy 4 to the device on 3; sync stream 3; "
        "free 4; destroy stream 3; ",
    };
    const float mean = 3;
    leat_transform_options options = LEAT_TRANSFORM_OPTIONS_INIT;
    options.mean_value = &mean;
    options.mean_values = 1;
    leat_transformer *transformer;
    ck_assert_int_eq(leat_transformer_create(&transformer, &options, LEAT_TRAIN,
                                             LEAT_FLOAT32, LEAT_NCHW),
                     LEAT_OK);
    const leat__batch_shape cropped = {.is_cropped = 1, .image = {3, 4, 5}};
    end_uploader();
    recording_device_look(&device);
    device.streams = 0;
    for (int n = 0; n < 4; n++) {
        device.fail_at = n;
        ck_assert_int_eq(leat__device_copy_init(&uploader, &device.base,
                                                transformer, &cropped),
                         LEAT_EDEVICE);
        end_uploader();
        assert_calls(calls[n]);
    }
    leat_transformer_destroy(transformer);
}
END_TEST

START_TEST(a_zeroed_uploader_has_nothing_to_let_go)
{
    leat__device_copy none;
    memset(&none, 0, sizeof(none));
    none.device = &device.base;
    leat__device_copy_wait(&none, &batch, 1);
    leat__device_copy_finish(&none);
    assert_calls("");
}
END_TEST

/* A millisecond of work, in place of a copy. */
static void work(void)
{
    int64_t end = leat__clock_now() + 1000000;
    while (leat__clock_now() < end)
        continue;
}

static double busy_seconds(void)
{
    return leat__counter_seconds(&uploader.busy);
}

START_TEST(the_time_of_copies_and_of_waiting_for_them_counts)
{
    int64_t begin = leat__clock_now();
    ck_assert_int_eq(leat__device_copy_upload(&uploader, &batch), LEAT_OK);
    ck_assert_double_lt(busy_seconds(),
                        1e-9 * (double)(leat__clock_now() - begin) + 1e-9);
    device.act = work;
    ck_assert_int_eq(leat__device_copy_upload(&uploader, &batch), LEAT_OK);
    ck_assert_double_ge(busy_seconds(), 1e-3);
    ck_assert_int_eq(leat__device_copy_await(&uploader, &batch), LEAT_OK);
    ck_assert_double_ge(busy_seconds(), 2e-3);
    ck_assert_int_eq(uploader.waiters, 0);
    /* Waiting for the slot to come free is no copying. */
    double before = busy_seconds();
    int64_t now = leat__clock_now();
    batch.has_room = 1;
    ck_assert_int_eq(leat__device_copy_await(&uploader, &batch), LEAT_OK);
    ck_assert_double_le(busy_seconds() - before,
                        1e-9 * (double)(leat__clock_now() - now) - 1e-3);
}
END_TEST

/* As if another thread waited while the call that copies lasts. */
static void wait_meanwhile(void)
{
    device.act = NULL;
    ck_assert_int_eq(uploader.waiters, 1);
    work();
    ck_assert_int_eq(leat__device_copy_await(&uploader, &batch), LEAT_OK);
    ck_assert_int_eq(uploader.waiters, 1);
    ck_assert_double_ge(busy_seconds(), 1e-3);
    work();
}

START_TEST(time_in_which_several_wait_counts_once)
{
    device.act = wait_meanwhile;
    int64_t begin = leat__clock_now();
    ck_assert_int_eq(leat__device_copy_upload(&uploader, &batch), LEAT_OK);
    ck_assert_double_ge(busy_seconds(), 2e-3);
    ck_assert_double_le(busy_seconds(),
                        1e-9 * (double)(leat__clock_now() - begin));
    ck_assert_int_eq(uploader.waiters, 0);
    /* What lies between two uploads counts for nothing. */
    double before = busy_seconds();
    work();
    begin = leat__clock_now();
    ck_assert_int_eq(leat__device_copy_synchronize(&uploader), LEAT_OK);
    ck_assert_double_le(busy_seconds() - before,
                        1e-9 * (double)(leat__clock_now() - begin));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("uploader");
    TCase *tcase = tcase_create("uploader");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, an_upload_is_a_copy_and_a_mark);
    tcase_add_test(tcase, it_comes_behind_all_that_use_the_slot);
    tcase_add_test(tcase, pageable_memory_is_copied_when_the_slot_is_free);
    tcase_add_test(tcase, a_device_transforms_behind_the_copy);
    tcase_add_test(tcase, an_upload_ends_at_the_first_call_that_fails);
    tcase_add_test(tcase, a_copy_is_awaited_from_its_begin_to_its_end);
    tcase_add_test(tcase, the_uploaders_own_stream_is_what_is_synchronized);
    tcase_add_test(tcase,
                   each_stream_that_reads_gets_an_event_which_is_used_again);
    tcase_add_test(tcase, a_stream_that_cannot_be_marked_is_waited_for);
    tcase_add_test(tcase, a_batch_knows_nine_streams_at_most);
    tcase_add_test(tcase, the_first_of_several_failures_is_told);
    tcase_add_test(tcase, the_end_of_all_use_is_awaited);
    tcase_add_test(tcase, a_device_in_host_memory_is_asked_for_nothing);
    tcase_add_test(tcase,
                   what_was_made_goes_when_a_call_of_the_beginning_fails);
    tcase_add_test(tcase, a_zeroed_uploader_has_nothing_to_let_go);
    tcase_add_test(tcase, the_time_of_copies_and_of_waiting_for_them_counts);
    tcase_add_test(tcase, time_in_which_several_wait_counts_once);
    return suite_run(suite);
}
