#include "layer/wakeup.h"
#include "support/suite.h"

#include <check.h>
#include <pthread.h>
#include <sys/resource.h>
#include <time.h>

enum { BATCHES = 50 };

static long sleeps(void)
{
    struct rusage usage;
    ck_assert_int_eq(getrusage(RUSAGE_THREAD, &usage), 0);
    return usage.ru_nvcsw;
}

/* A pause that is over before it begins, on a busy machine, is no sleep. */
static void sleep_a_little(void)
{
    const struct timespec pause = {0, 1000000};
    long before = sleeps();
    while (sleeps() == before)
        nanosleep(&pause, NULL);
}

static void compute(void)
{
    for (volatile int i = 0; i < 1000; i++)
        continue;
}

/* How many of the forwards were told to work alone. */
static int forwards(leat__inline_mode *solo, void (*between)(void))
{
    int n = 0;
    for (int i = 0; i < BATCHES; i++) {
        n += leat__inline_mode_enter(solo);
        leat__inline_mode_leave(solo);
        between();
    }
    return n;
}

START_TEST(who_computes_works_alone_soon)
{
    leat__inline_mode solo = {.is_possible = 1};
    ck_assert_int_gt(forwards(&solo, compute), BATCHES / 2);
    ck_assert(solo.is_on);
}
END_TEST

START_TEST(who_sleeps_never_does)
{
    leat__inline_mode solo = {.is_possible = 1};
    ck_assert_int_eq(forwards(&solo, sleep_a_little), 0);
}
END_TEST

START_TEST(a_caller_may_change_its_habit)
{
    leat__inline_mode solo = {.is_possible = 1};
    forwards(&solo, compute);
    forwards(&solo, sleep_a_little);
    ck_assert(!solo.is_on);
    forwards(&solo, compute);
    ck_assert(solo.is_on);
}
END_TEST

/* Looks become rarer while they see the same, but not ever rarer. */
START_TEST(a_habit_of_long_may_change_as_well)
{
    leat__inline_mode solo = {.is_possible = 1};
    for (int i = 0; i < 30; i++)
        forwards(&solo, compute);
    ck_assert(solo.is_on);
    forwards(&solo, sleep_a_little);
    ck_assert(!solo.is_on);
}
END_TEST

START_TEST(with_more_cores_nobody_looks)
{
    leat__inline_mode solo = {0};
    ck_assert_int_eq(forwards(&solo, compute), 0);
    ck_assert_int_eq(solo.is_looking, 0);
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
    leat__inline_mode solo = {.is_possible = 1};
    pthread_t thread;
    forwards(&solo, compute);
    while (!solo.is_looking) {
        leat__inline_mode_enter(&solo);
        leat__inline_mode_leave(&solo);
    }
    ck_assert(solo.is_on);
    ck_assert_int_eq(pthread_create(&thread, NULL, enter, &solo), 0);
    pthread_join(thread, NULL);
    ck_assert(!solo.is_on);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("solo");
    TCase *tcase = tcase_create("solo");
    tcase_add_test(tcase, who_computes_works_alone_soon);
    tcase_add_test(tcase, who_sleeps_never_does);
    tcase_add_test(tcase, a_caller_may_change_its_habit);
    tcase_add_test(tcase, a_habit_of_long_may_change_as_well);
    tcase_add_test(tcase, with_more_cores_nobody_looks);
    tcase_add_test(tcase, another_thread_counts_as_one_that_slept);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
