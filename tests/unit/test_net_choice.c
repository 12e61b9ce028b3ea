/* Which layer of a net is its data layer, by phase, rules and name. */
#include "support/net_text.h"
#include "support/shared_data.h"
#include "support/suite.h"

#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether the net has its layer in that phase; the error must be that alone. */
static int is_in(const char *text, leat_phase phase)
{
    int status = net_parse(text, phase, NULL);
    if (status == LEAT_OK)
        leat__net_param_finish(&net);
    else
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "no data layer for"));
    return status == LEAT_OK;
}

START_TEST(layers_that_data_comes_from_are_named)
{
    net_refused(
        "layer { type: 'ImageData' name: 'photos' top: 'd' top: 'l'\n}\n"
        "layer { type: 'HDF5Data' top: 'more' }"
        "layer { type: 'ReLU' bottom: 'd' top: 'r' }"
        "layer { type: 'Parameter' top: 'p' }",
        "net: expected a layer of type \"Data\", found none among 4 layers, "
        "but ImageData \"photos\" (line 1), HDF5Data \"\" (line 3): make an "
        "LMDB of the images with leat import images, and a Data layer");
    net_refused(
        "layers { type: IMAGE_DATA name: 'photos' top: 'd' }",
        "net: expected a layer of type \"Data\", found none among 1 layers, "
        "but IMAGE_DATA \"photos\" (line 1): make an LMDB of the images "
        "with leat import images, and a Data layer");
    net_refused(
        "layers { layer { type: 'window_data' name: 'w' } top: 'd' }",
        "net: expected a layer of type \"Data\", found none among 1 layers, "
        "but window_data \"w\" (line 1): leat has Data layers alone: make "
        "an LMDB of Datum, and a Data layer");
    net_refused(
        "layer { type: 'Input' name: 'data' top: 'data' }",
        "net: expected a layer of type \"Data\", found none among 1 layers, "
        "but Input \"data\" (line 1): this is a net for deployment: give "
        "the one that is trained");
    net_refused(
        "name: 'n'\ninput: 'data' layer { type: 'ReLU' bottom: 'data' }",
        "net: expected a layer of type \"Data\", found none among 1 layers, "
        "but input (line 2): this is a net for deployment: give the one "
        "that is trained");
}
END_TEST

START_TEST(a_solver_is_told_from_a_net)
{
    net_refused("base_lr: 0.01\nnet: 'models/train_val.prototxt' test_iter: 1",
                "net:2:1: expected a net, found a solver: give the net that it "
                "names, \"models/train_val.prototxt\" (net)");
    net_refused(
        "test_net: 'b' train_net: 'a' test_net: 'c'",
        "net:1:15: expected a net, found a solver: give the net that it "
        "names, \"a\" (train_net), \"b\" (test_net), \"c\" (test_net)");
    net_refused("train_net_param { layer { } }",
                "net:1:1: expected a net, found a solver: put what is in its "
                "train_net_param { } into a file of its own and give that");
    net_refused("snapshot_prefix: 'x'",
                "net:1:1: expected a net, found a solver that names none");
}
END_TEST

START_TEST(a_net_without_the_phase_says_which_it_has)
{
    net_refused(HEAD LMDB "include { phase: TEST } }",
                "net: no data layer for phase TRAIN, only for TEST; there are: "
                "\"data\" (line 1, TEST)");
    net_refused(
        HEAD LMDB "include { stage: 'x' } }",
        "net: no data layer for phase TRAIN; there are: \"data\" (line 1, "
        "no phase at this level and stage)");
}
END_TEST

