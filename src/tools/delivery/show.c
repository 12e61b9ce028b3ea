#include "tools/delivery/show.h"
#include "base/error.h"

#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/delivery/image_reader.h"
#include "tools/delivery/layer_source.h"
#include "tools/delivery/pipeline_paths.h"

#include <leat/ext/reader.h>

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int inspect(struct show *show, struct inspection *out,
                   int (*visit)(void *context, const struct inspected *record),
                   void *context)
{
    return inspection_run(out, show->source, show->layer.layer.max_image_bytes,
                          show->json, visit, context);
}

/* The records with the least contrast, the worst first. */
struct ranking {
    pthread_mutex_t lock; /* protects the rest */
    struct ranked {
        int64_t record;
        bool has_warned;
        double contrast;
    } * worst;
    int64_t n, max;
};

static bool is_worse(const struct ranked *a, const struct ranked *b)
{
    if (a->has_warned != b->has_warned)
        return a->has_warned;
    if (a->contrast < b->contrast || a->contrast > b->contrast)
        return a->contrast < b->contrast;
    return a->record < b->record;
}

static int rank(void *context, const struct inspected *record)
{
    struct ranking *ranking = context;
    struct thumbnail thumbnail;
    thumbnail_init(&thumbnail, &record->sample->field[0], record->image, false);
    struct ranked ranked = {record->entry->record, record->warning != NULL,
                            thumbnail_contrast(&thumbnail)};
    pthread_mutex_lock(&ranking->lock);
    int64_t at = ranking->n;
    while (at > 0 && is_worse(&ranked, &ranking->worst[at - 1]))
        at--;
    if (at < ranking->max) {
        ranking->n += ranking->n < ranking->max;
        memmove(ranking->worst + at + 1, ranking->worst + at,
                (size_t)(ranking->n - 1 - at) * sizeof(ranked));
        ranking->worst[at] = ranked;
    }
    pthread_mutex_unlock(&ranking->lock);
    return LEAT_OK;
}

/* All that is bad or lost, and then the worst of the good records. */
static void choose_worst(struct show *show)
{
    const struct inspection *found = &show->found;
    struct ranking ranking = {.max = show->count};
    ranking.worst = calloc((size_t)ranking.max + 1, sizeof(*ranking.worst));
    if (!ranking.worst)
        message_fail("out of memory");
    pthread_mutex_init(&ranking.lock, NULL);
    output_require(inspect(show, &show->found, rank, &ranking));
    pthread_mutex_destroy(&ranking.lock);
    show->records = inspection_records(found);
    for (size_t i = 0; i < found->flaws && show->shown < show->count; i++)
        if (found->flaw[i].lost)
            show->cell[show->shown++].flaw = &found->flaw[i];
    for (int64_t i = 0; i < ranking.n && show->shown < show->count; i++)
        show->cell[show->shown++].record =
            inspection_number(found, ranking.worst[i].record);
    free(ranking.worst);
}

/* Those of --records, or the first ones. */
static void choose_records(struct show *show)
{
    for (int64_t i = 0; i < show->shown; i++)
        if (show->cell[i].record >= show->records)
            message_fail("%s: record %lld is wanted, there are %lld",
                         show->source, (long long)show->cell[i].record,
                         (long long)show->records);
    if (show->shown)
        return;
    for (; show->shown < show->count && show->shown < show->records;
         show->shown++)
        show->cell[show->shown].record = show->shown;
}

static void draw_bad(struct show *show, int64_t i, const char *label,
                     const char *reason, struct picture *picture)
{
    picture->reason = reason;
    snprintf(picture->label, sizeof(picture->label), "%s", label);
    contact_sheet_draw(&show->sheet, i, picture);
}

static void draw_good(struct show *show, int64_t i, const leat_sample *sample,
                      const leat_image *image, struct picture *picture)
{
    const leat_field *data = &sample->field[0];
    thumbnail_init(&picture->thumbnail, data, image, show->rgb);
    picture->type = image_reader_encoding(data);
    inspection_label(picture->label, sizeof(picture->label), &sample->field[1],
                     true);
    contact_sheet_draw(&show->sheet, i, picture);
    show->cell[i].is_drawn = true;
}

