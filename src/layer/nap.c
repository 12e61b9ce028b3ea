#include "layer/nap.h"
#include "base/queue.h"

/* So many batches tell the caller's pace. */
enum { BATCHES_A_PACE = 8 };

/* Nanoseconds below which a nap is not worth its alarm. */
enum { SHORTEST = 100000 };

/* All slots are full at these moments, so as many were emptied as opened. */
static void learn(leat__nap *self, int64_t now, int64_t number)
{
    int64_t batches = number - self->number;
    if (self->since && batches < BATCHES_A_PACE)
        return;
    self->pace = self->since ? (now - self->since) / batches : 0;
    self->since = now;
    self->number = number;
}

int64_t leat__nap_until(leat__nap *self, int64_t now, int64_t number, int late)
{
    int is_vain = number == self->last;
    learn(self, now, number);
    self->last = number;
    /* Behind its next visit, and before the one at which it would wake. */
    int64_t nap = self->pace * late / 2;
    int is_worth = late > 1 && nap >= SHORTEST;
    return is_worth && !is_vain ? now + nap : LEAT__FOREVER;
}
