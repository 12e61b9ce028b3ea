/* What a layer makes of bad records: counts, limits, its list and its file. */
#include "support/bad_records.h"
#include "support/layer_fixture.h"

#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[] = "/tmp/leat-bad-XXXXXX";
static char path[sizeof(directory) + 16];
static leat_data_layer_options options;
static bad_records plan;

static void set_up(void)
{
    const leat_data_layer_options defaults = LEAT_DATA_LAYER_OPTIONS_INIT;
    const bad_records none = {.count = 20};
    options = defaults;
    options.batch_size = 4;
    options.on_error = LEAT_ON_ERROR_REPLACE;
    plan = none;
    snprintf(path, sizeof(path), "%s/bad", directory);
}

static void tear_down(void)
{
    (void)remove(path);
}

static int open_layer(layer_fixture *fixture)
{
    leat_pipeline *pipeline = bad_records_pipeline(&plan);
    ck_assert_int_eq(
        leat_data_layer_create(&fixture->layer, pipeline, &options), LEAT_OK);
    leat_pipeline_unref(pipeline);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(leat_blob_create(&fixture->top[i], NULL), LEAT_OK);
    return leat_data_layer_setup(fixture->layer, fixture->top, 2);
}

static leat_stats read_stats(const layer_fixture *fixture)
{
    leat_stats stats = {.size = sizeof(stats)};
    ck_assert_int_eq(leat_data_layer_stats(fixture->layer, &stats), LEAT_OK);
    return stats;
}

static void read_file(char *text, size_t size)
{
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, size - 1, file)] = 0;
    fclose(file);
}

START_TEST(more_than_max_errors_end_the_layer_after_the_good_batches)
{
    plan.kind[2] = BAD_RECORDS_UNREADABLE;
    plan.kind[9] = BAD_RECORDS_SHORT;
    plan.kind[11] = BAD_RECORDS_SHORT;
    options.max_errors = 2;
    for (int workers = 1; workers < 4; workers++)
        for (int prefetch = 1; prefetch < 6; prefetch += 2) {
            options.workers = workers;
            options.prefetch = prefetch;
            layer_fixture fixture;
            leat_token token;
            leat_token_init(&token);
            ck_assert_int_eq(open_layer(&fixture), LEAT_OK);
            ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
            ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
            ck_assert_int_eq(read_stats(&fixture).bad_records, 1);
            ck_assert_int_eq(leat_data_layer_save(fixture.layer, &token),
                             LEAT_OK);
            for (int i = 0; i < 3; i++) {
                ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_ELIMIT);
                ck_assert_ptr_nonnull(
                    strstr(leat_last_error(),
                           "3 bad records, max_errors allows 2; the first one: "
                           "planted: record 2 cannot be read"));
            }
            ck_assert_int_eq(read_stats(&fixture).bad_records, 3);
            /* What was met before the token's position stays counted. */
            ck_assert_int_eq(leat_data_layer_restore(fixture.layer, &token),
                             LEAT_OK);
            ck_assert_int_eq(read_stats(&fixture).bad_records, 0);
            ck_assert_int_eq(read_stats(&fixture).distinct_bad, 1);
            ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_ELIMIT);
            ck_assert_int_eq(read_stats(&fixture).bad_records, 2);
            leat_token_finish(&token);
            layer_fixture_close(&fixture);
        }
}
END_TEST

