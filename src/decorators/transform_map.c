/*
 * transform:FIELD,crop_size=N,..., Caffe's transform as a map of a field.
 *
 * DESIGN. Its random choices are words of leat_choice, by the seed, and the
 * epoch and index of the sample in its own sequence: those that a data layer
 * makes with the same seed for its first image. Each thread has a transformer.
 */
#include "base/decimal.h"
#include "base/error.h"
#include "base/file_version.h"
#include "base/memory.h"
#include "base/options.h"
#include "data/transformer.h"
#include "decorators/argument_text.h"
#include "decorators/decorators.h"
#include "decorators/sample_map.h"
#include "pipeline/arguments.h"

#include <leat/choice.h>
#include <leat/decorators.h>

#include <string.h>

typedef struct transform_reader {
    leat__sample_map map;
    int field;
    int crop_size;
    leat_dtype dtype;
    leat_layout layout;
    uint64_t seed;
    uint32_t choices; /* the operation of leat_choice */
    bool draws;
    int64_t mean_modified;         /* nanoseconds */
    leat_transformer *transformer; /* that of each thread is a clone */
} transform_reader;

typedef struct transform_state {
    leat__map_state state; /* first */
    leat_transformer *transformer;
} transform_state;

static int start_state(leat__sample_map *map, leat__map_state *state)
{
    return leat_transformer_clone(&((transform_state *)state)->transformer,
                                  ((transform_reader *)map)->transformer);
}

static void finish_state(leat__map_state *state)
{
    leat_transformer_destroy(((transform_state *)state)->transformer);
}

static void finish(leat__sample_map *map)
{
    leat_transformer_destroy(((transform_reader *)map)->transformer);
}

/* A crop that does not fit is the sample's fault, a mean of another shape not.
 */
static int find_shape(const transform_reader *transform,
                      leat_transformer *transformer, const leat_field *field,
                      int shape[3])
{
    bool is_image = field->dtype == LEAT_BYTES || field->ndim == 3;
    if (transform->crop_size && !is_image)
        return leat_error(LEAT_EDATA,
                          "crop_size is for images, of 3 dimensions; it has %d",
                          field->ndim);
    int status = leat_transformer_shape(transformer, field, shape);
    if (status != LEAT_EINVAL)
        return status;
    status = leat__transformer_check_mean(transformer, field);
    return status ? status : LEAT_EDATA;
}

/* The axes of `shape`, which has channels, height and width, as the layout has
 * them. */
static void set_axes(leat_layout layout, const int shape[3], int64_t axes[3])
{
    bool is_planar = layout == LEAT_NCHW;
    axes[0] = is_planar ? shape[0] : shape[1];
    axes[1] = is_planar ? shape[1] : shape[2];
    axes[2] = is_planar ? shape[2] : shape[0];
}

static size_t bytes_of(const transform_reader *transform, const int shape[3])
{
    return (size_t)shape[0] * (size_t)shape[1] * (size_t)shape[2] *
           leat_dtype_size(transform->dtype);
}

static int apply(const transform_reader *transform,
                 leat_transformer *transformer, leat_sample *sample, int i)
{
    int shape[3];
    uint32_t words[4] = {0};
    leat_field *field = &sample->field[i];
    int status = find_shape(transform, transformer, field, shape);
    if (status)
        return status;
    size_t bytes = bytes_of(transform, shape);
    void *top = leat__sample_map_take(sample, bytes);
    if (!top)
        return LEAT_ENOMEM;
    if (transform->draws)
        leat_choice(transform->seed, sample->at.epoch, sample->at.index,
                    transform->choices, words);
    status = leat_transformer_apply(transformer, field, LEAT_RNG_LEAT, words,
                                    shape, top);
    if (status)
        return status;
    if (field->dtype == LEAT_BYTES || field->ndim == 3) {
        field->ndim = 3;
        set_axes(transform->layout, shape, field->shape);
    }
    field->dtype = transform->dtype;
    field->data = top;
    field->bytes = bytes;
    return LEAT_OK;
}

static int transform_work(leat__sample_map *map, leat__map_state *state,
                          leat_sample *sample, int first)
{
    const transform_reader *transform = (const transform_reader *)map;
    int status = apply(transform, ((transform_state *)state)->transformer,
                       sample, first + transform->field);
    return status ? leat__error_context(status, "field \"%s\"",
                                        map->spec[transform->field].name)
                  : LEAT_OK;
}

