#include "support/suite.h"

#include <leat/stats.h>

#include <check.h>
#include <stdlib.h>
#include <string.h>

static leat_stats ten_seconds(const char *work, int threads)
{
    leat_stats stats = {.size = sizeof(stats), .nstages = 3, .elapsed = 10};
    stats.stage[0].name = "reader";
    stats.stage[1].name = work;
    stats.stage[1].threads = threads;
    stats.stage[2].name = "forward";
    return stats;
}

static const char *verdict_of(const leat_stats *now)
{
    static char line[LEAT_VERDICT_MAX];
    ck_assert_int_eq(leat_stats_verdict(now, NULL, line), LEAT_OK);
    return line;
}

START_TEST(workers_that_are_always_busy_bound_a_feed_that_is_waited_for)
{
    leat_stats now = ten_seconds("decode", 2);
    now.stage[1].busy = 19.6;
    now.waited = 6.1;
    const char *line = verdict_of(&now);
    ck_assert_str_eq(line,
                     "bound by decode: decode by 2 threads busy 98 %, storage "
                     "busy 0 %, input missing 0 %, consumer waits 61 %; more "
                     "cores would help");
}
END_TEST

START_TEST(a_busy_reader_thread_means_storage)
{
    leat_stats now = ten_seconds("transform", 2);
    now.stage[0].threads = 1;
    now.stage[0].busy = 9.5;
    now.stage[1].busy = 2;
    now.stage[1].blocked_empty = 18;
    now.waited = 9;
    const char *line = verdict_of(&now);
    ck_assert_ptr_eq(strstr(line, "bound by storage"), line);
    ck_assert_ptr_nonnull(strstr(line, "input missing 90 %"));
    ck_assert_ptr_nonnull(strstr(line, "; faster storage would help"));
}
END_TEST

START_TEST(a_consumer_that_never_waits_is_what_bounds)
{
    leat_stats now = ten_seconds("transform", 1);
    now.stage[1].busy = 3;
    now.waited = 0.1;
    const char *line = verdict_of(&now);
    ck_assert_str_eq(line,
                     "bound by the consumer: transform by 1 thread busy 30 %, "
                     "storage busy 0 %, input missing 0 %, consumer waits 1 %; "
                     "the feed keeps up");
}
END_TEST

/* A worker that rests beside a caller who does all the work itself. */
START_TEST(threads_have_no_more_time_than_their_cores)
{
    leat_stats now = ten_seconds("transform", 1);
    now.cores = 1;
    now.stage[1].busy = 8.4;
    now.stage[0].busy = 1;
    now.waited = 9.7;
    now.helped_runs = 1000;
    const char *line = verdict_of(&now);
    ck_assert_str_eq(
        line, "bound by transform: transform by 2 threads on 1 "
              "core busy 84 %, storage busy 10 %, input missing 0 %, consumer "
              "waits 97 %; more cores would help");
}
END_TEST

START_TEST(no_share_is_above_all_of_the_time)
{
    leat_stats now = ten_seconds("decode", 2);
    now.stage[1].busy = 20.9;
    now.waited = 10.8;
    const char *line = verdict_of(&now);
    ck_assert_ptr_nonnull(strstr(line, "by 2 threads busy 100 %"));
    ck_assert_ptr_nonnull(strstr(line, "consumer waits 100 %"));
}
END_TEST

START_TEST(nobody_busy_and_still_waiting_is_said_too)
{
    leat_stats now = ten_seconds("transform", 4);
    now.stage[1].busy = 4;
    now.waited = 9;
    const char *line = verdict_of(&now);
    ck_assert_ptr_eq(strstr(line, "bound by no stage alone"), line);
}
END_TEST

START_TEST(the_caller_that_helps_is_a_thread_more)
{
    leat_stats now = ten_seconds("transform", 1);
    now.stage[1].busy = 19;
    now.waited = 10;
    now.helped_runs = 100;
    const char *line = verdict_of(&now);
    ck_assert_ptr_nonnull(strstr(line, "by 2 threads busy 95 %"));
}
END_TEST

/* With a stage `copy`, wherever it stands. */
static leat_stats over_a_bus(void)
{
    leat_stats stats = ten_seconds("transform", 2);
    stats.stage[3] = stats.stage[2];
    stats.stage[2] = (leat_stage_stats){.name = "copy"};
    stats.nstages = 4;
    return stats;
}

START_TEST(copies_that_are_waited_for_bound_a_feed)
{
    leat_stats now = over_a_bus();
    now.stage[1].busy = 0.4;
    now.stage[1].blocked_full = 19;
    now.stage[2].busy = 9.7;
    now.waited = 9.6;
    const char *line = verdict_of(&now);
    ck_assert_str_eq(line,
                     "bound by copy: transform by 2 threads busy 2 %, storage "
                     "busy 0 %, copies busy 97 %, input missing 0 %, consumer "
                     "waits 96 %; fewer bytes would help: uint8 and "
                     "transform_on DEVICE");
}
END_TEST

