/*
 * jpeg_idct_c.h: the inverse DCT of jpeg_block_body.h in C, of the same sums of
 * products as jpeg_idct_avx2.h.
 */
#include "data/jpeg/jpeg_kernels.h"

#include <string.h>

#define COEFFICIENT_ORDER                                                      \
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33,    \
        40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57, 50,  \
        43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39,    \
        46, 53, 60, 61, 54, 47, 55, 62, 63

typedef struct irregular_bits {
    uint32_t seen;
} irregular_bits;

static inline uint32_t irregular_value(const irregular_bits *bits)
{
    return bits->seen & ~(uint32_t)0x1ff;
}

static inline uint32_t magnitude(int x)
{
    return (uint32_t)(x < 0 ? -x : x);
}

static inline void transform_pass(const int in[8], int shift, int out[8])
{
    int sum = (in[0] + in[4]) * 8192 + (1 << (shift - 1));
    int difference = (in[0] - in[4]) * 8192 + (1 << (shift - 1));
    int outer = in[2] * 10703 + in[6] * 4433;
    int inner = in[2] * 4433 - in[6] * 10704;
    int even[4] = {sum + outer, difference + inner, difference - inner,
                   sum - outer};
    int odd[4] = {
        in[1] * 11363 + in[3] * 9633 + in[5] * 6437 + in[7] * 2260,
        in[1] * 9633 - in[3] * 2259 - in[5] * 11362 - in[7] * 6436,
        in[1] * 6437 - in[3] * 11362 + in[5] * 2261 + in[7] * 9633,
        in[1] * 2260 - in[3] * 6436 + in[5] * 9633 - in[7] * 11363};
    for (int i = 0; i < 4; i++) {
        out[i] = (even[i] + odd[i]) >> shift;
        out[7 - i] = (even[i] - odd[i]) >> shift;
    }
}

static inline unsigned char sample_of(int x)
{
    x += 128;
    return (unsigned char)(x < 0 ? 0 : x > 255 ? 255 : x);
}

/* Clears the block. */
static inline void transform_block(short *block,
                                   const leat__jpeg_multipliers *multipliers,
                                   unsigned char *to, ptrdiff_t pitch,
                                   irregular_bits *irregular)
{
    int rows[8][8], in[8], out[8];
    uint32_t seen = 0;
    bool exceeds = false;
    for (int x = 0; x < 8; x++) {
        for (int y = 0; y < 8; y++) {
            int i = y * 8 + x;
            in[y] = block[i] * multipliers->of[i];
            exceeds |= magnitude(block[i]) > (uint32_t)multipliers->limit[i];
        }
        /* The products below would overflow. */
        if (exceeds)
            break;
        transform_pass(in, 11, out);
        for (int y = 0; y < 8; y++) {
            seen |= magnitude(out[y]);
            rows[y][x] = out[y];
        }
    }
    memset(block, 0, 64 * sizeof(*block));
    /* Here 14 bits are allowed, and the second pass cannot overflow. */
    seen >>= 5;
    if (exceeds || seen >> 9) {
        irregular->seen |= ~0u;
        return;
    }
    for (int y = 0; y < 8; y++, to += pitch) {
        transform_pass(rows[y], 18, out);
        for (int x = 0; x < 8; x++) {
            seen |= magnitude(out[x]);
            to[x] = sample_of(out[x]);
        }
    }
    irregular->seen |= seen;
}

/* A block whose every sample is alike. */
static inline void fill_block(int dc, unsigned char *to, ptrdiff_t pitch)
{
    for (int y = 0; y < 8; y++, to += pitch)
        memset(to, sample_of((dc + 4) >> 3), 8);
}
