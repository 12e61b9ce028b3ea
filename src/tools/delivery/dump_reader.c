#include "tools/delivery/dump_reader.h"

#include "tools/cli/output.h"

#include <leat/ext/reader.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int is_npy(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return length > 4 && !strcmp(entry->d_name + length - 4, ".npy");
}

bool dump_reader_is_dump(const char *path)
{
    DIR *directory = opendir(path);
    const struct dirent *entry;
    bool is_dump = false, is_database = false;
    if (!directory)
        return false;
    while ((entry = readdir(directory))) {
        is_dump |= is_npy(entry);
        is_database |= !strcmp(entry->d_name, "data.mdb");
    }
    closedir(directory);
    return is_dump && !is_database;
}

/* The length of the array's name in a file's: without .npy, and a number. */
static size_t name_length(const char *file)
{
    size_t length = strlen(file) - 4, digits = 0;
    while (digits < length && file[length - 1 - digits] >= '0' &&
           file[length - 1 - digits] <= '9')
        digits++;
    bool is_numbered =
        digits >= 4 && digits + 1 < length && file[length - 1 - digits] == '.';
    return is_numbered ? length - 1 - digits : length;
}

static int map_file(struct dump_file *file, const char *path)
{
    struct stat found;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int status = LEAT_OK;
    errno = EINVAL;
    if (fd < 0 || fstat(fd, &found) || !S_ISREG(found.st_mode)) {
        status = leat_error(LEAT_EIO, "%s: %s", path, strerror(errno));
    } else if (found.st_size) {
        file->size = (size_t)found.st_size;
        file->bytes = mmap(NULL, file->size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (file->bytes == MAP_FAILED) {
            status = leat_error(LEAT_EIO, "%s: %s", path, strerror(errno));
            file->bytes = NULL;
        }
    }
    if (fd >= 0)
        close(fd);
    return status
               ? status
               : npy_header_parse(&file->header, path, file->bytes, file->size);
}

/* The array of that name, made if need be; NULL when memory is short. */
static struct dump_array *find_array(struct dump_reader *reader,
                                     const char *name, size_t length)
{
    for (int i = 0; i < reader->arrays; i++) {
        struct dump_array *array = &reader->array[i];
        if (strlen(array->name) == length &&
            !strncmp(array->name, name, length))
            return array;
    }
    struct dump_array *grown =
        realloc(reader->array, (size_t)(reader->arrays + 1) * sizeof(*grown));
    if (!grown)
        return NULL;
    reader->array = grown;
    struct dump_array *array = &grown[reader->arrays];
    *array = (struct dump_array){.name = strndup(name, length)};
    if (!array->name)
        return NULL;
    reader->arrays++;
    return array;
}

static int add_file(struct dump_reader *reader, const char *directory,
                    const char *name)
{
    char path[PATH_MAX];
    struct dump_array *array = find_array(reader, name, name_length(name));
    struct dump_file *grown =
        array
            ? realloc(array->file, (size_t)(array->files + 1) * sizeof(*grown))
            : NULL;
    if (!grown)
        return leat_error(LEAT_ENOMEM, "%s: out of memory", directory);
    array->file = grown;
    struct dump_file *file = &grown[array->files++];
    *file = (struct dump_file){0};
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    int status = map_file(file, path);
    if (status)
        return status;
    if (!file->header.ndim)
        return leat_error(LEAT_EFORMAT, "%s: a lone number has no rows", path);
    /* Rows of no elements may be as many as a header claims. */
    if (__builtin_add_overflow(array->rows, file->header.dim[0], &array->rows))
        return leat_error(LEAT_EFORMAT, "%s: more rows than can be counted",
                          path);
    return LEAT_OK;
}

static int check_rows(struct dump_reader *reader, const char *directory)
{
    for (int i = 1; i < reader->arrays; i++)
        if (reader->array[i].rows != reader->array[0].rows)
            return leat_error(
                LEAT_EFORMAT, "%s: %s has %s, %s has %lld", directory,
                reader->array[0].name,
                output_count(reader->array[0].rows, "row", "rows"),
                reader->array[i].name, (long long)reader->array[i].rows);
    if (!reader->arrays)
        return leat_error(LEAT_EIO, "%s: has no .npy files", directory);
    reader->rows = reader->array[0].rows;
    return LEAT_OK;
}

int dump_reader_open(struct dump_reader *out, const char *directory)
{
    struct dirent **entry;
    memset(out, 0, sizeof(*out));
    int n = scandir(directory, &entry, is_npy, versionsort);
    if (n < 0)
        return leat_error(LEAT_EIO, "%s: %s", directory, strerror(errno));
    int status = LEAT_OK;
    for (int i = 0; i < n; i++) {
        if (!status)
            status = add_file(out, directory, entry[i]->d_name);
        free(entry[i]);
    }
    free(entry);
    if (!status)
        status = check_rows(out, directory);
    if (status)
        dump_reader_close(out);
    return status;
}

void dump_reader_close(struct dump_reader *reader)
{
    for (int i = 0; i < reader->arrays; i++) {
        struct dump_array *array = &reader->array[i];
        for (int j = 0; j < array->files; j++)
            if (array->file[j].bytes)
                munmap(array->file[j].bytes, array->file[j].size);
        free(array->file);
        free(array->name);
    }
    free(reader->array);
    memset(reader, 0, sizeof(*reader));
}

const void *dump_reader_row(struct dump_array *array, struct npy_header *header)
{
    while (array->current_row == array->file[array->current].header.dim[0]) {
        array->current++;
        array->current_row = 0;
    }
    const struct dump_file *file = &array->file[array->current];
    *header = file->header;
    header->ndim--;
    memmove(header->dim, header->dim + 1,
            (size_t)header->ndim * sizeof(header->dim[0]));
    header->count /= (size_t)file->header.dim[0];
    return (const char *)file->bytes + header->offset +
           (size_t)array->current_row++ * header->count * (size_t)header->bytes;
}
