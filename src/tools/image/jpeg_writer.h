/* jpeg_writer.h: pixels as a JPEG. */
#ifndef LEAT_TOOLS_IMAGE_JPEG_WRITER_H
#define LEAT_TOOLS_IMAGE_JPEG_WRITER_H

#include "tools/image/canvas.h"

/* Errors: LEAT_EINVAL, also where the stream fails; LEAT_ENOMEM. */
raster_writer jpeg_writer_write;

/* The same of a canvas; see canvas_encode. */
int jpeg_writer_encode(const struct canvas *canvas, int quality,
                       unsigned char **out, size_t *size);

#endif
