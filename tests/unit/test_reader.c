/* The public face of readers: what leat checks, keeps and repeats, over a table
 * that does as it is told. */
#include "base/memory.h"
#include "pipeline/pipeline.h"
#include "pipeline/reader_chain.h"
#include "support/suite.h"

#include <check.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 5, SCRIPT_MAX = 40 };

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
    ck_assert_int_eq(
        leat__reader_attach(&self.reader, pipeline, NULL, 1, &chain->reader[0]),
        LEAT_OK);
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
    ck_assert_int_eq(leat_reader_save(&self.reader, NULL), LEAT_EUNSUPPORTED);
    ck_assert_str_eq(leat_last_error(),
                     "the reader \"stub\" cannot save its state");
    ck_assert_int_eq(leat_reader_has_mark(&self.reader), 1);
    self.ops.size = offsetof(leat_reader_ops, mark);
    ck_assert_int_eq(leat_reader_has_mark(&self.reader), 0);
    self.ops.size = sizeof(self.ops);
    ck_assert_int_eq(leat_reader_save(&self.reader, NULL), LEAT_OK);
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
        ck_assert_int_eq(read_by(way), way == 3 ? LEAT_ESTATE : LEAT_END);
        ck_assert_str_eq(leat_last_error(),
                         way == 3 ? "the reader \"stub\": materialize returned "
                                    "LEAT_END"
                                  : "an older line");
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
        return leat_reader_mark(&self.reader, NULL);
    case 4:
        return leat_reader_save(&self.reader, NULL);
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

/*
 * A table that follows a script, a letter a record: g given, d deferred and
 * good, x a bad record, D deferred and bad, ! an error of the reader, ?
 * deferred and an error of it. The end follows the last letter.
 */
static struct script {
    const char *letters;
    int64_t at;
    int nexts, seeks, skips, materialized;
    leat_position sought;
    int in_order; /* seek knows no index but 0 */
} script;

static int script_error(leat_sample *sample, int64_t record, char letter)
{
    sample->from.source = "script";
    sample->from.record = record;
    int status = letter == 'x' || letter == 'D' ? LEAT_EDATA : LEAT_EIO;
    return leat_error(status, "record %lld fails", (long long)record);
}

static void script_fill(leat_sample *sample, int64_t record)
{
    int32_t *value = leat_sample_take(sample, sizeof(*value));
    *value = (int32_t)record;
    sample->stable = 0;
    ck_assert_int_eq(
        leat_sample_set(sample, sample->nfields, LEAT_INT32, 0, NULL, value),
        LEAT_OK);
    sample->from.source = "script";
    sample->from.record = record;
}

static int script_next(leat_reader *reader, leat_sample *const out[], int n,
                       int *got)
{
    (void)reader;
    script.nexts++;
    ck_assert_int_eq(*got, 0);
    for (; *got < n; ++*got) {
        int64_t record = script.at;
        char letter = script.letters[record];
        if (letter == '\0')
            return LEAT_END;
        script.at++;
        if (letter == 'x' || letter == '!')
            return script_error(out[*got], record, letter);
        if (letter == 'g') {
            script_fill(out[*got], record);
            continue;
        }
        out[*got]->deferred = 1;
        out[*got]->locator.record = record;
    }
    return LEAT_OK;
}

static int script_materialize(leat_reader *reader, leat_sample *const out[],
                              int n, int *got)
{
    (void)reader;
    for (; *got < n; ++*got) {
        int64_t record = out[*got]->locator.record;
        char letter = script.letters[record];
        ck_assert_int_eq(out[*got]->deferred, 1);
        script.materialized++;
        if (letter != 'd')
            return script_error(out[*got], record, letter);
        script_fill(out[*got], record);
    }
    return LEAT_OK;
}

