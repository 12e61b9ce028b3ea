/* Writes groups: checks and measures all fields, then copies each. */
#include "base/error.h"
#include "base/memory.h"
#include "base/shape.h"
#include "data/cast.h"
#include "data/offsets.h"
#include "data/pad.h"
#include "data/sample.h"
#include "decorators/grouping.h"

#include <stdint.h>
#include <string.h>

/* One call: its samples, and where its arrays lie in the group's memory. */
typedef struct group_job {
    const leat__grouping *grouping;
    leat_sample *const *sample;
    int n;
    int64_t length;
    int culprit;
    size_t bytes;                      /* of all fields */
    leat_field field[LEAT_MAX_FIELDS]; /* without data */
    const void
        *view[LEAT_MAX_FIELDS]; /* where they lie already; NULL: copied */
    size_t offset[LEAT_MAX_FIELDS];
} group_job;

static const leat_field *field_of(const group_job *job, int i, int from)
{
    return &job->sample[i]->field[from];
}

static bool measure(const leat_field *field, size_t *bytes)
{
    return leat__shape_bytes(field->ndim, field->shape,
                             leat_dtype_size(field->dtype), bytes);
}

/* Sample `i` is not like the first one. */
static int misfit(group_job *job, int i, int from, const char *expected)
{
    char one[LEAT__FIELD_TEXT_MAX], two[LEAT__FIELD_TEXT_MAX];
    const leat_field *is = field_of(job, i, from);
    const leat_field *first = field_of(job, 0, from);
    const leat_provenance *where = &job->sample[i]->from;
    job->culprit = i;
    return leat_error(
        LEAT_EDATA,
        "%s: field %s is %s in %s, record %lld, but %s in record "
        "%lld: %s",
        job->grouping->name, job->grouping->in[from].name,
        leat__field_text(one, is->dtype, is->ndim, is->shape),
        where->source ? where->source : "its source", (long long)where->record,
        leat__field_text(two, first->dtype, first->ndim, first->shape),
        (long long)job->sample[0]->from.record, expected);
}

/* One sample alone is wrong. */
static int wrong(group_job *job, int i, int from, const char *what)
{
    char text[LEAT__FIELD_TEXT_MAX];
    const leat_field *is = field_of(job, i, from);
    const leat_provenance *where = &job->sample[i]->from;
    job->culprit = i;
    return leat_error(LEAT_EDATA, "%s: field %s is %s in %s, record %lld: %s",
                      job->grouping->name, job->grouping->in[from].name,
                      leat__field_text(text, is->dtype, is->ndim, is->shape),
                      where->source ? where->source : "its source",
                      (long long)where->record, what);
}

/* One type and number of dimensions, and memory for all elements. */
static int check_like(group_job *job, int from)
{
    const leat_field *first = field_of(job, 0, from);
    for (int i = 0; i < job->n; i++) {
        const leat_field *is = field_of(job, i, from);
        size_t bytes;
        if (is->dtype != first->dtype)
            return misfit(job, i, from, "expected one type");
        if (is->ndim != first->ndim)
            return misfit(job, i, from, "expected one number of dimensions");
        if (!measure(is, &bytes) || bytes > is->bytes)
            return wrong(job, i, from, "it has fewer bytes than that");
    }
    return LEAT_OK;
}

/* The dimensions from `k` on are those of the first sample. */
static int check_shapes(group_job *job, int from, int k, const char *expected)
{
    const leat_field *first = field_of(job, 0, from);
    size_t bytes = (size_t)(first->ndim - k) * sizeof(first->shape[0]);
    for (int i = 1; i < job->n; i++)
        if (memcmp(field_of(job, i, from)->shape + k, first->shape + k, bytes))
            return misfit(job, i, from, expected);
    return LEAT_OK;
}

static int check_rank(group_job *job, int from)
{
    return field_of(job, 0, from)->ndim < LEAT_MAX_DIMS
               ? LEAT_OK
               : wrong(job, 0, from, "one dimension more is too many");
}

