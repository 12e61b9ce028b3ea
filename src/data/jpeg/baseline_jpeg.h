/*
 * baseline_jpeg.h: clean baseline JPEGs, decoded with the pixels of libjpeg.
 *
 * libjpeg reads the header, so that its checks, tables and colours hold here
 * too, and it decodes what is declined here: any other process or sampling, and
 * any irregularity of the data, whose pixels, warnings and errors are its own.
 */
#ifndef LEAT_DATA_JPEG_BASELINE_JPEG_H
#define LEAT_DATA_JPEG_BASELINE_JPEG_H

#include "data/image_arena.h"
#include "data/image_frame.h"

#include <stdbool.h>
#include <stdio.h> /* jpeglib.h uses FILE without it */

#include <jpeglib.h>

/* Tables are kept from image to image. */
typedef struct leat__baseline_jpeg leat__baseline_jpeg;

/* `*out` is NULL where libjpeg is faster: without vector code. */
int leat__baseline_jpeg_create(leat__baseline_jpeg **out);
void leat__baseline_jpeg_destroy(leat__baseline_jpeg *jpeg);

/*
 * Decodes the image whose header `codec` has read, at least the pixels of the
 * region (NULL: all), to their offsets in the whole image of frame->channels.
 * Its memory is in the arena, and freed. False: declined; the codec is as it
 * was, and the pixels are undefined.
 */
bool leat__baseline_jpeg_read(leat__baseline_jpeg *jpeg,
                              const struct jpeg_decompress_struct *codec,
                              leat__arena *arena,
                              const leat__image_region *region,
                              const leat__image_frame *frame,
                              unsigned char *pixels);

#endif
