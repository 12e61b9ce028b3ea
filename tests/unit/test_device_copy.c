/* What a device copy asks of a device, call by call, and what a failure leaves.
 */
#include "base/clock.h"
#include "base/counter.h"
#include "support/device_copy_fixture.h"
#include "support/suite.h"

#include <leat/transform.h>
#include <stdlib.h>
#include <unistd.h>

START_TEST(
    the_host_side_is_free_after_the_copy_and_the_tops_after_the_transform)
{
    transform_batches();
    ck_assert_int_eq(upload(), LEAT_OK);
    (void)recording_device_look(&device);
    ck_assert_int_eq(leat__device_copy_await_host(&device_copy, &batch.upload),
                     0);
    assert_calls("sync 53; ");
    ck_assert_int_eq(leat__device_copy_await(&device_copy, &batch, LEAT_HOST),
                     0);
    assert_calls("sync 52; ");
    ck_assert_int_eq(leat__device_copy_await(&device_copy, &batch, 7), 0);
    assert_calls("7 waits for 52; ");
    ck_assert_int_eq(upload(), LEAT_OK);
    (void)recording_device_look(&device);
    device.fail_at = 0;
    ck_assert_int_eq(leat__device_copy_await(&device_copy, &batch, LEAT_HOST),
                     LEAT_EDEVICE);
    assert_calls("sync 53; ");
    device.fail_at = 1;
    ck_assert_int_eq(leat__device_copy_await(&device_copy, &batch, LEAT_HOST),
                     LEAT_EDEVICE);
    assert_calls("sync 53; sync 52; ");
    ck_assert_int_eq(leat__device_copy_await(&device_copy, &batch, LEAT_HOST),
                     0);
    assert_calls("sync 52; ");
    ck_assert_int_eq(device_copy.waiters, 0);
    /* A batch without rows has no transform. */
    batch.n = 0;
    ck_assert_int_eq(upload(), LEAT_OK);
    assert_calls("record 53 on 1; record 52 on 1; ");
    ck_assert_int_eq(leat__device_copy_await(&device_copy, &batch, LEAT_HOST),
                     0);
    assert_calls("sync 53; ");
}
END_TEST

static int await_host(void)
{
    (void)recording_device_look(&device);
    return leat__device_copy_await_host(&device_copy, &batch.upload);
}

START_TEST(a_copy_is_awaited_from_its_begin_to_its_end)
{
    ck_assert_int_eq(await_host(), LEAT_OK);
    assert_calls("");
    ck_assert_int_eq(upload(), LEAT_OK);
    ck_assert_int_eq(await_host(), LEAT_OK);
    assert_calls("sync 53; ");
    use_streams(1);
    ck_assert_int_eq(upload(), LEAT_OK);
    device.fail_at = 0;
    ck_assert_int_eq(await_host(), LEAT_EDEVICE);
    assert_calls("sync 51; ");
    device.fail_at = 1;
    ck_assert_int_eq(await_host(), LEAT_EDEVICE);
    assert_calls("sync 51; sync 53; ");
    ck_assert_int_eq(await_host(), LEAT_OK);
    assert_calls("sync 51; sync 53; ");
    /* Now it is known. */
    ck_assert_int_eq(await_host(), LEAT_OK);
    assert_calls("");
}
END_TEST

START_TEST(the_device_copys_own_stream_is_what_is_synchronized)
{
    ck_assert_int_eq(leat__device_copy_synchronize(&device_copy), LEAT_OK);
    assert_calls("sync stream 1; ");
    device.fail_at = 0;
    ck_assert_int_eq(leat__device_copy_synchronize(&device_copy), LEAT_EDEVICE);
}
END_TEST

