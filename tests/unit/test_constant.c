/* One sample again and again: paddle.reader's fake. */
#include "base/memory.h"
#include "pipeline/pipeline.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static leat_sample sample;

/* Numbers from `first` on; the first `bad` of them are bad records. */
typedef struct numbers {
    int32_t next, end, bad;
} numbers;

static int next_number(void *pass, leat_sample *out)
{
    numbers *self = pass;
    if (self->next == self->end)
        return LEAT_END;
    int32_t *number = leat_sample_take(out, sizeof(*number));
    if (!number)
        return LEAT_ENOMEM;
    *number = self->next++;
    out->from.record = *number;
    out->from.key = "key";
    out->from.key_size = 3;
    if (*number < self->bad)
        return leat_error(LEAT_EDATA, "bad");
    return leat_sample_set(out, 0, LEAT_INT32, 0, NULL, number);
}

static leat_pipeline *over(numbers *from, int64_t count)
{
    static const leat_field_spec field = {.name = "number",
                                          .dtype = LEAT_INT32};
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .name = "numbers",
                                      .fields = &field,
                                      .nfields = 1,
                                      .next = next_number};
    leat_pipeline *upstream, *pipeline;
    ck_assert_int_eq(leat_pipeline_callback(&upstream, &callbacks, from),
                     LEAT_OK);
    ck_assert_int_eq(leat_pipeline_constant(&pipeline, upstream, count),
                     LEAT_OK);
    leat_pipeline_unref(upstream);
    return pipeline;
}

static leat_reader *open_pipeline(leat_pipeline *pipeline)
{
    leat_reader *reader;
    int status = leat_pipeline_open(pipeline, &reader);
    ck_assert_msg(!status, "%s", leat_last_error());
    leat_pipeline_unref(pipeline);
    return reader;
}

static void check_number(int32_t expected)
{
    int32_t number;
    ck_assert_int_eq(sample.nfields, 1);
    memcpy(&number, sample.field[0].data, sizeof(number));
    ck_assert_int_eq(number, expected);
    ck_assert_int_eq(sample.from.record, expected);
    ck_assert_str_eq(sample.from.source, "numbers");
    ck_assert_mem_eq(sample.from.key, "key", 3);
}

static void set_up(void)
{
    leat_sample_init(&sample);
}

static void tear_down(void)
{
    leat_sample_finish(&sample);
}

START_TEST(the_first_sample_comes_a_hundred_times)
{
    numbers from = {5, 9, 0};
    leat_reader *reader = open_pipeline(over(&from, 100));
    int64_t count;
    ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
    ck_assert_int_eq(count, 100);
    for (int64_t epoch = 0; epoch < 2; epoch++) {
        for (int i = 0; i < 100; i++) {
            ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
            check_number(5);
        }
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
        ck_assert_int_eq(
            leat_reader_seek(reader, (leat_position){epoch + 1, 0}, NULL),
            LEAT_OK);
    }
    for (int64_t i = 0; i < 100; i++) {
        int64_t skipped;
        ck_assert_int_eq(leat_reader_seek(reader, (leat_position){3, i}, NULL),
                         LEAT_OK);
        ck_assert_int_eq(leat_reader_skip(reader, 101, &skipped), LEAT_END);
        ck_assert_int_eq(skipped, 100 - i);
    }
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 101}, NULL),
                     LEAT_EINVAL);
    ck_assert_int_eq(from.next, 6); /* no other was read */
    leat_reader_close(reader);
}
END_TEST

START_TEST(bad_records_before_it_are_passed_by)
{
    numbers from = {0, 9, 3};
    leat_reader *reader = open_pipeline(over(&from, 2));
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    check_number(3);
    leat_reader_close(reader);
}
END_TEST

START_TEST(without_a_good_sample_there_is_none)
{
    numbers from = {0, 3, 3};
    int64_t count;
    leat_reader *reader = open_pipeline(over(&from, -1));
    ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
    ck_assert_int_eq(count, 0);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
    leat_reader_close(reader);
}
END_TEST

static void *read_many(void *reader)
{
    leat_sample own;
    leat_sample_init(&own);
    for (int64_t i = 0; i < 2000; i++) {
        leat_position at = {i / 7, i};
        leat_sample *out[] = {&own};
        int got;
        if (leat_reader_read_at(reader, &at, out, 1, &got) ||
            own.from.record != 4)
            abort();
    }
    leat_sample_finish(&own);
    return NULL;
}

START_TEST(an_endless_one_is_read_by_several_threads)
{
    numbers from = {4, 9, 0};
    int64_t count;
    pthread_t threads[3];
    leat_reader *reader = open_pipeline(over(&from, -1));
    ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
    ck_assert(count == LEAT_ENDLESS);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, read_many, reader);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    leat_reader_cancel(reader);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_ECANCELLED);
    leat_reader_close(reader);
}
END_TEST

START_TEST(text_and_code_make_equal_pipelines)
{
    leat_pipeline *upstream, *made, *parsed;
    ck_assert_int_eq(leat_pipeline_parse(&upstream, "range:3,9"), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_constant(&made, upstream, 8), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_parse(&parsed, "range:3,9,1 | constant:8"),
                     LEAT_OK);
    ck_assert(leat__pipeline_hash(made) == leat__pipeline_hash(parsed));
    leat_pipeline_unref(made);
    leat_pipeline_unref(parsed);
    ck_assert_int_eq(leat_pipeline_constant(&made, upstream, -2), LEAT_EINVAL);
    leat_pipeline_unref(upstream);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    for (int64_t n = 0;; n++) {
        numbers from = {4, 9, 0};
        leat_pipeline *pipeline = over(&from, 9);
        leat_reader *reader = NULL;
        leat__alloc_fail_at(n);
        int status = leat_pipeline_open(pipeline, &reader);
        if (!status)
            status = leat_reader_next(reader, &sample);
        int64_t left = leat__alloc_fail_at(-1);
        ck_assert(!status || status == LEAT_ENOMEM);
        leat_reader_close(reader);
        leat_pipeline_unref(pipeline);
        if (left >= 0)
            break;
    }
}
END_TEST

/* Opening could not be cancelled. */
START_TEST(endless_bad_records_are_an_error)
{
    numbers from = {0, -1, INT32_MAX};
    leat_pipeline *pipeline = over(&from, 9);
    leat_reader *reader = NULL;
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_EFORMAT);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "samples are bad"));
    ck_assert_int_lt(from.next, 1 << 20);
    leat_pipeline_unref(pipeline);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("constant");
    TCase *tcase = tcase_create("constant");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, the_first_sample_comes_a_hundred_times);
    tcase_add_test(tcase, bad_records_before_it_are_passed_by);
    tcase_add_test(tcase, without_a_good_sample_there_is_none);
    tcase_add_test(tcase, endless_bad_records_are_an_error);
    tcase_add_test(tcase, an_endless_one_is_read_by_several_threads);
    tcase_add_test(tcase, text_and_code_make_equal_pipelines);
    tcase_add_test(tcase, every_allocation_may_fail);
    return suite_run(suite);
}
