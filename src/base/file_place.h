/*
 * file_place.h: the directory that a file is in, where a link leads, and what
 * keeps a rename from putting another file there. Any threads.
 */
#ifndef LEAT_BASE_FILE_PLACE_H
#define LEAT_BASE_FILE_PLACE_H

#include <stdbool.h>

/* The directory of a path: "." for a bare name. Freed by the caller
 * (leat__free); NULL without memory, as the next one. */
char *leat__file_directory(const char *path);

/*
 * The target of `path` if it is a symbolic link to a file that has a path, else
 * the path itself. Where they do, links alone are read: realpath also needs the
 * directories above the current one.
 */
char *leat__file_followed(const char *path);

/* One link of such a chain: `*path`, owned by the caller, becomes what it leads
 * to. LEAT_END: it is no link, or a descriptor's whose path leads to another
 * file here; LEAT_ENOMEM. */
int leat__file_follow_once(char **path);

/* Whether `link` leads to what is at `target`, or nothing is there. The path
 * that a descriptor's link in /proc shows may be one of another mount
 * namespace, one that a mount hides, or that of a removed file. */
bool leat__file_leads_to(const char *link, const char *target);

/*
 * Whether files can be moved from `from`, seen from the directory `at` ("":
 * that directory itself), to the directory `to`: 1 or 0; -1: errno. Two mounts
 * of one file system, such as a bind mount, are two.
 */
int leat__file_shares_mount(int at, const char *from, const char *to);

/* What access(2) asks, of the effective user, group and capabilities, which the
 * system goes by: 0, or errno. */
int leat__file_access(const char *path, int mode);

/* Whether nothing is at `path`, as far as this process may look: a path that is
 * too long may lead to a file, a name that is too long does not. */
bool leat__file_is_absent(const char *path);

/* Whether the process can make a file in the directory of `path`: 0, or errno.
 */
int leat__file_check_directory(const char *path);

/*
 * Whether what is at `path`, if anything, can be replaced or renamed there:
 * LEAT_EINVAL for a mount point, for what another user has in a sticky
 * directory, for what chattr has made immutable or append-only, and for what is
 * in a directory that chattr has made append-only. LEAT_ENOMEM.
 */
int leat__file_check_place(const char *path);

/*
 * Whether a file that is made in the directory of `path` can be renamed and
 * removed there: LEAT_EINVAL for a directory that chattr has made append-only.
 * LEAT_ENOMEM. The second is told the directory itself.
 */
int leat__file_check_renames(const char *path);
int leat__file_check_directory_renames(const char *directory);

/* Whether NFS or FUSE calls a file so that was removed while it was open: it
 * stays until it is closed, as does its directory. */
bool leat__file_is_hidden(const char *name);

/* Whether what is at `path`, if anything, is a file: nothing replaces a
 * device, a pipe, a link or a directory. LEAT_EINVAL, LEAT_EIO. */
int leat__file_check_regular(const char *path);

#endif
