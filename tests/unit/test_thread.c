#include "base/memory.h"
#include "base/thread.h"
#include "support/suite.h"

#include <check.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* What a thread finds out about itself. */
typedef struct self_portrait {
    char name[16];
    sigset_t blocked;
    pthread_t id;
} self_portrait;

static void *look(void *argument)
{
    self_portrait *self = argument;
    pthread_getname_np(pthread_self(), self->name, sizeof(self->name));
    pthread_sigmask(SIG_BLOCK, NULL, &self->blocked);
    self->id = pthread_self();
    return NULL;
}

static self_portrait look_in_thread(const char *name)
{
    self_portrait found;
    leat__thread thread = {.running = 0};
    ck_assert_int_eq(leat__thread_start(&thread, name, look, &found), LEAT_OK);
    ck_assert_int_eq(thread.running, 1);
    leat__thread_join(&thread);
    ck_assert_int_eq(thread.running, 0);
    leat__thread_join(&thread);
    return found;
}

START_TEST(a_thread_can_be_declared_leats)
{
    ck_assert(!leat__thread_is_own());
    leat__thread_set_own();
    ck_assert(leat__thread_is_own());
}
END_TEST

START_TEST(a_thread_has_its_name)
{
    ck_assert_str_eq(look_in_thread("leat-reader").name, "leat-reader");
    ck_assert_str_eq(look_in_thread("leat-a-name-too-long").name,
                     "leat-a-name-too");
}
END_TEST

START_TEST(a_thread_leaves_signals_to_the_caller)
{
    sigset_t before;
    sigset_t after;
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    self_portrait found = look_in_thread("signals");
    const int signals[] = {SIGINT, SIGTERM, SIGUSR1, SIGALRM, SIGCHLD, SIGPIPE};
    const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        ck_assert_int_eq(sigismember(&found.blocked, signals[i]), 1);
        ck_assert_int_eq(sigismember(&after, signals[i]),
                         sigismember(&before, signals[i]));
    }
    for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
        ck_assert_int_eq(sigismember(&found.blocked, crashes[i]), 0);
    ck_assert(!pthread_equal(found.id, pthread_self()));
}
END_TEST

START_TEST(a_thread_that_cannot_start_is_not_running)
{
    self_portrait found;
    leat__thread thread = {.running = 0};
    leat__alloc_fail_at(0);
    ck_assert_int_eq(leat__thread_start(&thread, "none", look, &found),
                     LEAT_ENOMEM);
    ck_assert_int_eq(thread.running, 0);
    leat__thread_join(&thread);
}
END_TEST

START_TEST(the_cores_are_those_the_process_may_use)
{
    int before = leat__thread_cores();
    ck_assert_int_ge(before, 1);
    cpu_set_t all;
    cpu_set_t one;
    ck_assert_int_eq(sched_getaffinity(0, sizeof(all), &all), 0);
    ck_assert_int_le(before, CPU_COUNT(&all));
    int first = 0;
    while (!CPU_ISSET(first, &all))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
    ck_assert_int_eq(leat__thread_cores(), 1);
    ck_assert_int_eq(sched_setaffinity(0, sizeof(all), &all), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("thread");
    TCase *tcase = tcase_create("thread");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, a_thread_can_be_declared_leats);
    tcase_add_test(tcase, a_thread_has_its_name);
    tcase_add_test(tcase, a_thread_leaves_signals_to_the_caller);
    tcase_add_test(tcase, a_thread_that_cannot_start_is_not_running);
    tcase_add_test(tcase, the_cores_are_those_the_process_may_use);
    return suite_run(suite);
}
