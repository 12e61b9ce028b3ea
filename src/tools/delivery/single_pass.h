/* single_pass.h: whether the data of a pipeline can be read only once. */
#ifndef LEAT_TOOLS_DELIVERY_SINGLE_PASS_H
#define LEAT_TOOLS_DELIVERY_SINGLE_PASS_H

#include <leat/pipeline.h>

#include <stdbool.h>

/* Whether one of its readers names standard input, a pipe or a device, also by
 * a list or a pattern. Of paths that {} is a part of it is not known. */
bool single_pass_reads(const leat_pipeline *pipeline);

#endif
