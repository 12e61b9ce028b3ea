/* What each reader of a chain did, on a clock that only the readers advance. */
#include "base/clock.h"
#include "support/suite.h"
#include "support/timed_readers.h"

#include <leat/stats.h>

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 4, THREADS = 4 };

/* In front of libc's. */
int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);

static _Thread_local int looks; /* at the clock */

int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
    if (clock != CLOCK_MONOTONIC)
        return __real_clock_gettime(clock, out);
    looks++;
    *out = leat__clock_timespec(timed_now);
    return 0;
}

/* Samples of one caller. */
typedef struct samples {
    leat_sample storage[BATCH];
    leat_sample *sample[BATCH];
} samples;

static void init_samples(samples *own)
{
    for (int i = 0; i < BATCH; i++) {
        leat_sample_init(&own->storage[i]);
        own->sample[i] = &own->storage[i];
    }
}

static void finish_samples(samples *own)
{
    for (int i = 0; i < BATCH; i++)
        leat_sample_finish(&own->storage[i]);
}

static leat_reader *open_chain(leat_pipeline *pipeline)
{
    leat_reader *reader;
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    leat_pipeline_unref(pipeline);
    return reader;
}

static void read_batches(leat_reader *reader, int n)
{
    samples own;
    init_samples(&own);
    for (int i = 0; i < n; i++) {
        int got;
        ck_assert_int_eq(
            leat_reader_next_batch(reader, own.sample, BATCH, &got), LEAT_OK);
        ck_assert_int_eq(got, BATCH);
    }
    finish_samples(&own);
}

static leat_reader_stats stats[LEAT_MAX_READER_STATS];

/* What is known of reader `i`; times in nanoseconds. */
static void check(int i, const char *path, int64_t items, int64_t busy,
                  int64_t blocked)
{
    ck_assert_str_eq(stats[i].path, path);
    ck_assert_msg(stats[i].items == items, "%s: %lld items", path,
                  (long long)stats[i].items);
    ck_assert_msg(stats[i].bytes == items * TIMED_BYTES, "%s: %lld bytes", path,
                  (long long)stats[i].bytes);
    ck_assert_msg((int64_t)(1e9 * stats[i].busy + .5) == busy, "%s: busy %g",
                  path, 1e9 * stats[i].busy);
    ck_assert_msg((int64_t)(1e9 * stats[i].blocked + .5) == blocked,
                  "%s: blocked %g", path, 1e9 * stats[i].blocked);
}

START_TEST(each_reader_has_its_own_time)
{
    timed_plan source = {
        .type.name = "source", .samples = 100, .next = 700, .blocked = 30};
    timed_plan middle = {.type.name = "middle", .next = 200};
    timed_plan top = {.type.name = "top", .next = 50, .blocked = 5};
    leat_reader *reader = open_chain(timed_over(
        &top, timed_over(&middle, timed_pipeline(&source, NULL, 0))));
    read_batches(reader, 3);
    ck_assert_int_eq(leat_reader_chain_stats(reader, stats), 3);
    check(0, "top", 12, 150, 15);
    check(1, "top/middle", 12, 600, 0);
    check(2, "top/middle/source", 12, 2100, 90);
    leat_reader_close(reader);
}
END_TEST

START_TEST(a_reader_alone_takes_no_clock)
{
    timed_plan source = {.type.name = "source",
                         .samples = 100,
                         .next = 700,
                         .blocked = 30,
                         .memory = 77};
    leat_reader *reader = open_chain(timed_pipeline(&source, NULL, 0));
    looks = 0;
    read_batches(reader, 3);
    ck_assert_int_eq(looks, 0);
    ck_assert_int_eq(leat_reader_chain_stats(reader, stats), 1);
    check(0, "source", 0, 0, 90);
    ck_assert_int_eq(stats[0].memory, 77);
    leat_reader_close(reader);
}
END_TEST

START_TEST(a_call_takes_the_clock_twice_however_many_samples_it_gives)
{
    timed_plan source = {.type.name = "source", .samples = 100};
    timed_plan top = {.type.name = "top"};
    leat_reader *reader =
        open_chain(timed_over(&top, timed_pipeline(&source, NULL, 0)));
    looks = 0;
    read_batches(reader, 5);
    ck_assert_int_eq(looks, 5 * 2 * 2);
    leat_reader_close(reader);
}
END_TEST

