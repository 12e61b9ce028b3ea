#include "decorators/shuffle/permutation.h"
#include "base/random.h"

/* The operation of leat__random_words for keys. */
#define OPERATION 0x73

/* Rounds by the bits of a value: 4 mix large parts as well as independent
 * words would, while small ones have few functions to choose from. */
static int rounds_of(int bits)
{
    return bits > 13 ? 4 : bits > 6 ? 6 : LEAT__PERMUTATION_ROUNDS;
}

void leat__permutation_init(leat__permutation *permutation, int64_t count)
{
    int bits = 0;
    while (bits < 63 && (int64_t)1 << bits < count)
        bits++;
    permutation->count = (uint64_t)count;
    permutation->rounds = rounds_of(bits);
    permutation->low_bits = bits / 2;
    permutation->mask = ((uint64_t)1 << permutation->low_bits) - 1;
    permutation->highs =
        (permutation->count + permutation->mask) >> permutation->low_bits;
}

/* SplitMix64's finalizer (Steele et al., OOPSLA 2014). */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
}

void leat__permutation_key_init(leat__permutation_key *key,
                                const leat__permutation *permutation,
                                uint64_t seed, int64_t epoch, int64_t number)
{
    uint32_t words[4];
    leat__random_words(seed, epoch, number, OPERATION, words);
    uint64_t begin = (uint64_t)words[1] << 32 | words[0];
    uint64_t step = (uint64_t)words[3] << 32 | words[2] | 1;
    for (int i = 0; i < permutation->rounds; i++)
        key->round[i] = mix(begin + (uint64_t)i * step);
}

/* 32 random bits for a part. */
static inline uint64_t word_of(uint64_t part, uint64_t key)
{
    uint64_t x = (part ^ key) * 0x9E3779B97F4A7C15;
    x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93;
    return x >> 32;
}

/* What a lower part adds to the upper one. */
static inline uint64_t shift_of(const leat__permutation *permutation,
                                uint64_t low, uint64_t key)
{
    return word_of(low, key) * permutation->highs >> 32;
}

static inline uint64_t encrypt(const leat__permutation *permutation,
                               const leat__permutation_key *key, uint64_t value)
{
    uint64_t high = value >> permutation->low_bits;
    uint64_t low = value & permutation->mask;
    for (int i = 0; i < permutation->rounds; i += 2) {
        high += shift_of(permutation, low, key->round[i]);
        high -= high >= permutation->highs ? permutation->highs : 0;
        low ^= word_of(high, key->round[i + 1]) & permutation->mask;
    }
    return high << permutation->low_bits | low;
}

static uint64_t decrypt(const leat__permutation *permutation,
                        const leat__permutation_key *key, uint64_t value)
{
    uint64_t high = value >> permutation->low_bits;
    uint64_t low = value & permutation->mask;
    for (int i = permutation->rounds - 2; i >= 0; i -= 2) {
        low ^= word_of(high, key->round[i + 1]) & permutation->mask;
        uint64_t shift = shift_of(permutation, low, key->round[i]);
        high += high < shift ? permutation->highs - shift : 0 - shift;
    }
    return high << permutation->low_bits | low;
}

int64_t leat__permutation_at(const leat__permutation *permutation,
                             const leat__permutation_key *key, int64_t i)
{
    uint64_t value = (uint64_t)i;
    do {
        value = encrypt(permutation, key, value);
    } while (value >= permutation->count);
    return (int64_t)value;
}

int64_t leat__permutation_find(const leat__permutation *permutation,
                               const leat__permutation_key *key, int64_t value)
{
    uint64_t i = (uint64_t)value;
    do {
        i = decrypt(permutation, key, i);
    } while (i >= permutation->count);
    return (int64_t)i;
}
