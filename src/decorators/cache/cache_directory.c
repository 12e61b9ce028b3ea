/*
 * DESIGN. A directory is immutable once it is mapped, but for the marks of
 * entries whose checksum was right, which any thread sets. Its files are opened
 * in one directory, also where the path leads to another one meanwhile.
 */
#include "decorators/cache/cache_directory.h"
#include "base/file.h"
#include "base/file_place.h"
#include "base/memory.h"
#include "decorators/cache/cache_entry.h"
#include "decorators/cache/cache_format.h"
#include "readers/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

enum { IDENTITY_MAX = 1 << 20 };

struct leat__cache_directory {
    leat__cache_path data_path; /* of the file, for errors */
    char *index;                /* the file's bytes */
    int64_t count;
    const leat__cache_place *place; /* in `index` */
    atomic_uchar *is_checked;       /* of each entry */
    leat__mapped_file data;
    bool is_mapped;
};

static int refuse(const char *path, const char *what)
{
    return leat_error(LEAT_EFORMAT,
                      "%s: the cache is damaged: %s; remove the directory to "
                      "have it made again",
                      path, what);
}

/* Whose directory that is leat cannot tell, so the advice is not to remove it.
 */
static int refuse_foreign(const char *path)
{
    return leat_error(LEAT_EFORMAT,
                      "%s: it has an index, but not that of a cache; name "
                      "another directory",
                      path);
}

/* The header, if the file is as long as it says. */
static int check_header(const char *path, const char *bytes, size_t size,
                        leat__cache_index_header *header)
{
    if (size < sizeof(header->magic) ||
        memcmp(bytes, LEAT__CACHE_MAGIC, sizeof(header->magic)) != 0)
        return refuse_foreign(path);
    if (size < sizeof(*header))
        return refuse(path, "its index is too short");
    memcpy(header, bytes, sizeof(*header));
    if (header->header_crc != leat__cache_header_crc(header))
        return refuse(path, "the checksum of its index's header is wrong");
    uint64_t body = size - sizeof(*header);
    if (header->count > body / sizeof(leat__cache_place) ||
        body - header->count * sizeof(leat__cache_place) !=
            header->identity_bytes)
        return refuse(path, "its index has another length than it says");
    return LEAT_OK;
}

int leat__cache_check_count(int64_t count, int64_t max_memory)
{
    if (max_memory == 0 || count <= max_memory / LEAT__CACHE_INDEX_UNIT)
        return LEAT_OK;
    return leat_error(LEAT_ELIMIT,
                      "cache: dir takes %lld bytes of memory for each of %lld "
                      "samples, but max_memory is %lld: expected fewer samples "
                      "or a larger limit",
                      (long long)LEAT__CACHE_INDEX_UNIT, (long long)count,
                      (long long)max_memory);
}

/* What an index is checked against before it is read. */
typedef struct expected {
    const char *path;
    int64_t max_memory;
} expected;

/* Before the file is read: it may be of any length, and another program's. */
static int check_head(const void *user, const char *head,
                      const struct stat *about)
{
    const expected *wanted = user;
    leat__cache_index_header header;
    int status =
        check_header(wanted->path, head, (size_t)about->st_size, &header);
    return status ? status
                  : leat__cache_check_count((int64_t)header.count,
                                            wanted->max_memory);
}

/* The header, if the file is whole and unchanged. */
static int check_index(const char *path, const char *bytes, size_t size,
                       leat__cache_index_header *header)
{
    int status = check_header(path, bytes, size, header);
    if (status)
        return status;
    uint64_t body = size - sizeof(*header);
    if (header->body_crc != leat__crc32c(0, bytes + sizeof(*header), body))
        return refuse(path, "the checksum of its index is wrong");
    return LEAT_OK;
}

static int check_identity(const char *path, const char *bytes, size_t size,
                          const leat_token *identity)
{
    if (size == identity->size &&
        (size == 0 || memcmp(bytes, identity->bytes, size) == 0))
        return LEAT_OK;
    return leat_error(LEAT_EINVAL,
                      "%s: the cache was made of another data set, pipeline, "
                      "phase or random_seed, or before the data were written "
                      "last; give that phase and seed, remove the directory, "
                      "or name another one",
                      path);
}

static int check_places(const leat__cache_directory *directory,
                        const char *path, uint64_t data_bytes)
{
    for (int64_t i = 0; i < directory->count; i++) {
        const leat__cache_place *place = &directory->place[i];
        if (place->offset % LEAT__CACHE_ENTRY_UNIT || place->bytes == 0 ||
            place->offset > data_bytes ||
            place->bytes > data_bytes - place->offset)
            return refuse(path, "its index points beyond the data");
    }
    return LEAT_OK;
}

/* The most bytes that the index of the data can have. */
static size_t bound_index(int at)
{
    struct stat about;
    bool has_data = !fstatat(at, "data", &about, 0) && about.st_size > 0;
    size_t entries =
        has_data ? (size_t)about.st_size / LEAT__CACHE_ENTRY_UNIT + 1 : 0;
    return sizeof(leat__cache_index_header) +
           entries * sizeof(leat__cache_place) + IDENTITY_MAX;
}

