#include "base/memory.h"
#include "support/net_text.h"
#include "support/suite.h"

#include <leat/log.h>

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char log_lines[4096];

static void hear(void *user, leat_log_level level, const char *line)
{
    (void)user;
    (void)level;
    size_t used = strlen(log_lines);
    snprintf(log_lines + used, sizeof(log_lines) - used, "%s\n", line);
}

START_TEST(what_the_file_leaves_out_has_caffes_defaults)
{
    const leat_data_layer_options *options =
        net_accepted(HEAD LMDB "}", LEAT_TEST);
    ck_assert_str_eq(options->name, "data");
    ck_assert_str_eq(options->tops[1], "label");
    ck_assert_ptr_null(options->tops[2]);
    ck_assert_int_eq(options->phase, LEAT_TEST);
    ck_assert_int_eq(options->batch_size, 64);
    ck_assert_int_eq(options->prefetch, 4);
    ck_assert_int_eq(options->random_seed, -1);
    ck_assert_int_eq(options->rng, LEAT_RNG_LEAT);
    ck_assert(options->transform->scale == 1.0f);
    ck_assert_int_eq(options->transform->crop_size, 0);
    ck_assert_int_eq(options->transform->mean_values, 0);
    ck_assert_ptr_null(options->transform->mean_file);
    ck_assert_str_eq(net.source, "db");
    ck_assert_ptr_null(net.reader);
    leat__net_param_finish(&net);
}
END_TEST

START_TEST(a_transform_is_read_whole)
{
    const leat_transform_options *transform =
        net_accepted(
            HEAD LMDB
            "transform_param { scale: 0.00390625 mirror: 1 crop_size: 227"
            " mean_value: 104 mean_value: [117, 123.5] force_color: t } }",
            LEAT_TRAIN)
            ->transform;
    ck_assert(transform->scale == 0.00390625f);
    ck_assert_int_eq(transform->mirror, 1);
    ck_assert_int_eq(transform->crop_size, 227);
    ck_assert_int_eq(transform->mean_values, 3);
    ck_assert(transform->mean_value[2] == 123.5f);
    ck_assert_int_eq(transform->force_color, 1);
    ck_assert_int_eq(transform->force_gray, 0);
    leat__net_param_finish(&net);
    transform = net_accepted(HEAD LMDB "transform_param < mean_file: 'm' 'ean'"
                                       " force_gray: true > }",
                             LEAT_TRAIN)
                    ->transform;
    ck_assert_str_eq(transform->mean_file, "mean");
    ck_assert_int_eq(transform->force_gray, 1);
    leat__net_param_finish(&net);
}
END_TEST

START_TEST(v1_layers_carry_their_transform_in_data_param)
{
    const leat_data_layer_options *options = net_accepted(
        OLD "data_param { source: 'db' backend: 1 batch_size: 0x10"
            " scale: 0.5 mean_file: 'm' crop_size: 010 mirror: true }"
            " transform_param { scale: 2 force_gray: true } }"
            " layers { type: 4 } layers { type: RELU }",
        LEAT_TRAIN);
    ck_assert_int_eq(options->batch_size, 16);
    ck_assert(options->transform->scale == 0.5f);
    ck_assert_str_eq(options->transform->mean_file, "m");
    ck_assert_int_eq(options->transform->crop_size, 8);
    ck_assert_int_eq(options->transform->mirror, 1);
    ck_assert_int_eq(options->transform->force_gray, 1);
    leat__net_param_finish(&net);
    options = net_accepted("layers { type: 5 top: 'd' " LMDB
                           "transform_param { crop_size: 3 } }",
                           LEAT_TRAIN);
    ck_assert_int_eq(options->transform->crop_size, 3);
    leat__net_param_finish(&net);
}
END_TEST

/* What the data layer of the text is read as, and what the log says of it. */
static const leat_data_layer_options *heard(const char *text)
{
    log_lines[0] = 0;
    unsetenv("LEAT_LOG_LEVEL");
    leat_log_set(hear, NULL, LEAT_LOG_WARNING);
    const leat_data_layer_options *options = net_accepted(text, LEAT_TRAIN);
    leat_log_set(NULL, NULL, LEAT_LOG_NONE);
    return options;
}

