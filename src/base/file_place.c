#include "base/file_place.h"
#include "base/error.h"
#include "base/file_access.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's own limit. */
#define LINKS_MAX 40

/* How often a link may be replaced while it is followed. */
#define TRIES 100

char *leat__file_directory(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return leat__strdup(".");
    char *directory = leat__strdup(path);
    if (directory)
        directory[slash == path ? 1 : slash - path] = 0;
    return directory;
}

/* What a link says, as seen from where it is. */
static char *place_target(const char *path, const char *target)
{
    const char *slash = target[0] == '/' ? NULL : strrchr(path, '/');
    size_t inside = slash ? (size_t)(slash - path) + 1 : 0;
    size_t length = strlen(target) + 1;
    char *next = leat__alloc(inside + length);
    if (next) {
        memcpy(next, path, inside);
        memcpy(next + inside, target, length);
    }
    return next;
}

bool leat__file_leads_to(const char *link, const char *target)
{
    struct stat found, wanted;
    return stat(target, &found) != 0 ||
           (stat(link, &wanted) == 0 && found.st_dev == wanted.st_dev &&
            found.st_ino == wanted.st_ino);
}

int leat__file_follow_once(char **path)
{
    char target[PATH_MAX];
    for (int i = 0; i < TRIES; i++) {
        ssize_t length = readlink(*path, target, sizeof(target) - 1);
        if (length <= 0)
            return LEAT_END;
        target[length] = 0;
        char *next = place_target(*path, target);
        if (!next)
            return LEAT_ENOMEM;
        if (leat__file_leads_to(*path, next)) {
            leat__free(*path);
            *path = next;
            return LEAT_OK;
        }
        leat__free(next);
    }
    return LEAT_END;
}

/* NULL when memory is short. */
static char *follow(const char *path)
{
    char *at = leat__strdup(path);
    int status = at ? LEAT_OK : LEAT_ENOMEM;
    for (int i = 0; !status && i < LINKS_MAX; i++)
        status = leat__file_follow_once(&at);
    if (status != LEAT_ENOMEM)
        return at;
    leat__free(at);
    return NULL;
}

/* Of a chain that has become too long, and of a file without a name, which
 * /proc gives none that leads anywhere. */
static char *find_real(const char *path)
{
    char *real = realpath(path, NULL);
    char *copy = leat__strdup(real ? real : path);
    free(real);
    return copy;
}

char *leat__file_followed(const char *path)
{
    struct stat found;
    bool has_name = false;
    /* A link may be replaced between the looks at it, and at what it leads to;
     * a file that is replaced during a look has no name then. */
    for (int i = 0; i < TRIES; i++) {
        if (stat(path, &found) != 0)
            return leat__strdup(path);
        has_name = found.st_nlink > 0;
        if (!has_name)
            continue;
        char *at = follow(path);
        if (!at || stat(at, &found) == 0)
            return at;
        leat__free(at);
    }
    return has_name ? find_real(path) : leat__strdup(path);
}

/* Where something is mounted. */
typedef struct place {
    dev_t device;
    uint64_t mount; /* 0: a kernel before 5.8 does not tell */
} place;

static int find_place(int at, const char *path, place *out)
{
    struct stat found;
    struct statx more;
    if (fstatat(at, path, &found, AT_EMPTY_PATH))
        return -1;
    *out = (place){.device = found.st_dev};
    if (!statx(at, path, AT_EMPTY_PATH, STATX_MNT_ID, &more) &&
        more.stx_mask & STATX_MNT_ID)
        out->mount = more.stx_mnt_id;
    return 0;
}

int leat__file_shares_mount(int at, const char *from, const char *to)
{
    place one, other;
    if (find_place(at, from, &one) || find_place(AT_FDCWD, to, &other))
        return -1;
    return one.device == other.device && one.mount == other.mount;
}

int leat__file_access(const char *path, int mode)
{
    int code = faccessat(AT_FDCWD, path, mode, AT_EACCESS) ? errno : 0;
    /* Some containers forbid the call, and not that of access. */
    if (code == EPERM && geteuid() == getuid() && getegid() == getgid())
        code = access(path, mode) ? errno : 0;
    return code;
}

bool leat__file_is_absent(const char *path)
{
    int code = leat__file_access(path, F_OK);
    return code == ENOENT || code == ENOTDIR ||
           (code == ENAMETOOLONG && strlen(path) < PATH_MAX);
}

