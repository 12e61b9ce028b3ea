/* storage_fixture.h: a database's file, mapped, and put out of memory. */
#ifndef LEAT_TESTS_STORAGE_FIXTURE_H
#define LEAT_TESTS_STORAGE_FIXTURE_H

#include "lmdb_fixture.h"
#include "readers/lmdb/lmdb_storage.h"

#include <fcntl.h>
#include <sys/mman.h>

typedef struct storage_fixture {
    char directory[FIXTURE_PATH];
    char path[FIXTURE_PATH + 16];
    int fd;
    leat__lmdb_map map;
    leat__lmdb_storage storage;
} storage_fixture;

/* Record i: its number, then 99 bytes, or 8999, which lie on pages apart. */
static inline void storage_fixture_record(int number, fixture_record *out,
                                          size_t size)
{
    out->key_size = (size_t)sprintf(out->key, "%08d", number);
    memset(out->value, number, size);
    memcpy(out->value, &number, sizeof(number));
    out->value_size = size;
}

static inline void storage_fixture_small(int number, fixture_record *out)
{
    storage_fixture_record(number, out, 100);
}

static inline void storage_fixture_large(int number, fixture_record *out)
{
    storage_fixture_record(number, out, 9000);
}

static inline void storage_fixture_map(storage_fixture *out)
{
    struct stat found;
    ck_assert_int_eq(fstat(out->fd, &found), 0);
    size_t size = (size_t)found.st_size;
    void *base = mmap(NULL, size, PROT_READ, MAP_SHARED, out->fd, 0);
    ck_assert_ptr_ne(base, MAP_FAILED);
    ck_assert_int_eq(leat__lmdb_map_latest(&out->map, out->path, base, size),
                     LEAT_OK);
    leat__lmdb_storage_init(&out->storage, &out->map, out->fd);
}

static inline void storage_fixture_open(storage_fixture *out,
                                        fixture_maker *make, int n)
{
    fixture_directory(out->directory);
    fixture_write(out->directory, make, n);
    snprintf(out->path, sizeof(out->path), "%s/data.mdb", out->directory);
    out->fd = open(out->path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(out->fd, 0);
    storage_fixture_map(out);
}

static inline void storage_fixture_close(storage_fixture *fixture)
{
    munmap((void *)(uintptr_t)fixture->map.base, fixture->map.size);
    close(fixture->fd);
    fixture_remove(fixture->directory);
}

/* A hole after the pages, which no reader touches, and which is larger than
   what one asks for ahead: until it is warmed the file may block. */
static inline void storage_fixture_lengthen(storage_fixture *fixture)
{
    size_t size = fixture->map.size + 3 * LEAT__READ_AHEAD;
    munmap((void *)(uintptr_t)fixture->map.base, fixture->map.size);
    ck_assert_int_eq(ftruncate(fixture->fd, (off_t)size), 0);
    storage_fixture_map(fixture);
}

static inline leat__span storage_fixture_whole(const storage_fixture *fixture)
{
    return (leat__span){0, fixture->map.size};
}

/* Puts all of it out of memory, but what another map holds there. */
static inline void storage_fixture_drop(storage_fixture *fixture)
{
    ck_assert_int_eq(fsync(fixture->fd), 0);
    ck_assert_int_eq(madvise((void *)(uintptr_t)fixture->map.base,
                             fixture->map.size, MADV_DONTNEED),
                     0);
    ck_assert_int_eq(posix_fadvise(fixture->fd, 0, 0, POSIX_FADV_DONTNEED), 0);
}

/* So that nothing is in memory. 0, and says so, where that is not so, as the
   file system has no other place. */
static inline int storage_fixture_cool(storage_fixture *fixture)
{
    static int is_said;
    leat__span whole = storage_fixture_whole(fixture);
    storage_fixture_drop(fixture);
    size_t absent = leat__mapped_file_absent(&fixture->storage.file, whole);
    if (absent * fixture->storage.file.page >= fixture->map.size)
        return 1;
    if (!is_said++)
        printf("skipped: %s cannot be put out of memory\n", fixture->path);
    return 0;
}

/* All of it is. */
static inline void storage_fixture_warm(storage_fixture *fixture)
{
    leat__span whole = storage_fixture_whole(fixture);
    ck_assert_int_eq(
        leat__mapped_file_await(&fixture->storage.file, &whole, 1, NULL),
        LEAT_OK);
}

#endif
