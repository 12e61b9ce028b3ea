/* prefetch: order, epochs, and what happens while its threads are inside. */
#include "base/memory.h"
#include "pipeline/reader_chain.h"
#include "support/scripted_source.h"
#include "support/stream_decorators.h"
#include "support/suite.h"
#include "support/watchdog.h"

#include <leat.h>
#include <leat/decorators.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
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

static leat_reader *open_over(leat_pipeline *upstream, int64_t samples,
                              int threads, bool unordered)
{
    leat_prefetch_options options = LEAT_PREFETCH_OPTIONS_INIT;
    leat_pipeline *pipeline;
    leat_reader *reader;
    options.samples = samples;
    options.threads = threads;
    options.unordered = unordered;
    ck_assert_int_eq(leat_pipeline_prefetch(&pipeline, upstream, &options),
                     LEAT_OK);
    leat_pipeline_unref(upstream);
    ck_assert_msg(leat_pipeline_open(pipeline, &reader) == LEAT_OK, "%s",
                  leat_last_error());
    leat_pipeline_unref(pipeline);
    return reader;
}

static leat_reader *open_source(scripted_source *source, int64_t samples,
                                int threads)
{
    return open_over(scripted_source_pipeline(source), samples, threads, false);
}

static int label(void)
{
    int32_t value;
    memcpy(&value, sample.field[sample.nfields - 1].data, sizeof(value));
    return value;
}

static void expect(leat_reader *reader, int wanted)
{
    int status = leat_reader_next(reader, &sample);
    ck_assert_msg(status == LEAT_OK, "%d: %s", wanted, leat_last_error());
    ck_assert_int_eq(label(), wanted);
}

static void expect_rest(leat_reader *reader, int first, int count)
{
    for (int i = first; i < count; i++)
        expect(reader, i);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
}

static int seek(leat_reader *reader, int64_t epoch, int64_t index)
{
    return leat_reader_seek(reader, (leat_position){epoch, index}, NULL);
}

static void await_given(scripted_source *source, int wanted)
{
    int given = 0;
    while (given < wanted) {
        sched_yield();
        pthread_mutex_lock(&source->lock);
        given = source->given;
        pthread_mutex_unlock(&source->lock);
    }
}

static int count_threads(void)
{
    int n = 0;
    DIR *tasks = opendir("/proc/self/task");
    ck_assert_ptr_nonnull(tasks);
    for (struct dirent *one; (one = readdir(tasks));)
        n += one->d_name[0] != '.';
    closedir(tasks);
    return n;
}

