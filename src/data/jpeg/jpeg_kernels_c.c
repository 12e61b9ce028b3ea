#include "data/jpeg/jpeg_idct_c.h"

#define COLOR_WORDS 8
typedef short words __attribute__((vector_size(16)));
typedef unsigned short unsigned_words __attribute__((vector_size(16)));

static inline words widen(const unsigned char *p)
{
    unsigned char __attribute__((vector_size(8))) bytes;
    memcpy(&bytes, p, sizeof(bytes));
    return __builtin_convertvector(bytes, words);
}

/* The even one of a pair in its low byte. */
static inline words load_pairs(const unsigned char *p)
{
    unsigned_words pairs;
    memcpy(&pairs, p, sizeof(pairs));
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    pairs = pairs >> 8 | pairs << 8;
#endif
    return (words)pairs;
}

static inline words high_product(words x, int k)
{
    short in[COLOR_WORDS], out[COLOR_WORDS];
    memcpy(in, &x, sizeof(in));
    for (int i = 0; i < COLOR_WORDS; i++)
        out[i] = (short)((in[i] * k) >> 16);
    memcpy(&x, out, sizeof(x));
    return x;
}

static inline words mean_product(words x, int j, words y, int k)
{
    short a[COLOR_WORDS], b[COLOR_WORDS];
    memcpy(a, &x, sizeof(a));
    memcpy(b, &y, sizeof(b));
    for (int i = 0; i < COLOR_WORDS; i++)
        a[i] = (short)((a[i] * j + b[i] * k + (1 << 15)) >> 16);
    memcpy(&x, a, sizeof(x));
    return x;
}

/* Words limited to 0 to 255. */
static inline words limited(words x)
{
    x &= x > 0;
    words exceeds = x > 255;
    return (x & ~exceeds) | (exceeds & 255);
}

static inline void store_pixels(const words blue[2], const words green[2],
                                const words red[2], unsigned char *to)
{
    for (int odd = 0; odd < 2; odd++) {
        words b = limited(blue[odd]), g = limited(green[odd]);
        words r = limited(red[odd]);
        for (int i = 0; i < COLOR_WORDS; i++) {
            unsigned char *pixel = to + 3 * (2 * i + odd);
            pixel[0] = (unsigned char)b[i];
            pixel[1] = (unsigned char)g[i];
            pixel[2] = (unsigned char)r[i];
        }
    }
}

#define JPEG_KERNELS leat__jpeg_kernels_c
#define JPEG_NAME "c"
#include "data/jpeg/jpeg_kernels_body.h"
