/* pipeline.h: what the layer asks of a pipeline beyond its public face. */
#ifndef LEAT_READERS_PIPELINE_H
#define LEAT_READERS_PIPELINE_H

#include <leat/ext/reader.h>

/* Whether any reader of the pipeline may block on storage. */
int leat__pipeline_may_block(const leat_pipeline *pipeline);

/* Whether it reads other pipelines: decorators permute or change samples. */
int leat__pipeline_has_upstream(const leat_pipeline *pipeline);

/*
 * Notes where a pipeline that nobody else has yet is written, such as
 * "net.prototxt:5:18" (copied): errors of opening it begin with that.
 * LEAT_ENOMEM.
 */
int leat__pipeline_set_origin(leat_pipeline *pipeline, const char *origin);

/*
 * A hash of what is done to the samples, for the resume token. Where they are
 * read from is left out: data may move, and is known by its fingerprint.
 */
uint64_t leat__pipeline_hash(const leat_pipeline *pipeline);

#endif
