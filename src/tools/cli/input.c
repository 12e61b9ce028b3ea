#include "tools/cli/input.h"

#include "base/error.h"
#include "base/file.h"
#include "base/file_version.h"
#include "tools/cli/interrupt.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

/* A signal that arrives between the check of its flag and the wait is noticed
   after this time. */
enum { CHECK_MS = 100 };

int input_open(int *fd, const char *path)
{
    int opened = leat__file_open(path, 0);
    if (opened < 0)
        return leat__error_system(errno, "%s", path);
    *fd = opened;
    return LEAT_OK;
}

/*
 * Waits for input or its end; a pipe without a writer so far has neither.
 * Unlike open and read, poll is not restarted after a signal.
 */
static int wait_for(int fd, const char *path)
{
    struct pollfd wanted = {.fd = fd, .events = POLLIN};
    for (;;) {
        int status = interrupt_check();
        if (status)
            return status;
        int n = poll(&wanted, 1, CHECK_MS);
        if (n > 0)
            return LEAT_OK;
        if (n < 0 && errno != EINTR)
            return leat__error_system(errno, "%s", path);
    }
}

int input_read(int fd, const char *path, void *out, size_t size, size_t *got)
{
    for (;;) {
        int status = wait_for(fd, path);
        if (status)
            return status;
        ssize_t n = read(fd, out, size);
        if (n >= 0) {
            *got = (size_t)n;
            return LEAT_OK;
        }
        if (errno != EINTR && errno != EAGAIN)
            return leat__error_system(errno, "%s", path);
    }
}

int input_look(int fd, const char *path, struct stat *out)
{
    return fstat(fd, out) ? leat__error_system(errno, "%s", path) : LEAT_OK;
}

int input_check(int fd, const char *path, const struct stat *before)
{
    struct stat now;
    int status = input_look(fd, path, &now);
    if (status || !S_ISREG(now.st_mode) ||
        leat__file_version_is_same(leat__file_version_of(&now),
                                   leat__file_version_of(before)))
        return status;
    return leat_error(LEAT_EFORMAT,
                      "%s: was written while it was read; run the command "
                      "again",
                      path);
}