static int script_seek(leat_reader *reader, leat_position position,
                       leat_token *mark)
{
    (void)reader;
    int64_t index = position.index;
    script.seeks++;
    script.sought = position;
    if (mark) {
        int status = leat_token_get(mark, &index, sizeof(index));
        if (status)
            return status;
    } else if (index > 0 && script.in_order) {
        return leat_error(LEAT_EUNSUPPORTED, "script: in order alone");
    }
    script.at = index;
    return LEAT_OK;
}

static int script_skip(leat_reader *reader, int64_t n, int64_t *skipped)
{
    (void)reader;
    script.skips++;
    for (*skipped = 0; *skipped < n; ++*skipped) {
        char letter = script.letters[script.at];
        if (letter == '\0')
            return LEAT_END;
        script.at++;
        if (letter == '!')
            return leat_error(LEAT_EIO, "record %lld fails",
                              (long long)script.at - 1);
    }
    return LEAT_OK;
}

static int script_mark(leat_reader *reader, leat_token *token)
{
    (void)reader;
    return leat_token_put(token, &script.at, sizeof(script.at));
}

static leat_sample samples[SCRIPT_MAX];
static leat_sample *out[SCRIPT_MAX];

static void follow(const char *letters)
{
    memset(&script, 0, sizeof(script));
    script.letters = letters;
    self.ops.next = script_next;
    self.ops.materialize = script_materialize;
    self.ops.seek = script_seek;
    self.ops.skip = NULL;
    self.ops.mark = NULL;
    restart();
}

static void set_up_script(void)
{
    set_up();
    for (int i = 0; i < SCRIPT_MAX; i++)
        leat_sample_init(out[i] = &samples[i]);
}

static void tear_down_script(void)
{
    for (int i = 0; i < SCRIPT_MAX; i++)
        leat_sample_finish(out[i]);
    tear_down();
}

static int go_to(int64_t epoch, int64_t index)
{
    return leat_reader_seek(&self.reader, (leat_position){epoch, index}, NULL);
}

static void check_sample(const leat_sample *sample, int64_t record)
{
    ck_assert_int_eq(sample->nfields, 1);
    ck_assert_int_eq(*(const int32_t *)sample->field[0].data, record);
    ck_assert_int_eq(sample->from.record, record);
    ck_assert_int_eq(sample->deferred, 0);
}

/* The status and record that a letter gives, whoever does the work. */
static int status_of(char letter)
{
    return letter == '\0'                   ? LEAT_END
           : letter == 'g' || letter == 'd' ? LEAT_OK
           : letter == 'x' || letter == 'D' ? LEAT_EDATA
                                            : LEAT_EIO;
}

static void check_line(int64_t record)
{
    char line[32];
    snprintf(line, sizeof(line), "record %lld fails", (long long)record);
    ck_assert_str_eq(leat_last_error(), line);
}

/* Reads on at `record` to the end or the first error of the reader. */
static int64_t read_script(int64_t record, int n)
{
    for (;;) {
        int got = -1;
        int status = leat_reader_next_batch(&self.reader, out, n, &got);
        ck_assert_int_le(got, n);
        ck_assert_int_ge(got, status == LEAT_OK);
        for (int i = 0; i < got; i++)
            check_sample(out[i], record++);
        if (!status)
            continue;
        ck_assert_int_eq(status, status_of(script.letters[record]));
        if (status == LEAT_END)
            return record;
        check_line(record);
        if (status != LEAT_EDATA)
            return record;
        ck_assert_int_eq(out[got]->from.record, record);
        ck_assert_str_eq(out[got]->from.source, "script");
        record++;
    }
}

static const char *const scripts[] = {
    "",
    "g",
    "d",
    "ggggg",
    "ddddd",
    "gdgdgdgd",
    "ggxgg",
    "ddDdd",
    "xgggx",
    "DdddD",
    "xxggxx",
    "DDddDD",
    "gxDdgDxgd",
    "dDgxdDgx",
    "DxDxDx",
    "gdDgdxgdDgdxgdDgdx",
    "dDdDdDdDdDdDdDdD",
    "ddddDddddDdddd",
};
enum { SCRIPTS = sizeof(scripts) / sizeof(scripts[0]) };

