/* Epochs that fill no batch, and those that are empty or endless. */
#include "lmdb_fixture.h"
#include "support/bad_records.h"
#include "support/layer_fixture.h"
#include "support/suite.h"

#include <leat/decorators.h>

#include <check.h>
#include <stdio.h>
#include <string.h>

static bad_records records;
static leat_pipeline *pipeline;
static leat_data_layer_options options;
static leat_transform_options transform;

static void set_up(void)
{
    records = (bad_records){.count = 11};
    layer_fixture_options(&options, &transform);
    options.random_seed = 99;
    options.workers = 2;
    pipeline = NULL;
}

static void tear_down(void)
{
    leat_pipeline_unref(pipeline);
}

/* Setup of a layer that fails, with a line that names the source and all. */
static void check_refused(int status, const char *what)
{
    leat_data_layer *layer;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), status);
    ck_assert_msg(strstr(leat_last_error(), what) != NULL, "%s",
                  leat_last_error());
    leat_data_layer_destroy(layer);
}

START_TEST(an_epoch_that_fills_no_batch_is_an_error_of_drop)
{
    char line[128];
    records.way = (bad_records_way)_i;
    pipeline = bad_records_pipeline(&records);
    options.epoch_end = LEAT_EPOCH_END_DROP;
    options.batch_size = 6;
    options.world_size = 2;
    snprintf(line, sizeof(line),
             "%s: epoch_end is DROP, but an epoch of 11 samples fills no batch "
             "of 12",
             leat_pipeline_text(pipeline));
    check_refused(LEAT_EINVAL, line);
    options.batch_size = 5;
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    layer_fixture_close(&fixture);
}
END_TEST

/* In order, by a reader that knows its count: a rank has a sample in one epoch
   of five. */
START_TEST(an_epoch_may_have_fewer_samples_than_there_are_ranks)
{
    ck_assert_int_eq(
        leat_pipeline_parse(&pipeline,
                            "random:1,shape=1x4x4,dtype=uint8 | shuffle:2"),
        LEAT_OK);
    options.transform = NULL;
    options.batch_size = 2;
    options.world_size = 5;
    options.epoch_end = (leat_epoch_end)_i;
    for (int rank = 0; rank < 5; rank++) {
        leat_data_layer *layer;
        options.rank = rank;
        ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                         LEAT_OK);
        ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_OK);
        for (int epoch = 0; epoch < 12; epoch++) {
            int status = leat_data_layer_forward(layer, NULL, 0, LEAT_HOST);
            ck_assert_msg(!status, "%d: %s", epoch, leat_last_error());
            ck_assert_int_eq(leat_data_layer_batch(layer)->epoch, epoch);
            ck_assert_int_eq(leat_data_layer_batch(layer)->valid,
                             epoch % 5 == rank);
        }
        leat_data_layer_destroy(layer);
    }
}
END_TEST

/* The next sample of a rank is hundreds of batches away, at setup or where the
   layer goes on. */
START_TEST(a_rank_may_wait_long_for_its_first_sample)
{
    enum { RANKS = 700 };
    records = (bad_records){.count = 1, .way = (bad_records_way)(_i / 2)};
    pipeline = bad_records_pipeline(&records);
    leat_data_layer *layer;
    leat_token token;
    leat_token_init(&token);
    options.batch_size = 1;
    options.world_size = RANKS;
    options.rank = RANKS - 1;
    options.epoch_end = _i % 2 ? LEAT_EPOCH_END_PAD : LEAT_EPOCH_END_PARTIAL;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    ck_assert_msg(!leat_data_layer_setup(layer, NULL, 0), "%s",
                  leat_last_error());
    for (int begin = 0; begin <= RANKS; begin += RANKS) {
        for (int i = 0; i < RANKS; i++) {
            ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST),
                             LEAT_OK);
            const leat_batch *batch = leat_data_layer_batch(layer);
            ck_assert_int_eq(batch->epoch, begin + i);
            ck_assert_int_eq(batch->valid, i == RANKS - 1);
        }
        ck_assert_int_eq(leat_data_layer_save(layer, &token), LEAT_OK);
        ck_assert_msg(!leat_data_layer_restore(layer, &token), "%s",
                      leat_last_error());
    }
    leat_token_finish(&token);
    leat_data_layer_destroy(layer);
}
END_TEST

START_TEST(more_batches_without_a_sample_than_memory_are_refused)
{
    pipeline = bad_records_pipeline(&records);
    options.batch_size = 1;
    options.world_size = 20000;
    options.rank = 19999;
    options.epoch_end = LEAT_EPOCH_END_PARTIAL;
    options.max_memory = 1 << 20;
    check_refused(LEAT_ELIMIT, "have no sample of this rank");
}
END_TEST

