/*
 * DESIGN. Layers, members and processes append to one file. Each does so under
 * the file's lock (flock), since what another is writing is seen in parts: it
 * reads what the others have appended, ends a line that a crash left torn, and
 * writes its own. Where the lock cannot be had the line is written without;
 * that may put an empty line between two others.
 *
 * A layer whose setup fails removes the file that it made while that is empty,
 * and its user may remove any. Whoever has it open finds it without a name, and
 * begins it again, or goes on with the list that has its name by now.
 */
#include "layer/on_error/bad_record_file.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/file_place.h"
#include "base/memory.h"
#include "layer/on_error/bad_record_line.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Lines are read so many bytes at a time; a longer one is none of leat's. */
#define BUFFER_BYTES ((size_t)64 << 10)

/* Only the beginning distinguishes text from other files: a crash may leave
 * zeros where lines were appended. */
enum { PROBE_BYTES = 16 };

/* Nanoseconds that the lock is waited for, and that a signal may cut short. */
static const int64_t LOCK_WAIT = 5000000000;
enum { LOCK_PAUSE = 200000 };

void leat__bad_record_file_init(leat__bad_record_file *file, const char *name,
                                const char *path)
{
    memset(file, 0, sizeof(*file));
    file->name = name;
    file->path = path;
    file->file = -1;
}

void leat__bad_record_file_finish(leat__bad_record_file *file)
{
    /* What a close could report, the writes before it did not lose. */
    if (file->file >= 0)
        (void)close(file->file);
    file->file = -1;
    leat__free(file->buffer);
    file->buffer = NULL;
    leat__record_set_finish(&file->listed);
}

static int fail(const leat__bad_record_file *file, int code)
{
    return leat__error_system(code, "%s: bad_record_file %s", file->name,
                              file->path);
}

/* Takes the whole lines in the buffer; the bytes that they are. */
static int take_lines(leat__bad_record_file *file, size_t size, size_t *taken)
{
    const char *line = file->buffer;
    const char *end = line + size;
    const char *next;
    for (; (next = memchr(line, '\n', (size_t)(end - line))); line = next + 1) {
        leat__record_mark mark;
        if (leat__bad_record_line_read(line, next, &mark) &&
            leat__record_set_add(&file->listed, &mark) == LEAT_ENOMEM)
            return LEAT_ENOMEM;
    }
    *taken = (size_t)(line - file->buffer);
    return LEAT_OK;
}

/* Reads the lines appended since, also by others, and whether the last is
 * whole. */
static int catch_up(leat__bad_record_file *file)
{
    struct stat about;
    if (fstat(file->file, &about))
        return fail(file, errno);
    if (about.st_size < file->read) {
        leat__record_set_rewind(&file->listed, 0, 0);
        file->read = 0;
        file->is_torn = false;
    }
    while (file->read < about.st_size) {
        ssize_t n = pread(file->file, file->buffer, BUFFER_BYTES, file->read);
        if (n < 0 && errno != EINTR)
            return fail(file, errno);
        if (n < 0)
            continue;
        if (n > 0)
            file->is_torn = file->buffer[n - 1] != '\n';
        size_t taken = 0;
        int status = take_lines(file, (size_t)n, &taken);
        if (status)
            return status;
        if (taken == 0 && (size_t)n < BUFFER_BYTES)
            break;
        file->read += taken > 0 ? (int64_t)taken : n;
    }
    return LEAT_OK;
}

/* Lines of leat's hold no other control characters than tabs; other programs'
 * lines before them may be any text. Databases, pictures and means begin with
 * some. */
static bool is_text(const unsigned char *bytes, ssize_t size)
{
    for (ssize_t i = 0; i < size; i++)
        if (bytes[i] == 0x7f || (bytes[i] < 0x20 && bytes[i] != '\t' &&
                                 bytes[i] != '\n' && bytes[i] != '\r'))
            return false;
    return true;
}