START_TEST(samples_and_errors_come_in_order_at_any_number_a_call)
{
    follow(scripts[_i]);
    for (int n = 1; n < 12; n++) {
        int64_t size = (int64_t)strlen(scripts[_i]);
        ck_assert_int_eq(read_script(0, n), size);
        ck_assert_int_eq(leat_reader_next(&self.reader, out[0]), LEAT_END);
        restart();
    }
}
END_TEST

/* A smaller call after a larger one, whose rest is still held. */
START_TEST(calls_of_changing_size_lose_no_sample)
{
    const int64_t size = (int64_t)strlen(scripts[_i]);
    for (int first = 2; first < 9; first++)
        for (int n = 1; n < 5; n++) {
            int got;
            follow(scripts[_i]);
            int status = leat_reader_next_batch(&self.reader, out, first, &got);
            int64_t record = got;
            for (int i = 0; i < got; i++)
                check_sample(out[i], i);
            ck_assert(!status || status == status_of(scripts[_i][record]));
            record += status == LEAT_EDATA;
            ck_assert_int_eq(read_script(record, n), size);
        }
}
END_TEST

START_TEST(pulled_samples_are_completed_by_materialize)
{
    const char *letters = scripts[_i];
    int n = (int)strlen(letters);
    follow(letters);
    for (int record = 0; record < n;) {
        int got = 0, done = 0;
        for (int i = 0; i < n; i++)
            leat_sample_clear(out[i]);
        int status = leat_reader_pull(&self.reader, out, n, &got);
        ck_assert(status == LEAT_OK || (status == LEAT_EDATA && got == 0));
        while (done < got) {
            int more;
            status = leat_reader_materialize(&self.reader, out + done,
                                             got - done, &more);
            for (int i = 0; i < more; i++)
                check_sample(out[done + i], record++);
            done += more;
            ck_assert_int_eq(status, done < got ? LEAT_EDATA : LEAT_OK);
            if (done < got) {
                ck_assert_int_eq(letters[record], 'D');
                check_line(record++);
                done++;
            }
        }
        if (got == 0) {
            ck_assert_int_eq(letters[record], 'x');
            check_line(record++);
        }
    }
    int got;
    ck_assert_int_eq(leat_reader_pull(&self.reader, out, 1, &got), LEAT_END);
}
END_TEST

START_TEST(materialize_leaves_complete_samples_alone)
{
    int got;
    follow("gdgddg");
    ck_assert_int_eq(leat_reader_pull(&self.reader, out, 6, &got), LEAT_OK);
    ck_assert_int_eq(got, 6);
    ck_assert_int_eq(leat_reader_materialize(&self.reader, out, 6, &got),
                     LEAT_OK);
    ck_assert_int_eq(got, 6);
    ck_assert_int_eq(script.materialized, 3);
    ck_assert_int_eq(leat_reader_materialize(&self.reader, out, 6, &got),
                     LEAT_OK);
    ck_assert_int_eq(script.materialized, 3);
    for (int i = 0; i < 6; i++)
        check_sample(out[i], i);
}
END_TEST

START_TEST(a_deferred_sample_needs_materialize)
{
    follow("gd");
    self.ops.materialize = NULL;
    ck_assert_int_eq(leat_reader_next(&self.reader, out[0]), LEAT_OK);
    ck_assert_int_eq(leat_reader_next(&self.reader, out[0]), LEAT_ESTATE);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "lacks \"materialize\""));
}
END_TEST

