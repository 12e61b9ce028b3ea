/* Samples of the upstream reader go to their buckets, and full ones are given.
 */
#include "base/error.h"
#include "decorators/bucket/bucket_reader.h"

#include <string.h>

int leat__bucket_plan(leat__bucket_reader *self)
{
    bool was_planned = self->grouper.is_planned;
    int status = leat__grouper_plan(&self->grouper);
    const leat__grouping *grouping = &self->grouper.grouping;
    if (status || was_planned)
        return status;
    self->field = 0;
    while (self->field < grouping->nin &&
           strcmp(grouping->in[self->field].name, self->field_name) != 0)
        self->field++;
    const leat_field_spec *spec = &grouping->in[self->field];
    bool is_found = self->field < grouping->nin;
    if (is_found && (spec->varies || spec->ndim != 0))
        return LEAT_OK;
    self->grouper.is_planned = false;
    if (is_found)
        return leat_error(LEAT_EINVAL,
                          "bucket: field %s is a scalar: it has no length",
                          self->field_name);
    return leat_error(LEAT_EINVAL,
                      "bucket: \"%s\" names no field of its samples",
                      self->field_name);
}

static int set_anchor(const leat__bucket_reader *self, leat__bucket_anchor *out)
{
    out->mark.size = 0;
    out->at = self->at;
    return leat_reader_mark(leat__bucket_upstream(self), &out->mark);
}

static int copy_anchor(leat__bucket_anchor *to, const leat__bucket_anchor *from)
{
    to->mark.size = 0;
    to->at = from->at;
    return leat_token_put(&to->mark, from->mark.bytes, from->mark.size);
}

/*
 * Pulls the next samples, once all of those before are sorted. After a call
 * that gave fewer than it was asked for there may be a bad record to come, and
 * until then no mark.
 */
static int refill(leat__bucket_reader *self)
{
    leat__group *input = self->input;
    int got = 0, n = self->was_short ? 1 : LEAT__BUCKET_INPUT;
    int status = self->was_short ? LEAT_OK : set_anchor(self, &self->begin);
    if (!status && self->first.mark.size == 0)
        status = copy_anchor(&self->first, &self->begin);
    leat__group_pool_count(&self->grouper.pool, input);
    input->n = self->sorted = 0;
    if (!status)
        status = leat__group_clear(&self->grouper.pool, input, 0, n);
    if (!status)
        status = leat_reader_pull(leat__bucket_upstream(self), input->sample, n,
                                  &got);
    input->n = got;
    self->was_short = !status && got < n;
    self->is_at_end = status == LEAT_END;
    self->at += got + (status == LEAT_EDATA);
    return self->is_at_end ? LEAT_OK : status;
}

/* The bucket of a sample. Errors: LEAT_EDATA. */
static int find_bucket(const leat__bucket_reader *self,
                       const leat_sample *sample, int *out)
{
    const leat_field *field = &sample->field[self->field];
    if (self->field >= sample->nfields || field->ndim < 1)
        return leat_error(
            LEAT_EDATA, "bucket: field %s has no length in %s, record %lld",
            self->field_name, sample->from.source ? sample->from.source : "",
            (long long)sample->from.record);
    int low = 0, high = self->n - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (field->shape[0] < self->bucket[middle].bound)
            high = middle;
        else
            low = middle + 1;
    }
    *out = low;
    if (!self->pads_to_bounds || low < self->n - 1)
        return LEAT_OK;
    return leat_error(LEAT_EDATA,
                      "bucket: field %s is of length %lld in %s, record %lld: "
                      "with to_bound expected less than the last bound",
                      self->field_name, (long long)field->shape[0],
                      sample->from.source ? sample->from.source : "",
                      (long long)sample->from.record);
}

void leat__bucket_drop_oldest(leat__group *group)
{
    leat_sample *oldest = group->sample[0];
    group->n--;
    memmove(group->sample, group->sample + 1,
            (size_t)group->n * sizeof(group->sample[0]));
    group->sample[group->n] = oldest;
}

static int64_t bytes_of(const leat_sample *sample)
{
    return (int64_t)(sizeof(*sample) + sample->buffer_size);
}

