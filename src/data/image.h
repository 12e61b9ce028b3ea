/* image.h: encoded images, decoded as OpenCV's imdecode does for Caffe. */
#ifndef LEAT_DATA_IMAGE_H
#define LEAT_DATA_IMAGE_H

#include <leat/status.h>

typedef enum leat__color {
    LEAT__COLOR_NATIVE = 0, /* the file's channels; no EXIF rotation */
    LEAT__COLOR_BGR,        /* force_color: 3 channels, EXIF rotation */
    LEAT__COLOR_GRAY        /* force_gray: 1 channel, EXIF rotation */
} leat__color;

/* Pixels, interleaved, B G R (A), rows without gaps. */
typedef struct leat__image {
    int channels;
    int height;
    int width;
    const unsigned char *pixels; /* borrowed from the decoder until the next */
} leat__image;

/* A part of an image, in its rows and columns. */
typedef struct leat__image_region {
    int row; /* the first */
    int column;
    int rows;
    int columns;
} leat__image_region;

/*
 * A decoder with its own buffers, which it keeps from image to image. One
 * caller at a time; each worker has its own.
 */
typedef struct leat__image_decoder leat__image_decoder;

int leat__image_decoder_create(leat__image_decoder **out); /* LEAT_ENOMEM */
void leat__image_decoder_destroy(leat__image_decoder *decoder);

/*
 * The shape that decoding will give, from the header alone; pixels is NULL.
 * Errors: LEAT_EDATA, naming what the bytes are or lack; LEAT_ENOMEM.
 */
int leat__image_peek(leat__image_decoder *decoder, const void *bytes,
                     size_t size, leat__color color, leat__image *out);

/*
 * The same, and leat__image_read can follow: `bytes` are borrowed until then.
 */
int leat__image_open(leat__image_decoder *decoder, const void *bytes,
                     size_t size, leat__color color, leat__image *out);

/*
 * Decodes the image that the last call opened, once. An image that ends early
 * is LEAT_EDATA; lesser warnings of the codec give its pixels and are counted.
 * With a region only its pixels are sure to be written, with the same bytes,
 * verdict and count; NULL, or one that is not inside the image: all of them.
 */
int leat__image_read(leat__image_decoder *decoder,
                     const leat__image_region *region, leat__image *out);

/* Opens and reads all. */
int leat__image_decode(leat__image_decoder *decoder, const void *bytes,
                       size_t size, leat__color color, leat__image *out);

/* Images so far whose codec warned. */
int64_t leat__image_warnings(const leat__image_decoder *decoder);

#endif