/* Readers that join samples append to what other readers gave. */
START_TEST(pull_appends_and_next_clears)
{
    int got;
    follow("gdgd");
    for (int i = 0; i < 2; i++)
        script_fill(out[i], 100);
    ck_assert_int_eq(leat_reader_pull(&self.reader, out, 2, &got), LEAT_OK);
    ck_assert_int_eq(leat_reader_materialize(&self.reader, out, 2, &got),
                     LEAT_OK);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(out[i]->nfields, 2);
        ck_assert_int_eq(*(const int32_t *)out[i]->field[0].data, 100);
        ck_assert_int_eq(*(const int32_t *)out[i]->field[1].data, i);
    }
    ck_assert_int_eq(leat_reader_next_batch(&self.reader, out, 2, &got),
                     LEAT_OK);
    check_sample(out[0], 2);
    check_sample(out[1], 3);
}
END_TEST

START_TEST(a_bad_record_after_good_ones_is_told_with_its_line_and_key)
{
    follow("ggxg");
    int got;
    ck_assert_int_eq(leat_reader_next_batch(&self.reader, out, 4, &got),
                     LEAT_OK);
    ck_assert_int_eq(got, 2);
    (void)leat_error(LEAT_EIO, "another line");
    out[0]->from.epoch = 3;
    out[0]->from.position = 8;
    ck_assert_int_eq(leat_reader_next_batch(&self.reader, out, 4, &got),
                     LEAT_EDATA);
    ck_assert_int_eq(got, 0);
    check_line(2);
    ck_assert_int_eq(out[0]->from.record, 2);
    ck_assert_str_eq(out[0]->from.source, "script");
    /* The layer's part of it stays. */
    ck_assert_int_eq(out[0]->from.epoch, 3);
    ck_assert_int_eq(out[0]->from.position, 8);
    ck_assert_int_eq(script.nexts, 1);
    ck_assert_int_eq(read_script(3, 4), 4);
}
END_TEST

static const char *long_key;
static size_t long_key_size;

/* Two good samples, and a bad one whose key lies in a buffer of its own. */
static int keyed_next(leat_reader *reader, leat_sample *const into[], int n,
                      int *got)
{
    char *key;
    (void)reader;
    ck_assert_int_ge(n, 3);
    script_fill(into[0], 0);
    script_fill(into[1], 1);
    *got = 2;
    ck_assert_ptr_nonnull(key = leat_sample_take(into[2], long_key_size));
    memcpy(key, long_key, long_key_size);
    into[2]->from =
        (leat_provenance){.record = 2, .key = key, .key_size = long_key_size};
    return leat_error(LEAT_EDATA, "bad");
}

/* The buffer of the sample in which it was read is refilled meanwhile. */
START_TEST(the_key_of_a_kept_record_is_a_copy_of_64_bytes)
{
    static const char all[100] = "0123456789";
    static const size_t sizes[] = {1, 63, 64, 65, 100};
    int got;
    long_key = all;
    follow("");
    self.ops.next = keyed_next;
    for (int i = 0; i < 5; i++) {
        long_key_size = sizes[i];
        ck_assert_int_eq(leat_reader_next_batch(&self.reader, out, 5, &got),
                         LEAT_OK);
        memset(out[2]->buffer, 'x', out[2]->buffer_size);
        ck_assert_int_eq(leat_reader_next(&self.reader, out[3]), LEAT_EDATA);
        size_t kept = sizes[i] < 64 ? sizes[i] : 64;
        /* Its source is unknown; the record is not. */
        ck_assert_int_eq(out[3]->from.record, 2);
        ck_assert_uint_eq(out[3]->from.key_size, kept);
        ck_assert_mem_eq(out[3]->from.key, all, kept);
        ck_assert_uint_eq(out[3]->from.key_cut, sizes[i] - kept);
    }
}
END_TEST

