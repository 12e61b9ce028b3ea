/* Samples of the upstream reader go to their buckets, and full ones are given.
 */
#include "base/error.h"
#include "decorators/bucket/bucket_reader.h"

#include <string.h>

int leat__bucket_plan(leat__bucket_reader *sorter)
{
    bool was_planned = sorter->grouper.is_planned;
    int status = leat__grouper_plan(&sorter->grouper);
    const leat__grouping *grouping = &sorter->grouper.grouping;
    if (status || was_planned)
        return status;
    sorter->field = 0;
    while (sorter->field < grouping->nin &&
           strcmp(grouping->in[sorter->field].name, sorter->field_name) != 0)
        sorter->field++;
    const leat_field_spec *spec = &grouping->in[sorter->field];
    bool is_found = sorter->field < grouping->nin;
    if (is_found && (spec->varies || spec->ndim != 0))
        return LEAT_OK;
    sorter->grouper.is_planned = false;
    if (is_found)
        return leat_error(LEAT_EINVAL,
                          "bucket: field %s is a scalar: it has no length",
                          sorter->field_name);
    return leat_error(LEAT_EINVAL,
                      "bucket: \"%s\" names no field of its samples",
                      sorter->field_name);
}

static int copy_anchor(leat__bucket_anchor *to, const leat__bucket_anchor *from)
{
    to->mark.size = 0;
    to->at = from->at;
    return leat_token_put(&to->mark, from->mark.bytes, from->mark.size);
}

/*
 * The anchor of the next samples. LEAT_ESTATE: a reader below has a bad record
 * to come, before which there is no mark; the anchor stays where it was.
 */
static int set_anchor(leat__bucket_reader *sorter)
{
    leat__bucket_anchor *next = &sorter->next;
    next->mark.size = 0;
    next->at = sorter->at;
    int status = leat_reader_mark(leat__bucket_upstream(sorter), &next->mark);
    if (!status)
        status = copy_anchor(&sorter->begin, next);
    if (!status && sorter->first.mark.size == 0)
        status = copy_anchor(&sorter->first, next);
    return status;
}

/* Pulls the next samples, once all of those before are sorted. */
static int refill(leat__bucket_reader *sorter)
{
    leat__group *input = sorter->input;
    leat__group_pool *pool = &sorter->grouper.pool;
    int got = 0, n = leat__group_pool_at_once(pool, LEAT__BUCKET_INPUT);
    int status = set_anchor(sorter);
    if (status == LEAT_ESTATE && sorter->first.mark.size > 0) {
        n = 1;
        status = LEAT_OK;
    }
    leat__group_pool_count(pool, input);
    input->n = sorter->sorted = 0;
    if (!status)
        status = leat__group_clear(pool, input, 0, n);
    if (!status)
        status = leat_reader_pull(leat__bucket_upstream(sorter), input->sample,
                                  n, &got);
    input->n = got;
    sorter->is_at_end = status == LEAT_END;
    sorter->at += got + (status == LEAT_EDATA);
    return sorter->is_at_end ? LEAT_OK : status;
}

/* The bucket of a sample. Errors: LEAT_EDATA. */
static int find_bucket(const leat__bucket_reader *sorter,
                       const leat_sample *sample, int *out)
{
    const leat_field *field = &sample->field[sorter->field];
    if (sorter->field >= sample->nfields || field->ndim < 1)
        return leat_error(
            LEAT_EDATA, "bucket: field %s has no length in %s, record %lld",
            sorter->field_name, sample->from.source ? sample->from.source : "",
            (long long)sample->from.record);
    int low = 0, high = sorter->n - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (field->shape[0] < sorter->bucket[middle].bound)
            high = middle;
        else
            low = middle + 1;
    }
    *out = low;
    if (!sorter->pads_to_bounds || low < sorter->n - 1)
        return LEAT_OK;
    return leat_error(LEAT_EDATA,
                      "bucket: field %s is of length %lld in %s, record %lld: "
                      "with to_bound expected less than the last bound",
                      sorter->field_name, (long long)field->shape[0],
                      sample->from.source ? sample->from.source : "",
                      (long long)sample->from.record);
}

static int64_t bytes_of(const leat_sample *sample)
{
    return (int64_t)(sizeof(*sample) + sample->buffer_size);
}

void leat__bucket_drop_oldest(leat__bucket_reader *sorter, leat__group *group)
{
    leat_sample *oldest = group->sample[0];
    group->n--;
    memmove(group->sample, group->sample + 1,
            (size_t)group->n * sizeof(group->sample[0]));
    group->sample[group->n] = oldest;
    sorter->held -= bytes_of(oldest);
}

