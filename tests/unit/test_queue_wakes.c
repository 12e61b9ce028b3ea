/*
 * The threads that a queue wakes, and by how many system calls. No schedule is
 * left to chance (support/condition_spy.h): a wake-up that is lost hangs, and
 * the watchdog ends the test.
 */
#include "base/queue.h"
#include "base/thread.h"
#include "support/condition_spy.h"
#include "support/suite.h"
#include "support/watchdog.h"

#include <check.h>
#include <stdbool.h>
#include <string.h>

enum { SECONDS = 30, CAPACITY = 4, THREADS = 3 };

typedef struct waiter {
    leat__queue *queue;
    bool pushes; /* else it pops */
    int status;
    leat__thread thread;
} waiter;

static leat__queue *queue;
static waiter waiting[THREADS];
static int item;

static void set_up(void)
{
    watchdog_start(SECONDS);
    ck_assert_int_eq(leat__queue_create(&queue, CAPACITY), LEAT_OK);
    memset(waiting, 0, sizeof(waiting));
    condition_spy_reset();
}

static void tear_down(void)
{
    leat__queue_destroy(queue);
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
    waiting[i] = (waiter){.queue = queue, .pushes = pushes, .status = -1};
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

static void push(int n)
{
    for (int i = 0; i < n; i++)
        ck_assert_int_eq(leat__queue_push(queue, &item), LEAT_OK);
}

static void pop(int n)
{
    void *got;
    for (int i = 0; i < n; i++)
        ck_assert_int_eq(leat__queue_pop(queue, &got, 0), LEAT_OK);
}

START_TEST(while_nobody_waits_nobody_is_woken)
{
    push(CAPACITY);
    pop(CAPACITY);
    ck_assert_int_eq(condition_spy_signals, 0);
    ck_assert_int_eq(condition_spy_broadcasts, 0);
}
END_TEST

START_TEST(a_push_wakes_one_that_waits_for_an_item)
{
    for (int i = 0; i < THREADS; i++)
        put_to_sleep(i, false);
    for (int i = 0; i < THREADS; i++) {
        push(1);
        ck_assert_int_eq(condition_spy_signals, i + 1);
    }
    join(THREADS, LEAT_OK);
    ck_assert_int_eq(condition_spy_broadcasts, 0);
}
END_TEST

START_TEST(a_pop_wakes_one_that_waits_for_room)
{
    push(CAPACITY);
    put_to_sleep(0, true);
    condition_spy_signals = 0;
    pop(1);
    ck_assert_int_eq(condition_spy_signals, 1);
    join(1, LEAT_OK);
}
END_TEST

START_TEST(close_wakes_all_that_wait)
{
    if (_i == 1)
        push(CAPACITY);
    for (int i = 0; i < THREADS; i++)
        put_to_sleep(i, _i == 1);
    leat__queue_close(queue);
    join(THREADS, LEAT_ECANCELLED);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("queue_wakes");
    TCase *tcase = tcase_create("queue_wakes");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 2 * SECONDS);
    tcase_add_test(tcase, while_nobody_waits_nobody_is_woken);
    tcase_add_test(tcase, a_push_wakes_one_that_waits_for_an_item);
    tcase_add_test(tcase, a_pop_wakes_one_that_waits_for_room);
    tcase_add_loop_test(tcase, close_wakes_all_that_wait, 0, 2);
    return suite_run(suite);
}
