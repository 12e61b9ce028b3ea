/* random_distribution.h: how words of a choice become the numbers of random. */
#ifndef LEAT_READERS_RANDOM_DISTRIBUTION_H
#define LEAT_READERS_RANDOM_DISTRIBUTION_H

#include <leat/ext/reader.h>

/* Immutable, for any thread. */
typedef struct leat__random_distribution {
    leat_dtype dtype;
    leat_distribution kind;
    double low, high; /* of UNIFORM; or mean and deviation */
    int bits;         /* of a choice of a float */
    uint64_t range;   /* of UNIFORM integers, from `low` on; 0: 2^64 */
} leat__random_distribution;

/* Reads the arguments of random, for numbers of that type. Errors: LEAT_EINVAL
 * where the type does not hold them. */
int leat__random_distribution_init(leat__random_distribution *random,
                                   leat_dtype dtype, const leat_args *args);

/* How many numbers the four words of a choice make. */
size_t leat__random_distribution_block(const leat__random_distribution *random);

/* Makes the first `n` of them. */
void leat__random_distribution_make(const leat__random_distribution *random,
                                    const uint32_t words[4], size_t n,
                                    char *to);

#endif
