/* Setups that fail, and what the next one finds. */
#include "support/bad_records.h"
#include "support/scripted_source.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/decorators.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A data set of which a setup finds another version each time. */
static struct {
    int64_t samples;
    int broken;   /* the first sample is not read */
    int identity; /* which save writes */
} data;

typedef struct version_reader {
    leat_reader reader;
    int64_t at;
} version_reader;

static leat_pipeline *pipeline;

static int version_fields(leat_reader *reader, const leat_field_spec **out,
                          int *n)
{
    static const leat_field_spec field = {.name = "x", .dtype = LEAT_FLOAT32};
    (void)reader;
    *out = &field;
    *n = 1;
    return LEAT_OK;
}

static int version_next(leat_reader *reader, leat_sample *const out[], int n,
                        int *got)
{
    static const float value;
    version_reader *self = (version_reader *)reader;
    (void)n;
    if (self->at == data.samples)
        return LEAT_END;
    if (self->at++ == 0 && data.broken)
        return leat_error(LEAT_EIO, "the first is not read");
    *got = 1;
    return leat_sample_set(out[0], 0, LEAT_FLOAT32, 0, NULL, &value);
}

static int version_seek(leat_reader *reader, leat_position to, leat_token *mark)
{
    (void)mark;
    if (to.epoch > 0)
        return leat_error(LEAT_EUNSUPPORTED, "there is one pass");
    ((version_reader *)reader)->at = to.index;
    return LEAT_OK;
}

static int version_save(leat_reader *reader, leat_token *token)
{
    (void)reader;
    return leat_token_put(token, &data.identity, sizeof(data.identity));
}

static int version_restore(leat_reader *reader, leat_token *token)
{
    int identity;
    int status = leat_token_get(token, &identity, sizeof(identity));
    ((version_reader *)reader)->at = 0;
    if (!status && identity != data.identity)
        status = leat_error(LEAT_EINVAL, "another data set");
    return status;
}

static void version_cancel(leat_reader *reader)
{
    (void)reader;
}

static void version_close(leat_reader *reader)
{
    free(reader);
}

static int version_open(const leat_open *open, leat_reader **out)
{
    static const leat_reader_ops ops = {.size = sizeof(ops),
                                        .name = "version",
                                        .fields = version_fields,
                                        .next = version_next,
                                        .seek = version_seek,
                                        .save = version_save,
                                        .restore = version_restore,
                                        .cancel = version_cancel,
                                        .close = version_close};
    version_reader *self = calloc(1, sizeof(*self));
    (void)open;
    self->reader.ops = &ops;
    *out = &self->reader;
    return LEAT_OK;
}

static void set_up(void)
{
    static const leat_reader_type type = {
        .size = sizeof(type), .name = "version", .open = version_open};
    memset(&data, 0, sizeof(data));
    data.samples = 20;
    ck_assert_int_eq(
        leat_pipeline_create(&pipeline, &type, NULL, NULL, NULL, NULL, 0),
        LEAT_OK);
}

static void tear_down(void)
{
    leat_pipeline_unref(pipeline);
}

static leat_data_layer *create(int rank, int ranks)
{
    const leat_data_layer_options options = {.size = sizeof(options),
                                             .name = "train",
                                             .batch_size = 2,
                                             .rank = rank,
                                             .world_size = ranks,
                                             .has_random_seed = 1,
                                             .random_seed = 1};
    leat_data_layer *layer;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    return layer;
}

static int forward(leat_data_layer *layer)
{
    return leat_data_layer_forward(layer, NULL, 0, LEAT_HOST);
}

START_TEST(a_token_is_of_the_data_that_the_last_setup_found)
{
    leat_token token, other;
    leat_token_init(&token);
    leat_token_init(&other);
    leat_data_layer *layer = create(0, 1);
    data.broken = 1;
    data.identity = 1;
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_EIO);
    data.broken = 0;
    data.identity = 2;
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_OK);
    ck_assert_int_eq(forward(layer), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_save(layer, &token), LEAT_OK);
    leat_data_layer *fresh = create(0, 1);
    ck_assert_int_eq(leat_data_layer_setup(fresh, NULL, 0), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_restore(fresh, &token), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_restore(layer, &token), LEAT_OK);
    ck_assert_int_eq(forward(layer), LEAT_OK);

    /* A restore keeps it, though it fails: the token is of that data. */
    data.identity = 3;
    ck_assert_int_eq(leat_data_layer_restore(layer, &token), LEAT_EINVAL);
    data.identity = 2;
    ck_assert_int_eq(leat_data_layer_restore(layer, &token), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_save(layer, &other), LEAT_OK);
    ck_assert_str_eq(leat_token_text(&other), leat_token_text(&token));
    leat_data_layer_destroy(fresh);
    leat_data_layer_destroy(layer);
    leat_token_finish(&token);
    leat_token_finish(&other);
}
END_TEST

