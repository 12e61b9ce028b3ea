#include "tools/inspect/show_net.h"

#include "tools/cli/interrupt.h"
#include "tools/cli/message.h"
#include "tools/cli/output.h"
#include "tools/cli/plain_text.h"
#include "tools/database/inspection.h"
#include "tools/delivery/layer_source.h"
#include "tools/inspect/contact_sheet.h"

#include <leat/ext/reader.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>

struct net_sheet {
    const struct show_net_options *options;
    struct layer_source source; /* delivers what is drawn */
    leat_dtype top_type;        /* of what the layer itself delivers */
    leat_phase phase;
    uint64_t seed; /* of its choices; 0: none at random */
    struct contact_sheet sheet;
    int64_t shown;
    int64_t bad; /* of those shown */
};

/* The same layer without means and scale: crops and mirrors depend on neither.
 */
static int create_plain_layer(struct net_sheet *self,
                              const leat_data_layer *layer)
{
    leat_data_layer_options options = *leat_data_layer_get_options(layer);
    leat_transform_options transform = LEAT_TRANSFORM_OPTIONS_INIT;
    if (options.transform)
        transform = *options.transform;
    self->top_type = options.top_type;
    self->phase = options.phase;
    self->seed = leat_data_layer_seed(layer);
    transform.scale = 1;
    transform.mean_file = NULL;
    transform.mean_value = NULL;
    transform.mean_values = 0;
    options.transform = &transform;
    options.top_type = LEAT_FLOAT32;
    options.label_type = LEAT_FLOAT64;
    options.layout = LEAT_NCHW;
    options.transform_on = LEAT_TRANSFORM_ON_CPU;
    /* Its tops may be larger, and are not those of a training. */
    options.max_memory = 0;
    options.bad_record_file = NULL;
    if (self->seed)
        options.random_seed = (int64_t)self->seed;
    return leat_data_layer_create(&self->source.layer,
                                  leat_data_layer_pipeline(layer), &options);
}

/* The layer itself is set up first, which finds what is wrong with it. */
static int open_layer(struct net_sheet *self)
{
    struct layer_source layer = {0};
    int status = layer_source_create(&layer, self->options->source);
    if (!status)
        status = layer_source_setup(&layer);
    if (!status)
        status = create_plain_layer(self, layer.layer);
    layer_source_destroy(&layer);
    return status ? status : layer_source_setup(&self->source);
}

/* Room for what stands below a picture. */
struct caption_text {
    char label[64];
    char number[32];
    char key[KEY_TEXT];
    char kind[96];
};

/* The labels of sample `i`, the first of them where there are many. */
static void write_labels(char *out, size_t size, leat_blob *top, int64_t i)
{
    const double *value = leat_blob_cpu_data(top);
    int64_t n = leat_blob_dim(top, 0)
                    ? leat_blob_count(top) / leat_blob_dim(top, 0)
                    : 0;
    size_t used = 0;
    out[0] = 0;
    for (int64_t k = 0; value && k < n && used < size; k++)
        used += (size_t)snprintf(out + used, size - used,
                                 k ? " %.10g" : "%.10g", value[i * n + k]);
}

/* Whether all values are a byte's, as of pictures. */
static int are_bytes(const float *value, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!(value[i] >= 0 && value[i] <= 255) ||
            value[i] != (float)(int)value[i])
            return 0;
    return 1;
}

/* A top's sample as planes; what is no image is a row. */
static int64_t shape_sample(const leat_blob *top, leat_field *field)
{
    int ndim = leat_blob_ndim(top);
    int64_t n = 1;
    for (int k = 1; k < ndim; k++)
        n *= leat_blob_dim(top, k);
    *field = (leat_field){.dtype = LEAT_FLOAT32, .ndim = 3, .shape = {1, 1, n}};
    for (int k = 0; ndim == 4 && k < 3; k++)
        field->shape[k] = leat_blob_dim(top, k + 1);
    return n;
}

