/* thread.h: threads that block all signals but those of a crash, and have
 * names. */
#ifndef LEAT_BASE_THREAD_H
#define LEAT_BASE_THREAD_H

#include <leat/status.h>

#include <pthread.h>
#include <stdbool.h>

typedef struct leat__thread {
    pthread_t id;
    bool running; /* started and not yet joined; used by the starter only */
    const void *owner; /* the object that it works for; set before the start */
} leat__thread;

/*
 * Starts `body(argument)` under `name`, of at most 15 characters. The starter
 * joins the thread. Errors: LEAT_EIO, LEAT_ENOMEM.
 */
int leat__thread_start(leat__thread *thread, const char *name,
                       void *(*body)(void *), void *argument);
void leat__thread_join(leat__thread *thread); /* does nothing if not running */

/* Whether leat started the calling thread, or it was declared to be leat's. */
bool leat__thread_is_own(void);

/* Declares the calling thread to be leat's: what a device makes current in it
 * stays, as in a thread that calls the device's runtime itself. */
void leat__thread_set_own(void);

/* The owner of the calling thread; NULL: leat did not start it. */
const void *leat__thread_owner(void);

/*
 * Makes the calling thread work for an owner for a while, so that threads which
 * a reader starts meanwhile do, too. Returns the one before.
 */
const void *leat__thread_set_owner(const void *value);

/*
 * Stack of leat's threads, independent of RLIMIT_STACK: leat itself uses less
 * than LEAT__STACK_MIN, and than leat__pipeline_stack says where it reads one;
 * the rest is for callbacks.
 */
#define LEAT__STACK_BYTES ((size_t)1 << 20)
#define LEAT__STACK_MIN ((size_t)64 << 10)

/*
 * LEAT_ELIMIT, naming the operation `who`, if the calling thread has less than
 * `needed` bytes of its stack left. LEAT_OK if that is unknown, as on a stack
 * that is not the thread's own.
 */
int leat__thread_check_stack(const char *who, size_t needed);

/* Cores that this process may use, by affinity and cgroup quota; at least 1. */
int leat__thread_cores(void);

/* For tests: as if there were so many; 0: those there are. */
void leat__thread_pretend_cores(int n);

/* The number of voluntary context switches of the calling thread so far. */
int64_t leat__thread_sleep_count(void);

/*
 * Sets SCHED_BATCH: when it is woken, the calling thread waits for a free core
 * instead of preempting a running thread, often the caller that it works for.
 * On a single core the two would otherwise switch at every batch.
 */
void leat__thread_use_batch_scheduling(void);

/*
 * Initialises an adaptive mutex, for locks held for microseconds: a contended
 * lock is retried a few times before the thread sleeps, since waking costs
 * more.
 */
int leat__mutex_init(pthread_mutex_t *mutex);

/* What a loop that waits for another core does between two looks. */
void leat__thread_pause(void);

/*
 * Locks a mutex that is held for a microsecond or two: spins that long before
 * it sleeps, since sleeping and waking cost more.
 */
void leat__mutex_lock_spinning(pthread_mutex_t *mutex);

/* A condition variable on the monotonic clock. */
int leat__cond_init(pthread_cond_t *cond);

#endif
