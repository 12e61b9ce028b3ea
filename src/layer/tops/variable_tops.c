#include "layer/tops/variable_tops.h"
#include "base/error.h"
#include "base/shape.h"
#include "data/cast.h"
#include "data/offsets.h"
#include "data/pad.h"

#include <string.h>

static size_t align(size_t offset)
{
    offset += LEAT__TOP_ALIGNMENT - 1;
    return offset - offset % LEAT__TOP_ALIGNMENT;
}

/* The elements of a field; -1: more than there are bytes for. */
static int64_t count_elements(const leat_field *field)
{
    size_t each = leat_dtype_size(field->dtype), bytes;
    bool is_good = leat__shape_bytes(field->ndim, field->shape, each, &bytes);
    return is_good && bytes <= field->bytes ? (int64_t)(bytes / each) : -1;
}

int leat__top_shape(const leat__top_plan *plan, int i,
                    const leat_sample *sample, leat__top *out)
{
    const leat__planned_top *top = &plan->top[i];
    if (top->kind == LEAT__TOP_LENGTHS) {
        out->dtype = LEAT_INT64;
        out->ndim = !top->has_one_length;
        out->shape[0] = top->nlengths;
        return LEAT_OK;
    }
    if (top->kind == LEAT__TOP_OFFSETS) {
        out->dtype = LEAT_INT64;
        out->ndim = 0;
        out->is_variable = true;
        return LEAT_OK;
    }
    const leat_field *field = &sample->field[top->field];
    out->dtype = leat__planned_top_type(top, field->dtype);
    if (!leat__planned_top_takes(top, field->dtype, out->dtype))
        return leat__planned_top_refuse(top, field->dtype);
    bool is_padded =
        top->kind == LEAT__TOP_PADDED || top->kind == LEAT__TOP_LONGEST;
    int first = top->kind == LEAT__TOP_VALUES;
    int axes = is_padded ? top->ndim : first || top->is_batch;
    if (field->ndim - first + !top->is_batch > LEAT_MAX_DIMS ||
        field->ndim < axes || (is_padded && field->ndim != axes))
        return leat_error(LEAT_EINVAL, "top %s: its field has %d dimensions",
                          top->name, field->ndim);
    out->ndim = field->ndim - first;
    memcpy(out->shape, (is_padded ? top->shape : field->shape) + first,
           (size_t)out->ndim * sizeof(out->shape[0]));
    out->is_batch = top->is_batch;
    out->is_variable = first || top->kind == LEAT__TOP_LONGEST;
    return LEAT_OK;
}

static int misfit(const leat__planned_top *top, const leat_field *field, int k,
                  int64_t expected)
{
    return leat_error(LEAT_EDATA,
                      "top %s: dimension %d of its field is %lld, but the top "
                      "has room for %lld",
                      top->name, k, (long long)field->shape[k],
                      (long long)expected);
}

/* Type and number of dimensions, and whether the bytes are there. */
static int check_field(const leat__planned_top *top, const leat__top *shape,
                       const leat_field *field, int ndim)
{
    if (!leat__planned_top_takes(top, field->dtype, shape->dtype))
        return leat_error(LEAT_EDATA,
                          "top %s: its field is %s, which cannot become %s",
                          top->name, leat_dtype_name(field->dtype),
                          leat_dtype_name(shape->dtype));
    if (field->ndim != ndim || count_elements(field) < 0)
        return leat_error(LEAT_EDATA,
                          "top %s: its field has %d dimensions and %zu bytes: "
                          "expected %d, and bytes for all elements",
                          top->name, field->ndim, field->bytes, ndim);
    return LEAT_OK;
}

static int check_padded(const leat__planned_top *top, const leat__top *shape,
                        const leat_field *field)
{
    int status = check_field(top, shape, field, shape->ndim);
    for (int k = 0; k < shape->ndim && !status; k++)
        if (shape->shape[k] >= 0 && field->shape[k] > shape->shape[k])
            status = misfit(top, field, k, shape->shape[k]);
    return status;
}

/* Whether the offsets ascend from 0 to `rows`. */
static int check_offsets(const leat__planned_top *top, const leat_field *field,
                         int64_t rows)
{
    if (leat__offsets_are_right(field, rows))
        return LEAT_OK;
    return leat_error(LEAT_EDATA,
                      "top %s: the offsets of its field do not ascend from 0 "
                      "to its %lld rows",
                      top->name, (long long)rows);
}

