#include "data/transformer.h"
#include "base/error.h"
#include "base/memory.h"
#include "data/image.h"
#include "data/transform.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* What the clones share. */
typedef struct shared_transform {
    leat__transform *transform;
    leat_color color;
    atomic_int references;
} shared_transform;

/* The latest raw image, and the shape of its part of the top. */
typedef struct known_image {
    bool is_set;
    int64_t dim[3]; /* of its field */
    size_t bytes;   /* that it needs */
    int shape[3];
    leat__transform_image image; /* pixels and choices are not kept */
    leat__row_convert *convert;  /* of the whole image as a row, or NULL; */
    leat__row_run row;           /* its source and top are not kept either */
} known_image;

struct leat_transformer {
    shared_transform *shared;
    leat_image_decoder *decoder; /* made for the first encoded image */
    size_t max_image_bytes;      /* the decoder's; 0: its default */
    known_image known;           /* the last one: nearly all are like it */
};

static void unref(shared_transform *shared)
{
    if (atomic_fetch_sub(&shared->references, 1) > 1)
        return;
    leat__transform_destroy(shared->transform);
    leat__free(shared);
}

static int wrap(leat_transformer **out, shared_transform *shared)
{
    leat_transformer *transformer = leat__alloc_zero(1, sizeof(*transformer));
    if (!transformer)
        return LEAT_ENOMEM;
    transformer->shared = shared;
    *out = transformer;
    return LEAT_OK;
}

/* A caller's older options end before what they do not know. */
static leat_color color_of(const leat_transform_options *options)
{
    if (options->size < offsetof(leat_transform_options, force_gray) +
                            sizeof(options->force_gray))
        return LEAT_COLOR_NATIVE;
    return options->force_color  ? LEAT_COLOR_BGR
           : options->force_gray ? LEAT_COLOR_GRAY
                                 : LEAT_COLOR_NATIVE;
}

int leat_transformer_create(leat_transformer **out,
                            const leat_transform_options *options,
                            leat_phase phase, leat_dtype top_type,
                            leat_layout layout)
{
    const leat_transform_options none = LEAT_TRANSFORM_OPTIONS_INIT;
    if (!options)
        options = &none;
    shared_transform *shared = leat__alloc_zero(1, sizeof(*shared));
    if (!shared)
        return LEAT_ENOMEM;
    atomic_init(&shared->references, 1);
    shared->color = color_of(options);
    int status = leat__transform_create(&shared->transform, options, phase,
                                        top_type, layout);
    if (!status)
        status = wrap(out, shared);
    if (status)
        unref(shared);
    return status;
}

int leat_transformer_clone(leat_transformer **out,
                           const leat_transformer *transformer)
{
    int status = wrap(out, transformer->shared);
    if (status)
        return status;
    atomic_fetch_add(&transformer->shared->references, 1);
    (*out)->max_image_bytes = transformer->max_image_bytes;
    return LEAT_OK;
}

void leat_transformer_set_max_image_bytes(leat_transformer *transformer,
                                          size_t max_image_bytes)
{
    transformer->max_image_bytes = max_image_bytes;
    if (transformer->decoder)
        leat_image_decoder_set_max_bytes(transformer->decoder, max_image_bytes);
}

void leat_transformer_destroy(leat_transformer *transformer)
{
    if (!transformer)
        return;
    leat_image_decoder_destroy(transformer->decoder);
    unref(transformer->shared);
    leat__free(transformer);
}

int leat__transformer_words_per_image(const leat_transformer *transformer)
{
    return leat__transform_words_per_image(transformer->shared->transform);
}

void leat__transformer_count(const leat_transformer *transformer,
                             leat__image_counts *counts)
{
    if (!transformer->decoder)
        return;
    leat__jpeg_counts jpeg = leat__image_jpeg_counts(transformer->decoder);
    counts->warnings += leat_image_warnings(transformer->decoder);
    counts->jpeg_fast += jpeg.fast;
    counts->jpeg_library += jpeg.library;
}

