/*
 * layer_group.h: the layers that `leat bench layer` takes its batches from: one
 * alone, or a group's, one a device, which one reader feeds.
 */
#ifndef LEAT_TOOLS_BENCH_LAYER_GROUP_H
#define LEAT_TOOLS_BENCH_LAYER_GROUP_H

#include "tools/delivery/layer_source.h"

#include <leat/data_layer_group.h>

#include <stdbool.h>

enum { LAYER_GROUP_MOST = 16, LAYER_GROUP_NAME = 32 };

/* Zeroed memory is none. */
struct layer_group {
    leat_data_layer_group *group; /* NULL: a layer alone */
    int n;
    struct layer_source member[LAYER_GROUP_MOST];
    char name[LAYER_GROUP_MOST][LAYER_GROUP_NAME]; /* of a group's devices */
};

/* Whether that names more devices than one. */
bool layer_group_is_list(const char *device);

/* Creates the layer or layers of the command line and sets them up. Errors end
   the program. */
void layer_group_open(struct layer_group *group,
                      const struct layer_source_options *options);

void layer_group_close(struct layer_group *group);

#endif
