/* A group goes on where another, or a layer, stopped. */
#include "support/group_fixture.h"
#include "support/layer_fixture.h"
#include "support/suite.h"

#include <check.h>

static void save_after(const leat_pipeline *pipeline, int n, int batches,
                       leat_token *token)
{
    group_fixture group =
        group_fixture_open(pipeline, &group_options, group_mixed, n);
    for (int k = 0; k < batches; k++)
        ck_assert_int_eq(group_fixture_forward(&group, k % n), LEAT_OK);
    leat_token_init(token);
    ck_assert_int_eq(leat_data_layer_group_save(group.group, token), LEAT_OK);
    group_fixture_close(&group);
}

static void check_resumed(const leat_pipeline *pipeline, int n, int begin,
                          const uint32_t digest[], leat_token *token)
{
    group_fixture group =
        group_fixture_open(pipeline, &group_options, group_on_late, n);
    ck_assert_int_eq(group_fixture_forward(&group, 0), LEAT_OK);
    int status = leat_data_layer_group_restore(group.group, token);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    for (int k = begin; k < GROUP_BATCHES; k++) {
        int i = (k - begin) % n;
        ck_assert_int_eq(group_fixture_forward(&group, i), LEAT_OK);
        ck_assert_uint_eq(group_fixture_digest(&group, i), digest[k]);
        ck_assert_int_eq(
            leat_data_layer_batch(group_fixture_member(&group, i))->number, k);
    }
    group_fixture_close(&group);
}

static void check_resumed_alone(const leat_pipeline *pipeline, int begin,
                                const uint32_t digest[], leat_token *token)
{
    layer_fixture fixture = layer_fixture_open(pipeline, &group_options);
    ck_assert_int_eq(leat_data_layer_restore(fixture.layer, token), LEAT_OK);
    for (int k = begin; k < GROUP_BATCHES; k++) {
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        ck_assert_uint_eq(layer_fixture_digest(&fixture), digest[k]);
    }
    layer_fixture_close(&fixture);
}

static void check_all_resumes(const leat_pipeline *pipeline)
{
    uint32_t digest[GROUP_BATCHES];
    group_record(pipeline, digest, GROUP_BATCHES);
    for (int n = 1; n <= 3; n++)
        for (int begin = 0; begin < 8; begin++) {
            leat_token token;
            save_after(pipeline, n, begin, &token);
            for (int other = 1; other <= 3; other++)
                check_resumed(pipeline, other, begin, digest, &token);
            check_resumed_alone(pipeline, begin, digest, &token);
            leat_token_finish(&token);
        }
}

START_TEST(another_number_of_devices_goes_on_where_a_group_stopped)
{
    leat_pipeline *pipeline = layer_fixture_pipeline();
    group_transform_at_random();
    group_options.rng = _i ? LEAT_RNG_CAFFE : LEAT_RNG_LEAT;
    group_options.world_size = _i < 2 ? 1 : 2;
    check_all_resumes(pipeline);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(so_it_does_over_a_chain_of_random_access)
{
    leat_pipeline *pipeline = group_shuffled_pipeline();
    group_transform_at_random();
    check_all_resumes(pipeline);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(a_group_goes_on_where_a_layer_stopped)
{
    leat_pipeline *pipeline = layer_fixture_pipeline();
    uint32_t digest[GROUP_BATCHES];
    leat_token token;
    leat_token_init(&token);
    group_record(pipeline, digest, GROUP_BATCHES);
    layer_fixture fixture = layer_fixture_open(pipeline, &group_options);
    for (int k = 0; k < 5; k++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_save(fixture.layer, &token), LEAT_OK);
    layer_fixture_close(&fixture);
    check_resumed(pipeline, 2, 5, digest, &token);
    leat_token_finish(&token);
    leat_pipeline_unref(pipeline);
}
END_TEST

START_TEST(members_that_stand_apart_cannot_be_saved)
{
    leat_pipeline *pipeline = layer_fixture_pipeline();
    group_fixture group =
        group_fixture_open(pipeline, &group_options, group_on_cpu, 3);
    leat_token token;
    leat_token_init(&token);
    ck_assert_int_eq(group_fixture_forward(&group, 2), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_group_save(group.group, &token),
                     LEAT_ESTATE);
    /* Of two that are as far behind the first. */
    ck_assert_str_eq(leat_last_error(),
                     "data: save while members stand apart: data[0] is "
                     "behind, with 0 of the 1 batches taken");
    ck_assert_int_eq(group_fixture_forward(&group, 0), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_group_save(group.group, &token),
                     LEAT_ESTATE);
    ck_assert_str_eq(leat_last_error(),
                     "data: save while members stand apart: data[1] is "
                     "behind, with 0 of the 2 batches taken");
    ck_assert_uint_eq(token.size, 0);
    ck_assert_int_eq(group_fixture_forward(&group, 1), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_group_save(group.group, &token), LEAT_OK);
    leat_token_finish(&token);
    group_fixture_close(&group);
    leat_pipeline_unref(pipeline);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("group_resume");
    tcase_add_checked_fixture(tcase, group_set_up, group_tear_down);
    tcase_set_timeout(tcase, 2 * GROUP_SECONDS);
    tcase_add_loop_test(
        tcase, another_number_of_devices_goes_on_where_a_group_stopped, 0, 3);
    tcase_add_test(tcase, so_it_does_over_a_chain_of_random_access);
    tcase_add_test(tcase, a_group_goes_on_where_a_layer_stopped);
    tcase_add_test(tcase, members_that_stand_apart_cannot_be_saved);
    Suite *suite = suite_create("group_resume");
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
