/* prefetch: order, epochs, options and memory. */
#include "base/memory.h"
#include "decorators/prefetch/prefetch_buffer.h"
#include "pipeline/reader_chain.h"
#include "support/prefetch_fixture.h"
#include "support/suite.h"
#include "support/watchdog.h"

#include <leat.h>
#include <leat/decorators.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 10 };

static leat_sample sample;

static void begin(void)
{
    watchdog_start(60);
    leat_sample_init(&sample);
}

static void end(void)
{
    leat_sample_finish(&sample);
    watchdog_stop();
}

/* tf.data's sizes, and those of paddle.reader's buffered. */
START_TEST(every_buffer_gives_the_same_samples)
{
    for (int64_t samples = -1; samples < 20; samples++) {
        scripted_source source = SCRIPTED_SOURCE_INIT;
        leat_reader *reader = prefetch_open_source(&source, samples, 0);
        prefetch_expect_rest(reader, &sample, 0, COUNT);
        leat_reader_close(reader);
    }
}
END_TEST

/* paddle.reader's xmap_readers: threads, buffers and orders, three epochs. */
START_TEST(any_number_of_threads_gives_three_epochs)
{
    const int sizes[] = {1, 2, 4, 8, 16};
    for (int i = 0; i < 50; i++) {
        scripted_source source = SCRIPTED_SOURCE_INIT;
        bool unordered = i >= 25;
        leat_reader *reader =
            prefetch_open_over(scripted_source_pipeline(&source), sizes[i % 5],
                               sizes[i / 5 % 5], unordered);
        for (int epoch = 0; epoch < 3; epoch++) {
            int seen = 0;
            ck_assert_int_eq(epoch ? prefetch_seek(reader, epoch, 0) : LEAT_OK,
                             LEAT_OK);
            for (int k = 0; k < COUNT; k++) {
                ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
                ck_assert(unordered || prefetch_label(&sample) == k);
                seen |= 1 << prefetch_label(&sample);
            }
            ck_assert_int_eq(seen, (1 << COUNT) - 1);
            ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
        }
        leat_reader_close(reader);
    }
}
END_TEST

START_TEST(options_and_text_are_checked_and_equal)
{
    leat_prefetch_options options = LEAT_PREFETCH_OPTIONS_INIT;
    leat_prefetch_options other = {.size = sizeof(other), .threads = 7};
    scripted_source source = SCRIPTED_SOURCE_INIT;
    leat_pipeline *upstream = scripted_source_pipeline(&source);
    leat_pipeline *pipeline;
    ck_assert_int_eq(leat_prefetch_options_init(&other), LEAT_OK);
    ck_assert_mem_eq(&other, &options, sizeof(options));
    ck_assert_int_eq(leat_pipeline_prefetch(&pipeline, upstream, NULL),
                     LEAT_OK);
    ck_assert_str_eq(leat_pipeline_text(pipeline), "callback | prefetch:auto");
    leat_pipeline_unref(pipeline);
    options = (leat_prefetch_options){.size = sizeof(options),
                                      .samples = 64,
                                      .threads = 2,
                                      .max_bytes = 1000,
                                      .unordered = true};
    ck_assert_int_eq(leat_pipeline_prefetch(&pipeline, upstream, &options),
                     LEAT_OK);
    ck_assert_str_eq(
        leat_pipeline_text(pipeline),
        "callback | prefetch:64,threads=2,max_bytes=1000,unordered=1");
    leat_pipeline_unref(pipeline);
    options.samples = -2;
    ck_assert_int_eq(leat_pipeline_prefetch(&pipeline, upstream, &options),
                     LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "samples"));
    options.samples = 0;
    options.threads = 100000;
    ck_assert_int_eq(leat_pipeline_prefetch(&pipeline, upstream, &options),
                     LEAT_EINVAL);
    options.size = 0;
    ck_assert_int_eq(leat_pipeline_prefetch(&pipeline, upstream, &options),
                     LEAT_EINVAL);
    leat_pipeline_unref(upstream);
    const char *const texts[] = {
        "auto", "AUTO", "0", "-1", "1", "64,threads=3", "1k,max_bytes=1G"};
    for (int i = 0; i < 7; i++) {
        char text[64];
        snprintf(text, sizeof(text), "lmdb:x | prefetch:%s", texts[i]);
        ck_assert_msg(leat_pipeline_parse(&pipeline, text) == LEAT_OK, "%s",
                      leat_last_error());
        leat_pipeline_unref(pipeline);
    }
    const char *const faults[] = {
        "-2", "x", "auto1", "1,threads=0", "1,unordered=2", "9M"};
    for (int i = 0; i < 6; i++) {
        char text[64];
        snprintf(text, sizeof(text), "lmdb:x | prefetch:%s", faults[i]);
        ck_assert_msg(leat_pipeline_parse(&pipeline, text) == LEAT_EINVAL, "%s",
                      text);
    }
}
END_TEST

