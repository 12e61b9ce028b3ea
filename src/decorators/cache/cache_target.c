#include "decorators/cache/cache_target.h"
#include "base/error.h"
#include "base/file_access.h"
#include "base/file_place.h"
#include "decorators/cache/cache_format.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether it is what a writer that makes its directory in PATH calls that. */
static bool is_own(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    const char *own = slash ? slash + 1 : path;
    size_t n = strlen(own);
    return strncmp(name, own, n) == 0 && strcmp(name + n, ".partial") == 0;
}

/* No rename replaces it until they are closed. */
static int refuse_hidden(const char *path)
{
    return leat_error(LEAT_EINVAL,
                      "%s: it holds removed files that a program still has "
                      "open; wait until it has closed them, or name another "
                      "directory",
                      path);
}

/* LEAT_OK: nothing is there, or an empty directory, which rename replaces;
   LEAT_AGAIN: something else. */
static int check_empty(const char *path)
{
    struct stat state;
    const struct dirent *entry;
    if (lstat(path, &state))
        return errno == ENOENT ? LEAT_OK
                               : leat__error_system(errno, "%s", path);
    if (!S_ISDIR(state.st_mode))
        return LEAT_AGAIN;
    DIR *directory = opendir(path);
    if (!directory)
        return leat__error_system(errno, "cannot list %s", path);
    int names = 0, hidden = 0;
    while ((entry = readdir(directory)) != NULL) {
        names += !is_own(path, entry->d_name);
        hidden += leat__file_is_hidden(entry->d_name);
    }
    closedir(directory);
    /* Its own, and its parent's. */
    if (names <= 2)
        return LEAT_OK;
    return names - hidden > 2 ? LEAT_AGAIN : refuse_hidden(path);
}

int leat__cache_target_parent(leat__cache_path out, const char *path)
{
    int status = leat__cache_join(out, path, "");
    char *slash = strrchr(out, '/');
    if (!status && !slash)
        return leat__cache_join(out, ".", "");
    if (!status)
        slash[slash == out] = 0;
    return status;
}

int leat__cache_target_open(int parent, const char *name)
{
    return openat(parent, name,
                  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int leat__cache_target_keep_access(int parent, const char *name, int made)
{
    int fd = -1, replaced = leat__cache_target_open(parent, name);
    if (replaced < 0 && errno == ENOENT)
        return 0;
    if (replaced >= 0)
        fd = openat(made, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool failed = fd < 0 || leat__file_keep_access_of(fd, replaced);
    int code = failed ? errno : 0;
    if (fd >= 0)
        close(fd);
    if (replaced >= 0)
        close(replaced);
    return code;
}

int leat__cache_target_check(const char *path)
{
    leat__cache_path name;
    int status = check_empty(path);
    /* Rename, which comes last, has to replace it. */
    if (!status)
        status = leat__file_check_renames(path);
    if (!status)
        return leat__file_check_place(path);
    if (status != LEAT_AGAIN)
        return status;
    if (!leat__cache_join(name, path, "/index") &&
        !leat__file_access(name, F_OK))
        return LEAT_AGAIN;
    return leat_error(LEAT_EINVAL,
                      "%s: it is there, but is neither a cache nor an empty "
                      "directory; name another one",
                      path);
}
