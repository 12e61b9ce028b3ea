/*
 * However an LMDB is read ahead and dropped behind, from memory or from
 * storage, by whatever way of reading: the samples are the same.
 */
#include "base/memory.h"
#include "readers/lmdb/lmdb_walker.h"
#include "storage_fixture.h"
#include "support/index_decorators.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/datum.h>
#include <leat/ext/reader.h>

#define LARGE 300 /* 3 x 60 x 60: on pages of their own */
#define SMALL 6000

static const char *const arguments[] = {
    "",
    ",read_ahead=33554432",
    ",read_ahead=-1",
    ",read_ahead=1",
    ",read_ahead=65536",
    ",read_ahead=9223372036854775807",
    ",drop_behind=1,keep_behind=-1",
    ",drop_behind=1,keep_behind=-1,read_ahead=-1",
    ",drop_behind=1,keep_behind=1048576,read_ahead=262144",
};
enum { WAYS = sizeof(arguments) / sizeof(arguments[0]) };

static storage_fixture file;

static void make_image(int number, int height, fixture_record *out)
{
    unsigned char pixels[3 * 60 * 60];
    size_t side = (size_t)height, size = 3 * side * side;
    for (size_t i = 0; i < size; i++)
        pixels[i] = (unsigned char)((size_t)number + i * 7);
    leat_datum datum = {3, height, height, number, 0, pixels, size, NULL, 0};
    out->key_size = (size_t)sprintf(out->key, "%08d", number);
    out->value_size = leat_datum_write(&datum, out->value);
}

static void make_large(int number, fixture_record *out)
{
    make_image(number, 60, out);
}

static void make_small(int number, fixture_record *out)
{
    make_image(number, 4, out);
}

static leat_reader *open_reader(const char *options)
{
    char text[2 * FIXTURE_PATH];
    leat_pipeline *pipeline;
    leat_reader *reader = NULL;
    snprintf(text, sizeof(text), "lmdb:%s%s", file.directory, options);
    int status = leat_pipeline_parse(&pipeline, text);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    status = leat_pipeline_open(pipeline, &reader);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    leat_pipeline_unref(pipeline);
    return reader;
}

static void check(const leat_sample *sample, int64_t record)
{
    const unsigned char *pixels = sample->field[0].data;
    int32_t label;
    memcpy(&label, sample->field[1].data, sizeof(label));
    ck_assert_int_eq(label, (int32_t)record);
    ck_assert_int_eq(sample->from.record, record);
    for (size_t i = 0; i < sample->field[0].bytes; i += 41)
        ck_assert_uint_eq(pixels[i], (unsigned char)((size_t)record + i * 7));
}

/* A lap by next, some at a time. */
static void check_walk(leat_reader *reader, leat_sample *const buffer[64],
                       int64_t from, int64_t count)
{
    int n = 1, got;
    for (int64_t record = from; record < count; record += got) {
        ck_assert_int_eq(leat_reader_next_batch(reader, buffer, n, &got),
                         LEAT_OK);
        for (int i = 0; i < got; i++)
            check(buffer[i], record + i);
        n = n % 64 + 1;
    }
    ck_assert_int_eq(leat_reader_next_batch(reader, buffer, 1, &got), LEAT_END);
}

static void check_deferred(leat_reader *reader, leat_sample *const buffer[64],
                           int64_t count)
{
    int found, got;
    for (int64_t record = 0; record < count; record += found) {
        for (int i = 0; i < 64; i++)
            leat_sample_clear(buffer[i]);
        ck_assert_int_eq(leat_reader_pull(reader, buffer, 64, &found), LEAT_OK);
        for (int i = 0; i < found; i++)
            ck_assert(buffer[i]->deferred);
        ck_assert_int_eq(leat_reader_materialize(reader, buffer, found, &got),
                         LEAT_OK);
        ck_assert_int_eq(got, found);
        for (int i = 0; i < got; i++)
            check(buffer[i], record + i);
    }
}

static void check_read_at(leat_reader *reader, leat_sample *const buffer[64],
                          int64_t count, int advise)
{
    leat_position at[64];
    int got;
    for (int64_t from = 0; from < count; from += 64) {
        for (int i = 0; i < 64; i++)
            at[i] = (leat_position){0, (from + i) * 7919 % count};
        if (advise)
            leat_reader_advise(reader, at, 64);
        ck_assert_int_eq(leat_reader_read_at(reader, at, buffer, 64, &got),
                         LEAT_OK);
        ck_assert_int_eq(got, 64);
        for (int i = 0; i < 64; i++)
            check(buffer[i], at[i].index);
    }
}

