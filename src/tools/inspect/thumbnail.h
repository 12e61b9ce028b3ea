/* thumbnail.h: what a record holds, as a small picture of it. */
#ifndef LEAT_TOOLS_INSPECT_THUMBNAIL_H
#define LEAT_TOOLS_INSPECT_THUMBNAIL_H

#include "tools/image/raster.h"

#include <leat/image.h>
#include <leat/sample.h>

/* How the pixels of a record are to be seen. */
struct thumbnail {
    const leat_image *image; /* interleaved; NULL: planes of data */
    const void *data;
    leat_dtype dtype; /* of planes: UINT8 or FLOAT32 */
    int channels, height, width;
    int is_rgb;       /* planes are R, G, B, not B, G, R */
    int fold;         /* a lone row of so many values; 0: none */
    int columns;      /* of planes side by side; 0: they are colours */
    float low, scale; /* of floats, to 0 .. 255 */
};

/* A field that leat_datum_fields gave, and its image if it is encoded. */
void thumbnail_init(struct thumbnail *out, const leat_field *field,
                    const leat_image *image, int is_rgb);

/*
 * Draws it into a square of `side` pixels, in the middle: small ones as squares
 * of whole pixels, large ones as the mean of the pixels that fall together.
 */
void thumbnail_draw(const struct thumbnail *thumbnail, struct raster *raster,
                    int x, int y, int side);

/* The standard deviation of its values, of at most some thousand of them. */
double thumbnail_contrast(const struct thumbnail *thumbnail);

#endif
