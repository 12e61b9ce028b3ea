/* decode:FIELD, encoded images as pixels. */
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "data/image.h"
#include "decorators/decorators.h"
#include "decorators/sample_map.h"

#include <leat/decorators.h>

#include <stdio.h>
#include <string.h>

typedef struct decode_reader {
    leat__sample_map map;
    int field;
    leat_decode_color color;
    leat_layout layout;
    size_t max_bytes; /* of one image; 0: the decoder's default */
} decode_reader;

typedef struct decode_state {
    leat__map_state state; /* first */
    leat_image_decoder *decoder;
} decode_state;

static int start_state(leat__sample_map *map, leat__map_state *state)
{
    decode_state *own = (decode_state *)state;
    int status = leat_image_decoder_create(&own->decoder);
    if (!status)
        leat_image_decoder_set_max_bytes(own->decoder,
                                         ((decode_reader *)map)->max_bytes);
    return status;
}

static void finish_state(leat__map_state *state)
{
    leat_image_decoder_destroy(((decode_state *)state)->decoder);
}

/* Each channel of `n` pixels on its own; `from[c]` is where it comes from. */
static void split_channels(unsigned char *out, const unsigned char *pixels,
                           size_t n, int channels, const int from[4])
{
    for (int c = 0; c < channels; c++) {
        const unsigned char *at = pixels + from[c];
        for (size_t i = 0; i < n; i++, at += channels)
            *out++ = *at;
    }
}

static void swap_channels(unsigned char *out, const unsigned char *pixels,
                          size_t n)
{
    for (size_t i = 0; i < n; i++, out += 3, pixels += 3) {
        out[0] = pixels[2];
        out[1] = pixels[1];
        out[2] = pixels[0];
    }
}

static void write_pixels(const decode_reader *decode, const leat_image *image,
                         unsigned char *out)
{
    static const int as_they_are[4] = {0, 1, 2, 3}, swapped[4] = {2, 1, 0, 3};
    size_t n = (size_t)image->height * (size_t)image->width;
    bool swaps = decode->color == LEAT_DECODE_RGB;
    if (decode->layout == LEAT_NCHW && image->channels > 1)
        split_channels(out, image->pixels, n, image->channels,
                       swaps ? swapped : as_they_are);
    else if (swaps)
        swap_channels(out, image->pixels, n);
    else
        memcpy(out, image->pixels, n * (size_t)image->channels);
}

static leat_color decoder_color(leat_decode_color color)
{
    return color == LEAT_DECODE_NATIVE ? LEAT_COLOR_NATIVE
           : color == LEAT_DECODE_GRAY ? LEAT_COLOR_GRAY
                                       : LEAT_COLOR_BGR;
}

/* The pixels stay the decoder's until its next image. */
static int read_image(const decode_reader *decode, decode_state *state,
                      const leat_field *field, leat_image *image)
{
    if (field->dtype != LEAT_BYTES)
        return leat_error(LEAT_EDATA, "it is %s, not an encoded image",
                          leat_dtype_name(field->dtype));
    return leat_image_decode(state->decoder, field->data, field->bytes,
                             decoder_color(decode->color), image);
}

static int decode_work(leat__sample_map *map, leat__map_state *state,
                       leat_sample *sample, int first)
{
    const decode_reader *decode = (const decode_reader *)map;
    decode_state *own = (decode_state *)state;
    int i = first + decode->field, nfields = sample->nfields;
    leat_image image;
    int status = read_image(decode, own, &sample->field[i], &image);
    if (status)
        return leat__error_context(status, "field \"%s\"",
                                   map->spec[decode->field].name);
    const int64_t chw[] = {image.channels, image.height, image.width};
    const int64_t hwc[] = {image.height, image.width, image.channels};
    unsigned char *pixels = leat__sample_map_take(
        sample,
        (size_t)image.channels * (size_t)image.height * (size_t)image.width);
    if (!pixels)
        return LEAT_ENOMEM;
    write_pixels(decode, &image, pixels);
    state->bytes = (int64_t)leat__image_memory_use(own->decoder).kept;
    status = leat_sample_set(sample, i, LEAT_UINT8, 3,
                             decode->layout == LEAT_NCHW ? chw : hwc, pixels);
    sample->nfields = nfields; /* which setting a field cuts off after it */
    return status;
}

static const leat__map_kind decode_kind = {.name = "decode",
                                           .work = decode_work,
                                           .state_size = sizeof(decode_state),
                                           .start_state = start_state,
                                           .finish_state = finish_state};

