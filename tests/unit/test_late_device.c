/* The tests' own device does what the tests rely on. */
#include "support/late_device.h"
#include "support/suite.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BYTES ((size_t)100)

static leat_device *device;
static const leat_device_ops *ops;

static void set_up(void)
{
    late_device_register();
    ck_assert_int_eq(leat_device_find(&device, "late:0"), LEAT_OK);
    ops = device->ops;
}

/* A copy to the device on a stream of its own, and its two ends. */
typedef struct upload {
    leat_stream stream;
    void *host;
    void *memory;
} upload;

static upload begin_upload(int value)
{
    upload one;
    ck_assert_int_eq(ops->stream_create(device, &one.stream), LEAT_OK);
    ck_assert_int_eq(ops->host_alloc(device, BYTES, &one.host), LEAT_OK);
    ck_assert_int_eq(ops->alloc(device, BYTES, &one.memory), LEAT_OK);
    memset(one.host, value, BYTES);
    ck_assert_int_eq(ops->copy(device, one.memory, one.host, BYTES,
                               LEAT_COPY_TO_DEVICE, one.stream),
                     LEAT_OK);
    return one;
}

static void end_upload(upload *one)
{
    ops->stream_destroy(device, one->stream);
    ops->host_free(device, one->host, BYTES);
    ops->free(device, one->memory, BYTES);
}

static int delivered(const upload *one)
{
    unsigned char byte;
    late_device_peek(&byte, (char *)one->memory + BYTES - 1, 1);
    return byte;
}

START_TEST(late_copies_take_the_bytes_of_when_they_are_waited_for)
{
    upload one = begin_upload(1);
    ck_assert_int_eq(delivered(&one), 0);
    memset(one.host, 2, BYTES);
    ck_assert_int_eq(ops->stream_synchronize(device, one.stream), LEAT_OK);
    ck_assert_int_eq(delivered(&one), 2);
    end_upload(&one);
}
END_TEST

START_TEST(an_event_is_waited_for_no_further_than_its_record)
{
    upload one = begin_upload(1);
    leat_event event;
    ck_assert_int_eq(ops->event_create(device, &event), LEAT_OK);
    ck_assert_int_eq(ops->event_record(device, event, one.stream), LEAT_OK);
    ck_assert_int_eq(ops->copy(device, one.memory, one.host, 1,
                               LEAT_COPY_TO_DEVICE, one.stream),
                     LEAT_OK);
    ck_assert_int_eq(ops->event_synchronize(device, event), LEAT_OK);
    ck_assert_int_eq(delivered(&one), 1);
    late_device_counts counts = late_device_count(device);
    ops->event_destroy(device, event);
    end_upload(&one);
    ck_assert_int_eq(late_device_count(device).destroyed_busy,
                     counts.destroyed_busy + 1);
}
END_TEST

static void *synchronize(void *argument)
{
    upload *one = argument;
    ops->stream_synchronize(device, one->stream);
    return NULL;
}

START_TEST(a_held_stream_runs_when_it_is_let_go)
{
    upload one = begin_upload(1);
    if (_i == 0)
        late_device_hold(device, one.stream);
    else
        late_device_hold_all(device);
    pthread_t waiter;
    pthread_create(&waiter, NULL, synchronize, &one);
    late_device_await(device, one.stream, 1);
    ck_assert_int_eq(delivered(&one), 0);
    if (_i == 0)
        late_device_let_go(device, one.stream);
    else
        late_device_let_go_all(device);
    pthread_join(waiter, NULL);
    ck_assert_int_eq(delivered(&one), 1);
    end_upload(&one);
}
END_TEST

START_TEST(the_call_that_is_to_fail_fails_and_no_other)
{
    upload one = begin_upload(1);
    late_device_fail_at(1);
    ck_assert_int_eq(ops->stream_synchronize(device, one.stream), LEAT_OK);
    ck_assert_int_eq(late_device_has_failed(), 0);
    ck_assert_int_eq(ops->stream_synchronize(device, one.stream), LEAT_EDEVICE);
    ck_assert_int_eq(late_device_has_failed(), 1);
    ck_assert_int_eq(ops->stream_synchronize(device, one.stream), LEAT_OK);
    end_upload(&one);
}
END_TEST

