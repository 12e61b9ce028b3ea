#include "data/jpeg/jpeg_idct_avx2.h"

#define COLOR_WORDS 32
typedef short words __attribute__((vector_size(64)));
typedef unsigned short unsigned_words __attribute__((vector_size(64)));

static inline words widen(const unsigned char *p)
{
    return (words)_mm512_cvtepu8_epi16(
        _mm256_loadu_si256((const __m256i *)(const void *)p));
}

static inline words load_pairs(const unsigned char *p)
{
    return (words)_mm512_loadu_si512(p);
}

static inline words high_product(words x, int k)
{
    return (words)_mm512_mulhi_epi16((__m512i)x, _mm512_set1_epi16((short)k));
}

/* The sums of even words and of odd words, of which the upper half is taken. */
static inline words mean_product(words x, int j, words y, int k)
{
    const __m512i factors =
        _mm512_set1_epi32((int)((uint32_t)k << 16 | (uint16_t)j));
    const __m512i half = _mm512_set1_epi32(1 << 15);
    const __mmask32 upper = 0xaaaaaaaa;
    __m512i a = (__m512i)x, b = (__m512i)y;
    __m512i even = _mm512_mask_blend_epi16(upper, a, _mm512_slli_epi32(b, 16));
    __m512i odd = _mm512_mask_blend_epi16(upper, _mm512_srli_epi32(a, 16), b);
    even = _mm512_add_epi32(_mm512_madd_epi16(even, factors), half);
    odd = _mm512_add_epi32(_mm512_madd_epi16(odd, factors), half);
    return (words)_mm512_mask_blend_epi16(upper, _mm512_srli_epi32(even, 16),
                                          odd);
}

/* In a plane, odd columns follow even ones in each quarter. */
static inline void store_pixels(const words blue[2], const words green[2],
                                const words red[2], unsigned char *to)
{
    /* Bytes of blue and green, from 64 on; then of red, from 64 on. */
    static const unsigned char first[3][64] = {
        {0,  64, 0,  8,  72, 0,  1,  65, 0,  9,  73, 0,  2,  66, 0,  10,
         74, 0,  3,  67, 0,  11, 75, 0,  4,  68, 0,  12, 76, 0,  5,  69,
         0,  13, 77, 0,  6,  70, 0,  14, 78, 0,  7,  71, 0,  15, 79, 0,
         16, 80, 0,  24, 88, 0,  17, 81, 0,  25, 89, 0,  18, 82, 0,  26},
        {90,  0,  19, 83, 0,   27, 91,  0,  20, 84,  0,   28, 92,  0,  21, 85,
         0,   29, 93, 0,  22,  86, 0,   30, 94, 0,   23,  87, 0,   31, 95, 0,
         32,  96, 0,  40, 104, 0,  33,  97, 0,  41,  105, 0,  34,  98, 0,  42,
         106, 0,  35, 99, 0,   43, 107, 0,  36, 100, 0,   44, 108, 0,  37, 101},
        {0, 45, 109, 0, 38, 102, 0, 46, 110, 0, 39, 103, 0, 47, 111, 0, 48, 112,
         0, 56, 120, 0, 49, 113, 0, 57, 121, 0, 50, 114, 0, 58, 122, 0, 51, 115,
         0, 59, 123, 0, 52, 116, 0, 60, 124, 0, 53, 117, 0, 61, 125, 0, 54, 118,
         0, 62, 126, 0, 55, 119, 0, 63, 127, 0}};
    static const unsigned char second[3][64] = {
        {0,  1,  64, 3,  4,  72, 6,  7,  65, 9,  10, 73, 12, 13, 66, 15,
         16, 74, 18, 19, 67, 21, 22, 75, 24, 25, 68, 27, 28, 76, 30, 31,
         69, 33, 34, 77, 36, 37, 70, 39, 40, 78, 42, 43, 71, 45, 46, 79,
         48, 49, 80, 51, 52, 88, 54, 55, 81, 57, 58, 89, 60, 61, 82, 63},
        {0,  90,  2,  3,  83, 5,   6,  91,  8,  9,  84,  11,  12, 92,  14, 15,
         85, 17,  18, 93, 20, 21,  86, 23,  24, 94, 26,  27,  87, 29,  30, 95,
         32, 33,  96, 35, 36, 104, 38, 39,  97, 41, 42,  105, 44, 45,  98, 47,
         48, 106, 50, 51, 99, 53,  54, 107, 56, 57, 100, 59,  60, 108, 62, 63},
        {101, 1,   2,   109, 4,   5,   102, 7,   8,   110, 10,  11,  103,
         13,  14,  111, 16,  17,  112, 19,  20,  120, 22,  23,  113, 25,
         26,  121, 28,  29,  114, 31,  32,  122, 34,  35,  115, 37,  38,
         123, 40,  41,  116, 43,  44,  124, 46,  47,  117, 49,  50,  125,
         52,  53,  118, 55,  56,  126, 58,  59,  119, 61,  62,  127}};
    __m512i b = _mm512_packus_epi16((__m512i)blue[0], (__m512i)blue[1]);
    __m512i g = _mm512_packus_epi16((__m512i)green[0], (__m512i)green[1]);
    __m512i r = _mm512_packus_epi16((__m512i)red[0], (__m512i)red[1]);
    for (int i = 0; i < 3; i++) {
        __m512i third =
            _mm512_permutex2var_epi8(b, _mm512_loadu_si512(first[i]), g);
        third =
            _mm512_permutex2var_epi8(third, _mm512_loadu_si512(second[i]), r);
        _mm512_storeu_si512(to + (ptrdiff_t)i * 64, third);
    }
}

#define JPEG_KERNELS leat__jpeg_kernels_avx512
#define JPEG_NAME "avx512"
#include "data/jpeg/jpeg_kernels_body.h"
