#include "tools/delivery/directory.h"

#include "base/error.h"
#include "base/file_place.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Makes one; *kept is `length` where it was there. */
static int make_one(const char *path, size_t length, size_t *kept)
{
    struct stat found;
    if (!mkdir(path, 0777))
        return LEAT_OK;
    int reason = errno;
    if (stat(path, &found) || !S_ISDIR(found.st_mode))
        return leat__error_system(reason == EEXIST ? ENOTDIR : reason, "%s",
                                  path);
    *kept = length;
    return LEAT_OK;
}

/* Likewise, of one that is to be made later. Another process may make or remove
   it between the two looks: a directory that one of them finds is no other
   file. */
static int check_one(const char *path, size_t length, size_t *kept)
{
    struct stat named, found;
    int code = lstat(path, &named) ? errno : 0;
    if (!stat(path, &found) && S_ISDIR(found.st_mode)) {
        *kept = length;
        return LEAT_OK;
    }
    if (!code && !S_ISDIR(named.st_mode))
        return leat__error_system(ENOTDIR, "%s", path);
    if (!code || code == ENOENT)
        code = leat__file_check_directory(path);
    /* The one above it is to be made, too. */
    return code && code != ENOENT ? leat__error_system(code, "%s", path)
                                  : LEAT_OK;
}

/* Visits the directory and those above it, from there on; on failure `part` is
   the path of the directory of the one that failed. */
static int walk(char part[PATH_MAX], const char *path, size_t *kept,
                int (*visit)(const char *path, size_t length, size_t *kept))
{
    size_t was = strspn(path, "/"), at = was, name = at, length = strlen(path);
    int status = LEAT_OK;
    *kept = 0;
    part[0] = 0;
    if (length >= PATH_MAX)
        return leat__error_system(ENAMETOOLONG, "%s", path);
    memcpy(part, path, length + 1);
    while (!status && path[at]) {
        name = at;
        at += strcspn(path + at, "/");
        size_t next = at + strspn(path + at, "/");
        part[at] = 0;
        /* Of one that was missing, ".." is missing and "." is the same. */
        if (name > was && !strcmp(part + name, ".."))
            status = leat__error_system(ENOENT, "%s", path);
        else if (name == was || strcmp(part + name, ".") != 0)
            status = visit(part, next, &was);
        part[at] = path[at];
        at = next;
    }
    if (status)
        part[name] = 0; /* the one that failed */
    *kept = was;
    return status;
}

int directory_check(const char *path)
{
    char part[PATH_MAX];
    size_t kept;
    return walk(part, path, &kept, check_one);
}

int directory_make(const char *path, size_t *kept)
{
    char part[PATH_MAX];
    size_t was;
    int status = walk(part, path, &was, make_one);
    if (status)
        directory_unmake(part, was);
    else
        *kept = was;
    return status;
}

/* Those that were not made cannot be removed; nor can one be by the name ".",
   which gives EINVAL. */
void directory_unmake(const char *path, size_t kept)
{
    char part[PATH_MAX];
    size_t to = strlen(path);
    if (to >= sizeof(part))
        return;
    memcpy(part, path, to + 1);
    for (; to > kept; to--) {
        part[to] = 0;
        if (part[to - 1] != '/' && (!path[to] || path[to] == '/') &&
            rmdir(part) && errno != ENOENT && errno != EINVAL)
            return;
    }
}

int directory_next(DIR *directory, const char *path, const struct dirent **out)
{
    /* A failure and the end differ in errno alone. */
    errno = 0;
    *out = readdir(directory);
    return *out || !errno ? LEAT_OK : leat__error_system(errno, "%s", path);
}
