/*
 * read_limit.h: how many samples are read in one go from each of several
 * readers. Those of the others after a bad one are lost, and made again.
 */
#ifndef LEAT_DECORATORS_READ_LIMIT_H
#define LEAT_DECORATORS_READ_LIMIT_H

#include <stdatomic.h>

/* A limit above that is none. */
enum { LEAT__READ_LIMIT_MOST = 64 };

/*
 * 1, and as many as were read since some were lost, so that no more are lost
 * than were read. Any threads; what one of them adds may be lost to another.
 */
typedef struct leat__read_limit {
    atomic_int samples; /* 0: no limit */
} leat__read_limit;

/* `n`, or fewer. */
static inline int leat__read_limit_get(const leat__read_limit *limit, int n)
{
    int samples = atomic_load_explicit(&limit->samples, memory_order_relaxed);
    return samples > 0 && samples < n ? samples : n;
}

/* All of `n` were good. */
static inline void leat__read_limit_raise(leat__read_limit *limit, int n)
{
    int samples = atomic_load_explicit(&limit->samples, memory_order_relaxed);
    if (samples == 0)
        return;
    samples = samples + n <= LEAT__READ_LIMIT_MOST ? samples + n : 0;
    atomic_store_explicit(&limit->samples, samples, memory_order_relaxed);
}

/* Some were lost. */
static inline void leat__read_limit_reset(leat__read_limit *limit)
{
    atomic_store_explicit(&limit->samples, 1, memory_order_relaxed);
}

#endif
