/* watchdog.h: a test that hangs fails, and shows where every thread stands. */
#ifndef LEAT_TESTS_WATCHDOG_H
#define LEAT_TESTS_WATCHDOG_H

/*
 * Unless watchdog_stop is called within `seconds`, names and stacks of all
 * threads go to stderr, and the process aborts. One at a time; a fork does not
 * inherit it. Threads that block all signals are shown too.
 */
void watchdog_start(int seconds);
void watchdog_stop(void);

/* Its seconds begin anew: called between the parts of long work. */
void watchdog_renew(void);

#endif
