/* image.h: decodes an image in two steps, first its header, then its pixels. */
#ifndef LEAT_DATA_IMAGE_H
#define LEAT_DATA_IMAGE_H

#include "data/image_frame.h"

/*
 * As leat_image_probe; leat__image_read may follow, and `bytes` are borrowed
 * until then.
 */
int leat__image_open(leat_image_decoder *decoder, const void *bytes,
                     size_t size, leat_color color, leat_image *out);

/*
 * Decodes the opened image, once, with the errors of leat_image_decode. With a
 * region only its pixels are guaranteed to be written; their bytes, the status
 * and the count of warnings are the same, but that a JPEG's segments between
 * restart markers, if the region takes nothing from them, are searched for
 * markers only. NULL, or a region that is not inside the image: all pixels.
 */
int leat__image_read(leat_image_decoder *decoder,
                     const leat__image_region *region, leat_image *out);

/* A decoder's memory in bytes, for the latest opened image. */
typedef struct leat__image_memory {
    uint64_t expected; /* estimated by its header; 0: unknown */
    uint64_t taken;    /* peak so far, including pixels */
    uint64_t kept;     /* kept for the next image */
} leat__image_memory;

leat__image_memory leat__image_memory_use(const leat_image_decoder *decoder);

/* JPEGs so far. */
leat__jpeg_counts leat__image_jpeg_counts(const leat_image_decoder *decoder);

#endif
