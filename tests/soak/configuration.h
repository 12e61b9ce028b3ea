/* configuration.h: what one layer of a soak is like, and what it must do. */
#ifndef LEAT_TESTS_CONFIGURATION_H
#define LEAT_TESTS_CONFIGURATION_H

#include "records.h"
#include "reference.h"

#include <leat.h>

#define MEMBERS_MAX 3

typedef enum source_kind { FROM_LMDB, FROM_MEMORY, FROM_CALLBACK } source_kind;

/* What stands between source and layer. */
typedef enum chain { CHAIN_NONE, CHAIN_SHUFFLE, CHAIN_SLICE, CHAIN_BOTH } chain;

typedef struct configuration {
    rules rules; /* for the reference */

    /* The data. */
    source_kind source;
    chain chain;
    int chain_seed;
    int skip;
    int take;
    int single_pass;
    int is_text;   /* the pipeline is parsed, not made */
    int is_stable; /* a callback's views last */
    int is_flat;   /* an image is a row of numbers */
    records_options storage;
    record *stored;  /* as they lie there */
    record *records; /* of an epoch: the same, in another order; borrows */
    leat_lmdb_options lmdb;

    /* The layer. */
    int ntop;
    int from_net;                    /* described by a net file */
    int members;                     /* of a group; 1: a layer by itself */
    const char *device[MEMBERS_MAX]; /* of each; NULL: "cpu" */
    int gives_names;
    leat_data_layer_options options;
    leat_transform_options transform;
    float *mean_image;
    int limits_memory;
    int has_bad_record_file; /* a file of bad records */

    int64_t batches;
    int resumes;
} configuration;

/* Where the soak's files lie, and one of them. */
extern char soak_directory[32];
const char *soak_path(const char *name);

/* The devices to choose from; the first is "cpu". */
extern const char *soak_devices[4];
extern int soak_ndevices;

/* Draws all of it; configuration_finish frees what it holds. */
void configuration_choose(configuration *c);
void configuration_finish(configuration *c);

/* Draws anew what changes no byte, and the size of the batch. */
void configuration_choose_manner(configuration *c);
void configuration_choose_ranks(configuration *c);

/* The type of a top, or of labels, as the reference knows it. */
top_kind configuration_kind(leat_dtype type);

/* Bytes that a batch takes at most, on host and device. */
size_t configuration_batch_bytes(const configuration *c);

/* Names all of it on stderr. */
void configuration_describe(const configuration *c);

#endif
