/* Law 4: errors come in order, with their text, and nothing hangs. */
#include "support/bad_records.h"
#include "support/images.h"
#include "support/layer_fixture.h"
#include "support/scripted_source.h"
#include "support/suite.h"

#include <leat/datum.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static scripted_source source_now;
static leat_data_layer_options options;

static void set_up(void)
{
    const scripted_source fresh = SCRIPTED_SOURCE_INIT;
    const leat_data_layer_options defaults = LEAT_DATA_LAYER_OPTIONS_INIT;
    source_now = fresh;
    options = defaults;
    options.batch_size = 3;
}

/* Every reader thread mode, through a test that opens and closes by itself. */
static void in_all_modes(void (*check)(leat_pipeline *))
{
    for (int thread = 0; thread < 3; thread++)
        for (int workers = 1; workers < 4; workers++)
            for (int prefetch = 1; prefetch < 5; prefetch += 3) {
                options.reader_thread = (leat_reader_thread)thread;
                options.workers = workers;
                options.prefetch = prefetch;
                leat_pipeline *pipeline = scripted_source_pipeline(&source_now);
                check(pipeline);
                leat_pipeline_unref(pipeline);
            }
}

static void check_bad_record(leat_pipeline *pipeline)
{
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    static const int first[] = {0, 3, -1, 9, 2, 5, -1};
    for (int i = 0; i < 7; i++) {
        int status = layer_fixture_forward(&fixture);
        ck_assert_int_eq(status, first[i] < 0 ? LEAT_EDATA : LEAT_OK);
        if (status)
            ck_assert_ptr_nonnull(strstr(leat_last_error(), "record 8"));
        else
            ck_assert_float_eq(layer_fixture_label(&fixture, 0),
                               (float)first[i]);
    }
    layer_fixture_close(&fixture);
}

START_TEST(a_bad_record_costs_its_batch_alone)
{
    source_now.bad = 8;
    in_all_modes(check_bad_record);
}
END_TEST

/* In one batch: the first cannot be transformed, the next not be read. */
static void check_first_told(bad_records_way way, int first)
{
    char name[16];
    bad_records plan = {.count = 12, .way = way};
    plan.kind[first] = BAD_RECORDS_SHORT;
    plan.kind[first + 1] = BAD_RECORDS_UNREADABLE;
    snprintf(name, sizeof(name), "record %d", first);
    options.batch_size = 4;
    leat_pipeline *pipeline = bad_records_pipeline(&plan);
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    leat_stats stats = {.size = sizeof(stats)};
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_EDATA);
    ck_assert_msg(strstr(leat_last_error(), name) != NULL, "%s",
                  leat_last_error());
    ck_assert_int_eq(leat_data_layer_stats(fixture.layer, &stats), LEAT_OK);
    ck_assert_int_eq(stats.bad_records, 1);
    ck_assert_int_eq(stats.bad[0].from.record, first);
    ck_assert_int_eq(stats.bad[0].from.position, first);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    layer_fixture_close(&fixture);
    leat_pipeline_unref(pipeline);
}

START_TEST(the_first_bad_record_of_a_batch_is_the_one_that_is_told)
{
    for (int first = 4; first < 7; first++)
        check_first_told((bad_records_way)_i, first);
}
END_TEST

/* Images of 1 x 4 x 5, but for the sixth, which is read well. */
static void make_unlike(int number, fixture_record *out)
{
    images_record(number, out);
    if (number != 5)
        return;
    unsigned char pixels[24] = {0};
    const leat_datum datum = {1,    4, 6, number, 0, pixels, sizeof(pixels),
                              NULL, 0};
    out->value_size = leat_datum_write(&datum, out->value);
}

