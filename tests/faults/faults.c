#include "faults/faults.h"

#include "support/watchdog.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static const struct {
    const char *name;
    int error;
} kinds[] = {
#define FAULT_KIND(name, text, error) {text, error},
    FAULT_MAP(FAULT_KIND)
#undef FAULT_KIND
};

static atomic_int_fast64_t calls[FAULT_CALLS];
static atomic_int_fast64_t fault_at;
static atomic_int fault_number; /* its errno, FAULT_SHORT or FAULT_ACT */
static void (*_Atomic action)(void);
static atomic_int fault_stays;
static atomic_int has_struck;
static atomic_int armed = -1; /* the kind that is to fail */
static const char *mark;

const char *fault_name(fault_call call)
{
    return kinds[call].name;
}

int fault_error(fault_call call)
{
    return kinds[call].error;
}

void fault_arm(fault_call call, int64_t n, int error, int stays)
{
    atomic_store(&armed, -1);
    atomic_store(&has_struck, 0);
    atomic_store(&fault_number, error);
    atomic_store(&fault_stays, stays);
    atomic_store(&fault_at, atomic_load(&calls[call]) + n);
    atomic_store(&armed, (int)call);
}

void fault_act(void (*act)(void))
{
    atomic_store(&action, act);
}

int fault_disarm(void)
{
    atomic_store(&armed, -1);
    return atomic_exchange(&has_struck, 0);
}

int64_t fault_count(fault_call call)
{
    return atomic_load(&calls[call]);
}

/* Counts a call: 0, or the errno that it is to fail with, or what else. */
static int strike(fault_call call)
{
    int64_t number = atomic_fetch_add(&calls[call], 1);
    if (atomic_load(&armed) != (int)call)
        return 0;
    int64_t at = atomic_load(&fault_at);
    if (number < at || (number > at && !atomic_load(&fault_stays)))
        return 0;
    if (!atomic_exchange(&has_struck, 1) && mark)
        syscall(SYS_close, syscall(SYS_openat, AT_FDCWD, mark,
                                   O_CREAT | O_WRONLY | O_CLOEXEC, 0666));
    int error = atomic_load(&fault_number);
    if (error == FAULT_ACT)
        atomic_load (&action)();
    return error;
}

/* Whether the call fails now, by errno; one that is to be short does not. */
static int fails(fault_call call)
{
    int error = strike(call);
    if (error <= 0)
        return 0;
    errno = error;
    return 1;
}

/* The same for a transfer, which may be shortened. */
static int fails_of(fault_call call, size_t *size)
{
    int error = strike(call);
    if (error == FAULT_SHORT && *size > 1)
        *size /= 2;
    if (error <= 0)
        return 0;
    errno = error;
    return 1;
}

/* For functions that return their error. */
static int error_of(fault_call call)
{
    int error = strike(call);
    return error > 0 ? error : 0;
}

static void *find(void *_Atomic *slot, const char *name)
{
    void *found = atomic_load_explicit(slot, memory_order_acquire);
    if (!found) {
        found = dlsym(RTLD_NEXT, name);
        atomic_store_explicit(slot, found, memory_order_release);
    }
    return found;
}

