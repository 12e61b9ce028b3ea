#include "tools/import/gzip_file.h"

#include "tools/cli/input.h"
#include "tools/cli/interrupt.h"

#include <leat/ext/reader.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { BUFFER_BYTES = 128 << 10, MOST_READ = 1 << 30 };

struct gzip_file {
    const char *path;
    int fd;        /* the stream's */
    int has_begun; /* to be read */
    gzFile stream;
};

int gzip_file_open(struct gzip_file **out, const char *path)
{
    struct gzip_file *file = calloc(1, sizeof(*file));
    if (!file)
        return leat_error(LEAT_ENOMEM, "%s: out of memory", path);
    file->path = path;
    int status = input_open(&file->fd, path);
    if (status) {
        free(file);
        return status;
    }
    file->stream = gzdopen(file->fd, "rb");
    if (!file->stream || gzbuffer(file->stream, BUFFER_BYTES)) {
        status = leat_error(LEAT_ENOMEM, "%s: out of memory", path);
        if (file->stream)
            gzclose(file->stream);
        else
            close(file->fd);
        free(file);
        return status;
    }
    *out = file;
    return LEAT_OK;
}

/* Why gzread gave fewer bytes than it was asked for. */
static int explain_end(struct gzip_file *file)
{
    int code;
    const char *text = gzerror(file->stream, &code);
    const char *reason = strstr(text, ": "); /* after a name of its own */
    reason = reason ? reason + 2 : text;
    if (code == Z_OK)
        return LEAT_OK;
    if (code == Z_BUF_ERROR)
        return leat_error(LEAT_EFORMAT, "%s: its gzip data ends early",
                          file->path);
    if (code == Z_MEM_ERROR)
        return leat_error(LEAT_ENOMEM, "%s: out of memory", file->path);
    if (code == Z_ERRNO)
        return leat_error(LEAT_EIO, "%s: %s", file->path, reason);
    return leat_error(LEAT_EFORMAT, "%s: damaged gzip data: %s", file->path,
                      reason);
}

int gzip_file_read(struct gzip_file *file, void *out, size_t size, size_t *got)
{
    unsigned char *bytes = out;
    *got = 0;
    if (!file->has_begun) {
        int status = input_begin(file->fd, file->path);
        if (status)
            return status;
        file->has_begun = 1;
    }
    while (*got < size) {
        size_t left = size - *got;
        unsigned wanted = left < MOST_READ ? (unsigned)left : MOST_READ;
        int n = gzread(file->stream, bytes + *got, wanted);
        *got += n > 0 ? (size_t)n : 0;
        /* After a signal the end that was found is none of the file. */
        int status = interrupt_check();
        if (status || n < (int)wanted)
            return status ? status : explain_end(file);
    }
    return LEAT_OK;
}

const char *gzip_file_path(const struct gzip_file *file)
{
    return file->path;
}

void gzip_file_close(struct gzip_file *file)
{
    if (!file)
        return;
    interrupt_keep(file->fd);
    gzclose(file->stream); /* Read-only: nothing is lost if it fails. */
    free(file);
}
