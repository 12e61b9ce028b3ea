#include "support/suite.h"
#include "tools/bench/latency.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct latency latency;

static void empty(void)
{
    memset(&latency, 0, sizeof(latency));
}

/* Buckets are 1.6 % wide. */
static void assert_near(double found, double expected)
{
    ck_assert_double_le(found, expected * 1.0001);
    ck_assert_double_ge(found, expected * 0.984);
}

START_TEST(percentiles_are_within_a_bucket)
{
    for (int i = 1; i <= 1000; i++)
        latency_add(&latency, i * 1e-5);
    assert_near(latency_percentile(&latency, .5), 5000);
    assert_near(latency_percentile(&latency, .99), 9900);
    assert_near(latency_percentile(&latency, 1), 10000);
}
END_TEST

START_TEST(the_longest_time_is_exact)
{
    latency_add(&latency, 0.000123456);
    latency_add(&latency, 0.000001);
    ck_assert_double_eq_tol(latency_longest(&latency), 123.456, 0.002);
}
END_TEST

START_TEST(times_of_any_size_are_taken)
{
    latency_add(&latency, -1);
    latency_add(&latency, 0);
    latency_add(&latency, 63e-9);
    latency_add(&latency, 64e-9);
    latency_add(&latency, 1e6);
    ck_assert_double_eq(latency_percentile(&latency, .4), 0);
    assert_near(latency_percentile(&latency, .6), .063);
    assert_near(latency_percentile(&latency, .8), .064);
    assert_near(latency_percentile(&latency, 1), 1e12);
}
END_TEST

START_TEST(without_times_there_is_nothing_to_say)
{
    ck_assert_double_eq(latency_percentile(&latency, .5), 0);
    ck_assert_double_eq(latency_longest(&latency), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("latency");
    TCase *tcase = tcase_create("latency");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, empty, NULL);
    tcase_add_test(tcase, percentiles_are_within_a_bucket);
    tcase_add_test(tcase, the_longest_time_is_exact);
    tcase_add_test(tcase, times_of_any_size_are_taken);
    tcase_add_test(tcase, without_times_there_is_nothing_to_say);
    return suite_run(suite);
}
