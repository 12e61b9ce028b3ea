/*
 * DESIGN. An event count is two atomics and a condition variable. A waiter adds
 * itself to the sleepers, then checks the events; a waker adds an event, then
 * checks the sleepers. These accesses are sequentially consistent, so at least
 * one of the two sees the other. The lock is taken only to sleep and to wake,
 * and no other lock under it.
 */
#include "layer/wakeup.h"
#include "base/clock.h"
#include "base/queue.h"
#include "base/thread.h"

#include <errno.h>

int leat__event_count_init(leat__event_count *count)
{
    int status = leat__mutex_init(&count->lock);
    if (status)
        return status;
    status = leat__cond_init(&count->woken);
    if (status)
        pthread_mutex_destroy(&count->lock);
    return status;
}

void leat__event_count_finish(leat__event_count *count)
{
    pthread_cond_destroy(&count->woken);
    pthread_mutex_destroy(&count->lock);
}

static int sleep_until(leat__event_count *count, int64_t deadline)
{
    if (deadline == LEAT__FOREVER)
        return pthread_cond_wait(&count->woken, &count->lock);
    struct timespec when = leat__clock_timespec(deadline);
    return pthread_cond_timedwait(&count->woken, &count->lock, &when);
}

int leat__event_count_wait(leat__event_count *count, int64_t ticket,
                           int64_t deadline)
{
    int code = 0;
    pthread_mutex_lock(&count->lock);
    atomic_fetch_add(&count->sleepers, 1);
    while (atomic_load(&count->events) == ticket && !count->closed &&
           code != ETIMEDOUT)
        code = sleep_until(count, deadline);
    atomic_fetch_sub(&count->sleepers, 1);
    bool closed = count->closed;
    pthread_mutex_unlock(&count->lock);
    return closed ? LEAT_ECANCELLED : LEAT_OK;
}

/* Adds an event; returns whether a thread sleeps on the condition. */
static bool has_sleepers(leat__event_count *count)
{
    atomic_fetch_add(&count->events, 1);
    if (atomic_load(&count->sleepers) == 0)
        return false;
    pthread_mutex_lock(&count->lock);
    bool result = atomic_load(&count->sleepers) > 0;
    pthread_mutex_unlock(&count->lock);
    return result;
}

void leat__event_count_wake_one(leat__event_count *count)
{
    if (has_sleepers(count))
        pthread_cond_signal(&count->woken);
}

void leat__event_count_wake_all(leat__event_count *count)
{
    if (has_sleepers(count))
        pthread_cond_broadcast(&count->woken);
}

void leat__event_count_close(leat__event_count *count)
{
    pthread_mutex_lock(&count->lock);
    count->closed = true;
    pthread_cond_broadcast(&count->woken);
    pthread_mutex_unlock(&count->lock);
}

int leat__wake_threshold(int circulating, bool is_alone)
{
    int half = (circulating + 1) / 2;
    int n = half < circulating - 2 ? half : circulating - 2;
    return is_alone && n > 1 ? n : 1;
}

/* Batches over which the caller's pace is measured. */
enum { BATCHES_A_PACE = 8 };

/* Nanoseconds below which a sleep is not worth its alarm. */
enum { SHORTEST = 100000 };

/* No batch is free at these moments, so as many were freed as opened. */
static void learn(leat__timed_wait *wait, int64_t now, int64_t number)
{
    int64_t batches = number - wait->number;
    if (wait->since && batches < BATCHES_A_PACE)
        return;
    wait->pace = wait->since ? (now - wait->since) / batches : 0;
    wait->since = now;
    wait->number = number;
}

int64_t leat__timed_wait_until(leat__timed_wait *wait, int64_t now,
                               int64_t number, int threshold)
{
    bool was_vain = number == wait->last;
    learn(wait, now, number);
    wait->last = number;
    /* After the caller's next visit, and before the one at which it would wake.
     */
    int64_t length = wait->pace * threshold / 2;
    bool is_worth = threshold > 1 && length >= SHORTEST;
    return is_worth && !was_vain ? now + length : LEAT__FOREVER;
}

/* A probe costs two system calls: they become rarer while all give the same. */
enum { PAUSE_MIN = 8, PAUSE_MAX = 32 };

static int next_pause(const leat__inline_mode *mode, bool is_on)
{
    if (is_on != mode->is_on || mode->pause == 0)
        return PAUSE_MIN;
    return mode->pause < PAUSE_MAX ? 2 * mode->pause : PAUSE_MAX;
}

bool leat__inline_mode_enter(leat__inline_mode *mode)
{
    if (mode->is_probing) {
        bool is_on = pthread_equal(mode->caller, pthread_self()) &&
                     mode->sleeps == leat__thread_sleep_count();
        mode->is_probing = false;
        mode->pause = next_pause(mode, is_on);
        mode->until_probe = mode->pause - 1;
        mode->is_on = is_on;
    }
    return mode->is_on;
}

void leat__inline_mode_leave(leat__inline_mode *mode)
{
    if (!mode->is_possible || mode->until_probe-- > 0)
        return;
    mode->is_probing = true;
    mode->caller = pthread_self();
    mode->sleeps = leat__thread_sleep_count();
}
