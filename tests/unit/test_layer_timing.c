/*
 * What depends on the moment: try_forward's deadline and cancel during
 * setup and restore.
 * The caller's clock is the test's own: it stands still but where the caller
 * sleeps or the test says so, and a sleep ends at its deadline at once. So a
 * deadline is met to the nanosecond, or it is not.
 */
#include "base/clock.h"
#include "support/bad_records.h"
#include "support/layer_fixture.h"
#include "support/scripted_source.h"
#include "support/suite.h"
#include "support/watchdog.h"

#include <check.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

enum { SECONDS = 60, MILLISECOND = 1000000 };

/* These are put in front of libc's by the linker. */
int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __real_pthread_cond_timedwait(pthread_cond_t *condition,
                                  pthread_mutex_t *lock,
                                  const struct timespec *when);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*body)(void *), void *argument);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_pthread_cond_timedwait(pthread_cond_t *condition,
                                  pthread_mutex_t *lock,
                                  const struct timespec *when);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*body)(void *), void *argument);

/* The caller's time, in nanoseconds; 0: it is the system's. */
static _Thread_local int64_t now;
static int64_t tick; /* by which each look at the clock advances it */
static int
    false_alarms; /* how many of the next sleeps end early, for nothing */
static int sleeps;

int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
    if (now == 0)
        return __real_clock_gettime(clock, out);
    now += tick;
    *out = leat__clock_timespec(now);
    return 0;
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *condition,
                                  pthread_mutex_t *lock,
                                  const struct timespec *when)
{
    if (now == 0)
        return __real_pthread_cond_timedwait(condition, lock, when);
    int64_t end = (int64_t)when->tv_sec * 1000000000 + when->tv_nsec;
    sleeps++;
    if (false_alarms > 0 && end > now) {
        false_alarms--;
        now += (end - now) / 2;
        return 0;
    }
    now = end > now ? end : now;
    return ETIMEDOUT;
}

/* Threads that are made while the gate is shut begin when it is opened. */
typedef struct held {
    void *(*body)(void *);
    void *argument;
} held;

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static int is_shut; /* the test thread's; it holds the gate meanwhile */

static void *pass_gate(void *argument)
{
    held self = *(held *)argument;
    free(argument);
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    return self.body(self.argument);
}

/* Setup and restore come by here at each thread and allocation, of which one
   cancels. */
static _Thread_local leat_data_layer *midway;
static _Thread_local int moments_left;

static void pass_moment(void)
{
    if (midway && moments_left-- == 0)
        leat_data_layer_cancel(midway);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*body)(void *), void *argument)
{
    pass_moment();
    if (!is_shut)
        return __real_pthread_create(thread, attributes, body, argument);
    held *one = malloc(sizeof(*one));
    ck_assert_ptr_nonnull(one);
    *one = (held){body, argument};
    return __real_pthread_create(thread, attributes, pass_gate, one);
}

static void shut_gate(int shut)
{
    is_shut = shut;
    if (shut)
        pthread_mutex_lock(&gate);
    else
        pthread_mutex_unlock(&gate);
}

static scripted_source source_now;
static leat_data_layer_options options;

static void set_up(void)
{
    const scripted_source fresh = SCRIPTED_SOURCE_INIT;
    const leat_data_layer_options defaults = LEAT_DATA_LAYER_OPTIONS_INIT;
    watchdog_start(SECONDS);
    source_now = fresh;
    options = defaults;
    options.batch_size = 3;
}

static void tear_down(void)
{
    watchdog_stop();
}

static int try_forward(layer_fixture *fixture, int timeout_ms)
{
    return leat_data_layer_try_forward(fixture->layer, fixture->top, 2,
                                       LEAT_HOST, timeout_ms);
}

/* A layer whose reader never gives what the next batch is made of. */
static layer_fixture open_blocked(leat_pipeline **pipeline)
{
    source_now.blocks = 4;
    *pipeline = scripted_source_pipeline(&source_now);
    layer_fixture fixture = layer_fixture_open(*pipeline, &options);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    scripted_source_await_blocked(&source_now);
    return fixture;
}

/* The caller's clock stands at a second. */
static void begin_time(void)
{
    now = 1000000000;
    tick = 0;
    false_alarms = 0;
    sleeps = 0;
}

/* Check itself measures a test by the clock. */
static void end(layer_fixture *fixture, leat_pipeline *pipeline)
{
    now = 0;
    layer_fixture_close(fixture);
    leat_pipeline_unref(pipeline);
}

static void expect_wait(layer_fixture *fixture, int timeout_ms, int64_t wanted)
{
    int64_t begin = now;
    ck_assert_int_eq(try_forward(fixture, timeout_ms), LEAT_AGAIN);
    ck_assert_int_eq(now - begin, wanted);
}