static int read_index_file(leat__cache_directory *directory, int at,
                           const char *path, int64_t max_memory, size_t *size)
{
    const expected wanted = {path, max_memory};
    leat__cache_path name;
    int fd;
    int status = leat__cache_join(name, path, "/index");
    if (!status)
        status = leat__file_open_own_at(&fd, at, "index", name);
    if (status)
        return status;
    status = leat__file_read_open(&directory->index, size, fd, name,
                                  bound_index(at), check_head, &wanted);
    close(fd); /* only read from: nothing can be lost */
    return status;
}

static int read_index(leat__cache_directory *directory, int at,
                      const char *path, const leat_token *identity,
                      int64_t max_memory)
{
    size_t size;
    leat__cache_index_header header;
    int status = read_index_file(directory, at, path, max_memory, &size);
    if (!status)
        status = check_index(path, directory->index, size, &header);
    if (status)
        return status;
    const char *body = directory->index + sizeof(header);
    size_t places = header.count * sizeof(leat__cache_place);
    directory->count = (int64_t)header.count;
    directory->place = (const leat__cache_place *)(const void *)body;
    status =
        check_identity(path, body + places, header.identity_bytes, identity);
    return status ? status : check_places(directory, path, header.data_bytes);
}

static int map_data(leat__cache_directory *directory, int at, const char *path)
{
    struct stat about;
    leat__cache_index_header header;
    int fd;
    memcpy(&header, directory->index, sizeof(header));
    int status = leat__cache_join(directory->data_path, path, "/data");
    if (status || header.data_bytes == 0)
        return status;
    if (fstatat(at, "data", &about, 0) && errno == ENOENT)
        return refuse(path, "its data are missing");
    status = leat__file_open_own_at(&fd, at, "data", directory->data_path);
    if (!status)
        status = leat__mapped_file_take(&directory->data, directory->data_path,
                                        fd, 0, &about);
    if (status)
        return status;
    directory->is_mapped = true;
    return (uint64_t)about.st_size == header.data_bytes
               ? LEAT_OK
               : refuse(path, "its data have another length than they had");
}

/* LEAT_AGAIN: it has no index. O_PATH alone mounts nothing that is mounted on
   demand; "/." does. */
static int open_path(int *out, const char *path)
{
    leat__cache_path name;
    struct stat about;
    int status = leat__cache_join(name, path, "/index");
    if (status)
        return status;
    /* The file /index is not that of an empty path. */
    if (!path[0] || leat__file_is_absent(name))
        return LEAT_AGAIN;
    status = leat__cache_join(name, path, "/.");
    if (status)
        return status;
    *out = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (*out < 0)
        return errno == ENOENT || errno == ENOTDIR
                   ? LEAT_AGAIN
                   : leat__error_system(errno, "%s", path);
    if (!fstatat(*out, "index", &about, 0) || errno != ENOENT)
        return LEAT_OK;
    close(*out); /* nothing was read by it */
    return LEAT_AGAIN;
}

int leat__cache_directory_open_at(leat__cache_directory **out, int at,
                                  const char *path, const leat_token *identity,
                                  int64_t max_memory)
{
    leat__cache_directory *directory = leat__alloc_zero(1, sizeof(*directory));
    if (!directory)
        return LEAT_ENOMEM;
    int status = read_index(directory, at, path, identity, max_memory);
    if (!status)
        status = map_data(directory, at, path);
    if (!status) {
        directory->is_checked = leat__alloc_zero((size_t)directory->count, 1);
        status = directory->is_checked ? LEAT_OK : LEAT_ENOMEM;
    }
    if (status)
        leat__cache_directory_close(directory);
    else
        *out = directory;
    return status;
}

int leat__cache_directory_open(leat__cache_directory **out, const char *path,
                               const leat_token *identity, int64_t max_memory)
{
    int at;
    int status = open_path(&at, path);
    if (status)
        return status;
    status = leat__cache_directory_open_at(out, at, path, identity, max_memory);
    close(at); /* nothing was read by it */
    return status;
}

void leat__cache_directory_close(leat__cache_directory *directory)
{
    if (!directory)
        return;
    if (directory->is_mapped)
        leat__mapped_file_close(&directory->data);
    leat__free(directory->is_checked);
    leat__free(directory->index);
    leat__free(directory);
}

int64_t leat__cache_directory_count(const leat__cache_directory *directory)
{
    return directory->count;
}

bool leat__cache_directory_may_block(const leat__cache_directory *directory)
{
    return directory->is_mapped &&
           leat__mapped_file_may_block(&directory->data);
}

int64_t leat__cache_directory_memory(const leat__cache_directory *directory)
{
    return (int64_t)(sizeof(*directory) + sizeof(leat__cache_index_header)) +
           directory->count * LEAT__CACHE_INDEX_UNIT;
}

int leat__cache_directory_at(leat__cache_directory *directory, int64_t index,
                             const void **entry, size_t *size)
{
    const leat__cache_place *place = &directory->place[index];
    *entry = directory->data.base + place->offset;
    *size = (size_t)place->bytes;
    if (atomic_load_explicit(&directory->is_checked[index],
                             memory_order_relaxed))
        return LEAT_OK;
    if (leat__crc32c(0, *entry, *size) != place->crc)
        return leat_error(LEAT_EDATA,
                          "%s: sample %lld at byte %llu: its checksum is "
                          "wrong; remove the directory to have it made again",
                          directory->data_path, (long long)index,
                          (unsigned long long)place->offset);
    atomic_store_explicit(&directory->is_checked[index], 1,
                          memory_order_relaxed);
    return LEAT_OK;
}
