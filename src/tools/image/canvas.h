/* canvas.h: an image in planes, as a Datum holds it. */
#ifndef LEAT_TOOLS_IMAGE_CANVAS_H
#define LEAT_TOOLS_IMAGE_CANVAS_H

#include "tools/image/raster.h"

#include <stddef.h>

struct canvas {
    int channels;
    int height;
    int width;
    unsigned char *pixels; /* channels x height x width, blue first */
    float *ink;            /* height x width: how much ink covers a pixel */
};

/* Errors: LEAT_ENOMEM. */
int canvas_init(struct canvas *canvas, const int shape[3]);
void canvas_finish(struct canvas *canvas);

/* The bytes of all its pixels. */
size_t canvas_bytes(const struct canvas *canvas);

/*
 * Draws record `index` of `seed`, which is always the same image. A digit is
 * its own label; noise has a random one of ten. Before each row it calls
 * `check`, whose error it returns; NULL: none.
 */
typedef int canvas_draw(struct canvas *canvas, uint64_t seed, int64_t index,
                        int (*check)(void), int *label);
canvas_draw canvas_draw_digit, canvas_draw_noise;

#endif