#define V0_LAYER                                                               \
    "layers { layer { name: 'data' type: 'data' source: 'db' batchsize: 256\n"
#define V0_TOPS "} top: 'data' top: 'label' }"

/* As in the cases that Caffe's own test of its upgrade has. */
START_TEST(v0_files_are_read_as_caffe_upgrades_them)
{
    const leat_data_layer_options *options =
        heard("name: 'CaffeNet' " V0_LAYER "meanfile: 'mean' cropsize: 227"
              " mirror: true scale: 0.5 rand_skip: 7 " V0_TOPS
              "layers { layer { name: 'pad1' type: 'padding' pad: 2 }"
              " bottom: 'data' top: 'pad1' }"
              "layers { layer { name: 'conv1' type: 'conv' num_output: 96"
              " weight_filler { type: 'gaussian' std: 0.01 } blobs_lr: 1. }"
              " bottom: 'pad1' top: 'conv1' }");
    ck_assert_str_eq(options->name, "data");
    ck_assert_str_eq(options->tops[0], "data");
    ck_assert_str_eq(options->tops[1], "label");
    ck_assert_int_eq(options->batch_size, 256);
    ck_assert_int_eq(options->prefetch, 4);
    ck_assert_int_eq(options->transform->crop_size, 227);
    ck_assert_int_eq(options->transform->mirror, 1);
    ck_assert(options->transform->scale == 0.5f);
    ck_assert_str_eq(options->transform->mean_file, "mean");
    ck_assert_str_eq(net.source, "db");
    ck_assert_ptr_nonnull(
        strstr(log_lines, "net:1:61: source of a V0 file is"));
    ck_assert_ptr_nonnull(
        strstr(log_lines, "net:2:56: rand_skip does nothing"));
    leat__net_param_finish(&net);
}
END_TEST

START_TEST(what_stands_beside_a_v0_layer_is_dropped_with_a_log_line)
{
    const leat_data_layer_options *options =
        heard(V0_LAYER "} top: 'd' name: 'other' include { phase: TEST }"
                       " exclude { } transform_param { scale: 3 }"
                       " data_param { batch_size: 1 }"
                       " leat_param { workers: 3 } }");
    ck_assert_str_eq(options->name, "data");
    ck_assert_int_eq(options->batch_size, 256);
    ck_assert(options->transform->scale == 1.0f);
    ck_assert_int_eq(options->workers, 3);
    ck_assert_ptr_nonnull(
        strstr(log_lines, "net:2:12: name beside layer { } is ignored"));
    ck_assert_ptr_nonnull(strstr(log_lines, "include beside"));
    ck_assert_ptr_nonnull(strstr(log_lines, "exclude beside"));
    ck_assert_ptr_nonnull(strstr(log_lines, "transform_param beside"));
    ck_assert_ptr_nonnull(strstr(log_lines, "data_param beside"));
    ck_assert_ptr_null(strstr(log_lines, "leat_param beside"));
    leat__net_param_finish(&net);
}
END_TEST

START_TEST(wrong_v0_layers_are_refused_where_they_stand)
{
    net_refused(
        V0_LAYER V0_TOPS "\nlayers { type: DATA top: 'd' " LMDB "}",
        "net:3:1: expected layer { } in layers { }, as other layers of the "
        "file have one: all must be of Caffe's V0 form, or none");
    net_refused("layers { layer: 1 }", "net:1:17: layer: expected {");
    net_refused(
        "layers { layer { type: data } }",
        "net:1:24: type: expected \"data\", as the type of layers { layer { "
        "} } is a string");
    net_refused("layers { layer { type: 'DATA' } }",
                "net:1:24: type: expected \"data\", found \"DATA\"");
    net_refused("layers { layer { type: 'data' batchsize: 1 } top: 'd' }",
                "net:1:10: expected a source in layer, found none");
    net_refused("layers { layer { type: 'data' source: 'x' } top: 'd' }",
                "net:1:10: expected a batchsize in layer, found none");
    net_refused(V0_LAYER "batch_size: 1 " V0_TOPS,
                "net:2:1: layer has no field named \"batch_size\"");
    net_refused(V0_LAYER "cropsize: -1 " V0_TOPS,
                "net:2:11: cropsize: expected an integer from 0 to 4294967295, "
                "found -1");
    net_refused(
        V0_LAYER V0_TOPS V0_LAYER V0_TOPS,
        "net: 2 data layers for phase TRAIN: \"data\" (line 1, TRAIN and "
        "TEST), \"data\" (line 2, TRAIN and TEST); choose one by name, "
        "stage or level");
}
END_TEST

