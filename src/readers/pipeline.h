/* pipeline.h: what the layer asks of a pipeline beyond its public face. */
#ifndef LEAT_READERS_PIPELINE_H
#define LEAT_READERS_PIPELINE_H

#include <leat/ext/reader.h>

/* Whether any reader of the pipeline may block on storage. */
int leat__pipeline_may_block(const leat_pipeline *pipeline);

/* A hash of the pipeline's text, for the resume token. */
uint64_t leat__pipeline_hash(const leat_pipeline *pipeline);

#endif
