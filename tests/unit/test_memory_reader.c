#include "base/memory.h"
#include "support/suite.h"

#include <leat.h>

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const unsigned char bytes[] = {1, 2, 3, 4, 5, 6, 7, 8};
static const double reals[] = {0.5, 1.5};
static leat_sample sample;

static void set_up(void)
{
    leat_sample_init(&sample);
}

static void tear_down(void)
{
    leat_sample_finish(&sample);
}

static leat_reader *open_over(const leat_memory_field fields[], int n,
                              int64_t count)
{
    leat_pipeline *pipeline;
    leat_reader *reader;
    int status = leat_pipeline_memory(&pipeline, fields, n, count);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    leat_pipeline_unref(pipeline);
    return reader;
}

START_TEST(samples_are_slices_of_what_lies_there)
{
    char name[] = "pixels";
    const leat_memory_field fields[] = {
        {name, LEAT_UINT8, 2, {2, 2}, bytes},
        {"score", LEAT_FLOAT64, 0, {0}, reals},
    };
    leat_reader *reader = open_over(fields, 2, 2);
    const leat_field_spec *spec;
    int n;
    memset(name, 'x', sizeof(name) - 1);
    ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
    ck_assert_int_eq(n, 2);
    ck_assert_str_eq(spec[0].name, "pixels");
    ck_assert_int_eq(spec[0].shape[1], 2);
    ck_assert_int_eq(spec[1].ndim, 0);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        ck_assert_int_eq(sample.nfields, 2);
        ck_assert_int_eq(sample.stable, 1);
        ck_assert_ptr_eq(sample.field[0].data, bytes + 4 * i);
        ck_assert_uint_eq(sample.field[0].bytes, 4);
        ck_assert_int_eq(sample.field[0].ndim, 2);
        ck_assert_ptr_eq(sample.field[1].data, &reals[i]);
        ck_assert_uint_eq(sample.field[1].bytes, 8);
        ck_assert_str_eq(sample.from.source, "memory");
        ck_assert_int_eq(sample.from.record, i);
        ck_assert_uint_eq(sample.from.key_size, 0);
    }
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
    leat_reader_close(reader);
}
END_TEST

START_TEST(no_samples_are_an_end_at_once)
{
    const leat_memory_field field = {"x", LEAT_UINT8, 1, {4}, NULL};
    leat_reader *reader = open_over(&field, 1, 0);
    int64_t count = -1;
    int got;
    ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
    ck_assert_int_eq(count, 0);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 0}, NULL),
                     LEAT_OK);
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 1}, NULL),
                     LEAT_EINVAL);
    const leat_position index = {0, 0};
    leat_sample *const out = &sample;
    ck_assert_int_eq(leat_reader_read_at(reader, &index, &out, 1, &got),
                     LEAT_EINVAL);
    leat_reader_close(reader);
}
END_TEST

START_TEST(samples_without_elements_need_no_data)
{
    const leat_memory_field field = {"x", LEAT_FLOAT32, 2, {4, 0}, NULL};
    leat_reader *reader = open_over(&field, 1, 3);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        ck_assert_uint_eq(sample.field[0].bytes, 0);
    }
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
    leat_reader_close(reader);
}
END_TEST

START_TEST(a_field_that_cannot_be_is_refused)
{
    const leat_memory_field good = {"x", LEAT_UINT8, 1, {4}, bytes};
    leat_memory_field wrong[7] = {good, good, good, good, good, good, good};
    leat_pipeline *none = NULL;
    wrong[0].dtype = (leat_dtype)99;
    wrong[1].ndim = -1;
    wrong[2].ndim = LEAT_MAX_DIMS + 1;
    wrong[3].shape[0] = -4;
    wrong[4].data = NULL;
    wrong[5].shape[0] = INT64_MAX;
    wrong[6].ndim = 2;
    wrong[6].shape[0] = INT64_MAX;
    wrong[6].shape[1] = 4;
    for (int i = 0; i < 7; i++) {
        ck_assert_msg(leat_pipeline_memory(&none, &wrong[i], 1, 3) ==
                          LEAT_EINVAL,
                      "%d", i);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "field 0"));
    }
    ck_assert_int_eq(leat_pipeline_memory(&none, &good, 0, 1), LEAT_EINVAL);
    ck_assert_int_eq(leat_pipeline_memory(&none, &good, LEAT_MAX_FIELDS + 1, 1),
                     LEAT_EINVAL);
    ck_assert_int_eq(leat_pipeline_memory(&none, &good, 1, -1), LEAT_EINVAL);
    ck_assert_int_eq(leat_pipeline_memory(&none, NULL, 1, 1), LEAT_EINVAL);
    ck_assert_ptr_null(none);
}
END_TEST

START_TEST(making_one_survives_every_failing_allocation)
{
    const leat_memory_field field = {"x", LEAT_UINT8, 1, {4}, bytes};
    leat_pipeline *pipeline = NULL;
    int status;
    int n = 0;
    do {
        leat__alloc_fail_at(n++);
        status = leat_pipeline_memory(&pipeline, &field, 1, 2);
        leat__alloc_fail_at(-1);
        ck_assert(status == LEAT_OK || status == LEAT_ENOMEM);
    } while (status);
    ck_assert_int_ge(n, 3);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(reading_takes_no_memory)
{
    const leat_memory_field field = {"x", LEAT_UINT8, 1, {4}, bytes};
    leat_reader *reader = open_over(&field, 1, 2);
    int64_t before = leat__alloc_count();
    for (int i = 0; i < 10; i++) {
        while (leat_reader_next(reader, &sample) == LEAT_OK)
            continue;
        ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 0}, NULL),
                         LEAT_OK);
    }
    ck_assert_int_eq(leat__alloc_count(), before);
    leat_reader_close(reader);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("memory_reader");
    TCase *tcase = tcase_create("memory_reader");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, samples_are_slices_of_what_lies_there);
    tcase_add_test(tcase, no_samples_are_an_end_at_once);
    tcase_add_test(tcase, samples_without_elements_need_no_data);
    tcase_add_test(tcase, a_field_that_cannot_be_is_refused);
    tcase_add_test(tcase, making_one_survives_every_failing_allocation);
    tcase_add_test(tcase, reading_takes_no_memory);
    return suite_run(suite);
}
