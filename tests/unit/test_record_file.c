#include "support/suite.h"
#include "tools/import/record_file.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { RECORD = 1 + CIFAR10_IMAGE };

static char path[64];
static int file = -1;
static int64_t expected_records;

static void make_file(void)
{
    file = memfd_create("batch", MFD_CLOEXEC);
    ck_assert_int_ge(file, 0);
    expected_records = CIFAR10_COUNT;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
}

static void remove_file(void)
{
    close(file);
}

static void fill_record(unsigned char *record, int i)
{
    record[0] = (unsigned char)(i % CIFAR10_LABELS);
    for (int k = 1; k < RECORD; k++)
        record[k] = (unsigned char)(i + 31 * k);
}

/* Writes so many records and a tail, gzipped where asked for. */
static void write_records(int n, int tail, int gzipped)
{
    gzFile stream = gzopen(path, gzipped ? "wb1" : "wbT");
    ck_assert_ptr_nonnull(stream);
    unsigned char record[RECORD];
    for (int i = 0; i < n; i++) {
        fill_record(record, i);
        ck_assert_int_eq(gzwrite(stream, record, RECORD), RECORD);
    }
    fill_record(record, 0);
    ck_assert_int_eq(tail ? gzwrite(stream, record, (unsigned)tail) : 0, tail);
    ck_assert_int_eq(gzclose(stream), Z_OK);
}

/* Reads to the end, or to an error, which is returned. */
static int read_all(int *records)
{
    struct record_file batch;
    ck_assert_int_eq(
        record_file_open(&batch, path, CIFAR10_BATCH, expected_records),
        LEAT_OK);
    int status, n = 0;
    const unsigned char *record;
    while (!(status = record_file_next(&batch, &record))) {
        unsigned char expected[RECORD];
        fill_record(expected, n++);
        ck_assert_mem_eq(record, expected, RECORD);
    }
    if (status == LEAT_END)
        ck_assert_int_eq(record_file_next(&batch, &record), LEAT_END);
    record_file_close(&batch);
    *records = n;
    return status;
}

static void assert_refused(int records, const char *text)
{
    int n;
    ck_assert_int_eq(read_all(&n), LEAT_EFORMAT);
    ck_assert_int_eq(n, records);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), text));
}

START_TEST(a_batch_has_ten_thousand_records)
{
    int n;
    write_records(CIFAR10_COUNT, 0, _i);
    ck_assert_int_eq(read_all(&n), LEAT_END);
    ck_assert_int_eq(n, CIFAR10_COUNT);
}
END_TEST

START_TEST(one_byte_more_is_refused)
{
    write_records(CIFAR10_COUNT, 1, _i);
    assert_refused(CIFAR10_COUNT, "continues past the 10000 records");
}
END_TEST

START_TEST(a_record_cut_short_is_named)
{
    write_records(7, RECORD - 1, _i);
    assert_refused(7, "ends in record 7 of the 10000");
}
END_TEST

START_TEST(a_missing_record_is_named)
{
    write_records(CIFAR10_COUNT - 1, 0, _i);
    assert_refused(CIFAR10_COUNT - 1, "ends before record 9999");
}
END_TEST

START_TEST(a_batch_may_have_another_number_of_records)
{
    int n;
    expected_records = 7;
    write_records(7, 0, _i);
    ck_assert_int_eq(read_all(&n), LEAT_END);
    ck_assert_int_eq(n, 7);
    expected_records = 6;
    assert_refused(6, "continues past the 6 records");
    expected_records = 8;
    assert_refused(7, "ends before record 7 of the 8");
}
END_TEST

START_TEST(a_batch_may_have_any_number_of_records)
{
    int n;
    expected_records = 0;
    write_records(CIFAR10_COUNT + 1, 0, _i);
    ck_assert_int_eq(read_all(&n), LEAT_END);
    ck_assert_int_eq(n, CIFAR10_COUNT + 1);
    ck_assert_int_eq(ftruncate(file, 0), 0);
    write_records(3, 5, _i);
    assert_refused(3, "ends in record 3, expected records of 3073 bytes");
    ck_assert_int_eq(ftruncate(file, 0), 0);
    assert_refused(0, "ends before record 0");
}
END_TEST

START_TEST(a_label_of_another_data_set_is_refused)
{
    unsigned char record[RECORD] = {10};
    ck_assert_int_eq(write(file, record, RECORD), RECORD);
    assert_refused(0, "record 0 has label 10, expected 0 to 9");
}
END_TEST

