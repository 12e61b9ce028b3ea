/* leat/image.h: encoded images, decoded as OpenCV's imdecode does for Caffe. */
#ifndef LEAT_IMAGE_H
#define LEAT_IMAGE_H

#include <leat/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The most pixels that an image may have, 11585 x 11585 or any other shape; its
 * sides go up to 2^20. A file of kilobytes can claim many more. It is refused
 * for it, as LEAT_EDATA, before memory is taken.
 */
#define LEAT_IMAGE_PIXELS_MAX ((uint64_t)1 << 27)

/**
 * The most memory that decoding an image may take where nothing else is set
 * (`max_image_bytes`): 256 MiB, for a JPEG in colour some 85 million pixels, or
 * 40 million of a progressive one. Pixels count, twice where EXIF turns them,
 * and what the codec takes beside them: the coefficients of a JPEG of several
 * scans are two bytes each, three to six a pixel in colour. An image that takes
 * more is refused, as LEAT_EDATA, by its header, before memory is taken.
 */
#define LEAT_IMAGE_BYTES_DEFAULT ((size_t)256 << 20)

/** What an image is decoded to. */
typedef enum leat_color {
    LEAT_COLOR_NATIVE =
        0,          /* the file's channels, 1, 3 or 4; no EXIF rotation */
    LEAT_COLOR_BGR, /* force_color: 3 channels, EXIF rotation */
    LEAT_COLOR_GRAY /* force_gray: 1 channel, EXIF rotation */
} leat_color;

/** Pixels, a byte a channel, interleaved as B G R (A), rows without gaps. */
typedef struct leat_image {
    int channels;                /* 1, 3 or 4 */
    int height;                  /* pixels */
    int width;                   /* pixels */
    const unsigned char *pixels; /* borrowed from the decoder until the next */
} leat_image;

/**
 * A decoder of JPEG and PNG, with its own buffers, which it keeps from image to
 * image; they shrink when many images in a row need far less. Each thread has
 * its own.
 */
typedef struct leat_image_decoder leat_image_decoder;

/**
 * Makes a decoder. Owned by the caller: leat_image_decoder_destroy.
 * Errors: LEAT_ENOMEM. Thread safety: any thread.
 */
LEAT_API int leat_image_decoder_create(leat_image_decoder **out);

/**
 * Sets how many bytes of memory an image may take from now on:
 * `max_image_bytes` of a data layer's options. 0: LEAT_IMAGE_BYTES_DEFAULT.
 * Thread safety: one caller a decoder.
 */
LEAT_API void leat_image_decoder_set_max_bytes(leat_image_decoder *decoder,
                                               size_t max_image_bytes);

/** Frees the decoder and its pixels. Takes NULL. Thread safety: one caller. */
LEAT_API void leat_image_decoder_destroy(leat_image_decoder *decoder);

/**
 * The shape that decoding will give, from the header of the `size` bytes of an
 * image alone; pixels is NULL.
 * Errors: LEAT_EDATA, naming what the bytes are or lack, or an image of more
 * than LEAT_IMAGE_PIXELS_MAX pixels or max_image_bytes of memory; LEAT_ENOMEM.
 * Thread safety: one caller a decoder.
 */
LEAT_API int leat_image_probe(leat_image_decoder *decoder, const void *bytes,
                              size_t size, leat_color color, leat_image *out);

/**
 * Decodes the image in `size` bytes. One that ends early is LEAT_EDATA; lesser
 * warnings of the codec give its pixels and are counted.
 * Errors: LEAT_EDATA, naming what is wrong, also for one that is too large, as
 * leat_image_probe has it, or whose scans are far more work than its bytes can
 * be of use for; LEAT_ENOMEM.
 * Thread safety: one caller a decoder.
 */
LEAT_API int leat_image_decode(leat_image_decoder *decoder, const void *bytes,
                               size_t size, leat_color color, leat_image *out);

/**
 * Images decoded so far whose codec warned. Thread safety: one caller a
 * decoder.
 */
LEAT_API int64_t leat_image_warnings(const leat_image_decoder *decoder);

/**
 * The first warning of the codec in the image decoded last, such as "JPEG:
 * Corrupt JPEG data: premature end of data segment"; NULL when there was none,
 * or no image. Borrowed until the decoder's next call.
 * Thread safety: one caller a decoder.
 */
LEAT_API const char *leat_image_warning(const leat_image_decoder *decoder);

#ifdef __cplusplus
}
#endif
#endif
