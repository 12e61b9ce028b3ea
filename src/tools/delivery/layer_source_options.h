/* layer_source_options.h: the layer that a command line describes. */
#ifndef LEAT_TOOLS_DELIVERY_LAYER_SOURCE_OPTIONS_H
#define LEAT_TOOLS_DELIVERY_LAYER_SOURCE_OPTIONS_H

#include "tools/cli/option.h"

#include <leat/data_layer.h>

#include <stdbool.h>

enum {
    LAYER_SOURCE_MOST_STAGES = 16,
    LAYER_SOURCE_MOST_MEANS = 64,
    LAYER_SOURCE_TOP_BYTES = 512, /* of a top's text */
    LAYER_SOURCE_OPTIONS = 48     /* entries of the table, its end included */
};

/*
 * The library's options, which leat_data_layer_option_list and
 * leat_transform_option_list describe, and those of the tool alone.
 */
struct layer_source_options {
    const char *net;    /* a Caffe net file, or */
    const char *reader; /* a pipeline text, or the path of an LMDB */
    leat_data_layer_options layer;
    leat_transform_options transform;
    const char *stages[LAYER_SOURCE_MOST_STAGES + 1];
    float means[LAYER_SOURCE_MOST_MEANS];
    int nmeans;
    leat_top top[LEAT_MAX_FIELDS];
    int ntop; /* 0: Caffe's tops */
    char top_text[LEAT_MAX_FIELDS][LAYER_SOURCE_TOP_BYTES];
    bool launcher; /* rank and world size are those of its environment */
    /* Whether an entry of the two lists was given; a flag is no more. */
    bool layer_given[LAYER_SOURCE_OPTIONS];
    bool transform_given[LAYER_SOURCE_OPTIONS];
};

#define LAYER_SOURCE_OPTIONS_INIT                                              \
    {                                                                          \
        .layer = LEAT_DATA_LAYER_OPTIONS_INIT,                                 \
        .transform = LEAT_TRANSFORM_OPTIONS_INIT                               \
    }

/* Fills the table that a command shares with others: usage.shared. */
void layer_source_options_list(struct option_spec out[LAYER_SOURCE_OPTIONS],
                               struct layer_source_options *options);

/* Ends the program with a message on what makes no sense together. */
void layer_source_options_check(const struct layer_source_options *options,
                                const char *command);

/* Whether the command line sets anything that only a layer has. */
bool layer_source_options_are_given(const struct layer_source_options *options);

/*
 * The options for the library; texts and lists are borrowed. Errors: those of
 * leat_launcher_ranks.
 */
int layer_source_options_resolve(const struct layer_source_options *options,
                                 leat_data_layer_options *layer,
                                 leat_transform_options *transform);

#endif
