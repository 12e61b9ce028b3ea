#include "support/record_sequence.h"
#include "base/memory.h"

#include <leat/ext/reader.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define BUFFERS 70

static char folder[] = "/tmp/leat-records-XXXXXX";
static leat_sample buffers[BUFFERS];
static leat_sample *out[BUFFERS];

void record_sequence_begin(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
}

void record_sequence_end(void)
{
    char command[64];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

void record_sequence_write(const char *name, const void *bytes, size_t size)
{
    FILE *file = fopen(name, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

void record_sequence_pack(const char *name, const void *bytes, size_t size,
                          int is_zlib)
{
    z_stream z = {0};
    ck_assert_int_eq(deflateInit2(&z, 6, Z_DEFLATED, is_zlib ? 15 : 31, 8,
                                  Z_DEFAULT_STRATEGY),
                     Z_OK);
    size_t room = deflateBound(&z, size);
    unsigned char *packed = malloc(room);
    z.next_in = (unsigned char *)(uintptr_t)bytes;
    z.avail_in = (unsigned)size;
    z.next_out = packed;
    z.avail_out = (unsigned)room;
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    record_sequence_write(name, packed, room - z.avail_out);
    deflateEnd(&z);
    free(packed);
}

static int open_text(const char *text, leat_reader **reader)
{
    leat_pipeline *pipeline;
    int status = leat_pipeline_parse(&pipeline, text);
    if (status)
        return status;
    status = leat_pipeline_open(pipeline, reader);
    leat_pipeline_unref(pipeline);
    return status;
}

static leat_reader *reader_new(const char *text)
{
    leat_reader *reader = NULL;
    int status = open_text(text, &reader);
    ck_assert_msg(!status, "%s: %s", text, leat_last_error());
    return reader;
}

static void check_record(const leat_sample *sample, const known_record *known,
                         int i)
{
    const leat_field *field = &sample->field[0];
    ck_assert_int_ge(sample->nfields, 1);
    ck_assert_msg(field->bytes == known[i].size &&
                      (known[i].size == 0 ||
                       memcmp(field->data, known[i].bytes, known[i].size) == 0),
                  "record %d has %zu bytes, expected %zu, or others", i,
                  field->bytes, known[i].size);
    ck_assert_ptr_nonnull(sample->from.source);
    if (field->dtype == LEAT_BYTES)
        ck_assert_int_eq(field->shape[0], (int64_t)field->bytes);
}

/* The records from `i` on, `step` at a time. */
static void check_rest(leat_reader *reader, const known_record *known, int i,
                       int n, int step)
{
    int status, got;
    while (!(status = leat_reader_next_batch(reader, out, step, &got))) {
        ck_assert_int_gt(got, 0);
        ck_assert_int_le(i + got, n);
        for (int k = 0; k < got; k++)
            check_record(out[k], known, i + k);
        i += got;
    }
    ck_assert_msg(status == LEAT_END, "%s", leat_last_error());
    ck_assert_int_eq(got, 0);
    ck_assert_int_eq(i, n);
}

static void check_passes(const char *text, const known_record *known, int n)
{
    static const int steps[] = {1, 2, 3, 7, 64, BUFFERS};
    leat_reader *reader = reader_new(text);
    for (int i = 0; i < 6; i++) {
        check_rest(reader, known, 0, n, steps[i]);
        ck_assert_int_eq(leat_reader_next(reader, out[0]), LEAT_END);
        ck_assert_int_eq(
            leat_reader_seek(reader, (leat_position){i + 1, 0}, NULL), LEAT_OK);
    }
    leat_reader_cancel(reader);
    ck_assert_int_eq(leat_reader_next(reader, out[0]), LEAT_ECANCELLED);
    leat_reader_close(reader);
}

static void check_marks(const char *text, const known_record *known, int n)
{
    leat_reader *reader = reader_new(text);
    leat_reader *other = reader_new(text);
    for (int i = 0; i <= n; i++) {
        leat_token token;
        leat_token_init(&token);
        ck_assert_int_eq(leat_reader_mark(reader, &token), LEAT_OK);
        ck_assert_uint_le(token.size, 32);
        ck_assert_msg(!leat_reader_seek(other, (leat_position){0, i}, &token),
                      "%s", leat_last_error());
        check_rest(other, known, i, n, 3);
        leat_token_finish(&token);
        ck_assert_int_eq(leat_reader_next(reader, out[0]),
                         i < n ? LEAT_OK : LEAT_END);
    }
    leat_reader_close(reader);
    leat_reader_close(other);
}

static void check_positions(const char *text, const known_record *known, int n)
{
    leat_reader *reader = reader_new(text);
    for (int i = 0; i <= n; i++) {
        int64_t skipped;
        ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 0}, NULL),
                         LEAT_OK);
        ck_assert_int_eq(leat_reader_skip(reader, i, &skipped), LEAT_OK);
        ck_assert_int_eq(skipped, i);
        check_rest(reader, known, i, n, 2);
    }
    int64_t count;
    if (leat_reader_is_random_access(reader)) {
        ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
        ck_assert_int_eq(count, n);
    }
    for (int i = n - 1; i >= 0 && leat_reader_is_random_access(reader); i--) {
        int got;
        const leat_position at = {0, i};
        ck_assert_int_eq(leat_reader_read_at(reader, &at, out, 1, &got),
                         LEAT_OK);
        check_record(out[0], known, i);
        ck_assert_int_eq(leat_reader_seek(reader, at, NULL), LEAT_OK);
        check_rest(reader, known, i, n, 64);
    }
    leat_reader_close(reader);
}

