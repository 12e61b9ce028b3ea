#include "readers/mapped_file.h"
#include "base/error.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14 */
#endif

/* A request reads at most the kernel's own read-ahead; this is its default. */
#define REQUEST_BYTES ((size_t)128 << 10)

/* Bytes that are awaited at once: the kernel does not return before, except for
 * a signal that kills. */
#define AWAITED_BYTES ((size_t)4 << 20)

/* A gap between spans that is cheaper to read than to skip. */
#define HOLE_BYTES ((size_t)32 << 10)

/* Pages sampled over the whole file, and how many of them may be absent while
 * the file counts as resident. */
enum { SAMPLES = 64, SAMPLES_ABSENT = 4 };

enum { PAGES_A_CALL = 512 }; /* that mincore is asked about at once */

/* mincore reports every page of another user's file as resident. */
static bool can_see(int fd)
{
    struct stat found;
    uid_t user = geteuid();
    if (fstat(fd, &found) != 0)
        return false;
    return user == 0 || found.st_uid == user ||
           faccessat(fd, "", W_OK, AT_EMPTY_PATH | AT_EACCESS) == 0;
}

/* The device's setting in sysfs, if any. */
static size_t kernel_ahead(int fd)
{
    char path[64], digits[16] = "";
    struct stat found;
    if (fstat(fd, &found) != 0)
        return 0;
    snprintf(path, sizeof(path), "/sys/class/bdi/%u:%u/read_ahead_kb",
             major(found.st_dev), minor(found.st_dev));
    int setting = open(path, O_RDONLY | O_CLOEXEC);
    if (setting < 0)
        return 0;
    ssize_t got = read(setting, digits, sizeof(digits) - 1);
    close(setting); /* only read from: nothing can be lost */
    return got > 0 ? (size_t)strtoul(digits, NULL, 10) << 10 : 0;
}

void leat__mapped_file_init(leat__mapped_file *out, const char *name,
                            const unsigned char *base, size_t size, int fd)
{
    *out = (leat__mapped_file){
        .name = name,
        .base = base,
        .size = size,
        .fd = fd,
        .can_see = can_see(fd),
        .page = (size_t)sysconf(_SC_PAGESIZE),
        .kernel_ahead = kernel_ahead(fd),
    };
}

/* A file system without a page cache, such as FUSE with direct_io, shares no
 * pages, but has private ones, which show the file as they are read first. */
static void *map_pages(size_t size, int fd)
{
    void *base = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    return base == MAP_FAILED && errno == ENODEV
               ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0)
               : base;
}

static int refuse_map(const char *name, size_t size)
{
    if (errno != ENODEV)
        return leat__error_system(errno, "%s: %zu bytes cannot be mapped", name,
                                  size);
    return leat_error(LEAT_EIO,
                      "%s: its file system maps no files: read it through a "
                      "pipe",
                      name);
}

static int map_whole(leat__mapped_file *out, const char *name, int fd,
                     struct stat *about)
{
    if (fstat(fd, about))
        return leat__error_system(errno, "%s", name);
    if (!S_ISREG(about->st_mode))
        return leat_error(LEAT_EIO, "%s: expected a regular file", name);
    /* No bytes cannot be mapped, and have an address all the same. */
    static char none;
    char byte;
    size_t size = (size_t)about->st_size;
    void *base = &none;
    if (size == 0 && pread(fd, &byte, 1, 0) > 0)
        return leat_error(LEAT_EIO,
                          "%s: it has contents but no size, as in /proc: read "
                          "it through a pipe",
                          name);
    if ((uintmax_t)about->st_size > PTRDIFF_MAX)
        return leat_error(LEAT_EIO, "%s: too large to be mapped", name);
    if (size > 0)
        base = map_pages(size, fd);
    if (base == MAP_FAILED)
        return refuse_map(name, size);
    leat__mapped_file_init(out, name, base, size, fd);
    return LEAT_OK;
}

int leat__mapped_file_take(leat__mapped_file *out, const char *name, int fd,
                           int flags, struct stat *about)
{
    int status = map_whole(out, name, fd, about);
    if (!status && flags & LEAT__MAP_KEEPS_FD)
        return LEAT_OK;
    close(fd); /* only read from: nothing can be lost */
    if (!status)
        out->fd = -1;
    return status;
}

