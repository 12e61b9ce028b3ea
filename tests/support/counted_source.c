#include "support/counted_source.h"

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIZE_MOST = 1 << 20 };

typedef struct counted_source {
    leat_reader reader;
    int64_t count, first, size, bad, every, fails, key, waits;
    int is_numbered, descriptor;
    pthread_mutex_t lock; /* of waiting */
    pthread_cond_t woken;
    int is_deferred, is_stable, counts;
    const char *name;
    leat_field_spec spec;
    int64_t *numbers; /* of stable samples */
    leat_position next;
    atomic_int cancelled;
} counted_source;

static atomic_int open_now, most_open, made;

int counted_source_open(void)
{
    return atomic_load(&open_now);
}

int counted_source_most_open(void)
{
    return atomic_load(&most_open);
}

int counted_source_made(void)
{
    return atomic_load(&made);
}

void counted_source_reset(void)
{
    atomic_store(&most_open, 0);
}

static int source_fields(leat_reader *reader, const leat_field_spec **out,
                         int *n)
{
    *out = &((counted_source *)reader)->spec;
    *n = 1;
    return LEAT_OK;
}

static int set_key(const counted_source *self, int64_t index,
                   leat_sample *sample)
{
    if (self->key < 0)
        return LEAT_OK;
    char *key = leat_sample_take(sample, 24);
    if (!key)
        return LEAT_ENOMEM;
    sample->stable = 0;
    sample->from.key = key;
    sample->from.key_size =
        (size_t)snprintf(key, 24, "%lld", (long long)(self->key + index));
    return LEAT_OK;
}

static int set_name(int64_t index, leat_sample *sample)
{
    char *name = leat_sample_take(sample, 24);
    if (!name)
        return LEAT_ENOMEM;
    sample->stable = 0;
    const int64_t size = snprintf(name, 24, "%lld", (long long)index);
    return leat_sample_set(sample, sample->nfields, LEAT_BYTES, 1, &size, name);
}

static int fill(const counted_source *self, leat_position at,
                leat_sample *sample)
{
    sample->from.source = self->name;
    sample->from.record = at.index;
    int status = set_key(self, at.index, sample);
    if (status)
        return status;
    if (self->bad >= 0 && at.index % self->every == self->bad)
        return leat_error(LEAT_EDATA, "%s: record %lld is bad", self->name,
                          (long long)at.index);
    if (at.index == self->fails)
        return leat_error(LEAT_EIO, "%s: record %lld cannot be read",
                          self->name, (long long)at.index);
    if (self->counts)
        atomic_fetch_add(&made, 1);
    if (self->is_numbered)
        return set_name(at.index, sample);
    int64_t *numbers;
    if (self->is_stable) {
        numbers = self->numbers + at.index * self->size;
    } else {
        sample->stable = 0;
        numbers =
            leat_sample_take(sample, (size_t)self->size * sizeof(int64_t));
        if (!numbers)
            return LEAT_ENOMEM;
        memset(numbers, 0, (size_t)self->size * sizeof(int64_t));
        numbers[0] = self->first + at.index;
        numbers[1] = at.epoch;
    }
    return leat_sample_set(sample, sample->nfields, LEAT_INT64, 1, &self->size,
                           numbers);
}

static int check_running(const counted_source *self)
{
    return atomic_load(&self->cancelled)
               ? leat_error(LEAT_ECANCELLED, "%s: cancelled", self->name)
               : LEAT_OK;
}

static int source_read_at(leat_reader *reader, const leat_position at[],
                          leat_sample *const out[], int n, int *got)
{
    counted_source *self = (counted_source *)reader;
    int status = check_running(self);
    while (*got < n && !status) {
        status = fill(self, at[*got], out[*got]);
        *got += !status;
    }
    return status;
}

static int wait_for_cancel(counted_source *self)
{
    pthread_mutex_lock(&self->lock);
    while (!atomic_load(&self->cancelled))
        pthread_cond_wait(&self->woken, &self->lock);
    pthread_mutex_unlock(&self->lock);
    return check_running(self);
}

static int source_next(leat_reader *reader, leat_sample *const out[], int n,
                       int *got)
{
    counted_source *self = (counted_source *)reader;
    int status = check_running(self);
    while (*got < n && !status) {
        if (self->next.index >= self->count)
            return LEAT_END;
        if (self->next.index == self->waits)
            return wait_for_cancel(self);
        if (self->is_deferred) {
            out[*got]->deferred = 1;
            out[*got]->locator.record = self->next.index;
            out[*got]->locator.where = (uint64_t)self->next.epoch;
        } else {
            status = fill(self, self->next, out[*got]);
        }
        *got += !status;
        self->next.index += !status || status == LEAT_EDATA;
    }
    return status;
}

