/* leat/transform.h: the transform of an image on its way into the batch. */
#ifndef LEAT_TRANSFORM_H
#define LEAT_TRANSFORM_H

#include <leat/option.h>
#include <leat/sample.h>

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Caffe's phase: training or testing. */
typedef enum leat_phase { LEAT_TRAIN = 0, LEAT_TEST = 1 } leat_phase;

/** Order of a batch's axes. */
typedef enum leat_layout { LEAT_NCHW = 0, LEAT_NHWC = 1 } leat_layout;

/** Where mirror, mean, scale and cast are computed. The bytes are the same. */
typedef enum leat_transform_on {
    LEAT_TRANSFORM_ON_CPU = 0,
    LEAT_TRANSFORM_ON_DEVICE = 1 /* uint8 crops are uploaded, a quarter of the
                                    bytes; on the device `cpu` the same */
} leat_transform_on;

/** The generator of random choices. */
typedef enum leat_rng {
    LEAT_RNG_LEAT = 0, /* a function of (seed, epoch, position, operation) */
    LEAT_RNG_CAFFE = 1 /* Caffe's mt19937 sequence, one for each rank */
} leat_rng;

/**
 * Caffe's transform_param:
 *
 *     top[c][h][mirror ? W-1-w : w] = (x[c][h+ho][w+wo] - mean) * scale
 *
 * where W is the top's width. It is computed in the top's type, rounded after
 * each of the two operations; for FLOAT16 and BFLOAT16 in float, and then
 * rounded to nearest, ties to even. A UINT8 top takes the pixels unchanged, and
 * neither mean nor scale. In TRAIN the crop's position is random, in TEST it is
 * the centre; mirror is random in both. The mean file is indexed at the source
 * position and not mirrored. Zero is the default of every field but `size`.
 */
typedef struct leat_transform_options {
    size_t size;    /* of this struct, as the caller knows it */
    int crop_size;  /* pixels, square; 0: none */
    bool mirror;    /* at random, one image in two */
    float scale;    /* 1, or 0, changes nothing */
    bool has_scale; /* a scale of 0 is one, and makes every value 0 */
    /** A BlobProto of the uncropped C x H x W; NULL: none. */
    const char *mean_file;
    const float *mean_value; /* one for all channels, or one for each */
    int mean_values;         /* 0: none; not together with mean_file */
    bool force_color;        /* decode images to 3 channels */
    bool force_gray;         /* decode images to 1; not with force_color */
} leat_transform_options;

/** Every default, zeros after the size: the pixels as they are. */
#ifdef __cplusplus
#define LEAT_TRANSFORM_OPTIONS_INIT leat__transform_options_defaults()
inline leat_transform_options leat__transform_options_defaults(void)
{
    leat_transform_options options = leat_transform_options();
    options.size = sizeof(options);
    return options;
}
#else
#define LEAT_TRANSFORM_OPTIONS_INIT                                            \
    {                                                                          \
        .size = sizeof(leat_transform_options)                                 \
    }
#endif

/**
 * Writes every default, as the macro does, for bindings. `options->size` is set
 * by the caller: no more is written. Errors: LEAT_EINVAL for a size that no
 * options have.
 * Thread safety: any thread.
 */
LEAT_API int leat_transform_options_init(leat_transform_options *options);

/**
 * All `*n` options, in the order of the struct's members; the mean's number of
 * values goes with them. Static. Thread safety: any thread.
 */
LEAT_API const leat_option *leat_transform_option_list(int *n);

/**
 * Sets the option of that name, such as "crop_size", to what the text says, as
 * leat_option_set does. Errors: LEAT_EINVAL. Thread safety: any thread.
 */
LEAT_API int leat_transform_options_set(leat_transform_options *options,
                                        const char *name, const char *text);

/**
 * Caffe's DataTransformer, for a thread of its own: decodes, then transforms
 * one image at a time. The data layer's workers use the same.
 */
typedef struct leat_transformer leat_transformer;

/**
 * Checks the options (NULL: none) and loads the mean file.
 * `top_type` is FLOAT32, FLOAT64, FLOAT16, BFLOAT16 or UINT8. Owned by the
 * caller: leat_transformer_destroy. Errors: LEAT_EINVAL, LEAT_EIO,
 * LEAT_EFORMAT, LEAT_ENOMEM. Thread safety: any thread.
 */
LEAT_API int leat_transformer_create(leat_transformer **out,
                                     const leat_transform_options *options,
                                     leat_phase phase, leat_dtype top_type,
                                     leat_layout layout);

/**
 * Creates a transformer for another thread, which shares the settings
 * (reference counted). Owned by the caller: leat_transformer_destroy. Errors:
 * LEAT_ENOMEM. Thread safety: any thread.
 */
LEAT_API int leat_transformer_clone(leat_transformer **out,
                                    const leat_transformer *transformer);

/**
 * Sets the memory limit of decoding in bytes, here and for later clones, as
 * leat_image_decoder_set_max_bytes does. 0: LEAT_IMAGE_BYTES_DEFAULT. Thread
 * safety: one caller.
 */
LEAT_API void
leat_transformer_set_max_image_bytes(leat_transformer *transformer,
                                     size_t max_image_bytes);

/** Frees the transformer. Takes NULL. Thread safety: one caller. */
LEAT_API void leat_transformer_destroy(leat_transformer *transformer);

/**
 * The channels, height and width of the field's top. A field that does not have
 * three dimensions counts as 1 x 1 x its elements; of an encoded image the
 * header is read. Errors: LEAT_EDATA, LEAT_EINVAL (crop, mean). Thread safety:
 * one caller.
 */
LEAT_API int leat_transformer_shape(leat_transformer *transformer,
                                    const leat_field *field, int shape[3]);

/**
 * Decodes and transforms the field into `top`, which has `shape` {channels,
 * height, width} elements of the top type. `words` are random numbers, and the
 * fourth is not used. With LEAT_RNG_LEAT words[0] chooses the mirror, words[1]
 * the crop's row and words[2] its column. With LEAT_RNG_CAFFE they are the next
 * words of Caffe's generator, as many as Caffe draws: one for the mirror if
 * `mirror` is set, then in TRAIN two for the crop. Errors: LEAT_EDATA if the
 * image does not have that shape or cannot be decoded, LEAT_EINVAL if the mean
 * file does not have the image's shape before the crop, LEAT_ENOMEM; `top` is
 * then unchanged. Thread safety: one caller.
 */
LEAT_API int leat_transformer_apply(leat_transformer *transformer,
                                    const leat_field *field, leat_rng rng,
                                    const uint32_t words[4], const int shape[3],
                                    void *top);

/**
 * Writes a mean image as a legacy BlobProto, 1 x C x H x W, as Caffe's
 * compute_image_mean does. The file is replaced atomically. Errors:
 * LEAT_EINVAL, LEAT_EIO, LEAT_ENOMEM. Thread safety: any thread.
 */
LEAT_API int leat_mean_save(const char *path, int channels, int height,
                            int width, const float *values);

#ifdef __cplusplus
}
#endif
#endif
