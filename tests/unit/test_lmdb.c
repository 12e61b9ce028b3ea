#include "base/memory.h"
#include "base/random.h"
#include "base/thread.h"
#include "pipeline/reader_chain.h"
#include "support/images.h"
#include "support/shared_data.h"
#include "support/suite.h"

#include <leat/datum.h>
#include <leat/decorators.h>
#include <leat/ext/reader.h>
#include <leat/stats.h>

/* The same, but record 3 and every tenth are no Datums. */
static void make_some_bad(int number, fixture_record *out)
{
    images_record(number, out);
    if (number % 10 == 3)
        out->value_size = 9;
}

START_TEST(records_come_in_order_and_the_end_comes_twice)
{
    char directory[FIXTURE_PATH];
    leat_reader *reader = images_begin(directory, images_record, 1000);
    leat_sample sample;
    int64_t count;
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
    ck_assert_int_eq(count, 1000);
    for (int epoch = 0; epoch < 3; epoch++) {
        ck_assert_int_eq(images_count(reader), 1000);
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
        ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 0}, NULL),
                         LEAT_OK);
    }
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_str_eq(sample.from.source, directory);
    leat_sample_finish(&sample);
    images_end(reader, directory);
}
END_TEST

START_TEST(batches_of_every_size_give_the_same)
{
    char directory[FIXTURE_PATH];
    leat_sample sample[100], *out[100];
    leat_reader *reader = images_begin(directory, images_record, 100);
    images_boxes_init(sample, out, 100);
    for (int n = 1; n <= 100; n++) {
        int64_t at = 0;
        int got, status;
        while (!(status = leat_reader_next_batch(reader, out, n, &got))) {
            ck_assert_int_ge(got, 1);
            ck_assert_int_le(got, n);
            for (int i = 0; i < got; i++)
                images_assert(out[i], at++);
        }
        ck_assert_int_eq(status, LEAT_END);
        ck_assert_int_eq(got, 0);
        ck_assert_int_eq(at, 100);
        ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 0}, NULL),
                         LEAT_OK);
    }
    images_boxes_finish(sample, 100);
    images_end(reader, directory);
}
END_TEST

START_TEST(the_first_record_tells_the_fields)
{
    char directory[FIXTURE_PATH];
    const leat_field_spec *spec;
    int n;
    leat_reader *reader = images_begin(directory, images_record, 3);
    ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
    ck_assert_int_eq(n, 2);
    ck_assert_str_eq(spec[0].name, "data");
    ck_assert_int_eq(spec[0].dtype, LEAT_UINT8);
    ck_assert_int_eq(spec[0].ndim, 3);
    ck_assert_int_eq(spec[0].shape[2], 5);
    ck_assert_str_eq(spec[1].name, "label");
    ck_assert_int_eq(spec[1].dtype, LEAT_INT32);
    ck_assert_int_eq(spec[1].ndim, 0);
    ck_assert_int_eq(images_count(reader), 3);
    images_end(reader, directory);
}
END_TEST

static void make_bad(int number, fixture_record *out)
{
    images_record(number, out);
    out->value_size = 9;
}

static void make_bad_at_first(int number, fixture_record *out)
{
    images_record(number, out);
    if (number < 5)
        out->value_size = 9;
}

START_TEST(the_first_good_record_tells_the_fields)
{
    char directory[FIXTURE_PATH];
    const leat_field_spec *spec;
    int n;
    leat_reader *reader = images_begin(directory, make_bad_at_first, 10);
    ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
    ck_assert_int_eq(spec[0].dtype, LEAT_UINT8);
    images_end(reader, directory);
    reader = images_begin(directory, make_bad, 10);
    ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_EDATA);
    ck_assert_msg(strstr(leat_last_error(), "record 0,"), "%s",
                  leat_last_error());
    images_end(reader, directory);
}
END_TEST

