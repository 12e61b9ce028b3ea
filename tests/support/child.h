/* child.h: parts of tests that run in a forked child. */
#ifndef LEAT_TESTS_CHILD_H
#define LEAT_TESTS_CHILD_H

/*
 * Forks once the process's other threads sleep; the child runs
 * `body(argument)`, looks for leaks where a sanitizer can tell them, and exits.
 * Fails the test unless the child ends well, which it has CHILD_SECONDS for:
 * one that hangs is killed by SIGALRM.
 */
#define CHILD_SECONDS 60
void child_run(void (*body)(void *argument), void *argument);

/*
 * The same at once, and without a look for leaks: what only a thread of the
 * parent's knew at the fork, such as what a stream of a device was just doing,
 * would be one.
 */
void child_run_amid_threads(void (*body)(void *argument), void *argument);

/* For the child: ends it with a message unless the condition holds. */
#define child_check(condition)                                                 \
    ((condition) ? (void)0 : child_fail(__FILE__, __LINE__, #condition))
void child_fail(const char *file, int line, const char *condition)
    __attribute__((noreturn));

#endif
