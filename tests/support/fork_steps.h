/* fork_steps.h: forks before each instruction of a call. */
#ifndef LEAT_TESTS_FORK_STEPS_H
#define LEAT_TESTS_FORK_STEPS_H

#include "support/sanitizer.h"

#if defined(__x86_64__) && !IS_SANITIZED
#define HAS_FORK_STEPS 1
#else
#define HAS_FORK_STEPS 0
#endif

/*
 * Calls `act`, and forks before each of its instructions, as another thread
 * could; each child calls `body`, and has to exit with 0 within 2 seconds.
 * Returns the number of forks; below 0: a child did not, and was the last one.
 * `act` makes no system call, and neither allocates nor forks.
 */
int fork_at_each_step(void (*act)(void), void (*body)(void));

#endif
