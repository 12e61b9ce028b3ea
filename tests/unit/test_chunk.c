/* The ways to fill and read chunks: what they give is the same. */
#include "base/memory.h"
#include "layer/chunk.h"
#include "support/bad_records.h"
#include "support/sanitizer.h"
#include "support/stream_decorators.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

enum { COUNT = 7, BATCH = 5, SAMPLES = 60, DRAWS = 3, CAPACITY_MAX = 8 };

static bad_records records;
static leat_epoch_end epoch_end;
static leat_pipeline *pipeline;
static leat_reader *reader;
static leat__chunk_source source;
static leat__chunk *chunk;
static int batch_size;
static int decorator; /* over the records; -1: none */

static void open_source(int capacity, int rank, int step, bool collects,
                        const leat__position *start)
{
    pipeline = bad_records_pipeline(&records);
    if (decorator >= 0)
        pipeline = stream_decorators_take((stream_kind)decorator, pipeline);
    const leat__chunk_source_options options = {.pipeline = pipeline,
                                                .batch_size = batch_size,
                                                .rank = rank,
                                                .step = step,
                                                .epoch_end = epoch_end,
                                                .collects = collects,
                                                .draws = DRAWS,
                                                .seed = 11};
    memset(&source, 0, sizeof(source));
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    ck_assert_int_eq(leat__chunk_source_init(&source, reader, &options),
                     LEAT_OK);
    leat__chunk_source_go_to(&source, start, NULL);
    ck_assert_int_eq(leat__chunk_create(&chunk, capacity, DRAWS, NULL),
                     LEAT_OK);
}

static void close_source(void)
{
    leat__chunk_destroy(chunk);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
}

static void take(bool ahead)
{
    leat__chunk_source_fill(&source, chunk, ahead);
    leat__chunk_read(chunk, reader, source.options.collects);
}

static void set_up(void)
{
    records = (bad_records){.count = COUNT};
    epoch_end = LEAT_EPOCH_END_WRAP;

    batch_size = BATCH;
    decorator = -1;
}

static const leat__position beginning;

/* Sample `k` of a rank, wherever batches and chunks begin. */
static void check_sample(int i, int k, int rank, int step, bool collects,
                         int *bad)
{
    int position = rank + k * step;
    int index = position % COUNT;
    const leat_sample *sample = chunk->sample[i];
    ck_assert_int_eq(chunk->at[i].epoch, position / COUNT);
    ck_assert_int_eq(chunk->at[i].index, index);
    ck_assert_int_eq(sample->from.epoch, position / COUNT);
    ck_assert_int_eq(sample->from.position, index);
    if (collects && records.kind[index] == BAD_RECORDS_UNREADABLE) {
        ck_assert_int_lt(*bad, chunk->bad.n);
        ck_assert_int_eq(chunk->bad.item[*bad].sample, i);
        ck_assert_int_eq(chunk->bad.item[*bad].from.record, index);
        ++*bad;
        return;
    }
    ck_assert_int_eq(*(const int32_t *)sample->field[1].data, 1000 + index);
}

static void check_samples(int capacity, int rank, int step, bool ahead,
                          bool collects)
{
    uint32_t words[SAMPLES * DRAWS];
    leat__mt19937 generator;
    leat__mt19937_seed(&generator, 11);
    leat__mt19937_next(&generator);
    leat__mt19937_seed(&generator, leat__mt19937_next(&generator));
    for (int i = 0; i < SAMPLES * DRAWS; i++)
        words[i] = leat__mt19937_next(&generator);
    open_source(capacity, rank, step, collects, &beginning);
    for (int k = 0; k < SAMPLES;) {
        int bad = 0;
        take(ahead);
        ck_assert_msg(chunk->failed == -1, "%s", chunk->line);
        ck_assert_int_eq(chunk->first, k % BATCH);
        ck_assert_int_gt(chunk->n, 0);
        ck_assert_int_le(chunk->n, capacity);
        ck_assert_mem_eq(chunk->words, words + (ptrdiff_t)k * DRAWS,
                         (size_t)chunk->n * DRAWS * sizeof(words[0]));
        for (int i = 0; i < chunk->n; i++)
            check_sample(i, k + i, rank, step, collects, &bad);
        ck_assert_int_eq(chunk->bad.n, bad);
        k += chunk->n;
        ck_assert_int_eq(chunk->is_last, k % BATCH == 0);
        if (chunk->is_last)
            ck_assert_int_eq(chunk->after.position, k * step);
    }
    ck_assert_int_eq(atomic_load(&source.items), SAMPLES);
    close_source();
}