/* tf.data's sizes, and those of paddle.reader's buffered. */
START_TEST(every_buffer_gives_the_same_samples)
{
    for (int64_t samples = -1; samples < 20; samples++) {
        scripted_source source = SCRIPTED_SOURCE_INIT;
        leat_reader *reader = open_source(&source, samples, 0);
        expect_rest(reader, 0, COUNT);
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
            open_over(scripted_source_pipeline(&source), sizes[i % 5],
                      sizes[i / 5 % 5], unordered);
        for (int epoch = 0; epoch < 3; epoch++) {
            int seen = 0;
            ck_assert_int_eq(epoch ? seek(reader, epoch, 0) : LEAT_OK, LEAT_OK);
            for (int k = 0; k < COUNT; k++) {
                ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
                ck_assert(unordered || label() == k);
                seen |= 1 << label();
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

START_TEST(the_first_next_starts_the_threads)
{
    scripted_source source = SCRIPTED_SOURCE_INIT;
    const leat_field_spec *spec;
    int64_t skipped;
    int n, before = count_threads();
    leat_reader *reader = open_source(&source, 4, 3);
    ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
    ck_assert_int_eq(leat_reader_skip(reader, 2, &skipped), LEAT_OK);
    ck_assert_int_eq(count_threads(), before);
    expect(reader, 2);
    ck_assert_int_eq(count_threads(), before + 3);
    ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
    ck_assert_int_eq(n, 2);
    expect_rest(reader, 3, COUNT);
    leat_reader_close(reader);
    ck_assert_int_eq(count_threads(), before);
}
END_TEST

START_TEST(it_reads_into_the_next_epoch_without_a_gap)
{
    scripted_source source = SCRIPTED_SOURCE_INIT;
    leat_reader *reader = open_source(&source, 25, 2);
    expect(reader, 0);
    await_given(&source, 2 * COUNT + 2);
    expect_rest(reader, 1, COUNT);
    ck_assert_int_eq(seek(reader, 1, 0), LEAT_OK);
    expect_rest(reader, 0, COUNT);
    /* Also by those who count, and do not ask for the end. */
    ck_assert_int_eq(seek(reader, 2, 0), LEAT_OK);
    for (int i = 0; i < COUNT; i++)
        expect(reader, i);
    await_given(&source, 4 * COUNT);
    ck_assert_int_eq(seek(reader, 3, 0), LEAT_OK);
    await_given(&source, 4 * COUNT + 4);
    expect_rest(reader, 0, COUNT);
    leat_reader_close(reader);
    ck_assert_int_le(source.given, 6 * COUNT + 5);
}
END_TEST

START_TEST(a_single_pass_ends_for_good)
{
    scripted_source source = SCRIPTED_SOURCE_INIT;
    source.single_pass = 1;
    leat_reader *reader = open_source(&source, 25, 2);
    expect_rest(reader, 0, COUNT);
    ck_assert_int_eq(seek(reader, 1, 0), LEAT_EUNSUPPORTED);
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
        leat_reader *reader = open_source(&source, 4, threads);
        for (int epoch = 0; epoch < 2; epoch++) {
            ck_assert_int_eq(seek(reader, epoch, 0), LEAT_OK);
            for (int i = 0; i < 3; i++)
                expect(reader, i);
            ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_EDATA);
            ck_assert_ptr_nonnull(strstr(leat_last_error(), "record 3 is bad"));
            ck_assert_int_eq(sample.from.record, 3);
            for (int i = 4; i < 7; i++)
                expect(reader, i);
            for (int i = 0; i < 3; i++) {
                ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_EIO);
                ck_assert_ptr_nonnull(strstr(leat_last_error(), "failed at 7"));
            }
        }
        pthread_mutex_lock(&source.lock);
        source.broken = -1;
        pthread_mutex_unlock(&source.lock);
        ck_assert_int_eq(seek(reader, 0, 0), LEAT_OK);
        for (int i = 0; i < 3; i++)
            expect(reader, i);
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_EDATA);
        expect_rest(reader, 4, COUNT);
        leat_reader_close(reader);
    }
}
END_TEST

static void *cancel_it(void *reader)
{
    leat_reader_cancel(reader);
    return NULL;
}

/* What the caller does while a thread waits inside the callback for ever. */
typedef enum blocked_call { NEXT, SEEK, SAVE, SKIP, CLOSE } blocked_call;

START_TEST(cancel_and_close_end_every_wait)
{
    scripted_source source = SCRIPTED_SOURCE_INIT;
    pthread_t canceller;
    int64_t skipped;
    leat_token token;
    int status = LEAT_ECANCELLED;
    source.blocks = 3;
    leat_token_init(&token);
    leat_reader *reader = open_source(&source, 6, 2);
    for (int i = 0; i < 3; i++)
        expect(reader, i);
    scripted_source_await_blocked(&source);
    if (_i != CLOSE)
        ck_assert_int_eq(pthread_create(&canceller, NULL, cancel_it, reader),
                         0);
    if (_i == NEXT)
        status = leat_reader_next(reader, &sample);
    if (_i == SEEK)
        status = seek(reader, 0, 0);
    if (_i == SAVE)
        status = leat_reader_save(reader, &token);
    if (_i == SKIP)
        status = leat_reader_skip(reader, 100, &skipped);
    ck_assert_int_eq(status, LEAT_ECANCELLED);
    if (_i != CLOSE) {
        pthread_join(canceller, NULL);
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_ECANCELLED);
        ck_assert_int_eq(seek(reader, 1, 0), LEAT_ECANCELLED);
    }
    leat_reader_close(reader);
    leat_token_finish(&token);
}
END_TEST

