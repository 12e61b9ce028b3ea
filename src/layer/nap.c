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
    /* In the middle between two of the caller's visits. */
    int64_t nap = self->pace * (late - 1) - self->pace / 2;
    return nap < SHORTEST || is_vain ? LEAT__FOREVER : now + nap;
}
