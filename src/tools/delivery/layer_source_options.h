/* layer_source_options.h: what a command line says of a data layer. */
#ifndef LEAT_TOOLS_DELIVERY_LAYER_SOURCE_OPTIONS_H
#define LEAT_TOOLS_DELIVERY_LAYER_SOURCE_OPTIONS_H

#include "tools/cli/option.h"

#include <leat/data_layer.h>

enum { LAYER_SOURCE_MOST_STAGES = 16, LAYER_SOURCE_MOST_MEANS = 64 };

/* What the command line says of a layer. */
struct layer_source_options {
    const char *net;    /* a Caffe net file, or */
    const char *reader; /* a pipeline text, or the path of an LMDB */
    const char *source; /* an LMDB instead of the net file's; or NULL */
    const char *phase;
    const char *layer;
    const char *stages[LAYER_SOURCE_MOST_STAGES + 1];
    int64_t level;
    int64_t batch;
    int64_t crop;
    int mirror;
    float scale;
    const char *mean_file;
    float means[LAYER_SOURCE_MOST_MEANS];
    int nmeans;
    int color;
    int gray;
    const char *top_type;
    const char *layout;
    const char *transform_on;
    const char *rng;
    int64_t seed;
    int64_t workers;
    int64_t prefetch;
    int64_t rank;       /* -1: not given */
    int64_t world_size; /* 0: not given */
    int launcher;       /* both from the launcher's environment */
    const char *on_error;
    int64_t max_errors;
    const char *bad_record_file;
    int64_t max_image_bytes; /* 0: the default */
    const char *device;      /* where batches end; NULL: the CPU reads them */
};

#define LAYER_SOURCE_OPTIONS_INIT                                              \
    {                                                                          \
        .scale = 1, .seed = -1, .rank = -1, .max_errors = -1                   \
    }

/* Entries of their table, its end included. */
enum { LAYER_SOURCE_OPTIONS = 30 };

/* Fills the table that a command shares with others: usage.shared. */
void layer_source_options_list(struct option_spec out[LAYER_SOURCE_OPTIONS],
                               struct layer_source_options *options);

/* OPTION_GO, or EXIT_MISUSED after a message. */
int layer_source_options_check(const struct layer_source_options *options,
                               const char *command);

/* Whether the command line sets anything that only a layer has. */
int layer_source_options_are_given(const struct layer_source_options *options);

/*
 * What they are for the library; strings and lists are borrowed. Errors: those
 * of leat_launcher_ranks.
 */
int layer_source_options_fill(const struct layer_source_options *options,
                              leat_data_layer_options *out);
void layer_source_options_fill_transform(
    const struct layer_source_options *options, leat_transform_options *out);

#endif
