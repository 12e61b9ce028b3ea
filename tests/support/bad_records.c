#include "support/bad_records.h"

#include <check.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PIXELS (BAD_RECORDS_CHANNELS * BAD_RECORDS_HEIGHT * BAD_RECORDS_WIDTH)
#define TAIL_MAX (1 << 20)

static unsigned char pixels[BAD_RECORDS_MAX * PIXELS + TAIL_MAX];
static int32_t labels[BAD_RECORDS_MAX];

typedef struct planted_reader {
    leat_reader reader;
    const bad_records *planted;
    int64_t next;
    atomic_int cancelled;
    atomic_int probes;
} planted_reader;

static void make_pixels(void)
{
    for (int i = 0; i < BAD_RECORDS_MAX; i++) {
        labels[i] = 1000 + i;
        for (int k = 0; k < PIXELS; k++)
            pixels[i * PIXELS + k] = (unsigned char)(37 * i + 3 * k + 1);
    }
}

void bad_records_fill(const bad_records *planted, int record,
                      leat_sample *sample)
{
    bad_records_kind kind = planted->kind[record];
    leat_field *image = &sample->field[0];
    sample->nfields = kind == BAD_RECORDS_UNLABELED ? 1 : 2;
    sample->stable = 1;
    *image = (leat_field){
        .dtype = kind == BAD_RECORDS_SHAPELESS ? LEAT_INT64 : LEAT_UINT8,
        .ndim = 3,
        .shape = {BAD_RECORDS_CHANNELS,
                  kind == BAD_RECORDS_SMALL ? 2 : BAD_RECORDS_HEIGHT,
                  BAD_RECORDS_WIDTH},
        .data = pixels + record * PIXELS,
        .bytes = kind == BAD_RECORDS_SHORT ? PIXELS - 1
                                           : (size_t)(PIXELS + planted->tail),
    };
    sample->field[1] =
        (leat_field){.dtype = LEAT_INT32, .data = &labels[record], .bytes = 4};
}

static int fill(const planted_reader *self, int64_t index, leat_sample *sample)
{
    const bad_records *planted = self->planted;
    sample->from.source = "planted";
    sample->from.record = index;
    sample->from.key = NULL;
    sample->from.key_size = 0;
    if (planted->kind[index] == BAD_RECORDS_BROKEN)
        return leat_error(LEAT_EIO, "planted: storage fails at record %d",
                          (int)index);
    if (planted->kind[index] == BAD_RECORDS_UNREADABLE) {
        /* Nobody is to look at what it left, but where next may be given one
           buffer for several records. */
        if (planted->way != BAD_RECORDS_IN_ORDER)
            sample->nfields = INT_MAX;
        return leat_error(LEAT_EDATA, "planted: record %d cannot be read",
                          (int)index);
    }
    bad_records_fill(planted, (int)index, sample);
    if (planted->way != BAD_RECORDS_IN_ORDER)
        return LEAT_OK;
    /* What a stream does: the bytes last until the buffer is filled again. */
    size_t bytes = sample->field[0].bytes;
    char *copy = leat_sample_take(sample, bytes + 8);
    if (!copy)
        return LEAT_ENOMEM;
    memcpy(copy + 8, sample->field[0].data, bytes < PIXELS ? bytes : PIXELS);
    memcpy(copy, sample->field[1].data, 4);
    sample->stable = 0;
    sample->field[0].data = copy + 8;
    sample->field[1].data = copy;
    return LEAT_OK;
}

static int check_running(const planted_reader *self)
{
    return atomic_load(&self->cancelled)
               ? leat_error(LEAT_ECANCELLED, "planted: cancelled")
               : LEAT_OK;
}

static int planted_fields(leat_reader *reader, const leat_field_spec **out,
                          int *n)
{
    static const leat_field_spec fields[] = {
        {.name = "data", .dtype = LEAT_UINT8, .ndim = 3, .shape = {-1, -1, -1}},
        {.name = "label", .dtype = LEAT_INT32},
    };
    (void)reader;
    *out = fields;
    *n = 2;
    return LEAT_OK;
}

static int planted_next(leat_reader *reader, leat_sample *const out[], int n,
                        int *got)
{
    planted_reader *self = (planted_reader *)reader;
    int status = check_running(self);
    while (!status && *got < n && self->next < self->planted->count) {
        status = fill(self, self->next, out[*got]);
        self->next += !status || status == LEAT_EDATA;
        *got += !status;
    }
    return !status && *got == 0 ? LEAT_END : status;
}

static int planted_seek(leat_reader *reader, leat_position position,
                        leat_token *mark)
{
    planted_reader *self = (planted_reader *)reader;
    (void)mark;
    if (self->planted->single_pass)
        return leat_error(LEAT_EUNSUPPORTED, "planted: one pass is all");
    if (position.index > 0 && self->planted->way == BAD_RECORDS_IN_ORDER)
        return leat_error(LEAT_EUNSUPPORTED, "planted: in order alone");
    self->next = position.index;
    return LEAT_OK;
}

static void planted_cancel(leat_reader *reader)
{
    atomic_store(&((planted_reader *)reader)->cancelled, 1);
}

