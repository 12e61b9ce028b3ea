#include "readers/lmdb/lmdb_file.h"
#include "base/error.h"
#include "base/file.h"
#include "base/file_place.h"
#include "base/memory.h"
#include "readers/lmdb/lmdb_freelist.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14 */
#endif

/* How often a writer may commit between reading and checking. */
#define TRIES_MAX 1000

static char *joined(const char *first, const char *second)
{
    size_t length = strlen(first), rest = strlen(second) + 1;
    char *text = leat__alloc(length + rest);
    if (text) {
        memcpy(text, first, length);
        memcpy(text + length, second, rest);
    }
    return text;
}

static bool is_named_data(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strcmp(slash ? slash + 1 : path, "data.mdb") == 0;
}

/* NULL when memory is short. */
static char *lock_of(const char *data, bool in_directory)
{
    if (!in_directory)
        return joined(data, "-lock");
    char *directory = leat__file_directory(data);
    char *lock = directory ? joined(directory, "/lock.mdb") : NULL;
    leat__free(directory);
    return lock;
}

static int name_locks_of(const char *data, char *locks[2])
{
    locks[0] = lock_of(data, false);
    locks[1] = is_named_data(data) ? lock_of(data, true) : NULL;
    return locks[0] && (locks[1] || !is_named_data(data)) ? LEAT_OK
                                                          : LEAT_ENOMEM;
}

/* Of the link and of each path to which it leads: a writer may have come by any
 * of them. */
static int name_locks(leat__lmdb_file *file, const char *link)
{
    char *at = leat__strdup(link);
    int status = at ? LEAT_OK : LEAT_ENOMEM;
    for (int i = 0; !status && i < LEAT__LMDB_PATHS; i++) {
        status = name_locks_of(at, file->locks + 2 * (size_t)i);
        if (!status)
            status = leat__file_follow_once(&at);
    }
    leat__free(at);
    /* Of a loop, opening it tells. */
    if (!status && !leat__file_access(link, F_OK))
        return leat_error(LEAT_EIO,
                          "%s: expected at most %d links to the data file, one "
                          "after the other",
                          link, LEAT__LMDB_PATHS - 1);
    return status == LEAT_ENOMEM ? status : LEAT_OK;
}

/*
 * A reader must use the lock file that writers use: they overwrite the pages of
 * readers that they do not see. So the path of a directory's data file, or of a
 * link to it, uses the directory's lock file. A data file with another name
 * that is linked as data.mdb uses the lock file beside the link, since writers
 * open it there.
 */
static int name_data(leat__lmdb_file *file, const char *link)
{
    struct stat found;
    file->data = leat__file_followed(link);
    /* Beside a file that was removed there is none. */
    file->is_hidden = file->data && lstat(file->data, &found) == 0 &&
                      S_ISLNK(found.st_mode) && stat(file->data, &found) == 0 &&
                      found.st_nlink > 0;
    if (file->data && is_named_data(link) && !is_named_data(file->data)) {
        leat__free(file->data);
        file->data = leat__strdup(link);
    }
    if (!file->data)
        return LEAT_ENOMEM;
    file->in_directory = is_named_data(file->data);
    file->lock = lock_of(file->data, file->in_directory);
    file->directory = leat__file_directory(file->data);
    return file->lock && file->directory ? name_locks(file, link) : LEAT_ENOMEM;
}

static int name_files(leat__lmdb_file *file, const char *path,
                      bool is_directory)
{
    char *link = is_directory ? joined(path, "/data.mdb") : leat__strdup(path);
    file->path = leat__strdup(path);
    int status = link && file->path ? name_data(file, link) : LEAT_ENOMEM;
    leat__free(link);
    return status;
}

/* The error for a directory without data.mdb. */
static int no_data_file(const leat__lmdb_file *file)
{
    char *current = joined(file->directory, "/CURRENT");
    if (!current)
        return LEAT_ENOMEM;
    bool is_leveldb = !leat__file_access(current, F_OK);
    leat__free(current);
    return leat_error(
        LEAT_EIO, "%s: no data.mdb in this directory%s", file->directory,
        is_leveldb ? ": it is a LevelDB, not an LMDB" : ", expected an LMDB");
}