static int set_spec(decode_reader *decode, const char *name)
{
    leat__sample_map *map = &decode->map;
    if (map->ngiven == 0)
        return LEAT_OK;
    int status =
        leat__field_find_bytes(map->spec, map->nspec, name, &decode->field);
    if (status)
        return status;
    leat_field_spec *spec = &map->spec[decode->field];
    if (!spec->varies &&
        (spec->dtype != LEAT_BYTES || spec->content == LEAT_CONTENT_PLAIN))
        return leat_error(LEAT_EINVAL,
                          "field \"%s\" is %s%s: expected an encoded image",
                          spec->name, leat_dtype_name(spec->dtype),
                          spec->dtype == LEAT_BYTES ? " of no image" : "");
    int64_t channels = decode->color == LEAT_DECODE_NATIVE ? -1
                       : decode->color == LEAT_DECODE_GRAY ? 1
                                                           : 3;
    *spec = (leat_field_spec){.name = spec->name,
                              .dtype = LEAT_UINT8,
                              .ndim = 3,
                              .shape = {-1, -1, -1},
                              .is_batch = spec->is_batch};
    spec->shape[decode->layout == LEAT_NCHW ? 0 : 2] = channels;
    return LEAT_OK;
}

static int decode_open(const leat_open *open, leat_reader **out)
{
    leat__sample_map *map;
    int status =
        leat__sample_map_new(&map, open, &decode_kind, sizeof(decode_reader));
    if (status)
        return status;
    decode_reader *decode = (decode_reader *)map;
    decode->color = (leat_decode_color)leat_args_number(open->args, "color");
    decode->layout = (leat_layout)leat_args_number(open->args, "layout");
    decode->max_bytes = (size_t)leat_args_number(open->args, "max_image_bytes");
    status = set_spec(decode, leat_args_at(open->args, 0));
    return leat__sample_map_opened(map, status, out);
}

static const leat_argument decode_arguments[] = {
    {.name = "field",
     .positional = 1,
     .help = "the encoded image; the first field of bytes"},
    {.name = "color",
     .kind = LEAT_ARGUMENT_WORD,
     .initial = "NATIVE",
     .words = "NATIVE|BGR|GRAY|RGB",
     .help = "the file's own channels, without rotation by EXIF, or 3 or 1 "
             "with it"},
    {.name = "layout",
     .kind = LEAT_ARGUMENT_WORD,
     .initial = "CHW",
     .words = "CHW|HWC",
     .help = "channels first, or last"},
    {.name = "max_image_bytes",
     .kind = LEAT_ARGUMENT_BYTES,
     .initial = "0",
     .max = INT64_MAX,
     .help = "memory that decoding an image may take; 0: 256 MiB"},
    {0},
};

const leat_reader_type leat__decode_type = {
    .size = sizeof(leat_reader_type),
    .name = "decode",
    .help = "JPEG and PNG as pixels of uint8",
    .arguments = decode_arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 1,
    .max_upstream = 1,
    .keeps_order = 1,
    .open = decode_open,
};

int leat_decode_options_init(leat_decode_options *options)
{
    const leat_decode_options defaults = LEAT_DECODE_OPTIONS_INIT;
    return leat__options_init(options, &defaults, sizeof(defaults));
}

int leat_pipeline_decode(leat_pipeline **out, leat_pipeline *upstream,
                         const leat_decode_options *options)
{
    static const char *const colors[] = {"NATIVE", "BGR", "GRAY", "RGB"};
    leat_decode_options values = LEAT_DECODE_OPTIONS_INIT;
    char rest[128], *text;
    int status = leat__options_copy(&values, options, sizeof(values));
    if (!status && ((unsigned)values.color > LEAT_DECODE_RGB ||
                    (unsigned)values.layout > LEAT_NHWC))
        status = leat_error(LEAT_EINVAL,
                            "decode: color is %d, layout %d: expected values "
                            "of leat_decode_color and leat_layout",
                            (int)values.color, (int)values.layout);
    if (status)
        return status;
    snprintf(rest, sizeof(rest), "color=%s,layout=%s,max_image_bytes=%lld",
             colors[values.color], values.layout == LEAT_NCHW ? "CHW" : "HWC",
             (long long)values.max_image_bytes);
    status = leat__field_write_argument(&text, values.field, rest);
    if (status)
        return status;
    status = leat_pipeline_create(out, &leat__decode_type, text, NULL, NULL,
                                  &upstream, 1);
    leat__free(text);
    return status;
}
