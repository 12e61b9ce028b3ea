#include "support/shared_data.h"
#include "support/suite.h"

#include <leat/blob.h>
#include <leat/config.h>

#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char net_path[] = "/tmp/leat_net_layer_XXXXXX";
static leat_data_layer *layer;

static void setup(void)
{
    int fd = mkstemp(net_path);
    ck_assert_int_ge(fd, 0);
    close(fd);
    layer = NULL;
}

static void teardown(void)
{
    leat_data_layer_destroy(layer);
    unlink(net_path);
}

static void write_net(const char *text)
{
    FILE *out = fopen(net_path, "w");
    fputs(text, out);
    fclose(out);
}

/* The net's text with {DATA} replaced by the folder of shared data. */
static void write_case(const char *text)
{
    const char *mark = strstr(text, "{DATA}");
    char whole[8192];
    snprintf(whole, sizeof(whole), "%.*s%s%s", (int)(mark - text), text,
             shared_folder(), mark + strlen("{DATA}"));
    write_net(whole);
}

START_TEST(a_layer_has_the_tops_and_options_of_its_net)
{
    write_net("layer { name: 'n' type: 'Data' top: 'x' top: 'y' data_param {"
              " source: 'db' backend: LMDB batch_size: 3 }"
              " leat_param { random_seed: 7 } }");
    ck_assert_int_eq(
        leat_data_layer_create_from_net(&layer, net_path, LEAT_TEST, NULL),
        LEAT_OK);
    ck_assert_int_eq(leat_data_layer_top_count(layer), 2);
    ck_assert_str_eq(leat_data_layer_top_name(layer, 0), "x");
    ck_assert_str_eq(leat_data_layer_top_name(layer, 1), "y");
    const leat_data_layer_options *options = leat_data_layer_get_options(layer);
    ck_assert_str_eq(options->name, "n");
    ck_assert_int_eq(options->batch_size, 3);
    ck_assert_int_eq(options->phase, LEAT_TEST);
    ck_assert_uint_eq(leat_data_layer_seed(layer), 7);
    ck_assert_str_eq(leat_pipeline_text(leat_data_layer_pipeline(layer)),
                     "lmdb:db");
}
END_TEST

START_TEST(errors_of_the_layer_name_the_net_file)
{
    char line[256];
    write_net("layer { type: 'Data' top: 'x' data_param { source: 'db'"
              " backend: LMDB batch_size: 3 } transform_param {"
              " mean_file: 'no/such/mean' } }");
    ck_assert_int_eq(
        leat_data_layer_create_from_net(&layer, net_path, LEAT_TEST, NULL),
        LEAT_EIO);
    snprintf(line, sizeof(line),
             "%s:1:116: no/such/mean: No such file or directory", net_path);
    ck_assert_str_eq(leat_last_error(), line);
    ck_assert_ptr_null(layer);
}
END_TEST

START_TEST(a_mean_file_of_the_caller_has_no_place_in_the_file)
{
    char line[256];
    leat_data_layer_options options = LEAT_DATA_LAYER_OPTIONS_INIT;
    leat_transform_options transform = LEAT_TRANSFORM_OPTIONS_INIT;
    transform.mean_file = "no/such/mean";
    options.transform = &transform;
    write_net("layer { type: 'Data' top: 'x' data_param { source: 'db'"
              " backend: LMDB batch_size: 3 } }");
    ck_assert_int_eq(
        leat_data_layer_create_from_net(&layer, net_path, LEAT_TEST, &options),
        LEAT_EIO);
    snprintf(line, sizeof(line), "%s: no/such/mean: No such file or directory",
             net_path);
    ck_assert_str_eq(leat_last_error(), line);
}
END_TEST

