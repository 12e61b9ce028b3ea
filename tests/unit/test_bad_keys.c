/* The key of a bad record names that record wherever it is told, however short
 * a time the reader's own copy lives. */
#include "support/layer_fixture.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_SIZE 8

static const leat_field_spec field = {.name = "x", .dtype = LEAT_FLOAT32};
static const float value = 1;

static bool is_bad(int64_t record)
{
    return record % 5 >= 3;
}

static void write_key(char key[KEY_SIZE + 1], int64_t record)
{
    snprintf(key, KEY_SIZE + 1, "k%07d", (int)record);
}

static void check_key(const leat_provenance *from)
{
    char expected[KEY_SIZE + 1];
    write_key(expected, from->record);
    ck_assert_ptr_nonnull(from->key);
    ck_assert_uint_eq(from->key_size, KEY_SIZE);
    ck_assert_mem_eq(from->key, expected, KEY_SIZE);
}

/* A callback whose key lives until its next call. */
typedef struct feed {
    int64_t record;
    char *key; /* malloc: ASan sees who reads it afterwards */
} feed;

static int feed_next(void *pass, leat_sample *sample)
{
    feed *self = pass;
    int64_t record = self->record++;
    if (self->key)
        memset(self->key, '?', KEY_SIZE);
    free(self->key);
    self->key = malloc(KEY_SIZE + 1);
    write_key(self->key, record);
    sample->from.record = record;
    sample->from.key = self->key;
    sample->from.key_size = KEY_SIZE;
    if (is_bad(record))
        return leat_error(LEAT_EDATA, "record %d is bad", (int)record);
    return leat_sample_set(sample, 0, LEAT_FLOAT32, 0, NULL, &value);
}

static leat_pipeline *feed_pipeline(feed *self)
{
    static const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                             .fields = &field,
                                             .nfields = 1,
                                             .next = feed_next};
    leat_pipeline *pipeline;
    ck_assert_int_eq(leat_pipeline_callback(&pipeline, &callbacks, self),
                     LEAT_OK);
    return pipeline;
}

/* A reader whose samples are stable, and of bad records only the key, which is
 * in memory of the sample. `at_most` samples a call. */
typedef struct own_reader {
    leat_reader reader;
    int64_t record;
    int at_most;
} own_reader;

static int own_fields(leat_reader *reader, const leat_field_spec **out, int *n)
{
    (void)reader;
    *out = &field;
    *n = 1;
    return LEAT_OK;
}

static int own_next(leat_reader *reader, leat_sample *const out[], int n,
                    int *got)
{
    static char keys[1000][KEY_SIZE + 1];
    own_reader *own = (own_reader *)reader;
    for (; *got < n && *got < own->at_most; ++*got) {
        leat_sample *sample = out[*got];
        int64_t record = own->record++;
        if (record >= 1000)
            return LEAT_END;
        write_key(keys[record], record);
        sample->from.source = "own";
        sample->from.record = record;
        sample->from.key_size = KEY_SIZE;
        if (is_bad(record)) {
            char *key = leat_sample_take(sample, KEY_SIZE + 1);
            write_key(key, record);
            sample->from.key = key;
            return leat_error(LEAT_EDATA, "record %d is bad", (int)record);
        }
        sample->from.key = keys[record];
        int status = leat_sample_set(sample, sample->nfields, LEAT_FLOAT32, 0,
                                     NULL, &value);
        if (status)
            return status;
    }
    return LEAT_OK;
}

static int own_seek(leat_reader *reader, leat_position to, leat_token *mark)
{
    (void)mark;
    ((own_reader *)reader)->record = to.index;
    return LEAT_OK;
}

static void own_cancel(leat_reader *reader)
{
    (void)reader;
}

static void own_close(leat_reader *reader)
{
    free(reader);
}

static int own_open(const leat_open *open, leat_reader **out)
{
    static const leat_reader_ops ops = {.size = sizeof(ops),
                                        .name = "own",
                                        .fields = own_fields,
                                        .next = own_next,
                                        .seek = own_seek,
                                        .cancel = own_cancel,
                                        .close = own_close};
    own_reader *own = calloc(1, sizeof(*own));
    own->reader.ops = &ops;
    own->at_most = *(const int *)leat_args_object(open->args);
    *out = &own->reader;
    return LEAT_OK;
}

static leat_pipeline *own_pipeline(int *at_most)
{
    static const leat_reader_type type = {
        .size = sizeof(type), .name = "own", .open = own_open};
    leat_pipeline *pipeline;
    ck_assert_int_eq(
        leat_pipeline_create(&pipeline, &type, NULL, at_most, NULL, NULL, 0),
        LEAT_OK);
    return pipeline;
}

