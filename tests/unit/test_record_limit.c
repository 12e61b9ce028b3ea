/* Of files that are read in order, a record that is longer than max_record or
   max_memory is an error, and what one took is freed after it. */
#include "readers/recordio/recordio_chunk.h"
#include "support/record_fixture.h"
#include "support/record_sequence.h"
#include "support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* Records, of which one is longer than all the others. */
enum {
    RECORDS = 11000,
    LONG_ONE = 100,
    SHORT_BYTES = 250,
    LONG_BYTES = 1 << 20,
    HELD_MAX = 700000 /* by a reader, of which a window has 128 KiB */
};

static const struct {
    const char *reader;
    int bad_status; /* of the record that is longer than max_record */
} formats[] = {{"text", LEAT_EDATA},
               {"tfrecord", LEAT_EFORMAT},
               {"recordio", LEAT_EFORMAT}, /* in a file of gzip's */
               {"recordio", LEAT_ELIMIT}}; /* in chunks of gzip's */

static record_bytes content;
static unsigned char record[LONG_BYTES];

static void add_u32(record_bytes *to, uint32_t value)
{
    record_bytes_add(to, &value, sizeof(value));
}

/* A chunk of one record. */
static void add_chunk(record_bytes *to, uint32_t size, bool is_packed)
{
    static record_bytes payload, packed;
    const leat__recordio_dialect *go = &leat__recordio_go;
    const record_bytes *stored = &payload;
    unsigned char header[LEAT__RECORDIO_HEADER];
    payload.size = packed.size = 0;
    add_u32(&payload, size);
    record_bytes_add(&payload, record, size);
    if (is_packed) {
        record_sequence_pack("chunk", payload.bytes, payload.size, 0);
        FILE *file = fopen("chunk", "rb");
        packed.size = fread(packed.bytes, 1, RECORD_FILE_MAX, file);
        fclose(file);
        stored = &packed;
    }
    const uint32_t fields[] = {LEAT__RECORDIO_MAGIC, 1,
                               go->checksum(0, stored->bytes, stored->size),
                               is_packed ? 2 : 0, (uint32_t)stored->size};
    const size_t at[] = {0, go->nrecords_at, go->checksum_at, go->compressor_at,
                         go->stored_at};
    for (int i = 0; i < 5; i++)
        memcpy(header + at[i], &fields[i], 4);
    record_bytes_add(to, header, sizeof(header));
    record_bytes_add(to, stored->bytes, stored->size);
}

static void add_record(int format, uint32_t size)
{
    if (format == 0) {
        record_bytes_add(&content, record, size);
        record_bytes_add(&content, "\n", 1);
    } else if (format == 1) {
        record_bytes_add_tfrecord(&content, record, size);
    } else {
        add_chunk(&content, size, format == 3);
    }
}

static int count_records(int format)
{
    return format == 3 ? RECORDS / 20 : RECORDS;
}

static void write_records(int format, int long_one)
{
    int n = count_records(format);
    memset(record, 'r', sizeof(record));
    content.size = 0;
    for (int i = 0; i < n; i++)
        add_record(format, i == long_one ? LONG_BYTES : SHORT_BYTES);
    if (format == 3)
        record_sequence_write("file", content.bytes, content.size);
    else
        record_sequence_pack("file", content.bytes, content.size, 0);
}

static void open_file(int format, const char *arguments, int64_t max_memory,
                      leat_reader **out)
{
    char text[64];
    leat_pipeline *pipeline;
    leat_open_options options = LEAT_OPEN_OPTIONS_INIT;
    options.max_memory = max_memory;
    snprintf(text, sizeof(text), "%s:file%s", formats[format].reader,
             arguments);
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, text), LEAT_OK);
    int status = leat_pipeline_open_with(pipeline, &options, out);
    ck_assert_msg(!status, "%s", leat_last_error());
    leat_pipeline_unref(pipeline);
}

/* Reads up to the first status that is an error; how many samples came. */
static int read_up_to(leat_reader *reader, int *status)
{
    leat_sample sample;
    int n = 0;
    leat_sample_init(&sample);
    while ((*status = leat_reader_next(reader, &sample)) == LEAT_OK)
        n++;
    leat_sample_finish(&sample);
    return n;
}

START_TEST(a_record_longer_than_max_memory_is_an_error_that_says_so)
{
    leat_reader *reader;
    int status;
    write_records(_i, LONG_ONE);
    open_file(_i, "", 1 << 19, &reader);
    ck_assert_int_eq(read_up_to(reader, &status), LONG_ONE);
    ck_assert_int_eq(status, LEAT_ELIMIT);
    ck_assert_ptr_nonnull(
        strstr(leat_last_error(), "but max_memory is 524288: expected"));
    leat_reader_close(reader);
}
END_TEST

START_TEST(a_first_record_that_is_too_long_is_so_again)
{
    static const leat_position first = {0, 0};
    leat_reader *reader;
    int status;
    write_records(_i, 0);
    open_file(_i, "", 1 << 19, &reader);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(read_up_to(reader, &status), 0);
        ck_assert_msg(status == LEAT_ELIMIT, "%s", leat_last_error());
        ck_assert_int_eq(leat_reader_seek(reader, first, NULL), LEAT_OK);
    }
    leat_reader_close(reader);
}
END_TEST

START_TEST(a_record_longer_than_max_record_is_an_error_that_says_so)
{
    leat_reader *reader;
    int status;
    write_records(_i, LONG_ONE);
    open_file(_i, ",max_record=512K", 1 << 20, &reader);
    ck_assert_int_eq(read_up_to(reader, &status), LONG_ONE);
    ck_assert_int_eq(status, formats[_i].bad_status);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "max_record= to read it"));
    leat_reader_close(reader);
}
END_TEST

/* Neither where more follow, nor where the file ends with it. */
START_TEST(a_rare_long_record_leaves_no_memory)
{
    int format = _i / 2;
    leat_reader *reader;
    leat_reader_stats stats[LEAT_MAX_READER_STATS];
    int status;
    write_records(format, _i % 2 ? count_records(format) - 1 : LONG_ONE);
    open_file(format, "", 0, &reader);
    int n = read_up_to(reader, &status);
    ck_assert_int_eq(status, LEAT_END);
    ck_assert_int_eq(n, count_records(format));
    leat_reader_chain_stats(reader, stats);
    ck_assert_int_le(stats[0].memory, HELD_MAX);
    leat_reader_close(reader);
}
END_TEST

int main(void)
{
    const int n = sizeof(formats) / sizeof(formats[0]);
    Suite *suite = suite_create("record_limit");
    TCase *tcase = tcase_create("record_limit");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, record_sequence_begin,
                              record_sequence_end);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(
        tcase, a_record_longer_than_max_memory_is_an_error_that_says_so, 0, n);
    tcase_add_loop_test(tcase, a_first_record_that_is_too_long_is_so_again, 0,
                        n);
    tcase_add_loop_test(
        tcase, a_record_longer_than_max_record_is_an_error_that_says_so, 0, n);
    tcase_add_loop_test(tcase, a_rare_long_record_leaves_no_memory, 0, 2 * n);
    return suite_run(suite);
}
