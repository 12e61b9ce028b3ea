/* What every reader must do whose samples can be read in any order. */
#include "base/thread.h"
#include "support/reader_cases.h"
#include "support/suite.h"

#include <check.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define RECORDS 45
#define BUFFERS 64

static const reader_case *tested;
static leat_pipeline *pipeline;
static leat_reader *reader;
static int count;

/* Buffers for some samples; one set for each thread. */
typedef struct buffers {
    leat_sample buffer[BUFFERS];
    leat_sample *out[BUFFERS];
    leat_position at[BUFFERS];
    int bad; /* mismatches found */
    unsigned seed;
} buffers;

static void boxes_init(buffers *self)
{
    memset(self, 0, sizeof(*self));
    for (int k = 0; k < BUFFERS; k++)
        self->out[k] = &self->buffer[k];
}

static void boxes_finish(buffers *self)
{
    for (int k = 0; k < BUFFERS; k++)
        leat_sample_finish(&self->buffer[k]);
}

static int begin(int i)
{
    tested = &reader_cases[i];
    if (!tested->is_random_access)
        return 0;
    reader_cases_begin();
    pipeline = tested->make(RECORDS, &count);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    return 1;
}

static void end(void)
{
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
    reader_cases_end();
}

static int is_bad(leat_position at)
{
    return tested->has_bad && tested->record(at, RECORDS) % 10 == 3;
}

static int is_at(const leat_sample *sample, leat_position at)
{
    int record = tested->record(at, RECORDS);
    int32_t label;
    memcpy(&label, sample->field[1].data, sizeof(label));
    return *(const unsigned char *)sample->field[0].data == record &&
           label == 1000 + record && sample->from.record == record;
}

/* Reads buffers->index[0..n-1] with as many calls as that takes. */
static void read_indices(buffers *self, int n)
{
    int k = 0;
    while (k < n) {
        int got = -1;
        int status = leat_reader_read_at(reader, self->at + k, self->out + k,
                                         n - k, &got);
        if (got < (status == LEAT_OK) || got > n - k) {
            self->bad++;
            return;
        }
        for (int last = k + got; k < last; k++)
            self->bad +=
                is_bad(self->at[k]) || !is_at(self->out[k], self->at[k]);
        if (status == LEAT_OK)
            continue;
        self->bad +=
            status != LEAT_EDATA || !is_bad(self->at[k]) ||
            self->out[k]->from.record != tested->record(self->at[k], RECORDS);
        k++;
    }
}

static void *read_at_random(void *argument)
{
    buffers *self = argument;
    for (int round = 0; round < 50; round++) {
        int n = 1 + round % BUFFERS;
        for (int k = 0; k < n; k++) {
            self->seed = self->seed * 1103515245 + 12345;
            self->at[k].index = (int64_t)(self->seed >> 8) % count;
            self->at[k].epoch = (int64_t)(self->seed >> 20) % 4;
        }
        read_indices(self, n);
    }
    return NULL;
}

START_TEST(samples_are_read_in_any_order)
{
    static buffers all;
    if (!begin(_i))
        return;
    boxes_init(&all);
    for (int k = 0; k < count; k++)
        all.at[k].index = count - 1 - k;
    read_indices(&all, count);
    read_at_random(&all);
    ck_assert_int_eq(all.bad, 0);
    boxes_finish(&all);
    end();
}
END_TEST

START_TEST(threads_read_at_once_beside_next)
{
    static buffers all[5];
    leat__thread threads[4] = {{0}};
    if (!begin(_i))
        return;
    for (int i = 0; i < 5; i++) {
        boxes_init(&all[i]);
        all[i].seed = (unsigned)i;
    }
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(
            leat__thread_start(&threads[i], "read-at", read_at_random, &all[i]),
            LEAT_OK);
    for (int k = 0; k < count; k++) {
        int status = leat_reader_next(reader, all[4].out[0]);
        const leat_position at = {0, k};
        ck_assert_int_eq(status, is_bad(at) ? LEAT_EDATA : LEAT_OK);
        ck_assert(status || is_at(all[4].out[0], at));
    }
    for (int i = 0; i < 4; i++) {
        leat__thread_join(&threads[i]);
        ck_assert_int_eq(all[i].bad, 0);
    }
    for (int i = 0; i < 5; i++)
        boxes_finish(&all[i]);
    end();
}
END_TEST

START_TEST(indices_out_of_range_are_refused_and_none_are_fine)
{
    static buffers all;
    if (!begin(_i))
        return;
    boxes_init(&all);
    const int64_t wrong[] = {-1, count, INT64_MAX, INT64_MIN};
    int got = -1;
    for (int k = 0; k < 4; k++) {
        all.at[1].index = wrong[k];
        ck_assert_int_eq(leat_reader_read_at(reader, all.at, all.out, 2, &got),
                         LEAT_EINVAL);
        ck_assert_int_eq(got, 0);
    }
    ck_assert_int_eq(leat_reader_read_at(reader, all.at, all.out, 0, &got),
                     LEAT_OK);
    ck_assert_int_eq(got, 0);
    boxes_finish(&all);
    end();
}
END_TEST

