#include "tools/database/database.h"

#include <leat/ext/reader.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int database_open(leat_reader **out, const char *path)
{
    leat_pipeline *pipeline;
    int status = leat_pipeline_lmdb(&pipeline, path, NULL);
    if (status)
        return status;
    status = leat_pipeline_open(pipeline, out);
    leat_pipeline_unref(pipeline);
    return status;
}

int database_pipeline(leat_pipeline **out, const char *text)
{
    struct stat found;
    char *named;
    int status = leat_pipeline_parse(out, text);
    if (status != LEAT_EINVAL)
        return status;
    if (!stat(text, &found))
        return leat_pipeline_lmdb(out, text, NULL);
    /* The error of a text that names a reader is about that reader. */
    if (strchr(text, ':'))
        return status;
    if (asprintf(&named, "lmdb:%s", text) < 0)
        return leat_error(LEAT_ENOMEM, "out of memory");
    status = leat_pipeline_parse(out, named);
    free(named);
    return status;
}

int database_fields(leat_reader *reader, const leat_field_spec **out, int *n)
{
    static const leat_field_spec datum[] = {
        {.name = "data", .dtype = LEAT_BYTES, .ndim = -1, .varies = 1},
        {.name = "label", .dtype = LEAT_INT32, .varies = 1}};
    int status = leat_reader_fields(reader, out, n);
    if (status != LEAT_EDATA)
        return status;
    *out = datum;
    *n = 2;
    return LEAT_OK;
}

int database_check(const char *path, int64_t *records)
{
    leat_reader *reader;
    leat_sample sample, *out = &sample;
    int64_t count = 0;
    int got, status = database_open(&reader, path);
    if (status)
        return status;
    leat_sample_init(&sample);
    status = leat_reader_count(reader, &count);
    /* To read the last record, the index is made, by a walk over all pages. */
    const leat_position last = {0, count - 1};
    if (!status && count)
        status = leat_reader_read_at(reader, &last, &out, 1, &got);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    /* A bad Datum is a record all the same. */
    if (status && status != LEAT_EDATA)
        return status;
    *records = count;
    return LEAT_OK;
}