static const leat__map_kind transform_kind = {
    .name = "transform",
    .work = transform_work,
    .finish = finish,
    .state_size = sizeof(transform_state),
    .start_state = start_state,
    .finish_state = finish_state,
};

static const leat_dtype types[] = {LEAT_FLOAT32, LEAT_FLOAT64, LEAT_FLOAT16,
                                   LEAT_BFLOAT16, LEAT_UINT8};
enum { TYPES = sizeof(types) / sizeof(types[0]) };
static const char *const type_words[TYPES] = {"FLOAT32", "FLOAT64", "FLOAT16",
                                              "BFLOAT16", "UINT8"};

/* The options that are text set themselves, by Caffe's names. */
static int take_options(const leat_args *args, leat_transform_options *out,
                        float **mean_value)
{
    static const char *const names[] = {"crop_size",   "mirror",
                                        "scale",       "mean_file",
                                        "force_color", "force_gray"};
    int status = LEAT_OK, n;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !status; i++) {
        const char *text = leat_args_get(args, names[i]);
        if (text)
            status = leat_transform_options_set(out, names[i], text);
    }
    const char *text = leat__args_elements(args, "mean_value", &n);
    if (status || n == 0)
        return status;
    out->mean_values = n;
    out->mean_value = *mean_value =
        leat__alloc_zero((size_t)n, sizeof(**mean_value));
    if (!*mean_value)
        return LEAT_ENOMEM;
    /* A scale is a number as a mean is. */
    for (int i = 0; i < n && !status; i++) {
        leat_transform_options number = LEAT_TRANSFORM_OPTIONS_INIT;
        if (leat_transform_options_set(&number, "scale", text))
            status = leat_error(
                LEAT_EINVAL, "mean_value: expected a number, found '%s'", text);
        (*mean_value)[i] = number.scale;
        text += strlen(text) + 1;
    }
    return status;
}

static int make_transformer(transform_reader *transform, const leat_open *open)
{
    leat_transform_options options = LEAT_TRANSFORM_OPTIONS_INIT;
    float *mean_value = NULL;
    int status = take_options(open->args, &options, &mean_value);
    if (!status)
        status = leat_transformer_create(&transform->transformer, &options,
                                         open->phase, transform->dtype,
                                         transform->layout);
    leat__free(mean_value);
    if (status)
        return status;
    leat_transformer_set_max_image_bytes(
        transform->transformer,
        (size_t)leat_args_number(open->args, "max_image_bytes"));
    transform->crop_size = options.crop_size;
    transform->draws =
        leat__transformer_words_per_image(transform->transformer) > 0;
    return LEAT_OK;
}

/* What is known of the shape before the first sample. */
static void set_image_spec(const transform_reader *transform,
                           const leat_args *args, leat_field_spec *spec)
{
    int shape[3] = {-1, -1, -1};
    bool is_encoded = spec->dtype == LEAT_BYTES;
    for (int i = 0; i < 3 && !is_encoded; i++)
        shape[i] = (int)spec->shape[i];
    if (is_encoded)
        shape[0] = leat_args_number(args, "force_color")  ? 3
                   : leat_args_number(args, "force_gray") ? 1
                                                          : -1;
    if (transform->crop_size)
        shape[1] = shape[2] = transform->crop_size;
    spec->ndim = 3;
    set_axes(transform->layout, shape, spec->shape);
}

static int set_spec(transform_reader *transform, const leat_args *args)
{
    leat__sample_map *map = &transform->map;
    const char *name = leat_args_at(args, 0);
    if (map->ngiven == 0)
        return LEAT_OK;
    int status =
        name ? leat__field_find(map->spec, map->nspec, name, &transform->field)
             : LEAT_OK;
    if (status)
        return status;
    leat_field_spec *spec = &map->spec[transform->field];
    if (spec->dtype != LEAT_BYTES && spec->dtype != LEAT_UINT8 &&
        spec->dtype != LEAT_FLOAT32 && !spec->varies)
        return leat_error(LEAT_EINVAL,
                          "field \"%s\" is %s: expected uint8, float32 or an "
                          "encoded image",
                          spec->name, leat_dtype_name(spec->dtype));
    if (spec->dtype == LEAT_BYTES || spec->ndim == 3)
        set_image_spec(transform, args, spec);
    spec->dtype = transform->dtype;
    spec->content = LEAT_CONTENT_ANY;
    return LEAT_OK;
}

