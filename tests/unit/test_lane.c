/* When an empty slot wakes the worker that sleeps for one. */
#include "base/thread.h"
#include "layer/lane.h"
#include "support/sleepers.h"
#include "support/suite.h"
#include "support/watchdog.h"

#include <check.h>

enum { SECONDS = 30, SLOTS = 8 };

static leat__lane lane;
static leat__batch batches[SLOTS];
static leat__thread worker;

static int wakes(void)
{
    return sleepers_signals + sleepers_broadcasts;
}

static void set_up(void)
{
    watchdog_start(SECONDS);
    lane = (leat__lane){.is_alone = 1, .pool = {.batch = batches, .n = SLOTS}};
    ck_assert_int_eq(leat__queue_create(&lane.free, SLOTS), LEAT_OK);
    sleepers_reset();
}

static void tear_down(void)
{
    leat__queue_close(lane.free);
    leat__thread_join(&worker);
    leat__queue_destroy(lane.free);
    watchdog_stop();
}

static void *await_slot(void *argument)
{
    (void)argument;
    (void)leat__queue_wait(lane.free, LEAT__FOREVER);
    return NULL;
}

/* Returns once the worker sleeps. */
static void start_worker(void)
{
    ck_assert_int_eq(leat__thread_start(&worker, "worker", await_slot, NULL),
                     LEAT_OK);
    sleepers_await(1);
}

static void give_slots(int n)
{
    for (int i = 0; i < n; i++)
        ck_assert_int_eq(leat__queue_push(lane.free, &batches[i]), LEAT_OK);
}

/* Half of them, and so many that one is ready besides the caller's. */
START_TEST(the_late_slot_is_half_way)
{
    static const int late[] = {1, 1, 1, 2, 3, 3, 4, 4, 5};
    for (int n = 1; n <= 9; n++) {
        atomic_store(&lane.circulating, n);
        lane.is_alone = 1;
        ck_assert_int_eq(leat__lane_late(&lane), late[n - 1]);
        lane.is_alone = 0;
        ck_assert_int_eq(leat__lane_late(&lane), 1);
    }
}
END_TEST

START_TEST(while_workers_rest_no_slot_wakes_them)
{
    atomic_store(&lane.circulating, SLOTS);
    leat__lane_rest(&lane, 1);
    start_worker();
    give_slots(SLOTS);
    leat__lane_rest(&lane, 1);
    ck_assert_int_eq(wakes(), 0);
    leat__lane_rest(&lane, 0);
    ck_assert_int_eq(wakes(), 1);
    leat__thread_join(&worker);
}
END_TEST

START_TEST(after_a_rest_the_late_slot_wakes_again)
{
    atomic_store(&lane.circulating, SLOTS);
    leat__lane_rest(&lane, 1);
    leat__lane_rest(&lane, 0);
    int late = leat__lane_late(&lane);
    start_worker();
    give_slots(late - 1);
    ck_assert_int_eq(wakes(), 0);
    give_slots(1);
    ck_assert_int_eq(wakes(), 1);
    leat__thread_join(&worker);
}
END_TEST

START_TEST(one_slot_more_goes_round_where_workers_ran_out)
{
    void *item;
    atomic_store(&lane.circulating, 4);
    leat__lane_grow(&lane);
    ck_assert_int_eq(atomic_load(&lane.circulating), 4);
    atomic_store(&lane.was_full, 1);
    leat__lane_grow(&lane);
    leat__lane_grow(&lane);
    ck_assert_int_eq(atomic_load(&lane.circulating), 5);
    ck_assert_int_eq(leat__queue_pop(lane.free, &item, 0), LEAT_OK);
    ck_assert_ptr_eq(item, &batches[4]);
    ck_assert_int_eq(leat__queue_pop(lane.free, &item, 0), LEAT_AGAIN);
    /* Of five the third is late. */
    start_worker();
    give_slots(2);
    ck_assert_int_eq(wakes(), 0);
    give_slots(1);
    ck_assert_int_eq(wakes(), 1);
    leat__thread_join(&worker);
    atomic_store(&lane.circulating, SLOTS);
    atomic_store(&lane.was_full, 1);
    leat__lane_grow(&lane);
    ck_assert_int_eq(atomic_load(&lane.circulating), SLOTS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lane");
    TCase *tcase = tcase_create("lane");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 2 * SECONDS);
    tcase_add_test(tcase, the_late_slot_is_half_way);
    tcase_add_test(tcase, while_workers_rest_no_slot_wakes_them);
    tcase_add_test(tcase, after_a_rest_the_late_slot_wakes_again);
    tcase_add_test(tcase, one_slot_more_goes_round_where_workers_ran_out);
    return suite_run(suite);
}
