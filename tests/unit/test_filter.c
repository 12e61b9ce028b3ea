/* The samples for which a function of the caller's is true. */
#include "base/memory.h"
#include "pipeline/pipeline.h"
#include "support/bad_records.h"
#include "support/map_fixture.h"
#include "support/stream_decorators.h"
#include "support/suite.h"

#include <leat/decorators.h>

#include <check.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { COUNT = 40 };

static int32_t numbers[COUNT];

static leat_pipeline *memory(void)
{
    static const leat_memory_field field = {"x", LEAT_INT32, 0, {0}, numbers};
    leat_pipeline *made = NULL;
    for (int i = 0; i < COUNT; i++)
        numbers[i] = i;
    ck_assert_int_eq(leat_pipeline_memory(&made, &field, 1, COUNT), LEAT_OK);
    return made;
}

/* Takes the upstream pipeline. */
static leat_reader *filtered(leat_pipeline *upstream,
                             leat_filter_function *function, void *user,
                             const leat_filter_options *options)
{
    leat_pipeline *made = NULL;
    leat_reader *reader = NULL;
    ck_assert_int_eq(
        leat_pipeline_filter(&made, upstream, function, user, 1, options),
        LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(made, &reader), LEAT_OK);
    leat_pipeline_unref(made);
    leat_pipeline_unref(upstream);
    return reader;
}

static int is_third(void *user, const leat_sample *sample, int *keep)
{
    (void)user;
    *keep = sample->from.record % 3 == 0;
    return LEAT_OK;
}

START_TEST(what_is_not_kept_does_not_come)
{
    leat_sample buffers[4];
    leat_sample *out[4];
    leat_reader *reader = filtered(memory(), is_third, NULL, NULL);
    int got, at = 0, status = LEAT_OK;
    for (int i = 0; i < 4; i++)
        leat_sample_init(out[i] = &buffers[i]);
    while (!status) {
        status = leat_reader_next_batch(reader, out, 4, &got);
        for (int i = 0; i < got; i++, at++)
            ck_assert_int_eq(out[i]->from.record, 3 * at);
    }
    ck_assert_int_eq(status, LEAT_END);
    ck_assert_int_eq(at, (COUNT + 2) / 3);
    for (int i = 0; i < 4; i++)
        leat_sample_finish(out[i]);
    leat_reader_close(reader);
}
END_TEST

/* A bad record is given in its place, whether deferred or not. */
START_TEST(a_bad_record_is_given_as_its_error)
{
    for (int way = 0; way < BAD_RECORDS_WAYS; way++)
        for (int bad = 0; bad < 15; bad++) {
            bad_records records = {.count = 15, .way = (bad_records_way)way};
            leat_sample sample;
            leat_token mark;
            records.kind[bad] = BAD_RECORDS_UNREADABLE;
            leat_reader *reader =
                filtered(bad_records_pipeline(&records), is_third, NULL, NULL);
            leat_sample_init(&sample);
            leat_token_init(&mark);
            int status;
            for (int i = 0; i < 15; i++) {
                if (i % 3 != 0 && i != bad)
                    continue;
                mark.size = mark.cursor = 0;
                ck_assert_int_eq(leat_reader_mark(reader, &mark), LEAT_OK);
                ck_assert_int_eq(leat_reader_next(reader, &sample),
                                 i == bad ? LEAT_EDATA : LEAT_OK);
                ck_assert_int_eq(sample.from.record, i);
                ck_assert_int_eq(
                    leat_reader_seek(reader, (leat_position){0, i}, &mark),
                    LEAT_OK);
                status = leat_reader_next(reader, &sample);
                ck_assert_int_eq(status, i == bad ? LEAT_EDATA : LEAT_OK);
                ck_assert_int_eq(sample.from.record, i);
            }
            ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
            leat_token_finish(&mark);
            leat_sample_finish(&sample);
            leat_reader_close(reader);
        }
}
END_TEST

/* What is left of the reader, one at a time: records, a bad one negative. */
static int read_rest(leat_reader *reader, int64_t out[20])
{
    leat_sample sample;
    int n = 0, status;
    leat_sample_init(&sample);
    while ((status = leat_reader_next(reader, &sample)) != LEAT_END) {
        ck_assert(status == LEAT_OK || status == LEAT_EDATA);
        out[n++] = status ? -sample.from.record : sample.from.record;
    }
    leat_sample_finish(&sample);
    return n;
}

