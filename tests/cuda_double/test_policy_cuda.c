/*
 * Bad records in batches that go to cuda:N, over the double: at the first and
 * the last place of a batch, in both of two neighbours, in all of one; under
 * each policy, transformed on the CPU and on the device. A kernel of the
 * caller's looks at every element, on a stream that runs as late as it may.
 */
#include "cuda_double.h"
#include "support/bad_records.h"
#include "support/layer_fixture.h"
#include "support/sanitizer.h"
#include "support/suite.h"

#include <check.h>
#include <leat/cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RECORDS = 20,
    BATCH = 4,
    EPOCHS = 3,
    STEPS = EPOCHS * RECORDS / BATCH,
    PIXELS = BAD_RECORDS_CHANNELS * BAD_RECORDS_HEIGHT * BAD_RECORDS_WIDTH,
    SCENES = 7,
    RUNS = SCENES * 3 * 2
};

/* The bad records of each scene, -1 after them. */
static const int scene[SCENES][RECORDS] = {
    {4, -1},                   /* the first place of a batch */
    {7, -1},                   /* the last one */
    {4, 7, -1},                /* both */
    {7, 8, -1},                /* the last one, and the next batch's first */
    {8, 9, 10, 11, -1},        /* all of a batch */
    {16, 17, 18, 19, -1},      /* all of an epoch's last */
    {3, 4, 5, 6, 7, 8, 9, -1}, /* more than a batch */
};

static bad_records plan;
static leat_data_layer_options options;
static leat_transform_options transform;
static cudaStream_t stream;

/* Scene, policy and place of the transform of a run. */
static void set_up_run(int run)
{
    const leat_data_layer_options defaults = LEAT_DATA_LAYER_OPTIONS_INIT;
    const leat_transform_options none = LEAT_TRANSFORM_OPTIONS_INIT;
    const int *bad = scene[run / 6];
    memset(&plan, 0, sizeof(plan));
    plan.count = RECORDS;
    /* One cannot be read, the next is found to be bad by the transform. */
    for (int i = 0; bad[i] >= 0; i++)
        plan.kind[bad[i]] = i % 2 ? BAD_RECORDS_SHORT : BAD_RECORDS_UNREADABLE;
    transform = none;
    transform.scale = 0.5f;
    options = defaults;
    options.batch_size = BATCH;
    options.transform = &transform;
    options.device = "cuda:0";
    options.on_error = (leat_on_error)(run % 3);
    options.transform_on = (leat_transform_on)(run / 3 % 2);
}

static void set_up(void)
{
    cuda_double_reset();
    stream = cuda_double_stream();
}

static void tear_down(void)
{
    ck_assert_int_eq(cudaStreamDestroy(stream), cudaSuccess);
    cuda_double_living living = cuda_double_count();
    ck_assert_int_eq(living.streams, 0);
    ck_assert_int_eq(living.events, 0);
    ck_assert_int_eq(living.device_bytes, 0);
    ck_assert_int_eq(living.pinned_bytes, 0);
}

static int is_bad(int64_t position)
{
    return plan.kind[position % RECORDS] != BAD_RECORDS_GOOD;
}

/* The record that must stand at a position; -1: zeros. */
static int64_t stands_at(int64_t position)
{
    if (is_bad(position) && options.on_error == LEAT_ON_ERROR_ZERO)
        return -1;
    while (position >= 0 && is_bad(position))
        position--;
    return position < 0 ? -1 : position % RECORDS;
}

static int bad_in_batch(int step)
{
    int n = 0;
    for (int i = 0; i < BATCH; i++)
        n += is_bad(step * BATCH + i);
    return n;
}

/* What the caller's kernel saw of a batch. */
typedef struct sight {
    float pixels[BATCH * PIXELS];
    float labels[BATCH];
} sight;

typedef struct look_arguments {
    const float *data;
    const float *label;
    sight *out;
} look_arguments;

static void look(void *argument)
{
    const look_arguments *self = argument;
    memcpy(self->out->pixels, cuda_double_bytes(self->data),
           sizeof(self->out->pixels));
    memcpy(self->out->labels, cuda_double_bytes(self->label),
           sizeof(self->out->labels));
}