/* Its count is the largest number that there is. */
START_TEST(an_endless_epoch_ends_no_batch)
{
    leat_pipeline *upstream = bad_records_pipeline(&records);
    ck_assert_int_eq(leat_pipeline_repeat(&pipeline, upstream, -1), LEAT_OK);
    leat_pipeline_unref(upstream);
    options.batch_size = 4;
    options.epoch_end = (leat_epoch_end)_i;
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    for (int b = 0; b < 9; b++) {
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        const leat_batch *batch = leat_data_layer_batch(fixture.layer);
        ck_assert_int_eq(batch->number, b);
        ck_assert_int_eq(batch->valid, 4);
        ck_assert_int_eq(batch->from[0].record, 4 * b % records.count);
    }
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(an_empty_data_set_is_an_error_by_name)
{
    records.count = 0;
    records.way = (bad_records_way)_i;
    pipeline = bad_records_pipeline(&records);
    options.batch_size = 4;
    for (int end = 0; end < 4; end++) {
        options.epoch_end = (leat_epoch_end)end;
        check_refused(LEAT_EFORMAT, "there are no samples in it");
    }
}
END_TEST

START_TEST(an_epoch_without_an_end_has_batches_without_an_end)
{
    leat_data_layer *layer;
    leat_token token;
    leat_token_init(&token);
    options.batch_size = 4;
    options.epoch_end = (leat_epoch_end)_i;
    ck_assert_int_eq(
        leat_pipeline_parse(&pipeline, "random:-1,shape=1x4x4,dtype=uint8"),
        LEAT_OK);
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_OK);
    for (int b = 0; b < 4; b++) {
        if (b == 2) {
            ck_assert_int_eq(leat_data_layer_save(layer, &token), LEAT_OK);
            ck_assert_int_eq(leat_data_layer_restore(layer, &token), LEAT_OK);
        }
        ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST),
                         LEAT_OK);
        ck_assert_int_eq(leat_data_layer_batch(layer)->number, b);
        ck_assert_int_eq(leat_data_layer_batch(layer)->valid, 4);
    }
    leat_data_layer_destroy(layer);
    leat_token_finish(&token);
}
END_TEST

START_TEST(the_samples_of_an_epoch_are_counted)
{
    int64_t n = -1;
    leat_data_layer *layer;
    records.way = (bad_records_way)_i;
    pipeline = bad_records_pipeline(&records);
    options.batch_size = 4;
    options.world_size = 2;
    options.epoch_end = LEAT_EPOCH_END_DROP;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    for (int k = 0; k < 2; k++) {
        int status = leat_data_layer_count(layer, &n);
        if (records.way == BAD_RECORDS_IN_ORDER) {
            ck_assert_int_eq(status, LEAT_EUNSUPPORTED);
            ck_assert_int_eq(n, -1);
        } else {
            ck_assert_int_eq(status, LEAT_OK);
            ck_assert_int_eq(n, 11);
        }
        if (k == 0)
            ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_OK);
    }
    leat_data_layer_destroy(layer);
}
END_TEST

/* As setup opens them: a cache is of one phase. */
START_TEST(the_samples_of_a_cache_for_tests_are_counted)
{
    char directory[FIXTURE_PATH], text[2 * FIXTURE_PATH];
    int64_t n = -1;
    leat_data_layer *layer;
    snprintf(text, sizeof(text),
             "range:8 | cast:value=float32 | cache:dir=%s/cached",
             fixture_directory(directory));
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, text), LEAT_OK);
    options.batch_size = 4;
    options.phase = LEAT_TEST;
    for (int k = 0; k < 2; k++) {
        ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                         LEAT_OK);
        ck_assert_msg(!leat_data_layer_count(layer, &n), "%d: %s", k,
                      leat_last_error());
        ck_assert_int_eq(n, 8);
        ck_assert_msg(!leat_data_layer_setup(layer, NULL, 0), "%s",
                      leat_last_error());
        for (int i = 0; i < 4; i++)
            ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST),
                             LEAT_OK);
        leat_data_layer_destroy(layer);
    }
    fixture_remove(directory);
}
END_TEST

/* Also of samples that are not counted before they are read. */
START_TEST(samples_without_an_end_are_counted_as_endless)
{
    int64_t n = -1;
    leat_data_layer *layer;
    records.way = (bad_records_way)_i;
    leat_pipeline *upstream = bad_records_pipeline(&records);
    ck_assert_int_eq(leat_pipeline_repeat(&pipeline, upstream, -1), LEAT_OK);
    leat_pipeline_unref(upstream);
    options.batch_size = 4;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    ck_assert_int_eq(leat_data_layer_count(layer, &n), LEAT_OK);
    ck_assert_int_eq(n, LEAT_ENDLESS);
    leat_data_layer_destroy(layer);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("epoch_lengths");
    TCase *tcase = tcase_create("epoch_lengths");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 100);
    tcase_add_loop_test(tcase, an_epoch_that_fills_no_batch_is_an_error_of_drop,
                        0, BAD_RECORDS_WAYS);
    tcase_add_loop_test(tcase,
                        an_epoch_may_have_fewer_samples_than_there_are_ranks,
                        LEAT_EPOCH_END_PARTIAL, LEAT_EPOCH_END_PAD + 1);
    tcase_add_loop_test(tcase, a_rank_may_wait_long_for_its_first_sample, 0,
                        2 * BAD_RECORDS_WAYS);
    tcase_add_test(tcase,
                   more_batches_without_a_sample_than_memory_are_refused);
    tcase_add_loop_test(tcase, an_endless_epoch_ends_no_batch, 0, 4);
    tcase_add_loop_test(tcase, an_empty_data_set_is_an_error_by_name, 0,
                        BAD_RECORDS_WAYS);
    tcase_add_loop_test(
        tcase, an_epoch_without_an_end_has_batches_without_an_end, 0, 4);
    tcase_add_loop_test(tcase, the_samples_of_an_epoch_are_counted, 0,
                        BAD_RECORDS_WAYS);
    tcase_add_test(tcase, the_samples_of_a_cache_for_tests_are_counted);
    tcase_add_loop_test(tcase, samples_without_an_end_are_counted_as_endless, 0,
                        BAD_RECORDS_WAYS);
    return suite_run(suite);
}