START_TEST(upstream_readers_of_one_have_numbers)
{
    timed_plan left = {.type.name = "source", .samples = 100, .next = 10};
    timed_plan right = {.type.name = "source", .samples = 100, .next = 1000};
    timed_plan map = {.type.name = "map", .next = 5};
    timed_plan join = {.type.name = "join", .next = 3};
    leat_pipeline *both[2] = {
        timed_pipeline(&left, NULL, 0),
        timed_over(&map, timed_pipeline(&right, NULL, 0))};
    leat_reader *reader = open_chain(timed_pipeline(&join, both, 2));
    leat_pipeline_unref(both[0]);
    leat_pipeline_unref(both[1]);
    read_batches(reader, 5);
    ck_assert_int_eq(leat_reader_chain_stats(reader, stats), 4);
    check(0, "join", 20, 15, 0);
    check(1, "join/0/source", 12, 30, 0);
    check(2, "join/1/map", 8, 10, 0);
    check(3, "join/1/map/source", 8, 2000, 0);
    leat_reader_close(reader);
}
END_TEST

/* Both kinds of join: what the first of its upstream readers deferred, and what
   the second did not. */
START_TEST(deferred_work_counts_where_it_is_done_and_once)
{
    timed_plan left = {.type.name = "left",
                       .samples = 100,
                       .next = 10,
                       .materialize = 400,
                       .defers = 1};
    timed_plan right = {.type.name = "right", .samples = 100, .next = 20};
    timed_plan join = {
        .type.name = "join", .next = 1, .materialize = 2, .defers = 1};
    timed_plan map = {.type.name = "map", .materialize = 60, .defers = 1};
    leat_pipeline *both[2] = {timed_pipeline(&left, NULL, 0),
                              timed_pipeline(&right, NULL, 0)};
    leat_reader *reader =
        open_chain(timed_over(&map, timed_pipeline(&join, both, 2)));
    leat_pipeline_unref(both[0]);
    leat_pipeline_unref(both[1]);
    read_batches(reader, 4);
    ck_assert_int_eq(leat_reader_chain_stats(reader, stats), 4);
    check(0, "map", 16, 4 * 60, 0);
    check(1, "map/join", 16, 4 + 2 * 2, 0);
    check(2, "map/join/0/left", 8, 2 * 10 + 2 * 400, 0);
    check(3, "map/join/1/right", 8, 2 * 20, 0);
    leat_reader_close(reader);
}
END_TEST

START_TEST(all_other_operations_are_measured)
{
    timed_plan source = {.type.name = "source",
                         .samples = 100,
                         .read_at = 70,
                         .seek = 500,
                         .skip = 9000,
                         .advise = 20000};
    timed_plan map = {.type.name = "map",
                      .read_at = 1,
                      .seek = 30,
                      .skip = 400,
                      .advise = 6000,
                      .materialize = 10000,
                      .defers = 1};
    leat_reader *reader =
        open_chain(timed_over(&map, timed_pipeline(&source, NULL, 0)));
    const leat_position at[BATCH] = {{0, 5}, {0, 1}, {1, 99}, {0, 0}};
    samples own;
    int got;
    int64_t skipped;
    init_samples(&own);
    ck_assert_int_eq(leat_reader_read_at(reader, at, own.sample, BATCH, &got),
                     LEAT_OK);
    leat_reader_advise(reader, at, BATCH);
    ck_assert_int_eq(leat_reader_seek(reader, at[0], NULL), LEAT_OK);
    ck_assert_int_eq(leat_reader_skip(reader, 7, &skipped), LEAT_OK);
    ck_assert_int_eq(leat_reader_chain_stats(reader, stats), 2);
    check(0, "map", BATCH, 1 + 30 + 400 + 6000 + 10000, 0);
    check(1, "map/source", BATCH, 70 + 500 + 9000 + 20000, 0);
    finish_samples(&own);
    leat_reader_close(reader);
}
END_TEST

static leat_reader *other_chain;

static void read_other_chain(leat_reader *reader)
{
    (void)reader;
    read_batches(other_chain, 1);
}

