#include "support/child.h"

#include <leat.h>

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
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

/* Whether a thread of this process runs, or is about to, besides the caller. */
static int is_running(const char *thread)
{
    char path[64], state = 'S';
    snprintf(path, sizeof(path), "/proc/self/task/%.16s/stat", thread);
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    (void)!fscanf(file, "%*d (%*[^)]) %c", &state);
    fclose(file);
    return state == 'R' && atoi(thread) != gettid();
}

/*
 * Waits until all other threads sleep, a second at most: a lock of a
 * sanitizer's allocator that one holds at the fork is held for ever in the
 * child.
 */
static void await_rest(void)
{
    const struct timespec pause = {0, 1000000};
    int running = 1;
    for (int i = 0; i < 1000 && running; i++) {
        DIR *threads = opendir("/proc/self/task");
        running = 0;
        for (struct dirent *one; threads && (one = readdir(threads));)
            running |= one->d_name[0] != '.' && is_running(one->d_name);
        if (threads)
            closedir(threads);
        if (running)
            nanosleep(&pause, NULL);
    }
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
    await_rest();
    run(body, argument, __lsan_do_recoverable_leak_check);
}

void child_run_amid_threads(void (*body)(void *argument), void *argument)
{
    run(body, argument, NULL);
}