/* Refuses a file that lines would damage. */
static int check_text(const leat__bad_record_file *file)
{
    unsigned char first[PROBE_BYTES];
    ssize_t n;
    do {
        n = pread(file->file, first, sizeof(first), 0);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return fail(file, errno);
    if (is_text(first, n))
        return LEAT_OK;
    return leat_error(LEAT_EINVAL,
                      "%s: bad_record_file %s is there and is no text; give "
                      "another name",
                      file->name, file->path);
}

/*
 * Whether a file of lines that are none of leat's, as its first 64 KiB show:
 * a net, a token, data. Empty lines and comments say nothing, and what comes
 * after the last line's end may be the begin of one that was torn.
 */
static bool is_of_others(const char *bytes, size_t size)
{
    const char *line = bytes, *end = bytes + size, *next;
    leat__record_mark mark;
    bool has_others = false;
    for (; (next = memchr(line, '\n', (size_t)(end - line))); line = next + 1) {
        if (leat__bad_record_line_read(line, next, &mark))
            return false;
        has_others |= next > line && *line != '#';
    }
    return has_others || (line < end && *line != '#' &&
                          !memchr(line, '\t', (size_t)(end - line)));
}

static int check_lines(const leat__bad_record_file *file)
{
    ssize_t n;
    do {
        n = pread(file->file, file->buffer, BUFFER_BYTES, 0);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return fail(file, errno);
    if (!is_of_others(file->buffer, (size_t)n))
        return LEAT_OK;
    return leat_error(LEAT_EINVAL,
                      "%s: bad_record_file %s is there and lists no bad "
                      "records; give another name",
                      file->name, file->path);
}

/* The file's descriptor, which is new if there was none; below 0: errno. Who
 * waits at a pipe would take its opening and closing for the end. */
static int open_or_make(leat__bad_record_file *file)
{
    const int flags = O_RDWR | O_APPEND | O_CLOEXEC | O_NONBLOCK;
    int fd = open(file->path, flags | O_CREAT | O_EXCL, 0666);
    file->is_made = fd >= 0;
    if (fd < 0 && errno == EEXIST) /* nor O_CREAT, for fs.protected_regular */
        fd = leat__file_open_regular(AT_FDCWD, file->path, O_RDWR | O_APPEND);
    if (fd < 0 && errno == ENOENT) { /* a link to nothing */
        fd = open(file->path, flags | O_CREAT, 0666);
        file->is_made = fd >= 0;
    }
    return fd;
}

static int open_regular(leat__bad_record_file *file)
{
    struct stat about;
    int fd = open_or_make(file);
    int code = fd < 0 || fstat(fd, &about) ? errno : 0;
    if (code == 0 && S_ISREG(about.st_mode)) {
        file->file = fd;
        return LEAT_OK;
    }
    if (fd >= 0)
        (void)close(fd);
    if (code == ENXIO && stat(file->path, &about) == 0 &&
        S_ISDIR(about.st_mode))
        code = EISDIR;
    if (code && code != ENXIO)
        return fail(file, code);
    return leat_error(LEAT_EINVAL,
                      "%s: bad_record_file %s is there and is no regular file",
                      file->name, file->path);
}

/* A list, or an empty file. */
static int open_list(leat__bad_record_file *file)
{
    int status = open_regular(file);
    if (status)
        return status;
    status = check_text(file);
    if (!status)
        status = check_lines(file);
    if (status) {
        (void)close(file->file);
        file->file = -1;
    }
    return status;
}

int leat__bad_record_file_open(leat__bad_record_file *file)
{
    if (!file->path || file->file >= 0)
        return LEAT_OK;
    file->buffer = leat__alloc(BUFFER_BYTES);
    if (!file->buffer)
        return LEAT_ENOMEM;
    int status = open_list(file);
    if (!status)
        status = catch_up(file);
    if (status)
        leat__bad_record_file_finish(file);
    return status;
}

/* A part of a line lists nothing. What another wrote after it, without the
 * lock, stays. */
static void take_back(const leat__bad_record_file *file, int64_t before,
                      ssize_t n)
{
    struct stat about;
    if (fstat(file->file, &about) == 0 && about.st_size == before + n)
        (void)!ftruncate(file->file, before);
}

/* One write for a line: ranks may append to one file. */
static int write_line(leat__bad_record_file *file, const char *line,
                      size_t size)
{
    struct stat about;
    ssize_t n;
    if (fstat(file->file, &about))
        return fail(file, errno);
    /* What is beyond the limit is not written, as on a full disk. */
    int code = leat__file_check_limit(about.st_size + 1);
    if (code)
        return fail(file, code);
    do {
        n = write(file->file, line, size);
    } while (n < 0 && errno == EINTR);
    if (n == (ssize_t)size)
        return LEAT_OK;
    code =
        n < 0 ? errno : leat__file_check_limit(about.st_size + (int64_t)size);
    code = code ? code : ENOSPC;
    if (n > 0 && file->is_locked)
        take_back(file, about.st_size, n);
    return fail(file, code);
}

static bool is_cancelled(const leat__bad_record_file *file)
{
    return file->cancelled &&
           atomic_load_explicit(file->cancelled, memory_order_relaxed);
}

/* Whether the lock was had; not to have it is no error. */
static bool lock(leat__bad_record_file *file)
{
    const struct timespec pause = {0, LOCK_PAUSE};
    int64_t end = file->is_held ? 0 : leat__clock_now() + LOCK_WAIT;
    while (flock(file->file, LOCK_EX | LOCK_NB)) {
        file->is_held = errno == EWOULDBLOCK;
        file->is_locked = false;
        if ((!file->is_held && errno != EINTR) || is_cancelled(file) ||
            leat__clock_now() >= end)
            return false;
        nanosleep(&pause, NULL);
    }
    file->is_held = false;
    file->is_locked = true;
    return true;
}

void leat__bad_record_file_discard(leat__bad_record_file *file)
{
    struct stat about, named;
    if (file->file < 0)
        return;
    char *name = file->is_made ? leat__file_followed(file->path) : NULL;
    /* What another appends meanwhile stays, as it waits for the lock. */
    if (name && lock(file) && !fstat(file->file, &about) &&
        about.st_size == 0 && !lstat(name, &named) &&
        named.st_ino == about.st_ino && named.st_dev == about.st_dev)
        (void)unlink(name);
    leat__free(name);
    /* A child that was forked meanwhile has the file open as well. */
    (void)flock(file->file, LOCK_UN);
    leat__bad_record_file_finish(file);
}

/*
 * Opens the file by its name again once it has been removed, be it before the
 * lock was had: what is written to one without a name is lost.
 */
static int follow(leat__bad_record_file *file)
{
    struct stat about, found;
    for (;;) {
        if (fstat(file->file, &about))
            return fail(file, errno);
        if (about.st_nlink > 0)
            return LEAT_OK;
        int before = file->file;
        int status = open_list(file);
        if (status) {
            file->file = before; /* tried again by the next line */
            return status;
        }
        /* The path leads to a file that never had a name: /dev/fd/9. */
        bool is_same = fstat(file->file, &found) == 0 &&
                       found.st_dev == about.st_dev &&
                       found.st_ino == about.st_ino;
        (void)close(is_same ? file->file : before);
        if (is_same) {
            file->file = before;
            return LEAT_OK;
        }
        leat__record_set_rewind(&file->listed, 0, 0);
        file->read = 0;
        file->is_torn = false;
        (void)lock(file);
    }
}

static int append(leat__bad_record_file *file, const leat__bad *bad)
{
    char line[LEAT__BAD_RECORD_LINE_MAX + 1] = "\n";
    leat__record_mark mark;
    int status = follow(file);
    if (!status)
        status = catch_up(file);
    if (status)
        return status;
    size_t size = leat__bad_record_line_format(line + 1, bad, &mark);
    if (leat__record_set_has(&file->listed, &mark))
        return LEAT_OK;
    if (leat__record_set_is_full(&file->listed))
        return leat_error(LEAT_ELIMIT,
                          "%s: bad_record_file %s lists %zu records, the most "
                          "that are remembered",
                          file->name, file->path, file->listed.n);
    return write_line(file, file->is_torn ? line : line + 1,
                      size + (file->is_torn != 0));
}

int leat__bad_record_file_add(leat__bad_record_file *file, const leat__bad *bad)
{
    if (file->file < 0)
        return LEAT_OK;
    (void)lock(file);
    int status = append(file, bad);
    (void)flock(file->file, LOCK_UN);
    return status;
}
