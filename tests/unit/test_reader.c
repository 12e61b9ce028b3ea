/* The public face of readers: what it checks before the table is asked. */
#include "support/suite.h"

#include <leat/ext/reader.h>

#include <check.h>
#include <stddef.h>
#include <stdio.h>
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
    int gives;   /* samples together with an error */
    int nfields; /* of each sample */
    int fails;   /* status of all others */
} stub;

static stub self;

static int stub_count(leat_reader *reader, int64_t *out)
{
    *out = COUNT;
    return ((stub *)reader)->fails;
}

static int stub_read_at(leat_reader *reader, const int64_t index[],
                        leat_sample *const out[], int n, int *got)
{
    (void)index;
    stub *found = (stub *)reader;
    found->read++;
    for (int i = 0; i < n; i++)
        out[i]->nfields = found->nfields;
    out[0]->from.record = 31;
    *got = found->status && !found->gives ? 0 : n + found->surplus;
    return found->status;
}

static int stub_locate(leat_reader *reader, leat_locator out[], int n, int *got)
{
    stub *found = (stub *)reader;
    memset(out, 0, (size_t)n * sizeof(*out));
    *got = found->status && !found->gives ? 0 : n + found->surplus;
    return found->status;
}

static int stub_read_located(leat_reader *reader, const leat_locator locator[],
                             leat_sample *const out[], int n, int *got)
{
    (void)locator;
    return stub_read_at(reader, NULL, out, n, got);
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
    (void)index;
    return ((stub *)reader)->fails;
}

static int stub_fields(leat_reader *reader, const leat_field_spec **out, int *n)
{
    (void)out;
    (void)n;
    return ((stub *)reader)->fails;
}

static int stub_reset(leat_reader *reader)
{
    return ((stub *)reader)->fails;
}

static int stub_keep(leat_reader *reader, leat_token *token)
{
    (void)token;
    return ((stub *)reader)->fails;
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
    self.ops.fields = stub_fields;
    self.ops.reset = stub_reset;
    self.ops.save = stub_keep;
    self.ops.restore = stub_keep;
    self.ops.locate = stub_locate;
    self.ops.read_located = stub_read_located;
    self.nfields = 1;
    self.ops.advise = stub_advise;
}

START_TEST(a_table_of_an_older_header_ends_earlier)
{
    int64_t n;
    self.ops.size = offsetof(leat_reader_ops, seek);
    ck_assert_int_eq(leat_reader_count(&self.reader, &n), LEAT_OK);
    ck_assert_int_eq(leat_reader_is_random_access(&self.reader), 1);
    ck_assert_int_eq(
        leat_reader_seek(&self.reader, (leat_position){0, 0}, NULL),
        LEAT_EUNSUPPORTED);
    ck_assert_str_eq(leat_last_error(), "the reader \"stub\" cannot seek");
    self.ops.size = offsetof(leat_reader_ops, read_at);
    ck_assert_int_eq(leat_reader_is_random_access(&self.reader), 0);
    self.ops.size = sizeof(self.ops);
    ck_assert_int_eq(
        leat_reader_seek(&self.reader, (leat_position){0, 0}, NULL), LEAT_OK);
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

START_TEST(a_reader_that_does_not_locate_is_not_asked_to)
{
    leat_locator locator = {0};
    leat_sample sample;
    leat_sample *const out = &sample;
    int got = 7;
    self.ops.locate = NULL;
    ck_assert_int_eq(leat_reader_locate(&self.reader, &locator, 1, &got),
                     LEAT_EUNSUPPORTED);
    ck_assert_int_eq(got, 0);
    got = 7;
    ck_assert_int_eq(
        leat_reader_read_located(&self.reader, &locator, &out, 1, &got),
        LEAT_EUNSUPPORTED);
    ck_assert_int_eq(got, 0);
    ck_assert_int_eq(self.read, 0);
}
END_TEST

START_TEST(no_samples_at_all_are_not_located)
{
    leat_locator locator = {0};
    leat_sample *const *none = NULL;
    int got = 7;
    for (int n = -1; n < 1; n++) {
        ck_assert_int_eq(leat_reader_locate(&self.reader, &locator, n, &got),
                         LEAT_EINVAL);
        ck_assert_int_eq(
            leat_reader_read_located(&self.reader, &locator, none, n, &got),
            LEAT_OK);
        ck_assert_int_eq(got, 0);
    }
    ck_assert_int_eq(self.read, 0);
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

#define WAYS 5

/* The status of each way to read two samples, or one; or to locate them. */
static int read_by(int way)
{
    leat_locator locator[2] = {{0}};
    const int64_t index[] = {0, 1};
    leat_sample sample;
    leat_sample *const out[] = {&sample, &sample};
    int got;
    if (way == 0)
        return leat_reader_next(&self.reader, &sample);
    if (way == 1) {
        int status = leat_reader_next_batch(&self.reader, out, 2, &got);
        ck_assert_int_eq(got, status ? 0 : 2);
        return status;
    }
    int status =
        way == 2 ? leat_reader_read_at(&self.reader, index, out, 2, &got)
        : way == 3
            ? leat_reader_read_located(&self.reader, locator, out, 2, &got)
            : leat_reader_locate(&self.reader, locator, 2, &got);
    ck_assert_int_eq(got, status ? 0 : 2);
    return status;
}

START_TEST(a_failure_without_a_line_gets_one)
{
    for (int way = 0; way < WAYS; way++) {
        (void)leat_error(LEAT_EIO, "an older line");
        self.status = LEAT_EDATA;
        ck_assert_int_eq(read_by(way), LEAT_EDATA);
        /* Only what reads a record can name it. */
        ck_assert_str_eq(
            leat_last_error(),
            way < WAYS - 1
                ? "the reader \"stub\": record 31 is bad; it gave no reason"
                : "the reader \"stub\": a record is bad");
        self.status = LEAT_END;
        (void)leat_error(LEAT_EIO, "an older line");
        ck_assert_int_eq(read_by(way), LEAT_END);
        ck_assert_str_eq(leat_last_error(), "an older line");
    }
}
END_TEST

static int ask(int what)
{
    const int64_t index = 0;
    const leat_field_spec *fields;
    leat_sample sample;
    leat_sample *const out = &sample;
    int64_t count;
    int n;
    switch (what) {
    case 0:
        return leat_reader_fields(&self.reader, &fields, &n);
    case 1:
        return leat_reader_seek(&self.reader, (leat_position){0, 0}, NULL);
    case 2:
        return leat_reader_count(&self.reader, &count);
    case 3:
        return leat_reader_seek(&self.reader, (leat_position){0, 0}, NULL);
    case 4:
        return leat_reader_save(&self.reader, NULL);
    case 5:
        return leat_reader_restore(&self.reader, NULL);
    default:
        return leat_reader_read_at(&self.reader, &index, &out, 1, &n);
    }
}

START_TEST(so_does_one_of_any_other_operation)
{
    self.fails = LEAT_EIO;
    for (int what = 0; what <= 6; what++) {
        (void)leat_error(LEAT_EDATA, "an older line");
        ck_assert_int_eq(ask(what), LEAT_EIO);
        ck_assert_str_eq(
            leat_last_error(),
            "the reader \"stub\": the operating system reported an error");
    }
}
END_TEST

START_TEST(a_reader_that_miscounts_is_told)
{
    for (int way = 0; way < WAYS; way++) {
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

START_TEST(samples_come_with_no_error)
{
    self.gives = 1;
    for (int way = 0; way < WAYS; way++) {
        self.status = LEAT_EDATA;
        ck_assert_int_eq(read_by(way), LEAT_ESTATE);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "with an error"));
        self.status = LEAT_END;
        ck_assert_int_eq(read_by(way), LEAT_ESTATE);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "with LEAT_END"));
    }
}
END_TEST