static int check_ragged(const leat__planned_top *top, const leat__top *shape,
                        const leat_sample *sample, const leat_field *field)
{
    int status = check_field(top, shape, field, shape->ndim + 1);
    for (int k = 0; k < shape->ndim && !status; k++)
        if (field->shape[k + 1] != shape->shape[k])
            status = misfit(top, field, k + 1, shape->shape[k]);
    int64_t rows = status ? 0 : field->shape[0];
    for (int i = top->levels - 1; i >= 0 && !status; i--) {
        const leat_field *offsets = &sample->field[top->level_field[i]];
        status = check_offsets(top, offsets, rows);
        rows = offsets->shape[0] - 1;
    }
    return status;
}

int leat__variable_top_check(const leat__top_plan *plan, int i,
                             const leat__top *shape, const leat_sample *sample)
{
    const leat__planned_top *top = &plan->top[i];
    const leat_field *field = &sample->field[top->field];
    return top->kind == LEAT__TOP_VALUES
               ? check_ragged(top, shape, sample, field)
               : check_padded(top, shape, field);
}

/* Pads into an array of `dims`, without a check. */
static void pad(const leat__planned_top *top, const leat__top *shape,
                const int64_t dims[], const leat_sample *sample, void *to)
{
    leat__padding padding;
    leat__padding_init(&padding, shape->dtype, shape->ndim, dims,
                       top->pad_value);
    leat__padding_put(&padding, sample ? &sample->field[top->field] : NULL, to);
}

int leat__top_pad(const leat__planned_top *top, const leat__top *shape,
                  const leat_sample *sample, void *to)
{
    int status = check_padded(top, shape, &sample->field[top->field]);
    if (status)
        return status;
    pad(top, shape, shape->shape, sample, to);
    return LEAT_OK;
}

void leat__top_put_lengths(const leat__top_plan *plan, int i,
                           const leat_sample *sample, void *to)
{
    const leat__planned_top *top = &plan->top[i];
    const leat_field *field = &sample->field[plan->top[top->of].field];
    for (int k = 0; k < top->nlengths; k++) {
        int64_t length = field->shape[top->axis[k]];
        memcpy((char *)to + (size_t)k * sizeof(length), &length,
               sizeof(length));
    }
}

void leat__tops_put_zeros(const leat__top_plan *plan, leat__batch *batch, int i)
{
    for (int k = 0; k < plan->n; k++) {
        const leat__top *shape = &batch->shape.top[k];
        void *to = leat__batch_at(batch, k, i);
        if (plan->top[k].kind == LEAT__TOP_PADDED)
            pad(&plan->top[k], shape, shape->shape, NULL, to);
        else
            memset(to, 0, shape->bytes);
    }
    if (batch->shape.is_cropped)
        *leat__batch_choice(batch, i) = (leat_device_choice){.is_zero = 1};
    if (batch->sample)
        batch->sample[i] = NULL;
}

/* The rows of a sample at a level: 0 its groups, or, below all, its rows. */
static int64_t rows_at(const leat__planned_top *values,
                       const leat_sample *sample, int level)
{
    if (!sample)
        return 0;
    if (level < values->levels)
        return sample->field[values->level_field[level]].shape[0] - 1;
    return sample->field[values->field].shape[0];
}

static int64_t sum_rows(const leat__planned_top *values,
                        const leat_sample *const sample[], int n, int level)
{
    int64_t rows = 0;
    for (int i = 0; i < n; i++)
        rows += rows_at(values, sample[i], level);
    return rows;
}

/* The shape of a variable top in a batch of these samples. */
static void measure(const leat__top_plan *plan, int i, const leat__top *shape,
                    const leat_sample *const sample[], int n, leat__extent *out)
{
    const leat__planned_top *top = &plan->top[i];
    out->ndim = leat__top_full_shape(shape, n, out->shape);
    if (top->kind == LEAT__TOP_VALUES) {
        out->shape[0] = sum_rows(top, sample, n, top->levels);
    } else if (top->kind == LEAT__TOP_OFFSETS) {
        const leat__planned_top *values = &plan->top[top->of];
        out->shape[0] =
            1 + (top->level ? sum_rows(values, sample, n, top->level - 1) : n);
    } else {
        for (int k = 0; k < shape->ndim; k++) {
            if (shape->shape[k] >= 0)
                continue;
            out->shape[k + 1] = 0;
            for (int s = 0; s < n; s++) {
                int64_t dim =
                    sample[s] ? sample[s]->field[top->field].shape[k] : 0;
                if (dim > out->shape[k + 1])
                    out->shape[k + 1] = dim;
            }
        }
    }
}

