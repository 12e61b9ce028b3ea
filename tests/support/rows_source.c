#include "support/rows_source.h"
#include "support/decorator_chain.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_MAX = 5, SAMPLES_MAX = 4096 };

typedef struct rows_reader {
    leat_reader reader;
    rows_source *source;
    int64_t next;
    atomic_int cancelled;
} rows_reader;

static int32_t tokens[SAMPLES_MAX][LENGTH_MAX];
static unsigned char cells[SAMPLES_MAX][8];
static int64_t labels[SAMPLES_MAX];
static int64_t groups[SAMPLES_MAX][3];

static const leat_field_spec fields[] = {
    {.name = "tokens", .dtype = LEAT_INT32, .ndim = 1, .shape = {-1}},
    {.name = "cell", .dtype = LEAT_UINT8, .ndim = 2, .shape = {2, -1}},
    {.name = "label", .dtype = LEAT_INT64},
    {.name = "groups",
     .dtype = LEAT_INT64,
     .ndim = 1,
     .shape = {3},
     .offsets_of = "tokens"},
};

int rows_source_length(int64_t i)
{
    return (int)((i * 7 + 2) % LENGTH_MAX);
}

/* Once: readers of other threads may be reading them. */
static void make_samples(void)
{
    static int are_made;
    if (are_made)
        return;
    are_made = 1;
    for (int i = 0; i < SAMPLES_MAX; i++) {
        for (int k = 0; k < LENGTH_MAX; k++)
            tokens[i][k] = 100 * i + k;
        memset(cells[i], i, sizeof(cells[i]));
        labels[i] = i;
        groups[i][1] = rows_source_length(i) / 2;
        groups[i][2] = rows_source_length(i);
    }
}

static int rows_fields(leat_reader *reader, const leat_field_spec **out, int *n)
{
    *out = fields;
    *n = ((rows_reader *)reader)->source->has_groups ? 4 : 3;
    return LEAT_OK;
}

static int fill(rows_reader *self, int64_t i, leat_sample *sample)
{
    rows_source *source = self->source;
    const int64_t length = rows_source_length(i), three = 3;
    const int64_t cell[] = {2, i == source->wide ? 4 : 3};
    int n = sample->nfields;
    sample->from.source = "rows";
    sample->from.record = i;
    if (atomic_load(&self->cancelled))
        return leat_error(LEAT_ECANCELLED, "rows: cancelled");
    atomic_fetch_add(&source->made, 1);
    if (i == source->bad)
        return leat_error(LEAT_EDATA, "rows: record %d is bad", (int)i);
    leat_sample_set(sample, n, LEAT_INT32, 1, &length, tokens[i]);
    leat_sample_set(sample, n + 1, LEAT_UINT8, 2, cell, cells[i]);
    leat_sample_set(sample, n + 2, LEAT_INT64, 0, NULL, &labels[i]);
    if (source->has_groups)
        leat_sample_set(sample, n + 3, LEAT_INT64, 1, &three, groups[i]);
    if (source->is_stable)
        return LEAT_OK;
    sample->stable = 0;
    return leat_sample_own(sample);
}

/* Every second sample is left to materialize. */
static int rows_next(leat_reader *reader, leat_sample *const out[], int n,
                     int *got)
{
    rows_reader *self = (rows_reader *)reader;
    int status = LEAT_OK;
    while (*got < n && !status && self->next < self->source->count) {
        leat_sample *sample = out[*got];
        sample->locator.record = self->next;
        sample->deferred = self->next % 2 == 0;
        if (!sample->deferred)
            status = fill(self, self->next, sample);
        self->next += !status || status == LEAT_EDATA;
        *got += !status;
    }
    return status || *got == n ? status : LEAT_END;
}

static int rows_materialize(leat_reader *reader, leat_sample *const out[],
                            int n, int *got)
{
    int status = LEAT_OK;
    for (; *got < n && !status; *got += !status)
        if (out[*got]->deferred)
            status = fill((rows_reader *)reader, out[*got]->locator.record,
                          out[*got]);
    return status;
}

static int rows_read_at(leat_reader *reader, const leat_position at[],
                        leat_sample *const out[], int n, int *got)
{
    int status = LEAT_OK;
    for (; *got < n && !status; *got += !status)
        status = fill((rows_reader *)reader, at[*got].index, out[*got]);
    return status;
}

