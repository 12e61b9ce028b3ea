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
 * may abandon the directory.
 *
 * Descriptors are opened while no other thread forks, as the handler that
 * closes them in a child has to find them noted.
 */
#include "decorators/cache/cache_partial.h"
#include "base/file_access.h"
#include "base/file_place.h"
#include "base/fork.h"
#include "decorators/cache/cache_target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DIRECTORY = O_PATH | O_DIRECTORY | O_NOFOLLOW };

/* The last parts of the two paths. */
static const char *name_of(const leat__cache_partial *partial)
{
    return partial->path + partial->name;
}

static const char *partial_name_of(const leat__cache_partial *partial)
{
    return partial->partial + partial->name;
}

/* Returns the errno, 0 on success. */
static int open_at(int *fd, int at, const char *name, int flags)
{
    leat__fork_hold();
    *fd = openat(at, name, flags | O_CLOEXEC, 0666);
    int code = *fd < 0 ? errno : 0;
    leat__fork_release();
    return code;
}

/* Whether the file of that name is the open one. */
static bool is_own(int at, const char *name, int fd)
{
    struct stat own, found;
    return !fstat(fd, &own) &&
           !fstatat(at, name, &found, AT_SYMLINK_NOFOLLOW) &&
           own.st_dev == found.st_dev && own.st_ino == found.st_ino;
}

/* Whether the file of that name is the one that was made. */
static bool is_there(const leat__cache_partial *partial, const char *name,
                     const leat__cache_file *made)
{
    struct stat found;
    return made->number != 0 &&
           !fstatat(partial->fd, name, &found, AT_SYMLINK_NOFOLLOW) &&
           made->device == found.st_dev && made->number == found.st_ino;
}

static bool is_directory_in_place(const leat__cache_partial *partial)
{
    return is_own(partial->parent_fd, partial_name_of(partial), partial->fd);
}

/* Whether this writer holds the directory of this name. */
static bool is_in_place(const leat__cache_partial *partial)
{
    return is_directory_in_place(partial) &&
           is_own(partial->fd, partial->lock, partial->lock_fd);
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
    if (!is_directory_in_place(partial))
        return LEAT_AGAIN;
    return leat_error(LEAT_EINVAL,
                      "%s: it holds files that are not of an unfinished cache; "
                      "move it away, or name another directory",
                      partial->partial);
}

/* Whether FUSE or NFS calls a file so that was removed while it was open. */
static bool is_hidden(const char *name)
{
    return strncmp(name, ".fuse_hidden", 12) == 0 ||
           strncmp(name, ".nfs", 4) == 0;
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
        else if (is_hidden(name))
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
    const char *name = partial_name_of(partial);
    return leat__file_make_directory(replaced, name, partial->parent_fd, name);
}

static int make_directory(leat__cache_partial *partial)
{
    const char *name = partial_name_of(partial);
    int replaced =
        leat__cache_target_open(partial->parent_fd, name_of(partial));
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
    const char *name = partial_name_of(partial);
    int status = leat__cache_target_parent(parent, partial->path);
    if (status)
        return status;
    int code =
        open_at(&partial->parent_fd, AT_FDCWD, parent, O_PATH | O_DIRECTORY);
    if (code)
        return cannot_make(partial, code);
    code = open_at(&partial->fd, partial->parent_fd, name, DIRECTORY);
    if (code == ENOENT) {
        status = make_directory(partial);
        if (!status)
            code = open_at(&partial->fd, partial->parent_fd, name, DIRECTORY);
    }
    if (!status)
        status = explain_open(partial, code);
    return status || partial->is_made ? status : check_entries(partial);
}

/* One that another writer has taken meanwhile has its lock in it, and stays. */
static void unmake_directory(const leat__cache_partial *partial)
{
    if (partial->is_made)
        (void)unlinkat(partial->parent_fd, partial_name_of(partial),
                       AT_REMOVEDIR);
}

/* What another user has left, or is about to lock. */
static int refuse_leftover(const leat__cache_partial *partial)
{
    if (!is_directory_in_place(partial))
        return LEAT_AGAIN;
    return leat_error(LEAT_EIO,
                      "%s: it is of an unfinished cache that this user may not "
                      "remove; move it away, or name another directory",
                      partial->partial);
}

/* Of another user, it may not be for this one to write to, which a lock need
   not. */
static int open_there(leat__cache_partial *partial, int flags)
{
    int *fd = &partial->lock_fd;
    int code = open_at(fd, partial->fd, partial->lock, flags | O_RDWR);
    return code == EACCES
               ? open_at(fd, partial->fd, partial->lock, flags | O_RDONLY)
               : code;
}