START_TEST(an_empty_database_has_fields_and_ends_at_once)
{
    char directory[FIXTURE_PATH];
    const leat_field_spec *spec;
    int n;
    leat_reader *reader = images_begin(directory, images_record, 0);
    ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
    ck_assert_int_eq(spec[0].dtype, LEAT_BYTES);
    ck_assert_int_eq(spec[0].ndim, -1);
    ck_assert_int_eq(images_count(reader), 0);
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 0}, NULL),
                     LEAT_OK);
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 1}, NULL),
                     LEAT_EINVAL);
    images_end(reader, directory);
}
END_TEST

START_TEST(a_bad_record_is_named_and_stepped_over)
{
    char directory[FIXTURE_PATH];
    leat_sample sample[8], *out[8];
    leat_reader *reader = images_begin(directory, make_some_bad, 40);
    images_boxes_init(sample, out, 8);
    int64_t good = 0, bad = 0;
    int got, status;
    while ((status = leat_reader_next_batch(reader, out, 8, &got)) !=
           LEAT_END) {
        for (int i = 0; i < got; i++)
            images_assert(out[i], good + bad + i);
        good += got;
        int64_t at = good + bad;
        if (status == LEAT_OK)
            continue;
        char says[64];
        sprintf(says, "record %d, key %08d: ", (int)at, (int)at);
        ck_assert_int_eq(status, LEAT_EDATA);
        ck_assert_int_eq(out[got]->from.record, at);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), says));
        ck_assert_ptr_nonnull(strstr(leat_last_error(), directory));
        bad++;
    }
    ck_assert_int_eq(bad, 4);
    ck_assert_int_eq(good, 36);
    images_boxes_finish(sample, 8);
    images_end(reader, directory);
}
END_TEST

/* What next defers is completed in any order, bad records and all. */
START_TEST(deferred_records_are_those_of_the_walk)
{
    char directory[FIXTURE_PATH];
    leat_sample sample[40], *out[40];
    leat_reader *reader = images_begin(directory, make_some_bad, 40);
    images_boxes_init(sample, out, 40);
    for (int i = 0; i < 40; i++)
        leat_sample_clear(out[i]);
    int got, n = 0, status;
    while ((status = leat_reader_pull(reader, out + n, 40 - n < 7 ? 1 : 7,
                                      &got)) == LEAT_OK) {
        ck_assert_int_gt(got, 0);
        n += got;
        ck_assert_int_lt(n, 41);
        if (n == 40)
            break;
    }
    ck_assert_int_eq(status, LEAT_OK);
    for (int i = 39; i >= 0; i--) {
        ck_assert_int_eq(out[i]->deferred, 1);
        ck_assert_int_eq(out[i]->nfields, 0);
        status = leat_reader_materialize(reader, &out[i], 1, &got);
        ck_assert_int_eq(status, i % 10 == 3 ? LEAT_EDATA : LEAT_OK);
        ck_assert_int_eq(got, status == LEAT_OK);
        ck_assert_int_eq(out[i]->from.record, i);
        if (status == LEAT_OK)
            images_assert(out[i], i);
    }
    ck_assert_int_eq(leat_reader_pull(reader, out, 7, &got), LEAT_END);
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 0}, NULL),
                     LEAT_OK);
    leat_sample_clear(out[0]);
    ck_assert_int_eq(leat_reader_pull(reader, out, 1, &got), LEAT_OK);
    ck_assert_int_eq(out[0]->locator.record, 0);
    leat_reader_cancel(reader);
    ck_assert_int_eq(leat_reader_materialize(reader, out, 1, &got),
                     LEAT_ECANCELLED);
    ck_assert_int_eq(leat_reader_pull(reader, out, 7, &got), LEAT_ECANCELLED);
    images_boxes_finish(sample, 40);
    images_end(reader, directory);
}
END_TEST