START_TEST(a_pass_of_fewer_samples_than_ranks_is_an_error)
{
    leat_data_layer *layer = create(3, 4);
    data.samples = 2;
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_EINVAL);
    ck_assert_str_eq(leat_last_error(),
                     "train: version has a single pass of 2 samples, and none "
                     "for rank 3 of 4; expected one for each rank at least");
    ck_assert_int_eq(forward(layer), LEAT_ESTATE);
    data.samples = 4;
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_OK);
    ck_assert_int_eq(forward(layer), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_batch(layer)->valid, 1);
    ck_assert_int_eq(forward(layer), LEAT_END);
    leat_data_layer_destroy(layer);
}
END_TEST

/* An endless epoch, whose first record is bad: the shape is the next one's. */
START_TEST(an_endless_epoch_may_begin_with_a_bad_record)
{
    static bad_records records = {.count = 5};
    const leat_data_layer_options options = {.size = sizeof(options),
                                             .batch_size = 1,
                                             .on_error = LEAT_ON_ERROR_ZERO};
    leat_data_layer *layer;
    leat_pipeline *endless;
    records.kind[0] = BAD_RECORDS_UNREADABLE;
    leat_pipeline *upstream = bad_records_pipeline(&records);
    ck_assert_int_eq(leat_pipeline_repeat(&endless, upstream, -1), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_create(&layer, endless, &options),
                     LEAT_OK);
    ck_assert_msg(leat_data_layer_setup(layer, NULL, 0) == LEAT_OK, "%s",
                  leat_last_error());
    leat_data_layer_destroy(layer);
    leat_pipeline_unref(endless);
    leat_pipeline_unref(upstream);
}
END_TEST

/* Of a stream, whose epochs end where no count says: batches without a sample
   are read, too. With DROP the four samples have to fill a batch. */
START_TEST(a_rank_of_bad_records_alone_is_told_so)
{
    leat_epoch_end epoch_end = (leat_epoch_end)(_i % 4);
    bool drops = epoch_end == LEAT_EPOCH_END_DROP;
    leat_data_layer_options options = {.size = sizeof(options),
                                       .batch_size = drops ? 1 : 1 + _i / 4,
                                       .rank = 2,
                                       .world_size = 4,
                                       .epoch_end = epoch_end,
                                       .on_error = LEAT_ON_ERROR_ZERO};
    const leat_top top = {.size = sizeof(top), .name = "value"};
    leat_data_layer *layer;
    leat_pipeline *lines;
    FILE *file = fopen("test_layer_setup.txt", "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_gt(fprintf(file, "1\n2\nthree\n4\n"), 0);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(
        leat_pipeline_parse(&lines, "text:test_layer_setup.txt | "
                                    "columns:value=int64 | where:value=0.."),
        LEAT_OK);
    options.top = &top;
    options.ntop = 1;
    ck_assert_int_eq(leat_data_layer_create(&layer, lines, &options), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_EDATA);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "record 2"));
    ck_assert_ptr_nonnull(
        strstr(leat_last_error(), "no record near it has a shape"));
    leat_data_layer_destroy(layer);
    leat_pipeline_unref(lines);
    unlink("test_layer_setup.txt");
}
END_TEST