START_TEST(an_empty_file_is_refused)
{
    assert_refused(0, "ends before record 0");
}
END_TEST

START_TEST(a_missing_file_is_an_error)
{
    struct record_file batch;
    ck_assert_int_eq(
        record_file_open(&batch, "/nowhere/batch", CIFAR10_BATCH, 0), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "/nowhere/batch: No such"));
    record_file_close(&batch);
}
END_TEST

/* Each refused file and its line; images are 2 x 3. */
START_TEST(an_idx_file_holds_what_its_header_promises)
{
    static const char header[] =
        "\0\0\10\3\0\0\0\2\0\0\0\2\0\0\0\3abcdefghijklmn";
    static const struct {
        size_t size;
        const char *text;
    } cases[] = {{10, "ends in its header, after 10 of 16 bytes"},
                 {16, "ends before image 0 of the 2 that its header"},
                 {27, "ends in image 1 of the 2 that its header"},
                 {29, "continues past the 2 images"}};
    for (int i = 0; i < 4; i++) {
        struct record_file images;
        const unsigned char *image;
        ck_assert_int_eq(ftruncate(file, 0), 0);
        gzFile stream = gzopen(path, _i ? "wb1" : "wbT");
        gzwrite(stream, header, (unsigned)cases[i].size);
        gzclose(stream);
        int status = record_file_open(&images, path, IDX_IMAGES, 0);
        while (!status)
            status = record_file_next(&images, &image);
        ck_assert_int_eq(status, LEAT_EFORMAT);
        ck_assert_msg(strstr(leat_last_error(), cases[i].text) != NULL, "%s",
                      leat_last_error());
        record_file_close(&images);
    }
    struct record_file labels;
    ck_assert_int_eq(record_file_open(&labels, path, IDX_LABELS, 0),
                     LEAT_EFORMAT);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "expected magic number "
                                                    "2049, found 2051"));
    record_file_close(&labels);
}
END_TEST

/* With a number of records and with any; plain and gzipped. */
START_TEST(a_file_that_was_written_meanwhile_is_refused)
{
    static const struct timespec long_ago[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    struct record_file batch;
    const unsigned char *record;
    char byte;
    write_records(3, 0, _i % 2);
    ck_assert_int_eq(futimens(file, long_ago), 0);
    ck_assert_int_eq(
        record_file_open(&batch, path, CIFAR10_BATCH, _i / 2 ? 3 : 0), LEAT_OK);
    ck_assert_int_eq(record_file_next(&batch, &record), LEAT_OK);
    /* The same byte. */
    ck_assert_int_eq(pread(file, &byte, 1, 0), 1);
    ck_assert_int_eq(pwrite(file, &byte, 1, 0), 1);
    ck_assert_int_eq(record_file_next(&batch, &record), LEAT_OK);
    ck_assert_int_eq(record_file_next(&batch, &record), LEAT_OK);
    ck_assert_int_eq(record_file_next(&batch, &record), LEAT_EFORMAT);
    ck_assert_ptr_nonnull(
        strstr(leat_last_error(), "was written while it was read"));
    record_file_close(&batch);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("record_file");
    TCase *tcase = tcase_create("files");
    tcase_add_checked_fixture(tcase, make_file, remove_file);
    tcase_add_loop_test(tcase, a_batch_has_ten_thousand_records, 0, 2);
    tcase_add_loop_test(tcase, one_byte_more_is_refused, 0, 2);
    tcase_add_loop_test(tcase, a_record_cut_short_is_named, 0, 2);
    tcase_add_loop_test(tcase, a_missing_record_is_named, 0, 2);
    tcase_add_loop_test(tcase, a_batch_may_have_another_number_of_records, 0,
                        2);
    tcase_add_loop_test(tcase, a_batch_may_have_any_number_of_records, 0, 2);
    tcase_add_test(tcase, a_label_of_another_data_set_is_refused);
    tcase_add_test(tcase, an_empty_file_is_refused);
    tcase_add_test(tcase, a_missing_file_is_an_error);
    tcase_add_loop_test(tcase, an_idx_file_holds_what_its_header_promises, 0,
                        2);
    tcase_add_loop_test(tcase, a_file_that_was_written_meanwhile_is_refused, 0,
                        4);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
