/* sources.h: makes of a configuration what leat is given. */
#ifndef LEAT_TESTS_SOURCES_H
#define LEAT_TESTS_SOURCES_H

#include "configuration.h"

/*
 * Writes the records where they are stored and opens a pipeline over them.
 * `*keep` is freed after it. All errors end the soak.
 */
leat_pipeline *sources_open(configuration *c, void **keep);

/* The layer, of the pipeline or, where it is to be so, of a net file. */
int sources_layer(leat_data_layer **out, const configuration *c,
                  const leat_pipeline *pipeline);

/* A group of `n` members on the configuration's devices. */
int sources_group(leat_data_layer_group **out, const configuration *c,
                  const leat_pipeline *pipeline, int n);

/* Reports what went wrong, with the configuration, and ends the process. */
_Noreturn void soak_fail(const configuration *c, const char *what);
void soak_check(const configuration *c, int status, const char *what);

#endif