START_TEST(each_stream_that_reads_gets_an_event_which_is_used_again)
{
    static const leat_stream streams[] = {7, LEAT_HOST, 8};
    ck_assert_int_eq(leat__device_copy_mark(&device_copy, &batch, streams, 3),
                     LEAT_OK);
    assert_calls("create event; record 101 on 7; "
                 "create event; record 102 on 8; ");
    ck_assert_int_eq(batch.nconsumed, 2);
    ck_assert_int_eq(batch.events, 2);
    ck_assert_int_eq(leat__device_copy_mark(&device_copy, &batch, streams, 1),
                     LEAT_OK);
    assert_calls("create event; record 103 on 7; ");
    ck_assert_int_eq(batch.nconsumed, 3);
    batch.nconsumed = 0;
    ck_assert_int_eq(leat__device_copy_mark(&device_copy, &batch, streams, 3),
                     LEAT_OK);
    assert_calls("record 101 on 7; record 102 on 8; ");
    ck_assert_int_eq(batch.events, 3);
    ck_assert_int_eq(leat__device_copy_mark(&device_copy, &batch, NULL, 0),
                     LEAT_OK);
    assert_calls("");
}
END_TEST

/* Its end cannot be marked, so it is waited for; the others are marked. */
START_TEST(a_stream_that_cannot_be_marked_is_waited_for)
{
    static const leat_stream streams[] = {7, 8};
    device.fail_at = 0;
    ck_assert_int_eq(leat__device_copy_mark(&device_copy, &batch, streams, 2),
                     LEAT_EDEVICE);
    ck_assert_str_eq(leat_last_error(), "event_create failed");
    assert_calls("create event; sync stream 7; "
                 "create event; record 101 on 8; ");
    ck_assert_int_eq(batch.nconsumed, 1);
    ck_assert_int_eq(batch.events, 1);
    batch.nconsumed = 0;
    device.fail_at = 0;
    ck_assert_int_eq(leat__device_copy_mark(&device_copy, &batch, streams, 1),
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
    ck_assert_int_eq(leat__device_copy_mark(&device_copy, &batch, streams, 2),
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
    ck_assert_int_eq(leat__device_copy_mark(&device_copy, &batch, streams, 3),
                     LEAT_EINVAL);
    ck_assert_str_eq(leat_last_error(), "more than 9 streams use a batch");
    assert_calls("sync stream 7; sync stream 7; sync stream 8; "
                 "sync stream 9; ");
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
    leat__device_copy_wait(&device_copy, batches, 2);
    assert_calls("sync stream 1; sync 61; sync 62; sync 71; ");
    leat__device_copy_wait(&device_copy, batches, 1);
    assert_calls("sync stream 1; sync 61; sync 62; ");
    /* What fails hides nothing that may still be in use, and is tried again. */
    device.fail_at = 0;
    leat__device_copy_wait(&device_copy, batches, 2);
    assert_calls("sync stream 1; sync stream 1; sync 61; sync 62; sync 71; ");
    device.fail_at = 2;
    leat__device_copy_wait(&device_copy, batches, 2);
    assert_calls("sync stream 1; sync 61; sync 62; sync 62; sync 71; ");
    device_copy.transforms = TRANSFORMS;
    device_copy.has_transforms = 1;
    leat__device_copy_wait(&device_copy, batches, 1);
    assert_calls("sync stream 1; sync stream 5; sync 61; sync 62; ");
    device_copy.has_transforms = 0;
}
END_TEST

START_TEST(a_device_in_host_memory_is_asked_for_nothing)
{
    static const leat_stream streams[] = {7};
    end_device_copy();
    device.ops.unified = 1;
    begin_device_copy();
    ck_assert_int_eq(device_copy.has_copies, 0);
    use_streams(1);
    ck_assert_int_eq(upload(), LEAT_OK);
    ck_assert_int_eq(leat__device_copy_mark(&device_copy, &batch, streams, 1),
                     LEAT_OK);
    leat__device_copy_wait(&device_copy, &batch, 1);
    ck_assert_int_eq(device_copy.batches, 0);
    ck_assert_int_eq(batch.nconsumed, 1);
    end_device_copy();
    assert_calls("");
}
END_TEST

START_TEST(what_was_made_goes_when_a_call_of_the_beginning_fails)
{
    static const char *const calls[] = {
        "create stream; ",
        "create stream; create stream of high priority; destroy stream 1; ",
        "create stream; create stream of high priority; alloc 4; "
        "destroy stream 3; destroy stream 2; ",
        "create stream; create stream of high priority; alloc 4; "
        "copy 4 to the device on 4; sync stream 4; "
        "free 4; destroy stream 5; destroy stream 4; ",
        "create stream; create stream of high priority; alloc 4; "
        "copy 4 to the device on 6; sync stream 6; sync stream 6; "
        "free 4; destroy stream 7; destroy stream 6; ",
    };
    const float mean = 3;
    leat_transform_options options = LEAT_TRANSFORM_OPTIONS_INIT;
    options.mean_value = &mean;
    options.mean_values = 1;
    leat_transformer *transformer;
    ck_assert_int_eq(leat_transformer_create(&transformer, &options, LEAT_TRAIN,
                                             LEAT_FLOAT32, LEAT_NCHW),
                     LEAT_OK);
    const leat__batch_shape cropped = {.is_cropped = 1,
                                       .top = {{.image = {3, 4, 5}}}};
    end_device_copy();
    recording_device_look(&device);
    device.streams = 0;
    for (int n = 0; n < 5; n++) {
        device.fail_at = n;
        ck_assert_int_eq(leat__device_copy_init(&device_copy, &device.base,
                                                transformer, &cropped),
                         LEAT_EDEVICE);
        end_device_copy();
        assert_calls(calls[n]);
    }
    leat_transformer_destroy(transformer);
}
END_TEST

START_TEST(a_zeroed_device_copy_has_nothing_to_let_go)
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
    return leat__counter_seconds(&device_copy.busy);
}

START_TEST(the_time_of_copies_and_of_waiting_for_them_counts)
{
    int64_t begin = leat__clock_now();
    ck_assert_int_eq(upload(), LEAT_OK);
    ck_assert_double_lt(busy_seconds(),
                        1e-9 * (double)(leat__clock_now() - begin) + 1e-9);
    device.act = work;
    ck_assert_int_eq(upload(), LEAT_OK);
    ck_assert_double_ge(busy_seconds(), 1e-3);
    ck_assert_int_eq(leat__device_copy_await_host(&device_copy, &batch.upload),
                     LEAT_OK);
    ck_assert_double_ge(busy_seconds(), 2e-3);
    ck_assert_int_eq(device_copy.waiters, 0);
    /* Waiting for the slot to come free is no copying. */
    use_streams(1);
    ck_assert_int_eq(upload(), LEAT_OK);
    double before = busy_seconds();
    int64_t now = leat__clock_now();
    ck_assert_int_eq(leat__device_copy_await_host(&device_copy, &batch.upload),
                     LEAT_OK);
    ck_assert_double_le(busy_seconds() - before,
                        1e-9 * (double)(leat__clock_now() - now) - 1e-3);
}
END_TEST

/* As if another thread waited while the call that copies lasts. */
static void wait_meanwhile(void)
{
    device.act = NULL;
    ck_assert_int_eq(device_copy.waiters, 1);
    work();
    batch.upload = (leat__upload){.number = 1, .over = COPIED};
    ck_assert_int_eq(leat__device_copy_await_host(&device_copy, &batch.upload),
                     LEAT_OK);
    ck_assert_int_eq(device_copy.waiters, 1);
    ck_assert_double_ge(busy_seconds(), 1e-3);
    work();
}

START_TEST(time_in_which_several_wait_counts_once)
{
    device.act = wait_meanwhile;
    int64_t begin = leat__clock_now();
    ck_assert_int_eq(upload(), LEAT_OK);
    ck_assert_double_ge(busy_seconds(), 2e-3);
    ck_assert_double_le(busy_seconds(),
                        1e-9 * (double)(leat__clock_now() - begin));
    ck_assert_int_eq(device_copy.waiters, 0);
    /* What lies between two uploads counts for nothing. */
    double before = busy_seconds();
    work();
    begin = leat__clock_now();
    ck_assert_int_eq(leat__device_copy_synchronize(&device_copy), LEAT_OK);
    ck_assert_double_le(busy_seconds() - before,
                        1e-9 * (double)(leat__clock_now() - begin));
}
END_TEST

static leat_transform_options transform;
static const float mean_values[2] = {1, 2};

/* A device copy that transforms images of 2 x 3 x 4, its top in `memory`. */
static int begin_transform(void)
{
    const leat__batch_shape cropped = {.is_cropped = 1,
                                       .top = {{.image = {2, 3, 4}}}};
    leat_transformer *transformer;
    ck_assert_int_eq(leat_transformer_create(&transformer, &transform,
                                             LEAT_TRAIN, LEAT_FLOAT16,
                                             LEAT_NHWC),
                     LEAT_OK);
    end_device_copy();
    device.streams = 0;
    recording_device_look(&device);
    int status = leat__device_copy_init(&device_copy, &device.base, transformer,
                                        &cropped);
    leat_transformer_destroy(transformer);
    return status;
}

START_TEST(without_a_mean_nothing_is_uploaded)
{
    transform = (leat_transform_options)LEAT_TRANSFORM_OPTIONS_INIT;
    ck_assert_int_eq(begin_transform(), LEAT_OK);
    assert_calls("create stream; create stream of high priority; ");
    ck_assert_ptr_null(device_copy.transform.mean);
    ck_assert_ptr_null(device_copy.transform.mean_value);
}
END_TEST

START_TEST(mean_values_are_uploaded)
{
    transform = (leat_transform_options)LEAT_TRANSFORM_OPTIONS_INIT;
    transform.mean_value = mean_values;
    transform.mean_values = 2;
    ck_assert_int_eq(begin_transform(), LEAT_OK);
    assert_calls("create stream; create stream of high priority; alloc 8; "
                 "copy 8 to the device on 1; sync stream 1; ");
    ck_assert_mem_eq(device_copy.transform.mean_value, mean_values, 8);
    ck_assert_int_eq(device_copy.transform.mean_values, 2);
    ck_assert_ptr_null(device_copy.transform.mean);
    end_device_copy();
    assert_calls("free 8; destroy stream 2; destroy stream 1; ");
}
END_TEST

START_TEST(a_mean_image_is_uploaded_whole)
{
    static const float mean[2 * 3 * 4] = {1, 2, 3, 4, [23] = 24};
    char path[] = "mean.binaryproto.XXXXXX";
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    close(file);
    ck_assert_int_eq(leat_mean_save(path, 2, 3, 4, mean), LEAT_OK);
    transform = (leat_transform_options)LEAT_TRANSFORM_OPTIONS_INIT;
    transform.mean_file = path;
    ck_assert_int_eq(begin_transform(), LEAT_OK);
    unlink(path);
    assert_calls("create stream; create stream of high priority; alloc 96; "
                 "copy 96 to the device on 1; sync stream 1; ");
    ck_assert_mem_eq(device_copy.transform.mean, mean, sizeof(mean));
    ck_assert_ptr_null(device_copy.transform.mean_value);
    ck_assert_int_eq(device_copy.transform.mean_height, 3);
    ck_assert_int_eq(device_copy.transform.mean_width, 4);
}
END_TEST

START_TEST(a_device_without_priorities_gives_another_stream)
{
    transform = (leat_transform_options)LEAT_TRANSFORM_OPTIONS_INIT;
    device.ops.stream_create_high_priority = NULL;
    ck_assert_int_eq(begin_transform(), LEAT_OK);
    assert_calls("create stream; create stream; ");
    ck_assert_int_eq((int)device_copy.transforms, 2);
}
END_TEST

START_TEST(a_device_without_a_transform_is_refused)
{
    transform = (leat_transform_options)LEAT_TRANSFORM_OPTIONS_INIT;
    device.ops.transform = NULL;
    ck_assert_int_eq(begin_transform(), LEAT_EUNSUPPORTED);
    ck_assert_str_eq(leat_last_error(),
                     "recording has no transform of its own: transform_on must "
                     "be CPU");
}
END_TEST

START_TEST(a_batch_is_described_by_its_shape_and_its_memory)
{
    static unsigned char top_memory[512];
    leat__slab top = {.device_memory = top_memory};
    transform = (leat_transform_options)LEAT_TRANSFORM_OPTIONS_INIT;
    transform.mean_value = mean_values;
    transform.mean_values = 1;
    transform.scale = 0.5f;
    ck_assert_int_eq(begin_transform(), LEAT_OK);
    batch.top_slab = &top;
    batch.top_offset = 32;
    batch.n = 5;
    batch.shape =
        (leat__batch_shape){.ntop = 1,
                            .top = {{.offset = 16, .image = {2, 3, 4}}},
                            .bytes = BYTES,
                            .is_cropped = 1,
                            .pixel_layout = LEAT_NHWC,
                            .choices = 256};
    ck_assert_int_eq(upload(), LEAT_OK);
    const leat_device_transform *what = &device.what;
    ck_assert_ptr_eq(what->pixels, memory + OFFSET + 16);
    ck_assert_ptr_eq((const void *)what->choices, memory + OFFSET + 256);
    ck_assert_ptr_eq(what->top, top_memory + 32);
    ck_assert_ptr_eq(what->mean_value, device_copy.means);
    ck_assert_int_eq(what->mean_values, 1);
    ck_assert_float_eq(what->scale, 0.5f);
    ck_assert_int_eq(what->top_type, LEAT_FLOAT16);
    ck_assert_int_eq(what->pixel_layout, LEAT_NHWC);
    ck_assert_int_eq(what->layout, LEAT_NHWC);
    ck_assert_int_eq(what->images, 5);
    ck_assert_int_eq(what->channels, 2);
    ck_assert_int_eq(what->height, 3);
    ck_assert_int_eq(what->width, 4);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("device_copy");
    TCase *tcase = tcase_create("device_copy");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(
        tcase,
        the_host_side_is_free_after_the_copy_and_the_tops_after_the_transform);
    tcase_add_test(tcase, a_copy_is_awaited_from_its_begin_to_its_end);
    tcase_add_test(tcase, the_device_copys_own_stream_is_what_is_synchronized);
    tcase_add_test(tcase,
                   each_stream_that_reads_gets_an_event_which_is_used_again);
    tcase_add_test(tcase, a_stream_that_cannot_be_marked_is_waited_for);
    tcase_add_test(tcase, a_batch_knows_nine_streams_at_most);
    tcase_add_test(tcase, the_first_of_several_failures_is_told);
    tcase_add_test(tcase, the_end_of_all_use_is_awaited);
    tcase_add_test(tcase, a_device_in_host_memory_is_asked_for_nothing);
    tcase_add_test(tcase,
                   what_was_made_goes_when_a_call_of_the_beginning_fails);
    tcase_add_test(tcase, a_zeroed_device_copy_has_nothing_to_let_go);
    tcase_add_test(tcase, the_time_of_copies_and_of_waiting_for_them_counts);
    tcase_add_test(tcase, time_in_which_several_wait_counts_once);
    tcase_add_test(tcase, without_a_mean_nothing_is_uploaded);
    tcase_add_test(tcase, mean_values_are_uploaded);
    tcase_add_test(tcase, a_mean_image_is_uploaded_whole);
    tcase_add_test(tcase, a_device_without_priorities_gives_another_stream);
    tcase_add_test(tcase, a_device_without_a_transform_is_refused);
    tcase_add_test(tcase, a_batch_is_described_by_its_shape_and_its_memory);
    return suite_run(suite);
}
