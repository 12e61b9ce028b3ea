#include "dice.h"

static uint64_t state;

void dice_begin(long long seed, long long number)
{
    state = (uint64_t)seed * 0xD1342543DE82EF95U + (uint64_t)number;
}

uint64_t dice(void)
{
    uint64_t z = state += 0x9E3779B97F4A7C15U;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9U;
    z = (z ^ z >> 27) * 0x94D049BB133111EBU;
    return z ^ z >> 31;
}

int below(int n)
{
    return (int)(dice() % (uint64_t)n);
}

int between(int low, int high)
{
    return low + below(high - low + 1);
}

int once_in(int n)
{
    return below(n) == 0;
}
