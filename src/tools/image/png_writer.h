/* png_writer.h: pixels as a PNG. */
#ifndef LEAT_TOOLS_IMAGE_PNG_WRITER_H
#define LEAT_TOOLS_IMAGE_PNG_WRITER_H

#include "tools/image/canvas.h"

/*
 * Writes a small file; fast rather than small where `quality` is 0, with the
 * settings of OpenCV's imencode. Errors: LEAT_EINVAL, also where the stream
 * fails; LEAT_ENOMEM.
 */
raster_writer png_writer_write;

/* Encodes a canvas fast; see canvas_encode. */
int png_writer_encode(const struct canvas *canvas, unsigned char **out,
                      size_t *size);

#endif
