/* permutation.h: a random order of any number of things, computed. */
#ifndef LEAT_DECORATORS_SHUFFLE_PERMUTATION_H
#define LEAT_DECORATORS_SHUFFLE_PERMUTATION_H

#include <stdint.h>

enum { LEAT__PERMUTATION_ROUNDS = 24 };

/*
 * A permutation of [0, count): a Feistel network over pairs of an upper part,
 * added to, and a lower one of some bits. There are hardly more pairs than
 * values; a result beyond them is put in again (cycle walking).
 */
typedef struct leat__permutation {
    uint64_t count;
    uint64_t highs; /* upper parts: at most 2^32 */
    uint64_t mask;  /* of the lower part */
    int low_bits;
    int rounds; /* even; small parts need more of them */
} leat__permutation;

/* One of the permutations: a word for each round. */
typedef struct leat__permutation_key {
    uint64_t round[LEAT__PERMUTATION_ROUNDS];
} leat__permutation_key;

void leat__permutation_init(leat__permutation *permutation, int64_t count);

/* That of a seed, an epoch, and a number from 0 to 2^40 - 1. */
void leat__permutation_key_init(leat__permutation_key *key,
                                const leat__permutation *permutation,
                                uint64_t seed, int64_t epoch, int64_t number);

/* What stands at `i` of [0, count). */
int64_t leat__permutation_at(const leat__permutation *permutation,
                             const leat__permutation_key *key, int64_t i);

/* Where `value` of [0, count) stands. */
int64_t leat__permutation_find(const leat__permutation *permutation,
                               const leat__permutation_key *key, int64_t value);

#endif
