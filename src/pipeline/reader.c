/* The public functions of readers: they check arguments and call the table. */
#include "base/error.h"
#include "base/thread.h"
#include "pipeline/pipeline.h"

#include <stdbool.h>
#include <stddef.h>

/* Tables of an older header are shorter and lack later operations. */
#define HAS(reader, operation)                                                 \
    ((reader)->ops->size >= offsetof(leat_reader_ops, operation) +             \
                                sizeof((reader)->ops->operation) &&            \
     (reader)->ops->operation)

static int unsupported(const leat_reader *reader, const char *what)
{
    return leat_error(LEAT_EUNSUPPORTED, "the reader \"%s\" cannot %s",
                      reader->ops->name, what);
}

/*
 * Checks the status that an operation returned. `lines` is the thread's count
 * of error lines before the call: a failure without a line of its own gets one,
 * so that an older one is not reported.
 */
static int check_status(const leat_reader *reader, const char *operation,
                        unsigned lines, int status)
{
    if (!status || status == LEAT_END)
        return status;
    if (!leat__status_is_error(status))
        return leat_error(
            LEAT_ESTATE,
            "the reader \"%s\": %s returned %d, expected LEAT_OK, "
            "LEAT_END or an error of leat/status.h",
            reader->ops->name, operation, status);
    if (leat__error_lines() == lines)
        return leat_error(status, "the reader \"%s\": %s", reader->ops->name,
                          leat_status_text(status));
    return status;
}

/* The error of a bad record without a line; `from` names it. */
static int name_record(const leat_reader *reader, const leat_provenance *from)
{
    return leat_error(
        LEAT_EDATA, "the reader \"%s\": record %lld is bad; it gave no reason",
        reader->ops->name, (long long)from->record);
}

/* Whether a count of fields is out of bounds, which would lead out of the
 * sample. */
static bool has_bad_sample(leat_sample *const out[], int n)
{
    unsigned bad = 0;
    for (int i = 0; i < n; i++)
        bad |= (unsigned)out[i]->nfields - 1 >= LEAT_MAX_FIELDS;
    return (int)bad;
}

static int bad_sample(const leat_reader *reader, leat_sample *const out[])
{
    int i = 0;
    while ((unsigned)out[i]->nfields - 1 < LEAT_MAX_FIELDS)
        i++;
    return leat_error(LEAT_ESTATE,
                      "the reader \"%s\" gave a sample of %d fields "
                      "(nfields), expected 1 to %d",
                      reader->ops->name, out[i]->nfields, LEAT_MAX_FIELDS);
}

/* Checks the result of an operation that returns up to `n` samples or locators.
 */
static int check_result(const leat_reader *reader, const char *operation,
                        unsigned lines, int status, int n, int *got)
{
    int reported = *got;
    if (status)
        *got = 0;
    if (!status && reported >= 1 && reported <= n)
        return LEAT_OK;
    if (!status) {
        *got = 0;
        return leat_error(LEAT_ESTATE,
                          "the reader \"%s\" reports %d samples, "
                          "expected 1 to %d",
                          reader->ops->name, reported, n);
    }
    int checked = check_status(reader, operation, lines, status);
    if (checked == status && reported != 0)
        return leat_error(LEAT_ESTATE,
                          "the reader \"%s\" reports %d samples together with "
                          "%s; the good ones must come first, with LEAT_OK",
                          reader->ops->name, reported,
                          status == LEAT_END ? "LEAT_END" : "an error");
    return checked;
}

/* The same for samples, whose counts of fields are checked too. */
static int check_samples(const leat_reader *reader, const char *operation,
                         unsigned lines, int status, leat_sample *const out[],
                         int n, int *got)
{
    if (status == LEAT_EDATA && *got == 0 && leat__error_lines() == lines)
        return name_record(reader, &out[0]->from);
    status = check_result(reader, operation, lines, status, n, got);
    if (status || !has_bad_sample(out, *got))
        return status;
    *got = 0;
    return bad_sample(reader, out);
}

int leat_reader_next(leat_reader *reader, leat_sample *sample)
{
    int got = 0;
    unsigned lines = leat__error_lines();
    int status = reader->ops->next(reader, &sample, 1, &got);
    return check_samples(reader, "next", lines, status, &sample, 1, &got);
}

int leat_reader_next_batch(leat_reader *reader, leat_sample *const out[], int n,
                           int *got)
{
    *got = 0;
    if (n < 1)
        return leat_error(LEAT_EINVAL, "expected 1 sample or more, got %d", n);
    unsigned lines = leat__error_lines();
    int status = reader->ops->next(reader, out, n, got);
    return check_samples(reader, "next", lines, status, out, n, got);
}

