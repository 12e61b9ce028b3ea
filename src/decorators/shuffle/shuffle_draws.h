/* shuffle_draws.h: which slot of a streaming buffer each position takes. */
#ifndef LEAT_DECORATORS_SHUFFLE_SHUFFLE_DRAWS_H
#define LEAT_DECORATORS_SHUFFLE_SHUFFLE_DRAWS_H

#include "base/random.h"

#include <stdint.h>

/*
 * The draws of an epoch. Position t takes slot draw(t, n) of n: the buffer's
 * size, while the upstream reader goes on, and then what is left. In the first
 * case input t + size takes the slot's place; in the second the last slot does.
 */
typedef struct leat__shuffle_draws {
    uint64_t seed;
    int64_t epoch;
    int64_t group; /* four positions, whose words these are; -1: none */
    uint32_t words[4];
} leat__shuffle_draws;

void leat__shuffle_draws_init(leat__shuffle_draws *draws, uint64_t seed,
                              int64_t epoch);

/* The words of four positions. */
void leat__shuffle_draws_fetch(leat__shuffle_draws *draws, int64_t group);

static inline uint32_t leat__shuffle_draw(leat__shuffle_draws *draws, int64_t t,
                                          uint32_t n)
{
    if (draws->group != t >> 2)
        leat__shuffle_draws_fetch(draws, t >> 2);
    return leat__random_below(draws->words[t & 3], n);
}

/* A sample of the buffer: its number among the epoch's inputs, and its slot. */
typedef struct leat__shuffle_held {
    int64_t input;
    int32_t slot; /* -1: taken */
} leat__shuffle_held;

/*
 * What a buffer of `size` slots holds before position `t`, in the order of the
 * inputs, of which there are `inputs` (-1: at least t + size). It walks back
 * over the draws, size ln size of them on average. `held` and `work` have
 * `size` elements. Returns the number of samples.
 */
int32_t leat__shuffle_walk(leat__shuffle_draws *draws, int64_t t, int32_t size,
                           int64_t inputs, leat__shuffle_held held[],
                           int32_t work[]);

#endif