START_TEST(an_error_names_source_record_and_key)
{
    char directory[FIXTURE_PATH], line[2 * FIXTURE_PATH];
    leat_pipeline *pipeline;
    images_write(directory, make_unlike, 9);
    ck_assert_int_eq(leat_pipeline_lmdb(&pipeline, directory, NULL), LEAT_OK);
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_EDATA);
    snprintf(line, sizeof(line), "%s: record 5, key 00000005: ", directory);
    ck_assert_msg(strstr(leat_last_error(), line) != NULL, "%s",
                  leat_last_error());
    layer_fixture_close(&fixture);
    leat_pipeline_unref(pipeline);
    fixture_remove(directory);
}
END_TEST

static void check_broken(leat_pipeline *pipeline)
{
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_EIO);
        ck_assert_str_eq(leat_last_error(), "source: the storage failed at 7");
    }
    layer_fixture_close(&fixture);
}

START_TEST(a_storage_error_comes_after_the_good_batches_and_stays)
{
    source_now.broken = 7;
    in_all_modes(check_broken);
}
END_TEST

/* In one batch: the first has no shape, and then the storage fails. */
static void check_lost_and_broken(leat_reader_thread thread, int workers)
{
    const bad_records plan = {
        .count = 12,
        .way = BAD_RECORDS_IN_ORDER,
        .kind = {[4] = BAD_RECORDS_SHAPELESS, [6] = BAD_RECORDS_BROKEN}};
    options.batch_size = 4;
    options.reader_thread = thread;
    options.workers = workers;
    leat_pipeline *pipeline = bad_records_pipeline(&plan);
    layer_fixture feed = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(layer_fixture_forward(&feed), LEAT_OK);
    ck_assert_int_eq(layer_fixture_forward(&feed), LEAT_EDATA);
    ck_assert_int_eq(layer_fixture_forward(&feed), LEAT_EIO);
    ck_assert_int_eq(layer_fixture_forward(&feed), LEAT_EIO);
    layer_fixture_close(&feed);
    leat_pipeline_unref(pipeline);
}

START_TEST(a_storage_error_after_a_bad_record_comes_next)
{
    for (int thread = 0; thread < 3; thread++)
        for (int workers = 1; workers < 4; workers++)
            check_lost_and_broken((leat_reader_thread)thread, workers);
}
END_TEST

static void check_restored(leat_pipeline *pipeline)
{
    source_now.broken = 7;
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    leat_token token;
    leat_token_init(&token);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_save(fixture.layer, &token), LEAT_OK);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_EIO);
    source_now.broken = -1;
    ck_assert_int_eq(leat_data_layer_restore(fixture.layer, &token), LEAT_OK);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_float_eq(layer_fixture_label(&fixture, 0), 6);
    leat_token_finish(&token);
    layer_fixture_close(&fixture);
}

START_TEST(restore_goes_on_once_the_storage_is_mended)
{
    in_all_modes(check_restored);
}
END_TEST

static void check_single_pass(leat_pipeline *pipeline)
{
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        const leat_batch *batch = leat_data_layer_batch(fixture.layer);
        ck_assert_int_eq(batch->n, i < 3 ? 3 : 1);
        ck_assert_int_eq(leat_blob_dim(fixture.top[0], 0), batch->n);
        ck_assert_float_eq(layer_fixture_label(&fixture, 0), (float)(3 * i));
    }
    leat_token token;
    leat_token_init(&token);
    ck_assert_int_eq(leat_data_layer_save(fixture.layer, &token), LEAT_OK);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_END);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_END);
    /* Who resumes at the end is given nothing twice. */
    ck_assert_int_eq(leat_data_layer_restore(fixture.layer, &token), LEAT_END);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_END);
    leat_token_finish(&token);
    layer_fixture_close(&fixture);
}

static int give_three(void *user, leat_sample *sample)
{
    static const int64_t value = 1;
    int *given = user;
    if (*given == 3)
        return LEAT_END;
    ++*given;
    return leat_sample_set(sample, 0, LEAT_INT64, 0, NULL, &value);
}

