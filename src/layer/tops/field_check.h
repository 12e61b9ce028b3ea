/* field_check.h: samples against what their reader promised of its fields. */
#ifndef LEAT_LAYER_TOPS_FIELD_CHECK_H
#define LEAT_LAYER_TOPS_FIELD_CHECK_H

#include <leat/sample.h>

#include <stdbool.h>

/* The fields that promise something; the specs stay the reader's. */
typedef struct leat__field_check {
    int nfields; /* that a sample has */
    int n;
    int field[LEAT_MAX_FIELDS]; /* those that leat__field_check_run checks */
    bool is_promised[LEAT_MAX_FIELDS];
    const leat_field_spec *spec; /* of all fields, borrowed */
} leat__field_check;

/* Errors: LEAT_ESTATE for a spec that is none. */
int leat__field_check_init(leat__field_check *check,
                           const leat_field_spec *spec, int n);

/* Leaves a field to leat__field_check_one. */
void leat__field_check_leave(leat__field_check *check, int field);

/* Checks one field, as far as its spec promises anything. */
int leat__field_check_one(const leat__field_check *check,
                          const leat_sample *sample, int field);

/* Writes "field x": LEAT_EDATA, with both types and shapes. */
int leat__field_check_report(const leat__field_check *check,
                             const leat_sample *sample, int field);
/* LEAT_EDATA: the sample has too few fields. */
int leat__field_check_report_number(const leat__field_check *check,
                                    const leat_sample *sample);

static inline bool leat__field_is_kept(const leat_field_spec *spec,
                                       const leat_field *field)
{
    bool is_kept = field->dtype == spec->dtype &&
                   (field->ndim == spec->ndim || spec->ndim < 0);
    for (int k = 0; k < spec->ndim && is_kept; k++)
        is_kept = spec->shape[k] < 0 || field->shape[k] == spec->shape[k];
    return is_kept;
}

/* LEAT_EDATA names the field, and what it has and should have. */
static inline int leat__field_check_run(const leat__field_check *check,
                                        const leat_sample *sample)
{
    if (sample->nfields < check->nfields)
        return leat__field_check_report_number(check, sample);
    for (int i = 0; i < check->n; i++) {
        int field = check->field[i];
        if (!leat__field_is_kept(&check->spec[field], &sample->field[field]))
            return leat__field_check_report(check, sample, field);
    }
    return LEAT_OK;
}

#endif
