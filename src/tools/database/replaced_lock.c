#include "tools/database/replaced_lock.h"

#include "base/error.h"
#include "base/file_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_FILE "lock.mdb"

/* An empty file, locked as by a process that initialises it. */
static int create(struct replaced_lock *lock)
{
    struct flock first = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    lock->fd = openat(lock->staging, lock->staged,
                      O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (lock->fd < 0)
        return -1;
    /* A file system without locks has no readers that hold one. */
    (void)fcntl(lock->fd, F_OFD_SETLK, &first);
    return 0;
}

/* Where files cannot be exchanged the old one is lost. */
static int place(struct replaced_lock *lock)
{
    if (lock->has_old && !renameat2(lock->staging, lock->staged, lock->target,
                                    LOCK_FILE, RENAME_EXCHANGE))
        return 0;
    lock->has_old = false;
    return renameat(lock->staging, lock->staged, lock->target, LOCK_FILE);
}

static int check_type(const struct stat *found, const char *path)
{
    if (S_ISREG(found->st_mode))
        return LEAT_OK;
    return leat_error(LEAT_EINVAL,
                      "%s/" LOCK_FILE ": is no regular file, as LMDB's lock "
                      "file is; remove it",
                      path);
}

/* A link gives way as a file does. */
static int check_data(int target, const char *path)
{
    struct stat found;
    if (fstatat(target, "data.mdb", &found, AT_SYMLINK_NOFOLLOW) ||
        S_ISREG(found.st_mode) || S_ISLNK(found.st_mode))
        return LEAT_OK;
    return leat_error(LEAT_EINVAL,
                      "%s/data.mdb: is no regular file, as LMDB's data file "
                      "is; remove it",
                      path);
}

static int check_place(const char *path, const char *name)
{
    char *file;
    if (asprintf(&file, "%s/%s", path, name) < 0)
        return leat_error(LEAT_ENOMEM, "%s: out of memory", path);
    int status = leat__file_check_place(file);
    free(file);
    return status;
}

static int check_files(int target, const char *path)
{
    struct stat found;
    int place = check_place(path, "data.mdb");
    if (!place)
        place = check_place(path, LOCK_FILE);
    if (place)
        return place;
    if (faccessat(target, ".", W_OK | X_OK, AT_EACCESS))
        return leat__error_system(errno, "%s: cannot replace its files", path);
    int status = check_data(target, path);
    if (status || fstatat(target, LOCK_FILE, &found, AT_SYMLINK_NOFOLLOW))
        return status;
    return check_type(&found, path);
}

int replaced_lock_check(const char *path)
{
    int target = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (target < 0)
        return LEAT_OK;
    int status = check_files(target, path);
    close(target);
    return status;
}

int replaced_lock_begin(struct replaced_lock *out, int staging,
                        const char *part, const char *staged, int target,
                        const char *path)
{
    struct stat found;
    *out = (struct replaced_lock){
        .staging = staging, .target = target, .staged = staged, .fd = -1};
    out->has_old = !fstatat(target, LOCK_FILE, &found, AT_SYMLINK_NOFOLLOW);
    int status = out->has_old ? check_type(&found, path) : LEAT_OK;
    if (status)
        return status;
    if (create(out))
        return leat__error_system(errno, "%s/%s", part, staged);
    if (!place(out))
        return LEAT_OK;
    status = leat__error_system(errno, "%s/" LOCK_FILE, path);
    close(out->fd);
    unlinkat(staging, staged, 0);
    return status;
}

void replaced_lock_undo(struct replaced_lock *lock)
{
    if (!lock->has_old || renameat2(lock->staging, lock->staged, lock->target,
                                    LOCK_FILE, RENAME_EXCHANGE))
        unlinkat(lock->target, LOCK_FILE, 0);
    close(lock->fd);
}

/* One that cannot be removed does no harm: it is empty and soon unlocked. */
void replaced_lock_finish(struct replaced_lock *lock)
{
    unlinkat(lock->target, LOCK_FILE, 0);
    close(lock->fd);
}