int leat__mapped_file_open(leat__mapped_file *out, const char *name, int flags,
                           struct stat *about)
{
    int fd = leat__file_open(name, 0);
    return fd < 0 ? leat__error_system(errno, "%s", name)
                  : leat__mapped_file_take(out, name, fd, flags, about);
}

void leat__mapped_file_close(leat__mapped_file *file)
{
    if (file->size > 0)
        munmap((void *)(uintptr_t)file->base, file->size);
    if (file->fd >= 0)
        close(file->fd);
}

/* The span widened to whole system pages. */
static leat__span widen(const leat__mapped_file *file, leat__span span)
{
    size_t begin = span.offset & ~(file->page - 1);
    return (leat__span){begin, span.offset + span.bytes - begin};
}

static size_t count_seen_absent(const leat__mapped_file *file, leat__span span)
{
    unsigned char is_there[PAGES_A_CALL];
    size_t most = PAGES_A_CALL * file->page;
    size_t absent = 0;
    while (span.bytes > 0) {
        size_t bytes = span.bytes < most ? span.bytes : most;
        size_t pages = (bytes + file->page - 1) / file->page;
        const unsigned char *at = file->base + span.offset;
        if (mincore((void *)(uintptr_t)at, bytes, is_there) != 0)
            return absent + pages;
        for (size_t i = 0; i < pages; i++)
            absent += !(is_there[i] & 1);
        span.offset += bytes;
        span.bytes -= bytes;
    }
    return absent;
}

/* Reads a byte if that needs no waiting. */
static size_t try_byte(const leat__mapped_file *file, size_t offset)
{
    char byte;
    struct iovec to = {&byte, 1};
    if (file->fd < 0)
        return 0; /* the kernel's own read-ahead has to do */
    return preadv2(file->fd, &to, 1, (off_t)offset, RWF_NOWAIT) != 1;
}

size_t leat__mapped_file_absent(const leat__mapped_file *file, leat__span span)
{
    if (span.bytes == 0)
        return 0;
    if (file->can_see)
        return count_seen_absent(file, widen(file, span));
    size_t absent = try_byte(file, span.offset);
    if (span.bytes > file->page)
        absent += try_byte(file, span.offset + span.bytes - 1);
    return absent;
}

bool leat__mapped_file_may_block(const leat__mapped_file *file)
{
    size_t absent = 0, pages = (file->size + file->page - 1) / file->page;
    if (file->can_see && pages <= PAGES_A_CALL) {
        absent = leat__mapped_file_absent(file, (leat__span){0, file->size});
        return absent * SAMPLES > SAMPLES_ABSENT * pages;
    }
    for (size_t i = 0; i < SAMPLES; i++) {
        size_t offset = file->size / SAMPLES * i;
        absent += leat__mapped_file_absent(file, (leat__span){offset, 1});
    }
    return absent > SAMPLES_ABSENT;
}

/* Shell sort, since qsort may allocate. */
static void sort(leat__span spans[], int n)
{
    for (int gap = n / 2; gap > 0; gap /= 2)
        for (int i = gap; i < n; i++) {
            leat__span moved = spans[i];
            int at = i;
            for (; at >= gap && spans[at - gap].offset > moved.offset;
                 at -= gap)
                spans[at] = spans[at - gap];
            spans[at] = moved;
        }
}

/* Sorts the spans and joins those that are `hole` bytes apart or less. */
static int join(leat__span spans[], int n, size_t hole)
{
    int joined = 0;
    for (int i = 1; i < n; i++)
        if (spans[i].offset < spans[i - 1].offset) {
            sort(spans, n);
            break;
        }
    for (int i = 0; i < n; i++) {
        leat__span *last = joined > 0 ? &spans[joined - 1] : NULL;
        size_t end = spans[i].offset + spans[i].bytes;
        if (spans[i].bytes == 0)
            continue;
        if (!last || spans[i].offset > last->offset + last->bytes + hole)
            spans[joined++] = spans[i];
        else if (end > last->offset + last->bytes)
            last->bytes = end - last->offset;
    }
    return joined;
}