static int lay_out_stack(group_job *job, const leat__grouped_field *plan,
                         leat_field *out)
{
    const leat_field *first = field_of(job, 0, plan->from);
    int status = check_rank(job, plan->from);
    if (!status)
        status =
            check_shapes(job, plan->from, 0,
                         "expected one shape; pad and ragged take several");
    if (status)
        return status;
    out->ndim = first->ndim + 1;
    out->shape[0] = job->n;
    memcpy(out->shape + 1, first->shape,
           (size_t)first->ndim * sizeof(first->shape[0]));
    return LEAT_OK;
}

/* The dimension that PAD is given; -1: the longest. */
static int64_t padded_to(const group_job *job, const leat__grouped_field *plan,
                         int k)
{
    const leat__grouping *grouping = job->grouping;
    if (k == 0 && job->length >= 0 &&
        strcmp(grouping->in[plan->from].name, grouping->length_of) == 0)
        return job->length;
    return plan->ndim < 0 ? -1 : plan->shape[k];
}

static int lay_out_pad(group_job *job, const leat__grouped_field *plan,
                       leat_field *out)
{
    int ndim = field_of(job, 0, plan->from)->ndim;
    int status = check_rank(job, plan->from);
    if (status)
        return status;
    if (plan->ndim >= 0 && plan->ndim != ndim)
        return wrong(job, 0, plan->from, "pad_to has other dimensions");
    if (out->dtype != LEAT_BYTES &&
        !leat__cast_holds(out->dtype, plan->pad_value))
        return wrong(job, 0, plan->from, "it does not hold the padding");
    out->ndim = ndim + 1;
    out->shape[0] = job->n;
    for (int k = 0; k < ndim; k++) {
        int64_t most = padded_to(job, plan, k);
        out->shape[k + 1] = most < 0 ? 0 : most;
        for (int i = 0; i < job->n; i++) {
            int64_t dim = field_of(job, i, plan->from)->shape[k];
            if (dim <= out->shape[k + 1])
                continue;
            if (most >= 0)
                return wrong(job, i, plan->from,
                             "it is larger than what it is padded to");
            out->shape[k + 1] = dim;
        }
    }
    return LEAT_OK;
}

/* Rows of a sample's field, or groups if it has offsets itself. */
static int64_t rows_of(const group_job *job, int i, int from)
{
    return field_of(job, i, from)->shape[0] -
           (job->grouping->in[from].offsets_of != NULL);
}

static int lay_out_rows(group_job *job, const leat__grouped_field *plan,
                        leat_field *out)
{
    const leat_field *first = field_of(job, 0, plan->from);
    if (first->ndim == 0)
        return wrong(job, 0, plan->from, "it has no rows to put end to end");
    int status = check_shapes(job, plan->from, 1,
                              "expected the same but for the first dimension");
    if (status)
        return status;
    *out = *first;
    out->shape[0] = 0;
    for (int i = 0; i < job->n; i++)
        out->shape[0] += field_of(job, i, plan->from)->shape[0];
    return LEAT_OK;
}

/* Offsets of the samples' own: each ascends from 0 to the rows they divide. */
static int lay_out_divider(group_job *job, const leat__grouped_field *plan,
                           leat_field *out)
{
    out->ndim = 1;
    out->shape[0] = 1;
    for (int i = 0; i < job->n; i++) {
        const leat_field *is = field_of(job, i, plan->from);
        if (field_of(job, i, plan->of)->ndim < 1 ||
            !leat__offsets_are_right(is, rows_of(job, i, plan->of)))
            return wrong(job, i, plan->from,
                         "its offsets do not ascend from 0 to the number of "
                         "rows");
        out->shape[0] += is->shape[0] - 1;
    }
    return LEAT_OK;
}