static int refuse_reset(void *user)
{
    (void)user;
    return leat_error(LEAT_EDATA, "no second pass");
}

static int open_counter(void *user, void **out)
{
    *(int *)user = 0;
    *out = user;
    return LEAT_OK;
}

/* Not one of a record, after which more could come. */
START_TEST(a_reset_that_fails_ends_the_layer)
{
    int given;
    const leat_field_spec field = {.name = "value", .dtype = LEAT_INT64};
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = &field,
                                      .nfields = 1,
                                      .open = open_counter,
                                      .next = give_three,
                                      .reset = refuse_reset};
    const leat_top top = {.size = sizeof(top), .name = "value"};
    leat_pipeline *pipeline;
    leat_data_layer *layer;
    options.top = &top;
    options.ntop = 1;
    ck_assert_int_eq(leat_pipeline_callback(&pipeline, &callbacks, &given),
                     LEAT_OK);
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options), 0);
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST),
                     LEAT_OK);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST),
                         LEAT_EFORMAT);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "no second pass"));
    }
    leat_data_layer_destroy(layer);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(a_single_pass_ends_with_what_is_left)
{
    source_now.single_pass = 1;
    in_all_modes(check_single_pass);
}
END_TEST

/* What came before is another start's: its place, and its bad records. */
static void check_resumed_end(leat_pipeline *pipeline)
{
    leat_token end;
    leat_token again;
    leat_token_init(&end);
    leat_token_init(&again);
    leat_stats stats = {.size = sizeof(stats)};
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_save(fixture.layer, &end), LEAT_OK);
    layer_fixture_close(&fixture);
    fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_stats(fixture.layer, &stats), LEAT_OK);
    ck_assert_int_eq(stats.nbad, 1);
    ck_assert_int_eq(leat_data_layer_restore(fixture.layer, &end), LEAT_END);
    ck_assert_int_eq(leat_data_layer_stats(fixture.layer, &stats), LEAT_OK);
    ck_assert_int_eq(stats.nbad, 0);
    ck_assert_int_eq(stats.batches, 0);
    ck_assert_int_eq(leat_data_layer_save(fixture.layer, &again), LEAT_OK);
    ck_assert_str_eq(leat_token_text(&again), leat_token_text(&end));
    leat_token_finish(&again);
    leat_token_finish(&end);
    layer_fixture_close(&fixture);
}

START_TEST(a_layer_resumed_at_the_end_stands_there)
{
    source_now.single_pass = 1;
    source_now.bad = 1;
    options.on_error = LEAT_ON_ERROR_ZERO;
    in_all_modes(check_resumed_end);
}
END_TEST

static void check_exact_pass(leat_pipeline *pipeline)
{
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_END);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_END);
    layer_fixture_close(&fixture);
}

START_TEST(a_single_pass_of_whole_batches_ends_without_an_empty_one)
{
    source_now.single_pass = 1;
    source_now.count = 9;
    in_all_modes(check_exact_pass);
}
END_TEST

/* Of 16 numbers: one that is bad, and one whose storage fails. */
typedef struct failing_map {
    int64_t bad;
    int64_t failing;
} failing_map;

static int fail_some(void *user, leat_sample *sample)
{
    const failing_map *self = user;
    int64_t value;
    memcpy(&value, sample->field[0].data, sizeof(value));
    if (value == self->bad)
        return leat_error(LEAT_EDATA, "it is bad");
    return value == self->failing ? leat_error(LEAT_EIO, "storage is gone")
                                  : LEAT_OK;
}

static void expect_failure(leat_data_layer *layer, int status, const char *says)
{
    ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST),
                     status);
    ck_assert_msg(strstr(leat_last_error(), says) != NULL, "%s",
                  leat_last_error());
}