START_TEST(include_and_exclude_rules_follow_caffes)
{
    static const struct {
        const char *rules;
        int in_train;
        int in_test;
    } cases[] = {
        {"", 1, 1},
        {"include { phase: TRAIN }", 1, 0},
        {"include { phase: 1 }", 0, 1},
        {"exclude { phase: TRAIN }", 0, 1},
        {"include { } ", 1, 1},
        {"exclude { } ", 0, 0},
        {"include: [] exclude { phase: TEST }", 1, 0},
        {"include { phase: TRAIN } include { phase: TEST }", 1, 1},
        {"include [ { phase: TRAIN stage: 'no' }, < phase: TEST > ]", 0, 1},
        {"exclude { phase: TRAIN } exclude { phase: TEST }", 0, 0},
        {"include { stage: 'a' }", 1, 1},
        {"include { stage: 'a' stage: 'b' }", 1, 1},
        {"include { stage: ['a', 'c'] }", 0, 0},
        {"include { not_stage: 'c' }", 1, 1},
        {"include { not_stage: 'c' not_stage: 'b' }", 0, 0},
        {"include { stage: 'a' not_stage: 'a' }", 0, 0},
        {"exclude { stage: 'a' phase: TEST }", 1, 0},
        {"include { min_level: 2 }", 1, 1},
        {"include { min_level: 3 }", 0, 0},
        {"include { max_level: 2 }", 1, 1},
        {"include { max_level: 1 }", 0, 0},
        {"include { min_level: -5 max_level: 2 phase: TEST }", 0, 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char text[1024];
        snprintf(
            text, sizeof(text),
            "state { phase: TEST level: 2 stage: 'a' stage: 'b' }" HEAD LMDB
            "%s }",
            cases[i].rules);
        ck_assert_msg(is_in(text, LEAT_TRAIN) == cases[i].in_train, "%s", text);
        ck_assert_msg(is_in(text, LEAT_TEST) == cases[i].in_test, "%s", text);
    }
    net_refused(HEAD LMDB "include { } exclude { } }",
                "net:3:13: expected include or exclude rules, found both in a "
                "layer");
}
END_TEST

START_TEST(a_phase_inside_the_layer_wins_but_chooses_nothing)
{
    const leat_data_layer_options *options = net_accepted(
        HEAD LMDB "phase: TEST include { phase: TRAIN } }", LEAT_TRAIN);
    ck_assert_int_eq(options->phase, LEAT_TEST);
    leat__net_param_finish(&net);
    ck_assert_int_eq(
        is_in(HEAD LMDB "phase: TEST include { phase: TRAIN } }", LEAT_TEST),
        0);
}
END_TEST

START_TEST(stages_and_level_of_the_caller_choose)
{
    const char *text = HEAD LMDB "include { stage: 'x' stage: 'y' } }" HEAD
                                 "data_param { source: 'other' backend: LMDB "
                                 "batch_size: 1 } include { min_level: 3 } }";
    const char *const stages[] = {"y", "x", NULL};
    leat_data_layer_options choice = LEAT_DATA_LAYER_OPTIONS_INIT;
    choice.stages = stages;
    ck_assert_int_eq(net_parse(text, LEAT_TRAIN, &choice), LEAT_OK);
    ck_assert_str_eq(net.source, "db");
    leat__net_param_finish(&net);
    choice.stages = NULL;
    choice.level = 3;
    ck_assert_int_eq(net_parse(text, LEAT_TRAIN, &choice), LEAT_OK);
    ck_assert_str_eq(net.source, "other");
    ck_assert_int_eq(net.options.level, 3);
    leat__net_param_finish(&net);
    choice.stages = stages;
    ck_assert_int_eq(net_parse(text, LEAT_TRAIN, &choice), LEAT_EINVAL);
    ck_assert_str_eq(leat_last_error(),
                     "net: 2 data layers for phase TRAIN: \"data\" (line 1, "
                     "TRAIN and TEST), \"data\" (line 3, TRAIN and TEST); "
                     "choose one by name, stage or level");
}
END_TEST

START_TEST(a_level_of_the_caller_wins_over_the_files)
{
    static const struct {
        int level;
        const char *source;
    } cases[] = {{0, "two"}, {1, "one"}, {2, "two"}, {-1, NULL}};
    const char *text =
        "state { level: 2 }" HEAD
        "data_param { source: 'one' backend: LMDB batch_size: 1 } "
        "include { min_level: 1 max_level: 1 } }" HEAD
        "data_param { source: 'two' backend: LMDB batch_size: 1 } "
        "include { min_level: 2 } }";
    leat_data_layer_options choice = LEAT_DATA_LAYER_OPTIONS_INIT;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        choice.level = cases[i].level;
        ck_assert_int_eq(net_parse(text, LEAT_TRAIN, &choice),
                         cases[i].source ? LEAT_OK : LEAT_EINVAL);
        if (!cases[i].source)
            continue;
        ck_assert_str_eq(net.source, cases[i].source);
        leat__net_param_finish(&net);
    }
}
END_TEST