int leat_reader_fields(leat_reader *reader, const leat_field_spec **out, int *n)
{
    unsigned lines = leat__error_lines();
    return check_status(reader, "fields", lines,
                        reader->ops->fields(reader, out, n));
}

int leat_reader_reset(leat_reader *reader)
{
    unsigned lines = leat__error_lines();
    return check_status(reader, "reset", lines, reader->ops->reset(reader));
}

void leat_reader_cancel(leat_reader *reader)
{
    reader->ops->cancel(reader);
}

void leat_reader_close(leat_reader *reader)
{
    if (!reader)
        return;
    int cancel = leat__thread_disable_cancel();
    leat_pipeline *pipeline = reader->pipeline;
    reader->ops->close(reader);
    leat_pipeline_unref(pipeline);
    leat__thread_restore_cancel(cancel);
}

int leat_reader_count(leat_reader *reader, int64_t *out)
{
    if (!HAS(reader, count))
        return unsupported(reader, "count its samples before reading");
    unsigned lines = leat__error_lines();
    return check_status(reader, "count", lines,
                        reader->ops->count(reader, out));
}

int leat_reader_is_random_access(const leat_reader *reader)
{
    return HAS(reader, count) && HAS(reader, read_at);
}

int leat_reader_read_at(leat_reader *reader, const int64_t index[],
                        leat_sample *const out[], int n, int *got)
{
    *got = 0;
    if (!leat_reader_is_random_access(reader))
        return unsupported(reader, "read samples in any order");
    int64_t count;
    unsigned lines = leat__error_lines();
    int status = reader->ops->count(reader, &count);
    if (status)
        return check_status(reader, "count", lines, status);
    for (int i = 0; i < n; i++) {
        if (index[i] < 0 || index[i] >= count)
            return leat_error(LEAT_EINVAL,
                              "sample %lld is out of range: there are %lld",
                              (long long)index[i], (long long)count);
    }
    if (n < 1)
        return LEAT_OK;
    status = reader->ops->read_at(reader, index, out, n, got);
    return check_samples(reader, "read_at", lines, status, out, n, got);
}

void leat_reader_advise(leat_reader *reader, const int64_t index[], int n)
{
    int64_t count;
    if (!HAS(reader, advise) || !leat_reader_is_random_access(reader) ||
        reader->ops->count(reader, &count))
        return;
    for (int i = 0; i < n; i++) {
        if (index[i] < 0 || index[i] >= count)
            return;
    }
    reader->ops->advise(reader, index, n);
}

int leat_reader_may_block(leat_reader *reader)
{
    if (HAS(reader, may_block))
        return reader->ops->may_block(reader);
    return leat__pipeline_may_block(reader->pipeline);
}

bool leat__reader_can_probe(const leat_reader *reader)
{
    return HAS(reader, may_block);
}

int leat_reader_seek(leat_reader *reader, int64_t index)
{
    if (!HAS(reader, seek))
        return unsupported(reader, "seek");
    unsigned lines = leat__error_lines();
    return check_status(reader, "seek", lines,
                        reader->ops->seek(reader, index));
}

int leat_reader_save(leat_reader *reader, leat_token *token)
{
    if (!HAS(reader, save))
        return unsupported(reader, "save its state");
    unsigned lines = leat__error_lines();
    return check_status(reader, "save", lines,
                        reader->ops->save(reader, token));
}

int leat_reader_restore(leat_reader *reader, leat_token *token)
{
    if (!HAS(reader, restore))
        return unsupported(reader, "restore its state");
    unsigned lines = leat__error_lines();
    return check_status(reader, "restore", lines,
                        reader->ops->restore(reader, token));
}

int leat_reader_can_locate(const leat_reader *reader)
{
    return HAS(reader, locate) && HAS(reader, read_located);
}

int leat_reader_locate(leat_reader *reader, leat_locator out[], int n, int *got)
{
    *got = 0;
    if (!leat_reader_can_locate(reader))
        return unsupported(reader, "locate samples before it reads them");
    if (n < 1)
        return leat_error(LEAT_EINVAL, "expected 1 locator or more, got %d", n);
    unsigned lines = leat__error_lines();
    int status = reader->ops->locate(reader, out, n, got);
    return check_result(reader, "locate", lines, status, n, got);
}

int leat_reader_read_located(leat_reader *reader, const leat_locator locator[],
                             leat_sample *const out[], int n, int *got)
{
    *got = 0;
    if (!leat_reader_can_locate(reader))
        return unsupported(reader, "read samples that it located");
    if (n < 1)
        return LEAT_OK;
    unsigned lines = leat__error_lines();
    int status = reader->ops->read_located(reader, locator, out, n, got);
    return check_samples(reader, "read_located", lines, status, out, n, got);
}
