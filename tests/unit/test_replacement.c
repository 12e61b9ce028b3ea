/* Law 4: what stands at a bad record's place, against a simple model. */
#include "base/memory.h"
#include "base/random.h"
#include "support/bad_records.h"
#include "support/index_decorators.h"
#include "support/layer_fixture.h"
#include "support/suite.h"

#include <check.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_MAX 8
#define SHUFFLE_SEED 5
#define IMAGE_MAX                                                              \
    (BAD_RECORDS_CHANNELS * BAD_RECORDS_HEIGHT * BAD_RECORDS_WIDTH *           \
     (int)sizeof(float))

static bad_records plan;
static leat_data_layer_options options;
static leat_transform_options transform;
static int is_shuffled;
static int is_halved; /* all epochs but the first are the second half */
static int64_t begin; /* global position where the layer began or resumed */

static void set_up(void)
{
    const bad_records none = {.count = 20};
    const leat_data_layer_options defaults = LEAT_DATA_LAYER_OPTIONS_INIT;
    const leat_transform_options no_transform = LEAT_TRANSFORM_OPTIONS_INIT;
    plan = none;
    options = defaults;
    transform = no_transform;
    options.batch_size = 4;
    options.world_size = 1;
    options.transform = &transform;
    options.random_seed = 11;
    options.on_error = LEAT_ON_ERROR_REPLACE;
    is_shuffled = 0;
    is_halved = 0;
    begin = 0;
}

static leat_pipeline *decorate(leat_pipeline *source,
                               const leat_reader_type *type,
                               const char *arguments)
{
    leat_pipeline *decorated;
    ck_assert_int_eq(leat_pipeline_create(&decorated, type, arguments, NULL,
                                          NULL, &source, 1),
                     LEAT_OK);
    leat_pipeline_unref(source);
    return decorated;
}

static leat_pipeline *open_pipeline(void)
{
    leat_pipeline *pipeline = bad_records_pipeline(&plan);
    if (is_shuffled)
        pipeline = decorate(pipeline, index_decorators_shuffle(), "seed=5");
    if (is_halved)
        pipeline = decorate(pipeline, index_decorators_halves(), "");
    return pipeline;
}

/* The model: what a slow reader of the whole sequence would say. */

static int64_t count_samples(void) /* of an epoch */
{
    return is_halved ? plan.count / 2 : plan.count;
}

static int record_at(int64_t p)
{
    int64_t n = count_samples();
    int64_t i = is_halved && p >= n ? n + p % n : p % n;
    return (int)(is_shuffled
                     ? index_decorators_shuffled(i, plan.count, SHUFFLE_SEED)
                     : i);
}

static bad_records_kind kind_at(int64_t p)
{
    return plan.kind[record_at(p)];
}

/* The height that a record tells; 0: none. */
static int told(int64_t p)
{
    switch (kind_at(p)) {
    case BAD_RECORDS_GOOD:
    case BAD_RECORDS_SHORT:
        return transform.crop_size ? (int)transform.crop_size
                                   : BAD_RECORDS_HEIGHT;
    case BAD_RECORDS_SMALL:
        return transform.crop_size ? 0 : 2;
    default:
        return 0;
    }
}

static int is_good(int64_t p, int height)
{
    bad_records_kind kind = kind_at(p);
    return (kind == BAD_RECORDS_GOOD || kind == BAD_RECORDS_SMALL) &&
           height > 0 && told(p) == height;
}

/* How far back a layer can see. */
static int64_t oldest(int64_t p)
{
    int64_t epoch = p / count_samples() - 1;
    int64_t least = epoch < 0 ? 0 : epoch * count_samples();
    return plan.way == BAD_RECORDS_IN_ORDER && least < begin ? begin : least;
}

static int64_t good_before(int64_t p, int height)
{
    int64_t q = p - 1;
    while (q >= oldest(p) && !is_good(q, height))
        q--;
    return q >= oldest(p) ? q : -1;
}

static int step(void)
{
    return options.world_size;
}

/* The rank's first position from `at` on. */
static int64_t own_from(int64_t at)
{
    return at + (options.rank - at % step() + step()) % step();
}

