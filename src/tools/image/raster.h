/* raster.h: interleaved pixels, which can be drawn and written on. */
#ifndef LEAT_TOOLS_IMAGE_RASTER_H
#define LEAT_TOOLS_IMAGE_RASTER_H

#include <leat/status.h>

struct raster {
    int channels; /* 1: gray; 3: R, G, B; drawing needs 3 */
    int width;
    int height;
    unsigned char *pixels; /* rows without gaps */
};

/* 0xRRGGBB. */
typedef uint32_t raster_color;

/* A picture of one colour. Errors: LEAT_ENOMEM. */
int raster_init(struct raster *out, int width, int height, raster_color color);
void raster_finish(struct raster *raster);

/* Pixels outside the picture are not drawn. */
void raster_set(struct raster *raster, int x, int y, raster_color color);
void raster_fill(struct raster *raster, int x, int y, int width, int height,
                 raster_color color);

/* Letters of 5 x 8 pixels; the last row is for descenders. */
enum { FONT_WIDTH = 5, FONT_HEIGHT = 8, FONT_ADVANCE = FONT_WIDTH + 1 };

/*
 * Writes `length` letters of the text, each of their pixels a square of
 * `scale`. What is not printable ASCII is drawn as a rectangle.
 */
void raster_write(struct raster *raster, int x, int y, const char *text,
                  int length, int scale, raster_color color);

#endif
