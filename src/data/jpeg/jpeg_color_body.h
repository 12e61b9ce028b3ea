/*
 * jpeg_color_body.h: rows of samples to pixels in vectors, with the bits of
 * jpeg_color_c.h. The including file defines COLOR_WORDS, the 16-bit words of a
 * vector, the type `words` of such a vector, and
 *
 *     words widen(const unsigned char *p)     COLOR_WORDS samples
 *     words load_pairs(const unsigned char *p)     twice as many, as they lie
 *     words high_product(words x, int k)      (x * k) >> 16
 *     words mean_product(words x, int j, words y, int k)
 *                                    (x * j + y * k + 2^15) >> 16
 *     void store_pixels(const words blue[2], const words green[2],
 *                       const words red[2], unsigned char *to)
 *
 * A step makes two vectors of pixels, those of even columns and those of odd
 * ones: chroma of half the width then needs no interleaving.
 */
#include "data/jpeg/jpeg_kernels.h"

#include <string.h>

#define COLOR_INLINE static inline __attribute__((always_inline))
#define COLOR_STEP (2 * COLOR_WORDS)

/* Even columns from low bytes, odd ones from high bytes. */
COLOR_INLINE void split_pairs(words pairs, words out[2])
{
    out[0] = pairs & 0xff;
    out[1] = (words)((unsigned_words)pairs >> 8);
}

/* The mean of rows at columns from i on, in quarters. */
COLOR_INLINE words row_sum(const unsigned char *near, const unsigned char *far,
                           ptrdiff_t i)
{
    return widen(near + i) * 3 + widen(far + i);
}

COLOR_INLINE void spread_h1v1(const leat__jpeg_rows *rows, int component,
                              ptrdiff_t x, words out[2])
{
    split_pairs(load_pairs(rows->chroma[component] + x), out);
}

COLOR_INLINE void spread_h2v1(const leat__jpeg_rows *rows, int component,
                              ptrdiff_t x, words out[2])
{
    const unsigned char *near = rows->chroma[component] + x / 2;
    words here = widen(near) * 3;
    out[0] = (here + widen(near - 1) + 1) >> 2;
    out[1] = (here + widen(near + 1) + 2) >> 2;
}

COLOR_INLINE void spread_h1v2(const leat__jpeg_rows *rows, int component,
                              ptrdiff_t x, words out[2])
{
    words near[2], far[2];
    split_pairs(load_pairs(rows->chroma[component] + x), near);
    split_pairs(load_pairs(rows->other_chroma[component] + x), far);
    for (int i = 0; i < 2; i++)
        out[i] = (near[i] * 3 + far[i] + (short)rows->bias) >> 2;
}

COLOR_INLINE void spread_h2v2(const leat__jpeg_rows *rows, int component,
                              ptrdiff_t x, words out[2])
{
    const unsigned char *near = rows->chroma[component] + x / 2;
    const unsigned char *far = rows->other_chroma[component] + x / 2;
    words here = row_sum(near, far, 0) * 3;
    out[0] = (here + row_sum(near, far, -1) + 8) >> 4;
    out[1] = (here + row_sum(near, far, 1) + 7) >> 4;
}

/*
 * libjpeg's products are 1.402 and 1.772 in units of 2^-16 with a rounded last
 * bit. Here their whole parts are left out, so that 16 bits hold what is left,
 * doubled; the last shift rounds.
 */
COLOR_INLINE void color_words(words luma, words cb, words cr, words *blue,
                              words *green, words *red)
{
    cb -= 128;
    cr -= 128;
    *red = luma + cr + ((high_product(cr + cr, 26345) + 1) >> 1);
    *blue = luma + cb + cb + ((high_product(cb + cb, -14942) + 1) >> 1);
    *green = luma - cr + mean_product(cb, -22554, cr, 18734);
}

COLOR_INLINE void color_step(const leat__jpeg_rows *rows, int spread,
                             ptrdiff_t x, unsigned char *to)
{
    words luma[2], cb[2], cr[2], blue[2], green[2], red[2];
    split_pairs(load_pairs(rows->luma + x), luma);
    switch (spread) {
    case LEAT__JPEG_H2V1:
        spread_h2v1(rows, 0, x, cb);
        spread_h2v1(rows, 1, x, cr);
        break;
    case LEAT__JPEG_H1V2:
        spread_h1v2(rows, 0, x, cb);
        spread_h1v2(rows, 1, x, cr);
        break;
    case LEAT__JPEG_H2V2:
        spread_h2v2(rows, 0, x, cb);
        spread_h2v2(rows, 1, x, cr);
        break;
    default:
        spread_h1v1(rows, 0, x, cb);
        spread_h1v1(rows, 1, x, cr);
        break;
    }
    for (int i = 0; i < 2; i++)
        color_words(luma[i], cb[i], cr[i], &blue[i], &green[i], &red[i]);
    store_pixels(blue, green, red, to);
}

COLOR_INLINE void color_pixels(const leat__jpeg_rows *rows, int spread,
                               int first, int end, unsigned char *pixels)
{
    ptrdiff_t x = first;
    for (; x + COLOR_STEP <= end; x += COLOR_STEP)
        color_step(rows, spread, x, pixels + 3 * x);
    if (x == end)
        return;
    unsigned char last[3 * COLOR_STEP];
    color_step(rows, spread, x, last);
    memcpy(pixels + 3 * x, last, 3 * (size_t)(end - x));
}

static void color_h1v1(const leat__jpeg_rows *rows, int first, int end,
                       unsigned char *pixels)
{
    color_pixels(rows, LEAT__JPEG_H1V1, first, end, pixels);
}

static void color_h2v1(const leat__jpeg_rows *rows, int first, int end,
                       unsigned char *pixels)
{
    color_pixels(rows, LEAT__JPEG_H2V1, first, end, pixels);
}

static void color_h1v2(const leat__jpeg_rows *rows, int first, int end,
                       unsigned char *pixels)
{
    color_pixels(rows, LEAT__JPEG_H1V2, first, end, pixels);
}

static void color_h2v2(const leat__jpeg_rows *rows, int first, int end,
                       unsigned char *pixels)
{
    color_pixels(rows, LEAT__JPEG_H2V2, first, end, pixels);
}
