/*
 * DESIGN. A writer's lock guards its file position, buffer and index: threads
 * that read samples in parallel write them one after the other, in any order.
 * A directory is immutable once it is mapped, but for the marks of entries
 * whose checksum was right, which any thread sets.
 */
#include "decorators/cache/cache_directory.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"
#include "base/fork.h"
#include "base/memory.h"
#include "base/thread.h"
#include "readers/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* The longest path, with the name of a file in it. */
typedef char path_text[PATH_MAX];

/* The index file: this, `count` places, and the identity. */
typedef struct index_header {
    char magic[8];
    uint64_t count;
    uint64_t data_bytes;
    uint64_t identity_bytes;
    uint32_t body_crc;   /* of all that follows */
    uint32_t header_crc; /* of what is above it */
} index_header;

typedef struct entry_place {
    uint64_t offset;
    uint64_t bytes; /* 0: not written yet */
    uint64_t crc;
} entry_place;

static const char magic[8] = {'l', 'e', 'a', 't', 'c', 'c', 'h', '1'};

enum { INDEX_FIRST = 1024, IDENTITY_MAX = 1 << 20 };

struct leat__cache_directory {
    path_text data_path; /* of the file, for errors */
    char *index;         /* the file's bytes */
    int64_t count;
    const entry_place *place; /* in `index` */
    atomic_uchar *is_checked; /* of each entry */
    leat__mapped_file data;
    bool is_mapped;
};

struct leat__cache_writer {
    unsigned generation; /* of the process that writes */
    path_text path;      /* what it becomes */
    path_text partial;   /* what it is until then */
    int lock_fd;
    int data_fd;
    leat_token identity;
    pthread_mutex_t lock;
    /* Protected by lock. */
    entry_place *place;
    int64_t capacity;
    int64_t written;
    int failed; /* the status of a write, after which all is removed */
    uint64_t data_bytes;
    char *buffer; /* for one entry */
    size_t buffer_bytes;
    bool is_whole;
};

static int join(path_text out, const char *path, const char *name)
{
    int n = snprintf(out, PATH_MAX, "%s%s", path, name);
    if (n >= 0 && n < PATH_MAX)
        return LEAT_OK;
    return leat_error(LEAT_EINVAL, "cache: the path %.40s... is too long",
                      path);
}

/* ---- Reading ------------------------------------------------------------ */

static int refuse(const char *path, const char *what)
{
    return leat_error(LEAT_EFORMAT,
                      "%s: the cache is damaged: %s; remove the directory to "
                      "have it made again",
                      path, what);
}

static uint32_t header_crc(const index_header *header)
{
    return leat__crc32c(0, header, offsetof(index_header, header_crc));
}

/* The header, if the file is as long as it should be and unchanged. */
static int check_index(const char *path, const char *bytes, size_t size,
                       index_header *header)
{
    if (size < sizeof(*header))
        return refuse(path, "its index is too short");
    memcpy(header, bytes, sizeof(*header));
    if (memcmp(header->magic, magic, sizeof(magic)) != 0)
        return refuse(path, "its index is of another format");
    if (header->header_crc != header_crc(header))
        return refuse(path, "the checksum of its index's header is wrong");
    uint64_t body = size - sizeof(*header);
    if (header->count > body / sizeof(entry_place) ||
        body - header->count * sizeof(entry_place) != header->identity_bytes)
        return refuse(path, "its index has another length than it says");
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
                      "%s: the cache was made of another data set or "
                      "pipeline; remove the directory, or name another one",
                      path);
}

static int check_places(const leat__cache_directory *directory,
                        const char *path, uint64_t data_bytes)
{
    for (int64_t i = 0; i < directory->count; i++) {
        const entry_place *place = &directory->place[i];
        if (place->offset % LEAT__CACHE_ENTRY_UNIT || place->bytes == 0 ||
            place->offset > data_bytes ||
            place->bytes > data_bytes - place->offset)
            return refuse(path, "its index points beyond the data");
    }
    return LEAT_OK;
}

