/* image_writer.h: pixels as a PNG or a JPEG. */
#ifndef LEAT_TOOLS_IMAGE_IMAGE_WRITER_H
#define LEAT_TOOLS_IMAGE_IMAGE_WRITER_H

#include "tools/image/canvas.h"

#include <stdio.h>

/*
 * Errors: LEAT_EINVAL, also where the stream fails; LEAT_ENOMEM. A PNG is fast
 * rather than small where `quality` is 0, with the settings of OpenCV's
 * imencode. Before each row it calls `check`, whose
 * error it returns; NULL: none.
 */
typedef int image_writer(const struct raster *raster, int quality,
                         int (*check)(void), FILE *stream);
image_writer image_writer_png, image_writer_jpeg;

/*
 * Encodes an image, or a canvas of 1 or 3 channels, with `write`, whose errors
 * it returns. `*out` is owned by the caller: free. Errors: LEAT_ENOMEM.
 */
int image_writer_bytes(const struct raster *raster, image_writer *write,
                       int quality, int (*check)(void), unsigned char **out,
                       size_t *size);
int image_writer_encode(const struct canvas *canvas, image_writer *write,
                        int quality, int (*check)(void), unsigned char **out,
                        size_t *size);

#endif
