/*
 * DESIGN. A lock (flock) ends with the process that has it. Where there is
 * none, as on Lustre that is mounted without, the writer that has made
 * NAME.lock, by O_EXCL, has it until it removes it: two writers in one
 * directory could complete a damaged cache, where one of them checks its files,
 * the other removes them, and the first renames the directory. A lock that is
 * held so has a byte, for those that can lock it, as another machine may. That
 * of a killed writer looks as one that is held, and is the user's to remove.
 */
#include "decorators/cache/cache_lock.h"
#include "base/file.h"
#include "base/file_access.h"
#include "base/fork.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

const char *leat__cache_name_of(const leat__cache_partial *partial)
{
    return partial->path + partial->name;
}

const char *leat__cache_partial_name_of(const leat__cache_partial *partial)
{
    return partial->partial + partial->name;
}

int leat__cache_open_at(int *fd, int at, const char *name, int flags)
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

bool leat__cache_partial_is_there(const leat__cache_partial *partial)
{
    return is_own(partial->parent_fd, leat__cache_partial_name_of(partial),
                  partial->fd);
}

bool leat__cache_lock_is_there(const leat__cache_partial *partial)
{
    return leat__cache_partial_is_there(partial) &&
           is_own(partial->fd, partial->lock, partial->lock_fd);
}

int leat__cache_refuse_leftover(const leat__cache_partial *partial)
{
    if (!leat__cache_partial_is_there(partial))
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
    int code =
        leat__cache_open_at(fd, partial->fd, partial->lock, flags | O_RDWR);
    return code == EACCES ? leat__cache_open_at(fd, partial->fd, partial->lock,
                                                flags | O_RDONLY)
                          : code;
}

/* Through no link, and without waiting at a pipe: another program may have made
   the directory. */
static int open_lock(leat__cache_partial *partial)
{
    struct stat found;
    const int flags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    int code =
        leat__cache_open_at(&partial->lock_fd, partial->fd, partial->lock,
                            flags | O_RDWR | O_CREAT | O_EXCL);
    partial->has_made_lock = !code;
    if (!code)
        leat__file_share(partial->lock_fd, partial->fd);
    else if (code == EEXIST)
        code = open_there(partial, flags);
    if (code == ENOENT)
        return LEAT_AGAIN;
    if (code == EACCES && !partial->is_made)
        return leat__cache_refuse_leftover(partial);
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

void leat__cache_lock_remove(const leat__cache_partial *partial)
{
    if (is_own(partial->fd, partial->lock, partial->lock_fd))
        (void)unlinkat(partial->fd, partial->lock, 0);
}

static int refuse_busy(const leat__cache_partial *partial)
{
    if (!leat__cache_lock_is_there(partial))
        return LEAT_AGAIN;
    return leat_error(LEAT_ESTATE,
                      "%s: another reader is making this cache; wait until it "
                      "is there, or name another directory",
                      partial->path);
}

static int refuse_unknown(const leat__cache_partial *partial)
{
    if (!leat__cache_lock_is_there(partial))
        return LEAT_AGAIN;
    return leat_error(LEAT_ESTATE,
                      "%s: another reader is making this cache, or was killed "
                      "while it did, which without locks (flock) is not known; "
                      "wait until it is there, or remove %s if no reader is",
                      partial->path, partial->partial);
}

/* A file system without locks, or without a service for them. */
static bool is_unsupported(int code)
{
    return code == ENOSYS || code == ENOLCK || code == EOPNOTSUPP;
}

static bool is_full(int code)
{
    return code == ENOSPC || code == EDQUOT || code == EFBIG;
}

/* For a writer that can lock it. Where there is no room for a byte, a hole may
   do; the data need room, too, and say so. Returns the errno, 0 on success. */
static int mark_lock(const leat__cache_partial *partial)
{
    if (leat__file_check_limit(1))
        return 0;
    int code = pwrite(partial->lock_fd, "\n", 1, 0) < 0 ? errno : 0;
    if (!is_full(code))
        return code;
    (void)!ftruncate(partial->lock_fd, 1);
    return 0;
}

/* Of a lock that could be locked here. */
static bool is_marked(const leat__cache_partial *partial)
{
    struct stat found;
    return !fstat(partial->lock_fd, &found) && found.st_size > 0;
}

static int lock_file(leat__cache_partial *partial)
{
    int code = flock(partial->lock_fd, LOCK_EX | LOCK_NB) ? errno : 0;
    if (code == EWOULDBLOCK)
        return refuse_busy(partial);
    bool has_none = is_unsupported(code);
    if (has_none ? !partial->has_made_lock : !code && is_marked(partial))
        return refuse_unknown(partial);
    if (has_none) {
        partial->no_lock = code;
        code = mark_lock(partial);
    }
    if (!code && leat__cache_lock_is_there(partial))
        return LEAT_OK;
    /* Without an error the directory is a complete cache by now, which has no
       lock. */
    if (!code || partial->has_made_lock)
        leat__cache_lock_remove(partial);
    return code ? leat__error_system(code, "cannot lock %s/%s",
                                     partial->partial, partial->lock)
                : LEAT_AGAIN;
}

int leat__cache_lock_take(leat__cache_partial *partial)
{
    int status = open_lock(partial);
    if (!status)
        return lock_file(partial);
    if (partial->has_made_lock)
        leat__cache_lock_remove(partial);
    return status;
}

void leat__cache_lock_close(leat__cache_partial *partial)
{
    leat__fork_hold();
    if (partial->lock_fd >= 0)
        close(partial->lock_fd);
    partial->lock_fd = -1;
    leat__fork_release();
}
