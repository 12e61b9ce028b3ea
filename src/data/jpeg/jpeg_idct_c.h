/*
 * jpeg_idct_c.h: the inverse DCT of jpeg_block_body.h in C: the sums of
 * products of jpeg_idct_avx2.h, in loops over columns that compilers make
 * vectors of.
 */
#include "data/jpeg/jpeg_kernels.h"

#include <string.h>

#define COEFFICIENT_ORDER                                                      \
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33,    \
        40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57, 50,  \
        43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39,    \
        46, 53, 60, 61, 54, 47, 55, 62, 63

typedef struct irregular_bits {
    uint32_t seen; /* magnitudes, or-ed */
} irregular_bits;

/* Of 10 bits are the samples that libjpeg's variants agree on, in magnitude. */
static inline uint32_t irregular_value(const irregular_bits *bits)
{
    return bits->seen & ~(uint32_t)0x1ff;
}

static inline int magnitude(int x)
{
    return x < 0 ? -x : x;
}

/* Over eight columns, constants in units of 2^-13; returns magnitudes, or-ed.
 */
static inline int transform_pass(short in[8][8], int shift, short out[8][8])
{
    int seen = 0, round = 1 << (shift - 1);
    for (int x = 0; x < 8; x++) {
        int sum = in[0][x] * 8192 + in[4][x] * 8192 + round;
        int difference = in[0][x] * 8192 - in[4][x] * 8192 + round;
        int outer = in[2][x] * 10703 + in[6][x] * 4433;
        int inner = in[2][x] * 4433 - in[6][x] * 10704;
        int odd0 = in[1][x] * 11363 + in[3][x] * 9633 + in[5][x] * 6437 +
                   in[7][x] * 2260;
        int odd1 = in[1][x] * 9633 - in[3][x] * 2259 - in[5][x] * 11362 -
                   in[7][x] * 6436;
        int odd2 = in[1][x] * 6437 - in[3][x] * 11362 + in[5][x] * 2261 +
                   in[7][x] * 9633;
        int odd3 = in[1][x] * 2260 - in[3][x] * 6436 + in[5][x] * 9633 -
                   in[7][x] * 11363;
        int y0 = (sum + outer + odd0) >> shift;
        int y1 = (difference + inner + odd1) >> shift;
        int y2 = (difference - inner + odd2) >> shift;
        int y3 = (sum - outer + odd3) >> shift;
        int y4 = (sum - outer - odd3) >> shift;
        int y5 = (difference - inner - odd2) >> shift;
        int y6 = (difference + inner - odd1) >> shift;
        int y7 = (sum + outer - odd0) >> shift;
        seen |= magnitude(y0) | magnitude(y1) | magnitude(y2) | magnitude(y3);
        seen |= magnitude(y4) | magnitude(y5) | magnitude(y6) | magnitude(y7);
        out[0][x] = (short)y0;
        out[1][x] = (short)y1;
        out[2][x] = (short)y2;
        out[3][x] = (short)y3;
        out[4][x] = (short)y4;
        out[5][x] = (short)y5;
        out[6][x] = (short)y6;
        out[7][x] = (short)y7;
    }
    return seen;
}

#if defined(__clang__)
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (row){__VA_ARGS__})
#endif

typedef short row __attribute__((vector_size(16)));

/* Three perfect shuffles of the rows. */
static inline void transpose(short in[8][8], short out[8][8])
{
    row rows[8], mixed[8];
    memcpy(rows, in, sizeof(rows));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 4; i++) {
            row a = rows[i], b = rows[i + 4];
            mixed[2 * i] = SHUFFLE(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
            mixed[2 * i + 1] = SHUFFLE(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
        }
        memcpy(rows, mixed, sizeof(rows));
    }
    memcpy(out, rows, sizeof(rows));
}

static inline unsigned char sample_of(int x)
{
    x += 128;
    return (unsigned char)(x < 0 ? 0 : x > 255 ? 255 : x);
}

/* Dequantises the block into `out`, and clears it; not 0: one is too large. */
static inline short take_coefficients(short *restrict block,
                                      const leat__jpeg_multipliers *multipliers,
                                      short *restrict out)
{
    const int16_t *restrict of = multipliers->of;
    const int16_t *restrict limit = multipliers->limit;
    short exceeds = 0;
    for (int i = 0; i < 64; i++) {
        short x = block[i];
        out[i] = (short)(x * of[i]);
        exceeds |= (short)((x > limit[i]) | (x < -limit[i]));
        block[i] = 0;
    }
    return exceeds;
}

/* Clears the block. */
static inline void transform_block(short *block,
                                   const leat__jpeg_multipliers *multipliers,
                                   unsigned char *to, ptrdiff_t pitch,
                                   irregular_bits *irregular)
{
    short a[8][8], b[8][8];
    short exceeds = take_coefficients(block, multipliers, a[0]);
    /* Here 14 bits are allowed, and the second pass cannot overflow. */
    int seen = transform_pass(a, 11, b) >> 5;
    transpose(b, a);
    if (exceeds || seen >> 9) {
        irregular->seen = ~0u;
        return;
    }
    seen |= transform_pass(a, 18, b);
    irregular->seen |= (uint32_t)seen;
    transpose(b, a);
    for (int y = 0; y < 8; y++)
        for (int x = 0; x < 8; x++)
            to[y * pitch + x] = sample_of(a[y][x]);
}

/* A block whose every sample is alike. */
static inline void fill_block(int dc, unsigned char *to, ptrdiff_t pitch)
{
    for (int y = 0; y < 8; y++, to += pitch)
        memset(to, sample_of((dc + 4) >> 3), 8);
}
