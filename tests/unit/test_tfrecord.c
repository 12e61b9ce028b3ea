/* TFRecord: TensorFlow's own cases, real files, and every kind of damage. */
#include "readers/tfrecord.h"
#include "support/record_fixture.h"
#include "support/record_sequence.h"
#include "support/shared_data.h"
#include "support/suite.h"

#include <check.h>

static char folder[FIXTURE_PATH];
static char path[FIXTURE_PATH + 16];
static char text[FIXTURE_PATH + 64];
static record_bytes file;
static leat_sample sample;

static void set_up(void)
{
    fixture_directory(folder);
    snprintf(path, sizeof(path), "%s/a.tfrecord", folder);
    snprintf(text, sizeof(text), "tfrecord:%s", path);
    leat_sample_init(&sample);
    file.size = 0;
}

static void tear_down(void)
{
    leat_sample_finish(&sample);
    fixture_remove(folder);
}

static void add(const char *data)
{
    record_bytes_add_tfrecord(&file, data, strlen(data));
}

static leat_reader *reopen(void)
{
    record_bytes_write(&file, path);
    return record_reader_open(text);
}

static int is_sample(const char *data)
{
    return sample.nfields == 1 && sample.field[0].dtype == LEAT_BYTES &&
           sample.field[0].bytes == strlen(data) &&
           memcmp(sample.field[0].data, data, strlen(data)) == 0;
}

static void expect(leat_reader *reader, const char *data)
{
    int status = leat_reader_next(reader, &sample);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    ck_assert(is_sample(data));
}

static void expect_line(const char *words)
{
    ck_assert_msg(strstr(leat_last_error(), words) != NULL, "%s",
                  leat_last_error());
    ck_assert_ptr_nonnull(strstr(leat_last_error(), path));
}

static void expect_error(leat_reader *reader, int status, const char *words)
{
    ck_assert_int_eq(leat_reader_next(reader, &sample), status);
    expect_line(words);
}

/* Of hexadecimal digits. */
static void add_golden(const char *digits)
{
    for (; *digits; digits += 2) {
        unsigned byte;
        ck_assert_int_eq(sscanf(digits, "%2x", &byte), 1);
        record_bytes_add(&file, &(unsigned char){(unsigned char)byte}, 1);
    }
}

START_TEST(the_golden_bytes_are_read)
{
    static const char *const data[] = {"", "1", "foo", "abc", "defg"};
    static record_bytes golden;
    add_golden("000000000000000029039807d8ea82a2");
    add_golden("01000000000000000175de4131c30c4ad6");
    add_golden("0300000000000000b099490e666f6f618abefe");
    add_golden("0300000000000000b099490e6162636e57f121");
    add_golden("0400000000000000424552046465666727071ba1");
    golden = file;
    leat_reader *reader = reopen();
    for (int i = 0; i < 5; i++)
        expect(reader, data[i]);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
    leat_reader_close(reader);
    file.size = 0;
    for (int i = 0; i < 5; i++)
        add(data[i]);
    ck_assert_uint_eq(file.size, golden.size);
    ck_assert_int_eq(memcmp(file.bytes, golden.bytes, file.size), 0);
}
END_TEST

START_TEST(the_end_comes_again_and_again)
{
    static const char *const data[] = {"foo", "bar", "", "xxxx"};
    for (int i = 0; i < 4; i++)
        add(data[i]);
    leat_reader *reader = reopen();
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < 4; i++)
            expect(reader, data[i]);
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
        ck_assert_int_eq(leat_reader_seek(reader, (leat_position){1, 0}, NULL),
                         LEAT_OK);
    }
    leat_reader_close(reader);
}
END_TEST

