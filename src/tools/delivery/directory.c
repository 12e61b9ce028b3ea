#include "tools/delivery/directory.h"

#include <leat/ext/reader.h>

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Length of a path up to the end of the name that begins after `from`. */
static size_t next_name(const char *path, size_t from)
{
    from += strspn(path + from, "/");
    return from + strcspn(path + from, "/");
}

/* The same without the last name, and the slashes before it. */
static size_t last_name(const char *path, size_t to)
{
    while (to > 0 && path[to - 1] == '/')
        to--;
    while (to > 0 && path[to - 1] != '/')
        to--;
    while (to > 1 && path[to - 1] == '/')
        to--;
    return to;
}

/* 1: it was there; 0: it was not; -1: it cannot be made. */
static int make_one(const char *path)
{
    struct stat found;
    if (!mkdir(path, 0777))
        return 0;
    int reason = errno;
    if (!stat(path, &found) && S_ISDIR(found.st_mode))
        return 1;
    errno = reason == EEXIST ? ENOTDIR : reason;
    return -1;
}

int directory_make(const char *path, size_t *kept)
{
    char *part = strdup(path);
    if (!part)
        return leat_error(LEAT_ENOMEM, "%s: out of memory", path);
    size_t was = 0, at = 0;
    int found = 1;
    while (found >= 0 && path[at + strspn(path + at, "/")]) {
        at = next_name(path, at);
        part[at] = 0;
        found = make_one(part);
        if (found > 0)
            was = at + strspn(path + at, "/");
        if (found >= 0)
            part[at] = path[at];
    }
    int status = LEAT_OK;
    if (found < 0) {
        status = leat_error(LEAT_EIO, "%s: %s", part, strerror(errno));
        part[last_name(part, at)] = 0;
        directory_unmake(part, was);
    } else {
        *kept = was;
    }
    free(part);
    return status;
}

/*
 * On the stack, as the failure may be lack of memory. Longer paths cannot have
 * been made.
 */
void directory_unmake(const char *path, size_t kept)
{
    char part[PATH_MAX];
    size_t to = strlen(path);
    if (to >= sizeof(part))
        return;
    memcpy(part, path, to + 1);
    while (to > kept && !rmdir(part)) {
        to = last_name(part, to);
        part[to] = 0;
    }
}

int directory_next(DIR *directory, const char *path, const struct dirent **out)
{
    /* A failure and the end differ in errno alone. */
    errno = 0;
    *out = readdir(directory);
    if (*out || !errno)
        return LEAT_OK;
    return leat_error(LEAT_EIO, "%s: %s", path, strerror(errno));
}
