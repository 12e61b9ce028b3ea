/* record_fixture.h: files of records that tests write. */
#ifndef LEAT_TESTS_RECORD_FIXTURE_H
#define LEAT_TESTS_RECORD_FIXTURE_H

#include "base/crc32c.h"
#include "lmdb_fixture.h"

#include <leat.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#define RECORD_FILE_MAX ((size_t)4 << 20)

/* The bytes of a file that is being made. */
typedef struct record_bytes {
    size_t size;
    unsigned char bytes[RECORD_FILE_MAX];
} record_bytes;

static inline void record_bytes_add(record_bytes *to, const void *bytes,
                                    size_t size)
{
    ck_assert_uint_le(to->size + size, RECORD_FILE_MAX);
    if (size > 0)
        memcpy(to->bytes + to->size, bytes, size);
    to->size += size;
}

/* Appends a TFRecord; x86 and ARM are little-endian. */
static inline void record_bytes_add_tfrecord(record_bytes *to, const void *data,
                                             uint64_t size)
{
    uint32_t sum = leat__crc32c_mask(leat__crc32c(0, &size, 8));
    record_bytes_add(to, &size, 8);
    record_bytes_add(to, &sum, 4);
    sum = leat__crc32c_mask(leat__crc32c(0, data, size));
    record_bytes_add(to, data, size);
    record_bytes_add(to, &sum, 4);
}

/* Writes it, as of an hour ago, so that an index of it may be kept. */
static inline void record_bytes_write(const record_bytes *from,
                                      const char *path)
{
    struct timespec times[2];
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(from->bytes, 1, from->size, file), from->size);
    ck_assert_int_eq(fclose(file), 0);
    clock_gettime(CLOCK_REALTIME, &times[0]);
    times[0].tv_sec -= 3600;
    times[1] = times[0];
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* Opens a reader of a pipeline's text; what comes is its status. */
static inline int record_reader_try(leat_reader **out, const char *text)
{
    leat_pipeline *pipeline;
    int status = leat_pipeline_parse(&pipeline, text);
    if (status)
        return status;
    status = leat_pipeline_open(pipeline, out);
    leat_pipeline_unref(pipeline);
    return status;
}

static inline leat_reader *record_reader_open(const char *text)
{
    leat_reader *reader = NULL;
    int status = record_reader_try(&reader, text);
    ck_assert_msg(status == LEAT_OK, "%s: %s", text, leat_last_error());
    return reader;
}

#endif
