/* data_layer_options.h: a data layer's options, owned and checked. */
#ifndef LEAT_LAYER_OPTIONS_DATA_LAYER_OPTIONS_H
#define LEAT_LAYER_OPTIONS_DATA_LAYER_OPTIONS_H

#include "layer/options/transform_copy.h"
#include "layer/tops/top_list.h"

#include <leat/data_layer.h>

typedef struct leat__layer_options {
    leat_data_layer_options values; /* its pointers point into this struct */
    leat__transform_copy transform;
    leat_allocator host_allocator;
    leat_allocator pinned_allocator;
    char *name;
    char *device;
    char *bad_record_file;
    char *top[LEAT_MAX_FIELDS];
    const char *tops[LEAT_MAX_FIELDS + 1];
    int ntop; /* named tops; 0: none are named */
    leat__top_list list;
} leat__layer_options;

/*
 * Copies and completes: batch sizes from each other, label type from the top's,
 * max_image_bytes from max_memory.
 * Errors: LEAT_EINVAL naming the option, LEAT_ENOMEM.
 */
int leat__layer_options_init(leat__layer_options *out,
                             const leat_data_layer_options *options);
void leat__layer_options_finish(leat__layer_options *options);

/* Replaces each zero that does not count by the table's default. */
void leat__data_layer_options_complete(leat_data_layer_options *options);

/* Ranks that divide the data among themselves; 1 where each takes all. */
int leat__layer_options_step(const leat_data_layer_options *options);

#endif
