/*
 * condition_spy.h: counts waits and wake-ups of condition variables, for tests
 * that are linked with --wrap of pthread_cond_wait, _signal and _broadcast. A
 * thread counts as asleep once pthread_cond_wait has released its lock: a test
 * that then takes the lock finds it asleep, whatever the schedule.
 */
#ifndef LEAT_TESTS_CONDITION_SPY_H
#define LEAT_TESTS_CONDITION_SPY_H

/* Wake-ups by the calling thread. */
extern _Thread_local int condition_spy_signals, condition_spy_broadcasts;

/* All counts are 0. */
void condition_spy_reset(void);

/* Waits that any thread has begun. */
int condition_spy_waits(void);

/* Returns when so many waits have begun. */
void condition_spy_await(int waits);

/* From now on the calling thread, the only one that does so, wakes nobody; then
   all at once whom it would have woken. */
void condition_spy_hold_back(void);
void condition_spy_let_go(void);

#endif
