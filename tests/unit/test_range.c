#include "base/memory.h"
#include "support/order_check.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <stdint.h>
#include <string.h>

static leat_sample sample;
static leat_sample *out = &sample;

static int64_t value_of(const leat_sample *one)
{
    int64_t value;
    ck_assert_int_eq(one->nfields, 1);
    ck_assert_int_eq(one->field[0].dtype, LEAT_INT64);
    ck_assert_int_eq(one->field[0].ndim, 0);
    memcpy(&value, one->field[0].data, sizeof(value));
    return value;
}

/* The text gives these `n` values by next, from every index, and by index. */
static void check_values(const char *text, int n, const int64_t value[])
{
    leat_reader *reader = order_open(text);
    int64_t count;
    int got;
    ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
    ck_assert_int_eq(count, n);
    for (int first = 0; first <= n; first++) {
        const leat_position at = {first, first};
        ck_assert_int_eq(leat_reader_seek(reader, at, NULL), LEAT_OK);
        for (int i = first; i < n; i++) {
            ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
            ck_assert_int_eq(value_of(&sample), value[i]);
            ck_assert_int_eq(sample.from.record, i);
        }
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
    }
    for (int i = n - 1; i >= 0; i--) {
        const leat_position at = {0, i};
        ck_assert_int_eq(leat_reader_read_at(reader, &at, &out, 1, &got),
                         LEAT_OK);
        ck_assert_int_eq(value_of(&sample), value[i]);
    }
    const leat_position beyond = {0, n + 1};
    ck_assert_int_eq(leat_reader_seek(reader, beyond, NULL), LEAT_EINVAL);
    leat_reader_close(reader);
}

#define CHECK_VALUES(text, ...)                                                \
    do {                                                                       \
        const int64_t values[] = {__VA_ARGS__};                                \
        check_values(text, sizeof(values) / sizeof(values[0]), values);        \
    } while (0)

START_TEST(values_go_from_start_by_step_before_stop)
{
    CHECK_VALUES("range:0,10,3", 0, 3, 6, 9);
    CHECK_VALUES("range:10,0,-3", 10, 7, 4, 1);
    CHECK_VALUES("range:4", 0, 1, 2, 3);
    CHECK_VALUES("range:2,4", 2, 3);
    CHECK_VALUES("range:-1,2", -1, 0, 1);
    CHECK_VALUES("range:-9223372036854775808,9223372036854775807,"
                 "9223372036854775807",
                 INT64_MIN, -1, INT64_MAX - 1);
    CHECK_VALUES("range:9223372036854775807,-9223372036854775808,"
                 "-9223372036854775808",
                 INT64_MAX, -1);
    check_values("range:0", 0, NULL);
    check_values("range:-3", 0, NULL);
    check_values("range:5,5,-1", 0, NULL);
    check_values("range:0,10,-1", 0, NULL);
}
END_TEST

/* Those at indices beyond int64's would be left out. */
START_TEST(more_values_than_indices_are_refused)
{
    int64_t count;
    order_check_refused("range:-9223372036854775808,9223372036854775807",
                        LEAT_EINVAL,
                        "18446744073709551615 values: expected at most "
                        "9223372036854775807");
    order_check_refused("range:-1,9223372036854775807", LEAT_EINVAL,
                        "9223372036854775808 values");
    leat_reader *reader = order_open("range:9223372036854775807");
    ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
    ck_assert_int_eq(count, LEAT_ENDLESS);
    leat_reader_close(reader);
}
END_TEST

START_TEST(no_step_is_refused)
{
    order_check_refused("range:0,10,0", LEAT_EINVAL, "step is 0");
    order_check_refused("range", LEAT_EINVAL, "start");
}
END_TEST

START_TEST(it_skips_saves_and_cancels)
{
    leat_reader *reader = order_open("range:10");
    leat_token token;
    int64_t skipped;
    leat_token_init(&token);
    ck_assert_int_eq(leat_reader_skip(reader, 7, &skipped), LEAT_OK);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(value_of(&sample), 7);
    ck_assert_int_eq(leat_reader_skip(reader, 7, &skipped), LEAT_END);
    ck_assert_int_eq(skipped, 2);
    ck_assert_int_eq(leat_reader_save(reader, &token), LEAT_OK);
    ck_assert_int_eq(leat_reader_restore(reader, &token), LEAT_OK);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(value_of(&sample), 0);
    leat_reader_cancel(reader);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_ECANCELLED);
    leat_token_finish(&token);
    leat_reader_close(reader);
}
END_TEST

START_TEST(it_survives_every_failing_allocation)
{
    leat_pipeline *pipeline = order_parse("range:10");
    int status;
    int n = 0;
    do {
        leat_reader *reader;
        leat_sample_finish(&sample);
        leat__alloc_fail_at(n++);
        status = leat_pipeline_open(pipeline, &reader);
        if (!status) {
            status = leat_reader_next(reader, &sample);
            leat_reader_close(reader);
        }
        leat__alloc_fail_at(-1);
        ck_assert(status == LEAT_OK || status == LEAT_ENOMEM);
    } while (status);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(code_makes_what_the_text_makes)
{
    leat_pipeline *pipeline;
    ck_assert_int_eq(leat_pipeline_range(&pipeline, 10, 0, -3), LEAT_OK);
    leat_pipeline *parsed = order_parse("range:10,0,-3");
    ck_assert_str_eq(leat_pipeline_text(pipeline), leat_pipeline_text(parsed));
    leat_pipeline_unref(parsed);
    leat_pipeline_unref(pipeline);
}
END_TEST

static void set_up(void)
{
    leat_sample_init(&sample);
}

static void tear_down(void)
{
    leat_sample_finish(&sample);
}

int main(void)
{
    Suite *suite = suite_create("range");
    TCase *all = tcase_create("range");
    tcase_add_checked_fixture(all, set_up, tear_down);
    tcase_add_test(all, values_go_from_start_by_step_before_stop);
    tcase_add_test(all, more_values_than_indices_are_refused);
    tcase_add_test(all, no_step_is_refused);
    tcase_add_test(all, it_skips_saves_and_cancels);
    tcase_add_test(all, it_survives_every_failing_allocation);
    tcase_add_test(all, code_makes_what_the_text_makes);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
