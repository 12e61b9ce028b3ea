/* The public face of readers: what leat checks, keeps and repeats, over a table
 * that does as it is told. */
#include "base/memory.h"
#include "pipeline/pipeline.h"
#include "pipeline/reader_chain.h"
#include "support/suite.h"

#include <leat/decorators.h>

#include <check.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 5 };

/* A reader that counts how often it is called. */
typedef struct stub {
    leat_reader reader;
    leat_reader_ops ops;
    int advised;
    int read;
    int status;  /* of the reading functions */
    int surplus; /* samples that they report beside all */
    int gives;   /* samples together with an error */
    int nfields; /* of each sample */
    int fails;   /* status of all others */
} stub;

static stub self;
static leat_token untouched; /* to which nothing is appended */
static leat_pipeline *pipeline;

static int stub_count(leat_reader *reader, int64_t *out)
{
    *out = COUNT;
    return ((stub *)reader)->fails;
}

static int stub_read_at(leat_reader *reader, const leat_position at[],
                        leat_sample *const out[], int n, int *got)
{
    (void)at;
    stub *found = (stub *)reader;
    found->read++;
    for (int i = 0; i < n; i++)
        out[i]->nfields = found->nfields;
    out[0]->from.record = 31;
    *got = found->status && !found->gives ? 0 : n + found->surplus;
    return found->status;
}

static int stub_next(leat_reader *reader, leat_sample *const out[], int n,
                     int *got)
{
    return stub_read_at(reader, NULL, out, n, got);
}

static int stub_materialize(leat_reader *reader, leat_sample *const out[],
                            int n, int *got)
{
    return stub_read_at(reader, NULL, out, n, got);
}

static void stub_advise(leat_reader *reader, const leat_position at[], int n)
{
    (void)at;
    ((stub *)reader)->advised += n;
}

static int stub_seek(leat_reader *reader, leat_position position,
                     leat_token *mark)
{
    (void)position;
    (void)mark;
    return ((stub *)reader)->fails;
}

static int stub_fields(leat_reader *reader, const leat_field_spec **out, int *n)
{
    (void)out;
    *n = 0;
    return ((stub *)reader)->fails;
}

static int stub_skip(leat_reader *reader, int64_t n, int64_t *skipped)
{
    stub *found = (stub *)reader;
    *skipped = found->status && !found->gives ? 0 : n + found->surplus;
    return found->status;
}

static int stub_keep(leat_reader *reader, leat_token *token)
{
    (void)token;
    return ((stub *)reader)->fails;
}

static void stub_cancel(leat_reader *reader)
{
    (void)reader;
}

static void stub_close(leat_reader *reader)
{
    (void)reader;
}

static int stub_open(const leat_open *open, leat_reader **out)
{
    (void)open;
    *out = &self.reader;
    return LEAT_OK;
}

static const leat_reader_type stub_type = {
    .size = sizeof(stub_type), .name = "stub", .open = stub_open};

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
    self.ops.save = stub_keep;
    self.ops.restore = stub_keep;
    self.ops.mark = stub_keep;
    self.ops.skip = stub_skip;
    self.ops.materialize = stub_materialize;
    self.ops.advise = stub_advise;
    self.ops.cancel = stub_cancel;
    self.ops.close = stub_close;
    self.nfields = 1;
    ck_assert_int_eq(
        leat_pipeline_create(&pipeline, &stub_type, NULL, NULL, NULL, NULL, 0),
        LEAT_OK);
    leat__reader_chain *chain; /* freed with the reader */
    ck_assert_int_eq(leat__reader_chain_create(&chain, "stub"), LEAT_OK);
    ck_assert_int_eq(leat__reader_attach(&self.reader, pipeline, NULL, 0, 1,
                                         &chain->reader[0]),
                     LEAT_OK);
    self.reader.state->is_part = true; /* its mark is what the table writes */
}

static void tear_down(void)
{
    leat_reader_close(&self.reader);
    leat_pipeline_unref(pipeline);
}

/* Clears what the last status left. */
static void restart(void)
{
    ck_assert_int_eq(
        leat_reader_seek(&self.reader, (leat_position){0, 0}, NULL), LEAT_OK);
}

