#include "layer/wakeup.h"
#include "base/queue.h"
#include "base/thread.h"

/* So many batches tell the caller's pace. */
enum { BATCHES_A_PACE = 8 };

/* Nanoseconds below which a pause is not worth its alarm. */
enum { SHORTEST = 100000 };

/* All slots are full at these moments, so as many were emptied as opened. */
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
                               int64_t number, int late)
{
    int is_vain = number == self->last;
    learn(self, now, number);
    self->last = number;
    /* Behind its next visit, and before the one at which it would wake. */
    int64_t pause = self->pace * late / 2;
    int is_worth = late > 1 && pause >= SHORTEST;
    return is_worth && !is_vain ? now + pause : LEAT__FOREVER;
}

/* A look costs two system calls: fewer are had while all see the same. */
enum { PAUSE_MIN = 8, PAUSE_MAX = 32 };

static int next_pause(const leat__inline_mode *self, int is_on)
{
    if (is_on != self->is_on || self->pause == 0)
        return PAUSE_MIN;
    return self->pause < PAUSE_MAX ? 2 * self->pause : PAUSE_MAX;
}

int leat__inline_mode_enter(leat__inline_mode *self)
{
    if (self->is_looking) {
        int is_on = pthread_equal(self->caller, pthread_self()) &&
                    self->sleeps == leat__thread_sleeps();
        self->is_looking = 0;
        self->pause = next_pause(self, is_on);
        self->until_look = self->pause - 1;
        self->is_on = is_on;
    }
    return self->is_on;
}

void leat__inline_mode_leave(leat__inline_mode *self)
{
    if (!self->is_possible || self->until_look-- > 0)
        return;
    self->is_looking = 1;
    self->caller = pthread_self();
    self->sleeps = leat__thread_sleeps();
}
