#include "base/file_access.h"
#include "base/memory.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/xattr.h>
#include <unistd.h>

#define LIST "system.posix_acl_access"
#define LIST_OF_NEW "system.posix_acl_default"

enum { PRIVATE = 0700 };

/* The system shows each user and group that a user namespace does not know as
 * this one, unless it is set to another. */
enum { UNKNOWN_USER = 65534, UNKNOWN_GROUP = 65534 };

/* Whether the user namespace knows all users, or groups, by its map in /proc:
 * then it shows none as another. */
static bool maps_all(const char *map)
{
    unsigned inside, outside, n = 0;
    FILE *file = fopen(map, "re");
    bool is_read = file && fscanf(file, "%u %u %u", &inside, &outside, &n) == 3;
    if (file)
        fclose(file);
    return is_read && n == UINT32_MAX;
}

bool leat__file_knows_user(uid_t user)
{
    return user != UNKNOWN_USER || maps_all("/proc/self/uid_map");
}

bool leat__file_knows_group(gid_t group)
{
    return group != UNKNOWN_GROUP || maps_all("/proc/self/gid_map");
}

static bool has_no_list(int code)
{
    return code == ENODATA || code == ENOTSUP;
}

/* A file by its path or, where that is NULL, an open one. */
typedef struct source {
    const char *path;
    int fd;
} source;

static int find(source from, struct stat *out)
{
    return from.path ? stat(from.path, out) : fstat(from.fd, out);
}

static ssize_t read_list(source from, const char *name, void *out, size_t size)
{
    return from.path ? getxattr(from.path, name, out, size)
                     : fgetxattr(from.fd, name, out, size);
}

/* Whether the open file has that list already, which others than the owner may
 * not even give it again. */
static bool has_list(int fd, const char *name, const void *list, size_t size)
{
    void *own = leat__alloc(XATTR_SIZE_MAX);
    if (!own)
        return false;
    ssize_t n = fgetxattr(fd, name, own, XATTR_SIZE_MAX);
    bool is_same = n == (ssize_t)size && memcmp(own, list, size) == 0;
    leat__free(own);
    return is_same;
}

/* The numbers of a list are little endian: its version, then of each entry the
 * tag, the permissions and the ID. */
enum { LIST_HEADER = 4, LIST_ENTRY = 8, TAG = 0, PERMISSIONS = 2 };

/*
 * For a file whose group becomes another one, which may do no more than all, or
 * than a group that the list names, in which its members may be, too; and all
 * no more than the old group, which is among them by then. The mask and so what
 * the list gives by name stay.
 */
static void cut_list(unsigned char *list, size_t size)
{
    unsigned char group = 07, others = 07;
    for (size_t i = LIST_HEADER; i + LIST_ENTRY <= size; i += LIST_ENTRY) {
        if (list[i + TAG] & (ACL_GROUP_OBJ | ACL_GROUP | ACL_OTHER))
            group &= list[i + PERMISSIONS];
        if (list[i + TAG] & (ACL_GROUP_OBJ | ACL_MASK | ACL_OTHER))
            others &= list[i + PERMISSIONS];
    }
    for (size_t i = LIST_HEADER; i + LIST_ENTRY <= size; i += LIST_ENTRY) {
        if (list[i + TAG] == ACL_GROUP_OBJ)
            list[i + PERMISSIONS] = group;
        else if (list[i + TAG] == ACL_OTHER)
            list[i + PERMISSIONS] = others;
    }
}

static int remove_list(int fd, const char *name)
{
    if (fgetxattr(fd, name, NULL, 0) < 0 && has_no_list(errno))
        return 0;
    return fremovexattr(fd, name) == 0 || has_no_list(errno) ? 0 : errno;
}

/* Copies an access control list, for a file that has that group or not, or
 * takes away one that new files get in that directory. 0, or errno. */