START_TEST(the_end_and_errors_are_repeated_until_seek)
{
    static const char *const ends[] = {"", "gg", "!g", "gg!g"};
    for (int i = 0; i < 4; i++)
        for (int n = 1; n < 4; n++) {
            int got;
            follow(ends[i]);
            int64_t record = read_script(0, n);
            int status = status_of(ends[i][record]);
            int nexts = script.nexts;
            for (int k = 0; k < 3; k++) {
                int64_t skipped = -1;
                (void)leat_error(LEAT_EINVAL, "another line");
                ck_assert_int_eq(
                    leat_reader_next_batch(&self.reader, out, n, &got), status);
                ck_assert_int_eq(got, 0);
                if (status != LEAT_END)
                    check_line(record);
                ck_assert_int_eq(leat_reader_pull(&self.reader, out, n, &got),
                                 status);
                ck_assert_int_eq(leat_reader_skip(&self.reader, 2, &skipped),
                                 status);
                ck_assert_int_eq(skipped, 0);
            }
            ck_assert_int_eq(script.nexts, nexts);
            restart();
            ck_assert_int_eq(read_script(0, n), record);
            ck_assert_int_eq(leat_reader_restore(&self.reader, NULL), LEAT_OK);
            script.at = 0; /* the stub's restore does nothing */
            ck_assert_int_eq(read_script(0, n), record);
        }
}
END_TEST

START_TEST(an_error_of_materialize_is_repeated_until_seek)
{
    for (int n = 1; n < 6; n++) {
        follow("dg?dgd");
        ck_assert_int_eq(read_script(0, n), 2);
        for (int k = 0; k < 2; k++) {
            int got;
            (void)leat_error(LEAT_EINVAL, "another line");
            ck_assert_int_eq(leat_reader_next_batch(&self.reader, out, n, &got),
                             LEAT_EIO);
            ck_assert_int_eq(got, 0);
            check_line(2);
        }
        ck_assert_int_eq(go_to(0, 3), LEAT_OK);
        ck_assert_int_eq(read_script(3, n), 6);
    }
}
END_TEST

START_TEST(seek_drops_what_was_kept_and_held)
{
    static const char *const kept[] = {"gggxgg", "dddDdd", "ggg!gg"};
    for (int i = 0; i < 3; i++) {
        int got;
        follow(kept[i]);
        int status = leat_reader_next_batch(&self.reader, out, 6, &got);
        ck_assert_int_eq(got, 3);
        ck_assert_int_eq(status, i == 1 ? LEAT_EDATA : LEAT_OK);
        ck_assert_int_eq(go_to(0, 1), LEAT_OK);
        ck_assert_int_eq(leat_reader_next(&self.reader, out[0]), LEAT_OK);
        check_sample(out[0], 1);
        /* A failed seek changes nothing. */
        ck_assert_int_eq(go_to(0, 0), LEAT_OK);
        (void)leat_reader_next_batch(&self.reader, out, 6, &got);
        ck_assert_int_eq(go_to(0, -1), LEAT_EINVAL);
        ck_assert_int_eq(go_to(-1, 0), LEAT_EINVAL);
        script.in_order = 1;
        ck_assert_int_eq(go_to(0, 2), LEAT_EUNSUPPORTED);
        if (i != 1)
            ck_assert_int_eq(leat_reader_next(&self.reader, out[0]),
                             status_of(kept[i][3]));
        if (i != 2)
            ck_assert_int_eq(read_script(4, 6), 6);
    }
}
END_TEST

/* One by one, so that each place of what is kept or held is passed. */
START_TEST(skip_passes_good_and_bad_records_alike)
{
    const char *letters = scripts[_i];
    int64_t size = (int64_t)strlen(letters);
    for (int with = 0; with < 2; with++)
        for (int first = 0; first < 6; first++)
            for (int64_t n = 0; n < size + 2; n++) {
                int got = 0, status = LEAT_OK;
                int64_t skipped = -1;
                follow(letters);
                self.ops.skip = with ? script_skip : NULL;
                if (first > 0)
                    status =
                        leat_reader_next_batch(&self.reader, out, first, &got);
                int64_t at = got + (status == LEAT_EDATA);
                status = leat_reader_skip(&self.reader, n, &skipped);
                int64_t left = size - at;
                ck_assert_int_eq(status, n > left ? LEAT_END : LEAT_OK);
                ck_assert_int_eq(skipped, n > left ? left : n);
                ck_assert_int_eq(read_script(at + skipped, 3), size);
            }
}
END_TEST