START_TEST(all_ways_give_the_same_samples)
{
    static const int capacities[] = {1, 2, BATCH, CAPACITY_MAX};
    records.way = (bad_records_way)_i;
    for (int turn = 0; turn <= 3; turn++) {
        int collects = turn % 2;
        records.mixed = turn / 2;
        records.kind[2] = records.kind[5] = records.kind[6] =
            collects ? BAD_RECORDS_UNREADABLE : BAD_RECORDS_GOOD;
        for (size_t c = 0; c < sizeof(capacities) / sizeof(capacities[0]); c++)
            for (int step = 1; step <= 3; step++)
                for (int ahead = 0; ahead <= 1; ahead++)
                    check_samples(capacities[c], step - 1, step, ahead,
                                  collects);
    }
}
END_TEST

START_TEST(a_start_amid_the_sequence_goes_on_with_its_samples_and_words)
{
    uint32_t words[DRAWS];
    records.way = (bad_records_way)_i;
    for (int batches = 1; batches < 6; batches++) {
        leat__position start;
        open_source(CAPACITY_MAX, 0, 1, false, &beginning);
        for (int i = 0; i < batches; i++)
            take(false);
        start = chunk->after;
        take(false);
        memcpy(words, chunk->words, sizeof(words));
        int64_t index = chunk->at[0].index;
        close_source();
        open_source(CAPACITY_MAX, 0, 1, false, &start);
        take(false);
        ck_assert_int_eq(chunk->at[0].index, index);
        ck_assert_mem_eq(chunk->words, words, sizeof(words));
        close_source();
    }
}
END_TEST

/* One that cannot be transformed may come before it, so all are read. */
START_TEST(the_first_bad_record_fails_a_chunk_and_the_others_are_read)
{
    records.way = (bad_records_way)_i;
    records.kind[1] = records.kind[3] = BAD_RECORDS_UNREADABLE;
    open_source(CAPACITY_MAX, 0, 1, false, &beginning);
    take(false);
    ck_assert_int_eq(chunk->n, BATCH);
    ck_assert_int_eq(chunk->failed, 1);
    ck_assert_int_eq(chunk->status, LEAT_EDATA);
    ck_assert_ptr_nonnull(strstr(chunk->line, "record 1 cannot be read"));
    ck_assert_int_eq(chunk->bad.n, 0);
    ck_assert_int_eq(*(const int32_t *)chunk->sample[4]->field[1].data, 1004);
    take(false); /* 5, 6, 0, 1, 2 */
    ck_assert_int_eq(chunk->failed, 3);
    close_source();
}
END_TEST

