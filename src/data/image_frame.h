/* image_frame.h: an image before and while it is decoded. */
#ifndef LEAT_DATA_IMAGE_FRAME_H
#define LEAT_DATA_IMAGE_FRAME_H

#include "data/image_demand.h"

#include <leat/image.h>

/* A part of an image, in its rows and columns. */
typedef struct leat__image_region {
    int row; /* the first */
    int column;
    int rows;
    int columns;
} leat__image_region;

/* An encoded image and the requested colours. */
typedef struct leat__image_source {
    const unsigned char *bytes; /* borrowed */
    size_t size;
    leat_color color;
} leat__image_source;

/* The image as stored, before it is rotated upright. */
typedef struct leat__image_frame {
    int channels;
    int height;
    int width;
    int orientation;        /* as EXIF counts, 1 to 8; 1 natively */
    const char *warning;    /* the codec's first warning, valid until its next
                               image; or NULL */
    uint64_t working_bytes; /* of decoding, beside the pixels */
} leat__image_frame;

/* JPEGs that a decoder has decoded. */
typedef struct leat__jpeg_counts {
    int64_t fast;    /* by the fast path for clean baseline files */
    int64_t library; /* by libjpeg, to which that leaves all others */
} leat__jpeg_counts;

/*
 * A buffer of pixels that grows with the largest image and shrinks when recent
 * ones need far less; all zero is valid and empty.
 */
typedef struct leat__pixel_buffer {
    unsigned char *block;
    unsigned char *bytes; /* in the block */
    size_t capacity;
    leat__demand demand;
} leat__pixel_buffer;

/* Room for the frame's pixels; LEAT_ENOMEM. Old contents are lost. */
int leat__pixel_buffer_reserve(leat__pixel_buffer *buffer,
                               const leat__image_frame *frame);
/* Records an image that does not use the buffer. */
void leat__pixel_buffer_skip(leat__pixel_buffer *buffer);
void leat__pixel_buffer_finish(leat__pixel_buffer *buffer);

/* Bytes of the frame's pixels, whose size was checked. */
uint64_t leat__image_pixel_bytes(const leat__image_frame *frame);

/* LEAT_EDATA for sides over 2^20, as in OpenCV, and for too many pixels. */
int leat__image_check_size(uint64_t width, uint64_t height);

#endif
