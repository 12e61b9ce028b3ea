/*
 * Who is woken, and by how many system calls. No schedule is left to chance
 * (support/sleepers.h): a wake-up that is lost hangs, and the watchdog ends the
 * test.
 */
#include "base/queue.h"
#include "base/thread.h"
#include "support/sleepers.h"
#include "support/suite.h"
#include "support/watchdog.h"

#include <check.h>
#include <string.h>

enum { SECONDS = 30, CAPACITY = 4, THREADS = 3 };

/* How a thread waits. */
typedef enum way { POP, WAIT, STIRRED, PUSH } way;

typedef struct waiter {
    leat__queue *queue;
    way way;
    int64_t stirs;
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
    sleepers_reset();
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
    switch (self->way) {
    case POP:
        self->status = leat__queue_pop(self->queue, &got, LEAT__FOREVER);
        break;
    case WAIT:
        self->status = leat__queue_wait(self->queue, LEAT__FOREVER);
        break;
    case STIRRED:
        self->status = leat__queue_wait_stirred(self->queue, self->stirs);
        break;
    case PUSH:
        self->status = leat__queue_push(self->queue, &item);
        break;
    }
    return NULL;
}

/* Returns when thread `i` sleeps; whoever gets the lock now finds it asleep. */
static void put_to_sleep(int i, way way)
{
    int before = sleepers_waits();
    waiting[i] = (waiter){.queue = queue, .way = way, .status = -1};
    waiting[i].stirs = leat__queue_stirs(queue);
    ck_assert_int_eq(leat__thread_start(&waiting[i].thread, "waiter", wait_once,
                                        &waiting[i]),
                     LEAT_OK);
    sleepers_await(before + 1);
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

static int is_same(const void *a, const void *b)
{
    return a == b;
}

START_TEST(while_nobody_waits_nobody_is_woken)
{
    void *got;
    push(CAPACITY);
    leat__queue_kick(queue);
    leat__queue_stir(queue);
    ck_assert_int_eq(leat__queue_wait(queue, LEAT__FOREVER), LEAT_OK);
    ck_assert_int_eq(leat__queue_wait_stirred(queue, leat__queue_stirs(queue)),
                     LEAT_OK);
    ck_assert_int_eq(leat__queue_pick(queue, &got, is_same, &item), LEAT_OK);
    pop(CAPACITY - 1);
    ck_assert_int_eq(sleepers_signals, 0);
    ck_assert_int_eq(sleepers_broadcasts, 0);
}
END_TEST

/* An empty slot wakes nobody until there are as many as the threshold. */
START_TEST(a_push_wakes_one_from_the_threshold_on)
{
    static const int thresholds[] = {-1, 0, 1, 2, 3, CAPACITY};
    for (size_t k = 0; k < sizeof(thresholds) / sizeof(thresholds[0]); k++) {
        int n = thresholds[k] < 1 ? 1 : thresholds[k];
        leat__queue_wake_at(queue, thresholds[k]);
        sleepers_signals = 0;
        put_to_sleep(0, POP);
        push(n - 1);
        ck_assert_int_eq(sleepers_signals, 0);
        push(1);
        ck_assert_int_eq(sleepers_signals, 1);
        join(1, LEAT_OK);
        pop(n - 1);
    }
    ck_assert_int_eq(sleepers_broadcasts, 0);
}
END_TEST

START_TEST(a_kick_wakes_all_where_there_are_items)
{
    leat__queue_wake_at(queue, CAPACITY);
    put_to_sleep(0, POP);
    put_to_sleep(1, POP);
    leat__queue_kick(queue);
    ck_assert_int_eq(sleepers_broadcasts, 0);
    push(2);
    ck_assert_int_eq(sleepers_signals, 0);
    leat__queue_kick(queue);
    ck_assert_int_eq(sleepers_broadcasts, 1);
    join(2, LEAT_OK);
    put_to_sleep(0, POP);
    push(1);
    leat__queue_kick(queue);
    join(1, LEAT_OK);
}
END_TEST

START_TEST(who_takes_nothing_hands_the_wake_up_on)
{
    static const way ways[] = {WAIT, STIRRED};
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < THREADS; i++)
            put_to_sleep(i, ways[k]);
        push(1);
        join(THREADS, LEAT_OK);
        pop(1);
        /* Behind the one who watches sleeps the one who takes. */
        put_to_sleep(0, ways[k]);
        put_to_sleep(1, POP);
        push(1);
        leat__thread_join(&waiting[1].thread);
        ck_assert_int_eq(waiting[1].status, LEAT_OK);
        push(1);
        join(1, LEAT_OK);
        pop(1);
    }
}
END_TEST

START_TEST(a_stir_wakes_all_who_sleep)
{
    for (int i = 0; i < THREADS; i++)
        put_to_sleep(i, STIRRED);
    leat__queue_stir(queue);
    ck_assert_int_eq(sleepers_broadcasts, 1);
    join(THREADS, LEAT_OK);
}
END_TEST

START_TEST(an_item_taken_or_picked_wakes_one_who_waits_for_room)
{
    void *got;
    push(CAPACITY);
    for (int k = 0; k < 2; k++) {
        put_to_sleep(0, PUSH);
        sleepers_signals = 0;
        if (k == 0)
            pop(1);
        else
            ck_assert_int_eq(leat__queue_pick(queue, &got, is_same, NULL),
                             LEAT_OK);
        ck_assert_int_eq(sleepers_signals, 1);
        join(1, LEAT_OK);
    }
}
END_TEST

START_TEST(close_wakes_all_at_both_ends)
{
    for (int k = 0; k < 2; k++) {
        if (k == 1)
            push(CAPACITY);
        for (int i = 0; i < THREADS; i++)
            put_to_sleep(i, k == 1 ? PUSH : (way)i);
        leat__queue_close(queue);
        join(THREADS, LEAT_ECANCELLED);
        leat__queue_reopen(queue);
    }
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
    tcase_add_test(tcase, a_push_wakes_one_from_the_threshold_on);
    tcase_add_test(tcase, a_kick_wakes_all_where_there_are_items);
    tcase_add_test(tcase, who_takes_nothing_hands_the_wake_up_on);
    tcase_add_test(tcase, a_stir_wakes_all_who_sleep);
    tcase_add_test(tcase, an_item_taken_or_picked_wakes_one_who_waits_for_room);
    tcase_add_test(tcase, close_wakes_all_at_both_ends);
    return suite_run(suite);
}
