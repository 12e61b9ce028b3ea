/* pipeline.h: a pipeline's inside, and what the layer asks of it. */
#ifndef LEAT_PIPELINE_PIPELINE_H
#define LEAT_PIPELINE_PIPELINE_H

#include "pipeline/arguments.h"

#include <leat/ext/reader.h>

#include <stdatomic.h>
#include <stdbool.h>

/* Readers that one reads. */
#define LEAT__UPSTREAM_MAX 64

/* Immutable but for the count of its owners. */
struct leat_pipeline {
    const leat_reader_type *type;
    leat_args args;
    void (*release)(void *object);
    int nupstream;
    leat_pipeline **upstream; /* shared */
    int depth;                /* of the longest chain that ends here */
    char *text;
    const char *own; /* where in it this reader's own begins */
    char *origin;    /* where it is written; NULL: unknown */
    atomic_int owners;
};

/* Whether any reader of the pipeline may block on storage. */
bool leat__pipeline_may_block(const leat_pipeline *pipeline);

/* Whether what leat_reader_may_block says follows the storage. */
bool leat__reader_can_probe(const leat_reader *reader);

/* Whether it reads other pipelines: decorators permute or change samples. */
bool leat__pipeline_has_upstream(const leat_pipeline *pipeline);

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