START_TEST(it_reads_into_the_next_epoch_without_a_gap)
{
    scripted_source source = SCRIPTED_SOURCE_INIT;
    leat_reader *reader = prefetch_open_source(&source, 25, 2);
    prefetch_expect(reader, &sample, 0);
    prefetch_await_given(&source, 2 * COUNT + 2);
    prefetch_expect_rest(reader, &sample, 1, COUNT);
    ck_assert_int_eq(prefetch_seek(reader, 1, 0), LEAT_OK);
    prefetch_expect_rest(reader, &sample, 0, COUNT);
    /* Also by those who count, and do not ask for the end. */
    ck_assert_int_eq(prefetch_seek(reader, 2, 0), LEAT_OK);
    for (int i = 0; i < COUNT; i++)
        prefetch_expect(reader, &sample, i);
    prefetch_await_given(&source, 4 * COUNT);
    ck_assert_int_eq(prefetch_seek(reader, 3, 0), LEAT_OK);
    prefetch_await_given(&source, 4 * COUNT + 4);
    prefetch_expect_rest(reader, &sample, 0, COUNT);
    leat_reader_close(reader);
    ck_assert_int_le(source.given, 6 * COUNT + 5);
}
END_TEST

/* A repeat above it numbers its passes round. */
START_TEST(it_reads_from_the_last_epoch_into_the_first)
{
    scripted_source source = SCRIPTED_SOURCE_INIT;
    leat_reader *reader = prefetch_open_source(&source, 25, 2);
    ck_assert_int_eq(prefetch_seek(reader, INT64_MAX, 0), LEAT_OK);
    prefetch_expect(reader, &sample, 0);
    prefetch_await_given(&source, COUNT + 2);
    prefetch_expect_rest(reader, &sample, 1, COUNT);
    ck_assert_int_eq(prefetch_seek(reader, 0, 0), LEAT_OK);
    prefetch_expect_rest(reader, &sample, 0, COUNT);
    leat_reader_close(reader);
}
END_TEST

START_TEST(a_single_pass_ends_for_good)
{
    scripted_source source = SCRIPTED_SOURCE_INIT;
    source.single_pass = 1;
    leat_reader *reader = prefetch_open_source(&source, 25, 2);
    prefetch_expect_rest(reader, &sample, 0, COUNT);
    ck_assert_int_eq(prefetch_seek(reader, 1, 0), LEAT_EUNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "reset"));
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
    leat_reader_close(reader);
}
END_TEST

START_TEST(bad_records_and_errors_come_in_their_place)
{
    for (int threads = 1; threads <= 4; threads++) {
        scripted_source source = SCRIPTED_SOURCE_INIT;
        source.bad = 3;
        source.broken = 7;
        leat_reader *reader = prefetch_open_source(&source, 4, threads);
        for (int epoch = 0; epoch < 2; epoch++) {
            ck_assert_int_eq(prefetch_seek(reader, epoch, 0), LEAT_OK);
            for (int i = 0; i < 3; i++)
                prefetch_expect(reader, &sample, i);
            ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_EDATA);
            ck_assert_ptr_nonnull(strstr(leat_last_error(), "record 3 is bad"));
            ck_assert_int_eq(sample.from.record, 3);
            for (int i = 4; i < 7; i++)
                prefetch_expect(reader, &sample, i);
            for (int i = 0; i < 3; i++) {
                ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_EIO);
                ck_assert_ptr_nonnull(strstr(leat_last_error(), "failed at 7"));
            }
        }
        pthread_mutex_lock(&source.lock);
        source.broken = -1;
        pthread_mutex_unlock(&source.lock);
        ck_assert_int_eq(prefetch_seek(reader, 0, 0), LEAT_OK);
        for (int i = 0; i < 3; i++)
            prefetch_expect(reader, &sample, i);
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_EDATA);
        prefetch_expect_rest(reader, &sample, 4, COUNT);
        leat_reader_close(reader);
    }
}
END_TEST

