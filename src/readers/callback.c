/*
 * Samples from the caller's own functions.
 *
 * DESIGN
 *
 * One caller at a time reads; only `cancelled` is also written by other
 * threads, and `readers` counts the open readers of a pipeline atomically. No
 * locks: the callback cancel has to wake a callback next that blocks.
 */
#include "base/error.h"
#include "base/fork.h"
#include "base/memory.h"
#include "base/shape.h"
#include "pipeline/reader_table.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define NAME_SIZE 64

/* Owned by the pipeline. */
typedef struct callback_feed {
    leat_callbacks callbacks;
    void *user;
    leat_field_spec spec[LEAT_MAX_FIELDS];
    char field_name[LEAT_MAX_FIELDS][NAME_SIZE];
    char offsets_of[LEAT_MAX_FIELDS][NAME_SIZE];
    char name[NAME_SIZE];
    /* Open now, in the low half; above it the generation of the process that
       they belong to: a child's parent keeps its own. */
    atomic_uint_fast64_t readers;
} callback_feed;

typedef struct callback_reader {
    leat_reader reader;
    callback_feed *feed; /* borrowed from the pipeline */
    void *pass;
    int64_t record;
    unsigned generation; /* of the process that opened it */
    leat_sample joined;  /* for fields that follow another reader's */
    atomic_bool cancelled;
} callback_reader;

static int callback_fields(leat_reader *reader, const leat_field_spec **out,
                           int *n)
{
    const callback_feed *feed = ((const callback_reader *)reader)->feed;
    *out = feed->spec;
    *n = feed->callbacks.nfields;
    return LEAT_OK;
}

static void begin_sample(const callback_reader *callback, leat_sample *sample)
{
    leat_sample_clear(sample);
    sample->stable = 0;
    sample->from.source = callback->feed->name;
    sample->from.record = callback->record;
}

static int cancelled(const callback_reader *callback)
{
    return leat_error(LEAT_ECANCELLED, "%s: reading was cancelled",
                      callback->feed->name);
}

/*
 * Checks the status that a callback returned. `lines` is the thread's count of
 * error lines before the call: a failure without a line of its own gets one, so
 * that an older one is not reported.
 */
static int check_status(const callback_feed *feed, const char *what,
                        unsigned lines, int status, int allowed)
{
    if (!status || status == allowed)
        return status;
    if (!leat__status_is_error(status))
        return leat_error(LEAT_EINVAL,
                          "%s: the callback %s returned %d, expected LEAT_OK%s "
                          "an error of leat/status.h",
                          feed->name, what, status,
                          allowed == LEAT_END ? ", LEAT_END or" : " or");
    if (leat__error_lines() != lines)
        return status;
    return leat_error(status, "%s: the callback %s gave no reason: %s",
                      feed->name, what, leat_status_text(status));
}

/* Whether the field has the bytes of its type and shape. */
static bool is_whole(const leat_field *field)
{
    size_t bytes;
    if (!leat__shape_bytes(field->ndim, field->shape,
                           leat_dtype_size(field->dtype), &bytes))
        return false;
    /* LEAT_BYTES has no size but its own. */
    if (field->dtype == LEAT_BYTES)
        bytes = field->bytes;
    return field->bytes >= bytes && (field->data || field->bytes == 0);
}

static int check_sample(const callback_reader *callback,
                        const leat_sample *sample)
{
    const callback_feed *feed = callback->feed;
    if (sample->nfields != feed->callbacks.nfields)
        return leat_error(LEAT_EINVAL,
                          "%s: sample %lld has %d fields, expected %d",
                          feed->name, (long long)callback->record,
                          sample->nfields, feed->callbacks.nfields);
    for (int i = 0; i < sample->nfields; i++) {
        if (!is_whole(&sample->field[i]))
            return leat_error(LEAT_EINVAL,
                              "%s: sample %lld: field \"%s\" has fewer bytes "
                              "than its type and shape need",
                              feed->name, (long long)callback->record,
                              feed->field_name[i]);
    }
    return LEAT_OK;
}

