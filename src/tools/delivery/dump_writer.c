#include "tools/delivery/dump_writer.h"

#include "tools/cli/interrupt.h"
#include "tools/delivery/dump_directory.h"
#include "tools/delivery/npy_header.h"

#include <leat/ext/reader.h>
#include <leat/sample.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A multiple of 64, as the format asks, with room for any shape. */
enum { HEADER_BYTES = 256 };

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
    struct dump_directory directory;
    bool is_published;
    struct dump_array array[LEAT_MAX_FIELDS];
    int arrays;
    char path[PATH_MAX];
};

static int system_error(const char *path)
{
    return leat_error(LEAT_EIO, "%s: %s", path, strerror(errno ? errno : EIO));
}

static int out_of_memory(const struct dump_writer *writer)
{
    return leat_error(LEAT_ENOMEM, "%s: out of memory", writer->directory.path);
}

int dump_writer_open(struct dump_writer **out, const char *directory,
                     const char *token, bool force)
{
    struct dump_writer *writer = calloc(1, sizeof(*writer));
    if (!writer)
        return leat_error(LEAT_ENOMEM, "%s: out of memory", directory);
    int status =
        dump_directory_open(&writer->directory, directory, token, force);
    if (status)
        dump_writer_close(writer);
    else
        *out = writer;
    return status;
}

int dump_writer_probe(const char *directory, const char *token, bool force)
{
    return dump_directory_probe(directory, token, force);
}

int dump_writer_check(const struct dump_writer *writer, const char *path)
{
    return dump_directory_check(&writer->directory, path);
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
    if (strlen(writer->directory.path) + strlen(name) > PATH_MAX - 64)
        return leat_error(LEAT_EINVAL,
                          "%s/%s: the name is too long: expected at most %d "
                          "bytes in all",
                          writer->directory.path, name, PATH_MAX - 64);
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
             writer->directory.path, array->name, number);
    return writer->path;
}

/* What a path has after the directory's. */
static const char *name_in(const struct dump_directory *directory,
                           const char *path)
{
    return path + strlen(directory->path) + 1;
}

/* Writes the header of so many batches of that shape. */
static int write_header(FILE *stream, const struct npy_header *shape,
                        int64_t batches)
{
    char header[HEADER_BYTES + 1];
    memset(header, ' ', sizeof(header));
    memcpy(header, dump_start, DUMP_START_BYTES);
    int at = DUMP_START_BYTES;
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
    int status =
        staged_file_create_in(&grown[array->files], writer->directory.fd,
                              name_in(&writer->directory, path), path);
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
        status = system_error(writer->directory.path);
    for (int64_t k = 0; !status && k < array->batches; k++) {
        status = interrupt_check();
        if (!status)
            status = fread(batch, 1, bytes, common.stream) == bytes
                         ? write_batch(writer, i, &array->shape, batch)
                         : system_error(writer->directory.path);
    }
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
static int complete_array(struct dump_writer *writer, int i)
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

/* Each file replaces none: an earlier dump is set aside by then. */
static int publish_array(struct dump_writer *writer, int i)
{
    struct dump_array *array = &writer->array[i];
    int status = LEAT_OK;
    while (!status && array->published < array->files) {
        status = interrupt_check();
        if (!status)
            status = staged_file_publish_new(
                &array->file[array->published],
                dump_writer_path(writer, i, array->published));
        array->published += !status;
    }
    return status;
}

int dump_writer_complete(struct dump_writer *writer)
{
    int status = LEAT_OK;
    for (int i = 0; !status && i < writer->arrays; i++)
        status = complete_array(writer, i);
    return status ? status : dump_directory_list_earlier(&writer->directory);
}

int dump_writer_publish(struct dump_writer *writer)
{
    int status = dump_directory_check_place(&writer->directory);
    if (!status)
        status = dump_directory_set_aside(&writer->directory);
    for (int i = 0; !status && i < writer->arrays; i++)
        status = publish_array(writer, i);
    if (!status)
        status = dump_directory_check_place(&writer->directory);
    writer->is_published = !status;
    return status ? dump_writer_unpublish(writer, status) : LEAT_OK;
}

int dump_writer_unpublish(struct dump_writer *writer, int status)
{
    const struct dump_directory *directory = &writer->directory;
    for (int i = 0; i < writer->arrays; i++) {
        while (writer->array[i].published > 0) {
            int64_t last = --writer->array[i].published;
            const char *path = dump_writer_path(writer, i, last);
            dump_directory_remove(directory, &writer->array[i].file[last],
                                  name_in(directory, path));
        }
    }
    writer->is_published = false;
    return dump_directory_restore(&writer->directory, status);
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
    dump_directory_close(&writer->directory, writer->is_published);
    free(writer);
}
