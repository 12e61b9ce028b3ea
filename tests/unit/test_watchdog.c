#include "base/thread.h"
#include "support/suite.h"
#include "support/watchdog.h"

#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t taken = PTHREAD_MUTEX_INITIALIZER;

static void *wait_for_ever(void *argument)
{
    pthread_mutex_lock(&taken);
    pthread_mutex_unlock(&taken);
    return argument;
}

static void hang(void)
{
    leat__thread thread = {0};
    pthread_mutex_lock(&taken);
    watchdog_start(1);
    watchdog_renew();
    if (!leat__thread_start(&thread, "leat-stuck", wait_for_ever, NULL))
        leat__thread_join(&thread);
    _exit(0);
}

START_TEST(a_test_that_hangs_shows_all_threads_and_aborts)
{
    static char text[65536];
    int ends[2], result;
    size_t size = 0;
    ssize_t n;
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        hang();
    }
    close(ends[1]);
    while ((n = read(ends[0], text + size, sizeof(text) - 1 - size)) > 0)
        size += (size_t)n;
    close(ends[0]);
    ck_assert_int_eq(waitpid(child, &result, 0), child);
    /* A sanitizer may put a status of its own in the signal's place. */
    ck_assert_msg(!WIFEXITED(result) || WEXITSTATUS(result) != 0, "%s", text);
    ck_assert_msg(strstr(text, "leat-stuck") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "wait_for_ever") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "leat__thread_join") != NULL, "%s", text);
}
END_TEST

START_TEST(one_that_ends_in_time_is_left_alone)
{
    for (int i = 0; i < 3; i++) {
        watchdog_start(100);
        watchdog_stop();
    }
    watchdog_stop();
}
END_TEST

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

START_TEST(one_that_goes_on_has_its_time_for_each_part)
{
    const struct timespec moment = {0, 1000000};
    double begin = seconds_now();
    watchdog_start(3);
    while (seconds_now() < begin + 3.2) {
        nanosleep(&moment, NULL);
        watchdog_renew();
    }
    watchdog_stop();
}
END_TEST

START_TEST(a_test_has_more_time_than_check_gives_it)
{
    const char *seconds = getenv("CK_DEFAULT_TIMEOUT");
    ck_assert_ptr_nonnull(seconds);
    ck_assert_int_gt(atoi(seconds), 4);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("watchdog");
    TCase *tcase = tcase_create("watchdog");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, a_test_that_hangs_shows_all_threads_and_aborts);
    tcase_add_test(tcase, one_that_ends_in_time_is_left_alone);
    tcase_add_test(tcase, one_that_goes_on_has_its_time_for_each_part);
    tcase_add_test(tcase, a_test_has_more_time_than_check_gives_it);
    return suite_run(suite);
}