START_TEST(a_data_type_in_another_case_gets_a_hint)
{
    net_refused("layer { type: 'data' top: 'd' } layer { type: 'DATA' }",
                "net:1:15: type: expected \"Data\", found \"data\"");
    net_refused("layers { type: Data top: 'd' }",
                "net:1:16: type: expected DATA, found Data");
    /* Caffe leaves out the layers of other phases before it looks. */
    net_accepted("layer { type: 'data' include { phase: TEST } }" HEAD LMDB "}",
                 LEAT_TRAIN);
    leat__net_param_finish(&net);
}
END_TEST

START_TEST(fields_of_other_caffes_that_change_no_byte_are_ignored)
{
    heard(HEAD "data_param { source: 'db' backend: LMDB batch_size: 1"
               " cache: true threads: 4 parser_threads: 2 }"
               " transform_param { use_gpu_transform: true display: false }"
               " forward_type: FLOAT backward_type: FLOAT16 debug: false"
               " forward_math: FLOAT16 backward_math: FLOAT"
               " cudnn_math_override: -1 engine: 'MKLDNN' }");
    ck_assert_ptr_nonnull(strstr(log_lines, "net:2:55: cache is not Caffe 1.0's"
                                            ", changes no byte and is"));
    ck_assert_ptr_nonnull(strstr(log_lines, ": parser_threads is not"));
    ck_assert_ptr_nonnull(strstr(log_lines, ": use_gpu_transform is not"));
    ck_assert_ptr_nonnull(strstr(log_lines, ": forward_type is not"));
    ck_assert_ptr_nonnull(strstr(log_lines, ": engine is not"));
    leat__net_param_finish(&net);
}
END_TEST

START_TEST(fields_of_other_caffes_that_change_bytes_are_refused)
{
    net_refused(HEAD LMDB "forward_type: FLOAT16 }",
                "net:3:15: forward_type: expected FLOAT, found FLOAT16");
    net_refused(HEAD LMDB "transform_param { random_seed: 1 } }",
                "net:3:19: transform_param has no field named \"random_seed\"");
    net_refused(
        HEAD LMDB "transform_param { resize_param { } } }",
        "net:3:19: transform_param has no field named \"resize_param\"");
}
END_TEST

START_TEST(what_caffe_ignores_is_ignored_with_a_log_line)
{
    const leat_data_layer_options *options = heard(
        HEAD "data_param { source: 'db' backend: LMDB batch_size: 1 scale: 2"
             " mean_file: 'm' crop_size: 3 mirror: true rand_skip: 7"
             " force_encoded_color: true } loss_weight: 0 param { lr_mult: 1 }"
             " propagate_down: false blobs { data: 1 } relu_param { } }");
    ck_assert(options->transform->scale == 1.0f);
    ck_assert_ptr_null(options->transform->mean_file);
    ck_assert_int_eq(options->transform->crop_size, 0);
    ck_assert_int_eq(options->transform->mirror, 0);
    ck_assert_ptr_nonnull(strstr(log_lines, "net:2:55: scale in data_param"));
    ck_assert_ptr_nonnull(strstr(log_lines, "mean_file in data_param"));
    ck_assert_ptr_nonnull(strstr(log_lines, "crop_size in data_param"));
    ck_assert_ptr_nonnull(strstr(log_lines, "mirror in data_param"));
    ck_assert_ptr_nonnull(strstr(log_lines, "rand_skip does nothing"));
    ck_assert_ptr_nonnull(strstr(log_lines, "force_encoded_color does"));
    leat__net_param_finish(&net);
}
END_TEST

