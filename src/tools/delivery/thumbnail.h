/* thumbnail.h: the content of a record as a small picture. */
#ifndef LEAT_TOOLS_DELIVERY_THUMBNAIL_H
#define LEAT_TOOLS_DELIVERY_THUMBNAIL_H

#include "tools/image/raster.h"

#include <leat/image.h>
#include <leat/sample.h>

#include <stdbool.h>

struct thumbnail {
    const void *data;
    leat_dtype dtype; /* of an element: UINT8 or FLOAT32 */
    int channels, height, width;
    size_t channel_step, pixel_step; /* elements between two of them */
    float low, scale;                /* (value - low) * scale is in 0 .. 255 */
    bool is_color;                   /* B, G, R (A), unless */
    bool is_rgb;                     /* R, G, B */

    /* Channels that are no colours are tiles side by side. */
    int tiles, columns;
    int tile_height, tile_width; /* of a single long row: folded */
};

/* Of a field that leat_datum_fields gave, and its image if it is encoded. */
void thumbnail_init(struct thumbnail *out, const leat_field *field,
                    const leat_image *image, bool is_rgb);

/*
 * Draws it in the middle of a square of `side` pixels: a small one enlarged by
 * a whole factor, a large one averaged.
 */
void thumbnail_draw(const struct thumbnail *thumbnail, struct raster *raster,
                    int x, int y, int side);

/* The standard deviation of its values, of at most some thousands of them. */
double thumbnail_contrast(const struct thumbnail *thumbnail);

/* The columns in which `n` cells fill about a square. */
int thumbnail_columns(int64_t n, double cell_width, double cell_height);

#endif
