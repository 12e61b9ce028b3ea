/* Groups of data layers out of Caffe's net files. */
#include "support/images.h"
#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECORDS 12
#define MEMBERS 2

static const char *const devices[MEMBERS] = {"cpu", "cpu"};
static char net_path[FIXTURE_PATH];
static char directory[FIXTURE_PATH];
static leat_data_layer_group *group;
static leat_blob *top[MEMBERS * 2];

static void setup(void)
{
    images_write(directory, images_record, RECORDS);
    snprintf(net_path, sizeof(net_path), "%.200s/net.prototxt", directory);
    group = NULL;
    for (int i = 0; i < MEMBERS * 2; i++)
        ck_assert_int_eq(leat_blob_create(&top[i], NULL), LEAT_OK);
}

static void teardown(void)
{
    leat_data_layer_group_destroy(group);
    for (int i = 0; i < MEMBERS * 2; i++)
        leat_blob_destroy(top[i]);
    unlink(net_path);
    fixture_remove(directory);
}

/* A net whose data layer has the database, and `rest` in it. */
static void write_net(const char *rest)
{
    FILE *out = fopen(net_path, "w");
    ck_assert_ptr_nonnull(out);
    fprintf(out,
            "layer { name: 'n' type: 'Data' top: 'x' top: 'y' data_param {"
            " source: '%s' backend: LMDB batch_size: 3 }\n%s }",
            directory, rest);
    fclose(out);
}

static int create(const leat_data_layer_options *options, int n)
{
    return leat_data_layer_group_create_from_net(&group, net_path, LEAT_TRAIN,
                                                 options, devices, n);
}

START_TEST(members_take_turns_at_the_batches_of_the_net)
{
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    options.prefetch = 2;
    options.batch_size = 5;
    write_net("transform_param { scale: 2 }");
    ck_assert_int_eq(create(&options, MEMBERS), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_group_size(group), MEMBERS);
    ck_assert_int_eq(leat_data_layer_group_setup(group, top, 2), LEAT_OK);
    for (int k = 0; k < 2 * RECORDS / 3; k++) {
        int i = k % MEMBERS;
        leat_data_layer *member = leat_data_layer_group_member(group, i);
        ck_assert_int_eq(
            leat_data_layer_forward(member, top + 2 * i, 2, LEAT_HOST),
            LEAT_OK);
        const float *pixels = leat_blob_cpu_data(top[2 * i]);
        const float *labels = leat_blob_cpu_data(top[2 * i + 1]);
        ck_assert_int_eq(leat_blob_dim(top[2 * i + 1], 0), 3);
        for (int j = 0; j < 3; j++) {
            float label = (float)((3 * k + j) % RECORDS);
            ck_assert_float_eq(labels[j], label);
            ck_assert_float_eq(pixels[j * 20], 2 * label);
        }
    }
}
END_TEST

/* What the file says wins; what it leaves open is the options'. */
START_TEST(members_have_the_options_of_the_net)
{
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    options.prefetch = 7;
    options.batch_size = 5;
    write_net("leat_param { random_seed: 7 }");
    ck_assert_int_eq(create(&options, MEMBERS), LEAT_OK);
    const leat_data_layer *second = leat_data_layer_group_member(group, 1);
    const leat_data_layer_options *found = leat_data_layer_get_options(second);
    ck_assert_str_eq(found->name, "n[1]");
    ck_assert_int_eq(found->batch_size, 3);
    ck_assert_int_eq(found->prefetch, 7);
    ck_assert_int_eq(found->phase, LEAT_TRAIN);
    ck_assert_uint_eq(leat_data_layer_seed(second), 7);
    ck_assert_str_eq(leat_data_layer_top_name(second, 1), "y");
}
END_TEST

START_TEST(errors_of_the_group_name_the_net_file)
{
    char line[2 * FIXTURE_PATH];
    write_net("transform_param { mean_file: 'no/such/mean' }");
    ck_assert_int_eq(create(NULL, MEMBERS), LEAT_EIO);
    snprintf(line, sizeof(line), "%s:2:30: no/such/mean: No such file",
             net_path);
    ck_assert_msg(strncmp(leat_last_error(), line, strlen(line)) == 0, "%s",
                  leat_last_error());
    write_net("");
    ck_assert_int_eq(create(NULL, 0), LEAT_EINVAL);
    snprintf(line, sizeof(line), "%s: a group has 1 to", net_path);
    ck_assert_msg(strncmp(leat_last_error(), line, strlen(line)) == 0, "%s",
                  leat_last_error());
    unlink(net_path);
    ck_assert_int_eq(create(NULL, MEMBERS), LEAT_EIO);
    ck_assert_ptr_null(group);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("net_group");
    TCase *tcase = tcase_create("net_group");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, members_take_turns_at_the_batches_of_the_net);
    tcase_add_test(tcase, members_have_the_options_of_the_net);
    tcase_add_test(tcase, errors_of_the_group_name_the_net_file);
    return suite_run(suite);
}
