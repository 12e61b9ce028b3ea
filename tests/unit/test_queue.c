/*
 * Order, deadlines and close of a queue; and the threads that it wakes, by how
 * many system calls: no schedule of those is left to chance
 * (support/condition_spy.h), and a wake-up that is lost ends by the watchdog.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "base/queue.h"
#include "base/thread.h"
#include "support/condition_spy.h"
#include "support/suite.h"
#include "support/watchdog.h"

#include <check.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 32

static void *number(int i)
{
    return (void *)((uintptr_t)i + 1);
}

static leat__queue *queue_new(int capacity)
{
    leat__queue *queue;
    ck_assert_int_eq(leat__queue_create(&queue, capacity), LEAT_OK);
    return queue;
}

static void run_all(leat__thread threads[], int n, void *(*body)(void *),
                    void *arguments, size_t size)
{
    for (int i = 0; i < n; i++) {
        threads[i].running = 0;
        ck_assert_int_eq(
            leat__thread_start(&threads[i], "test", body,
                               (char *)arguments + (size_t)i * size),
            LEAT_OK);
    }
}

static void join_all(leat__thread threads[], int n)
{
    for (int i = 0; i < n; i++)
        leat__thread_join(&threads[i]);
}

START_TEST(a_queue_without_room_is_refused)
{
    leat__queue *queue = NULL;
    ck_assert_int_eq(leat__queue_create(&queue, 0), LEAT_EINVAL);
    ck_assert_int_eq(leat__queue_create(&queue, -1), LEAT_EINVAL);
    ck_assert_ptr_null(queue);
    leat__queue_destroy(NULL);
}
END_TEST

START_TEST(making_one_survives_failing_allocations)
{
    leat__queue *queue = NULL;
    leat__alloc_fail_at(0);
    ck_assert_int_eq(leat__queue_create(&queue, 3), LEAT_ENOMEM);
    ck_assert_ptr_null(queue);
}
END_TEST

START_TEST(items_come_out_in_the_order_they_went_in)
{
    leat__queue *queue = queue_new(3);
    void *item;
    int in = 0;
    int out = 0;
    /* Two in, one out, until it is full: the ring turns over. */
    for (int turn = 0; turn < 20; turn++) {
        while (in - out < 3)
            ck_assert_int_eq(leat__queue_push(queue, number(in++)), LEAT_OK);
        for (int i = 0; i <= turn % 3; i++) {
            ck_assert_int_eq(leat__queue_pop(queue, &item, 0), LEAT_OK);
            ck_assert_ptr_eq(item, number(out++));
        }
    }
    leat__queue_destroy(queue);
}
END_TEST

START_TEST(an_empty_queue_returns_again_at_the_deadline)
{
    leat__queue *queue = queue_new(1);
    void *item = number(7);
    ck_assert_int_eq(leat__queue_pop(queue, &item, 0), LEAT_AGAIN);
    int64_t deadline = leat__clock_now() + 3000000;
    ck_assert_int_eq(leat__queue_pop(queue, &item, deadline), LEAT_AGAIN);
    ck_assert_int_ge(leat__clock_now(), deadline);
    /* One that has passed is not waited for. */
    ck_assert_int_eq(leat__queue_pop(queue, &item, 1), LEAT_AGAIN);
    ck_assert_ptr_eq(item, number(7));
    leat__queue_destroy(queue);
}
END_TEST

START_TEST(a_closed_queue_refuses_and_drains)
{
    leat__queue *queue = queue_new(4);
    void *item;
    leat__queue_push(queue, number(0));
    leat__queue_push(queue, number(1));
    leat__queue_close(queue);
    leat__queue_close(queue);
    ck_assert_int_eq(leat__queue_push(queue, number(2)), LEAT_ECANCELLED);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(leat__queue_pop(queue, &item, LEAT__FOREVER), LEAT_OK);
        ck_assert_ptr_eq(item, number(i));
    }
    ck_assert_int_eq(leat__queue_pop(queue, &item, LEAT__FOREVER),
                     LEAT_ECANCELLED);
    ck_assert_int_eq(leat__queue_pop(queue, &item, 0), LEAT_ECANCELLED);
    leat__queue_destroy(queue);
}
END_TEST