START_TEST(seek_waits_for_threads_inside_and_drops_what_was_read)
{
    scripted_source source = SCRIPTED_SOURCE_INIT;
    for (int i = 0; i < 300; i++) {
        source.opened = 0;
        leat_reader *reader = open_source(&source, 1 + i % 7, 1 + i % 4);
        for (int k = 0; k < 6; k++) {
            for (int j = 0; j < (i + k) % 5; j++)
                expect(reader, j);
            ck_assert_int_eq(seek(reader, (i * k) % 3, 0), LEAT_OK);
        }
        expect_rest(reader, 0, COUNT);
        leat_reader_close(reader);
    }
}
END_TEST

static leat_pipeline *filtered(scripted_source *source)
{
    return stream_decorators_take(STREAM_FILTER,
                                  scripted_source_pipeline(source));
}

START_TEST(a_mark_does_not_wait_for_the_next_sample)
{
    scripted_source source = SCRIPTED_SOURCE_INIT;
    leat_token mark;
    source.blocks = 5;
    leat_token_init(&mark);
    leat_reader *reader = open_over(filtered(&source), 6, 2, false);
    expect(reader, 0);
    expect(reader, 2);
    expect(reader, 3);
    scripted_source_await_blocked(&source);
    ck_assert_int_eq(leat_reader_mark(reader, &mark), LEAT_OK);
    leat_reader_close(reader);

    /* The mark of prefetch is its upstream reader's. */
    scripted_source other = SCRIPTED_SOURCE_INIT;
    leat_pipeline *pipeline = filtered(&other);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 3}, &mark),
                     LEAT_OK);
    ck_assert_uint_eq(mark.cursor, mark.size);
    expect(reader, 5);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
    leat_token_finish(&mark);
}
END_TEST

/* Neither without memory nor after a seek that failed: an empty one leads
   nowhere. */
START_TEST(a_mark_that_could_not_be_made_is_an_error)
{
    int failed = 0;
    leat_token mark;
    leat_token_init(&mark);
    for (int64_t n = 0; n < 60; n++) {
        scripted_source source = SCRIPTED_SOURCE_INIT;
        leat_reader *reader = open_over(filtered(&source), 3, 1, false);
        leat__alloc_fail_at(n);
        int status = LEAT_OK;
        while (!status)
            status = leat_reader_next(reader, &sample);
        leat__alloc_fail_at(-1);
        mark.size = mark.cursor = 0;
        int marked = leat_reader_mark(reader, &mark);
        ck_assert(marked ? marked == LEAT_ENOMEM : mark.size > 0);
        failed += marked == LEAT_ENOMEM;
        leat_reader_close(reader);
    }
    ck_assert_int_gt(failed, 0);
    leat_token_finish(&mark);
}
END_TEST

START_TEST(unordered_is_refused_where_order_matters)
{
    scripted_source source = SCRIPTED_SOURCE_INIT;
    leat_token token;
    int64_t skipped;
    leat_token_init(&token);
    leat_reader *reader =
        open_over(scripted_source_pipeline(&source), 5, 2, true);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(leat_reader_save(reader, &token), LEAT_EUNSUPPORTED);
    ck_assert_int_eq(seek(reader, 0, 1), LEAT_EUNSUPPORTED);
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

/* A map whose work on a sample ends once another thread works on one too. */
typedef struct pair_map {
    leat_reader reader;
    leat_reader *upstream;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int inside, met, waits;
} pair_map;

static int pair_fields(leat_reader *reader, const leat_field_spec **out, int *n)
{
    return leat_reader_fields(((pair_map *)reader)->upstream, out, n);
}

static int pair_next(leat_reader *reader, leat_sample *const out[], int n,
                     int *got)
{
    return leat_reader_pull(((pair_map *)reader)->upstream, out, n, got);
}

static int pair_seek(leat_reader *reader, leat_position at, leat_token *mark)
{
    return leat_reader_seek(((pair_map *)reader)->upstream, at, mark);
}

static void pair_cancel(leat_reader *reader)
{
    leat_reader_cancel(((pair_map *)reader)->upstream);
}

static void pair_close(leat_reader *reader)
{
    leat_reader_close(((pair_map *)reader)->upstream);
}

static int pair_materialize(leat_reader *reader, leat_sample *const out[],
                            int n, int *got)
{
    pair_map *self = (pair_map *)reader;
    (void)out;
    pthread_mutex_lock(&self->lock);
    self->met |= ++self->inside > 1;
    pthread_cond_broadcast(&self->changed);
    while (!self->met)
        pthread_cond_wait(&self->changed, &self->lock);
    self->inside--;
    pthread_mutex_unlock(&self->lock);
    *got = n;
    return LEAT_OK;
}

static const leat_reader_ops pair_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "pair",
    .fields = pair_fields,
    .next = pair_next,
    .seek = pair_seek,
    .cancel = pair_cancel,
    .close = pair_close,
    .materialize = pair_materialize,
};