/* 1 and 3 by next, 2 and 4 by materialize, which comes later. */
START_TEST(bad_records_of_next_and_of_materialize_come_in_order)
{
    static const int bad[] = {1, 2, 3, 4};
    records.way = BAD_RECORDS_DEFERRED;
    records.mixed = 1;
    for (int from = 0; from < 4; from++) {
        memset(records.kind, 0, sizeof(records.kind));
        for (int i = from; i < 4; i++)
            records.kind[bad[i]] = BAD_RECORDS_UNREADABLE;
        for (int collects = 0; collects < 2; collects++) {
            char line[40];
            open_source(CAPACITY_MAX, 0, 1, collects, &beginning);
            take(false);
            ck_assert_int_eq(chunk->n, BATCH);
            ck_assert_int_eq(chunk->failed, collects ? -1 : bad[from]);
            ck_assert_int_eq(chunk->bad.n, collects ? 4 - from : 0);
            for (int i = 0; i < chunk->bad.n; i++) {
                ck_assert_int_eq(chunk->bad.item[i].sample, bad[from + i]);
                ck_assert_int_eq(chunk->bad.item[i].from.record, bad[from + i]);
            }
            snprintf(line, sizeof(line), "record %d cannot", bad[from]);
            if (!collects)
                ck_assert_ptr_nonnull(strstr(chunk->line, line));
            take(false); /* 5, 6, 0, 1, 2 */
            ck_assert_int_eq(chunk->at[2].epoch, 1);
            ck_assert_int_eq(*(const int32_t *)chunk->sample[1]->field[1].data,
                             1006);
            close_source();
        }
    }
}
END_TEST

/* The bad record comes first, whoever finds it; the error stays. */
START_TEST(a_deferred_bad_record_comes_before_a_failure_of_next)
{
    records.way = BAD_RECORDS_DEFERRED;
    records.mixed = 1;
    records.kind[2] = BAD_RECORDS_UNREADABLE;
    records.kind[3] = BAD_RECORDS_BROKEN;
    for (int collects = 0; collects < 2; collects++) {
        open_source(CAPACITY_MAX, 0, 1, collects, &beginning);
        take(false);
        ck_assert_int_eq(chunk->failed, collects ? 3 : 2);
        ck_assert_int_eq(chunk->status, collects ? LEAT_EIO : LEAT_EDATA);
        ck_assert_int_eq(chunk->bad.n, collects);
        ck_assert(chunk->is_last);
        take(false);
        ck_assert_int_eq(chunk->failed, 0);
        ck_assert_int_eq(chunk->status, LEAT_EIO);
        ck_assert_ptr_nonnull(strstr(chunk->line, "fails at record 3"));
        close_source();
    }
}
END_TEST

/* The mark of batch `k`, of as many samples over all ranks. */
static leat__position mark_of(int rank, int step, int k, leat_token *mark)
{
    open_source(CAPACITY_MAX, rank, step, false, &beginning);
    leat__position after = {0};
    for (; k >= 0; k--) {
        do
            take(false);
        while (!chunk->is_last);
        ck_assert_msg(chunk->failed == -1, "%s", chunk->line);
        after = chunk->after;
    }
    leat__mark_copy(mark, &chunk->mark);
    close_source();
    return after;
}

/* A batch of 4 over all ranks; that of an odd one ends amid an epoch of 5. */
START_TEST(marks_are_the_same_on_every_rank_and_found_again)
{
    records.way = (bad_records_way)_i;
    decorator = STREAM_FILTER;
    for (int k = 0; k < 12; k++) {
        leat_token first;
        leat_token_init(&first);
        for (int step = 1; step <= 4; step *= 2)
            for (int rank = 0; rank < step; rank++) {
                leat_token mark;
                leat_token_init(&mark);
                batch_size = 4 / step;
                leat__position after = mark_of(rank, step, k, &mark);
                ck_assert_uint_gt(mark.size, 0);
                if (step == 1)
                    leat__mark_copy(&first, &mark);
                ck_assert_uint_eq(mark.size, first.size);
                ck_assert_mem_eq(mark.bytes, first.bytes, first.size);
                ck_assert_int_eq(after.position, 4 * (k + 1));
                ck_assert_int_eq(after.epoch * 5 + after.index, 4 * (k + 1));
                open_source(CAPACITY_MAX, rank, step, false, &beginning);
                leat__chunk_source_go_to(&source, &after, &mark);
                /* Without reading from the beginning of the epoch. */
                ck_assert_int_eq(source.sampler.cursor, after.position);
                take(false);
                int64_t position = after.position + rank;
                int64_t index = stream_decorators_filtered(position % 5);
                ck_assert_int_eq(chunk->sample[0]->from.record, index);
                ck_assert_int_eq(chunk->at[0].index, position % 5);
                ck_assert_int_eq(chunk->at[0].epoch, position / 5);
                close_source();
                leat_token_finish(&mark);
            }
        leat_token_finish(&first);
    }
}
END_TEST

