/* From a pipeline to a running pass: readers are opened upstream first. */
#include "base/error.h"
#include "base/thread.h"
#include "pipeline/pipeline.h"
#include "pipeline/reader_table.h"

/* Opens all that it reads, or none; `*n` of them. */
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
 * A reader whose table is broken goes again, and what it reads with it. Only
 * where it cannot even be closed nothing is.
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

/* A failure without a line would be told by an older one. */
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
    if (!status)
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
    /* The count is atomic; all else of a pipeline never changes. */
    reader->pipeline = (leat_pipeline *)(uintptr_t)pipeline;
    leat_pipeline_ref(reader->pipeline);
    *out = reader;
    return LEAT_OK;
}