START_TEST(unordered_is_refused_where_order_matters)
{
    scripted_source source = SCRIPTED_SOURCE_INIT;
    leat_token token;
    int64_t skipped;
    leat_token_init(&token);
    leat_reader *reader =
        prefetch_open_over(scripted_source_pipeline(&source), 5, 2, true);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(leat_reader_save(reader, &token), LEAT_ESTATE);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "unordered"));
    ck_assert_int_eq(prefetch_seek(reader, 0, 1), LEAT_EUNSUPPORTED);
    ck_assert(!leat_reader_can_seek(reader));
    ck_assert_int_eq(leat_reader_skip(reader, 100, &skipped), LEAT_END);
    ck_assert_int_eq(skipped, COUNT - 1);
    leat_pipeline *pipeline = NULL;
    leat_open_options options = LEAT_OPEN_OPTIONS_INIT;
    options.world_size = 2;
    scripted_source other = SCRIPTED_SOURCE_INIT;
    leat_pipeline *upstream = scripted_source_pipeline(&other);
    leat_prefetch_options unordered = {.size = sizeof(unordered),
                                       .unordered = true};
    ck_assert_int_eq(leat_pipeline_prefetch(&pipeline, upstream, &unordered),
                     LEAT_OK);
    leat_reader *refused;
    ck_assert_int_eq(leat_pipeline_open_with(pipeline, &options, &refused),
                     LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "unordered"));
    leat_pipeline_unref(pipeline);
    leat_pipeline_unref(upstream);
    leat_reader_close(reader);
    leat_token_finish(&token);
}
END_TEST

/* The samples of `memory` are views, so that only prefetch takes memory. */
static leat_pipeline *memory_of(int count)
{
    static float data[1000];
    static int32_t labels[1000];
    for (int i = 0; i < 1000; i++)
        labels[i] = i;
    const leat_memory_field fields[] = {
        {.name = "data", .dtype = LEAT_FLOAT32, .ndim = 0, .data = data},
        {.name = "label", .dtype = LEAT_INT32, .ndim = 0, .data = labels},
    };
    leat_pipeline *pipeline;
    ck_assert_msg(leat_pipeline_memory(&pipeline, fields, 2, count) == LEAT_OK,
                  "%s", leat_last_error());
    return pipeline;
}

START_TEST(random_access_stays_and_reads_go_by_index)
{
    leat_reader *reader = prefetch_open_over(memory_of(1000), 50, 3, false);
    int64_t count, skipped;
    ck_assert(leat_reader_is_random_access(reader));
    ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
    ck_assert_int_eq(count, 1000);
    for (int i = 0; i < 30; i++) {
        int index = i * 331 % 1001;
        ck_assert_int_eq(prefetch_seek(reader, i % 3, index), LEAT_OK);
        for (int k = index; k < 1000 && k < index + i; k++)
            prefetch_expect(reader, &sample, k);
        if (index + i + 200 >= 1000)
            continue;
        ck_assert_int_eq(leat_reader_skip(reader, i * 5, &skipped), LEAT_OK);
        ck_assert_int_eq(skipped, i * 5);
        prefetch_expect(reader, &sample, index + i + 5 * i);
    }
    ck_assert_int_eq(prefetch_seek(reader, 0, 1001), LEAT_EINVAL);
    leat_reader_close(reader);
}
END_TEST

static int fail_every_seventh(void *user, leat_sample *one)
{
    int32_t value;
    (void)user;
    memcpy(&value, one->field[1].data, sizeof(value));
    return value % 7 == 3 ? leat_error(LEAT_EDATA, "a seventh") : LEAT_OK;
}

/* What a bad record leaves of the samples after it is not given twice. */
START_TEST(samples_after_bad_ones_are_whole_by_index)
{
    leat_pipeline *upstream = memory_of(700), *mapped, *shuffled;
    ck_assert_int_eq(
        leat_pipeline_map(&mapped, upstream, fail_every_seventh, NULL, 1, NULL),
        LEAT_OK);
    ck_assert_int_eq(leat_pipeline_shuffle(&shuffled, mapped, NULL), LEAT_OK);
    leat_pipeline_unref(mapped);
    leat_pipeline_unref(upstream);
    leat_reader *reader = prefetch_open_over(shuffled, 64, 2, false);
    leat_sample right, *const out[] = {&right};
    leat_sample_init(&right);
    for (int64_t i = 0; i < 700; i++) {
        const leat_position at = {0, i};
        int got;
        int status = leat_reader_read_at(reader, &at, out, 1, &got);
        ck_assert_int_eq(leat_reader_next(reader, &sample), status);
        if (status)
            continue;
        ck_assert_int_eq(sample.nfields, 2);
        ck_assert_ptr_eq(sample.field[1].data, right.field[1].data);
    }
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
    leat_sample_finish(&right);
    leat_reader_close(reader);
}
END_TEST

