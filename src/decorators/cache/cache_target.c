#include "decorators/cache/cache_target.h"
#include "base/error.h"
#include "base/file_place.h"
#include "decorators/cache/cache_format.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* LEAT_OK: nothing is there, or an empty directory, which rename replaces;
   LEAT_AGAIN: something else. */
static int check_empty(const char *path)
{
    struct stat state;
    if (lstat(path, &state))
        return errno == ENOENT ? LEAT_OK
                               : leat__error_system(errno, "%s", path);
    if (!S_ISDIR(state.st_mode))
        return LEAT_AGAIN;
    DIR *directory = opendir(path);
    if (!directory)
        return leat__error_system(errno, "cannot list %s", path);
    int names = 0;
    while (readdir(directory))
        names++;
    closedir(directory);
    /* Its own, and its parent's. */
    return names > 2 ? LEAT_AGAIN : LEAT_OK;
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
