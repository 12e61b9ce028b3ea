#include "decorators/batch_rows.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/shape.h"
#include "data/offsets.h"
#include "data/sample.h"
#include "decorators/grouping.h"

#include <string.h>

/* Offsets that nothing divides are those of the rows: they come to an end. */
static bool is_dropped(const leat__batch_rows *cutter, int i)
{
    return cutter->in[i].offsets_of && cutter->divider[i] < 0;
}

static void find_dividers(leat__batch_rows *cutter)
{
    for (int i = 0; i < cutter->nin; i++) {
        cutter->divider[i] = -1;
        for (int k = 0; k < cutter->nin; k++)
            if (cutter->in[k].offsets_of &&
                strcmp(cutter->in[k].offsets_of, cutter->in[i].name) == 0)
                cutter->divider[i] = k;
    }
}

/* Whether offsets divide themselves, which no walk along them would end. */
static bool goes_round(const leat__batch_rows *cutter, int i)
{
    int steps = 0;
    while (i >= 0 && steps++ <= cutter->nin)
        i = cutter->divider[i];
    return i >= 0;
}

/* The rows that the spec promises; -1: none. */
static int64_t promised_rows(const leat__batch_rows *cutter, int i)
{
    const leat_field_spec *spec = &cutter->in[i];
    if (spec->varies || spec->ndim < 1 || spec->shape[0] < 0)
        return -1;
    return spec->shape[0] - (spec->offsets_of != NULL);
}

static int describe(leat__batch_rows *cutter, int i)
{
    const leat_field_spec *in = &cutter->in[i];
    leat_field_spec *out = &cutter->spec[cutter->n];
    bool is_divided = cutter->divider[i] >= 0;
    if (goes_round(cutter, i))
        return leat_error(LEAT_EINVAL,
                          "unbatch: the offsets of field %s divide themselves",
                          in->name);
    if (!in->varies && in->ndim == 0)
        return leat_error(LEAT_EINVAL,
                          "unbatch: field %s is a scalar: it has no rows",
                          in->name);
    if (!is_divided && cutter->per_batch < 0)
        cutter->per_batch = promised_rows(cutter, i);
    if (is_dropped(cutter, i))
        return LEAT_OK;
    *out = *in;
    out->is_batch = false;
    cutter->n++;
    if (is_divided && in->ndim > 0)
        out->shape[0] = -1;
    if (is_divided || in->ndim < 1)
        return LEAT_OK;
    out->ndim = in->ndim - 1;
    for (int k = 0; k < out->ndim; k++)
        out->shape[k] = in->shape[k + 1];
    return LEAT_OK;
}

int leat__batch_rows_plan(leat__batch_rows *cutter, const leat_field_spec *in,
                          int n)
{
    int status = LEAT_OK;
    cutter->in = in;
    cutter->nin = n;
    find_dividers(cutter);
    cutter->n = 0;
    cutter->per_batch = -1;
    for (int i = 0; i < cutter->nin && !status; i++)
        status = describe(cutter, i);
    /* Outside of a batch nobody divides them: its own offsets are gone. */
    for (int i = 0; i < cutter->n; i++)
        for (int k = 0; k < cutter->nin && cutter->spec[i].offsets_of; k++)
            if (is_dropped(cutter, k) &&
                cutter->in[k].name == cutter->spec[i].name)
                cutter->spec[i].offsets_of = NULL;
    return status;
}

static int misfit(const leat__batch_rows *cutter, const leat_sample *batch,
                  int i, const char *what)
{
    char text[LEAT__FIELD_TEXT_MAX];
    const leat_field *is = &batch->field[i];
    return leat_error(LEAT_EDATA,
                      "unbatch: field %s is %s in %s, record %lld: %s",
                      cutter->in[i].name,
                      leat__field_text(text, is->dtype, is->ndim, is->shape),
                      batch->from.source ? batch->from.source : "its source",
                      (long long)batch->from.record, what);
}

/* Whether the elements of the field are there. */
static bool has_elements(const leat_field *field)
{
    size_t bytes;
    return leat__shape_bytes(field->ndim, field->shape,
                             leat_dtype_size(field->dtype), &bytes) &&
           bytes <= field->bytes;
}

int leat__batch_rows_count(const leat__batch_rows *cutter,
                           const leat_sample *batch, int64_t *out)
{
    *out = cutter->per_batch;
    if (batch->nfields != cutter->nin)
        return leat_error(
            LEAT_EDATA, "unbatch: record %lld has %d fields, expected %d",
            (long long)batch->from.record, batch->nfields, cutter->nin);
    for (int i = 0; i < cutter->nin; i++) {
        const leat_field *field = &batch->field[i];
        int of = cutter->divider[i];
        if (field->ndim < 1 || !has_elements(field))
            return misfit(cutter, batch, i, "it has no rows");
        int64_t rows = field->shape[0] - (cutter->in[i].offsets_of != NULL);
        if (of >= 0 && !leat__offsets_are_right(&batch->field[of], rows))
            return misfit(cutter, batch, of,
                          "its offsets do not ascend from 0 to the number of "
                          "rows");
        if (of >= 0)
            continue;
        if (*out >= 0 && rows != *out)
            return misfit(cutter, batch, i,
                          "expected as many rows as the others, and as are "
                          "promised");
        *out = rows;
    }
    return LEAT_OK;
}