START_TEST(nothing_is_allocated_in_the_steady_state)
{
    scripted_source source = SCRIPTED_SOURCE_INIT;
    source.count = 1000;
    leat_reader *reader = prefetch_open_source(&source, 16, 2);
    prefetch_expect_rest(reader, &sample, 0, 1000);
    ck_assert_int_eq(prefetch_seek(reader, 1, 0), LEAT_OK);
    int64_t before = leat__alloc_count();
    for (int i = 0; i < 900; i++)
        prefetch_expect(reader, &sample, i);
    /* A buffer that neither epoch before had used, at most. */
    ck_assert_int_le(leat__alloc_count() - before, 4);
    leat_reader_close(reader);
}
END_TEST

static int64_t memory_held(leat_reader *reader)
{
    return reader->ops->memory(reader);
}

START_TEST(auto_doubles_up_to_its_bytes)
{
    for (int capped = 0; capped < 2; capped++) {
        scripted_source source = SCRIPTED_SOURCE_INIT;
        source.count = INT64_MAX;
        leat_prefetch_options options = LEAT_PREFETCH_OPTIONS_INIT;
        options.max_bytes = capped ? 100000 : 0;
        leat_pipeline *upstream = scripted_source_pipeline(&source), *pipeline;
        leat_reader *reader;
        ck_assert_int_eq(leat_pipeline_prefetch(&pipeline, upstream, &options),
                         LEAT_OK);
        ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
        int64_t first = memory_held(reader);
        /* Full, and then found empty, unless its thread keeps up. */
        int given = 0;
        for (int round = 0;
             round < (capped ? 4 : 1000) && memory_held(reader) <= 2 * first;
             round++) {
            prefetch_expect(reader, &sample, given++);
            prefetch_await_given(&source, given + 11);
            for (int i = 0; i < 3000; i++)
                prefetch_expect(reader, &sample, given++);
        }
        int64_t last = memory_held(reader);
        if (capped)
            ck_assert_int_le(last, 2 * 100000);
        else
            ck_assert_int_gt(last, 2 * first);
        leat_reader_close(reader);
        leat_pipeline_unref(pipeline);
        leat_pipeline_unref(upstream);
    }
}
END_TEST

enum { LARGE = 100000 };

static int large_next(void *pass, leat_sample *one)
{
    static const unsigned char bytes[LARGE];
    const int64_t shape[] = {LARGE};
    (void)pass;
    return leat_sample_set(one, 0, LEAT_UINT8, 1, shape, bytes);
}

/* The most that it holds, after each of some samples; of more until it has held
 * over `least`, as its thread may be slow. */
static int64_t hold_large(int64_t samples, int64_t max_bytes,
                          int64_t max_memory, int threads, int64_t least)
{
    static const leat_field_spec field = {
        .name = "data", .dtype = LEAT_UINT8, .ndim = -1};
    static const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                             .fields = &field,
                                             .nfields = 1,
                                             .next = large_next};
    const leat_prefetch_options options = {.size = sizeof(options),
                                           .samples = samples,
                                           .threads = threads,
                                           .max_bytes = max_bytes};
    const leat_open_options open = {.size = sizeof(open),
                                    .max_memory = max_memory};
    leat_pipeline *upstream, *pipeline;
    leat_reader *reader;
    int64_t most = 0;
    ck_assert_int_eq(leat_pipeline_callback(&upstream, &callbacks, NULL),
                     LEAT_OK);
    ck_assert_int_eq(leat_pipeline_prefetch(&pipeline, upstream, &options),
                     LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open_with(pipeline, &open, &reader),
                     LEAT_OK);
    for (int i = 0; i < (most > least ? 400 : 1000000); i++) {
        int64_t held = memory_held(reader);
        most = held > most ? held : most;
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    }
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
    leat_pipeline_unref(upstream);
    return most;
}