static int call_next(callback_reader *callback, leat_sample *sample)
{
    const leat_callbacks *callbacks = &callback->feed->callbacks;
    unsigned lines = leat__error_lines();
    int status = callbacks->next(callback->pass, sample);
    if (status == LEAT_EDATA && leat__error_lines() == lines)
        (void)leat_error(status,
                         "%s: record %lld is bad; the callback next "
                         "gave no reason",
                         callback->feed->name, (long long)sample->from.record);
    status = check_status(callback->feed, "next", lines, status, LEAT_END);
    /* Cancel wins over the status of the callback that it woke. */
    if (status && atomic_load(&callback->cancelled))
        status = cancelled(callback);
    if (!status)
        status = check_sample(callback, sample);
    /* The next call may overwrite what the views point to; with an error there
       is none but the key. */
    if (status)
        sample->nfields = 0;
    int kept = sample->stable ? LEAT_OK : leat_sample_own(sample);
    return kept ? kept : status;
}

/* The callback counts its fields from 0, so they are made apart. */
static int append_fields(callback_reader *callback, leat_sample *sample)
{
    leat_sample *joined = &callback->joined;
    begin_sample(callback, joined);
    int status = call_next(callback, joined);
    int moved = leat_sample_move(sample, joined);
    return moved ? moved : status;
}

static int callback_next(leat_reader *reader, leat_sample *const out[], int n,
                         int *got)
{
    callback_reader *callback = (callback_reader *)reader;
    int status;
    (void)n;
    if (atomic_load(&callback->cancelled))
        return cancelled(callback);
    if (out[0]->nfields > 0) {
        status = append_fields(callback, out[0]);
    } else {
        begin_sample(callback, out[0]);
        status = call_next(callback, out[0]);
    }
    callback->record += !status || status == LEAT_EDATA;
    *got = !status;
    return status;
}

static int callback_seek(leat_reader *reader, leat_position position,
                         leat_token *mark)
{
    callback_reader *callback = (callback_reader *)reader;
    (void)mark;
    if (position.index > 0)
        return leat_error(LEAT_EUNSUPPORTED,
                          "%s: callbacks read in order alone",
                          callback->feed->name);
    if (!callback->feed->callbacks.reset)
        return leat_error(LEAT_EUNSUPPORTED,
                          "%s: a second epoch needs the callback reset",
                          callback->feed->name);
    unsigned lines = leat__error_lines();
    int status =
        check_status(callback->feed, "reset", lines,
                     callback->feed->callbacks.reset(callback->pass), LEAT_OK);
    if (!status)
        callback->record = 0;
    return status;
}

static void callback_cancel(leat_reader *reader)
{
    callback_reader *callback = (callback_reader *)reader;
    atomic_store(&callback->cancelled, 1);
    if (callback->feed->callbacks.cancel)
        callback->feed->callbacks.cancel(callback->pass);
}

/* Adds a reader of this process. How many it has besides. */
static unsigned add_reader(callback_feed *feed, unsigned *generation)
{
    uint64_t before = atomic_load(&feed->readers), base;
    *generation = leat__fork_generation();
    do {
        base = before;
        if (before >> 32 != *generation)
            base = (uint64_t)*generation << 32;
    } while (!atomic_compare_exchange_weak(&feed->readers, &before, base + 1));
    return (unsigned)base;
}

/* A parent's reader is none of the child's. */
static void drop_reader(callback_feed *feed, unsigned generation)
{
    uint64_t before = atomic_load(&feed->readers);
    while (before >> 32 == generation &&
           !atomic_compare_exchange_weak(&feed->readers, &before, before - 1))
        ;
}