static pair_map the_pair = {.reader = {.ops = &pair_ops},
                            .lock = PTHREAD_MUTEX_INITIALIZER,
                            .changed = PTHREAD_COND_INITIALIZER};

static int pair_open(const leat_open *open, leat_reader **out)
{
    the_pair.upstream = open->upstream[0];
    the_pair.inside = the_pair.met = 0;
    *out = &the_pair.reader;
    return LEAT_OK;
}

static const leat_reader_type pair_type = {.size = sizeof(leat_reader_type),
                                           .name = "pair",
                                           .min_upstream = 1,
                                           .max_upstream = 1,
                                           .open = pair_open};

START_TEST(threads_work_at_the_same_time)
{
    scripted_source source = SCRIPTED_SOURCE_INIT;
    leat_pipeline *upstream = scripted_source_pipeline(&source);
    leat_pipeline *pipeline;
    ck_assert_int_eq(leat_pipeline_create(&pipeline, &pair_type, NULL, NULL,
                                          NULL, &upstream, 1),
                     LEAT_OK);
    leat_pipeline_unref(upstream);
    leat_reader *reader = open_over(pipeline, 4, 2, false);
    expect_rest(reader, 0, COUNT);
    leat_reader_close(reader);
    ck_assert_int_eq(the_pair.met, 1);
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
    leat_reader *reader = open_over(memory_of(1000), 50, 3, false);
    int64_t count, skipped;
    ck_assert(leat_reader_is_random_access(reader));
    ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
    ck_assert_int_eq(count, 1000);
    for (int i = 0; i < 30; i++) {
        int index = i * 331 % 1001;
        ck_assert_int_eq(seek(reader, i % 3, index), LEAT_OK);
        for (int k = index; k < 1000 && k < index + i; k++)
            expect(reader, k);
        if (index + i + 200 >= 1000)
            continue;
        ck_assert_int_eq(leat_reader_skip(reader, i * 5, &skipped), LEAT_OK);
        ck_assert_int_eq(skipped, i * 5);
        expect(reader, index + i + 5 * i);
    }
    ck_assert_int_eq(seek(reader, 0, 1001), LEAT_EINVAL);
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
    leat_reader *reader = open_over(shuffled, 64, 2, false);
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
    leat_reader *reader = open_source(&source, 16, 2);
    expect_rest(reader, 0, 1000);
    ck_assert_int_eq(seek(reader, 1, 0), LEAT_OK);
    int64_t before = leat__alloc_count();
    for (int i = 0; i < 900; i++)
        expect(reader, i);
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
        /* Full, and then found empty. */
        int given = 0;
        for (int round = 0; round < 4; round++) {
            expect(reader, given++);
            await_given(&source, given + 11);
            for (int i = 0; i < 3000; i++)
                expect(reader, given++);
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

START_TEST(waits_are_blocked_time_not_busy)
{
    static long pause = 2000000;
    leat_reader *reader =
        open_over(scripted_source_slow_pipeline(&pause), 2, 1, false);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    const leat_reader_figures *own = reader->state->figures;
    ck_assert_int_gt(atomic_load(&own->blocked), 10 * 1000000);
    ck_assert_int_lt(atomic_load(&own->busy), atomic_load(&own->blocked));
    leat_reader_close(reader);
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
            ck_assert_int_eq(seek(reader, 0, 0), LEAT_OK);
            expect_rest(reader, 0, COUNT);
        }
        leat_reader_close(reader);
        leat_pipeline_unref(pipeline);
        leat_pipeline_unref(upstream);
    }
}
END_TEST

