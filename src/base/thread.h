/* thread.h: threads that block all signals and have names. */
#ifndef LEAT_BASE_THREAD_H
#define LEAT_BASE_THREAD_H

#include <leat/status.h>

#include <pthread.h>
#include <stdbool.h>

typedef struct leat__thread {
    pthread_t id;
    bool running;      /* started and not yet joined; the starter's */
    const void *owner; /* whom it works for; set before the start */
} leat__thread;

/*
 * Starts `body(argument)` under `name`, of at most 15 characters. Whoever
 * starts a thread joins it. Errors: LEAT_EIO, LEAT_ENOMEM.
 */
int leat__thread_start(leat__thread *thread, const char *name,
                       void *(*body)(void *), void *argument);
void leat__thread_join(leat__thread *thread); /* nothing if not running */

/* Whom the calling thread works for; NULL where leat did not start it. */
const void *leat__thread_owner(void);

/*
 * What the stack of a thread of leat's holds, whatever RLIMIT_STACK is: leat
 * itself takes less than LEAT__STACK_MIN, the rest is for callbacks.
 */
#define LEAT__STACK_BYTES ((size_t)1 << 20)
#define LEAT__STACK_MIN ((size_t)64 << 10)

/*
 * LEAT_ELIMIT, for `who`, where the calling thread has less than
 * LEAT__STACK_MIN of its stack left. Where that is unknown, as on a stack
 * that is not the thread's own, LEAT_OK.
 */
int leat__thread_check_stack(const char *who);

/*
 * From the first call to the second, which takes what the first returned,
 * pthread_cancel does not end the calling thread: the locks that it holds would
 * be held for ever. leat's own threads are never ended so.
 */
int leat__thread_disable_cancel(void);
void leat__thread_restore_cancel(int before);

/* Cores that this process may use: affinity and the cgroup's quota; >= 1. */
int leat__thread_cores(void);

/* How often the calling thread has slept so far. */
int64_t leat__thread_sleep_count(void);

/*
 * From now on the calling thread, when it is woken, waits until a core is free
 * instead of taking it from who runs: often the caller whom it works for. On
 * the only core the two would else change over at every batch.
 */
void leat__thread_use_batch_scheduling(void);

/*
 * A lock that is held for microseconds at most: who finds it taken looks again
 * a few times before it sleeps, as waking up costs more than that.
 */
int leat__mutex_init(pthread_mutex_t *mutex);

/*
 * Locks what is held for a microsecond or two: spins that long before it
 * sleeps, since sleeping and being woken cost more.
 */
void leat__mutex_lock_spinning(pthread_mutex_t *mutex);

/* A condition variable on the monotonic clock. */
int leat__cond_init(pthread_cond_t *cond);

#endif
