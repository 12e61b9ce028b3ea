/*
 * A worker that sleeps for a slot which another member's caller takes is not to
 * sleep on. The main thread's wake-ups are held back here, as a busy machine
 * would: they reach the sleepers once the slot is gone. What then nobody makes
 * is waited for in vain, and the watchdog ends the test.
 */
#include "support/condition_spy.h"
#include "support/group_fixture.h"
#include "support/layer_fixture.h"
#include "support/suite.h"

#include <check.h>
#include <pthread.h>

enum { MEMBERS = 3 };

static void expect_batch(group_fixture *group, int member, int number)
{
    ck_assert_int_eq(group_fixture_forward(group, member), LEAT_OK);
    ck_assert_int_eq(
        leat_data_layer_batch(group_fixture_member(group, member))->number,
        number);
}

/* The third batch of member 2 is not there, nor a slot of member 0's to make
   what comes before it. */
static void *take_three(void *argument)
{
    for (int k = 0; k < 3; k++)
        expect_batch(argument, 2, 2 + MEMBERS * k);
    return NULL;
}

START_TEST(opening_a_batch_wakes_who_sleeps_for_its_slot)
{
    pthread_t thread;
    leat_pipeline *pipeline = layer_fixture_pipeline();
    group_options.workers = 1;
    group_options.prefetch = 1;
    group_options.reader_thread = LEAT_READER_OFF;
    condition_spy_reset();
    group_fixture group =
        group_fixture_open(pipeline, &group_options, group_on_cpu, MEMBERS);
    /* The worker makes six, and sleeps for a slot of member 0. */
    condition_spy_await(1);
    ck_assert_int_eq(pthread_create(&thread, NULL, take_three, &group), 0);
    condition_spy_await(2);
    condition_spy_hold_back();
    expect_batch(&group, 0, 0);
    expect_batch(&group, 1, 1);
    expect_batch(&group, 1, 4);
    /* Gives the slot, which wakes the worker, but late. */
    expect_batch(&group, 0, 3);
    /* Makes batch 6 in it, and then its own. */
    expect_batch(&group, 1, 7);
    /* The slot is gone, and the sequence stands where the worker is not. */
    condition_spy_let_go();
    pthread_join(thread, NULL);
    expect_batch(&group, 0, 6);
    group_fixture_close(&group);
    leat_pipeline_unref(pipeline);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("group_wakes");
    TCase *tcase = tcase_create("group_wakes");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, group_set_up, group_tear_down);
    tcase_set_timeout(tcase, 2 * GROUP_SECONDS);
    tcase_add_test(tcase, opening_a_batch_wakes_who_sleeps_for_its_slot);
    return suite_run(suite);
}