/* The part of a reader's error line that follows the record it names. */
static const char *reason_of(const char *line, const leat_provenance *from)
{
    char text[LEAT__KEY_TEXT_MAX];
    size_t size = from->source ? strlen(from->source) : 0;
    bool is_named = size > 0 && strncmp(line, from->source, size) == 0;
    const char *key = strstr(is_named ? line + size : line, ", key ");
    if (!key || !from->key)
        return line;
    key += strlen(", key ");
    leat__key_text(text, from->key, from->key_size + from->key_cut);
    size = strlen(text);
    return strncmp(key, text, size) == 0 && strncmp(key + size, ": ", 2) == 0
               ? key + size + 2
               : line;
}

static int read_record(struct show *show, int64_t i,
                       struct image_reader *source, leat_image_decoder *decoder)
{
    struct picture picture;
    const leat_sample *sample = &source->sample;
    const leat_field *data = &sample->field[0];
    leat_image image;
    int64_t record = show->cell[i].record;
    int status =
        leat_reader_seek(source->reader, (leat_position){0, record}, NULL);
    if (!status)
        status = leat_reader_next(source->reader, &source->sample);
    if (status && status != LEAT_EDATA)
        return status;
    picture_begin(&picture, record, sample->from.key, sample->from.key_size, 0);
    bool is_encoded = !status && data->dtype == LEAT_BYTES;
    if (is_encoded)
        status = leat_image_decode(decoder, data->data, data->bytes,
                                   LEAT_COLOR_NATIVE, &image);
    if (!status)
        draw_good(show, i, sample, is_encoded ? &image : NULL, &picture);
    if (status != LEAT_EDATA)
        return status;
    draw_bad(show, i, "bad", reason_of(leat_last_error(), &sample->from),
             &picture);
    show->bad++;
    return LEAT_OK;
}

/* Of a sound database: finds a record without reading those before it. */
static int draw_by_reader(struct show *show, struct image_reader *source)
{
    leat_image_decoder *decoder = NULL;
    int status = leat_image_decoder_create(&decoder);
    if (!status)
        leat_image_decoder_set_max_bytes(decoder,
                                         show->layer.layer.max_image_bytes);
    for (int64_t i = 0; !status && i < show->shown; i++) {
        status = read_record(show, i, source, decoder);
        if (!status)
            status = interrupt_check();
    }
    leat_image_decoder_destroy(decoder);
    return status;
}

/* Draws a good record in each cell that shows it. As every record is inspected
   once, no two threads draw the same cell. */
static int draw_inspected(void *context, const struct inspected *record)
{
    struct show *show = context;
    const leat_lmdb_check_entry *entry = record->entry;
    int64_t number = inspection_number(&show->found, entry->record);
    for (int64_t i = 0; i < show->shown; i++) {
        struct picture picture;
        if (show->cell[i].flaw || show->cell[i].record != number)
            continue;
        picture_begin(&picture, number, entry->key, entry->key_size, 0);
        draw_good(show, i, record->sample, record->image, &picture);
        atomic_fetch_sub(&show->missing, 1);
    }
    return atomic_load(&show->missing) ? LEAT_OK : LEAT_END;
}

/* Why records are lost, as far as one reason is known. */
static const char *loss_reason(const struct inspection *found)
{
    for (size_t i = 0; i < found->flaws; i++)
        if (found->flaw[i].lost < 0)
            return found->flaw[i].reason;
    return found->flaws ? found->flaw[0].reason : "it is not there";
}

/* Draws the bad and the missing records. */
static void draw_rest(struct show *show)
{
    for (int64_t i = 0; i < show->shown; i++) {
        const struct flaw *flaw = show->cell[i].flaw;
        int64_t record = show->cell[i].record;
        struct picture picture;
        if (show->cell[i].is_drawn)
            continue;
        if (flaw)
            record = flaw_is_record(flaw) ? flaw->record : -1;
        picture_begin(&picture, record, NULL, 0, 0);
        if (flaw && flaw->key)
            snprintf(picture.key, sizeof(picture.key), "%s", flaw->key);
        draw_bad(show, i, flaw ? "bad" : "lost",
                 flaw ? flaw->reason : loss_reason(&show->found), &picture);
        show->bad += flaw != NULL;
        show->lost += !flaw;
    }
}

