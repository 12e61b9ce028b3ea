#include "tools/delivery/npy.h"

#include "tools/cli/staged_file.h"

#include <leat/ext/reader.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A multiple of 64, as the format asks, with room for any shape. */
enum { HEADER_BYTES = 256, START_BYTES = 10 };

/* Magic, version 1.0, and the length of what follows. */
static const unsigned char header_start[START_BYTES] = {
    0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, HEADER_BYTES - START_BYTES, 0};

/* What comes next; others have so long a header for records, [(...), ...]. */
static const char header_type[] = "{'descr': '";

struct npy_shape {
    leat_dtype dtype;
    int ndim;
    int64_t dim[LEAT_MAX_DIMS];
};

struct npy_writer {
    char *stem;               /* directory and name */
    int64_t batches;          /* written */
    int apart;                /* a file for each batch */
    struct staged_file *file; /* NAME.npy, open until finish; or NAME.0000.npy
                                 and so on */
    int64_t files;            /* of file, those that were created */
    int64_t capacity;
    int64_t published;      /* of the files */
    struct npy_shape shape; /* of the first batch */
    size_t bytes;           /* of one such batch */
    char path[PATH_MAX];
};

static const char *descriptor(leat_dtype dtype)
{
    static const char *const names[] = {
        [LEAT_BYTES] = "|u1",   [LEAT_UINT8] = "|u1",
        [LEAT_INT32] = "<i4",   [LEAT_INT64] = "<i8",
        [LEAT_FLOAT16] = "<f2", [LEAT_BFLOAT16] = "<u2", /* its bits */
        [LEAT_FLOAT32] = "<f4", [LEAT_FLOAT64] = "<f8"};
    return names[dtype];
}

static int write_error(const char *path)
{
    return leat_error(LEAT_EIO, "%s: %s", path, strerror(errno ? errno : EIO));
}

const char *npy_writer_path(struct npy_writer *writer, int64_t i)
{
    if (writer->apart)
        snprintf(writer->path, sizeof(writer->path), "%s.%04lld.npy",
                 writer->stem, (long long)i);
    else
        snprintf(writer->path, sizeof(writer->path), "%s.npy", writer->stem);
    return writer->path;
}

/* The file that was created last. */
static struct staged_file *last_file(const struct npy_writer *writer)
{
    return &writer->file[writer->files - 1];
}

/* Creates the next file; the writer has its path. */
static int create_file(struct npy_writer *writer)
{
    const char *path = npy_writer_path(writer, writer->files);
    if (writer->files == writer->capacity) {
        int64_t capacity = writer->capacity ? 2 * writer->capacity : 4;
        struct staged_file *grown =
            realloc(writer->file, (size_t)capacity * sizeof(*grown));
        if (!grown)
            return leat_error(LEAT_ENOMEM, "%s: out of memory", path);
        writer->file = grown;
        writer->capacity = capacity;
    }
    int status = staged_file_create(&writer->file[writer->files], path);
    writer->files += !status;
    return status;
}

/* Header of `batches` batches of that shape, one behind the other. */
static int write_header(FILE *stream, const struct npy_shape *shape,
                        int64_t batches)
{
    char header[HEADER_BYTES + 1];
    memset(header, ' ', sizeof(header));
    memcpy(header, header_start, START_BYTES);
    int at = START_BYTES;
    at += sprintf(header + at, "%s%s', 'fortran_order': False, 'shape': (",
                  header_type, descriptor(shape->dtype));
    for (int i = 0; i < shape->ndim; i++)
        at += sprintf(header + at, "%s%lld", i ? ", " : "",
                      (long long)(i ? shape->dim[i] : shape->dim[0] * batches));
    at += sprintf(header + at, "%s), }", shape->ndim == 1 ? "," : "");
    header[at] = ' ';
    header[HEADER_BYTES - 1] = '\n';
    return fwrite(header, 1, HEADER_BYTES, stream) == HEADER_BYTES ? 0 : -1;
}

/* A file of one batch. */
static int write_file(struct npy_writer *writer, const struct npy_shape *shape,
                      const void *data, size_t bytes)
{
    int status = create_file(writer);
    if (status)
        return status;
    struct staged_file *file = last_file(writer);
    errno = 0;
    if (write_header(file->stream, shape, 1) ||
        fwrite(data, 1, bytes, file->stream) != bytes)
        return write_error(writer->path);
    return staged_file_close(file, writer->path);
}

/* Takes the batches so far, all of one shape, out of their common file. */
static int split(struct npy_writer *writer)
{
    struct staged_file common = writer->file[0];
    writer->files = 0;
    writer->apart = 1;
    void *batch = malloc(writer->bytes + 1);
    int status = LEAT_OK;
    if (!batch)
        status = leat_error(LEAT_ENOMEM, "%s: out of memory", writer->stem);
    else if (fseek(common.stream, HEADER_BYTES, SEEK_SET))
        status = write_error(writer->stem);
    for (int64_t i = 0; !status && i < writer->batches; i++) {
        if (fread(batch, 1, writer->bytes, common.stream) != writer->bytes)
            status = write_error(writer->stem);
        else
            status = write_file(writer, &writer->shape, batch, writer->bytes);
    }
    staged_file_discard(&common);
    free(batch);
    return status;
}

