/* test_fork.c: a forked child is told from its parent. */
#include "base/fork.h"
#include "support/suite.h"

#include <leat/status.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

START_TEST(a_child_is_of_another_generation)
{
    ck_assert_int_eq(leat__fork_watch(), LEAT_OK);
    unsigned parent = leat__fork_generation();
    pid_t child = fork();
    if (child == 0)
        _exit(leat__fork_generation() == parent + 1 ? 0 : 1);
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_uint_eq(leat__fork_generation(), parent);
}
END_TEST

START_TEST(watching_twice_counts_once)
{
    ck_assert_int_eq(leat__fork_watch(), LEAT_OK);
    ck_assert_int_eq(leat__fork_watch(), LEAT_OK);
    unsigned parent = leat__fork_generation();
    pid_t child = fork();
    if (child == 0)
        _exit(leat__fork_generation() == parent + 1 ? 0 : 1);
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
END_TEST

static volatile sig_atomic_t forks; /* of a handler's, that ended well */

static void fork_here(int number)
{
    (void)number;
    int status = -1;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    if (waitpid(child, &status, 0) == child && status == 0)
        forks++;
}

START_TEST(a_handler_that_forks_runs_after_a_hold)
{
    ck_assert_int_eq(leat__fork_watch(), LEAT_OK);
    struct sigaction action = {.sa_handler = fork_here};
    ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
    forks = 0;
    leat__fork_hold();
    raise(SIGUSR1);
    ck_assert_int_eq(forks, 0);
    leat__fork_release();
    ck_assert_int_eq(forks, 1);
    raise(SIGUSR1);
    ck_assert_int_eq(forks, 2);
}
END_TEST

START_TEST(a_fork_keeps_the_signal_mask)
{
    ck_assert_int_eq(leat__fork_watch(), LEAT_OK);
    sigset_t mask, found;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR2);
    ck_assert_int_eq(pthread_sigmask(SIG_SETMASK, &mask, NULL), 0);
    pid_t child = fork();
    ck_assert_int_eq(pthread_sigmask(SIG_SETMASK, NULL, &found), 0);
    bool is_same = sigismember(&found, SIGUSR2) == 1 &&
                   sigismember(&found, SIGUSR1) == 0 &&
                   sigismember(&found, SIGTERM) == 0;
    if (child == 0)
        _exit(is_same ? 0 : 1);
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(is_same && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
END_TEST

static pthread_mutex_t application = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool is_over;

static void lock_application(void)
{
    pthread_mutex_lock(&application);
}

static void unlock_application(void)
{
    pthread_mutex_unlock(&application);
}

static void *hold_under_a_lock(void *unused)
{
    while (!atomic_load(&is_over)) {
        lock_application();
        leat__fork_hold();
        leat__fork_release();
        unlock_application();
    }
    return unused;
}

/* Before main, as a static object of C++ does. */
__attribute__((constructor)) static void register_handlers(void)
{
    (void)pthread_atfork(lock_application, unlock_application,
                         unlock_application);
}

/* Registered before leat was used; under its lock other threads use leat. */
START_TEST(the_application_has_handlers_with_a_lock)
{
    pthread_t thread;
    ck_assert_int_eq(leat__fork_watch(), LEAT_OK);
    ck_assert_int_eq(pthread_create(&thread, NULL, hold_under_a_lock, NULL), 0);
    for (int i = 0; i < 300; i++) {
        int status = -1;
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_int_eq(status, 0);
    }
    atomic_store(&is_over, true);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}
END_TEST

static void empty_mask(void)
{
    sigset_t none;
    sigemptyset(&none);
    (void)pthread_sigmask(SIG_SETMASK, &none, NULL);
}

START_TEST(what_the_applications_handler_unblocks_stays_unblocked)
{
    sigset_t mask;
    ck_assert_int_eq(pthread_atfork(NULL, NULL, empty_mask), 0);
    ck_assert_int_eq(leat__fork_watch(), LEAT_OK);
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    ck_assert_int_eq(pthread_sigmask(SIG_SETMASK, &mask, NULL), 0);
    pid_t child = fork();
    if (child == 0) {
        (void)pthread_sigmask(SIG_SETMASK, NULL, &mask);
        _exit(sigismember(&mask, SIGUSR1));
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fork");
    TCase *tcase = tcase_create("fork");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, a_child_is_of_another_generation);
    tcase_add_test(tcase, watching_twice_counts_once);
    tcase_add_test(tcase, a_handler_that_forks_runs_after_a_hold);
    tcase_add_test(tcase, a_fork_keeps_the_signal_mask);
    tcase_add_test(tcase, the_application_has_handlers_with_a_lock);
    tcase_add_test(tcase,
                   what_the_applications_handler_unblocks_stays_unblocked);
    return suite_run(suite);
}
