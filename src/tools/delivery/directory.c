#include "tools/delivery/directory.h"

#include "base/error.h"

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

int directory_make(const char *path, size_t *kept)
{
    char part[PATH_MAX];
    size_t at = strspn(path, "/"), was = at, name = at, length = strlen(path);
    int status = LEAT_OK;
    if (length >= sizeof(part))
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
            status = make_one(part, next, &was);
        part[at] = path[at];
        at = next;
    }
    if (!status) {
        *kept = was;
        return LEAT_OK;
    }
    part[name] = 0; /* the one that failed */
    directory_unmake(part, was);
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