static int rows_count(leat_reader *reader, int64_t *out)
{
    *out = ((rows_reader *)reader)->source->count;
    return LEAT_OK;
}

static int rows_seek(leat_reader *reader, leat_position position,
                     leat_token *mark)
{
    rows_reader *self = (rows_reader *)reader;
    (void)mark;
    if (self->source->is_stream && position.index > 0)
        return leat_error(LEAT_EUNSUPPORTED, "rows: no index finds a sample");
    if (position.index > self->source->count)
        return leat_error(LEAT_EINVAL, "rows: there is no sample %d",
                          (int)position.index);
    self->next = position.index;
    return LEAT_OK;
}

static int rows_can_seek(leat_reader *reader)
{
    return !((rows_reader *)reader)->source->is_stream;
}

static void rows_cancel(leat_reader *reader)
{
    atomic_store(&((rows_reader *)reader)->cancelled, 1);
}

static void rows_close(leat_reader *reader)
{
    free(reader);
}

static int rows_save(leat_reader *reader, leat_token *token)
{
    (void)reader;
    (void)token;
    return LEAT_OK;
}

static int rows_restore(leat_reader *reader, leat_token *token)
{
    (void)token;
    ((rows_reader *)reader)->next = 0;
    return LEAT_OK;
}

#define ROWS_OPS                                                               \
    .size = sizeof(leat_reader_ops), .name = "rows", .fields = rows_fields,    \
    .next = rows_next, .seek = rows_seek, .cancel = rows_cancel,               \
    .close = rows_close, .materialize = rows_materialize,                      \
    .can_seek = rows_can_seek, .save = rows_save, .restore = rows_restore

static const leat_reader_ops random_ops = {
    ROWS_OPS,
    .count = rows_count,
    .read_at = rows_read_at,
};
static const leat_reader_ops stream_ops = {ROWS_OPS};
static const leat_reader_ops counted_ops = {ROWS_OPS, .count = rows_count};

static int rows_open(const leat_open *open, leat_reader **out)
{
    rows_reader *self = calloc(1, sizeof(*self));
    if (!self)
        return leat_error(LEAT_ENOMEM, "no memory for a reader");
    self->source = (rows_source *)leat_args_object(open->args);
    self->reader.ops = !self->source->is_stream ? &random_ops
                       : self->source->counts   ? &counted_ops
                                                : &stream_ops;
    *out = &self->reader;
    return LEAT_OK;
}

static const leat_reader_type type = {
    .size = sizeof(leat_reader_type), .name = "rows", .open = rows_open};

leat_pipeline *rows_source_pipeline(rows_source *source)
{
    leat_pipeline *pipeline;
    make_samples();
    if (leat_pipeline_create(&pipeline, &type, NULL, source, NULL, NULL, 0)) {
        fprintf(stderr, "%s\n", leat_last_error());
        abort();
    }
    return pipeline;
}

leat_pipeline *rows_source_chain(rows_source *source, const char *text)
{
    return decorator_chain_make(text, rows_source_pipeline(source));
}

static long long element(const leat_field *field, size_t i)
{
    int32_t four;
    int64_t eight;
    switch (field->dtype) {
    case LEAT_INT32:
        memcpy(&four, (const char *)field->data + i * 4, 4);
        return four;
    case LEAT_INT64:
        memcpy(&eight, (const char *)field->data + i * 8, 8);
        return eight;
    default:
        return ((const unsigned char *)field->data)[i];
    }
}

const char *rows_source_text(const leat_field *field, char out[ROWS_TEXT_MAX])
{
    size_t n = 1, at = 0;
    for (int i = 0; i < field->ndim; i++) {
        at += (size_t)snprintf(out + at, ROWS_TEXT_MAX - at, "%s%lld",
                               i ? "x" : "", (long long)field->shape[i]);
        n *= (size_t)field->shape[i];
    }
    at += (size_t)snprintf(out + at, ROWS_TEXT_MAX - at, ":");
    for (size_t i = 0; i < n && at + 24 < ROWS_TEXT_MAX; i++)
        at += (size_t)snprintf(out + at, ROWS_TEXT_MAX - at, " %lld",
                               element(field, i));
    return out;
}
