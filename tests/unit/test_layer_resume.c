/* A resumed layer goes on as if it had never stopped. */
#include "base/memory.h"
#include "support/index_decorators.h"
#include "support/layer_fixture.h"
#include "support/suite.h"

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define BATCHES 14

static leat_pipeline *pipeline;
static leat_data_layer_options options;
static leat_transform_options transform;

static void set_up(void)
{
    layer_fixture_options(&options, &transform);
    transform.crop_size = 3;
    transform.mirror = 1;
    options.batch_size = 4;
    options.random_seed = 99;
    pipeline = layer_fixture_pipeline();
}

static void tear_down(void)
{
    leat_pipeline_unref(pipeline);
}

/* Saves after each of BATCHES batches, and remembers what came. */
static void record(leat_token token[BATCHES + 1], uint32_t digest[BATCHES])
{
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    for (int i = 0; i <= BATCHES; i++) {
        leat_token_init(&token[i]);
        ck_assert_int_eq(leat_data_layer_save(fixture.layer, &token[i]),
                         LEAT_OK);
        if (i == BATCHES)
            break;
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        digest[i] = layer_fixture_digest(&fixture);
    }
    layer_fixture_close(&fixture);
}

static void check_every_place(void)
{
    leat_token token[BATCHES + 1];
    uint32_t digest[BATCHES];
    record(token, digest);
    options.workers = 3;
    options.prefetch = 2;
    for (int i = 0; i < BATCHES; i++) {
        layer_fixture fixture = layer_fixture_open(pipeline, &options);
        leat_token read;
        leat_token_init(&read);
        ck_assert_int_eq(leat_token_parse(&read, leat_token_text(&token[i])),
                         LEAT_OK);
        int status = leat_data_layer_restore(fixture.layer, &read);
        ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
        for (int k = i; k < BATCHES; k++) {
            ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
            ck_assert_uint_eq(layer_fixture_digest(&fixture), digest[k]);
        }
        leat_token_finish(&read);
        layer_fixture_close(&fixture);
    }
    for (int i = 0; i <= BATCHES; i++)
        leat_token_finish(&token[i]);
}

START_TEST(a_layer_resumes_at_every_batch)
{
    check_every_place();
}
END_TEST

START_TEST(so_it_does_with_caffes_generator)
{
    options.rng = LEAT_RNG_CAFFE;
    check_every_place();
}
END_TEST

/* Its words are not drawn up to there, which would take centuries. */
START_TEST(caffes_generator_resumes_wherever_it_is)
{
    const uint64_t position = (uint64_t)1 << 59;
    const uint32_t place[] = {(uint32_t)position, (uint32_t)(position >> 32)};
    options.rng = LEAT_RNG_CAFFE;
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    leat_token token;
    leat_token_init(&token);
    ck_assert_int_eq(leat_data_layer_save(fixture.layer, &token), LEAT_OK);
    memcpy(token.bytes + 4, place, sizeof(place));
    ck_assert_int_eq(leat_data_layer_restore(fixture.layer, &token), LEAT_OK);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_float_eq(layer_fixture_label(&fixture, 0),
                       (float)(1000 + position % LAYER_FIXTURE_COUNT));
    layer_fixture_close(&fixture);
    leat_token_finish(&token);
}
END_TEST

START_TEST(so_does_a_rank_among_several)
{
    options.world_size = 3;
    options.rank = 2;
    check_every_place();
}
END_TEST

/* The ranks' images of a step, in order of their positions. */
static void next_step(layer_fixture fixture[], int world, int n, float labels[],
                      int *count)
{
    for (int r = 0; r < world; r++)
        ck_assert_int_eq(layer_fixture_forward(&fixture[r]), LEAT_OK);
    int base = *count;
    for (int r = 0; r < world; r++)
        for (int i = 0; i < n; i++) {
            const leat_provenance *from =
                &leat_data_layer_batch(fixture[r].layer)->from[i];
            int64_t p = from->epoch * LAYER_FIXTURE_COUNT + from->position;
            ck_assert_int_ge(p, base);
            ck_assert_int_lt(p, base + world * n);
            labels[p] = layer_fixture_label(&fixture[r], i);
        }
    *count += world * n;
}