/* The next sample is that at `index`, or the end. */
static void expect_next(leat_reader *from, int index)
{
    const leat_position at = {0, index};
    leat_sample sample;
    leat_sample_init(&sample);
    int status = leat_reader_next(from, &sample);
    if (index == count)
        ck_assert_int_eq(status, LEAT_END);
    else if (is_bad(at))
        ck_assert_int_eq(status, LEAT_EDATA);
    else
        ck_assert(status == LEAT_OK && is_at(&sample, at));
    leat_sample_finish(&sample);
}

START_TEST(seek_goes_everywhere_and_to_the_end)
{
    if (!begin(_i))
        return;
    for (int index = count; index >= 0; index--) {
        ck_assert_int_eq(
            leat_reader_seek(reader, (leat_position){0, index}, NULL), LEAT_OK);
        expect_next(reader, index);
    }
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 7}, NULL),
                     LEAT_OK);
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, -1}, NULL),
                     LEAT_EINVAL);
    ck_assert_int_eq(
        leat_reader_seek(reader, (leat_position){0, count + 1}, NULL),
        LEAT_EINVAL);
    ck_assert_int_eq(
        leat_reader_seek(reader, (leat_position){0, INT64_MAX}, NULL),
        LEAT_EINVAL);
    expect_next(reader, 7);
    expect_next(reader, 8);
    end();
}
END_TEST

START_TEST(a_saved_place_is_gone_on_from_in_another_reader)
{
    if (!begin(_i))
        return;
    for (int place = 0; place <= count; place++) {
        leat_token token;
        leat_token parsed;
        leat_reader *other;
        leat_token_init(&token);
        leat_token_init(&parsed);
        ck_assert_int_eq(leat_reader_save(reader, &token), LEAT_OK);
        ck_assert_int_eq(leat_token_parse(&parsed, leat_token_text(&token)),
                         LEAT_OK);
        ck_assert_int_eq(leat_pipeline_open(pipeline, &other), LEAT_OK);
        ck_assert_int_eq(leat_reader_restore(other, &parsed), LEAT_OK);
        ck_assert_int_eq(
            leat_reader_seek(other, (leat_position){0, place}, NULL), LEAT_OK);
        expect_next(other, place);
        /* Saving leaves the reader where it stood. */
        expect_next(reader, place);
        leat_reader_close(other);
        leat_token_finish(&token);
        leat_token_finish(&parsed);
    }
    end();
}
END_TEST

START_TEST(restore_stands_at_the_first_sample)
{
    leat_token token;
    if (!begin(_i))
        return;
    leat_token_init(&token);
    ck_assert_int_eq(leat_reader_save(reader, &token), LEAT_OK);
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 9}, NULL),
                     LEAT_OK);
    ck_assert_int_eq(leat_reader_restore(reader, &token), LEAT_OK);
    expect_next(reader, 0);
    leat_token_finish(&token);
    end();
}
END_TEST

START_TEST(another_data_sets_token_is_refused_until_a_seek)
{
    leat_token token;
    int other_count;
    if (!begin(_i))
        return;
    leat_pipeline *larger = tested->make(RECORDS + 1, &other_count);
    leat_reader *other;
    ck_assert_int_eq(leat_pipeline_open(larger, &other), LEAT_OK);
    leat_token_init(&token);
    ck_assert_int_eq(leat_reader_restore(reader, &token), LEAT_EINVAL);
    ck_assert_int_eq(leat_reader_save(other, &token), LEAT_OK);
    ck_assert_int_eq(leat_reader_restore(reader, &token), LEAT_EINVAL);
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 9}, NULL),
                     LEAT_OK);
    expect_next(reader, 9);
    leat_token_finish(&token);
    leat_reader_close(other);
    leat_pipeline_unref(larger);
    end();
}
END_TEST

START_TEST(advice_changes_nothing_wherever_it_points)
{
    static buffers all;
    if (!begin(_i))
        return;
    boxes_init(&all);
    for (int k = 0; k < count; k++)
        all.at[k].index = (7 * k) % count;
    leat_reader_advise(reader, all.at, count);
    leat_reader_advise(reader, all.at, 0);
    const leat_position wrong[] = {{0, 0}, {0, count}, {0, -1}, {0, INT64_MAX}};
    for (int k = 1; k < 4; k++)
        leat_reader_advise(reader, wrong + k - 1, 2);
    read_indices(&all, count);
    ck_assert_int_eq(all.bad, 0);
    expect_next(reader, 0);
    int blocks = leat_reader_may_block(reader);
    ck_assert(blocks == 0 || blocks == 1);
    boxes_finish(&all);
    end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("random_access");
    TCase *tcase = tcase_create("random_access");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, samples_are_read_in_any_order, 0, READER_CASES);
    tcase_add_loop_test(tcase, threads_read_at_once_beside_next, 0,
                        READER_CASES);
    tcase_add_loop_test(tcase,
                        indices_out_of_range_are_refused_and_none_are_fine, 0,
                        READER_CASES);
    tcase_add_loop_test(tcase, seek_goes_everywhere_and_to_the_end, 0,
                        READER_CASES);
    tcase_add_loop_test(tcase, a_saved_place_is_gone_on_from_in_another_reader,
                        0, READER_CASES);
    tcase_add_loop_test(tcase, restore_stands_at_the_first_sample, 0,
                        READER_CASES);
    tcase_add_loop_test(tcase, another_data_sets_token_is_refused_until_a_seek,
                        0, READER_CASES);
    tcase_add_loop_test(tcase, advice_changes_nothing_wherever_it_points, 0,
                        READER_CASES);
    return suite_run(suite);
}
