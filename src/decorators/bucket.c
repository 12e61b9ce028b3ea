/*
 * bucket:FIELD,BOUNDS, samples of similar lengths as one.
 *
 * DESIGN. Samples are pulled a few at a time, into `input`, and completed in
 * order, since their lengths decide where they go. Each bucket is a group of
 * the pool; pointers to samples change places, not their bytes. A bucket that
 * is full is bound to the sample that is given, and workers write it.
 *
 * What buckets hold is read again. A bucket is given as a whole, so what it
 * holds are the last samples of its lengths. A mark is an upstream mark in
 * front of the oldest sample that is held, the samples read since, and how
 * many of them each bucket holds: one number to the base of their sizes. Where
 * that takes more than a mark's bytes the mark is that of the epoch's begin,
 * and everything since is sorted again, less the buckets given at its end.
 */
#include "base/error.h"
#include "base/memory.h"
#include "base/option_list.h"
#include "decorators/decorators.h"
#include "decorators/grouper.h"

#include <leat/decorators.h>

#include <stdio.h>
#include <string.h>

/* Samples pulled in one call. */
enum { INPUT_SIZE = 64 };

/* Bytes of a mark: samples read since the upstream mark, and the counts. */
enum {
    READ_BYTES = 6,
    COUNT_BYTES = 26,
    MARK_BYTES = READ_BYTES + COUNT_BYTES
};

/* A mark of the upstream reader, in front of sample `at`. */
typedef struct anchor {
    leat_token mark;
    int64_t at;
} anchor;

typedef struct bucket {
    int64_t bound; /* lengths are below; of the last one there is none */
    int size;
    leat__group *group; /* NULL: it holds nothing */
    anchor from;        /* at or before its first sample */
    int target;         /* samples that it is to hold again, after a seek */
} bucket;

typedef struct bucket_reader {
    leat__grouper grouper; /* first */
    const char *field_name;
    int field;
    int n;
    bucket *bucket;
    bool pads_to_bounds;
    bool has_counts; /* a mark has room for them */
    /* of one caller at a time; samples are counted from the epoch's begin on */
    leat__group *input; /* samples that were pulled, and how many were sorted */
    int sorted;
    bool was_short; /* the last call gave fewer than it was asked for */
    int64_t at;     /* sample that is pulled next */
    anchor begin;   /* at or before the first sample of `input` */
    anchor first;   /* at the begin of the epoch */
    bool is_at_end;
    int flushed; /* buckets given at the end */
} bucket_reader;

static bucket_reader *buckets_of(leat_reader *reader)
{
    return (bucket_reader *)reader;
}

static leat_reader *upstream_of(const bucket_reader *self)
{
    return self->grouper.decorator.upstream[0];
}

static int plan(bucket_reader *self)
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

static int set_anchor(const bucket_reader *self, anchor *out)
{
    out->mark.size = 0;
    out->at = self->at;
    return leat_reader_mark(upstream_of(self), &out->mark);
}

static int copy_anchor(anchor *to, const anchor *from)
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
static int refill(bucket_reader *self)
{
    leat__group *input = self->input;
    int got = 0, n = self->was_short ? 1 : INPUT_SIZE;
    int status = self->was_short ? LEAT_OK : set_anchor(self, &self->begin);
    if (!status && self->first.mark.size == 0)
        status = copy_anchor(&self->first, &self->begin);
    leat__group_pool_count(&self->grouper.pool, input);
    input->n = self->sorted = 0;
    if (!status)
        status = leat__group_clear(&self->grouper.pool, input, 0, n);
    if (!status)
        status = leat_reader_pull(upstream_of(self), input->sample, n, &got);
    input->n = got;
    self->was_short = !status && got < n;
    self->is_at_end = status == LEAT_END;
    self->at += got + (status == LEAT_EDATA);
    return self->is_at_end ? LEAT_OK : status;
}

/* The bucket of a sample. Errors: LEAT_EDATA. */
static int find_bucket(const bucket_reader *self, const leat_sample *sample,
                       int *out)
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

