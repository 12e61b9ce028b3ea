#include <immintrin.h>

#define ROW_KERNELS leat__row_kernels_avx512
#define ROW_NAME "avx512"
#define ROW_LANES 16
#define ROW_HAS_BYTE_SHUFFLE 1
#define ROW_FLOATS_OF_VECTOR(x)                                                \
    ((float_vector)_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32((__m128i)(x))))
#define ROW_FLOATS_OF_BYTES(p)                                                 \
    ROW_FLOATS_OF_VECTOR(_mm_loadu_si128((const __m128i *)(p)))
#define ROW_DOUBLES_OF_BYTES(p)                                                \
    ((double_vector)_mm512_cvtepi32_pd(                                        \
        _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(p)))))
#include "device/transform_rows_body.h"
