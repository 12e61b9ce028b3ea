#include "support/plain_source.h"

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum plain_kind {
    PLAIN_RANDOM,
    PLAIN_COUNTED,
    PLAIN_SEEKABLE,
    PLAIN_SEQUENTIAL,
    PLAIN_MARKED,
    PLAIN_ONCE,
    PLAIN_KINDS
} plain_kind;

typedef struct plain_reader {
    leat_reader reader;
    plain_kind kind;
    int64_t first, records;
    int has_bad, defers;
    leat_field_spec spec[2];
    int64_t next;
    int has_begun; /* ONCE */
    atomic_int cancelled;
} plain_reader;

static atomic_long reads;

long plain_source_reads(void)
{
    return atomic_load(&reads);
}

static int check_running(plain_reader *self)
{
    return atomic_load(&self->cancelled)
               ? leat_error(LEAT_ECANCELLED, "plain: cancelled")
               : LEAT_OK;
}

static int plain_fields(leat_reader *reader, const leat_field_spec **out,
                        int *n)
{
    *out = ((plain_reader *)reader)->spec;
    *n = 2;
    return LEAT_OK;
}

/* Appends the fields of record `index`, or names it as a bad one. */
static int fill(const plain_reader *self, int64_t index, leat_sample *sample)
{
    int number = (int)(self->first + index);
    int n = sample->nfields;
    int64_t width = self->spec[0].shape[0];
    char key[16];
    int size = snprintf(key, sizeof(key), "%d", number);
    sample->from.source = "plain";
    sample->from.record = number;
    sample->stable = 0;
    int64_t number_value = 1000 + number;
    int32_t narrow = (int32_t)number_value;
    int is_wide = self->spec[1].dtype == LEAT_INT64;
    size_t bytes = is_wide ? 8 : 4;
    if (self->has_bad && number % 10 == 3)
        return leat_error(LEAT_EDATA, "plain: record %d is bad", number);
    char *taken = leat_sample_take(sample, (size_t)width + 32);
    if (!taken)
        return LEAT_ENOMEM;
    memcpy(taken, is_wide ? (void *)&number_value : (void *)&narrow, bytes);
    memcpy(taken + 8, key, sizeof(key));
    memset(taken + 32, number, (size_t)width);
    sample->from.key = taken + 8;
    sample->from.key_size = (size_t)size;
    int status = leat_sample_set(sample, n, LEAT_UINT8, 1, &width, taken + 32);
    return status ? status
                  : leat_sample_set(sample, n + 1, self->spec[1].dtype, 0, NULL,
                                    taken);
}

static int plain_next(leat_reader *reader, leat_sample *const out[], int n,
                      int *got)
{
    plain_reader *self = (plain_reader *)reader;
    int status = check_running(self);
    self->has_begun = 1;
    while (!status && *got < n) {
        if (self->next == self->records)
            return LEAT_END;
        atomic_fetch_add(&reads, 1);
        if (self->defers) {
            out[*got]->deferred = 1;
            out[*got]->locator.record = self->next;
        } else {
            status = fill(self, self->next, out[*got]);
        }
        if (status != LEAT_ENOMEM)
            self->next++;
        *got += !status;
    }
    return status;
}

static int plain_materialize(leat_reader *reader, leat_sample *const out[],
                             int n, int *got)
{
    const plain_reader *self = (const plain_reader *)reader;
    int status = check_running((plain_reader *)reader);
    while (!status && *got < n) {
        status = fill(self, out[*got]->locator.record, out[*got]);
        *got += !status;
    }
    return status;
}

static int plain_read_at(leat_reader *reader, const leat_position at[],
                         leat_sample *const out[], int n, int *got)
{
    const plain_reader *self = (const plain_reader *)reader;
    int status = check_running((plain_reader *)reader);
    while (!status && *got < n) {
        atomic_fetch_add(&reads, 1);
        status = fill(self, at[*got].index, out[*got]);
        *got += !status;
    }
    return status;
}

static int plain_skip(leat_reader *reader, int64_t n, int64_t *skipped)
{
    plain_reader *self = (plain_reader *)reader;
    int64_t left = self->records - self->next;
    int status = check_running(self);
    if (status)
        return status;
    *skipped = n < left ? n : left;
    self->next += *skipped;
    return *skipped == n ? LEAT_OK : LEAT_END;
}

static int plain_seek(leat_reader *reader, leat_position position,
                      leat_token *mark)
{
    plain_reader *self = (plain_reader *)reader;
    plain_kind kind = self->kind;
    if (mark) {
        int status = leat_token_get(mark, &self->next, sizeof(self->next));
        if (!status && (self->next < 0 || self->next > self->records))
            status = leat_error(LEAT_EINVAL, "plain: no mark");
        return status;
    }
    if (kind == PLAIN_ONCE &&
        (position.epoch || position.index || self->has_begun))
        return leat_error(LEAT_EUNSUPPORTED, "plain: a single pass");
    if (kind >= PLAIN_SEQUENTIAL && position.index > 0)
        return leat_error(LEAT_EUNSUPPORTED, "plain: no index");
    if (position.index > self->records)
        return leat_error(LEAT_EINVAL, "plain: beyond the end");
    self->next = position.index;
    return LEAT_OK;
}

