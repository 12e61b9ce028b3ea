/*
 * jpeg_idct_avx2.h: the inverse DCT of jpeg_block_body.h in AVX2.
 *
 * The accurate integer transform of libjpeg rounds after each of its two passes
 * only; before that it is a sum of products, and a sum has any order. Here it
 * is that of vpmaddwd: each pass multiplies pairs of coefficients (0 and 4, 2
 * and 6, 1 and 3, 5 and 7) by pairs of constants. A block is kept in that
 * order: vectors of eight pairs of rows, columns as 0 4 2 6 1 3 5 7, so that
 * the first pass leaves pairs for the second.
 */
#include "data/jpeg/jpeg_kernels.h"

#include <immintrin.h>

#define COEFFICIENT_ORDER                                                      \
    0, 8, 32, 16, 40, 4, 10, 36, 24, 33, 1, 41, 20, 42, 2, 12, 34, 26, 37, 9,  \
        48, 17, 56, 5, 43, 18, 44, 6, 14, 38, 28, 35, 11, 52, 25, 49, 57, 21,  \
        58, 3, 45, 22, 46, 30, 39, 13, 50, 27, 53, 59, 19, 60, 7, 47, 15, 54,  \
        29, 51, 61, 23, 62, 31, 55, 63

/* Magnitudes of 16 bits, or-ed. */
typedef struct irregular_bits {
    __m256i seen;
} irregular_bits;

/* Of 10 bits are the samples that libjpeg's variants agree on, in magnitude. */
static inline uint32_t irregular_value(const irregular_bits *bits)
{
    __m256i high = _mm256_set1_epi16((short)0xfe00);
    return !_mm256_testz_si256(bits->seen, high);
}

static inline __m256i pair(int a, int b)
{
    return _mm256_set1_epi32((int)((uint32_t)b << 16 | (uint16_t)a));
}

static inline __m256i products(__m256i x, __m256i y, int a, int b, int c, int d)
{
    return _mm256_add_epi32(_mm256_madd_epi16(x, pair(a, b)),
                            _mm256_madd_epi16(y, pair(c, d)));
}

/*
 * One pass over eight columns, the constants in units of 2^-13: `in` has pairs
 * of rows, `out` rows, rounded and shifted.
 */
static inline __attribute__((always_inline)) void
transform_pass(const __m256i in[4], int shift, __m256i out[8])
{
    __m256i round = _mm256_set1_epi32(1 << (shift - 1));
    __m256i x04 = in[0], x26 = in[1], x13 = in[2], x57 = in[3];
    __m256i sum =
        _mm256_add_epi32(_mm256_madd_epi16(x04, pair(8192, 8192)), round);
    __m256i difference =
        _mm256_add_epi32(_mm256_madd_epi16(x04, pair(8192, -8192)), round);
    __m256i outer = _mm256_madd_epi16(x26, pair(10703, 4433));
    __m256i inner = _mm256_madd_epi16(x26, pair(4433, -10704));
    __m256i even[4] = {
        _mm256_add_epi32(sum, outer), _mm256_add_epi32(difference, inner),
        _mm256_sub_epi32(difference, inner), _mm256_sub_epi32(sum, outer)};
    __m256i odd[4] = {products(x13, x57, 11363, 9633, 6437, 2260),
                      products(x13, x57, 9633, -2259, -11362, -6436),
                      products(x13, x57, 6437, -11362, 2261, 9633),
                      products(x13, x57, 2260, -6436, 9633, -11363)};
    for (int i = 0; i < 4; i++) {
        out[i] = _mm256_srai_epi32(_mm256_add_epi32(even[i], odd[i]), shift);
        out[7 - i] =
            _mm256_srai_epi32(_mm256_sub_epi32(even[i], odd[i]), shift);
    }
}

/* The rows of the first pass to pairs of columns. */
static inline __attribute__((always_inline)) void
pair_columns(const __m256i rows[4], __m256i pairs[4])
{
    __m256i low[2], high[2];
    for (int i = 0; i < 2; i++) {
        __m256 a = _mm256_castsi256_ps(rows[2 * i]);
        __m256 b = _mm256_castsi256_ps(rows[2 * i + 1]);
        low[i] = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88));
        high[i] = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xdd));
    }
    pairs[0] = _mm256_permute2x128_si256(low[0], low[1], 0x20);
    pairs[1] = _mm256_permute2x128_si256(high[0], high[1], 0x20);
    pairs[2] = _mm256_permute2x128_si256(low[0], low[1], 0x31);
    pairs[3] = _mm256_permute2x128_si256(high[0], high[1], 0x31);
}