START_TEST(skip_calls_the_table_where_it_can)
{
    int64_t skipped;
    follow("ggggdddd");
    self.ops.skip = script_skip;
    ck_assert_int_eq(leat_reader_skip(&self.reader, 6, &skipped), LEAT_OK);
    ck_assert_int_eq(script.skips, 1);
    ck_assert_int_eq(script.nexts + script.materialized, 0);
    self.ops.skip = NULL;
    ck_assert_int_eq(leat_reader_skip(&self.reader, 1, &skipped), LEAT_OK);
    ck_assert_int_eq(skipped, 1);
    ck_assert_int_gt(script.nexts, 0);
    /* What is dropped is not completed. */
    ck_assert_int_eq(script.materialized, 0);
    ck_assert_int_eq(read_script(7, 2), 8);
}
END_TEST

START_TEST(an_error_on_the_way_ends_skip_and_stays)
{
    for (int with = 0; with < 2; with++) {
        int64_t skipped;
        follow("gxg!gg");
        self.ops.skip = with ? script_skip : NULL;
        for (int k = 0; k < 2; k++) {
            ck_assert_int_eq(leat_reader_skip(&self.reader, 5, &skipped),
                             LEAT_EIO);
            ck_assert_int_eq(skipped, k == 0 ? 3 : 0);
            check_line(3);
        }
        ck_assert_int_eq(leat_reader_next(&self.reader, out[0]), LEAT_EIO);
        ck_assert_int_eq(go_to(0, 4), LEAT_OK);
        ck_assert_int_eq(read_script(4, 1), 6);
    }
}
END_TEST

/* With the contract of next it stepped over that one, too. */
static int skip_to_bad(leat_reader *reader, int64_t n, int64_t *skipped)
{
    (void)reader;
    for (*skipped = 0; *skipped < n; ++*skipped) {
        char letter = script.letters[script.at];
        if (letter == '\0')
            return LEAT_END;
        if (script.letters[script.at++] == 'x')
            return leat_error(LEAT_EDATA, "a bad record");
    }
    return LEAT_OK;
}

START_TEST(a_skip_that_reports_bad_records_goes_on_after_them)
{
    static const char letters[] = "ggxxgxg";
    for (int64_t n = 1; n < 9; n++) {
        int64_t skipped;
        follow(letters);
        self.ops.skip = skip_to_bad;
        ck_assert_int_eq(leat_reader_skip(&self.reader, n, &skipped),
                         n > 7 ? LEAT_END : LEAT_OK);
        ck_assert_int_eq(skipped, n > 7 ? 7 : n);
        ck_assert_int_eq(read_script(skipped, 2), 7);
    }
}
END_TEST

/* A mark at each record, found again in the same reader. */
static void check_marks(void)
{
    int64_t size = (int64_t)strlen(script.letters);
    for (int64_t to = 0; to <= size; to++)
        for (int64_t epoch = 0; epoch < 3; epoch++) {
            leat_token token;
            int64_t skipped;
            leat_token_init(&token);
            ck_assert_int_eq(leat_token_put(&token, "before", 6), LEAT_OK);
            ck_assert_int_eq(go_to(epoch, 0), LEAT_OK);
            ck_assert_int_eq(leat_reader_skip(&self.reader, to, &skipped),
                             LEAT_OK);
            ck_assert_int_eq(leat_reader_mark(&self.reader, &token), LEAT_OK);
            ck_assert_int_eq(read_script(to, 3), size);
            token.cursor = 6;
            ck_assert_int_eq(leat_reader_seek(&self.reader,
                                              (leat_position){epoch, to},
                                              &token),
                             LEAT_OK);
            ck_assert_uint_eq(token.cursor, token.size);
            ck_assert_int_eq(script.sought.epoch, epoch);
            ck_assert_int_eq(read_script(to, 2), size);
            leat_token_finish(&token);
        }
}