static int plain_mark(leat_reader *reader, leat_token *token)
{
    const plain_reader *self = (const plain_reader *)reader;
    return leat_token_put(token, &self->next, sizeof(self->next));
}

static int plain_count(leat_reader *reader, int64_t *out)
{
    *out = ((plain_reader *)reader)->records;
    return LEAT_OK;
}

static int can_seek(leat_reader *reader)
{
    return ((plain_reader *)reader)->kind < PLAIN_SEQUENTIAL;
}

static int plain_save(leat_reader *reader, leat_token *token)
{
    int64_t count;
    plain_count(reader, &count);
    return leat_token_put(token, &count, sizeof(count));
}

static int plain_restore(leat_reader *reader, leat_token *token)
{
    plain_reader *self = (plain_reader *)reader;
    int64_t count;
    int status = leat_token_get(token, &count, sizeof(count));
    if (!status && count != self->records)
        status = leat_error(LEAT_EINVAL, "plain: another data set");
    self->next = 0;
    return status;
}

static void plain_cancel(leat_reader *reader)
{
    atomic_store(&((plain_reader *)reader)->cancelled, 1);
}

static void plain_close(leat_reader *reader)
{
    free(reader);
}

#define PLAIN_OPS                                                              \
    .size = sizeof(leat_reader_ops), .name = "plain", .fields = plain_fields,  \
    .next = plain_next, .seek = plain_seek, .cancel = plain_cancel,            \
    .close = plain_close, .materialize = plain_materialize,                    \
    .skip = plain_skip, .can_seek = can_seek, .save = plain_save,              \
    .restore = plain_restore

static const leat_reader_ops ops[PLAIN_KINDS] = {
    [PLAIN_RANDOM] = {PLAIN_OPS, .count = plain_count,
                      .read_at = plain_read_at},
    [PLAIN_COUNTED] = {PLAIN_OPS, .count = plain_count},
    [PLAIN_SEEKABLE] = {PLAIN_OPS},
    [PLAIN_SEQUENTIAL] = {PLAIN_OPS},
    [PLAIN_MARKED] = {PLAIN_OPS, .mark = plain_mark},
    [PLAIN_ONCE] = {PLAIN_OPS},
};

static int plain_open(const leat_open *open, leat_reader **out)
{
    const leat_args *args = open->args;
    plain_reader *self = calloc(1, sizeof(*self));
    if (!self)
        return LEAT_ENOMEM;
    self->kind = (plain_kind)leat_args_number(args, "kind");
    self->reader.ops = &ops[self->kind];
    self->first = leat_args_number(args, "first");
    self->records = leat_args_number(args, "records");
    self->has_bad = (int)leat_args_number(args, "bad");
    self->defers = (int)leat_args_number(args, "defers");
    self->spec[0] =
        (leat_field_spec){.name = "data",
                          .dtype = LEAT_UINT8,
                          .ndim = 1,
                          .shape = {leat_args_number(args, "wide")}};
    self->spec[1] = (leat_field_spec){
        .name = leat_args_get(args, "name"),
        .dtype = leat_args_number(args, "long") ? LEAT_INT64 : LEAT_INT32};
    *out = &self->reader;
    return LEAT_OK;
}

#define NUMBER(text, most, value)                                              \
    {                                                                          \
        .name = (text), .kind = LEAT_ARGUMENT_NUMBER, .max = (most),           \
        .initial = (value)                                                     \
    }

static const leat_argument plain_arguments[] = {
    {.name = "kind",
     .kind = LEAT_ARGUMENT_WORD,
     .positional = 1,
     .required = 1,
     .words = "random|counted|seekable|sequential|marked|once"},
    {.name = "records",
     .kind = LEAT_ARGUMENT_NUMBER,
     .positional = 1,
     .required = 1,
     .max = INT64_MAX},
    NUMBER("first", 1000000, "0"),
    NUMBER("bad", 1, "0"),
    NUMBER("defers", 1, "0"),
    NUMBER("long", 1, "0"),
    NUMBER("wide", 1 << 20, "3"),
    {.name = "name", .kind = LEAT_ARGUMENT_TEXT, .initial = "label"},
    {0},
};

static const leat_reader_type plain_type = {
    .size = sizeof(leat_reader_type),
    .name = "plain",
    .arguments = plain_arguments,
    .argument_size = sizeof(leat_argument),
    .open = plain_open,
};

static void register_once(void)
{
    ck_assert_int_eq(leat_reader_register(&plain_type), LEAT_OK);
}

void plain_source_register(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_once);
}