/* When the mean file was written last, and the mean: archives and images of
 * disks may give two versions one time. */
static int transform_revision(leat_reader *reader, leat_token *token)
{
    const transform_reader *transform = (const transform_reader *)reader;
    uint64_t hash = leat__file_hash_modified(0, transform->mean_modified);
    hash = leat__transformer_hash_mean(transform->transformer, hash);
    return leat_token_put(token, &hash, sizeof(hash));
}

/* Before the file is read, so that what is read is not older. */
static void note_mean_file(transform_reader *transform, const leat_args *args)
{
    const char *path = leat_args_get(args, "mean_file");
    struct stat about;
    if (!path || stat(path, &about))
        return;
    transform->mean_modified = leat__file_modified(&about);
    transform->map.ops.revision = transform_revision;
}

static int transform_open(const leat_open *open, leat_reader **out)
{
    leat__sample_map *map;
    int status = leat__sample_map_new(&map, open, &transform_kind,
                                      sizeof(transform_reader));
    if (status)
        return status;
    transform_reader *transform = (transform_reader *)map;
    transform->dtype = types[leat_args_number(open->args, "type")];
    transform->layout = (leat_layout)leat_args_number(open->args, "layout");
    transform->choices = (uint32_t)leat_args_number(open->args, "choices");
    transform->seed = leat_open_seed(open);
    note_mean_file(transform, open->args);
    status = make_transformer(transform, open);
    if (!status)
        status = set_spec(transform, open->args);
    if (transform->draws)
        leat__sample_map_note_positions(map);
    return leat__sample_map_opened(map, status, out);
}

static const leat_argument transform_arguments[] = {
    {.name = "field", .positional = 1, .help = "the image; the first field"},
    {.name = "crop_size",
     .kind = LEAT_ARGUMENT_NUMBER,
     .initial = "0",
     .max = INT32_MAX,
     .help = "crop to a square, at random in TRAIN, else the centre; 0: none"},
    {.name = "mirror",
     .kind = LEAT_ARGUMENT_NUMBER,
     .initial = "0",
     .max = 1,
     .help = "1: mirror one image in two, at random"},
    {.name = "scale", .help = "multiply by (1)"},
    {.name = "mean_file", .help = "subtract this mean image"},
    {.name = "mean_value",
     .kind = LEAT_ARGUMENT_LIST,
     .help = "subtract this from all channels, or one from each"},
    {.name = "force_color",
     .kind = LEAT_ARGUMENT_NUMBER,
     .initial = "0",
     .max = 1,
     .help = "1: decode images to 3 channels"},
    {.name = "force_gray",
     .kind = LEAT_ARGUMENT_NUMBER,
     .initial = "0",
     .max = 1,
     .help = "1: decode images to 1 channel"},
    {.name = "type",
     .kind = LEAT_ARGUMENT_WORD,
     .initial = "FLOAT32",
     .words = "FLOAT32|FLOAT64|FLOAT16|BFLOAT16|UINT8", /* as types */
     .help = "of the result; UINT8 takes no mean and scale"},
    {.name = "layout",
     .kind = LEAT_ARGUMENT_WORD,
     .initial = "CHW",
     .words = "CHW|HWC",
     .help = "channels first, or last"},
    {.name = "seed",
     .kind = LEAT_ARGUMENT_NUMBER,
     .help = "of random choices; one is made of the layer's without it"},
    {.name = "choices",
     .kind = LEAT_ARGUMENT_NUMBER,
     .initial = "0",
     .max = UINT32_MAX,
     .help = "with one seed, transforms of the same number choose alike"},
    {.name = "max_image_bytes",
     .kind = LEAT_ARGUMENT_BYTES,
     .initial = "0",
     .max = INT64_MAX,
     .help = "memory that decoding an image may take; 0: 256 MiB"},
    {0},
};

const leat_reader_type leat__transform_type = {
    .size = sizeof(leat_reader_type),
    .name = "transform",
    .help = "Caffe's transform: crop, mirror, mean, scale, cast, layout",
    .arguments = transform_arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 1,
    .max_upstream = 1,
    .keeps_order = 1,
    .open = transform_open,
};

