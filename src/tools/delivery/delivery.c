#include "tools/delivery/delivery.h"

#include "tools/database/database.h"
#include "tools/delivery/dump_reader.h"

#include <leat/ext/reader.h>
#include <leat/image.h>
#include <leat/reader.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct delivery {
    int (*next)(struct delivery *delivery);
    int64_t count;
    int64_t step; /* the next record's number */
    struct delivery_record record;

    /* Of a database. */
    leat_reader *reader;
    leat_sample sample;
    leat_image_decoder *decoder;

    struct dump_reader dump;

    /* Of a layer. */
    struct layer_source source;
    int64_t row, rows;           /* of the batch: the next one, and how many */
    char bad[512];               /* why there is none */
    char *name[LEAT_MAX_FIELDS]; /* of tops, as their files would be called */
};

/* The type of elements as .npy files have it. */
static struct npy_header npy_type(leat_dtype dtype)
{
    static const char kinds[] = {
        [LEAT_BYTES] = 'u',   [LEAT_UINT8] = 'u',   [LEAT_INT32] = 'i',
        [LEAT_INT64] = 'i',   [LEAT_FLOAT16] = 'f', [LEAT_BFLOAT16] = 'u',
        [LEAT_FLOAT32] = 'f', [LEAT_FLOAT64] = 'f'};
    return (struct npy_header){.kind = kinds[dtype],
                               .bytes = (int)leat_dtype_size(dtype)};
}

static void set_shape(struct delivery_array *array, const int64_t dim[],
                      int ndim)
{
    array->ndim = ndim;
    array->count = 1;
    for (int i = 0; i < ndim; i++) {
        array->dim[i] = dim[i];
        array->count *= (size_t)dim[i];
    }
}

/* LEAT_EDATA: the image is bad. */
static int set_field(struct delivery *delivery, struct delivery_array *array,
                     const leat_field *field)
{
    if (field->dtype != LEAT_BYTES) {
        array->type = npy_type(field->dtype);
        array->data = field->data;
        array->interleaved = 0;
        set_shape(array, field->shape, field->ndim);
        return LEAT_OK;
    }
    leat_image image;
    int status = leat_image_decode(delivery->decoder, field->data, field->bytes,
                                   LEAT_COLOR_NATIVE, &image);
    if (status)
        return status;
    const int64_t dim[3] = {image.channels, image.height, image.width};
    array->type = npy_type(LEAT_UINT8);
    array->data = image.pixels;
    array->interleaved = 1;
    set_shape(array, dim, 3);
    return LEAT_OK;
}

static int next_of_database(struct delivery *delivery)
{
    static const char *const names[] = {"data", "label"};
    struct delivery_record *record = &delivery->record;
    const leat_sample *sample = &delivery->sample;
    int status = leat_reader_next(delivery->reader, &delivery->sample);
    if (status && status != LEAT_EDATA)
        return status;
    record->number = sample->from.record;
    record->key = sample->from.key;
    record->key_size = sample->from.key_size;
    record->key_cut = sample->from.key_cut;
    int fields = status ? 0 : 2;
    record->arrays = fields;
    for (int i = 0; i < fields && !status; i++) {
        record->array[i].name = names[i];
        status = set_field(delivery, &record->array[i], &sample->field[i]);
    }
    if (status == LEAT_EDATA)
        snprintf(record->bad, sizeof(record->bad), "%s", leat_last_error());
    return status == LEAT_EDATA ? LEAT_OK : status;
}

/* NULL when out of memory, which the error line then says. */
static struct delivery *create(int (*next)(struct delivery *delivery))
{
    struct delivery *delivery = calloc(1, sizeof(*delivery));
    if (!delivery) {
        leat_error(LEAT_ENOMEM, "out of memory");
        return NULL;
    }
    delivery->next = next;
    leat_sample_init(&delivery->sample);
    return delivery;
}

int delivery_open_database(struct delivery **out, const char *path,
                           size_t max_image_bytes)
{
    struct delivery *delivery = create(next_of_database);
    if (!delivery)
        return LEAT_ENOMEM;
    int status = leat_image_decoder_create(&delivery->decoder);
    if (!status)
        leat_image_decoder_set_max_bytes(delivery->decoder, max_image_bytes);
    if (!status)
        status = database_open(&delivery->reader, path);
    if (!status)
        status = leat_reader_count(delivery->reader, &delivery->count);
    if (status)
        delivery_close(delivery);
    else
        *out = delivery;
    return status;
}

static int next_of_dump(struct delivery *delivery)
{
    struct delivery_record *record = &delivery->record;
    if (delivery->step == delivery->dump.rows)
        return LEAT_END;
    record->number = delivery->step;
    record->arrays = delivery->dump.arrays;
    for (int i = 0; i < record->arrays; i++) {
        const struct dump_array *from = &delivery->dump.array[i];
        struct delivery_array *array = &record->array[i];
        struct dump_row row = dump_reader_row(from, delivery->step);
        array->name = from->name;
        array->type = *row.header;
        array->data = row.data;
        set_shape(array, row.header->dim + 1, row.header->ndim - 1);
    }
    return LEAT_OK;
}