static int read_index(leat__cache_directory *directory, const char *path,
                      const leat_token *identity)
{
    path_text name;
    size_t size;
    index_header header;
    int status = join(name, path, "/index");
    if (!status)
        status = leat__file_read(&directory->index, &size, name, SIZE_MAX / 2);
    if (!status)
        status = check_index(path, directory->index, size, &header);
    if (status)
        return status;
    const char *body = directory->index + sizeof(header);
    size_t places = header.count * sizeof(entry_place);
    directory->count = (int64_t)header.count;
    directory->place = (const entry_place *)(const void *)body;
    status =
        check_identity(path, body + places, header.identity_bytes, identity);
    return status ? status : check_places(directory, path, header.data_bytes);
}

static int map_data(leat__cache_directory *directory, const char *path)
{
    struct stat about;
    index_header header;
    memcpy(&header, directory->index, sizeof(header));
    int status = join(directory->data_path, path, "/data");
    if (status || header.data_bytes == 0)
        return status;
    status = leat__mapped_file_open(&directory->data, directory->data_path,
                                    false, &about);
    if (status)
        return status;
    directory->is_mapped = true;
    return (uint64_t)about.st_size == header.data_bytes
               ? LEAT_OK
               : refuse(path, "its data have another length than they had");
}

int leat__cache_directory_open(leat__cache_directory **out, const char *path,
                               const leat_token *identity)
{
    path_text name;
    int status = join(name, path, "/index");
    if (status)
        return status;
    if (access(name, F_OK) && errno == ENOENT)
        return LEAT_AGAIN;
    leat__cache_directory *directory = leat__alloc_zero(1, sizeof(*directory));
    if (!directory)
        return LEAT_ENOMEM;
    status = read_index(directory, path, identity);
    if (!status)
        status = map_data(directory, path);
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
    return (int64_t)(sizeof(*directory) + sizeof(index_header)) +
           directory->count * (int64_t)(sizeof(entry_place) + 1);
}