/* A reader over a file of which nothing is in memory, if that can be had. */
static leat_reader *open_cold(const char *options)
{
    (void)storage_fixture_cool(&file);
    return open_reader(options);
}

static void check_reader(const char *options, int64_t count)
{
    leat_sample sample[64], *buffer[64];
    for (int i = 0; i < 64; i++)
        leat_sample_init(buffer[i] = &sample[i]);
    leat_reader *reader = open_cold(options);
    for (int lap = 0; lap < 2; lap++) {
        check_walk(reader, buffer, 0, count);
        ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 0}, NULL),
                         LEAT_OK);
    }
    leat_reader_close(reader);
    reader = open_cold(options);
    check_deferred(reader, buffer, count);
    leat_reader_close(reader);
    reader = open_cold(options);
    ck_assert_int_eq(
        leat_reader_seek(reader, (leat_position){0, count / 2}, NULL), LEAT_OK);
    check_walk(reader, buffer, count / 2, count);
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 3}, NULL),
                     LEAT_OK);
    check_walk(reader, buffer, 3, count);
    leat_reader_close(reader);
    for (int advise = 0; advise < 2; advise++) {
        reader = open_cold(options);
        check_read_at(reader, buffer, count, advise);
        leat_reader_close(reader);
    }
    for (int i = 0; i < 64; i++)
        leat_sample_finish(&sample[i]);
}

START_TEST(records_on_pages_of_their_own_are_the_same_in_every_way)
{
    storage_fixture_open(&file, make_large, LARGE);
    for (int i = 0; i < WAYS; i++)
        check_reader(arguments[i], LARGE);
    storage_fixture_close(&file);
}
END_TEST

START_TEST(records_within_leaves_are_the_same_in_every_way)
{
    storage_fixture_open(&file, make_small, SMALL);
    for (int i = 0; i < WAYS; i++)
        check_reader(arguments[i], SMALL);
    storage_fixture_close(&file);
}
END_TEST

/*
 * Once round, and a bit; *threads becomes whether the reader had a thread that
 * read, be it one that rested by the end of setup. With `settles` all of the
 * file is then brought into memory, and further rounds follow until it has
 * none.
 */
static void check_layer(const char *options, const char *decorators,
                        leat_reader_thread thread, int settles, int *threads)
{
    char text[2 * FIXTURE_PATH];
    leat_pipeline *pipeline;
    leat_data_layer *layer;
    leat_blob *top[2];
    leat_stats stats = {.size = sizeof(stats)};
    leat_data_layer_options values = LEAT_DATA_LAYER_OPTIONS_INIT;
    values.batch_size = 50;
    values.workers = 2;
    values.reader_thread = thread;
    snprintf(text, sizeof(text), "lmdb:%s%s%s", file.directory, options,
             decorators);
    int status = leat_pipeline_parse(&pipeline, text);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &values), 0);
    ck_assert_int_eq(leat_blob_create(&top[0], NULL), LEAT_OK);
    ck_assert_int_eq(leat_blob_create(&top[1], NULL), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_setup(layer, top, 2), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_stats(layer, &stats), LEAT_OK);
    /* Only a thread waits for room. */
    *threads = stats.stage[0].threads || stats.stage[0].blocked_full > 0;
    if (settles)
        storage_fixture_warm(&file);
    for (int i = 0; i < LARGE / 50 + 3 || (settles && stats.stage[0].threads);
         i++) {
        ck_assert_int_eq(leat_data_layer_stats(layer, &stats), LEAT_OK);
        status = leat_data_layer_forward(layer, top, 2, LEAT_HOST);
        ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
        const leat_batch *batch = leat_data_layer_batch(layer);
        const float *label = leat_blob_cpu_data(top[1]);
        const float *pixel = leat_blob_cpu_data(top[0]);
        for (int k = 0; k < 50; k++) {
            int64_t record = (i * 50 + k) % LARGE;
            if (decorators[0])
                record = index_decorators_shuffled(record, LARGE, 5);
            ck_assert_int_eq(batch->from[k].record, record);
            ck_assert_int_eq((int)label[k], (int)record);
            ck_assert_int_eq((int)pixel[k * 10800 + 10799],
                             (unsigned char)(record + 10799 * 7));
        }
    }
    leat_data_layer_destroy(layer);
    leat_blob_destroy(top[0]);
    leat_blob_destroy(top[1]);
    leat_pipeline_unref(pipeline);
}

