/* Tops that the layer makes for a caller who brings none. */
#include "support/layer_fixture.h"
#include "support/scripted_source.h"
#include "support/suite.h"

#include <check.h>
#include <string.h>

static leat_pipeline *pipeline;
static leat_data_layer_options options;
static leat_transform_options transform;
static leat_data_layer *layer;

static void set_up(void)
{
    layer_fixture_options(&options, &transform);
    options.batch_size = 4;
    options.random_seed = 7;
    pipeline = layer_fixture_pipeline();
}

static void tear_down(void)
{
    leat_data_layer_destroy(layer);
    layer = NULL;
    leat_pipeline_unref(pipeline);
}

static void create(void)
{
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
}

static void assert_none(int i)
{
    ck_assert_ptr_null(leat_data_layer_top(layer, i));
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "there is no top"));
}

START_TEST(the_layers_own_tops_get_what_the_callers_would)
{
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    create();
    assert_none(0);
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_OK);
    layer_fixture own = {layer, {NULL, NULL}};
    for (int i = 0; i < 2; i++) {
        own.top[i] = leat_data_layer_top(layer, i);
        ck_assert_int_eq(leat_blob_ndim(own.top[i]),
                         leat_blob_ndim(fixture.top[i]));
        ck_assert_mem_eq(leat_blob_shape(own.top[i]),
                         leat_blob_shape(fixture.top[i]),
                         (size_t)leat_blob_ndim(own.top[i]) * sizeof(int64_t));
    }
    assert_none(2);
    assert_none(-1);
    for (int batch = 0; batch < 20; batch++) {
        int status = batch % 2
                         ? leat_data_layer_forward(layer, NULL, 0, LEAT_HOST)
                         : leat_data_layer_try_forward(layer, NULL, 0,
                                                       LEAT_HOST, 100000);
        ck_assert_int_eq(status, LEAT_OK);
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
        ck_assert_uint_eq(layer_fixture_digest(&own),
                          layer_fixture_digest(&fixture));
    }
    ck_assert_ptr_eq(leat_data_layer_top(layer, 0), own.top[0]);
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(there_are_as_many_as_are_named)
{
    static const char *const names[] = {"pixels", NULL};
    options.tops = names;
    create();
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_top_count(layer), 1);
    ck_assert_ptr_nonnull(leat_data_layer_top(layer, 0));
    assert_none(1);
    ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST),
                     LEAT_OK);
}
END_TEST

START_TEST(more_names_than_fields_are_refused)
{
    static const char *const names[] = {"a", "b", "c", NULL};
    options.tops = names;
    create();
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_EINVAL);
    ck_assert_ptr_nonnull(
        strstr(leat_last_error(), "3 tops, but the samples have 2 fields"));
    assert_none(0);
}
END_TEST

START_TEST(a_layer_that_was_given_tops_has_none_of_its_own)
{
    layer_fixture fixture = layer_fixture_open(pipeline, &options);
    ck_assert_ptr_null(leat_data_layer_top(fixture.layer, 0));
    ck_assert_int_eq(leat_data_layer_forward(fixture.layer, NULL, 0, LEAT_HOST),
                     LEAT_EINVAL);
    ck_assert_int_eq(leat_data_layer_setup(fixture.layer, NULL, 0),
                     LEAT_ESTATE);
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(half_a_list_is_none)
{
    create();
    leat_blob *top = NULL;
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 2), LEAT_EINVAL);
    ck_assert_int_eq(leat_data_layer_setup(layer, &top, 0), LEAT_EINVAL);
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 2, LEAT_HOST),
                     LEAT_EINVAL);
    ck_assert_int_eq(leat_data_layer_forward(layer, &top, 0, LEAT_HOST),
                     LEAT_EINVAL);
}
END_TEST

/* Blobs of the caller's may take a batch now and then, as at any forward. */
START_TEST(other_tops_may_take_a_batch)
{
    create();
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_OK);
    layer_fixture other = {layer, {NULL, NULL}};
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(leat_blob_create(&other.top[i], NULL), LEAT_OK);
    ck_assert_int_eq(layer_fixture_forward(&other), LEAT_OK);
    ck_assert_float_eq(layer_fixture_label(&other, 0), 1000);
    ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST),
                     LEAT_OK);
    const float *label = leat_blob_cpu_data(leat_data_layer_top(layer, 1));
    ck_assert_float_eq(label[0], 1004);
    for (int i = 0; i < 2; i++)
        leat_blob_destroy(other.top[i]);
}
END_TEST

START_TEST(a_restored_layer_keeps_its_tops)
{
    leat_token token;
    leat_token_init(&token);
    create();
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_OK);
    leat_blob *top = leat_data_layer_top(layer, 1);
    ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST), 0);
    ck_assert_int_eq(leat_data_layer_save(layer, &token), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST), 0);
    ck_assert_int_eq(leat_data_layer_restore(layer, &token), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST), 0);
    ck_assert_ptr_eq(leat_data_layer_top(layer, 1), top);
    ck_assert_float_eq(((const float *)leat_blob_cpu_data(top))[0], 1004);
    leat_token_finish(&token);
}
END_TEST

/* What failed was not there: the second setup makes all of them. */
START_TEST(a_setup_that_fails_leaves_no_tops)
{
    scripted_source broken = SCRIPTED_SOURCE_INIT;
    broken.broken = 0;
    leat_pipeline_unref(pipeline);
    pipeline = scripted_source_pipeline(&broken);
    create();
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_EIO);
    assert_none(0);
    broken.broken = -1;
    ck_assert_int_eq(leat_data_layer_setup(layer, NULL, 0), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_forward(layer, NULL, 0, LEAT_HOST), 0);
    ck_assert_int_eq(leat_blob_count(leat_data_layer_top(layer, 1)), 4);
    leat_data_layer_destroy(layer);
    layer = NULL;
}
END_TEST

START_TEST(each_member_of_a_group_has_its_own)
{
    static const char *const devices[] = {"cpu", "cpu"};
    leat_data_layer_group *group;
    ck_assert_int_eq(
        leat_data_layer_group_create(&group, pipeline, &options, devices, 2),
        LEAT_OK);
    ck_assert_int_eq(leat_data_layer_group_setup(group, NULL, 0), LEAT_OK);
    for (int batch = 0; batch < 6; batch++) {
        leat_data_layer *member =
            leat_data_layer_group_member(group, batch % 2);
        ck_assert_int_eq(leat_data_layer_forward(member, NULL, 0, LEAT_HOST),
                         LEAT_OK);
        const float *label = leat_blob_cpu_data(leat_data_layer_top(member, 1));
        ck_assert_float_eq(label[0],
                           (float)(1000 + 4 * batch % LAYER_FIXTURE_COUNT));
    }
    leat_data_layer_group_destroy(group);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layer_tops");
    TCase *tcase = tcase_create("layer_tops");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, the_layers_own_tops_get_what_the_callers_would);
    tcase_add_test(tcase, there_are_as_many_as_are_named);
    tcase_add_test(tcase, more_names_than_fields_are_refused);
    tcase_add_test(tcase, a_layer_that_was_given_tops_has_none_of_its_own);
    tcase_add_test(tcase, half_a_list_is_none);
    tcase_add_test(tcase, other_tops_may_take_a_batch);
    tcase_add_test(tcase, a_restored_layer_keeps_its_tops);
    tcase_add_test(tcase, a_setup_that_fails_leaves_no_tops);
    tcase_add_test(tcase, each_member_of_a_group_has_its_own);
    return suite_run(suite);
}