/* One end of a queue in a thread of its own. */
typedef struct end {
    leat__queue *queue;
    int first; /* of the numbers to send */
    int n;
    int status; /* what ended it */
    int done;   /* sent or received */
    atomic_char *seen;
} end;

static void *send(void *argument)
{
    end *self = argument;
    while (self->done < self->n &&
           (self->status = leat__queue_push(
                self->queue, number(self->first + self->done))) == LEAT_OK)
        self->done++;
    return NULL;
}

static void *receive(void *argument)
{
    end *self = argument;
    void *item;
    while ((self->status = leat__queue_pop(self->queue, &item,
                                           LEAT__FOREVER)) == LEAT_OK) {
        if (self->seen)
            atomic_fetch_add(&self->seen[(uintptr_t)item - 1], 1);
        self->done++;
    }
    return NULL;
}

START_TEST(close_wakes_a_sender_that_found_no_room)
{
    leat__queue *queue = queue_new(2);
    end sender = {.queue = queue, .n = 5};
    leat__thread thread[1];
    run_all(thread, 1, send, &sender, sizeof(sender));
    /* Its third push finds the queue full, waiting or about to. */
    leat__queue_close(queue);
    join_all(thread, 1);
    ck_assert_int_eq(sender.status, LEAT_ECANCELLED);
    end rest = {.queue = queue};
    receive(&rest);
    ck_assert_int_eq(rest.done, sender.done);
    ck_assert_int_le(rest.done, 2);
    leat__queue_destroy(queue);
}
END_TEST

START_TEST(close_wakes_everybody_who_waits_for_an_item)
{
    leat__queue *queue = queue_new(2);
    end ends[6];
    leat__thread threads[6];
    for (int i = 0; i < 6; i++)
        ends[i] = (end){.queue = queue};
    run_all(threads, 6, receive, ends, sizeof(ends[0]));
    leat__queue_close(queue);
    join_all(threads, 6);
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(ends[i].status, LEAT_ECANCELLED);
    leat__queue_destroy(queue);
}
END_TEST

START_TEST(nothing_is_lost_or_doubled_among_many_threads)
{
    static const int counts[][5] = {
        {2000, 3000, 4000}, {9000}, {0, 7000, 1500, 600}};
    static const int senders[] = {3, 1, 4};
    static const int receivers[] = {2, 7, 30};
    static atomic_char seen[10000];
    leat__thread sending[4];
    leat__thread receiving[THREADS_MAX];
    end to[4];
    end from[THREADS_MAX];
    leat__queue *queue = queue_new(1 + _i * 4);
    int total = 0;
    int received = 0;
    for (int i = 0; i < senders[_i]; i++) {
        to[i] = (end){.queue = queue, .first = total, .n = counts[_i][i]};
        total += counts[_i][i];
    }
    for (int i = 0; i < receivers[_i]; i++)
        from[i] = (end){.queue = queue, .seen = seen};
    run_all(receiving, receivers[_i], receive, from, sizeof(from[0]));
    run_all(sending, senders[_i], send, to, sizeof(to[0]));
    join_all(sending, senders[_i]);
    leat__queue_close(queue);
    join_all(receiving, receivers[_i]);
    for (int i = 0; i < receivers[_i]; i++)
        received += from[i].done;
    ck_assert_int_eq(received, total);
    for (int i = 0; i < total; i++)
        ck_assert_int_eq(seen[i], 1);
    leat__queue_destroy(queue);
}
END_TEST

enum { SECONDS = 30, CAPACITY = 4, WAITERS = 3 };

typedef struct waiter {
    leat__queue *queue;
    bool pushes; /* else it pops */
    int status;
    leat__thread thread;
} waiter;

static leat__queue *watched;
static waiter waiting[WAITERS];
static int item;

