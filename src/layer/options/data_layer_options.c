#include "layer/options/data_layer_options.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/option_list.h"
#include "base/options.h"
#include "layer/options/data_layer_option_table.h"

#include <leat/image.h>
#include <stdbool.h>
#include <string.h>

static int copy_text(char **out, const char *text)
{
    if (!text)
        return LEAT_OK;
    *out = leat__strdup(text);
    return *out ? LEAT_OK : LEAT_ENOMEM;
}

#define ENTRY(member, ...)                                                     \
    LEAT__OPTION(leat_data_layer_options, member, __VA_ARGS__),
static const leat_option list[] = {LEAT__DATA_LAYER_OPTIONS(ENTRY)};
enum { COUNT = sizeof(list) / sizeof(list[0]) };

const leat_option *leat_data_layer_option_list(int *n)
{
    *n = COUNT;
    return list;
}

int leat_data_layer_options_set(leat_data_layer_options *options,
                                const char *name, const char *text)
{
    return leat__option_set(list, COUNT, "the data layer", options, name, text);
}

int leat_data_layer_options_init(leat_data_layer_options *options)
{
    leat_data_layer_options defaults = LEAT_DATA_LAYER_OPTIONS_INIT;
    leat__data_layer_options_complete(&defaults);
    return leat__options_init(options, &defaults, sizeof(defaults));
}

void leat__data_layer_options_complete(leat_data_layer_options *options)
{
    leat__option_complete(list, COUNT, options);
}

static int copy_values(leat_data_layer_options *out,
                       const leat_data_layer_options *options)
{
    const leat_data_layer_options defaults = LEAT_DATA_LAYER_OPTIONS_INIT;
    *out = defaults;
    int status = leat__options_copy(out, options, sizeof(*out));
    return status ? leat__error_context(status, "the data layer") : LEAT_OK;
}

static int copy_transform(leat__layer_options *out)
{
    int status =
        leat__transform_copy_init(&out->transform, out->values.transform);
    out->values.transform = &out->transform.options;
    return status;
}

/* The list of tops, and what it has to do with other options. */
static int copy_top_list(leat__layer_options *out)
{
    int status = leat__top_list_init(&out->list, &out->values);
    if (status)
        return status;
    out->values.top = out->list.n > 0 ? out->list.top : NULL;
    if (out->list.n > 0 && out->ntop > 0)
        return leat_error(LEAT_EINVAL,
                          "tops names the tops, and top lists them: expected "
                          "one of the two");
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

/* The size of a batch of one rank, from that of all ranks where need be. */
static int set_batch_size(leat_data_layer_options *values)
{
    if (values->rank >= values->world_size)
        return leat_error(LEAT_EINVAL,
                          "rank is %d of world_size %d: expected a rank from 0 "
                          "and below world_size",
                          values->rank, values->world_size);
    int64_t all = values->global_batch_size, world = values->world_size;
    if (all % world)
        return leat_error(LEAT_EINVAL,
                          "global_batch_size is %lld: expected a multiple of "
                          "world_size %lld",
                          (long long)all, (long long)world);
    if (all && values->batch_size && values->batch_size != all / world)
        return leat_error(LEAT_EINVAL,
                          "batch_size %lld and global_batch_size %lld of %lld "
                          "ranks contradict each other",
                          (long long)values->batch_size, (long long)all,
                          (long long)world);
    if (all)
        values->batch_size = all / world;
    if (values->batch_size < 1 || values->batch_size > LEAT__BATCH_SIZE_MAX)
        return leat_error(LEAT_EINVAL,
                          "batch_size is %lld: expected 1 to %d samples",
                          (long long)values->batch_size, LEAT__BATCH_SIZE_MAX);
    return LEAT_OK;
}

static int check_pairs(const leat_data_layer_options *values)
{
    if (values->transform_on == LEAT_TRANSFORM_ON_DEVICE &&
        values->top_type == LEAT_FLOAT64)
        return leat_error(LEAT_EINVAL,
                          "transform_on is DEVICE, top_type float64: doubles "
                          "are made on the CPU");
    if (values->has_max_errors && values->on_error == LEAT_ON_ERROR_FAIL)
        return leat_error(
            LEAT_EINVAL,
            "max_errors is %lld, but on_error is FAIL, where "
            "each bad record is an error; expected ZERO or REPLACE",
            (long long)values->max_errors);
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

/*
 * The table's ranges, words and defaults first, then what one option has to do
 * with another.
 */
static int resolve(leat_data_layer_options *values)
{
    int status = leat__option_check(list, COUNT, values);
    if (status)
        return status;
    leat__data_layer_options_complete(values);
    values->has_random_seed = values->random_seed >= 0;
    values->has_max_errors = values->max_errors >= 0;
    if (values->label_type == LEAT_BYTES)
        values->label_type =
            values->top_type == LEAT_FLOAT64 ? LEAT_FLOAT64 : LEAT_FLOAT32;
    set_image_bytes(values);
    status = set_batch_size(values);
    return status ? status : check_pairs(values);
}

int leat__layer_options_init(leat__layer_options *out,
                             const leat_data_layer_options *options)
{
    memset(out, 0, sizeof(*out));
    int status = copy_values(&out->values, options);
    if (!status)
        status = copy_transform(out);
    if (!status)
        status = resolve(&out->values);
    if (!status)
        status = copy_text(&out->name, out->values.name);
    if (!status)
        status = copy_text(&out->device, out->values.device);
    if (!status)
        status = copy_text(&out->bad_record_file, out->values.bad_record_file);
    if (!status)
        status = copy_tops(out);
    if (!status)
        status = copy_top_list(out);
    if (!status)
        status = copy_allocator(&out->host_allocator,
                                &out->values.host_allocator, "host_allocator");
    if (!status)
        status =
            copy_allocator(&out->pinned_allocator,
                           &out->values.pinned_allocator, "pinned_allocator");
    if (status) {
        leat__layer_options_finish(out);
        return status;
    }
    out->values.name = out->name;
    out->values.device = out->device;
    out->values.bad_record_file = out->bad_record_file;
    out->values.layer = NULL;
    out->values.stages = NULL;
    out->values.source = NULL;
    out->values.mean_file = NULL;
    return LEAT_OK;
}

void leat__layer_options_finish(leat__layer_options *options)
{
    for (int i = 0; i < LEAT_MAX_FIELDS; i++)
        leat__free(options->top[i]);
    leat__transform_copy_finish(&options->transform);
    leat__top_list_finish(&options->list);
    leat__free(options->bad_record_file);
    leat__free(options->device);
    leat__free(options->name);
    memset(options, 0, sizeof(*options));
}

int leat__layer_options_step(const leat_data_layer_options *options)
{
    bool divided = options->phase == LEAT_TRAIN || options->shard_test;
    return divided ? options->world_size : 1;
}
