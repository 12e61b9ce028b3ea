#include "tools/database/staged_access.h"

#include "base/error.h"
#include "base/file.h"
#include "base/file_access.h"
#include "base/file_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

mode_t staged_access_directory(const char *target, const char *data)
{
    struct stat found;
    if (!leat__file_is_for_all(target) || !leat__file_is_for_all(data))
        return 0700;
    return stat(target, &found) ? 0777
                                : 0700 | leat__file_part_mode(found.st_mode);
}

void staged_access_share(int fd, mode_t mode, const char *target,
                         const char *data)
{
    struct stat found;
    bool is_shared =
        mode != 0700 ||
        (stat(data, &found) ? errno == ENOENT : (found.st_mode & 060) == 060);
    int like =
        is_shared ? open(target, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (like < 0)
        return;
    leat__file_share_directory(fd, like);
    close(like);
}

/* Whether a user could replace the target, and read what it holds. In a sticky
 * one only its owner could. */
static bool may_replace(uid_t user, gid_t group, const char *target,
                        const char *data)
{
    struct stat found;
    return !stat(target, &found) &&
           (user == found.st_uid || !(found.st_mode & S_ISVTX)) &&
           leat__file_lets(target, user, group, W_OK | X_OK) &&
           (leat__file_is_absent(data) ||
            leat__file_lets(data, user, group, R_OK));
}

int staged_access_check_makers(int directory, const char *path,
                               const char *target, const char *data)
{
    static const char *const names[] = {".", "journal", "database",
                                        "database/data.mdb"};
    const mode_t inherited = S_ISGID | S_IWOTH;
    struct stat above, found;
    if (fstatat(directory, "..", &above, 0))
        return leat__error_system(errno, "%s", path);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        if (fstatat(directory, names[i], &found, AT_SYMLINK_NOFOLLOW)) {
            if (errno != ENOENT && errno != ENOTDIR)
                return leat__error_system(errno, "%s", path);
            continue;
        }
        /* Whose group anybody's files get there shows no member of it. */
        gid_t group =
            (above.st_mode & inherited) == inherited ? (gid_t)-1 : found.st_gid;
        if (found.st_uid != geteuid() &&
            !may_replace(found.st_uid, group, target, data))
            return leat_error(LEAT_EINVAL,
                              "%s: it, or a file in it, is of user %ju, who "
                              "may not replace %s; remove it, or give another "
                              "name",
                              path, (uintmax_t)found.st_uid, target);
    }
    return LEAT_OK;
}

static int make_like(int like, int at, const char *name, const char *target)
{
    if (unlinkat(like, STAGED_INSIDE, AT_REMOVEDIR) && errno != ENOENT)
        return leat__error_system(errno, "%s/" STAGED_INSIDE, target);
    int code = leat__file_make_directory(like, STAGED_INSIDE, at, name);
    return code ? leat__error_system(code, "%s", target) : LEAT_OK;
}

int staged_access_make(int at, const char *name, const char *target)
{
    int status = LEAT_OK;
    int like = open(target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (like >= 0) {
        status = make_like(like, at, name, target);
        close(like);
    } else if (errno != ENOENT || mkdirat(at, name, 0777)) {
        status = leat__error_system(errno, "%s", target);
    }
    return status;
}

static int refuse_access(int fd, const char *path, const char *data)
{
    struct stat found;
    int code = errno;
    if (code != EPERM || fstat(fd, &found) || found.st_uid == geteuid())
        return leat__error_system(code, "%s", data);
    return leat_error(LEAT_EINVAL,
                      "%s: holds another user's unfinished import, to which "
                      "only they can give the access of %s; --restart starts "
                      "over",
                      path, data);
}

int staged_access_keep(int directory, const char *name, const char *path,
                       const char *data)
{
    int fd = leat__file_open_at(directory, name, O_RDONLY | O_NOFOLLOW);
    int status = fd < 0 ? leat__error_system(errno, "%s", path)
                 : leat__file_keep_access(fd, data)
                     ? refuse_access(fd, path, data)
                     : LEAT_OK;
    if (fd >= 0)
        close(fd);
    return status;
}

int staged_access_resume(int directory, const char *name, const char *path,
                         const char *data)
{
    struct stat found;
    if (fstatat(directory, name, &found, AT_SYMLINK_NOFOLLOW))
        return leat__error_system(errno, "%s", path);
    if (!S_ISREG(found.st_mode))
        return LEAT_OK;
    if ((faccessat(directory, ".", W_OK | X_OK, AT_EACCESS) ||
         faccessat(directory, "journal", W_OK, AT_EACCESS) ||
         faccessat(directory, "database", W_OK | X_OK, AT_EACCESS)) &&
        errno == EACCES)
        return leat__error_system(errno, "%s", path);
    int status = found.st_uid != geteuid()
                     ? staged_access_keep(directory, name, path, data)
                     : LEAT_OK;
    if (status || (found.st_mode & 0600) == 0600)
        return status;
    return fchmodat(directory, name, (found.st_mode & 0777) | 0600, 0)
               ? leat__error_system(errno, "%s", path)
               : LEAT_OK;
}