START_TEST(another_number_of_ranks_and_batch_size_loses_nothing)
{
    float labels[200] = {0};
    int count = 0;
    options.world_size = 2;
    options.batch_size = 3;
    layer_fixture fixture[5];
    for (int r = 0; r < 2; r++) {
        options.rank = r;
        fixture[r] = layer_fixture_open(pipeline, &options);
    }
    for (int step = 0; step < 7; step++)
        next_step(fixture, 2, 3, labels, &count);
    leat_token token[2];
    for (int r = 0; r < 2; r++) {
        leat_token_init(&token[r]);
        ck_assert_int_eq(leat_data_layer_save(fixture[r].layer, &token[r]),
                         LEAT_OK);
        layer_fixture_close(&fixture[r]);
    }
    ck_assert_str_eq(leat_token_text(&token[0]), leat_token_text(&token[1]));
    options.world_size = 5;
    options.batch_size = 2;
    for (int r = 0; r < 5; r++) {
        options.rank = r;
        fixture[r] = layer_fixture_open(pipeline, &options);
        ck_assert_int_eq(leat_data_layer_restore(fixture[r].layer, &token[0]),
                         LEAT_OK);
    }
    for (int step = 0; step < 7; step++)
        next_step(fixture, 5, 2, labels, &count);
    for (int p = 0; p < count; p++)
        ck_assert_float_eq(labels[p], (float)(1000 + p % LAYER_FIXTURE_COUNT));
    for (int r = 0; r < 5; r++)
        layer_fixture_close(&fixture[r]);
    leat_token_finish(&token[0]);
    leat_token_finish(&token[1]);
}
END_TEST

START_TEST(the_token_fits_its_bounds_and_carries_the_drawn_seed)
{
    options.random_seed = -1;
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    leat_token token;
    leat_token_init(&token);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    uint32_t first = layer_fixture_digest(&fixture);
    ck_assert_int_eq(leat_data_layer_save(fixture.layer, &token), LEAT_OK);
    ck_assert_uint_le(strlen(leat_token_text(&token)), 64 + 32);
    uint64_t seed = leat_data_layer_seed(fixture.layer);
    layer_fixture_close(&fixture);
    fixture = layer_fixture_open(pipeline, &options);
    ck_assert_uint_ne(leat_data_layer_seed(fixture.layer), seed);
    ck_assert_int_eq(leat_data_layer_restore(fixture.layer, &token), LEAT_OK);
    ck_assert_uint_eq(leat_data_layer_seed(fixture.layer), seed);
    layer_fixture_close(&fixture);
    options.random_seed = (int64_t)seed;
    fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_uint_eq(layer_fixture_digest(&fixture), first);
    layer_fixture_close(&fixture);
    leat_token_finish(&token);
}
END_TEST

static uint64_t number_at(const leat_token *token, size_t at, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t)token->bytes[at + i] << (8 * i);
    return value;
}

/* The table in docs/architecture.md: tokens of earlier versions are read. */
START_TEST(a_tokens_bytes_are_as_documented)
{
    options.world_size = 2;
    options.rng = _i ? LEAT_RNG_CAFFE : LEAT_RNG_LEAT;
    options.random_seed = ((int64_t)5 << 32) + 6;
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    leat_token token;
    leat_token_init(&token);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_save(fixture.layer, &token), LEAT_OK);
    /* What the reader puts there, of memory the number of samples. */
    ck_assert_uint_eq(token.size, 44 + 8);
    ck_assert_uint_eq(number_at(&token, 0, 1), 1);
    ck_assert_uint_eq(number_at(&token, 1, 1), (uint64_t)_i);
    ck_assert_uint_eq(number_at(&token, 2, 2), 2);
    ck_assert_uint_eq(number_at(&token, 4, 8), 5 * 4 * 2);
    /* The index may lie after the epoch's end. */
    ck_assert_uint_eq(number_at(&token, 12, 8) * LAYER_FIXTURE_COUNT +
                          number_at(&token, 20, 8),
                      5 * 4 * 2);
    ck_assert_uint_eq(number_at(&token, 28, 8), ((uint64_t)5 << 32) + 6);
    ck_assert_uint_eq(number_at(&token, 44, 8), LAYER_FIXTURE_COUNT);
    leat_token_finish(&token);
    layer_fixture_close(&fixture);
}
END_TEST

static void set_place(leat_token *token, int64_t position, int64_t epoch,
                      int64_t index)
{
    const int64_t place[] = {position, epoch, index};
    memcpy(token->bytes + 4, place, sizeof(place));
}

/* Places beyond 32 bits, up to the last one. */
START_TEST(a_place_may_be_as_far_as_two_to_the_sixty)
{
    static const int64_t places[] = {0,
                                     1,
                                     LAYER_FIXTURE_COUNT,
                                     ((int64_t)1 << 32) - 1,
                                     ((int64_t)1 << 32) + 7,
                                     ((int64_t)1 << 60) - 1,
                                     (int64_t)1 << 60};
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    leat_token token, again;
    leat_token_init(&token);
    leat_token_init(&again);
    ck_assert_int_eq(leat_data_layer_save(fixture.layer, &token), LEAT_OK);
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        int64_t p = places[i];
        set_place(&token, p, p / LAYER_FIXTURE_COUNT, p % LAYER_FIXTURE_COUNT);
        ck_assert_msg(leat_data_layer_restore(fixture.layer, &token) == LEAT_OK,
                      "%s", leat_last_error());
        ck_assert_int_eq(leat_data_layer_save(fixture.layer, &again), LEAT_OK);
        ck_assert_mem_eq(again.bytes, token.bytes, token.size);
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        const leat_provenance *from =
            leat_data_layer_batch(fixture.layer)->from;
        ck_assert_int_eq(from->epoch, p / LAYER_FIXTURE_COUNT);
        ck_assert_int_eq(from->position, p % LAYER_FIXTURE_COUNT);
        ck_assert_float_eq(layer_fixture_label(&fixture, 0),
                           (float)(1000 + p % LAYER_FIXTURE_COUNT));
    }
    leat_token_finish(&token);
    leat_token_finish(&again);
    layer_fixture_close(&fixture);
}
END_TEST

