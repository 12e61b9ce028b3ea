/*
 * Which threads sleep, and what wakes them. No schedule is left to chance
 * (support/condition_spy.h): a wake-up that is lost hangs, and the watchdog
 * ends the test.
 */
#include "base/clock.h"
#include "base/queue.h"
#include "base/thread.h"
#include "layer/wakeup.h"
#include "support/condition_spy.h"
#include "support/suite.h"
#include "support/watchdog.h"

#include <check.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { SECONDS = 30, THREADS = 3 };

typedef struct sleeper {
    int64_t ticket;
    int status;
    leat__thread thread;
} sleeper;

static leat__event_count events;
static sleeper asleep[THREADS];

static void set_up(void)
{
    watchdog_start(SECONDS);
    memset(&events, 0, sizeof(events));
    memset(asleep, 0, sizeof(asleep));
    ck_assert_int_eq(leat__event_count_init(&events), LEAT_OK);
    condition_spy_reset();
}

static void tear_down(void)
{
    leat__event_count_finish(&events);
    watchdog_stop();
}

static void *sleep_once(void *argument)
{
    sleeper *self = argument;
    self->status = leat__event_count_wait(&events, self->ticket, LEAT__FOREVER);
    return NULL;
}

/* Returns once `n` threads sleep. */
static void put_to_sleep(int n)
{
    for (int i = 0; i < n; i++) {
        asleep[i] = (sleeper){leat__event_count_ticket(&events), -1, {0}};
        ck_assert_int_eq(leat__thread_start(&asleep[i].thread, "sleeper",
                                            sleep_once, &asleep[i]),
                         LEAT_OK);
    }
    condition_spy_await(n);
}

static void join(int n, int status)
{
    for (int i = 0; i < n; i++) {
        leat__thread_join(&asleep[i].thread);
        ck_assert_int_eq(asleep[i].status, status);
    }
}

START_TEST(an_event_after_the_ticket_ends_the_wait_at_once)
{
    int64_t ticket = leat__event_count_ticket(&events);
    leat__event_count_add(&events);
    ck_assert_int_eq(leat__event_count_wait(&events, ticket, LEAT__FOREVER),
                     LEAT_OK);
    ticket = leat__event_count_ticket(&events);
    leat__event_count_wake_one(&events);
    ck_assert_int_eq(leat__event_count_wait(&events, ticket, LEAT__FOREVER),
                     LEAT_OK);
    ck_assert_int_eq(condition_spy_signals + condition_spy_broadcasts, 0);
}
END_TEST

START_TEST(a_wait_ends_at_its_deadline)
{
    int64_t deadline = leat__clock_now() + 3000000;
    ck_assert_int_eq(leat__event_count_wait(
                         &events, leat__event_count_ticket(&events), deadline),
                     LEAT_OK);
    ck_assert_int_ge(leat__clock_now(), deadline);
    ck_assert(!leat__event_count_has_sleepers(&events));
}
END_TEST

START_TEST(one_event_wakes_one_sleeper)
{
    put_to_sleep(THREADS);
    ck_assert(leat__event_count_has_sleepers(&events));
    leat__event_count_add(&events);
    ck_assert_int_eq(condition_spy_signals, 0);
    for (int i = 0; i < THREADS; i++) {
        leat__event_count_wake_one(&events);
        ck_assert_int_eq(condition_spy_signals, i + 1);
    }
    join(THREADS, LEAT_OK);
    ck_assert_int_eq(condition_spy_broadcasts, 0);
}
END_TEST

START_TEST(all_wake_by_one_call)
{
    put_to_sleep(THREADS);
    leat__event_count_wake_all(&events);
    ck_assert_int_eq(condition_spy_broadcasts, 1);
    join(THREADS, LEAT_OK);
    leat__event_count_wake_all(&events);
    ck_assert_int_eq(condition_spy_broadcasts, 1);
}
END_TEST

START_TEST(close_ends_every_wait_for_good)
{
    put_to_sleep(THREADS);
    leat__event_count_close(&events);
    join(THREADS, LEAT_ECANCELLED);
    ck_assert_int_eq(leat__event_count_wait(&events,
                                            leat__event_count_ticket(&events),
                                            LEAT__FOREVER),
                     LEAT_ECANCELLED);
}
END_TEST

/* A flag that one thread sets, and others wait for, over and over. */
static atomic_int turns;

static void *await_turns(void *argument)
{
    sleeper *self = argument;
    for (int i = 1; i <= 20000; i++) {
        for (;;) {
            int64_t ticket = leat__event_count_ticket(&events);
            if (atomic_load(&turns) >= i)
                break;
            self->status =
                leat__event_count_wait(&events, ticket, LEAT__FOREVER);
        }
    }
    return NULL;
}