START_TEST(a_mark_leads_back_with_mark_or_without)
{
    follow("gdxgDgxd");
    ck_assert_int_eq(leat_reader_has_mark(&self.reader), 0);
    check_marks(); /* by its position */
    script.in_order = 1;
    check_marks(); /* by its epoch, and reading */
    self.ops.skip = script_skip;
    check_marks(); /* or skipping */
    self.ops.mark = script_mark;
    ck_assert_int_eq(leat_reader_has_mark(&self.reader), 1);
    check_marks(); /* by the table */
}
END_TEST

/* What a call gave no more is not behind the mark. */
START_TEST(a_mark_is_before_what_is_kept_or_held)
{
    static const char *const letters[] = {"ggxgg", "ddDdd", "dDdDd", "gg"};
    for (int i = 0; i < 4; i++) {
        int64_t size = (int64_t)strlen(letters[i]);
        for (int n = 2; n < 6; n++) {
            leat_token token;
            int got;
            leat_token_init(&token);
            follow(letters[i]);
            int status = leat_reader_next_batch(&self.reader, out, n, &got);
            int64_t record = got + (status == LEAT_EDATA);
            ck_assert_int_eq(leat_reader_mark(&self.reader, &token), LEAT_OK);
            ck_assert_int_eq(
                leat_reader_seek(&self.reader, (leat_position){0, 0}, &token),
                LEAT_OK);
            ck_assert_int_eq(read_script(record, 2), size);
            leat_token_finish(&token);
        }
    }
}
END_TEST

/* The reader itself has passed them, and its mark with it. */
START_TEST(a_table_s_mark_waits_for_what_is_kept_or_held)
{
    static const char *const letters[] = {"ggxgg", "ddDdd"};
    for (int i = 0; i < 2; i++) {
        leat_token token;
        int got;
        leat_token_init(&token);
        follow(letters[i]);
        self.ops.mark = script_mark;
        (void)leat_reader_next_batch(&self.reader, out, 5, &got);
        ck_assert_int_eq(got, 2);
        ck_assert_int_eq(leat_reader_mark(&self.reader, &token), LEAT_ESTATE);
        ck_assert_uint_eq(token.size, 0);
        ck_assert_int_eq(read_script(2 + i, 2), 5);
        ck_assert_int_eq(leat_reader_mark(&self.reader, &token), LEAT_OK);
        leat_token_finish(&token);
    }
}
END_TEST

START_TEST(a_mark_cut_or_out_of_range_is_refused)
{
    const leat_position wrong[] = {{-1, 0}, {0, -1}, {INT64_MIN, INT64_MIN}};
    leat_token token;
    follow("ggg");
    for (int with = 0; with < 2; with++) {
        self.ops.mark = with ? script_mark : NULL;
        leat_token_init(&token);
        ck_assert_int_eq(leat_token_put(&token, "1234567", 7), LEAT_OK);
        ck_assert_int_eq(
            leat_reader_seek(&self.reader, (leat_position){0, 0}, &token),
            LEAT_EINVAL);
        leat_token_finish(&token);
    }
    self.ops.mark = NULL;
    for (int i = 0; i < 3; i++) {
        leat_token_init(&token);
        ck_assert_int_eq(leat_token_put(&token, &wrong[i], sizeof(wrong[i])),
                         LEAT_OK);
        ck_assert_int_eq(
            leat_reader_seek(&self.reader, (leat_position){0, 0}, &token),
            LEAT_EINVAL);
        leat_token_finish(&token);
    }
    ck_assert_int_eq(read_script(0, 2), 3);
}
END_TEST