static int open_data(leat__lmdb_file *file)
{
    struct stat found;
    file->fd = leat__file_open_regular(AT_FDCWD, file->data, 0);
    if (file->fd < 0 && errno == ENOENT && file->in_directory)
        return no_data_file(file);
    if (file->fd < 0 && errno == ENXIO)
        return leat_error(LEAT_EIO, "%s: not a regular file, expected an LMDB",
                          file->data);
    if (file->fd < 0 || fstat(file->fd, &found) != 0)
        return leat__error_system(errno, "%s: cannot be opened", file->data);
    file->device = found.st_dev;
    file->inode = found.st_ino;
    return LEAT_OK;
}

static int read_metas(const leat__lmdb_file *file, leat__lmdb_meta out[2])
{
    int status = leat__lmdb_file_meta(file, 0, 0, &out[0]);
    if (!status)
        status = leat__lmdb_file_meta(file, 1, out[0].page_size, &out[1]);
    return status;
}

/* A file that ends early is valid only if its missing pages are free. */
static int check_end(const leat__lmdb_file *file, leat__lmdb_meta *meta,
                     size_t size)
{
    if (meta->last_page < size / meta->page_size)
        return LEAT_OK;
    void *base;
    int status = leat__lmdb_file_map(file, meta, size, &base);
    if (status)
        return status;
    status = leat__lmdb_freelist_cut(meta, file->data, base, size);
    munmap(base, size);
    return status;
}

/* The size is read last: a writer extends the file before it updates a meta
 * page. */
static int check_metas(const leat__lmdb_file *file,
                       const leat__lmdb_meta meta[2])
{
    size_t size = 0;
    int status = leat__lmdb_meta_check_pair(meta, file->data);
    if (!status)
        status = leat__lmdb_file_size(file, &size);
    if (status)
        return status;
    leat__lmdb_meta latest = meta[meta[0].txnid < meta[1].txnid];
    status = check_end(file, &latest, size);
    if (!status)
        status = leat__lmdb_meta_check(&latest, file->data, size);
    return status;
}

static bool is_same(const leat__lmdb_meta a[2], const leat__lmdb_meta b[2])
{
    return a[0].txnid == b[0].txnid && a[1].txnid == b[1].txnid &&
           a[0].last_page == b[0].last_page && a[1].last_page == b[1].last_page;
}

/*
 * A writer may change the file while it is read: a fault counts only if the
 * meta pages are the same afterwards.
 */
static int check_contents(const leat__lmdb_file *file)
{
    leat__lmdb_meta meta[2] = {{0}}, before[2];
    char line[LEAT__ERROR_MAX];
    size_t size = 0;
    int status = leat__lmdb_file_size(file, &size);
    if (status)
        return status;
    if (!size)
        return leat_error(LEAT_EFORMAT, "%s: empty, expected an LMDB",
                          file->data);
    status = read_metas(file, meta);
    for (int i = 0; i < TRIES_MAX && !status; i++) {
        int found = check_metas(file, meta);
        if (found != LEAT_EFORMAT)
            return found;
        leat__error_save(line);
        memcpy(before, meta, sizeof(meta));
        status = read_metas(file, meta);
        if (!status && (is_same(before, meta) || i == TRIES_MAX - 1))
            return leat_error(found, "%s", line);
    }
    return status;
}

/* An interrupted leat import or synth leaves its staging directory beside its
 * target. */
static bool has_staging(const char *path)
{
    static const char end[] = ".leat-part";
    char part[PATH_MAX];
    size_t length = strlen(path);
    if (length + sizeof(end) > sizeof(part))
        return false;
    memcpy(part, path, length);
    memcpy(part + length, end, sizeof(end));
    return !leat__file_access(part, F_OK);
}

static int not_found(const char *path)
{
    int code = errno;
    if (code == ENOENT && has_staging(path))
        return leat_error(LEAT_EIO,
                          "%s: does not exist yet; %s.leat-part is unfinished: "
                          "rerun its command to resume",
                          path, path);
    return leat__error_system(
        code, "%s: expected an LMDB%s, a directory with data.mdb", path,
        strncmp(path, "lmdb:", 5) == 0 ? " by its path, without lmdb:" : "");
}

