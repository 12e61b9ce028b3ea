/* pipeline.h: the struct of a pipeline, and what the layer needs of it. */
#ifndef LEAT_PIPELINE_PIPELINE_H
#define LEAT_PIPELINE_PIPELINE_H

#include "pipeline/arguments.h"

#include <leat/ext/reader.h>

#include <stdatomic.h>
#include <stdbool.h>

/* The longest chain of readers, those in arguments included: pipelines are
 * opened and closed recursively. */
#define LEAT__PIPELINE_DEPTH_MAX 64

/* Depths in a chain, with 0. */
enum { LEAT__PIPELINE_DEPTHS = LEAT__PIPELINE_DEPTH_MAX + 1 };

/* Immutable but for its references, which are counted atomically. */
struct leat_pipeline {
    const leat_reader_type *type;
    leat_args args;
    void (*release)(void *object);
    int nupstream;
    leat_pipeline **upstream; /* shared */
    int depth;                /* of the longest chain that ends here */
    int64_t readers;          /* in all; a shared one counts each time */
    int64_t ahead;            /* of these, the ones that read ahead; those that
                                 an argument's pipeline has count as one */
    uint64_t routes; /* that a deferred sample may take; UINT64_MAX: too many */
    bool may_block;
    bool keeps_order;
    bool draws_seed;  /* a reader's choices depend on the seed of open */
    bool draws_names; /* so do the names, or their order, of an interleave */
    bool varies;      /* a reader has a seed, so that epochs may differ */
    uint64_t hash;
    char *text;
    char *origin; /* its location in a net file; NULL: unknown */
    atomic_int references;
};

/*
 * Gives a reader that opened what leat keeps of it: the pipeline, its `n`
 * upstream readers, its depth in the chain, 1 for the one that delivers and
 * that owns the chain's figures, and its own of these. Errors: LEAT_ENOMEM.
 */
int leat__reader_attach(leat_reader *reader, leat_pipeline *pipeline,
                        leat_reader *const upstream[], int n, int depth,
                        struct leat_reader_figures *figures);

/*
 * Notes that a reader with random access is read by number, or will be, and so
 * are those upstream of it, down to any without; of other readers nothing. What
 * they need for that setup counts, before a sample is read: which ones the
 * first samples come from may depend on a seed. Any thread.
 */
void leat__reader_set_random(leat_reader *reader);

/* leat_reader_pull, with the number of samples that may be `*deferred`. */
int leat__reader_pull(leat_reader *reader, leat_sample *const out[], int n,
                      int *got, int *deferred);

/* The object of a pipeline that is made by code; zeroed: none. */
typedef struct leat__pipeline_object {
    void *object;
    void (*release)(void *object); /* called once, also on failure; or NULL */
} leat__pipeline_object;

/*
 * Makes a pipeline of one reader over `n` others (shared). The arguments are
 * taken over, also on failure. Errors: LEAT_EINVAL, LEAT_ENOMEM.
 */
int leat__pipeline_make(leat_pipeline **out, leat_args args,
                        leat__pipeline_object object,
                        leat_pipeline *const upstream[], int n);

/* Whether any reader of the pipeline may block on storage. */
bool leat__pipeline_may_block(const leat_pipeline *pipeline);

/* Whether a reader makes random choices by a seed that it is not given. */
bool leat__pipeline_draws_seed(const leat_pipeline *pipeline);

/* Whether leat_reader_may_block probes the storage, so that it may change. */
bool leat__reader_can_probe(const leat_reader *reader);

/*
 * Whether it has random access whenever the pipeline is opened. A cache of a
 * stream has it once all is kept: an order that depended on it would be another
 * one then, and refuse tokens from before.
 */
bool leat__reader_has_lasting_access(const leat_reader *reader);

/* Whether what it has read does not come again (leat_reader_ops). */
bool leat__reader_reads_once(const leat_reader *reader);

/* Whether next reads all storage in its own order: a walk is then faster than
 * read_at. */
bool leat__pipeline_keeps_order(const leat_pipeline *pipeline);

/*
 * Sets the location, such as "net.prototxt:5:18" (copied), with which errors of
 * opening begin. The pipeline must not be shared yet. LEAT_ENOMEM.
 */
int leat__pipeline_set_origin(leat_pipeline *pipeline, const char *origin);

/* The stack that a thread needs to open and read it: readers call each other.
 */
size_t leat__pipeline_stack(const leat_pipeline *pipeline);

/*
 * A hash of what is done to the samples, for the resume token: readers, their
 * arguments that change samples, and objects that have an id. Where data lies
 * is left out: it may be moved, and its fingerprint identifies it.
 */
uint64_t leat__pipeline_hash(const leat_pipeline *pipeline);

#endif
