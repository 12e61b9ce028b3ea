/*
 * Jumping the Mersenne twister ahead (Haramoto et al., "Efficient jump ahead
 * for F2-linear random number generators", INFORMS J. Computing, 2008).
 *
 * Its words x[k] obey a linear recurrence over bits, of which phi is the
 * characteristic polynomial. So x[k + n] is the sum of those x[k + i] for which
 * t^n mod phi has the term t^i, and that takes as many squarings as n has bits.
 */
#include "base/random.h"

#include <string.h>

#define N 624
#define M 397
#define DEGREE 19937
#define WORDS ((DEGREE + 64) / 64)
#define TERMS_MAX 256
/* Fewer words are drawn faster than they are skipped. */
#define JUMP_MIN ((uint64_t)1 << 20)

/* A polynomial over bits, the lowest first, of a degree up to phi's. */
typedef struct poly {
    uint64_t word[WORDS];
} poly;

/* The exponents of phi's terms but the highest, which is DEGREE. */
typedef struct modulus {
    int exponent[TERMS_MAX];
    int n;
} modulus;

static void flip(uint64_t *words, int at, uint64_t bits)
{
    int shift = at % 64;
    words[at / 64] ^= bits << shift;
    if (shift)
        words[at / 64 + 1] ^= bits >> (64 - shift);
}

/* p (t^a + t^b), of a degree up to phi's. */
static poly times_binomial(const poly *p, int a, int b)
{
    uint64_t product[2 * WORDS] = {0};
    poly result;
    for (int i = 0; i < WORDS; i++) {
        flip(product, 64 * i + a, p->word[i]);
        flip(product, 64 * i + b, p->word[i]);
    }
    memcpy(result.word, product, sizeof(result.word));
    return result;
}

/*
 * With X = t^N + t^M, Y = t^(N-1) + t^(M-1) and the bits a of the twist, phi is
 * X (Y^31 + a[0] Y^30 + ... + a[30]) + a[31].
 */
static void find_modulus(modulus *out)
{
    const uint32_t twist = 0x9908b0df;
    poly p = {{1}};
    for (int i = 0; i < 31; i++) {
        p = times_binomial(&p, N - 1, M - 1);
        p.word[0] ^= twist >> i & 1;
    }
    p = times_binomial(&p, N, M);
    p.word[0] ^= twist >> 31;
    out->n = 0;
    for (int i = 0; i < DEGREE && out->n < TERMS_MAX; i++)
        if (p.word[i / 64] >> (i % 64) & 1)
            out->exponent[out->n++] = i;
}

static uint64_t spread(uint32_t bits)
{
    uint64_t x = bits;
    x = (x | x << 16) & 0x0000ffff0000ffffu;
    x = (x | x << 8) & 0x00ff00ff00ff00ffu;
    x = (x | x << 4) & 0x0f0f0f0f0f0f0f0fu;
    x = (x | x << 2) & 0x3333333333333333u;
    return (x | x << 1) & 0x5555555555555555u;
}

/* 64 terms at a time: phi's second highest is farther below than that. */
static void square(poly *p, const modulus *phi)
{
    uint64_t product[2 * WORDS + 1] = {0};
    for (int i = 0; i < WORDS; i++) {
        product[2 * i] = spread((uint32_t)p->word[i]);
        product[2 * i + 1] = spread((uint32_t)(p->word[i] >> 32));
    }
    for (int k = DEGREE / 64; k >= 0; k--) {
        int at = (DEGREE + 64 * k) / 64;
        int shift = DEGREE % 64;
        uint64_t high = product[at] >> shift | product[at + 1] << (64 - shift);
        flip(product, DEGREE + 64 * k, high);
        for (int i = 0; i < phi->n; i++)
            flip(product, phi->exponent[i] + 64 * k, high);
    }
    memcpy(p->word, product, sizeof(p->word));
}

static void times_t(poly *p, const modulus *phi)
{
    for (int i = WORDS - 1; i > 0; i--)
        p->word[i] = p->word[i] << 1 | p->word[i - 1] >> 63;
    p->word[0] <<= 1;
    if (!(p->word[DEGREE / 64] >> (DEGREE % 64) & 1))
        return;
    p->word[DEGREE / 64] ^= (uint64_t)1 << (DEGREE % 64);
    for (int i = 0; i < phi->n; i++)
        p->word[phi->exponent[i] / 64] ^= (uint64_t)1
                                          << (phi->exponent[i] % 64);
}

/* t^n mod phi */
static poly power(uint64_t n, const modulus *phi)
{
    poly p = {{1}};
    for (int bit = 63; bit >= 0; bit--) {
        square(&p, phi);
        if (n >> bit & 1)
            times_t(&p, phi);
    }
    return p;
}

/* x[k..k+N) to x[k+1..k+N]; `first` moves round the array instead. */
static int step(uint32_t x[N], int first)
{
    int next = (first + 1) % N;
    uint32_t y = (x[first] & 0x80000000u) | (x[next] & 0x7fffffffu);
    x[first] = x[(first + M) % N] ^ (y >> 1) ^ (y & 1 ? 0x9908b0dfu : 0);
    return next;
}

/* Replaces the window of N words by the one that begins n words later. */
static void jump(uint32_t state[N], uint64_t n)
{
    modulus phi;
    uint32_t sum[N] = {0};
    int first = 0;
    find_modulus(&phi);
    poly terms = power(n, &phi);
    for (int i = DEGREE - 1; i >= 0; i--) {
        first = step(sum, first);
        if (!(terms.word[i / 64] >> (i % 64) & 1))
            continue;
        for (int k = first; k < N; k++)
            sum[k] ^= state[k - first];
        for (int k = 0; k < first; k++)
            sum[k] ^= state[k + N - first];
    }
    for (int k = 0; k < N; k++)
        state[k] = sum[(first + k) % N];
}

void leat__mt19937_skip(leat__mt19937 *generator, uint64_t n)
{
    uint64_t ahead = (uint64_t)generator->next + n;
    if (n < JUMP_MIN) {
        while (n-- > 0)
            leat__mt19937_next(generator);
        return;
    }
    jump(generator->state, ahead - N);
    generator->next = N;
}
