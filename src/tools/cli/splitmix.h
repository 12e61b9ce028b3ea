/*
 * splitmix.h: random numbers that depend on a seed and a record's number alone,
 * so that records can be made in any order (Steele, Lea, Flood: "Fast
 * splittable pseudorandom number generators", OOPSLA 2014). The library's
 * Philox would change the bytes of `leat synth` and the order of shuffled
 * imports, and costs benchmarks that draw for every record ten times as much.
 */
#ifndef LEAT_TOOLS_CLI_SPLITMIX_H
#define LEAT_TOOLS_CLI_SPLITMIX_H

#include <stdint.h>

struct splitmix {
    uint64_t state;
};

static inline uint64_t splitmix_mix(uint64_t word)
{
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
    return word ^ (word >> 31);
}

static inline uint64_t splitmix_next(struct splitmix *random)
{
    return splitmix_mix(random->state += 0x9e3779b97f4a7c15u);
}

/* The numbers of record `index`. */
static inline struct splitmix splitmix_start(uint64_t seed, uint64_t index)
{
    return (struct splitmix){splitmix_mix(splitmix_mix(seed + 1) + index)};
}

/* A number in [least, most). */
static inline double splitmix_between(struct splitmix *random, double least,
                                      double most)
{
    double unit = (double)(splitmix_next(random) >> 11) * 0x1p-53;
    return least + (most - least) * unit;
}

/* A number in [0, n). */
static inline int splitmix_below(struct splitmix *random, int n)
{
    return (int)((splitmix_next(random) >> 32) * (uint64_t)n >> 32);
}

#endif