/* Some batches of 7: all keys in them, and of all bad records. */
static void check_layer(const leat_pipeline *pipeline, leat_on_error on_error)
{
    const leat_data_layer_options options = {.size = sizeof(options),
                                             .batch_size = 7,
                                             .on_error = on_error,
                                             .workers = 2};
    leat_data_layer *layer;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_OK);
    for (int i = 0; i < 60; i++) {
        int status = leat_data_layer_forward(layer, NULL, 0, LEAT_HOST);
        const leat_batch *batch = leat_data_layer_batch(layer);
        ck_assert_int_eq(status,
                         on_error == LEAT_ON_ERROR_FAIL ? LEAT_EDATA : LEAT_OK);
        for (int k = 0; !status && k < batch->n; k++)
            check_key(&batch->from[k]);
    }
    leat_stats stats = {.size = sizeof(stats)};
    ck_assert_int_eq(leat_data_layer_stats(layer, &stats), LEAT_OK);
    ck_assert_int_gt(stats.nbad, 0);
    for (int i = 0; i < stats.nbad; i++)
        check_key(&stats.bad[i].from);
    leat_data_layer_destroy(layer);
}

static const leat_on_error policies[] = {LEAT_ON_ERROR_FAIL, LEAT_ON_ERROR_ZERO,
                                         LEAT_ON_ERROR_REPLACE};

START_TEST(a_callbacks_key_need_not_outlive_its_call)
{
    feed self = {0};
    leat_pipeline *pipeline = feed_pipeline(&self);
    check_layer(pipeline, policies[_i]);
    leat_pipeline_unref(pipeline);
    free(self.key);
}
END_TEST

/* Below a reader that joins two, the callback's fields follow others. */
START_TEST(nor_where_another_readers_fields_come_first)
{
    feed self = {0};
    leat_reader *reader;
    leat_sample bad[2];
    leat_pipeline *pipeline = feed_pipeline(&self);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    for (int i = 0; i < 2; i++)
        leat_sample_init(&bad[i]);
    for (int n = 0; n < 2;) {
        int got;
        leat_sample *out = &bad[n];
        leat_sample_clear(out);
        leat_sample_set(out, 0, LEAT_FLOAT32, 0, NULL, &value);
        n += leat_reader_pull(reader, &out, 1, &got) == LEAT_EDATA;
    }
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(bad[i].from.record, 3 + i);
        check_key(&bad[i].from);
        leat_sample_finish(&bad[i]);
    }
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
    free(self.key);
}
END_TEST

START_TEST(a_key_in_the_samples_own_memory_lasts_as_long_as_the_batch)
{
    int at_most = _i < 3 ? 1 : 4;
    leat_pipeline *pipeline = own_pipeline(&at_most);
    check_layer(pipeline, policies[_i % 3]);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* A bad record that comes after good ones is told by the call after. */
START_TEST(a_key_that_is_told_later_is_the_samples_own)
{
    int at_most = 4;
    leat_reader *reader;
    leat_pipeline *pipeline = own_pipeline(&at_most);
    leat_sample samples[2];
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    int told = 0;
    for (int i = 0; i < 2; i++)
        leat_sample_init(&samples[i]);
    while (told < 2) {
        leat_sample scratch[4], *out[4] = {&samples[told]};
        int got;
        for (int i = 1; i < 4; i++) {
            leat_sample_init(&scratch[i]);
            out[i] = &scratch[i];
        }
        int status = leat_reader_next_batch(reader, out, 4, &got);
        /* Of each two bad records the first is told so. */
        if (status == LEAT_EDATA && samples[told].from.record % 5 == 3)
            told++;
        for (int i = 1; i < 4; i++)
            leat_sample_finish(&scratch[i]);
    }
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(samples[i].from.record, 3 + 5 * i);
        check_key(&samples[i].from);
        leat_sample_finish(&samples[i]);
    }
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bad_keys");
    TCase *tcase = tcase_create("bad_keys");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, a_callbacks_key_need_not_outlive_its_call, 0, 3);
    tcase_add_test(tcase, nor_where_another_readers_fields_come_first);
    tcase_add_loop_test(
        tcase, a_key_in_the_samples_own_memory_lasts_as_long_as_the_batch, 0,
        6);
    tcase_add_test(tcase, a_key_that_is_told_later_is_the_samples_own);
    return suite_run(suite);
}
