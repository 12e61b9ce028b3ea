/*
 * The elements of an interleave whose data are identified, as an import or a
 * cache on disk does: what is read then is of those data, or an error.
 */
#include "support/record_sequence.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES = 4, LINES = 3 };

static leat_sample sample;

static void write_text(const char *name, const char *text)
{
    record_sequence_write(name, (const unsigned char *)text, strlen(text));
}

/* Files of one time, as an archive unpacks them, in two folders. */
static void write_release(const char *folder, char line, int lines,
                          time_t seconds)
{
    const struct timespec then[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};
    char name[40], text[2 * LINES + 1] = "";
    ck_assert_int_eq(mkdir(folder, 0755), 0);
    for (int i = 0; i < lines; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%c\n",
                 line);
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof(name), "%s/%c", folder,
                 i < FILES / 2 ? 'x' : 'y');
        (void)mkdir(name, 0755);
        snprintf(name, sizeof(name), "%s/%c/%d", folder,
                 i < FILES / 2 ? 'x' : 'y', i);
        write_text(name, text);
        ck_assert_int_eq(utimensat(AT_FDCWD, name, then, 0), 0);
    }
}

static void lead_to(const char *folder)
{
    ck_assert_int_eq(symlink(folder, "link"), 0);
    ck_assert_int_eq(rename("link", "now"), 0);
}

static void setup(void)
{
    record_sequence_begin();
    leat_sample_init(&sample);
    write_release("old", 'a', LINES, 1);
    write_release("copy", 'a', LINES, 1);
    write_release("sizes", 'b', LINES - 1, 1);
    write_release("times", 'b', LINES, 2);
    write_text("list", "now/x/0\nnow/x/1\nnow/y/2\nnow/y/3\n");
    lead_to("old");
}

static void teardown(void)
{
    leat_sample_finish(&sample);
    record_sequence_end();
}

static leat_reader *open_text(const char *text)
{
    leat_pipeline *pipeline;
    leat_reader *reader;
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, text), LEAT_OK);
    int status = leat_pipeline_open(pipeline, &reader);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    leat_pipeline_unref(pipeline);
    return reader;
}

static void identify(leat_reader *reader)
{
    leat_token token;
    leat_token_init(&token);
    int status = leat_reader_identify(reader, &token);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    leat_token_finish(&token);
}

static leat_reader *open_identified(const char *text)
{
    leat_reader *reader = open_text(text);
    identify(reader);
    return reader;
}

/* Reads lines of the old release; `*n` of them before the status. */
static int read_old(leat_reader *reader, int most, int *n)
{
    int status = LEAT_OK;
    for (*n = 0; *n < most; ++*n) {
        status = leat_reader_next(reader, &sample);
        if (status)
            break;
        ck_assert_int_eq(*(const char *)sample.field[0].data, 'a');
    }
    return status;
}

/* In place: a shuffled list may begin with any of them. */
static void write_over(void)
{
    char name[40];
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof(name), "old/%c/%d", i < FILES / 2 ? 'x' : 'y', i);
        write_text(name, "b\nb\nb\nb\n");
    }
}

static const char *const texts[] = {
    "text:list | interleave:(text:{}),cycle=1",
    "text:list | shuffle | interleave:(text:{}),cycle=1",
    "files:now/? | interleave:(files:{}/*),cycle=1 | "
    "interleave:(text:{}),cycle=1",
    "files:now/? | interleave:(files:{}/* | interleave:(text:{}),cycle=1),"
    "cycle=1,ahead=0",
    "files:now/?/* | interleave:(text:{}),cycle=1",
};
enum { TEXTS = sizeof(texts) / sizeof(*texts) };

static void expect_changed(leat_reader *reader)
{
    int n;
    int status = read_old(reader, FILES * LINES, &n);
    ck_assert_msg(status == LEAT_EFORMAT, "%d after %d: %s", status, n,
                  leat_last_error());
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "written or re"));
}

START_TEST(what_is_read_is_of_one_release)
{
    static const char *const others[] = {"sizes", "times"};
    for (int i = 0; i < 2; i++) {
        int n;
        lead_to("old");
        leat_reader *reader = open_identified(texts[_i]);
        ck_assert_int_eq(read_old(reader, 1, &n), LEAT_OK);
        lead_to(others[i]);
        expect_changed(reader);
        leat_reader_close(reader);
    }
}
END_TEST

