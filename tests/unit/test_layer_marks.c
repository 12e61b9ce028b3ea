/*
 * A layer that is saved and resumed at random batches, over a decorator of each
 * kind, on other numbers of ranks, workers and samples each time, delivers what
 * an uninterrupted one does.
 */
#include "support/bad_records.h"
#include "support/index_decorators.h"
#include "support/layer_fixture.h"
#include "support/stream_decorators.h"
#include "support/suite.h"

#include <leat/ext/reader.h>

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { SAMPLES = 160, TRIALS = 10, SEGMENTS = 3, RANKS_MAX = 4, RECORDS = 15 };

static leat_pipeline *pipeline;
static leat_data_layer_options options;
static leat_transform_options transform;
static unsigned dice;

static int roll(int sides)
{
    dice = dice * 1103515245 + 12345;
    return (int)(dice >> 16) % sides;
}

/* A stream of as many images as the fixture has, in callbacks. */
static int stream_open(void *user, void **pass)
{
    (void)user;
    *pass = calloc(1, sizeof(int));
    return *pass ? LEAT_OK : leat_error(LEAT_ENOMEM, "no memory");
}

static int stream_next(void *pass, leat_sample *sample)
{
    const int64_t shape[] = {LAYER_FIXTURE_CHANNELS, LAYER_FIXTURE_HEIGHT,
                             LAYER_FIXTURE_WIDTH};
    int *next = pass;
    if (*next == RECORDS)
        return LEAT_END;
    int i = (*next)++;
    unsigned char *pixels =
        leat_sample_take(sample, LAYER_FIXTURE_PIXELS + sizeof(int32_t));
    if (!pixels)
        return LEAT_ENOMEM;
    for (int j = 0; j < LAYER_FIXTURE_PIXELS; j++)
        pixels[j] = (unsigned char)(7 * i + j);
    memcpy(pixels + LAYER_FIXTURE_PIXELS, &i, sizeof(i));
    int status = leat_sample_set(sample, 0, LEAT_UINT8, 3, shape, pixels);
    return status ? status
                  : leat_sample_set(sample, 1, LEAT_INT32, 0, NULL,
                                    pixels + LAYER_FIXTURE_PIXELS);
}

static int stream_reset(void *pass)
{
    *(int *)pass = 0;
    return LEAT_OK;
}

static leat_pipeline *stream(void)
{
    static const leat_field_spec fields[] = {
        {.name = "data", .dtype = LEAT_UINT8, .ndim = 3, .shape = {2, 5, 6}},
        {.name = "label", .dtype = LEAT_INT32}};
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = fields,
                                      .nfields = 2,
                                      .open = stream_open,
                                      .next = stream_next,
                                      .reset = stream_reset,
                                      .close = free};
    leat_pipeline *made;
    ck_assert_int_eq(leat_pipeline_callback(&made, &callbacks, NULL), LEAT_OK);
    return made;
}

static leat_pipeline *bad_ones(bad_records_way way)
{
    static bad_records records[BAD_RECORDS_WAYS];
    records[way] = (bad_records){.count = RECORDS, .way = way};
    records[way].kind[3] = BAD_RECORDS_UNREADABLE;
    records[way].kind[8] = BAD_RECORDS_SHAPELESS;
    records[way].kind[14] = BAD_RECORDS_UNREADABLE;
    return bad_records_pipeline(&records[way]);
}

static leat_pipeline *by_index(const leat_reader_type *type)
{
    leat_pipeline *upstream = layer_fixture_pipeline();
    leat_pipeline *made;
    ck_assert_int_eq(
        leat_pipeline_create(&made, type, "seed=5", NULL, NULL, &upstream, 1),
        LEAT_OK);
    leat_pipeline_unref(upstream);
    return made;
}

static leat_pipeline *zipped(void)
{
    leat_pipeline *const both[] = {
        stream_decorators_take(STREAM_FILTER, stream()),
        stream_decorators_take(STREAM_ROTATE, layer_fixture_pipeline())};
    leat_pipeline *made = stream_decorators_over(STREAM_ZIP, both, 2);
    leat_pipeline_unref(both[0]);
    leat_pipeline_unref(both[1]);
    return made;
}

enum { FIRST_MARKED = 4, SHORT = 7, KINDS = 12 };

static leat_pipeline *make(int kind)
{
    switch (kind) {
    case 0:
        return by_index(index_decorators_shuffle());
    case 1:
        return by_index(index_decorators_turn());
    case 2:
        return stream();
    case 3:
        return stream_decorators_take(STREAM_END, layer_fixture_pipeline());
    case FIRST_MARKED:
        return stream_decorators_take(STREAM_FILTER, layer_fixture_pipeline());
    case 5:
        return stream_decorators_take(STREAM_ROTATE, layer_fixture_pipeline());
    case 6:
        return stream_decorators_take(
            STREAM_ROTATE, stream_decorators_take(STREAM_FILTER, stream()));
    case SHORT:
        return stream_decorators_take(
            STREAM_FILTER, stream_decorators_take(STREAM_END, stream()));
    case 8:
        return stream_decorators_take(STREAM_FILTER,
                                      bad_ones(BAD_RECORDS_DEFERRED));
    case 9:
        return stream_decorators_take(STREAM_ROTATE,
                                      bad_ones(BAD_RECORDS_DEFERRED));
    case 10:
        return stream_decorators_take(
            STREAM_FILTER, stream_decorators_take(
                               STREAM_ROTATE, bad_ones(BAD_RECORDS_IN_ORDER)));
    default:
        return zipped();
    }
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

static uint32_t digest_of(layer_fixture *fixture, int i)
{
    uLong sum = 0;
    for (int t = 0; t < 2; t++) {
        size_t bytes = leat_blob_bytes(fixture->top[t]) /
                       (size_t)leat_blob_shape(fixture->top[t])[0];
        const char *data = leat_blob_cpu_data(fixture->top[t]);
        sum = crc32_z(sum, (const Bytef *)data + (size_t)i * bytes, bytes);
    }
    return (uint32_t)sum;
}

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
        sequence.digest[sequence.count] = digest_of(&fixture, 0);
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
            ck_assert_uint_eq(digest_of(&rank_of[r], i), sequence.digest[p]);
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
    pipeline = make(_i);
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
                save_ranks(&token, _i >= FIRST_MARKED);
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
    pipeline = make(_i);
    int most = _i == SHORT ? 3 : 5; /* batches of 4 that it has, and one */
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
    pipeline = make(_i);
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

int main(void)
{
    Suite *suite = suite_create("layer_marks");
    TCase *tcase = tcase_create("layer_marks");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_loop_test(
        tcase, a_resumed_run_delivers_what_an_uninterrupted_one_does, 0, KINDS);
    tcase_add_loop_test(tcase,
                        a_global_batch_has_one_token_on_any_number_of_ranks,
                        FIRST_MARKED, KINDS);
    tcase_add_loop_test(tcase, a_token_of_any_batch_is_of_that_batch, 0, KINDS);
    return suite_run(suite);
}
