#include "support/condition_spy.h"

#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { HELD_MAX = 100 };

/* These are put in front of libc's by the linker. */
int __real_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock);
int __real_pthread_cond_signal(pthread_cond_t *condition);
int __real_pthread_cond_broadcast(pthread_cond_t *condition);
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock);
int __wrap_pthread_cond_signal(pthread_cond_t *condition);
int __wrap_pthread_cond_broadcast(pthread_cond_t *condition);

_Thread_local int condition_spy_signals, condition_spy_broadcasts;
static atomic_int waits;
static _Thread_local int holds_back;
static pthread_cond_t *held[HELD_MAX]; /* of the thread that holds back */
static int nheld;

int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock)
{
    atomic_fetch_add(&waits, 1);
    return __real_pthread_cond_wait(condition, lock);
}

static void hold_back(pthread_cond_t *condition)
{
    ck_assert_int_lt(nheld, HELD_MAX);
    held[nheld++] = condition;
}

int __wrap_pthread_cond_signal(pthread_cond_t *condition)
{
    condition_spy_signals++;
    if (!holds_back)
        return __real_pthread_cond_signal(condition);
    hold_back(condition);
    return 0;
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *condition)
{
    condition_spy_broadcasts++;
    if (!holds_back)
        return __real_pthread_cond_broadcast(condition);
    hold_back(condition);
    return 0;
}

void condition_spy_reset(void)
{
    atomic_store(&waits, 0);
    condition_spy_signals = condition_spy_broadcasts = 0;
}

int condition_spy_waits(void)
{
    return atomic_load(&waits);
}

void condition_spy_await(int n)
{
    while (atomic_load(&waits) < n)
        sched_yield();
}

void condition_spy_hold_back(void)
{
    holds_back = 1;
}

void condition_spy_let_go(void)
{
    holds_back = 0;
    for (int i = 0; i < nheld; i++)
        __real_pthread_cond_broadcast(held[i]);
    nheld = 0;
}