static int source_materialize(leat_reader *reader, leat_sample *const out[],
                              int n, int *got)
{
    counted_source *self = (counted_source *)reader;
    int status = check_running(self);
    while (*got < n && !status) {
        const leat_position at = {(int64_t)out[*got]->locator.where,
                                  out[*got]->locator.record};
        status = fill(self, at, out[*got]);
        *got += !status;
    }
    return status;
}

static int source_seek(leat_reader *reader, leat_position position,
                       leat_token *mark)
{
    counted_source *self = (counted_source *)reader;
    (void)mark;
    if (position.index > self->count)
        return leat_error(LEAT_EINVAL, "%s: sample %lld is beyond the end",
                          self->name, (long long)position.index);
    self->next = position;
    return LEAT_OK;
}

static void source_cancel(leat_reader *reader)
{
    counted_source *self = (counted_source *)reader;
    pthread_mutex_lock(&self->lock);
    atomic_store(&self->cancelled, 1);
    pthread_cond_broadcast(&self->woken);
    pthread_mutex_unlock(&self->lock);
}

static void source_close(leat_reader *reader)
{
    counted_source *self = (counted_source *)reader;
    /* A view that is used after this is seen by the sanitizers, and else. */
    if (self->numbers)
        memset(self->numbers, 0xee,
               (size_t)(self->count * self->size) * sizeof(int64_t));
    free(self->numbers);
    if (self->descriptor >= 0)
        close(self->descriptor);
    pthread_cond_destroy(&self->woken);
    pthread_mutex_destroy(&self->lock);
    free((void *)(uintptr_t)self->name);
    free(self);
    atomic_fetch_sub(&open_now, 1);
}

static int source_count(leat_reader *reader, int64_t *out)
{
    *out = ((counted_source *)reader)->count;
    return LEAT_OK;
}

static int source_save(leat_reader *reader, leat_token *token)
{
    int64_t count = ((counted_source *)reader)->count;
    return leat_token_put(token, &count, sizeof(count));
}

static int source_restore(leat_reader *reader, leat_token *token)
{
    int64_t count;
    int status = leat_token_get(token, &count, sizeof(count));
    if (!status && count != ((counted_source *)reader)->count)
        status = leat_error(LEAT_EINVAL, "the token is of another data set");
    ((counted_source *)reader)->next = (leat_position){0, 0};
    return status;
}

static int source_may_block(leat_reader *reader)
{
    return ((counted_source *)reader)->waits >= 0;
}

#define SOURCE_OPS                                                             \
    .size = sizeof(leat_reader_ops), .name = "counted",                        \
    .fields = source_fields, .next = source_next, .seek = source_seek,         \
    .cancel = source_cancel, .close = source_close, .save = source_save,       \
    .restore = source_restore, .may_block = source_may_block

static const leat_reader_ops source_ops[] = {
    {SOURCE_OPS, .count = source_count, .read_at = source_read_at},
    {SOURCE_OPS},
    {SOURCE_OPS, .materialize = source_materialize},
};

static int hold_descriptor(counted_source *self)
{
    self->descriptor = dup(STDERR_FILENO);
    if (self->descriptor >= 0)
        return LEAT_OK;
    pthread_cond_destroy(&self->woken);
    pthread_mutex_destroy(&self->lock);
    free((void *)(uintptr_t)self->name);
    free(self->numbers);
    free(self);
    return leat_error(LEAT_EIO, "counted: too many files are open");
}

static void count_open(void)
{
    int now = atomic_fetch_add(&open_now, 1) + 1;
    if (now > atomic_load(&most_open))
        atomic_store(&most_open, now);
}

static int source_open(const leat_open *open, leat_reader **out)
{
    const leat_args *args = open->args;
    counted_source *self = calloc(1, sizeof(*self));
    if (!self)
        return leat_error(LEAT_ENOMEM, "no memory for a source");
    int form = (int)leat_args_number(args, "form");
    self->reader.ops = &source_ops[form];
    self->is_deferred = form == 2;
    self->count = leat_args_number(args, "count");
    self->first = leat_args_number(args, "first");
    self->size = leat_args_number(args, "size");
    self->bad = leat_args_number(args, "bad");
    self->every = leat_args_number(args, "every");
    self->fails = leat_args_number(args, "fails");
    self->key = leat_args_number(args, "key");
    self->waits = leat_args_number(args, "waits");
    self->counts = (int)leat_args_number(args, "counts");
    self->is_stable = (int)leat_args_number(args, "stable");
    /* Its own: after it is closed, the name is not to be used. */
    self->name = strdup(leat_args_get(args, "name"));
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->woken, NULL);
    self->descriptor = -1;
    self->spec = (leat_field_spec){.name = leat_args_get(args, "field"),
                                   .dtype = LEAT_INT64,
                                   .ndim = 1,
                                   .shape = {self->size}};
    if (self->is_stable) {
        self->numbers =
            calloc((size_t)(self->count * self->size + 1), sizeof(int64_t));
        for (int64_t i = 0; i < self->count; i++)
            self->numbers[i * self->size] = self->first + i;
    }
    int status =
        leat_args_number(args, "holds") > 0 ? hold_descriptor(self) : LEAT_OK;
    if (status)
        return status;
    *out = &self->reader;
    count_open();
    return LEAT_OK;
}