START_TEST(another_chain_is_work_of_the_reader_that_reads_it)
{
    timed_plan other = {.type.name = "other", .samples = 100, .next = 600};
    timed_plan above = {.type.name = "above", .next = 4};
    timed_plan source = {.type.name = "source",
                         .samples = 100,
                         .next = 30,
                         .also = read_other_chain};
    timed_plan top = {.type.name = "top", .next = 2};
    other_chain =
        open_chain(timed_over(&above, timed_pipeline(&other, NULL, 0)));
    leat_reader *reader =
        open_chain(timed_over(&top, timed_pipeline(&source, NULL, 0)));
    read_batches(reader, 2);
    ck_assert_int_eq(leat_reader_chain_stats(reader, stats), 2);
    check(0, "top", 8, 4, 0);
    check(1, "top/source", 8, 2 * (30 + 600 + 4), 0);
    ck_assert_int_eq(leat_reader_chain_stats(other_chain, stats), 2);
    check(0, "above", 8, 8, 0);
    check(1, "above/other", 8, 1200, 0);
    leat_reader_close(reader);
    leat_reader_close(other_chain);
}
END_TEST

static void *wait_for_source(void *reader)
{
    leat_reader_add_blocked(reader, 44);
    leat_reader_add_blocked(reader, -44);
    return NULL;
}

static void wait_on_a_thread(leat_reader *reader)
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_source, reader), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

START_TEST(a_wait_on_another_thread_takes_nothing_from_the_call)
{
    timed_plan source = {.type.name = "source",
                         .samples = 100,
                         .next = 100,
                         .also = wait_on_a_thread};
    timed_plan top = {.type.name = "top"};
    leat_reader *reader =
        open_chain(timed_over(&top, timed_pipeline(&source, NULL, 0)));
    read_batches(reader, 1);
    leat_reader_chain_stats(reader, stats);
    check(1, "top/source", BATCH, 100, 44);
    leat_reader_close(reader);
}
END_TEST

static leat_reader *delivers;

static void report_for_another(leat_reader *reader)
{
    (void)reader;
    leat_reader_add_blocked(delivers, 44);
}

START_TEST(a_wait_of_another_reader_takes_nothing_from_the_call)
{
    timed_plan source = {.type.name = "source",
                         .samples = 100,
                         .next = 100,
                         .also = report_for_another};
    timed_plan top = {.type.name = "top", .next = 50};
    delivers = open_chain(timed_over(&top, timed_pipeline(&source, NULL, 0)));
    read_batches(delivers, 1);
    leat_reader_chain_stats(delivers, stats);
    check(0, "top", BATCH, 50, 44);
    check(1, "top/source", BATCH, 100, 0);
    leat_reader_close(delivers);
}
END_TEST

START_TEST(readers_that_one_opens_itself_are_one)
{
    timed_plan source = {
        .type.name = "source", .samples = 100, .next = 10, .memory = 1000};
    timed_plan map = {.type.name = "map", .next = 1};
    timed_plan opener = {.type.name = "opener", .samples = 100, .memory = 24};
    leat_pipeline *element = timed_over(&map, timed_pipeline(&source, NULL, 0));
    leat_reader *reader = open_chain(timed_pipeline(&opener, NULL, 0));
    leat_reader *inner[3];
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(leat_open_again(&opener.open, element, i, &inner[i]),
                         LEAT_OK);
        read_batches(inner[i], 1);
    }
    leat_reader_close(inner[1]);
    ck_assert_int_eq(leat_reader_chain_stats(reader, stats), 3);
    check(0, "opener", 0, 0, 0);
    check(1, "opener/map", 12, 3, 0);
    check(2, "opener/map/source", 12, 30, 0);
    ck_assert_int_eq(stats[0].memory, 24);
    ck_assert_int_eq(stats[1].memory, 0);
    ck_assert_int_eq(stats[2].memory, 2000);
    leat_reader_close(inner[2]);
    leat_reader_chain_stats(reader, stats);
    ck_assert_int_eq(stats[0].memory, 24);
    ck_assert_int_eq(stats[2].memory, 1000);
    leat_reader_close(inner[0]);
    leat_reader_chain_stats(reader, stats);
    check(2, "opener/map/source", 12, 30, 0);
    ck_assert_int_eq(stats[2].memory, 0);
    leat_reader_close(reader);
    leat_pipeline_unref(element);
}
END_TEST