START_TEST(a_table_of_an_older_header_ends_earlier)
{
    int64_t n;
    self.ops.size = offsetof(leat_reader_ops, read_at);
    ck_assert_int_eq(leat_reader_count(&self.reader, &n), LEAT_OK);
    ck_assert_int_eq(leat_reader_is_random_access(&self.reader), 0);
    self.ops.size = offsetof(leat_reader_ops, save);
    ck_assert_int_eq(leat_reader_is_random_access(&self.reader), 1);
    ck_assert_int_eq(leat_reader_save(&self.reader, &untouched),
                     LEAT_EUNSUPPORTED);
    ck_assert_str_eq(leat_last_error(),
                     "the reader \"stub\" cannot save its state");
    ck_assert_int_eq(leat_reader_has_mark(&self.reader), 1);
    self.ops.size = offsetof(leat_reader_ops, mark);
    ck_assert_int_eq(leat_reader_has_mark(&self.reader), 0);
    self.ops.size = sizeof(self.ops);
    ck_assert_int_eq(leat_reader_save(&self.reader, &untouched), LEAT_OK);
}
END_TEST

START_TEST(read_at_without_count_is_no_random_access)
{
    const leat_position at = {0, 0};
    leat_sample sample;
    leat_sample *const out = &sample;
    int got = 7;
    leat_sample_init(&sample);
    self.ops.count = NULL;
    ck_assert_int_eq(leat_reader_is_random_access(&self.reader), 0);
    ck_assert_int_eq(leat_reader_read_at(&self.reader, &at, &out, 1, &got),
                     LEAT_EUNSUPPORTED);
    ck_assert_int_eq(got, 0);
    leat_reader_advise(&self.reader, &at, 1);
    ck_assert_int_eq(self.read + self.advised, 0);
}
END_TEST

START_TEST(no_samples_at_all_are_not_read)
{
    leat_sample *const *none = NULL;
    int64_t skipped = 7;
    for (int n = -1; n < 1; n++) {
        int got = 7;
        ck_assert_int_eq(leat_reader_next_batch(&self.reader, none, n, &got),
                         LEAT_EINVAL);
        ck_assert_int_eq(got, 0);
        ck_assert_int_eq(leat_reader_pull(&self.reader, none, n, &got),
                         LEAT_EINVAL);
        got = 7;
        ck_assert_int_eq(leat_reader_materialize(&self.reader, none, n, &got),
                         LEAT_OK);
        ck_assert_int_eq(got, 0);
        ck_assert_int_eq(leat_reader_skip(&self.reader, n, &skipped),
                         n < 0 ? LEAT_EINVAL : LEAT_OK);
        ck_assert_int_eq(skipped, 0);
    }
    ck_assert_int_eq(self.read, 0);
}
END_TEST