START_TEST(read_at_gives_the_good_prefix_and_the_error)
{
    char directory[FIXTURE_PATH];
    leat_sample sample[4], *out[4];
    leat_reader *reader = images_begin(directory, make_some_bad, 40);
    images_boxes_init(sample, out, 4);
    const leat_position at[4] = {{0, 39}, {0, 0}, {0, 13}, {0, 5}};
    int got;
    ck_assert_int_eq(leat_reader_read_at(reader, at, out, 4, &got), LEAT_EDATA);
    ck_assert_int_eq(got, 2);
    images_assert(out[0], 39);
    images_assert(out[1], 0);
    ck_assert_int_eq(out[2]->from.record, 13);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "record 13"));
    ck_assert_int_eq(leat_reader_read_at(reader, at + 3, out + 3, 1, &got),
                     LEAT_OK);
    images_assert(out[3], 5);
    const leat_position beyond = {0, 40};
    ck_assert_int_eq(leat_reader_read_at(reader, &beyond, out, 1, &got),
                     LEAT_EINVAL);
    images_boxes_finish(sample, 4);
    images_end(reader, directory);
}
END_TEST

static int notes;

static void count_note(void *user, leat_log_level level, const char *line)
{
    (void)user;
    (void)level;
    notes += strstr(line, "drop_behind has no effect") != NULL;
}

/* The notes of reading so, by a reader that is to drop pages or not. */
/* What it drops it has to read again, whatever is in memory now. */
START_TEST(a_reader_that_drops_behind_itself_may_block)
{
    char directory[FIXTURE_PATH];
    leat_lmdb_options options = LEAT_LMDB_OPTIONS_INIT;
    leat_pipeline *pipeline;
    leat_reader *reader;
    images_write(directory, images_record, 20);
    options.drop_behind = 1;
    ck_assert_int_eq(leat_pipeline_lmdb(&pipeline, directory, &options),
                     LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    ck_assert_int_eq(images_count(reader), 20);
    ck_assert_int_eq(leat_reader_may_block(reader), 1);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
    fixture_remove(directory);
}
END_TEST

static int notes_of(const char *directory, int drops, int in_order)
{
    const leat_position index[] = {{0, 3}, {0, 1}};
    leat_lmdb_options options = LEAT_LMDB_OPTIONS_INIT;
    leat_pipeline *pipeline;
    leat_reader *reader;
    leat_sample buffer[2];
    leat_sample *out[2];
    int got;
    options.drop_behind = drops;
    ck_assert_int_eq(leat_pipeline_lmdb(&pipeline, directory, &options),
                     LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    leat_pipeline_unref(pipeline);
    images_boxes_init(buffer, out, 2);
    notes = 0;
    leat_log_set(count_note, NULL, LEAT_LOG_WARNING);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(in_order
                             ? leat_reader_next_batch(reader, out, 2, &got)
                             : leat_reader_read_at(reader, index, out, 2, &got),
                         LEAT_OK);
    leat_log_set(NULL, NULL, LEAT_LOG_NONE);
    images_boxes_finish(buffer, 2);
    leat_reader_close(reader);
    return notes;
}

START_TEST(options_of_another_size_are_refused)
{
    leat_pipeline *pipeline;
    leat_lmdb_options more[2] = {LEAT_LMDB_OPTIONS_INIT};
    for (more[0].size = 0; more[0].size < 2; more[0].size++)
        ck_assert_int_eq(leat_pipeline_lmdb(&pipeline, "x", more), LEAT_EINVAL);
    ck_assert_str_eq(leat_last_error(),
                     "lmdb: options have size 1: expected that of their "
                     "struct, as its INIT macro sets it");
    more[0].size = sizeof(more);
    ck_assert_int_eq(leat_pipeline_lmdb(&pipeline, "x", more), LEAT_OK);
    leat_pipeline_unref(pipeline);
    more[1].drop_behind = 1;
    ck_assert_int_eq(leat_pipeline_lmdb(&pipeline, "x", more), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "newer than the library"));
}
END_TEST

START_TEST(dropping_behind_what_has_no_order_is_told_once)
{
    char directory[FIXTURE_PATH];
    images_write(directory, images_record, 10);
    ck_assert_int_eq(notes_of(directory, 1, 0), 1);
    ck_assert_int_eq(notes_of(directory, 1, 1), 0);
    ck_assert_int_eq(notes_of(directory, 0, 0), 0);
    fixture_remove(directory);
}
END_TEST

START_TEST(seek_goes_to_every_record_and_to_the_end)
{
    char directory[FIXTURE_PATH];
    leat_sample sample;
    leat_reader *reader = images_begin(directory, images_record, 200);
    leat_sample_init(&sample);
    for (int64_t i = 0; i < 200; i++) {
        int64_t to = i * 77 % 200;
        ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, to}, NULL),
                         LEAT_OK);
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        images_assert(&sample, to);
    }
    /* Records that were taken ahead are not given after a seek. */
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 10}, NULL),
                     LEAT_OK);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 12}, NULL),
                     LEAT_OK);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    images_assert(&sample, 12);
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 200}, NULL),
                     LEAT_OK);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 201}, NULL),
                     LEAT_EINVAL);
    leat_sample_finish(&sample);
    images_end(reader, directory);
}
END_TEST

