#include "base/memory.h"
#include "support/suite.h"

#include <leat/config.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char text[] =
    "layer { name: 'digits' type: 'Data' top: 'images' top: 'labels'\n"
    "  data_param { source: 'no/such,db' batch_size: 3 backend: LMDB } }\n";

static char path[] = "/tmp/leat_net_XXXXXX";

static void setup(void)
{
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
    ck_assert_int_eq(close(fd), 0);
}

static void teardown(void)
{
    unlink(path);
}

START_TEST(a_net_file_gives_options_tops_and_pipeline)
{
    leat_net *net;
    ck_assert_int_eq(leat_net_open(&net, path, LEAT_TEST, NULL), LEAT_OK);
    const leat_data_layer_options *options = leat_net_options(net);
    ck_assert_str_eq(options->name, "digits");
    ck_assert_int_eq(options->phase, LEAT_TEST);
    ck_assert_int_eq(options->batch_size, 3);
    ck_assert_int_eq(leat_net_top_count(net), 2);
    ck_assert_str_eq(leat_net_top_name(net, 0), "images");
    ck_assert_str_eq(leat_net_top_name(net, 1), "labels");
    ck_assert_ptr_null(leat_net_top_name(net, 2));
    ck_assert_ptr_null(leat_net_top_name(net, -1));
    ck_assert_str_eq(leat_pipeline_text(leat_net_pipeline(net)),
                     "lmdb:no/such\\,db");
    leat_net_close(net);
    leat_net_close(NULL);
}
END_TEST

START_TEST(a_source_of_the_caller_replaces_the_files)
{
    static const char *const nets[] = {
        text,
        "layer { name: 'd' type: 'Data' top: 'data'\n"
        "  data_param { source: 'x' batch_size: 3 backend: LEVELDB } }",
        "layer { name: 'd' type: 'Data' top: 'data'\n"
        "  data_param { batch_size: 3 } }",
        "layer { name: 'd' type: 'Data' top: 'data'\n"
        "  data_param { batch_size: 3 } leat_param { reader: 'lmdb:y' } }"};
    leat_data_layer_options choice = LEAT_DATA_LAYER_OPTIONS_INIT;
    char source[] = "another,db";
    for (size_t i = 0; i < sizeof(nets) / sizeof(nets[0]); i++) {
        leat_net *net;
        choice.source = strcpy(source, "another,db");
        ck_assert_int_eq(leat_net_parse(&net, "net", nets[i], strlen(nets[i]),
                                        LEAT_TEST, &choice),
                         LEAT_OK);
        memset(source, 'x', sizeof(source) - 1);
        ck_assert_str_eq(leat_pipeline_text(leat_net_pipeline(net)),
                         "lmdb:another\\,db");
        ck_assert_ptr_null(leat_net_options(net)->source);
        leat_net_close(net);
    }
    /* What cannot be opened is not laid to the file. */
    leat_data_layer *layer;
    choice.source = "absent";
    int status =
        leat_data_layer_create_from_net(&layer, path, LEAT_TEST, &choice);
    ck_assert_int_eq(status, LEAT_OK);
    ck_assert_int_lt(leat_data_layer_setup(layer, NULL, 0), 0);
    leat_data_layer_destroy(layer);
    choice.source = "";
    leat_net *net;
    ck_assert_int_eq(leat_net_open(&net, path, LEAT_TEST, &choice),
                     LEAT_EINVAL);
}
END_TEST

START_TEST(a_mean_file_of_the_caller_replaces_the_files_mean)
{
    static const char *const means[] = {"", "transform_param { scale: 2 }",
                                        "transform_param { mean_file: 'no' }",
                                        "transform_param { mean_value: 3 }"};
    leat_data_layer_options choice = LEAT_DATA_LAYER_OPTIONS_INIT;
    leat_data_layer *layer;
    char file[] = "no/such.mean", written[300];
    for (size_t i = 0; i < sizeof(means) / sizeof(means[0]); i++) {
        leat_net *net;
        snprintf(written, sizeof(written),
                 "layer { name: 'd' type: 'Data' top: 'data' %s\n"
                 "  data_param { source: 'x' batch_size: 3 backend: LMDB } }",
                 means[i]);
        choice.mean_file = strcpy(file, "no/such.mean");
        ck_assert_int_eq(leat_net_parse(&net, "net", written, strlen(written),
                                        LEAT_TEST, &choice),
                         LEAT_OK);
        memset(file, 'x', sizeof(file) - 1);
        const leat_data_layer_options *options = leat_net_options(net);
        ck_assert_str_eq(options->transform->mean_file, "no/such.mean");
        ck_assert_int_eq(options->transform->mean_values, 0);
        ck_assert_ptr_null(options->mean_file);
        leat_net_close(net);
    }
    /* What cannot be opened is not laid to the file. */
    FILE *net = fopen(path, "w");
    ck_assert_ptr_nonnull(net);
    fputs(written, net);
    fclose(net);
    choice.mean_file = "absent.mean";
    ck_assert_int_eq(
        leat_data_layer_create_from_net(&layer, path, LEAT_TEST, &choice),
        LEAT_EIO);
    snprintf(written, sizeof(written), "%s: absent.mean: ", path);
    ck_assert_mem_eq(leat_last_error(), written, strlen(written));
}
END_TEST