int delivery_open_dump(struct delivery **out, const char *directory)
{
    struct delivery *delivery = create(next_of_dump);
    if (!delivery)
        return LEAT_ENOMEM;
    int status = dump_reader_open(&delivery->dump, directory);
    if (!status && delivery->dump.arrays > LEAT_MAX_FIELDS)
        status = leat_error(LEAT_EFORMAT,
                            "%s: has files of %d names, more than the %d tops "
                            "of a layer",
                            directory, delivery->dump.arrays, LEAT_MAX_FIELDS);
    delivery->count = delivery->dump.rows;
    if (status)
        delivery_close(delivery);
    else
        *out = delivery;
    return status;
}

/* The next batch; all its places are bad if one is. */
static int next_batch(struct delivery *delivery)
{
    int status = layer_source_forward(&delivery->source);
    delivery->row = 0;
    delivery->bad[0] = 0;
    if (status == LEAT_EDATA)
        snprintf(delivery->bad, sizeof(delivery->bad), "%s", leat_last_error());
    else if (status)
        return status;
    delivery->rows = leat_blob_dim(delivery->source.top[0], 0);
    return LEAT_OK;
}

/* A row of the batch of a top. */
static int set_row(struct delivery_array *array, leat_blob *top, int64_t row)
{
    const char *data = leat_blob_cpu_data(top);
    if (!data)
        return LEAT_ENOMEM;
    array->type = npy_type(leat_blob_dtype(top));
    set_shape(array, leat_blob_shape(top) + 1, leat_blob_ndim(top) - 1);
    array->data = data + (size_t)row * array->count * (size_t)array->type.bytes;
    return LEAT_OK;
}

static int next_of_layer(struct delivery *delivery)
{
    struct delivery_record *record = &delivery->record;
    int status =
        delivery->row == delivery->rows ? next_batch(delivery) : LEAT_OK;
    if (status)
        return status;
    int64_t row = delivery->row++;
    record->number = delivery->step;
    record->key = NULL;
    record->arrays = 0;
    memcpy(record->bad, delivery->bad, sizeof(record->bad));
    if (record->bad[0])
        return LEAT_OK;
    const leat_batch *batch = leat_data_layer_batch(delivery->source.layer);
    if (batch && row < batch->n) {
        record->key = batch->from[row].key;
        record->key_size = batch->from[row].key_size;
        record->key_cut = batch->from[row].key_cut;
    }
    record->arrays = delivery->source.ntop;
    for (int i = 0; i < record->arrays && !status; i++) {
        record->array[i].name = delivery->name[i];
        status = set_row(&record->array[i], delivery->source.top[i], row);
    }
    return status;
}

/* As npy_writer_open calls the files of tops. */
static int name_tops(struct delivery *delivery)
{
    for (int i = 0; i < delivery->source.ntop; i++) {
        delivery->name[i] =
            strdup(leat_data_layer_top_name(delivery->source.layer, i));
        if (!delivery->name[i])
            return leat_error(LEAT_ENOMEM, "out of memory");
        for (char *c = delivery->name[i]; *c; c++)
            if (*c == '/')
                *c = '_';
    }
    return LEAT_OK;
}

int delivery_open_layer(struct delivery **out,
                        const struct layer_source_options *options)
{
    struct delivery *delivery = create(next_of_layer);
    if (!delivery)
        return LEAT_ENOMEM;
    delivery->count = -1;
    int status = layer_source_create(&delivery->source, options);
    if (!status)
        status = layer_source_setup(&delivery->source);
    if (!status)
        status = name_tops(delivery);
    if (status) {
        delivery_close(delivery);
        return status;
    }
    delivery->rows = delivery->row = leat_blob_dim(delivery->source.top[0], 0);
    *out = delivery;
    return status;
}

int64_t delivery_count(const struct delivery *delivery)
{
    return delivery->count;
}

uint64_t delivery_seed(const struct delivery *delivery)
{
    const leat_data_layer *layer = delivery->source.layer;
    return layer ? leat_data_layer_seed(layer) : 0;
}

int delivery_next(struct delivery *delivery, const struct delivery_record **out)
{
    delivery->record.bad[0] = 0;
    int status = delivery->next(delivery);
    if (status)
        return status;
    delivery->step++;
    *out = &delivery->record;
    return LEAT_OK;
}

void delivery_close(struct delivery *delivery)
{
    if (!delivery)
        return;
    leat_sample_finish(&delivery->sample);
    leat_reader_close(delivery->reader);
    leat_image_decoder_destroy(delivery->decoder);
    dump_reader_close(&delivery->dump);
    layer_source_destroy(&delivery->source);
    for (int i = 0; i < LEAT_MAX_FIELDS; i++)
        free(delivery->name[i]);
    free(delivery);
}

long double delivery_value(const struct delivery_array *array, size_t i)
{
    if (array->interleaved) {
        size_t plane = (size_t)array->dim[1] * (size_t)array->dim[2];
        i = i % plane * (size_t)array->dim[0] + i / plane;
    }
    return npy_header_value(&array->type, array->data, i);
}