START_TEST(a_failed_seek_changes_nothing)
{
    char directory[FIXTURE_PATH];
    leat_sample sample;
    leat_reader *reader = images_begin(directory, images_record, 50);
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 51}, NULL),
                     LEAT_EINVAL);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    images_assert(&sample, 1);
    leat_sample_finish(&sample);
    images_end(reader, directory);
}
END_TEST

typedef struct random_reads {
    leat_reader *reader;
    uint32_t seed;
} random_reads;

/* What passes after the first one take from its notes. */
START_TEST(every_pass_gives_the_same_records)
{
    enum { N = 700 };
    char directory[FIXTURE_PATH];
    leat_reader *reader = images_begin(directory, images_record, N);
    leat_sample sample;
    int64_t skipped;
    leat_sample_init(&sample);
    for (int64_t pass = 0; pass < 4; pass++) {
        int64_t record = 0;
        int status;
        while ((status = leat_reader_next(reader, &sample)) == LEAT_OK)
            images_assert(&sample, record++);
        ck_assert_int_eq(status, LEAT_END);
        ck_assert_int_eq(record, N);
        ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 0}, NULL),
                         LEAT_OK);
        /* In the midst, from where the notes or pages lead on. */
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        ck_assert_int_eq(leat_reader_skip(reader, 100 + pass, &skipped), 0);
        ck_assert_int_eq(skipped, 100 + pass);
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        images_assert(&sample, 101 + pass);
        ck_assert_int_eq(
            leat_reader_seek(reader, (leat_position){0, 600}, NULL), LEAT_OK);
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        images_assert(&sample, 600);
        ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 0}, NULL),
                         LEAT_OK);
    }
    leat_sample_finish(&sample);
    images_end(reader, directory);
}
END_TEST

/* Notes of a pass, or what the first read out of order makes. */
START_TEST(an_index_is_memory_that_the_reader_holds)
{
    enum { RECORDS = 1000 };
    char directory[FIXTURE_PATH];
    leat_reader_stats stats[LEAT_MAX_READER_STATS];
    leat_reader *reader = images_begin(directory, images_record, RECORDS);
    leat_sample sample;
    leat_sample *out = &sample;
    const leat_position at = {0, 7};
    int got;
    leat_sample_init(&sample);
    ck_assert_int_eq(reader->ops->memory(reader), 0);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(leat_reader_chain_stats(reader, stats), 1);
    ck_assert_str_eq(stats[0].path, "lmdb");
    ck_assert_int_ge(stats[0].memory, 8 * RECORDS);
    ck_assert_int_eq(reader->ops->reserves(reader), 0);
    ck_assert_int_eq(leat_reader_read_at(reader, &at, &out, 1, &got), LEAT_OK);
    for (int i = 0; i < 300; i++)
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    leat_reader_chain_stats(reader, stats);
    ck_assert_int_ge(stats[0].memory, 8 * RECORDS);
    ck_assert_int_lt(stats[0].memory, 8 * RECORDS + 64);
    ck_assert_int_eq(reader->ops->reserves(reader), stats[0].memory);
    leat_sample_finish(&sample);
    images_end(reader, directory);
}
END_TEST