/* A reader's `memory` never makes that of others smaller. */
START_TEST(memory_below_nothing_is_nothing)
{
    timed_plan source = {.type.name = "source", .samples = 1, .memory = -5};
    timed_plan top = {.type.name = "top", .memory = 1};
    leat_reader *reader =
        open_chain(timed_over(&top, timed_pipeline(&source, NULL, 0)));
    leat_reader_chain_stats(reader, stats);
    ck_assert_int_eq(stats[0].memory, 1);
    ck_assert_int_eq(stats[1].memory, 0);
    leat_reader_close(reader);
}
END_TEST

START_TEST(the_readers_beyond_are_the_others)
{
    enum { MANY = 20 };
    timed_plan source = {
        .type.name = "source", .samples = 100, .next = 10, .memory = 3};
    timed_plan join = {.type.name = "join"};
    leat_pipeline *all[MANY];
    int n = _i ? MANY : LEAT_MAX_READER_STATS - 2;
    for (int i = 0; i < n; i++)
        all[i] = timed_pipeline(&source, NULL, 0);
    leat_reader *reader = open_chain(timed_pipeline(&join, all, n));
    for (int i = 0; i < n; i++)
        leat_pipeline_unref(all[i]);
    read_batches(reader, 2 * n);
    int most = LEAT_MAX_READER_STATS;
    ck_assert_int_eq(leat_reader_chain_stats(reader, stats),
                     _i ? most : most - 1);
    check(1, "join/0/source", 2 * BATCH, 20, 0);
    check(most - 2, "join/13/source", 2 * BATCH, 20, 0);
    if (_i) {
        check(most - 1, "others", 2 * BATCH * (MANY - 14), 20 * (MANY - 14), 0);
        ck_assert_int_eq(stats[most - 1].memory, 3 * (MANY - 14));
    }
    leat_reader_close(reader);
}
END_TEST

/* Five names of 40 letters, of which the path has the end. */
START_TEST(of_a_long_path_the_end_is_left)
{
    enum { LONG = 5, LETTERS = 40 };
    static char name[LONG][LETTERS + 1];
    timed_plan plan[LONG];
    leat_pipeline *pipeline = NULL;
    char expected[LEAT_READER_PATH_MAX];
    memset(plan, 0, sizeof(plan));
    for (int i = 0; i < LONG; i++) {
        memset(name[i], 'a' + i, LETTERS);
        plan[i].type.name = name[i];
        plan[i].samples = 1;
        pipeline = pipeline ? timed_over(&plan[i], pipeline)
                            : timed_pipeline(&plan[i], NULL, 0);
    }
    leat_reader *reader = open_chain(pipeline);
    ck_assert_int_eq(leat_reader_chain_stats(reader, stats), LONG);
    snprintf(expected, sizeof(expected), "%s/%s/%s", name[4], name[3], name[2]);
    ck_assert_str_eq(stats[2].path, expected);
    snprintf(expected, sizeof(expected), "...d/%s/%s/%s", name[2], name[1],
             name[0]);
    ck_assert_str_eq(stats[4].path, expected);
    leat_reader_close(reader);
}
END_TEST

/* For several threads at once. */
typedef struct crowd {
    leat_reader *reader;
    timed_plan opener;
    leat_pipeline *element;
    atomic_bool over;
} crowd;

static void *read_at_random(void *argument)
{
    crowd *all = argument;
    const leat_position at[BATCH] = {{0, 5}, {0, 1}, {1, 99}, {0, 0}};
    samples own;
    init_samples(&own);
    for (int i = 0; i < 1000; i++) {
        int got;
        ck_assert_int_eq(
            leat_reader_read_at(all->reader, at, own.sample, BATCH, &got),
            LEAT_OK);
    }
    finish_samples(&own);
    return NULL;
}

static void *open_and_close(void *argument)
{
    crowd *all = argument;
    for (int i = 0; i < 300; i++) {
        leat_reader *inner;
        ck_assert_int_eq(
            leat_open_again(&all->opener.open, all->element, i, &inner),
            LEAT_OK);
        read_batches(inner, 1);
        leat_reader_close(inner);
    }
    return NULL;
}

static void *look(void *argument)
{
    crowd *all = argument;
    leat_reader_stats own[LEAT_MAX_READER_STATS];
    while (!atomic_load(&all->over))
        ck_assert_int_ge(leat_reader_chain_stats(all->reader, own), 2);
    return NULL;
}