START_TEST(a_hundred_thousand_records_are_read_in_any_order)
{
    char data[16];
    int64_t count;
    for (int i = 0; i < 100000; i++) {
        snprintf(data, sizeof(data), "%d.", i);
        add(data);
    }
    leat_reader *reader = reopen();
    for (int i = 0; i < 100000; i++) {
        snprintf(data, sizeof(data), "%d.", i);
        expect(reader, data);
        ck_assert_int_eq(sample.from.record, i);
        ck_assert(sample.stable);
    }
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
    ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
    ck_assert_int_eq(count, 100000);
    static const int64_t some[] = {3, 8, 99999, 0, 50000};
    leat_sample *out[] = {&sample};
    int got;
    for (int i = 0; i < 5; i++) {
        const leat_position at = {0, some[i]};
        ck_assert_int_eq(leat_reader_read_at(reader, &at, out, 1, &got),
                         LEAT_OK);
        snprintf(data, sizeof(data), "%d.", (int)some[i]);
        ck_assert(is_sample(data));
    }
    for (int64_t past = 0; past <= 5; past += 5) {
        const leat_position at = {0, count + past};
        ck_assert_int_eq(leat_reader_read_at(reader, &at, out, 1, &got),
                         LEAT_EINVAL);
    }
    leat_reader_close(reader);
}
END_TEST

START_TEST(a_corrupt_byte_is_found_and_the_next_record_read_where_it_can_be)
{
    static const struct {
        size_t at; /* from the end of the file where it is 0 */
        int status;
        const char *words;
    } cases[] = {
        {6, LEAT_EFORMAT, "record 0 at byte 0: the checksum of its length"},
        {10, LEAT_EDATA, "record 0 at byte 0: the checksum of its length"},
        {14, LEAT_EDATA, "record 0 at byte 0: the checksum of its data"},
        {0, LEAT_EDATA, "record 1 at byte 19: the checksum of its data"},
    };
    add("abc");
    add("defg");
    ck_assert_uint_eq(file.size, 39);
    size_t at = cases[_i].at ? cases[_i].at : file.size - 1;
    file.bytes[at] = (unsigned char)(file.bytes[at] + 100);
    leat_reader *reader = reopen();
    if (cases[_i].at == 0)
        expect(reader, "abc");
    expect_error(reader, cases[_i].status, cases[_i].words);
    if (cases[_i].status == LEAT_EFORMAT) {
        expect_error(reader, LEAT_EFORMAT, cases[_i].words);
    } else {
        int64_t count;
        if (cases[_i].at)
            expect(reader, "defg");
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
        ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
        ck_assert_int_eq(count, 2);
    }
    leat_reader_close(reader);
}
END_TEST

/* The records of the tests below: of many sizes, some 4 KiB. */
static size_t begin_of[64];
static int records;

static void add_many(void)
{
    char data[400];
    memset(data, 'x', sizeof(data));
    for (records = 0; file.size < 4096; records++) {
        begin_of[records] = file.size;
        record_bytes_add_tfrecord(&file, data, (size_t)(records * 37 % 390));
    }
    begin_of[records] = file.size;
}

/* Reads all; *good is the number of records before the error. */
static int read_all(leat_reader *reader, int *good)
{
    int status;
    *good = 0;
    while ((status = leat_reader_next(reader, &sample)) == LEAT_OK) {
        size_t size = begin_of[*good + 1] - begin_of[*good] - 16;
        ck_assert_uint_eq(sample.field[0].bytes, size);
        ++*good;
    }
    return status;
}

START_TEST(a_cut_at_every_length_is_one_error)
{
    static record_bytes whole;
    add_many();
    whole = file;
    for (size_t size = 0; size < whole.size; size++) {
        int good, complete = 0;
        int64_t count = 0;
        char words[64];
        while (begin_of[complete + 1] <= size)
            complete++;
        bool is_clean = begin_of[complete] == size;
        file.size = size;
        leat_reader *reader = reopen();
        int status = read_all(reader, &good);
        ck_assert_int_eq(good, complete);
        ck_assert_int_eq(status, is_clean ? LEAT_END : LEAT_EFORMAT);
        snprintf(words, sizeof(words), "record %d at byte %zu: the file is cut",
                 complete, begin_of[complete]);
        if (!is_clean)
            expect_error(reader, LEAT_EFORMAT, words);
        status = leat_reader_count(reader, &count);
        ck_assert_int_eq(status, is_clean ? LEAT_OK : LEAT_EFORMAT);
        if (!is_clean)
            ck_assert_ptr_nonnull(strstr(leat_last_error(), words));
        else
            ck_assert_int_eq(count, complete);
        leat_reader_close(reader);
    }
}
END_TEST