START_TEST(a_layer_is_chosen_by_name)
{
    const char *text =
        HEAD LMDB "}\nlayer { name: 'two' type: 'Data' top: 'x' data_param {"
                  " source: 'second' batch_size: 2 backend: LMDB }"
                  " include { phase: TRAIN } }";
    leat_data_layer_options choice = LEAT_DATA_LAYER_OPTIONS_INIT;
    choice.layer = "two";
    ck_assert_int_eq(net_parse(text, LEAT_TRAIN, &choice), LEAT_OK);
    ck_assert_str_eq(net.source, "second");
    ck_assert_ptr_null(net.options.layer);
    ck_assert_int_eq(net.ntops, 1);
    leat__net_param_finish(&net);
    ck_assert_int_eq(net_parse(text, LEAT_TEST, &choice), LEAT_EINVAL);
    ck_assert_str_eq(
        leat_last_error(),
        "net: no data layer named \"two\" for phase TEST, only for "
        "TRAIN; there are: \"data\" (line 1, TRAIN and TEST), "
        "\"two\" (line 4, TRAIN)");
    ck_assert_int_eq(net_parse(text, LEAT_TEST, NULL), LEAT_OK);
    leat__net_param_finish(&net);
}
END_TEST

START_TEST(layers_of_other_types_may_contain_anything)
{
    net_accepted(
        "name: 'n' input: 'x' input_dim: 1 what: { ever: [ 1, 2 ] }"
        "layer { type: \"Fancy\" fancy_param { a: -inf b <> c: [{}] }"
        " include { } exclude { } phase: NEVER top: 5 name: x }" HEAD LMDB "}",
        LEAT_TRAIN);
    leat__net_param_finish(&net);
    net_refused("layer { type: \"Fancy\" fancy_param { a: } }" HEAD LMDB "}",
                "net:1:40: expected a value, found }");
}
END_TEST

START_TEST(more_stages_than_any_net_has_are_refused)
{
    char text[1024];
    int used = snprintf(text, sizeof(text), "state {");
    for (int i = 0; i < 65; i++)
        used +=
            snprintf(text + used, sizeof(text) - (size_t)used, " stage: 's'");
    snprintf(text + used, sizeof(text) - (size_t)used, "}" HEAD LMDB "}");
    net_refused(text, "net:1:713: expected at most 64 stages, found more");
}
END_TEST

static char *read_whole(const char *path, size_t *size)
{
    static char text[1 << 20];
    FILE *in = fopen(path, "rb");
    ck_assert_ptr_nonnull(in);
    *size = fread(text, 1, sizeof(text), in);
    fclose(in);
    return text;
}

typedef struct published {
    const char *file;
    const char *source[2]; /* TRAIN and TEST; NULL: LevelDB */
    int batch[2];
    int crop;
    int mirror[2];
} published;

static const published nets[] = {
    {"bvlc_alexnet_train_val",
     {"examples/imagenet/ilsvrc12_train_lmdb",
      "examples/imagenet/ilsvrc12_val_lmdb"},
     {256, 50},
     227,
     {1, 0}},
    {"bvlc_googlenet_train_val",
     {"examples/imagenet/ilsvrc12_train_lmdb",
      "examples/imagenet/ilsvrc12_val_lmdb"},
     {32, 50},
     224,
     {1, 0}},
    {"bvlc_reference_caffenet_train_val",
     {"examples/imagenet/ilsvrc12_train_lmdb",
      "examples/imagenet/ilsvrc12_val_lmdb"},
     {256, 50},
     227,
     {1, 0}},
    {"cifar10_cifar10_full_train_test",
     {"examples/cifar10/cifar10_train_lmdb",
      "examples/cifar10/cifar10_test_lmdb"},
     {100, 100},
     0,
     {0, 0}},
    {"mnist_lenet_train_test",
     {"examples/mnist/mnist_train_lmdb", "examples/mnist/mnist_test_lmdb"},
     {64, 100},
     0,
     {0, 0}},
    {"siamese_mnist_siamese_train_test", {NULL, NULL}, {64, 100}, 0, {0, 0}},
};

