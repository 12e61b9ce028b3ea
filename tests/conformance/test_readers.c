/* What every reader must do, over all kinds of them. */
#include "base/memory.h"
#include "base/thread.h"
#include "support/reader_cases.h"
#include "support/shared_data.h"
#include "support/suite.h"

#include <leat/ext/reader.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORDS 45
#define BUFFERS 64

static const reader_case *tested;
static leat_pipeline *pipeline;
static int count;
static leat_sample buffers[BUFFERS];
static leat_sample *out[BUFFERS];

static void begin(int i)
{
    reader_cases_begin();
    tested = &reader_cases[i];
    pipeline = tested->make(RECORDS, &count);
    for (int k = 0; k < BUFFERS; k++) {
        leat_sample_init(&buffers[k]);
        out[k] = &buffers[k];
    }
}

static void end(void)
{
    for (int k = 0; k < BUFFERS; k++)
        leat_sample_finish(&buffers[k]);
    leat_pipeline_unref(pipeline);
    reader_cases_end();
}

static leat_reader *reader_new(void)
{
    leat_reader *reader = NULL;
    int status = leat_pipeline_open(pipeline, &reader);
    ck_assert_msg(status == LEAT_OK, "%s: %s", tested->name, leat_last_error());
    return reader;
}

static int is_bad(int index)
{
    return tested->has_bad && tested->record(index, RECORDS) % 10 == 3;
}

/* Whether the sample is the one that stands at `index`. */
static int is_at(const leat_sample *sample, int index)
{
    int record = tested->record(index, RECORDS);
    const unsigned char *data = sample->field[0].data;
    int32_t label;
    memcpy(&label, sample->field[1].data, sizeof(label));
    return sample->nfields == 2 && sample->from.record == record &&
           sample->from.source && sample->field[0].bytes >= 3 &&
           data[0] == record && data[2] == record && label == 1000 + record;
}

/* Reads on from `index` to the end, `n` at a time. */
static void read_to_end(leat_reader *reader, int index, int n)
{
    for (;;) {
        int got = -1;
        int status = leat_reader_next_batch(reader, out, n, &got);
        ck_assert_int_ge(got, status == LEAT_OK);
        ck_assert_int_le(got, n);
        for (int k = 0; k < got; k++, index++)
            ck_assert_msg(!is_bad(index) && is_at(out[k], index), "%s: %d",
                          tested->name, index);
        if (status == LEAT_END)
            break;
        if (status == LEAT_OK)
            continue;
        ck_assert_msg(status == LEAT_EDATA && is_bad(index), "%s: %s",
                      tested->name, leat_last_error());
        ck_assert_int_eq(out[got]->from.record, tested->record(index, RECORDS));
        index++;
    }
    ck_assert_int_eq(index, count);
}

START_TEST(samples_come_in_order_for_every_number_at_a_time)
{
    const int sizes[] = {1, 2, 3, 7, 32, 33, BUFFERS};
    begin(_i);
    leat_reader *reader = reader_new();
    for (int i = 0; i < 7; i++) {
        read_to_end(reader, 0, sizes[i]);
        ck_assert_int_eq(leat_reader_next(reader, out[0]), LEAT_END);
        ck_assert_int_eq(leat_reader_next(reader, out[0]), LEAT_END);
        ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 0}, NULL),
                         LEAT_OK);
    }
    int got;
    ck_assert_int_eq(leat_reader_next_batch(reader, out, 0, &got), LEAT_EINVAL);
    leat_reader_close(reader);
    end();
}
END_TEST

START_TEST(the_fields_are_told_beforehand_and_read_nothing)
{
    begin(_i);
    leat_reader *reader = reader_new();
    const leat_field_spec *spec = NULL;
    int n = 0;
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
        ck_assert_int_eq(n, 2);
        ck_assert_str_eq(spec[0].name, "data");
        ck_assert_int_eq(spec[0].dtype, LEAT_UINT8);
        ck_assert_str_eq(spec[1].name, "label");
        ck_assert_int_eq(spec[1].dtype, LEAT_INT32);
        ck_assert_int_eq(spec[1].ndim, 0);
    }
    read_to_end(reader, 0, 5);
    leat_reader_close(reader);
    end();
}
END_TEST

START_TEST(a_reset_half_way_starts_anew)
{
    begin(_i);
    leat_reader *reader = reader_new();
    for (int n = 1; n < 12; n++) {
        for (int k = 0; k < n; k++)
            ck_assert_int_eq(leat_reader_next(reader, out[0]),
                             is_bad(k) ? LEAT_EDATA : LEAT_OK);
        ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 0}, NULL),
                         LEAT_OK);
    }
    read_to_end(reader, 0, 4);
    leat_reader_close(reader);
    end();
}
END_TEST

START_TEST(readers_of_one_pipeline_do_not_meet)
{
    begin(_i);
    leat_reader *first = reader_new();
    leat_reader *second = reader_new();
    for (int k = 0; k < 10; k++)
        (void)leat_reader_next(first, out[0]);
    read_to_end(second, 0, 3);
    read_to_end(first, 10, 3);
    leat_reader_cancel(first);
    ck_assert_int_eq(leat_reader_seek(second, (leat_position){0, 0}, NULL),
                     LEAT_OK);
    read_to_end(second, 0, 6);
    leat_reader_close(second);
    leat_reader_close(first);
    end();
}
END_TEST

START_TEST(a_reader_outlives_the_callers_reference)
{
    begin(_i);
    leat_reader *reader = reader_new();
    leat_pipeline_unref(pipeline);
    pipeline = NULL;
    ck_assert_int_eq(leat_reader_next(reader, out[0]), LEAT_OK);
    leat_reader_close(reader);
    end();
}
END_TEST

