/*
 * DESIGN. The lock guards file position, buffer and index: threads that read
 * samples in parallel write them one after the other, in any order.
 *
 * All writers are in a list, under a lock of its own, for a handler that closes
 * the files that they keep open in a forked child: it would go on holding the
 * locks of a parent that has died. The list is whole at any moment, as links
 * are set at once, and no fork comes between opening or closing a file and
 * noting that. leat_caches_abandon goes through it, too, so a writer's files
 * are closed under the list's lock. Order of locks: lock, names_lock of the
 * partial directory; list_lock, names_lock; list_lock, that of forks.
 */
#include "decorators/cache/cache_writer.h"
#include "base/cancel.h"
#include "base/file.h"
#include "base/fork.h"
#include "base/memory.h"
#include "base/thread.h"
#include "decorators/cache/cache_partial.h"

#include <leat/decorators.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

enum { INDEX_FIRST = 1024 };

struct leat__cache_writer {
    _Atomic(leat__cache_writer *) next; /* in the list, under its lock */
    leat__cache_partial partial;
    int data_fd;
    leat_token identity;
    pthread_mutex_t lock;
    int64_t max_memory;
    /* Protected by lock. */
    leat__cache_place *place; /* pages, zero where no entry is written */
    int64_t capacity;
    int64_t written;
    int failed; /* the status of a write, after which all is removed */
    bool is_complete;
    uint64_t data_bytes;
    char *buffer; /* for one entry */
    size_t buffer_bytes;
    atomic_int_fast64_t memory; /* bytes of the places and the buffer */
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(leat__cache_writer *) writers;
static bool is_ending; /* leat_caches_abandon; protected by list_lock */

static void close_data(leat__cache_writer *writer)
{
    if (writer->data_fd >= 0)
        close(writer->data_fd);
    writer->data_fd = -1;
}

static void close_files(leat__cache_writer *writer)
{
    close_data(writer);
    leat__cache_partial_close(&writer->partial);
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

static void list_writer(leat__cache_writer *writer)
{
    pthread_mutex_lock(&list_lock);
    atomic_store(&writer->partial.is_abandoned, is_ending);
    atomic_store(&writer->next, atomic_load(&writers));
    atomic_store(&writers, writer);
    pthread_mutex_unlock(&list_lock);
}

/* Closes its files, and takes it from the list, where it is in that. */
static void unlist_writer(leat__cache_writer *writer)
{
    pthread_mutex_lock(&list_lock);
    leat__fork_hold();
    close_files(writer);
    leat__fork_release();
    _Atomic(leat__cache_writer *) *at = &writers;
    while (atomic_load(at) && atomic_load(at) != writer)
        at = &atomic_load(at)->next;
    if (atomic_load(at))
        atomic_store(at, atomic_load(&writer->next));
    pthread_mutex_unlock(&list_lock);
}

static leat__cache_writer *writer_new(void)
{
    leat__cache_writer *writer = leat__alloc_zero(1, sizeof(*writer));
    if (!writer)
        return NULL;
    writer->data_fd = -1;
    leat__cache_partial_init(&writer->partial);
    leat_token_init(&writer->identity);
    if (leat__fork_watch() || leat__mutex_init(&writer->lock)) {
        leat__free(writer);
        return NULL;
    }
    leat__fork_call_in_child(forget_parent);
    list_writer(writer);
    return writer;
}

/* What is removed while it is open keeps its space, and on FUSE and NFS its
 * directory. */
static void remove_partial(leat__cache_writer *writer)
{
    leat__fork_hold();
    close_data(writer);
    leat__fork_release();
    leat__cache_partial_remove(&writer->partial);
}

int leat__cache_writer_create(leat__cache_writer **out, const char *path,
                              const leat_token *identity, int64_t max_memory)
{
    leat__cache_writer *writer = writer_new();
    if (!writer)
        return LEAT_ENOMEM;
    writer->max_memory = max_memory;
    int status = leat__cache_partial_open(&writer->partial, path);
    if (!status)
        status = leat__cache_partial_create(&writer->partial, "data",
                                            &writer->data_fd);
    if (!status)
        status =
            leat_token_put(&writer->identity, identity->bytes, identity->size);
    if (status)
        leat__cache_writer_destroy(writer);
    else
        *out = writer;
    return status;
}

static void free_buffer(leat__cache_writer *writer)
{
    leat__free_to(NULL, writer->buffer, writer->buffer_bytes, LEAT__ALIGNMENT);
    writer->buffer = NULL;
    writer->buffer_bytes = 0;
}

static void free_memory(leat__cache_writer *writer)
{
    leat__free_pages(writer->place,
                     (size_t)writer->capacity * sizeof(*writer->place));
    free_buffer(writer);
    writer->place = NULL;
    writer->capacity = 0;
    atomic_store(&writer->memory, 0);
}

/* Gives the space back at once: it may be what is missing. */
static void abandon(leat__cache_writer *writer, int status)
{
    writer->failed = status;
    free_memory(writer);
    remove_partial(writer);
}

static int grow_index(leat__cache_writer *writer, int64_t index)
{
    size_t before = (size_t)writer->capacity * sizeof(leat__cache_place), bytes;
    int64_t n = writer->capacity ? writer->capacity : INDEX_FIRST;
    if (index < writer->capacity)
        return LEAT_OK;
    int status = leat__cache_check_count(index + 1, writer->max_memory);
    if (status)
        return status;
    while (n <= index)
        n = n > INT64_MAX / 2 ? INT64_MAX : n * 2;
    if (writer->max_memory > 0 &&
        n > writer->max_memory / LEAT__CACHE_INDEX_UNIT)
        n = writer->max_memory / LEAT__CACHE_INDEX_UNIT;
    if (leat__multiply((size_t)n, sizeof(leat__cache_place), &bytes))
        return leat__error_memory(SIZE_MAX);
    leat__cache_place *more = leat__resize_pages(writer->place, before, bytes);
    if (!more)
        return LEAT_ENOMEM;
    writer->place = more;
    writer->capacity = n;
    atomic_fetch_add(&writer->memory, (int64_t)(bytes - before));
    return LEAT_OK;
}

static int grow_buffer(leat__cache_writer *writer, size_t bytes)
{
    if (bytes <= writer->buffer_bytes)
        return LEAT_OK;
    char *more = leat__alloc_from(NULL, bytes, LEAT__ALIGNMENT);
    if (!more)
        return LEAT_ENOMEM;
    atomic_fetch_add(&writer->memory, (int64_t)(bytes - writer->buffer_bytes));
    free_buffer(writer);
    writer->buffer = more;
    writer->buffer_bytes = bytes;
    return LEAT_OK;
}

/* Returns the errno, 0 on success. `size`: of the file once that is done. */
static int write_all(int fd, const char *bytes, size_t n, uint64_t size)
{
    int code = leat__file_check_limit((int64_t)size);
    for (size_t done = 0; !code && done < n;) {
        ssize_t some = write(fd, bytes + done, n - done);
        if (some < 0 && errno != EINTR)
            code = errno;
        done += some > 0 ? (size_t)some : 0;
    }
    return code;
}

static int write_entry(const leat__cache_writer *writer, size_t bytes)
{
    int code = write_all(writer->data_fd, writer->buffer, bytes,
                         writer->data_bytes + bytes);
    return code ? leat__error_system(code, "cannot write %s/data",
                                     writer->partial.partial)
                : LEAT_OK;
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
    status = write_entry(writer, bytes);
    if (status)
        return status;
    writer->place[index] = (leat__cache_place){
        writer->data_bytes, bytes, leat__crc32c(0, writer->buffer, bytes)};
    writer->data_bytes += bytes;
    writer->written++;
    return LEAT_OK;
}

int leat__cache_writer_add(leat__cache_writer *writer, int64_t index,
                           const leat__cache_item *item, int64_t *written)
{
    pthread_mutex_lock(&writer->lock);
    int64_t before = writer->written;
    int status = writer->failed;
    if (!status && !writer->is_complete)
        status = leat__cache_partial_check(&writer->partial);
    if (!status && !writer->is_complete)
        status = add_locked(writer, index, item);
    *written = writer->written > before ? writer->written : 0;
    if (status && !writer->failed)
        abandon(writer, status);
    pthread_mutex_unlock(&writer->lock);
    return status;
}

static leat__cache_index_header make_header(const leat__cache_writer *writer)
{
    const leat_token *identity = &writer->identity;
    leat__cache_index_header header = {.count = (uint64_t)writer->written,
                                       .data_bytes = writer->data_bytes,
                                       .identity_bytes = identity->size};
    size_t places = (size_t)writer->written * sizeof(leat__cache_place);
    memcpy(header.magic, LEAT__CACHE_MAGIC, sizeof(header.magic));
    if (places > 0)
        header.body_crc = leat__crc32c(0, writer->place, places);
    if (identity->size > 0)
        header.body_crc =
            leat__crc32c(header.body_crc, identity->bytes, identity->size);
    header.header_crc = leat__cache_header_crc(&header);
    return header;
}

/* Returns the errno, 0 on success. */
static int write_index_to(int fd, const leat__cache_writer *writer)
{
    leat__cache_index_header header = make_header(writer);
    const leat_token *identity = &writer->identity;
    size_t places = (size_t)writer->written * sizeof(leat__cache_place);
    size_t size = sizeof(header) + places + identity->size;
    int code = write_all(fd, (const char *)&header, sizeof(header), size);
    if (!code)
        code = write_all(fd, (const char *)writer->place, places, size);
    if (!code)
        code =
            write_all(fd, (const char *)identity->bytes, identity->size, size);
    return code ? code : fsync(fd) ? errno : 0;
}

/* On disk before the directory gets its name. */
static int write_index(leat__cache_writer *writer)
{
    int fd = -1;
    int status = leat__cache_partial_create(&writer->partial, "index", &fd);
    if (status)
        return status;
    int code = write_index_to(fd, writer);
    if (close(fd) && !code)
        code = errno;
    return code ? leat__error_system(code, "cannot write %s/index",
                                     writer->partial.partial)
                : LEAT_OK;
}

int leat__cache_writer_finish(leat__cache_writer *writer)
{
    int status = LEAT_OK;
    pthread_mutex_lock(&writer->lock);
    if (fsync(writer->data_fd))
        status = leat__error_system(errno, "cannot sync %s/data",
                                    writer->partial.partial);
    if (!status)
        status = write_index(writer);
    if (!status)
        status = leat__cache_partial_complete(&writer->partial);
    writer->is_complete = !status;
    if (status)
        abandon(writer, status);
    else
        free_memory(writer);
    pthread_mutex_unlock(&writer->lock);
    return status;
}

int leat__cache_writer_open(leat__cache_directory **out,
                            const leat__cache_writer *writer)
{
    const leat__cache_partial *partial = &writer->partial;
    return leat__cache_directory_open_at(out, partial->fd, partial->path,
                                         &writer->identity, writer->max_memory);
}

int64_t leat__cache_writer_memory(const leat__cache_writer *writer)
{
    return atomic_load(&writer->memory);
}

void leat__cache_writer_destroy(leat__cache_writer *writer)
{
    if (!writer)
        return;
    remove_partial(writer);
    unlist_writer(writer);
    leat_token_finish(&writer->identity);
    free_memory(writer);
    pthread_mutex_destroy(&writer->lock);
    leat__free(writer);
}

void leat_caches_abandon(void)
{
    int cancel = leat__cancel_disable();
    pthread_mutex_lock(&list_lock);
    is_ending = true;
    for (leat__cache_writer *at = atomic_load(&writers); at;
         at = atomic_load(&at->next))
        leat__cache_partial_abandon(&at->partial);
    pthread_mutex_unlock(&list_lock);
    leat__cancel_restore(cancel);
}