/* The function of that name below this library: libc's, or a sanitizer's. */
#define REAL(name)                                                             \
    __extension__({                                                            \
        static void *_Atomic slot;                                             \
        (__typeof__(&name))find(&slot, #name);                                 \
    })

static mode_t mode_of(int flags, va_list list)
{
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    mode_t mode = mode_of(flags, list);
    va_end(list);
    return fails(FAULT_OPEN) ? -1 : REAL(open)(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    mode_t mode = mode_of(flags, list);
    va_end(list);
    return fails(FAULT_OPEN) ? -1 : REAL(open64)(path, flags, mode);
}

int openat(int directory, const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    mode_t mode = mode_of(flags, list);
    va_end(list);
    return fails(FAULT_OPEN) ? -1 : REAL(openat)(directory, path, flags, mode);
}

/* What _FORTIFY_SOURCE makes of open with flags that are no constants. */
int __open_2(const char *path, int flags);
int __open_2(const char *path, int flags)
{
    return fails(FAULT_OPEN) ? -1 : REAL(open)(path, flags, 0);
}

int __open64_2(const char *path, int flags);
int __open64_2(const char *path, int flags)
{
    return fails(FAULT_OPEN) ? -1 : REAL(open64)(path, flags, 0);
}

int __openat_2(int directory, const char *path, int flags);
int __openat_2(int directory, const char *path, int flags)
{
    return fails(FAULT_OPEN) ? -1 : REAL(openat)(directory, path, flags, 0);
}

DIR *opendir(const char *path)
{
    return fails(FAULT_OPEN) ? NULL : REAL(opendir)(path);
}

int stat(const char *path, struct stat *out)
{
    return fails(FAULT_STAT) ? -1 : REAL(stat)(path, out);
}

int lstat(const char *path, struct stat *out)
{
    return fails(FAULT_STAT) ? -1 : REAL(lstat)(path, out);
}

int fstat(int fd, struct stat *out)
{
    return fails(FAULT_STAT) ? -1 : REAL(fstat)(fd, out);
}

int fstatat(int fd, const char *path, struct stat *out, int flags)
{
    return fails(FAULT_STAT) ? -1 : REAL(fstatat)(fd, path, out, flags);
}

/* What programs of an older libc call. */
int __fxstat(int version, int fd, struct stat *out);
int __fxstat(int version, int fd, struct stat *out)
{
    return fails(FAULT_STAT) ? -1 : REAL(__fxstat)(version, fd, out);
}

ssize_t read(int fd, void *bytes, size_t size)
{
    return fails_of(FAULT_READ, &size) ? -1 : REAL(read)(fd, bytes, size);
}

ssize_t pread(int fd, void *bytes, size_t size, off_t from)
{
    return fails_of(FAULT_PREAD, &size) ? -1
                                        : REAL(pread)(fd, bytes, size, from);
}

ssize_t pread64(int fd, void *bytes, size_t size, off64_t from)
{
    return fails_of(FAULT_PREAD, &size) ? -1
                                        : REAL(pread64)(fd, bytes, size, from);
}

ssize_t write(int fd, const void *bytes, size_t size)
{
    return fails_of(FAULT_WRITE, &size) ? -1 : REAL(write)(fd, bytes, size);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t to)
{
    return fails_of(FAULT_WRITE, &size) ? -1
                                        : REAL(pwrite)(fd, bytes, size, to);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t to)
{
    return fails_of(FAULT_WRITE, &size) ? -1
                                        : REAL(pwrite64)(fd, bytes, size, to);
}

/* A short one ends within the first part. */
ssize_t writev(int fd, const struct iovec *parts, int n)
{
    size_t size = parts[0].iov_len;
    if (fails_of(FAULT_WRITE, &size))
        return -1;
    if (size < parts[0].iov_len)
        return REAL(write)(fd, parts[0].iov_base, size);
    return REAL(writev)(fd, parts, n);
}

FILE *fopen(const char *path, const char *mode)
{
    return fails(FAULT_STREAM) ? NULL : REAL(fopen)(path, mode);
}

size_t fread(void *bytes, size_t size, size_t n, FILE *stream)
{
    return fails(FAULT_STREAM) ? 0 : REAL(fread)(bytes, size, n, stream);
}

size_t fwrite(const void *bytes, size_t size, size_t n, FILE *stream)
{
    return fails(FAULT_STREAM) ? 0 : REAL(fwrite)(bytes, size, n, stream);
}

int fflush(FILE *stream)
{
    return fails(FAULT_STREAM) ? EOF : REAL(fflush)(stream);
}

int fclose(FILE *stream)
{
    int error = error_of(FAULT_STREAM);
    int result = REAL(fclose)(stream);
    errno = error ? error : errno;
    return error ? EOF : result;
}

int fseek(FILE *stream, long offset, int whence)
{
    return fails(FAULT_SEEK) ? -1 : REAL(fseek)(stream, offset, whence);
}

int fsync(int fd)
{
    return fails(FAULT_SYNC) ? -1 : REAL(fsync)(fd);
}

int fdatasync(int fd)
{
    return fails(FAULT_SYNC) ? -1 : REAL(fdatasync)(fd);
}

int msync(void *memory, size_t size, int flags)
{
    return fails(FAULT_SYNC) ? -1 : REAL(msync)(memory, size, flags);
}

int ftruncate(int fd, off_t size)
{
    return fails(FAULT_TRUNCATE) ? -1 : REAL(ftruncate)(fd, size);
}

off_t lseek(int fd, off_t offset, int whence)
{
    return fails(FAULT_SEEK) ? -1 : REAL(lseek)(fd, offset, whence);
}

off64_t lseek64(int fd, off64_t offset, int whence)
{
    return fails(FAULT_SEEK) ? -1 : REAL(lseek64)(fd, offset, whence);
}

int close(int fd)
{
    int error = error_of(FAULT_CLOSE);
    int result = REAL(close)(fd);
    errno = error ? error : errno;
    return error ? -1 : result;
}

int fcntl(int fd, int command, ...)
{
    va_list list;
    va_start(list, command);
    void *argument = va_arg(list, void *);
    va_end(list);
    int is_lock = command == F_SETLK || command == F_SETLKW ||
                  command == F_OFD_SETLK || command == F_OFD_GETLK;
    return is_lock && fails(FAULT_LOCK) ? -1
                                        : REAL(fcntl)(fd, command, argument);
}

int flock(int fd, int operation)
{
    return fails(FAULT_LOCK) ? -1 : REAL(flock)(fd, operation);
}

int mkdirat(int directory, const char *path, mode_t mode)
{
    return fails(FAULT_NAME) ? -1 : REAL(mkdirat)(directory, path, mode);
}

int mkdir(const char *path, mode_t mode)
{
    return fails(FAULT_NAME) ? -1 : REAL(mkdir)(path, mode);
}

int rename(const char *from, const char *to)
{
    return fails(FAULT_NAME) ? -1 : REAL(rename)(from, to);
}

int renameat(int from_directory, const char *from, int to_directory,
             const char *to)
{
    if (fails(FAULT_NAME))
        return -1;
    return REAL(renameat)(from_directory, from, to_directory, to);
}

int linkat(int from_directory, const char *from, int to_directory,
           const char *to, int flags)
{
    if (fails(FAULT_NAME))
        return -1;
    return REAL(linkat)(from_directory, from, to_directory, to, flags);
}

int renameat2(int from_directory, const char *from, int to_directory,
              const char *to, unsigned flags)
{
    if (fails(FAULT_NAME))
        return -1;
    return REAL(renameat2)(from_directory, from, to_directory, to, flags);
}

int unlink(const char *path)
{
    return fails(FAULT_REMOVE) ? -1 : REAL(unlink)(path);
}

int unlinkat(int directory, const char *path, int flags)
{
    return fails(FAULT_REMOVE) ? -1 : REAL(unlinkat)(directory, path, flags);
}

int rmdir(const char *path)
{
    return fails(FAULT_REMOVE) ? -1 : REAL(rmdir)(path);
}

void *mmap(void *address, size_t size, int protection, int flags, int fd,
           off_t from)
{
    if (fails(FAULT_MAP))
        return MAP_FAILED;
    return REAL(mmap)(address, size, protection, flags, fd, from);
}

int madvise(void *memory, size_t size, int advice)
{
    return fails(FAULT_HINT) ? -1 : REAL(madvise)(memory, size, advice);
}

int mincore(void *memory, size_t size, unsigned char *out)
{
    return fails(FAULT_HINT) ? -1 : REAL(mincore)(memory, size, out);
}

int posix_fadvise(int fd, off_t from, off_t size, int advice)
{
    int error = error_of(FAULT_HINT);
    return error ? error : REAL(posix_fadvise)(fd, from, size, advice);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                   void *(*body)(void *), void *argument)
{
    int error = error_of(FAULT_THREAD);
    return error ? error
                 : REAL(pthread_create)(thread, attributes, body, argument);
}

int pthread_mutex_init(pthread_mutex_t *mutex,
                       const pthread_mutexattr_t *attributes)
{
    int error = error_of(FAULT_MUTEX);
    return error ? error : REAL(pthread_mutex_init)(mutex, attributes);
}

int pthread_cond_init(pthread_cond_t *condition,
                      const pthread_condattr_t *attributes)
{
    int error = error_of(FAULT_CONDITION);
    return error ? error : REAL(pthread_cond_init)(condition, attributes);
}

int pthread_key_create(pthread_key_t *key, void (*destructor)(void *))
{
    int error = error_of(FAULT_KEY);
    return error ? error : REAL(pthread_key_create)(key, destructor);
}

void *malloc(size_t size)
{
    return fails(FAULT_MEMORY) ? NULL : REAL(malloc)(size);
}

void *calloc(size_t n, size_t size)
{
    return fails(FAULT_MEMORY) ? NULL : REAL(calloc)(n, size);
}

void *realloc(void *memory, size_t size)
{
    return fails(FAULT_MEMORY) ? NULL : REAL(realloc)(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return fails(FAULT_MEMORY) ? NULL : REAL(aligned_alloc)(alignment, size);
}

/* What the tool's own malloc, which counts, calls. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *memory, size_t size);

void *__libc_malloc(size_t size)
{
    return fails(FAULT_MEMORY) ? NULL : REAL(__libc_malloc)(size);
}

void *__libc_calloc(size_t n, size_t size)
{
    return fails(FAULT_MEMORY) ? NULL : REAL(__libc_calloc)(n, size);
}

void *__libc_realloc(void *memory, size_t size)
{
    return fails(FAULT_MEMORY) ? NULL : REAL(__libc_realloc)(memory, size);
}

__attribute__((constructor)) static void read_environment(void)
{
    const char *seconds = getenv("LEAT_WATCHDOG");
    const char *text = getenv("LEAT_FAULT");
    if (seconds)
        watchdog_start(atoi(seconds));
    mark = getenv("LEAT_FAULT_MARK");
    if (!text)
        return;
    for (int i = 0; i < FAULT_CALLS; i++) {
        size_t length = strlen(kinds[i].name);
        char *end;
        if (strncmp(text, kinds[i].name, length) != 0 || text[length] != ':')
            continue;
        long n = strtol(text + length + 1, &end, 10);
        long error = *end == ':' ? strtol(end + 1, &end, 10) : kinds[i].error;
        fault_arm((fault_call)i, n, (int)error, *end == '+');
        return;
    }
}
