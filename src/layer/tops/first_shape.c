/* The shape that a layer begins with, which setup takes from a record. */
#include "base/error.h"
#include "base/shape.h"
#include "layer/layer_state.h"
#include "pipeline/pipeline.h"

#include <string.h>

/*
 * The mean images against the first sample that can be read: options that do
 * not fit the data are no fault of a record's.
 */
static int check_means(leat_data_layer_group *group,
                       const leat__batch_spec *spec, const leat_sample *sample)
{
    int status =
        leat__batch_spec_check_means(spec, group->images.transformer, sample);
    return status ? leat__error_context(status, "%s: %s", group->options.name,
                                        leat_pipeline_text(group->pipeline))
                  : LEAT_OK;
}

/*
 * The shape of a record. LEAT_AGAIN: it has none, and another one may;
 * LEAT_EINVAL: the mean image fits none.
 */
static int try_record(leat_data_layer_group *group,
                      const leat__batch_spec *spec, const leat_sample *sample,
                      leat__batch_shape *shape)
{
    int status = check_means(group, spec, sample);
    if (status)
        return status;
    status =
        leat__batch_spec_shape(spec, group->images.transformer, sample, shape);
    return status == LEAT_EDATA || status == LEAT_EINVAL ? LEAT_AGAIN : status;
}

/*
 * The shape of a record before the start (`step` -1), back through the epoch
 * before, or of one from it on (1), through the next. LEAT_END: none has one.
 */
static int try_neighbors(leat_data_layer_group *group, int step,
                         const leat__batch_spec *spec, leat_sample *sample,
                         leat__batch_shape *shape)
{
    int64_t count;
    int status =
        leat_reader_count(leat__data_reader_reader(group->reader), &count);
    if (status)
        return status;
    int64_t epoch = group->start.position / count;
    int64_t index = group->start.position % count - (step > 0);
    int64_t most = count == LEAT_ENDLESS ? LEAT__PREVIEWS_MAX : count;
    for (int64_t n = 0; n / 2 < most; n++) {
        status = leat__data_reader_read_neighbor(group->reader, step, &epoch,
                                                 &index, sample);
        if (!status)
            status = try_record(group, spec, sample, shape);
        if (status != LEAT_EDATA && status != LEAT_AGAIN)
            return status;
    }
    return LEAT_END;
}

/* Whether `n` records are two epochs, as far as the end of one is known. */
static bool are_two_epochs(const leat_data_layer_group *group, int n)
{
    int64_t length = leat__data_reader_found(group->reader);
    return length > 0 && n / 2 >= length;
}

/* The same in order: of the next few records, at most of two epochs. */
static int try_next(leat_data_layer_group *group, const leat__batch_spec *spec,
                    const leat_sample **out, leat__batch_shape *shape)
{
    for (int n = 1; n < LEAT__PREVIEWS_MAX && !are_two_epochs(group, n); n++) {
        int status = leat__data_reader_preview(group->reader, out);
        if (!status)
            status = try_record(group, spec, *out, shape);
        if (status != LEAT_EDATA && status != LEAT_AGAIN)
            return status;
    }
    return LEAT_END;
}

/* Whether all that the top takes from its field's shape is promised: the rows
   of RAGGED tops, and all of PAD ones, are each batch's own. */
static bool is_fixed(const leat__planned_top *top,
                     const leat__field_check *check)
{
    const leat_field_spec *spec = &check->spec[top->field];
    bool is_padded =
        top->kind == LEAT__TOP_PADDED || top->kind == LEAT__TOP_LONGEST;
    bool is_fixed = check->is_promised[top->field] && spec->ndim >= 0;
    for (int k = top->kind == LEAT__TOP_VALUES; k < spec->ndim; k++)
        is_fixed = is_fixed && (is_padded || spec->shape[k] >= 0);
    return is_fixed;
}

/* A field of zeros as its spec promises it, with nothing where it varies. */
static int take_zeros(leat_sample *sample, int i, const leat_field_spec *spec)
{
    int64_t shape[LEAT_MAX_DIMS];
    int ndim = spec->ndim < 0 ? 0 : spec->ndim;
    size_t bytes;
    for (int k = 0; k < ndim; k++)
        shape[k] = spec->shape[k] < 0 ? 0 : spec->shape[k];
    if (!leat__shape_bytes(ndim, shape, leat_dtype_size(spec->dtype), &bytes))
        return LEAT_END;
    void *zeros = leat_sample_take(sample, bytes);
    if (!zeros)
        return LEAT_ENOMEM;
    memset(zeros, 0, bytes);
    return leat_sample_set(sample, i, spec->dtype, ndim, shape, zeros);
}

/* What the reader promises of every record. LEAT_END: too little. */
static int try_specs(leat_data_layer_group *group, const leat__batch_spec *spec,
                     leat_sample *sample, leat__batch_shape *shape)
{
    const leat__top_plan *plan = &group->plan;
    const leat__field_check *check = &plan->check;
    int status = LEAT_OK;
    leat_sample_clear(sample);
    for (int i = 0; i < check->nfields && !status; i++)
        status = take_zeros(sample, i, &check->spec[i]);
    for (int i = 0; i < plan->n && !status; i++)
        if (plan->top[i].kind != LEAT__TOP_LENGTHS &&
            plan->top[i].kind != LEAT__TOP_OFFSETS &&
            !is_fixed(&plan->top[i], check))
            status = LEAT_END;
    if (!status)
        status = try_record(group, spec, sample, shape);
    return status == LEAT_AGAIN ? LEAT_END : status;
}

/*
 * Whether another record may give the shape that the first one did not: its
 * failure is for forward to return. With on_error FAIL setup takes options that
 * do not fit the first record to fit none.
 */
static bool may_try_others(const leat_data_layer_group *group, bool resumes,
                           int first)
{
    bool fails = group->options.values.on_error == LEAT_ON_ERROR_FAIL;
    return first == LEAT_EDATA || (first == LEAT_EINVAL && (resumes || !fails));
}

/* Replacements come from both sides; FAIL wants the next batch's shape. */
static bool has_neighbors(const leat_data_layer_group *group)
{
    return group->options.values.on_error != LEAT_ON_ERROR_FAIL &&
           leat__data_reader_can_reread(group->reader);
}

int leat__group_find_shape(leat_data_layer_group *group, bool resumes,
                           const leat__batch_spec *spec, leat_sample *spare,
                           const leat_sample **out, leat__batch_shape *shape)
{
    int first = leat__data_reader_preview(group->reader, out);
    int mean = first ? LEAT_OK : check_means(group, spec, *out);
    if (mean)
        return mean;
    if (!first)
        first = leat__batch_spec_shape(spec, group->images.transformer, *out,
                                       shape);
    if (!may_try_others(group, resumes, first))
        return first;
    char line[LEAT__ERROR_MAX];
    leat__error_save(line);
    int status = LEAT_END;
    if (has_neighbors(group)) {
        *out = spare;
        for (int step = -1; step <= 1 && status == LEAT_END; step += 2)
            status = try_neighbors(group, step, spec, spare, shape);
    } else {
        status = try_next(group, spec, out, shape);
    }
    if (status == LEAT_END && resumes &&
        group->options.values.on_error != LEAT_ON_ERROR_FAIL) {
        *out = spare;
        status = try_specs(group, spec, spare, shape);
    }
    return status == LEAT_END
               ? leat_error(first, "%s; no record near it has a shape", line)
               : status;
}