/* A link that leads back, or to a copy of the files. */
START_TEST(a_release_of_the_same_data_is_as_good)
{
    int n, rest;
    leat_reader *reader = open_identified(texts[_i]);
    lead_to("times");
    lead_to("old");
    ck_assert_int_eq(read_old(reader, 1, &n), LEAT_OK);
    lead_to("copy");
    int status = read_old(reader, FILES * LINES, &rest);
    ck_assert_msg(status == LEAT_END, "%s", leat_last_error());
    ck_assert_int_eq(n + rest, FILES * LINES);
    leat_reader_close(reader);
}
END_TEST

START_TEST(every_epoch_is_compared)
{
    int n;
    leat_reader *reader =
        open_identified("text:list | interleave:(text:{}),cycle=1 | repeat:2");
    ck_assert_int_eq(read_old(reader, FILES * LINES, &n), LEAT_OK);
    lead_to("times");
    expect_changed(reader);
    leat_reader_close(reader);
}
END_TEST

START_TEST(names_in_another_order_are_compared)
{
    static const struct {
        const char *names, *pipeline;
    } cases[] = {
        {"text:list | shuffle:seed=2", "text:{}"},
        {"(text:list | take:2) (text:list | skip:2) | mix", "text:{}"},
        {"text:list | shuffle:seed=2", "text:{} | shuffle"},
    };
    char text[200];
    int n;
    snprintf(text, sizeof(text), "%s | interleave:(%s),cycle=1 | repeat:2",
             cases[_i].names, cases[_i].pipeline);
    leat_reader *reader = open_identified(text);
    ck_assert_int_eq(read_old(reader, FILES * LINES, &n), LEAT_OK);
    lead_to("times");
    expect_changed(reader);
    leat_reader_close(reader);
}
END_TEST

static void copy_identity(const char *text, char out[200])
{
    leat_token token;
    leat_token_init(&token);
    leat_reader *reader = open_text(text);
    ck_assert_int_eq(leat_reader_identify(reader, &token), LEAT_OK);
    ck_assert_uint_lt(strlen(leat_token_text(&token)), 200);
    strcpy(out, leat_token_text(&token));
    leat_reader_close(reader);
    leat_token_finish(&token);
}

/* However often an element comes, and wherever. */
START_TEST(the_identity_of_all_tells_whether_one_changed)
{
    static const char *const lists[] = {
        "one\n",           "one\none\n",           "one\none\none\n",
        "one\none\ntwo\n", "two\none\none\n",      "two\none\ntwo\none\n",
        "one\ntwo\none\n", "one\none\ntwo\ntwo\n", "none\none\none\n",
    };
    static const char *const text = "text:names | interleave:(text:{})";
    char before[200], after[200], back[200];
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        write_text("names", lists[i]);
        write_text("none", "");
        write_text("one", "a\n");
        write_text("two", "b\n");
        copy_identity(text, before);
        copy_identity(text, back);
        ck_assert_str_eq(before, back);
        write_text("one", "a\na\n");
        copy_identity(text, after);
        ck_assert_msg(strcmp(before, after) != 0, "%s", lists[i]);
    }
}
END_TEST

/* Names that come again are opened and noted once, whatever seed their readers
 * draw. */
START_TEST(what_comes_again_takes_no_memory)
{
    static const char *const templates[] = {"text:{}", "text:{} | shuffle"};
    char text[200];
    snprintf(text, sizeof(text),
             "text:list | repeat:1000 | interleave:(%s),cycle=1",
             templates[_i]);
    leat_reader *reader = open_identified(text);
    ck_assert_int_le(reader->ops->memory(reader), 4096);
    leat_reader_close(reader);
}
END_TEST

enum { MANY = 100, CHOSEN = 7 };

/* Each is told from the others, and found again. */
START_TEST(each_of_many_elements_is_compared)
{
    char name[40];
    int n;
    const int changed = _i * (MANY / CHOSEN);
    ck_assert_int_eq(mkdir("many", 0755), 0);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "many/%02d", i);
        write_text(name, "a\n");
    }
    leat_reader *reader =
        open_identified("files:many/* | interleave:(text:{}),cycle=1,ahead=0");
    ck_assert_int_le(reader->ops->memory(reader), 256 * 16);
    snprintf(name, sizeof(name), "many/%02d", changed);
    write_text(name, "a\na\n");
    ck_assert_int_eq(read_old(reader, MANY, &n), LEAT_EFORMAT);
    ck_assert_int_eq(n, changed);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), name));
    leat_reader_close(reader);
}
END_TEST

/* Those of nested readers depend on their seeds, and so on the order. */
START_TEST(another_order_in_the_next_epoch_is_no_change)
{
    int n;
    leat_reader *reader = open_identified(
        "files:now/? | shuffle | interleave:(files:{}/* | shuffle | "
        "interleave:(text:{})) | repeat:8");
    int status = read_old(reader, 9 * FILES * LINES, &n);
    ck_assert_msg(status == LEAT_END, "%s", leat_last_error());
    ck_assert_int_eq(n, 8 * FILES * LINES);
    leat_reader_close(reader);
}
END_TEST

