#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "layer/data_reader.h"
#include "support/bad_records.h"
#include "support/scripted_source.h"
#include "support/suite.h"

#include <check.h>
#include <string.h>

#define RUNS 6
#define CHUNK_SIZE 4

static leat__data_reader *open_reader(scripted_source *source,
                                      leat_pipeline **pipeline)
{
    leat__data_reader *reader;
    const leat_sample *sample;
    const leat__position start = {0};
    source->count = 100;
    *pipeline = scripted_source_pipeline(source);
    leat__data_reader_options options = {.source.pipeline = *pipeline,
                                         .source.batch_size = CHUNK_SIZE,
                                         .source.step = 1};
    ck_assert_int_eq(leat__data_reader_create(&reader, &options, &start, NULL),
                     LEAT_OK);
    ck_assert_int_eq(leat__data_reader_preview(reader, &sample), LEAT_OK);
    ck_assert_ptr_nonnull(sample->buffer);
    return reader;
}

/* More than a sample takes. */
enum { SAMPLE_BUFFER = 4096 };

/* Chunks for so many takers, and as many for a thread. */
static int start_reader(leat__data_reader *reader, int takers)
{
    const leat__data_reader_chunks chunks = {
        .size = CHUNK_SIZE,
        .takers = takers,
        .ahead_size = CHUNK_SIZE - 1,
        .sample_buffer = SAMPLE_BUFFER,
        .own_buffers = LEAT__CHUNK_BUFFERS,
        .ahead = {takers + 1, LEAT__CHUNK_BUFFERS, SIZE_MAX}};
    return leat__data_reader_start(reader, &chunks);
}

/* `n` samples of one byte. */
static leat_pipeline *bytes_pipeline(int64_t n)
{
    static const unsigned char bytes[LEAT__PREVIEWS_MAX + 2];
    const leat_memory_field field = {"data", LEAT_UINT8, 1, {1}, bytes};
    leat_pipeline *pipeline;
    ck_assert_int_eq(leat_pipeline_memory(&pipeline, &field, 1, n), LEAT_OK);
    return pipeline;
}

static int create_with(leat_pipeline *pipeline, leat_token *identity,
                       leat__data_reader **out)
{
    const leat__data_reader_options options = {.source.pipeline = pipeline,
                                               .source.batch_size = CHUNK_SIZE,
                                               .source.step = 1};
    const leat__position start = {0};
    return leat__data_reader_create(out, &options, &start, identity);
}

