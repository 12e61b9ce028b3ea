/* fork.h: detects that a process was forked. */
#ifndef LEAT_BASE_FORK_H
#define LEAT_BASE_FORK_H

#include <pthread.h>

/*
 * Makes leat__fork_generation() count forks from now on. Call it before a
 * generation is recorded. Errors: LEAT_ENOMEM. Any thread.
 */
int leat__fork_watch(void);

/*
 * The number of forks between the process in which leat__fork_watch() first
 * succeeded and this one. What was made in another generation belongs to an
 * ancestor: its threads do not run here, and its locks may be held for ever.
 * One load. Any thread, and a forked child.
 */
unsigned leat__fork_generation(void);

/*
 * Between the two no other thread forks, after leat__fork_watch(): a child sees
 * all that the caller does, or nothing. The caller's signal handlers run after
 * it. Only for a few system calls that do not wait: nothing is locked,
 * allocated or logged there. Any thread.
 */
void leat__fork_hold(void);
void leat__fork_release(void);

/*
 * Resets `lock`, a static default mutex, in every child forked from now on: its
 * holder does not run there. The data that it protects must be consistent at
 * any moment. May be called repeatedly, for at most LOCKS_MAX locks.
 */
void leat__fork_reset_mutex(pthread_mutex_t *lock);

/*
 * Calls `function` in every child forked from now on, while that has a single
 * thread, and before handlers of the application, which may use leat. May be
 * called repeatedly, for at most FUNCTIONS_MAX functions, after
 * leat__fork_watch().
 */
void leat__fork_call_in_child(void (*function)(void));

#endif