static int batch_height(int64_t first)
{
    if (told(first))
        return told(first);
    for (int64_t q = first - 1; q >= oldest(first); q--)
        if (is_good(q, told(q)))
            return told(q);
    if (told(own_from(begin)))
        return told(own_from(begin));
    int64_t reach = 2 * count_samples();
    int64_t back = plan.way == BAD_RECORDS_IN_ORDER ? 0 : reach;
    for (int64_t q = begin - 1; q >= 0 && q >= begin - back; q--)
        if (told(q))
            return told(q);
    for (int64_t q = begin; q < begin + reach; q++)
        if (told(q))
            return told(q);
    return 0;
}

static leat_transformer *transformer; /* the model's own */
static leat__mt19937 generator;       /* Caffe's, of one rank */

static void seed_generator(int64_t samples, int draws)
{
    leat__mt19937_seed(&generator,
                       (uint32_t)options.random_seed + (uint32_t)options.rank);
    leat__mt19937_next(&generator);
    uint32_t seed = leat__mt19937_next(&generator);
    leat__mt19937_seed(&generator, seed);
    for (int64_t i = 0; i < samples * draws; i++)
        leat__mt19937_next(&generator);
}

static int count_draws(void)
{
    return (transform.mirror ? 1 : 0) + (transform.crop_size ? 2 : 0);
}

static void choose(int64_t p, uint32_t words[4])
{
    if (options.rng == LEAT_RNG_LEAT) {
        leat__random_words((uint64_t)options.random_seed, p / count_samples(),
                           p % count_samples(), 0, words);
        return;
    }
    for (int i = 0; i < count_draws(); i++)
        words[i] = leat__mt19937_next(&generator);
}

static void check_place(layer_fixture *fixture, int i, int64_t p, int height,
                        const leat_bad_record **bad)
{
    static const unsigned char zeros[IMAGE_MAX];
    const leat_provenance *from =
        &leat_data_layer_batch(fixture->layer)->from[i];
    unsigned char expected[IMAGE_MAX] = {0};
    int width =
        transform.crop_size ? (int)transform.crop_size : BAD_RECORDS_WIDTH;
    int shape[3] = {BAD_RECORDS_CHANNELS, height, width};
    size_t bytes = (size_t)(shape[0] * shape[1] * shape[2]) * sizeof(float);
    uint32_t words[4];
    choose(p, words);
    int64_t q = is_good(p, height) ? p : -1;
    if (q < 0 && options.on_error == LEAT_ON_ERROR_REPLACE)
        q = good_before(p, height);
    float label = 0;
    if (q >= 0) {
        leat_sample sample;
        leat_sample_init(&sample);
        bad_records_fill(&plan, record_at(q), &sample);
        ck_assert_int_eq(leat_transformer_apply(transformer, &sample.field[0],
                                                options.rng, words, shape,
                                                expected),
                         LEAT_OK);
        ck_assert_mem_ne(expected, zeros, bytes);
        label = (float)(1000 + record_at(q));
    }
    const char *data = leat_blob_cpu_data(fixture->top[0]);
    ck_assert_mem_eq(data + (size_t)i * bytes, expected, bytes);
    ck_assert_float_eq(layer_fixture_label(fixture, i), label);
    leat_replacement kind = q == p  ? LEAT_REPLACEMENT_NONE
                            : q < 0 ? LEAT_REPLACEMENT_ZEROS
                                    : LEAT_REPLACEMENT_RECORD;
    ck_assert_int_eq(from->replacement, kind);
    ck_assert_int_eq(from->epoch, p / count_samples());
    ck_assert_int_eq(from->position, p % count_samples());
    ck_assert_int_eq(from->record, record_at(q < 0 ? p : q));
    if (kind == LEAT_REPLACEMENT_NONE)
        return;
    ck_assert_int_eq((*bad)->from.record, record_at(p));
    ck_assert_int_eq((*bad)->from.epoch, p / count_samples());
    ck_assert_int_eq((*bad)->from.position, p % count_samples());
    ck_assert_int_eq((*bad)->from.replacement, kind);
    ++*bad;
}

/* Forwards `batches` from global position `at` on. Bad ones must fit the list.
 */
