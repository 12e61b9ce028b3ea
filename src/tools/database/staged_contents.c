#include "tools/database/staged_contents.h"

#include "base/error.h"
#include "base/file_place.h"
#include "tools/database/replaced_lock.h"
#include "tools/database/staged_access.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRIES = 100 }; /* to remove a directory that somebody writes to */

int staged_contents_is_foreign(const struct dirent *entry)
{
    const char *name = entry->d_name;
    return strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
           strcmp(name, "data.mdb") != 0 && strcmp(name, "lock.mdb") != 0 &&
           strcmp(name, STAGED_TRIED) != 0 &&
           strcmp(name, STAGED_INSIDE) != 0 && !leat__file_is_hidden(name);
}

static int is_visible(const struct dirent *entry)
{
    const char *name = entry->d_name;
    return strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
           !leat__file_is_hidden(name);
}

int staged_contents_find(int at, const char *name, const char *path,
                         int (*filter)(const struct dirent *entry),
                         enum staged_contents *out)
{
    struct stat found;
    struct dirent **foreign = NULL;
    *out = STAGED_MISSING;
    if (fstatat(at, name, &found, AT_SYMLINK_NOFOLLOW))
        return errno == ENOENT ? LEAT_OK
                               : leat__error_system(errno, "%s", path);
    *out = STAGED_FOREIGN;
    if (!S_ISDIR(found.st_mode))
        return LEAT_OK;
    int n = scandirat(at, name, &foreign, filter, NULL);
    if (n < 0 && errno != ENOENT)
        return leat__error_system(errno, "%s", path);
    *out = n < 0 ? STAGED_MISSING : n ? STAGED_FOREIGN : STAGED_OWN;
    while (n > 0)
        free(foreign[--n]);
    free(foreign);
    return LEAT_OK;
}

int staged_contents_unlink(int at, const char *name, const char *path)
{
    if (!unlinkat(at, name, 0) || errno == ENOENT)
        return LEAT_OK;
    return leat__error_system(errno, "%s", path);
}

int staged_contents_remove_locks(int at, const char *path)
{
    int status = staged_contents_unlink(at, STAGED_FILE, path);
    return status ? status : staged_contents_unlink(at, STAGED_LOCK, path);
}

static bool is_full(int code)
{
    return code == ENOTEMPTY || code == EEXIST;
}

/* A reader may make its lock file once more. */
int staged_contents_remove(int at, const char *path)
{
    enum staged_contents found = STAGED_FOREIGN;
    int status = staged_contents_unlink(at, STAGED_DATA, path);
    for (int i = 0; !status && found == STAGED_FOREIGN && i < TRIES; i++) {
        status = staged_contents_remove_locks(at, path);
        if (status || !unlinkat(at, "database", AT_REMOVEDIR) ||
            !is_full(errno))
            break;
        status = staged_contents_find(at, "database", path, is_visible, &found);
    }
    if (status || !unlinkat(at, "database", AT_REMOVEDIR) || errno == ENOENT ||
        (found == STAGED_OWN && is_full(errno)))
        return status;
    return leat__error_system(errno, "%s", path);
}

/* What gives way has to be a database's, on the mount that the new one is moved
   from; both are known before the work is done. */
static int check_replaced(const char *target, int at, const char *from)
{
    int shares = leat__file_shares_mount(at, from, target);
    if (shares < 0)
        return leat__error_system(errno, "%s", target);
    if (shares)
        return replaced_lock_check(target);
    return leat_error(
        LEAT_EINVAL,
        "%s: is a mount point, to which no database can be moved; "
        "give a name inside it",
        target);
}

int staged_contents_cannot_make(const char *target, int code)
{
    const char *slash = strrchr(target, '/');
    return leat__error_system(code, "%s: cannot be made in %.*s", target,
                              slash > target ? (int)(slash - target) : 1,
                              slash ? target : ".");
}

/* The last rename makes the name. */
static int check_made(const char *target)
{
    int code = leat__file_check_directory(target);
    return code ? staged_contents_cannot_make(target, code) : LEAT_OK;
}

int staged_contents_check_target(const char *target, int at, const char *from,
                                 bool replace)
{
    enum staged_contents found;
    int status = staged_contents_find(AT_FDCWD, target, target,
                                      staged_contents_is_foreign, &found);
    if (!status && found == STAGED_OWN && replace)
        return check_replaced(target, at, from);
    if (status)
        return status;
    if (found == STAGED_MISSING)
        return check_made(target);
    return leat_error(LEAT_EINVAL,
                      found == STAGED_OWN
                          ? "%s: exists already; --force would replace it"
                          : "%s: exists and is no database directory; choose "
                            "another name",
                      target);
}

static int refuse_move(const char *target)
{
    if (errno != EXDEV)
        return leat__error_system(errno, "%s: cannot replace its files",
                                  target);
    return leat_error(LEAT_EINVAL,
                      "%s: takes no files from another directory, as one with "
                      "a project ID of its own; rename it first, or give "
                      "another name",
                      target);
}

static int try_move(int at, const char *staged, int to, const char *target)
{
    int fd = openat(at, staged,
                    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
        return refuse_move(target);
    close(fd); /* It is empty: nothing is lost if this fails. */
    if (!renameat(at, staged, to, STAGED_TRIED) &&
        !unlinkat(to, STAGED_TRIED, 0))
        return LEAT_OK;
    int status = refuse_move(target);
    unlinkat(at, staged, 0);
    return status;
}

int staged_contents_try_move(int at, const char *staged, const char *target)
{
    int to = open(target, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (to < 0)
        return errno == ENOENT ? LEAT_OK
                               : leat__error_system(errno, "%s", target);
    int status = try_move(at, staged, to, target);
    close(to);
    return status;
}

int staged_contents_sync(int at, const char *name, const char *path)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == EACCES ? LEAT_OK
                               : leat__error_system(errno, "%s", path);
    /* A file system that cannot sync directories need not. */
    int status = fsync(fd) && errno != EINVAL
                     ? leat__error_system(errno, "%s", path)
                     : LEAT_OK;
    close(fd);
    return status;
}