static int draw_sample(struct net_sheet *self, const leat_batch *batch,
                       int64_t i)
{
    const leat_provenance *from = &batch->from[i];
    leat_blob *const *top = self->source.top;
    struct caption_text text;
    struct caption caption = {text.label, text.number, NULL, text.kind};
    struct thumbnail thumbnail;
    leat_field field;
    int64_t n = shape_sample(top[0], &field);
    const float *data = leat_blob_cpu_data(top[0]);
    if (!data || n < 1 || n > INT_MAX)
        return leat_error(LEAT_EUNSUPPORTED,
                          "samples of %lld elements cannot be drawn",
                          (long long)n);
    field.data = data + i * n;
    thumbnail_init(&thumbnail, &field, NULL, self->options->rgb);
    if (are_bytes(field.data, n)) {
        thumbnail.low = 0;
        thumbnail.scale = 1;
    }
    text.label[0] = 0;
    if (self->source.ntop > 1)
        write_labels(text.label, sizeof(text.label), top[1], i);
    snprintf(text.number, sizeof(text.number), "#%lld",
             (long long)from->record);
    snprintf(text.kind, sizeof(text.kind), "%lldx%lldx%lld %s",
             (long long)field.shape[0], (long long)field.shape[1],
             (long long)field.shape[2], leat_dtype_name(self->top_type));
    if (from->key)
        caption.key =
            inspection_key(text.key, from->key, from->key_size, from->key_cut);
    /* What stands in for a bad record is drawn as it is delivered. */
    if (from->replacement) {
        caption.label = "bad";
        self->bad++;
    }
    contact_sheet_draw(&self->sheet, self->shown++, &thumbnail, &caption);
    return LEAT_OK;
}

static int draw_samples(struct net_sheet *self)
{
    int status = LEAT_OK;
    while (!status && self->shown < self->options->count) {
        status = layer_source_forward(&self->source);
        if (status)
            break;
        const leat_batch *batch = leat_data_layer_batch(self->source.layer);
        for (int64_t i = 0;
             !status && i < batch->n && self->shown < self->options->count; i++)
            status = draw_sample(self, batch, i);
        if (!status)
            status = interrupt_check();
    }
    return status;
}

static const char *layer_source(const struct net_sheet *self)
{
    const struct layer_source_options *source = self->options->source;
    return source->net ? source->net : source->reader;
}

static void write_title(struct net_sheet *self)
{
    char text[256], bad[64] = "";
    if (self->bad)
        snprintf(bad, sizeof(bad), ", %lld of them bad", (long long)self->bad);
    snprintf(text, sizeof(text),
             "the first %lld of forward in %s%s, means and scale undone",
             (long long)self->shown,
             self->phase == LEAT_TEST ? "TEST" : "TRAIN", bad);
    contact_sheet_title(&self->sheet, layer_source(self), text);
}

static int report(const struct net_sheet *self)
{
    const struct raster *raster = &self->sheet.raster;
    const char *out = self->options->out;
    if (self->options->json)
        return output_json(
            json_pack("{s:o, s:I, s:I, s:I, s:i, s:i}", "out", output_text(out),
                      "shown", (json_int_t)self->shown, "bad",
                      (json_int_t)self->bad, "seed", (json_int_t)self->seed,
                      "width", raster->width, "height", raster->height));
    printf("%s: %s, %d x %d pixels\n", plain_text(out),
           output_count(self->shown, "sample", "samples"), raster->width,
           raster->height);
    if (self->seed)
        printf("seed: %llu\n", (unsigned long long)self->seed);
    if (self->bad)
        printf("bad records: %lld\n", (long long)self->bad);
    return 0;
}

/* As for a database: a sheet that shows nothing good is a failure. */
static int check_good(const struct net_sheet *self)
{
    if (!self->shown || self->bad < self->shown)
        return 0;
    return message_error("%s: none of the records shown is good",
                         layer_source(self));
}

int show_net(const struct show_net_options *options)
{
    struct net_sheet self = {.options = options};
    int status = open_layer(&self);
    if (!status)
        status = contact_sheet_init(&self.sheet, options->count,
                                    (int)options->side, (int)options->columns);
    if (!status)
        status = draw_samples(&self);
    if (!status) {
        write_title(&self);
        status = raster_save(&self.sheet.raster, options->out);
    }
    int exit_status = status ? message_last_error() : report(&self);
    if (!exit_status)
        exit_status = check_good(&self);
    contact_sheet_finish(&self.sheet);
    layer_source_destroy(&self.source);
    return exit_status;
}
