/*
 * A layer that is saved and resumed at random batches, over a decorator of each
 * kind, on other numbers of ranks, workers and samples each time, delivers what
 * an uninterrupted one does.
 */
#include "support/layer_chains.h"
#include "support/layer_fixture.h"
#include "support/scripted_source.h"
#include "support/suite.h"

#include <leat/decorators.h>

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 160, TRIALS = 10, SEGMENTS = 3, RANKS_MAX = 4 };

static leat_pipeline *pipeline;
static leat_data_layer_options options;
static leat_transform_options transform;
static unsigned dice;

static int roll(int sides)
{
    dice = dice * 1103515245 + 12345;
    return (int)(dice >> 16) % sides;
}

static void set_up(void)
{
    layer_fixture_options(&options, &transform);
    transform.crop_size = 3;
    transform.mirror = 1;
    options.random_seed = 99;
    options.on_error = LEAT_ON_ERROR_ZERO;
    dice = 1;
}

/* What is delivered at each position; `count` of them. */
static struct sequence {
    uint32_t digest[SAMPLES];
    int64_t epoch[SAMPLES];
    int64_t index[SAMPLES];
    int count;
} sequence;

static void record_sequence(void)
{
    options.batch_size = 1;
    options.world_size = 1;
    options.rank = 0;
    options.workers = 1;
    options.prefetch = 1;
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    for (sequence.count = 0; sequence.count < SAMPLES; sequence.count++) {
        int status = layer_fixture_forward(&fixture);
        if (status == LEAT_END)
            break;
        ck_assert_int_eq(status, LEAT_OK);
        const leat_provenance *from =
            &leat_data_layer_batch(fixture.layer)->from[0];
        sequence.digest[sequence.count] =
            layer_fixture_sample_digest(&fixture, 0);
        sequence.epoch[sequence.count] = from->epoch;
        sequence.index[sequence.count] = from->position;
    }
    layer_fixture_close(&fixture);
    ck_assert_int_ge(sequence.count, 10);
}

/* The layers of all ranks, and where they all are. */
static layer_fixture rank_of[RANKS_MAX];
static int ranks;
static bool has_ended[RANKS_MAX]; /* where a single pass leaves it none */
static int64_t position;

static void open_ranks(const leat_token *from)
{
    static const int worlds[] = {1, 2, RANKS_MAX};
    ranks = worlds[roll(3)];
    options.world_size = ranks;
    options.batch_size = 1 + roll(4);
    options.workers = 1 + roll(3);
    options.prefetch = 1 + roll(4);
    for (int r = 0; r < ranks; r++) {
        options.rank = r;
        rank_of[r] = layer_fixture_open(pipeline, &options);
        has_ended[r] = false;
        if (!from)
            continue;
        leat_token copy;
        leat_token_init(&copy);
        ck_assert_int_eq(leat_token_put(&copy, from->bytes, from->size),
                         LEAT_OK);
        int status = leat_data_layer_restore(rank_of[r].layer, &copy);
        has_ended[r] = status == LEAT_END;
        ck_assert_msg(!status || has_ended[r], "%s", leat_last_error());
        leat_token_finish(&copy);
    }
}

static void close_ranks(void)
{
    for (int r = 0; r < ranks; r++)
        layer_fixture_close(&rank_of[r]);
}

/* Whether any rank still delivers. */
static int check_step(void)
{
    int n = 0;
    for (int r = 0; r < ranks; r++) {
        int status =
            has_ended[r] ? LEAT_END : layer_fixture_forward(&rank_of[r]);
        if (status == LEAT_END)
            continue;
        ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
        const leat_batch *batch = leat_data_layer_batch(rank_of[r].layer);
        int64_t over = (r - position % ranks + ranks) % ranks;
        for (int i = 0; i < batch->n; i++, n++) {
            int64_t p = position + over + (int64_t)i * ranks;
            ck_assert_int_lt(p, sequence.count);
            ck_assert_int_eq(batch->from[i].epoch, sequence.epoch[p]);
            ck_assert_int_eq(batch->from[i].position, sequence.index[p]);
            ck_assert_uint_eq(layer_fixture_sample_digest(&rank_of[r], i),
                              sequence.digest[p]);
        }
    }
    position += n;
    return n == ranks * options.batch_size;
}

/* The same token on every rank. */
static void save_ranks(leat_token *out, bool is_marked)
{
    out->size = 0;
    ck_assert_int_eq(leat_data_layer_save(rank_of[0].layer, out), LEAT_OK);
    for (int r = 1; r < ranks; r++) {
        leat_token other;
        leat_token_init(&other);
        ck_assert_int_eq(leat_data_layer_save(rank_of[r].layer, &other),
                         LEAT_OK);
        /* Without a mark the epoch may be that of the rank's last sample. */
        if (is_marked)
            ck_assert_str_eq(leat_token_text(&other), leat_token_text(out));
        leat_token_finish(&other);
    }
}