static void check_batches(layer_fixture *fixture, int64_t at, int batches)
{
    ck_assert_int_eq(leat_transformer_create(&transformer, &transform,
                                             LEAT_TRAIN, LEAT_FLOAT32,
                                             LEAT_NCHW),
                     LEAT_OK);
    leat_stats stats = {.size = sizeof(stats)};
    int64_t bad = 0;
    seed_generator(at / step(), count_draws());
    for (int b = 0; b < batches; b++) {
        int status = layer_fixture_forward(fixture);
        ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
        ck_assert_int_eq(leat_data_layer_stats(fixture->layer, &stats),
                         LEAT_OK);
        const leat_batch *batch = leat_data_layer_batch(fixture->layer);
        const leat_bad_record *next = stats.bad + bad;
        int64_t first = own_from(at);
        int height = batch_height(first);
        ck_assert_int_eq(leat_blob_dim(fixture->top[0], 2), height);
        for (int i = 0; i < options.batch_size; i++)
            check_place(fixture, i, first + (int64_t)i * step(), height, &next);
        bad += batch->bad;
        ck_assert_int_eq(next - stats.bad, bad);
        ck_assert_int_eq(stats.bad_records, bad);
        ck_assert_int_eq(stats.nbad, bad);
        at += options.batch_size * step();
    }
    leat_transformer_destroy(transformer);
}

static int create_layer(layer_fixture *fixture)
{
    leat_pipeline *pipeline = open_pipeline();
    ck_assert_int_eq(
        leat_data_layer_create(&fixture->layer, pipeline, &options), LEAT_OK);
    leat_pipeline_unref(pipeline);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(leat_blob_create(&fixture->top[i], NULL), LEAT_OK);
    return leat_data_layer_setup(fixture->layer, fixture->top, 2);
}

/* As many as the list of bad records holds, if all were bad. */
static int most_batches(void)
{
    int n = LEAT_BAD_RECORDS_MAX / (int)options.batch_size;
    return n < 12 ? n : 12;
}

/* All ranks from position 0, or from where a token of another run stands. */
static void check_ranks(leat_token *token, int64_t at)
{
    begin = token ? at : 0;
    for (int rank = 0; rank < step(); rank++) {
        layer_fixture fixture;
        options.rank = rank;
        begin = 0;
        int status = create_layer(&fixture);
        if (batch_height(0) == 0) {
            ck_assert(status == LEAT_EDATA || status == LEAT_EINVAL);
        } else {
            ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
            begin = token ? at : 0;
            if (token)
                status = leat_data_layer_restore(fixture.layer, token);
            if (batch_height(begin) == 0) {
                ck_assert(status == LEAT_EFORMAT || status == LEAT_EINVAL);
            } else {
                ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
                check_batches(&fixture, begin, most_batches());
            }
        }
        layer_fixture_close(&fixture);
    }
    options.rank = 0;
    begin = 0;
}

/* A token of `batches` batches on. */
static void save_after(leat_token *token, int batches)
{
    layer_fixture fixture;
    leat_token_init(token);
    ck_assert_int_eq(create_layer(&fixture), LEAT_OK);
    for (int i = 0; i < batches; i++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_save(fixture.layer, token), LEAT_OK);
    layer_fixture_close(&fixture);
}

START_TEST(a_bad_place_gets_the_record_before_it)
{
    plan.kind[2] = BAD_RECORDS_UNREADABLE;
    plan.kind[5] = BAD_RECORDS_SHORT;
    plan.kind[6] = BAD_RECORDS_UNLABELED;
    plan.kind[8] = BAD_RECORDS_SHAPELESS;
    layer_fixture fixture;
    ck_assert_int_eq(create_layer(&fixture), LEAT_OK);
    static const float label[] = {1000, 1001, 1001, 1003, 1004, 1004,
                                  1004, 1007, 1007, 1009, 1010, 1011};
    for (int i = 0; i < 12; i++) {
        if (i % 4 == 0)
            ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        ck_assert_float_eq(layer_fixture_label(&fixture, i % 4), label[i]);
    }
    layer_fixture_close(&fixture);
    check_ranks(NULL, 0);
}
END_TEST

START_TEST(the_end_of_the_epoch_before_stands_in_for_its_beginning)
{
    plan.kind[0] = BAD_RECORDS_UNREADABLE;
    plan.kind[19] = BAD_RECORDS_SHORT;
    layer_fixture fixture;
    ck_assert_int_eq(create_layer(&fixture), LEAT_OK);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_float_eq(layer_fixture_label(&fixture, 0), 0);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_float_eq(layer_fixture_label(&fixture, 0), 1018);
    ck_assert_float_eq(layer_fixture_label(&fixture, 1), 1001);
    layer_fixture_close(&fixture);
}
END_TEST

