/*
 * DESIGN. A writer that is killed leaves the directory as it is at any moment:
 *
 *   nothing in it                    made, and not yet locked
 *   NAME.lock, maybe data and index  unfinished; both may be cut short
 *
 * In both states the next writer locks and removes it, and makes its own: who
 * may do what with it is not another user's to decide. Where PATH is an empty
 * directory it is made inside that, as PATH/NAME.partial, and moved out. A
 * writer that is killed before leaves that; the next one removes it, or the one
 * that completes the cache. Without NAME.lock a file is somebody else's: the
 * user's, or that of a complete cache whose own name ends in ".partial". A
 * writer that is killed between the rename and the removal of the lock leaves
 * that in a complete cache, but under the cache's own name.
 *
 * FUSE and NFS rename a file that is removed while it is open, and keep it
 * until it is closed: so the lock is closed before the directory is removed.
 * It is free once it has no name: whoever makes it anew meanwhile has the
 * directory, which is not empty then, and stays. Where such files are in it
 * nevertheless, they are left alone, and the next writer goes on in the
 * directory, if that is its own user's.
 *
 * Before a file is made, removed or renamed, the names have to lead to what the
 * descriptors hold: the user may have removed the directory, and another writer
 * made it again. That and the change are under names_lock, since another thread
 * may abandon the directory. Without locks (cache_lock.c) what a killed writer
 * left is not taken over.
 *
 * Descriptors are opened while no other thread forks, as the handler that
 * closes them in a child has to find them noted.
 */
#include "decorators/cache/cache_partial.h"
#include "base/file_access.h"
#include "base/file_place.h"
#include "base/log.h"
#include "decorators/cache/cache_target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DIRECTORY = O_PATH | O_DIRECTORY | O_NOFOLLOW };

/* Whether the file of that name is the one that was made. */
static bool is_there(const leat__cache_partial *partial, const char *name,
                     const leat__cache_file *made)
{
    struct stat found;
    return made->number != 0 &&
           !fstatat(partial->fd, name, &found, AT_SYMLINK_NOFOLLOW) &&
           made->device == found.st_dev && made->number == found.st_ino;
}

/* The path without slashes at its end, after which PATH.partial would be in the
   directory that it is to become. */
static int set_paths(leat__cache_partial *partial, const char *path)
{
    int status = leat__cache_join(partial->path, path, "");
    if (status)
        return status;
    size_t n = strlen(partial->path);
    while (n > 0 && partial->path[n - 1] == '/')
        partial->path[--n] = 0;
    const char *slash = strrchr(partial->path, '/');
    const char *name = slash ? slash + 1 : partial->path;
    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return leat_error(LEAT_EINVAL,
                          "cache: dir is '%s': expected a directory's own "
                          "name, under which it can be made",
                          path);
    partial->name = (size_t)(name - partial->path);
    status = leat__cache_join(partial->lock, name, ".lock");
    return status
               ? status
               : leat__cache_join(partial->partial, partial->path, ".partial");
}

/* LEAT_AGAIN where it is gone already. */
static int refuse_files(const leat__cache_partial *partial)
{
    if (!leat__cache_partial_is_there(partial))
        return LEAT_AGAIN;
    return leat_error(LEAT_EINVAL,
                      "%s: it holds files that are not of an unfinished cache; "
                      "move it away, or name another directory",
                      partial->partial);
}

/* Nothing that leat did not write is removed. A writer that was killed left its
   lock, whatever else it left. LEAT_AGAIN: the directory is gone, which FUSE
   says as it is opened. */