/* In one chunk, or in two of the batch. */
START_TEST(what_ends_reading_is_told_after_a_bad_record_of_its_batch)
{
    static const failing_map cases[] = {{2, 5}, {2, 300}, {5, 2}, {300, 2}};
    static const leat_top top = {.size = sizeof(top), .name = "value"};
    failing_map map = cases[_i / 3];
    leat_pipeline *numbers, *mapped;
    leat_token token;
    leat_data_layer *layer;
    const leat_map_options defaults = LEAT_MAP_OPTIONS_INIT;
    options.top = &top;
    options.ntop = 1;
    options.batch_size = 400;
    options.workers = 1 + _i % 3;
    options.prefetch = 1 + _i % 2;
    leat_token_init(&token);
    ck_assert_int_eq(leat_pipeline_parse(&numbers, "range:1200"), LEAT_OK);
    ck_assert_int_eq(
        leat_pipeline_map(&mapped, numbers, fail_some, &map, 1, &defaults),
        LEAT_OK);
    ck_assert_int_eq(leat_data_layer_create(&layer, mapped, &options), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_save(layer, &token), LEAT_OK);
    if (map.bad < map.failing)
        expect_failure(layer, LEAT_EDATA, "it is bad");
    expect_failure(layer, LEAT_EIO, "storage is gone");
    expect_failure(layer, LEAT_EIO, "storage is gone");
    /* Storage is back. */
    map.failing = -1;
    ck_assert_int_eq(leat_data_layer_restore(layer, &token), LEAT_OK);
    expect_failure(layer, LEAT_EDATA, "it is bad");
    ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST),
                     LEAT_OK);
    leat_data_layer_destroy(layer);
    leat_token_finish(&token);
    leat_pipeline_unref(mapped);
    leat_pipeline_unref(numbers);
}
END_TEST

static leat_data_layer *open_ragged(leat_pipeline *pipeline)
{
    static const leat_top top = {
        .size = sizeof(top), .name = "data", .form = LEAT_TOP_RAGGED};
    leat_data_layer *layer;
    options.top = &top;
    options.ntop = 1;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options), 0);
    ck_assert_msg(leat_data_layer_setup(layer, NULL, 0) == LEAT_OK, "%s",
                  leat_last_error());
    return layer;
}

static void check_bad_rest(leat_data_layer *layer)
{
    ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST),
                     LEAT_EDATA);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "record"));
    ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST),
                     LEAT_END);
}

static void check_bad_begin(leat_pipeline *pipeline)
{
    leat_data_layer *layer = open_ragged(pipeline);
    check_bad_rest(layer);
    leat_data_layer_destroy(layer);
}

/* Setup reads a whole batch for such tops, and meets the end in it. */
START_TEST(a_short_pass_that_begins_with_a_bad_record_is_set_up)
{
    source_now.single_pass = 1;
    source_now.count = 2;
    source_now.bad = 0;
    in_all_modes(check_bad_begin);
}
END_TEST

static void check_bad_resume(leat_pipeline *pipeline)
{
    leat_token token;
    leat_token_init(&token);
    leat_data_layer *layer = open_ragged(pipeline);
    ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST), 0);
    ck_assert_int_eq(leat_data_layer_save(layer, &token), LEAT_OK);
    check_bad_rest(layer);
    leat_data_layer_destroy(layer);
    layer = open_ragged(pipeline);
    ck_assert_int_eq(leat_data_layer_restore(layer, &token), LEAT_OK);
    check_bad_rest(layer);
    leat_data_layer_destroy(layer);
    leat_token_finish(&token);
}

START_TEST(so_is_the_rest_of_a_pass_resumed)
{
    source_now.single_pass = 1;
    source_now.count = 5;
    source_now.bad = 3;
    in_all_modes(check_bad_resume);
}
END_TEST

static void check_other_shape(leat_pipeline *pipeline)
{
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_EDATA);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "record 4"));
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    layer_fixture_close(&fixture);
}

START_TEST(another_shape_inside_a_batch_is_an_error)
{
    source_now.larger = 4;
    in_all_modes(check_other_shape);
}
END_TEST

