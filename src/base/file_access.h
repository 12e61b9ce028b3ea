/* file_access.h: who may do what with a file that replaces another. A link has
 * the access of what it leads to. */
#ifndef LEAT_BASE_FILE_ACCESS_H
#define LEAT_BASE_FILE_ACCESS_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether all users may read the file, or list and enter the directory, at
 * `path`, as far as its own access says; also where there is none. A list may
 * deny that to some. */
bool leat__file_is_for_all(const char *path);

/* Whether the owner or the group that stat tells of a file is that one. The
 * system shows one that the user namespace does not know as another, 65534. */
bool leat__file_knows_user(uid_t user);
bool leat__file_knows_group(gid_t group);

/* The permissions that a file is created with: where it is to replace another,
 * nobody may open it before the next ones have given it its own. */
mode_t leat__file_first_mode(const char *replaced);

/*
 * Gives an open file or directory the permissions, the access control list, the
 * group and the owner of the one `replaced`, if there is one, as far as this
 * process may and knows them: what only some could read stays so. Where the
 * group or the list stays another one, the group may do no more than all, and
 * where the group does, all no more than the old one, whom a list names staying
 * as they are; the owner of a directory may do all. Another user's file keeps
 * permissions that are no more than that; EPERM: they are. 0, or -1: errno. The
 * second takes the one replaced open to be read.
 */
int leat__file_keep_access(int fd, const char *replaced);
int leat__file_keep_access_of(int fd, int replaced);

/* The same for a file that is yet to be written: its owner stays, and may read
 * and write it. */
int leat__file_begin_access(int fd, const char *replaced);

/* The permissions to make a directory with beside one of that mode, which all
 * may read: its group, which may be another one, writes to it where all may. */
mode_t leat__file_part_mode(mode_t mode);

/*
 * Makes the directory `name`, seen from the directory `at`, in which files have
 * the group, the access control list and the flags (chattr) that they would
 * have in the directory `like`, which is open to be read. It is made as
 * `staged` in that and moved; where this process may not, or the move is one to
 * another project ID, it gets the group, as far as may be, and the list. Others
 * may do no more with it than with `like`; they may read it where all may read
 * that, and write to it as of leat__file_share_directory. 0, or errno; a
 * process that is killed may leave `staged`.
 */
int leat__file_make_directory(int like, const char *staged, int at,
                              const char *name);

/*
 * Lets those write to an open directory, of which no group may do so, who may
 * write to `like` by its group or access control list, whatever the umask, and
 * gives the files in it the group and the list of those there. Where the
 * directory cannot have that group, or this process is not in it, it may stay
 * as it is.
 */
void leat__file_share_directory(int fd, int like);

/* Lets those write to an open file who may write to the directory that it was
 * made in, open as `at`, by its group or access control list, whatever the
 * umask: the file gets both. Where it cannot have that group, or the directory
 * cannot be read, it stays as it was made. All may write to it only where they
 * may write to the directory; its owner always may, and read it. */
void leat__file_share(int fd, int at);

/* The same as far as the umask lets, for a file that stays when it is complete.
 * One in a directory whose new files have a list of their own keeps that. */
void leat__file_share_masked(int fd, int at);

/* Whether the permissions or the access control list of what is at `path` let a
 * user in a group (-1: none that is known) do all of `mode` (R_OK, W_OK, X_OK);
 * its owner may do all.
 * False where they cannot be read, or the user name space does not know the
 * user. */
bool leat__file_lets(const char *path, uid_t user, gid_t group, int mode);

#endif
