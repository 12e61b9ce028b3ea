#include "tools/database/database.h"

#include <leat/ext/reader.h>
#include <leat/pipeline.h>

#include <limits.h>
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

/* "lmdb:" and the text, which may have options behind a path. */
static int parse_path(leat_pipeline **out, const char *path)
{
    size_t size = strlen(path) + sizeof("lmdb:");
    char *text = malloc(size);
    if (!text)
        return leat_error(LEAT_ENOMEM, "out of memory");
    snprintf(text, size, "lmdb:%s", path);
    int status = leat_pipeline_parse(out, text);
    free(text);
    return status;
}

int database_pipeline(leat_pipeline **out, const char *text)
{
    struct stat found;
    int status = leat_pipeline_parse(out, text);
    if (status != LEAT_EINVAL)
        return status;
    if (!stat(text, &found))
        return leat_pipeline_lmdb(out, text, NULL);
    /* The error of a text that names a reader is about that. */
    return strchr(text, ':') ? status : parse_path(out, text);
}

int database_spare(const char *path, const char *output)
{
    static const char *const files[] = {"", "/data.mdb", "/lock.mdb"};
    struct stat wanted, found;
    if (stat(output, &wanted))
        return LEAT_OK;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char file[PATH_MAX];
        if (snprintf(file, sizeof(file), "%s%s", path, files[i]) <
                (int)sizeof(file) &&
            !stat(file, &found) && found.st_dev == wanted.st_dev &&
            found.st_ino == wanted.st_ino)
            return leat_error(LEAT_EINVAL,
                              "%s: is a file of the database that is read",
                              output);
    }
    return LEAT_OK;
}
