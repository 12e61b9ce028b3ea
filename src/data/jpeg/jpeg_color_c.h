/*
 * jpeg_color_c.h: rows of samples to pixels in C: libjpeg's triangular
 * upsampling (h2v1, h1v2, h2v2: "fancy") and its fixed-point colours.
 */
#include "data/jpeg/jpeg_kernels.h"

/* In units of 2^-16, of chroma less 128: ITU-R BT.601, as in JFIF. */
#define RED_OF_CR 91881
#define GREEN_OF_CB (-22554)
#define GREEN_OF_CR (-46802)
#define BLUE_OF_CB 116130
#define HALF (1 << 15)

static inline unsigned char byte_of(int x)
{
    return (unsigned char)(x < 0 ? 0 : x > 255 ? 255 : x);
}

static inline void store_pixel(unsigned char *to, int luma, int cb, int cr)
{
    cb -= 128;
    cr -= 128;
    to[0] = byte_of(luma + ((BLUE_OF_CB * cb + HALF) >> 16));
    to[1] = byte_of(luma +
                    ((GREEN_OF_CB * cb + GREEN_OF_CR * cr + HALF) >> 16));
    to[2] = byte_of(luma + ((RED_OF_CR * cr + HALF) >> 16));
}

static inline int chroma_of(const leat__jpeg_rows *rows, int component,
                            int spread, int x)
{
    const unsigned char *near = rows->chroma[component];
    const unsigned char *far = rows->other_chroma[component];
    int i = spread == LEAT__JPEG_H2V1 || spread == LEAT__JPEG_H2V2 ? x / 2 : x;
    int beside = x % 2 ? i + 1 : i - 1; /* the next nearest column */
    switch (spread) {
    case LEAT__JPEG_H2V1:
        return (near[i] * 3 + near[beside] + (x % 2 ? 2 : 1)) >> 2;
    case LEAT__JPEG_H1V2:
        return (near[i] * 3 + far[i] + rows->bias) >> 2;
    case LEAT__JPEG_H2V2:
        return ((near[i] * 3 + far[i]) * 3 + near[beside] * 3 + far[beside] +
                (x % 2 ? 7 : 8)) >>
               4;
    default:
        return near[i];
    }
}

static inline void color_pixels(const leat__jpeg_rows *rows, int spread,
                                int first, int end, unsigned char *pixels)
{
    for (int x = first; x < end; x++)
        store_pixel(pixels + 3 * (ptrdiff_t)x, rows->luma[x],
                    chroma_of(rows, 0, spread, x),
                    chroma_of(rows, 1, spread, x));
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
