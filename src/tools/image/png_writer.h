/* png_writer.h: planar pixels as a PNG. */
#ifndef LEAT_TOOLS_IMAGE_PNG_WRITER_H
#define LEAT_TOOLS_IMAGE_PNG_WRITER_H

#include "tools/image/canvas.h"

/*
 * Encodes a canvas of 1 channel, gray, or 3, blue first as in a Datum, fast
 * rather than small. `*out` is owned by the caller: free.
 * Errors: LEAT_EINVAL, LEAT_ENOMEM.
 */
int png_writer_encode(const struct canvas *canvas, unsigned char **out,
                      size_t *size);

#endif