/* Of five readers two have room for them, and setup counts none. Where one is
 * read by number it counts the index of each. */
START_TEST(notes_of_a_chain_share_an_eighth)
{
    enum { READERS = 5, RECORDS = 1000, PARTS = 8 };
    const leat_open_options open = {.size = sizeof(open),
                                    .max_memory = PARTS * 5 / 2 * 8 * RECORDS};
    char directory[READERS][FIXTURE_PATH];
    leat_pipeline *inputs[READERS], *chain;
    leat_reader_stats stats[LEAT_MAX_READER_STATS];
    leat_reader *reader;
    leat_sample sample, *out = &sample;
    const leat_position at = {0, RECORDS};
    int64_t held = 0, reserved = 0;
    int got;
    for (int i = 0; i < READERS; i++)
        ck_assert_int_eq(leat_pipeline_lmdb(
                             &inputs[i],
                             images_write(directory[i], images_record, RECORDS),
                             NULL),
                         LEAT_OK);
    ck_assert_int_eq(leat_pipeline_chain(&chain, inputs, READERS), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open_with(chain, &open, &reader), LEAT_OK);
    leat_sample_init(&sample);
    for (int i = 0; i < READERS * RECORDS; i++)
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    for (int i = leat_reader_chain_stats(reader, stats); i-- > 0;)
        held += stats[i].memory;
    for (int i = leat__reader_chain_reserves(reader, stats); i-- > 0;)
        reserved += stats[i].memory;
    ck_assert_int_ge(held, 2 * 8 * RECORDS);
    ck_assert_int_lt(held, 2 * 8 * RECORDS + 4096);
    ck_assert_int_lt(reserved, 4096);
    ck_assert_int_eq(leat_reader_read_at(reader, &at, &out, 1, &got), LEAT_OK);
    reserved = 0;
    for (int i = leat__reader_chain_reserves(reader, stats); i-- > 0;)
        reserved += stats[i].memory;
    ck_assert_int_ge(reserved, READERS * 8 * RECORDS);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    leat_pipeline_unref(chain);
    for (int i = 0; i < READERS; i++) {
        leat_pipeline_unref(inputs[i]);
        fixture_remove(directory[i]);
    }
}
END_TEST

static void *read_at_random(void *argument)
{
    const random_reads *self = argument;
    static _Thread_local leat__mt19937 random;
    leat_sample sample[16], *out[16];
    leat_position at[16];
    leat__mt19937_seed(&random, self->seed);
    images_boxes_init(sample, out, 16);
    for (int round = 0; round < 200; round++) {
        int got;
        for (int i = 0; i < 16; i++)
            at[i] = (leat_position){0, leat__mt19937_next(&random) % 500};
        ck_assert_int_eq(leat_reader_read_at(self->reader, at, out, 16, &got),
                         LEAT_OK);
        ck_assert_int_eq(got, 16);
        for (int i = 0; i < 16; i++)
            images_assert(out[i], at[i].index);
    }
    images_boxes_finish(sample, 16);
    return NULL;
}

