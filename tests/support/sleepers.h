/*
 * sleepers.h: who goes to sleep, and who is woken, for tests that are linked
 * with --wrap of pthread_cond_wait, _signal and _broadcast. A thread counts as
 * asleep once it has released the lock inside pthread_cond_wait, so no schedule
 * is left to chance: whoever gets that lock now finds it asleep.
 */
#ifndef LEAT_TESTS_SLEEPERS_H
#define LEAT_TESTS_SLEEPERS_H

/* Wake-ups by the calling thread. */
extern _Thread_local int sleepers_signals, sleepers_broadcasts;

/* All counts are 0. */
void sleepers_reset(void);

/* Waits that any thread has begun. */
int sleepers_waits(void);

/* Returns when so many waits have begun. */
void sleepers_await(int waits);

/* From now on the calling thread, the only one that does so, wakes nobody; then
   all at once whom it would have woken. */
void sleepers_hold_back(void);
void sleepers_let_go(void);

#endif