START_TEST(no_event_is_lost)
{
    atomic_store(&turns, 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(leat__thread_start(&asleep[i].thread, "sleeper",
                                            await_turns, &asleep[i]),
                         LEAT_OK);
    for (int i = 1; i <= 20000; i++) {
        atomic_store(&turns, i);
        leat__event_count_wake_all(&events);
    }
    join(THREADS, LEAT_OK);
}
END_TEST

/* Half of them, and so many that one is ready besides the caller's. */
START_TEST(the_threshold_is_half_way)
{
    static const int threshold[] = {1, 1, 1, 2, 3, 3, 4, 4, 5};
    for (int n = 1; n <= 9; n++) {
        ck_assert_int_eq(leat__wake_threshold(n, true), threshold[n - 1]);
        ck_assert_int_eq(leat__wake_threshold(n, false), 1);
    }
}
END_TEST

#define MS INT64_C(1000000)

/* Somebody took a batch each `pace`, and all batches were ready again. */
static void get_used_to(leat__timed_wait *wait, int64_t *now, int64_t *number,
                        int64_t pace)
{
    for (int i = 0; i < 20; i++) {
        (void)leat__timed_wait_until(wait, *now, *number, 3);
        *now += pace;
        *number += 1;
    }
}

START_TEST(nobody_waits_before_the_pace_is_known)
{
    leat__timed_wait wait = {0};
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(
            leat__timed_wait_until(&wait, (5 + 20 * i) * MS, 5 + i, 3),
            LEAT__FOREVER);
    ck_assert_int_eq(leat__timed_wait_until(&wait, 165 * MS, 13, 3), 195 * MS);
}
END_TEST

START_TEST(a_wait_ends_before_the_caller_would_wake)
{
    leat__timed_wait wait = {0};
    int64_t now = MS, number = 5;
    get_used_to(&wait, &now, &number, 20 * MS);
    ck_assert_int_eq(leat__timed_wait_until(&wait, now, number, 3),
                     now + 30 * MS);
    ck_assert_int_eq(leat__timed_wait_until(&wait, now, number + 1, 2),
                     now + 20 * MS);
    /* A worker that each free batch wakes does not wait. */
    ck_assert_int_eq(leat__timed_wait_until(&wait, now, number + 2, 1),
                     LEAT__FOREVER);
}
END_TEST

START_TEST(a_wait_in_vain_is_the_last_one)
{
    leat__timed_wait wait = {0};
    int64_t now = MS, number = 5;
    get_used_to(&wait, &now, &number, 20 * MS);
    ck_assert_int_eq(leat__timed_wait_until(&wait, now, number, 3),
                     now + 30 * MS);
    now += 30 * MS;
    ck_assert_int_eq(leat__timed_wait_until(&wait, now, number, 3),
                     LEAT__FOREVER);
    ck_assert_int_lt(leat__timed_wait_until(&wait, now, number + 2, 3),
                     LEAT__FOREVER);
}
END_TEST

/* A tenth of a millisecond is the shortest. */
START_TEST(a_wait_of_its_least_length_is_worth_it)
{
    for (int less = 0; less < 2; less++) {
        leat__timed_wait wait = {0};
        int64_t now = MS, number = 5, pace = MS / 10 - less;
        get_used_to(&wait, &now, &number, pace);
        ck_assert_int_eq(leat__timed_wait_until(&wait, now, number, 2),
                         less ? LEAT__FOREVER : now + pace);
    }
}
END_TEST

START_TEST(a_quick_caller_wakes)
{
    leat__timed_wait wait = {0};
    int64_t now = MS, number = 5;
    get_used_to(&wait, &now, &number, MS / 16);
    ck_assert_int_eq(leat__timed_wait_until(&wait, now, number, 3),
                     LEAT__FOREVER);
    get_used_to(&wait, &now, &number, MS);
    ck_assert_int_eq(leat__timed_wait_until(&wait, now, number, 3),
                     now + 3 * MS / 2);
}
END_TEST

/*
 * One worker, which fills a batch in `work`, and a caller that comes each
 * `pace`: how often that would have to wake it, after a while.
 */
static int wakes(int64_t pace, int64_t work, int batches, int threshold)
{
    leat__timed_wait wait = {0};
    int64_t now = MS, visit = now + pace, number = batches;
    int empty = 0, n = 0;
    while (number < 1000) {
        int64_t end = leat__timed_wait_until(&wait, now, number, threshold);
        while (now < end && empty < threshold) {
            now = visit < end ? visit : end;
            if (now == visit) {
                empty++;
                visit += pace;
            }
        }
        n += empty == threshold && number > 100;
        for (; empty > 0; empty--, number++) {
            now += work;
            for (; visit <= now; visit += pace)
                empty++;
        }
    }
    return n;
}

START_TEST(the_caller_hardly_ever_wakes)
{
    ck_assert_int_eq(wakes(20 * MS, MS / 10, 5, 3), 0);
    ck_assert_int_eq(wakes(20 * MS, 9 * MS, 5, 3), 0);
    ck_assert_int_eq(wakes(MS, MS / 100, 5, 3), 0);
    ck_assert_int_eq(wakes(MS, MS / 3, 9, 5), 0);
    /* Between the first batch and the second there is less room for error. */
    ck_assert_int_lt(wakes(300 * MS, MS, 4, 2), 100);
    ck_assert_int_gt(wakes(MS / 20, MS / 1000, 5, 3), 200);
}
END_TEST

enum { BATCHES = 50 };

static long count_sleeps(void)
{
    struct rusage usage;
    ck_assert_int_eq(getrusage(RUSAGE_THREAD, &usage), 0);
    return usage.ru_nvcsw;
}

/* A pause that is over before it begins, on a busy machine, is no sleep. */
static void sleep_a_little(void)
{
    const struct timespec pause = {0, 1000000};
    long before = count_sleeps();
    while (count_sleeps() == before)
        nanosleep(&pause, NULL);
}

static void compute(void)
{
    for (volatile int i = 0; i < 1000; i++)
        continue;
}

/* How many of the forwards were told to work alone. */
static int forwards(leat__inline_mode *mode, void (*between)(void))
{
    int n = 0;
    for (int i = 0; i < BATCHES; i++) {
        n += leat__inline_mode_enter(mode);
        leat__inline_mode_leave(mode);
        between();
    }
    return n;
}

START_TEST(who_computes_works_alone_soon)
{
    leat__inline_mode mode = {.is_possible = 1};
    ck_assert_int_gt(forwards(&mode, compute), BATCHES / 2);
    ck_assert(mode.is_on);
}
END_TEST

START_TEST(who_sleeps_never_does)
{
    leat__inline_mode mode = {.is_possible = 1};
    ck_assert_int_eq(forwards(&mode, sleep_a_little), 0);
}
END_TEST

START_TEST(a_caller_may_change_its_habit)
{
    leat__inline_mode mode = {.is_possible = 1};
    forwards(&mode, compute);
    forwards(&mode, sleep_a_little);
    ck_assert(!mode.is_on);
    forwards(&mode, compute);
    ck_assert(mode.is_on);
}
END_TEST

/* Looks become rarer while they see the same, but not ever rarer. */
START_TEST(a_habit_of_long_may_change_as_well)
{
    leat__inline_mode mode = {.is_possible = 1};
    for (int i = 0; i < 30; i++)
        forwards(&mode, compute);
    ck_assert(mode.is_on);
    forwards(&mode, sleep_a_little);
    ck_assert(!mode.is_on);
}
END_TEST

START_TEST(with_more_cores_nobody_looks)
{
    leat__inline_mode mode = {0};
    ck_assert_int_eq(forwards(&mode, compute), 0);
    ck_assert_int_eq(mode.is_probing, 0);
}
END_TEST

static void *enter(void *argument)
{
    leat__inline_mode_enter(argument);
    return NULL;
}

/* Of a thread that was not seen to leave nothing is known. */
START_TEST(another_thread_counts_as_one_that_slept)
{
    leat__inline_mode mode = {.is_possible = 1};
    pthread_t thread;
    forwards(&mode, compute);
    while (!mode.is_probing) {
        leat__inline_mode_enter(&mode);
        leat__inline_mode_leave(&mode);
    }
    ck_assert(mode.is_on);
    ck_assert_int_eq(pthread_create(&thread, NULL, enter, &mode), 0);
    pthread_join(thread, NULL);
    ck_assert(!mode.is_on);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wakeup");
    TCase *tcase = tcase_create("wakeup");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 2 * SECONDS);
    tcase_add_test(tcase, an_event_after_the_ticket_ends_the_wait_at_once);
    tcase_add_test(tcase, a_wait_ends_at_its_deadline);
    tcase_add_test(tcase, one_event_wakes_one_sleeper);
    tcase_add_test(tcase, all_wake_by_one_call);
    tcase_add_test(tcase, close_ends_every_wait_for_good);
    tcase_add_test(tcase, no_event_is_lost);
    tcase_add_test(tcase, the_threshold_is_half_way);
    tcase_add_test(tcase, nobody_waits_before_the_pace_is_known);
    tcase_add_test(tcase, a_wait_ends_before_the_caller_would_wake);
    tcase_add_test(tcase, a_wait_in_vain_is_the_last_one);
    tcase_add_test(tcase, a_wait_of_its_least_length_is_worth_it);
    tcase_add_test(tcase, a_quick_caller_wakes);
    tcase_add_test(tcase, the_caller_hardly_ever_wakes);
    tcase_add_test(tcase, who_computes_works_alone_soon);
    tcase_add_test(tcase, who_sleeps_never_does);
    tcase_add_test(tcase, a_caller_may_change_its_habit);
    tcase_add_test(tcase, a_habit_of_long_may_change_as_well);
    tcase_add_test(tcase, with_more_cores_nobody_looks);
    tcase_add_test(tcase, another_thread_counts_as_one_that_slept);
    return suite_run(suite);
}
