/*
 * syscall_trap.c: preloaded into the tool, ends or fails its Nth call that
 * changes a file system, so that a test can go through all moments there are.
 *
 * SYSCALL_TRAP is kill:N (instead of the call), tear:N (a write is done in half
 * before), term:N (SIGTERM comes before the call, which is then made), twice:N
 * (SIGINT comes before the call, and again before the next one, more than half
 * a second later), limit:N (so does SIGXCPU), or fail:N:ERRNO (the call fails,
 * as do all later writes if ERRNO is ENOSPC). sync:N is of fsync alone: the Nth
 * makes the file `syncing` and never returns, as that of a disk that hangs.
 * SYSCALL_TRAP_PLAIN: renameat2 knows no flags. SYSCALL_TRAP_BRANCHES: no file
 * of database/ can be moved, as if other directories had another project ID.
 * SYSCALL_TRAP_PAGE: the bytes of a page that the system claims to have.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PAGE = 4096 };

static atomic_long calls;

/* Whether this is the call; then *code is how it fails, 0: it is the last. */
static int is_trapped(int *code, int *tears)
{
    const char *trap = getenv("SYSCALL_TRAP");
    if (!trap || !strncmp(trap, "sync:", 5))
        return 0;
    char what[8];
    long at = 0;
    *code = 0;
    if (sscanf(trap, "%7[a-z]:%ld:%d", what, &at, code) < 2)
        return 0;
    *tears = !strcmp(what, "tear");
    long call = atomic_fetch_add(&calls, 1) + 1;
    if (!strcmp(what, "twice") || !strcmp(what, "limit")) {
        if (call == at + 1)
            usleep(600000);
        if (call == at || call == at + 1)
            syscall(SYS_kill, getpid(),
                    !strcmp(what, "limit") ? SIGXCPU : SIGINT);
        return 0;
    }
    if (!strcmp(what, "term")) {
        if (call == at)
            syscall(SYS_kill, getpid(), SIGTERM);
        return 0;
    }
    return call == at || (*code == ENOSPC && call > at);
}

static void die(void)
{
    syscall(SYS_kill, getpid(), SIGKILL);
}

/* Returns from the caller with -1, or from nowhere at all. */
#define TRAP()                                                                 \
    do {                                                                       \
        int code, tears;                                                       \
        if (is_trapped(&code, &tears)) {                                       \
            if (!code)                                                         \
                die();                                                         \
            errno = code;                                                      \
            return -1;                                                         \
        }                                                                      \
    } while (0)

static int changes(int flags)
{
    return flags & (O_CREAT | O_TRUNC);
}

long sysconf(int name)
{
    static long (*next)(int);
    const char *page = getenv("SYSCALL_TRAP_PAGE");
    if (name == _SC_PAGESIZE && page)
        return strtol(page, NULL, 10);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "sysconf");
    return next(name);
}

int openat(int directory, const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    int mode = changes(flags) ? va_arg(arguments, int) : 0;
    va_end(arguments);
    if (changes(flags))
        TRAP();
    return (int)syscall(SYS_openat, directory, path, flags, mode);
}

int open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    int mode = changes(flags) ? va_arg(arguments, int) : 0;
    va_end(arguments);
    return openat(AT_FDCWD, path, flags, mode);
}

int mkdir(const char *path, mode_t mode)
{
    TRAP();
    return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int mkdirat(int directory, const char *path, mode_t mode)
{
    TRAP();
    return (int)syscall(SYS_mkdirat, directory, path, mode);
}

int rmdir(const char *path)
{
    TRAP();
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
}

int unlink(const char *path)
{
    TRAP();
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int unlinkat(int directory, const char *path, int flags)
{
    TRAP();
    return (int)syscall(SYS_unlinkat, directory, path, flags);
}

int renameat2(int from_directory, const char *from, int to_directory,
              const char *to, unsigned flags)
{
    if (flags && getenv("SYSCALL_TRAP_PLAIN")) {
        errno = EINVAL;
        return -1;
    }
    if (getenv("SYSCALL_TRAP_BRANCHES") && !strncmp(from, "database/", 9)) {
        errno = EXDEV;
        return -1;
    }
    TRAP();
    return (int)syscall(SYS_renameat2, from_directory, from, to_directory, to,
                        flags);
}

int renameat(int from_directory, const char *from, int to_directory,
             const char *to)
{
    return renameat2(from_directory, from, to_directory, to, 0);
}

int rename(const char *from, const char *to)
{
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
    int code, tears;
    if (is_trapped(&code, &tears)) {
        /* What is smaller than a page no file system tears. */
        size_t half = size / 2 / PAGE * PAGE;
        if (!code && tears && half)
            syscall(SYS_pwrite64, fd, bytes, half, offset);
        if (!code)
            die();
        errno = code;
        return -1;
    }
    return syscall(SYS_pwrite64, fd, bytes, size, offset);
}

ssize_t write(int fd, const void *bytes, size_t size)
{
    if (fd > STDERR_FILENO)
        TRAP();
    return syscall(SYS_write, fd, bytes, size);
}

ssize_t writev(int fd, const struct iovec *pieces, int n)
{
    int code, tears;
    if (is_trapped(&code, &tears)) {
        if (!code && tears && n > 1)
            syscall(SYS_writev, fd, pieces, n / 2);
        if (!code)
            die();
        errno = code;
        return -1;
    }
    return syscall(SYS_writev, fd, pieces, n);
}

int fsync(int fd)
{
    static atomic_long syncs;
    const char *trap = getenv("SYSCALL_TRAP");
    if (trap && !strncmp(trap, "sync:", 5) &&
        atomic_fetch_add(&syncs, 1) + 1 == strtol(trap + 5, NULL, 10)) {
        syscall(SYS_mknodat, AT_FDCWD, "syncing", S_IFREG | 0600, 0);
        for (;;)
            pause();
    }
    TRAP();
    return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    TRAP();
    return (int)syscall(SYS_fdatasync, fd);
}

int ftruncate(int fd, off_t size)
{
    TRAP();
    return (int)syscall(SYS_ftruncate, fd, size);
}
