/* random.h: leat's counter-based generator, and Caffe's sequential one. */
#ifndef LEAT_BASE_RANDOM_H
#define LEAT_BASE_RANDOM_H

#include <leat/status.h>

/*
 * Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
 * SC 2011): four words that depend on counter and key alone.
 */
void leat__philox(const uint32_t counter[4], const uint32_t key[2],
                  uint32_t out[4]);

/*
 * Four random words of `operation` for the sample at `position` of `epoch`.
 * Positions below 2^40 and epochs below 2^32 give different counters.
 */
void leat__random_words(uint64_t seed, int64_t epoch, int64_t position,
                        uint32_t operation, uint32_t out[4]);

/* A word mapped to [0, n) by its high bits; bias below n / 2^32. */
static inline uint32_t leat__random_below(uint32_t word, uint32_t n)
{
    return (uint32_t)(((uint64_t)word * n) >> 32);
}

/* A seed from the system. Errors: LEAT_EIO. */
int leat__random_seed(uint64_t *out);

/* std::mt19937: Matsumoto and Nishimura's 32-bit Mersenne twister. */
typedef struct leat__mt19937 {
    uint32_t state[624];
    int next; /* index of the next word; 624: all used */
} leat__mt19937;

void leat__mt19937_seed(leat__mt19937 *generator, uint32_t seed);
uint32_t leat__mt19937_next(leat__mt19937 *generator);

/* Skips `n` words, up to 2^63, in tens of milliseconds at most. */
void leat__mt19937_skip(leat__mt19937 *generator, uint64_t n);

#endif