/* Connects the chosen records with the flaws that were found of them. */
static void find_flaws(struct show *show)
{
    show->bad = 0;
    show->missing = (int)show->shown;
    for (int64_t i = 0; i < show->shown; i++) {
        struct show_cell *cell = &show->cell[i];
        cell->is_drawn = false;
        for (size_t k = 0; !cell->flaw && k < show->found.flaws; k++)
            if (flaw_is_record(&show->found.flaw[k]) &&
                show->found.flaw[k].record == cell->record)
                cell->flaw = &show->found.flaw[k];
        show->missing -= cell->flaw != NULL;
    }
}

/* Finds the records of a damaged database, however many it claims to have. */
static void inspect_all(struct show *show)
{
    if (!show->found.flaws) {
        inspection_finish(&show->found);
        output_require(inspect(show, &show->found, NULL, NULL));
    }
    show->records = inspection_records(&show->found);
}

/*
 * Of a damaged database: the numbers of records after the damage are known once
 * all of it was inspected, and a second inspection meets them again.
 */
static void draw_by_inspection(struct show *show)
{
    struct inspection again = {0};
    inspect_all(show);
    find_flaws(show);
    if (show->missing)
        output_require(inspect(show, &again, draw_inspected, show));
    inspection_finish(&again);
    draw_rest(show);
}

static bool is_damage(int status)
{
    return status == LEAT_EFORMAT || status == LEAT_EIO;
}

static int64_t count_records(const char *path)
{
    leat_lmdb_check *check;
    output_require(leat_lmdb_check_open(&check, path));
    interrupt_catch();
    int64_t records = leat_lmdb_check_count(check);
    leat_lmdb_check_close(check);
    return records;
}

void show_database(struct show *show)
{
    struct image_reader source = {0};
    show->records = count_records(show->source);
    if (show->worst)
        choose_worst(show);
    int status = show->found.flaws
                     ? LEAT_EFORMAT
                     : image_reader_open(&source, show->source, 0);
    if (is_damage(status))
        inspect_all(show);
    else
        output_require(status);
    if (!show->worst)
        choose_records(show);
    output_require(contact_sheet_init(&show->sheet, show->shown, show->side,
                                      show->columns));
    if (!status)
        status = draw_by_reader(show, &source);
    image_reader_close(&source);
    if (is_damage(status))
        draw_by_inspection(show);
    else
        output_require(status);
}

/* Pixels as they are: without mean and scale. */
static void strip(leat_transform_options *transform)
{
    transform->scale = 1;
    transform->mean_file = NULL;
    transform->mean_value = NULL;
    transform->mean_values = 0;
}

/* All images of a list, since each one's choices go by its number. */
static int list_images(const leat_data_layer_options *options,
                       leat_top images[LEAT_MAX_FIELDS],
                       leat_transform_options own[LEAT_MAX_FIELDS])
{
    int n = 0;
    for (int i = 0; i < options->ntop; i++) {
        if (!options->top[i].is_image)
            continue;
        images[n] = options->top[i];
        images[n].dtype = LEAT_FLOAT32;
        if (images[n].transform) {
            own[n] = *images[n].transform;
            strip(&own[n]);
            images[n].transform = &own[n];
        }
        n++;
    }
    return n;
}

/* Bytes of an image's smallest element, but no more than a FLOAT32's. */
static size_t smallest_element(const leat_data_layer_options *options)
{
    size_t least = leat_dtype_size(options->top_type);
    for (int i = 0; i < options->ntop; i++) {
        const leat_top *top = &options->top[i];
        size_t size = leat_dtype_size(top->dtype);
        if (top->is_image && top->dtype && size < least)
            least = size;
    }
    return least < sizeof(float) ? least : sizeof(float);
}

/* max_memory for batches of FLOAT32, of which one fits where one of the layer's
 * own does. */