static void check_first_shape(leat_pipeline *pipeline)
{
    options.batch_size = 1;
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    for (int i = 0; i < 25; i++) {
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        ck_assert_int_eq(leat_blob_dim(fixture.top[0], 1), i % 10 == 4 ? 2 : 1);
        ck_assert_float_eq(layer_fixture_label(&fixture, 0), (float)(i % 10));
    }
    layer_fixture_close(&fixture);
    options.batch_size = 3;
}

START_TEST(a_batch_takes_the_shape_of_its_first_sample)
{
    source_now.larger = 4;
    in_all_modes(check_first_shape);
}
END_TEST

static void check_bad_first(leat_pipeline *pipeline)
{
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_EDATA);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "record 0"));
    for (int i = 1; i < 3; i++) {
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        ck_assert_float_eq(layer_fixture_label(&fixture, 0), (float)(3 * i));
    }
    layer_fixture_close(&fixture);
}

START_TEST(a_bad_first_record_costs_the_first_batch)
{
    source_now.bad = 0;
    in_all_modes(check_bad_first);
}
END_TEST

/* The token's position is that of the bad record, or another rank's. */
static void check_resumed_at_bad(leat_pipeline *pipeline)
{
    leat_token token;
    leat_token_init(&token);
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_save(fixture.layer, &token), LEAT_OK);
    for (int pass = 0; pass < 2; pass++) {
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_EDATA);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "record 6"));
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        ck_assert_float_eq(layer_fixture_label(&fixture, 0), 9);
        ck_assert_int_eq(leat_data_layer_restore(fixture.layer, &token),
                         LEAT_OK);
    }
    layer_fixture_close(&fixture);
    leat_token_finish(&token);
}

START_TEST(a_layer_resumed_at_a_bad_record_loses_its_batch_alone)
{
    source_now.bad = 6;
    in_all_modes(check_resumed_at_bad);
}
END_TEST

START_TEST(so_does_one_whose_record_does_not_fit_the_options)
{
    for (int way = 0; way < BAD_RECORDS_WAYS; way++) {
        bad_records plan = {.count = 12, .way = (bad_records_way)way};
        const leat_transform_options crop = {.size = sizeof(crop),
                                             .crop_size = 4};
        plan.kind[6] = BAD_RECORDS_SMALL;
        options.transform = &crop;
        leat_pipeline *pipeline = bad_records_pipeline(&plan);
        layer_fixture fixture = layer_fixture_open(pipeline, &options);
        leat_token token;
        leat_token_init(&token);
        for (int i = 0; i < 2; i++)
            ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        ck_assert_int_eq(leat_data_layer_save(fixture.layer, &token), LEAT_OK);
        ck_assert_int_eq(leat_data_layer_restore(fixture.layer, &token),
                         LEAT_OK);
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_EDATA);
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        leat_token_finish(&token);
        layer_fixture_close(&fixture);
        leat_pipeline_unref(pipeline);
    }
}
END_TEST

START_TEST(records_without_a_shape_are_an_error_of_setup)
{
    bad_records plan = {.count = 12};
    for (int i = 0; i < plan.count; i++)
        plan.kind[i] = BAD_RECORDS_UNREADABLE;
    leat_pipeline *pipeline = bad_records_pipeline(&plan);
    leat_data_layer *layer;
    leat_blob *top;
    ck_assert_int_eq(leat_blob_create(&top, NULL), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options), 0);
    ck_assert_int_eq(leat_data_layer_setup(layer, &top, 1), LEAT_EDATA);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "near it"));
    ck_assert_int_eq(leat_data_layer_forward(layer, &top, 1, LEAT_HOST),
                     LEAT_ESTATE);
    leat_data_layer_destroy(layer);
    leat_blob_destroy(top);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Other data; LEAT_EDATA would say that the next forward may succeed. */