int leat_transform_map_options_init(leat_transform_map_options *options)
{
    const leat_transform_map_options defaults = LEAT_TRANSFORM_MAP_OPTIONS_INIT;
    return leat__options_init(options, &defaults, sizeof(defaults));
}

/* ",name=text", but for the first argument. */
static void add_text(leat__argument_text *to, const char *name,
                     const char *text)
{
    leat__argument_text_add(to, to->size > 0 ? "," : "");
    leat__argument_text_add(to, name);
    leat__argument_text_add(to, "=");
    leat__argument_text_add_value(to, text);
}

static void add_mean_values(leat__argument_text *to,
                            const leat_transform_options *transform)
{
    char number[LEAT__DECIMAL_TEXT_MAX];
    if (transform->mean_values < 1)
        return;
    leat__argument_text_add(to, to->size > 0 ? ",mean_value=" : "mean_value=");
    for (int i = 0; i < transform->mean_values; i++) {
        leat__argument_text_add(to, i ? "," : "(");
        leat__argument_text_add(
            to, leat__decimal_float_text(number, transform->mean_value[i]));
    }
    leat__argument_text_add(to, ")");
}

static void add_transform(leat__argument_text *to,
                          const leat_transform_options *transform)
{
    char number[LEAT__DECIMAL_TEXT_MAX];
    if (transform->crop_size)
        leat__argument_text_add_number(to, "crop_size", transform->crop_size);
    if (transform->mirror)
        leat__argument_text_add_number(to, "mirror", 1);
    if (transform->has_scale || transform->scale != 0)
        add_text(to, "scale",
                 leat__decimal_float_text(number, transform->scale));
    if (transform->mean_file)
        add_text(to, "mean_file", transform->mean_file);
    add_mean_values(to, transform);
    if (transform->force_color)
        leat__argument_text_add_number(to, "force_color", 1);
    if (transform->force_gray)
        leat__argument_text_add_number(to, "force_gray", 1);
}

static int check_options(const leat_transform_map_options *options,
                         const leat_transform_options *transform, int *type)
{
    leat_dtype dtype = options->dtype ? options->dtype : LEAT_FLOAT32;
    *type = 0;
    while (*type < TYPES && types[*type] != dtype)
        ++*type;
    if (*type == TYPES || (unsigned)options->layout > LEAT_NHWC)
        return leat_error(LEAT_EINVAL,
                          "transform: dtype is %d, layout %d: expected "
                          "LEAT_FLOAT32, FLOAT64, FLOAT16, BFLOAT16 or UINT8, "
                          "and a leat_layout",
                          (int)dtype, (int)options->layout);
    if (transform->mean_values < 0 ||
        (transform->mean_values > 0 && !transform->mean_value))
        return leat_error(
            LEAT_EINVAL, "transform: mean_values is %d, mean_value %s",
            transform->mean_values, transform->mean_value ? "given" : "NULL");
    return LEAT_OK;
}

int leat_pipeline_transform(leat_pipeline **out, leat_pipeline *upstream,
                            const leat_transform_options *transform,
                            const leat_transform_map_options *options)
{
    leat_transform_map_options values = LEAT_TRANSFORM_MAP_OPTIONS_INIT;
    leat_transform_options image = LEAT_TRANSFORM_OPTIONS_INIT;
    leat__argument_text text = {0};
    int type;
    int status = leat__options_copy(&values, options, sizeof(values));
    if (!status)
        status = leat__options_copy(&image, transform, sizeof(image));
    if (!status)
        status = check_options(&values, &image, &type);
    if (status)
        return status;
    if (values.field)
        leat__argument_text_add_value(&text, values.field);
    add_transform(&text, &image);
    add_text(&text, "type", type_words[type]);
    add_text(&text, "layout", values.layout == LEAT_NCHW ? "CHW" : "HWC");
    if (values.has_seed)
        leat__argument_text_add_number(&text, "seed", (int64_t)values.seed);
    leat__argument_text_add_number(&text, "choices", values.choices);
    leat__argument_text_add_number(&text, "max_image_bytes",
                                   values.max_image_bytes);
    status = text.status;
    if (!status)
        status = leat_pipeline_create(out, &leat__transform_type, text.text,
                                      NULL, NULL, &upstream, 1);
    leat__argument_text_finish(&text);
    return status;
}