START_TEST(wrong_layers_are_refused_where_they_stand)
{
    net_refused("",
                "net: expected a net with a data layer, found no layer { } at "
                "all");
    net_refused(
        "layer { type: 'ReLU' }",
        "net: expected a layer of type \"Data\", found none among 1 layers");
    net_refused(
        HEAD LMDB "}\nlayers { }",
        "net:4:1: expected either layer { } or layers { }, found both in "
        "one file");
    net_refused(
        "layer { type: DATA }",
        "net:1:15: type: expected \"Data\", as the type of layer { } is a "
        "string");
    net_refused(
        "layers { type: \"Data\" }",
        "net:1:16: type: expected DATA, as the type of layers { } is an "
        "enum");
    net_refused("leat_param { }" HEAD LMDB "}",
                "net:1:1: leat_param belongs inside the data layer");
    net_refused("state { } state { }" HEAD LMDB "}",
                "net:1:11: state is given twice in the net");
    net_refused("state { phase: DEPLOY }",
                "net:1:16: phase: expected one of TRAIN, TEST, found DEPLOY");
}
END_TEST

START_TEST(unknown_fields_inside_the_data_layer_are_named)
{
    net_refused(HEAD LMDB "source: 'x' }",
                "net:3:1: layer has no field named \"source\"");
    net_refused(HEAD "data_param {\n backend: LMDB bach_size: 1 } }",
                "net:3:16: data_param has no field named \"bach_size\"");
    net_refused(HEAD "transform_param {\ncrop_h: 1 } }",
                "net:3:1: transform_param has no field named \"crop_h\"");
    net_refused(HEAD LMDB "include { fase: TRAIN } }",
                "net:3:11: a rule has no field named \"fase\"");
    net_refused(HEAD LMDB "leat_param { threads: 1 } }",
                "net:3:14: leat_param has no field named \"threads\"");
    net_refused(HEAD LMDB "leat_param { shuffle: true } }",
                "net:3:14: shuffle is not in this version of leat");
    /* In a layer of the other phase as well: Caffe reads it all the same. */
    net_refused(HEAD LMDB "}" HEAD LMDB "x: 1 include { phase: TEST } }",
                "net:5:1: layer has no field named \"x\"");
    net_refused(HEAD LMDB LMDB "}",
                "net:3:1: data_param is given twice in layer, and may be given "
                "once");
    net_refused(HEAD "data_param: [ { source: 'x' } ] }",
                "net:2:1: data_param: expected one value, found a list");
}
END_TEST

START_TEST(wrong_values_are_refused_where_they_stand)
{
    net_refused(HEAD LMDB "bottom: 'x' }",
                "net:3:1: a data layer takes no bottom");
    net_refused("layer { type: 'Data' " LMDB "}",
                "net:1:1: a data layer needs a top, found none");
    net_refused(HEAD "top: 'third' " LMDB "}",
                "net:2:1: a data layer gives at most 2 tops, data and label");
    net_refused("layer { type: 'Data' top: 'a' top: 'a' " LMDB "}",
                "net:1:36: both tops have the same name");
    net_refused(HEAD "}",
                "net:1:1: expected a source in data_param, found none");
    net_refused(HEAD "data_param { batch_size: 1 backend: LMDB } }",
                "net:2:1: expected a source in data_param, found none");
    net_refused(HEAD "data_param { source: '' batch_size: 1 backend: LMDB } }",
                "net:2:22: source: expected a text, found an empty one");
    net_refused(HEAD
                "data_param { source: 'a\\0b' batch_size: 1 backend: LMDB } }",
                "net:2:22: source: expected no NUL byte, found one");
    net_refused(
        HEAD "data_param { source: 'x' batch_size: 1 } }",
        "net:2:14: data_param has no backend, which means LEVELDB, and "
        "leat does not read it: if the source is an LMDB, add `backend: "
        "LMDB`");
    net_refused(
        HEAD "data_param { source: 'x' batch_size: 1 backend: LEVELDB } }",
        "net:2:40: backend: expected LMDB, found LEVELDB, which leat does "
        "not read: convert the database");
    net_refused(HEAD "data_param { source: 'x' backend: LMDB } }",
                "net:2:1: expected a batch_size in data_param, found none");
    net_refused(HEAD "data_param { source: 'x' backend: LMDB batch_size: 0 } }",
                "net:2:52: batch_size: expected 1 to 1073741823 samples, "
                "found 0");
    net_refused(
        HEAD "data_param { source: 'x' backend: LMDB batch_size: -1 } }",
        "net:2:52: batch_size: expected an integer from 0 to 4294967295, "
        "found -1");
    net_refused(HEAD "data_param { source: 'x' backend: LMDB batch_size: "
                     "3000000000 } }",
                "net:2:52: batch_size: expected 1 to 1073741823 samples, "
                "found 3000000000");
    net_refused(HEAD LMDB "leat_param { prefetch: -2 } }",
                "net:3:24: prefetch: expected 0 to 1048576 batches or AUTO, "
                "found -2");
    net_refused(HEAD LMDB "transform_param { mean_file: 'm' mean_value: 1 } }",
                "net:3:34: expected mean_file or mean_value, found both");
    net_refused(HEAD LMDB "transform_param { mean_file: '' } }",
                "net:3:30: mean_file: expected a text, found an empty one");
    net_refused(HEAD LMDB
                "transform_param { force_color: true force_gray: true } }",
                "net:3:37: expected force_color or force_gray, found both");
    net_refused(HEAD LMDB "transform_param { crop_size: 4294967295 } }",
                "net:3:30: crop_size: expected 0 to 2147483647 pixels, "
                "found 4294967295");
    net_refused(OLD "data_param { source: 'x' backend: LMDB batch_size: 1 "
                    "mean_file: 'm' } transform_param { mean_value: 1 } }",
                "net:2:89: expected mean_file or mean_value, found both");
}
END_TEST

