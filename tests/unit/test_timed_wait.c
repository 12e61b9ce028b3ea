/* A worker that looks by itself, before forward has to wake it. */
#include "base/queue.h"
#include "layer/wakeup.h"
#include "support/suite.h"

#include <check.h>

#define MS INT64_C(1000000)

/* Somebody took a batch each `pace`, and all slots were full again. */
static void get_used_to(leat__timed_wait *nap, int64_t *now, int64_t *number,
                        int64_t pace)
{
    for (int i = 0; i < 20; i++) {
        (void)leat__timed_wait_until(nap, *now, *number, 3);
        *now += pace;
        *number += 1;
    }
}

START_TEST(nobody_naps_before_the_pace_is_known)
{
    leat__timed_wait nap = {0};
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(
            leat__timed_wait_until(&nap, (5 + 20 * i) * MS, 5 + i, 3),
            LEAT__FOREVER);
    ck_assert_int_eq(leat__timed_wait_until(&nap, 165 * MS, 13, 3), 195 * MS);
}
END_TEST

START_TEST(a_nap_ends_before_the_caller_would_wake)
{
    leat__timed_wait nap = {0};
    int64_t now = MS, number = 5;
    get_used_to(&nap, &now, &number, 20 * MS);
    ck_assert_int_eq(leat__timed_wait_until(&nap, now, number, 3),
                     now + 30 * MS);
    ck_assert_int_eq(leat__timed_wait_until(&nap, now, number + 1, 2),
                     now + 20 * MS);
    /* Who is woken by each slot does not nap. */
    ck_assert_int_eq(leat__timed_wait_until(&nap, now, number + 2, 1),
                     LEAT__FOREVER);
}
END_TEST

START_TEST(a_nap_in_vain_is_the_last_one)
{
    leat__timed_wait nap = {0};
    int64_t now = MS, number = 5;
    get_used_to(&nap, &now, &number, 20 * MS);
    ck_assert_int_eq(leat__timed_wait_until(&nap, now, number, 3),
                     now + 30 * MS);
    now += 30 * MS;
    ck_assert_int_eq(leat__timed_wait_until(&nap, now, number, 3),
                     LEAT__FOREVER);
    ck_assert_int_lt(leat__timed_wait_until(&nap, now, number + 2, 3),
                     LEAT__FOREVER);
}
END_TEST

/* A tenth of a millisecond is the shortest. */
START_TEST(a_nap_of_its_least_length_is_worth_it)
{
    for (int less = 0; less < 2; less++) {
        leat__timed_wait nap = {0};
        int64_t now = MS, number = 5, pace = MS / 10 - less;
        get_used_to(&nap, &now, &number, pace);
        ck_assert_int_eq(leat__timed_wait_until(&nap, now, number, 2),
                         less ? LEAT__FOREVER : now + pace);
    }
}
END_TEST

START_TEST(a_quick_caller_wakes)
{
    leat__timed_wait nap = {0};
    int64_t now = MS, number = 5;
    get_used_to(&nap, &now, &number, MS / 16);
    ck_assert_int_eq(leat__timed_wait_until(&nap, now, number, 3),
                     LEAT__FOREVER);
    get_used_to(&nap, &now, &number, MS);
    ck_assert_int_eq(leat__timed_wait_until(&nap, now, number, 3),
                     now + 3 * MS / 2);
}
END_TEST

/*
 * One worker, which fills a slot in `work`, and a caller that comes each
 * `pace`: how often that would have to wake it, after a while.
 */
static int wakes(int64_t pace, int64_t work, int slots, int late)
{
    leat__timed_wait nap = {0};
    int64_t now = MS, visit = now + pace, number = slots;
    int empty = 0, n = 0;
    while (number < 1000) {
        int64_t end = leat__timed_wait_until(&nap, now, number, late);
        while (now < end && empty < late) {
            now = visit < end ? visit : end;
            if (now == visit) {
                empty++;
                visit += pace;
            }
        }
        n += empty == late && number > 100;
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
    /* Between the first slot and the second there is less room for error. */
    ck_assert_int_lt(wakes(300 * MS, MS, 4, 2), 100);
    ck_assert_int_gt(wakes(MS / 20, MS / 1000, 5, 3), 200);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nap");
    TCase *tests = tcase_create("nap");
    tcase_add_test(tests, nobody_naps_before_the_pace_is_known);
    tcase_add_test(tests, a_nap_ends_before_the_caller_would_wake);
    tcase_add_test(tests, a_nap_in_vain_is_the_last_one);
    tcase_add_test(tests, a_nap_of_its_least_length_is_worth_it);
    tcase_add_test(tests, a_quick_caller_wakes);
    tcase_add_test(tests, the_caller_hardly_ever_wakes);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