/* Reads on `n` at a time, and after each call from its mark elsewhere. */
static void check_marks(leat_pipeline *pipeline, int n)
{
    enum { MOST = 8 };
    leat_sample buffers[MOST];
    leat_sample *out[MOST];
    leat_reader *reader, *other;
    leat_token mark;
    int64_t all[20], rest[20];
    int given = 0, got, status = LEAT_OK;
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &other), LEAT_OK);
    for (int i = 0; i < MOST; i++)
        leat_sample_init(out[i] = &buffers[i]);
    leat_token_init(&mark);
    int total = read_rest(other, all);
    while (status != LEAT_END) {
        mark.size = mark.cursor = 0;
        int marked = leat_reader_mark(reader, &mark);
        /* Not between good samples and the error that follows them. */
        ck_assert(marked == LEAT_OK || marked == LEAT_ESTATE);
        if (!marked) {
            ck_assert_int_eq(
                leat_reader_seek(other, (leat_position){0, given}, &mark),
                LEAT_OK);
            ck_assert_uint_eq(mark.cursor, mark.size);
            ck_assert_int_eq(read_rest(other, rest), total - given);
            for (int i = given; i < total; i++)
                ck_assert_int_eq(rest[i - given], all[i]);
        }
        status = leat_reader_next_batch(reader, out, n, &got);
        for (int i = 0; i < got; i++)
            ck_assert_int_eq(out[i]->from.record, all[given++]);
        if (status == LEAT_EDATA)
            ck_assert_int_eq(-out[got]->from.record, all[given++]);
    }
    ck_assert_int_eq(given, total);
    for (int i = 0; i < MOST; i++)
        leat_sample_finish(out[i]);
    leat_token_finish(&mark);
    leat_reader_close(other);
    leat_reader_close(reader);
}

/* A bad record leaves samples that were pulled with it to the next call. */
START_TEST(marks_know_the_samples_that_an_error_left)
{
    for (int way = 0; way < BAD_RECORDS_WAYS; way++)
        for (int over = -1; over <= STREAM_ROTATE; over++)
            for (int bad = 0; bad < 15; bad++) {
                bad_records records = {.count = 15,
                                       .way = (bad_records_way)way};
                leat_pipeline *made;
                records.kind[bad] = BAD_RECORDS_UNREADABLE;
                records.kind[(bad + 4) % 15] = BAD_RECORDS_UNREADABLE;
                leat_pipeline *base = bad_records_pipeline(&records);
                if (over >= 0)
                    base = stream_decorators_take((stream_kind)over, base);
                ck_assert_int_eq(
                    leat_pipeline_filter(&made, base, is_third, NULL, 1, NULL),
                    LEAT_OK);
                for (int n = 1; n <= 8; n++)
                    check_marks(made, n);
                leat_pipeline_unref(made);
                leat_pipeline_unref(base);
            }
}
END_TEST

static int fail_at_five(void *user, const leat_sample *sample, int *keep)
{
    const int *status = user;
    *keep = 1;
    return sample->from.record == 5 ? *status : LEAT_OK;
}

START_TEST(each_failure_is_an_error_with_a_line)
{
    static const struct {
        int status, expected;
        const char *part;
    } cases[] = {
        {LEAT_EDATA, LEAT_EDATA,
         "filter: memory: record 5: even: the function gave no reason"},
        {LEAT_EIO, LEAT_EIO, "even: the function gave no reason"},
        {LEAT_END, LEAT_ESTATE, "even: the function returned LEAT_END"},
        {99, LEAT_ESTATE, "even: the function returned 99"},
    };
    const leat_filter_options options = {.size = sizeof(options),
                                         .name = "even"};
    for (int i = 0; i < 4; i++) {
        leat_sample sample;
        int returned = cases[i].status;
        leat_reader *reader =
            filtered(memory(), fail_at_five, &returned, &options);
        leat_sample_init(&sample);
        for (int k = 0; k < 5; k++)
            ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        ck_assert_int_eq(leat_reader_next(reader, &sample), cases[i].expected);
        ck_assert_msg(strstr(leat_last_error(), cases[i].part), "%s",
                      leat_last_error());
        ck_assert_int_eq(leat_reader_next(reader, &sample),
                         cases[i].expected == LEAT_EDATA ? LEAT_OK
                                                         : cases[i].expected);
        leat_sample_finish(&sample);
        leat_reader_close(reader);
    }
}
END_TEST

/* Cancels its own reader's chain, as another thread would, and drops all. */
static leat_reader *to_cancel;
static atomic_int cancels;

static int cancel_at_five(void *user, const leat_sample *sample, int *keep)
{
    (void)user;
    *keep = 0;
    if (sample->from.record == 5)
        leat_reader_cancel(to_cancel);
    ck_assert_int_le(sample->from.record, 5);
    return LEAT_OK;
}

static void count_cancel(void *user)
{
    (void)user;
    atomic_fetch_add(&cancels, 1);
}

START_TEST(cancel_ends_a_search_and_is_told_to_the_caller)
{
    const leat_filter_options options = {
        .size = sizeof(options), .cancel = count_cancel, .may_block = 1};
    leat_sample sample;
    leat_sample_init(&sample);
    to_cancel = filtered(memory(), cancel_at_five, NULL, &options);
    ck_assert_int_eq(leat_reader_may_block(to_cancel), 1);
    ck_assert_int_eq(leat_reader_next(to_cancel, &sample), LEAT_ECANCELLED);
    ck_assert_int_eq(atomic_load(&cancels), 1);
    leat_sample_finish(&sample);
    leat_reader_close(to_cancel);
}
END_TEST