START_TEST(they_end_a_layer_that_is_restored)
{
    bad_records plan = {.count = 12};
    leat_pipeline *pipeline = bad_records_pipeline(&plan);
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    leat_token token;
    leat_token_init(&token);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_save(fixture.layer, &token), LEAT_OK);
    for (int i = 0; i < plan.count; i++)
        plan.kind[i] = BAD_RECORDS_UNREADABLE;
    ck_assert_int_eq(leat_data_layer_restore(fixture.layer, &token),
                     LEAT_EFORMAT);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "near it"));
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_EFORMAT);
    leat_token_finish(&token);
    layer_fixture_close(&fixture);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(no_samples_at_all_is_an_error_of_setup)
{
    source_now.count = 0;
    leat_pipeline *pipeline = scripted_source_pipeline(&source_now);
    leat_data_layer *layer;
    leat_blob *top;
    ck_assert_int_eq(leat_blob_create(&top, NULL), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options), 0);
    ck_assert_int_eq(leat_data_layer_setup(layer, &top, 1), LEAT_EFORMAT);
    leat_data_layer_destroy(layer);
    leat_blob_destroy(top);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(a_first_sample_of_too_few_fields_costs_the_first_batch)
{
    const bad_records plan = {.count = 4,
                              .kind = {[0] = BAD_RECORDS_UNLABELED},
                              .way = (bad_records_way)_i};
    leat_pipeline *pipeline = bad_records_pipeline(&plan);
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_EDATA);
    ck_assert_msg(strstr(leat_last_error(), "has 1 fields, 2 are needed"), "%s",
                  leat_last_error());
    layer_fixture_close(&fixture);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(fields_that_are_no_images_are_refused_at_setup)
{
    static const int32_t numbers[4] = {0};
    const leat_memory_field field = {"data", LEAT_INT32, 1, {2}, numbers};
    leat_pipeline *pipeline;
    leat_data_layer *layer;
    leat_blob *top;
    ck_assert_int_eq(leat_pipeline_memory(&pipeline, &field, 1, 2), LEAT_OK);
    ck_assert_int_eq(leat_blob_create(&top, NULL), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options), 0);
    ck_assert_int_eq(leat_data_layer_setup(layer, &top, 1), LEAT_EDATA);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "int32"));
    leat_data_layer_destroy(layer);
    leat_blob_destroy(top);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* No record is looked for that has a shape: there is none. */
START_TEST(fields_that_are_no_images_are_not_read_to_the_end)
{
    static const leat_on_error words[] = {
        LEAT_ON_ERROR_FAIL, LEAT_ON_ERROR_ZERO, LEAT_ON_ERROR_REPLACE};
    leat_pipeline *pipeline;
    leat_data_layer *layer;
    ck_assert_int_eq(leat_pipeline_range(&pipeline, 0, INT64_MAX / 2, 1),
                     LEAT_OK);
    options.on_error = words[_i];
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options), 0);
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_EDATA);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "int64"));
    leat_data_layer_destroy(layer);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(wrong_tops_are_refused)
{
    leat_pipeline *pipeline = layer_fixture_pipeline();
    leat_data_layer *layer;
    leat_blob *top[3];
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(leat_blob_create(&top[i], NULL), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options), 0);
    ck_assert_int_eq(leat_data_layer_setup(layer, top, 0), LEAT_EINVAL);
    ck_assert_int_eq(leat_data_layer_setup(layer, top, 3), LEAT_EINVAL);
    leat_blob *twice[2] = {top[0], top[0]};
    ck_assert_int_eq(leat_data_layer_setup(layer, twice, 2), LEAT_EINVAL);
    ck_assert_int_eq(leat_data_layer_setup(layer, top, 2), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_setup(layer, top, 2), LEAT_ESTATE);
    ck_assert_int_eq(leat_data_layer_forward(layer, top, 1, LEAT_HOST),
                     LEAT_EINVAL);
    ck_assert_int_eq(leat_data_layer_forward(layer, top, 2, LEAT_HOST),
                     LEAT_OK);
    leat_data_layer_destroy(layer);
    for (int i = 0; i < 3; i++)
        leat_blob_destroy(top[i]);
    leat_pipeline_unref(pipeline);
}
END_TEST