START_TEST(a_broken_stream_breaks_those_that_wait_for_it)
{
    late_device_break_at(0);
    upload one = begin_upload(1);
    upload other = begin_upload(2);
    leat_event event;
    ck_assert_int_eq(ops->event_create(device, &event), LEAT_OK);
    ck_assert_int_eq(ops->event_record(device, event, one.stream), LEAT_OK);
    ck_assert_int_eq(ops->event_synchronize(device, event), LEAT_EDEVICE);
    ck_assert_int_eq(ops->stream_wait(device, other.stream, event), LEAT_OK);
    ck_assert_int_eq(ops->stream_synchronize(device, other.stream),
                     LEAT_EDEVICE);
    ck_assert_int_eq(delivered(&one), 0);
    ops->event_destroy(device, event);
    end_upload(&one);
    end_upload(&other);
}
END_TEST

START_TEST(copies_between_wrong_memories_are_refused)
{
    upload one = begin_upload(1);
    char stack[BYTES];
    ck_assert_int_eq(ops->copy(device, one.memory, stack, BYTES,
                               LEAT_COPY_TO_DEVICE, one.stream),
                     LEAT_EDEVICE);
    ck_assert_int_eq(ops->copy(device, one.host, one.memory, BYTES,
                               LEAT_COPY_TO_DEVICE, one.stream),
                     LEAT_EDEVICE);
    ck_assert_ptr_eq((void *)late_device_stream(device, 0), (void *)one.stream);
    ck_assert_uint_eq(late_device_stream(device, 1), 0);
    end_upload(&one);
}
END_TEST

START_TEST(counts_come_back_to_nothing_alive)
{
    upload one = begin_upload(1);
    late_device_set_capturing(device, one.stream, 1);
    ck_assert_int_eq(ops->stream_is_capturing(device, one.stream), 1);
    late_device_counts counts = late_device_count(device);
    ck_assert_int_eq(counts.live_bytes, BYTES);
    ck_assert_int_eq(counts.live_host_bytes, BYTES);
    ck_assert_int_eq(counts.streams, 1);
    ck_assert_int_eq(counts.copies[LEAT_COPY_TO_DEVICE], 1);
    ck_assert_int_eq(counts.bytes[LEAT_COPY_TO_DEVICE], BYTES);
    end_upload(&one);
    counts = late_device_count(device);
    ck_assert_int_eq(counts.live_bytes, 0);
    ck_assert_int_eq(counts.live_host_bytes, 0);
    ck_assert_int_eq(counts.streams, 0);
}
END_TEST

START_TEST(the_host_cannot_touch_a_late_address)
{
    upload one = begin_upload(1);
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    /* The kernel reads in our place, and reports what would be a signal. */
    ck_assert_int_eq(syscall(SYS_write, ends[1], one.memory, 1), -1);
    ck_assert_int_eq(errno, EFAULT);
    ck_assert_int_eq(syscall(SYS_write, ends[1], one.host, 1), 1);
    close(ends[0]);
    close(ends[1]);
    end_upload(&one);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("late_device");
    TCase *tcase = tcase_create("late_device");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_test(tcase,
                   late_copies_take_the_bytes_of_when_they_are_waited_for);
    tcase_add_test(tcase, an_event_is_waited_for_no_further_than_its_record);
    tcase_add_loop_test(tcase, a_held_stream_runs_when_it_is_let_go, 0, 2);
    tcase_add_test(tcase, the_call_that_is_to_fail_fails_and_no_other);
    tcase_add_test(tcase, a_broken_stream_breaks_those_that_wait_for_it);
    tcase_add_test(tcase, copies_between_wrong_memories_are_refused);
    tcase_add_test(tcase, counts_come_back_to_nothing_alive);
    tcase_add_test(tcase, the_host_cannot_touch_a_late_address);
    return suite_run(suite);
}