/* Below a join, what a dropped sample had of another reader stays. */
START_TEST(under_a_join_the_other_readers_fields_stay)
{
    leat_sample sample;
    leat_pipeline *left = memory(), *base = memory(), *right, *cast;
    ck_assert_int_eq(leat_pipeline_cast(&cast, base, "x", LEAT_FLOAT64),
                     LEAT_OK);
    ck_assert_int_eq(
        leat_pipeline_filter(&right, cast, is_third, NULL, 1, NULL), LEAT_OK);
    leat_pipeline *upstream[] = {left, right};
    leat_pipeline *zip = stream_decorators_over(STREAM_ZIP, upstream, 2);
    leat_reader *reader = NULL;
    ck_assert_int_eq(leat_pipeline_open(zip, &reader), LEAT_OK);
    leat_sample_init(&sample);
    for (int i = 0; i < (COUNT + 2) / 3; i++) {
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        ck_assert_int_eq(sample.nfields, 2);
        ck_assert_double_eq(map_fixture_number(&sample, 0, 0), i);
        ck_assert_double_eq(map_fixture_number(&sample, 1, 0), 3 * i);
    }
    ck_assert_uint_le(sample.buffer_size, 256);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    leat_pipeline_unref(zip);
    leat_pipeline_unref(left);
    leat_pipeline_unref(right);
    leat_pipeline_unref(cast);
    leat_pipeline_unref(base);
}
END_TEST

/* A second passes with each look at the clock, where that is asked for. */
static atomic_int seconds_pass;
static atomic_long seconds;
static int lines;
int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);

int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
    int status = __real_clock_gettime(clock, out);
    if (atomic_load(&seconds_pass))
        out->tv_sec += atomic_fetch_add(&seconds, 1);
    return status;
}

static void count_line(void *user, leat_log_level level, const char *line)
{
    (void)user;
    ck_assert_int_eq(level, LEAT_LOG_WARNING);
    ck_assert_ptr_nonnull(strstr(line, "filter: none of the last "));
    ck_assert_ptr_nonnull(strstr(line, " samples is kept"));
    lines++;
}

static int is_late(void *user, const leat_sample *sample, int *keep)
{
    (void)sample;
    *keep = ++*(int *)user > 20000;
    return LEAT_OK;
}

/* It would be one without end, and without a word. */
START_TEST(a_search_in_vain_is_reported_every_ten_seconds)
{
    int seen = 0;
    leat_sample sample;
    leat_pipeline *base = memory(), *endless = NULL;
    ck_assert_int_eq(leat_pipeline_repeat(&endless, base, -1), LEAT_OK);
    leat_reader *reader = filtered(endless, is_late, &seen, NULL);
    leat_sample_init(&sample);
    leat_log_set(count_line, NULL, LEAT_LOG_WARNING);
    atomic_store(&seconds_pass, 1);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_gt(lines, 1);
    ck_assert_int_le(lines, (int)(atomic_load(&seconds) / 10));
    int before = lines;
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(lines, before);
    atomic_store(&seconds_pass, 0);
    leat_log_set(NULL, NULL, LEAT_LOG_NONE);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    leat_pipeline_unref(base);
}
END_TEST

START_TEST(options_are_checked)
{
    leat_pipeline *base = memory(), *made;
    leat_filter_options options = {0};
    ck_assert_int_eq(
        leat_pipeline_filter(&made, base, is_third, NULL, 1, &options),
        LEAT_EINVAL);
    options.size = sizeof(options);
    ck_assert_int_eq(leat_filter_options_init(&options), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_filter(&made, base, NULL, NULL, 1, NULL),
                     LEAT_EINVAL);
    for (int64_t n = 0, status = LEAT_ENOMEM; status; n++) {
        leat__alloc_fail_at(n);
        status = leat_pipeline_filter(&made, base, is_third, NULL, 1, &options);
        leat__alloc_fail_at(-1);
        ck_assert(status == LEAT_OK || status == LEAT_ENOMEM);
    }
    leat_pipeline_unref(made);
    leat_pipeline_unref(base);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("filter");
    TCase *tcase = tcase_create("filter");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, what_is_not_kept_does_not_come);
    tcase_add_test(tcase, a_bad_record_is_given_as_its_error);
    tcase_add_test(tcase, marks_know_the_samples_that_an_error_left);
    tcase_add_test(tcase, each_failure_is_an_error_with_a_line);
    tcase_add_test(tcase, cancel_ends_a_search_and_is_told_to_the_caller);
    tcase_add_test(tcase, under_a_join_the_other_readers_fields_stay);
    tcase_add_test(tcase, a_search_in_vain_is_reported_every_ten_seconds);
    tcase_add_test(tcase, options_are_checked);
    return suite_run(suite);
}