/* The bytes of an array; whether they overflow. */
static bool count_bytes(const leat__extent *extent, leat_dtype dtype,
                        size_t *bytes)
{
    return !leat__shape_bytes(extent->ndim, extent->shape,
                              leat_dtype_size(dtype), bytes) ||
           *bytes > SIZE_MAX / 8;
}

int leat__variable_tops_lay_out(const leat__top_plan *plan,
                                leat__batch_shape *shape,
                                const leat_sample *const sample[], int n,
                                leat__extent extent[])
{
    size_t at = shape->fixed;
    for (int i = 0; i < plan->n; i++) {
        const leat__top *top = &shape->top[i];
        size_t bytes;
        if (!top->is_variable) {
            extent[i].ndim = leat__top_full_shape(top, n, extent[i].shape);
            extent[i].offset = top->offset;
            continue;
        }
        measure(plan, i, top, sample, n, &extent[i]);
        if (count_bytes(&extent[i], top->dtype, &bytes) ||
            bytes > SIZE_MAX / 4 - at)
            return leat_error(LEAT_ELIMIT,
                              "top %s: a batch of %d samples takes more than "
                              "%zu bytes",
                              plan->top[i].name, n, SIZE_MAX / 4 - at);
        extent[i].offset = at;
        at = align(at + bytes);
    }
    shape->bytes = at;
    return LEAT_OK;
}

static void write_values(const leat__planned_top *top, const leat__top *shape,
                         const leat_sample *const sample[], int n, char *to)
{
    size_t each = leat_dtype_size(shape->dtype);
    for (int i = 0; i < n; i++) {
        if (!sample[i])
            continue;
        const leat_field *field = &sample[i]->field[top->field];
        size_t elements = (size_t)count_elements(field);
        leat__cast(to, shape->dtype, field->data, field->dtype, elements);
        to += elements * each;
    }
}

/* Of a level: where each sample's groups, or each group's rows, begin. */
static void write_offsets(const leat__planned_top *values, int level,
                          const leat_sample *const sample[], int n, char *to)
{
    int64_t at = 0;
    memcpy(to, &at, sizeof(at));
    for (int i = 0; i < n; i++) {
        int64_t rows = rows_at(values, sample[i], level);
        int64_t groups = level ? rows_at(values, sample[i], level - 1) : 1;
        const leat_field *own =
            level && sample[i]
                ? &sample[i]->field[values->level_field[level - 1]]
                : NULL;
        for (int64_t k = 1; k <= groups; k++) {
            int64_t end = at + (own ? leat__offset_at(own, k) : rows);
            to += sizeof(end);
            memcpy(to, &end, sizeof(end));
        }
        at += rows;
    }
}

static void write_longest(const leat__planned_top *top, const leat__top *shape,
                          const leat__extent *extent,
                          const leat_sample *const sample[], int n, char *to)
{
    size_t bytes = leat_dtype_size(shape->dtype);
    for (int k = 1; k < extent->ndim; k++)
        bytes *= (size_t)extent->shape[k];
    leat__padding padding;
    leat__padding_init(&padding, shape->dtype, shape->ndim, extent->shape + 1,
                       top->pad_value);
    for (int i = 0; i < n; i++)
        leat__padding_put(&padding,
                          sample[i] ? &sample[i]->field[top->field] : NULL,
                          to + (size_t)i * bytes);
}

int leat__variable_tops_write(const leat__top_plan *plan, leat__batch *batch,
                              int n)
{
    int status = leat__variable_tops_lay_out(plan, &batch->shape, batch->sample,
                                             n, batch->extent);
    if (!status)
        status =
            leat__batch_extend(batch, batch->shape.bytes, batch->shape.fixed);
    char *base = (char *)batch->slab->host + batch->offset;
    size_t fixed = batch->shape.fixed;
    if (!status && batch->populates && batch->shape.bytes > fixed)
        status = leat__populate(base + fixed, batch->shape.bytes - fixed);
    for (int i = 0; i < plan->n && !status; i++) {
        const leat__planned_top *top = &plan->top[i];
        const leat__top *shape = &batch->shape.top[i];
        const leat__extent *extent = &batch->extent[i];
        char *to = base + extent->offset;
        if (top->kind == LEAT__TOP_VALUES)
            write_values(top, shape, batch->sample, n, to);
        else if (top->kind == LEAT__TOP_OFFSETS)
            write_offsets(&plan->top[top->of], top->level, batch->sample, n,
                          to);
        else if (top->kind == LEAT__TOP_LONGEST)
            write_longest(top, shape, extent, batch->sample, n, to);
    }
    return status;
}
