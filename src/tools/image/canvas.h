/* canvas.h: an image in planes, as a Datum holds it. */
#ifndef LEAT_TOOLS_IMAGE_CANVAS_H
#define LEAT_TOOLS_IMAGE_CANVAS_H

#include "tools/image/raster.h"

#include <stdio.h>

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
 * Encodes a canvas of 1 or 3 channels with `write`, whose errors it returns.
 * `*out` is owned by the caller: free. Errors: LEAT_ENOMEM.
 */
typedef int raster_writer(const struct raster *raster, int quality,
                          FILE *stream);
int canvas_encode(const struct canvas *canvas, raster_writer *write,
                  int quality, unsigned char **out, size_t *size);

/*
 * Draws record `index` of `seed`, which is always the same image, and returns
 * its label. A digit is its own label; noise has a random one of ten.
 */
int canvas_draw_digit(struct canvas *canvas, uint64_t seed, int64_t index);
int canvas_draw_noise(struct canvas *canvas, uint64_t seed, int64_t index);

#endif