static void *allocate(void *user, size_t bytes, size_t alignment)
{
    (void)user, (void)bytes, (void)alignment;
    return NULL;
}

static void release(void *user, void *memory, size_t bytes, size_t alignment)
{
    (void)user, (void)memory, (void)bytes, (void)alignment;
}

START_TEST(nothing_of_the_choice_is_kept)
{
    char name[] = "wheat", device[] = "cpu", list[] = "bad.txt";
    char mean[] = "mean.binaryproto";
    leat_allocator host = {sizeof(host), allocate, release, name};
    leat_allocator pinned = {sizeof(pinned), allocate, release, list};
    leat_transform_options transform = LEAT_TRANSFORM_OPTIONS_INIT;
    leat_data_layer_options choice = LEAT_DATA_LAYER_OPTIONS_INIT;
    transform.mean_file = mean;
    choice.name = name;
    choice.device = device;
    choice.bad_record_file = list;
    choice.transform = &transform;
    choice.host_allocator = &host;
    choice.pinned_allocator = &pinned;
    leat_net *net;
    ck_assert_int_eq(leat_net_open(&net, path, LEAT_TEST, &choice), LEAT_OK);
    memset(name, 'x', 5);
    memset(device, 'x', 3);
    memset(list, 'x', 7);
    memset(mean, 'x', 5);
    memset(&transform, 0, sizeof(transform));
    memset(&host, 0, sizeof(host));
    memset(&pinned, 0, sizeof(pinned));
    const leat_data_layer_options *options = leat_net_options(net);
    ck_assert_str_eq(options->name, "digits");
    ck_assert_str_eq(options->device, "cpu");
    ck_assert_str_eq(options->bad_record_file, "bad.txt");
    ck_assert_str_eq(options->transform->mean_file, "mean.binaryproto");
    ck_assert_ptr_eq(options->host_allocator->user, name);
    ck_assert_ptr_eq(options->pinned_allocator->user, list);
    ck_assert(options->pinned_allocator->alloc == allocate);
    leat_net_close(net);
}
END_TEST

START_TEST(a_file_that_cannot_be_read_is_named)
{
    leat_net *net = NULL;
    ck_assert_int_eq(leat_net_open(&net, "no/such/net", LEAT_TRAIN, NULL),
                     LEAT_EIO);
    ck_assert_str_eq(leat_last_error(),
                     "no/such/net: No such file or directory");
    ck_assert_int_eq(leat_net_open(&net, "/", LEAT_TRAIN, NULL), LEAT_EIO);
    ck_assert_int_eq(leat_net_open(&net, "/dev/zero", LEAT_TRAIN, NULL),
                     LEAT_EIO);
    ck_assert_str_eq(leat_last_error(),
                     "/dev/zero: expected a regular file, found a device");
    ck_assert_ptr_null(net);
}
END_TEST

START_TEST(a_reader_is_a_pipelines_text)
{
    leat_net *net;
    const char *with_reader =
        "layer { type: 'Data' top: 'd' data_param { batch_size: 1 }\n"
        "  leat_param { reader: 'lmdb:x' } }";
    const char *without_name =
        "layer { type: 'Data' top: 'd' data_param { batch_size: 1 }\n"
        "  leat_param { reader: 'no_such_reader:x' } }";
    ck_assert_int_eq(leat_net_parse(&net, "n", with_reader, strlen(with_reader),
                                    LEAT_TRAIN, NULL),
                     LEAT_OK);
    ck_assert_str_eq(leat_pipeline_text(leat_net_pipeline(net)), "lmdb:x");
    leat_net_close(net);
    ck_assert_int_eq(leat_net_parse(&net, "n", without_name,
                                    strlen(without_name), LEAT_TRAIN, NULL),
                     LEAT_EINVAL);
    ck_assert_ptr_nonnull(
        strstr(leat_last_error(), "n:2:25: there is no reader"));
}
END_TEST

