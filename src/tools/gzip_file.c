#include "tools/gzip_file.h"

#include <leat/ext/reader.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { BUFFER_BYTES = 128 << 10 };

struct gzip_file {
    const char *path;
    gzFile stream; /* zlib reads plain files as they are */
};

int gzip_file_open(struct gzip_file **out, const char *path)
{
    struct gzip_file *file = malloc(sizeof(*file));
    if (!file)
        return leat_error(LEAT_ENOMEM, "%s: out of memory", path);
    file->path = path;
    errno = 0;
    file->stream = gzopen(path, "rbe");
    if (!file->stream) {
        int code = errno ? errno : ENOMEM;
        free(file);
        return leat_error(LEAT_EIO, "%s: %s", path, strerror(code));
    }
    gzbuffer(file->stream, BUFFER_BYTES);
    *out = file;
    return LEAT_OK;
}

/* What zlib says of the last read; LEAT_OK at a proper end. */
static int stream_status(const struct gzip_file *file)
{
    int code;
    const char *text = gzerror(file->stream, &code);
    if (code == Z_ERRNO)
        return leat_error(LEAT_EIO, "%s: %s", file->path, strerror(errno));
    if (code == Z_BUF_ERROR)
        return leat_error(LEAT_EFORMAT, "%s: its gzip data ends early",
                          file->path);
    if (code == Z_MEM_ERROR)
        return leat_error(LEAT_ENOMEM, "%s: out of memory", file->path);
    if (code < 0)
        return leat_error(LEAT_EFORMAT, "%s: damaged gzip data: %s", file->path,
                          text);
    return LEAT_OK;
}

int gzip_file_read(struct gzip_file *file, void *out, size_t size, size_t *got)
{
    unsigned char *bytes = out;
    int n = 1;
    for (*got = 0; *got < size && n > 0; *got += n > 0 ? (size_t)n : 0) {
        size_t left = size - *got;
        n = gzread(file->stream, bytes + *got,
                   left < 1 << 30 ? (unsigned)left : 1U << 30);
    }
    return n > 0 ? LEAT_OK : stream_status(file);
}

const char *gzip_file_path(const struct gzip_file *file)
{
    return file->path;
}

void gzip_file_close(struct gzip_file *file)
{
    if (!file)
        return;
    gzclose_r(file->stream);
    free(file);
}