int leat__file_check_directory(const char *path)
{
    char *directory = leat__file_directory(path);
    if (!directory)
        return ENOMEM;
    int code = leat__file_access(directory, W_OK | X_OK);
    leat__free(directory);
    return code;
}

/* What a container may take from its superuser. Where the system does not tell,
 * the superuser has it. */
static bool may_change_others(void)
{
    struct __user_cap_header_struct header = {.version =
                                                  _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct has[_LINUX_CAPABILITY_U32S_3];
    if (syscall(SYS_capget, &header, has))
        return geteuid() == 0;
    return has[CAP_TO_INDEX(CAP_FOWNER)].effective & CAP_TO_MASK(CAP_FOWNER);
}

/* As /tmp, where a user's files are replaced by nobody but their owner, the
 * directory's, and those who may change any user's. */
static bool is_anothers(const struct stat *found, const char *directory)
{
    struct stat above;
    uid_t user = geteuid();
    return user != found->st_uid && !stat(directory, &above) &&
           above.st_mode & S_ISVTX && user != above.st_uid &&
           !(may_change_others() && leat__file_knows_user(found->st_uid));
}

/* As chattr has it. */
static bool is_fixed(const char *path)
{
    struct statx found;
    return !statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, 0,
                  &found) &&
           found.stx_attributes & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND);
}

/* Files of an overlay have other devices than their directory. */
static bool is_mount_point(const char *path, const struct stat *found,
                           const char *directory)
{
    struct statx more;
    struct stat above;
    if (S_ISLNK(found->st_mode))
        return false;
    if (!statx(AT_FDCWD, path, AT_NO_AUTOMOUNT, 0, &more) &&
        more.stx_attributes & STATX_ATTR_MOUNT_ROOT)
        return true;
    return S_ISDIR(found->st_mode) && !stat(directory, &above) &&
           above.st_dev != found->st_dev;
}

int leat__file_check_directory_renames(const char *directory)
{
    struct statx found;
    if (statx(AT_FDCWD, directory, AT_NO_AUTOMOUNT, 0, &found) ||
        !(found.stx_attributes & STATX_ATTR_APPEND))
        return LEAT_OK;
    return leat_error(LEAT_EINVAL,
                      "%s: is append-only (chattr), so that nothing in it can "
                      "be renamed, replaced or removed; give another directory",
                      directory);
}

static int check_place(const char *path, const struct stat *found,
                       const char *directory)
{
    if (is_anothers(found, directory))
        return leat_error(LEAT_EINVAL,
                          "%s: is another user's in a sticky directory, where "
                          "only they can replace or rename it; give another "
                          "name",
                          path);
    if (is_mount_point(path, found, directory))
        return leat_error(LEAT_EINVAL,
                          "%s: is a mount point, which nothing can replace; "
                          "give another name",
                          path);
    int status = leat__file_check_directory_renames(directory);
    if (status)
        return status;
    if (is_fixed(path))
        return leat_error(LEAT_EINVAL,
                          "%s: is immutable or append-only (chattr), so that "
                          "nothing can replace it; give another name",
                          path);
    return LEAT_OK;
}

int leat__file_check_place(const char *path)
{
    struct stat found;
    if (lstat(path, &found))
        return LEAT_OK;
    char *directory = leat__file_directory(path);
    if (!directory)
        return LEAT_ENOMEM;
    int status = check_place(path, &found, directory);
    leat__free(directory);
    return status;
}

int leat__file_check_renames(const char *path)
{
    char *directory = leat__file_directory(path);
    if (!directory)
        return LEAT_ENOMEM;
    int status = leat__file_check_directory_renames(directory);
    leat__free(directory);
    return status;
}

bool leat__file_is_hidden(const char *name)
{
    return !strncmp(name, ".nfs", 4) || !strncmp(name, ".fuse_hidden", 12);
}

int leat__file_check_regular(const char *path)
{
    struct stat found;
    if (lstat(path, &found))
        return errno == ENOENT ? LEAT_OK
                               : leat__error_system(errno, "%s", path);
    return S_ISREG(found.st_mode)
               ? LEAT_OK
               : leat_error(LEAT_EINVAL, "%s: exists and is not a regular file",
                            path);
}
