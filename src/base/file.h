/* file.h: whole files, read at once or written whole or not at all. */
#ifndef LEAT_BASE_FILE_H
#define LEAT_BASE_FILE_H

#include <leat/status.h>

/*
 * Reads a file of at most `limit` bytes. `*out` is owned by the caller
 * (leat__free) and has a NUL behind its `*size` bytes. A pipe without a name,
 * such as the shell's, is read too; other pipes and devices are refused.
 * Errors: LEAT_EIO; LEAT_EFORMAT for a longer file; LEAT_ENOMEM.
 */
int leat__file_read(char **out, size_t *size, const char *path, size_t limit);

/*
 * Asked where more comes than was expected, about the `size` bytes so far:
 * lowers `*limit` to what a file that begins so may have at most, or says by an
 * error that none does.
 */
typedef int leat__file_bound(const char *path, const char *bytes, size_t size,
                             size_t *limit);

/* The same; `bound` keeps what does not tell its size from filling memory. */
int leat__file_read_bounded(char **out, size_t *size, const char *path,
                            size_t limit, leat__file_bound *bound);

/*
 * Writes a file that appears whole or not at all: the bytes go to a temporary
 * file beside it, PATH.leat-XXXXXX, which is created exclusively under a random
 * name, synced and then renamed. Nothing is left behind on failure, and a file
 * that was there stays as it was.
 * Errors: LEAT_EIO, LEAT_ENOMEM.
 */
int leat__file_write(const char *path, const void *bytes, size_t size);

#endif
