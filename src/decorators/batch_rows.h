/* batch_rows.h: how the rows of a sample's first axis become samples. */
#ifndef LEAT_DECORATORS_BATCH_ROWS_H
#define LEAT_DECORATORS_BATCH_ROWS_H

#include <leat/ext/reader.h>

/* Immutable once planned. */
typedef struct leat__batch_rows {
    int64_t per_batch; /* -1: varies */
    int nin;
    const leat_field_spec *in;    /* of a batch, borrowed */
    int divider[LEAT_MAX_FIELDS]; /* the field that divides it; -1: none */
    int n;
    leat_field_spec spec[LEAT_MAX_FIELDS]; /* of a row */
} leat__batch_rows;

/* Plans for batches of these fields. Errors: LEAT_EINVAL. */
int leat__batch_rows_plan(leat__batch_rows *cutter, const leat_field_spec *in,
                          int n);

/* Counts the rows of a batch. Errors: LEAT_EDATA where a field has not as many
 * as the others. Any threads. */
int leat__batch_rows_count(const leat__batch_rows *cutter,
                           const leat_sample *batch, int64_t *out);

/*
 * Appends row `row` of a batch that was counted to `out`: views of what stays
 * where it is, the rest copied. Errors: LEAT_ENOMEM; LEAT_EINVAL without room
 * for the fields. Any threads.
 */
int leat__batch_rows_give(const leat__batch_rows *cutter,
                          const leat_sample *batch, int64_t row,
                          leat_sample *out);

#endif
