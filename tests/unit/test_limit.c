/* The limit's way round the records, told by a reader that counts its calls. */
#include "support/empty_reader.h"
#include "support/suite.h"
#include "tools/bench/limit.h"

#include <leat/ext/reader.h>
#include <leat/pipeline.h>

#include <check.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDS = 10, THREADS = 2 };

/* Of all readers together. */
static atomic_llong seeks, resets, taken, runs;
static int defers;

typedef struct round_reader {
    leat_reader reader;
    int64_t next;
} round_reader;

static void give(leat_sample *sample, int64_t record)
{
    static const unsigned char pixels[RECORDS][4];
    sample->nfields = 1;
    sample->field[0] = (leat_field){.dtype = LEAT_UINT8,
                                    .ndim = 3,
                                    .shape = {1, 2, 2},
                                    .data = pixels[record],
                                    .bytes = 4};
    sample->stable = 1;
    sample->from.source = "round";
    sample->from.record = record;
    sample->from.key = NULL;
}

static int round_fields(leat_reader *reader, const leat_field_spec **out,
                        int *n)
{
    static const leat_field_spec data = {
        .name = "data", .dtype = LEAT_UINT8, .ndim = 3, .shape = {1, 2, 2}};
    (void)reader;
    *out = &data;
    *n = 1;
    return LEAT_OK;
}

static int round_next(leat_reader *reader, leat_sample *const out[], int n,
                      int *got)
{
    round_reader *self = (round_reader *)reader;
    for (; *got < n && self->next < RECORDS; ++*got)
        give(out[*got], self->next++);
    atomic_fetch_add(&taken, *got);
    return *got ? LEAT_OK : LEAT_END;
}

static void round_close(leat_reader *reader)
{
    free(reader);
}

static int round_count(leat_reader *reader, int64_t *out)
{
    (void)reader;
    *out = RECORDS;
    return LEAT_OK;
}

static int round_read_at(leat_reader *reader, const leat_position at[],
                         leat_sample *const out[], int n, int *got)
{
    (void)reader;
    for (; *got < n; ++*got)
        give(out[*got], at[*got].index);
    return LEAT_OK;
}

static int round_seek(leat_reader *reader, leat_position position,
                      leat_token *mark)
{
    (void)mark;
    ((round_reader *)reader)->next = position.index;
    atomic_fetch_add(position.index == 0 ? &resets : &seeks, 1);
    return LEAT_OK;
}

static int round_defer(leat_reader *reader, leat_sample *const out[], int n,
                       int *got)
{
    round_reader *self = (round_reader *)reader;
    for (; *got < n && self->next < RECORDS; ++*got) {
        out[*got]->locator = (leat_locator){.record = self->next++};
        out[*got]->deferred = 1;
    }
    atomic_fetch_add(&taken, *got);
    return *got ? LEAT_OK : LEAT_END;
}

static int round_materialize(leat_reader *reader, leat_sample *const out[],
                             int n, int *got)
{
    (void)reader;
    for (; *got < n; ++*got)
        give(out[*got], out[*got]->locator.record);
    atomic_fetch_add(&runs, 1);
    return LEAT_OK;
}

#define ROUND_OPS                                                              \
    .size = sizeof(leat_reader_ops), .name = "round", .fields = round_fields,  \
    .seek = round_seek, .cancel = empty_reader_cancel, .close = round_close,   \
    .count = round_count, .read_at = round_read_at

static int round_open(const leat_open *open, leat_reader **out)
{
    static const leat_reader_ops next_ops = {ROUND_OPS, .next = round_next};
    static const leat_reader_ops defer_ops = {ROUND_OPS, .next = round_defer,
                                              .materialize = round_materialize};
    (void)open;
    round_reader *self = calloc(1, sizeof(*self));
    if (!self)
        return leat_error(LEAT_ENOMEM, "no memory for a reader");
    self->reader.ops = defers ? &defer_ops : &next_ops;
    *out = &self->reader;
    return LEAT_OK;
}

/* Runs until each thread has been round several times. */
static struct limit_result run_round(void)
{
    static const leat_reader_type type = {
        .size = sizeof(leat_reader_type), .name = "round", .open = round_open};
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    options.batch_size = 4;
    struct limit_result result = {0};
    leat_pipeline *pipeline;
    leat_data_layer *layer;
    ck_assert_int_eq(
        leat_pipeline_create(&pipeline, &type, NULL, NULL, NULL, NULL, 0), 0);
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options), 0);
    struct limit *limit = limit_open(layer, false, THREADS);
    ck_assert_int_le(seeks, THREADS);
    seeks = resets = taken = runs = 0;
    while (result.images < 100 * RECORDS)
        limit_run(limit, 0.001, &result);
    limit_close(limit);
    leat_data_layer_destroy(layer);
    leat_pipeline_unref(pipeline);
    return result;
}

/* As a layer does; a seek may cost more than all the records. */
static void assert_once_a_lap(const struct limit_result *result)
{
    ck_assert_int_eq(seeks, 0);
    ck_assert_int_eq(taken, result->images);
    ck_assert_int_ge(taken, RECORDS * (resets - THREADS));
    ck_assert_int_le(taken, RECORDS * (resets + THREADS));
}

START_TEST(a_lap_costs_one_reset)
{
    defers = 0;
    struct limit_result result = run_round();
    assert_once_a_lap(&result);
}
END_TEST

START_TEST(deferred_records_are_completed_several_at_a_time)
{
    defers = 1;
    struct limit_result result = run_round();
    assert_once_a_lap(&result);
    ck_assert_int_gt(result.images, runs);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("limit");
    TCase *tcase = tcase_create("way");
    tcase_add_test(tcase, a_lap_costs_one_reset);
    tcase_add_test(tcase, deferred_records_are_completed_several_at_a_time);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
