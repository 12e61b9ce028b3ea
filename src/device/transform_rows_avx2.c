#include <immintrin.h>
#include <string.h>

/* _mm_loadu_si32, which gcc has from version 11 on. */
static inline __m128i load_word(const unsigned char *bytes)
{
    int word;
    memcpy(&word, bytes, sizeof(word));
    return _mm_cvtsi32_si128(word);
}

#define ROW_KERNELS leat__row_kernels_avx2
#define ROW_NAME "avx2"
#define ROW_LANES 8
#define ROW_HAS_BYTE_SHUFFLE 1
#define ROW_FLOATS_OF_VECTOR(x)                                                \
    ((float_vector)_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32((__m128i)(x))))
#define ROW_FLOATS_OF_BYTES(p)                                                 \
    ROW_FLOATS_OF_VECTOR(_mm_loadl_epi64((const __m128i *)(p)))
#define ROW_DOUBLES_OF_BYTES(p)                                                \
    ((double_vector)_mm256_cvtepi32_pd(_mm_cvtepu8_epi32(load_word(p))))
#include "device/transform_rows_body.h"