void leat__bucket_forget(leat__bucket_reader *sorter, const leat__group *group)
{
    for (int i = 0; i < group->n; i++)
        sorter->held -= bytes_of(group->sample[i]);
}

static int check_memory(const leat__bucket_reader *sorter)
{
    int64_t most = sorter->grouper.pool.max_memory;
    if (most == 0 || sorter->held <= most)
        return LEAT_OK;
    return leat_error(LEAT_ELIMIT,
                      "bucket: the samples in its %d buckets take %lld bytes, "
                      "but max_memory is %lld: expected fewer buckets or "
                      "smaller batches",
                      sorter->n, (long long)sorter->held, (long long)most);
}

int leat__bucket_put(leat__bucket_reader *sorter, leat__bucket *to)
{
    leat__group_pool *pool = &sorter->grouper.pool;
    leat_sample **from = &sorter->input->sample[sorter->sorted - 1];
    int status = to->group ? LEAT_OK : leat__group_pool_take(pool, &to->group);
    if (status)
        return status;
    leat__group *group = to->group;
    if (group->n == 0)
        status = copy_anchor(&to->from, &sorter->begin);
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
    sorter->held += bytes_of(sample);
    return check_memory(sorter);
}

/* Gives a bucket to the sample that is returned. */
static int give(leat__bucket_reader *sorter, leat__bucket *from,
                leat_sample *out)
{
    leat__group *group = from->group;
    if (sorter->pads_to_bounds)
        group->length = from->bound - 1;
    int status = leat__group_pool_bind(&sorter->grouper.pool, group, out);
    if (status)
        return status;
    leat__bucket_forget(sorter, group);
    from->group = NULL;
    return LEAT_OK;
}

/* Completes the next sample of the input; `*out` is its bucket. */
static int sort_next(leat__bucket_reader *sorter, int *out)
{
    int got, i = sorter->sorted;
    int status = leat_reader_materialize(leat__bucket_upstream(sorter),
                                         &sorter->input->sample[i], 1, &got);
    if (!status)
        status = find_bucket(sorter, sorter->input->sample[i], out);
    if (!status || status == LEAT_EDATA)
        sorter->sorted++;
    return status;
}

/* The bad record is the input's sample `i`. */
static int report_bad(const leat__bucket_reader *sorter, int i,
                      leat_sample *out)
{
    char line[LEAT__ERROR_MAX];
    leat__error_save(line);
    int status = leat__grouping_name(sorter->input->sample[i], false, out);
    return status ? status : leat_error(LEAT_EDATA, "%s", line);
}

/* At the end the buckets that hold samples are given, the shortest first. */
static int flush(leat__bucket_reader *sorter, leat_sample *out, int *got)
{
    for (int i = 0; i < sorter->n && !sorter->grouper.drops_last; i++) {
        leat__bucket *one = &sorter->bucket[i];
        if (!one->group || one->group->n == 0)
            continue;
        int status = give(sorter, one, out);
        sorter->flushed = i + 1;
        *got = !status;
        return status;
    }
    return LEAT_END;
}

int leat__bucket_take_one(leat__bucket_reader *sorter, leat_sample *bad,
                          int *out)
{
    *out = -1;
    if (sorter->sorted == sorter->input->n) {
        int status = refill(sorter);
        return status == LEAT_EDATA ? report_bad(sorter, 0, bad) : status;
    }
    int status = sort_next(sorter, out);
    return status == LEAT_EDATA ? report_bad(sorter, sorter->sorted - 1, bad)
                                : status;
}

int leat__bucket_next(leat_reader *reader, leat_sample *const out[], int n,
                      int *got)
{
    leat__bucket_reader *sorter = leat__buckets_of(reader);
    int to = -1;
    bool is_full = false;
    (void)n;
    int status = leat__bucket_plan(sorter);
    while (!status && !is_full) {
        status = leat__decorator_check_running(&sorter->grouper.decorator);
        if (!status && sorter->is_at_end)
            return flush(sorter, out[0], got);
        if (!status)
            status = leat__bucket_take_one(sorter, out[0], &to);
        if (!status && to >= 0) {
            leat__bucket *one = &sorter->bucket[to];
            status = leat__bucket_put(sorter, one);
            is_full = !status && one->group->n == one->size;
        }
    }
    if (!status)
        status = give(sorter, &sorter->bucket[to], out[0]);
    *got = !status;
    return status;
}

int leat__bucket_fields(leat_reader *reader, const leat_field_spec **out,
                        int *n)
{
    int status = leat__bucket_plan(leat__buckets_of(reader));
    return status ? status : leat__grouper_fields(reader, out, n);
}