/* Epoch 1 has the record of epoch 0, and epoch 2 is alike after a resume. */
START_TEST(a_record_replaces_none_of_the_epoch_after_the_next)
{
    plan.count = 4;
    is_halved = 1;
    options.batch_size = 2;
    plan.kind[2] = BAD_RECORDS_SHORT;
    plan.kind[3] = BAD_RECORDS_UNREADABLE;
    layer_fixture fixture;
    ck_assert_int_eq(create_layer(&fixture), LEAT_OK);
    static const float label[] = {1000, 1001, 1001, 1001, 0, 0};
    for (int i = 0; i < 6; i++) {
        if (i % 2 == 0)
            ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        ck_assert_float_eq(layer_fixture_label(&fixture, i % 2), label[i]);
    }
    layer_fixture_close(&fixture);
    check_ranks(NULL, 0);
    leat_token token;
    save_after(&token, 2);
    check_ranks(&token, 4);
    leat_token_finish(&token);
}
END_TEST

static void plant(uint32_t *state, int one_in)
{
    for (int i = 0; i < plan.count; i++) {
        *state = *state * 1664525 + 1013904223;
        uint32_t word = *state >> 8;
        plan.kind[i] =
            word % (uint32_t)one_in
                ? BAD_RECORDS_GOOD
                : (bad_records_kind)(1 + word / 64 % (BAD_RECORDS_KINDS - 1));
    }
}

static uint32_t draw(uint32_t *state, uint32_t n)
{
    *state = *state * 1664525 + 1013904223;
    return (*state >> 8) % n;
}

/* Options of every kind that may not change what is delivered, and of those
   that do. */
static void draw_case(uint32_t *state)
{
    set_up();
    plan.count = 1 + (int)draw(state, 30);
    plan.way = (bad_records_way)draw(state, BAD_RECORDS_WAYS);
    static const int tails[] = {0, 0, 100000, 170000, 270000};
    plan.tail = tails[draw(state, 5)];
    is_shuffled = plan.way != BAD_RECORDS_IN_ORDER && draw(state, 3) == 0;
    is_halved = plan.way != BAD_RECORDS_IN_ORDER && plan.count > 1 &&
                draw(state, 4) == 0;
    options.batch_size = 1 + draw(state, BATCH_MAX);
    options.workers = 1 + (int)draw(state, 4);
    options.prefetch = 1 + (int)draw(state, 4);
    options.reader_thread = (leat_reader_thread)draw(state, 3);
    options.caller_helps =
        (int)draw(state, 2) ? LEAT_CALLER_HELPS_AUTO : LEAT_CALLER_HELPS_OFF;
    options.rng = draw(state, 3) ? LEAT_RNG_LEAT : LEAT_RNG_CAFFE;
    options.on_error =
        draw(state, 3) ? LEAT_ON_ERROR_REPLACE : LEAT_ON_ERROR_ZERO;
    if (plan.way != BAD_RECORDS_IN_ORDER)
        options.world_size = 1 + (int)draw(state, 3);
    transform.mirror = (int)draw(state, 2);
    /* In order what came in another shape is gone: shapes are one. */
    if (plan.way == BAD_RECORDS_IN_ORDER || draw(state, 2))
        transform.crop_size = 3;
    static const int densities[] = {1, 2, 3, 10};
    plant(state, densities[draw(state, 4)]);
    if (is_halved && draw(state, 2))
        for (int i = plan.count / 2; i < plan.count; i++)
            plan.kind[i] = BAD_RECORDS_UNREADABLE;
}

static int cases(int usual)
{
    const char *text = getenv("LEAT_REPLACEMENTS");
    return text ? atoi(text) : usual;
}

START_TEST(any_layer_delivers_what_the_model_does)
{
    uint32_t state = 1;
    for (int i = 0; i < cases(300); i++) {
        draw_case(&state);
        check_ranks(NULL, 0);
    }
}
END_TEST

START_TEST(so_it_does_after_a_resume_at_any_batch_by_other_ranks)
{
    uint32_t state = 2;
    for (int i = 0; i < cases(200); i++) {
        draw_case(&state);
        options.rng = LEAT_RNG_LEAT;
        if (batch_height(0) == 0)
            continue;
        int batches = (int)draw(&state, 9);
        int64_t at = batches * options.batch_size * step();
        leat_token token;
        save_after(&token, batches);
        options.workers = 1 + (int)draw(&state, 4);
        options.prefetch = 1 + (int)draw(&state, 4);
        if (transform.crop_size) {
            options.batch_size = 1 + draw(&state, BATCH_MAX);
            if (plan.way != BAD_RECORDS_IN_ORDER)
                options.world_size = 1 + (int)draw(&state, 3);
        }
        check_ranks(&token, at);
        leat_token_finish(&token);
    }
}
END_TEST

