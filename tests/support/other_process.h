/* other_process.h: another process, which holds what it has done until it is
 * stopped.
 */
#ifndef LEAT_TESTS_OTHER_PROCESS_H
#define LEAT_TESTS_OTHER_PROCESS_H

#include <sys/types.h>

typedef struct other_process {
    pid_t id;
    int stop; /* a pipe that it reads from */
} other_process;

/* Forks a process, and returns when `body` has returned in it. */
other_process other_process_start(void (*body)(const char *),
                                  const char *directory);

/* Ends it, without any tidying up; asserts that it did not fail. */
void other_process_stop(const other_process *other);

/* Both. */
void other_process_run(void (*body)(const char *), const char *directory);

#endif