static inline void store_row(unsigned char *to, __m128i rows, int is_high)
{
    if (is_high)
        _mm_storeh_pd((double *)(void *)to, _mm_castsi128_pd(rows));
    else
        _mm_storel_epi64((__m128i *)(void *)to, rows);
}

/* Samples of eight rows, by column, to their places. */
static inline __attribute__((always_inline)) void
store_columns(const __m256i columns[4], unsigned char *to, ptrdiff_t pitch)
{
    const __m256i by_row = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    const __m256i middle = _mm256_set1_epi8((char)0x80);
    __m256i left =
        _mm256_xor_si256(_mm256_packs_epi16(columns[0], columns[1]), middle);
    __m256i right =
        _mm256_xor_si256(_mm256_packs_epi16(columns[2], columns[3]), middle);
    left = _mm256_shuffle_epi8(left, by_row);
    right = _mm256_shuffle_epi8(right, by_row);
    __m256i first = _mm256_unpacklo_epi32(left, right);
    __m256i second = _mm256_unpackhi_epi32(left, right);
    __m128i rows[4] = {_mm256_castsi256_si128(first),
                       _mm256_castsi256_si128(second),
                       _mm256_extracti128_si256(first, 1),
                       _mm256_extracti128_si256(second, 1)};
    for (int i = 0; i < 8; i++)
        store_row(to + i * pitch, rows[i / 2], i % 2);
}

/* Dequantises the block into `out`, and clears it. */
static inline __attribute__((always_inline)) void
take_coefficients(short *block, const leat__jpeg_multipliers *multipliers,
                  __m256i out[4], __m256i *exceeds)
{
    __m256i *words = (__m256i *)(void *)block;
    const __m256i *factors = (const __m256i *)(const void *)multipliers->of;
    const __m256i *limits = (const __m256i *)(const void *)multipliers->limit;
    *exceeds = _mm256_setzero_si256();
    for (int i = 0; i < 4; i++) {
        __m256i x = _mm256_load_si256(words + i);
        _mm256_store_si256(words + i, _mm256_setzero_si256());
        out[i] = _mm256_mullo_epi16(x, _mm256_load_si256(factors + i));
        *exceeds = _mm256_or_si256(
            *exceeds, _mm256_cmpgt_epi16(_mm256_abs_epi16(x),
                                         _mm256_load_si256(limits + i)));
    }
}

/* Clears the block. */
static inline __attribute__((always_inline)) void
transform_block(short *block, const leat__jpeg_multipliers *multipliers,
                unsigned char *to, ptrdiff_t pitch, irregular_bits *irregular)
{
    __m256i in[4], out[8], words[4], exceeds;
    take_coefficients(block, multipliers, in, &exceeds);
    transform_pass(in, 11, out);
    __m256i seen = _mm256_setzero_si256();
    for (int i = 0; i < 4; i++) {
        words[i] = _mm256_packs_epi32(out[2 * i], out[2 * i + 1]);
        seen = _mm256_or_si256(seen, _mm256_abs_epi16(words[i]));
    }
    /* Here 14 bits are allowed, so that no sum of two exceeds 16. */
    seen = _mm256_srli_epi16(seen, 5);
    pair_columns(words, in);
    transform_pass(in, 18, out);
    for (int i = 0; i < 4; i++) {
        words[i] = _mm256_packs_epi32(out[2 * i], out[2 * i + 1]);
        seen = _mm256_or_si256(seen, _mm256_abs_epi16(words[i]));
    }
    seen = _mm256_or_si256(seen, exceeds);
    irregular->seen = _mm256_or_si256(irregular->seen, seen);
    store_columns(words, to, pitch);
}

/* A block whose every sample is alike. */
static inline void fill_block(int dc, unsigned char *to, ptrdiff_t pitch)
{
    int sample = ((dc + 4) >> 3) + 128;
    sample = sample < 0 ? 0 : sample > 255 ? 255 : sample;
    __m128i row = _mm_set1_epi8((char)sample);
    for (int i = 0; i < 8; i++)
        store_row(to + i * pitch, row, 0);
}