static void callback_close(leat_reader *reader)
{
    callback_reader *callback = (callback_reader *)reader;
    if (callback->feed->callbacks.close)
        callback->feed->callbacks.close(callback->pass);
    drop_reader(callback->feed, callback->generation);
    leat_sample_finish(&callback->joined);
    leat__free(callback);
}

static const leat_reader_ops callback_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "callback",
    .fields = callback_fields,
    .next = callback_next,
    .seek = callback_seek,
    .can_seek = leat__reader_no,
    .cancel = callback_cancel,
    .close = callback_close,
};

static int call_open(const callback_feed *feed, void **pass)
{
    unsigned lines = leat__error_lines();
    int status = feed->callbacks.open(feed->user, pass);
    return check_status(feed, "open", lines, status, LEAT_OK);
}

static int callback_open(const leat_open *open, leat_reader **out)
{
    callback_feed *feed = (void *)(uintptr_t)leat_args_object(open->args);
    const leat_callbacks *callbacks = &feed->callbacks;
    callback_reader *callback = leat__alloc_zero(1, sizeof(*callback));
    if (!callback)
        return LEAT_ENOMEM;
    callback->reader.ops = &callback_ops;
    callback->feed = feed;
    callback->pass = feed->user;
    int status = LEAT_OK;
    if (add_reader(feed, &callback->generation) > 0 && !callbacks->open)
        status = leat_error(LEAT_ESTATE,
                            "%s: a second reader needs the callback open",
                            feed->name);
    else if (callbacks->open)
        status = call_open(feed, &callback->pass);
    if (status) {
        drop_reader(feed, callback->generation);
        leat__free(callback);
        return status;
    }
    *out = &callback->reader;
    return LEAT_OK;
}

static const leat_reader_type callback_type = {
    .size = sizeof(leat_reader_type),
    .name = "callback",
    .may_block = 1,
    .open = callback_open,
};

static void copy_fields(callback_feed *feed, const leat_callbacks *callbacks)
{
    for (int i = 0; i < callbacks->nfields; i++) {
        const char *name = callbacks->fields[i].name;
        feed->spec[i] = callbacks->fields[i];
        snprintf(feed->field_name[i], NAME_SIZE, "%s", name ? name : "");
        feed->spec[i].name = feed->field_name[i];
        if (!feed->spec[i].offsets_of)
            continue;
        snprintf(feed->offsets_of[i], NAME_SIZE, "%s",
                 feed->spec[i].offsets_of);
        feed->spec[i].offsets_of = feed->offsets_of[i];
    }
    feed->callbacks.fields = feed->spec;
}

int leat_pipeline_callback(leat_pipeline **out, const leat_callbacks *callbacks,
                           void *user)
{
    if (!callbacks || callbacks->size < sizeof(*callbacks) ||
        !callbacks->next || !callbacks->fields)
        return leat_error(LEAT_EINVAL,
                          "callbacks lack their size, fields or next");
    if (callbacks->nfields < 1 || callbacks->nfields > LEAT_MAX_FIELDS)
        return leat_error(LEAT_EINVAL, "expected 1 to %d fields, got %d",
                          LEAT_MAX_FIELDS, callbacks->nfields);
    for (int i = 0; i < callbacks->nfields; i++)
        if (!leat_dtype_size(callbacks->fields[i].dtype))
            return leat_error(LEAT_EINVAL, "field %d: unknown dtype %d", i,
                              (int)callbacks->fields[i].dtype);
    callback_feed *feed = leat__alloc_zero(1, sizeof(*feed));
    if (!feed || leat__fork_watch()) {
        leat__free(feed);
        return LEAT_ENOMEM;
    }
    feed->callbacks = *callbacks;
    feed->user = user;
    snprintf(feed->name, sizeof(feed->name), "%s",
             callbacks->name ? callbacks->name : "callback");
    feed->callbacks.name = feed->name;
    copy_fields(feed, callbacks);
    return leat_pipeline_create(out, &callback_type, NULL, feed, leat__free,
                                NULL, 0);
}