START_TEST(storage_that_fails_ends_the_samples_before_it)
{
    records.way = (bad_records_way)_i;
    records.kind[3] = BAD_RECORDS_BROKEN;
    for (int collects = 0; collects <= 1; collects++) {
        open_source(CAPACITY_MAX, 0, 1, collects, &beginning);
        take(false);
        ck_assert_int_eq(chunk->failed, 3);
        ck_assert_int_eq(chunk->status, LEAT_EIO);
        ck_assert_ptr_nonnull(strstr(chunk->line, "fails at record 3"));
        ck_assert_int_eq(*(const int32_t *)chunk->sample[2]->field[1].data,
                         1002);
        close_source();
    }
}
END_TEST

START_TEST(what_ended_a_single_pass_is_told_again_and_again)
{
    records.way = BAD_RECORDS_IN_ORDER;
    records.single_pass = 1;
    open_source(CAPACITY_MAX, 0, 1, false, &beginning);
    take(false);
    ck_assert(chunk->n == BATCH && chunk->is_last && chunk->failed < 0);
    take(false); /* the samples of a batch cut short come first */
    ck_assert(chunk->n == COUNT - BATCH && chunk->is_last && chunk->failed < 0);
    for (int i = 0; i < 3; i++) {
        take(false);
        ck_assert(chunk->is_last && chunk->failed == 0);
        ck_assert_int_eq(chunk->status, LEAT_END);
    }
    close_source();
}
END_TEST

/* Or it would be walked to, epoch by epoch, for ever. */
START_TEST(a_start_far_beyond_its_epoch_is_of_other_data)
{
    const leat__position near = {COUNT + 3, 0, COUNT + 3};
    const leat__position far = {INT64_C(1) << 60, 0, INT64_C(1) << 60};
    records.way = BAD_RECORDS_IN_ORDER;
    open_source(CAPACITY_MAX, 0, 1, false, &near);
    take(false);
    ck_assert_msg(chunk->failed < 0, "%s", chunk->line);
    check_sample(0, COUNT + 3, 0, 1, false, NULL);
    close_source();
    open_source(CAPACITY_MAX, 0, 1, false, &far);
    for (int i = 0; i < 2; i++) {
        take(false);
        ck_assert(chunk->is_last && chunk->failed == 0);
        ck_assert_int_eq(chunk->status, LEAT_EINVAL);
        ck_assert_ptr_nonnull(
            strstr(chunk->line, "planted: the resume token is of other data"));
    }
    close_source();
}
END_TEST

/* Calls that are given all that the chunk lacks take minutes. */
START_TEST(a_large_chunk_of_bad_records_takes_time_by_its_size)
{
    enum { LARGE = IS_SANITIZED ? 6000 : 60000 };
    batch_size = LARGE;
    records.way = (bad_records_way)_i;
    for (int i = 0; i < COUNT; i++)
        records.kind[i] = BAD_RECORDS_UNREADABLE;
    open_source(LARGE, 0, 1, true, &beginning);
    take(false);
    ck_assert_int_eq(chunk->n, LARGE);
    ck_assert_int_eq(chunk->bad.n, LARGE);
    close_source();
}
END_TEST

START_TEST(a_chunk_survives_every_failed_allocation)
{
    int status = LEAT_ENOMEM;
    for (int n = 0; status == LEAT_ENOMEM; n++) {
        leat__alloc_fail_at(n);
        status = leat__chunk_create(&chunk, CAPACITY_MAX, DRAWS, NULL);
        leat__alloc_fail_at(-1);
        ck_assert(status == LEAT_ENOMEM || n > 4);
    }
    ck_assert_int_eq(status, LEAT_OK);
    ck_assert_int_eq(leat__chunk_reserve(chunk, 100), LEAT_OK);
    leat__chunk_destroy(chunk);
}
END_TEST