static void check_published(const published *expected, leat_phase phase)
{
    char name[128], path[SHARED_PATH];
    size_t size;
    snprintf(name, sizeof(name), "prototxt/%s.prototxt", expected->file);
    if (!shared_path(path, name))
        return;
    char *text = read_whole(path, &size);
    int status =
        leat__net_param_parse(&net, expected->file, text, size, phase, NULL);
    if (!expected->source[phase]) {
        ck_assert_int_eq(status, LEAT_EINVAL);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "no backend"));
        return;
    }
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    ck_assert_str_eq(net.source, expected->source[phase]);
    ck_assert_int_eq(net.options.batch_size, expected->batch[phase]);
    ck_assert_int_eq(net.options.transform->crop_size, expected->crop);
    ck_assert_int_eq(net.options.transform->mirror, expected->mirror[phase]);
    ck_assert_int_eq(net.ntops, 2);
    leat__net_param_finish(&net);
}

START_TEST(the_published_nets_are_read_in_both_phases)
{
    check_published(&nets[_i / 2], (leat_phase)(_i % 2));
}
END_TEST

START_TEST(the_nets_that_caffe_itself_ran_are_read)
{
    char path[SHARED_PATH];
    size_t i;
    json_t *run;
    if (!shared_path(path, "caffe/delivered.json"))
        return;
    json_t *delivered = json_load_file(path, 0, NULL);
    json_t *runs = json_object_get(delivered, "cases");
    ck_assert_uint_eq(json_array_size(runs), 4);
    json_array_foreach(runs, i, run)
    {
        json_t *seed = json_object_get(run, "random_seed");
        const char *phase = json_string_value(json_object_get(run, "phase"));
        const leat_data_layer_options *options =
            net_accepted(json_string_value(json_object_get(run, "prototxt")),
                         strcmp(phase, "TRAIN") ? LEAT_TEST : LEAT_TRAIN);
        ck_assert_int_eq(options->random_seed,
                         json_is_integer(seed) ? json_integer_value(seed) : -1);
        json_t *shape = json_object_get(
            json_object_get(json_object_get(run, "tops"), "label"), "shape");
        json_int_t batches =
            json_integer_value(json_object_get(run, "batches"));
        ck_assert_int_eq(options->batch_size * batches,
                         json_integer_value(json_array_get(shape, 0)));
        leat__net_param_finish(&net);
    }
    json_decref(delivered);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("net_choice");
    TCase *tcase = tcase_create("net_choice");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, layers_that_data_comes_from_are_named);
    tcase_add_test(tcase, a_solver_is_told_from_a_net);
    tcase_add_test(tcase, a_net_without_the_phase_says_which_it_has);
    tcase_add_test(tcase, include_and_exclude_rules_follow_caffes);
    tcase_add_test(tcase, a_phase_inside_the_layer_wins_but_chooses_nothing);
    tcase_add_test(tcase, stages_and_level_of_the_caller_choose);
    tcase_add_test(tcase, a_level_of_the_caller_wins_over_the_files);
    tcase_add_test(tcase, a_layer_is_chosen_by_name);
    tcase_add_test(tcase, layers_of_other_types_may_contain_anything);
    tcase_add_test(tcase, more_stages_than_any_net_has_are_refused);
    tcase_add_loop_test(tcase, the_published_nets_are_read_in_both_phases, 0,
                        2 * (int)(sizeof(nets) / sizeof(*nets)));
    tcase_add_test(tcase, the_nets_that_caffe_itself_ran_are_read);
    return suite_run(suite);
}