static struct npy_shape shape_of(const leat_blob *blob)
{
    struct npy_shape shape;
    memset(&shape, 0, sizeof(shape));
    shape.dtype = leat_blob_dtype(blob);
    shape.ndim = leat_blob_ndim(blob);
    for (int i = 0; i < shape.ndim; i++)
        shape.dim[i] = leat_blob_dim(blob, i);
    return shape;
}

int npy_writer_open(struct npy_writer **out, const char *directory,
                    const char *name)
{
    size_t size = strlen(directory) + strlen(name) + 2;
    if (size > PATH_MAX - 64)
        return leat_error(LEAT_EINVAL, "%s/%s: the name is too long", directory,
                          name);
    struct npy_writer *writer = calloc(1, sizeof(*writer));
    if (writer)
        writer->stem = malloc(size);
    if (!writer || !writer->stem) {
        free(writer);
        return leat_error(LEAT_ENOMEM, "%s: out of memory", name);
    }
    int base = sprintf(writer->stem, "%s/", directory);
    memcpy(writer->stem + base, name, strlen(name) + 1);
    for (char *c = writer->stem + base; *c; c++)
        if (*c == '/')
            *c = '_';
    *out = writer;
    return LEAT_OK;
}

int npy_writer_clash(const struct npy_writer *a, const struct npy_writer *b)
{
    return !strcmp(a->stem, b->stem);
}

static int begin(struct npy_writer *writer, const struct npy_shape *shape,
                 size_t bytes)
{
    writer->shape = *shape;
    writer->bytes = bytes;
    int status = create_file(writer);
    errno = 0;
    if (!status && write_header(last_file(writer)->stream, shape, 1))
        status = write_error(writer->path);
    return status;
}

int npy_writer_put(struct npy_writer *writer, leat_blob *batch)
{
    struct npy_shape shape = shape_of(batch);
    size_t bytes = leat_blob_bytes(batch);
    const void *data = leat_blob_cpu_data(batch);
    if (!data && bytes)
        return LEAT_ENOMEM;

    int status = LEAT_OK;
    if (!writer->batches)
        status = begin(writer, &shape, bytes);
    else if (!writer->apart &&
             memcmp(&shape, &writer->shape, sizeof(shape)) != 0)
        status = split(writer);
    if (status)
        return status;
    writer->batches++;
    if (writer->apart)
        return write_file(writer, &shape, data, bytes);
    errno = 0;
    if (fwrite(data, 1, bytes, writer->file[0].stream) != bytes)
        return write_error(npy_writer_path(writer, 0));
    return LEAT_OK;
}

int64_t npy_writer_files(const struct npy_writer *writer)
{
    return writer->apart ? writer->batches : writer->batches > 0;
}

int npy_writer_finish(struct npy_writer *writer)
{
    if (writer->apart || !writer->files)
        return LEAT_OK;
    struct staged_file *file = &writer->file[0];
    const char *path = npy_writer_path(writer, 0);
    /* The first axis is known only now. */
    errno = 0;
    if (fseek(file->stream, 0, SEEK_SET) ||
        write_header(file->stream, &writer->shape, writer->batches))
        return write_error(path);
    return staged_file_close(file, path);
}

int npy_writer_publish(struct npy_writer *writer)
{
    int status = LEAT_OK;
    while (!status && writer->published < writer->files) {
        int64_t i = writer->published;
        status =
            staged_file_publish(&writer->file[i], npy_writer_path(writer, i));
        writer->published += !status;
    }
    return status;
}

void npy_writer_withdraw(struct npy_writer *writer)
{
    for (int64_t i = 0; i < writer->published; i++)
        unlink(npy_writer_path(writer, i));
}

int npy_writer_wrote(int directory, const char *name)
{
    struct stat found;
    char start[START_BYTES + sizeof(header_type) - 1];
    int fd =
        openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return 0;
    int wrote =
        !fstat(fd, &found) && S_ISREG(found.st_mode) &&
        read(fd, start, sizeof(start)) == (ssize_t)sizeof(start) &&
        !memcmp(start, header_start, START_BYTES) &&
        !memcmp(start + START_BYTES, header_type, sizeof(header_type) - 1);
    close(fd);
    return wrote;
}

void npy_writer_close(struct npy_writer *writer)
{
    if (!writer)
        return;
    for (int64_t i = 0; i < writer->files; i++)
        staged_file_discard(&writer->file[i]);
    free(writer->file);
    free(writer->stem);
    free(writer);
}