/* Which of them are used is up to who is fast; none may be missing buffers. */
START_TEST(the_boxes_of_all_runs_are_made_at_start)
{
    scripted_source source = SCRIPTED_SOURCE_INIT;
    leat_pipeline *pipeline;
    leat__data_reader *reader = open_reader(&source, &pipeline);
    leat__chunk *chunk[RUNS + 1];
    int64_t ticket;
    ck_assert_int_eq(start_reader(reader, RUNS), LEAT_OK);
    int64_t before = leat__alloc_count();
    for (int i = 0; i <= RUNS; i++) {
        ck_assert_int_eq(
            leat__data_reader_take(reader, i - 1, &chunk[i], &ticket), LEAT_OK);
        leat__data_reader_read(reader, chunk[i]);
        ck_assert_int_eq(chunk[i]->status, LEAT_OK);
        ck_assert_int_eq(chunk[i]->n, i ? CHUNK_SIZE - (i == 1) : 1);
    }
    ck_assert_int_eq(leat__alloc_count() - before, 0);
    for (int i = 0; i <= RUNS; i++)
        leat__data_reader_give(reader, chunk[i]);
    leat__data_reader_destroy(reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(a_start_survives_every_failed_allocation)
{
    int status = LEAT_ENOMEM;
    for (int n = 0; status == LEAT_ENOMEM; n++) {
        scripted_source source = SCRIPTED_SOURCE_INIT;
        leat_pipeline *pipeline;
        leat__data_reader *reader = open_reader(&source, &pipeline);
        leat__alloc_fail_at(n);
        status = start_reader(reader, RUNS);
        leat__alloc_fail_at(-1);
        ck_assert(status == LEAT_OK || status == LEAT_ENOMEM);
        ck_assert(status == LEAT_ENOMEM || n > RUNS * CHUNK_SIZE);
        leat__data_reader_destroy(reader);
        leat_pipeline_unref(pipeline);
    }
}
END_TEST

/* What a taker did is counted from there on, and a chunk may be its first. */
START_TEST(after_the_end_too_a_run_says_when_it_began)
{
    const bad_records planted = {
        .count = 2, .way = BAD_RECORDS_IN_ORDER, .single_pass = 1};
    leat_pipeline *pipeline = bad_records_pipeline(&planted);
    const leat__data_reader_options options = {.source.pipeline = pipeline,
                                               .source.batch_size = CHUNK_SIZE,
                                               .source.step = 1};
    const leat__position start = {0};
    leat__data_reader *reader;
    leat__chunk *chunk;
    int64_t ticket;
    ck_assert_int_eq(leat__data_reader_create(&reader, &options, &start, NULL),
                     LEAT_OK);
    ck_assert_int_eq(start_reader(reader, 2), LEAT_OK);
    int64_t before = leat__clock_now();
    ck_assert_int_eq(leat__data_reader_take(reader, 0, &chunk, &ticket),
                     LEAT_OK);
    ck_assert(chunk->n == 2 && chunk->is_last);
    ck_assert_int_ge(chunk->begun, before);
    ck_assert_int_eq(leat__data_reader_take(reader, 1, &chunk, &ticket),
                     LEAT_OK);
    ck_assert_int_eq(chunk->status, LEAT_END);
    ck_assert_int_ge(chunk->begun, before);
    leat__data_reader_destroy(reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* The second of two ranks takes samples 1 and 3 of each epoch. */
START_TEST(a_reader_in_any_order_is_told_the_epoch)
{
    const bad_records planted = {.count = 4, .way = BAD_RECORDS_RANDOM_ACCESS};
    leat_pipeline *pipeline = bad_records_pipeline(&planted);
    const leat__data_reader_options options = {.source.pipeline = pipeline,
                                               .source.batch_size = CHUNK_SIZE,
                                               .source.step = 2,
                                               .source.rank = 1};
    const leat__position start = {0};
    leat__data_reader *reader;
    leat__chunk *chunk;
    int64_t ticket;
    ck_assert_int_eq(leat__data_reader_create(&reader, &options, &start, NULL),
                     LEAT_OK);
    ck_assert_int_eq(start_reader(reader, 1), LEAT_OK);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(leat__data_reader_take(reader, 0, &chunk, &ticket),
                         LEAT_OK);
        leat__data_reader_read(reader, chunk);
        ck_assert_int_eq(chunk->n, CHUNK_SIZE);
        ck_assert_int_eq(chunk->status, LEAT_OK);
        ck_assert_int_eq(bad_records_epoch_here(), 2 * i + 1);
        leat__data_reader_give(reader, chunk);
    }
    leat__data_reader_destroy(reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

static void pass_a_millisecond(void)
{
    int64_t end = leat__clock_now() + 1000000;
    while (leat__clock_now() < end)
        continue;
}

/* From where the taker began, be it long before the samples are read. */
START_TEST(reading_counts_as_busy)
{
    const bad_records planted = {.count = 10, .way = BAD_RECORDS_DEFERRED};
    leat_pipeline *pipeline = bad_records_pipeline(&planted);
    leat__data_reader *reader;
    leat__chunk *chunk;
    int64_t ticket;
    leat_stage_stats stats;
    ck_assert_int_eq(create_with(pipeline, NULL, &reader), LEAT_OK);
    ck_assert_int_eq(start_reader(reader, 1), LEAT_OK);
    int64_t begin = leat__clock_now();
    ck_assert_int_eq(leat__data_reader_take(reader, 0, &chunk, &ticket),
                     LEAT_OK);
    pass_a_millisecond();
    leat__data_reader_read(reader, chunk);
    leat__data_reader_stats(reader, &stats);
    ck_assert_double_ge(stats.busy, 1e-3);
    ck_assert_double_le(stats.busy, 1e-9 * (double)(leat__clock_now() - begin));
    ck_assert_int_eq(stats.items, CHUNK_SIZE);
    /* What is read is not read again. */
    leat__data_reader_read(reader, chunk);
    leat_stage_stats again;
    leat__data_reader_stats(reader, &again);
    ck_assert_double_eq(again.busy, stats.busy);
    ck_assert_int_eq(again.bytes, stats.bytes);
    leat__data_reader_destroy(reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* The number of its fields may be anything, in the buffer that it left. */
START_TEST(an_unreadable_record_is_not_counted)
{
    const bad_records planted = {.count = CHUNK_SIZE,
                                 .kind = {[1] = BAD_RECORDS_UNREADABLE},
                                 .way = BAD_RECORDS_DEFERRED};
    leat_pipeline *pipeline = bad_records_pipeline(&planted);
    const leat__data_reader_options options = {.source.pipeline = pipeline,
                                               .source.batch_size = CHUNK_SIZE,
                                               .source.step = 1,
                                               .source.collects = _i};
    const leat__position start = {0};
    leat__data_reader *reader;
    leat__chunk *chunk;
    int64_t ticket;
    leat_stage_stats stats;
    int image = BAD_RECORDS_CHANNELS * BAD_RECORDS_HEIGHT * BAD_RECORDS_WIDTH;
    ck_assert_int_eq(leat__data_reader_create(&reader, &options, &start, NULL),
                     LEAT_OK);
    ck_assert_int_eq(start_reader(reader, 1), LEAT_OK);
    ck_assert_int_eq(leat__data_reader_take(reader, 0, &chunk, &ticket),
                     LEAT_OK);
    leat__data_reader_read(reader, chunk);
    leat__data_reader_stats(reader, &stats);
    ck_assert_int_eq(chunk->bad.n, _i);
    ck_assert_int_eq(chunk->failed, _i ? -1 : 1);
    /* Those after a failure are not used. */
    ck_assert_int_eq(stats.bytes, (_i ? CHUNK_SIZE - 1 : 1) * (image + 4));
    leat__data_reader_destroy(reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Takers of chunks, and what they have in common. */
typedef struct crew {
    leat__data_reader *reader;
    pthread_mutex_t claim;
    /* protected by claim */
    int64_t next;   /* sample of the sequence */
    int64_t wanted; /* samples in all, */
    int least;      /* and more chunks than that by each, */
    int64_t until;  /* but that not after this time of the clock */
    int threaded;   /* chunks by the thread, and by takers */
    int own;
} crew;

#define EPOCH 37 /* samples in it */

/* The next chunk, in order, is this one. */
static void check_run(crew *self, const leat__chunk *chunk)
{
    for (int i = 0; i < chunk->n; i++, self->next++) {
        ck_assert_int_eq(chunk->at[i].index, self->next % EPOCH);
        ck_assert_int_eq(chunk->at[i].epoch, self->next / EPOCH);
    }
    self->threaded += chunk->is_queued;
    self->own += !chunk->is_queued;
}

/* After a probe during which the machine stalled, long none is due. */
static bool is_more_wanted(const crew *self)
{
    return self->next < self->wanted ||
           ((self->threaded <= self->least || self->own <= self->least) &&
            leat__clock_now() < self->until);
}

typedef struct taker {
    crew *crew;
    int number;
    leat__thread thread;
} taker;

static void *take_runs(void *argument)
{
    const taker *self = argument;
    crew *crew = self->crew;
    int status = LEAT_OK;
    while (status == LEAT_OK) {
        leat__chunk *chunk = NULL;
        int64_t ticket = 0;
        pthread_mutex_lock(&crew->claim);
        status = is_more_wanted(crew)
                     ? leat__data_reader_take(crew->reader, self->number,
                                              &chunk, &ticket)
                     : LEAT_END;
        if (status == LEAT_OK)
            check_run(crew, chunk);
        pthread_mutex_unlock(&crew->claim);
        if (status == LEAT_OK) {
            leat__data_reader_read(crew->reader, chunk);
            for (int i = 0; i < chunk->n; i++)
                ck_assert_int_eq(chunk->sample[i]->from.position,
                                 chunk->at[i].index);
            leat__data_reader_give(crew->reader, chunk);
        } else if (status == LEAT_AGAIN) {
            status = leat__data_reader_wait(crew->reader, ticket);
        }
    }
    return NULL;
}

/* Takers and the thread change over at any chunk, or epoch, in each way to
 * read.
 */
START_TEST(who_fills_follows_the_storage_and_the_samples_stay_in_order)
{
    const bad_records planted = {
        .count = EPOCH, .way = _i % 3, .flips = 1 + _i % 6};
    leat_pipeline *pipeline = bad_records_pipeline(&planted);
    const leat__data_reader_options options = {.source.pipeline = pipeline,
                                               .source.batch_size = CHUNK_SIZE,
                                               .source.step = 1,
                                               .probes = 1,
                                               .probe_every =
                                                   _i < 6 ? 0 : INT64_MAX / 2};
    const leat__position place = {0};
    crew crew = {.claim = PTHREAD_MUTEX_INITIALIZER,
                 .wanted = 40000,
                 .least = _i < 6 ? 100 : 10,
                 .until = leat__clock_now() + INT64_C(20000000000)};
    taker takers[3];
    ck_assert_int_eq(
        leat__data_reader_create(&crew.reader, &options, &place, NULL),
        LEAT_OK);
    ck_assert_int_eq(start_reader(crew.reader, 3), LEAT_OK);
    for (int i = 0; i < 3; i++) {
        takers[i] = (taker){.crew = &crew, .number = i};
        ck_assert_int_eq(leat__thread_start(&takers[i].thread, "taker",
                                            take_runs, &takers[i]),
                         LEAT_OK);
    }
    for (int i = 0; i < 3; i++)
        leat__thread_join(&takers[i].thread);
    ck_assert_int_ge(crew.next, crew.wanted);
    ck_assert_int_gt(crew.threaded, crew.least);
    ck_assert_int_gt(crew.own, crew.least);
    leat__data_reader_destroy(crew.reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* As of a chain of many readers, each of which asks the system. */
START_TEST(probes_that_take_long_are_rare)
{
    enum { TAKES = 500 };
    atomic_int probed = 0;
    const bad_records planted = {
        .count = EPOCH, .flips = INT32_MAX, .probe_ms = 5, .probed = &probed};
    leat_pipeline *pipeline = bad_records_pipeline(&planted);
    const leat__data_reader_options options = {.source.pipeline = pipeline,
                                               .source.batch_size = CHUNK_SIZE,
                                               .source.step = 1,
                                               .probes = 1};
    const leat__position place = {0};
    crew crew = {.claim = PTHREAD_MUTEX_INITIALIZER,
                 .wanted = TAKES * CHUNK_SIZE};
    taker taker = {.crew = &crew};
    ck_assert_int_eq(
        leat__data_reader_create(&crew.reader, &options, &place, NULL),
        LEAT_OK);
    ck_assert_int_eq(start_reader(crew.reader, 1), LEAT_OK);
    take_runs(&taker);
    /* One in 250 ms; a machine that stalls has more of them, but not so many.
     */
    ck_assert_int_lt(atomic_load(&probed), TAKES / 2);
    leat__data_reader_destroy(crew.reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* What a token was saved of may have been replaced since. */
START_TEST(another_data_set_than_the_identitys_is_refused)
{
    leat_pipeline *saved = bytes_pipeline(10), *longer = bytes_pipeline(11);
    leat__data_reader *reader, *none = NULL;
    leat_token token;
    leat_token_init(&token);
    ck_assert_int_eq(create_with(saved, NULL, &reader), LEAT_OK);
    ck_assert_int_eq(leat_reader_save(leat__data_reader_reader(reader), &token),
                     LEAT_OK);
    leat__data_reader_destroy(reader);
    token.cursor = 0;
    ck_assert_int_eq(create_with(longer, &token, &none), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "another data set"));
    ck_assert_ptr_null(none);
    token.cursor = 0;
    ck_assert_int_eq(create_with(saved, &token, &reader), LEAT_OK);
    leat__data_reader_destroy(reader);
    leat_token_finish(&token);
    leat_pipeline_unref(saved);
    leat_pipeline_unref(longer);
}
END_TEST

START_TEST(creating_survives_every_failed_allocation)
{
    leat_pipeline *pipeline = bytes_pipeline(10);
    int status = LEAT_ENOMEM;
    for (int n = 0; status != LEAT_OK; n++) {
        leat__data_reader *reader = NULL;
        ck_assert_int_lt(n, 100);
        leat__alloc_fail_at(n);
        status = create_with(pipeline, NULL, &reader);
        leat__alloc_fail_at(-1);
        ck_assert(status == LEAT_OK || status == LEAT_ENOMEM);
        ck_assert_int_eq(status == LEAT_OK, reader != NULL);
        leat__data_reader_destroy(reader);
    }
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(so_many_samples_are_previewed_and_no_more)
{
    leat_pipeline *pipeline = bytes_pipeline(LEAT__PREVIEWS_MAX + 2);
    leat__data_reader *reader;
    const leat_sample *sample = NULL;
    leat__chunk *chunk;
    int64_t ticket;
    ck_assert_int_eq(create_with(pipeline, NULL, &reader), LEAT_OK);
    for (int i = 0; i < LEAT__PREVIEWS_MAX; i++) {
        ck_assert_int_eq(leat__data_reader_preview(reader, &sample), LEAT_OK);
        ck_assert_int_eq(sample->from.position, i);
    }
    ck_assert_int_eq(leat__data_reader_preview(reader, &sample), LEAT_END);
    /* They come first, one by one; then what comes after them. */
    ck_assert_int_eq(start_reader(reader, 1), LEAT_OK);
    for (int i = 0; i <= LEAT__PREVIEWS_MAX; i++) {
        ck_assert_int_eq(leat__data_reader_take(reader, 0, &chunk, &ticket),
                         LEAT_OK);
        leat__data_reader_read(reader, chunk);
        ck_assert_int_eq(chunk->n, i < LEAT__PREVIEWS_MAX ? 1 : CHUNK_SIZE);
        ck_assert_int_eq(chunk->at[0].index, i);
        leat__data_reader_give(reader, chunk);
    }
    leat__data_reader_destroy(reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(a_reader_that_was_cancelled_neither_starts_nor_gives)
{
    leat_pipeline *pipeline = bytes_pipeline(10);
    leat__data_reader *reader;
    leat__chunk *chunk;
    int64_t ticket;
    ck_assert_int_eq(create_with(pipeline, NULL, &reader), LEAT_OK);
    leat__data_reader_cancel(reader);
    ck_assert_int_eq(start_reader(reader, 1), LEAT_ECANCELLED);
    ck_assert_str_eq(leat_last_error(), "the layer was cancelled");
    leat__data_reader_destroy(reader);
    ck_assert_int_eq(create_with(pipeline, NULL, &reader), LEAT_OK);
    ck_assert_int_eq(start_reader(reader, 1), LEAT_OK);
    leat__data_reader_cancel(reader);
    ck_assert_int_eq(leat__data_reader_take(reader, 0, &chunk, &ticket),
                     LEAT_ECANCELLED);
    leat__data_reader_destroy(reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* By its type (1), or also as it says itself and changes its mind (`probe`). */
START_TEST(a_thread_fills_where_the_reader_may_block)
{
    static const struct {
        int threaded, probe, may_block, flips;
        int is_threaded; /* at first */
    } cases[] = {
        {0, 0, 0, 0, 0}, {1, 0, 0, 0, 1}, {0, 1, 0, 0, 0}, {0, 1, 1, 0, 1},
        {0, 0, 1, 0, 0}, {1, 1, 0, 0, 1}, {0, 1, 0, 1, 1}, {1, 1, 0, 1, 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const bad_records planted = {.count = 10,
                                     .may_block = cases[i].may_block,
                                     .flips = cases[i].flips};
        leat_pipeline *pipeline = bad_records_pipeline(&planted);
        const leat__data_reader_options options = {
            .source.pipeline = pipeline,
            .source.batch_size = CHUNK_SIZE,
            .source.step = 1,
            .threaded = cases[i].threaded,
            .probes = cases[i].probe,
            .probe_every = INT64_MAX / 2};
        const leat__position start = {0};
        leat__data_reader *reader;
        leat_stage_stats stats;
        ck_assert_int_eq(
            leat__data_reader_create(&reader, &options, &start, NULL), LEAT_OK);
        leat__data_reader_stats(reader, &stats);
        ck_assert_msg(stats.threads == cases[i].is_threaded, "case %zu", i);
        ck_assert_str_eq(stats.name, "reader");
        leat__data_reader_destroy(reader);
        leat_pipeline_unref(pipeline);
    }
}
END_TEST

/* Epochs are left and entered; before the first there is nothing. */
START_TEST(samples_are_read_neighbor_any_place)
{
    static const struct {
        int way;
        int64_t epoch, index;
        int64_t expected_epoch, expected_index; /* -1: LEAT_END */
    } cases[] = {
        {-1, 0, 1, 0, 0}, {-1, 0, 0, -1, 0}, {-1, 1, 0, 0, 9},
        {1, 0, 9, 1, 0},  {1, 2, 3, 2, 4},   {-1, 2, 9, 2, 8},
    };
    const bad_records planted = {.count = 10};
    leat_pipeline *pipeline = bad_records_pipeline(&planted);
    leat__data_reader_options options = {.source.pipeline = pipeline,
                                         .source.batch_size = CHUNK_SIZE,
                                         .source.step = 1,
                                         .source.collects = 1};
    const leat__position start = {0};
    leat__data_reader *reader;
    leat_sample sample;
    leat_sample_init(&sample);
    ck_assert_int_eq(leat__data_reader_create(&reader, &options, &start, NULL),
                     LEAT_OK);
    ck_assert_int_eq(leat__data_reader_can_reread(reader), 1);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t epoch = cases[i].epoch, index = cases[i].index;
        int status = leat__data_reader_read_neighbor(reader, cases[i].way,
                                                     &epoch, &index, &sample);
        if (cases[i].expected_epoch < 0) {
            ck_assert_int_eq(status, LEAT_END);
            continue;
        }
        ck_assert_int_eq(status, LEAT_OK);
        ck_assert_int_eq(epoch, cases[i].expected_epoch);
        ck_assert_int_eq(index, cases[i].expected_index);
        ck_assert_int_eq(bad_records_epoch_here(), epoch);
        ck_assert_int_eq(sample.from.epoch, epoch);
        ck_assert_int_eq(sample.from.position, index);
        ck_assert_int_eq(sample.from.record, index);
    }
    leat_sample_finish(&sample);
    leat__data_reader_destroy(reader);
    /* Only who collects bad records looks back. */
    options.source.collects = 0;
    ck_assert_int_eq(leat__data_reader_create(&reader, &options, &start, NULL),
                     LEAT_OK);
    ck_assert_int_eq(leat__data_reader_can_reread(reader), 0);
    leat__data_reader_destroy(reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* As setup looks for a shape: the line is the record's own. */
START_TEST(a_bad_record_can_be_peeked_at)
{
    const bad_records planted = {.count = 3,
                                 .kind = {[0] = BAD_RECORDS_UNREADABLE},
                                 .way = (bad_records_way)(_i / 2)};
    leat_pipeline *pipeline = bad_records_pipeline(&planted);
    const leat__data_reader_options options = {.source.pipeline = pipeline,
                                               .source.batch_size = CHUNK_SIZE,
                                               .source.step = 1,
                                               .source.collects = _i % 2};
    const leat__position start = {0};
    leat__data_reader *reader;
    const leat_sample *sample;
    ck_assert_int_eq(leat__data_reader_create(&reader, &options, &start, NULL),
                     LEAT_OK);
    ck_assert_int_eq(leat__data_reader_preview(reader, &sample), LEAT_EDATA);
    ck_assert_str_eq(leat_last_error(), "planted: record 0 cannot be read");
    if (options.source.collects) {
        ck_assert_int_eq(leat__data_reader_preview(reader, &sample), LEAT_OK);
        ck_assert_int_eq(sample->from.position, 1);
    }
    leat__data_reader_destroy(reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("data_reader");
    TCase *tests = tcase_create("data_reader");
    tcase_add_test(tests, the_boxes_of_all_runs_are_made_at_start);
    tcase_add_loop_test(
        tests, who_fills_follows_the_storage_and_the_samples_stay_in_order, 0,
        12);
    tcase_add_test(tests, a_start_survives_every_failed_allocation);
    tcase_add_loop_test(tests, an_unreadable_record_is_not_counted, 0, 2);
    tcase_add_test(tests, after_the_end_too_a_run_says_when_it_began);
    tcase_add_test(tests, a_reader_in_any_order_is_told_the_epoch);
    tcase_add_test(tests, another_data_set_than_the_identitys_is_refused);
    tcase_add_test(tests, creating_survives_every_failed_allocation);
    tcase_add_test(tests, probes_that_take_long_are_rare);
    tcase_add_test(tests, reading_counts_as_busy);
    tcase_add_test(tests, so_many_samples_are_previewed_and_no_more);
    tcase_add_test(tests, a_reader_that_was_cancelled_neither_starts_nor_gives);
    tcase_add_test(tests, a_thread_fills_where_the_reader_may_block);
    tcase_add_test(tests, samples_are_read_neighbor_any_place);
    tcase_add_loop_test(tests, a_bad_record_can_be_peeked_at, 0,
                        2 * BAD_RECORDS_WAYS);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
