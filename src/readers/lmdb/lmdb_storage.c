#include "readers/lmdb/lmdb_storage.h"
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
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

/* A gap between spans that is cheaper to read than to skip. */
#define HOLE_BYTES ((size_t)32 << 10)

/* Pages sampled over the whole file, and how many of them may be absent while
 * the file counts as resident. */
enum { SAMPLES = 64, SAMPLES_ABSENT = 4 };

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

static uint64_t within(uint64_t value, uint64_t least, uint64_t most)
{
    if (value < least)
        return least;
    return value < most ? value : most;
}

void leat__lmdb_storage_init(leat__lmdb_storage *out, const leat__lmdb_map *map,
                             int fd)
{
    /* The meta page's counts may be wrong; so are the averages then. */
    const leat__lmdb_meta *meta = &map->meta;
    uint64_t pages = meta->last_page + 1;
    uint64_t leaves = within(meta->leaf_pages, 1, pages);
    uint64_t bytes =
        within(leaves + within(meta->overflow_pages, 0, pages), 1, pages) *
        meta->page_size;
    *out = (leat__lmdb_storage){
        .map = map,
        .fd = fd,
        .can_see = can_see(fd),
        .page = (size_t)sysconf(_SC_PAGESIZE),
        .kernel_ahead = kernel_ahead(fd),
        .record_bytes = bytes / within(meta->entries, 1, bytes),
        .leaf_bytes = bytes / leaves,
    };
}

static leat__lmdb_span cut(const leat__lmdb_storage *storage, size_t offset,
                           size_t bytes)
{
    size_t size = storage->map->size;
    if (offset > size)
        offset = size;
    return (leat__lmdb_span){offset,
                             bytes < size - offset ? bytes : size - offset};
}

leat__lmdb_span leat__lmdb_storage_leaf(const leat__lmdb_storage *storage,
                                        uint64_t page)
{
    const leat__lmdb_map *map = storage->map;
    if (page > map->meta.last_page)
        return (leat__lmdb_span){0, 0};
    return cut(storage, (size_t)page * map->meta.page_size,
               map->meta.page_size);
}

leat__lmdb_span leat__lmdb_storage_value(const leat__lmdb_storage *storage,
                                         const leat__lmdb_node *node)
{
    const leat__lmdb_map *map = storage->map;
    size_t page_size = map->meta.page_size;
    if (node->value || node->overflow > map->meta.last_page)
        return (leat__lmdb_span){0, 0};
    /* Whole pages; sizes of values have 32 bits, so nothing overflows. */
    size_t bytes = (16 + node->value_size + page_size - 1) & ~(page_size - 1);
    return cut(storage, (size_t)node->overflow * page_size, bytes);
}

/* The span widened to whole system pages. */
static leat__lmdb_span widen(const leat__lmdb_storage *storage,
                             leat__lmdb_span span)
{
    size_t begin = span.offset & ~(storage->page - 1);
    return (leat__lmdb_span){begin, span.offset + span.bytes - begin};
}