/* A hint: if it is refused, the read itself blocks. */
static void request(const leat__mapped_file *file, size_t offset, size_t bytes)
{
    size_t begin = offset & ~(file->page - 1);
    if (file->fd >= 0)
        (void)posix_fadvise(file->fd, (off_t)offset, (off_t)bytes,
                            POSIX_FADV_WILLNEED);
    else
        (void)madvise((void *)(uintptr_t)(file->base + begin),
                      offset + bytes - begin, MADV_WILLNEED);
}

size_t leat__mapped_file_ask(const leat__mapped_file *file, leat__span spans[],
                             int n)
{
    size_t absent = 0;
    n = join(spans, n, HOLE_BYTES);
    for (int i = 0; i < n; i++) {
        size_t missing = leat__mapped_file_absent(file, spans[i]);
        absent += missing;
        for (size_t done = 0; missing && done < spans[i].bytes;) {
            size_t left = spans[i].bytes - done;
            size_t bytes = left < REQUEST_BYTES ? left : REQUEST_BYTES;
            request(file, spans[i].offset + done, bytes);
            done += bytes;
        }
    }
    return absent;
}

/* For kernels without MADV_POPULATE_READ. */
static void touch(const leat__mapped_file *file, leat__span span)
{
    const volatile unsigned char *base = file->base;
    for (size_t done = 0; done < span.bytes; done += file->page)
        (void)base[span.offset + done];
}

static int await_some(const leat__mapped_file *file, leat__span span)
{
    void *at = (void *)(uintptr_t)(file->base + span.offset);
    if (madvise(at, span.bytes, MADV_POPULATE_READ) == 0)
        return LEAT_OK;
    if (errno == EFAULT || errno == EHWPOISON)
        return leat_error(LEAT_EIO,
                          "%s: storage failed to read %zu bytes at %zu",
                          file->name, span.bytes, span.offset);
    touch(file, span);
    return LEAT_OK;
}

static int await(const leat__mapped_file *file, leat__span span,
                 const atomic_bool *cancelled)
{
    int status = LEAT_OK;
    while (!status && span.bytes > 0) {
        size_t bytes = span.bytes < AWAITED_BYTES ? span.bytes : AWAITED_BYTES;
        if (cancelled && atomic_load_explicit(cancelled, memory_order_relaxed))
            return leat_error(LEAT_ECANCELLED, "%s: reading was cancelled",
                              file->name);
        status = await_some(file, (leat__span){span.offset, bytes});
        span.offset += bytes;
        span.bytes -= bytes;
    }
    return status;
}

int leat__mapped_file_await(const leat__mapped_file *file, leat__span spans[],
                            int n, const atomic_bool *cancelled)
{
    int status = LEAT_OK;
    for (int i = 0; i < n; i++)
        spans[i] = widen(file, spans[i]);
    n = join(spans, n, file->page);
    for (int i = 0; i < n && !status; i++)
        status = await(file, spans[i], cancelled);
    return status;
}

/* Without a descriptor of its own the file is opened again for a moment, if it
 * is one by now. */
static void forget(const leat__mapped_file *file, size_t begin, size_t end)
{
    int fd = file->fd >= 0 ? file->fd
                           : leat__file_open_regular(AT_FDCWD, file->name, 0);
    if (fd < 0)
        return;
    (void)posix_fadvise(fd, (off_t)begin, (off_t)(end - begin),
                        POSIX_FADV_DONTNEED);
    if (fd != file->fd)
        close(fd);
}

void leat__mapped_file_drop(const leat__mapped_file *file, leat__span spans[],
                            int n)
{
    size_t page = file->page;
    n = join(spans, n, 0);
    for (int i = 0; i < n; i++) {
        /* Pages that extend beyond the span may still be in use. */
        size_t begin = (spans[i].offset + page - 1) & ~(page - 1);
        size_t end = (spans[i].offset + spans[i].bytes) & ~(page - 1);
        if (begin >= end)
            continue;
        void *at = (void *)(uintptr_t)(file->base + begin);
        /* Hints: pages that another process maps stay. */
        (void)madvise(at, end - begin, MADV_DONTNEED);
        forget(file, begin, end);
    }
}