static int numbered_open(const leat_open *open, leat_reader **out)
{
    int status = source_open(open, out);
    if (status)
        return status;
    counted_source *self = (counted_source *)*out;
    self->is_numbered = 1;
    self->spec = (leat_field_spec){
        .name = "name", .dtype = LEAT_BYTES, .ndim = 1, .shape = {-1}};
    return LEAT_OK;
}

#define NUMBER(text, value)                                                    \
    {                                                                          \
        .name = text, .kind = LEAT_ARGUMENT_NUMBER, .initial = (value),        \
        .min = -1, .max = INT64_MAX                                            \
    }

static const leat_argument source_arguments[] = {
    {.name = "count",
     .kind = LEAT_ARGUMENT_NUMBER,
     .positional = 1,
     .required = 1,
     .max = INT32_MAX},
    {.name = "field", .initial = "x"},
    NUMBER("first", "0"),
    {.name = "size",
     .kind = LEAT_ARGUMENT_NUMBER,
     .initial = "2",
     .min = 2,
     .max = SIZE_MOST},
    {.name = "form",
     .kind = LEAT_ARGUMENT_WORD,
     .initial = "index",
     .words = "index|stream|deferred"},
    NUMBER("stable", "0"),
    NUMBER("bad", "-1"),
    {.name = "every",
     .kind = LEAT_ARGUMENT_NUMBER,
     .initial = "10",
     .min = 1,
     .max = INT64_MAX},
    NUMBER("fails", "-1"),
    NUMBER("key", "-1"),
    NUMBER("waits", "-1"),
    NUMBER("holds", "0"),
    NUMBER("counts", "0"),
    {.name = "name", .initial = "counted"},
    {0},
};

static const leat_reader_type source_type = {
    .size = sizeof(leat_reader_type),
    .name = "counted",
    .arguments = source_arguments,
    .argument_size = sizeof(leat_argument),
    .open = source_open,
};

static const leat_reader_type numbered_type = {
    .size = sizeof(leat_reader_type),
    .name = "numbered",
    .arguments = source_arguments,
    .argument_size = sizeof(leat_argument),
    .open = numbered_open,
};

static void register_once(void)
{
    if (leat_reader_register(&source_type) ||
        leat_reader_register(&numbered_type))
        abort();
}

void counted_source_register(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_once);
}

static int64_t element(const leat_sample *sample, int i, int at)
{
    int64_t value;
    /* Asserts of Check that hold cost a system call each, unlike this. */
    if (i >= sample->nfields || sample->field[i].dtype != LEAT_INT64)
        ck_abort_msg("field %d of %d is no number", i, sample->nfields);
    memcpy(&value, (const char *)sample->field[i].data + at * 8, sizeof(value));
    return value;
}

int64_t counted_source_number(const leat_sample *sample, int i)
{
    return element(sample, i, 0);
}

int64_t counted_source_epoch(const leat_sample *sample, int i)
{
    return element(sample, i, 1);
}

leat_pipeline *counted_source_parse(const char *text)
{
    leat_pipeline *pipeline;
    counted_source_register();
    int status = leat_pipeline_parse(&pipeline, text);
    ck_assert_msg(status == LEAT_OK, "%s: %s", text, leat_last_error());
    return pipeline;
}

leat_reader *counted_source_reader(const char *text)
{
    leat_reader *reader;
    leat_pipeline *pipeline = counted_source_parse(text);
    int status = leat_pipeline_open(pipeline, &reader);
    ck_assert_msg(status == LEAT_OK, "%s: %s", text, leat_last_error());
    leat_pipeline_unref(pipeline);
    return reader;
}

void counted_source_refused(const char *text, int status, const char *part)
{
    leat_reader *reader;
    leat_pipeline *pipeline;
    counted_source_register();
    int got = leat_pipeline_parse(&pipeline, text);
    if (!got) {
        got = leat_pipeline_open(pipeline, &reader);
        leat_pipeline_unref(pipeline);
    }
    ck_assert_msg(got == status && strstr(leat_last_error(), part),
                  "%s: %d, %s, expected %d, %s", text, got, leat_last_error(),
                  status, part);
}