/* The index is built by the first of them, and shared. */
START_TEST(threads_read_at_random_beside_next)
{
    char directory[FIXTURE_PATH];
    leat_reader *reader = images_begin(directory, images_record, 500);
    leat__thread thread[4] = {{0}};
    random_reads reads[4];
    for (uint32_t i = 0; i < 4; i++) {
        reads[i] = (random_reads){reader, i};
        ck_assert_int_eq(
            leat__thread_start(&thread[i], "reads", read_at_random, &reads[i]),
            LEAT_OK);
    }
    ck_assert_int_eq(images_count(reader), 500);
    for (int i = 0; i < 4; i++)
        leat__thread_join(&thread[i]);
    images_end(reader, directory);
}
END_TEST

START_TEST(a_damaged_page_is_a_sticky_error_after_what_is_good)
{
    char directory[FIXTURE_PATH];
    leat_sample sample;
    images_write(directory, images_record, 1000);
    size_t size;
    unsigned char *bytes =
        fixture_load(images_in(directory, "data.mdb"), &size);
    /* Leaves are written in the order of their keys here: damage one. */
    memset(bytes + 10 * 4096, 0xa5, 4096);
    fixture_store(images_in(directory, "data.mdb"), bytes, size);
    free(bytes);
    leat_reader *reader = images_open(directory);
    leat_sample_init(&sample);
    for (int epoch = 0; epoch < 2; epoch++) {
        int64_t good = 0;
        int status;
        while (!(status = leat_reader_next(reader, &sample)))
            images_assert(&sample, good++);
        ck_assert_int_gt(good, 0);
        ck_assert_int_eq(status, LEAT_EFORMAT);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "page 10"));
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_EFORMAT);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "page 10"));
        ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 0}, NULL),
                         LEAT_OK);
    }
    leat_sample_finish(&sample);
    images_end(reader, directory);
}
END_TEST

START_TEST(a_cancelled_reader_gives_nothing_any_more)
{
    char directory[FIXTURE_PATH];
    leat_sample sample, *out = &sample;
    const leat_position index = {0, 0};
    int got;
    leat_reader *reader = images_begin(directory, images_record, 10);
    leat_sample_init(&sample);
    leat_reader_cancel(reader);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_ECANCELLED);
    ck_assert_int_eq(leat_reader_read_at(reader, &index, &out, 1, &got),
                     LEAT_ECANCELLED);
    leat_sample_finish(&sample);
    images_end(reader, directory);
}
END_TEST