START_TEST(several_ranks_cannot_skip_in_what_is_read_in_order)
{
    plan.way = BAD_RECORDS_IN_ORDER;
    options.world_size = 2;
    layer_fixture fixture;
    ck_assert_int_eq(create_layer(&fixture), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "on_error REPLACE"));
    layer_fixture_close(&fixture);
    options.on_error = LEAT_ON_ERROR_ZERO;
    plan.kind[3] = BAD_RECORDS_SHORT;
    transform.crop_size = 3;
    check_ranks(NULL, 0);
}
END_TEST

START_TEST(a_bad_first_record_is_no_error_of_setup_where_one_tells_the_shape)
{
    for (int way = 0; way < BAD_RECORDS_WAYS; way++) {
        set_up();
        plan.way = (bad_records_way)way;
        for (int i = 0; i < 9; i++)
            plan.kind[i] = (bad_records_kind)(1 + i % 4);
        plan.kind[2] = BAD_RECORDS_UNREADABLE;
        plan.kind[6] = BAD_RECORDS_UNREADABLE;
        check_ranks(NULL, 0);
        for (int i = 9; i < plan.count; i++)
            plan.kind[i] = BAD_RECORDS_SHAPELESS;
        layer_fixture fixture;
        ck_assert_int_eq(create_layer(&fixture), LEAT_EDATA);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "record 0"));
        layer_fixture_close(&fixture);
    }
}
END_TEST

/* Each batch reads back to the first sample of the one before. */
START_TEST(a_long_run_of_bad_batches_is_read_back_a_few_times)
{
    plan.count = BAD_RECORDS_MAX;
    for (int i = 1; i < plan.count; i++)
        plan.kind[i] = BAD_RECORDS_UNREADABLE;
    options.on_error = LEAT_ON_ERROR_ZERO;
    options.batch_size = 1;
    options.world_size = 2;
    options.rank = 1;
    options.prefetch = 1;
    layer_fixture fixture;
    ck_assert_int_eq(create_layer(&fixture), LEAT_OK);
    int before = bad_records_reads();
    for (int i = 0; i < 3 * plan.count / 2; i++) {
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        ck_assert_int_eq(leat_blob_dim(fixture.top[0], 2), BAD_RECORDS_HEIGHT);
    }
    ck_assert_int_lt(bad_records_reads() - before, 3 * 4 * plan.count);
    layer_fixture_close(&fixture);
}
END_TEST

/* The shape is another rank's record's, tried in the slot: that grows it. */
START_TEST(a_slot_that_grows_for_another_ranks_shape_is_counted)
{
    for (int i = 0; i < plan.count; i++)
        plan.kind[i] = BAD_RECORDS_SMALL;
    plan.kind[8] = BAD_RECORDS_GOOD;
    plan.kind[9] = BAD_RECORDS_UNREADABLE;
    options.world_size = 2;
    options.rank = 1;
    options.prefetch = 1;
    layer_fixture fixture;
    leat_stats stats = {.size = sizeof(stats)};
    ck_assert_int_eq(create_layer(&fixture), LEAT_OK);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(leat_blob_dim(fixture.top[0], 2), BAD_RECORDS_HEIGHT);
    ck_assert_int_eq(leat_data_layer_stats(fixture.layer, &stats), LEAT_OK);
    ck_assert_int_eq(stats.grown_batches, 1);
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(a_single_pass_of_bad_records_ends)
{
    plan.way = BAD_RECORDS_IN_ORDER;
    plan.single_pass = 1;
    for (int i = 5; i < plan.count; i++)
        plan.kind[i] = BAD_RECORDS_UNREADABLE;
    plan.count = 18;
    layer_fixture fixture;
    ck_assert_int_eq(create_layer(&fixture), LEAT_OK);
    for (int b = 0; b < 5; b++) {
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        ck_assert_float_eq(layer_fixture_label(&fixture, 0), b ? 1004 : 1000);
        ck_assert_int_eq(leat_data_layer_batch(fixture.layer)->n,
                         b < 4 ? 4 : 2);
    }
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_END);
    layer_fixture_close(&fixture);
}
END_TEST