START_TEST(a_forked_child_is_refused_and_can_close)
{
    scripted_source source = SCRIPTED_SOURCE_INIT;
    leat_reader *reader = open_source(&source, 4, 2);
    expect(reader, 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        int status = leat_reader_next(reader, &sample);
        leat_reader_cancel(reader);
        leat_reader_close(reader);
        _exit(status == LEAT_ESTATE ? 0 : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    expect_rest(reader, 1, COUNT);
    leat_reader_close(reader);
}
END_TEST

static leat_data_layer *the_layer;
static atomic_int refused;

/* A callback on a thread of prefetch, which the layer's setup has started. */
static int restoring_next(void *pass, leat_sample *out)
{
    static const float value = 1;
    (void)pass;
    leat_token token;
    leat_token_init(&token);
    if (leat_data_layer_restore(the_layer, &token) == LEAT_ESTATE &&
        strstr(leat_last_error(), "inside a callback"))
        atomic_fetch_add(&refused, 1);
    leat_token_finish(&token);
    return leat_sample_set(out, 0, LEAT_FLOAT32, 0, NULL, &value);
}

START_TEST(its_threads_are_the_layers)
{
    const leat_field_spec field = {.name = "data", .dtype = LEAT_FLOAT32};
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = &field,
                                      .nfields = 1,
                                      .next = restoring_next};
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    leat_pipeline *upstream, *pipeline;
    options.batch_size = 4;
    ck_assert_int_eq(leat_pipeline_callback(&upstream, &callbacks, NULL),
                     LEAT_OK);
    ck_assert_int_eq(leat_pipeline_prefetch(&pipeline, upstream, NULL),
                     LEAT_OK);
    ck_assert_int_eq(leat_data_layer_create(&the_layer, pipeline, &options),
                     LEAT_OK);
    ck_assert_msg(!leat_data_layer_setup(the_layer, NULL, 0), "%s",
                  leat_last_error());
    for (int i = 0; i < 200; i++) {
        leat_blob *top[] = {leat_data_layer_top(the_layer, 0)};
        ck_assert_int_eq(leat_data_layer_forward(the_layer, top, 1, LEAT_HOST),
                         LEAT_OK);
    }
    ck_assert_int_ge(atomic_load(&refused), 800);
    leat_data_layer_destroy(the_layer);
    leat_pipeline_unref(pipeline);
    leat_pipeline_unref(upstream);
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
    tcase_add_test(tcase, the_first_next_starts_the_threads);
    tcase_add_test(tcase, it_reads_into_the_next_epoch_without_a_gap);
    tcase_add_test(tcase, a_single_pass_ends_for_good);
    tcase_add_test(tcase, bad_records_and_errors_come_in_their_place);
    tcase_add_loop_test(tcase, cancel_and_close_end_every_wait, NEXT,
                        CLOSE + 1);
    tcase_add_test(tcase,
                   seek_waits_for_threads_inside_and_drops_what_was_read);
    tcase_add_test(tcase, a_mark_does_not_wait_for_the_next_sample);
    tcase_add_test(tcase, a_mark_that_could_not_be_made_is_an_error);
    tcase_add_test(tcase, unordered_is_refused_where_order_matters);
    tcase_add_test(tcase, threads_work_at_the_same_time);
    tcase_add_test(tcase, random_access_stays_and_reads_go_by_index);
    tcase_add_test(tcase, samples_after_bad_ones_are_whole_by_index);
    tcase_add_test(tcase, nothing_is_allocated_in_the_steady_state);
    tcase_add_test(tcase, auto_doubles_up_to_its_bytes);
    tcase_add_test(tcase, waits_are_blocked_time_not_busy);
    tcase_add_test(tcase, every_allocation_may_fail);
    tcase_add_test(tcase, its_threads_are_the_layers);
    tcase_add_test(tcase, a_forked_child_is_refused_and_can_close);
    return suite_run(suite);
}
