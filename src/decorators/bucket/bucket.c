/* bucket:FIELD,BOUNDS, samples of similar lengths as one. */
#include "base/decimal.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/option_list.h"
#include "decorators/bucket/bucket_reader.h"
#include "decorators/decorators.h"
#include "pipeline/arguments.h"
#include "pipeline/reader_table.h"

#include <leat/decorators.h>

#include <stdio.h>
#include <string.h>

static void release(leat__bucket_reader *sorter)
{
    for (int i = 0; sorter->bucket && i < sorter->n; i++)
        leat_token_finish(&sorter->bucket[i].from.mark);
    leat__free(sorter->bucket);
    leat_token_finish(&sorter->begin.mark);
    leat_token_finish(&sorter->first.mark);
    leat_token_finish(&sorter->next.mark);
}

static void bucket_close(leat_reader *reader)
{
    release(leat__buckets_of(reader));
    leat__grouper_close(reader);
}

static const leat_reader_ops bucket_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "bucket",
    .fields = leat__bucket_fields,
    .next = leat__bucket_next,
    .seek = leat__bucket_seek,
    .cancel = leat__decorator_cancel,
    .close = bucket_close,
    .materialize = leat__grouper_materialize,
    .can_seek = leat__reader_no,
    .mark = leat__bucket_mark,
    .save = leat__decorator_save,
    .restore = leat__bucket_restore,
    .may_block = leat__decorator_may_block,
    .memory = leat__grouper_memory,
};

static int count_list(const leat_args *args, const char *name)
{
    int n;
    (void)leat__args_elements(args, name, &n);
    return n;
}

/* The number at an element of the list `name`; `also`: what else is expected.
 */
static int read_number(const char *text, const char *name, int64_t min,
                       int64_t max, const char *also, int64_t *out)
{
    if (leat__decimal_quantity(text, false, out) && *out >= min && *out <= max)
        return LEAT_OK;
    return leat_error(LEAT_EINVAL,
                      "bucket: %s: expected whole numbers from %lld to %lld%s, "
                      "found '%s'",
                      name, (long long)min, (long long)max, also, text);
}

/* Buckets of bounds and sizes; `*most` is the greatest size. */
static int read_buckets(const leat_args *args, int n, leat__bucket buckets[],
                        int *most)
{
    int sizes, bounds, status = LEAT_OK;
    const char *batch = leat__args_elements(args, "batch", &sizes);
    const char *at = leat__args_elements(args, "bounds", &bounds);
    int64_t bound = 0, size;
    if (sizes != 1 && sizes != n)
        return leat_error(LEAT_EINVAL,
                          "bucket: batch has %d sizes: expected 1, or %d, one "
                          "more than there are bounds",
                          sizes, n);
    *most = LEAT__BUCKET_INPUT;
    for (int i = 0; i < n && !status; i++) {
        status = read_number(batch, "batch", 1, LEAT__GROUP_MAX, "", &size);
        if (!status && i < bounds)
            status = read_number(at, "bounds", bound + 1, INT64_MAX / 2,
                                 ", which ascend", &bound);
        if (status)
            return status;
        if (i < bounds)
            at += strlen(at) + 1;
        if (sizes > 1)
            batch += strlen(batch) + 1;
        leat_token_init(&buckets[i].from.mark);
        buckets[i].bound = bound;
        buckets[i].size = (int)size;
        *most = *most < size ? (int)size : *most;
    }
    return LEAT_OK;
}

/* Whether the counts of all buckets fit into a mark. */
static bool fit_mark(const leat__bucket_reader *sorter)
{
    int bits = 0;
    for (int i = 0; i < sorter->n; i++)
        for (int left = sorter->bucket[i].size - 1; left > 0; left >>= 1)
            bits++;
    return bits <= 8 * LEAT__BUCKET_COUNT_BYTES;
}

static bool has_one_size(const leat__bucket_reader *sorter)
{
    for (int i = 1; i < sorter->n; i++)
        if (sorter->bucket[i].size != sorter->bucket[0].size)
            return false;
    return true;
}

static int set_up(leat__bucket_reader *sorter, const leat_args *args,
                  leat__bucket *buckets, int n)
{
    leat__grouper *grouper = &sorter->grouper;
    sorter->bucket = buckets;
    sorter->n = n;
    sorter->field_name = leat_args_get(args, "field");
    sorter->pads_to_bounds = leat_args_number(args, "to_bound");
    sorter->has_counts = fit_mark(sorter);
    leat_token_init(&sorter->begin.mark);
    leat_token_init(&sorter->first.mark);
    leat_token_init(&sorter->next.mark);
    grouper->drops_last = leat_args_number(args, "drop_last");
    grouper->grouping.pads_all = true;
    if (sorter->pads_to_bounds)
        grouper->grouping.length_of = sorter->field_name;
    if (grouper->drops_last && has_one_size(sorter))
        grouper->grouping.samples = buckets[0].size;
    return leat__group_pool_take(&grouper->pool, &sorter->input);
}

static int bucket_open(const leat_open *open, leat_reader **out)
{
    leat__grouper *grouper = NULL;
    int most, n = count_list(open->args, "bounds") + 1;
    leat__bucket *buckets = leat__alloc_zero((size_t)n, sizeof(*buckets));
    if (!buckets)
        return LEAT_ENOMEM;
    int status = read_buckets(open->args, n, buckets, &most);
    if (!status)
        status = leat__grouper_new(open, &bucket_ops,
                                   sizeof(leat__bucket_reader), most, &grouper);
    if (status) {
        leat__free(buckets);
        return status;
    }
    leat__bucket_reader *sorter = (leat__bucket_reader *)grouper;
    status = set_up(sorter, open->args, buckets, n);
    if (status) {
        release(sorter);
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
