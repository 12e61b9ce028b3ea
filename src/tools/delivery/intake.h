/* intake.h: a data layer from the command line, for dump and bench. */
#ifndef LEAT_TOOLS_DELIVERY_INTAKE_H
#define LEAT_TOOLS_DELIVERY_INTAKE_H

#include "tools/option.h"

#include <leat/data_layer.h>

enum { INTAKE_MOST_STAGES = 16, INTAKE_MOST_MEANS = 64 };

/* What the command line says of a layer. */
struct intake_options {
    const char *net;    /* a Caffe net file, or */
    const char *reader; /* a pipeline text */
    const char *phase;
    const char *layer;
    const char *stages[INTAKE_MOST_STAGES + 1];
    int64_t level;
    int64_t batch;
    int64_t crop;
    int mirror;
    float scale;
    const char *mean_file;
    float means[INTAKE_MOST_MEANS];
    int nmeans;
    int color;
    int gray;
    const char *top_type;
    const char *layout;
    const char *transform_on;
    const char *rng;
    int64_t seed;
    int64_t workers;
    int64_t prefetch;
    int64_t rank;       /* -1: not given */
    int64_t world_size; /* 0: not given */
    int launcher;       /* both from the launcher's environment */
    const char *on_error;
    int64_t max_errors;
    const char *bad_record_file;
    const char *device; /* where batches end; NULL: the CPU reads them */
};

#define INTAKE_OPTIONS_INIT                                                    \
    {                                                                          \
        .scale = 1, .seed = -1, .prefetch = -1, .rank = -1, .max_errors = -1   \
    }

/* Readers of values: phases append, means replace. */
option_reader intake_read_stage;
option_reader intake_read_means;

