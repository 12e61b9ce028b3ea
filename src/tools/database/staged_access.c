#include "tools/database/staged_access.h"

#include "base/error.h"
#include "base/file.h"
#include "base/file_access.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

mode_t staged_access_directory(const char *target, const char *data)
{
    return leat__file_is_for_all(target) && leat__file_is_for_all(data) ? 0777
                                                                        : 0700;
}

int staged_access_inherit(int at, const char *name, const char *target)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int status = fd < 0 || leat__file_inherit(fd, target)
                     ? leat__error_system(errno, "%s", target)
                     : LEAT_OK;
    if (fd >= 0)
        close(fd);
    return status;
}

int staged_access_resume(int directory, const char *name, const char *path)
{
    struct stat found;
    if (fstatat(directory, name, &found, AT_SYMLINK_NOFOLLOW))
        return leat__error_system(errno, "%s", path);
    if (!S_ISREG(found.st_mode) || (found.st_mode & 0600) == 0600)
        return LEAT_OK;
    return fchmodat(directory, name, (found.st_mode & 0777) | 0600, 0)
               ? leat__error_system(errno, "%s", path)
               : LEAT_OK;
}

int staged_access_keep(int directory, const char *name, const char *data)
{
    int fd = leat__file_open_at(directory, name, O_RDONLY | O_NOFOLLOW);
    int status = fd < 0 || leat__file_keep_access(fd, data)
                     ? leat__error_system(errno, "%s", data)
                     : LEAT_OK;
    if (fd >= 0)
        close(fd);
    return status;
}