static void refuse(const leat_token *saved, leat_pipeline *other)
{
    layer_fixture fixture = layer_fixture_open(other, &options);
    leat_token token = *saved;
    ck_assert_int_eq(leat_data_layer_restore(fixture.layer, &token),
                     LEAT_EINVAL);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    layer_fixture_close(&fixture);
}

START_TEST(a_token_of_something_else_is_refused_and_changes_nothing)
{
    static const unsigned char byte[2] = {0};
    const leat_memory_field fields[] = {{"data", LEAT_UINT8, 1, {1}, byte},
                                        {"label", LEAT_UINT8, 0, {0}, byte}};
    leat_pipeline *other;
    ck_assert_int_eq(leat_pipeline_memory(&other, fields, 2, 2), LEAT_OK);
    leat_token token;
    leat_token_init(&token);
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(leat_data_layer_save(fixture.layer, &token), LEAT_OK);
    layer_fixture_close(&fixture);
    options.random_seed++;
    refuse(&token, pipeline);
    options.random_seed--;
    options.rng = LEAT_RNG_CAFFE;
    refuse(&token, pipeline);
    options.rng = LEAT_RNG_LEAT;
    options.transform = NULL;
    refuse(&token, other);
    leat_token_finish(&token);
    leat_pipeline_unref(other);
}
END_TEST

/* Where position, epoch and index stand in the token. */
enum { POSITION = 4, EPOCH = 12, INDEX = 20 };

static void refuse_place(leat_token *token, uint64_t position, uint64_t epoch,
                         uint64_t index)
{
    memcpy(token->bytes + POSITION, &position, sizeof(position));
    memcpy(token->bytes + EPOCH, &epoch, sizeof(epoch));
    memcpy(token->bytes + INDEX, &index, sizeof(index));
    refuse(token, pipeline);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "names no position"));
}

/* As no layer saves it, so that nothing is counted from there. */
START_TEST(a_token_of_no_place_is_refused_and_changes_nothing)
{
    const uint64_t most = (uint64_t)1 << 60, negative = (uint64_t)-1;
    leat_token token;
    leat_token_init(&token);
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_save(fixture.layer, &token), LEAT_OK);
    layer_fixture_close(&fixture);
    refuse_place(&token, most + 1, 1, 7);
    refuse_place(&token, negative, 1, 7);
    refuse_place(&token, 20, 21, 7);
    refuse_place(&token, 20, negative, 7);
    refuse_place(&token, 20, 1, 21);
    refuse_place(&token, 20, 1, negative);
    leat_token_finish(&token);
}
END_TEST

static leat_pipeline *shuffled(const char *arguments)
{
    leat_pipeline *made;
    ck_assert_int_eq(leat_pipeline_create(&made, index_decorators_shuffle(),
                                          arguments, NULL, NULL, &pipeline, 1),
                     LEAT_OK);
    return made;
}

/* With another seed other records would come, and nobody would notice. */
START_TEST(another_seed_of_a_decorator_is_refused)
{
    leat_pipeline *saved = shuffled("seed=3");
    leat_pipeline *same = shuffled("seed=3");
    leat_pipeline *other = shuffled("seed=4");
    leat_token token;
    leat_token_init(&token);
    layer_fixture fixture = layer_fixture_open(saved, &options);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_save(fixture.layer, &token), LEAT_OK);
    layer_fixture_close(&fixture);
    refuse(&token, other);
    refuse(&token, pipeline);
    fixture = layer_fixture_open(other, &options);
    ck_assert_int_eq(leat_data_layer_restore(fixture.layer, &token),
                     LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "another pipeline's"));
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "seed=4"));
    layer_fixture_close(&fixture);
    fixture = layer_fixture_open(same, &options);
    ck_assert_int_eq(leat_data_layer_restore(fixture.layer, &token), LEAT_OK);
    layer_fixture_close(&fixture);
    leat_token_finish(&token);
    leat_pipeline_unref(saved);
    leat_pipeline_unref(same);
    leat_pipeline_unref(other);
}
END_TEST