START_TEST(auto_begins_within_its_bytes)
{
    const int64_t slack = 2 * LARGE;
    for (int threads = 1; threads <= 64; threads *= 8) {
        ck_assert_int_le(hold_large(0, 5 * LARGE, 0, threads, 0), 5 * LARGE);
        ck_assert_int_le(hold_large(0, 0, 20 * LARGE, threads, 0), 5 * LARGE);
        ck_assert_int_le(hold_large(0, 50 * LARGE, 5 * LARGE, threads, 0),
                         5 * LARGE);
        ck_assert_int_le(hold_large(0, 1, 0, threads, 0), slack);
    }
    ck_assert_int_gt(hold_large(0, 5 * LARGE, 0, 1, 2 * LARGE), 2 * LARGE);
}
END_TEST

/* Slots are there at once, but not all of them may have a sample. */
START_TEST(a_number_keeps_to_a_quarter_of_the_callers_memory)
{
    for (int threads = 1; threads <= 8; threads *= 2)
        ck_assert_int_le(hold_large(50, 0, 80 * LARGE, threads, 0),
                         (20 + threads) * LARGE);
    ck_assert_int_gt(hold_large(50, 0, 80 * LARGE, 1, 10 * LARGE), 10 * LARGE);
    ck_assert_int_gt(hold_large(50, 0, 0, 1, 40 * LARGE), 40 * LARGE);
}
END_TEST

/* Half of that memory here. */
START_TEST(many_slots_leave_room_for_samples)
{
    const int64_t least = 1000 * (int64_t)sizeof(leat__prefetch_slot);
    ck_assert_int_gt(hold_large(1000, 0, 80 * LARGE, 1, least + 10 * LARGE),
                     least + 10 * LARGE);
}
END_TEST

/* The thread's own start is one allocation, so a thread may be missing. */
START_TEST(every_allocation_may_fail)
{
    for (int64_t n = 0; n < 60; n++) {
        scripted_source source = SCRIPTED_SOURCE_INIT;
        leat_pipeline *upstream = scripted_source_pipeline(&source);
        leat_prefetch_options options = {
            .size = sizeof(options), .samples = 5, .threads = 3};
        leat_pipeline *pipeline = NULL;
        leat_reader *reader = NULL;
        leat__alloc_fail_at(n);
        int status = leat_pipeline_prefetch(&pipeline, upstream, &options);
        if (!status)
            status = leat_pipeline_open(pipeline, &reader);
        for (int i = 0; i < COUNT && !status; i++)
            status = leat_reader_next(reader, &sample);
        leat__alloc_fail_at(-1);
        ck_assert(!status || status == LEAT_ENOMEM);
        if (reader && status) {
            ck_assert_int_eq(prefetch_seek(reader, 0, 0), LEAT_OK);
            prefetch_expect_rest(reader, &sample, 0, COUNT);
        }
        leat_reader_close(reader);
        leat_pipeline_unref(pipeline);
        leat_pipeline_unref(upstream);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("prefetch");
    TCase *tcase = tcase_create("prefetch");
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_set_timeout(tcase, 0);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, every_buffer_gives_the_same_samples);
    tcase_add_test(tcase, any_number_of_threads_gives_three_epochs);
    tcase_add_test(tcase, options_and_text_are_checked_and_equal);
    tcase_add_test(tcase, it_reads_into_the_next_epoch_without_a_gap);
    tcase_add_test(tcase, it_reads_from_the_last_epoch_into_the_first);
    tcase_add_test(tcase, a_single_pass_ends_for_good);
    tcase_add_test(tcase, bad_records_and_errors_come_in_their_place);
    tcase_add_test(tcase, unordered_is_refused_where_order_matters);
    tcase_add_test(tcase, random_access_stays_and_reads_go_by_index);
    tcase_add_test(tcase, samples_after_bad_ones_are_whole_by_index);
    tcase_add_test(tcase, nothing_is_allocated_in_the_steady_state);
    tcase_add_test(tcase, auto_doubles_up_to_its_bytes);
    tcase_add_test(tcase, auto_begins_within_its_bytes);
    tcase_add_test(tcase, many_slots_leave_room_for_samples);
    tcase_add_test(tcase, a_number_keeps_to_a_quarter_of_the_callers_memory);
    tcase_add_test(tcase, every_allocation_may_fail);
    return suite_run(suite);
}
