#include "data/jpeg/jpeg_idct_avx2.h"

#define COLOR_WORDS 16
typedef short words __attribute__((vector_size(32)));
typedef unsigned short unsigned_words __attribute__((vector_size(32)));

static inline words widen(const unsigned char *p)
{
    return (words)_mm256_cvtepu8_epi16(
        _mm_loadu_si128((const __m128i *)(const void *)p));
}

static inline words load_pairs(const unsigned char *p)
{
    return (words)_mm256_loadu_si256((const __m256i *)(const void *)p);
}

static inline words high_product(words x, int k)
{
    return (words)_mm256_mulhi_epi16((__m256i)x, _mm256_set1_epi16((short)k));
}

/* The sums of even words and of odd words, of which the upper half is taken. */
static inline words mean_product(words x, int j, words y, int k)
{
    const __m256i factors = pair(j, k), half = _mm256_set1_epi32(1 << 15);
    __m256i a = (__m256i)x, b = (__m256i)y;
    __m256i even = _mm256_blend_epi16(a, _mm256_slli_epi32(b, 16), 0xaa);
    __m256i odd = _mm256_blend_epi16(_mm256_srli_epi32(a, 16), b, 0xaa);
    even = _mm256_add_epi32(_mm256_madd_epi16(even, factors), half);
    odd = _mm256_add_epi32(_mm256_madd_epi16(odd, factors), half);
    return (words)_mm256_blend_epi16(_mm256_srli_epi32(even, 16), odd, 0xaa);
}

/* A third of 16 pixels in each half; in a plane, odd columns follow even ones.
 */
static inline __m256i join(const __m256i planes[3],
                           const signed char from[3][16])
{
    __m256i joined = _mm256_setzero_si256();
    for (int i = 0; i < 3; i++) {
        __m256i mask = _mm256_broadcastsi128_si256(
            _mm_loadu_si128((const __m128i *)(const void *)from[i]));
        joined = _mm256_or_si256(joined, _mm256_shuffle_epi8(planes[i], mask));
    }
    return joined;
}

static inline void store_pixels(const words blue[2], const words green[2],
                                const words red[2], unsigned char *to)
{
    static const signed char from[3][3][16] = {
        {{0, -1, -1, 8, -1, -1, 1, -1, -1, 9, -1, -1, 2, -1, -1, 10},
         {-1, 0, -1, -1, 8, -1, -1, 1, -1, -1, 9, -1, -1, 2, -1, -1},
         {-1, -1, 0, -1, -1, 8, -1, -1, 1, -1, -1, 9, -1, -1, 2, -1}},
        {{-1, -1, 3, -1, -1, 11, -1, -1, 4, -1, -1, 12, -1, -1, 5, -1},
         {10, -1, -1, 3, -1, -1, 11, -1, -1, 4, -1, -1, 12, -1, -1, 5},
         {-1, 10, -1, -1, 3, -1, -1, 11, -1, -1, 4, -1, -1, 12, -1, -1}},
        {{-1, 13, -1, -1, 6, -1, -1, 14, -1, -1, 7, -1, -1, 15, -1, -1},
         {-1, -1, 13, -1, -1, 6, -1, -1, 14, -1, -1, 7, -1, -1, 15, -1},
         {5, -1, -1, 13, -1, -1, 6, -1, -1, 14, -1, -1, 7, -1, -1, 15}}};
    const __m256i planes[3] = {
        _mm256_packus_epi16((__m256i)blue[0], (__m256i)blue[1]),
        _mm256_packus_epi16((__m256i)green[0], (__m256i)green[1]),
        _mm256_packus_epi16((__m256i)red[0], (__m256i)red[1])};
    __m128i *out = (__m128i *)(void *)to;
    for (int i = 0; i < 3; i++) {
        __m256i third = join(planes, from[i]);
        _mm_storeu_si128(out + i, _mm256_castsi256_si128(third));
        _mm_storeu_si128(out + i + 3, _mm256_extracti128_si256(third, 1));
    }
}

#define JPEG_KERNELS leat__jpeg_kernels_avx2
#define JPEG_NAME "avx2"
#include "data/jpeg/jpeg_kernels_body.h"
