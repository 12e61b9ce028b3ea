#include "tools/delivery/side.h"

#include <leat/ext/reader.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void set_key(struct side_record *record, const leat_provenance *from)
{
    record->key = from->key;
    record->key_size = from->key_size;
    record->key_cut = from->key_cut;
}

static int next_of_database(struct side *side)
{
    struct side_record *record = &side->record;
    const leat_sample *sample = &side->database.sample;
    const leat_field *label = &sample->field[1];
    int shape[3];
    int status =
        leat_reader_next(side->database.reader, &side->database.sample);
    if (status && status != LEAT_EDATA)
        return status;
    record->number = sample->from.record;
    set_key(record, &sample->from);
    if (!status)
        status = image_reader_decode(&side->database, shape);
    if (status)
        return status;
    const int64_t dim[3] = {shape[0], shape[1], shape[2]};
    record->arrays = 2;
    record->array[0] = (struct side_array){
        "data", npy_header_of(LEAT_FLOAT32, 3, dim), side->database.image};
    record->array[1] = (struct side_array){
        "label", npy_header_of(label->dtype, label->ndim, label->shape),
        label->data};
    return LEAT_OK;
}

int side_open_database(struct side *out, const char *path,
                       size_t max_image_bytes)
{
    *out = (struct side){.next = next_of_database};
    int status = image_reader_open(&out->database, path, max_image_bytes);
    return status ? status
                  : leat_reader_count(out->database.reader, &out->count);
}

static int next_of_dump(struct side *side)
{
    if (side->step == side->dump.rows)
        return LEAT_END;
    side->record.arrays = side->dump.arrays;
    for (int i = 0; i < side->dump.arrays; i++) {
        struct side_array *array = &side->record.array[i];
        array->name = side->dump.array[i].name;
        array->data = dump_reader_row(&side->dump.array[i], &array->header);
    }
    return LEAT_OK;
}

int side_open_dump(struct side *out, const char *directory)
{
    *out = (struct side){.next = next_of_dump};
    int status = dump_reader_open(&out->dump, directory);
    if (!status && out->dump.arrays > LEAT_MAX_FIELDS)
        status = leat_error(LEAT_EFORMAT,
                            "%s: has files of %d names, more than the %d tops "
                            "of a layer",
                            directory, out->dump.arrays, LEAT_MAX_FIELDS);
    out->count = out->dump.rows;
    return status;
}

static int next_of_layer(struct side *side)
{
    struct side_record *record = &side->record;
    const struct layer_source *source = &side->source;
    if (side->row == side->rows) {
        int status = layer_source_forward(&side->source);
        if (status && status != LEAT_EDATA)
            return status;
        snprintf(side->bad, sizeof(side->bad), "%s",
                 status ? leat_last_error() : "");
        side->row = 0;
        side->rows = leat_blob_dim(source->top[0], 0);
    }
    int64_t row = side->row++;
    if (side->bad[0])
        return leat_error(LEAT_EDATA, "%s", side->bad);
    const leat_batch *batch = leat_data_layer_batch(source->layer);
    if (batch && row < batch->valid)
        set_key(record, &batch->from[row]);
    record->arrays = source->ntop;
    for (int i = 0; i < source->ntop; i++) {
        leat_blob *top = source->top[i];
        struct side_array *array = &record->array[i];
        const char *data = leat_blob_cpu_data(top);
        if (!data)
            return LEAT_ENOMEM;
        array->name = side->name[i];
        array->header =
            npy_header_of(leat_blob_dtype(top), leat_blob_ndim(top) - 1,
                          leat_blob_shape(top) + 1);
        array->data = data + (size_t)row * array->header.count *
                                 (size_t)array->header.bytes;
    }
    return LEAT_OK;
}

/* Tops are named as dump_writer_add names their files. */
static int name_tops(struct side *side)
{
    for (int i = 0; i < side->source.ntop; i++) {
        side->name[i] = strdup(leat_data_layer_top_name(side->source.layer, i));
        if (!side->name[i])
            return leat_error(LEAT_ENOMEM, "out of memory");
        for (char *c = side->name[i]; *c; c++)
            if (*c == '/')
                *c = '_';
    }
    return LEAT_OK;
}

int side_open_layer(struct side *out,
                    const struct layer_source_options *options)
{
    *out = (struct side){.next = next_of_layer, .count = -1};
    int status = layer_source_create(&out->source, options);
    if (!status)
        status = layer_source_setup(&out->source);
    if (!status)
        status = name_tops(out);
    return status;
}

int side_next(struct side *side)
{
    struct side_record *record = &side->record;
    record->number = side->step;
    record->key = NULL;
    record->arrays = 0;
    record->bad[0] = 0;
    int status = side->next(side);
    if (status && status != LEAT_EDATA)
        return status;
    if (status)
        snprintf(record->bad, sizeof(record->bad), "%s", leat_last_error());
    side->step++;
    return LEAT_OK;
}

void side_close(struct side *side)
{
    image_reader_close(&side->database);
    dump_reader_close(&side->dump);
    layer_source_destroy(&side->source);
    for (int i = 0; i < LEAT_MAX_FIELDS; i++)
        free(side->name[i]);
}