static int lay_out_field(group_job *job, const leat__grouped_field *plan,
                         leat_field *out)
{
    if (plan->form == LEAT__GROUPING_OFFSETS) {
        out->dtype = LEAT_INT64;
        out->ndim = 1;
        out->shape[0] = job->n + 1;
        return LEAT_OK;
    }
    int status = check_like(job, plan->from);
    out->dtype = field_of(job, 0, plan->from)->dtype;
    if (status)
        return status;
    switch (plan->form) {
    case LEAT__GROUPING_PAD:
        return lay_out_pad(job, plan, out);
    case LEAT__GROUPING_ROWS:
        return lay_out_rows(job, plan, out);
    case LEAT__GROUPING_DIVIDER:
        return lay_out_divider(job, plan, out);
    default:
        return lay_out_stack(job, plan, out);
    }
}

static int check_number(group_job *job)
{
    for (int i = 0; i < job->n; i++) {
        if (job->sample[i]->nfields == job->grouping->nin)
            continue;
        job->culprit = i;
        return leat_error(
            LEAT_EDATA, "%s: record %lld has %d fields, expected %d",
            job->grouping->name, (long long)job->sample[i]->from.record,
            job->sample[i]->nfields, job->grouping->nin);
    }
    return LEAT_OK;
}

/* Samples that stay where they are, one directly after the other, as in a file
 * of rows that is mapped, are a group already; NULL: they are not. */
static const void *find_view(const group_job *job, int i)
{
    const leat__grouped_field *plan = &job->grouping->field[i];
    size_t each = job->field[i].bytes / (size_t)job->n;
    if (plan->form != LEAT__GROUPING_STACK || each == 0)
        return NULL;
    const char *first = field_of(job, 0, plan->from)->data;
    for (int k = 0; k < job->n; k++)
        if (!leat__sample_lasts(job->sample[k],
                                field_of(job, k, plan->from)->data) ||
            (uintptr_t)field_of(job, k, plan->from)->data !=
                (uintptr_t)first + (size_t)k * each)
            return NULL;
    return first;
}

static int lay_out(group_job *job)
{
    const size_t unit = LEAT__ALIGNMENT;
    int status = check_number(job);
    for (int i = 0; i < job->grouping->n && !status; i++) {
        leat_field *out = &job->field[i];
        *out = (leat_field){0};
        status = lay_out_field(job, &job->grouping->field[i], out);
        if (status)
            break;
        if (!measure(out, &out->bytes) ||
            out->bytes > SIZE_MAX / 4 - job->bytes)
            return leat_error(
                LEAT_ELIMIT, "%s: field %s of %d samples overflows its size",
                job->grouping->name, job->grouping->spec[i].name, job->n);
        job->view[i] = find_view(job, i);
        if (job->view[i])
            continue;
        job->offset[i] = job->bytes;
        job->bytes += (out->bytes + unit - 1) / unit * unit;
    }
    return status;
}

static void write_stack(const group_job *job, int from, size_t bytes, char *to)
{
    size_t each = bytes / (size_t)job->n;
    if (each == 0)
        return;
    for (int i = 0; i < job->n; i++)
        memcpy(to + (size_t)i * each, field_of(job, i, from)->data, each);
}

static void write_padded(const group_job *job, const leat__grouped_field *plan,
                         const leat_field *out, char *to)
{
    leat__padding padding;
    size_t each = out->bytes / (size_t)job->n;
    size_t dims = (size_t)(out->ndim - 1) * sizeof(out->shape[0]);
    leat_dtype dtype = out->dtype == LEAT_BYTES ? LEAT_UINT8 : out->dtype;
    leat__padding_init(&padding, dtype, out->ndim - 1, out->shape + 1,
                       plan->pad_value);
    for (int i = 0; i < job->n && each > 0; i++, to += each) {
        const leat_field *is = field_of(job, i, plan->from);
        if (memcmp(is->shape, out->shape + 1, dims) == 0)
            memcpy(to, is->data, each);
        else
            leat__padding_put(&padding, is, to);
    }
}

static void write_rows(const group_job *job, int from, char *to)
{
    for (int i = 0; i < job->n; i++) {
        const leat_field *is = field_of(job, i, from);
        size_t bytes;
        if (measure(is, &bytes) && bytes > 0)
            memcpy(to, is->data, bytes);
        to += bytes;
    }
}

static char *put_offset(char *to, int64_t value)
{
    memcpy(to, &value, sizeof(value));
    return to + sizeof(value);
}