/* Some are so long that 32 bits do not hold their nanoseconds, or micro. */
static const int timeouts[] = {1, 2, 5, 999, 1000, 2500, 3000000, INT_MAX};
enum { TIMEOUTS = sizeof(timeouts) / sizeof(timeouts[0]) };

START_TEST(a_try_ends_at_its_deadline_neither_before_nor_after)
{
    leat_pipeline *pipeline;
    options.caller_helps = _i ? LEAT_CALLER_HELPS_AUTO : LEAT_CALLER_HELPS_OFF;
    layer_fixture fixture = open_blocked(&pipeline);
    begin_time();
    int64_t begin = now, sum = 0;
    for (int i = 0; i < TIMEOUTS; i++) {
        int64_t wanted = (int64_t)timeouts[i] * MILLISECOND;
        expect_wait(&fixture, timeouts[i], wanted);
        sum += wanted;
    }
    ck_assert_int_eq(now - begin, sum);
    end(&fixture, pipeline);
}
END_TEST

START_TEST(a_look_does_not_wait_at_all)
{
    leat_pipeline *pipeline;
    options.caller_helps = _i ? LEAT_CALLER_HELPS_AUTO : LEAT_CALLER_HELPS_OFF;
    layer_fixture fixture = open_blocked(&pipeline);
    begin_time();
    for (int i = 0; i < 3; i++) {
        expect_wait(&fixture, 0, 0);
        expect_wait(&fixture, -1, 0);
        expect_wait(&fixture, INT_MIN, 0);
    }
    ck_assert_int_eq(sleeps, 0);
    end(&fixture, pipeline);
}
END_TEST

/* Whoever is woken for nothing waits for the rest, and no longer. */
START_TEST(waits_that_end_early_add_up_to_the_deadline)
{
    leat_pipeline *pipeline;
    layer_fixture fixture = open_blocked(&pipeline);
    begin_time();
    for (int n = 1; n < 6; n++) {
        false_alarms = n;
        sleeps = 0;
        expect_wait(&fixture, 80, 80 * MILLISECOND);
        ck_assert_int_eq(false_alarms, 0);
        ck_assert_int_eq(sleeps, n + 1);
    }
    end(&fixture, pipeline);
}
END_TEST

static int lines;

static void hear(void *user, leat_log_level level, const char *line)
{
    (void)user;
    (void)level;
    (void)line;
    lines++;
}

/* Where somebody listens, a wait is one of several, each of a second. */
START_TEST(so_do_those_between_which_the_log_is_told)
{
    static const int waits[] = {999, 1000, 1001, 2000, 2500, 61000};
    leat_pipeline *pipeline;
    layer_fixture fixture = open_blocked(&pipeline);
    begin_time();
    lines = 0;
    leat_log_set(hear, NULL, LEAT_LOG_INFO);
    for (int i = 0; i < 6; i++)
        expect_wait(&fixture, waits[i], (int64_t)waits[i] * MILLISECOND);
    leat_log_set(NULL, NULL, LEAT_LOG_NONE);
    ck_assert_int_gt(lines, 0);
    end(&fixture, pipeline);
}
END_TEST

START_TEST(a_long_wait_is_told_every_ten_seconds)
{
    leat_pipeline *pipeline;
    layer_fixture fixture = open_blocked(&pipeline);
    begin_time();
    lines = 0;
    leat_log_set(hear, NULL, LEAT_LOG_INFO);
    /* At 1, 11, and so on until 61. */
    expect_wait(&fixture, 65000, (int64_t)65000 * MILLISECOND);
    leat_log_set(NULL, NULL, LEAT_LOG_NONE);
    ck_assert_int_eq(lines, 7);
    end(&fixture, pipeline);
}
END_TEST

/*
 * The workers do not get to run, and there is work for the caller beyond the
 * deadline: it ends the run at which that passes, and begins no other. So a try
 * is late by a run, of which a batch has seven; whoever only looks does none.
 */
START_TEST(a_caller_who_works_is_late_by_a_run_at_most)
{
    enum { TRIES_MAX = 100, LOOKS_A_RUN = 6, WAIT = 5 };
    static bad_records plan = {.count = 20, .tail = 1 << 20};
    int status = LEAT_AGAIN;
    int tries = 0;
    options.batch_size = 20;
    options.workers = 1;
    leat_pipeline *pipeline = bad_records_pipeline(&plan);
    shut_gate(1);
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    begin_time();
    tick = MILLISECOND;
    leat_stats stats = {.size = sizeof(stats)};
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(try_forward(&fixture, 0), LEAT_AGAIN);
    ck_assert_int_eq(leat_data_layer_stats(fixture.layer, &stats), LEAT_OK);
    ck_assert_int_eq(stats.helped_chunks, 0);
    for (; status == LEAT_AGAIN && tries < TRIES_MAX; tries++) {
        int64_t begin = now;
        status = try_forward(&fixture, WAIT);
        int64_t late = now - begin - (int64_t)WAIT * MILLISECOND;
        ck_assert_int_le(late, LOOKS_A_RUN * MILLISECOND);
        if (status == LEAT_AGAIN)
            ck_assert_int_ge(late, 0);
    }
    ck_assert_int_eq(status, LEAT_OK);
    ck_assert_int_gt(tries, 3);
    ck_assert_int_eq(leat_data_layer_stats(fixture.layer, &stats), LEAT_OK);
    ck_assert_int_ge(stats.helped_chunks, 7);
    shut_gate(0);
    end(&fixture, pipeline);
}
END_TEST