START_TEST(a_record_counts_once_however_often_it_comes_back)
{
    plan.kind[2] = BAD_RECORDS_UNREADABLE;
    plan.kind[9] = BAD_RECORDS_SHORT;
    options.max_errors = 2;
    options.bad_record_file = path;
    leat_token start;
    leat_token_init(&start);
    layer_fixture fixture;
    ck_assert_int_eq(open_layer(&fixture), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_save(fixture.layer, &start), LEAT_OK);
    for (int i = 0; i < 50; i++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(read_stats(&fixture).bad_records, 20);
    ck_assert_int_eq(read_stats(&fixture).distinct_bad, 2);
    /* From the start nothing was met yet, and all of it is met again. */
    ck_assert_int_eq(leat_data_layer_restore(fixture.layer, &start), LEAT_OK);
    ck_assert_int_eq(read_stats(&fixture).distinct_bad, 0);
    for (int i = 0; i < 12; i++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(read_stats(&fixture).distinct_bad, 2);
    layer_fixture_close(&fixture);
    /* Another layer knows what the file lists. */
    ck_assert_int_eq(open_layer(&fixture), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_restore(fixture.layer, &start), LEAT_OK);
    for (int i = 0; i < 12; i++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    layer_fixture_close(&fixture);
    leat_token_finish(&start);
    char text[4096];
    read_file(text, sizeof(text));
    ck_assert_str_eq(text, "planted\t2\t\t0\t2\trecord\tcannot be read\n"
                           "planted\t9\t\t0\t9\trecord\tan image of 2 x 5 x "
                           "6 uint8 needs 60 bytes, there are 59\n");
}
END_TEST

START_TEST(no_bad_record_at_all_may_be_allowed)
{
    options.max_errors = 0;
    options.has_max_errors = 1;
    layer_fixture fixture;
    ck_assert_int_eq(open_layer(&fixture), LEAT_OK);
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    layer_fixture_close(&fixture);
    plan.kind[5] = BAD_RECORDS_UNLABELED;
    ck_assert_int_eq(open_layer(&fixture), LEAT_OK);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_ELIMIT);
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(the_list_is_in_order_and_bounded_and_the_rest_is_counted)
{
    for (int i = 1; i < plan.count; i++)
        plan.kind[i] = i % 2 ? BAD_RECORDS_UNREADABLE : BAD_RECORDS_SHORT;
    layer_fixture fixture;
    ck_assert_int_eq(open_layer(&fixture), LEAT_OK);
    for (int i = 0; i < 50; i++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    leat_stats stats = read_stats(&fixture);
    ck_assert_int_eq(stats.bad_records, 190);
    ck_assert_int_eq(stats.nbad, LEAT_BAD_RECORDS_MAX);
    for (int i = 0; i < stats.nbad; i++) {
        int64_t record = 1 + i % 19;
        ck_assert_int_eq(stats.bad[i].from.record, record);
        ck_assert_int_eq(stats.bad[i].from.position, record);
        ck_assert_int_eq(stats.bad[i].from.epoch, i / 19);
        ck_assert_str_eq(stats.bad[i].from.source, "planted");
        ck_assert_int_eq(stats.bad[i].from.replacement,
                         LEAT_REPLACEMENT_RECORD);
        ck_assert_ptr_nonnull(strstr(stats.bad[i].reason,
                                     record % 2 ? "cannot be read" : "needs"));
    }
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(batches_that_fail_are_listed_too)
{
    options.on_error = LEAT_ON_ERROR_FAIL;
    options.bad_record_file = path;
    plan.kind[5] = BAD_RECORDS_UNREADABLE;
    plan.kind[6] = BAD_RECORDS_SHORT;
    plan.kind[15] = BAD_RECORDS_SHORT;
    layer_fixture fixture;
    ck_assert_int_eq(open_layer(&fixture), LEAT_OK);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(layer_fixture_forward(&fixture),
                         i == 1 || i == 3 ? LEAT_EDATA : LEAT_OK);
    leat_stats stats = read_stats(&fixture);
    ck_assert_int_eq(stats.bad_records, 2);
    ck_assert_int_eq(stats.nbad, 2);
    ck_assert_int_eq(stats.bad[0].from.record, 5);
    ck_assert_int_eq(stats.bad[1].from.record, 15);
    ck_assert_int_eq(stats.bad[1].from.replacement, LEAT_REPLACEMENT_NONE);
    layer_fixture_close(&fixture);
    char text[4096];
    read_file(text, sizeof(text));
    ck_assert_str_eq(text, "planted\t5\t\t0\t5\tnone\tcannot be read\n"
                           "planted\t15\t\t0\t15\tnone\tan image of 2 x 5 x 6 "
                           "uint8 needs 60 bytes, there are 59\n");
}
END_TEST

START_TEST(the_file_gets_a_line_each_after_what_is_there)
{
    FILE *file = fopen(path, "w");
    ck_assert_int_ge(fputs("# before\n", file), 0);
    ck_assert_int_eq(fclose(file), 0);
    options.bad_record_file = path;
    options.on_error = LEAT_ON_ERROR_ZERO;
    plan.kind[17] = BAD_RECORDS_UNREADABLE;
    layer_fixture fixture;
    ck_assert_int_eq(open_layer(&fixture), LEAT_OK);
    for (int i = 0; i < 11; i++)
        ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(read_stats(&fixture).unwritten, 0);
    layer_fixture_close(&fixture);
    char text[4096];
    read_file(text, sizeof(text));
    ck_assert_str_eq(text, "# before\n"
                           "planted\t17\t\t0\t17\tzeros\tcannot be read\n");
}
END_TEST

static void write_file(const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

/* Such as --bad-record-file with the name of the database itself. */
START_TEST(a_file_that_is_no_text_is_refused_and_left_as_it_is)
{
    static const struct {
        const char *bytes;
        size_t size;
    } files[] = {
        {"\0\0\0\0\0\0\0\0\0\0\x08\0\0\0\0\0\xde\xc0\xef\xbe", 20},
        {"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16},
        {"\xff\xd8\xff\xe0\0\x10JFIF\0", 11},
        {"\x93NUMPY\x01\0", 8},
        {"\x08\x01\x10\x01\x18\x1c", 6},
    };
    options.bad_record_file = path;
    options.on_error = LEAT_ON_ERROR_ZERO;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char bytes[64];
        write_file(files[i].bytes, files[i].size);
        layer_fixture fixture;
        ck_assert_int_eq(open_layer(&fixture), LEAT_EINVAL);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "is no text"));
        ck_assert_ptr_nonnull(strstr(leat_last_error(), path));
        layer_fixture_close(&fixture);
        FILE *file = fopen(path, "rb");
        ck_assert_uint_eq(fread(bytes, 1, sizeof(bytes), file), files[i].size);
        fclose(file);
        ck_assert_mem_eq(bytes, files[i].bytes, files[i].size);
    }
}
END_TEST

/* A key of that many bytes, all the same letter. */
static const char *long_key(size_t size)
{
    static _Thread_local char key[301];
    memset(key, 'k', sizeof(key));
    key[size] = 0;
    return key;
}

/* A reader whose keys last until the next sample alone. */
static int next_with_long_key(void *pass, leat_sample *sample)
{
    int *number = pass;
    char *buffer = leat_sample_take(sample, 1 + 300);
    if (!buffer)
        return LEAT_ENOMEM;
    size_t size = (*number)++ % 2 ? 64 : 300;
    buffer[0] = 7;
    memcpy(buffer + 1, long_key(size), size);
    sample->nfields = 1;
    sample->stable = 0;
    sample->field[0] = (leat_field){LEAT_UINT8, 3, buffer, 1, {1, 1, 1}};
    sample->from.key = buffer + 1;
    sample->from.key_size = size;
    return LEAT_OK;
}

START_TEST(a_batch_marks_the_keys_that_it_cut)
{
    static int number;
    const leat_field_spec field = {
        .name = "data", .dtype = LEAT_UINT8, .ndim = 3, .shape = {1, 1, 1}};
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = &field,
                                      .nfields = 1,
                                      .next = next_with_long_key};
    leat_pipeline *pipeline;
    leat_data_layer *layer;
    leat_blob *top;
    number = 0;
    options.on_error = LEAT_ON_ERROR_FAIL;
    ck_assert_int_eq(leat_pipeline_callback(&pipeline, &callbacks, &number),
                     LEAT_OK);
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_OK);
    ck_assert_int_eq(leat_blob_create(&top, NULL), LEAT_OK);
    ck_assert_int_eq(leat_data_layer_setup(layer, &top, 1), LEAT_OK);
    for (int batch = 0; batch < 5; batch++) {
        ck_assert_int_eq(leat_data_layer_forward(layer, &top, 1, LEAT_HOST),
                         LEAT_OK);
        for (int i = 0; i < 4; i++) {
            const leat_provenance *from =
                &leat_data_layer_batch(layer)->from[i];
            ck_assert_uint_eq(from->key_size, 64);
            ck_assert_uint_eq(from->key_cut, i % 2 ? 0 : 300 - 64);
            ck_assert_mem_eq(from->key, long_key(64), 64);
        }
    }
    leat_data_layer_destroy(layer);
    leat_blob_destroy(top);
    leat_pipeline_unref(pipeline);
}
END_TEST

/* Such as --bad-record-file with the name of the net or of the token. */
START_TEST(a_text_that_lists_no_records_is_refused_and_left_as_it_is)
{
    static const char *const texts[] = {
        "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n",
        "AQAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "# a net\nlayer {\n  name: \"data\"\n  type: \"Data\"\n}\n",
        "train/a.jpg 3\ntrain/b.jpg 1\n",
        "1\t2\t3\t4\t5\t6\t7x\na\tb\tc\td\te\tf\tg\n",
        "db\t1\t\tlast\t5\tzeros\tbad\n",
        "db\t1\t\t0\t5\tzero\tbad\ndb\t1\t\t0\t5\tzeros!\tbad\n",
        "\n\n5,1,2,3\n",
    };
    layer_fixture fixture;
    char text[256];
    options.bad_record_file = path;
    options.on_error = LEAT_ON_ERROR_ZERO;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        write_file(texts[i], strlen(texts[i]));
        ck_assert_int_eq(open_layer(&fixture), LEAT_EINVAL);
        layer_fixture_close(&fixture);
        ck_assert_ptr_nonnull(
            strstr(leat_last_error(), "lists no bad records; give another"));
        read_file(text, sizeof(text));
        ck_assert_str_eq(text, texts[i]);
    }
    static const char *const good[] = {
        "",       "\n",   "# list\n",
        "# list", "s\t1", "x\ndb\t1\t\t0\t5\tzeros\tbad\n",
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        write_file(good[i], strlen(good[i]));
        ck_assert_int_eq(open_layer(&fixture), LEAT_OK);
        layer_fixture_close(&fixture);
    }
}
END_TEST

START_TEST(a_setup_that_fails_leaves_no_empty_file)
{
    layer_fixture fixture;
    options.bad_record_file = path;
    for (int i = 0; i < plan.count; i++)
        plan.kind[i] = BAD_RECORDS_UNREADABLE;
    ck_assert_int_eq(open_layer(&fixture), LEAT_EDATA);
    layer_fixture_close(&fixture);
    ck_assert_int_eq(access(path, F_OK), -1);
    /* One that was there stays. */
    write_file("", 0);
    ck_assert_int_eq(open_layer(&fixture), LEAT_EDATA);
    layer_fixture_close(&fixture);
    ck_assert_int_eq(access(path, F_OK), 0);
}
END_TEST

START_TEST(a_setup_that_fails_leaves_a_link_to_nothing_as_it_was)
{
    layer_fixture fixture;
    struct stat found;
    char target[sizeof(path) + 8];
    snprintf(target, sizeof(target), "%s-target", path);
    ck_assert_int_eq(symlink(target, path), 0);
    options.bad_record_file = path;
    for (int i = 0; i < plan.count; i++)
        plan.kind[i] = BAD_RECORDS_UNREADABLE;
    ck_assert_int_eq(open_layer(&fixture), LEAT_EDATA);
    layer_fixture_close(&fixture);
    ck_assert_int_eq(access(target, F_OK), -1);
    ck_assert(lstat(path, &found) == 0 && S_ISLNK(found.st_mode));
}
END_TEST

START_TEST(what_cannot_be_a_file_is_an_error_of_setup)
{
    layer_fixture fixture;
    char nowhere[sizeof(path) + 8];
    snprintf(nowhere, sizeof(nowhere), "%s/no/bad", directory);
    options.bad_record_file = nowhere;
    ck_assert_int_eq(open_layer(&fixture), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), nowhere));
    layer_fixture_close(&fixture);
    options.bad_record_file = directory;
    ck_assert_int_eq(open_layer(&fixture), LEAT_EIO);
    layer_fixture_close(&fixture);
    options.bad_record_file = "/dev/null";
    ck_assert_int_eq(open_layer(&fixture), LEAT_EINVAL);
    layer_fixture_close(&fixture);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    options.bad_record_file = path;
    ck_assert_int_eq(open_layer(&fixture), LEAT_EINVAL);
    layer_fixture_close(&fixture);
}
END_TEST

