#include "support/timed_readers.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_UPSTREAM = 64 };

typedef struct timed_reader {
    leat_reader reader;
    leat_reader_ops ops;
    timed_plan *plan;
    leat_reader *upstream[MOST_UPSTREAM]; /* owned */
    int n;
    int64_t calls; /* of next; one caller at a time, as the next */
    leat_position at;
} timed_reader;

_Thread_local int64_t timed_now;

static const unsigned char data[TIMED_BYTES];
static const leat_field_spec spec = {
    .name = "data", .dtype = LEAT_UINT8, .ndim = 1, .shape = {TIMED_BYTES}};

static void fill(leat_sample *sample, int64_t index)
{
    static const int64_t shape[] = {TIMED_BYTES};
    leat_sample_set(sample, sample->nfields, LEAT_UINT8, 1, shape, data);
    sample->from.source = "timed";
    sample->from.record = index;
}

static int timed_fields(leat_reader *reader, const leat_field_spec **out,
                        int *n)
{
    const timed_reader *self = (timed_reader *)reader;
    if (self->n > 0)
        return leat_reader_fields(self->upstream[0], out, n);
    *out = &spec;
    *n = 1;
    return LEAT_OK;
}

static int next_of_source(timed_reader *self, leat_sample *const out[], int n,
                          int *got)
{
    while (*got < n && self->at.index < self->plan->samples) {
        if (self->plan->defers)
            out[*got]->deferred = 1;
        else
            fill(out[*got], self->at.index);
        self->at.index++;
        ++*got;
    }
    return *got > 0 ? LEAT_OK : LEAT_END;
}

static int timed_next(leat_reader *reader, leat_sample *const out[], int n,
                      int *got)
{
    timed_reader *self = (timed_reader *)reader;
    const timed_plan *plan = self->plan;
    timed_now += plan->next;
    if (plan->blocked > 0) {
        timed_now += plan->blocked;
        leat_reader_add_blocked(reader, plan->blocked);
    }
    if (plan->also)
        plan->also(reader);
    if (self->n == 0)
        return next_of_source(self, out, n, got);
    int i = (int)(self->calls++ % self->n);
    int status = leat_reader_pull(self->upstream[i], out, n, got);
    for (int k = 0; k < *got && self->n > 1; k++)
        if (out[k]->deferred)
            leat_sample_push_route(out[k], i, self->n);
    return status;
}

static int timed_materialize(leat_reader *reader, leat_sample *const out[],
                             int n, int *got)
{
    timed_reader *self = (timed_reader *)reader;
    timed_now += self->plan->materialize;
    if (self->n > 1)
        return leat_reader_materialize_routed(self->upstream, self->n, out, n,
                                              got);
    for (*got = 0; *got < n; ++*got)
        if (self->n == 0)
            fill(out[*got], 0);
    return LEAT_OK;
}

static int timed_read_at(leat_reader *reader, const leat_position at[],
                         leat_sample *const out[], int n, int *got)
{
    timed_reader *self = (timed_reader *)reader;
    timed_now += self->plan->read_at;
    if (self->n > 0)
        return leat_reader_pull_at(self->upstream[0], at, out, n, got);
    for (*got = 0; *got < n; ++*got)
        fill(out[*got], at[*got].index);
    return LEAT_OK;
}

static int timed_count(leat_reader *reader, int64_t *out)
{
    timed_reader *self = (timed_reader *)reader;
    *out = self->plan->samples;
    return self->n > 0 ? leat_reader_count(self->upstream[0], out) : LEAT_OK;
}

static void timed_advise(leat_reader *reader, const leat_position at[], int n)
{
    timed_reader *self = (timed_reader *)reader;
    timed_now += self->plan->advise;
    if (self->n > 0)
        leat_reader_advise(self->upstream[0], at, n);
}

static int timed_seek(leat_reader *reader, leat_position position,
                      leat_token *mark)
{
    timed_reader *self = (timed_reader *)reader;
    int status = LEAT_OK;
    timed_now += self->plan->seek;
    self->at = position;
    for (int i = 0; i < self->n && !status; i++)
        status = leat_reader_seek(self->upstream[i], position, mark);
    return status;
}

static int timed_skip(leat_reader *reader, int64_t n, int64_t *skipped)
{
    timed_reader *self = (timed_reader *)reader;
    timed_now += self->plan->skip;
    if (self->n > 0)
        return leat_reader_skip(self->upstream[0], n, skipped);
    int64_t left = self->plan->samples - self->at.index;
    *skipped = n < left ? n : left;
    self->at.index += *skipped;
    return *skipped > 0 ? LEAT_OK : LEAT_END;
}

static void timed_cancel(leat_reader *reader)
{
    timed_reader *self = (timed_reader *)reader;
    for (int i = 0; i < self->n; i++)
        leat_reader_cancel(self->upstream[i]);
}

static void timed_close(leat_reader *reader)
{
    timed_reader *self = (timed_reader *)reader;
    for (int i = 0; i < self->n; i++)
        leat_reader_close(self->upstream[i]);
    free(self);
}

static int64_t timed_memory(leat_reader *reader)
{
    return ((timed_reader *)reader)->plan->memory;
}

static leat_reader_ops make_ops(const timed_plan *plan, int n)
{
    leat_reader_ops ops = {
        .size = sizeof(ops),
        .name = plan->type.name,
        .fields = timed_fields,
        .next = timed_next,
        .seek = timed_seek,
        .cancel = timed_cancel,
        .close = timed_close,
        .materialize = plan->defers ? timed_materialize : NULL,
        .skip = timed_skip,
        .memory = plan->memory ? timed_memory : NULL,
    };
    if (n <= 1) {
        ops.count = timed_count;
        ops.read_at = timed_read_at;
        ops.advise = timed_advise;
    }
    return ops;
}

static int timed_open(const leat_open *open, leat_reader **out)
{
    timed_reader *self = calloc(1, sizeof(*self));
    if (!self)
        return LEAT_ENOMEM;
    /* The plan is the pipeline's object, and this test's own. */
    self->plan = (timed_plan *)(uintptr_t)leat_args_object(open->args);
    self->ops = make_ops(self->plan, open->nupstream);
    self->reader.ops = &self->ops;
    self->n = open->nupstream;
    for (int i = 0; i < self->n; i++)
        self->upstream[i] = open->upstream[i];
    if (open->depth == 1)
        self->plan->open = *open;
    *out = &self->reader;
    return LEAT_OK;
}

leat_pipeline *timed_pipeline(timed_plan *plan, leat_pipeline *const upstream[],
                              int n)
{
    leat_pipeline *pipeline;
    plan->type.size = sizeof(plan->type);
    plan->type.max_upstream = MOST_UPSTREAM;
    plan->type.open = timed_open;
    ck_assert_int_eq(leat_pipeline_create(&pipeline, &plan->type, NULL, plan,
                                          NULL, upstream, n),
                     LEAT_OK);
    return pipeline;
}

leat_pipeline *timed_over(timed_plan *plan, leat_pipeline *upstream)
{
    leat_pipeline *pipeline = timed_pipeline(plan, &upstream, 1);
    leat_pipeline_unref(upstream);
    return pipeline;
}
