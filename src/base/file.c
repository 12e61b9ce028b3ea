#include "base/file.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/random.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define FIRST_READ ((size_t)16 << 10)

/* Suffix of a temporary file's name, with 24 random bits; drawn again if that
 * file exists. */
#define MARK ".leat-%06" PRIx64
enum { MARK_SIZE = sizeof(".leat-XXXXXX"), TRIES = 100 };

/*
 * One byte more than the file's size detects its end without a resize. A file
 * with a size above the limit is refused without reading it.
 */
static int first_capacity(int fd, const char *path, size_t limit, size_t *out)
{
    struct stat about;
    *out = limit < FIRST_READ ? limit + 2 : FIRST_READ;
    if (fstat(fd, &about) || about.st_size <= 0)
        return LEAT_OK;
    if ((uintmax_t)about.st_size > limit)
        return leat_error(LEAT_EFORMAT,
                          "%s: expected at most %zu bytes, found %jd", path,
                          limit, (intmax_t)about.st_size);
    *out = (size_t)about.st_size + 2;
    return LEAT_OK;
}

static int grow(char **bytes, size_t *capacity, size_t used, size_t limit)
{
    if (used + 1 < *capacity)
        return LEAT_OK;
    size_t wanted = *capacity < limit / 2 ? *capacity * 2 : limit + 2;
    if (wanted <= *capacity)
        return LEAT_OK;
    char *moved = leat__realloc(*bytes, wanted);
    if (!moved)
        return LEAT_ENOMEM;
    *bytes = moved;
    *capacity = wanted;
    return LEAT_OK;
}

/* A file that is being read, and its limits. */
typedef struct open_file {
    int fd;
    const char *path;
    size_t most;             /* by the caller */
    leat__file_bound *bound; /* or NULL */
    char *bytes;
    size_t capacity;
    size_t used;
} open_file;

/* Makes room for more bytes, up to the limit that the bytes read so far allow.
 */
static int make_room(open_file *file)
{
    size_t limit = file->most;
    if (file->used + 1 < file->capacity)
        return LEAT_OK;
    int status = file->bound
                     ? file->bound(file->path, file->bytes, file->used, &limit)
                     : LEAT_OK;
    if (status)
        return status;
    if (file->used > limit)
        return leat_error(LEAT_EFORMAT,
                          "%s: expected at most %zu bytes, found more",
                          file->path, limit);
    return grow(&file->bytes, &file->capacity, file->used, limit);
}

static int read_all(open_file *file)
{
    for (;;) {
        int status = make_room(file);
        if (status)
            return status;
        ssize_t n = read(file->fd, file->bytes + file->used,
                         file->capacity - file->used - 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return leat__error_system(errno, "%s", file->path);
        if (n == 0)
            break;
        file->used += (size_t)n;
    }
    file->bytes[file->used] = 0;
    return LEAT_OK;
}

static int read_whole(open_file *file)
{
    int status =
        first_capacity(file->fd, file->path, file->most, &file->capacity);
    if (status)
        return status;
    file->bytes = leat__alloc(file->capacity);
    if (!file->bytes)
        return LEAT_ENOMEM;
    status = read_all(file);
    if (status)
        leat__free(file->bytes);
    return status;
}

/*
 * Reading a named pipe waits for a writer, and a signal need not end that wait.
 * Anonymous pipes, such as the shell's and stdin, have a writer.
 */
static bool is_readable(int fd, const struct stat *about)
{
    struct statfs system;
    if (S_ISFIFO(about->st_mode))
        return fstatfs(fd, &system) == 0 && system.f_type == PIPEFS_MAGIC;
    return S_ISREG(about->st_mode) || isatty(fd);
}

static int check_source(int fd, const char *path)
{
    struct stat about;
    if (fstat(fd, &about) != 0)
        return leat__error_system(errno, "%s", path);
    if (S_ISDIR(about.st_mode))
        return leat__error_system(EISDIR, "%s", path);
    if (!is_readable(fd, &about))
        return leat_error(LEAT_EIO, "%s: expected a regular file, found a %s",
                          path,
                          S_ISFIFO(about.st_mode) ? "named pipe" : "device");
    /* O_NONBLOCK was for open only. */
    if (!S_ISREG(about.st_mode) && fcntl(fd, F_SETFL, O_RDONLY) != 0)
        return leat__error_system(errno, "%s", path);
    return LEAT_OK;
}

int leat__file_read_bounded(char **out, size_t *size, const char *path,
                            size_t limit, leat__file_bound *bound)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return leat__error_system(errno, "%s", path);
    open_file file = {.fd = fd, .path = path, .most = limit, .bound = bound};
    int status = check_source(fd, path);
    if (!status)
        status = read_whole(&file);
    close(fd); /* Read-only: nothing is lost if it fails. */
    if (status)
        return status;
    *out = file.bytes;
    *size = file.used;
    return LEAT_OK;
}

int leat__file_read(char **out, size_t *size, const char *path, size_t limit)
{
    return leat__file_read_bounded(out, size, path, limit, NULL);
}

static int write_all(int fd, const void *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = write(fd, (const char *)bytes + done, size - done);
        if (n < 0 && errno != EINTR)
            return -1;
        done += n > 0 ? (size_t)n : 0;
    }
    return fsync(fd);
}

/* Only a regular file may be replaced, never a device or a pipe. */
static int check_target(const char *path)
{
    struct stat found;
    if (lstat(path, &found) != 0)
        return errno == ENOENT ? LEAT_OK
                               : leat__error_system(errno, "%s", path);
    if (S_ISREG(found.st_mode))
        return LEAT_OK;
    return leat_error(LEAT_EINVAL, "%s: exists and is not a regular file",
                      path);
}

/*
 * Creates a file beside `path`, which has room for MARK and NUL at its end.
 * O_EXCL: an existing file or link of that name is never opened.
 */
static int create_beside(char *path, int *out)
{
    char *mark = path + strlen(path);
    int fd = -1;
    for (int i = 0; i < TRIES; i++) {
        uint64_t drawn;
        int status = leat__random_seed(&drawn);
        if (status)
            return status;
        snprintf(mark, MARK_SIZE, MARK, drawn & 0xffffff);
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                  0666);
        if (fd >= 0 || errno != EEXIST)
            break;
    }
    if (fd < 0) {
        int code = errno;
        *mark = 0;
        return leat__error_system(code, "%s", path);
    }
    *out = fd;
    return LEAT_OK;
}

int leat__file_write(const char *path, const void *bytes, size_t size)
{
    int fd, status = check_target(path);
    if (status)
        return status;
    size_t length = strlen(path);
    char *beside = leat__alloc(length + MARK_SIZE);
    if (!beside)
        return LEAT_ENOMEM;
    memcpy(beside, path, length + 1);
    status = create_beside(beside, &fd);
    if (status)
        goto end;
    if (write_all(fd, bytes, size))
        status = leat__error_system(errno, "%s", path);
    if (close(fd) && !status)
        status = leat__error_system(errno, "%s", path);
    if (!status && rename(beside, path))
        status = leat__error_system(errno, "%s", path);
    if (status)
        unlink(beside);
end:
    leat__free(beside);
    return status;
}