START_TEST(a_cancelled_reader_gives_nothing_any_more)
{
    begin(_i);
    leat_reader *reader = reader_new();
    ck_assert_int_eq(leat_reader_next(reader, out[0]), LEAT_OK);
    leat_reader_cancel(reader);
    leat_reader_cancel(reader);
    for (int i = 0; i < 2; i++) {
        int got = -1;
        ck_assert_int_eq(leat_reader_next_batch(reader, out, 3, &got),
                         LEAT_ECANCELLED);
        ck_assert_int_eq(got, 0);
    }
    const leat_position index[] = {{0, 0}};
    int got;
    if (tested->is_random_access)
        ck_assert_int_eq(leat_reader_read_at(reader, index, out, 1, &got),
                         LEAT_ECANCELLED);
    leat_reader_close(reader);
    end();
}
END_TEST

START_TEST(what_a_reader_cannot_do_it_says)
{
    begin(_i);
    leat_reader *reader = reader_new();
    leat_token token;
    const leat_position index[] = {{0, 0}};
    int64_t n = -1;
    int got;
    leat_token_init(&token);
    int expected = tested->is_random_access ? LEAT_OK : LEAT_EUNSUPPORTED;
    const leat_position amid = {0, 5};
    ck_assert_int_eq(leat_reader_is_random_access(reader),
                     tested->is_random_access);
    ck_assert_int_eq(leat_reader_count(reader, &n), expected);
    ck_assert_int_eq(n, tested->is_random_access ? count : -1);
    ck_assert_int_eq(leat_reader_read_at(reader, index, out, 1, &got),
                     expected);
    ck_assert_int_eq(leat_reader_can_seek(reader), tested->is_random_access);
    ck_assert_int_eq(leat_reader_seek(reader, amid, NULL), expected);
    ck_assert_int_eq(leat_reader_save(reader, &token), expected);
    ck_assert_int_eq(leat_reader_restore(reader, &token), expected);
    leat_token_finish(&token);
    leat_reader_close(reader);
    end();
}
END_TEST

/* Opens and reads all, with the allocation `n` failing; 1 if it did. */
static int read_with_fault(int64_t n)
{
    leat_reader *reader;
    int got;
    int failures = 0;
    leat__alloc_fail_at(n);
    int64_t last = leat__alloc_count() + n;
    while (leat_pipeline_open(pipeline, &reader) == LEAT_ENOMEM)
        failures++;
    const leat_field_spec *spec;
    while (leat_reader_fields(reader, &spec, &got) == LEAT_ENOMEM)
        failures++;
    leat_sample_finish(out[0]);
    int status = LEAT_OK;
    while (status != LEAT_END && status != LEAT_ENOMEM)
        status = leat_reader_next_batch(reader, out, 8, &got);
    failures += status == LEAT_ENOMEM;
    leat__alloc_fail_at(-1);
    ck_assert_int_le(failures, 1);
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 0}, NULL),
                     LEAT_OK);
    read_to_end(reader, 0, 8);
    leat_reader_close(reader);
    return leat__alloc_count() > last;
}

START_TEST(a_reader_survives_every_failing_allocation)
{
    begin(_i);
    int64_t n = 0;
    while (read_with_fault(n))
        n++;
    ck_assert_int_ge(n, 1);
    end();
}
END_TEST

START_TEST(a_shuffled_mnist_has_every_digit_once)
{
    const int expected[] = {980, 1135, 1032, 1010, 982,
                            892, 958,  1028, 974,  1009};
    char text[4096];
    int found[10] = {0};
    int got;
    begin(0);
    leat_pipeline_unref(pipeline);
    snprintf(text, sizeof(text),
             "lmdb:%s/lmdb/mnist_test_lmdb | test_shuffle:seed=7",
             shared_folder());
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, text), LEAT_OK);
    leat_reader *reader = NULL;
    if (leat_pipeline_open(pipeline, &reader) == LEAT_EIO) {
        printf("skipped: no shared data: %s\n", leat_last_error());
        end();
        return;
    }
    ck_assert_ptr_nonnull(reader);
    while (leat_reader_next_batch(reader, out, BUFFERS, &got) == LEAT_OK) {
        for (int k = 0; k < got; k++) {
            int32_t label;
            memcpy(&label, out[k]->field[1].data, sizeof(label));
            ck_assert(label >= 0 && label < 10);
            found[label]++;
        }
    }
    ck_assert_mem_eq(found, expected, sizeof(found));
    leat_reader_close(reader);
    end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("readers");
    TCase *tcase = tcase_create("readers");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, samples_come_in_order_for_every_number_at_a_time,
                        0, READER_CASES);
    tcase_add_loop_test(tcase, the_fields_are_told_beforehand_and_read_nothing,
                        0, READER_CASES);
    tcase_add_loop_test(tcase, a_reset_half_way_starts_anew, 0, READER_CASES);
    tcase_add_loop_test(tcase, readers_of_one_pipeline_do_not_meet, 0,
                        READER_CASES);
    tcase_add_loop_test(tcase, a_reader_outlives_the_callers_reference, 0,
                        READER_CASES);
    tcase_add_loop_test(tcase, a_cancelled_reader_gives_nothing_any_more, 0,
                        READER_CASES);
    tcase_add_loop_test(tcase, what_a_reader_cannot_do_it_says, 0,
                        READER_CASES);
    tcase_add_loop_test(tcase, a_reader_survives_every_failing_allocation, 0,
                        READER_CASES);
    tcase_add_test(tcase, a_shuffled_mnist_has_every_digit_once);
    return suite_run(suite);
}