/* Through no link, and without waiting at a pipe: another program may have made
   the directory. */
static int open_lock(leat__cache_partial *partial)
{
    struct stat found;
    const int flags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    int code = open_at(&partial->lock_fd, partial->fd, partial->lock,
                       flags | O_RDWR | O_CREAT | O_EXCL);
    if (!code)
        leat__file_share(partial->lock_fd, partial->fd);
    else if (code == EEXIST)
        code = open_there(partial, flags);
    if (code == ENOENT)
        return LEAT_AGAIN;
    if (code == EACCES && !partial->is_made)
        return refuse_leftover(partial);
    if (code && code != ELOOP && code != ENXIO)
        return leat__error_system(code, "cannot open %s/%s", partial->partial,
                                  partial->lock);
    if (code || fstat(partial->lock_fd, &found) || !S_ISREG(found.st_mode))
        return leat_error(LEAT_EIO,
                          "%s/%s: expected a regular file; move it away, or "
                          "name another directory for the cache",
                          partial->partial, partial->lock);
    return LEAT_OK;
}

static void remove_lock(const leat__cache_partial *partial)
{
    if (is_own(partial->fd, partial->lock, partial->lock_fd))
        (void)unlinkat(partial->fd, partial->lock, 0);
}

static int refuse_busy(const leat__cache_partial *partial)
{
    if (!is_in_place(partial))
        return LEAT_AGAIN;
    return leat_error(LEAT_ESTATE,
                      "%s: another reader is making this cache; wait until it "
                      "is there, or name another directory",
                      partial->path);
}

static int lock_directory(const leat__cache_partial *partial)
{
    if (flock(partial->lock_fd, LOCK_EX | LOCK_NB)) {
        int code = errno;
        return code == EWOULDBLOCK
                   ? refuse_busy(partial)
                   : leat__error_system(code, "cannot lock %s/%s",
                                        partial->partial, partial->lock);
    }
    if (is_in_place(partial))
        return LEAT_OK;
    /* The directory is a complete cache by now, which has no lock. */
    remove_lock(partial);
    return LEAT_AGAIN;
}

static void close_one(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void close_lock(leat__cache_partial *partial)
{
    leat__fork_hold();
    close_one(&partial->lock_fd);
    leat__fork_release();
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
        if (!is_in_place(partial))
            return LEAT_AGAIN;
        if (!unlinkat(partial->fd, names[i], 0) || errno == ENOENT)
            continue;
        return errno == EACCES
                   ? refuse_leftover(partial)
                   : leat__error_system(errno, "cannot remove %s/%s",
                                        partial->partial, names[i]);
    }
    if (goes_on)
        return LEAT_OK;
    close_lock(partial);
    if (is_directory_in_place(partial) &&
        unlinkat(partial->parent_fd, partial_name_of(partial), AT_REMOVEDIR) &&
        errno != ENOENT && errno != ENOTEMPTY && errno != EEXIST)
        return leat__error_system(errno, "cannot remove %s", partial->partial);
    return partial->has_hidden ? refuse_leftover(partial) : LEAT_AGAIN;
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
    int code = leat__cache_target_keep_access(partial->parent_fd,
                                              name_of(partial), partial->fd);
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
        status = open_lock(partial);
    if (!status)
        status = lock_directory(partial);
    if (!status && !partial->is_made)
        status = remove_leftover(partial);
    if (status) {
        close_lock(partial);
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
    return status;
}

static int check_in_place_locked(const leat__cache_partial *partial)
{
    int status = leat__cache_partial_check(partial);
    return status || is_in_place(partial)
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
    int code = open_at(fd, partial->fd, name,
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
    int fd = leat__cache_target_open(partial->parent_fd, name_of(partial));
    if (fd < 0)
        return false;
    bool is_emptied = !unlinkat(fd, partial_name_of(partial), AT_REMOVEDIR);
    close(fd);
    return is_emptied;
}

/* Returns the errno. */
static int move_directory(const leat__cache_partial *partial)
{
    int at = partial->parent_fd, code;
    do
        code = renameat(at, partial_name_of(partial), at, name_of(partial))
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
    remove_lock(partial);
    return status;
}

static void remove_locked(leat__cache_partial *partial)
{
    if (!is_in_place(partial))
        return;
    /* Beside a file that stays, the lock says whose it is. */
    if ((is_there(partial, "data", &partial->data) &&
         unlinkat(partial->fd, "data", 0)) ||
        (is_there(partial, "index", &partial->index) &&
         unlinkat(partial->fd, "index", 0)))
        return;
    remove_lock(partial);
    close_lock(partial);
    (void)unlinkat(partial->parent_fd, partial_name_of(partial), AT_REMOVEDIR);
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
