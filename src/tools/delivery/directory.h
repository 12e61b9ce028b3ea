/* directory.h: makes directories for output files, and reads directories. */
#ifndef LEAT_TOOLS_DELIVERY_DIRECTORY_H
#define LEAT_TOOLS_DELIVERY_DIRECTORY_H

#include <dirent.h>
#include <stddef.h>

/*
 * Makes the directory and those above it, as far as they are not there; *kept
 * is the length of the part of the path that was there. Errors: LEAT_EIO,
 * LEAT_ENOMEM; then none is made.
 */
int directory_make(const char *path, size_t *kept);

/* Whether directory_make would fail, as far as can be seen. Errors: likewise.
 */
int directory_check(const char *path);

/* Takes back, from below, those that were made and are empty. */
void directory_unmake(const char *path, size_t kept);

/*
 * The next entry of an open directory, borrowed until the next call; NULL: that
 * was all. Errors: LEAT_EIO, naming `path`.
 */
int directory_next(DIR *directory, const char *path, const struct dirent **out);

#endif