/* Drops a bucket's oldest sample, whose slot is then the one after the last. */
static void drop_oldest(leat__group *group)
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

/* The sample that was sorted last goes to the end of a bucket, which has room.
 */
static int put(bucket_reader *self, bucket *to)
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
static int give(bucket_reader *self, bucket *from, leat_sample *out)
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
static int sort_next(bucket_reader *self, int *out)
{
    int got, i = self->sorted;
    int status = leat_reader_materialize(upstream_of(self),
                                         &self->input->sample[i], 1, &got);
    if (!status)
        status = find_bucket(self, self->input->sample[i], out);
    if (!status || status == LEAT_EDATA)
        self->sorted++;
    return status;
}

/* The bad record is the input's sample `i`. */
static int report_bad(const bucket_reader *self, int i, leat_sample *out)
{
    char line[LEAT__ERROR_MAX];
    leat__error_save(line);
    int status = leat__grouping_name(self->input->sample[i], false, out);
    return status ? status : leat_error(LEAT_EDATA, "%s", line);
}

/* At the end the buckets that hold samples are given, the shortest first. */
static int flush(bucket_reader *self, leat_sample *out, int *got)
{
    for (int i = 0; i < self->n && !self->grouper.drops_last; i++) {
        bucket *one = &self->bucket[i];
        if (!one->group || one->group->n == 0)
            continue;
        int status = give(self, one, out);
        self->flushed = i + 1;
        *got = !status;
        return status;
    }
    return LEAT_END;
}

/* Completes the next sample; `*out` is its bucket, or -1: there was none, and
 * the next ones were pulled. */
static int take_one(bucket_reader *self, leat_sample *bad, int *out)
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

static int bucket_next(leat_reader *reader, leat_sample *const out[], int n,
                       int *got)
{
    bucket_reader *self = buckets_of(reader);
    int to = -1;
    bool is_full = false;
    (void)n;
    int status = plan(self);
    while (!status && !is_full) {
        status = leat__decorator_check_running(&self->grouper.decorator);
        if (!status && self->is_at_end)
            return flush(self, out[0], got);
        if (!status)
            status = take_one(self, out[0], &to);
        if (!status && to >= 0) {
            bucket *one = &self->bucket[to];
            status = put(self, one);
            is_full = !status && one->group->n == one->size;
        }
    }
    if (!status)
        status = give(self, &self->bucket[to], out[0]);
    *got = !status;
    return status;
}

static int bucket_fields(leat_reader *reader, const leat_field_spec **out,
                         int *n)
{
    int status = plan(buckets_of(reader));
    return status ? status : leat__grouper_fields(reader, out, n);
}

/* number = number x factor + more; of COUNT_BYTES bytes, the lowest first. */
static void append_digit(unsigned char number[], uint32_t factor, uint32_t more)
{
    uint64_t carry = more;
    for (int i = 0; i < COUNT_BYTES; i++) {
        carry += (uint64_t)number[i] * factor;
        number[i] = (unsigned char)carry;
        carry >>= 8;
    }
}

/* The remainder; number is divided. */
static uint32_t take_digit(unsigned char number[], uint32_t divisor)
{
    uint64_t rest = 0;
    for (int i = COUNT_BYTES - 1; i >= 0; i--) {
        rest = rest << 8 | number[i];
        number[i] = (unsigned char)(rest / divisor);
        rest %= divisor;
    }
    return (uint32_t)rest;
}

/* Where samples that are held were read, or else all are. */
static const anchor *find_oldest(const bucket_reader *self)
{
    const anchor *oldest = &self->begin;
    if (!self->has_counts)
        return &self->first;
    for (int i = 0; i < self->n; i++) {
        const bucket *one = &self->bucket[i];
        if (one->group && one->group->n > 0 && one->from.at < oldest->at)
            oldest = &one->from;
    }
    return oldest;
}