int leat__cache_directory_at(leat__cache_directory *directory, int64_t index,
                             const void **entry, size_t *size)
{
    const entry_place *place = &directory->place[index];
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

/* ---- Writing ------------------------------------------------------------ */

static int open_in(const char *folder, const char *name, int flags, int *fd)
{
    path_text path;
    int status = join(path, folder, name);
    if (status)
        return status;
    *fd = open(path, flags | O_CLOEXEC, 0666);
    return *fd >= 0 ? LEAT_OK
                    : leat__error_system(errno, "cannot open %s", path);
}

/* Whether the lock is still that of the directory of this name. */
static bool is_in_place(const leat__cache_writer *writer)
{
    path_text path;
    struct stat own, found;
    return !join(path, writer->partial, "/lock") &&
           !fstat(writer->lock_fd, &own) && !stat(path, &found) &&
           own.st_dev == found.st_dev && own.st_ino == found.st_ino;
}

static int lock_once(leat__cache_writer *writer)
{
    if (mkdir(writer->partial, 0777) && errno != EEXIST)
        return leat__error_system(errno, "cannot make the directory %s",
                                  writer->partial);
    int status =
        open_in(writer->partial, "/lock", O_RDWR | O_CREAT, &writer->lock_fd);
    if (status || !flock(writer->lock_fd, LOCK_EX | LOCK_NB))
        return status;
    if (errno != EWOULDBLOCK)
        return leat__error_system(errno, "cannot lock %s/lock",
                                  writer->partial);
    return leat_error(LEAT_ESTATE,
                      "%s: another reader is making this cache; wait until it "
                      "is there, or name another directory",
                      writer->path);
}

/*
 * Holds the lock of PATH.partial. LEAT_AGAIN: another process has completed or
 * removed it at the same moment.
 */
static int lock_directory(leat__cache_writer *writer)
{
    int status = lock_once(writer);
    return !status && !is_in_place(writer) ? LEAT_AGAIN : status;
}

/* A directory that is there may be empty, but must not be something else. */
static int check_target(const char *path)
{
    if (rmdir(path) == 0 || errno == ENOENT)
        return LEAT_OK;
    return leat_error(LEAT_EINVAL,
                      "%s: it is there, but is neither a cache nor an empty "
                      "directory; name another one",
                      path);
}

static leat__cache_writer *writer_new(void)
{
    leat__cache_writer *writer = leat__alloc_zero(1, sizeof(*writer));
    if (!writer)
        return NULL;
    writer->lock_fd = writer->data_fd = -1;
    leat_token_init(&writer->identity);
    if (leat__fork_watch() || leat__mutex_init(&writer->lock)) {
        leat__free(writer);
        return NULL;
    }
    writer->generation = leat__fork_generation();
    return writer;
}

int leat__cache_writer_create(leat__cache_writer **out, const char *path,
                              const leat_token *identity)
{
    leat__cache_writer *writer = writer_new();
    if (!writer)
        return LEAT_ENOMEM;
    /* Without its lock nothing is removed. */
    writer->is_whole = true;
    int status = join(writer->path, path, "");
    if (!status)
        status = join(writer->partial, path, ".partial");
    if (!status)
        status = check_target(path);
    if (!status)
        status = lock_directory(writer);
    if (!status) {
        writer->is_whole = false;
        status = open_in(writer->partial, "/data", O_WRONLY | O_CREAT | O_TRUNC,
                         &writer->data_fd);
    }
    if (!status)
        status =
            leat_token_put(&writer->identity, identity->bytes, identity->size);
    if (status)
        leat__cache_writer_destroy(writer);
    else
        *out = writer;
    return status;
}

static void remove_partial(const leat__cache_writer *writer)
{
    static const char *const names[] = {"/data", "/index", "/lock", ""};
    path_text path;
    for (int i = 0; i < 4; i++)
        if (!join(path, writer->partial, names[i]))
            (void)remove(path);
}

/* Gives the space back at once: it may be what is missing. */
static void abandon(leat__cache_writer *writer, int status)
{
    writer->failed = status;
    remove_partial(writer);
    if (ftruncate(writer->data_fd, 0))
        return; /* close gives it back */
}

static int grow_index(leat__cache_writer *writer, int64_t index)
{
    int64_t n = writer->capacity ? writer->capacity : INDEX_FIRST;
    if (index < writer->capacity)
        return LEAT_OK;
    while (n <= index)
        n *= 2;
    entry_place *more = leat__realloc(writer->place, (size_t)n * sizeof(*more));
    if (!more)
        return LEAT_ENOMEM;
    memset(more + writer->capacity, 0,
           (size_t)(n - writer->capacity) * sizeof(*more));
    writer->place = more;
    writer->capacity = n;
    return LEAT_OK;
}

static int grow_buffer(leat__cache_writer *writer, size_t bytes)
{
    if (bytes <= writer->buffer_bytes)
        return LEAT_OK;
    char *more = leat__alloc_aligned(bytes);
    if (!more)
        return LEAT_ENOMEM;
    leat__free(writer->buffer);
    writer->buffer = more;
    writer->buffer_bytes = bytes;
    return LEAT_OK;
}

static int write_all(const leat__cache_writer *writer, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = write(writer->data_fd, writer->buffer + done, bytes - done);
        if (n < 0 && errno != EINTR)
            return leat__error_system(errno, "cannot write %s/data",
                                      writer->partial);
        done += n > 0 ? (size_t)n : 0;
    }
    return LEAT_OK;
}

static int add_locked(leat__cache_writer *writer, int64_t index,
                      const leat__cache_item *item)
{
    int status = grow_index(writer, index);
    if (status || writer->place[index].bytes > 0)
        return status;
    size_t bytes = leat__cache_entry_size(item);
    if (bytes == 0)
        return leat_error(LEAT_ENOMEM, "a sample is too large for a cache");
    status = grow_buffer(writer, bytes);
    if (status)
        return status;
    leat__cache_entry_write(item, writer->buffer);
    status = write_all(writer, bytes);
    if (status)
        return status;
    writer->place[index] = (entry_place){
        writer->data_bytes, bytes, leat__crc32c(0, writer->buffer, bytes)};
    writer->data_bytes += bytes;
    writer->written++;
    return LEAT_OK;
}

