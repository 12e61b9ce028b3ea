/*
 * DESIGN
 *
 * One caller at a time opens and reads. Only cancel comes from other threads:
 * it sets `cancelled`, then writes to `wake` if that is there. A reader that is
 * about to wait makes `wake` first and looks at `cancelled` after, so that one
 * of the two sees the other's. Regular files are not waited for, but where one
 * of /proc or of FUSE has nothing yet.
 *
 * A forked child shares its parent's eventfd: it writes nothing to that, and
 * makes one of its own before it waits. `generation` is written after `wake`.
 *
 * A pipe or device that was opened here is not blocking, so that a named pipe
 * without a writer opens at once. Standard input is shared with other programs
 * and keeps its mode: a read follows a poll that found something.
 */
#include "readers/stream/byte_source.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/file_place.h"
#include "base/fork.h"
#include "pipeline/opening.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

/* The most that one call reads. */
#define READ_MAX ((size_t)1 << 30)

/* The generation of the process that reads standard input, plus 1; 0: none
 * does. A forked child may have another one. */
static atomic_uint input_reader;

/* Of what is no regular file. */
static const leat__file_version no_version = {.size = -1};

void leat__byte_source_init(leat__byte_source *source, leat_reader *reader)
{
    source->reader = reader;
    source->path = NULL;
    source->fd = -1;
    source->input = 0;
    source->is_regular = false;
    source->version = no_version;
    source->offset = 0;
    atomic_init(&source->cancelled, false);
    atomic_init(&source->wake, -1);
    atomic_init(&source->generation, leat__fork_generation());
}

void leat__byte_source_close(leat__byte_source *source)
{
    unsigned own = source->input;
    if (own)
        atomic_compare_exchange_strong(&input_reader, &own, 0);
    else if (source->fd >= 0)
        close(source->fd);
    source->fd = -1;
    source->input = 0;
}

void leat__byte_source_finish(leat__byte_source *source)
{
    int wake = atomic_load(&source->wake);
    leat__byte_source_close(source);
    if (wake >= 0)
        close(wake);
}

/* Whether the eventfd is. */
static bool is_of_parent(const leat__byte_source *source)
{
    return atomic_load(&source->generation) != leat__fork_generation();
}

void leat__byte_source_cancel(leat__byte_source *source)
{
    const uint64_t one = 1;
    atomic_store(&source->cancelled, true);
    if (is_of_parent(source))
        return;
    int wake = atomic_load(&source->wake);
    /* Fails where it has been woken 2^64 times already. */
    if (wake >= 0 && write(wake, &one, sizeof(one)) < 0)
        return;
}

static bool is_standard_input(const char *path)
{
    return strcmp(path, LEAT__STANDARD_INPUT) == 0;
}

static int check_type(const char *path, const struct stat *about)
{
    if (S_ISDIR(about->st_mode))
        return leat__error_system(EISDIR, "%s", path);
    if (S_ISSOCK(about->st_mode))
        return leat_error(LEAT_EIO,
                          "%s: expected a file or pipe, found a "
                          "socket",
                          path);
    return LEAT_OK;
}

static leat__file_version version_of(const struct stat *about)
{
    return S_ISREG(about->st_mode) ? leat__file_version_of(about) : no_version;
}

int leat__byte_source_check(const char *path, leat__file_version *out)
{
    struct stat about;
    int status = leat__opening_check(path);
    *out = no_version;
    if (status || is_standard_input(path))
        return status;
    int code = stat(path, &about) ? errno : leat__file_access(path, R_OK);
    if (code)
        return leat__error_system(code, "%s", path);
    *out = version_of(&about);
    return check_type(path, &about);
}

int leat__byte_source_check_open(const leat__byte_source *source)
{
    struct stat about;
    if (source->version.size < 0)
        return LEAT_OK;
    if (fstat(source->fd, &about))
        return leat__error_system(errno, "%s", source->path);
    return leat__file_version_check(source->version, version_of(&about),
                                    source->path);
}

/* Standard input is not reopened: what was read of it before has passed. */
static int take_input(leat__byte_source *source)
{
    unsigned own = leat__fork_generation() + 1;
    if (atomic_exchange(&input_reader, own) == own)
        return leat_error(LEAT_ESTATE,
                          "-: standard input is being read already, and has "
                          "one reader at a time");
    source->fd = STDIN_FILENO;
    source->input = own;
    return LEAT_OK;
}