static int bucket_mark(leat_reader *reader, leat_token *token)
{
    const bucket_reader *self = buckets_of(reader);
    unsigned char state[MARK_BYTES] = {0};
    const anchor *from = find_oldest(self);
    bool is_fresh = self->first.mark.size == 0;
    int64_t read = self->at - (self->input->n - self->sorted) - from->at;
    if (is_fresh)
        read = 0;
    for (int i = 0; i < READ_BYTES; i++)
        state[i] = (unsigned char)(read >> 8 * i);
    if (!self->has_counts)
        append_digit(state + READ_BYTES, 1, (uint32_t)self->flushed);
    for (int i = self->n - 1; i >= 0 && self->has_counts; i--) {
        const bucket *one = &self->bucket[i];
        append_digit(state + READ_BYTES, (uint32_t)one->size,
                     one->group ? (uint32_t)one->group->n : 0);
    }
    int status = is_fresh
                     ? leat_reader_mark(upstream_of(self), token)
                     : leat_token_put(token, from->mark.bytes, from->mark.size);
    return status ? status : leat_token_put(token, state, sizeof(state));
}

/* Nothing is held. */
static void reset(bucket_reader *self)
{
    for (int i = 0; i < self->n; i++)
        if (self->bucket[i].group)
            self->bucket[i].group->n = 0;
    self->input->n = self->sorted = 0;
    self->was_short = false;
    self->at = 0;
    self->begin.at = 0;
    self->first.mark.size = 0;
    self->is_at_end = false;
    self->flushed = 0;
}

/* A sample that was held, or given, is read again. */
static int put_again(bucket_reader *self, bucket *to)
{
    int most = self->has_counts ? to->target : to->size;
    if (most == 0)
        return LEAT_OK;
    if (self->has_counts && to->group && to->group->n == most)
        drop_oldest(to->group);
    int status = put(self, to);
    if (!status && !self->has_counts && to->group->n == most)
        to->group->n = 0;
    return status;
}

static int not_ours(void)
{
    return leat_error(LEAT_EINVAL, "bucket: the mark is of other data: its "
                                   "samples are not there");
}

/* Fills the buckets with what they held after `read` samples. */
static int read_again(bucket_reader *self, int64_t read)
{
    leat_sample dropped;
    int status = plan(self);
    leat_sample_init(&dropped);
    while (!status && read > 0) {
        int to;
        int64_t before = self->at - (self->input->n - self->sorted);
        status = self->is_at_end ? not_ours() : take_one(self, &dropped, &to);
        if (!status && to >= 0)
            status = put_again(self, &self->bucket[to]);
        else if (status == LEAT_EDATA)
            status = LEAT_OK;
        read -= self->at - (self->input->n - self->sorted) - before;
        leat_sample_clear(&dropped);
    }
    leat_sample_finish(&dropped);
    for (int i = 0; i < self->n && self->has_counts && !status; i++) {
        const bucket *one = &self->bucket[i];
        if ((one->group ? one->group->n : 0) != one->target)
            status = not_ours();
    }
    return status;
}

static int bucket_seek(leat_reader *reader, leat_position position,
                       leat_token *mark)
{
    bucket_reader *self = buckets_of(reader);
    unsigned char state[MARK_BYTES];
    int64_t read = 0;
    if (position.index > 0 && !mark)
        return leat_error(LEAT_EUNSUPPORTED,
                          "bucket: no index finds a bucket again");
    const leat_position to = {position.epoch, 0};
    int status = leat_reader_seek(upstream_of(self), to, mark);
    if (!status)
        reset(self);
    if (status || !mark)
        return status;
    status = leat_token_get(mark, state, sizeof(state));
    if (status)
        return status;
    for (int i = 0; i < READ_BYTES; i++)
        read |= (int64_t)state[i] << 8 * i;
    for (int i = 0; i < self->n && self->has_counts; i++)
        self->bucket[i].target =
            (int)take_digit(state + READ_BYTES, (uint32_t)self->bucket[i].size);
    status = read_again(self, read);
    if (self->has_counts || status)
        return status;
    self->flushed = (int)take_digit(state + READ_BYTES, INT32_MAX);
    for (int i = 0; i < self->n && i < self->flushed; i++)
        if (self->bucket[i].group)
            self->bucket[i].group->n = 0;
    return LEAT_OK;
}

