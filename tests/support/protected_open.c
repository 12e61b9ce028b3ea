#include "support/protected_open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

int __real_open(const char *name, int flags, ...);
int __wrap_open(const char *name, int flags, ...);

int protected_open;
int absent_locks;
int nameless_user;

int __wrap_open(const char *name, int flags, ...)
{
    mode_t mode = 0;
    va_list rest;
    va_start(rest, flags);
    if (flags & O_CREAT)
        mode = va_arg(rest, mode_t);
    va_end(rest);
    size_t size = strlen(name);
    if (absent_locks > 0 && size > 8 && !strcmp(name + size - 8, "lock.mdb") &&
        absent_locks--) {
        errno = ENOENT;
        return -1;
    }
    if (nameless_user && flags & O_CREAT) {
        errno = EOVERFLOW;
        return -1;
    }
    if (!protected_open || !(flags & O_CREAT) || flags & O_EXCL ||
        access(name, F_OK) != 0)
        return __real_open(name, flags, mode);
    errno = EACCES;
    return -1;
}