/* A forked child shares the files with its parent, who goes on writing. */
static bool is_parents(const leat__cache_writer *writer)
{
    return writer->generation != leat__fork_generation();
}

int leat__cache_writer_add(leat__cache_writer *writer, int64_t index,
                           const leat__cache_item *item, int64_t *written)
{
    if (is_parents(writer))
        return leat_error(LEAT_ESTATE, "the process that forked makes it");
    pthread_mutex_lock(&writer->lock);
    int64_t before = writer->written;
    int status =
        writer->failed ? writer->failed : add_locked(writer, index, item);
    *written = writer->written > before ? writer->written : 0;
    if (status && !writer->failed)
        abandon(writer, status);
    pthread_mutex_unlock(&writer->lock);
    return status;
}

static int write_index(const leat__cache_writer *writer)
{
    path_text path;
    size_t places = (size_t)writer->written * sizeof(entry_place);
    size_t body = places + writer->identity.size;
    index_header header = {.count = (uint64_t)writer->written,
                           .data_bytes = writer->data_bytes,
                           .identity_bytes = writer->identity.size};
    char *image = leat__alloc(sizeof(header) + body);
    if (!image)
        return LEAT_ENOMEM;
    if (places > 0)
        memcpy(image + sizeof(header), writer->place, places);
    if (writer->identity.size > 0)
        memcpy(image + sizeof(header) + places, writer->identity.bytes,
               writer->identity.size);
    memcpy(header.magic, magic, sizeof(magic));
    header.body_crc = leat__crc32c(0, image + sizeof(header), body);
    header.header_crc = header_crc(&header);
    memcpy(image, &header, sizeof(header));
    int status = join(path, writer->partial, "/index");
    if (!status)
        status = leat__file_write(path, image, sizeof(header) + body);
    leat__free(image);
    return status;
}

/* The directory's names are on disk. */
static int sync_directory(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd)) {
        int status = leat__error_system(errno, "cannot sync %s", path);
        if (fd >= 0)
            close(fd);
        return status;
    }
    close(fd);
    return LEAT_OK;
}

static int sync_parent(const char *path)
{
    path_text parent;
    int status = join(parent, path, "");
    char *slash = strrchr(parent, '/');
    if (slash)
        slash[slash == parent] = 0;
    return status ? status : sync_directory(slash ? parent : ".");
}

int leat__cache_writer_finish(leat__cache_writer *writer)
{
    int status = LEAT_OK;
    if (is_parents(writer))
        return leat_error(LEAT_ESTATE, "the process that forked makes it");
    pthread_mutex_lock(&writer->lock);
    if (fsync(writer->data_fd))
        status =
            leat__error_system(errno, "cannot sync %s/data", writer->partial);
    if (!status)
        status = write_index(writer);
    if (!status)
        status = sync_directory(writer->partial);
    if (!status && rename(writer->partial, writer->path))
        status = leat__error_system(errno, "cannot rename %s", writer->partial);
    writer->is_whole = !status;
    if (!status)
        status = sync_parent(writer->path);
    pthread_mutex_unlock(&writer->lock);
    return status;
}

void leat__cache_writer_destroy(leat__cache_writer *writer)
{
    if (!writer)
        return;
    if (!writer->is_whole && !writer->failed && !is_parents(writer))
        remove_partial(writer);
    if (writer->data_fd >= 0)
        close(writer->data_fd);
    if (writer->lock_fd >= 0)
        close(writer->lock_fd);
    leat_token_finish(&writer->identity);
    leat__free(writer->place);
    leat__free(writer->buffer);
    pthread_mutex_destroy(&writer->lock);
    leat__free(writer);
}