static int bucket_restore(leat_reader *reader, leat_token *token)
{
    int status = leat__decorator_restore(reader, token);
    if (!status)
        reset(buckets_of(reader));
    return status;
}

static int cannot_seek(leat_reader *reader)
{
    (void)reader;
    return 0;
}

static void release(bucket_reader *self)
{
    for (int i = 0; self->bucket && i < self->n; i++)
        leat_token_finish(&self->bucket[i].from.mark);
    leat__free(self->bucket);
    leat_token_finish(&self->begin.mark);
    leat_token_finish(&self->first.mark);
}

static void bucket_close(leat_reader *reader)
{
    release(buckets_of(reader));
    leat__grouper_close(reader);
}

static const leat_reader_ops bucket_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "bucket",
    .fields = bucket_fields,
    .next = bucket_next,
    .seek = bucket_seek,
    .cancel = leat__decorator_cancel,
    .close = bucket_close,
    .materialize = leat__grouper_materialize,
    .can_seek = cannot_seek,
    .mark = bucket_mark,
    .save = leat__decorator_save,
    .restore = bucket_restore,
    .may_block = leat__decorator_may_block,
    .memory = leat__grouper_memory,
};

static int count_list(const leat_args *args, const char *name)
{
    int n = 0;
    while (leat_args_list(args, name, n))
        n++;
    return n;
}

/* Element `i` of a list of numbers. */
static int read_number(const leat_args *args, const char *name, int i,
                       int64_t min, int64_t max, int64_t *out)
{
    const char *text = leat_args_list(args, name, i);
    if (leat__option_read_integer(text, false, out) && *out >= min &&
        *out <= max)
        return LEAT_OK;
    return leat_error(LEAT_EINVAL,
                      "bucket: %s: expected whole numbers from %lld on, and "
                      "bounds that ascend, found '%s'",
                      name, (long long)min, text);
}

/* Buckets of bounds and sizes; `*most` is the greatest size. */
static int read_buckets(const leat_args *args, int n, bucket buckets[],
                        int *most)
{
    int sizes = count_list(args, "batch"), status = LEAT_OK;
    int64_t bound = 0, size;
    if (sizes != 1 && sizes != n)
        return leat_error(LEAT_EINVAL,
                          "bucket: batch has %d sizes: expected 1, or %d, one "
                          "more than there are bounds",
                          sizes, n);
    *most = INPUT_SIZE;
    for (int i = 0; i < n && !status; i++) {
        status = read_number(args, "batch", sizes > 1 ? i : 0, 1,
                             LEAT__GROUP_MAX, &size);
        if (!status && i < n - 1)
            status = read_number(args, "bounds", i, bound + 1, INT64_MAX / 2,
                                 &bound);
        if (status)
            return status;
        leat_token_init(&buckets[i].from.mark);
        buckets[i].bound = bound;
        buckets[i].size = (int)size;
        *most = *most < size ? (int)size : *most;
    }
    return LEAT_OK;
}

/* Whether the counts of all buckets fit into a mark. */
static bool fit_mark(const bucket_reader *self)
{
    int bits = 0;
    for (int i = 0; i < self->n; i++)
        for (int left = self->bucket[i].size - 1; left > 0; left >>= 1)
            bits++;
    return bits <= 8 * COUNT_BYTES;
}

static bool has_one_size(const bucket_reader *self)
{
    for (int i = 1; i < self->n; i++)
        if (self->bucket[i].size != self->bucket[0].size)
            return false;
    return true;
}

