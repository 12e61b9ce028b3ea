/*
 * file_version.h: what shows that a file was written since it was opened: its
 * size and time of modification; and hashes of these and of its contents.
 */
#ifndef LEAT_BASE_FILE_VERSION_H
#define LEAT_BASE_FILE_VERSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* A file's time of modification, in nanoseconds; before 1677 and after 2262 the
 * first and the last that there is. */
static inline int64_t leat__file_modified(const struct stat *about)
{
    int64_t seconds = about->st_mtim.tv_sec, time;
    if (__builtin_mul_overflow(seconds, 1000000000, &time) ||
        __builtin_add_overflow(time, about->st_mtim.tv_nsec, &time))
        return seconds < 0 ? INT64_MIN : INT64_MAX;
    return time;
}

/* Adds a file's time of modification to a hash of several. */
static inline uint64_t leat__file_hash_modified(uint64_t hash, int64_t modified)
{
    return ((hash + 1) ^ (uint64_t)modified) * 0x100000001b3u;
}

/* Continues FNV-1a, 64 bits, over what a file has. */
static inline uint64_t leat__file_hash_bytes(uint64_t hash, const void *bytes,
                                             size_t size)
{
    const unsigned char *at = (const unsigned char *)bytes;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ at[i]) * 0x100000001b3u;
    return hash;
}

typedef struct leat__file_version {
    int64_t size;     /* below 0: it is no regular file */
    int64_t modified; /* nanoseconds */
} leat__file_version;

static inline leat__file_version leat__file_version_of(const struct stat *about)
{
    return (leat__file_version){about->st_size, leat__file_modified(about)};
}

static inline bool leat__file_version_is_same(leat__file_version a,
                                              leat__file_version b)
{
    return a.size == b.size && a.modified == b.modified;
}

/* LEAT_EIO if the file `name` is another than when it was opened. */
int leat__file_version_check(leat__file_version opened, leat__file_version now,
                             const char *name);

#endif