/* Their entries in a command's table. */
#define INTAKE_OPTIONS(o)                                                       \
    {"net",                                                                     \
     "FILE",                                                                    \
     "the data layer of this Caffe net file",                                   \
     option_text,                                                               \
     &(o)->net,                                                                 \
     0,                                                                         \
     0},                                                                        \
        {"phase",                                                               \
         "TRAIN|TEST",                                                          \
         "its phase; without --net: TRAIN",                                     \
         option_text,                                                           \
         &(o)->phase,                                                           \
         0,                                                                     \
         0},                                                                    \
        {"layer",                                                               \
         "NAME",                                                                \
         "which of several data layers",                                        \
         option_text,                                                           \
         &(o)->layer,                                                           \
         0,                                                                     \
         0},                                                                    \
        {"stage",                                                               \
         "NAME",                                                                \
         "a stage of the net's state; may be given again",                      \
         intake_read_stage,                                                     \
         (o),                                                                   \
         0,                                                                     \
         0},                                                                    \
        {"level",    "N",         "the level of the net's state (0)",           \
         option_int, &(o)->level, INT32_MIN,                                    \
         INT32_MAX},                                                            \
        {"reader",                                                              \
         "TEXT",                                                                \
         "or a pipeline, such as lmdb:mnist_test_lmdb",                         \
         option_text,                                                           \
         &(o)->reader,                                                          \
         0,                                                                     \
         0},                                                                    \
        {"batch", "N",      "samples in a batch", option_int, &(o)->batch,      \
         1,       INT32_MAX},                                                   \
        {"crop",     "SIDE",     "with --reader: crop to a square",             \
         option_int, &(o)->crop, 1,                                             \
         INT32_MAX},                                                            \
        {"mirror", NULL, "with --reader: mirror at random", NULL, &(o)->mirror, \
         0,        0},                                                          \
        {"scale", "X", "with --reader: multiply by", option_float, &(o)->scale, \
         0,       0},                                                           \
        {"mean-file",                                                           \
         "FILE",                                                                \
         "with --reader: subtract this mean image",                             \
         option_text,                                                           \
         &(o)->mean_file,                                                       \
         0,                                                                     \
         0},                                                                    \
        {"mean-value",                                                          \
         "MEAN,...",                                                            \
         "with --reader: one number, or one for each channel",                  \
         intake_read_means,                                                     \
         (o),                                                                   \
         0,                                                                     \
         0},                                                                    \
        {"color", NULL,        "with --reader: decode images to 3 channels",    \
         NULL,    &(o)->color, 0,                                               \
         0},                                                                    \
        {"gray", NULL,       "with --reader: decode images to 1 channel",       \
         NULL,   &(o)->gray, 0,                                                 \
         0},                                                                    \
        {"top-type",                                                            \
         "TYPE",                                                                \
         "float32, float64, float16, bfloat16 or uint8",                        \
         option_text,                                                           \
         &(o)->top_type,                                                        \
         0,                                                                     \
         0},                                                                    \
        {"layout",                                                              \
         "NCHW|NHWC",                                                           \
         "order of an image's axes",                                            \
         option_text,                                                           \
         &(o)->layout,                                                          \
         0,                                                                     \
         0},                                                                    \
        {"transform-on",                                                        \
         "CPU|DEVICE",                                                          \
         "where pixels become the top's (CPU)",                                 \
         option_text,                                                           \
         &(o)->transform_on,                                                    \
         0,                                                                     \
         0},                                                                    \
        {"rng",                                                                 \
         "LEAT|CAFFE",                                                          \
         "where random choices come from",                                      \
         option_text,                                                           \
         &(o)->rng,                                                             \
         0,                                                                     \
         0},                                                                    \
        {"seed",     "S",        "of random choices; else drawn",               \
         option_int, &(o)->seed, 0,                                             \
         INT64_MAX},                                                            \
        {"workers",  "N",           "threads; 0: as many as there are cores",   \
         option_int, &(o)->workers, 0,                                          \
         1024},                                                                 \
        {"prefetch",                                                            \
         "N",                                                                   \
         "batches made ahead (4); 0: as it takes",                              \
         option_int,                                                            \
         &(o)->prefetch,                                                        \
         0,                                                                     \
         4096},                                                                 \
        {"rank", "R",      "of several ranks, from 0", option_int, &(o)->rank,  \
         0,      INT32_MAX},                                                    \
        {"world-size",                                                          \
         "W",                                                                   \
         "how many ranks there are",                                            \
         option_int,                                                            \
         &(o)->world_size,                                                      \
         1,                                                                     \
         INT32_MAX},                                                            \
        {"launcher",                                                            \
         NULL,                                                                  \
         "rank and world size from torchrun, mpirun, srun",                     \
         NULL,                                                                  \
         &(o)->launcher,                                                        \
         0,                                                                     \
         0},                                                                    \
        {"on-error",                                                            \
         "FAIL|ZERO|SKIP",                                                      \
         "what becomes of a bad record (FAIL)",                                 \
         option_text,                                                           \
         &(o)->on_error,                                                        \
         0,                                                                     \
         0},                                                                    \
        {"max-errors",                                                          \
         "N",                                                                   \
         "with ZERO, SKIP: bad records at most",                                \
         option_int,                                                            \
         &(o)->max_errors,                                                      \
         0,                                                                     \
         INT64_MAX},                                                            \
    {                                                                           \
        "bad-record-file", "FILE", "append a line for each bad record",         \
            option_text, &(o)->bad_record_file, 0, 0                            \
    }

/* A layer with its tops. */
struct intake {
    leat_data_layer *layer;
    int ntop;
    leat_blob *top[LEAT_MAX_FIELDS];
    leat_device *device; /* NULL: the CPU reads; else a stream of it does */
    leat_stream stream;
    leat_blob *copy[LEAT_MAX_FIELDS]; /* of the tops, back from the device */
};

/*
 * Checks what the command line says. OPTION_GO, or EXIT_MISUSED after a
 * message.
 */
int intake_check(const struct intake_options *options, const char *command);

/* Whether the command line says anything of a layer. */
int intake_is_given(const struct intake_options *options);

/* Creates the layer; nothing is opened yet. Errors: those of the layer. */
int intake_create(struct intake *intake, const struct intake_options *options);

/* Makes the tops and sets the layer up. Errors: those of the layer. */
int intake_setup(struct intake *intake);

int intake_forward(struct intake *intake);

/* Waits until the batches of all forwards are where they should be. */
int intake_wait(struct intake *intake);

/*
 * The tops of the last forward where the CPU reads them: themselves, or what
 * the device has, copied back. Borrowed until the next call. Errors:
 * LEAT_ENOMEM, LEAT_EDEVICE.
 */
int intake_fetch(struct intake *intake, leat_blob *out[LEAT_MAX_FIELDS]);

/* Bad records that forward met so far. */
int64_t intake_bad_records(const struct intake *intake);

/* Frees what there is of it; zeroed memory is nothing. */
void intake_destroy(struct intake *intake);

#endif
