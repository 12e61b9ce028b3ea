#include "layer/data_layer_options.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "data/transform.h"

#include <leat/image.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static int copy_text(char **out, const char *text)
{
    if (!text)
        return LEAT_OK;
    *out = leat__strdup(text);
    return *out ? LEAT_OK : LEAT_ENOMEM;
}

int leat_data_layer_options_init(leat_data_layer_options *options)
{
    const leat_data_layer_options defaults = LEAT_DATA_LAYER_OPTIONS_INIT;
    return leat__options_init(options, &defaults, sizeof(defaults));
}

/*
 * Every default in the place of its zero. A number that may be zero is below it
 * from here on where it was not given, and its flag says whether it was.
 */
static void set_defaults(leat_data_layer_options *values)
{
    if (values->prefetch == 0)
        values->prefetch = LEAT_PREFETCH_DEFAULT;
    if (values->world_size == 0)
        values->world_size = 1;
    if (values->top_type == LEAT_BYTES)
        values->top_type = LEAT_FLOAT32;
    if (values->random_seed == 0 && !values->has_random_seed)
        values->random_seed = -1;
    if (values->max_errors == 0 && !values->has_max_errors)
        values->max_errors = -1;
    values->has_random_seed = values->random_seed >= 0;
    values->has_max_errors = values->max_errors >= 0;
}

/* Fields beyond the caller's size take their defaults. */
static int copy_values(leat_data_layer_options *out,
                       const leat_data_layer_options *options)
{
    const leat_data_layer_options defaults = LEAT_DATA_LAYER_OPTIONS_INIT;
    if (options->size == 0)
        return leat_error(LEAT_EINVAL,
                          "the data layer's options have size 0: expected that "
                          "of the struct, as LEAT_DATA_LAYER_OPTIONS_INIT sets "
                          "it");
    *out = defaults;
    memcpy(out, options,
           options->size < sizeof(*out) ? options->size : sizeof(*out));
    out->size = sizeof(*out);
    return LEAT_OK;
}

static int copy_transform(leat__layer_options *out)
{
    int status =
        leat__transform_options_copy(&out->transform, out->values.transform);
    if (status)
        return status;
    out->values.transform = &out->transform;
    int n = out->transform.mean_values;
    if (n < 0 || (n > 0 && !out->transform.mean_value))
        return leat_error(LEAT_EINVAL, "mean_values is %d without values", n);
    if (n == 0 && out->transform.mean_value)
        return leat_error(LEAT_EINVAL,
                          "mean_value has values and mean_values is 0: "
                          "expected how many they are");
    status = copy_text(&out->mean_file, out->transform.mean_file);
    if (status)
        return status;
    out->transform.mean_file = out->mean_file;
    if (n == 0)
        return LEAT_OK;
    size_t bytes = (size_t)n * sizeof(out->mean_value[0]);
    out->mean_value = leat__alloc(bytes);
    if (!out->mean_value)
        return LEAT_ENOMEM;
    memcpy(out->mean_value, out->transform.mean_value, bytes);
    out->transform.mean_value = out->mean_value;
    return LEAT_OK;
}

static int copy_tops(leat__layer_options *out)
{
    const char *const *tops = out->values.tops;
    for (int i = 0; tops && tops[i]; i++) {
        if (i == LEAT_MAX_FIELDS)
            return leat_error(LEAT_EINVAL, "more than %d tops",
                              LEAT_MAX_FIELDS);
        int status = copy_text(&out->top[i], tops[i]);
        if (status)
            return status;
        out->tops[i] = out->top[i];
        out->ntop = i + 1;
    }
    out->values.tops = out->ntop > 0 ? out->tops : NULL;
    return LEAT_OK;
}

/* What the caller gave may go: `*hooks` then points to the copy. */
static int copy_allocator(leat_allocator *out, const leat_allocator **hooks,
                          const char *name)
{
    const leat_allocator *from = *hooks;
    if (!from)
        return LEAT_OK;
    if (from->size < sizeof(*from) || !from->alloc || !from->free)
        return leat_error(LEAT_EINVAL, "%s lacks its size, alloc or free",
                          name);
    *out = *from;
    *hooks = out;
    return LEAT_OK;
}