static int open_path(leat__byte_source *source, const char *path)
{
    struct stat about;
    int fd = leat__file_open(path, 0);
    if (fd < 0)
        return leat__error_system(errno, "%s", path);
    int status = fstat(fd, &about) ? leat__error_system(errno, "%s", path)
                                   : check_type(path, &about);
    if (status) {
        close(fd);
        return status;
    }
    source->fd = fd;
    source->version = version_of(&about);
    source->is_regular = S_ISREG(about.st_mode);
    if (source->is_regular)
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return LEAT_OK;
}

int leat__byte_source_open(leat__byte_source *source, const char *path)
{
    leat__byte_source_close(source);
    source->path = path;
    source->offset = 0;
    source->is_regular = source->has_ended = false;
    source->version = no_version;
    return is_standard_input(path) ? take_input(source)
                                   : open_path(source, path);
}

static int cancelled(const leat__byte_source *source)
{
    return leat_error(LEAT_ECANCELLED, "%s: reading was cancelled",
                      source->path ? source->path : "a compressed file");
}

int leat__byte_source_check_running(const leat__byte_source *source)
{
    return atomic_load(&source->cancelled) ? cancelled(source) : LEAT_OK;
}

static int make_wake(leat__byte_source *source)
{
    int before = atomic_load(&source->wake);
    if (before >= 0 && !is_of_parent(source))
        return LEAT_OK;
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return leat__error_system(errno, "%s: an eventfd", source->path);
    atomic_store(&source->wake, fd);
    atomic_store(&source->generation, leat__fork_generation());
    if (before >= 0)
        close(before);
    return LEAT_OK;
}

static int failed(const leat__byte_source *source, int code)
{
    return leat__error_system(code, "%s: byte %lld", source->path,
                              (long long)source->offset);
}

/* Waits for one of the two. Returns as poll. */
static int poll_waiting(leat__byte_source *source, struct pollfd on[2])
{
    int n = poll(on, 2, 0);
    if (n != 0 || atomic_load(&source->cancelled))
        return n;
    int64_t begin = leat__clock_now();
    n = poll(on, 2, -1);
    if (source->reader)
        leat_reader_add_blocked(source->reader, leat__clock_now() - begin);
    return n;
}

/*
 * Until there is something to read, the end included: a signal alone is no
 * reason to read, which standard input would do without cancel.
 */
static int await(leat__byte_source *source)
{
    int status = make_wake(source);
    struct pollfd on[2] = {
        {.fd = source->fd, .events = POLLIN},
        {.fd = atomic_load(&source->wake), .events = POLLIN}};
    while (!status && !on[0].revents) {
        int n = poll_waiting(source, on);
        if (atomic_load(&source->cancelled))
            status = cancelled(source);
        else if (n < 0 && errno != EINTR)
            status = failed(source, errno);
    }
    return status;
}

static ssize_t read_some(leat__byte_source *source, void *out, size_t n)
{
    if (n > READ_MAX)
        n = READ_MAX;
    return source->is_regular ? pread(source->fd, out, n, source->offset)
                              : read(source->fd, out, n);
}

static int read_next(leat__byte_source *source, void *out, size_t n,
                     size_t *got)
{
    ssize_t more;
    bool waits = !source->is_regular;
    *got = 0;
    int running = leat__byte_source_check_running(source);
    /* A terminal would wait for another end. */
    if (running || source->has_ended)
        return running;
    do {
        int status = waits ? await(source) : LEAT_OK;
        if (status)
            return status;
        more = read_some(source, out, n);
        waits |= more < 0 && errno == EAGAIN;
    } while (more < 0 && (errno == EINTR || errno == EAGAIN));
    if (more < 0)
        return failed(source, errno);
    *got = (size_t)more;
    source->offset += more;
    source->has_ended = more == 0 && n > 0 && !source->is_regular;
    return LEAT_OK;
}

static void cancel_opened(void *source)
{
    leat__byte_source_cancel(source);
}

int leat__byte_source_read(leat__byte_source *source, void *out, size_t n,
                           size_t *got)
{
    leat__opening_step step;
    if (source->reader)
        return read_next(source, out, n, got);
    leat__opening_enter(&step, cancel_opened, source);
    int status = read_next(source, out, n, got);
    leat__opening_leave(&step);
    return status;
}

int leat__byte_source_skip(leat__byte_source *source, int64_t n,
                           int64_t *skipped)
{
    struct stat about;
    *skipped = 0;
    if (!source->is_regular)
        return LEAT_OK;
    if (fstat(source->fd, &about))
        return failed(source, errno);
    int64_t left = about.st_size - source->offset;
    if (left <= 0)
        return LEAT_OK;
    *skipped = n < left ? n : left;
    source->offset += *skipped;
    return LEAT_OK;
}