static void set_up(void)
{
    watchdog_start(SECONDS);
    ck_assert_int_eq(leat__queue_create(&watched, CAPACITY), LEAT_OK);
    memset(waiting, 0, sizeof(waiting));
    condition_spy_reset();
}

static void tear_down(void)
{
    leat__queue_destroy(watched);
    watchdog_stop();
}

static void *wait_once(void *argument)
{
    waiter *self = argument;
    void *got;
    self->status = self->pushes
                       ? leat__queue_push(self->queue, &item)
                       : leat__queue_pop(self->queue, &got, LEAT__FOREVER);
    return NULL;
}

/* Returns when thread `i` sleeps; whoever gets the lock now finds it asleep. */
static void put_to_sleep(int i, bool pushes)
{
    int before = condition_spy_waits();
    waiting[i] = (waiter){.queue = watched, .pushes = pushes, .status = -1};
    ck_assert_int_eq(leat__thread_start(&waiting[i].thread, "waiter", wait_once,
                                        &waiting[i]),
                     LEAT_OK);
    condition_spy_await(before + 1);
}

static void join(int n, int status)
{
    for (int i = 0; i < n; i++) {
        leat__thread_join(&waiting[i].thread);
        ck_assert_int_eq(waiting[i].status, status);
    }
}

static void push_now(int n)
{
    for (int i = 0; i < n; i++)
        ck_assert_int_eq(leat__queue_push(watched, &item), LEAT_OK);
}

static void pop_now(int n)
{
    void *got;
    for (int i = 0; i < n; i++)
        ck_assert_int_eq(leat__queue_pop(watched, &got, 0), LEAT_OK);
}

START_TEST(while_nobody_waits_nobody_is_woken)
{
    push_now(CAPACITY);
    pop_now(CAPACITY);
    ck_assert_int_eq(condition_spy_signals, 0);
    ck_assert_int_eq(condition_spy_broadcasts, 0);
}
END_TEST

START_TEST(a_push_wakes_one_that_waits_for_an_item)
{
    for (int i = 0; i < WAITERS; i++)
        put_to_sleep(i, false);
    for (int i = 0; i < WAITERS; i++) {
        push_now(1);
        ck_assert_int_eq(condition_spy_signals, i + 1);
    }
    join(WAITERS, LEAT_OK);
    ck_assert_int_eq(condition_spy_broadcasts, 0);
}
END_TEST

START_TEST(a_pop_wakes_one_that_waits_for_room)
{
    push_now(CAPACITY);
    put_to_sleep(0, true);
    condition_spy_signals = 0;
    pop_now(1);
    ck_assert_int_eq(condition_spy_signals, 1);
    join(1, LEAT_OK);
}
END_TEST

START_TEST(close_wakes_all_that_wait)
{
    if (_i == 1)
        push_now(CAPACITY);
    for (int i = 0; i < WAITERS; i++)
        put_to_sleep(i, _i == 1);
    leat__queue_close(watched);
    join(WAITERS, LEAT_ECANCELLED);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("queue");
    TCase *tcase = tcase_create("queue");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, a_queue_without_room_is_refused);
    tcase_add_test(tcase, making_one_survives_failing_allocations);
    tcase_add_test(tcase, items_come_out_in_the_order_they_went_in);
    tcase_add_test(tcase, an_empty_queue_returns_again_at_the_deadline);
    tcase_add_test(tcase, a_closed_queue_refuses_and_drains);
    tcase_add_test(tcase, close_wakes_a_sender_that_found_no_room);
    tcase_add_test(tcase, close_wakes_everybody_who_waits_for_an_item);
    tcase_add_loop_test(tcase, nothing_is_lost_or_doubled_among_many_threads, 0,
                        3);
    tcase = tcase_create("wakes");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 2 * SECONDS);
    tcase_add_test(tcase, while_nobody_waits_nobody_is_woken);
    tcase_add_test(tcase, a_push_wakes_one_that_waits_for_an_item);
    tcase_add_test(tcase, a_pop_wakes_one_that_waits_for_room);
    tcase_add_loop_test(tcase, close_wakes_all_that_wait, 0, 2);
    return suite_run(suite);
}
