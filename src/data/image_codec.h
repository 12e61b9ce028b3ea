/* image_codec.h: the codecs of image.c. */
#ifndef LEAT_DATA_IMAGE_CODEC_H
#define LEAT_DATA_IMAGE_CODEC_H

#include "data/image_arena.h"
#include "data/image_frame.h"

/*
 * A codec: open reads the header into *frame; read decodes the opened image, at
 * least the pixels of a region inside the frame (NULL: all), to their offsets
 * in the whole image. After read, and after a failure of either, close frees
 * the memory, all of which is in the arena passed to create. The source must
 * outlive that. Errors: LEAT_EDATA, also if the arena is at its limit;
 * LEAT_ENOMEM.
 */
typedef struct leat__jpeg leat__jpeg;
int leat__jpeg_create(leat__jpeg **out, leat__arena *arena);
void leat__jpeg_destroy(leat__jpeg *jpeg);
int leat__jpeg_open(leat__jpeg *jpeg, const leat__image_source *source,
                    leat__image_frame *frame);
int leat__jpeg_read(leat__jpeg *jpeg, const leat__image_region *region,
                    unsigned char *pixels, leat__image_frame *frame);
void leat__jpeg_close(leat__jpeg *jpeg);
leat__jpeg_counts leat__jpeg_count(const leat__jpeg *jpeg);

typedef struct leat__png leat__png;
int leat__png_create(leat__png **out, leat__arena *arena);
void leat__png_destroy(leat__png *png);
int leat__png_open(leat__png *png, const leat__image_source *source,
                   leat__image_frame *frame);
int leat__png_read(leat__png *png, unsigned char *pixels,
                   leat__image_frame *frame);
void leat__png_close(leat__png *png);

#endif
