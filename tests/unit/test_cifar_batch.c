#include "support/suite.h"
#include "tools/import/cifar_batch.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

enum { RECORD = 1 + CIFAR_BATCH_IMAGE };

static char path[64];
static int file = -1;
static int64_t expected_records;

static void make_file(void)
{
    file = memfd_create("batch", MFD_CLOEXEC);
    ck_assert_int_ge(file, 0);
    expected_records = CIFAR_BATCH_RECORDS;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
}

static void remove_file(void)
{
    close(file);
}

static void fill_record(unsigned char *record, int i)
{
    record[0] = (unsigned char)(i % CIFAR_BATCH_LABELS);
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
    struct cifar_batch *batch;
    ck_assert_int_eq(cifar_batch_open(&batch, path, expected_records), LEAT_OK);
    int status, label, n = 0;
    const unsigned char *image;
    while (!(status = cifar_batch_next(batch, &image, &label))) {
        unsigned char expected[RECORD];
        fill_record(expected, n++);
        ck_assert_int_eq(label, expected[0]);
        ck_assert_mem_eq(image, expected + 1, CIFAR_BATCH_IMAGE);
    }
    if (status == LEAT_END)
        ck_assert_int_eq(cifar_batch_next(batch, &image, &label), LEAT_END);
    cifar_batch_close(batch);
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
    write_records(CIFAR_BATCH_RECORDS, 0, _i);
    ck_assert_int_eq(read_all(&n), LEAT_END);
    ck_assert_int_eq(n, CIFAR_BATCH_RECORDS);
}
END_TEST

START_TEST(one_byte_more_is_refused)
{
    write_records(CIFAR_BATCH_RECORDS, 1, _i);
    assert_refused(CIFAR_BATCH_RECORDS, "goes on after the 10000 records");
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
    write_records(CIFAR_BATCH_RECORDS - 1, 0, _i);
    assert_refused(CIFAR_BATCH_RECORDS - 1, "ends before record 9999");
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
    assert_refused(6, "goes on after the 6 records");
    expected_records = 8;
    assert_refused(7, "ends before record 7 of the 8");
}
END_TEST

START_TEST(a_batch_may_have_any_number_of_records)
{
    int n;
    expected_records = 0;
    write_records(CIFAR_BATCH_RECORDS + 1, 0, _i);
    ck_assert_int_eq(read_all(&n), LEAT_END);
    ck_assert_int_eq(n, CIFAR_BATCH_RECORDS + 1);
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
    struct cifar_batch *batch = NULL;
    ck_assert_int_eq(cifar_batch_open(&batch, "/nowhere/batch", 0), LEAT_EIO);
    ck_assert_ptr_null(batch);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "/nowhere/batch: No such"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cifar_batch");
    TCase *tcase = tcase_create("batches");
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
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
