#include "base/random.h"
#include "base/error.h"

#include <errno.h>
#include <sys/random.h>

static void philox_round(uint32_t c[4], uint32_t k0, uint32_t k1)
{
    uint64_t a = (uint64_t)0xD2511F53 * c[0];
    uint64_t b = (uint64_t)0xCD9E8D57 * c[2];
    uint32_t c1 = c[1];
    uint32_t c3 = c[3];
    c[0] = (uint32_t)(b >> 32) ^ c1 ^ k0;
    c[1] = (uint32_t)b;
    c[2] = (uint32_t)(a >> 32) ^ c3 ^ k1;
    c[3] = (uint32_t)a;
}

void leat__philox(const uint32_t counter[4], const uint32_t key[2],
                  uint32_t out[4])
{
    uint32_t k0 = key[0];
    uint32_t k1 = key[1];
    for (int i = 0; i < 4; i++)
        out[i] = counter[i];
    for (int i = 0; i < 10; i++) {
        philox_round(out, k0, k1);
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
}

void leat__random_words(uint64_t seed, int64_t epoch, int64_t position,
                        uint32_t operation, uint32_t out[4])
{
    const uint32_t counter[4] = {(uint32_t)position,
                                 (uint32_t)((uint64_t)position >> 32) & 0xff,
                                 operation, (uint32_t)epoch};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    leat__philox(counter, key, out);
}

int leat__random_seed(uint64_t *out)
{
    uint64_t seed;
    ssize_t got;
    do {
        got = getrandom(&seed, sizeof(seed), 0);
    } while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof(seed))
        return leat__error_system(errno, "cannot draw a random seed");
    *out = seed;
    return LEAT_OK;
}

void leat__mt19937_seed(leat__mt19937 *generator, uint32_t seed)
{
    uint32_t *state = generator->state;
    state[0] = seed;
    for (uint32_t i = 1; i < 624; i++)
        state[i] = 1812433253u * (state[i - 1] ^ (state[i - 1] >> 30)) + i;
    generator->next = 624;
}

static void refill(leat__mt19937 *generator)
{
    uint32_t *state = generator->state;
    for (int i = 0; i < 624; i++) {
        uint32_t y =
            (state[i] & 0x80000000u) | (state[(i + 1) % 624] & 0x7fffffffu);
        state[i] =
            state[(i + 397) % 624] ^ (y >> 1) ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    generator->next = 0;
}

uint32_t leat__mt19937_next(leat__mt19937 *generator)
{
    if (generator->next == 624)
        refill(generator);
    uint32_t y = generator->state[generator->next++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}
