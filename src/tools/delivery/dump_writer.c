#include "tools/delivery/dump_writer.h"

#include "tools/cli/staged_file.h"
#include "tools/delivery/directory.h"
#include "tools/delivery/npy_header.h"

#include <leat/ext/reader.h>
#include <leat/sample.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* A multiple of 64, as the format asks, with room for any shape. */
enum { HEADER_BYTES = 256, START_BYTES = 21 };

/* Magic, version 1.0, the length of the header and its beginning. Others write
   headers of this length only for records, {'descr': [(...), ...]. */
static const char header_start[START_BYTES + 1] =
    "\x93NUMPY\x01\x00\xf6\x00{'descr': '";

struct dump_array {
    const char *top;          /* borrowed */
    char *name;               /* the same without slashes */
    int64_t batches;          /* written */
    bool is_split;            /* a file for each batch */
    struct staged_file *file; /* NAME.npy, open until the end, or NAME.0000.npy
                                 and so on */
    int64_t files, published;
    struct npy_header shape; /* of the first batch */
};

struct dump_writer {
    const char *directory; /* its path, borrowed */
    int fd;                /* holds the lock on it; -1: none */
    bool is_made;          /* the directory, but for the first `kept` letters */
    size_t kept;
    struct dump_array array[LEAT_MAX_FIELDS];
    int arrays;
    char path[PATH_MAX];

    /* In the directory; the last one found of each. */
    char earlier[NAME_MAX + 1]; /* of an earlier dump */
    char foreign[NAME_MAX + 1]; /* .npy files of other programs */
    char other[NAME_MAX + 1];
    bool is_database;
};

static int system_error(const char *path)
{
    return leat_error(LEAT_EIO, "%s: %s", path, strerror(errno ? errno : EIO));
}

static int out_of_memory(const struct dump_writer *writer)
{
    return leat_error(LEAT_ENOMEM, "%s: out of memory", writer->directory);
}

/* Whether a writer made the file: a regular one with such a header. */
static bool is_dump_file(int directory, const char *name)
{
    struct stat found;
    char start[START_BYTES];
    size_t length = strlen(name);
    if (length < 5 || strcmp(name + length - 4, ".npy") != 0)
        return false;
    int fd =
        openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return false;
    bool is_same = !fstat(fd, &found) && S_ISREG(found.st_mode) &&
                   read(fd, start, START_BYTES) == START_BYTES &&
                   !memcmp(start, header_start, START_BYTES);
    close(fd);
    return is_same;
}

