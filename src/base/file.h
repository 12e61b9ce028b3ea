/* file.h: reads whole files, and writes files atomically. */
#ifndef LEAT_BASE_FILE_H
#define LEAT_BASE_FILE_H

#include <leat/status.h>

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/*
 * Reads a file of at most `limit` bytes. `*out` is owned by the caller
 * (leat__free) and has a NUL after its `*size` bytes. Anonymous pipes, such as
 * the shell's, are read too; named pipes and devices are refused. Errors:
 * LEAT_EIO; LEAT_EFORMAT for a longer file; LEAT_ENOMEM.
 */
int leat__file_read(char **out, size_t *size, const char *path, size_t limit);

/*
 * Called while a file of unknown size is read, with its first `size` bytes:
 * lowers `*limit` to the largest size of a valid file with that beginning, or
 * returns an error if there is none.
 */
typedef int leat__file_bound(const char *path, const char *bytes, size_t size,
                             size_t *limit);

/* The same; `bound` keeps a source of unknown size from filling memory. */
int leat__file_read_bounded(char **out, size_t *size, const char *path,
                            size_t limit, leat__file_bound *bound);

/*
 * Opens a file that is there, with O_CLOEXEC. A named pipe is not waited for;
 * the end of another program's lease on a regular file is. `flags`: 0, to read
 * it, or O_RDWR, O_APPEND and O_NOFOLLOW. The descriptor may have O_NONBLOCK;
 * -1: see errno.
 */
int leat__file_open(const char *path, int flags);

/* The same for a name in an open directory. */
int leat__file_open_at(int directory, const char *name, int flags);

/*
 * The same for a regular file alone. What else is there is not opened, also
 * where it takes the name meanwhile, as opening a pipe or a device can have
 * side effects: errno is ENXIO then, also for a link under O_NOFOLLOW.
 */
int leat__file_open_regular(int directory, const char *name, int flags);

/*
 * The same for a file that leat itself made, such as an index: a link, a pipe
 * or anything else in its place is not opened. Errors: LEAT_EIO.
 */
int leat__file_open_own(int *out, const char *path);

/* The same for a name in an open directory; `path` is for errors. */
int leat__file_open_own_at(int *out, int directory, const char *name,
                           const char *path);

/*
 * Reads `n` bytes of an open file from `at`; returns how many there are, fewer
 * only at the file's end. -1: see errno.
 */
ssize_t leat__file_read_at(int fd, void *out, size_t n, off_t at);

/*
 * Called before such a file is read, with its first bytes, after which come
 * zeros where it has fewer, and what fstat found: an error refuses the file.
 */
enum { LEAT__FILE_HEAD = 64 };
typedef int leat__file_check(const void *user, const char *head,
                             const struct stat *about);

/* leat__file_read for such a file, if `check` (or NULL) takes it. */
int leat__file_read_own(char **out, size_t *size, const char *path,
                        size_t limit, leat__file_check *check,
                        const void *user);

/* The same for one that is open at its beginning, and stays so. */
int leat__file_read_open(char **out, size_t *size, int fd, const char *path,
                         size_t limit, leat__file_check *check,
                         const void *user);

/* 0; or EFBIG if this process may not make a file that large: writing beyond
 * the limit would raise SIGXFSZ, which ends it. */
int leat__file_check_limit(int64_t size);

/*
 * Writes a file atomically: the bytes go to a file without a name, which is
 * synced and then named, so that a process that is killed leaves nothing. A
 * file that is replaced, and a file system without such files, need a name
 * first: PATH.leat-XXXXXX, beside it, exclusive and random, which is then
 * renamed; on failure that file is removed. An existing file is unchanged on
 * failure, and one that replaces it has its permissions. Errors: LEAT_EIO,
 * LEAT_ENOMEM.
 */
int leat__file_write(const char *path, const void *bytes, size_t size);

/* The same; also a new file has the permissions of the file `like`. */
int leat__file_write_like(const char *path, const char *like, const void *bytes,
                          size_t size);

#endif