static void consume(layer_fixture *fixture, sight *out)
{
    look_arguments arguments = {leat_blob_gpu_data(fixture->top[0]),
                                leat_blob_gpu_data(fixture->top[1]), out};
    ck_assert_ptr_nonnull(arguments.data);
    ck_assert_ptr_nonnull(arguments.label);
    ck_assert_int_eq(
        cuda_double_launch(look, &arguments, sizeof(arguments), 0, stream),
        cudaSuccess);
}

static void check_provenance(layer_fixture *fixture, int step)
{
    const leat_batch *batch = leat_data_layer_batch(fixture->layer);
    ck_assert_int_eq(batch->n, BATCH);
    ck_assert_int_eq(batch->bad, bad_in_batch(step));
    for (int i = 0; i < BATCH; i++) {
        int64_t position = step * BATCH + i;
        int64_t stands = stands_at(position);
        const leat_provenance *from = &batch->from[i];
        ck_assert_int_eq(from->record,
                         stands < 0 ? position % RECORDS : stands);
        ck_assert_int_eq(from->replacement,
                         !is_bad(position) ? LEAT_REPLACEMENT_NONE
                         : stands < 0      ? LEAT_REPLACEMENT_ZEROS
                                           : LEAT_REPLACEMENT_RECORD);
    }
}

static void check_sight(const sight *seen, int step)
{
    for (int i = 0; i < BATCH; i++) {
        int64_t r = stands_at(step * BATCH + i);
        ck_assert_float_eq(seen->labels[i], r < 0 ? 0 : (float)(1000 + r));
        for (int k = 0; k < PIXELS; k++) {
            unsigned char x = (unsigned char)(37 * r + 3 * k + 1);
            ck_assert_float_eq(seen->pixels[i * PIXELS + k],
                               r < 0 ? 0 : (float)x * 0.5f);
        }
    }
}

static int fails_at(int step)
{
    return options.on_error == LEAT_ON_ERROR_FAIL && bad_in_batch(step) > 0;
}

/* The line names the first bad record of the batch. */
static void check_failure(int step)
{
    char text[32];
    int first = step * BATCH;
    while (!is_bad(first))
        first++;
    snprintf(text, sizeof(text), "record %d", first % RECORDS);
    ck_assert_msg(strstr(leat_last_error(), text) != NULL, "%s: %s", text,
                  leat_last_error());
}

static int64_t count_bad(layer_fixture *fixture)
{
    leat_stats stats = {.size = sizeof(stats)};
    ck_assert_int_eq(leat_data_layer_stats(fixture->layer, &stats), LEAT_OK);
    return stats.bad_records;
}

/* Several epochs, so that each slot is filled anew after a bad batch. */
static void run_layer(const leat_pipeline *pipeline)
{
    static sight seen[STEPS];
    int64_t bad = 0;
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    for (int step = 0; step < STEPS; step++) {
        int status = leat_cuda_forward(fixture.layer, fixture.top, 2, stream);
        bad += fails_at(step) ? 1 : bad_in_batch(step);
        ck_assert_int_eq(count_bad(&fixture), bad);
        if (fails_at(step)) {
            ck_assert_int_eq(status, LEAT_EDATA);
            check_failure(step);
            ck_assert_ptr_null(leat_data_layer_batch(fixture.layer));
            continue;
        }
        ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
        check_provenance(&fixture, step);
        consume(&fixture, &seen[step]);
    }
    ck_assert_int_eq(cudaStreamSynchronize(stream), cudaSuccess);
    for (int step = 0; step < STEPS; step++)
        if (!fails_at(step))
            check_sight(&seen[step], step);
    layer_fixture_close(&fixture);
}

START_TEST(bad_places_of_a_batch_are_filled_as_the_policy_says)
{
    set_up_run(_i);
    for (int way = 0; way < BAD_RECORDS_WAYS; way++) {
        plan.way = (bad_records_way)way;
        leat_pipeline *pipeline = bad_records_pipeline(&plan);
        /* A sanitizer sees every second, all of them by neighbouring runs. */
        for (int variant = IS_SANITIZED ? _i % 2 : 0; variant < 8;
             variant += 1 + IS_SANITIZED) {
            options.prefetch = 1 + variant % 2;
            options.workers = 1 + variant / 2 % 2;
            options.top_mode = (leat_top_mode)(variant / 4);
            run_layer(pipeline);
        }
        leat_pipeline_unref(pipeline);
    }
}
END_TEST