/* The rows of field `i` that belong to row `row` of the batch. */
static void find_range(const leat__batch_rows *cutter, const leat_sample *batch,
                       int i, int64_t row, int64_t range[2])
{
    int chain[LEAT_MAX_FIELDS], n = 0;
    range[0] = row;
    range[1] = row + 1;
    for (int of = cutter->divider[i]; of >= 0; of = cutter->divider[of])
        chain[n++] = of;
    while (n-- > 0)
        for (int k = 0; k < 2; k++)
            range[k] = leat__offset_at(&batch->field[chain[n]], range[k]);
}

/* The field of one row, as a view of the batch. */
static void cut_row(const leat__batch_rows *cutter, const leat_sample *batch,
                    int i, int64_t row, leat_field *out)
{
    const leat_field *field = &batch->field[i];
    size_t each = leat_dtype_size(field->dtype);
    int64_t range[2];
    bool is_divided = cutter->divider[i] >= 0;
    for (int k = 1; k < field->ndim; k++)
        each *= (size_t)field->shape[k];
    find_range(cutter, batch, i, row, range);
    /* A group more than there are offsets: their end. */
    range[1] += is_divided && cutter->in[i].offsets_of;
    *out = *field;
    out->bytes = (size_t)(range[1] - range[0]) * each;
    if (out->bytes > 0)
        out->data = (const char *)field->data + (size_t)range[0] * each;
    if (is_divided) {
        out->shape[0] = range[1] - range[0];
        return;
    }
    out->ndim = field->ndim - 1;
    memmove(out->shape, out->shape + 1,
            (size_t)out->ndim * sizeof(out->shape[0]));
}

/* Offsets begin with 0 in each sample. */
static void rebase(leat_field *field, char *to)
{
    int64_t first = leat__offset_at(field, 0);
    for (int64_t i = 0; i < field->shape[0]; i++) {
        int64_t value = leat__offset_at(field, i) - first;
        memcpy(to + (size_t)i * sizeof(value), &value, sizeof(value));
    }
    field->data = to;
}

/* Copies what does not stay where it is into the sample's own buffer. */
static int keep_row(const leat__batch_rows *cutter, const leat_sample *batch,
                    const int from[], leat_field field[], int n,
                    leat_sample *out)
{
    const size_t unit = LEAT__ALIGNMENT;
    size_t bytes = 0;
    for (int i = 0; i < n; i++)
        if (!leat__sample_lasts(batch, field[i].data) ||
            cutter->in[from[i]].offsets_of)
            bytes += (field[i].bytes + unit - 1) / unit * unit;
    if (bytes == 0)
        return LEAT_OK;
    char *to = leat__sample_take(out, bytes);
    if (!to)
        return LEAT_ENOMEM;
    for (int i = 0; i < n; i++) {
        if (cutter->in[from[i]].offsets_of)
            rebase(&field[i], to);
        else if (leat__sample_lasts(batch, field[i].data) ||
                 field[i].bytes == 0)
            continue;
        else
            field[i].data = memcpy(to, field[i].data, field[i].bytes);
        to += (field[i].bytes + unit - 1) / unit * unit;
    }
    return LEAT_OK;
}

int leat__batch_rows_give(const leat__batch_rows *cutter,
                          const leat_sample *batch, int64_t row,
                          leat_sample *out)
{
    leat_field field[LEAT_MAX_FIELDS];
    int from[LEAT_MAX_FIELDS], n = 0;
    int stable = out->stable && batch->stable;
    for (int i = 0; i < cutter->nin; i++) {
        if (is_dropped(cutter, i))
            continue;
        from[n] = i;
        cut_row(cutter, batch, i, row, &field[n++]);
    }
    int status = leat__grouping_name(batch, batch->stable, out);
    if (!status)
        status = keep_row(cutter, batch, from, field, n, out);
    if (status)
        return status;
    if (out->nfields + n > LEAT_MAX_FIELDS)
        return leat_error(LEAT_EINVAL, "unbatch: more than %d fields",
                          LEAT_MAX_FIELDS);
    memcpy(out->field + out->nfields, field, (size_t)n * sizeof(field[0]));
    out->nfields += n;
    out->stable = stable && out->taken == 0;
    return LEAT_OK;
}