static int copy_list(int fd, const char *name, source from, bool is_group)
{
    unsigned char *list = leat__alloc(XATTR_SIZE_MAX);
    if (!list)
        return ENOMEM;
    ssize_t n = read_list(from, name, list, XATTR_SIZE_MAX);
    int code = n < 0 ? errno : 0;
    if (!code && !is_group)
        cut_list(list, (size_t)n);
    if (!code && !has_list(fd, name, list, (size_t)n) &&
        fsetxattr(fd, name, list, (size_t)n, 0))
        code = errno;
    leat__free(list);
    return n < 0 && has_no_list(code) ? remove_list(fd, name) : code;
}

static bool is_for_all(source file, const struct stat *found)
{
    mode_t all = S_ISDIR(found->st_mode) ? 0555 : 0444;
    return (found->st_mode & all) == all &&
           read_list(file, LIST, NULL, 0) < 0 && has_no_list(errno);
}

bool leat__file_is_for_all(const char *path)
{
    struct stat found;
    return stat(path, &found) ? errno == ENOENT
                              : is_for_all((source){.path = path}, &found);
}

/* Whether stat found no file, rather than failed to look at one. */
static bool is_absent(int code)
{
    return code == ENOENT || code == ENOTDIR || code == ELOOP;
}

mode_t leat__file_first_mode(const char *replaced)
{
    struct stat old;
    if (stat(replaced, &old))
        return is_absent(errno) ? 0666 : 0600;
    return S_ISREG(old.st_mode) ? 0600 : 0666;
}

/* The permissions of the file that is replaced, as far as this process may give
 * them: others than the owner leave what is no more than those. */
static int keep_mode(int fd, mode_t all, mode_t mode)
{
    struct stat own;
    if (fstat(fd, &own))
        return -1;
    if (!((own.st_mode ^ mode) & all) || !fchmod(fd, mode))
        return 0;
    return errno == EPERM && !(own.st_mode & ~mode & 0777) ? 0 : -1;
}

/* The group's are all others', among whom the old group is where it is another
 * one by then. */
static mode_t cut_mode(mode_t mode, bool is_group)
{
    mode_t others = is_group ? mode & 07 : mode & 07 & mode >> 3;
    return (mode & ~077u) | others << 3 | others;
}

/*
 * The owner comes last, since only the owner may do the rest; where the file is
 * yet to be written, it stays and may do that. A file system without
 * permissions refuses others than it has for all.
 */
static int keep_access(int fd, source replaced, bool is_written)
{
    struct stat old, new;
    if (fstat(fd, &new))
        return -1;
    if (find(replaced, &old))
        return is_absent(errno) ? 0 : -1;
    if ((old.st_mode & S_IFMT) != (new.st_mode &S_IFMT))
        return 0;
    const mode_t all = S_ISDIR(old.st_mode) ? 07777 : 0777;
    const mode_t own = S_ISDIR(old.st_mode) ? 0700 : is_written ? 0 : 0600;
    mode_t mode = (old.st_mode & all) | own;
    bool is_group =
        leat__file_knows_group(old.st_gid) &&
        (new.st_gid == old.st_gid || !fchown(fd, (uid_t)-1, old.st_gid));
    int code = copy_list(fd, LIST, replaced, is_group);
    if (code == ENOMEM) {
        errno = code;
        return -1;
    }
    bool is_listed = !code && fgetxattr(fd, LIST, NULL, 0) >= 0;
    if (is_listed && fstat(fd, &new))
        return -1;
    /* A list has permissions, too, of which the group's are its mask. */
    if (is_listed)
        mode = (mode & 07000) | (new.st_mode & 0777) | own;
    else if (code || !is_group)
        mode = cut_mode(mode, is_group);
    if (keep_mode(fd, all, mode))
        return -1;
    if (is_written && new.st_uid != old.st_uid &&
        leat__file_knows_user(old.st_uid) && fchown(fd, old.st_uid, (gid_t)-1))
        return 0; /* not for this process to give */
    return 0;
}

int leat__file_keep_access(int fd, const char *replaced)
{
    return keep_access(fd, (source){.path = replaced}, true);
}

