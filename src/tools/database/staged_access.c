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

int staged_access_begin(int fd, int directory, const char *data)
{
    int status = leat__file_begin_access(fd, data);
    int at = status || !leat__file_is_absent(data)
                 ? -1
                 : openat(directory, "database",
                          O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (at >= 0) {
        leat__file_share_masked(fd, at);
        close(at);
    }
    return status;
}

/* The staging directory and all that is in it. */
enum { ENTRIES = 4 };

/* Whether a path lets the user do that by the group of any of these entries
 * that is theirs: of their files, some have their first group. */
static bool lets(const char *path, uid_t user, const struct stat *found,
                 int mode)
{
    for (size_t i = 0; i < ENTRIES; i++)
        if (found[i].st_uid == user &&
            leat__file_lets(path, user, found[i].st_gid, mode))
            return true;
    return false;
}

/* Whether a user could replace the target, and read what it holds. In a sticky
 * one only its owner could. */
static bool may_replace(uid_t user, const struct stat *found,
                        const char *target, const char *data)
{
    struct stat replaced;
    return !stat(target, &replaced) &&
           (user == replaced.st_uid || !(replaced.st_mode & S_ISVTX)) &&
           lets(target, user, found, W_OK | X_OK) &&
           (leat__file_is_absent(data) || lets(data, user, found, R_OK));
}

/* What is not there is this user's. */
static int find_entries(int directory, const char *path,
                        struct stat found[ENTRIES])
{
    static const char *const names[ENTRIES] = {".", "journal", "database",
                                               "database/data.mdb"};
    const mode_t inherited = S_ISGID | S_IWOTH;
    struct stat above;
    if (fstatat(directory, "..", &above, 0))
        return leat__error_system(errno, "%s", path);
    for (size_t i = 0; i < ENTRIES; i++) {
        if (fstatat(directory, names[i], &found[i], AT_SYMLINK_NOFOLLOW)) {
            if (errno != ENOENT && errno != ENOTDIR)
                return leat__error_system(errno, "%s", path);
            found[i].st_uid = geteuid();
        } else if ((above.st_mode & inherited) == inherited &&
                   found[i].st_gid == above.st_gid) {
            /* Whose group anybody's files get there shows no member of it. */
            found[i].st_gid = (gid_t)-1;
        }
    }
    return LEAT_OK;
}

int staged_access_check_makers(int directory, const char *path,
                               const char *target, const char *data)
{
    struct stat found[ENTRIES];
    int status = find_entries(directory, path, found);
    if (status)
        return status;
    for (size_t i = 0; i < ENTRIES; i++)
        if (found[i].st_uid != geteuid() &&
            !may_replace(found[i].st_uid, found, target, data))
            return leat_error(LEAT_EINVAL,
                              "%s: it, or a file in it, is of user %ju, who "
                              "may not replace %s; remove it, or give another "
                              "name",
                              path, (uintmax_t)found[i].st_uid, target);
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
    bool is_own = found.st_uid == geteuid();
    if (!is_own && faccessat(directory, name, R_OK | W_OK, AT_EACCESS) &&
        errno == EACCES)
        return leat_error(LEAT_EINVAL,
                          "%s: holds another user's unfinished import, which "
                          "this user may not write to; --restart starts over",
                          path);
    int status =
        is_own ? LEAT_OK : staged_access_keep(directory, name, path, data);
    if (status || (found.st_mode & 0600) == 0600)
        return status;
    return fchmodat(directory, name, (found.st_mode & 0777) | 0600, 0)
               ? leat__error_system(errno, "%s", path)
               : LEAT_OK;
}