static int check_entries(leat__cache_partial *partial)
{
    bool has_lock = false, has_files = false, has_others = false;
    const struct dirent *entry;
    int fd = openat(partial->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    if (!directory) {
        int code = errno;
        if (fd >= 0)
            close(fd);
        return code == ENOENT ? LEAT_AGAIN
                              : leat__error_system(code, "cannot list %s",
                                                   partial->partial);
    }
    while (errno = 0, (entry = readdir(directory)) != NULL) {
        const char *name = entry->d_name;
        if (strcmp(name, partial->lock) == 0)
            has_lock = true;
        else if (strcmp(name, "data") == 0 || strcmp(name, "index") == 0)
            has_files = true;
        else if (leat__file_is_hidden(name))
            partial->has_hidden = true;
        else if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
            has_others = true;
    }
    int code = errno;
    closedir(directory);
    if (code)
        return leat__error_system(code, "cannot list %s", partial->partial);
    return has_others || (has_files && !has_lock) ? refuse_files(partial)
                                                  : LEAT_OK;
}

static int cannot_make(const leat__cache_partial *partial, int code)
{
    return leat__error_system(code, "cannot make the directory %s",
                              partial->partial);
}

/* Inside the one that is replaced. Returns the errno. */
static int make_inside(const leat__cache_partial *partial, int replaced)
{
    const char *name = leat__cache_partial_name_of(partial);
    return leat__file_make_directory(replaced, name, partial->parent_fd, name);
}

static int make_directory(leat__cache_partial *partial)
{
    const char *name = leat__cache_partial_name_of(partial);
    int replaced = leat__cache_target_open(partial->parent_fd,
                                           leat__cache_name_of(partial));
    int code = errno;
    if (replaced < 0 && code == ENOENT)
        code = mkdirat(partial->parent_fd, name, 0777) ? errno : 0;
    /* Another writer has completed the cache. */
    if (replaced >= 0 && !faccessat(replaced, "index", F_OK, AT_EACCESS)) {
        close(replaced);
        return LEAT_AGAIN;
    }
    if (replaced >= 0 && unlinkat(replaced, name, AT_REMOVEDIR) &&
        errno != ENOENT) {
        code = errno;
        close(replaced);
        /* Said whether it is there or not. */
        return code == EROFS ? cannot_make(partial, code)
                             : leat__error_system(code, "cannot remove %s/%s",
                                                  partial->path, name);
    }
    if (replaced >= 0) {
        code = make_inside(partial, replaced);
        close(replaced);
    }
    partial->is_made = !code;
    /* Another writer has made it, or removed it inside. */
    if (code == EEXIST || code == ENOTEMPTY ||
        (code == ENOENT && replaced >= 0))
        return LEAT_AGAIN;
    return code ? cannot_make(partial, code) : LEAT_OK;
}

/* LEAT_AGAIN where it has just gone. */
static int explain_open(const leat__cache_partial *partial, int code)
{
    if (code == ENOENT)
        return LEAT_AGAIN;
    if (code == ENOTDIR || code == ELOOP)
        return leat_error(LEAT_EIO,
                          "%s: expected a directory; move it away, or name "
                          "another one for the cache",
                          partial->partial);
    return code ? leat__error_system(code, "cannot open %s", partial->partial)
                : LEAT_OK;
}

/* Makes the directory where there is none, and opens it. */
static int open_directory(leat__cache_partial *partial)
{
    leat__cache_path parent;
    const char *name = leat__cache_partial_name_of(partial);
    int status = leat__cache_target_parent(parent, partial->path);
    if (status)
        return status;
    int code = leat__cache_open_at(&partial->parent_fd, AT_FDCWD, parent,
                                   O_PATH | O_DIRECTORY);
    if (code)
        return cannot_make(partial, code);
    code =
        leat__cache_open_at(&partial->fd, partial->parent_fd, name, DIRECTORY);
    if (code == ENOENT) {
        status = make_directory(partial);
        if (!status)
            code = leat__cache_open_at(&partial->fd, partial->parent_fd, name,
                                       DIRECTORY);
    }
    if (!status)
        status = explain_open(partial, code);
    return status || partial->is_made ? status : check_entries(partial);
}

/* One that another writer has taken meanwhile has its lock in it, and stays. */
static void unmake_directory(const leat__cache_partial *partial)
{
    if (partial->is_made)
        (void)unlinkat(partial->parent_fd, leat__cache_partial_name_of(partial),
                       AT_REMOVEDIR);
}

static void close_one(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static bool is_users(const leat__cache_partial *partial)
{
    struct stat found;
    return !fstat(partial->fd, &found) && found.st_uid == geteuid();
}

/* What a killed writer left, which lost its lock with its life. LEAT_AGAIN: it
   is gone, or another writer has it. LEAT_OK: emptied, it is this writer's. */
static int remove_leftover(leat__cache_partial *partial)
{
    const char *const names[] = {"data", "index", partial->lock};
    bool goes_on = partial->has_hidden && is_users(partial);
    for (int i = 0; i < (goes_on ? 2 : 3); i++) {
        if (!leat__cache_lock_is_there(partial))
            return LEAT_AGAIN;
        if (!unlinkat(partial->fd, names[i], 0) || errno == ENOENT)
            continue;
        return errno == EACCES
                   ? leat__cache_refuse_leftover(partial)
                   : leat__error_system(errno, "cannot remove %s/%s",
                                        partial->partial, names[i]);
    }
    if (goes_on)
        return LEAT_OK;
    leat__cache_lock_close(partial);
    if (leat__cache_partial_is_there(partial) &&
        unlinkat(partial->parent_fd, leat__cache_partial_name_of(partial),
                 AT_REMOVEDIR) &&
        errno != ENOENT && errno != ENOTEMPTY && errno != EEXIST)
        return leat__error_system(errno, "cannot remove %s", partial->partial);
    return partial->has_hidden ? leat__cache_refuse_leftover(partial)
                               : LEAT_AGAIN;
}

void leat__cache_partial_init(leat__cache_partial *partial)
{
    partial->parent_fd = partial->fd = partial->lock_fd = -1;
    partial->names_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

int leat__cache_partial_check(const leat__cache_partial *partial)
{
    return atomic_load(&partial->is_abandoned)
               ? leat_error(LEAT_ECANCELLED,
                            "%s: the program ends, and makes no cache",
                            partial->partial)
               : LEAT_OK;
}

static int keep_access(const leat__cache_partial *partial)
{
    int code = leat__cache_target_keep_access(
        partial->parent_fd, leat__cache_name_of(partial), partial->fd);
    return code ? leat__error_system(code, "cannot give %s the access of %s",
                                     partial->partial, partial->path)
                : LEAT_OK;
}

/* What was there and cannot be renamed at the end is left alone. */
static int check_renames(const leat__cache_partial *partial)
{
    int code = leat__file_check_directory(partial->partial);
    return code ? cannot_make(partial, code)
                : leat__file_check_place(partial->partial);
}

static int open_locked(leat__cache_partial *partial)
{
    int status = leat__cache_partial_check(partial);
    if (status)
        return status;
    status = open_directory(partial);
    if (!status && !partial->is_made)
        status = check_renames(partial);
    if (!status)
        status = leat__cache_lock_take(partial);
    if (!status && !partial->is_made)
        status = remove_leftover(partial);
    if (status) {
        leat__cache_lock_close(partial);
        unmake_directory(partial);
    }
    return status;
}

int leat__cache_partial_open(leat__cache_partial *partial, const char *path)
{
    pthread_mutex_lock(&partial->names_lock);
    int status = set_paths(partial, path);
    if (!status)
        status = leat__cache_target_check(partial->path);
    if (!status)
        status = open_locked(partial);
    pthread_mutex_unlock(&partial->names_lock);
    if (!status && partial->no_lock)
        leat__log(LEAT_LOG_WARNING,
                  "%s: cannot be locked (%s); if this process is killed before "
                  "the cache is there, remove the directory",
                  partial->partial, strerror(partial->no_lock));
    return status;
}

static int check_in_place_locked(const leat__cache_partial *partial)
{
    int status = leat__cache_partial_check(partial);
    return status || leat__cache_lock_is_there(partial)
               ? status
               : leat_error(LEAT_EIO,
                            "%s: somebody else has removed or replaced it",
                            partial->partial);
}

static int create_locked(leat__cache_partial *partial, const char *name,
                         int *fd)
{
    struct stat about;
    int status = check_in_place_locked(partial);
    if (status)
        return status;
    int code = leat__cache_open_at(fd, partial->fd, name,
                                   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW);
    if (!code && fstat(*fd, &about))
        code = errno;
    if (code)
        return leat__error_system(code, "cannot make %s/%s", partial->partial,
                                  name);
    *(strcmp(name, "data") ? &partial->index : &partial->data) =
        (leat__cache_file){about.st_dev, about.st_ino};
    return LEAT_OK;
}

int leat__cache_partial_create(leat__cache_partial *partial, const char *name,
                               int *fd)
{
    pthread_mutex_lock(&partial->names_lock);
    int status = create_locked(partial, name, fd);
    pthread_mutex_unlock(&partial->names_lock);
    return status;
}

/* A file system that cannot sync directories need not; a directory that may be
   written to but not read cannot be synced. */
static int sync_directory(int at, const char *path)
{
    int fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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

static int check_files_locked(const leat__cache_partial *partial)
{
    int status = check_in_place_locked(partial);
    if (!status && (!is_there(partial, "data", &partial->data) ||
                    !is_there(partial, "index", &partial->index)))
        status = leat_error(LEAT_EIO,
                            "%s: somebody else has removed or replaced a file "
                            "in it",
                            partial->partial);
    return status;
}

/* Whether another writer had left its directory in the one that is replaced. */
static bool empty_replaced(const leat__cache_partial *partial)
{
    int fd = leat__cache_target_open(partial->parent_fd,
                                     leat__cache_name_of(partial));
    if (fd < 0)
        return false;
    bool is_emptied =
        !unlinkat(fd, leat__cache_partial_name_of(partial), AT_REMOVEDIR);
    close(fd);
    return is_emptied;
}

/* Returns the errno. */
static int move_directory(const leat__cache_partial *partial)
{
    int at = partial->parent_fd, code;
    do
        code = renameat(at, leat__cache_partial_name_of(partial), at,
                        leat__cache_name_of(partial))
                   ? errno
                   : 0;
    while ((code == ENOTEMPTY || code == EEXIST) && empty_replaced(partial));
    return code;
}

static int rename_directory(leat__cache_partial *partial)
{
    pthread_mutex_lock(&partial->names_lock);
    int status = check_files_locked(partial);
    int code = status ? 0 : move_directory(partial);
    if (code)
        status = leat__error_system(code, "cannot rename %s", partial->partial);
    pthread_mutex_unlock(&partial->names_lock);
    return status;
}

/* The lock is not held during a sync, which may take long. */
int leat__cache_partial_complete(leat__cache_partial *partial)
{
    pthread_mutex_lock(&partial->names_lock);
    int status = check_files_locked(partial);
    pthread_mutex_unlock(&partial->names_lock);
    if (!status)
        status = keep_access(partial);
    if (!status)
        status = sync_directory(partial->fd, partial->partial);
    if (!status)
        status = rename_directory(partial);
    if (status)
        return status;
    status = sync_directory(partial->parent_fd, partial->path);
    leat__cache_lock_remove(partial);
    return status;
}

static void remove_locked(leat__cache_partial *partial)
{
    if (!leat__cache_lock_is_there(partial))
        return;
    /* Beside a file that stays, the lock says whose it is. */
    if ((is_there(partial, "data", &partial->data) &&
         unlinkat(partial->fd, "data", 0)) ||
        (is_there(partial, "index", &partial->index) &&
         unlinkat(partial->fd, "index", 0)))
        return;
    leat__cache_lock_remove(partial);
    leat__cache_lock_close(partial);
    (void)unlinkat(partial->parent_fd, leat__cache_partial_name_of(partial),
                   AT_REMOVEDIR);
}

void leat__cache_partial_remove(leat__cache_partial *partial)
{
    pthread_mutex_lock(&partial->names_lock);
    remove_locked(partial);
    pthread_mutex_unlock(&partial->names_lock);
}

void leat__cache_partial_abandon(leat__cache_partial *partial)
{
    pthread_mutex_lock(&partial->names_lock);
    atomic_store(&partial->is_abandoned, true);
    remove_locked(partial);
    pthread_mutex_unlock(&partial->names_lock);
}

void leat__cache_partial_close(leat__cache_partial *partial)
{
    close_one(&partial->lock_fd);
    close_one(&partial->fd);
    close_one(&partial->parent_fd);
}