static void refuse(const char *word)
{
    leat_pipeline *pipeline = layer_fixture_pipeline();
    leat_data_layer *layer;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), word));
    leat_pipeline_unref(pipeline);
    set_up();
}

START_TEST(wrong_options_are_refused_by_name)
{
    options.batch_size = 0;
    refuse("batch_size");
    options.batch_size = -1;
    refuse("batch_size");
    options.batch_size = INT64_MAX;
    refuse("batch_size");
    options.prefetch = -2;
    refuse("prefetch");
    options.rank = 1;
    refuse("rank");
    options.world_size = -1;
    refuse("world_size");
    options.workers = -1;
    refuse("workers");
    options.top_type = LEAT_INT32;
    refuse("top_type");
    options.label_type = LEAT_FLOAT16;
    refuse("label_type");
    options.device = "gpu:0";
    refuse("gpu:0");
    options.device = "gpu";
    refuse("gpu");
    options.size = 0;
    refuse("the data layer: options have size 0");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layer_errors");
    TCase *tcase = tcase_create("layer_errors");
    tcase_add_checked_fixture(tcase, set_up, NULL);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, a_bad_record_costs_its_batch_alone);
    tcase_add_test(tcase, an_error_names_source_record_and_key);
    tcase_add_loop_test(tcase,
                        the_first_bad_record_of_a_batch_is_the_one_that_is_told,
                        0, BAD_RECORDS_WAYS);
    tcase_add_test(tcase,
                   a_storage_error_comes_after_the_good_batches_and_stays);
    tcase_add_test(tcase, a_storage_error_after_a_bad_record_comes_next);
    tcase_add_test(tcase, restore_goes_on_once_the_storage_is_mended);
    tcase_add_test(tcase, a_reset_that_fails_ends_the_layer);
    tcase_add_test(tcase, a_single_pass_ends_with_what_is_left);
    tcase_add_test(tcase, a_layer_resumed_at_the_end_stands_there);
    tcase_add_test(tcase,
                   a_single_pass_of_whole_batches_ends_without_an_empty_one);
    tcase_add_loop_test(
        tcase, what_ends_reading_is_told_after_a_bad_record_of_its_batch, 0,
        12);
    tcase_add_test(tcase, a_short_pass_that_begins_with_a_bad_record_is_set_up);
    tcase_add_test(tcase, so_is_the_rest_of_a_pass_resumed);
    tcase_add_test(tcase, another_shape_inside_a_batch_is_an_error);
    tcase_add_test(tcase, a_batch_takes_the_shape_of_its_first_sample);
    tcase_add_test(tcase, a_bad_first_record_costs_the_first_batch);
    tcase_add_test(tcase,
                   a_layer_resumed_at_a_bad_record_loses_its_batch_alone);
    tcase_add_test(tcase, so_does_one_whose_record_does_not_fit_the_options);
    tcase_add_test(tcase, records_without_a_shape_are_an_error_of_setup);
    tcase_add_test(tcase, they_end_a_layer_that_is_restored);
    tcase_add_test(tcase, no_samples_at_all_is_an_error_of_setup);
    tcase_add_loop_test(tcase,
                        a_first_sample_of_too_few_fields_costs_the_first_batch,
                        0, BAD_RECORDS_WAYS);
    tcase_add_test(tcase, fields_that_are_no_images_are_refused_at_setup);
    tcase_add_loop_test(
        tcase, fields_that_are_no_images_are_not_read_to_the_end, 0, 3);
    tcase_add_test(tcase, wrong_tops_are_refused);
    tcase_add_test(tcase, wrong_options_are_refused_by_name);
    return suite_run(suite);
}