/* A bit of the length ends the walk; any other costs its record alone. */
START_TEST(every_flipped_bit_of_a_header_is_found)
{
    add_many();
    const int tried[] = {0, 5, records - 1};
    for (int k = 0; k < 3; k++)
        for (size_t bit = 0; bit < 8 * (12 + 1 + 4); bit++) {
            size_t from = begin_of[tried[k]];
            size_t size = begin_of[tried[k] + 1] - from - 16;
            /* The header, the first byte of the data, and the footer. */
            size_t at = bit / 8;
            if (at == 12 && size == 0)
                continue;
            at += from + (at > 12 ? size - 1 : 0);
            unsigned char mask = (unsigned char)(1 << bit % 8);
            file.bytes[at] ^= mask;
            leat_reader *reader = reopen();
            int good;
            int expected = bit < 64 ? LEAT_EFORMAT : LEAT_EDATA;
            ck_assert_int_eq(read_all(reader, &good), expected);
            ck_assert_int_eq(good, tried[k]);
            ck_assert_int_eq(sample.from.record, good);
            ck_assert_str_eq(sample.from.source, path);
            int status = leat_reader_next(reader, &sample);
            if (expected == LEAT_EFORMAT)
                ck_assert_int_eq(status, LEAT_EFORMAT);
            else if (good + 1 == records)
                ck_assert_int_eq(status, LEAT_END);
            else
                ck_assert_int_eq(sample.from.record, good + 1);
            leat_reader_close(reader);
            file.bytes[at] ^= mask;
        }
}
END_TEST

START_TEST(a_length_beyond_the_file_or_all_memory_is_an_error)
{
    static const uint64_t lengths[] = {
        1,          1000,       UINT32_MAX,      INT64_MAX,
        UINT64_MAX, 1ULL << 62, UINT64_MAX - 15, UINT64_MAX - 16};
    add("good");
    size_t before = file.size;
    for (int i = 0; i < 8; i++) {
        uint32_t sum = leat__crc32c_mask(leat__crc32c(0, &lengths[i], 8));
        file.size = before;
        record_bytes_add(&file, &lengths[i], 8);
        record_bytes_add(&file, &sum, 4);
        record_bytes_add(&file, "data", lengths[i] == 1 ? 0 : 4);
        leat_reader *reader = reopen();
        expect(reader, "good");
        expect_error(reader, LEAT_EFORMAT, "record 1 at byte 20");
        leat_reader_close(reader);
        /* Whether records are read or skipped. */
        int64_t skipped;
        reader = record_reader_open(text);
        ck_assert_int_eq(leat_reader_skip(reader, 2, &skipped), LEAT_EFORMAT);
        ck_assert_int_eq(skipped, 1);
        expect_line("record 1 at byte 20");
        leat_reader_close(reader);
    }
}
END_TEST

/* Packs the file as gzip, or zlib, under another name. */
static void pack(const char *name, int is_zlib)
{
    record_sequence_pack(name, file.bytes, file.size, is_zlib);
}

START_TEST(tensorflows_records_are_read_in_every_compression)
{
    static const char *const data[] = {"1", "22", "333", "a", "bb", "ccc"};
    known_record known[6];
    record_sequence_begin();
    for (int i = 0; i < 6; i++) {
        known[i] = (known_record){data[i], strlen(data[i])};
        add(data[i]);
        if (i % 3 < 2)
            continue;
        record_sequence_write(i < 3 ? "1" : "2", file.bytes, file.size);
        pack(i < 3 ? "1.gz" : "2.gz", 0);
        pack(i < 3 ? "1.z" : "2.z", 1);
        file.size = 0;
    }
    record_sequence_check("tfrecord:1,2", known, 6);
    record_sequence_check("tfrecord:?.gz", known, 6);
    record_sequence_check("tfrecord:1.z,2.z,compression=ZLIB", known, 6);
    record_sequence_check("tfrecord:1,2.gz", known, 6);
    record_sequence_end();
}
END_TEST