START_TEST(a_reader_is_not_asked_for_what_is_out_of_range)
{
    const leat_position good[] = {{3, 0}, {0, COUNT - 1}};
    const leat_position wrong[][2] = {
        {{0, 0}, {0, COUNT}}, {{0, -1}, {0, 0}}, {{0, 0}, {0, INT64_MAX}}};
    leat_sample sample;
    leat_sample *const out[] = {&sample, &sample};
    int got;
    leat_sample_init(&sample);
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

enum { WAYS = 4 };

static const char *const operations[WAYS] = {"next", "next", "read_at",
                                             "materialize"};

/* The status of each way to read two samples, or one. */
static int read_by(int way)
{
    const leat_position at[] = {{0, 0}, {0, 1}};
    leat_sample sample[2];
    leat_sample *const out[] = {&sample[0], &sample[1]};
    int got;
    for (int i = 0; i < 2; i++)
        leat_sample_init(out[i]);
    if (way == 0)
        return leat_reader_next(&self.reader, &sample[0]);
    sample[0].deferred = sample[1].deferred = way == 3;
    int status = way == 1 ? leat_reader_next_batch(&self.reader, out, 2, &got)
                 : way == 2
                     ? leat_reader_read_at(&self.reader, at, out, 2, &got)
                     : leat_reader_materialize(&self.reader, out, 2, &got);
    ck_assert_int_eq(got, status ? 0 : 2);
    return status;
}

START_TEST(a_failure_without_a_line_gets_one)
{
    for (int way = 0; way < WAYS; way++) {
        (void)leat_error(LEAT_EIO, "an older line");
        self.status = LEAT_EDATA;
        ck_assert_int_eq(read_by(way), LEAT_EDATA);
        ck_assert_str_eq(
            leat_last_error(),
            "the reader \"stub\": record 31 is bad; it gave no reason");
        restart();
        self.status = LEAT_EIO;
        (void)leat_error(LEAT_EDATA, "an older line");
        ck_assert_int_eq(read_by(way), LEAT_EIO);
        ck_assert_str_eq(
            leat_last_error(),
            "the reader \"stub\": the operating system reported an error");
        restart();
        self.status = LEAT_END;
        (void)leat_error(LEAT_EIO, "an older line");
        ck_assert_int_eq(read_by(way), way < 2 ? LEAT_END : LEAT_ESTATE);
        ck_assert_str_eq(
            leat_last_error(),
            way < 2    ? "an older line"
            : way == 2 ? "the reader \"stub\": read_at returned LEAT_END"
                       : "the reader \"stub\": materialize returned LEAT_END");
        restart();
    }
}
END_TEST

enum { OTHERS = 8 };

static int ask(int what)
{
    const leat_position at = {0, 0};
    const leat_field_spec *fields;
    leat_sample sample;
    leat_sample *const out = &sample;
    int64_t count;
    int n;
    leat_sample_init(&sample);
    switch (what) {
    case 0:
        return leat_reader_fields(&self.reader, &fields, &n);
    case 1:
        return leat_reader_seek(&self.reader, at, NULL);
    case 2:
        return leat_reader_count(&self.reader, &count);
    case 3:
        return leat_reader_mark(&self.reader, &untouched);
    case 4:
        return leat_reader_save(&self.reader, &untouched);
    case 5:
        return leat_reader_restore(&self.reader, NULL);
    case 6:
        self.status = self.fails;
        return leat_reader_skip(&self.reader, 3, &count);
    default:
        return leat_reader_read_at(&self.reader, &at, &out, 1, &n);
    }
}

START_TEST(so_does_one_of_any_other_operation)
{
    self.fails = LEAT_EIO;
    for (int what = 0; what < OTHERS; what++) {
        (void)leat_error(LEAT_EDATA, "an older line");
        ck_assert_int_eq(ask(what), LEAT_EIO);
        ck_assert_str_eq(
            leat_last_error(),
            "the reader \"stub\": the operating system reported an error");
    }
}
END_TEST

/* LEAT_EDATA concerns a record, which these do not. */
START_TEST(a_bad_record_is_no_error_of_other_operations)
{
    static const int of[] = {1, 3, 4, 5};
    self.fails = LEAT_EDATA;
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(ask(of[i]), LEAT_EFORMAT);
}
END_TEST

START_TEST(after_a_seek_or_restore_that_failed_there_are_no_samples)
{
    static const struct {
        int fails, status[2];
    } cases[] = {{LEAT_EIO, {LEAT_EIO, LEAT_EIO}},
                 {LEAT_EDATA, {LEAT_EFORMAT, LEAT_EFORMAT}},
                 {LEAT_EUNSUPPORTED, {LEAT_OK, LEAT_OK}},
                 {LEAT_EINVAL, {LEAT_OK, LEAT_EINVAL}}};
    for (int i = 0; i < 8; i++) {
        const leat_position at = {0, 3};
        int restores = i % 2;
        self.fails = cases[i / 2].fails;
        ck_assert_int_lt(restores ? leat_reader_restore(&self.reader, NULL)
                                  : leat_reader_seek(&self.reader, at, NULL),
                         0);
        for (int way = 0; way < 2; way++)
            ck_assert_int_eq(read_by(way), cases[i / 2].status[restores]);
        self.fails = LEAT_OK;
        if (i < 4)
            restart();
        else
            ck_assert_int_eq(leat_reader_restore(&self.reader, NULL), LEAT_OK);
        ck_assert_int_eq(read_by(0), LEAT_OK);
    }
}
END_TEST

START_TEST(a_wrong_number_of_samples_is_an_error)
{
    for (int way = 0; way < WAYS; way++) {
        self.surplus = 0;
        ck_assert_int_eq(read_by(way), LEAT_OK);
        self.surplus = 1;
        ck_assert_int_eq(read_by(way), LEAT_ESTATE);
        restart();
        self.surplus = -2;
        ck_assert_int_eq(read_by(way), LEAT_ESTATE);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "expected 1 to"));
        restart();
    }
    int64_t skipped;
    static const int wrong[] = {1, -3, -4};
    for (int i = 0; i < 3; i++) {
        self.surplus = wrong[i];
        ck_assert_int_eq(leat_reader_skip(&self.reader, 3, &skipped),
                         LEAT_ESTATE);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "skip reports"));
        ck_assert_int_eq(skipped, 0);
    }
}
END_TEST

START_TEST(an_error_concerns_a_sample_that_was_not_given)
{
    self.gives = 1;
    for (int way = 0; way < WAYS; way++) {
        self.status = LEAT_EDATA;
        ck_assert_int_eq(read_by(way), LEAT_ESTATE);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "concerns none"));
        restart();
    }
}
END_TEST