/* A fault in a reader's text is named where it is written in the file. */
START_TEST(a_wrong_reader_has_a_place_of_its_own)
{
    static const struct {
        const char *reader;
        const char *line;
    } cases[] = {
        {"'lmdb:x,depth=7'", "n:2:30: the reader \"lmdb\" has no"},
        {"\"lmdb:x | \"\n   'nothing'", "n:3:5: there is no reader"},
        {"'lmdb' # one\n '' \"\" ':x,' \"depth=7\"", "n:3:15: the reader"},
        {"'lmdb:x,\\n\\tdepth=7'", "n:2:34: the reader"},
        {"'lmdb:\\303\\xa4\\u00e4,depth=7'", "n:2:43: the reader"},
        {"'lmdb:x,\tdepth=7'", "n:2:33: the reader"},
        {"'lmdb:x |'", "n:2:31: expected the name of a reader"},
        {"'lmdb:x |' ''", "n:2:34: expected the name of a reader"},
        {"'(lmdb:x'", "n:2:23: this parenthesis is not closed"},
        {"'lmdb:\\\\,x,y'", "n:2:33: the reader \"lmdb\" takes 1"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        leat_net *net = NULL;
        char whole[256];
        snprintf(whole, sizeof(whole),
                 "layer { type: 'Data' top: 'd' data_param { batch_size: 1 }\n"
                 "leat_param { reader: %s } }",
                 cases[i].reader);
        ck_assert_int_eq(
            leat_net_parse(&net, "n", whole, strlen(whole), LEAT_TRAIN, NULL),
            LEAT_EINVAL);
        ck_assert_msg(strstr(leat_last_error(), cases[i].line) ==
                          leat_last_error(),
                      "%s: %s", cases[i].reader, leat_last_error());
        ck_assert_ptr_null(net);
    }
}
END_TEST

#define SHUFFLED(more)                                                         \
    "layer { name: 'd' type: 'Data' top: 'data'\n"                             \
    "  data_param { batch_size: 3 shuffle: " more " }"

START_TEST(shuffle_is_a_permutation_in_either_phase)
{
    static const char *const cases[][2] = {
        {SHUFFLED("true source: 'x' backend: LMDB") " }", "lmdb:x | shuffle"},
        {SHUFFLED("false source: 'x' backend: LMDB") " }", "lmdb:x"},
        {SHUFFLED("true") " leat_param { reader: 'lmdb:x | take:3' } }",
         "lmdb:x | take:3 | shuffle"}};
    for (int i = 0; i < 6; i++) {
        const char *const *one = cases[i / 2];
        leat_net *net;
        int status = leat_net_parse(&net, "n", one[0], strlen(one[0]),
                                    i % 2 ? LEAT_TEST : LEAT_TRAIN, NULL);
        ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
        ck_assert_str_eq(leat_pipeline_text(leat_net_pipeline(net)), one[1]);
        leat_net_close(net);
    }
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    leat_net *net;
    int status = LEAT_ENOMEM;
    int64_t n = 0;
    const char *shuffled = SHUFFLED("true source: 'x' backend: LMDB") " }";
    for (; status; n++) {
        leat__alloc_fail_at(n);
        status = leat_net_parse(&net, "n", shuffled, strlen(shuffled),
                                LEAT_TRAIN, NULL);
        leat__alloc_fail_at(-1);
        ck_assert_msg(status == LEAT_OK || status == LEAT_ENOMEM, "%s",
                      leat_last_error());
    }
    leat_net_close(net);
    status = LEAT_ENOMEM;
    for (n = 0; status; n++) {
        leat__alloc_fail_at(n);
        status = leat_net_open(&net, path, LEAT_TRAIN, NULL);
        leat__alloc_fail_at(-1);
        ck_assert_msg(status == LEAT_OK || status == LEAT_ENOMEM, "%s",
                      leat_last_error());
    }
    ck_assert_int_gt(n, 4);
    leat_net_close(net);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("net");
    TCase *tcase = tcase_create("net");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_net_file_gives_options_tops_and_pipeline);
    tcase_add_test(tcase, a_source_of_the_caller_replaces_the_files);
    tcase_add_test(tcase, a_mean_file_of_the_caller_replaces_the_files_mean);
    tcase_add_test(tcase, nothing_of_the_choice_is_kept);
    tcase_add_test(tcase, a_file_that_cannot_be_read_is_named);
    tcase_add_test(tcase, a_reader_is_a_pipelines_text);
    tcase_add_test(tcase, a_wrong_reader_has_a_place_of_its_own);
    tcase_add_test(tcase, shuffle_is_a_permutation_in_either_phase);
    tcase_add_test(tcase, every_allocation_may_fail);
    return suite_run(suite);
}