START_TEST(layers_deliver_the_same_whoever_reads)
{
    int threads;
    storage_fixture_open(&file, make_large, LARGE);
    index_decorators_register();
    for (int i = 0; i < WAYS; i += 2)
        for (int thread = 0; thread < 3; thread++) {
            (void)storage_fixture_cool(&file);
            check_layer(arguments[i], "", (leat_reader_thread)thread, 0,
                        &threads);
            (void)storage_fixture_cool(&file);
            check_layer(arguments[i], "|test_shuffle:seed=5",
                        (leat_reader_thread)thread, 0, &threads);
        }
    storage_fixture_close(&file);
}
END_TEST

/*
 * Whether a file that was put out of memory gets a thread. The kernel may fetch
 * a file again that has been touched, at any time and as far as it likes, so it
 * is tried some times.
 */
static int has_thread_when_cold(int settles)
{
    int threads = 0;
    for (int i = 0; i < 10 && !threads; i++) {
        (void)storage_fixture_cool(&file);
        check_layer("", "", LEAT_READER_AUTO, settles, &threads);
    }
    return threads;
}

START_TEST(the_thread_rests_once_what_it_reads_is_in_memory)
{
    storage_fixture_open(&file, make_large, LARGE);
    storage_fixture_lengthen(&file);
    if (storage_fixture_cool(&file))
        ck_assert_int_eq(has_thread_when_cold(1), 1);
    storage_fixture_close(&file);
}
END_TEST

START_TEST(a_reader_of_storage_has_a_thread_and_one_of_memory_has_none)
{
    int threads;
    storage_fixture_open(&file, make_large, LARGE);
    storage_fixture_warm(&file);
    check_layer("", "", LEAT_READER_AUTO, 0, &threads);
    ck_assert_int_eq(threads, 0);
    check_layer(",drop_behind=1", "", LEAT_READER_AUTO, 0, &threads);
    ck_assert_int_eq(threads, 1);
    storage_fixture_lengthen(&file);
    if (storage_fixture_cool(&file)) {
        ck_assert_int_eq(has_thread_when_cold(0), 1);
        (void)storage_fixture_cool(&file);
        check_layer("", "", LEAT_READER_OFF, 0, &threads);
        ck_assert_int_eq(threads, 0);
    }
    storage_fixture_close(&file);
}
END_TEST

START_TEST(a_thread_tells_ahead_what_will_be_read_at_random)
{
    int threads;
    storage_fixture_open(&file, make_large, LARGE);
    index_decorators_register();
    check_layer("", "|test_shuffle:seed=5", LEAT_READER_OFF, 0, &threads);
    ck_assert_int_eq(index_decorators_advised(), 0);
    check_layer("", "|test_shuffle:seed=5", LEAT_READER_ON, 0, &threads);
    ck_assert_int_ge(index_decorators_advised(), LARGE + 3 * 50);
    storage_fixture_close(&file);
}
END_TEST

/* From the end of the file on nothing can be read: an error, and no signal. */
START_TEST(storage_that_fails_is_a_sticky_error)
{
    leat_sample sample;
    int status, again;
    storage_fixture_open(&file, make_large, LARGE);
    storage_fixture_lengthen(&file);
    if (!storage_fixture_cool(&file) ||
        madvise((void *)(uintptr_t)file.map.base, file.storage.file.page, 22)) {
        printf("skipped: no MADV_POPULATE_READ, or no storage\n");
        storage_fixture_close(&file);
        return;
    }
    leat_sample_init(&sample);
    leat_reader *reader = open_reader("");
    /* To open it is to touch it, whereupon the kernel may fetch all of it, now
       or a little later: only once it has done so is it put out of memory. */
    storage_fixture_warm(&file);
    storage_fixture_drop(&file);
    ck_assert_int_eq(leat__mapped_file_may_block(&file.storage.file), 1);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    /* The value of the last record, all but the first of its pages. */
    leat__lmdb_node last = {0};
    ck_assert_int_eq(leat__lmdb_walker_last(&file.map, &last), LEAT_OK);
    size_t end = (last.overflow + 1) * file.map.meta.page_size;
    ck_assert_uint_lt(end, file.map.size);
    ck_assert_int_eq(ftruncate(file.fd, (off_t)end), 0);
    while ((status = leat_reader_next(reader, &sample)) == LEAT_OK)
        continue;
    again = leat_reader_next(reader, &sample);
    ck_assert_int_eq(status, LEAT_EIO);
    ck_assert_int_eq(again, status);
    leat_reader_close(reader);
    leat_sample_finish(&sample);
    storage_fixture_close(&file);
}
END_TEST