/* Every allocation from setup on fails in turn: an error, or all is well. */
static void fail_allocations(int way)
{
    plan.way = (bad_records_way)way;
    plan.kind[0] = BAD_RECORDS_UNREADABLE;
    plan.kind[2] = BAD_RECORDS_SHORT;
    plan.kind[9] = BAD_RECORDS_UNREADABLE;
    options.workers = 2;
    for (int n = 0, done = 0; !done; n++) {
        ck_assert_int_lt(n, 2000);
        layer_fixture fixture = {0};
        leat_pipeline *pipeline = open_pipeline();
        for (int i = 0; i < 2; i++)
            ck_assert_int_eq(leat_blob_create(&fixture.top[i], NULL), LEAT_OK);
        leat__alloc_fail_at(n);
        int status = leat_data_layer_create(&fixture.layer, pipeline, &options);
        if (status == LEAT_OK)
            status = leat_data_layer_setup(fixture.layer, fixture.top, 2);
        for (int b = 0; b < 6 && status == LEAT_OK; b++)
            status = layer_fixture_forward(&fixture);
        /* Workers that are ahead may still have met it. */
        int is_over = leat__alloc_fail_at(-1) >= 0;
        ck_assert_msg(status == LEAT_OK || status == LEAT_ENOMEM, "%d: %s",
                      status, leat_last_error());
        done = is_over && status == LEAT_OK;
        layer_fixture_close(&fixture);
        leat_pipeline_unref(pipeline);
    }
}

START_TEST(a_failed_allocation_is_an_error_and_leaks_nothing)
{
    fail_allocations(_i);
}
END_TEST

START_TEST(storage_that_fails_while_a_record_is_looked_for_is_an_error)
{
    plan.kind[4] = BAD_RECORDS_UNREADABLE;
    layer_fixture fixture;
    ck_assert_int_eq(create_layer(&fixture), LEAT_OK);
    leat_data_layer_cancel(fixture.layer);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_ECANCELLED);
    layer_fixture_close(&fixture);
}
END_TEST

/* Forwards until one fails, which must be this way; how many did not. */
static int forward_until(layer_fixture *fixture, int expected, const char *line)
{
    int n = 0, status;
    while ((status = layer_fixture_forward(fixture)) == LEAT_OK)
        ck_assert_int_lt(n++, 1000);
    ck_assert_int_eq(status, expected);
    ck_assert_msg(strstr(leat_last_error(), line) != NULL, "%s",
                  leat_last_error());
    return n;
}

/*
 * Of two ranks' records the second takes the odd ones, and sees the even ones
 * only where it looks back from a bad one: within a batch, or at its beginning
 * for a shape.
 */
START_TEST(storage_that_fails_under_another_ranks_record_is_an_error)
{
    static const struct {
        int broken, bad, batches, is_first;
    } cases[] = {{2, 3, 0, 0}, {8, 9, 1, 1}, {12, 13, 1, 0}, {18, 19, 2, 0}};
    options.world_size = 2;
    options.rank = 1;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        layer_fixture fixture;
        memset(plan.kind, 0, sizeof(plan.kind));
        plan.kind[cases[i].broken] = BAD_RECORDS_BROKEN;
        plan.kind[cases[i].bad] = BAD_RECORDS_UNREADABLE;
        ck_assert_int_eq(create_layer(&fixture), LEAT_OK);
        ck_assert_int_eq(forward_until(&fixture, LEAT_EIO,
                                       "planted: storage fails at record"),
                         cases[i].batches);
        layer_fixture_close(&fixture);
        /* Zeros need nobody's record, but the shape of one. */
        options.on_error = LEAT_ON_ERROR_ZERO;
        ck_assert_int_eq(create_layer(&fixture), LEAT_OK);
        for (int b = 0; b < 3 && !cases[i].is_first; b++)
            ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        layer_fixture_close(&fixture);
        options.on_error = LEAT_ON_ERROR_REPLACE;
    }
}
END_TEST

/*
 * Behind a resume nothing is known but what is read again, for a shape by
 * restore itself.
 */
