#include "layer/batch_fill.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/random.h"
#include "data/cast.h"
#include "data/transformer.h"
#include "layer/tops/variable_tops.h"

#include <string.h>

#define FETCH_BYTES 1024

int leat__batch_fill_init(leat__batch_fill *fill, const leat__batch_spec *spec,
                          leat_transformer *const image[])
{
    size_t n = (size_t)spec->plan->images;
    fill->spec = *spec;
    fill->image = leat__alloc_zero(n, sizeof(leat_transformer *));
    int status = fill->image ? LEAT_OK : LEAT_ENOMEM;
    for (size_t i = 0; i < n && !status; i++)
        status = leat_transformer_clone(&fill->image[i], image[i]);
    return status;
}

void leat__batch_fill_finish(leat__batch_fill *fill)
{
    for (int i = 0; fill->image && i < fill->spec.plan->images; i++)
        leat_transformer_destroy(fill->image[i]);
    leat__free(fill->image);
    memset(fill, 0, sizeof(*fill));
}

leat__image_counts leat__batch_fill_count(const leat__batch_fill *fill)
{
    leat__image_counts counts = {0};
    for (int i = 0; i < fill->spec.plan->images; i++)
        leat__transformer_count(fill->image[i], &counts);
    return counts;
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

/* Two images with the same choices must be cropped out of the same size. */
static int check_sizes(const leat__batch_spec *spec,
                       leat_transformer *const image[],
                       const leat_sample *sample, int i)
{
    const leat__top_plan *plan = spec->plan;
    int choices = plan->image[i].choices;
    const leat__planned_top *top = &plan->top[plan->image[i].top];
    const leat__planned_top *other = &plan->top[plan->image[choices].top];
    int size[2][3];
    if (choices == i)
        return LEAT_OK;
    int status = leat__transformer_whole_shape(
        image[i], &sample->field[top->field], size[0]);
    if (!status)
        status = leat__transformer_whole_shape(
            image[choices], &sample->field[other->field], size[1]);
    if (status || (size[0][1] == size[1][1] && size[0][2] == size[1][2]))
        return status;
    return leat_error(LEAT_EDATA,
                      "top %s takes the choices of %s, but its image is %d x "
                      "%d, and the other one %d x %d",
                      top->name, other->name, size[0][1], size[0][2],
                      size[1][1], size[1][2]);
}

/* An image's axes stand in the order of the layout, other fields' as they are.
 */
static void set_axes(const leat__batch_spec *spec, leat__top *top)
{
    const int *dim = top->image;
    bool planar = spec->layout == LEAT_NCHW;
    top->ndim = 3;
    top->shape[0] = planar ? dim[0] : dim[1];
    top->shape[1] = planar ? dim[1] : dim[2];
    top->shape[2] = planar ? dim[2] : dim[0];
}

static int shape_image(const leat__batch_spec *spec,
                       leat_transformer *const image[],
                       const leat_sample *sample, int i, leat__batch_shape *out)
{
    const leat__planned_top *planned = &spec->plan->top[i];
    const leat_field *field = &sample->field[planned->field];
    leat__top *top = &out->top[i];
    bool crops = spec->crops && planned->image == 0;
    int status =
        leat_transformer_shape(image[planned->image], field, top->image);
    if (!status)
        status = check_sizes(spec, image, sample, planned->image);
    if (status)
        return status;
    if (crops) {
        out->is_cropped = true;
        out->crop_top = i;
        out->pixel_layout = field->dtype == LEAT_BYTES ? LEAT_NHWC : LEAT_NCHW;
    }
    if (crops && field->dtype == LEAT_FLOAT32)
        return leat_error(LEAT_EINVAL,
                          "the pixels are float32: transform_on DEVICE takes "
                          "uint8 or encoded images");
    top->dtype = planned->dtype;
    top->is_batch = planned->is_batch;
    if (field->dtype == LEAT_BYTES || field->ndim == 3) {
        set_axes(spec, top);
        return LEAT_OK;
    }
    top->ndim = field->ndim;
    memcpy(top->shape, field->shape, sizeof(top->shape));
    return check_row(field, top->image);
}

/* A top by Caffe's rule for labels. */
static int shape_label(const leat__planned_top *planned,
                       const leat_field *field, leat__top *top)
{
    if (!leat__planned_top_takes(planned, field->dtype, planned->dtype))
        return leat_error(LEAT_EDATA, "field %d is %s, which cannot become %s",
                          planned->field, leat_dtype_name(field->dtype),
                          leat_dtype_name(planned->dtype));
    top->dtype = planned->dtype;
    top->ndim = field->ndim;
    top->is_batch = planned->is_batch;
    memcpy(top->shape, field->shape, sizeof(top->shape));
    return LEAT_OK;
}

static int shape_top(const leat__batch_spec *spec,
                     leat_transformer *const image[], const leat_sample *sample,
                     int i, leat__batch_shape *out)
{
    const leat__planned_top *planned = &spec->plan->top[i];
    leat__top *top = &out->top[i];
    *top = (leat__top){0};
    if (planned->kind == LEAT__TOP_IMAGE)
        return shape_image(spec, image, sample, i, out);
    if (planned->is_usual)
        return shape_label(planned, &sample->field[planned->field], top);
    return leat__top_shape(spec->plan, i, sample, top);
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
                           leat_transformer *const image[],
                           const leat_sample *sample, leat__batch_shape *out)
{
    int n = spec->plan->n;
    out->ntop = n;
    out->is_cropped = false;
    out->crop_top = 0;
    int status = leat__field_check_run(&spec->plan->check, sample);
    for (int i = 0; i < n && !status; i++)
        status = shape_top(spec, image, sample, i, out);
    if (!status)
        status = leat__batch_shape_lay_out(out, spec->batch_size);
    return status ? add_source(&sample->from, status) : LEAT_OK;
}

int leat__batch_spec_check_means(const leat__batch_spec *spec,
                                 leat_transformer *const image[],
                                 const leat_sample *sample)
{
    const leat__top_plan *plan = spec->plan;
    int status = LEAT_OK;
    for (int i = 0; i < plan->images && !status; i++) {
        int field = plan->top[plan->image[i].top].field;
        if (field < sample->nfields)
            status =
                leat__transformer_check_mean(image[i], &sample->field[field]);
    }
    return status;
}

int leat__batch_fill_shape(leat__batch_fill *fill, const leat_sample *sample,
                           leat__batch_shape *out)
{
    int status = leat__batch_spec_shape(&fill->spec, fill->image, sample, out);
    if (status != LEAT_EINVAL)
        return status;
    /* Options that fit no record were found at setup. A mean that does not fit
       is no fault of a record's, whichever it is. */
    status = leat__batch_spec_check_means(&fill->spec, fill->image, sample);
    return status ? add_source(&sample->from, status) : LEAT_EDATA;
}

static bool has_shape(const leat_field *field, const leat__top *top)
{
    bool same = field->ndim == top->ndim;
    for (int k = 0; same && k < field->ndim; k++)
        same = field->shape[k] == top->shape[k];
    return same;
}

static int other_shape(const leat__top_plan *plan, int k)
{
    const leat__planned_top *planned = &plan->top[k];
    return leat_error(LEAT_EDATA,
                      "top %s: field %d has another shape than in the batch's "
                      "first sample; several shapes take batch:N with pad or "
                      "ragged, or a top of PAD or RAGGED",
                      planned->name, planned->field);
}

/* The transform compares images, all else with the top. */
static inline bool fits(const leat__top *top, const leat_field *field)
{
    bool is_image = field->dtype == LEAT_BYTES || field->ndim == 3;
    return is_image ? top->ndim == 3 : has_shape(field, top);
}

/* A class as a float, as nearly every label is; images may be small. */
static inline bool is_plain_label(const leat__top *top, const leat_field *field)
{
    return field->dtype == LEAT_INT32 && top->dtype == LEAT_FLOAT32 &&
           field->ndim == 0 && top->ndim == 0 &&
           field->bytes >= sizeof(int32_t);
}

/* Out of the loop over samples, which is short without. */
__attribute__((noinline)) static int cast_field(const leat__top_plan *plan,
                                                int k, const leat__top *top,
                                                const leat_sample *sample,
                                                void *to)
{
    const leat__planned_top *planned = &plan->top[k];
    int i = planned->field;
    const leat_field *field = &sample->field[i];
    int status = leat__field_check_one(&plan->check, sample, i);
    if (status)
        return status;
    if (!has_shape(field, top))
        return other_shape(plan, k);
    size_t n = top->bytes / leat_dtype_size(top->dtype);
    if (!leat__planned_top_takes(planned, field->dtype, top->dtype) ||
        field->bytes < n * leat_dtype_size(field->dtype))
        return leat_error(LEAT_EDATA,
                          "field %d: %zu bytes of %s do not make %zu of %s", i,
                          field->bytes, leat_dtype_name(field->dtype), n,
                          leat_dtype_name(top->dtype));
    leat__cast(to, top->dtype, field->data, field->dtype, n);
    return LEAT_OK;
}

static inline int copy_field(const leat__top_plan *plan, int k,
                             const leat__top *top, const leat_field *field,
                             const leat_sample *sample, void *to)
{
    if (!is_plain_label(top, field))
        return cast_field(plan, k, top, sample, to);
    int32_t class;
    memcpy(&class, field->data, sizeof(class));
    float value = (float)class;
    memcpy(to, &value, sizeof(value));
    return LEAT_OK;
}

/* Image `number` of sample `i`, with its random choices. */
static inline int put_image(leat__batch_fill *fill, leat__batch *batch,
                            const leat__chunk *chunk, int i, int number,
                            const int shape[3], const leat_field *field,
                            void *to)
{
    const leat__planned_image *image = &fill->spec.plan->image[number];
    leat_rng rng = fill->spec.rng;
    uint32_t chosen[4] = {0};
    const uint32_t *words = chosen;
    if (rng == LEAT_RNG_CAFFE)
        words = chunk->words + i * fill->spec.plan->draws + image->words;
    else if (image->draws > 0)
        leat__random_words(fill->spec.seed, chunk->at[i].epoch,
                           chunk->at[i].index, (uint32_t)image->choices,
                           chosen);
    if (number > 0 || !batch->shape.is_cropped)
        return leat_transformer_apply(fill->image[number], field, rng, words,
                                      shape, to);
    return leat__transformer_crop(fill->image[number], field, rng, words, shape,
                                  batch->shape.pixel_layout, batch->is_streamed,
                                  to,
                                  leat__batch_choice(batch, chunk->first + i));
}

/* An image that takes another one's choices. */
__attribute__((noinline)) static int
put_sharing(leat__batch_fill *fill, leat__batch *batch,
            const leat__chunk *chunk, int i, int k, const leat_sample *sample)
{
    const leat__planned_top *planned = &fill->spec.plan->top[k];
    int status = check_sizes(&fill->spec, fill->image, sample, planned->image);
    if (status)
        return status;
    return put_image(fill, batch, chunk, i, planned->image,
                     batch->shape.top[k].image, &sample->field[planned->field],
                     leat__batch_at(batch, k, chunk->first + i));
}

/* A padded or ragged top, or one that goes with it, of sample `at`. */
__attribute__((noinline)) static int put_listed(const leat__top_plan *plan,
                                                leat__batch *batch, int at,
                                                int k,
                                                const leat_sample *sample)
{
    const leat__top *top = &batch->shape.top[k];
    void *to = leat__batch_at(batch, k, at);
    switch (plan->top[k].kind) {
    case LEAT__TOP_PADDED:
        return leat__top_pad(&plan->top[k], top, sample, to);
    case LEAT__TOP_LENGTHS:
        leat__top_put_lengths(plan, k, sample, to);
        return LEAT_OK;
    case LEAT__TOP_LONGEST:
    case LEAT__TOP_VALUES:
        batch->sample[at] = sample;
        return leat__variable_top_check(plan, k, top, sample);
    default:
        return LEAT_OK;
    }
}

/* Numbers of the fields from `k` on, which few samples have. */
__attribute__((noinline)) static int put_numbers(const leat__top_plan *plan,
                                                 leat__batch *batch, int at,
                                                 int k,
                                                 const leat_sample *sample)
{
    int status = LEAT_OK;
    for (; k < plan->n && !status; k++)
        status = copy_field(plan, k, &batch->shape.top[k], &sample->field[k],
                            sample, leat__batch_at(batch, k, at));
    return status;
}

/* Caffe's tops: an image, and a number of each further field. */
static inline int put_usual(leat__batch_fill *fill, leat__batch *batch,
                            const leat__chunk *chunk, int i,
                            const leat_sample *sample)
{
    const leat__top_plan *plan = fill->spec.plan;
    const leat__top *top = batch->shape.top;
    const leat_field *field = sample->field;
    int at = chunk->first + i;
    if (!fits(&top[0], &field[0]))
        return other_shape(plan, 0);
    int status = put_image(fill, batch, chunk, i, 0, top[0].image, &field[0],
                           leat__batch_at(batch, 0, at));
    if (!status && plan->n > 1)
        status = copy_field(plan, 1, &top[1], &field[1], sample,
                            leat__batch_at(batch, 1, at));
    return status || plan->n < 3 ? status
                                 : put_numbers(plan, batch, at, 2, sample);
}

/* Tops of any kinds, each of a field that its plan names. */
__attribute__((noinline)) static int
put_planned(leat__batch_fill *fill, leat__batch *batch,
            const leat__chunk *chunk, int i, const leat_sample *sample)
{
    const leat__top_plan *plan = fill->spec.plan;
    int at = chunk->first + i, status = LEAT_OK;
    for (int k = 0; k < plan->n && !status; k++) {
        const leat__planned_top *planned = &plan->top[k];
        const leat__top *top = &batch->shape.top[k];
        const leat_field *field = &sample->field[planned->field];
        if (planned->kind == LEAT__TOP_IMAGE && !fits(top, field))
            status = other_shape(plan, k);
        else if (planned->kind == LEAT__TOP_IMAGE && !planned->shares_choices)
            status = put_image(fill, batch, chunk, i, planned->image,
                               top->image, field, leat__batch_at(batch, k, at));
        else if (planned->kind == LEAT__TOP_NUMBERS)
            status = copy_field(plan, k, top, field, sample,
                                leat__batch_at(batch, k, at));
        else if (planned->shares_choices)
            status = put_sharing(fill, batch, chunk, i, k, sample);
        else if (planned->kind != LEAT__TOP_OFFSETS)
            status = put_listed(plan, batch, at, k, sample);
    }
    return status;
}

static inline int put(leat__batch_fill *fill, leat__batch *batch,
                      const leat__chunk *chunk, int i,
                      const leat_sample *sample)
{
    const leat__top_plan *plan = fill->spec.plan;
    int status = leat__field_check_run(&plan->check, sample);
    if (status)
        return status;
    return plan->top[0].is_usual ? put_usual(fill, batch, chunk, i, sample)
                                 : put_planned(fill, batch, chunk, i, sample);
}

/* Cold, so that put is inlined into the loop over a chunk. */
__attribute__((cold)) int leat__batch_fill_sample(leat__batch_fill *fill,
                                                  leat__batch *batch,
                                                  const leat__chunk *chunk,
                                                  int i,
                                                  const leat_sample *sample)
{
    return put(fill, batch, chunk, i, sample);
}

/*
 * Asks for the beginning of a sample's data, two samples ahead: one is too late
 * where they are small. Records lie in pages in any order, and the processor's
 * own prefetching ends at each page.
 */
static void fetch(const leat_sample *sample, int first)
{
    const leat_field *field = &sample->field[first];
    const char *data = field->data;
    size_t bytes = field->bytes < FETCH_BYTES ? field->bytes : FETCH_BYTES;
    for (size_t i = 0; i < bytes; i += LEAT__CACHE_LINE)
        __builtin_prefetch(data + i);
}

int leat__batch_fill_chunk(leat__batch_fill *fill, leat__batch *batch,
                           const leat__chunk *chunk, int *i, int end)
{
    int status = LEAT_OK;
    int k = *i, first = fill->spec.plan->top[0].field;
    if (k + 1 < end)
        fetch(chunk->sample[k + 1], first);
    for (; k < end; k++) {
        const leat_sample *sample = chunk->sample[k];
        if (k + 2 < end)
            fetch(chunk->sample[k + 2], first);
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
