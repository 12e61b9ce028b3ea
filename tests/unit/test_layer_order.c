/* Law 3: what stands at a position depends on nothing but the position. */
#include "base/random.h"
#include "support/layer_fixture.h"
#include "support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define BATCHES 12

static leat_pipeline *pipeline;
static leat_data_layer_options options;
static leat_transform_options transform;

static void set_up(void)
{
    layer_fixture_options(&options, &transform);
    transform.crop_size = 3;
    transform.mirror = 1;
    options.batch_size = 5;
    options.random_seed = 1701;
    pipeline = layer_fixture_pipeline();
}

static void tear_down(void)
{
    leat_pipeline_unref(pipeline);
}

static void digests(uint32_t out[BATCHES])
{
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    for (int i = 0; i < BATCHES; i++) {
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        out[i] = layer_fixture_digest(&fixture);
    }
    layer_fixture_close(&fixture);
}

/* Every way to run a layer: threads, depth, who reads, who helps. */
static void check_all_ways(void)
{
    uint32_t first[BATCHES];
    digests(first);
    static const int workers[] = {1, 2, 8};
    for (int w = 0; w < 3; w++)
        for (int thread = 0; thread < 3; thread++)
            for (int help = 0; help < 2; help++)
                for (int prefetch = 1; prefetch < 8; prefetch += 3) {
                    uint32_t again[BATCHES];
                    options.workers = workers[w];
                    options.reader_thread = (leat_reader_thread)thread;
                    options.caller_helps =
                        help ? LEAT_CALLER_HELPS_AUTO : LEAT_CALLER_HELPS_OFF;
                    options.prefetch = prefetch;
                    digests(again);
                    ck_assert_mem_eq(first, again, sizeof(first));
                }
}

START_TEST(the_bytes_are_the_same_for_any_number_of_threads)
{
    check_all_ways();
}
END_TEST

START_TEST(so_they_are_on_the_only_core)
{
    layer_fixture_use_one_core(1);
    check_all_ways();
    layer_fixture_use_one_core(0);
}
END_TEST

START_TEST(so_they_are_with_caffes_generator)
{
    options.rng = LEAT_RNG_CAFFE;
    check_all_ways();
}
END_TEST

START_TEST(so_they_are_for_a_rank_among_several)
{
    options.world_size = 3;
    options.rank = 1;
    check_all_ways();
}
END_TEST

START_TEST(each_epoch_has_choices_of_its_own)
{
    options.batch_size = LAYER_FIXTURE_COUNT;
    uint32_t out[BATCHES];
    digests(out);
    int same = 0;
    for (int i = 1; i < BATCHES; i++)
        same += out[i] == out[0];
    ck_assert_int_eq(same, 0);
}
END_TEST

START_TEST(another_seed_gives_other_choices)
{
    uint32_t one[BATCHES];
    uint32_t two[BATCHES];
    digests(one);
    options.random_seed++;
    digests(two);
    ck_assert_mem_ne(one, two, sizeof(one));
}
END_TEST

/* Caffe's chain by hand: mirror, then row, then column. */
START_TEST(caffes_generator_gives_caffes_crops)
{
    options.rng = LEAT_RNG_CAFFE;
    leat__mt19937 parent;
    leat__mt19937 child;
    leat__mt19937_seed(&parent, 1701);
    leat__mt19937_next(&parent);
    leat__mt19937_seed(&child, leat__mt19937_next(&parent));
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    for (int p = 0; p < 60; p++) {
        if (p % 5 == 0)
            ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        int mirror = (int)(leat__mt19937_next(&child) % 2);
        int row = (int)(leat__mt19937_next(&child) % 3);
        int column = (int)(leat__mt19937_next(&child) % 4);
        const float *image =
            (const float *)leat_blob_cpu_data(fixture.top[0]) + p % 5 * 18;
        for (int c = 0; c < 2; c++)
            for (int h = 0; h < 3; h++)
                for (int w = 0; w < 3; w++)
                    ck_assert_float_eq(
                        image[(c * 3 + h) * 3 + (mirror ? 2 - w : w)],
                        (float)layer_fixture_pixel(p % LAYER_FIXTURE_COUNT, c,
                                                   row + h, column + w));
    }
    layer_fixture_close(&fixture);
}
END_TEST

/* CASES.md: solver_count 8 over 5 records, and any other division. */
START_TEST(ranks_take_positions_modulo_their_number)
{
    for (int world = 1; world <= 8; world++)
        for (int rank = 0; rank < world; rank++) {
            options.world_size = world;
            options.rank = rank;
            layer_fixture fixture = layer_fixture_open(pipeline, &options);
            for (int i = 0; i < 50; i++) {
                if (i % 5 == 0)
                    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
                int p = i * world + rank;
                ck_assert_float_eq(layer_fixture_label(&fixture, i % 5),
                                   (float)(1000 + p % LAYER_FIXTURE_COUNT));
                const leat_provenance *from =
                    &leat_data_layer_batch(fixture.layer)->from[i % 5];
                ck_assert_int_eq(from->epoch, p / LAYER_FIXTURE_COUNT);
            }
            layer_fixture_close(&fixture);
        }
}
END_TEST

START_TEST(in_test_every_rank_takes_everything_unless_told_otherwise)
{
    options.phase = LEAT_TEST;
    options.world_size = 3;
    options.rank = 2;
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_float_eq(layer_fixture_label(&fixture, 0), 1000);
    ck_assert_float_eq(layer_fixture_label(&fixture, 1), 1001);
    layer_fixture_close(&fixture);
    options.shard_test = 1;
    fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_float_eq(layer_fixture_label(&fixture, 0), 1002);
    ck_assert_float_eq(layer_fixture_label(&fixture, 1), 1005);
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(ranks_that_choose_at_random_need_a_seed)
{
    options.world_size = 2;
    options.random_seed = -1;
    leat_data_layer *layer;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_EINVAL);
    options.transform = NULL;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    leat_data_layer_destroy(layer);
}
END_TEST

START_TEST(a_global_batch_is_divided_between_the_ranks)
{
    options.batch_size = 0;
    options.global_batch_size = 6;
    options.world_size = 3;
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    ck_assert_int_eq(leat_blob_dim(fixture.top[0], 0), 2);
    layer_fixture_close(&fixture);
    options.global_batch_size = 7;
    leat_data_layer *layer;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_EINVAL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layer_order");
    TCase *tcase = tcase_create("layer_order");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, the_bytes_are_the_same_for_any_number_of_threads);
    tcase_add_test(tcase, so_they_are_on_the_only_core);
    tcase_add_test(tcase, so_they_are_with_caffes_generator);
    tcase_add_test(tcase, so_they_are_for_a_rank_among_several);
    tcase_add_test(tcase, each_epoch_has_choices_of_its_own);
    tcase_add_test(tcase, another_seed_gives_other_choices);
    tcase_add_test(tcase, caffes_generator_gives_caffes_crops);
    tcase_add_test(tcase, ranks_take_positions_modulo_their_number);
    tcase_add_test(tcase,
                   in_test_every_rank_takes_everything_unless_told_otherwise);
    tcase_add_test(tcase, ranks_that_choose_at_random_need_a_seed);
    tcase_add_test(tcase, a_global_batch_is_divided_between_the_ranks);
    return suite_run(suite);
}
