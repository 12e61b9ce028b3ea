#include "support/child.h"

#include <leat.h>

#include <check.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* The leak sanitizer brings it. */
__attribute__((weak)) int __lsan_do_recoverable_leak_check(void);

/* The thread sanitizer asks for it: children here start threads too. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "die_after_fork=0";
}

void child_fail(const char *file, int line, const char *condition)
{
    fprintf(stderr, "%s:%d: in the child: %s; last error: %s\n", file, line,
            condition, leat_last_error());
    _exit(1);
}

static void await_child(pid_t child)
{
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status), "the child died of signal %d",
                  WTERMSIG(status));
    ck_assert_msg(WEXITSTATUS(status) == 0, "the child exited with %d",
                  WEXITSTATUS(status));
}

static void run(void (*body)(void *argument), void *argument,
                int (*count_leaks)(void))
{
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        alarm(CHILD_SECONDS);
        body(argument);
        _exit(count_leaks && count_leaks() ? 2 : 0);
    }
    await_child(child);
}

void child_run(void (*body)(void *argument), void *argument)
{
    run(body, argument, __lsan_do_recoverable_leak_check);
}

void child_run_amid_threads(void (*body)(void *argument), void *argument)
{
    run(body, argument, NULL);
}
