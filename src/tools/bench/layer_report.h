/* layer_report.h: the output of `leat bench layer`. */
#ifndef LEAT_TOOLS_BENCH_LAYER_REPORT_H
#define LEAT_TOOLS_BENCH_LAYER_REPORT_H

#include "tools/bench/layer_measure.h"

/* Prints lines or one object. Returns the exit status. */
int layer_report(struct layer_result *result, const struct layer_group *group,
                 const struct layer_options *options);

#endif
