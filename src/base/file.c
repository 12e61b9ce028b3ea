#include "base/file.h"
#include "base/error.h"
#include "base/file_access.h"
#include "base/file_place.h"
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
#include <sys/resource.h>
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
    leat__file_bound *bound; /* or NULL, as `check` */
    leat__file_check *check;
    const void *user; /* of check */
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

ssize_t leat__file_read_at(int fd, void *out, size_t n, off_t at)
{
    size_t done = 0;
    while (done < n) {
        ssize_t more =
            pread(fd, (char *)out + done, n - done, at + (off_t)done);
        if (more < 0 && errno == EINTR)
            continue;
        if (more < 0)
            return -1;
        if (more == 0)
            break;
        done += (size_t)more;
    }
    return (ssize_t)done;
}

static int check_head(const open_file *file)
{
    char head[LEAT__FILE_HEAD] = {0};
    struct stat about;
    if (leat__file_read_at(file->fd, head, sizeof(head), 0) < 0 ||
        fstat(file->fd, &about))
        return leat__error_system(errno, "%s", file->path);
    return file->check(file->user, head, &about);
}

static int read_whole(open_file *file)
{
    int status =
        first_capacity(file->fd, file->path, file->most, &file->capacity);
    if (!status && file->check)
        status = check_head(file);
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

/* `at` without its name, which may lead elsewhere by now. A system without
 * /proc has the name alone. */
static int open_found(int at, int directory, const char *name, int flags)
{
    char self[32];
    int fd;
    snprintf(self, sizeof(self), "/proc/thread-self/fd/%d", at);
    do {
        fd = open(self, (flags & ~O_NOFOLLOW) | O_CLOEXEC | O_NOCTTY);
        if (fd < 0 && errno == ENOENT)
            fd = openat(directory, name, flags | O_CLOEXEC | O_NOCTTY);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

/* Finds a file without opening it. */
static int find_file(int directory, const char *name, int flags)
{
    int at;
    do
        at = openat(directory, name, O_PATH | O_CLOEXEC | (flags & O_NOFOLLOW));
    while (at < 0 && errno == EINTR);
    return at;
}

/* A file under a lease would be refused: waits until its holder gives it up, or
 * the system does for it. */
static int open_file_found(int at, int directory, const char *name, int flags)
{
    int fd = open_found(at, directory, name, flags | O_NONBLOCK);
    return fd < 0 && errno == EWOULDBLOCK
               ? open_found(at, directory, name, flags)
               : fd;
}

int leat__file_open_regular(int directory, const char *name, int flags)
{
    struct stat about;
    int fd = -1, code = ENXIO;
    int at = find_file(directory, name, flags);
    if (at < 0)
        return -1;
    if (fstat(at, &about) != 0) {
        code = errno;
    } else if (S_ISREG(about.st_mode)) {
        fd = open_file_found(at, directory, name, flags);
        code = errno;
    }
    close(at); /* nothing was read or written by it */
    errno = code;
    return fd;
}

int leat__file_open_at(int directory, const char *name, int flags)
{
    int fd;
    do
        fd = openat(directory, name, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    while (fd < 0 && errno == EINTR);
    return fd < 0 && errno == EWOULDBLOCK
               ? leat__file_open_regular(directory, name, flags)
               : fd;
}

int leat__file_open(const char *path, int flags)
{
    return leat__file_open_at(AT_FDCWD, path, flags);
}

/*
 * Reading a named pipe waits for a writer, which opening it would wake; a
 * signal need not end that wait. Anonymous pipes, such as the shell's and
 * stdin, have one.
 */
static int refuse_source(int at, const char *path, const struct stat *about)
{
    struct statfs system;
    if (S_ISDIR(about->st_mode))
        return leat__error_system(EISDIR, "%s", path);
    if (!S_ISFIFO(about->st_mode) ||
        (fstatfs(at, &system) == 0 && system.f_type == PIPEFS_MAGIC))
        return LEAT_OK;
    return leat_error(LEAT_EIO,
                      "%s: expected a regular file, found a named pipe", path);
}

/* What is no regular file is a pipe or a terminal; O_NONBLOCK was for open
 * only. */
static int check_source(int fd, const char *path, const struct stat *about)
{
    if (S_ISREG(about->st_mode))
        return LEAT_OK;
    if (!S_ISFIFO(about->st_mode) && !isatty(fd))
        return leat_error(LEAT_EIO,
                          "%s: expected a regular file, found a device", path);
    return fcntl(fd, F_SETFL, O_RDONLY) ? leat__error_system(errno, "%s", path)
                                        : LEAT_OK;
}

static int open_found_source(int *out, int at, const char *path)
{
    struct stat about;
    int status = fstat(at, &about) ? leat__error_system(errno, "%s", path)
                                   : refuse_source(at, path, &about);
    if (status)
        return status;
    int fd = open_file_found(at, AT_FDCWD, path, 0);
    if (fd < 0)
        return leat__error_system(errno, "%s", path);
    status = check_source(fd, path, &about);
    if (status)
        close(fd);
    else
        *out = fd;
    return status;
}

static int open_source(int *out, const char *path)
{
    int at = find_file(AT_FDCWD, path, 0);
    if (at < 0)
        return leat__error_system(errno, "%s", path);
    int status = open_found_source(out, at, path);
    close(at); /* nothing was read by it */
    return status;
}

static int read_from(int fd, char **out, size_t *size, open_file *file)
{
    file->fd = fd;
    int status = read_whole(file);
    if (status)
        return status;
    *out = file->bytes;
    *size = file->used;
    return LEAT_OK;
}

int leat__file_read_bounded(char **out, size_t *size, const char *path,
                            size_t limit, leat__file_bound *bound)
{
    int fd;
    open_file file = {.path = path, .most = limit, .bound = bound};
    int status = open_source(&fd, path);
    if (status)
        return status;
    status = read_from(fd, out, size, &file);
    close(fd); /* Read-only: nothing is lost if it fails. */
    return status;
}

int leat__file_read(char **out, size_t *size, const char *path, size_t limit)
{
    return leat__file_read_bounded(out, size, path, limit, NULL);
}

static int refuse_own(const char *path, mode_t mode)
{
    return leat_error(LEAT_EIO,
                      "%s: expected a file that leat made, found a %s; move "
                      "it away",
                      path,
                      S_ISLNK(mode)    ? "symbolic link"
                      : S_ISDIR(mode)  ? "directory"
                      : S_ISFIFO(mode) ? "named pipe"
                      : S_ISSOCK(mode) ? "socket"
                                       : "device");
}

int leat__file_open_own_at(int *out, int directory, const char *name,
                           const char *path)
{
    struct stat about;
    int fd = leat__file_open_regular(directory, name, O_NOFOLLOW);
    if (fd >= 0) {
        *out = fd;
        return LEAT_OK;
    }
    int code = errno;
    return code == ENXIO &&
                   !fstatat(directory, name, &about, AT_SYMLINK_NOFOLLOW) &&
                   !S_ISREG(about.st_mode)
               ? refuse_own(path, about.st_mode)
               : leat__error_system(code, "%s", path);
}

int leat__file_open_own(int *out, const char *path)
{
    return leat__file_open_own_at(out, AT_FDCWD, path, path);
}

int leat__file_read_open(char **out, size_t *size, int fd, const char *path,
                         size_t limit, leat__file_check *check,
                         const void *user)
{
    open_file file = {
        .path = path, .most = limit, .check = check, .user = user};
    return read_from(fd, out, size, &file);
}

int leat__file_read_own(char **out, size_t *size, const char *path,
                        size_t limit, leat__file_check *check, const void *user)
{
    int fd;
    int status = leat__file_open_own(&fd, path);
    if (status)
        return status;
    status = leat__file_read_open(out, size, fd, path, limit, check, user);
    close(fd); /* Read-only: nothing is lost if it fails. */
    return status;
}

int leat__file_check_limit(int64_t size)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < (rlim_t)size
               ? EFBIG
               : 0;
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

/* A file that is being written, and its name until it is complete. */
typedef struct new_file {
    const char *path;
    const char *like; /* whose access it gets */
    char *beside;     /* `path`, with room for MARK and NUL at its end */
    char *mark;       /* the end of `path` in it */
    int fd;
} new_file;

static int draw_name(const new_file *file)
{
    uint64_t drawn;
    int status = leat__random_seed(&drawn);
    if (!status)
        snprintf(file->mark, MARK_SIZE, MARK, drawn & 0xffffff);
    return status;
}

/* O_EXCL: an existing file or link of that name is never opened. */
static int create_beside(new_file *file)
{
    file->fd = -1;
    const mode_t mode = leat__file_first_mode(file->like);
    for (int i = 0; i < TRIES; i++) {
        int status = draw_name(file);
        if (status)
            return status;
        file->fd =
            open(file->beside,
                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (file->fd >= 0 || errno != EEXIST)
            break;
    }
    return file->fd < 0 ? leat__error_system(errno, "%s", file->path) : LEAT_OK;
}

static int write_beside(new_file *file, const void *bytes, size_t size)
{
    int status = create_beside(file);
    if (status)
        return status;
    if (leat__file_keep_access(file->fd, file->like) ||
        write_all(file->fd, bytes, size))
        status = leat__error_system(errno, "%s", file->path);
    if (close(file->fd) && !status)
        status = leat__error_system(errno, "%s", file->path);
    if (!status && rename(file->beside, file->path))
        status = leat__error_system(errno, "%s", file->path);
    if (status)
        unlink(file->beside);
    return status;
}

/* A file without a name, in the directory of `path`. */
static bool create_unnamed(new_file *file)
{
    char *slash = strrchr(file->beside, '/');
    char first = slash ? slash[1] : 0;
    if (slash)
        slash[1] = 0;
    file->fd = open(slash ? file->beside : ".",
                    O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
    if (slash)
        slash[1] = first;
    return file->fd >= 0;
}

/* Closes a copy, which reports what closing the file would. */
static int close_copy(int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return copy < 0 ? -1 : close(copy);
}

/* Names the file `name` if there is none of that name. */
static int link_unnamed(const new_file *file, const char *name)
{
    char self[32];
    snprintf(self, sizeof(self), "/proc/thread-self/fd/%d", file->fd);
    return linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

/* A file can replace another only by a name of its own. LEAT_AGAIN: it can get
 * none. */
static int name_unnamed(const new_file *file)
{
    int result = link_unnamed(file, file->path);
    if (!result)
        return LEAT_OK;
    for (int i = 0; i < TRIES && result && errno == EEXIST; i++) {
        int status = draw_name(file);
        if (status)
            return status;
        result = link_unnamed(file, file->beside);
    }
    if (result)
        return LEAT_AGAIN;
    if (!rename(file->beside, file->path))
        return LEAT_OK;
    int status = leat__error_system(errno, "%s", file->path);
    unlink(file->beside);
    return status;
}

/* LEAT_AGAIN where the file system or the process has no such files. */
static int write_unnamed(new_file *file, const void *bytes, size_t size)
{
    if (!create_unnamed(file))
        return LEAT_AGAIN;
    int status = LEAT_OK;
    if (leat__file_keep_access(file->fd, file->like) ||
        write_all(file->fd, bytes, size) || close_copy(file->fd))
        status = leat__error_system(errno, "%s", file->path);
    if (!status)
        status = name_unnamed(file);
    close(file->fd); /* its copy's close has reported */
    *file->mark = 0;
    return status;
}

int leat__file_write(const char *path, const void *bytes, size_t size)
{
    return leat__file_write_like(path, path, bytes, size);
}

int leat__file_write_like(const char *path, const char *like, const void *bytes,
                          size_t size)
{
    int status = leat__file_check_regular(path);
    int code = leat__file_check_limit((int64_t)size);
    if (!status && code)
        status = leat__error_system(code, "%s", path);
    if (status)
        return status;
    size_t length = strlen(path);
    char *beside = leat__alloc(length + MARK_SIZE);
    if (!beside)
        return LEAT_ENOMEM;
    memcpy(beside, path, length + 1);
    new_file file = {path, like, beside, beside + length, -1};
    status = write_unnamed(&file, bytes, size);
    if (status == LEAT_AGAIN)
        status = write_beside(&file, bytes, size);
    leat__free(beside);
    return status;
}