START_TEST(copies_bound_nothing_where_others_are_busier)
{
    leat_stats now = over_a_bus();
    now.stage[1].busy = 19.6;
    now.stage[2].busy = 6;
    now.waited = 5;
    const char *line = verdict_of(&now);
    ck_assert_ptr_eq(strstr(line, "bound by transform: "), line);
    now.stage[0].threads = 1;
    now.stage[0].busy = 9.9;
    line = verdict_of(&now);
    ck_assert_ptr_eq(strstr(line, "bound by storage: "), line);
    now.waited = 0.1;
    line = verdict_of(&now);
    ck_assert_ptr_eq(strstr(line, "bound by the consumer: "), line);
    ck_assert_ptr_nonnull(strstr(line, "copies busy 60 %"));
}
END_TEST

/* Who enqueues ahead waits in forward for what its streams give back. */
START_TEST(workers_without_room_mean_the_consumers_streams)
{
    leat_stats now = over_a_bus();
    now.stage[1].blocked_full = 19;
    now.waited = 9;
    const char *line = verdict_of(&now);
    ck_assert_ptr_eq(strstr(line, "bound by the consumer: "), line);
    ck_assert_ptr_nonnull(strstr(line, "; its streams give batches back late"));
}
END_TEST

START_TEST(the_longest_verdict_has_room)
{
    leat_stats now = over_a_bus();
    now.stage[0].threads = 1;
    now.stage[1].threads = 2000000000;
    now.stage[2].busy = 10;
    now.stage[1].busy = now.stage[1].blocked_empty = 2e10 * 0.996;
    now.stage[0].busy = 9.96;
    now.waited = 10;
    const char *line = verdict_of(&now);
    ck_assert_str_eq(line,
                     "bound by copy: transform by 2000000000 threads busy 100 "
                     "%, storage busy 100 %, copies busy 100 %, input missing "
                     "100 %, consumer waits 100 %; fewer bytes would help: "
                     "uint8 and transform_on DEVICE");
}
END_TEST

START_TEST(only_the_time_between_two_readings_counts)
{
    leat_stats before = ten_seconds("transform", 1);
    before.stage[1].busy = 10;
    before.waited = 10;
    leat_stats now = before;
    char line[LEAT_VERDICT_MAX];
    ck_assert_int_eq(leat_stats_verdict(&now, &before, line), LEAT_EINVAL);
    now.elapsed = 20;
    ck_assert_int_eq(leat_stats_verdict(&now, &before, line), LEAT_OK);
    ck_assert_ptr_eq(strstr(line, "bound by the consumer"), line);
}
END_TEST

START_TEST(each_share_is_of_what_came_since)
{
    leat_stats before = over_a_bus();
    before.stage[0].threads = 1;
    before.stage[0].busy = 3;
    before.stage[1].busy = 4;
    before.stage[1].blocked_empty = 2;
    before.stage[2].busy = 5;
    before.waited = 6;
    leat_stats now = before;
    char line[LEAT_VERDICT_MAX];
    now.elapsed = 20;
    now.stage[0].busy += 1;
    now.stage[1].busy += 18;
    now.stage[1].blocked_empty += 1;
    now.stage[2].busy += 2;
    now.waited += 7;
    ck_assert_int_eq(leat_stats_verdict(&now, &before, line), LEAT_OK);
    ck_assert_str_eq(line,
                     "bound by transform: transform by 2 threads busy 90 %, "
                     "storage busy 10 %, copies busy 20 %, input missing 5 %, "
                     "consumer waits 70 %; more cores would help");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("verdict");
    TCase *tcase = tcase_create("verdict");
    suite_add_tcase(suite, tcase);
    tcase_add_test(
        tcase, workers_that_are_always_busy_bound_a_feed_that_is_waited_for);
    tcase_add_test(tcase, a_busy_reader_thread_means_storage);
    tcase_add_test(tcase, a_consumer_that_never_waits_is_what_bounds);
    tcase_add_test(tcase, threads_have_no_more_time_than_their_cores);
    tcase_add_test(tcase, no_share_is_above_all_of_the_time);
    tcase_add_test(tcase, nobody_busy_and_still_waiting_is_said_too);
    tcase_add_test(tcase, the_caller_that_helps_is_a_thread_more);
    tcase_add_test(tcase, copies_that_are_waited_for_bound_a_feed);
    tcase_add_test(tcase, copies_bound_nothing_where_others_are_busier);
    tcase_add_test(tcase, workers_without_room_mean_the_consumers_streams);
    tcase_add_test(tcase, the_longest_verdict_has_room);
    tcase_add_test(tcase, only_the_time_between_two_readings_counts);
    tcase_add_test(tcase, each_share_is_of_what_came_since);
    return suite_run(suite);
}
