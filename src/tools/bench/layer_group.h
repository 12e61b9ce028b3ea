/* layer_group.h: `leat bench layer` on several devices that one reader feeds.
 */
#ifndef LEAT_TOOLS_BENCH_LAYER_GROUP_H
#define LEAT_TOOLS_BENCH_LAYER_GROUP_H

#include "tools/delivery/layer_source.h"

struct layer_group_options {
    const struct layer_source_options *source; /* its device: "cuda:0,cuda:1" */
    double seconds;
    double compute_ms; /* of one core, after each step */
    double sleep_ms;   /* after each step */
    int json;
};

/* Whether that names more devices than one. */
int layer_group_is_list(const char *device);

/* Measures and reports. The tool's exit status. */
int layer_group_run(const struct layer_group_options *options);

#endif
