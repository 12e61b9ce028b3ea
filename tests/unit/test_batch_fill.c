/*
 * What is fetched ahead while samples are put into their places. The fill
 * is compiled here with functions of the test's own for the processor's
 * prefetch and for the transform, which note what comes when.
 */
#include "data/transformer.h"
#include "layer/batch_fill.h"

#include <stdatomic.h>

static void note_fetch(const void *at);
static void note_put(const leat_field *field);

#define __builtin_prefetch(at) note_fetch(at)
#define leat_transformer_apply(transformer, field, ...)                        \
    (note_put(field), leat_transformer_apply(transformer, field, __VA_ARGS__))
#include "layer/batch_fill.c"

#include "support/layer_fixture.h"
#include "support/suite.h"

#include <check.h>

enum { SAMPLES_MAX = 9, BYTES_MAX = 3000, LINES_MAX = 16, BATCHES = 6 };

static unsigned char pixels[SAMPLES_MAX * BYTES_MAX];
static int32_t labels[SAMPLES_MAX];
static int samples, bytes;

/* The worker's; the first batch has a run of its own for its first sample. */
static int batches; /* of which all is put */
static int fetched; /* the last sample of which something was */
static int lines;   /* of it */
static atomic_int mistakes, lines_in_all;

static int number_of(const void *at)
{
    return (int)(((const unsigned char *)at - pixels) / bytes);
}

static int min(int a, int b)
{
    return a < b ? a : b;
}

static int lines_of_sample(void)
{
    return min((bytes + LEAT__CACHE_LINE - 1) / LEAT__CACHE_LINE, LINES_MAX);
}

/* Line by line from a sample's beginning on, and sample by sample. */
static void note_fetch(const void *at)
{
    if (batches == 0)
        return;
    if (lines == lines_of_sample() || fetched == 0) {
        fetched++;
        lines = 0;
    }
    const void *wanted = pixels + fetched * bytes + lines * LEAT__CACHE_LINE;
    atomic_fetch_add(&mistakes, at != wanted);
    atomic_fetch_add(&lines_in_all, 1);
    lines++;
}

/* Two samples ahead, all of what is fetched of them, and no more. */
static void note_put(const leat_field *field)
{
    int k = number_of(field->data);
    int wanted = min(k + 2, samples - 1);
    if (batches > 0)
        atomic_fetch_add(&mistakes,
                         fetched != wanted ||
                             (fetched > 0 && lines != lines_of_sample()));
    if (k < samples - 1)
        return;
    batches++;
    fetched = 0;
    lines = 0;
}

static void check(int n, int size)
{
    samples = n;
    bytes = size;
    batches = fetched = lines = 0;
    atomic_store(&mistakes, 0);
    atomic_store(&lines_in_all, 0);
    const leat_memory_field fields[] = {
        {"data", LEAT_UINT8, 3, {1, 1, size}, pixels},
        {"label", LEAT_INT32, 0, {0}, labels},
    };
    leat_pipeline *pipeline;
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    options.batch_size = n;
    options.workers = 1;
    options.caller_helps = LEAT_CALLER_HELPS_OFF;
    options.prefetch = 1;
    ck_assert_int_eq(leat_pipeline_memory(&pipeline, fields, 2, n), LEAT_OK);
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    for (int i = 0; i < BATCHES; i++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    layer_fixture_close(&fixture);
    leat_pipeline_unref(pipeline);
    ck_assert_int_ge(batches, BATCHES);
    ck_assert_int_eq(atomic_load(&mistakes), 0);
    ck_assert_int_eq(atomic_load(&lines_in_all),
                     (batches - 1) * (n - 1) * lines_of_sample());
}

START_TEST(samples_are_fetched_two_ahead)
{
    static const int sizes[] = {1, 64, 65, 1023, 1024, 1025, BYTES_MAX};
    for (int n = 1; n <= SAMPLES_MAX; n++)
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
            check(n, sizes[i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fill");
    TCase *tcase = tcase_create("fill");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, samples_are_fetched_two_ahead);
    return suite_run(suite);
}