static void check_tokens(const char *text, const known_record *known, int n)
{
    leat_reader *reader = reader_new(text);
    leat_reader *other = reader_new(text);
    leat_token token;
    leat_token_init(&token);
    ck_assert_int_eq(leat_reader_save(reader, &token), LEAT_OK);
    ck_assert_uint_le(token.size, 32);
    if (n > 0)
        ck_assert_int_eq(leat_reader_next(other, out[0]), LEAT_OK);
    ck_assert_int_eq(leat_reader_restore(other, &token), LEAT_OK);
    check_rest(other, known, 0, n, 5);
    leat_token_finish(&token);
    leat_reader_close(other);
    leat_reader_close(reader);
}

/* Opens and reads all of it into new buffers. */
static int read_whole(const char *text, int *good)
{
    leat_reader *reader;
    leat_sample sample;
    int status = open_text(text, &reader);
    *good = 0;
    if (status)
        return status;
    leat_sample_init(&sample);
    while (!(status = leat_reader_next(reader, &sample)))
        ++*good;
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    return status;
}

static void check_allocations(const char *text, int n)
{
    int status = LEAT_ENOMEM, good = 0;
    for (int i = 0; status == LEAT_ENOMEM; i++) {
        leat__alloc_fail_at(i);
        status = read_whole(text, &good);
        leat__alloc_fail_at(-1);
    }
    ck_assert_msg(status == LEAT_END, "%s", leat_last_error());
    ck_assert_int_eq(good, n);
}

static void buffers_begin(void)
{
    for (int i = 0; i < BUFFERS; i++) {
        leat_sample_init(&buffers[i]);
        out[i] = &buffers[i];
    }
}

static void buffers_end(void)
{
    for (int i = 0; i < BUFFERS; i++)
        leat_sample_finish(&buffers[i]);
}

void record_sequence_check(const char *text, const known_record *records, int n)
{
    buffers_begin();
    check_passes(text, records, n);
    check_marks(text, records, n);
    check_positions(text, records, n);
    check_tokens(text, records, n);
    check_allocations(text, n);
    buffers_end();
}

int record_sequence_read(const char *text, int *good, int *bad)
{
    leat_reader *reader;
    leat_sample sample;
    *good = *bad = 0;
    int status = open_text(text, &reader);
    if (status)
        return status;
    leat_sample_init(&sample);
    do {
        status = leat_reader_next(reader, &sample);
        *good += status == LEAT_OK;
        *bad += status == LEAT_EDATA;
    } while (status == LEAT_OK || status == LEAT_EDATA);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    return status;
}