/* Of a stream whose only record is bad, each of which may take long. */
START_TEST(a_setup_looks_for_a_shape_in_two_epochs_at_most)
{
    scripted_source source = SCRIPTED_SOURCE_INIT;
    leat_data_layer_options options = {.size = sizeof(options),
                                       .batch_size = 1};
    leat_data_layer *layer;
    source.count = 1;
    source.bad = 0;
    leat_pipeline *stream = scripted_source_pipeline(&source);
    ck_assert_int_eq(leat_data_layer_create(&layer, stream, &options), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_EDATA);
    ck_assert_int_ge(source.resets, 1);
    ck_assert_int_le(source.resets, 3);
    leat_data_layer_destroy(layer);
    leat_pipeline_unref(stream);
}
END_TEST

static const int64_t lengths[] = {4, -1};
static const leat_field_spec row_fields[] = {
    {.name = "value", .dtype = LEAT_FLOAT32, .ndim = 1, .shape = {4}},
    {.name = "row", .dtype = LEAT_INT64, .ndim = 1, .shape = {-1}}};

static int open_rows(void *context, void **pass)
{
    (void)context;
    *pass = calloc(1, sizeof(int));
    return *pass ? LEAT_OK : LEAT_ENOMEM;
}

/* 600 records, of which those from 100 on to 500 are bad. */
static int next_row(void *pass, leat_sample *sample)
{
    static const float value[4];
    static const int64_t row[3];
    int at = *(int *)pass;
    if (at == 600)
        return LEAT_END;
    ++*(int *)pass;
    if (at >= 100 && at < 500)
        return leat_error(LEAT_EDATA, "it cannot be read");
    const int64_t rows = at % 4;
    int status = leat_sample_set(sample, 0, LEAT_FLOAT32, 1, lengths, value);
    return status ? status
                  : leat_sample_set(sample, 1, LEAT_INT64, 1, &rows, row);
}

static int reset_rows(void *pass)
{
    *(int *)pass = 0;
    return LEAT_OK;
}

/* Of a stream, which is not read back; with FAIL a record has to have it. */
START_TEST(a_restore_takes_the_shape_that_the_fields_promise)
{
    static const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                             .fields = row_fields,
                                             .nfields = 2,
                                             .open = open_rows,
                                             .next = next_row,
                                             .reset = reset_rows,
                                             .close = free};
    static const leat_top top[] = {
        {.size = sizeof(top[0]), .name = "value"},
        {.size = sizeof(top[0]), .name = "row", .form = LEAT_TOP_RAGGED}};
    leat_data_layer_options options = {.size = sizeof(options),
                                       .batch_size = 10,
                                       .top = top,
                                       .ntop = 2,
                                       .on_error = (leat_on_error)_i};
    leat_pipeline *rows;
    leat_data_layer *layer;
    leat_token token;
    leat_token_init(&token);
    ck_assert_int_eq(leat_pipeline_callback(&rows, &callbacks, NULL), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_create(&layer, rows, &options), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_OK);
    for (int i = 0; i < 12; i++)
        (void)forward(layer);
    ck_assert_int_eq(leat_data_layer_save(layer, &token), LEAT_OK);
    if (_i == LEAT_ON_ERROR_FAIL) {
        ck_assert_int_eq(leat_data_layer_restore(layer, &token), LEAT_EFORMAT);
    } else {
        ck_assert_msg(leat_data_layer_restore(layer, &token) == LEAT_OK, "%s",
                      leat_last_error());
        for (int i = 12; i < 60; i++) {
            ck_assert_int_eq(forward(layer), LEAT_OK);
            const leat_batch *batch = leat_data_layer_batch(layer);
            ck_assert_int_eq(batch->bad, i < 50 ? 10 : 0);
        }
    }
    leat_data_layer_destroy(layer);
    leat_pipeline_unref(rows);
    leat_token_finish(&token);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layer_setup");
    TCase *tcase = tcase_create("layer_setup");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_token_is_of_the_data_that_the_last_setup_found);
    tcase_add_test(tcase, a_pass_of_fewer_samples_than_ranks_is_an_error);
    tcase_add_test(tcase, an_endless_epoch_may_begin_with_a_bad_record);
    tcase_add_loop_test(tcase, a_rank_of_bad_records_alone_is_told_so, 0, 16);
    tcase_add_test(tcase, a_setup_looks_for_a_shape_in_two_epochs_at_most);
    tcase_add_loop_test(tcase,
                        a_restore_takes_the_shape_that_the_fields_promise, 0,
                        LEAT_ON_ERROR_REPLACE + 1);
    return suite_run(suite);
}