/* A `take` ends before the element has. */
START_TEST(an_element_that_is_open_still_is_compared)
{
    char text[200];
    int n;
    snprintf(text, sizeof(text), "%s | take:2", texts[_i]);
    leat_reader *reader = open_identified(text);
    ck_assert_int_eq(read_old(reader, 2, &n), LEAT_OK);
    ck_assert_int_eq(leat_reader_check(reader), LEAT_OK);
    write_over();
    ck_assert_int_eq(leat_reader_check(reader), LEAT_EIO);
    leat_reader_close(reader);
}
END_TEST

/* A `take` before a `repeat` leaves it so. */
START_TEST(an_element_that_is_open_at_a_seek_is_compared)
{
    char text[200];
    int n;
    snprintf(text, sizeof(text), "%s | take:2", texts[_i]);
    leat_reader *reader = open_identified(text);
    ck_assert_int_eq(read_old(reader, 2, &n), LEAT_OK);
    write_over();
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){1, 0}, NULL),
                     LEAT_EFORMAT);
    leat_reader_close(reader);
}
END_TEST

/* As of a cache on disk that an import reads. */
START_TEST(the_first_identity_counts)
{
    leat_reader *reader = open_identified(texts[_i]);
    lead_to("times");
    identify(reader);
    expect_changed(reader);
    leat_reader_close(reader);
}
END_TEST

/* Then none is identified, so that none is compared. */
START_TEST(names_without_end_or_too_many_have_no_identity)
{
    static const struct {
        const char *names, *reason;
    } cases[] = {
        {"text:list | repeat", "without end"},
        {"text:list | repeat:5000000", "more than 16777216"},
    };
    char text[200];
    int n;
    leat_token token;
    leat_token_init(&token);
    snprintf(text, sizeof(text), "%s | interleave:(text:{}),cycle=1",
             cases[_i].names);
    leat_reader *reader = open_text(text);
    ck_assert_int_eq(leat_reader_identify(reader, &token), LEAT_EUNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), cases[_i].reason));
    ck_assert_int_eq(read_old(reader, 2 * FILES * LINES, &n), LEAT_OK);
    leat_reader_close(reader);
    leat_token_finish(&token);
}
END_TEST

START_TEST(a_file_that_goes_is_an_error)
{
    int n;
    leat_reader *reader = open_identified(texts[0]);
    ck_assert_int_eq(unlink("old/y/3"), 0);
    ck_assert_int_eq(read_old(reader, FILES * LINES, &n), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "now/y/3"));
    leat_reader_close(reader);
}
END_TEST

START_TEST(a_cache_is_not_made_of_two_releases)
{
    char text[200];
    int n;
    snprintf(text, sizeof(text), "%s | cache:dir=kept", texts[_i]);
    leat_reader *reader = open_text(text);
    ck_assert_int_eq(read_old(reader, 1, &n), LEAT_OK);
    lead_to("sizes");
    expect_changed(reader);
    leat_reader_close(reader);
    ck_assert_int_ne(access("kept/index", F_OK), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("element_identities");
    TCase *tests = tcase_create("element_identities");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, what_is_read_is_of_one_release, 0, TEXTS);
    tcase_add_loop_test(tests, a_release_of_the_same_data_is_as_good, 0, TEXTS);
    tcase_add_test(tests, every_epoch_is_compared);
    tcase_add_loop_test(tests, names_in_another_order_are_compared, 0, 3);
    tcase_add_loop_test(tests, each_of_many_elements_is_compared, 0, CHOSEN);
    tcase_add_test(tests, the_identity_of_all_tells_whether_one_changed);
    tcase_add_loop_test(tests, what_comes_again_takes_no_memory, 0, 2);
    tcase_add_test(tests, another_order_in_the_next_epoch_is_no_change);
    tcase_add_loop_test(tests, an_element_that_is_open_still_is_compared, 0,
                        TEXTS);
    tcase_add_loop_test(tests, an_element_that_is_open_at_a_seek_is_compared, 0,
                        TEXTS);
    tcase_add_loop_test(tests, the_first_identity_counts, 0, TEXTS);
    tcase_add_loop_test(tests, names_without_end_or_too_many_have_no_identity,
                        0, 2);
    tcase_add_test(tests, a_file_that_goes_is_an_error);
    tcase_add_loop_test(tests, a_cache_is_not_made_of_two_releases, 0, TEXTS);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