static size_t scale_limit(const leat_data_layer_options *options)
{
    size_t growth = sizeof(float) / smallest_element(options);
    return options->max_memory < SIZE_MAX / growth
               ? options->max_memory * growth
               : SIZE_MAX;
}

/*
 * The same layer without means and scale, on which crops and mirrors do not
 * depend. Its tops may be larger, and are not those of a training.
 */
static void create_plain_layer(struct show *show, struct layer_source *plain,
                               const leat_data_layer *layer)
{
    leat_data_layer_options options = *leat_data_layer_get_options(layer);
    leat_transform_options transform = LEAT_TRANSFORM_OPTIONS_INIT;
    if (options.transform)
        transform = *options.transform;
    leat_top images[LEAT_MAX_FIELDS];
    leat_transform_options own[LEAT_MAX_FIELDS];
    options.max_memory = scale_limit(&options);
    options.prefetch = 1;
    if (options.ntop > 0) {
        options.ntop = list_images(&options, images, own);
        options.top = images;
        if (options.ntop == 0)
            message_fail("none of the layer's tops is an image");
    }
    show->phase = options.phase;
    show->seed = leat_data_layer_seed(layer);
    strip(&transform);
    options.transform = &transform;
    options.top_type = LEAT_FLOAT32;
    options.label_type = LEAT_FLOAT64;
    options.layout = LEAT_NCHW;
    options.transform_on = LEAT_TRANSFORM_ON_CPU;
    if (show->seed)
        options.random_seed = (int64_t)show->seed;
    output_require(leat_data_layer_create(
        &plain->layer, leat_data_layer_pipeline(layer), &options));
}

/* The layer itself is set up first, so that its own errors are found, unless
   its data can be read but once. Returns the type of its tops. */
static leat_dtype open_layer(struct show *show)
{
    struct layer_source layer = {0}, *plain = &show->plain;
    output_require(layer_source_create(&layer, &show->layer));
    if (!pipeline_paths_pipe(leat_data_layer_pipeline(layer.layer)))
        output_require(layer_source_setup(&layer));
    create_plain_layer(show, plain, layer.layer);
    leat_dtype top_type = leat_data_layer_get_options(layer.layer)->top_type;
    plain->makes_list = layer.makes_list;
    layer_source_destroy(&layer);
    output_require(layer_source_setup(plain));
    output_require(layer_source_check_output(plain, show->out));
    return top_type;
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
static void take_sample(leat_blob *top, int64_t i, bool rgb,
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
        message_fail("samples of %lld elements cannot be drawn", (long long)n);
    field.data = data + i * n;
    thumbnail_init(out, &field, NULL, rgb);
    if (are_bytes(field.data, n)) {
        out->low = 0;
        out->scale = 1;
    }
}

/* Draws the samples of a batch, as far as they are asked for. */
static void draw_batch(struct show *show, const struct layer_source *plain,
                       leat_dtype top_type)
{
    const leat_batch *batch = leat_data_layer_batch(plain->layer);
    const leat_data_layer_options *options =
        leat_data_layer_get_options(plain->layer);
    for (int64_t i = 0; i < batch->valid && show->shown < show->count; i++) {
        const leat_provenance *from = &batch->from[i];
        struct picture picture;
        picture_begin(&picture, from->record, from->key, from->key_size,
                      from->key_cut);
        picture.type = leat_dtype_name(top_type);
        take_sample(plain->top[0], i, show->rgb, &picture.thumbnail);
        /* The replacement of a bad record is drawn as it is delivered. */
        show->bad += from->replacement != LEAT_REPLACEMENT_NONE;
        if (from->replacement)
            strcpy(picture.label, "bad");
        else if (plain->ntop > 1 && !options->ntop)
            write_labels(picture.label, sizeof(picture.label), plain->top[1],
                         i);
        contact_sheet_draw(&show->sheet, show->shown++, &picture);
    }
}

void show_layer(struct show *show)
{
    leat_dtype top_type = open_layer(show);
    output_require(contact_sheet_init(&show->sheet, show->count, show->side,
                                      show->columns));
    while (show->shown < show->count) {
        output_require(layer_source_forward(&show->plain));
        draw_batch(show, &show->plain, top_type);
        output_require(interrupt_check());
    }
}
