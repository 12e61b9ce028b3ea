/* example_plan.h: which features of an Example or SequenceExample become which
 * fields of a sample. */
#ifndef LEAT_DATA_EXAMPLE_PLAN_H
#define LEAT_DATA_EXAMPLE_PLAN_H

#include "data/example_wire.h"

#include <leat/sample.h>

#include <stdbool.h>

/* A feature, as "x=float32[2]?0.5" or "x=[float32[2]]" describes it. */
typedef struct leat__planned_feature {
    char *name;
    char *type; /* as written: "float32[2]", for errors */
    leat_dtype dtype;
    leat__feature_kind kind;
    bool is_step; /* of each step of a sequence */
    int ndim;     /* of one feature, or step; the first dimension may be -1 */
    int64_t shape[LEAT_MAX_DIMS];
    bool varies;  /* it is -1 */
    size_t row;   /* elements of the other dimensions, or of all */
    bool strings; /* byte strings, several in a field: they have ends */
    bool groups;  /* steps of different sizes: their ends follow */
    bool is_optional;
    void *initial; /* the default's values */
    size_t initial_count;
    size_t initial_bytes;
    int first_field; /* of 1 to 3 */
} leat__planned_feature;

/* Zeroed: empty. Immutable once all features are added. */
typedef struct leat__example_plan {
    int n; /* features */
    leat__planned_feature feature[LEAT_MAX_FIELDS];
    leat__feature_key key[LEAT_MAX_FIELDS];
    int nfields;
    leat_field_spec spec[LEAT_MAX_FIELDS];
    char *field_name[LEAT_MAX_FIELDS];
} leat__example_plan;

/*
 * Adds a feature; in brackets it is one of each step of a sequence. The plan is
 * finished also after errors: LEAT_EINVAL, LEAT_ENOMEM.
 */
int leat__example_plan_add(leat__example_plan *plan, const char *text);
void leat__example_plan_finish(leat__example_plan *plan);

#endif