/* As many records as another, but not of the same keys. */
static void write_keys(char *directory, const char *first, const char *last)
{
    MDB_txn *txn;
    MDB_dbi dbi;
    fixture_directory(directory);
    MDB_env *env = fixture_env(directory, 0);
    ck_assert_int_eq(mdb_txn_begin(env, NULL, 0, &txn), 0);
    ck_assert_int_eq(mdb_dbi_open(txn, NULL, 0, &dbi), 0);
    const char *const keys[] = {first, "5", last};
    for (int i = 0; i < 3; i++) {
        MDB_val key = {strlen(keys[i]), (void *)(uintptr_t)keys[i]};
        MDB_val value = {1, (void *)(uintptr_t) "x"};
        ck_assert_int_eq(mdb_put(txn, dbi, &key, &value, 0), 0);
    }
    ck_assert_int_eq(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
}

START_TEST(arguments_beyond_their_bounds_are_refused)
{
    static const char *const wrong[] = {"drop_behind=2", "drop_behind=-1",
                                        "read_ahead=-2", "keep_behind=-2"};
    char directory[FIXTURE_PATH];
    images_write(directory, images_record, 1);
    for (int i = 0; i < 4; i++) {
        char text[FIXTURE_PATH + 64];
        leat_pipeline *pipeline;
        snprintf(text, sizeof(text), "lmdb:%s,%s", directory, wrong[i]);
        ck_assert_int_eq(leat_pipeline_parse(&pipeline, text), LEAT_EINVAL);
    }
    fixture_remove(directory);
}
END_TEST

START_TEST(a_token_knows_the_first_key_and_the_last)
{
    char directory[FIXTURE_PATH];
    /* The last has the same bytes in a row. */
    static const char *const others[][2] = {
        {"4", "67"}, {"3", "67"}, {"4", "68"}, {"44", "67"}, {"46", "7"}};
    leat_token token;
    leat_token_init(&token);
    write_keys(directory, "4", "67");
    leat_reader *reader = images_open(directory);
    ck_assert_int_eq(leat_reader_save(reader, &token), LEAT_OK);
    images_end(reader, directory);
    for (int i = 0; i < 5; i++) {
        token.cursor = 0;
        write_keys(directory, others[i][0], others[i][1]);
        reader = images_open(directory);
        ck_assert_int_eq(leat_reader_restore(reader, &token),
                         i == 0 ? LEAT_OK : LEAT_EINVAL);
        images_end(reader, directory);
    }
    leat_token_finish(&token);
}
END_TEST

START_TEST(a_token_fits_its_own_data_set_alone)
{
    char directory[FIXTURE_PATH], other[FIXTURE_PATH];
    leat_token token;
    leat_reader *reader = images_begin(directory, images_record, 10);
    leat_token_init(&token);
    ck_assert_int_eq(leat_reader_save(reader, &token), LEAT_OK);
    ck_assert_int_eq(leat_reader_restore(reader, &token), LEAT_OK);
    ck_assert_int_eq(leat_reader_restore(reader, &token), LEAT_EINVAL);
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 0}, NULL),
                     LEAT_OK);
    ck_assert_int_eq(images_count(reader), 10);
    leat_reader_close(reader);
    images_write(other, images_record, 11);
    reader = images_open(other);
    token.cursor = 0;
    ck_assert_int_eq(leat_reader_restore(reader, &token), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "has 11 records"));
    leat_reader_close(reader);
    leat_token_finish(&token);
    fixture_remove(directory);
    fixture_remove(other);
}
END_TEST

/* Everything that takes memory, up to the first failure. */
static int use_once(const char *path)
{
    leat_pipeline *pipeline = NULL;
    leat_reader *reader = NULL;
    leat_sample sample, *out = &sample;
    const leat_field_spec *spec;
    const leat_position index = {0, 5};
    int n, got;
    leat_sample_init(&sample);
    int status = leat_pipeline_lmdb(&pipeline, path, NULL);
    if (!status)
        status = leat_pipeline_open(pipeline, &reader);
    if (!status)
        status = leat_reader_fields(reader, &spec, &n);
    if (!status)
        status = leat_reader_next(reader, &sample);
    if (!status)
        status = leat_reader_read_at(reader, &index, &out, 1, &got);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
    leat_sample_finish(&sample);
    return status;
}

START_TEST(a_reader_survives_every_failing_allocation)
{
    char directory[FIXTURE_PATH];
    images_write(directory, images_record, 10);
    int n = 0, status = LEAT_ENOMEM;
    for (; status; n++) {
        leat__alloc_fail_at(n);
        status = use_once(directory);
        ck_assert(status == LEAT_OK || status == LEAT_ENOMEM);
    }
    leat__alloc_fail_at(-1);
    ck_assert_int_gt(n, 10);
    ck_assert_int_eq(use_once(directory), LEAT_OK);
    fixture_remove(directory);
}
END_TEST

START_TEST(reading_again_takes_no_memory)
{
    char directory[FIXTURE_PATH];
    leat_reader *reader = images_begin(directory, images_record, 100);
    leat_sample sample;
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    int64_t before = leat__alloc_count();
    while (leat_reader_next(reader, &sample) == LEAT_OK)
        ;
    ck_assert_int_eq(leat__alloc_count(), before);
    leat_sample_finish(&sample);
    images_end(reader, directory);
}
END_TEST

