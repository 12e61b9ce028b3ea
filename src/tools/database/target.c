#include "tools/database/target.h"
#include "base/error.h"
#include "base/file.h"
#include "base/file_place.h"
#include "base/memory.h"
#include "tools/cli/staged_file.h"

#include <leat/ext/reader.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* LMDB's, in its data files after the head of a page, in its lock files first.
 */
enum { MAGIC_OFFSET = 16 };
static const uint32_t lmdb_magic = 0xbeefc0de;

/* Where realpath may not look. Takes `target`, which free is for. */
static char *followed(char *target)
{
    char *found = leat__file_followed(target);
    char *copy = found ? strdup(found) : NULL;
    leat__free(found);
    free(target);
    return copy;
}

char *target_resolve(const char *path)
{
    struct stat found;
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    char *target = strndup(path, length), *real = NULL;
    if (!target)
        return NULL;
    const char *slash = strrchr(target, '/');
    const char *name = slash ? slash + 1 : target;
    if (!strcmp(name, ".") || !strcmp(name, "..") ||
        (!lstat(target, &found) && S_ISLNK(found.st_mode)))
        real = realpath(target, NULL);
    /* A removed directory's name in /proc may be that of another one. */
    if (!real || !leat__file_leads_to(target, real)) {
        free(real);
        return followed(target);
    }
    free(target);
    return real;
}

int64_t target_begin(const char *path, void *out, size_t size)
{
    int fd = leat__file_open_regular(AT_FDCWD, path, 0);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, out, size);
    close(fd); /* Read-only: nothing is lost if it fails. */
    return n;
}

/* By its name, since it may be damaged, or by its contents. */
static bool is_of_database(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    unsigned char head[MAGIC_OFFSET + sizeof(lmdb_magic)] = {0};
    if (!strcmp(name, "data.mdb") || !strcmp(name, "lock.mdb"))
        return true;
    return target_begin(path, head, sizeof(head)) > 0 &&
           (!memcmp(head, &lmdb_magic, sizeof(lmdb_magic)) ||
            !memcmp(head + MAGIC_OFFSET, &lmdb_magic, sizeof(lmdb_magic)));
}

static bool is_same_file(const struct stat *wanted, const char *directory,
                         const char *name)
{
    char file[PATH_MAX];
    struct stat found;
    int length = snprintf(file, sizeof(file), "%s%s", directory, name);
    return length < (int)sizeof(file) && !stat(file, &found) &&
           found.st_dev == wanted->st_dev && found.st_ino == wanted->st_ino;
}

int target_check(const char *path, const char *source, bool force,
                 target_own *is_own)
{
    struct stat found;
    if (!stat(path, &found) && (is_same_file(&found, source, "") ||
                                is_same_file(&found, source, "/data.mdb") ||
                                is_same_file(&found, source, "/lock.mdb")))
        return leat_error(LEAT_EINVAL,
                          "%s: is a file of the database that is read", path);
    int status = leat__file_check_regular(path);
    if (status)
        return status;
    int code = leat__file_check_directory(path);
    if (code)
        return leat__error_system(code, "%s", path);
    status = leat__file_check_place(path);
    if (status)
        return status;
    if (is_of_database(path))
        return leat_error(LEAT_EINVAL,
                          "%s: is a file of a database; give another name",
                          path);
    if (lstat(path, &found))
        return LEAT_OK;
    status = staged_file_check(path);
    if (status || !found.st_size || force || is_own(path))
        return status;
    return leat_error(LEAT_EINVAL,
                      "%s: exists already, and this command writes other "
                      "files; --force would replace it",
                      path);
}