static int set_up(bucket_reader *self, const leat_args *args, bucket *buckets,
                  int n)
{
    leat__grouper *grouper = &self->grouper;
    self->bucket = buckets;
    self->n = n;
    self->field_name = leat_args_get(args, "field");
    self->pads_to_bounds = leat_args_number(args, "to_bound");
    self->has_counts = fit_mark(self);
    leat_token_init(&self->begin.mark);
    leat_token_init(&self->first.mark);
    grouper->drops_last = leat_args_number(args, "drop_last");
    grouper->grouping.pads_all = true;
    if (self->pads_to_bounds)
        grouper->grouping.length_of = self->field_name;
    if (grouper->drops_last && has_one_size(self))
        grouper->grouping.samples = buckets[0].size;
    self->input = leat__group_pool_take(&grouper->pool);
    return self->input ? LEAT_OK : LEAT_ENOMEM;
}

static int bucket_open(const leat_open *open, leat_reader **out)
{
    leat__grouper *grouper = NULL;
    int most, n = count_list(open->args, "bounds") + 1;
    bucket *buckets = leat__alloc_zero((size_t)n, sizeof(*buckets));
    if (!buckets)
        return LEAT_ENOMEM;
    int status = read_buckets(open->args, n, buckets, &most);
    if (!status)
        status = leat__grouper_new(open, &bucket_ops, sizeof(bucket_reader),
                                   most, &grouper);
    if (status) {
        leat__free(buckets);
        return status;
    }
    bucket_reader *self = (bucket_reader *)grouper;
    status = set_up(self, open->args, buckets, n);
    if (status) {
        release(self);
        leat__grouper_free(grouper);
        return status;
    }
    *out = &grouper->decorator.reader;
    return LEAT_OK;
}

static const leat_argument bucket_arguments[] = {
    {.name = "field",
     .positional = 1,
     .required = 1,
     .help = "field whose first dimension is a sample's length"},
    {.name = "bounds",
     .kind = LEAT_ARGUMENT_LIST,
     .positional = 1,
     .required = 1,
     .help = "lengths that bound the buckets: (10,20) makes three, of lengths "
             "below 10, 10 to 19, and 20 or more"},
    {.name = "batch",
     .kind = LEAT_ARGUMENT_LIST,
     .required = 1,
     .help = "samples of a batch: one number, or one for each bucket"},
    {.name = "to_bound",
     .kind = LEAT_ARGUMENT_NUMBER,
     .initial = "0",
     .max = 1,
     .help = "1: the field is padded to the greatest length of its bucket, "
             "which has to be bounded"},
    LEAT__GROUPING_ARGUMENTS,
    LEAT__DROP_LAST_ARGUMENT,
    {0},
};

const leat_reader_type leat__bucket_type = {
    .size = sizeof(leat_reader_type),
    .name = "bucket",
    .help = "samples of similar lengths as one",
    .arguments = bucket_arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 1,
    .max_upstream = 1,
    .open = bucket_open,
};

/* "FIELD,(10,20),batch=(8,4,2),to_bound=1" in `out`; only its size if NULL. */
static size_t write_scalars(char *out, size_t size, const char *field,
                            const char *bounds, const char *batch, int to_bound)
{
    int n = snprintf(out, size, "%s,(%s),batch=(%s)%s", field, bounds, batch,
                     to_bound ? ",to_bound=1" : "");
    return n < 0 ? 0 : (size_t)n;
}

int leat_pipeline_bucket(leat_pipeline **out, leat_pipeline *upstream,
                         const char *field, const char *bounds,
                         const char *batch, int to_bound,
                         const leat_group_options *options)
{
    if (!field || !bounds || !batch)
        return leat_error(LEAT_EINVAL,
                          "bucket: expected a field, bounds and batch sizes");
    size_t size = leat_args_escape(field, NULL, 0);
    char *name = leat__alloc(size);
    if (!name)
        return LEAT_ENOMEM;
    leat_args_escape(field, name, size);
    size = write_scalars(NULL, 0, name, bounds, batch, to_bound) + 1;
    char *text = leat__alloc(size);
    int status = LEAT_ENOMEM;
    if (text) {
        write_scalars(text, size, name, bounds, batch, to_bound);
        status = leat__grouper_create(out, &leat__bucket_type, upstream, text,
                                      options);
    }
    leat__free(text);
    leat__free(name);
    return status;
}
