/* image_codec.h: what image.c and its codecs share. */
#ifndef LEAT_DATA_IMAGE_CODEC_H
#define LEAT_DATA_IMAGE_CODEC_H

#include "data/image.h"

/* An encoded image and how it is wanted. */
typedef struct leat__image_source {
    const unsigned char *bytes; /* borrowed */
    size_t size;
    leat_color color;
} leat__image_source;

/* What a codec found: the image as it is stored, before it is turned upright.
 */
typedef struct leat__image_frame {
    int channels;
    int height;
    int width;
    int orientation; /* as EXIF counts, 1 to 8; 1 natively */
    int has_warned;
} leat__image_frame;

/* Pixels that grow with the largest image; all zero is a valid, empty one. */
typedef struct leat__pixel_buffer {
    unsigned char *block;
    unsigned char *bytes; /* in the block */
    size_t capacity;
} leat__pixel_buffer;

/* Room for the frame's pixels; LEAT_ENOMEM. Old contents are lost. */
int leat__pixel_buffer_reserve(leat__pixel_buffer *buffer,
                               const leat__image_frame *frame);
void leat__pixel_buffer_finish(leat__pixel_buffer *buffer);

/* LEAT_EDATA for what OpenCV refuses: sides over 2^20, over 2^30 pixels. */
int leat__image_check_size(uint64_t width, uint64_t height);

/*
 * A codec: open reads the header into *frame; read decodes the image that was
 * opened, of a region (NULL: all; it lies inside the frame) at least its
 * pixels, into their places in the whole image. After either has failed, and
 * after read, close takes the memory back. The source outlives that.
 * Errors: LEAT_EDATA, LEAT_ENOMEM.
 */
typedef struct leat__jpeg leat__jpeg;
int leat__jpeg_create(leat__jpeg **out);
void leat__jpeg_destroy(leat__jpeg *jpeg);
int leat__jpeg_open(leat__jpeg *jpeg, const leat__image_source *source,
                    leat__image_frame *frame);
int leat__jpeg_read(leat__jpeg *jpeg, const leat__image_region *region,
                    unsigned char *pixels, leat__image_frame *frame);
void leat__jpeg_close(leat__jpeg *jpeg);

typedef struct leat__png leat__png;
int leat__png_create(leat__png **out);
void leat__png_destroy(leat__png *png);
int leat__png_open(leat__png *png, const leat__image_source *source,
                   leat__image_frame *frame);
int leat__png_read(leat__png *png, unsigned char *pixels,
                   leat__image_frame *frame);
void leat__png_close(leat__png *png);

#endif
