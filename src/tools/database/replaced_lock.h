/*
 * replaced_lock.h: the lock file of a database whose data file is replaced.
 *
 * A process that opens the database meanwhile must not read the new file and
 * lock with the old one's lock file, where no later writer looks. So first an
 * empty lock file takes that one's place, with the lock for which processes
 * that open a database wait. It is removed after the data file is replaced, and
 * they find it gone. Processes that have the old file open keep its lock file.
 */
#ifndef LEAT_TOOLS_DATABASE_REPLACED_LOCK_H
#define LEAT_TOOLS_DATABASE_REPLACED_LOCK_H

#include <stdbool.h>

struct replaced_lock {
    int staging; /* directories, borrowed */
    int target;
    const char *staged; /* a name in the first one, borrowed */
    int fd;             /* of the empty file; holds the lock */
    bool has_old;       /* under that name */
};

/*
 * Fails as replaced_lock_begin, and the data file's rename, would where
 * lock.mdb of the target at `path` is no regular file, data.mdb neither that
 * nor a link, or the directory may not be written to. Errors: LEAT_EINVAL,
 * LEAT_EIO.
 */
int replaced_lock_check(const char *path);

/*
 * Puts an empty lock file into the target's directory; `staged` is a free name
 * in the staging directory, and `part` and `path` name the two directories.
 * Errors: LEAT_EINVAL where lock.mdb is no regular file, LEAT_EIO; all is as
 * before then.
 */
int replaced_lock_begin(struct replaced_lock *out, int staging,
                        const char *part, const char *staged, int target,
                        const char *path);

/* Gives the target's lock file its place back. */
void replaced_lock_undo(struct replaced_lock *lock);

/* Removes the empty one; the old one stays under the staged name, if any. */
void replaced_lock_finish(struct replaced_lock *lock);

#endif