START_TEST(mnist_has_its_labels)
{
    static const int expected[10] = {980, 1135, 1032, 1010, 982,
                                     892, 958,  1028, 974,  1009};
    char path[SHARED_PATH];
    int labels[10] = {0};
    if (!shared_path(path, "lmdb/mnist_test_lmdb"))
        return;
    leat_reader *reader = images_open(path);
    leat_sample sample;
    leat_sample_init(&sample);
    while (leat_reader_next(reader, &sample) == LEAT_OK) {
        ck_assert_int_eq(sample.field[0].shape[1], 28);
        ck_assert_int_ge(images_label(&sample), 0);
        ck_assert_int_lt(images_label(&sample), 10);
        labels[images_label(&sample)]++;
        /* Written again, the Datum has the bytes that Caffe wrote. */
        unsigned char again[1024];
        leat_datum datum = {
            1,   28,   28, images_label(&sample), 0, sample.field[0].data,
            784, NULL, 0};
        size_t before = 9;
        ck_assert_uint_eq(leat_datum_write(&datum, again), 795);
        ck_assert_mem_eq((const char *)sample.field[0].data - before, again,
                         795);
    }
    ck_assert_mem_eq(labels, expected, sizeof(labels));
    leat_sample_finish(&sample);
    leat_reader_close(reader);
}
END_TEST

START_TEST(encoded_images_are_bytes)
{
    char path[SHARED_PATH];
    const leat_field_spec *spec;
    int n;
    if (!shared_path(path, "lmdb/imagenet5_jpeg_lmdb"))
        return;
    leat_reader *reader = images_open(path);
    leat_sample sample;
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
    ck_assert_int_eq(spec[0].dtype, LEAT_BYTES);
    ck_assert_int_eq(spec[0].ndim, -1);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(images_label(&sample), 827);
    ck_assert_int_eq(sample.field[0].dtype, LEAT_BYTES);
    ck_assert_mem_eq(sample.field[0].data, "\xff\xd8\xff", 3);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(images_label(&sample), 506);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lmdb");
    TCase *tcase = tcase_create("lmdb");
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, a_reader_that_drops_behind_itself_may_block);
    tcase_add_test(tcase, records_come_in_order_and_the_end_comes_twice);
    tcase_add_test(tcase, batches_of_every_size_give_the_same);
    tcase_add_test(tcase, the_first_record_tells_the_fields);
    tcase_add_test(tcase, the_first_good_record_tells_the_fields);
    tcase_add_test(tcase, an_empty_database_has_fields_and_ends_at_once);
    tcase_add_test(tcase, a_bad_record_is_named_and_stepped_over);
    tcase_add_test(tcase, deferred_records_are_those_of_the_walk);
    tcase_add_test(tcase, read_at_gives_the_good_prefix_and_the_error);
    tcase_add_test(tcase, options_of_another_size_are_refused);
    tcase_add_test(tcase, dropping_behind_what_has_no_order_is_told_once);
    tcase_add_test(tcase, seek_goes_to_every_record_and_to_the_end);
    tcase_add_test(tcase, a_failed_seek_changes_nothing);
    tcase_add_test(tcase, every_pass_gives_the_same_records);
    tcase_add_test(tcase, an_index_is_memory_that_the_reader_holds);
    tcase_add_test(tcase, notes_of_a_chain_share_an_eighth);
    tcase_add_test(tcase, threads_read_at_random_beside_next);
    tcase_add_test(tcase, a_damaged_page_is_a_sticky_error_after_what_is_good);
    tcase_add_test(tcase, a_cancelled_reader_gives_nothing_any_more);
    tcase_add_test(tcase, a_token_fits_its_own_data_set_alone);
    tcase_add_test(tcase, a_token_knows_the_first_key_and_the_last);
    tcase_add_test(tcase, arguments_beyond_their_bounds_are_refused);
    tcase_add_test(tcase, a_reader_survives_every_failing_allocation);
    tcase_add_test(tcase, reading_again_takes_no_memory);
    tcase_add_test(tcase, mnist_has_its_labels);
    tcase_add_test(tcase, encoded_images_are_bytes);
    return suite_run(suite);
}