static void *alloc(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    pass_moment();
    return aligned_alloc(alignment, (bytes + alignment - 1) & -alignment);
}

static void take_back(void *user, void *memory, size_t bytes, size_t alignment)
{
    (void)user;
    (void)bytes;
    (void)alignment;
    free(memory);
}

/*
 * Setup, or restore where there is a token, ends with that, or else every
 * forward does. 0: it came too late.
 */
static int cancel_at(const leat_pipeline *pipeline, leat_token *token, int n,
                     int *was_started)
{
    leat_data_layer *layer;
    leat_blob *top;
    ck_assert_int_eq(leat_blob_create(&top, NULL), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options), 0);
    if (token)
        ck_assert_int_eq(leat_data_layer_setup(layer, &top, 1), LEAT_OK);
    midway = layer;
    moments_left = n;
    int status = token ? leat_data_layer_restore(layer, token)
                       : leat_data_layer_setup(layer, &top, 1);
    int was_cancelled = moments_left < 0;
    midway = NULL;
    ck_assert(status == LEAT_OK ||
              (was_cancelled && status == LEAT_ECANCELLED));
    for (int i = 0; i < 3 && was_cancelled && (token || status == 0); i++)
        ck_assert_int_eq(leat_data_layer_forward(layer, &top, 1, LEAT_HOST),
                         LEAT_ECANCELLED);
    *was_started += was_cancelled && status == LEAT_OK;
    leat_data_layer_destroy(layer);
    leat_blob_destroy(top);
    return was_cancelled;
}

static void cancel_everywhere(const leat_pipeline *pipeline, leat_token *token,
                              int way)
{
    static const leat_allocator allocator = {
        .size = sizeof(allocator), .alloc = alloc, .free = take_back};
    int was_started = 0;
    int n = 0;
    options.host_allocator = &allocator;
    options.workers = 2;
    options.caller_helps =
        way % 2 ? LEAT_CALLER_HELPS_AUTO : LEAT_CALLER_HELPS_OFF;
    options.reader_thread = way / 2 ? LEAT_READER_ON : LEAT_READER_OFF;
    while (cancel_at(pipeline, token, n, &was_started))
        n++;
    /* Of the threads at least, the last ones come too late for the call. */
    ck_assert_int_gt(n, 2);
    ck_assert_int_gt(was_started, 0);
}

START_TEST(a_layer_cancelled_in_the_midst_of_setup_gives_nothing)
{
    leat_pipeline *pipeline = layer_fixture_pipeline();
    cancel_everywhere(pipeline, NULL, _i);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(a_layer_cancelled_in_the_midst_of_restore_gives_nothing)
{
    leat_pipeline *pipeline = layer_fixture_pipeline();
    leat_token token;
    leat_token_init(&token);
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_save(fixture.layer, &token), LEAT_OK);
    layer_fixture_close(&fixture);
    cancel_everywhere(pipeline, &token, _i);
    leat_token_finish(&token);
    leat_pipeline_unref(pipeline);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layer_timing");
    TCase *tcase = tcase_create("layer_timing");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 2 * SECONDS);
    tcase_add_loop_test(
        tcase, a_try_ends_at_its_deadline_neither_before_nor_after, 0, 2);
    tcase_add_loop_test(tcase, a_look_does_not_wait_at_all, 0, 2);
    tcase_add_test(tcase, waits_that_end_early_add_up_to_the_deadline);
    tcase_add_test(tcase, so_do_those_between_which_the_log_is_told);
    tcase_add_test(tcase, a_long_wait_is_told_every_ten_seconds);
    tcase_add_test(tcase, a_caller_who_works_is_late_by_a_run_at_most);
    tcase_add_loop_test(
        tcase, a_layer_cancelled_in_the_midst_of_setup_gives_nothing, 0, 4);
    tcase_add_loop_test(
        tcase, a_layer_cancelled_in_the_midst_of_restore_gives_nothing, 0, 4);
    return suite_run(suite);
}