START_TEST(reading_from_storage_takes_no_memory)
{
    leat_sample sample;
    storage_fixture_open(&file, make_large, LARGE);
    leat_sample_init(&sample);
    leat_reader *reader =
        open_cold(",drop_behind=1,keep_behind=-1,read_ahead=262144");
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    int64_t before = leat__alloc_count();
    for (int i = 0; i < 2 * LARGE; i++) {
        int status = leat_reader_next(reader, &sample);
        if (status == LEAT_END)
            status = leat_reader_seek(reader, (leat_position){0, 0}, NULL);
        ck_assert_int_eq(status, LEAT_OK);
    }
    ck_assert_int_eq(leat__alloc_count(), before);
    leat_reader_close(reader);
    leat_sample_finish(&sample);
    storage_fixture_close(&file);
}
END_TEST

START_TEST(options_become_arguments_and_bad_ones_a_sentence)
{
    leat_pipeline *pipeline;
    leat_lmdb_options options = LEAT_LMDB_OPTIONS_INIT;
    ck_assert_int_eq(leat_pipeline_lmdb(&pipeline, "a,b", &options), LEAT_OK);
    ck_assert_str_eq(leat_pipeline_text(pipeline), "lmdb:a\\,b");
    leat_pipeline_unref(pipeline);
    options = (leat_lmdb_options){sizeof(options), -1, 1, 4096};
    ck_assert_int_eq(leat_pipeline_lmdb(&pipeline, "a", &options), LEAT_OK);
    ck_assert_str_eq(leat_pipeline_text(pipeline),
                     "lmdb:a,read_ahead=-1,drop_behind=1,keep_behind=4096");
    leat_pipeline_unref(pipeline);
    /* What an older header does not know of keeps its default. */
    options.size = sizeof(options.size);
    ck_assert_int_eq(leat_pipeline_lmdb(&pipeline, "a", &options), LEAT_OK);
    ck_assert_str_eq(leat_pipeline_text(pipeline), "lmdb:a");
    leat_pipeline_unref(pipeline);
    static const leat_lmdb_options bad[] = {
        {0, 0, 0, 0},
        {sizeof(options), -2, 0, 0},
        {sizeof(options), 0, 2, 0},
        {sizeof(options), 0, 0, -2},
    };
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(leat_pipeline_lmdb(&pipeline, "a", &bad[i]),
                         LEAT_EINVAL);
    static const char *const texts[] = {"lmdb:/,read_ahead=-2",
                                        "lmdb:/,drop_behind=yes",
                                        "lmdb:/,keep_behind=1e6"};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(leat_pipeline_parse(&pipeline, texts[i]), LEAT_EINVAL);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), ": expected "));
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("cold");
    tcase_add_test(tests,
                   records_on_pages_of_their_own_are_the_same_in_every_way);
    tcase_add_test(tests, records_within_leaves_are_the_same_in_every_way);
    tcase_add_test(tests, layers_deliver_the_same_whoever_reads);
    tcase_add_test(tests,
                   a_reader_of_storage_has_a_thread_and_one_of_memory_has_none);
    tcase_add_test(tests, the_thread_rests_once_what_it_reads_is_in_memory);
    tcase_add_test(tests, a_thread_tells_ahead_what_will_be_read_at_random);
    tcase_add_test(tests, storage_that_fails_is_a_sticky_error);
    tcase_add_test(tests, reading_from_storage_takes_no_memory);
    tcase_add_test(tests, options_become_arguments_and_bad_ones_a_sentence);
    Suite *suite = suite_create("cold");
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
