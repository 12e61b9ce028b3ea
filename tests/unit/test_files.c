#include "support/record_sequence.h"
#include "support/suite.h"

#include <leat/ext/reader.h>

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

static leat_reader *open_names(const char *text)
{
    leat_pipeline *pipeline;
    leat_reader *reader;
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, text), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(pipeline, &reader), LEAT_OK);
    leat_pipeline_unref(pipeline);
    return reader;
}

static int save(leat_reader *reader)
{
    leat_token token;
    leat_token_init(&token);
    int status = leat_reader_save(reader, &token);
    leat_token_finish(&token);
    return status;
}

/* As an archive unpacks it. */
static void write_unpacked(const char *name, const char *text)
{
    static const struct timespec then[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    write_text("unpacked", text);
    ck_assert_int_eq(utimensat(AT_FDCWD, "unpacked", then, 0), 0);
    ck_assert_int_eq(rename("unpacked", name), 0);
}

START_TEST(a_file_replaced_at_one_time_by_another_size_is_noticed)
{
    write_unpacked("one", "a\n");
    write_unpacked("two", "b\n");
    leat_reader *reader = open_names("files:one,two");
    ck_assert_int_eq(leat_reader_check(reader), LEAT_OK);
    ck_assert_int_eq(save(reader), LEAT_OK);
    ck_assert_int_eq(leat_reader_check(reader), LEAT_OK);
    write_unpacked("two", "c\n"); /* as where files are numbered anew */
    ck_assert_int_eq(leat_reader_check(reader), LEAT_OK);
    write_unpacked("two", "bb\n");
    ck_assert_int_eq(leat_reader_check(reader), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "one of 2 was written"));
    leat_reader_close(reader);
}
END_TEST

/* old has x.rec, new has y.rec, too; now is a link to old, then one to new. */
static void make_folders(int is_linked)
{
    ck_assert_int_eq(mkdir("old", 0755), 0);
    ck_assert_int_eq(mkdir("new", 0755), 0);
    ck_assert_int_eq(symlink("old", "now"), 0);
    ck_assert_int_eq(symlink("new", "next"), 0);
    write_unpacked("old/x.rec", "a\n");
    if (is_linked)
        ck_assert_int_eq(link("old/x.rec", "new/x.rec"), 0);
    else
        write_unpacked("new/x.rec", "b\n");
    write_unpacked("new/y.rec", "b\n");
}

static void check_replaced(int status)
{
    ck_assert_int_eq(status, LEAT_EIO);
    ck_assert_ptr_nonnull(
        strstr(leat_last_error(), "now: removed or replaced while"));
}

START_TEST(a_folder_replaced_after_it_was_listed_is_noticed)
{
    make_folders(0);
    leat_reader *early = open_names("files:now/*");
    leat_reader *late = open_names("files:now/*");
    ck_assert_int_eq(save(early), LEAT_OK);
    ck_assert_int_eq(rename("next", "now"), 0);
    check_replaced(leat_reader_check(early));
    check_replaced(leat_reader_check(late));
    check_replaced(save(late));
    check_replaced(leat_reader_check(late));
    leat_reader_close(early);
    leat_reader_close(late);
}
END_TEST

/* As where a new release links to the files of the one before. */
START_TEST(a_new_folder_with_the_very_files_is_as_good)
{
    make_folders(1);
    leat_reader *reader = open_names("files:now/*");
    ck_assert_int_eq(save(reader), LEAT_OK);
    ck_assert_int_eq(rename("next", "now"), 0);
    ck_assert_int_eq(leat_reader_check(reader), LEAT_OK);
    leat_reader_close(reader);
}
END_TEST

START_TEST(a_list_may_go_once_names_are_read)
{
    leat_sample sample;
    leat_sample_init(&sample);
    write_text("one", "a\n");
    write_text("list", "one\n");
    leat_reader *reader = open_names("files:@list");
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(unlink("list"), 0);
    ck_assert_int_eq(leat_reader_check(reader), LEAT_OK);
    ck_assert_int_eq(save(reader), LEAT_OK);
    ck_assert_int_eq(leat_reader_check(reader), LEAT_OK);
    leat_reader_close(reader);
    leat_sample_finish(&sample);
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
    tcase_add_test(tests,
                   a_file_replaced_at_one_time_by_another_size_is_noticed);
    tcase_add_test(tests, a_folder_replaced_after_it_was_listed_is_noticed);
    tcase_add_test(tests, a_new_folder_with_the_very_files_is_as_good);
    tcase_add_test(tests, a_list_may_go_once_names_are_read);
    tcase_add_test(tests, files_may_move_but_not_change_their_names);
    tcase_add_test(tests, code_and_text_give_equal_pipelines);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
