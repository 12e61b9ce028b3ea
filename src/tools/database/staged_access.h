/*
 * staged_access.h: who may read a database that is being made, and who may do
 * what with it where it replaces another: what only some could read stays so.
 */
#ifndef LEAT_TOOLS_DATABASE_STAGED_ACCESS_H
#define LEAT_TOOLS_DATABASE_STAGED_ACCESS_H

#include <sys/types.h>

/* The permissions of the directory in which a file is made that replaces
 * `data` of the database `target`: this user's alone, unless all could read
 * that, and for others, whatever its group, no more than `target`. */
mode_t staged_access_directory(const char *target, const char *data);

/* Lets those write to that directory, made with that mode, who may write to
 * `target` by the group or an access control list; where it is this user's
 * alone, those who may write to `data`, too. */
void staged_access_share(int fd, mode_t mode, const char *target,
                         const char *data);

/* Gives the open file, which is new in that directory, the access of `data`, as
 * leat__file_begin_access does; where that is not there, the group and the list
 * of leat__file_share_masked. 0, or -1: errno. */
int staged_access_begin(int fd, int directory, const char *data);

/*
 * Whether that directory, whose path is `path`, and what is in it belong to
 * this user, or to one who may replace `target`, where that is there, and read
 * `data`, also by a group that any of theirs has: the owner of a file
 * decides what is in it, and may have it open to read what is written. Errors:
 * LEAT_EINVAL, LEAT_EIO.
 */
int staged_access_check_makers(int directory, const char *path,
                               const char *target, const char *data);

/* The directory's name while it is made, which a killed run may leave. */
#define STAGED_INSIDE "leat-part"

/* Makes the directory `name`, seen from `at`; files in it have the access and
 * the flags that they would have in `target`, if that is there. Errors:
 * LEAT_EIO. */
int staged_access_make(int at, const char *name, const char *target);

/* Gives the file `name` in a directory, whose path is `path`, the access of
 * `data`. After that it may be no more than renamed. Errors: LEAT_EIO;
 * LEAT_EINVAL where it is another user's and would be for more than `data`. */
int staged_access_keep(int directory, const char *name, const char *path,
                       const char *data);

/* Lets it be written to again: a run that was stopped before its last rename
 * may have taken that permission from it. What this process cannot do with it
 * at the end is an error before the work, as of staged_access_keep;
 * LEAT_EINVAL, too, where it may not write to another user's. */
int staged_access_resume(int directory, const char *name, const char *path,
                         const char *data);

#endif
