/* The public face of readers: what it checks before the table is asked. */
#include "support/suite.h"

#include <leat/ext/reader.h>

#include <check.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 5

/* A reader that counts how often it is asked. */
typedef struct stub {
    leat_reader reader;
    leat_reader_ops ops;
    int advised;
    int read;
    int status;  /* of the reading functions */
    int surplus; /* samples that they say to have given, beside all */
} stub;

static stub self;

static int stub_count(leat_reader *reader, int64_t *out)
{
    (void)reader;
    *out = COUNT;
    return LEAT_OK;
}

static int stub_read_at(leat_reader *reader, const int64_t index[],
                        leat_sample *const out[], int n, int *got)
{
    (void)index;
    (void)out;
    stub *found = (stub *)reader;
    found->read++;
    *got = n + found->surplus;
    return found->status;
}

static int stub_next(leat_reader *reader, leat_sample *const out[], int n,
                     int *got)
{
    return stub_read_at(reader, NULL, out, n, got);
}

static void stub_advise(leat_reader *reader, const int64_t index[], int n)
{
    (void)index;
    ((stub *)reader)->advised += n;
}

static int stub_seek(leat_reader *reader, int64_t index)
{
    (void)reader;
    (void)index;
    return LEAT_OK;
}

static void set_up(void)
{
    memset(&self, 0, sizeof(self));
    self.reader.ops = &self.ops;
    self.ops.size = sizeof(self.ops);
    self.ops.name = "stub";
    self.ops.count = stub_count;
    self.ops.next = stub_next;
    self.ops.read_at = stub_read_at;
    self.ops.seek = stub_seek;
    self.ops.advise = stub_advise;
}

START_TEST(a_table_of_an_older_header_ends_earlier)
{
    int64_t n;
    self.ops.size = offsetof(leat_reader_ops, seek);
    ck_assert_int_eq(leat_reader_count(&self.reader, &n), LEAT_OK);
    ck_assert_int_eq(leat_reader_is_random_access(&self.reader), 1);
    ck_assert_int_eq(leat_reader_seek(&self.reader, 0), LEAT_EUNSUPPORTED);
    ck_assert_str_eq(leat_last_error(), "the reader \"stub\" cannot seek");
    self.ops.size = offsetof(leat_reader_ops, read_at);
    ck_assert_int_eq(leat_reader_is_random_access(&self.reader), 0);
    self.ops.size = sizeof(self.ops);
    ck_assert_int_eq(leat_reader_seek(&self.reader, 0), LEAT_OK);
}
END_TEST

START_TEST(read_at_without_count_is_no_random_access)
{
    const int64_t index = 0;
    leat_sample sample;
    leat_sample *const out = &sample;
    int got = 7;
    self.ops.count = NULL;
    ck_assert_int_eq(leat_reader_is_random_access(&self.reader), 0);
    ck_assert_int_eq(leat_reader_read_at(&self.reader, &index, &out, 1, &got),
                     LEAT_EUNSUPPORTED);
    ck_assert_int_eq(got, 0);
    leat_reader_advise(&self.reader, &index, 1);
    ck_assert_int_eq(self.read + self.advised, 0);
}
END_TEST

START_TEST(a_reader_is_not_asked_for_what_is_out_of_range)
{
    const int64_t good[] = {0, COUNT - 1};
    const int64_t wrong[][2] = {{0, COUNT}, {-1, 0}, {0, INT64_MAX}};
    leat_sample sample;
    leat_sample *const out[] = {&sample, &sample};
    int got;
    ck_assert_int_eq(leat_reader_read_at(&self.reader, good, out, 2, &got),
                     LEAT_OK);
    leat_reader_advise(&self.reader, good, 2);
    ck_assert_int_eq(self.read, 1);
    ck_assert_int_eq(self.advised, 2);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(
            leat_reader_read_at(&self.reader, wrong[i], out, 2, &got),
            LEAT_EINVAL);
        leat_reader_advise(&self.reader, wrong[i], 2);
    }
    ck_assert_int_eq(self.read, 1);
    ck_assert_int_eq(self.advised, 2);
}
END_TEST

/* The status of each way to read two samples, or one. */
static int read_by(int way)
{
    const int64_t index[] = {0, 1};
    leat_sample sample;
    leat_sample *const out[] = {&sample, &sample};
    int got;
    if (way == 0)
        return leat_reader_next(&self.reader, &sample);
    if (way == 1)
        return leat_reader_next_batch(&self.reader, out, 2, &got);
    return leat_reader_read_at(&self.reader, index, out, 2, &got);
}

START_TEST(a_failure_without_a_line_gets_one)
{
    for (int way = 0; way < 3; way++) {
        (void)leat_error(LEAT_EIO, "an older line");
        self.status = LEAT_EDATA;
        ck_assert_int_eq(read_by(way), LEAT_EDATA);
        ck_assert_str_eq(leat_last_error(),
                         "the reader \"stub\": a record is bad");
        self.status = LEAT_END;
        (void)leat_error(LEAT_EIO, "an older line");
        ck_assert_int_eq(read_by(way), LEAT_END);
        ck_assert_str_eq(leat_last_error(), "an older line");
    }
}
END_TEST

START_TEST(a_reader_that_miscounts_is_told)
{
    for (int way = 0; way < 3; way++) {
        self.surplus = 0;
        ck_assert_int_eq(read_by(way), LEAT_OK);
        self.surplus = 1;
        ck_assert_int_eq(read_by(way), LEAT_ESTATE);
        self.surplus = -2;
        ck_assert_int_eq(read_by(way), LEAT_ESTATE);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "expected 1 to"));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reader");
    TCase *tcase = tcase_create("reader");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_test(tcase, a_failure_without_a_line_gets_one);
    tcase_add_test(tcase, a_reader_that_miscounts_is_told);
    tcase_add_test(tcase, a_table_of_an_older_header_ends_earlier);
    tcase_add_test(tcase, read_at_without_count_is_no_random_access);
    tcase_add_test(tcase, a_reader_is_not_asked_for_what_is_out_of_range);
    return suite_run(suite);
}
