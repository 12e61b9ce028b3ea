#include "base/parallel_for.h"
#include "support/suite.h"

#include <leat/ext/reader.h>

#include <check.h>
#include <pthread.h>
#include <signal.h>

enum { CALLS = 8 };

static int count(int i, void *context)
{
    int *calls = context;
    calls[i]++;
    return LEAT_OK;
}

START_TEST(it_calls_once_for_each_index)
{
    int calls[CALLS + 1] = {0};
    ck_assert_int_eq(leat__parallel_for("test", CALLS, count, calls), LEAT_OK);
    for (int i = 0; i < CALLS; i++)
        ck_assert_int_eq(calls[i], 1);
    ck_assert_int_eq(calls[CALLS], 0);
    ck_assert_int_eq(leat__parallel_for("test", 0, count, calls), LEAT_OK);
}
END_TEST

/* Nobody passes it alone. */
static int meet(int i, void *context)
{
    (void)i;
    pthread_barrier_wait(context);
    return LEAT_OK;
}

START_TEST(the_calls_run_at_the_same_time)
{
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, CALLS);
    ck_assert_int_eq(leat__parallel_for("test", CALLS, meet, &barrier),
                     LEAT_OK);
    pthread_barrier_destroy(&barrier);
}
END_TEST

static int fail_from_three(int i, void *context)
{
    count(i, context);
    return i < 3 ? LEAT_OK : leat_error(LEAT_EDATA, "call %d has failed", i);
}

START_TEST(the_first_error_reaches_the_caller_with_its_line)
{
    int calls[CALLS] = {0};
    ck_assert_int_eq(leat__parallel_for("test", CALLS, fail_from_three, calls),
                     LEAT_EDATA);
    ck_assert_str_eq(leat_last_error(), "call 3 has failed");
    for (int i = 0; i < CALLS; i++)
        ck_assert_int_eq(calls[i], 1);
}
END_TEST

static int look_at_signals(int i, void *context)
{
    (void)i;
    (void)context;
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    return sigismember(&blocked, SIGINT) && sigismember(&blocked, SIGTERM)
               ? LEAT_OK
               : leat_error(LEAT_EDATA, "a signal would end the thread");
}

START_TEST(signals_stay_with_the_caller)
{
    sigset_t blocked;
    ck_assert_int_eq(leat__parallel_for("test", 2, look_at_signals, NULL),
                     LEAT_OK);
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    ck_assert(!sigismember(&blocked, SIGINT));
}
END_TEST

static int note_thread(int i, void *context)
{
    pthread_t *threads = context;
    threads[i] = pthread_self();
    return i ? look_at_signals(i, NULL) : LEAT_OK;
}

START_TEST(a_caller_that_helps_makes_the_first_call)
{
    pthread_t threads[CALLS];
    pthread_barrier_t barrier;
    int calls[CALLS] = {0};
    ck_assert_int_eq(
        leat__parallel_for_helped("test", CALLS, note_thread, threads),
        LEAT_OK);
    ck_assert(pthread_equal(threads[0], pthread_self()));
    for (int i = 1; i < CALLS; i++)
        ck_assert(!pthread_equal(threads[i], pthread_self()));
    ck_assert_int_eq(leat__parallel_for_helped("test", 1, note_thread, threads),
                     LEAT_OK);
    ck_assert_int_eq(leat__parallel_for_helped("test", 0, note_thread, threads),
                     LEAT_OK);
    pthread_barrier_init(&barrier, NULL, CALLS);
    ck_assert_int_eq(leat__parallel_for_helped("test", CALLS, meet, &barrier),
                     LEAT_OK);
    pthread_barrier_destroy(&barrier);
    ck_assert_int_eq(
        leat__parallel_for_helped("test", CALLS, fail_from_three, calls),
        LEAT_EDATA);
    ck_assert_str_eq(leat_last_error(), "call 3 has failed");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("parallel_for");
    TCase *tcase = tcase_create("parallel_for");
    tcase_add_test(tcase, it_calls_once_for_each_index);
    tcase_add_test(tcase, the_calls_run_at_the_same_time);
    tcase_add_test(tcase, the_first_error_reaches_the_caller_with_its_line);
    tcase_add_test(tcase, signals_stay_with_the_caller);
    tcase_add_test(tcase, a_caller_that_helps_makes_the_first_call);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