/* Fewer than it counted, or more: batches would end elsewhere. */
START_TEST(a_reader_whose_count_is_wrong_is_an_error_by_name)
{
    for (int more = -1; more <= 1; more += 2) {
        int n = 0;
        epoch_end = (leat_epoch_end)_i;
        records = (bad_records){.count = COUNT + 2};
        open_source(CAPACITY_MAX, 0, 1, true, &beginning);
        records.count += more;
        do
            take(false);
        while (chunk->failed < 0 && n++ < 4);
        ck_assert_int_eq(chunk->status, LEAT_EFORMAT);
        ck_assert_ptr_nonnull(strstr(
            chunk->line,
            more < 0
                ? "planted: it ended after 8 samples, but its count is 9"
                : "planted: it ended after 10 samples, but its count is 9"));
        close_source();
    }
}
END_TEST

/* Or it would read for ever. */
START_TEST(a_later_epoch_that_fills_no_batch_is_an_error_of_drop)
{
    epoch_end = LEAT_EPOCH_END_DROP;
    records = (bad_records){.count = 2 * BATCH, .way = BAD_RECORDS_IN_ORDER};
    open_source(CAPACITY_MAX, 0, 1, true, &beginning);
    for (int n = 0; n < 2; n++) {
        take(false);
        ck_assert_msg(chunk->failed == -1, "%s", chunk->line);
    }
    records.count = 3;
    take(false);
    ck_assert_int_eq(chunk->status, LEAT_EINVAL);
    ck_assert_int_eq(chunk->n, 0);
    ck_assert_ptr_nonnull(strstr(
        chunk->line, "planted: epoch_end is DROP, but an epoch of 3 samples "
                     "fills no batch of 5"));
    close_source();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("chunk");
    TCase *tcase = tcase_create("chunk");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_loop_test(tcase, all_ways_give_the_same_samples, 0,
                        BAD_RECORDS_WAYS);
    tcase_add_loop_test(
        tcase, a_start_amid_the_sequence_goes_on_with_its_samples_and_words, 0,
        BAD_RECORDS_WAYS);
    tcase_add_loop_test(
        tcase, the_first_bad_record_fails_a_chunk_and_the_others_are_read, 0,
        BAD_RECORDS_WAYS);
    tcase_add_loop_test(tcase, storage_that_fails_ends_the_samples_before_it, 0,
                        BAD_RECORDS_WAYS);
    tcase_add_test(tcase, bad_records_of_next_and_of_materialize_come_in_order);
    tcase_add_test(tcase, a_deferred_bad_record_comes_before_a_failure_of_next);
    tcase_add_loop_test(tcase, marks_are_the_same_on_every_rank_and_found_again,
                        0, BAD_RECORDS_WAYS);
    tcase_add_test(tcase, what_ended_a_single_pass_is_told_again_and_again);
    tcase_add_test(tcase, a_start_far_beyond_its_epoch_is_of_other_data);
    tcase_add_loop_test(tcase,
                        a_reader_whose_count_is_wrong_is_an_error_by_name,
                        LEAT_EPOCH_END_DROP, LEAT_EPOCH_END_PAD + 1);
    tcase_add_loop_test(
        tcase, a_later_epoch_that_fills_no_batch_is_an_error_of_drop, 0, 2);
    tcase_add_test(tcase, a_chunk_survives_every_failed_allocation);
    tcase = tcase_create("large");
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 20);
    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_loop_test(tcase,
                        a_large_chunk_of_bad_records_takes_time_by_its_size, 0,
                        BAD_RECORDS_WAYS);
    return suite_run(suite);
}