START_TEST(both_force_flags_may_stand_there_if_one_is_false)
{
    const leat_data_layer_options *options = net_accepted(
        HEAD LMDB "transform_param { force_color: false force_gray: true } }",
        LEAT_TRAIN);
    ck_assert_int_eq(options->transform->force_color, 0);
    ck_assert_int_eq(options->transform->force_gray, 1);
    leat__net_param_finish(&net);
}
END_TEST

START_TEST(leat_param_is_read_whole)
{
    const leat_data_layer_options *options = net_accepted(
        HEAD "leat_param { reader: 'lmdb:x' random_seed: 1701 rng: CAFFE"
             " workers: 3 prefetch: 2 reader_thread: ON"
             " caller_helps: OFF"
             " top_type: FLOAT64 label_type: INT64 layout: NHWC top_mode: COPY"
             " rank: 1 world_size: 4 global_batch_size: 256 shard_test: true"
             " max_memory: 5000000000 max_image_bytes: 6000000000"
             " on_error: replace max_errors: 7"
             " bad_record_file: 'bad' } }",
        LEAT_TRAIN);
    ck_assert_str_eq(net.reader, "lmdb:x");
    ck_assert_ptr_null(net.source);
    ck_assert_int_eq(options->random_seed, 1701);
    ck_assert_int_eq(options->rng, LEAT_RNG_CAFFE);
    ck_assert_int_eq(options->workers, 3);
    ck_assert_int_eq(options->prefetch, 2);
    ck_assert_int_eq(options->reader_thread, LEAT_READER_ON);
    ck_assert_int_eq(options->caller_helps, LEAT_CALLER_HELPS_OFF);
    ck_assert_int_eq(options->top_type, LEAT_FLOAT64);
    ck_assert_int_eq(options->label_type, LEAT_INT64);
    ck_assert_int_eq(options->layout, LEAT_NHWC);
    ck_assert_int_eq(options->top_mode, LEAT_TOP_COPY);
    ck_assert_int_eq(options->rank, 1);
    ck_assert_int_eq(options->world_size, 4);
    ck_assert_int_eq(options->global_batch_size, 256);
    ck_assert_int_eq(options->batch_size, 0);
    ck_assert_int_eq(options->shard_test, 1);
    ck_assert_uint_eq(options->max_memory, 5000000000u);
    ck_assert_uint_eq(options->max_image_bytes, 6000000000u);
    ck_assert_int_eq(options->on_error, LEAT_ON_ERROR_REPLACE);
    ck_assert_int_eq(options->max_errors, 7);
    ck_assert_str_eq(options->bad_record_file, "bad");
    leat__net_param_finish(&net);
}
END_TEST