int leat__bucket_put(leat__bucket_reader *self, leat__bucket *to)
{
    leat__group_pool *pool = &self->grouper.pool;
    leat_sample **from = &self->input->sample[self->sorted - 1];
    if (!to->group)
        to->group = leat__group_pool_take(pool);
    if (!to->group)
        return LEAT_ENOMEM;
    leat__group *group = to->group;
    int status = LEAT_OK;
    if (group->n == 0)
        status = copy_anchor(&to->from, &self->begin);
    if (!status)
        status = leat__group_clear(pool, group, group->n, 1);
    if (status)
        return status;
    leat_sample *sample = *from;
    *from = group->sample[group->n];
    group->sample[group->n++] = sample;
    /* The input is counted when it is filled again. */
    int64_t more = bytes_of(sample) - bytes_of(*from);
    group->bytes += more;
    atomic_fetch_add_explicit(&pool->bytes, more, memory_order_relaxed);
    return LEAT_OK;
}

/* Gives a bucket to the sample that is returned. */
static int give(leat__bucket_reader *self, leat__bucket *from, leat_sample *out)
{
    leat__group *group = from->group;
    if (self->pads_to_bounds)
        group->length = from->bound - 1;
    int status = leat__group_pool_bind(&self->grouper.pool, group, out);
    if (!status)
        from->group = NULL;
    return status;
}

/* Completes the next sample of the input; `*out` is its bucket. */
static int sort_next(leat__bucket_reader *self, int *out)
{
    int got, i = self->sorted;
    int status = leat_reader_materialize(leat__bucket_upstream(self),
                                         &self->input->sample[i], 1, &got);
    if (!status)
        status = find_bucket(self, self->input->sample[i], out);
    if (!status || status == LEAT_EDATA)
        self->sorted++;
    return status;
}

/* The bad record is the input's sample `i`. */
static int report_bad(const leat__bucket_reader *self, int i, leat_sample *out)
{
    char line[LEAT__ERROR_MAX];
    leat__error_save(line);
    int status = leat__grouping_name(self->input->sample[i], false, out);
    return status ? status : leat_error(LEAT_EDATA, "%s", line);
}

/* At the end the buckets that hold samples are given, the shortest first. */
static int flush(leat__bucket_reader *self, leat_sample *out, int *got)
{
    for (int i = 0; i < self->n && !self->grouper.drops_last; i++) {
        leat__bucket *one = &self->bucket[i];
        if (!one->group || one->group->n == 0)
            continue;
        int status = give(self, one, out);
        self->flushed = i + 1;
        *got = !status;
        return status;
    }
    return LEAT_END;
}

int leat__bucket_take_one(leat__bucket_reader *self, leat_sample *bad, int *out)
{
    *out = -1;
    if (self->sorted == self->input->n) {
        int status = refill(self);
        return status == LEAT_EDATA ? report_bad(self, 0, bad) : status;
    }
    int status = sort_next(self, out);
    return status == LEAT_EDATA ? report_bad(self, self->sorted - 1, bad)
                                : status;
}

int leat__bucket_next(leat_reader *reader, leat_sample *const out[], int n,
                      int *got)
{
    leat__bucket_reader *self = leat__buckets_of(reader);
    int to = -1;
    bool is_full = false;
    (void)n;
    int status = leat__bucket_plan(self);
    while (!status && !is_full) {
        status = leat__decorator_check_running(&self->grouper.decorator);
        if (!status && self->is_at_end)
            return flush(self, out[0], got);
        if (!status)
            status = leat__bucket_take_one(self, out[0], &to);
        if (!status && to >= 0) {
            leat__bucket *one = &self->bucket[to];
            status = leat__bucket_put(self, one);
            is_full = !status && one->group->n == one->size;
        }
    }
    if (!status)
        status = give(self, &self->bucket[to], out[0]);
    *got = !status;
    return status;
}

int leat__bucket_fields(leat_reader *reader, const leat_field_spec **out,
                        int *n)
{
    int status = leat__bucket_plan(leat__buckets_of(reader));
    return status ? status : leat__grouper_fields(reader, out, n);
}
