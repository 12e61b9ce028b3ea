#include "support/record_sequence.h"
#include "support/suite.h"

#include <leat/ext/reader.h>

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static void setup(void)
{
    record_sequence_begin();
}

static void teardown(void)
{
    record_sequence_end();
}

static void check_names(const char *text, const char *const names[], int n)
{
    known_record known[50];
    for (int i = 0; i < n; i++)
        known[i] = (known_record){names[i], strlen(names[i])};
    record_sequence_check(text, known, n);
}

START_TEST(names_come_sorted_and_as_often_as_given)
{
    static const char *const names[] = {"b.rec",  "a1.rec", "a10.rec",
                                        "a2.rec", "b.rec",  "none"};
    record_sequence_write("a2.rec", "", 0);
    record_sequence_write("a10.rec", "", 0);
    record_sequence_write("a1.rec", "", 0);
    record_sequence_write("b.rec", "", 0);
    record_sequence_write("list", "b.rec\nnone\n", 11);
    check_names("files:b.rec,a*.rec,@list", names, 6);
    check_names("files:none", names + 5, 1);
}
END_TEST

START_TEST(a_pattern_without_a_match_is_named)
{
    int good, bad;
    ck_assert_int_eq(record_sequence_read("files:*.rec", &good, &bad),
                     LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "*.rec: no file matches"));
}
END_TEST

static int restore_elsewhere(const char *from, const char *to)
{
    leat_token token;
    leat_pipeline *pipeline;
    leat_reader *reader;
    int status = LEAT_OK;
    leat_token_init(&token);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(leat_pipeline_parse(&pipeline, i ? to : from),
                         LEAT_OK);
        ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
        status = i ? leat_reader_restore(reader, &token)
                   : leat_reader_save(reader, &token);
        leat_reader_close(reader);
        leat_pipeline_unref(pipeline);
    }
    leat_token_finish(&token);
    return status;
}

START_TEST(files_may_move_but_not_change_their_names)
{
    ck_assert_int_eq(restore_elsewhere("files:a/x,a/y", "files:b/x,y"),
                     LEAT_OK);
    ck_assert_int_eq(restore_elsewhere("files:a/x,a/y", "files:a/y,a/x"),
                     LEAT_EINVAL);
    ck_assert_int_eq(restore_elsewhere("files:a/x,a/y", "files:a/x"),
                     LEAT_EINVAL);
    ck_assert_int_eq(restore_elsewhere("files:a,bc", "files:ab,c"),
                     LEAT_EINVAL);
}
END_TEST

static void write_text(const char *name, const char *text)
{
    record_sequence_write(name, (const unsigned char *)text, strlen(text));
}

/* What is kept of files that a reader opens by their names is of their sizes,
   too. */
START_TEST(files_of_other_sizes_are_other_data)
{
    static const char text[] =
        "files:one | interleave:(text:{}) | cache:dir=kept";
    int good, bad;
    write_text("one", "a\nb\n");
    ck_assert_int_eq(record_sequence_read(text, &good, &bad), LEAT_END);
    ck_assert_int_eq(good, 2);
    ck_assert_int_eq(record_sequence_read(text, &good, &bad), LEAT_END);
    ck_assert_int_eq(good, 2);
    write_text("one", "a\nb\nc\n");
    ck_assert_int_eq(record_sequence_read(text, &good, &bad), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "another data set"));
}
END_TEST

/* Each function makes what the text of its name makes. */
START_TEST(code_and_text_give_equal_pipelines)
{
    static const char *const two[] = {"a, b", "c*"};
    const leat_file_options gzip = {.size = sizeof(gzip),
                                    .compression = LEAT_COMPRESSION_GZIP,
                                    .max_record = 1000};
    leat_pipeline *pipeline[5];
    static const char *const texts[5] = {
        "files:a\\, b,c*",
        "text:a\\, b,c*,compression=GZIP,max_record=1000",
        "recordio:a\\, b,c*",
        "idx:images,labels,compression=GZIP,max_record=1000",
        "idx:images",
    };
    ck_assert_int_eq(leat_pipeline_files(&pipeline[0], two, 2), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_text_lines(&pipeline[1], two, 2, &gzip),
                     LEAT_OK);
    ck_assert_int_eq(leat_pipeline_recordio(&pipeline[2], two, 2, NULL),
                     LEAT_OK);
    ck_assert_int_eq(leat_pipeline_idx(&pipeline[3], "images", "labels", &gzip),
                     LEAT_OK);
    ck_assert_int_eq(leat_pipeline_idx(&pipeline[4], "images", NULL, NULL),
                     LEAT_OK);
    for (int i = 0; i < 5; i++) {
        leat_pipeline *parsed;
        ck_assert_int_eq(leat_pipeline_parse(&parsed, texts[i]), LEAT_OK);
        ck_assert_str_eq(leat_pipeline_text(pipeline[i]),
                         leat_pipeline_text(parsed));
        leat_pipeline_unref(parsed);
        leat_pipeline_unref(pipeline[i]);
    }
    ck_assert_int_eq(leat_pipeline_files(&pipeline[0], two, 0), LEAT_EINVAL);
    ck_assert_int_eq(leat_pipeline_idx(&pipeline[0], NULL, NULL, NULL),
                     LEAT_EINVAL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("files");
    TCase *tests = tcase_create("files");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, names_come_sorted_and_as_often_as_given);
    tcase_add_test(tests, a_pattern_without_a_match_is_named);
    tcase_add_test(tests, files_of_other_sizes_are_other_data);
    tcase_add_test(tests, files_may_move_but_not_change_their_names);
    tcase_add_test(tests, code_and_text_give_equal_pipelines);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