START_TEST(leats_enums_are_read_in_any_case_and_quoted)
{
    const leat_data_layer_options *options =
        net_accepted(HEAD LMDB "leat_param { rng: caffe top_type: 'uint8'"
                               " layout: \"NHWC\" reader_thread: 2 } }",
                     LEAT_TRAIN);
    ck_assert_int_eq(options->rng, LEAT_RNG_CAFFE);
    ck_assert_int_eq(options->top_type, LEAT_UINT8);
    ck_assert_int_eq(options->layout, LEAT_NHWC);
    ck_assert_int_eq(options->reader_thread, LEAT_READER_OFF);
    leat__net_param_finish(&net);
    net_refused(HEAD LMDB "leat_param { rng: mt19937 } }",
                "net:3:19: rng: expected LEAT or CAFFE, found mt19937");
    net_refused(HEAD LMDB "leat_param { top_type: int8 } }",
                "net:3:24: top_type: expected FLOAT32, FLOAT64, FLOAT16, "
                "BFLOAT16 or UINT8, found int8");
    net_refused(
        HEAD LMDB "leat_param { reader: 'lmdb:x' } }",
        "net:3:14: expected data_param.source or leat_param.reader, found "
        "both");
    net_refused(HEAD LMDB "leat_param { world_size: 65536 } }",
                "net:3:26: world_size: expected 0 to 65535 ranks, found 65536");
    net_refused(HEAD LMDB "leat_param { on_error: RETRY } }",
                "net:3:24: on_error: expected FAIL, ZERO or REPLACE, found "
                "RETRY");
    static const char *const skips[] = {"SKIP", "skip", "'SKIP'"};
    for (int i = 0; i < 3; i++) {
        char text[512];
        snprintf(text, sizeof(text), HEAD LMDB "leat_param { on_error: %s } }",
                 skips[i]);
        net_refused(text, "net:3:24: on_error: SKIP is called REPLACE now; "
                          "expected FAIL, ZERO or REPLACE");
    }
    net_refused(
        HEAD LMDB "leat_param { max_errors: 3 } }",
        "net:3:14: max_errors: expected on_error ZERO or REPLACE beside it, "
        "found FAIL");
    net_refused(HEAD LMDB "leat_param { on_error: ZERO max_errors: -2 } }",
                "net:3:41: max_errors: expected -1 or more records (-1: no "
                "limit), found -2");
}
END_TEST

START_TEST(the_file_wins_where_it_speaks_and_the_caller_elsewhere)
{
    float means[] = {1, 2, 3};
    leat_transform_options transform = LEAT_TRANSFORM_OPTIONS_INIT;
    transform.mean_value = means;
    transform.mean_values = 3;
    transform.scale = 9;
    transform.crop_size = 5;
    char name[] = "mine";
    char device[] = "cpu";
    leat_data_layer_options choice = LEAT_DATA_LAYER_OPTIONS_INIT;
    choice.transform = &transform;
    choice.name = name;
    choice.device = device;
    choice.batch_size = 7;
    choice.prefetch = 9;
    choice.random_seed = 3;
    choice.workers = 2;
    choice.phase = LEAT_TRAIN;
    ck_assert_int_eq(
        net_parse(
            "layer { type: 'Data' top: 'd' data_param { source: 'x' backend:"
            " LMDB prefetch: 1 } transform_param { scale: 2 } leat_param {"
            " random_seed: 4 } }",
            LEAT_TEST, &choice),
        LEAT_OK);
    means[2] = 0;
    name[0] = device[0] = 0;
    ck_assert_str_eq(net.options.name, "mine");
    ck_assert_str_eq(net.options.device, "cpu");
    ck_assert_int_eq(net.options.phase, LEAT_TEST);
    ck_assert_int_eq(net.options.batch_size, 7);
    ck_assert_int_eq(net.options.prefetch, 1);
    ck_assert_int_eq(net.options.random_seed, 4);
    ck_assert_int_eq(net.options.workers, 2);
    ck_assert(net.options.transform->scale == 2);
    ck_assert_int_eq(net.options.transform->crop_size, 5);
    ck_assert_int_eq(net.options.transform->mean_values, 3);
    ck_assert(net.options.transform->mean_value[2] == 3);
    leat__net_param_finish(&net);
    ck_assert_int_eq(net_parse(HEAD LMDB "transform_param { mean_file: 'm' } }",
                               LEAT_TRAIN, &choice),
                     LEAT_OK);
    ck_assert_int_eq(net.options.batch_size, 64);
    ck_assert_int_eq(net.options.transform->mean_values, 0);
    ck_assert_str_eq(net.options.transform->mean_file, "m");
    leat__net_param_finish(&net);
}
END_TEST