START_TEST(a_resumed_run_delivers_what_an_uninterrupted_one_does)
{
    leat_token token;
    leat_token_init(&token);
    pipeline = layer_chains_make(_i);
    record_sequence();
    for (int trial = 0; trial < TRIALS; trial++) {
        position = 0;
        for (int segment = 0; segment < SEGMENTS; segment++) {
            open_ranks(segment > 0 ? &token : NULL);
            int goes_on = 1;
            for (int steps = roll(5); goes_on && steps > 0; steps--)
                if (position + (int64_t)ranks * options.batch_size <= SAMPLES)
                    goes_on = check_step();
            if (goes_on)
                save_ranks(&token, _i >= LAYER_CHAINS_MARKED);
            close_ranks();
            if (!goes_on)
                break;
        }
    }
    leat_token_finish(&token);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* The mark of a batch does not depend on who takes it; a token begins with its
 * version, generator and world size. */
enum { HEADER = 4 };

START_TEST(a_global_batch_has_one_token_on_any_number_of_ranks)
{
    pipeline = layer_chains_make(_i);
    /* Batches of 4: one more than the short chain has. */
    int most = _i == LAYER_CHAINS_SHORT ? 3 : 5;
    for (int steps = 0; steps < most; steps++) {
        leat_token first;
        leat_token_init(&first);
        for (int world = 1; world <= RANKS_MAX; world *= 2)
            for (int rank = 0; rank < world; rank++) {
                leat_token token;
                leat_token_init(&token);
                options.world_size = world;
                options.rank = rank;
                options.batch_size = 4 / world;
                layer_fixture fixture = layer_fixture_open(pipeline, &options);
                for (int i = 0; i < steps; i++)
                    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
                ck_assert_int_eq(leat_data_layer_save(fixture.layer, &token),
                                 LEAT_OK);
                if (world == 1)
                    leat_token_put(&first, token.bytes, token.size);
                ck_assert_uint_eq(token.size, first.size);
                ck_assert_mem_eq(token.bytes + HEADER, first.bytes + HEADER,
                                 first.size - HEADER);
                leat_token_finish(&token);
                layer_fixture_close(&fixture);
            }
        leat_token_finish(&first);
    }
    leat_pipeline_unref(pipeline);
}
END_TEST

/* A layer that is saved at each batch, while it runs on. */
START_TEST(a_token_of_any_batch_is_of_that_batch)
{
    leat_token token[20];
    pipeline = layer_chains_make(_i);
    record_sequence();
    options.batch_size = 3;
    options.prefetch = 4;
    options.workers = 2;
    ranks = 1;
    rank_of[0] = layer_fixture_open(pipeline, &options);
    int n = 0;
    for (position = 0; n < 20; n++) {
        leat_token_init(&token[n]);
        ck_assert_int_eq(leat_data_layer_save(rank_of[0].layer, &token[n]),
                         LEAT_OK);
        if (!check_step())
            break;
    }
    close_ranks();
    int tokens = n < 20 ? n + 1 : n;
    for (int i = 0; i < tokens; i++) {
        position = 3 * i;
        open_ranks(&token[i]);
        if (position + (int64_t)ranks * options.batch_size <= SAMPLES)
            (void)check_step();
        close_ranks();
        leat_token_finish(&token[i]);
    }
    leat_pipeline_unref(pipeline);
}
END_TEST

static leat_data_layer *open_plain(void)
{
    leat_data_layer_options plain = LEAT_DATA_LAYER_OPTIONS_INIT;
    leat_data_layer *layer;
    plain.batch_size = 1;
    plain.random_seed = 99;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &plain), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_OK);
    return layer;
}

static int next_label(leat_data_layer *layer)
{
    ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST),
                     LEAT_OK);
    return (int)*(const float *)leat_blob_cpu_data(
        leat_data_layer_top(layer, 1));
}

enum { JOINED = 36, CHECKED = 8 };

/* A reader that is never begun again, between two that are: a resume finds the
   position of all three, or of none. */
START_TEST(a_single_pass_among_others_resumes)
{
    static scripted_source source[] = {
        SCRIPTED_SOURCE_INIT, SCRIPTED_SOURCE_INIT, SCRIPTED_SOURCE_INIT};
    leat_pipeline *input[3], *mixed;
    int label[JOINED + CHECKED];
    leat_token token;
    leat_token_init(&token);
    source[0].count = 18;
    source[1].single_pass = 1;
    source[1].count = 50;
    source[2].count = 50;
    for (int i = 0; i < 3; i++)
        input[i] = scripted_source_pipeline(&source[i]);
    ck_assert_int_eq(leat_pipeline_mix(&mixed, input + 1, 2, NULL), LEAT_OK);
    leat_pipeline_unref(input[1]);
    input[1] = mixed;
    ck_assert_int_eq(leat_pipeline_chain(&pipeline, input, 2), LEAT_OK);
    for (int i = 0; i < 3; i++)
        leat_pipeline_unref(input[i]);
    leat_data_layer *layer = open_plain();
    for (int i = 0; i < JOINED + CHECKED; i++)
        label[i] = next_label(layer);
    leat_data_layer_destroy(layer);
    for (int at = 0; at < JOINED; at++) {
        layer = open_plain();
        for (int i = 0; i < at; i++)
            ck_assert_int_eq(next_label(layer), label[i]);
        ck_assert_int_eq(leat_data_layer_save(layer, &token), LEAT_OK);
        leat_data_layer_destroy(layer);
        layer = open_plain();
        ck_assert_int_eq(leat_data_layer_restore(layer, &token), LEAT_OK);
        for (int i = at; i < at + CHECKED; i++)
            ck_assert_int_eq(next_label(layer), label[i]);
        leat_data_layer_destroy(layer);
    }
    leat_token_finish(&token);
    leat_pipeline_unref(pipeline);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layer_marks");
    TCase *tcase = tcase_create("layer_marks");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_loop_test(tcase,
                        a_resumed_run_delivers_what_an_uninterrupted_one_does,
                        0, LAYER_CHAINS);
    tcase_add_loop_test(tcase,
                        a_global_batch_has_one_token_on_any_number_of_ranks,
                        LAYER_CHAINS_MARKED, LAYER_CHAINS);
    tcase_add_loop_test(tcase, a_token_of_any_batch_is_of_that_batch, 0,
                        LAYER_CHAINS);
    tcase_add_test(tcase, a_single_pass_among_others_resumes);
    return suite_run(suite);
}
