#include "layer/batch_fill.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/random.h"
#include "data/cast.h"
#include "data/transformer.h"

#include <string.h>

#define FETCH_BYTES 1024

int leat__batch_fill_init(leat__batch_fill *fill, const leat__batch_spec *spec,
                          const leat_transformer *transformer)
{
    leat_transformer *own;
    int status = leat_transformer_clone(&own, transformer);
    if (status)
        return status;
    fill->spec = *spec;
    fill->transformer = own;
    fill->draws = leat__transformer_words_per_image(own);
    return LEAT_OK;
}

void leat__batch_fill_finish(leat__batch_fill *fill)
{
    leat_transformer_destroy(fill->transformer);
    memset(fill, 0, sizeof(*fill));
}

static int too_few_fields(const leat_sample *sample, int ntop)
{
    return leat_error(LEAT_EDATA, "a sample has %d fields, %d are needed",
                      sample->nfields, ntop);
}

/* What is no image is one row of all that there is: a crop cuts that. */
static int check_row(const leat_field *field, const int image[3])
{
    int64_t count = 1;
    for (int k = 0; k < field->ndim; k++)
        count *= field->shape[k];
    if (count == image[2])
        return LEAT_OK;
    return leat_error(LEAT_EINVAL,
                      "crop_size is for images, of 3 dimensions; these samples "
                      "have %d",
                      field->ndim);
}

/* An image's axes stand in the order of the layout, other fields' as they are.
 */
static int shape_data(const leat__batch_spec *spec,
                      leat_transformer *transformer, const leat_field *field,
                      leat__batch_shape *out)
{
    int status = leat_transformer_shape(transformer, field, out->image);
    if (status)
        return status;
    out->is_cropped = spec->crops;
    out->pixel_layout = field->dtype == LEAT_BYTES ? LEAT_NHWC : LEAT_NCHW;
    if (spec->crops && field->dtype == LEAT_FLOAT32)
        return leat_error(LEAT_EINVAL,
                          "the pixels are float32: transform_on DEVICE takes "
                          "uint8 or encoded images");
    leat__top *top = &out->top[0];
    top->dtype = spec->top_type;
    if (field->dtype != LEAT_BYTES && field->ndim != 3) {
        top->ndim = field->ndim;
        memcpy(top->shape, field->shape, sizeof(top->shape));
        return check_row(field, out->image);
    }
    const int *image = out->image;
    bool planar = spec->layout == LEAT_NCHW;
    top->ndim = 3;
    top->shape[0] = planar ? image[0] : image[1];
    top->shape[1] = planar ? image[1] : image[2];
    top->shape[2] = planar ? image[2] : image[0];
    return LEAT_OK;
}

static int shape_field(const leat__batch_spec *spec, int i,
                       const leat_field *field, leat__top *top)
{
    if (!leat__cast_is_possible(field->dtype, spec->label_type))
        return leat_error(LEAT_EDATA, "field %d is %s, which cannot become %s",
                          i, leat_dtype_name(field->dtype),
                          leat_dtype_name(spec->label_type));
    top->dtype = spec->label_type;
    top->ndim = field->ndim;
    memcpy(top->shape, field->shape, sizeof(top->shape));
    return LEAT_OK;
}

/* Puts source, record and key before the thread's error line. */
static int add_source(const leat_provenance *from, int status)
{
    char key[LEAT__KEY_TEXT_MAX];
    const char *source = from->source ? from->source : "?";
    if (!from->key)
        return leat__error_context(status, "%s: record %lld", source,
                                   (long long)from->record);
    return leat__error_context(status, "%s: record %lld, key %s", source,
                               (long long)from->record,
                               leat__key_text(key, from->key, from->key_size));
}

int leat__batch_spec_shape(const leat__batch_spec *spec,
                           leat_transformer *transformer,
                           const leat_sample *sample, leat__batch_shape *out)
{
    int status = LEAT_OK;
    out->ntop = spec->ntop;
    if (sample->nfields < spec->ntop)
        status = too_few_fields(sample, spec->ntop);
    if (!status)
        status = shape_data(spec, transformer, &sample->field[0], out);
    for (int i = 1; i < spec->ntop && !status; i++)
        status = shape_field(spec, i, &sample->field[i], &out->top[i]);
    if (!status)
        status = leat__batch_shape_lay_out(out, spec->batch_size);
    return status ? add_source(&sample->from, status) : LEAT_OK;
}

int leat__batch_fill_shape(leat__batch_fill *fill, const leat_sample *sample,
                           leat__batch_shape *out)
{
    int status =
        leat__batch_spec_shape(&fill->spec, fill->transformer, sample, out);
    if (status != LEAT_EINVAL)
        return status;
    /* Options that fit no record were found at setup. A mean that does not fit
       is no fault of a record's, whichever it is. */
    status = leat__transformer_check_mean(fill->transformer, &sample->field[0]);
    return status ? add_source(&sample->from, status) : LEAT_EDATA;
}

