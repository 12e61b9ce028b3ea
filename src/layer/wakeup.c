/*
 * DESIGN. An event count is two atomics and a place to sleep. A waiter counts
 * itself among the sleepers and then looks at the events; whoever adds an event
 * does so and then looks at the sleepers. Both in one order for all threads, so
 * at least one of them sees the other. The lock is taken to sleep and to wake,
 * never else, and no other lock under it.
 */
#include "layer/wakeup.h"
#include "base/clock.h"
#include "base/queue.h"
#include "base/thread.h"

#include <errno.h>

int leat__event_count_init(leat__event_count *self)
{
    int status = leat__mutex_init(&self->lock);
    if (status)
        return status;
    status = leat__cond_init(&self->woken);
    if (status)
        pthread_mutex_destroy(&self->lock);
    return status;
}

void leat__event_count_finish(leat__event_count *self)
{
    pthread_cond_destroy(&self->woken);
    pthread_mutex_destroy(&self->lock);
}

static int sleep_until(leat__event_count *self, int64_t deadline)
{
    if (deadline == LEAT__FOREVER)
        return pthread_cond_wait(&self->woken, &self->lock);
    struct timespec when = leat__clock_timespec(deadline);
    return pthread_cond_timedwait(&self->woken, &self->lock, &when);
}

int leat__event_count_wait(leat__event_count *self, int64_t ticket,
                           int64_t deadline)
{
    int code = 0;
    pthread_mutex_lock(&self->lock);
    atomic_fetch_add(&self->sleepers, 1);
    while (atomic_load(&self->events) == ticket && !self->closed &&
           code != ETIMEDOUT)
        code = sleep_until(self, deadline);
    atomic_fetch_sub(&self->sleepers, 1);
    bool closed = self->closed;
    pthread_mutex_unlock(&self->lock);
    return closed ? LEAT_ECANCELLED : LEAT_OK;
}

/* Adds an event; whether somebody sleeps, who now waits on the condition. */
static bool has_sleepers(leat__event_count *self)
{
    atomic_fetch_add(&self->events, 1);
    if (atomic_load(&self->sleepers) == 0)
        return false;
    pthread_mutex_lock(&self->lock);
    bool result = atomic_load(&self->sleepers) > 0;
    pthread_mutex_unlock(&self->lock);
    return result;
}

void leat__event_count_wake_one(leat__event_count *self)
{
    if (has_sleepers(self))
        pthread_cond_signal(&self->woken);
}

void leat__event_count_wake_all(leat__event_count *self)
{
    if (has_sleepers(self))
        pthread_cond_broadcast(&self->woken);
}

void leat__event_count_close(leat__event_count *self)
{
    pthread_mutex_lock(&self->lock);
    self->closed = true;
    pthread_cond_broadcast(&self->woken);
    pthread_mutex_unlock(&self->lock);
}

int leat__wake_threshold(int circulating, bool is_alone)
{
    int half = (circulating + 1) / 2;
    int n = half < circulating - 2 ? half : circulating - 2;
    return is_alone && n > 1 ? n : 1;
}

/* So many batches tell the caller's pace. */
enum { BATCHES_A_PACE = 8 };

/* Nanoseconds below which a sleep is not worth its alarm. */
enum { SHORTEST = 100000 };

/* No batch is free at these moments, so as many were freed as opened. */
static void learn(leat__timed_wait *self, int64_t now, int64_t number)
{
    int64_t batches = number - self->number;
    if (self->since && batches < BATCHES_A_PACE)
        return;
    self->pace = self->since ? (now - self->since) / batches : 0;
    self->since = now;
    self->number = number;
}

int64_t leat__timed_wait_until(leat__timed_wait *self, int64_t now,
                               int64_t number, int threshold)
{
    bool was_vain = number == self->last;
    learn(self, now, number);
    self->last = number;
    /* After the caller's next visit, and before the one at which it would wake.
     */
    int64_t length = self->pace * threshold / 2;
    bool is_worth = threshold > 1 && length >= SHORTEST;
    return is_worth && !was_vain ? now + length : LEAT__FOREVER;
}

/* A probe costs two system calls: they become rarer while all give the same. */
enum { PAUSE_MIN = 8, PAUSE_MAX = 32 };

static int next_pause(const leat__inline_mode *self, bool is_on)
{
    if (is_on != self->is_on || self->pause == 0)
        return PAUSE_MIN;
    return self->pause < PAUSE_MAX ? 2 * self->pause : PAUSE_MAX;
}

bool leat__inline_mode_enter(leat__inline_mode *self)
{
    if (self->is_probing) {
        bool is_on = pthread_equal(self->caller, pthread_self()) &&
                     self->sleeps == leat__thread_sleep_count();
        self->is_probing = false;
        self->pause = next_pause(self, is_on);
        self->until_probe = self->pause - 1;
        self->is_on = is_on;
    }
    return self->is_on;
}

void leat__inline_mode_leave(leat__inline_mode *self)
{
    if (!self->is_possible || self->until_probe-- > 0)
        return;
    self->is_probing = true;
    self->caller = pthread_self();
    self->sleeps = leat__thread_sleep_count();
}
