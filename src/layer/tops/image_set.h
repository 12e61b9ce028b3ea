/* image_set.h: the transformers of the images among a layer's tops. */
#ifndef LEAT_LAYER_TOPS_IMAGE_SET_H
#define LEAT_LAYER_TOPS_IMAGE_SET_H

#include "layer/tops/top_plan.h"

typedef struct leat__image_set {
    int n;
    leat_transformer *transformer[LEAT_MAX_FIELDS]; /* owned */
} leat__image_set;

/*
 * Makes those of the list, or without one that of the first field, and plans
 * the tops as far as they are known without the fields. Errors: those of
 * leat_transformer_create, LEAT_EINVAL; the line names the top. Finish is due
 * all the same.
 */
int leat__image_set_init(leat__image_set *set, leat__top_plan *plan,
                         const leat__top_list *list,
                         const leat_data_layer_options *values);
void leat__image_set_finish(leat__image_set *set);

/* Tells the plan how many words of Caffe's generator each image takes. */
void leat__image_set_count_draws(const leat__image_set *set,
                                 leat__top_plan *plan);

#endif
