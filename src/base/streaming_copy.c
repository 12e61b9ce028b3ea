#include "base/streaming_copy.h"
#include "base/memory.h"

#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)

#include <emmintrin.h>

/* Whole lines of the cache; what is left of a line at either end is stored as
   usual. */
void leat__streaming_copy(void *to, const void *from, size_t bytes)
{
    char *out = to;
    const char *in = from;
    size_t head = (0 - (uintptr_t)out) % LEAT__CACHE_LINE;
    if (head > bytes)
        head = bytes;
    memcpy(out, in, head);
    size_t i = head;
    for (; i + LEAT__CACHE_LINE <= bytes; i += LEAT__CACHE_LINE) {
        __m128i *line = (__m128i *)(void *)(out + i);
        const __m128i *source = (const __m128i *)(const void *)(in + i);
        __m128i a = _mm_loadu_si128(source);
        __m128i b = _mm_loadu_si128(source + 1);
        __m128i c = _mm_loadu_si128(source + 2);
        __m128i d = _mm_loadu_si128(source + 3);
        _mm_stream_si128(line, a);
        _mm_stream_si128(line + 1, b);
        _mm_stream_si128(line + 2, c);
        _mm_stream_si128(line + 3, d);
    }
    memcpy(out + i, in + i, bytes - i);
}

void leat__streaming_copy_end(void)
{
    _mm_sfence();
}

#else

void leat__streaming_copy(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

void leat__streaming_copy_end(void)
{
}

#endif
