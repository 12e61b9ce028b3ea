/* The public generator: a file of its own, as the tool links random.c. */
#include <leat/choice.h>

#include "base/random.h"

void leat_choice(uint64_t seed, int64_t epoch, int64_t position,
                 uint32_t operation, uint32_t out[4])
{
    leat__random_words(seed, epoch, position, operation, out);
}

/* The upper half of the product with n, by its halves. */
uint64_t leat_choice_below(const uint32_t words[2], uint64_t n)
{
    uint64_t low = n & UINT32_MAX;
    uint64_t high = n >> 32;
    uint64_t middle = words[0] * high + (words[0] * low >> 32);
    uint64_t carried = words[1] * low + (middle & UINT32_MAX);
    return words[1] * high + (middle >> 32) + (carried >> 32);
}