/* Different bad records in the batches before this one. */
static int bad_records_before(int step)
{
    int bad = 0;
    for (int p = 0; p < step * BATCH && p < RECORDS; p++)
        bad += is_bad(p);
    return bad;
}

/* The batches before the one too many come whole, and then none. */
START_TEST(max_errors_ends_the_layer_at_the_batch_that_is_too_much)
{
    set_up_run(_i);
    if (options.on_error == LEAT_ON_ERROR_FAIL)
        return;
    leat_pipeline *pipeline = bad_records_pipeline(&plan);
    for (int most = 0; most < 12; most++) {
        sight seen;
        int step = 0;
        options.max_errors = most;
        options.has_max_errors = 1;
        layer_fixture fixture = layer_fixture_open(pipeline, &options);
        for (; bad_records_before(step + 1) <= most && step < STEPS; step++) {
            ck_assert_int_eq(
                leat_cuda_forward(fixture.layer, fixture.top, 2, stream),
                LEAT_OK);
            consume(&fixture, &seen);
            ck_assert_int_eq(cudaStreamSynchronize(stream), cudaSuccess);
            check_sight(&seen, step);
        }
        for (int again = 0; again < 2 && step < STEPS; again++)
            ck_assert_int_eq(
                leat_cuda_forward(fixture.layer, fixture.top, 2, stream),
                LEAT_ELIMIT);
        layer_fixture_close(&fixture);
    }
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Restored to its beginning it counts anew, and delivers the same. */
START_TEST(a_layer_that_max_errors_ended_goes_on_after_restore)
{
    set_up_run(_i);
    if (options.on_error == LEAT_ON_ERROR_FAIL)
        return;
    leat_token token;
    leat_token_init(&token);
    leat_pipeline *pipeline = bad_records_pipeline(&plan);
    options.max_errors = 0;
    options.has_max_errors = 1;
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(leat_data_layer_save(fixture.layer, &token), LEAT_OK);
    for (int round = 0; round < 2; round++) {
        sight seen;
        int step = 0;
        for (; !bad_in_batch(step); step++) {
            ck_assert_int_eq(
                leat_cuda_forward(fixture.layer, fixture.top, 2, stream),
                LEAT_OK);
            consume(&fixture, &seen);
            ck_assert_int_eq(cudaStreamSynchronize(stream), cudaSuccess);
            check_sight(&seen, step);
        }
        ck_assert_int_eq(
            leat_cuda_forward(fixture.layer, fixture.top, 2, stream),
            LEAT_ELIMIT);
        ck_assert_int_eq(leat_data_layer_restore(fixture.layer, &token),
                         LEAT_OK);
        ck_assert_int_eq(count_bad(&fixture), 0);
    }
    leat_token_finish(&token);
    layer_fixture_close(&fixture);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* The shape is another record's, and forward reports or replaces it. */
START_TEST(the_very_first_record_may_be_bad)
{
    set_up_run(_i);
    memset(plan.kind, 0, sizeof(plan.kind));
    plan.kind[0] = plan.kind[1] = BAD_RECORDS_UNREADABLE;
    leat_pipeline *pipeline = bad_records_pipeline(&plan);
    run_layer(pipeline);
    leat_pipeline_unref(pipeline);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy_cuda");
    TCase *tcase = tcase_create("policy_cuda");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(
        tcase, bad_places_of_a_batch_are_filled_as_the_policy_says, 0, RUNS);
    tcase_add_loop_test(tcase,
                        max_errors_ends_the_layer_at_the_batch_that_is_too_much,
                        0, RUNS);
    tcase_add_loop_test(
        tcase, a_layer_that_max_errors_ended_goes_on_after_restore, 0, RUNS);
    tcase_add_loop_test(tcase, the_very_first_record_may_be_bad, 0, 6);
    return suite_run(suite);
}