START_TEST(an_unknown_status_is_an_error)
{
    static const int odd[] = {LEAT_AGAIN, -11, -77};
    for (int way = 0; way < WAYS; way++)
        for (int i = 0; i < 3; i++) {
            char line[32];
            snprintf(line, sizeof(line), "%s returned %d,", operations[way],
                     odd[i]);
            self.status = odd[i];
            ck_assert_int_eq(read_by(way), LEAT_ESTATE);
            ck_assert_ptr_nonnull(strstr(leat_last_error(), line));
            restart();
        }
}
END_TEST

START_TEST(so_it_is_of_any_other_operation)
{
    static const char *const names[OTHERS] = {
        "fields", "seek", "count", "mark", "save", "restore", "skip", "count"};
    self.fails = -77;
    for (int what = 0; what < OTHERS; what++) {
        char line[32];
        snprintf(line, sizeof(line), "%s returned -77,", names[what]);
        ck_assert_int_eq(ask(what), LEAT_ESTATE);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), line));
        self.fails = LEAT_OK;
        restart();
        self.fails = -77;
    }
}
END_TEST

/* All that use a sample go by its number of fields. */
START_TEST(an_impossible_number_of_fields_is_an_error)
{
    static const int wrong[] = {0, -1, LEAT_MAX_FIELDS + 1};
    for (int way = 0; way < WAYS; way++) {
        for (int i = 0; i < 3; i++) {
            self.nfields = wrong[i];
            ck_assert_int_eq(read_by(way), LEAT_ESTATE);
            ck_assert_ptr_nonnull(strstr(leat_last_error(), "nfields"));
            restart();
        }
        self.nfields = LEAT_MAX_FIELDS;
        ck_assert_int_eq(read_by(way), LEAT_OK);
    }
}
END_TEST

static stub upstream;

static int upstream_open(const leat_open *open, leat_reader **out)
{
    (void)open;
    *out = &upstream.reader;
    return LEAT_OK;
}

static int one_field(leat_reader *reader, const leat_field_spec **out, int *n)
{
    static const leat_field_spec field = {.name = "x", .dtype = LEAT_INT32};
    (void)reader;
    *out = &field;
    *n = 1;
    return LEAT_OK;
}

static int keep_all(void *user, const leat_sample *sample, int *keep)
{
    (void)user;
    (void)sample;
    *keep = 1;
    return LEAT_OK;
}

/* Of one that defers, but not these samples, before they are used. */
START_TEST(so_it_is_of_a_reader_below_another)
{
    static const leat_reader_type type = {
        .size = sizeof(type), .name = "upstream", .open = upstream_open};
    static const int wrong[] = {0, -1, LEAT_MAX_FIELDS + 1, 1000000};
    upstream = self;
    upstream.reader = (leat_reader){.ops = &upstream.ops};
    upstream.ops.fields = one_field;
    upstream.ops.mark = NULL;
    for (int i = 0; i < 4; i++) {
        leat_pipeline *below, *above;
        leat_reader *reader;
        leat_sample sample;
        leat_sample_init(&sample);
        upstream.nfields = wrong[i];
        ck_assert_int_eq(
            leat_pipeline_create(&below, &type, NULL, NULL, NULL, NULL, 0),
            LEAT_OK);
        ck_assert_int_eq(
            leat_pipeline_filter(&above, below, keep_all, NULL, 1, NULL),
            LEAT_OK);
        int status = leat_pipeline_open(above, &reader);
        ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_ESTATE);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "nfields"));
        sample.nfields = 0;
        leat_sample_finish(&sample);
        leat_reader_close(reader);
        leat_pipeline_unref(above);
        leat_pipeline_unref(below);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reader");
    TCase *tcase = tcase_create("reader");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_failure_without_a_line_gets_one);
    tcase_add_test(tcase, so_does_one_of_any_other_operation);
    tcase_add_test(tcase, a_bad_record_is_no_error_of_other_operations);
    tcase_add_test(tcase,
                   after_a_seek_or_restore_that_failed_there_are_no_samples);
    tcase_add_test(tcase, a_wrong_number_of_samples_is_an_error);
    tcase_add_test(tcase, an_error_concerns_a_sample_that_was_not_given);
    tcase_add_test(tcase, an_unknown_status_is_an_error);
    tcase_add_test(tcase, so_it_is_of_any_other_operation);
    tcase_add_test(tcase, an_impossible_number_of_fields_is_an_error);
    tcase_add_test(tcase, so_it_is_of_a_reader_below_another);
    tcase_add_test(tcase, a_table_of_an_older_header_ends_earlier);
    tcase_add_test(tcase, read_at_without_count_is_no_random_access);
    tcase_add_test(tcase, no_samples_at_all_are_not_read);
    tcase_add_test(tcase, a_reader_is_not_asked_for_what_is_out_of_range);
    return suite_run(suite);
}