/* Samples that cannot be held are lost: reading on would leave them out. */
START_TEST(no_memory_to_hold_samples_is_an_error_that_stays)
{
    int got;
    follow("dDdd");
    for (int i = 0; i < 4; i++)
        ck_assert_ptr_nonnull(leat_sample_take(out[i], 64));
    leat__alloc_fail_at(0);
    int status = leat_reader_next_batch(&self.reader, out, 4, &got);
    leat__alloc_fail_at(-1);
    ck_assert_int_eq(status, LEAT_ENOMEM);
    ck_assert_int_eq(leat_reader_next_batch(&self.reader, out, 4, &got),
                     LEAT_ENOMEM);
    /* Once every buffer that is swapped around has grown there is room. */
    for (int i = 0; i < 8; i++) {
        restart();
        ck_assert_int_eq(read_script(0, 4), 4);
    }
    int64_t before = leat__alloc_count();
    restart();
    ck_assert_int_eq(read_script(0, 4), 4);
    ck_assert_int_eq(leat__alloc_count(), before);
}
END_TEST

static void add_script_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase,
                        samples_and_errors_come_in_order_at_any_number_a_call,
                        0, SCRIPTS);
    tcase_add_loop_test(tcase, calls_of_changing_size_lose_no_sample, 0,
                        SCRIPTS);
    tcase_add_loop_test(tcase, pulled_samples_are_completed_by_materialize, 0,
                        SCRIPTS);
    tcase_add_loop_test(tcase, skip_passes_good_and_bad_records_alike, 0,
                        SCRIPTS);
    tcase_add_test(tcase, materialize_leaves_complete_samples_alone);
    tcase_add_test(tcase, a_deferred_sample_needs_materialize);
    tcase_add_test(tcase, pull_appends_and_next_clears);
    tcase_add_test(tcase,
                   a_bad_record_after_good_ones_is_told_with_its_line_and_key);
    tcase_add_test(tcase, the_key_of_a_kept_record_is_a_copy_of_64_bytes);
    tcase_add_test(tcase, the_end_and_errors_are_repeated_until_seek);
    tcase_add_test(tcase, an_error_of_materialize_is_repeated_until_seek);
    tcase_add_test(tcase, seek_drops_what_was_kept_and_held);
    tcase_add_test(tcase, skip_calls_the_table_where_it_can);
    tcase_add_test(tcase, an_error_on_the_way_ends_skip_and_stays);
    tcase_add_test(tcase, a_skip_that_reports_bad_records_goes_on_after_them);
    tcase_add_test(tcase, a_mark_leads_back_with_mark_or_without);
    tcase_add_test(tcase, a_mark_is_before_what_is_kept_or_held);
    tcase_add_test(tcase, a_table_s_mark_waits_for_what_is_kept_or_held);
    tcase_add_test(tcase, a_mark_cut_or_out_of_range_is_refused);
    tcase_add_test(tcase, no_memory_to_hold_samples_is_an_error_that_stays);
}

int main(void)
{
    Suite *suite = suite_create("reader");
    TCase *tcase = tcase_create("reader");
    TCase *scripted = tcase_create("script");
    suite_add_tcase(suite, tcase);
    suite_add_tcase(suite, scripted);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_checked_fixture(scripted, set_up_script, tear_down_script);
    tcase_add_test(tcase, a_failure_without_a_line_gets_one);
    tcase_add_test(tcase, so_does_one_of_any_other_operation);
    tcase_add_test(tcase, a_wrong_number_of_samples_is_an_error);
    tcase_add_test(tcase, an_error_concerns_a_sample_that_was_not_given);
    tcase_add_test(tcase, an_unknown_status_is_an_error);
    tcase_add_test(tcase, so_it_is_of_any_other_operation);
    tcase_add_test(tcase, an_impossible_number_of_fields_is_an_error);
    tcase_add_test(tcase, a_table_of_an_older_header_ends_earlier);
    tcase_add_test(tcase, read_at_without_count_is_no_random_access);
    tcase_add_test(tcase, no_samples_at_all_are_not_read);
    tcase_add_test(tcase, a_reader_is_not_asked_for_what_is_out_of_range);
    add_script_tests(scripted);
    return suite_run(suite);
}