/* The caller may have been compiled with an older leat. */
START_TEST(options_of_an_older_size_leave_the_rest_at_its_default)
{
    leat_data_layer_options choice = LEAT_DATA_LAYER_OPTIONS_INIT;
    choice.size = offsetof(leat_data_layer_options, workers);
    choice.rank = 3;
    choice.workers = 77;
    choice.stages = (const char *const *)1;
    ck_assert_int_eq(net_parse(HEAD LMDB "}", LEAT_TRAIN, &choice), LEAT_OK);
    ck_assert_int_eq(net.options.rank, 3);
    ck_assert_int_eq(net.options.workers, 0);
    ck_assert_uint_eq(net.options.size, sizeof(leat_data_layer_options));
    leat__net_param_finish(&net);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    leat_data_layer_options choice = LEAT_DATA_LAYER_OPTIONS_INIT;
    choice.device = "cpu";
    int status = LEAT_ENOMEM;
    int64_t n = 0;
    char text[40000];
    memset(text, ' ', sizeof(text));
    int used = snprintf(text, sizeof(text), "%s",
                        HEAD LMDB "transform_param { mean_value: 1");
    for (; used < 39000; used += 15)
        memcpy(text + used, " mean_value: 1 ", 15);
    memcpy(text + used, "} }", 4);
    for (; status; n++) {
        leat__alloc_fail_at(n);
        status = net_parse(text, LEAT_TRAIN, &choice);
        leat__alloc_fail_at(-1);
        ck_assert(status == LEAT_OK || status == LEAT_ENOMEM);
    }
    ck_assert_int_gt(n, 5);
    leat__net_param_finish(&net);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("net_param");
    TCase *tcase = tcase_create("net_param");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, what_the_file_leaves_out_has_caffes_defaults);
    tcase_add_test(tcase, a_transform_is_read_whole);
    tcase_add_test(tcase, v1_layers_carry_their_transform_in_data_param);
    tcase_add_test(tcase, what_caffe_ignores_is_ignored_with_a_log_line);
    tcase_add_test(tcase, v0_files_are_read_as_caffe_upgrades_them);
    tcase_add_test(tcase,
                   what_stands_beside_a_v0_layer_is_dropped_with_a_log_line);
    tcase_add_test(tcase, wrong_v0_layers_are_refused_where_they_stand);
    tcase_add_test(tcase, a_data_type_in_another_case_gets_a_hint);
    tcase_add_test(tcase,
                   fields_of_other_caffes_that_change_no_byte_are_ignored);
    tcase_add_test(tcase, fields_of_other_caffes_that_change_bytes_are_refused);
    tcase_add_test(tcase, wrong_layers_are_refused_where_they_stand);
    tcase_add_test(tcase, unknown_fields_inside_the_data_layer_are_named);
    tcase_add_test(tcase, wrong_values_are_refused_where_they_stand);
    tcase_add_test(tcase, both_force_flags_may_stand_there_if_one_is_false);
    tcase_add_test(tcase, leat_param_is_read_whole);
    tcase_add_test(tcase, leats_enums_are_read_in_any_case_and_quoted);
    tcase_add_test(tcase,
                   the_file_wins_where_it_speaks_and_the_caller_elsewhere);
    tcase_add_test(tcase,
                   options_of_an_older_size_leave_the_rest_at_its_default);
    tcase_add_test(tcase, every_allocation_may_fail);
    return suite_run(suite);
}
