/*
 * cache_partial.h: PATH.partial, the directory in which a cache is made until
 * it is renamed to PATH.
 *
 * It holds `data`, `index` and NAME.lock, where NAME is the last part of PATH.
 * The lock is made first and removed last, and a complete cache has none. So
 * the files beside it are those of an unfinished cache of that name, and all
 * others are somebody else's.
 */
#ifndef LEAT_DECORATORS_CACHE_CACHE_PARTIAL_H
#define LEAT_DECORATORS_CACHE_CACHE_PARTIAL_H

#include "decorators/cache/cache_lock.h"

/* Has no descriptor yet. Cannot fail. */
void leat__cache_partial_init(leat__cache_partial *partial);

/*
 * Makes the directory, or takes over what a killed writer left, and locks it.
 * LEAT_AGAIN: another process has completed or removed it at the same moment.
 * Errors: LEAT_ESTATE where another process, or another reader of this one, is
 * making the cache, or without locks may be; LEAT_EINVAL for a path that is
 * something else, and for files of others in the directory, also where those
 * may not be renamed; LEAT_EIO: what it has made is gone again;
 * LEAT_ECANCELLED: abandoned.
 * Close it in any case.
 */
int leat__cache_partial_open(leat__cache_partial *partial, const char *path);

/* Makes `data` or `index` in it. Errors: LEAT_EIO, also where somebody has
 * removed or replaced the directory or its lock, or made that file;
 * LEAT_ECANCELLED: abandoned. */
int leat__cache_partial_create(leat__cache_partial *partial, const char *name,
                               int *fd);

/*
 * Renames the directory to PATH, once all its names are on disk. Errors:
 * LEAT_EIO, also where somebody has removed or replaced the directory or one of
 * its files; LEAT_ECANCELLED: abandoned.
 */
int leat__cache_partial_complete(leat__cache_partial *partial);

/* LEAT_ECANCELLED: it is abandoned, and nothing is to be written. Any thread.
 */
int leat__cache_partial_check(const leat__cache_partial *partial);

/* Removes an unfinished cache, but no file that has taken the place of one of
 * its own. Does nothing without the lock, which it gives up, nor where the
 * directory has been renamed, removed or replaced. */
void leat__cache_partial_remove(leat__cache_partial *partial);

/* Removes it likewise, for good: all calls that make names fail from now on.
 * Any thread, beside all calls but init and close. */
void leat__cache_partial_abandon(leat__cache_partial *partial);

/* Only closes descriptors: it may run in a forked child. */
void leat__cache_partial_close(leat__cache_partial *partial);

#endif
