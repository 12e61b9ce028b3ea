/* suite.h: runs a program's tests. */
#ifndef LEAT_TESTS_SUITE_H
#define LEAT_TESTS_SUITE_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs the suite and frees it; what main returns. */
static inline int suite_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/*
 * What `look` returns, with which main ends unless it is 0. Check forks, and
 * few devices survive a fork, so that a look at one has a process of its own;
 * with CK_FORK=no there are no others, which a tool that checks kernels need
 * not follow.
 */
static inline int suite_look_first(int (*look)(void))
{
    const char *fork_word = getenv("CK_FORK");
    int status;
    if (fork_word && strcmp(fork_word, "no") == 0)
        return look();
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        exit(look());
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return EXIT_FAILURE;
    return WEXITSTATUS(status);
}

#endif