/* A stream finds what a map does. */
START_TEST(a_compressed_file_has_the_same_errors)
{
    static record_bytes whole;
    int good, bad, expected_good, expected_bad;
    record_sequence_begin();
    add_many();
    whole = file;
    for (size_t size = 0; size < whole.size; size += 7) {
        file.size = size;
        record_sequence_write("a", file.bytes, size);
        pack("a.gz", 0);
        int status =
            record_sequence_read("tfrecord:a", &expected_good, &expected_bad);
        ck_assert_int_eq(record_sequence_read("tfrecord:a.gz", &good, &bad),
                         status);
        ck_assert(good == expected_good && bad == expected_bad);
    }
    file = whole;
    for (size_t bit = 0; bit < 8 * 400; bit += 3) {
        file.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        record_sequence_write("a", file.bytes, file.size);
        pack("a.gz", 0);
        int status =
            record_sequence_read("tfrecord:a", &expected_good, &expected_bad);
        ck_assert_int_eq(record_sequence_read("tfrecord:a.gz", &good, &bad),
                         status);
        ck_assert(good == expected_good && bad == expected_bad);
        ck_assert(bad == 1 || status == LEAT_EFORMAT);
        file.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    record_sequence_end();
}
END_TEST

START_TEST(real_files_are_read)
{
    static const struct {
        const char *name;
        int count;
    } files[] = {{"tfrecord/example.tfrecord", 4},
                 {"tfrecord/sequence_example.tfrecord", 4},
                 {"tfrecord/morris_sequence_first_5.tfrecord", 5},
                 {"tfrecord/toy.nocompress-tfe-tfrecord-*", 4},
                 {"tfrecord/toy.tfe-tfrecord-*", 4}};
    static const char *const morris[] = {"1", "1 1", "2 1", "1 2 1 1",
                                         "1 1 1 2 2 1"};
    char found[SHARED_PATH];
    if (!shared_path(found, "tfrecord"))
        return;
    char long_text[SHARED_PATH + 64];
    snprintf(long_text, sizeof(long_text), "tfrecord:%s/%s", shared_folder(),
             files[_i].name);
    leat_reader *reader = record_reader_open(long_text);
    for (int i = 0; i < files[_i].count; i++) {
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        if (_i == 2)
            ck_assert(is_sample(morris[i]));
    }
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
    leat_reader_close(reader);
}
END_TEST

/* Neither what was read beside a bad record, nor that record. */
START_TEST(nothing_that_was_held_comes_once_reading_is_cancelled)
{
    enum { RECORDS = 6 };
    leat_sample storage[RECORDS], *out[RECORDS];
    int64_t skipped;
    int got;
    for (int i = 0; i < RECORDS; i++) {
        leat_sample_init(&storage[i]);
        out[i] = &storage[i];
        add("bytes");
    }
    file.bytes[file.size / RECORDS + 14] ^= 1;
    record_bytes_write(&file, path);
    record_sequence_begin();
    record_sequence_pack("a.gz", file.bytes, file.size, 0);
    leat_reader *reader = record_reader_open(_i % 2 ? text : "tfrecord:a.gz");
    ck_assert_int_eq(leat_reader_next_batch(reader, out, RECORDS, &got),
                     LEAT_EDATA);
    ck_assert_int_eq(got, 1);
    leat_reader_cancel(reader);
    if (_i / 2)
        ck_assert_int_eq(leat_reader_skip(reader, 1, &skipped),
                         LEAT_ECANCELLED);
    ck_assert_int_eq(leat_reader_next(reader, out[0]), LEAT_ECANCELLED);
    leat_reader_close(reader);
    record_sequence_end();
    for (int i = 0; i < RECORDS; i++)
        leat_sample_finish(&storage[i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tfrecord");
    TCase *tcase = tcase_create("tfrecord");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, the_golden_bytes_are_read);
    tcase_add_test(tcase, the_end_comes_again_and_again);
    tcase_add_loop_test(
        tcase, nothing_that_was_held_comes_once_reading_is_cancelled, 0, 4);
    tcase_add_test(tcase, a_hundred_thousand_records_are_read_in_any_order);
    tcase_add_loop_test(
        tcase, a_corrupt_byte_is_found_and_the_next_record_read_where_it_can_be,
        0, 4);
    tcase_add_test(tcase, a_cut_at_every_length_is_one_error);
    tcase_add_test(tcase, every_flipped_bit_of_a_header_is_found);
    tcase_add_test(tcase, a_length_beyond_the_file_or_all_memory_is_an_error);
    tcase_add_test(tcase, tensorflows_records_are_read_in_every_compression);
    tcase_add_test(tcase, a_compressed_file_has_the_same_errors);
    tcase_add_loop_test(tcase, real_files_are_read, 0, 5);
    return suite_run(suite);
}