START_TEST(caffes_generator_is_bound_to_its_world_size)
{
    options.rng = LEAT_RNG_CAFFE;
    options.world_size = 2;
    leat_token token;
    leat_token_init(&token);
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(leat_data_layer_save(fixture.layer, &token), LEAT_OK);
    layer_fixture_close(&fixture);
    options.world_size = 4;
    refuse(&token, pipeline);
    leat_token_finish(&token);
}
END_TEST

/* The Nth allocation of a restore fails: no other samples come after it.
   Workers, which allocate at any time, are not to take the failure. */
START_TEST(a_restore_that_finds_no_memory_is_an_error)
{
    static const char *const texts[] = {
        "(range:50) (range:50,100) | chain | shuffle:7,seed=3",
        "range:100 | shuffle:7,seed=3", "range:100 | shuffle:7,seed=3 | cache"};
    leat_data_layer_options plain = LEAT_DATA_LAYER_OPTIONS_INIT;
    const leat_top top = {.size = sizeof(top), .name = "value"};
    leat_pipeline *chain;
    leat_token token;
    uint32_t expected = 0;
    plain.top = &top;
    plain.ntop = 1;
    plain.batch_size = 5;
    plain.workers = 1;
    leat_token_init(&token);
    ck_assert_int_eq(leat_pipeline_parse(&chain, texts[_i]), LEAT_OK);
    int n = -1;
    for (bool is_over = false; !is_over; n++) {
        leat_data_layer *layer;
        ck_assert_int_eq(leat_data_layer_create(&layer, chain, &plain), 0);
        ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_OK);
        for (int i = 0; i < 4 && n < 0; i++)
            ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST),
                             LEAT_OK);
        if (n < 0)
            ck_assert_int_eq(leat_data_layer_save(layer, &token), LEAT_OK);
        leat__alloc_fail_own(n);
        int status = n < 0 ? LEAT_OK : leat_data_layer_restore(layer, &token);
        is_over = leat__alloc_fail_own(-1) >= 0;
        ck_assert_int_eq(status, is_over || n < 0 ? LEAT_OK : LEAT_ENOMEM);
        if (status && leat_data_layer_slots(layer) < 0)
            ck_assert_ptr_nonnull(strstr(leat_last_error(),
                                         "no slots after a restore that "
                                         "failed"));
        if (status)
            ck_assert_int_eq(leat_data_layer_restore(layer, &token), LEAT_OK);
        ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST),
                         LEAT_OK);
        uint32_t value;
        memcpy(&value, leat_blob_cpu_data(leat_data_layer_top(layer, 0)),
               sizeof(value));
        expected = n < 0 ? value : expected;
        ck_assert_uint_eq(value, expected);
        leat_data_layer_destroy(layer);
    }
    ck_assert_int_gt(n, 4);
    leat_token_finish(&token);
    leat_pipeline_unref(chain);
}
END_TEST

START_TEST(a_cancelled_layer_lives_again_after_restore)
{
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    leat_token token;
    leat_token_init(&token);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_save(fixture.layer, &token), LEAT_OK);
    leat_data_layer_cancel(fixture.layer);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_ECANCELLED);
    ck_assert_int_eq(leat_data_layer_restore(fixture.layer, &token), LEAT_OK);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_float_eq(layer_fixture_label(&fixture, 0), 1004);
    leat_token_finish(&token);
    layer_fixture_close(&fixture);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layer_resume");
    TCase *tcase = tcase_create("layer_resume");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, a_layer_resumes_at_every_batch);
    tcase_add_test(tcase, so_it_does_with_caffes_generator);
    tcase_add_test(tcase, caffes_generator_resumes_wherever_it_is);
    tcase_add_test(tcase, so_does_a_rank_among_several);
    tcase_add_test(tcase, another_number_of_ranks_and_batch_size_loses_nothing);
    tcase_add_test(tcase, the_token_fits_its_bounds_and_carries_the_drawn_seed);
    tcase_add_loop_test(tcase, a_tokens_bytes_are_as_documented, 0, 2);
    tcase_add_test(tcase, a_place_may_be_as_far_as_two_to_the_sixty);
    tcase_add_test(tcase,
                   a_token_of_something_else_is_refused_and_changes_nothing);
    tcase_add_test(tcase, a_token_of_no_place_is_refused_and_changes_nothing);
    tcase_add_test(tcase, another_seed_of_a_decorator_is_refused);
    tcase_add_test(tcase, caffes_generator_is_bound_to_its_world_size);
    tcase_add_loop_test(tcase, a_restore_that_finds_no_memory_is_an_error, 0,
                        3);
    tcase_add_test(tcase, a_cancelled_layer_lives_again_after_restore);
    return suite_run(suite);
}