int leat__lmdb_file_find(leat__lmdb_file *out, const char *path)
{
    leat__lmdb_file file = {.fd = -1};
    struct stat found;
    if (stat(path, &found) != 0)
        return not_found(path);
    int status = name_files(&file, path, S_ISDIR(found.st_mode));
    if (!status)
        status = open_data(&file);
    if (status)
        leat__lmdb_file_close(&file);
    else
        *out = file;
    return status;
}

int leat__lmdb_file_open(leat__lmdb_file *out, const char *path)
{
    leat__lmdb_file file = {.fd = -1};
    int status = leat__lmdb_file_find(&file, path);
    if (status)
        return status;
    status = check_contents(&file);
    if (status)
        leat__lmdb_file_close(&file);
    else
        *out = file;
    return status;
}

void leat__lmdb_file_close(leat__lmdb_file *file)
{
    if (file->fd >= 0)
        close(file->fd); /* read-only: nothing can be lost */
    leat__free(file->path);
    leat__free(file->data);
    leat__free(file->lock);
    for (int i = 0; i < LEAT__LMDB_LOCKS; i++)
        leat__free(file->locks[i]);
    leat__free(file->directory);
    *file = (leat__lmdb_file){.fd = -1};
}

int leat__lmdb_file_size(const leat__lmdb_file *file, size_t *out)
{
    struct stat found;
    if (fstat(file->fd, &found) != 0)
        return leat__error_system(errno, "%s: its size cannot be read",
                                  file->data);
    *out = (size_t)found.st_size;
    return LEAT_OK;
}

int leat__lmdb_file_meta(const leat__lmdb_file *file, int number,
                         size_t page_size, leat__lmdb_meta *out)
{
    unsigned char bytes[LEAT__LMDB_META_BYTES];
    off_t from = number ? (off_t)page_size : 0;
    ssize_t n = leat__file_read_at(file->fd, bytes, sizeof(bytes), from);
    if (n < 0)
        return leat__error_system(errno, "%s: cannot be read", file->data);
    if (n < (ssize_t)sizeof(bytes))
        return leat_error(LEAT_EFORMAT,
                          "%s: truncated: it ends within meta page %d, or "
                          "is not an LMDB data file",
                          file->data, number);
    return leat__lmdb_meta_parse(out, file->data, number, bytes);
}

/* Whether the map has that transaction, or a later one. The first pages may be
 * missing from it, which a plain access would answer by a signal. */
static bool shows(void *base, size_t size, const leat__lmdb_meta *meta)
{
    const unsigned char *second = (unsigned char *)base + meta->page_size;
    if (size < 2 * meta->page_size)
        return true;
    if (madvise(base, 2 * meta->page_size, MADV_POPULATE_READ) &&
        errno == EFAULT)
        return false;
    return leat__lmdb_meta_txnid(base) >= meta->txnid ||
           leat__lmdb_meta_txnid(second) >= meta->txnid;
}

/* Its number stays. */
static int renew(const leat__lmdb_file *file)
{
    char self[32];
    snprintf(self, sizeof(self), "/proc/thread-self/fd/%d", file->fd);
    int fd = leat__file_open(self, 0);
    int code = fd < 0 || dup3(fd, file->fd, O_CLOEXEC) < 0 ? errno : 0;
    if (fd >= 0)
        close(fd); /* read-only: nothing can be lost */
    return code ? leat__error_system(code, "%s: cannot be opened again",
                                     file->data)
                : LEAT_OK;
}

int leat__lmdb_file_map(const leat__lmdb_file *file,
                        const leat__lmdb_meta *meta, size_t size, void **out)
{
    for (bool is_renewed = false;; is_renewed = true) {
        void *base = mmap(NULL, size, PROT_READ, MAP_SHARED, file->fd, 0);
        if (base == MAP_FAILED)
            return leat__error_system(errno, "%s: %zu bytes cannot be mapped",
                                      file->data, size);
        if (is_renewed || shows(base, size, meta)) {
            *out = base;
            return LEAT_OK;
        }
        munmap(base, size);
        int status = renew(file);
        if (status)
            return status;
    }
}

bool leat__lmdb_file_is_sealed(const leat__lmdb_file *file)
{
    if (leat__file_access(file->lock, F_OK) != ENOENT)
        return false;
    int code = leat__file_access(file->directory, W_OK);
    return code == EACCES || code == EPERM || code == EROFS;
}