/* Opened long after the net was read, and by whoever has the pipeline. */
static void expect_source(const char *param, const char *place)
{
    char text[512], line[256];
    leat_reader *reader = NULL;
    leat_blob *top;
    snprintf(text, sizeof(text), "layer { type: 'Data' top: 'x'\n%s }", param);
    write_net(text);
    ck_assert_int_eq(
        leat_data_layer_create_from_net(&layer, net_path, LEAT_TEST, NULL),
        LEAT_OK);
    snprintf(line, sizeof(line),
             "%s:%s: no/such/db: expected an LMDB, a directory with data.mdb: "
             "No such file or directory",
             net_path, place);
    ck_assert_int_eq(leat_blob_create(&top, NULL), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_setup(layer, &top, 1), LEAT_EIO);
    ck_assert_str_eq(leat_last_error(), line);
    ck_assert_int_eq(
        leat_pipeline_open(leat_data_layer_pipeline(layer), &reader), LEAT_EIO);
    ck_assert_str_eq(leat_last_error(), line);
    leat_blob_destroy(top);
    leat_data_layer_destroy(layer);
    layer = NULL;
}

START_TEST(a_source_that_is_not_there_has_its_place_in_the_file)
{
    expect_source("data_param { source: 'no/such/db' backend: LMDB"
                  " batch_size: 3 }",
                  "2:22");
    expect_source("data_param { batch_size: 3 }\n"
                  "leat_param { reader: 'lmdb:no/such/db' }",
                  "3:22");
}
END_TEST

static void check_first(json_t *top, leat_blob *blob, json_int_t batches)
{
    json_t *shape = json_object_get(top, "shape");
    json_t *first = json_object_get(top, "first");
    size_t i;
    json_t *value;
    ck_assert_int_eq(leat_blob_ndim(blob), (int)json_array_size(shape));
    json_array_foreach(shape, i, value)
        ck_assert_int_eq(leat_blob_dim(blob, (int)i) * (i ? 1 : batches),
                         json_integer_value(value));
    const float *values = leat_blob_cpu_data(blob);
    json_int_t n = leat_blob_count(blob);
    json_array_foreach(first, i, value) if ((json_int_t)i < n)
        ck_assert_msg(fabs(values[i] - json_number_value(value)) < 1e-4,
                      "value %zu is %g", i, values[i]);
}

/* The digests of all values are compared where the tool is tested. */
START_TEST(a_net_begins_with_what_caffe_delivered)
{
    char path[SHARED_PATH];
    if (!shared_path(path, "caffe/delivered.json"))
        return;
    json_t *delivered = json_load_file(path, 0, NULL);
    ck_assert_ptr_nonnull(delivered);
    json_t *run = json_array_get(json_object_get(delivered, "cases"), _i);
    json_t *tops = json_object_get(run, "tops");
    const char *phase = json_string_value(json_object_get(run, "phase"));
    json_int_t batches = json_integer_value(json_object_get(run, "batches"));
    leat_blob *top[2];
    write_case(json_string_value(json_object_get(run, "prototxt")));
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(leat_blob_create(&top[i], NULL), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_create_from_net(
                         &layer, net_path,
                         strcmp(phase, "TRAIN") ? LEAT_TEST : LEAT_TRAIN, NULL),
                     LEAT_OK);
    ck_assert_int_eq(leat_data_layer_setup(layer, top, 2), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_forward(layer, top, 2, LEAT_HOST),
                     LEAT_OK);
    check_first(json_object_get(tops, "data"), top[0], batches);
    check_first(json_object_get(tops, "label"), top[1], batches);
    leat_blob_destroy(top[0]);
    leat_blob_destroy(top[1]);
    json_decref(delivered);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("net_layer");
    TCase *tcase = tcase_create("net_layer");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_layer_has_the_tops_and_options_of_its_net);
    tcase_add_test(tcase, errors_of_the_layer_name_the_net_file);
    tcase_add_test(tcase, a_mean_file_of_the_caller_has_no_place_in_the_file);
    tcase_add_test(tcase, a_source_that_is_not_there_has_its_place_in_the_file);
    tcase_add_loop_test(tcase, a_net_begins_with_what_caffe_delivered, 0, 4);
    return suite_run(suite);
}
