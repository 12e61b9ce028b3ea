#include "tools/delivery/show.h"

#include "tools/cli/interrupt.h"
#include "tools/delivery/layer_source.h"

#include <leat/ext/reader.h>

#include <limits.h>
#include <string.h>

/*
 * The same layer without means and scale, on which crops and mirrors do not
 * depend. Its tops may be larger, and are not those of a training.
 */
static int create_plain_layer(struct show *show, struct layer_source *plain,
                              const leat_data_layer *layer)
{
    leat_data_layer_options options = *leat_data_layer_get_options(layer);
    leat_transform_options transform = LEAT_TRANSFORM_OPTIONS_INIT;
    if (options.transform)
        transform = *options.transform;
    show->phase = options.phase;
    show->seed = leat_data_layer_seed(layer);
    transform.scale = 1;
    transform.mean_file = NULL;
    transform.mean_value = NULL;
    transform.mean_values = 0;
    options.transform = &transform;
    options.top_type = LEAT_FLOAT32;
    options.label_type = LEAT_FLOAT64;
    options.layout = LEAT_NCHW;
    options.transform_on = LEAT_TRANSFORM_ON_CPU;
    options.max_memory = 0;
    options.bad_record_file = NULL;
    if (show->seed)
        options.random_seed = (int64_t)show->seed;
    return leat_data_layer_create(&plain->layer,
                                  leat_data_layer_pipeline(layer), &options);
}

/* The layer itself is set up first, so that its own errors are found. */
static int open_layer(struct show *show, struct layer_source *plain,
                      leat_dtype *top_type)
{
    struct layer_source layer = {0};
    int status = layer_source_create(&layer, &show->layer);
    if (!status)
        status = layer_source_setup(&layer);
    if (!status)
        status = create_plain_layer(show, plain, layer.layer);
    if (!status)
        *top_type = leat_data_layer_get_options(layer.layer)->top_type;
    layer_source_destroy(&layer);
    return status ? status : layer_source_setup(plain);
}

/* The labels of sample `i`, as many as fit. */
static void write_labels(char *out, size_t size, leat_blob *top, int64_t i)
{
    const double *value = leat_blob_cpu_data(top);
    int64_t n = leat_blob_dim(top, 0)
                    ? leat_blob_count(top) / leat_blob_dim(top, 0)
                    : 0;
    size_t used = 0;
    for (int64_t k = 0; value && k < n && used < size; k++)
        used += (size_t)snprintf(out + used, size - used,
                                 k ? " %.10g" : "%.10g", value[i * n + k]);
}

/* Whether all values are those of a byte, as of pictures. */
static bool are_bytes(const float *value, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!(value[i] >= 0 && value[i] <= 255) ||
            value[i] != (float)(int)value[i])
            return false;
    return true;
}

/* Sample `i` as planes; one that is no image is a row. */
static int take_sample(leat_blob *top, int64_t i, bool rgb,
                       struct thumbnail *out)
{
    int ndim = leat_blob_ndim(top);
    int64_t n = 1;
    for (int k = 1; k < ndim; k++)
        n *= leat_blob_dim(top, k);
    leat_field field = {.dtype = LEAT_FLOAT32, .ndim = 3, .shape = {1, 1, n}};
    for (int k = 0; ndim == 4 && k < 3; k++)
        field.shape[k] = leat_blob_dim(top, k + 1);
    const float *data = leat_blob_cpu_data(top);
    if (!data || n < 1 || n > INT_MAX)
        return leat_error(LEAT_EUNSUPPORTED,
                          "samples of %lld elements cannot be drawn",
                          (long long)n);
    field.data = data + i * n;
    thumbnail_init(out, &field, NULL, rgb);
    if (are_bytes(field.data, n)) {
        out->low = 0;
        out->scale = 1;
    }
    return LEAT_OK;
}

/* Draws the samples of a batch, as far as they are asked for. */
static int draw_batch(struct show *show, const struct layer_source *plain,
                      leat_dtype top_type)
{
    const leat_batch *batch = leat_data_layer_batch(plain->layer);
    for (int64_t i = 0; i < batch->valid && show->shown < show->count; i++) {
        const leat_provenance *from = &batch->from[i];
        struct thumbnail thumbnail;
        struct caption caption;
        int status = take_sample(plain->top[0], i, show->rgb, &thumbnail);
        if (status)
            return status;
        caption_init(&caption, from->record, from->key, from->key_size,
                     from->key_cut);
        caption_kind(&caption, &thumbnail, leat_dtype_name(top_type));
        /* The replacement of a bad record is drawn as it is delivered. */
        show->bad += from->replacement != LEAT_REPLACEMENT_NONE;
        if (from->replacement)
            strcpy(caption.label, "bad");
        else if (plain->ntop > 1)
            write_labels(caption.label, sizeof(caption.label), plain->top[1],
                         i);
        contact_sheet_draw(&show->sheet, show->shown++, &thumbnail, NULL,
                           &caption);
    }
    return LEAT_OK;
}

int show_layer(struct show *show)
{
    struct layer_source plain = {0};
    leat_dtype top_type = LEAT_FLOAT32;
    int status = open_layer(show, &plain, &top_type);
    if (!status)
        status = contact_sheet_init(&show->sheet, show->count, show->side,
                                    show->columns);
    while (!status && show->shown < show->count) {
        status = layer_source_forward(&plain);
        if (!status)
            status = draw_batch(show, &plain, top_type);
        if (!status)
            status = interrupt_check();
    }
    layer_source_destroy(&plain);
    return status;
}
