/* What the reader's fields make of the tops, before the threads start. */
#include "base/error.h"
#include "base/memory.h"
#include "layer/layer_state.h"
#include "layer/tops/variable_tops.h"

#include <stdbool.h>

/* `ntop` 0: the tops that are named, or else all fields. */
static int plan_usual(leat_data_layer_group *group, int ntop,
                      const leat_field_spec *fields, int n)
{
    const leat_data_layer_options *values = &group->options.values;
    if (ntop == 0)
        ntop = group->options.ntop > 0 ? group->options.ntop : n;
    if (ntop > n)
        return leat_error(LEAT_EINVAL,
                          "%s: %d tops, but the samples have %d fields",
                          values->name, ntop, n);
    return leat__top_plan_usual(&group->plan, ntop, values->top_type,
                                values->label_type, fields, n);
}

static int plan_listed(leat_data_layer_group *group, int ntop,
                       const leat_field_spec *fields, int n)
{
    const leat_data_layer_options *values = &group->options.values;
    int status = leat__top_plan_list(&group->plan, &group->options.list,
                                     values->top_type, fields, n);
    if (!status && ntop > 0 && ntop != group->plan.n)
        return leat_error(LEAT_EINVAL,
                          "%d tops, but the list makes %d, lengths and offsets "
                          "included",
                          ntop, group->plan.n);
    return status;
}

/* A batch of its reader's is delivered as it is: it has no axis for images. */
static int check_batches(const leat_data_layer_group *group,
                         const leat_field_spec *fields)
{
    const leat_data_layer_options *values = &group->options.values;
    const leat_transform_options *transform = values->transform;
    bool cuts =
        transform && (transform->crop_size > 0 || transform->mirror ||
                      transform->mean_file || transform->mean_values > 1);
    for (int i = 0; i < group->plan.n; i++) {
        const leat__planned_top *top = &group->plan.top[i];
        const char *name = fields[top->field].name;
        if (top->is_batch && values->batch_size != 1)
            return leat_error(LEAT_EINVAL,
                              "%s: the samples of field %s are batches: "
                              "expected a batch_size of 1, found %lld",
                              values->name, name,
                              (long long)values->batch_size);
        if (top->is_batch && top->kind == LEAT__TOP_IMAGE && cuts)
            return leat_error(LEAT_EINVAL,
                              "%s: the samples of field %s are batches, whose "
                              "images are not cropped, mirrored or centered: "
                              "transform them before they are batches, or "
                              "leave the batches to the layer",
                              values->name, name);
    }
    return LEAT_OK;
}

int leat__group_plan_tops(leat_data_layer_group *group, int ntop)
{
    const leat_data_layer_options *values = &group->options.values;
    const leat_field_spec *fields;
    int n;
    leat_reader *reader = leat__data_reader_reader(group->reader);
    int status = leat_reader_fields(reader, &fields, &n);
    if (status)
        return status;
    status = group->options.list.n > 0 ? plan_listed(group, ntop, fields, n)
                                       : plan_usual(group, ntop, fields, n);
    if (status)
        return leat__error_context(status, "%s", values->name);
    leat__image_set_count_draws(&group->images, &group->plan);
    return check_batches(group, fields);
}

size_t leat__group_measure_sample(const leat_data_layer_group *group,
                                  const leat__batch_shape *shape,
                                  const leat_sample *sample, bool *decodes)
{
    const leat__top_plan *plan = &group->plan;
    size_t bytes = 1;
    *decodes = false;
    for (int i = 0; i < plan->n; i++) {
        const leat_field *field = &sample->field[plan->top[i].field];
        bool is_image = plan->top[i].kind == LEAT__TOP_IMAGE;
        *decodes |= is_image && field->dtype == LEAT_BYTES;
        bytes += field->bytes + shape->top[i].bytes;
    }
    return *decodes ? 0 : bytes;
}

static bool fits(const leat__top_plan *plan, const leat__batch_shape *shape,
                 const leat_sample *sample)
{
    int status = leat__field_check_run(&plan->check, sample);
    for (int i = 0; i < plan->n && !status; i++)
        if (plan->top[i].kind == LEAT__TOP_VALUES ||
            plan->top[i].kind == LEAT__TOP_LONGEST)
            status = leat__variable_top_check(plan, i, &shape->top[i], sample);
    return !status;
}

int leat__group_measure_batch(leat_data_layer_group *group,
                              leat__batch_shape *shape)
{
    const leat_sample **sample = NULL;
    int n = (int)group->options.values.batch_size;
    int status = LEAT_OK;
    if (group->plan.is_variable)
        status = leat__data_reader_preview_batch(group->reader, &sample, &n);
    /* Bad records have no shape to go by; they are noted in their turn. */
    for (int i = 0; i < n && !status && sample; i++)
        if (sample[i] && !fits(&group->plan, shape, sample[i]))
            sample[i] = NULL;
    if (!status)
        status = leat__variable_tops_lay_out(&group->plan, shape, sample, n,
                                             group->first);
    leat__free(sample);
    /* The next ones may be larger by a quarter before they grow. */
    group->room = shape->bytes;
    if (group->plan.is_variable)
        group->room += shape->bytes / 4;
    shape->bytes = shape->fixed;
    return status;
}
