/* pipeline_paths.h: the files that the text of a pipeline names, also by a list
 * or a pattern. Of paths that {} is a part of nothing is known. */
#ifndef LEAT_TOOLS_DELIVERY_PIPELINE_PATHS_H
#define LEAT_TOOLS_DELIVERY_PIPELINE_PATHS_H

#include <leat/pipeline.h>

#include <stdbool.h>

/* Whether one of its readers names standard input, a pipe or a device: such
 * data can be read only once. */
bool pipeline_paths_pipe(const leat_pipeline *pipeline);

/* Whether one of its readers names the LMDB at `path`, also by another name. */
bool pipeline_paths_database(const leat_pipeline *pipeline, const char *path);

#endif