int leat__file_begin_access(int fd, const char *replaced)
{
    return keep_access(fd, (source){.path = replaced}, false);
}

int leat__file_keep_access_of(int fd, int replaced)
{
    return keep_access(fd, (source){.fd = replaced}, true);
}

/* The group and the list that files get in the directory `like`; the group as
 * far as this process may. 0, or errno. */
static int inherit(int fd, int like)
{
    struct stat wanted, own;
    if (fstat(fd, &own) || fstat(like, &wanted))
        return errno;
    bool is_group =
        own.st_gid == wanted.st_gid || !fchown(fd, (uid_t)-1, wanted.st_gid);
    mode_t mode =
        (own.st_mode & 05777) | (is_group ? wanted.st_mode & S_ISGID : 0);
    int code = copy_list(fd, LIST_OF_NEW, (source){.fd = like}, true);
    return !code && (own.st_mode ^ mode) & 07777 && fchmod(fd, mode) ? errno
                                                                     : code;
}

static bool is_in_group(gid_t group)
{
    if (!leat__file_knows_group(group))
        return false;
    bool found = group == getegid();
    int n = getgroups(0, NULL);
    gid_t *groups = n > 0 ? leat__alloc((size_t)n * sizeof(*groups)) : NULL;
    n = groups ? getgroups(n, groups) : 0;
    while (n > 0)
        found |= groups[--n] == group;
    leat__free(groups);
    return found;
}

/*
 * Lets others write to a directory whom the group and the list of `like` let
 * write there; it gets that group. A sticky one keeps them from each
 * other's files; a process that is not in the group would lose the setgid bit.
 * Where that cannot be it stays as it was made.
 */
static void share(int fd, int like)
{
    struct stat wanted, own;
    bool is_for_group =
        !fstat(like, &wanted) && !fstat(fd, &own) &&
        (wanted.st_mode & (S_ISVTX | 070)) == 070 &&
        is_in_group(wanted.st_gid) &&
        (own.st_gid == wanted.st_gid || !fchown(fd, (uid_t)-1, wanted.st_gid));
    if (is_for_group && !copy_list(fd, LIST, (source){.fd = like}, true))
        (void)fchmod(fd, (own.st_mode & 07007) | 0770);
}

void leat__file_share_directory(int fd, int like)
{
    if (!inherit(fd, like))
        share(fd, like);
}