START_TEST(who_waits_at_a_pipe_is_not_woken_by_a_refused_setup)
{
    layer_fixture fixture;
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    struct pollfd reader = {.fd = open(path, O_RDONLY | O_NONBLOCK),
                            .events = POLLIN};
    ck_assert_int_ge(reader.fd, 0);
    options.bad_record_file = path;
    ck_assert_int_eq(open_layer(&fixture), LEAT_EINVAL);
    layer_fixture_close(&fixture);
    /* A writer that has come and gone would be an end. */
    ck_assert_int_eq(poll(&reader, 1, 0), 0);
    close(reader.fd);
}
END_TEST

START_TEST(a_setup_that_failed_may_come_again)
{
    options.bad_record_file = path;
    layer_fixture fixture;
    for (int i = 0; i < plan.count; i++)
        plan.kind[i] = BAD_RECORDS_UNREADABLE;
    ck_assert_int_eq(open_layer(&fixture), LEAT_EDATA);
    plan.kind[7] = BAD_RECORDS_GOOD;
    ck_assert_int_eq(leat_data_layer_setup(fixture.layer, fixture.top, 2),
                     LEAT_OK);
    ck_assert_int_eq(layer_fixture_forward(&fixture), LEAT_OK);
    ck_assert_int_eq(read_stats(&fixture).bad_records, 4);
    ck_assert_int_eq(read_stats(&fixture).bad[0].from.replacement,
                     LEAT_REPLACEMENT_ZEROS);
    layer_fixture_close(&fixture);
}
END_TEST