static void write_offsets(const group_job *job, int of, char *to)
{
    int64_t at = 0;
    to = put_offset(to, 0);
    for (int i = 0; i < job->n; i++)
        to = put_offset(to, at += rows_of(job, i, of));
}

static void write_divider(const group_job *job, int from, int of, char *to)
{
    int64_t at = 0;
    to = put_offset(to, 0);
    for (int i = 0; i < job->n; i++) {
        const leat_field *is = field_of(job, i, from);
        for (int64_t k = 1; k < is->shape[0]; k++)
            to = put_offset(to, at + leat__offset_at(is, k));
        at += rows_of(job, i, of);
    }
}

static void write_field(const group_job *job, int i, char *to)
{
    const leat__grouped_field *plan = &job->grouping->field[i];
    const leat_field *out = &job->field[i];
    if (plan->form == LEAT__GROUPING_STACK)
        write_stack(job, plan->from, out->bytes, to);
    else if (plan->form == LEAT__GROUPING_PAD)
        write_padded(job, plan, out, to);
    else if (plan->form == LEAT__GROUPING_ROWS)
        write_rows(job, plan->from, to);
    else if (plan->form == LEAT__GROUPING_OFFSETS)
        write_offsets(job, plan->of, to);
    else
        write_divider(job, plan->from, plan->of, to);
}

int leat__grouping_name(const leat_sample *sample, bool stays, leat_sample *out)
{
    const leat_provenance *from = &sample->from;
    const void *key = from->key;
    if (key && from->key_size > 0 && !stays) {
        char *copy = leat__sample_take(out, from->key_size);
        if (!copy)
            return LEAT_ENOMEM;
        key = memcpy(copy, from->key, from->key_size);
        out->stable = 0;
    }
    out->from.source = from->source;
    out->from.record = from->record;
    out->from.key = key;
    out->from.key_size = key ? from->key_size : 0;
    out->from.key_cut = key ? from->key_cut : 0;
    return LEAT_OK;
}

/* The samples and the group, which are there at once. */
static int check_memory(const group_job *job)
{
    const leat__grouping *grouping = job->grouping;
    size_t bytes = job->bytes;
    if (grouping->max_memory == 0)
        return LEAT_OK;
    for (int i = 0; i < job->n; i++)
        bytes += sizeof(*job->sample[i]) + job->sample[i]->buffer_size;
    if (bytes <= (size_t)grouping->max_memory)
        return LEAT_OK;
    return leat_error(LEAT_ELIMIT,
                      "%s: a group of %d samples takes %zu bytes with them, "
                      "but max_memory is %lld: expected a smaller size",
                      grouping->name, job->n, bytes,
                      (long long)grouping->max_memory);
}

int leat__grouping_write(const leat__grouping *grouping,
                         leat_sample *const sample[], int n, int64_t length,
                         leat_sample *out, int *culprit)
{
    group_job job = {
        .grouping = grouping, .sample = sample, .n = n, .length = length};
    int status = lay_out(&job);
    *culprit = job.culprit;
    if (!status)
        status = check_memory(&job);
    if (!status)
        status = leat__grouping_name(sample[0], sample[0]->stable, out);
    if (!status && out->nfields + grouping->n > LEAT_MAX_FIELDS)
        status = leat_error(LEAT_EINVAL, "%s: more than %d fields",
                            grouping->name, LEAT_MAX_FIELDS);
    if (status)
        return status;
    char *base = job.bytes > 0 ? leat__sample_take(out, job.bytes) : NULL;
    if (!base && job.bytes > 0)
        return LEAT_ENOMEM;
    for (int i = 0; i < grouping->n; i++) {
        leat_field *field = &out->field[out->nfields++];
        *field = job.field[i];
        field->data = job.view[i];
        if (job.view[i] || field->bytes == 0)
            continue;
        field->data = base + job.offset[i];
        write_field(&job, i, base + job.offset[i]);
    }
    out->stable &= job.bytes == 0;
    return LEAT_OK;
}
