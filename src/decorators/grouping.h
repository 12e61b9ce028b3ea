/* grouping.h: how the fields of several samples become those of one group. */
#ifndef LEAT_DECORATORS_GROUPING_H
#define LEAT_DECORATORS_GROUPING_H

#include <leat/ext/reader.h>

#include <stdbool.h>

typedef enum leat__grouping_form {
    LEAT__GROUPING_STACK = 0, /* samples of one shape, along a new first axis */
    LEAT__GROUPING_PAD,       /* the same, each padded to one shape */
    LEAT__GROUPING_ROWS,      /* the samples' rows, end to end */
    LEAT__GROUPING_OFFSETS,   /* made: where each sample's rows begin */
    LEAT__GROUPING_DIVIDER    /* offsets that the samples have, end to end */
} leat__grouping_form;

typedef struct leat__grouped_field {
    leat__grouping_form form;
    int from;         /* the samples' field; of OFFSETS and DIVIDER see of */
    int of;           /* the samples' field whose rows they divide */
    double pad_value; /* of PAD */
    int ndim;         /* of PAD's shape; -1: that of the samples */
    int64_t shape[LEAT_MAX_DIMS]; /* -1: the group's longest */
} leat__grouped_field;

/* Longest name of a field of offsets, with its NUL. */
#define LEAT__GROUPED_NAME_MAX 128

typedef struct leat__grouping {
    const char *name;      /* of the decorator, for errors */
    const leat_args *args; /* with LEAT__GROUPING_ARGUMENTS */
    int64_t max_memory;    /* of samples and their group; 0: no limit */
    bool pads_all;         /* what varies is padded, without being named */
    int64_t samples;       /* of a group; -1: varies */
    const char *length_of; /* this field is padded to the group's length */
    int nin;
    const leat_field_spec *in; /* of a sample */
    int n;
    leat__grouped_field field[LEAT_MAX_FIELDS];
    leat_field_spec spec[LEAT_MAX_FIELDS]; /* of a group */
    char offsets[LEAT_MAX_FIELDS][LEAT__GROUPED_NAME_MAX];
} leat__grouping;

/* The arguments that say how, of each decorator that makes groups. */
#define LEAT__GROUPING_ARGUMENTS                                               \
    {.name = "pad",                                                            \
     .kind = LEAT_ARGUMENT_LIST,                                               \
     .help = "fields padded to one shape, and with what: (tokens=0,mask=-1); " \
             "0: each that varies"},                                           \
        {.name = "pad_to",                                                     \
         .kind = LEAT_ARGUMENT_LIST,                                           \
         .help = "the shapes: (tokens=128,box=-1x4); -1: the group's "         \
                 "longest"},                                                   \
    {                                                                          \
        .name = "ragged", .kind = LEAT_ARGUMENT_LIST,                          \
        .help = "fields whose rows are put end to end, with a field of "       \
                "offsets"                                                      \
    }

/*
 * Plans `field` and `spec` for samples of these fields; what is above `in` is
 * set. Errors: LEAT_EINVAL.
 */
int leat__grouping_plan(leat__grouping *grouping, const leat_field_spec *in,
                        int n);

/*
 * Appends the group of `n` complete samples, at least 1, to `out`, with the
 * provenance of the first. `length`, if not below 0, is that of the field
 * length_of. Errors: LEAT_EDATA for samples that do not fit together, of which
 * `*culprit` is one; LEAT_ELIMIT for more than max_memory; LEAT_ENOMEM. Any
 * threads.
 */
int leat__grouping_write(const leat__grouping *grouping,
                         leat_sample *const sample[], int n, int64_t length,
                         leat_sample *out, int *culprit);

/*
 * Gives `out` the provenance of `sample`, whose key is copied unless it `stays`
 * until the reader is closed. Errors: LEAT_ENOMEM.
 */
int leat__grouping_name(const leat_sample *sample, bool stays,
                        leat_sample *out);

#endif
