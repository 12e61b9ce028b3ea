/* jpeg_writer.h: planar pixels as a JPEG. */
#ifndef LEAT_TOOLS_IMAGE_JPEG_WRITER_H
#define LEAT_TOOLS_IMAGE_JPEG_WRITER_H

#include "tools/image/canvas.h"

/*
 * Encodes a canvas of 1 channel, gray, or 3, blue first as in a Datum. `*out`
 * is owned by the caller: free. Errors: LEAT_EINVAL, LEAT_ENOMEM.
 */
int jpeg_writer_encode(const struct canvas *canvas, int quality,
                       unsigned char **out, size_t *size);

#endif