static void refuse(const char *word)
{
    leat_pipeline *pipeline = bad_records_pipeline(&plan);
    leat_data_layer *layer;
    ck_assert_int_eq(leat_data_layer_create(&layer, pipeline, &options),
                     LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), word));
    leat_pipeline_unref(pipeline);
}

START_TEST(options_that_contradict_themselves_are_refused)
{
    options.max_errors = -2;
    refuse("max_errors");
    options.max_errors = 3;
    options.on_error = LEAT_ON_ERROR_FAIL;
    refuse("max_errors");
    options.on_error = (leat_on_error)7;
    refuse("on_error");
}
END_TEST

int main(void)
{
    if (!mkdtemp(directory))
        return EXIT_FAILURE;
    Suite *suite = suite_create("layer_bad_records");
    TCase *tcase = tcase_create("layer_bad_records");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase,
                   more_than_max_errors_end_the_layer_after_the_good_batches);
    tcase_add_test(tcase, a_record_counts_once_however_often_it_comes_back);
    tcase_add_test(tcase, no_bad_record_at_all_may_be_allowed);
    tcase_add_test(tcase,
                   the_list_is_in_order_and_bounded_and_the_rest_is_counted);
    tcase_add_test(tcase, batches_that_fail_are_listed_too);
    tcase_add_test(tcase, the_file_gets_a_line_each_after_what_is_there);
    tcase_add_test(tcase, a_file_that_is_no_text_is_refused_and_left_as_it_is);
    tcase_add_test(tcase, a_batch_marks_the_keys_that_it_cut);
    tcase_add_test(tcase,
                   a_text_that_lists_no_records_is_refused_and_left_as_it_is);
    tcase_add_test(tcase, a_setup_that_fails_leaves_no_empty_file);
    tcase_add_test(tcase,
                   a_setup_that_fails_leaves_a_link_to_nothing_as_it_was);
    tcase_add_test(tcase, what_cannot_be_a_file_is_an_error_of_setup);
    tcase_add_test(tcase, who_waits_at_a_pipe_is_not_woken_by_a_refused_setup);
    tcase_add_test(tcase, a_setup_that_failed_may_come_again);
    tcase_add_test(tcase, options_that_contradict_themselves_are_refused);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    (void)remove(directory);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
