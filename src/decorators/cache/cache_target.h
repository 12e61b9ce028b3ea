/* cache_target.h: the directory that a cache becomes. */
#ifndef LEAT_DECORATORS_CACHE_TARGET_H
#define LEAT_DECORATORS_CACHE_TARGET_H

#include "decorators/cache/cache_format.h"

/*
 * Whether a cache can be made at `path`: nothing is there, or an empty
 * directory that is no mount point; what a killed writer left in that is not
 * counted. LEAT_AGAIN: it has become a cache. Errors:
 * LEAT_EINVAL, LEAT_EIO.
 */
int leat__cache_target_check(const char *path);

/* The directory that has the path in it. */
int leat__cache_target_parent(leat__cache_path out, const char *path);

/* Opens the empty directory `name` in the directory `parent` to be read. -1:
 * errno, ENOENT where none is there. */
int leat__cache_target_open(int parent, const char *name);

/* Gives the directory that is to replace it, open by any flags, its access,
 * which the user chose. 0, or errno. */
int leat__cache_target_keep_access(int parent, const char *name, int made);

#endif