static bool has_shape(const leat_field *field, const leat__top *top)
{
    bool same = field->ndim == top->ndim;
    for (int k = 0; same && k < field->ndim; k++)
        same = field->shape[k] == top->shape[k];
    return same;
}

/* A class as a float, as nearly every label is; images may be small. */
static inline bool is_plain_label(const leat__top *top, const leat_field *field)
{
    return field->dtype == LEAT_INT32 && top->dtype == LEAT_FLOAT32 &&
           field->ndim == 0 && top->ndim == 0 &&
           field->bytes >= sizeof(int32_t);
}

/* Out of the loop over samples, which is short without. */
__attribute__((noinline)) static int
cast_field(const leat__top *top, const leat_field *field, int i, void *to)
{
    if (!has_shape(field, top))
        return leat_error(LEAT_EDATA,
                          "field %d has another shape than in the batch's "
                          "first sample",
                          i);
    size_t n = top->bytes / leat_dtype_size(top->dtype);
    if (!leat__cast_is_possible(field->dtype, top->dtype) ||
        field->bytes < n * leat_dtype_size(field->dtype))
        return leat_error(LEAT_EDATA,
                          "field %d: %zu bytes of %s do not make %zu of %s", i,
                          field->bytes, leat_dtype_name(field->dtype), n,
                          leat_dtype_name(top->dtype));
    leat__cast(to, top->dtype, field->data, field->dtype, n);
    return LEAT_OK;
}

static inline int copy_field(const leat__top *top, const leat_field *field,
                             int i, void *to)
{
    if (!is_plain_label(top, field))
        return cast_field(top, field, i, to);
    int32_t class;
    memcpy(&class, field->data, sizeof(class));
    float value = (float)class;
    memcpy(to, &value, sizeof(value));
    return LEAT_OK;
}

static inline int put(leat__batch_fill *fill, leat__batch *batch,
                      const leat__chunk *chunk, int i,
                      const leat_sample *sample)
{
    const leat__batch_shape *shape = &batch->shape;
    leat_rng rng = fill->spec.rng;
    uint32_t chosen[4] = {0};
    const uint32_t *words = chosen;
    if (rng == LEAT_RNG_CAFFE)
        words = chunk->words + i * fill->draws;
    else if (fill->draws > 0)
        leat__random_words(fill->spec.seed, chunk->at[i].epoch,
                           chunk->at[i].index, 0, chosen);
    if (sample->nfields < shape->ntop)
        return too_few_fields(sample, shape->ntop);
    int at = chunk->first + i;
    void *to = leat__batch_at(batch, 0, at);
    int status =
        shape->is_cropped
            ? leat__transformer_crop(fill->transformer, &sample->field[0], rng,
                                     words, shape->image, shape->pixel_layout,
                                     to, leat__batch_choice(batch, at))
            : leat_transformer_apply(fill->transformer, &sample->field[0], rng,
                                     words, shape->image, to);
    for (int k = 1; k < shape->ntop && !status; k++)
        status = copy_field(&shape->top[k], &sample->field[k], k,
                            leat__batch_at(batch, k, at));
    return status;
}

int leat__batch_fill_sample(leat__batch_fill *fill, leat__batch *batch,
                            const leat__chunk *chunk, int i,
                            const leat_sample *sample)
{
    return put(fill, batch, chunk, i, sample);
}

/*
 * Asks for the beginning of a sample's data, two samples ahead: one is too late
 * where they are small. Records lie in pages in any order, and the processor's
 * own prefetching ends at each page.
 */
static void fetch(const leat_sample *sample)
{
    const leat_field *field = &sample->field[0];
    const char *data = field->data;
    size_t bytes = field->bytes < FETCH_BYTES ? field->bytes : FETCH_BYTES;
    for (size_t i = 0; i < bytes; i += LEAT__CACHE_LINE)
        __builtin_prefetch(data + i);
}

int leat__batch_fill_chunk(leat__batch_fill *fill, leat__batch *batch,
                           const leat__chunk *chunk, int *i, int end)
{
    int status = LEAT_OK;
    int k = *i;
    if (k + 1 < end)
        fetch(chunk->sample[k + 1]);
    for (; k < end; k++) {
        const leat_sample *sample = chunk->sample[k];
        if (k + 2 < end)
            fetch(chunk->sample[k + 2]);
        status = put(fill, batch, chunk, k, sample);
        if (status) {
            status = add_source(&sample->from, status);
            break;
        }
        leat__batch_note(batch, chunk->first + k, sample);
    }
    *i = k;
    return status;
}