/* The three dimensions of a field that is no encoded image. */
static int raw_shape(const leat_field *field, int shape[3])
{
    int64_t whole[3] = {1, 1, 1};
    if (field->dtype != LEAT_UINT8 && field->dtype != LEAT_FLOAT32)
        return leat_error(LEAT_EDATA,
                          "an image's elements are uint8 or float32, these are "
                          "%s",
                          leat_dtype_name(field->dtype));
    if (field->ndim < 0 || field->ndim > LEAT_MAX_DIMS)
        return leat_error(LEAT_EDATA, "a field has %d dimensions, at most %d",
                          field->ndim, LEAT_MAX_DIMS);
    for (int i = 0; i < field->ndim; i++) {
        int to = field->ndim == 3 ? i : 2;
        int64_t dim = field->shape[i];
        bool is_int = dim >= 0 && dim <= INT_MAX;
        whole[to] *= is_int ? dim : 0;
        if (!is_int || whole[to] > INT_MAX)
            return leat_error(LEAT_EDATA, "dimension %d is %lld", i,
                              (long long)dim);
    }
    for (int i = 0; i < 3; i++)
        shape[i] = (int)whole[i];
    return LEAT_OK;
}

static int check_bytes(const leat_field *field, const int shape[3])
{
    size_t bytes = leat_dtype_size(field->dtype);
    bool overflows = false;
    for (int i = 0; i < 3; i++)
        overflows |= leat__multiply(bytes, (size_t)shape[i], &bytes);
    if (!overflows && bytes <= field->bytes)
        return LEAT_OK;
    return leat_error(LEAT_EDATA,
                      "an image of %d x %d x %d %s needs %zu bytes, there are "
                      "%zu",
                      shape[0], shape[1], shape[2],
                      leat_dtype_name(field->dtype),
                      overflows ? SIZE_MAX : bytes, field->bytes);
}

static int raw_image(const leat_field *field, leat__transform_image *image)
{
    int shape[3];
    int status = raw_shape(field, shape);
    if (status)
        return status;
    status = check_bytes(field, shape);
    if (status)
        return status;
    image->pixels = field->data;
    image->type = field->dtype;
    image->layout = LEAT_NCHW;
    image->channels = shape[0];
    image->height = shape[1];
    image->width = shape[2];
    return LEAT_OK;
}

static int make_decoder(leat_transformer *transformer)
{
    if (transformer->decoder)
        return LEAT_OK;
    int status = leat_image_decoder_create(&transformer->decoder);
    if (!status)
        leat_image_decoder_set_max_bytes(transformer->decoder,
                                         transformer->max_image_bytes);
    return status;
}

/* Reads the header; read_encoded reads the pixels. */
static int open_encoded(leat_transformer *transformer, const leat_field *field,
                        leat__transform_image *image)
{
    int status = make_decoder(transformer);
    if (status)
        return status;
    leat_image header;
    status = leat__image_open(transformer->decoder, field->data, field->bytes,
                              transformer->shared->color, &header);
    if (status)
        return status;
    image->type = LEAT_UINT8;
    image->layout = LEAT_NHWC;
    image->channels = header.channels;
    image->height = header.height;
    image->width = header.width;
    return LEAT_OK;
}

/* Decodes the chosen crop for a top of `shape`. */
static int read_encoded(leat_transformer *transformer, const int shape[3],
                        leat__transform_image *image)
{
    leat__image_region region = {.row = image->h_off,
                                 .column = image->w_off,
                                 .rows = shape[1],
                                 .columns = shape[2]};
    leat_image decoded;
    int status = leat__image_read(transformer->decoder, &region, &decoded);
    if (status)
        return status;
    image->pixels = decoded.pixels;
    return LEAT_OK;
}

int leat__transformer_whole_shape(leat_transformer *transformer,
                                  const leat_field *field, int shape[3])
{
    if (field->dtype != LEAT_BYTES)
        return raw_shape(field, shape);
    leat_image image;
    int status = make_decoder(transformer);
    if (!status)
        status =
            leat_image_probe(transformer->decoder, field->data, field->bytes,
                             transformer->shared->color, &image);
    if (status)
        return status;
    shape[0] = image.channels;
    shape[1] = image.height;
    shape[2] = image.width;
    return LEAT_OK;
}

int leat_transformer_shape(leat_transformer *transformer,
                           const leat_field *field, int shape[3])
{
    int whole[3];
    int status = leat__transformer_whole_shape(transformer, field, whole);
    return status ? status
                  : leat__transform_shape(transformer->shared->transform, whole,
                                          shape);
}

int leat__transformer_check_mean(leat_transformer *transformer,
                                 const leat_field *field)
{
    int whole[3];
    if (leat__transformer_whole_shape(transformer, field, whole))
        return LEAT_OK;
    return leat__transform_check_mean(transformer->shared->transform, whole[0],
                                      whole[1], whole[2]);
}