static void planted_close(leat_reader *reader)
{
    free(reader);
}

static int planted_count(leat_reader *reader, int64_t *out)
{
    *out = ((const planted_reader *)reader)->planted->count;
    return LEAT_OK;
}

static atomic_int reads;
static _Thread_local int reads_here;

int bad_records_reads(void)
{
    return atomic_load(&reads);
}

int bad_records_reads_here(void)
{
    return reads_here;
}

static _Thread_local int64_t epoch_here;

int64_t bad_records_epoch_here(void)
{
    return epoch_here;
}

static int planted_read_at(leat_reader *reader, const leat_position at[],
                           leat_sample *const out[], int n, int *got)
{
    const planted_reader *self = (const planted_reader *)reader;
    int status = check_running(self);
    reads_here += n;
    atomic_fetch_add(&reads, n);
    for (; *got < n && status == LEAT_OK; *got += status == LEAT_OK) {
        epoch_here = at[*got].epoch;
        status = fill(self, at[*got].index, out[*got]);
    }
    return status;
}

static int planted_save(leat_reader *reader, leat_token *token)
{
    (void)reader;
    return leat_token_put(token, "planted", 8);
}

static int planted_restore(leat_reader *reader, leat_token *token)
{
    char name[8];
    ((planted_reader *)reader)->next = 0;
    return leat_token_get(token, name, sizeof(name));
}

static int planted_defer(leat_reader *reader, leat_sample *const out[], int n,
                         int *got)
{
    planted_reader *self = (planted_reader *)reader;
    int status = check_running(self);
    if (status)
        return status;
    for (; *got < n && self->next < self->planted->count; ++*got) {
        if (self->planted->mixed && self->next % 2) {
            status = fill(self, self->next, out[*got]);
            self->next += !status || status == LEAT_EDATA;
            if (status)
                return status;
            continue;
        }
        out[*got]->locator.record = self->next++;
        out[*got]->deferred = 1;
    }
    return *got > 0 ? LEAT_OK : LEAT_END;
}

static int planted_materialize(leat_reader *reader, leat_sample *const out[],
                               int n, int *got)
{
    const planted_reader *self = (const planted_reader *)reader;
    int status = check_running(self);
    for (; *got < n && status == LEAT_OK; *got += status == LEAT_OK)
        status = fill(self, out[*got]->locator.record, out[*got]);
    return status;
}

#define IN_ORDER                                                               \
    .size = sizeof(leat_reader_ops), .name = "planted",                        \
    .fields = planted_fields, .seek = planted_seek, .cancel = planted_cancel,  \
    .close = planted_close
#define GIVES .next = planted_next
#define DEFERS .next = planted_defer, .materialize = planted_materialize
#define RANDOM_ACCESS                                                          \
    .count = planted_count, .read_at = planted_read_at, .save = planted_save,  \
    .restore = planted_restore

/* Storage that is cold at first, then warm, then cold again. */
static int planted_may_block(leat_reader *reader)
{
    planted_reader *self = (planted_reader *)reader;
    int probes = atomic_fetch_add(&self->probes, 1);
    const struct timespec takes = {0, self->planted->probe_ms * 1000000L};
    if (self->planted->probed)
        atomic_fetch_add(self->planted->probed, 1);
    if (takes.tv_nsec > 0)
        nanosleep(&takes, NULL);
    return probes / self->planted->flips % 2 == 0;
}

#define FLIPS .may_block = planted_may_block

static const leat_reader_ops ways[BAD_RECORDS_WAYS] = {
    {IN_ORDER, GIVES, RANDOM_ACCESS},
    {IN_ORDER, DEFERS, RANDOM_ACCESS},
    {IN_ORDER, GIVES},
};

static const leat_reader_ops flipping_ways[BAD_RECORDS_WAYS] = {
    {IN_ORDER, GIVES, RANDOM_ACCESS, FLIPS},
    {IN_ORDER, DEFERS, RANDOM_ACCESS, FLIPS},
    {IN_ORDER, GIVES, FLIPS},
};

static int planted_open(const leat_open *open, leat_reader **out)
{
    planted_reader *self = calloc(1, sizeof(*self));
    if (!self)
        return leat_error(LEAT_ENOMEM, "no memory for a planted reader");
    self->planted = leat_args_object(open->args);
    self->reader.ops = self->planted->flips > 0
                           ? &flipping_ways[self->planted->way]
                           : &ways[self->planted->way];
    *out = &self->reader;
    return LEAT_OK;
}

static const leat_reader_type planted_type = {
    .size = sizeof(leat_reader_type),
    .name = "planted",
    .open = planted_open,
};

static const leat_reader_type blocking_type = {
    .size = sizeof(leat_reader_type),
    .name = "planted",
    .open = planted_open,
    .may_block = 1,
};

leat_pipeline *bad_records_pipeline(const bad_records *planted)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_pixels);
    const leat_reader_type *type =
        planted->may_block ? &blocking_type : &planted_type;
    leat_pipeline *pipeline;
    ck_assert_int_eq(leat_pipeline_create(&pipeline, type, NULL,
                                          (void *)(uintptr_t)planted, NULL,
                                          NULL, 0),
                     LEAT_OK);
    return pipeline;
}