START_TEST(storage_that_fails_after_a_resume_is_an_error)
{
    leat_token token;
    layer_fixture fixture;
    plan.kind[4] = BAD_RECORDS_UNREADABLE;
    save_after(&token, 1);
    /* What workers meet before is over with restore. */
    plan.kind[3] = BAD_RECORDS_BROKEN;
    ck_assert_int_eq(create_layer(&fixture), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_restore(fixture.layer, &token), LEAT_EIO);
    ck_assert_str_eq(leat_last_error(), "planted: storage fails at record 3");
    layer_fixture_close(&fixture);
    /* A record that tells its shape, and is bad nevertheless. */
    plan.kind[4] = BAD_RECORDS_SHORT;
    ck_assert_int_eq(create_layer(&fixture), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_restore(fixture.layer, &token), LEAT_OK);
    ck_assert_int_eq(
        forward_until(&fixture, LEAT_EIO, "planted: storage fails at record 3"),
        0);
    layer_fixture_close(&fixture);
    leat_token_finish(&token);
}
END_TEST

static atomic_int hooks_left; /* calls of the hook until one gives nothing */

static void *give(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    void *memory;
    if (atomic_fetch_sub(&hooks_left, 1) == 0 ||
        posix_memalign(&memory, alignment, bytes))
        return NULL;
    return memory;
}

static void take_back(void *user, void *memory, size_t bytes, size_t alignment)
{
    (void)user, (void)bytes, (void)alignment;
    free(memory);
}

/* As a_slot_that_grows_for_another_ranks_shape_is_counted. */
START_TEST(memory_that_is_short_for_a_larger_replacement_is_an_error)
{
    static const leat_allocator hooks = {
        .size = sizeof(hooks), .alloc = give, .free = take_back};
    for (int i = 0; i < plan.count; i++)
        plan.kind[i] = BAD_RECORDS_SMALL;
    plan.kind[8] = BAD_RECORDS_GOOD;
    plan.kind[9] = BAD_RECORDS_UNREADABLE;
    options.world_size = 2;
    options.rank = 1;
    options.prefetch = 1;
    options.host_allocator = &hooks;
    int failed_later = 0, status = LEAT_ENOMEM;
    for (int n = 0; status != LEAT_OK; n++) {
        layer_fixture fixture;
        ck_assert_int_lt(n, 100);
        atomic_store(&hooks_left, n);
        status = create_layer(&fixture);
        int is_set_up = status == LEAT_OK;
        for (int b = 0; b < 3 && status == LEAT_OK; b++)
            status = layer_fixture_forward(&fixture);
        ck_assert_msg(status == LEAT_OK || status == LEAT_ENOMEM, "%s",
                      leat_last_error());
        failed_later += is_set_up && status;
        layer_fixture_close(&fixture);
    }
    ck_assert_int_gt(failed_later, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("replacement");
    TCase *tcase = tcase_create("replacement");
    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_set_timeout(tcase, 60);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, a_bad_place_gets_the_record_before_it);
    tcase_add_test(tcase,
                   the_end_of_the_epoch_before_stands_in_for_its_beginning);
    tcase_add_test(tcase, a_record_replaces_none_of_the_epoch_after_the_next);
    tcase_add_test(tcase, any_layer_delivers_what_the_model_does);
    tcase_add_test(tcase,
                   so_it_does_after_a_resume_at_any_batch_by_other_ranks);
    tcase_add_test(tcase, several_ranks_cannot_skip_in_what_is_read_in_order);
    tcase_add_test(
        tcase,
        a_bad_first_record_is_no_error_of_setup_where_one_tells_the_shape);
    tcase_add_test(tcase, a_long_run_of_bad_batches_is_read_back_a_few_times);
    tcase_add_test(tcase, a_slot_that_grows_for_another_ranks_shape_is_counted);
    tcase_add_test(tcase, a_single_pass_of_bad_records_ends);
    tcase_add_loop_test(tcase,
                        a_failed_allocation_is_an_error_and_leaks_nothing, 0,
                        BAD_RECORDS_WAYS);
    tcase_add_test(tcase,
                   storage_that_fails_while_a_record_is_looked_for_is_an_error);
    tcase_add_test(tcase,
                   storage_that_fails_under_another_ranks_record_is_an_error);
    tcase_add_test(tcase, storage_that_fails_after_a_resume_is_an_error);
    tcase_add_test(tcase,
                   memory_that_is_short_for_a_larger_replacement_is_an_error);
    return suite_run(suite);
}