static int visit_entries(struct dump_writer *writer,
                         int (*visit)(struct dump_writer *writer,
                                      const char *name))
{
    int fd = openat(writer->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    if (!entries) {
        int status = system_error(writer->directory);
        if (fd >= 0)
            close(fd);
        return status;
    }
    const struct dirent *entry;
    int status = directory_next(entries, writer->directory, &entry);
    while (!status && entry) {
        status = visit(writer, entry->d_name);
        if (!status)
            status = directory_next(entries, writer->directory, &entry);
    }
    closedir(entries);
    return status;
}

static int remove_entry(struct dump_writer *writer, const char *name)
{
    return unlinkat(writer->fd, name, 0) ? system_error(writer->directory)
                                         : LEAT_OK;
}

static int remove_earlier(struct dump_writer *writer, const char *name)
{
    return is_dump_file(writer->fd, name) ? remove_entry(writer, name)
                                          : LEAT_OK;
}

/* Removes the temporary files of a killed dump: only one process has the lock.
 */
static int note_entry(struct dump_writer *writer, const char *name)
{
    size_t length = strlen(name), target = staged_file_target(name);
    bool is_npy = length > 4 && !strcmp(name + length - 4, ".npy");
    if (!strcmp(name, ".") || !strcmp(name, ".."))
        return LEAT_OK;
    if (target > 4 && !strncmp(name + target - 4, ".npy", 4))
        return remove_entry(writer, name);
    char *list = is_dump_file(writer->fd, name) ? writer->earlier
                 : is_npy                       ? writer->foreign
                                                : writer->other;
    snprintf(list, NAME_MAX + 1, "%s", name);
    writer->is_database |= !strcmp(name, "data.mdb");
    return LEAT_OK;
}

/* Other .npy files or a database would be taken for a part of the dump. */
static int check_directory(struct dump_writer *writer, bool force)
{
    int status = visit_entries(writer, note_entry);
    if (status)
        return status;
    if (writer->is_database)
        return leat_error(LEAT_EINVAL,
                          "%s: is a database's directory; a dump needs "
                          "another one",
                          writer->directory);
    if (writer->foreign[0])
        return leat_error(LEAT_EINVAL,
                          "%s: holds %s, which leat dump did not write; remove "
                          "it first",
                          writer->directory, writer->foreign);
    if (writer->earlier[0] && !force)
        return leat_error(LEAT_EINVAL,
                          "%s: holds %s already; --force would replace the "
                          "files of that dump",
                          writer->directory, writer->earlier);
    if (writer->other[0] && !force)
        return leat_error(LEAT_EINVAL,
                          "%s: holds %s; --force would put the dump beside it",
                          writer->directory, writer->other);
    return LEAT_OK;
}

/* Two dumps at once into one directory would write the same files. */
static int open_directory(struct dump_writer *writer, bool force)
{
    int status = directory_make(writer->directory, &writer->kept);
    if (status)
        return status;
    writer->is_made = true;
    writer->fd = open(writer->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (writer->fd < 0)
        return system_error(writer->directory);
    if (flock(writer->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
        writer->is_made = false;
        return leat_error(LEAT_EINVAL, "%s: another leat is writing into it",
                          writer->directory);
    }
    return check_directory(writer, force);
}

int dump_writer_open(struct dump_writer **out, const char *directory,
                     bool force)
{
    struct dump_writer *writer = calloc(1, sizeof(*writer));
    if (!writer)
        return leat_error(LEAT_ENOMEM, "%s: out of memory", directory);
    writer->directory = directory;
    writer->fd = -1;
    int status = open_directory(writer, force);
    if (status)
        dump_writer_close(writer);
    else
        *out = writer;
    return status;
}

/* Whether it ends as the name of a batch's file does, as in data.0000, so that
   its own file would be read as one of data's. */
static bool is_numbered(const char *name)
{
    const char *dot = strrchr(name, '.');
    size_t digits = dot ? strspn(dot + 1, "0123456789") : 0;
    return dot && dot != name && digits >= 4 && !dot[1 + digits];
}

int dump_writer_add(struct dump_writer *writer, int i, const char *name,
                    bool is_split)
{
    if (strlen(writer->directory) + strlen(name) > PATH_MAX - 64)
        return leat_error(LEAT_EINVAL, "%s/%s: the name is too long",
                          writer->directory, name);
    char *copy = strdup(name);
    if (!copy)
        return out_of_memory(writer);
    for (char *c = copy; *c; c++)
        if (*c == '/')
            *c = '_';
    writer->array[i].top = name;
    writer->array[i].name = copy;
    writer->array[i].is_split = is_split;
    writer->arrays = i + 1;
    if (is_numbered(copy))
        return leat_error(LEAT_EINVAL,
                          "top %s: its file %s.npy would be taken for a batch "
                          "of another top; give it another name in the net",
                          name, copy);
    for (int k = 0; k < i; k++)
        if (!strcmp(writer->array[k].name, copy))
            return leat_error(LEAT_EINVAL, "tops %s and %s would be one file",
                              writer->array[k].top, name);
    return LEAT_OK;
}

const char *dump_writer_path(struct dump_writer *writer, int i, int64_t file)
{
    const struct dump_array *array = &writer->array[i];
    char number[32] = "";
    if (array->is_split)
        snprintf(number, sizeof(number), ".%04lld", (long long)file);
    snprintf(writer->path, sizeof(writer->path), "%s/%s%s.npy",
             writer->directory, array->name, number);
    return writer->path;
}

/* Writes the header of so many batches of that shape. */
static int write_header(FILE *stream, const struct npy_header *shape,
                        int64_t batches)
{
    char header[HEADER_BYTES + 1];
    memset(header, ' ', sizeof(header));
    memcpy(header, header_start, START_BYTES);
    int at = START_BYTES;
    at += sprintf(header + at, "%c%c%d', 'fortran_order': False, 'shape': (",
                  shape->bytes == 1 ? '|' : '<', shape->kind, shape->bytes);
    for (int i = 0; i < shape->ndim; i++)
        at += sprintf(header + at, "%s%lld", i ? ", " : "",
                      (long long)(i ? shape->dim[i] : shape->dim[0] * batches));
    at += sprintf(header + at, "%s), }", shape->ndim == 1 ? "," : "");
    header[at] = ' ';
    header[HEADER_BYTES - 1] = '\n';
    return fwrite(header, 1, HEADER_BYTES, stream) == HEADER_BYTES ? 0 : -1;
}

/* Creates the next file of an array, with a header of one batch. */
static int create_file(struct dump_writer *writer, int i,
                       const struct npy_header *shape)
{
    struct dump_array *array = &writer->array[i];
    const char *path = dump_writer_path(writer, i, array->files);
    struct staged_file *grown =
        realloc(array->file, (size_t)(array->files + 1) * sizeof(*grown));
    if (!grown)
        return out_of_memory(writer);
    array->file = grown;
    int status = staged_file_create(&grown[array->files], path);
    if (status)
        return status;
    errno = 0;
    return write_header(grown[array->files++].stream, shape, 1)
               ? system_error(path)
               : LEAT_OK;
}

static int write_batch(struct dump_writer *writer, int i,
                       const struct npy_header *shape, const void *data)
{
    struct dump_array *array = &writer->array[i];
    size_t bytes = shape->count * (size_t)shape->bytes;
    int status = LEAT_OK;
    if (array->is_split || !array->files)
        status = create_file(writer, i, shape);
    if (status)
        return status;
    struct staged_file *file = &array->file[array->files - 1];
    const char *path = dump_writer_path(writer, i, array->files - 1);
    errno = 0;
    if (fwrite(data, 1, bytes, file->stream) != bytes)
        return system_error(path);
    return array->is_split ? staged_file_close(file, path) : LEAT_OK;
}

/* Moves the batches so far, all of one shape, from their common file. */
static int split(struct dump_writer *writer, int i)
{
    struct dump_array *array = &writer->array[i];
    struct staged_file common = array->file[0];
    size_t bytes = array->shape.count * (size_t)array->shape.bytes;
    void *batch = malloc(bytes + 1);
    int status = batch ? LEAT_OK : out_of_memory(writer);
    array->files = 0;
    array->is_split = true;
    errno = 0;
    if (!status && fseek(common.stream, HEADER_BYTES, SEEK_SET))
        status = system_error(writer->directory);
    for (int64_t k = 0; !status && k < array->batches; k++)
        status = fread(batch, 1, bytes, common.stream) == bytes
                     ? write_batch(writer, i, &array->shape, batch)
                     : system_error(writer->directory);
    staged_file_discard(&common);
    free(batch);
    return status;
}

static bool is_same_shape(const struct npy_header *a,
                          const struct npy_header *b)
{
    return a->kind == b->kind && a->bytes == b->bytes && a->ndim == b->ndim &&
           !memcmp(a->dim, b->dim, (size_t)a->ndim * sizeof(a->dim[0]));
}

int dump_writer_put(struct dump_writer *writer, int i, leat_blob *batch)
{
    struct dump_array *array = &writer->array[i];
    struct npy_header shape = npy_header_of(
        leat_blob_dtype(batch), leat_blob_ndim(batch), leat_blob_shape(batch));
    const void *data = leat_blob_cpu_data(batch);
    if (!data && leat_blob_bytes(batch))
        return LEAT_ENOMEM;
    int status = LEAT_OK;
    if (!array->batches)
        array->shape = shape;
    else if (!array->is_split && !is_same_shape(&shape, &array->shape))
        status = split(writer, i);
    if (!status)
        status = write_batch(writer, i, &shape, data);
    array->batches += !status;
    return status;
}

/* Completes the common file, whose first axis is known only at the end. */
static int finish(struct dump_writer *writer, int i)
{
    struct dump_array *array = &writer->array[i];
    if (array->is_split || !array->files)
        return LEAT_OK;
    struct staged_file *file = &array->file[0];
    const char *path = dump_writer_path(writer, i, 0);
    errno = 0;
    if (fseek(file->stream, 0, SEEK_SET) ||
        write_header(file->stream, &array->shape, array->batches))
        return system_error(path);
    return staged_file_close(file, path);
}

/* Each file replaces none: an earlier dump is gone by then. */
static int publish_array(struct dump_writer *writer, int i)
{
    struct dump_array *array = &writer->array[i];
    int status = LEAT_OK;
    while (!status && array->published < array->files) {
        status =
            staged_file_publish(&array->file[array->published],
                                dump_writer_path(writer, i, array->published));
        array->published += !status;
    }
    return status;
}

int dump_writer_publish(struct dump_writer *writer)
{
    int status = LEAT_OK;
    for (int i = 0; !status && i < writer->arrays; i++)
        status = finish(writer, i);
    /* Files of two dumps must never be taken for one. */
    if (!status)
        status = visit_entries(writer, remove_earlier);
    for (int i = 0; !status && i < writer->arrays; i++)
        status = publish_array(writer, i);
    for (int i = 0; status && i < writer->arrays; i++)
        for (int64_t k = 0; k < writer->array[i].published; k++)
            unlink(dump_writer_path(writer, i, k));
    writer->is_made &= status != LEAT_OK;
    return status;
}

int64_t dump_writer_files(const struct dump_writer *writer, int i)
{
    return writer->array[i].files;
}

void dump_writer_close(struct dump_writer *writer)
{
    if (!writer)
        return;
    for (int i = 0; i < writer->arrays; i++) {
        for (int64_t k = 0; k < writer->array[i].files; k++)
            staged_file_discard(&writer->array[i].file[k]);
        free(writer->array[i].file);
        free(writer->array[i].name);
    }
    if (writer->is_made)
        directory_unmake(writer->directory, writer->kept);
    if (writer->fd >= 0)
        close(writer->fd);
    free(writer);
}