START_TEST(threads_count_together)
{
    timed_plan source = {
        .type.name = "source", .samples = 100, .read_at = 7, .memory = 1};
    timed_plan element = {
        .type.name = "element", .samples = 100, .next = 3, .memory = 1};
    crowd all = {.opener = {.type.name = "opener", .read_at = 2, .memory = 1}};
    pthread_t thread[2 * THREADS + 1];
    all.element = timed_pipeline(&element, NULL, 0);
    all.reader =
        open_chain(timed_over(&all.opener, timed_pipeline(&source, NULL, 0)));
    for (int i = 0; i < 2 * THREADS + 1; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL,
                                        i == 0  ? look
                                        : i % 2 ? read_at_random
                                                : open_and_close,
                                        &all),
                         0);
    for (int i = 1; i < 2 * THREADS + 1; i++)
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    atomic_store(&all.over, true);
    ck_assert_int_eq(pthread_join(thread[0], NULL), 0);
    ck_assert_int_eq(leat_reader_chain_stats(all.reader, stats), 3);
    check(0, "opener", THREADS * 1000 * BATCH, THREADS * 1000 * 2, 0);
    check(1, "opener/source", THREADS * 1000 * BATCH, THREADS * 1000 * 7, 0);
    check(2, "opener/element", THREADS * 300 * BATCH, THREADS * 300 * 3, 0);
    ck_assert_int_eq(stats[2].memory, 0);
    leat_reader_close(all.reader);
    leat_pipeline_unref(all.element);
}
END_TEST

static leat_reader *asked;
static int is_asked[2], may_end[2]; /* pipes */
static timed_plan slow = {.type.name = "slow", .samples = 1};

/* `memory` of a reader that answers late: the chain's lock is held meanwhile.
 */
static int64_t answer_late(leat_reader *reader)
{
    char byte = 0;
    (void)reader;
    ck_assert_int_eq(write(is_asked[1], &byte, 1), 1);
    ck_assert_int_eq(read(may_end[0], &byte, 1), 1);
    return 9;
}

static void *ask(void *argument)
{
    leat_reader_stats own[LEAT_MAX_READER_STATS];
    (void)argument;
    leat_reader_chain_stats(asked, own);
    return NULL;
}

static int look_and_close_in_a_child(void)
{
    leat_reader_stats own[LEAT_MAX_READER_STATS];
    int n = leat_reader_chain_stats(asked, own);
    int is_right = n == 1 && own[0].memory == 0;
    leat_reader_close(asked);
    return is_right ? 0 : 1;
}

START_TEST(a_forked_child_waits_for_no_lock_of_its_parent)
{
    pthread_t thread;
    char byte = 0;
    int status;
    slow.memory = 1;
    asked = open_chain(timed_pipeline(&slow, NULL, 0));
    leat_reader_ops ops = *asked->ops;
    ops.memory = answer_late;
    asked->ops = &ops;
    ck_assert_int_eq(pipe(is_asked) | pipe(may_end), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, ask, NULL), 0);
    ck_assert_int_eq(read(is_asked[0], &byte, 1), 1);
    pid_t child = fork();
    if (child == 0)
        _exit(look_and_close_in_a_child());
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(write(may_end[1], &byte, 1), 1);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    leat_reader_close(asked);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reader_chain");
    TCase *tcase = tcase_create("reader_chain");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, each_reader_has_its_own_time);
    tcase_add_test(tcase, a_reader_alone_takes_no_clock);
    tcase_add_test(tcase,
                   a_call_takes_the_clock_twice_however_many_samples_it_gives);
    tcase_add_test(tcase, upstream_readers_of_one_have_numbers);
    tcase_add_test(tcase, deferred_work_counts_where_it_is_done_and_once);
    tcase_add_test(tcase, all_other_operations_are_measured);
    tcase_add_test(tcase, another_chain_is_work_of_the_reader_that_reads_it);
    tcase_add_test(tcase, a_wait_on_another_thread_takes_nothing_from_the_call);
    tcase_add_test(tcase, a_wait_of_another_reader_takes_nothing_from_the_call);
    tcase_add_test(tcase, readers_that_one_opens_itself_are_one);
    tcase_add_test(tcase, memory_below_nothing_is_nothing);
    tcase_add_loop_test(tcase, the_readers_beyond_are_the_others, 0, 2);
    tcase_add_test(tcase, of_a_long_path_the_end_is_left);
    tcase_add_test(tcase, threads_count_together);
    tcase_add_test(tcase, a_forked_child_waits_for_no_lock_of_its_parent);
    return suite_run(suite);
}
