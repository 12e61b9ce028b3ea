#include "readers/record/record_pipeline.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"

#include <stdio.h>
#include <string.h>

/* Room for the options of all file readers. */
#define OPTIONS_SIZE 256

int leat_file_options_init(leat_file_options *options)
{
    const leat_file_options defaults = LEAT_FILE_OPTIONS_INIT;
    return leat__options_init(options, &defaults, sizeof(defaults));
}

static int copy_options(leat_file_options *out,
                        const leat_file_options *options)
{
    const leat_file_options defaults = LEAT_FILE_OPTIONS_INIT;
    *out = defaults;
    int status = leat__options_copy(out, options, sizeof(*out));
    if (status)
        return leat__error_context(status, "a file reader");
    if ((unsigned)out->compression > LEAT_COMPRESSION_ZLIB ||
        (unsigned)out->index > LEAT_FILE_INDEX_KEEP)
        return leat_error(LEAT_EINVAL,
                          "compression %d, index %d: there is no such value",
                          (int)out->compression, (int)out->index);
    return LEAT_OK;
}

/* What differs from the defaults; the type's table checks the numbers. */
static void write_options(char *to, const leat_file_options *options)
{
    static const char *const words[] = {"AUTO", "NONE", "GZIP", "ZLIB"};
    if (options->compression)
        to += sprintf(to, ",compression=%s", words[options->compression]);
    if (options->max_record)
        to += sprintf(to, ",max_record=%lld", (long long)options->max_record);
    if (options->index)
        to += sprintf(to, ",index=KEEP");
    if (options->read_ahead)
        to += sprintf(to, ",read_ahead=%lld", (long long)options->read_ahead);
    if (options->drop_behind)
        to += sprintf(to, ",drop_behind=%d", options->drop_behind);
    if (options->keep_behind)
        sprintf(to, ",keep_behind=%lld", (long long)options->keep_behind);
}

/* `path,path,more,options`; owned by the caller. */
static int write_text(char **out, const char *const path[], int n,
                      const char *more, const leat_file_options *options)
{
    size_t size = strlen(more) + OPTIONS_SIZE;
    for (int i = 0; i < n; i++) {
        if (!path[i] || !path[i][0])
            return leat_error(LEAT_EINVAL, "path %d of %d is empty", i, n);
        size += leat_args_escape(path[i], NULL, 0);
    }
    char *text = leat__alloc(size);
    if (!text)
        return LEAT_ENOMEM;
    char *to = text;
    for (int i = 0; i < n; i++) {
        if (i > 0)
            *to++ = ',';
        to += leat_args_escape(path[i], to, size - (size_t)(to - text)) - 1;
    }
    to = stpcpy(to, more);
    write_options(to, options);
    *out = text;
    return LEAT_OK;
}

int leat__record_pipeline(leat_pipeline **out, const leat_reader_type *type,
                          const char *const path[], int n, const char *more,
                          const leat_file_options *options)
{
    leat_file_options values;
    char *text;
    if (!path || n < 1)
        return leat_error(LEAT_EINVAL, "%s: expected a path or more, got %d",
                          type->name, n);
    int status = copy_options(&values, options);
    if (!status)
        status = write_text(&text, path, n, more, &values);
    if (status)
        return status;
    status = leat_pipeline_create(out, type, text, NULL, NULL, NULL, 0);
    leat__free(text);
    return status;
}
