/*
 * DESIGN. The lock guards file position, buffer and index: threads that read
 * samples in parallel write them one after the other, in any order.
 *
 * All writers are in a list, under a lock of its own, for a handler that closes
 * their files in a forked child: it would go on holding the locks of a parent
 * that has died. The list is whole at any moment, as links are set at once, and
 * no fork comes between opening or closing a file and noting that.
 */
#include "decorators/cache/cache_writer.h"
#include "base/file.h"
#include "base/fork.h"
#include "base/memory.h"
#include "base/thread.h"
#include "decorators/cache/cache_format.h"
#include "decorators/cache/cache_target.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { INDEX_FIRST = 1024 };

struct leat__cache_writer {
    _Atomic(leat__cache_writer *) next; /* in the list, under its lock */
    unsigned generation;                /* of the process that writes */
    leat__cache_path path;              /* what it becomes */
    leat__cache_path partial;           /* what it is until then */
    int lock_fd;
    int data_fd;
    leat_token identity;
    pthread_mutex_t lock;
    /* Protected by lock. */
    leat__cache_place *place;
    int64_t capacity;
    int64_t written;
    int failed; /* the status of a write, after which all is removed */
    uint64_t data_bytes;
    char *buffer; /* for one entry */
    size_t buffer_bytes;
    bool is_whole;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_watching; /* written once, under `once` */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(leat__cache_writer *) writers;

static void close_files(leat__cache_writer *writer)
{
    if (writer->data_fd >= 0)
        close(writer->data_fd);
    if (writer->lock_fd >= 0)
        close(writer->lock_fd);
    writer->data_fd = writer->lock_fd = -1;
}

/* Runs in a child, while it has a single thread. */
static void forget_parent(void)
{
    list_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    for (leat__cache_writer *at = atomic_load(&writers); at;
         at = atomic_load(&at->next))
        close_files(at);
    atomic_store(&writers, NULL);
}

static void watch_forks(void)
{
    is_watching = pthread_atfork(NULL, NULL, forget_parent) == 0;
}

static void list_writer(leat__cache_writer *writer)
{
    pthread_mutex_lock(&list_lock);
    atomic_store(&writer->next, atomic_load(&writers));
    atomic_store(&writers, writer);
    pthread_mutex_unlock(&list_lock);
}

/* One of a parent is in no list. */
static void unlist_writer(const leat__cache_writer *writer)
{
    pthread_mutex_lock(&list_lock);
    _Atomic(leat__cache_writer *) *at = &writers;
    while (atomic_load(at) && atomic_load(at) != writer)
        at = &atomic_load(at)->next;
    if (atomic_load(at))
        atomic_store(at, atomic_load(&writer->next));
    pthread_mutex_unlock(&list_lock);
}

static int refuse_foreign(const char *path, const char *expected)
{
    return leat_error(LEAT_EIO, "%s: expected %s of a cache; remove it", path,
                      expected);
}

/* Opens a regular file of PATH.partial, through no link and without waiting at
   a pipe: another program may have made the directory. */
static int open_in(const char *folder, const char *name, int flags, int *fd)
{
    leat__cache_path path;
    struct stat found;
    int status = leat__cache_join(path, folder, name);
    if (status)
        return status;
    leat__fork_hold();
    *fd = open(path,
               flags | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
               0666);
    int code = *fd < 0 ? errno : 0;
    leat__fork_release();
    if (code && code != ELOOP && code != ENXIO)
        return leat__error_system(code, "cannot open %s", path);
    if (*fd < 0 || fstat(*fd, &found) || !S_ISREG(found.st_mode))
        return refuse_foreign(path, "a regular file");
    return LEAT_OK;
}

/* What a writer left that was killed goes. */
static int create_data(leat__cache_writer *writer)
{
    leat__cache_path path;
    int status = leat__cache_join(path, writer->partial, "/data");
    if (!status && unlink(path) && errno != ENOENT)
        status = leat__error_system(errno, "cannot remove %s", path);
    return status ? status
                  : open_in(writer->partial, "/data", O_WRONLY | O_EXCL,
                            &writer->data_fd);
}

/* Whether the lock is still that of the directory of this name. */
static bool is_in_place(const leat__cache_writer *writer)
{
    leat__cache_path path;
    struct stat own, found;
    return !leat__cache_join(path, writer->partial, "/lock") &&
           !fstat(writer->lock_fd, &own) && !stat(path, &found) &&
           own.st_dev == found.st_dev && own.st_ino == found.st_ino;
}

static int lock_once(leat__cache_writer *writer)
{
    struct stat found;
    if (mkdir(writer->partial, 0777) && errno != EEXIST)
        return leat__error_system(errno, "cannot make the directory %s",
                                  writer->partial);
    if (!lstat(writer->partial, &found) && !S_ISDIR(found.st_mode))
        return refuse_foreign(writer->partial, "a directory");
    int status = open_in(writer->partial, "/lock", O_RDWR, &writer->lock_fd);
    if (status && lstat(writer->partial, &found) && errno == ENOENT)
        return LEAT_AGAIN;
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

/* The path without slashes at its end, after which PATH.partial would be in the
   directory that it is to become. */
static int set_paths(leat__cache_writer *writer, const char *path)
{
    int status = leat__cache_join(writer->path, path, "");
    if (status)
        return status;
    size_t n = strlen(writer->path);
    while (n > 0 && writer->path[n - 1] == '/')
        writer->path[--n] = 0;
    const char *slash = strrchr(writer->path, '/');
    const char *name = slash ? slash + 1 : writer->path;
    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return leat_error(LEAT_EINVAL,
                          "cache: dir is '%s': expected a directory's own "
                          "name, under which it can be made",
                          path);
    return leat__cache_join(writer->partial, writer->path, ".partial");
}

static leat__cache_writer *writer_new(void)
{
    leat__cache_writer *writer = leat__alloc_zero(1, sizeof(*writer));
    if (!writer)
        return NULL;
    writer->lock_fd = writer->data_fd = -1;
    leat_token_init(&writer->identity);
    pthread_once(&once, watch_forks);
    if (!is_watching || leat__fork_watch() || leat__mutex_init(&writer->lock)) {
        leat__free(writer);
        return NULL;
    }
    writer->generation = leat__fork_generation();
    list_writer(writer);
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
    int status = set_paths(writer, path);
    if (!status)
        status = leat__cache_target_check(writer->path);
    if (!status)
        status = lock_directory(writer);
    if (!status) {
        writer->is_whole = false;
        status = create_data(writer);
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
    leat__cache_path path;
    for (int i = 0; i < 4; i++)
        if (!leat__cache_join(path, writer->partial, names[i]))
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
    leat__cache_place *more =
        leat__realloc(writer->place, (size_t)n * sizeof(*more));
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

static int check_limit(const leat__cache_writer *writer, size_t bytes)
{
    int code = leat__file_check_limit((int64_t)(writer->data_bytes + bytes));
    return code ? leat__error_system(code, "cannot write %s/data",
                                     writer->partial)
                : LEAT_OK;
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
    status = check_limit(writer, bytes);
    if (!status)
        status = grow_buffer(writer, bytes);
    if (status)
        return status;
    leat__cache_entry_write(item, writer->buffer);
    status = write_all(writer, bytes);
    if (status)
        return status;
    writer->place[index] = (leat__cache_place){
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
    leat__cache_path path;
    size_t places = (size_t)writer->written * sizeof(leat__cache_place);
    size_t body = places + writer->identity.size;
    leat__cache_index_header header = {.count = (uint64_t)writer->written,
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
    memcpy(header.magic, LEAT__CACHE_MAGIC, sizeof(header.magic));
    header.body_crc = leat__crc32c(0, image + sizeof(header), body);
    header.header_crc = leat__cache_header_crc(&header);
    memcpy(image, &header, sizeof(header));
    int status = leat__cache_join(path, writer->partial, "/index");
    if (!status)
        status = leat__file_write(path, image, sizeof(header) + body);
    leat__free(image);
    return status;
}

/* The directory's names are on disk. A file system that cannot sync directories
 * need not; a directory that may be written to but not read cannot be synced.
 */
static int sync_directory(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == EACCES
                   ? LEAT_OK
                   : leat__error_system(errno, "cannot sync %s", path);
    int status = fsync(fd) && errno != EINVAL
                     ? leat__error_system(errno, "cannot sync %s", path)
                     : LEAT_OK;
    close(fd); /* only read from: nothing can be lost */
    return status;
}

static int sync_parent(const char *path)
{
    leat__cache_path parent;
    int status = leat__cache_target_parent(parent, path);
    return status ? status : sync_directory(parent);
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
    leat__fork_hold();
    close_files(writer);
    leat__fork_release();
    unlist_writer(writer);
    leat_token_finish(&writer->identity);
    leat__free(writer->place);
    leat__free(writer->buffer);
    pthread_mutex_destroy(&writer->lock);
    leat__free(writer);
}
