/* A reader of several samples a call that empties each before it reads it: what
 * is dropped of its samples, for other ranks or by a resume, spoils none. */
#include "support/suite.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <stdlib.h>

enum { RECORDS = 9, BATCH = 3 };

typedef struct sequence_reader {
    leat_reader reader;
    int64_t at;
} sequence_reader;

static int64_t bad;
static leat_pipeline *pipeline;

static int sequence_fields(leat_reader *reader, const leat_field_spec **out,
                           int *n)
{
    static const leat_field_spec field = {.name = "x", .dtype = LEAT_FLOAT32};
    (void)reader;
    *out = &field;
    *n = 1;
    return LEAT_OK;
}

static int fill(int64_t record, leat_sample *sample)
{
    static const float values[RECORDS] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    leat_sample_clear(sample);
    sample->from.source = "sequence";
    sample->from.record = record;
    if (record == bad)
        return leat_error(LEAT_EDATA, "record %d is bad", (int)record);
    return leat_sample_set(sample, 0, LEAT_FLOAT32, 0, NULL, &values[record]);
}

static int sequence_next(leat_reader *reader, leat_sample *const out[], int n,
                         int *got)
{
    sequence_reader *self = (sequence_reader *)reader;
    for (; *got < n; ++*got) {
        if (self->at == RECORDS)
            return LEAT_END;
        int status = fill(self->at++, out[*got]);
        if (status)
            return status;
    }
    return LEAT_OK;
}

static int sequence_seek(leat_reader *reader, leat_position to,
                         leat_token *mark)
{
    (void)mark;
    if (to.index > 0)
        return leat_error(LEAT_EUNSUPPORTED, "it begins at the beginning");
    ((sequence_reader *)reader)->at = 0;
    return LEAT_OK;
}

static void sequence_cancel(leat_reader *reader)
{
    (void)reader;
}

static void sequence_close(leat_reader *reader)
{
    free(reader);
}

static int sequence_open(const leat_open *open, leat_reader **out)
{
    static const leat_reader_ops ops = {.size = sizeof(ops),
                                        .name = "sequence",
                                        .fields = sequence_fields,
                                        .next = sequence_next,
                                        .seek = sequence_seek,
                                        .cancel = sequence_cancel,
                                        .close = sequence_close};
    sequence_reader *self = calloc(1, sizeof(*self));
    (void)open;
    self->reader.ops = &ops;
    *out = &self->reader;
    return LEAT_OK;
}

static void set_up(void)
{
    static const leat_reader_type type = {
        .size = sizeof(type), .name = "sequence", .open = sequence_open};
    ck_assert_int_eq(
        leat_pipeline_create(&pipeline, &type, NULL, NULL, NULL, NULL, 0),
        LEAT_OK);
}

static void tear_down(void)
{
    leat_pipeline_unref(pipeline);
}

static leat_data_layer *open_layer(int rank, int ranks, int on_error)
{
    const leat_data_layer_options options = {.size = sizeof(options),
                                             .batch_size = BATCH,
                                             .rank = rank,
                                             .world_size = ranks,
                                             .on_error =
                                                 (leat_on_error)on_error};
    leat_data_layer *layer;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    int status = leat_data_layer_setup(layer, NULL, 0);
    ck_assert_msg(!status, "%s", leat_last_error());
    return layer;
}

/* Each batch is an epoch of the rank's: its three records, or two and zeros. */
static void check_forward(leat_data_layer *layer, int rank, int on_error)
{
    bool is_own = bad % BATCH == rank;
    int status = leat_data_layer_forward(layer, NULL, 0, LEAT_HOST);
    if (is_own && on_error == LEAT_ON_ERROR_FAIL) {
        ck_assert_int_eq(status, LEAT_EDATA);
        return;
    }
    ck_assert_msg(!status, "%s", leat_last_error());
    const float *values = leat_blob_cpu_data(leat_data_layer_top(layer, 0));
    for (int i = 0; i < BATCH; i++) {
        int64_t record = rank + (int64_t)BATCH * i;
        ck_assert_int_eq(leat_data_layer_batch(layer)->from[i].record, record);
        ck_assert_float_eq(values[i], record == bad ? 0 : (float)record);
    }
}

/* _i: the bad record, and on_error FAIL or ZERO. */
START_TEST(other_ranks_bad_records_are_passed_by)
{
    int on_error = _i / RECORDS ? LEAT_ON_ERROR_ZERO : LEAT_ON_ERROR_FAIL;
    bad = _i % RECORDS;
    for (int rank = 0; rank < BATCH; rank++) {
        /* The first record is had at setup. */
        if (bad == rank)
            continue;
        leat_data_layer *layer = open_layer(rank, BATCH, on_error);
        for (int i = 0; i < 4; i++)
            check_forward(layer, rank, on_error);
        leat_data_layer_destroy(layer);
    }
}
END_TEST

START_TEST(a_resume_drops_bad_records_like_others)
{
    leat_token token;
    leat_token_init(&token);
    bad = 1 + _i;
    leat_data_layer *layer = open_layer(0, 1, LEAT_ON_ERROR_ZERO);
    for (int i = 0; i < 5; i++) {
        int64_t first = (int64_t)BATCH * i % RECORDS;
        ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST),
                         LEAT_OK);
        ck_assert_int_eq(leat_data_layer_batch(layer)->from[0].record, first);
        ck_assert_int_eq(leat_data_layer_save(layer, &token), LEAT_OK);
        int status = leat_data_layer_restore(layer, &token);
        ck_assert_msg(!status, "%s", leat_last_error());
    }
    leat_data_layer_destroy(layer);
    leat_token_finish(&token);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dropped_samples");
    TCase *tcase = tcase_create("dropped_samples");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, other_ranks_bad_records_are_passed_by, 0,
                        2 * RECORDS);
    tcase_add_loop_test(tcase, a_resume_drops_bad_records_like_others, 0,
                        RECORDS - 1);
    return suite_run(suite);
}
