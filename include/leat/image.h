/* leat/image.h: encoded images, decoded as OpenCV's imdecode does for Caffe. */
#ifndef LEAT_IMAGE_H
#define LEAT_IMAGE_H

#include <leat/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The most pixels of an image, for example 11585 x 11585; its sides go up to
 * 2^20, those of a PNG to a million, as in libpng. A file of kilobytes can
 * claim many more; it is refused, as LEAT_EDATA, before memory is allocated.
 */
#define LEAT_IMAGE_PIXELS_MAX ((uint64_t)1 << 27)

/**
 * The default of `max_image_bytes`, the most memory that decoding an image may
 * take: 256 MiB, about 85 million pixels of a colour JPEG, or 40 million of a
 * progressive one. It counts the pixels, twice if EXIF rotates them, and the
 * codec's working memory: a JPEG of several scans has three to six coefficients
 * of two bytes for each colour pixel. A larger image is refused, as LEAT_EDATA,
 * by its header, before memory is allocated. The sample that is made of the
 * pixels takes as many bytes again.
 */
#define LEAT_IMAGE_BYTES_DEFAULT ((size_t)256 << 20)

/** The output of decoding. */
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
 * A decoder of JPEG and PNG. It keeps its buffers from image to image; they
 * shrink when many images in a row need far less. Use one per thread.
 */
typedef struct leat_image_decoder leat_image_decoder;

/**
 * Creates a decoder. Owned by the caller: leat_image_decoder_destroy. Errors:
 * LEAT_ENOMEM. Thread safety: any thread.
 */
LEAT_API int leat_image_decoder_create(leat_image_decoder **out);

/**
 * Sets the memory limit for further images in bytes, as `max_image_bytes` of a
 * data layer's options. 0: LEAT_IMAGE_BYTES_DEFAULT. Thread safety: one caller
 * a decoder.
 */
LEAT_API void leat_image_decoder_set_max_bytes(leat_image_decoder *decoder,
                                               size_t max_image_bytes);

/** Frees the decoder and its pixels. Takes NULL. Thread safety: one caller. */
LEAT_API void leat_image_decoder_destroy(leat_image_decoder *decoder);

/**
 * Reads the shape of an image of `size` bytes from its header, as decoding will
 * produce it; `out->pixels` is NULL. Errors: LEAT_EDATA for another format, a
 * damaged header, or an image above LEAT_IMAGE_PIXELS_MAX or max_image_bytes;
 * LEAT_ENOMEM. Thread safety: one caller a decoder.
 */
LEAT_API int leat_image_probe(leat_image_decoder *decoder, const void *bytes,
                              size_t size, leat_color color, leat_image *out);

/**
 * Decodes the image in `size` bytes. A truncated image is LEAT_EDATA; lesser
 * warnings of the codec are counted and the pixels returned. Errors:
 * LEAT_EDATA, naming the reason, also for images that leat_image_probe refuses
 * or whose scans need far more work than their bytes justify; LEAT_ENOMEM.
 * Thread safety: one caller a decoder.
 */
LEAT_API int leat_image_decode(leat_image_decoder *decoder, const void *bytes,
                               size_t size, leat_color color, leat_image *out);

/**
 * The number of images so far for which the codec warned. Thread safety: one
 * caller a decoder.
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