static size_t count_seen_absent(const leat__lmdb_storage *storage,
                                leat__lmdb_span span)
{
    unsigned char is_there[512];
    size_t most = sizeof(is_there) * storage->page;
    size_t absent = 0;
    while (span.bytes > 0) {
        size_t bytes = span.bytes < most ? span.bytes : most;
        size_t pages = (bytes + storage->page - 1) / storage->page;
        const unsigned char *at = storage->map->base + span.offset;
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
static size_t try_byte(const leat__lmdb_storage *storage, size_t offset)
{
    char byte;
    struct iovec to = {&byte, 1};
    return preadv2(storage->fd, &to, 1, (off_t)offset, RWF_NOWAIT) != 1;
}

size_t leat__lmdb_storage_absent(const leat__lmdb_storage *storage,
                                 leat__lmdb_span span)
{
    if (span.bytes == 0)
        return 0;
    if (storage->can_see)
        return count_seen_absent(storage, widen(storage, span));
    size_t absent = try_byte(storage, span.offset);
    if (span.bytes > storage->page)
        absent += try_byte(storage, span.offset + span.bytes - 1);
    return absent;
}

bool leat__lmdb_storage_may_block(const leat__lmdb_storage *storage)
{
    size_t absent = 0;
    for (size_t i = 0; i < SAMPLES; i++) {
        size_t offset = storage->map->size / SAMPLES * i;
        absent +=
            leat__lmdb_storage_absent(storage, (leat__lmdb_span){offset, 1});
    }
    return absent > SAMPLES_ABSENT;
}

/* Shell sort, since qsort may allocate. */
static void sort(leat__lmdb_span spans[], int n)
{
    for (int gap = n / 2; gap > 0; gap /= 2)
        for (int i = gap; i < n; i++) {
            leat__lmdb_span moved = spans[i];
            int at = i;
            for (; at >= gap && spans[at - gap].offset > moved.offset;
                 at -= gap)
                spans[at] = spans[at - gap];
            spans[at] = moved;
        }
}

/* Sorts the spans and joins those that are `hole` bytes apart or less. */
static int join(leat__lmdb_span spans[], int n, size_t hole)
{
    int joined = 0;
    for (int i = 1; i < n; i++)
        if (spans[i].offset < spans[i - 1].offset) {
            sort(spans, n);
            break;
        }
    for (int i = 0; i < n; i++) {
        leat__lmdb_span *last = joined > 0 ? &spans[joined - 1] : NULL;
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

size_t leat__lmdb_storage_ask(const leat__lmdb_storage *storage,
                              leat__lmdb_span spans[], int n)
{
    size_t absent = 0;
    n = join(spans, n, HOLE_BYTES);
    for (int i = 0; i < n; i++) {
        size_t missing = leat__lmdb_storage_absent(storage, spans[i]);
        absent += missing;
        for (size_t done = 0; missing && done < spans[i].bytes;) {
            size_t left = spans[i].bytes - done;
            size_t bytes = left < REQUEST_BYTES ? left : REQUEST_BYTES;
            /* A hint: if it is refused, the read itself blocks. */
            (void)posix_fadvise(storage->fd, (off_t)(spans[i].offset + done),
                                (off_t)bytes, POSIX_FADV_WILLNEED);
            done += bytes;
        }
    }
    return absent;
}

/* For kernels without MADV_POPULATE_READ. */
static void touch(const leat__lmdb_storage *storage, leat__lmdb_span span)
{
    const volatile unsigned char *base = storage->map->base;
    for (size_t done = 0; done < span.bytes; done += storage->page)
        (void)base[span.offset + done];
}

int leat__lmdb_storage_await(const leat__lmdb_storage *storage,
                             leat__lmdb_span spans[], int n)
{
    for (int i = 0; i < n; i++)
        spans[i] = widen(storage, spans[i]);
    n = join(spans, n, storage->page);
    for (int i = 0; i < n; i++) {
        leat__lmdb_span span = spans[i];
        void *at = (void *)(uintptr_t)(storage->map->base + span.offset);
        if (madvise(at, span.bytes, MADV_POPULATE_READ) == 0)
            continue;
        if (errno == EFAULT || errno == EHWPOISON)
            return leat_error(LEAT_EIO,
                              "%s: storage failed to read %zu bytes at %zu",
                              storage->map->name, span.bytes, span.offset);
        touch(storage, span);
    }
    return LEAT_OK;
}

void leat__lmdb_storage_drop(const leat__lmdb_storage *storage,
                             leat__lmdb_span spans[], int n)
{
    size_t page = storage->page;
    n = join(spans, n, 0);
    for (int i = 0; i < n; i++) {
        /* Pages that extend beyond the span may still be in use. */
        size_t begin = (spans[i].offset + page - 1) & ~(page - 1);
        size_t end = (spans[i].offset + spans[i].bytes) & ~(page - 1);
        if (begin >= end)
            continue;
        void *at = (void *)(uintptr_t)(storage->map->base + begin);
        /* Hints: pages that another process maps stay. */
        (void)madvise(at, end - begin, MADV_DONTNEED);
        (void)posix_fadvise(storage->fd, (off_t)begin, (off_t)(end - begin),
                            POSIX_FADV_DONTNEED);
    }
}