START_TEST(a_status_that_reading_has_not_is_told)
{
    static const char *const operations[] = {"next", "next", "read_at",
                                             "read_located", "locate"};
    static const int odd[] = {LEAT_AGAIN, -11, -77};
    for (int way = 0; way < WAYS; way++)
        for (int i = 0; i < 3; i++) {
            char told[32];
            snprintf(told, sizeof(told), "%s returned %d,", operations[way],
                     odd[i]);
            self.status = odd[i];
            ck_assert_int_eq(read_by(way), LEAT_ESTATE);
            ck_assert_ptr_nonnull(strstr(leat_last_error(), told));
        }
}
END_TEST

START_TEST(so_it_is_by_any_other_operation)
{
    static const char *const operations[] = {
        "fields", "reset", "count", "seek", "save", "restore", "count"};
    self.fails = -77;
    for (int what = 0; what <= 6; what++) {
        char told[32];
        snprintf(told, sizeof(told), "%s returned -77,", operations[what]);
        ck_assert_int_eq(ask(what), LEAT_ESTATE);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), told));
    }
}
END_TEST

/* All that use a sample go by its number of fields. */
START_TEST(a_number_of_fields_that_no_sample_has_is_told)
{
    static const int wrong[] = {0, -1, LEAT_MAX_FIELDS + 1};
    for (int way = 0; way < WAYS - 1; way++) {
        for (int i = 0; i < 3; i++) {
            self.nfields = wrong[i];
            ck_assert_int_eq(read_by(way), LEAT_ESTATE);
            ck_assert_ptr_nonnull(strstr(leat_last_error(), "nfields"));
        }
        self.nfields = LEAT_MAX_FIELDS;
        ck_assert_int_eq(read_by(way), LEAT_OK);
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
    tcase_add_test(tcase, so_does_one_of_any_other_operation);
    tcase_add_test(tcase, a_reader_that_miscounts_is_told);
    tcase_add_test(tcase, samples_come_with_no_error);
    tcase_add_test(tcase, a_status_that_reading_has_not_is_told);
    tcase_add_test(tcase, so_it_is_by_any_other_operation);
    tcase_add_test(tcase, a_number_of_fields_that_no_sample_has_is_told);
    tcase_add_test(tcase, a_table_of_an_older_header_ends_earlier);
    tcase_add_test(tcase, read_at_without_count_is_no_random_access);
    tcase_add_test(tcase, a_reader_that_does_not_locate_is_not_asked_to);
    tcase_add_test(tcase, no_samples_at_all_are_not_located);
    tcase_add_test(tcase, a_reader_is_not_asked_for_what_is_out_of_range);
    return suite_run(suite);
}
