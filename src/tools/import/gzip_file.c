#include "tools/import/gzip_file.h"

#include "tools/input.h"

#include <leat/ext/reader.h>

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { BUFFER_BYTES = 128 << 10 };

/* Where in the file the next byte is. */
enum place { AT_START, IN_PLAIN, IN_MEMBER, BEHIND_MEMBER, AT_END };

struct gzip_file {
    const char *path;
    int fd;
    enum place place;
    int has_stream;  /* set up, to be ended */
    int is_read;     /* to the end of the file */
    z_stream stream; /* its input: what of the buffer was not used yet */
    unsigned char buffer[BUFFER_BYTES];
};

static int memory_error(const char *path)
{
    return leat_error(LEAT_ENOMEM, "%s: out of memory", path);
}

int gzip_file_open(struct gzip_file **out, const char *path)
{
    struct gzip_file *file = malloc(sizeof(*file));
    if (!file)
        return memory_error(path);
    memset(file, 0, offsetof(struct gzip_file, buffer));
    file->path = path;
    int status = input_open(&file->fd, path);
    if (status) {
        free(file);
        return status;
    }
    *out = file;
    return LEAT_OK;
}

/* Reads on until the buffer has `wanted` bytes, or all that are left. */
static int fill(struct gzip_file *file, size_t wanted)
{
    z_stream *stream = &file->stream;
    int status = LEAT_OK;
    while (!status && !file->is_read && stream->avail_in < wanted) {
        size_t got = 0;
        if (stream->avail_in)
            memmove(file->buffer, stream->next_in, stream->avail_in);
        stream->next_in = file->buffer;
        status =
            input_read(file->fd, file->path, file->buffer + stream->avail_in,
                       BUFFER_BYTES - stream->avail_in, &got);
        if (!status && !got)
            file->is_read = 1;
        stream->avail_in += (unsigned)got;
    }
    return status;
}

/* At the start of a file, or of what follows its first member. */
static int begin_member(struct gzip_file *file)
{
    z_stream *stream = &file->stream;
    int status = fill(file, 2);
    if (status)
        return status;
    if (stream->avail_in < 2 || memcmp(stream->next_in, "\x1f\x8b", 2) != 0) {
        /* What follows a member and is none, such as padding, is ignored. */
        file->place = file->place == AT_START ? IN_PLAIN : AT_END;
        return LEAT_OK;
    }
    int code = file->has_stream ? inflateReset(stream)
                                : inflateInit2(stream, MAX_WBITS + 16);
    if (code != Z_OK)
        return memory_error(file->path);
    file->has_stream = 1;
    file->place = IN_MEMBER;
    return LEAT_OK;
}

static int read_plain(struct gzip_file *file, unsigned char *out, size_t size,
                      size_t *got)
{
    z_stream *stream = &file->stream;
    int status = fill(file, 1);
    if (status)
        return status;
    size_t n = size < stream->avail_in ? size : stream->avail_in;
    memcpy(out, stream->next_in, n);
    stream->next_in += n;
    stream->avail_in -= (unsigned)n;
    *got += n;
    if (!n)
        file->place = AT_END;
    return LEAT_OK;
}

static int read_member(struct gzip_file *file, unsigned char *out, size_t size,
                       size_t *got)
{
    z_stream *stream = &file->stream;
    int status = fill(file, 1);
    if (status)
        return status;
    unsigned room = size < 1 << 30 ? (unsigned)size : 1U << 30;
    int at_end = !stream->avail_in;
    stream->next_out = out;
    stream->avail_out = room;
    int code = inflate(stream, Z_NO_FLUSH);
    *got += room - stream->avail_out;
    if (code == Z_STREAM_END)
        file->place = BEHIND_MEMBER;
    else if (code == Z_MEM_ERROR)
        return memory_error(file->path);
    else if (code != Z_OK && code != Z_BUF_ERROR)
        return leat_error(LEAT_EFORMAT, "%s: damaged gzip data: %s", file->path,
                          stream->msg ? stream->msg : zError(code));
    else if (at_end && stream->avail_out)
        return leat_error(LEAT_EFORMAT, "%s: its gzip data ends early",
                          file->path);
    return LEAT_OK;
}

int gzip_file_read(struct gzip_file *file, void *out, size_t size, size_t *got)
{
    unsigned char *bytes = out;
    int status = LEAT_OK;
    *got = 0;
    while (!status && *got < size && file->place != AT_END) {
        if (file->place == IN_PLAIN)
            status = read_plain(file, bytes + *got, size - *got, got);
        else if (file->place == IN_MEMBER)
            status = read_member(file, bytes + *got, size - *got, got);
        else
            status = begin_member(file);
    }
    return status;
}

const char *gzip_file_path(const struct gzip_file *file)
{
    return file->path;
}

void gzip_file_close(struct gzip_file *file)
{
    if (!file)
        return;
    if (file->has_stream)
        inflateEnd(&file->stream);
    close(file->fd); /* Read-only: nothing is lost if it fails. */
    free(file);
}
