/* cache:dir=PATH takes memory for its index alone, and within max_memory; what
   cache keeps in memory is the system's again afterwards. */
#include "support/cache_fixture.h"
#include "support/process_memory.h"
#include "support/suite.h"

#include <leat/ext/reader.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of memory that a sample takes. */
enum { EACH = 25 };

static int open_within(leat_pipeline *pipeline, int64_t max_memory,
                       leat_reader **out)
{
    leat_open_options options = LEAT_OPEN_OPTIONS_INIT;
    options.max_memory = max_memory;
    int status = leat_pipeline_open_with(pipeline, &options, out);
    leat_pipeline_unref(pipeline);
    return status;
}

/* `format` has the place of the directory. */
static leat_pipeline *parse(const char *format)
{
    char text[200];
    leat_pipeline *pipeline = NULL;
    snprintf(text, sizeof(text), format, cache_path);
    ck_assert_msg(leat_pipeline_parse(&pipeline, text) == LEAT_OK, "%s",
                  leat_last_error());
    return pipeline;
}

static void expect_nothing_left(void)
{
    ck_assert(!cache_is_there("") && !cache_is_there(".partial"));
}

START_TEST(more_samples_than_max_memory_has_room_for_are_refused_at_open)
{
    leat_reader *reader = NULL;
    ck_assert_int_eq(open_within(parse("range:40000 | cache:dir=%s"),
                                 40000 * EACH - 1, &reader),
                     LEAT_ELIMIT);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "40000 samples"));
    expect_nothing_left();
    ck_assert_int_eq(
        open_within(parse("range:40000 | cache:dir=%s"), 40000 * EACH, &reader),
        LEAT_OK);
    cache_read_some(reader, 40000);
    leat_reader_close(reader);
    ck_assert(cache_is_there("/index"));
    /* The same where it is there already. */
    ck_assert_int_eq(open_within(parse("range:40000 | cache:dir=%s"),
                                 40000 * EACH - 1, &reader),
                     LEAT_ELIMIT);
}
END_TEST

/* Their number is not known at open; more are read on, and not kept. */
START_TEST(a_stream_of_more_samples_is_not_kept)
{
    const int64_t limits[] = {1, CACHE_SAMPLES * EACH - 1, CACHE_SAMPLES * EACH,
                              0};
    cache_source.is_stream = 1;
    for (int i = 0; i < 4; i++) {
        leat_reader *reader = NULL;
        leat_cache_options options = LEAT_CACHE_OPTIONS_INIT;
        leat_pipeline *pipeline, *upstream = cache_pipeline(CACHE_SAMPLES);
        options.dir = cache_path;
        cache_log[0] = 0;
        ck_assert_int_eq(leat_pipeline_cache(&pipeline, upstream, &options),
                         LEAT_OK);
        leat_pipeline_unref(upstream);
        ck_assert_int_eq(open_within(pipeline, limits[i], &reader), LEAT_OK);
        for (int epoch = 0; epoch < 2; epoch++)
            cache_expect_epoch(reader, epoch, CACHE_SAMPLES);
        leat_reader_close(reader);
        bool is_kept = i >= 2;
        ck_assert(cache_is_there("/index") == is_kept);
        if (!is_kept)
            ck_assert_ptr_nonnull(strstr(cache_log, "max_memory"));
        if (!is_kept)
            expect_nothing_left();
        cache_remove_all(cache_path);
    }
}
END_TEST

/* Wherever these lie among the others. */
START_TEST(a_few_samples_take_memory_for_a_few)
{
    leat_reader *reader = NULL;
    long before = process_memory_most();
    ck_assert_int_eq(
        open_within(parse("range:20000000 | cache:dir=%s | shuffle:seed=1"), 0,
                    &reader),
        LEAT_OK);
    cache_read_some(reader, 3);
    ck_assert_int_lt(process_memory_most() - before, 64 << 10);
    leat_reader_close(reader);
    expect_nothing_left();
}
END_TEST

/* While it is written, and once it is there. */
START_TEST(its_memory_is_told)
{
    leat_reader *reader = NULL;
    ck_assert_int_eq(
        open_within(parse("range:5000 | cache:dir=%s"), 0, &reader), LEAT_OK);
    cache_read_some(reader, 4999);
    ck_assert_int_gt(reader->ops->memory(reader), 4999 * (EACH - 1));
    ck_assert_int_lt(reader->ops->memory(reader), 2 * 5000 * EACH);
    cache_read_some(reader, 1);
    ck_assert_int_ge(reader->ops->memory(reader), 5000 * EACH);
    ck_assert_int_lt(reader->ops->memory(reader), 5000 * EACH + 8000);
    leat_reader_close(reader);
}
END_TEST

/* From 128 KiB on malloc maps blocks, until a larger one has been freed. */
START_TEST(records_in_memory_do_not_stay_with_malloc)
{
    enum { RECORDS = 100, BYTES = 200000 };
    char name[80], text[128];
    leat_pipeline *pipeline;
    leat_reader *reader = NULL;
    void *volatile large = malloc((size_t)30 << 20);
    free(large);
    snprintf(name, sizeof(name), "%s/lines", cache_root);
    snprintf(text, sizeof(text), "text:%s | cache:64M", name);
    FILE *file = fopen(name, "w");
    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < RECORDS; i++)
        ck_assert_int_eq(fprintf(file, "%0*d\n", BYTES, i), BYTES + 1);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, text), LEAT_OK);
    ck_assert_int_eq(open_within(pipeline, 0, &reader), LEAT_OK);
    int64_t before = process_memory_heap();
    for (int epoch = 0; epoch < 2; epoch++) {
        if (epoch)
            ck_assert_int_eq(
                leat_reader_seek(reader, (leat_position){epoch, 0}, NULL),
                LEAT_OK);
        cache_read_some(reader, RECORDS);
        ck_assert_int_eq(leat_reader_next(reader, &cache_sample), LEAT_END);
    }
    ck_assert_int_gt(reader->ops->memory(reader), RECORDS * BYTES);
    leat_reader_close(reader);
    ck_assert_int_lt(process_memory_heap() - before, 4 << 20);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cache_limit");
    TCase *tcase = tcase_create("cache_limit");
    tcase_add_checked_fixture(tcase, cache_set_up, cache_tear_down);
    tcase_set_timeout(tcase, 120);
    suite_add_tcase(suite, tcase);
    tcase_add_test(
        tcase, more_samples_than_max_memory_has_room_for_are_refused_at_open);
    tcase_add_test(tcase, a_stream_of_more_samples_is_not_kept);
    tcase_add_test(tcase, a_few_samples_take_memory_for_a_few);
    tcase_add_test(tcase, its_memory_is_told);
    tcase_add_test(tcase, records_in_memory_do_not_stay_with_malloc);
    return suite_run(suite);
}
