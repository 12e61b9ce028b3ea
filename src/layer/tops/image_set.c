#include "layer/tops/image_set.h"
#include "base/error.h"
#include "data/transformer.h"

static int create_image(leat__image_set *set,
                        const leat_data_layer_options *values,
                        const leat_transform_options *transform,
                        leat_dtype type)
{
    leat_transformer **out = &set->transformer[set->n];
    int status = leat_transformer_create(out, transform, values->phase, type,
                                         values->layout);
    if (status)
        return status;
    set->n++;
    leat_transformer_set_max_image_bytes(*out, values->max_image_bytes);
    return LEAT_OK;
}

static int create_listed(leat__image_set *set, const leat__top_list *list,
                         const leat_data_layer_options *values)
{
    int status = LEAT_OK;
    for (int i = 0; i < list->n && !status; i++) {
        const leat_top *top = &list->top[i];
        if (!top->is_image)
            continue;
        status = create_image(
            set, values, top->transform ? top->transform : values->transform,
            top->dtype == LEAT_BYTES ? values->top_type : top->dtype);
        if (status)
            return leat__error_context(status, "top %s", top->name);
    }
    return status;
}

int leat__image_set_init(leat__image_set *set, leat__top_plan *plan,
                         const leat__top_list *list,
                         const leat_data_layer_options *values)
{
    int status;
    if (list->n == 0) {
        status = leat__top_plan_usual(plan, 1, values->top_type,
                                      values->label_type, NULL, 0);
        if (!status)
            status =
                create_image(set, values, values->transform, values->top_type);
    } else {
        status = leat__top_plan_list(plan, list, values->top_type, NULL, 0);
        if (!status)
            status = create_listed(set, list, values);
    }
    if (!status)
        leat__image_set_count_draws(set, plan);
    return status;
}

void leat__image_set_finish(leat__image_set *set)
{
    for (int i = 0; i < set->n; i++)
        leat_transformer_destroy(set->transformer[i]);
    set->n = 0;
}

void leat__image_set_count_draws(const leat__image_set *set,
                                 leat__top_plan *plan)
{
    int draws[LEAT_MAX_FIELDS] = {0};
    for (int i = 0; i < set->n; i++)
        draws[i] = leat__transformer_words_per_image(set->transformer[i]);
    leat__top_plan_set_draws(plan, draws);
}
