#include "model.h"

#include <leat/ext/reader.h>

#include <stdlib.h>
#include <string.h>

uint32_t digest_add(uint32_t digest, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++)
        digest = (digest ^ bytes[i]) * 16777619u;
    return digest;
}

uint32_t digest_field(uint32_t digest, int ndim, const int64_t shape[],
                      const void *data, size_t size)
{
    digest = digest_add(digest, shape, (size_t)ndim * sizeof(shape[0]));
    return digest_add(digest, data, size);
}

/* The number that a field begins with; -1: none. */
static int read_id(const leat_field *field)
{
    int64_t wide;
    int32_t narrow;
    char text[12] = "";
    size_t size = field->bytes < 11 ? field->bytes : 11;
    switch (field->dtype) {
    case LEAT_INT64:
        memcpy(&wide, field->data, field->bytes ? sizeof(wide) : 0);
        return field->bytes ? (int)wide : -1;
    case LEAT_INT32:
        memcpy(&narrow, field->data, field->bytes ? sizeof(narrow) : 0);
        return field->bytes ? narrow : -1;
    default:
        memcpy(text, field->data, size);
        return atoi(text);
    }
}

seen model_see(const leat_sample *sample, int status)
{
    seen one = {0, sample->from.record, 0, status == LEAT_EDATA, -1};
    chain_require(sample->from.source != NULL, "a sample without a source");
    one.source =
        digest_add(1, sample->from.source, strlen(sample->from.source));
    for (int i = 0; i < sample->nfields && !one.is_bad; i++) {
        const leat_field *field = &sample->field[i];
        size_t size = leat_dtype_size(field->dtype);
        for (int k = 0; k < field->ndim; k++)
            size *= (size_t)field->shape[k];
        chain_require(size <= field->bytes, "field %d is cut", i);
        one.digest = digest_field(one.digest, field->ndim, field->shape,
                                  field->data, size);
    }
    if (!one.is_bad)
        one.id = read_id(&sample->field[0]);
    return one;
}

bool model_is_end(int status)
{
    return status != LEAT_OK && status != LEAT_EDATA;
}

leat_reader *model_open(const model *from)
{
    leat_reader *reader = NULL;
    int status =
        leat_pipeline_open_with(from->pipeline, &from->options, &reader);
    chain_require(!status, "opened again: %s", leat_last_error());
    return reader;
}

void model_go_to(leat_reader *reader, int64_t epoch, int64_t index)
{
    int64_t skipped;
    int status = leat_reader_seek(reader, (leat_position){epoch, index}, NULL);
    if (!status)
        return;
    chain_require(status == LEAT_EUNSUPPORTED && index > 0 &&
                      !leat_reader_can_seek(reader),
                  "seek to %d, %d: %d, %s", (int)epoch, (int)index, status,
                  leat_last_error());
    status = leat_reader_seek(reader, (leat_position){epoch, 0}, NULL);
    chain_require(!status, "seek to the beginning: %s", leat_last_error());
    status = leat_reader_skip(reader, index, &skipped);
    chain_require(!status && skipped == index, "skip of %d: %d, %d", (int)index,
                  status, (int)skipped);
}

void model_read(model *into)
{
    leat_reader *reader = model_open(into);
    leat_sample sample;
    leat_sample_init(&sample);
    for (int64_t e = 0; e < EPOCHS; e++) {
        epoch_seen *all = &into->epoch[e];
        all->status = LEAT_OK;
        if (e > 0)
            model_go_to(reader, e, 0);
        for (all->n = 0; all->n < SAMPLES_MAX; all->n++) {
            int status = leat_reader_next(reader, &sample);
            if (model_is_end(status)) {
                all->status = status;
                break;
            }
            all->at[all->n] = model_see(&sample, status);
        }
        chain_require(all->status <= 0 || all->status == LEAT_END, "status %d",
                      all->status);
    }
    leat_sample_finish(&sample);
    leat_reader_close(reader);
}

bool model_check_known(const model *from)
{
    chain_list *list = malloc(sizeof(*list));
    bool is_known = list != NULL;
    for (int e = 0; is_known && e < EPOCHS; e++) {
        const epoch_seen *all = &from->epoch[e];
        is_known = (all->status == LEAT_OK || all->status == LEAT_END) &&
                   chain_expect(from->made, e, list);
        if (!is_known)
            break;
        chain_require(
            all->status == LEAT_END ? !list->is_cut && list->n == all->n
                                    : list->n >= all->n,
            "epoch %d has %d samples, expected %d", e, all->n, list->n);
        for (int i = 0; i < all->n; i++) {
            const chain_item *item = &list->item[i];
            chain_require(all->at[i].is_bad == item->is_bad &&
                              (item->is_bad || all->at[i].id == item->id),
                          "sample %d of epoch %d is %d%s, expected %d%s", i, e,
                          all->at[i].id, all->at[i].is_bad ? " (bad)" : "",
                          item->id, item->is_bad ? " (bad)" : "");
        }
    }
    free(list);
    return is_known;
}

void model_compare(const model *from, const seen *one, int64_t epoch,
                   int64_t index, const char *way)
{
    const epoch_seen *all = &from->epoch[epoch];
    chain_require(index < all->n, "%s: epoch %d has %d samples, got number %d",
                  way, (int)epoch, all->n, (int)index);
    const seen *expected = &all->at[index];
    chain_require(one->is_bad == expected->is_bad &&
                      one->record == expected->record &&
                      one->source == expected->source &&
                      (one->is_bad || one->digest == expected->digest),
                  "%s: sample %d of epoch %d is record %d, ID %d%s; expected "
                  "%d, %d%s",
                  way, (int)index, (int)epoch, (int)one->record, one->id,
                  one->is_bad ? " (bad)" : "", (int)expected->record,
                  expected->id, expected->is_bad ? " (bad)" : "");
}