static int set_batch_size(leat_data_layer_options *values)
{
    if (values->world_size < 1 || values->rank < 0 ||
        values->rank >= values->world_size)
        return leat_error(LEAT_EINVAL,
                          "rank is %d of world_size %d: expected a rank from 0 "
                          "and below world_size",
                          values->rank, values->world_size);
    if (values->world_size > LEAT__WORLD_MAX)
        return leat_error(LEAT_EINVAL,
                          "world_size is %d: expected at most %d, which is "
                          "what a resume token has room for",
                          values->world_size, LEAT__WORLD_MAX);
    int64_t world = values->world_size;
    if (values->global_batch_size != 0) {
        if (values->global_batch_size < 0 ||
            values->global_batch_size % world != 0)
            return leat_error(LEAT_EINVAL,
                              "global_batch_size is %lld: expected a multiple "
                              "of world_size %d",
                              (long long)values->global_batch_size,
                              values->world_size);
        int64_t each = values->global_batch_size / world;
        if (values->batch_size != 0 && values->batch_size != each)
            return leat_error(LEAT_EINVAL,
                              "batch_size %lld and global_batch_size %lld of "
                              "%d ranks contradict each other",
                              (long long)values->batch_size,
                              (long long)values->global_batch_size,
                              values->world_size);
        values->batch_size = each;
    }
    if (values->batch_size < 1 || values->batch_size > INT_MAX / 2)
        return leat_error(LEAT_EINVAL, "batch_size is %lld: expected 1 to %d",
                          (long long)values->batch_size, INT_MAX / 2);
    return LEAT_OK;
}

static int is_half(leat_dtype type)
{
    return type == LEAT_FLOAT16 || type == LEAT_BFLOAT16;
}

static int is_top_type(leat_dtype type)
{
    return type == LEAT_FLOAT32 || type == LEAT_FLOAT64 || type == LEAT_UINT8 ||
           is_half(type);
}

/* Numbers of classes are beyond what two bytes of float can tell apart. */
static int is_label_type(leat_dtype type)
{
    return (is_top_type(type) && !is_half(type)) || type == LEAT_INT32 ||
           type == LEAT_INT64;
}

/* A type by its name, or by its number where it has none. */
static int type_error(const char *field, leat_dtype type, const char *expected)
{
    char number[16];
    snprintf(number, sizeof(number), "%d", (int)type);
    return leat_error(LEAT_EINVAL, "%s is %s: expected %s", field,
                      leat_dtype_size(type) ? leat_dtype_name(type) : number,
                      expected);
}

static int set_types(leat_data_layer_options *values)
{
    if (!is_top_type(values->top_type))
        return type_error("top_type", values->top_type,
                          "float32, float64, float16, bfloat16 or uint8");
    if (values->label_type == LEAT_BYTES)
        values->label_type =
            values->top_type == LEAT_FLOAT64 ? LEAT_FLOAT64 : LEAT_FLOAT32;
    if (!is_label_type(values->label_type))
        return type_error("label_type", values->label_type,
                          "float32, float64, uint8, int32 or int64");
    return LEAT_OK;
}

static int check_errors(const leat_data_layer_options *values)
{
    if (values->max_errors < -1)
        return leat_error(LEAT_EINVAL,
                          "max_errors is %lld: expected 0 or more, or -1 for "
                          "no limit",
                          (long long)values->max_errors);
    if (values->max_errors >= 0 && values->on_error == LEAT_ON_ERROR_FAIL)
        return leat_error(
            LEAT_EINVAL,
            "max_errors is %lld, but on_error is FAIL, where "
            "each bad record is an error; expected ZERO or REPLACE",
            (long long)values->max_errors);
    return LEAT_OK;
}

/* Fields that hold one of a few words, which are numbered from 0. */
static int check_choices(const leat_data_layer_options *values)
{
    const struct {
        const char *name;
        int value;
        int words;
        const char *expected;
    } fields[] = {
        {"phase", (int)values->phase, 2, "TRAIN or TEST"},
        {"layout", (int)values->layout, 2, "NCHW or NHWC"},
        {"top_mode", (int)values->top_mode, 2, "LEND or COPY"},
        {"rng", (int)values->rng, 2, "LEAT or CAFFE"},
        {"shard_test", values->shard_test, 2, "0 or 1"},
        {"reader_thread", (int)values->reader_thread, 3, "AUTO, ON or OFF"},
        {"has_random_seed", values->has_random_seed, 2, "0 or 1"},
        {"caller_helps", (int)values->caller_helps, 2, "AUTO or OFF"},
        {"has_max_errors", values->has_max_errors, 2, "0 or 1"},
        {"on_error", (int)values->on_error, 3, "FAIL, ZERO or REPLACE"},
        {"must_pin", values->must_pin, 2, "0 or 1"},
        {"transform_on", (int)values->transform_on, 2, "CPU or DEVICE"}};
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (fields[i].value < 0 || fields[i].value >= fields[i].words)
            return leat_error(LEAT_EINVAL, "%s is %d: expected %s",
                              fields[i].name, fields[i].value,
                              fields[i].expected);
    return LEAT_OK;
}