uint64_t leat__transformer_hash_mean(const leat_transformer *transformer,
                                     uint64_t hash)
{
    return leat__transform_hash_mean(transformer->shared->transform, hash);
}

/* Chooses and decodes the image. */
static int take_image(leat_transformer *transformer, const leat_field *field,
                      leat_rng rng, const uint32_t words[4], const int shape[3],
                      leat__transform_image *image)
{
    bool is_encoded = field->dtype == LEAT_BYTES;
    int status = is_encoded ? open_encoded(transformer, field, image)
                            : raw_image(field, image);
    if (!status)
        status = leat__transform_check_mean(transformer->shared->transform,
                                            image->channels, image->height,
                                            image->width);
    if (status)
        return status;
    leat__transform_choose(transformer->shared->transform, rng, words, image);
    return is_encoded ? read_encoded(transformer, shape, image) : LEAT_OK;
}

static bool is_known(const known_image *known, const leat_field *field,
                     const int shape[3])
{
    return known->is_set && field->ndim == 3 &&
           field->dtype == known->image.type && field->bytes >= known->bytes &&
           field->shape[0] == known->dim[0] &&
           field->shape[1] == known->dim[1] &&
           field->shape[2] == known->dim[2] && shape[0] == known->shape[0] &&
           shape[1] == known->shape[1] && shape[2] == known->shape[2];
}

static void keep_known(leat_transformer *transformer, const leat_field *field,
                       const leat__transform_image *image, const int shape[3])
{
    known_image *known = &transformer->known;
    if (field->dtype == LEAT_BYTES || field->ndim != 3)
        return;
    known->is_set = true;
    known->bytes = leat_dtype_size(field->dtype);
    for (int i = 0; i < 3; i++) {
        known->dim[i] = field->shape[i];
        known->bytes *= (size_t)field->shape[i];
        known->shape[i] = shape[i];
    }
    known->image = *image;
    known->convert = leat__transform_row(transformer->shared->transform, image,
                                         shape, &known->row);
}

/* The same again, for another image that is more than a row. */
__attribute__((noinline)) static void apply_known(leat_transformer *transformer,
                                                  const leat_field *field,
                                                  leat_rng rng,
                                                  const uint32_t words[4],
                                                  const int shape[3], void *top)
{
    const leat__transform *transform = transformer->shared->transform;
    leat__transform_image image = transformer->known.image;
    image.pixels = field->data;
    leat__transform_choose(transform, rng, words, &image);
    leat__transform_run(transform, &image, shape, top);
}

/* An image unlike the one before. */
__attribute__((noinline)) static int
apply_new(leat_transformer *transformer, const leat_field *field, leat_rng rng,
          const uint32_t words[4], const int shape[3], void *top)
{
    leat__transform_image image;
    int status = take_image(transformer, field, rng, words, shape, &image);
    if (!status)
        status = leat__transform_apply(transformer->shared->transform, &image,
                                       shape, top);
    if (!status)
        keep_known(transformer, field, &image, shape);
    return status;
}

int leat_transformer_apply(leat_transformer *transformer,
                           const leat_field *field, leat_rng rng,
                           const uint32_t words[4], const int shape[3],
                           void *top)
{
    known_image *known = &transformer->known;
    if (!is_known(known, field, shape))
        return apply_new(transformer, field, rng, words, shape, top);
    if (!known->convert) {
        apply_known(transformer, field, rng, words, shape, top);
        return LEAT_OK;
    }
    known->row.source = field->data;
    known->row.top = top;
    known->convert(&known->row);
    return LEAT_OK;
}

int leat__transformer_crop(leat_transformer *transformer,
                           const leat_field *field, leat_rng rng,
                           const uint32_t words[4], const int shape[3],
                           leat_layout layout, bool is_streamed, void *crop,
                           leat_device_choice *choice)
{
    leat__transform_image image;
    int status = take_image(transformer, field, rng, words, shape, &image);
    if (status)
        return status;
    return leat__transform_crop(transformer->shared->transform, &image, shape,
                                layout, is_streamed, crop, choice);
}

const leat__transform_job *
leat__transformer_plan(const leat_transformer *transformer)
{
    return leat__transform_plan(transformer->shared->transform);
}
