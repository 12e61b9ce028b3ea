/* target.h: the file that a command writes, and the one that it replaces. */
#ifndef LEAT_TOOLS_DATABASE_TARGET_H
#define LEAT_TOOLS_DATABASE_TARGET_H

#include <leat/status.h>

#include <stdbool.h>

/* Whether it is a file of the kind that the command writes. */
typedef bool target_own(const char *path);

/*
 * The path without slashes at its end, which would follow a link; of a symbolic
 * link, which stays one, that of its target, and of "." and "..", which are no
 * names that another can be beside, the real one. Owned by the caller (free);
 * NULL: out of memory.
 */
char *target_resolve(const char *path);

/*
 * Whether the file `path` may be written by a command that reads the database
 * `source`. A file that is there gives way if it is empty or `is_own`, another
 * one with `force`; never a file of a database, this or another one.
 * Errors: LEAT_EINVAL, LEAT_EIO.
 */
int target_check(const char *path, const char *source, bool force,
                 target_own *is_own);

/* Up to `size` bytes from the beginning of a file; below 0: an error. */
int64_t target_begin(const char *path, void *out, size_t size);

#endif