static int open_directory(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Gives a file the group and the list by which others may write to the
 * directory `at`, where they may. */
static bool take_access(int fd, int at, const struct stat *above, gid_t group)
{
    if ((above->st_mode & (S_ISVTX | 070)) != 070 ||
        (group != above->st_gid && fchown(fd, (uid_t)-1, above->st_gid)))
        return false;
    int readable = open_directory(at, ".");
    bool is_taken =
        readable >= 0 && !copy_list(fd, LIST, (source){.fd = readable}, true);
    if (readable >= 0)
        close(readable);
    return is_taken;
}

/* Of a list, the group's permissions are its mask. */
void leat__file_share(int fd, int at)
{
    struct stat above, own;
    if (fstat(at, &above) || fstat(fd, &own))
        return;
    mode_t mode = 0600 | (own.st_mode & (0775 | (above.st_mode & 02)));
    bool is_shared = take_access(fd, at, &above, own.st_gid);
    if (is_shared)
        mode |= 060;
    if (is_shared || mode != (own.st_mode & 0777))
        (void)fchmod(fd, mode);
}

void leat__file_share_masked(int fd, int at)
{
    struct stat above, own;
    if (fgetxattr(at, LIST_OF_NEW, NULL, 0) < 0 && !fstat(at, &above) &&
        !fstat(fd, &own) && take_access(fd, at, &above, own.st_gid))
        (void)fchmod(fd, own.st_mode & 0777);
}

static int make_beside(int like, int at, const char *name, mode_t mode)
{
    if (mkdirat(at, name, mode))
        return errno;
    int fd = open_directory(at, name);
    int code = fd < 0 ? errno : inherit(fd, like);
    if (!code)
        share(fd, like);
    if (fd >= 0)
        close(fd);
    if (code)
        unlinkat(at, name, AT_REMOVEDIR);
    return code;
}

/* Which the system makes like any there. A list may deny the owner the rename,
 * and more. */
static int make_inside(int like, const char *staged, int at, const char *name,
                       mode_t mode)
{
    struct stat made;
    if (mkdirat(like, staged, mode))
        return errno;
    int fd = open_directory(like, staged);
    if (fd >= 0) {
        share(fd, like);
        close(fd);
    }
    bool failed = fstatat(like, staged, &made, AT_SYMLINK_NOFOLLOW) ||
                  ((made.st_mode & 0700) != 0700 &&
                   fchmodat(like, staged, (made.st_mode & 07777) | 0700, 0)) ||
                  renameat(like, staged, at, name);
    int code = failed ? errno : 0;
    if (failed)
        unlinkat(like, staged, AT_REMOVEDIR);
    return code;
}

mode_t leat__file_part_mode(mode_t mode)
{
    return mode & (mode & 02 ? 0777 : 0757);
}

int leat__file_make_directory(int like, const char *staged, int at,
                              const char *name)
{
    struct stat found;
    if (fstat(like, &found))
        return errno;
    mode_t mode = PRIVATE;
    if (is_for_all((source){.fd = like}, &found))
        mode |= leat__file_part_mode(found.st_mode);
    int code = make_inside(like, staged, at, name, mode);
    return code == EACCES || code == EXDEV ? make_beside(like, at, name, mode)
                                           : code;
}

/* What a list of n bytes lets a user other than the owner do: by name, else by
 * the group, else as one of all. An ID of -1 is one that is not known. */
static unsigned find_listed(const char *list, size_t n, uid_t user, gid_t group,
                            gid_t owning)
{
    unsigned may[ACL_OTHER + 1] = {0};
    bool is_listed[ACL_OTHER + 1] = {false};
    struct posix_acl_xattr_entry entry;
    for (size_t at = sizeof(struct posix_acl_xattr_header);
         at + sizeof(entry) <= n; at += sizeof(entry)) {
        memcpy(&entry, list + at, sizeof(entry));
        unsigned tag = le16toh(entry.e_tag);
        uint32_t id = tag == ACL_GROUP_OBJ ? owning : le32toh(entry.e_id);
        bool is_users = tag == ACL_USER ? id == user
                        : tag == ACL_GROUP || tag == ACL_GROUP_OBJ
                            ? id == group && group != (gid_t)-1
                            : tag <= ACL_OTHER;
        if (is_users) {
            may[tag] |= le16toh(entry.e_perm);
            is_listed[tag] = true;
        }
    }
    unsigned mask = is_listed[ACL_MASK] ? may[ACL_MASK] : 07;
    if (is_listed[ACL_USER])
        return may[ACL_USER] & mask;
    if (is_listed[ACL_GROUP] || is_listed[ACL_GROUP_OBJ])
        return (may[ACL_GROUP] | may[ACL_GROUP_OBJ]) & mask;
    return may[ACL_OTHER];
}

bool leat__file_lets(const char *path, uid_t user, gid_t group, int mode)
{
    struct stat found;
    char *list = leat__alloc(XATTR_SIZE_MAX);
    if (!list || !leat__file_knows_user(user) || stat(path, &found)) {
        leat__free(list);
        return false;
    }
    if (!leat__file_knows_group(group))
        group = (gid_t)-1;
    ssize_t n = read_list((source){.path = path}, LIST, list, XATTR_SIZE_MAX);
    bool is_known = n >= 0 || has_no_list(errno);
    unsigned may = n >= 0
                       ? find_listed(list, (size_t)n, user, group, found.st_gid)
                   : group == found.st_gid ? found.st_mode >> 3
                                           : found.st_mode;
    leat__free(list);
    return user == found.st_uid ||
           (is_known && (may & (unsigned)mode) == (unsigned)mode);
}
