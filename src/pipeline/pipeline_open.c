/* Opens a pipeline's readers, upstream readers first. */
#include "base/error.h"
#include "base/thread.h"
#include "pipeline/pipeline.h"
#include "pipeline/reader_table.h"

/* Opens the upstream readers; `*n` of them are open, also on failure. */
static int open_upstream(const leat_pipeline *pipeline,
                         leat_reader *upstream[LEAT__UPSTREAM_MAX], int *n)
{
    int status = LEAT_OK;
    *n = 0;
    while (*n < pipeline->nupstream && !status) {
        status = leat_pipeline_open(pipeline->upstream[*n], &upstream[*n]);
        *n += !status;
    }
    return status;
}

/*
 * Checks the reader's table, and closes the reader together with its upstream
 * readers if it is incomplete, unless it lacks `close` as well.
 */
static int check_opened(const leat_pipeline *pipeline, leat_reader *reader)
{
    if (!reader || !reader->ops)
        return leat_error(LEAT_EINVAL,
                          "the reader \"%s\" opened without its operations",
                          pipeline->type->name);
    const leat_reader_ops *ops = reader->ops;
    int status = leat__reader_ops_check(ops, pipeline->type->name);
    if (status && ops->size >= LEAT__READER_OPS_MIN && ops->close) {
        char line[LEAT__ERROR_MAX];
        leat__error_save(line);
        ops->close(reader);
        return leat_error(status, "%s", line);
    }
    return status;
}

/* A failure without a line gets one, so that an older one is not reported. */
static int call_open(const leat_pipeline *pipeline,
                     leat_reader *const upstream[], int n, leat_reader **out)
{
    unsigned lines = leat__error_lines();
    int status = pipeline->type->open(&pipeline->args, upstream, n, out);
    if (status && !leat__status_is_error(status))
        return leat_error(LEAT_ESTATE,
                          "the reader \"%s\": open returned %d, expected "
                          "LEAT_OK or an error of leat/status.h",
                          pipeline->type->name, status);
    if (status < 0 && leat__error_lines() == lines)
        return leat_error(status, "the reader \"%s\" does not open: %s",
                          pipeline->type->name, leat_status_text(status));
    return status;
}

static int open_reader(const leat_pipeline *pipeline, leat_reader **out)
{
    leat_reader *upstream[LEAT__UPSTREAM_MAX] = {NULL};
    leat_reader *reader = NULL;
    int n;
    int status = open_upstream(pipeline, upstream, &n);
    if (!status)
        status = call_open(pipeline, upstream, n, &reader);
    if (status) {
        while (n > 0)
            leat_reader_close(upstream[--n]);
        return status;
    }
    status = check_opened(pipeline, reader);
    if (status)
        return status;
    /* Only the count of references changes, atomically. */
    status = leat__reader_attach(reader, (leat_pipeline *)(uintptr_t)pipeline);
    if (status)
        reader->ops->close(reader);
    else
        *out = reader;
    return status;
}

int leat_pipeline_open(const leat_pipeline *pipeline, leat_reader **out)
{
    leat_reader *reader;
    int cancel = leat__thread_disable_cancel();
    int status = open_reader(pipeline, &reader);
    leat__thread_restore_cancel(cancel);
    if (status < 0 && pipeline->origin)
        return leat__error_context(status, "%s", pipeline->origin);
    if (status)
        return status;
    *out = reader;
    return LEAT_OK;
}