/* A share of the memory for batches, yet enough for most photographs. */
#define IMAGE_BYTES_LEAST ((size_t)64 << 20)

static void set_image_bytes(leat_data_layer_options *values)
{
    size_t share = values->max_memory / 4;
    if (values->max_image_bytes)
        return;
    if (!values->max_memory || share > LEAT_IMAGE_BYTES_DEFAULT)
        share = LEAT_IMAGE_BYTES_DEFAULT;
    values->max_image_bytes =
        share > IMAGE_BYTES_LEAST ? share : IMAGE_BYTES_LEAST;
}

static int check_values(leat_data_layer_options *values)
{
    int status = check_choices(values);
    if (status)
        return status;
    set_defaults(values);
    status = set_batch_size(values);
    if (status == LEAT_OK)
        status = set_types(values);
    if (status)
        return status;
    if (values->prefetch != LEAT_PREFETCH_AUTO &&
        (values->prefetch < 1 || values->prefetch > 1 << 20))
        return leat_error(LEAT_EINVAL,
                          "prefetch is %d: expected 1 to %d, 0 for "
                          "the default, or -1 for AUTO",
                          values->prefetch, 1 << 20);
    if (values->workers < 0 || values->workers > 1024)
        return leat_error(LEAT_EINVAL, "workers is %d: expected 0 to 1024",
                          values->workers);
    if (values->transform_on == LEAT_TRANSFORM_ON_DEVICE &&
        values->top_type == LEAT_FLOAT64)
        return leat_error(LEAT_EINVAL,
                          "transform_on is DEVICE, top_type float64: doubles "
                          "are made on the CPU");
    return check_errors(values);
}

int leat__layer_options_init(leat__layer_options *out,
                             const leat_data_layer_options *options)
{
    memset(out, 0, sizeof(*out));
    int status = copy_values(&out->values, options);
    if (status == LEAT_OK)
        status = copy_transform(out);
    if (status == LEAT_OK)
        status =
            copy_text(&out->name, out->values.name ? out->values.name : "data");
    if (status == LEAT_OK)
        status = copy_text(&out->device,
                           out->values.device ? out->values.device : "cpu");
    if (status == LEAT_OK)
        status = copy_text(&out->bad_record_file, out->values.bad_record_file);
    if (status == LEAT_OK)
        status = copy_tops(out);
    if (status == LEAT_OK)
        status = copy_allocator(&out->host_allocator,
                                &out->values.host_allocator, "host_allocator");
    if (status == LEAT_OK)
        status =
            copy_allocator(&out->pinned_allocator,
                           &out->values.pinned_allocator, "pinned_allocator");
    if (status == LEAT_OK)
        status = check_values(&out->values);
    if (status) {
        leat__layer_options_finish(out);
        return status;
    }
    set_image_bytes(&out->values);
    out->values.name = out->name;
    out->values.device = out->device;
    out->values.bad_record_file = out->bad_record_file;
    out->values.layer = NULL;
    out->values.stages = NULL;
    out->values.source = NULL;
    return LEAT_OK;
}

void leat__layer_options_finish(leat__layer_options *options)
{
    for (int i = 0; i < LEAT_MAX_FIELDS; i++)
        leat__free(options->top[i]);
    leat__free(options->mean_value);
    leat__free(options->mean_file);
    leat__free(options->bad_record_file);
    leat__free(options->device);
    leat__free(options->name);
    memset(options, 0, sizeof(*options));
}

int leat__layer_options_step(const leat_data_layer_options *options)
{
    int divided = options->phase == LEAT_TRAIN || options->shard_test;
    return divided ? options->world_size : 1;
}
