/*
 * mapped_file.h: probes which pages of a mapped file are in memory, and has the
 * kernel read or drop pages.
 *
 * Affects the time that a read takes, never its result. May be called from any
 * thread.
 */
#ifndef LEAT_READERS_MAPPED_FILE_H
#define LEAT_READERS_MAPPED_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* The default read-ahead window in bytes. */
#define LEAT__READ_AHEAD ((size_t)32 << 20)

/* The default for the bytes kept between a reader and the pages that it drops.
 */
#define LEAT__KEEP_BEHIND ((size_t)64 << 20)

/* A kernel that reads this far ahead keeps the storage busy during a walk, at a
 * lower cost than explicit requests. */
#define LEAT__KERNEL_ENOUGH ((size_t)4 << 20)

/* The most spans in one call. */
#define LEAT__SPANS_MAX 256

/* A byte range of the file, and of the map. */
typedef struct leat__span {
    size_t offset;
    size_t bytes;
} leat__span;

typedef struct leat__mapped_file {
    const char *name; /* for errors; borrowed */
    const unsigned char *base;
    size_t size;
    int fd;              /* -1: none, where many files are open */
    bool can_see;        /* mincore reports residency: the file is ours */
    size_t page;         /* the system's page size */
    size_t kernel_ahead; /* the kernel's own read-ahead in bytes; 0: unknown */
} leat__mapped_file;

/* Of a file that is mapped at `base`, and open as `fd`; both are borrowed. */
void leat__mapped_file_init(leat__mapped_file *out, const char *name,
                            const unsigned char *base, size_t size, int fd);

enum {
    /* Keeps the descriptor; without it requests go by way of the map. */
    LEAT__MAP_KEEPS_FD = 1
};

/*
 * Opens and maps a whole regular file; `name` is borrowed. `flags`: of the
 * above. Owned by the caller: leat__mapped_file_close. Errors: LEAT_EIO.
 * `*about` is what fstat found. The second maps one that is open, and closes it
 * also on failure, unless it keeps it.
 */
int leat__mapped_file_open(leat__mapped_file *out, const char *name, int flags,
                           struct stat *about);
int leat__mapped_file_take(leat__mapped_file *out, const char *name, int fd,
                           int flags, struct stat *about);
void leat__mapped_file_close(leat__mapped_file *file);

/*
 * The number of system pages of the span that are not in memory. If mincore
 * reports nothing, only the first and last page are probed; if that fails too,
 * they count as absent.
 */
size_t leat__mapped_file_absent(const leat__mapped_file *file, leat__span span);

/* Whether more than a few of the pages, in a large file of those sampled, are
 * not in memory. */
bool leat__mapped_file_may_block(const leat__mapped_file *file);

/*
 * Requests the absent pages from the kernel without waiting. The spans, at most
 * LEAT__SPANS_MAX, are sorted and joined in the array. Returns the number
 * of absent pages.
 */
size_t leat__mapped_file_ask(const leat__mapped_file *file, leat__span spans[],
                             int n);

/*
 * Waits until the spans, sorted likewise, are in memory, and maps them.
 * LEAT_EIO if the storage fails, where a plain access would raise SIGBUS;
 * LEAT_ECANCELLED soon after `*cancelled`, unless NULL, has become true.
 */
int leat__mapped_file_await(const leat__mapped_file *file, leat__span spans[],
                            int n, const atomic_bool *cancelled);

/* Unmaps the spans, sorted likewise, and drops them from memory. */
void leat__mapped_file_drop(const leat__mapped_file *file, leat__span spans[],
                            int n);

#endif
