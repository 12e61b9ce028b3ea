/* image.h: an image in two steps, its header first, then what is wanted of it.
 */
#ifndef LEAT_DATA_IMAGE_H
#define LEAT_DATA_IMAGE_H

#include "data/image_frame.h"

/*
 * As leat_image_probe, and leat__image_read can follow: `bytes` are borrowed
 * until then.
 */
int leat__image_open(leat_image_decoder *decoder, const void *bytes,
                     size_t size, leat_color color, leat_image *out);

/*
 * Decodes the image that the last call opened, once, with the errors of
 * leat_image_decode. With a region only its pixels are sure to be written, with
 * the same bytes, verdict and count; NULL, or one that is not inside the image:
 * all of them.
 */
int leat__image_read(leat_image_decoder *decoder,
                     const leat__image_region *region, leat_image *out);

/* A decoder's memory in bytes, of the last image that was opened. */
typedef struct leat__image_memory {
    uint64_t expected; /* that it would take, by its header; 0: unknown */
    uint64_t taken;    /* at once so far, pixels included */
    uint64_t kept;     /* for the next one */
} leat__image_memory;

leat__image_memory leat__image_memory_use(const leat_image_decoder *decoder);

#endif
