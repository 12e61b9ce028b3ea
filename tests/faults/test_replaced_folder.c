/*
 * Somebody replaces the folder of a pattern, a link, before each of the calls
 * by which a reader lists and opens its files: the files are those of one
 * folder, and all of it.
 */
#include "faults/faults.h"
#include "lmdb_fixture.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/ext/reader.h>

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { CALLS_MAX = 200, OLD_FILES = 2, NEW_FILES = 3, LABELS = 5 };

static char directory[FIXTURE_PATH];

static const char *in(const char *name)
{
    static char paths[4][2 * FIXTURE_PATH];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
    return path;
}

static void write_packed(const char *name, const void *bytes, size_t size)
{
    gzFile file = gzopen(in(name), "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(gzwrite(file, bytes, (unsigned)size), (int)size);
    ck_assert_int_eq(gzclose(file), Z_OK);
}

/* Images of one pixel, `value`, and the same by gzip. */
static void write_images(const char *folder, int number, unsigned char value)
{
    unsigned char bytes[16 + LABELS] = {0, 0, 8, 3, 0, 0, 0, LABELS,
                                        0, 0, 0, 1, 0, 0, 0, 1};
    char name[40];
    memset(bytes + 16, value, LABELS);
    snprintf(name, sizeof(name), "%s/i%d", folder, number);
    fixture_store(in(name), bytes, sizeof(bytes));
    snprintf(name, sizeof(name), "%s/j%d", folder, number);
    write_packed(name, bytes, sizeof(bytes));
}

/* A file of lines, the same by gzip, and images and labels, each of the value
 * `label`. */
static void write_files(const char *folder, int number, const char *lines,
                        unsigned char label)
{
    unsigned char bytes[8 + LABELS] = {0, 0, 8, 1, 0, 0, 0, LABELS};
    char name[40];
    memset(bytes + 8, label, LABELS);
    write_images(folder, number, label);
    snprintf(name, sizeof(name), "%s/t%d", folder, number);
    fixture_store(in(name), lines, strlen(lines));
    snprintf(name, sizeof(name), "%s/z%d", folder, number);
    write_packed(name, lines, strlen(lines));
    snprintf(name, sizeof(name), "%s/l%d", folder, number);
    fixture_store(in(name), bytes, sizeof(bytes));
}

/* As archives do; and files of one tick of the clock look alike. */
static void set_time(const char *folder, const char *kinds, int number,
                     time_t seconds)
{
    const struct timespec then[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};
    char name[40];
    for (const char *kind = kinds; *kind; kind++) {
        snprintf(name, sizeof(name), "%s/%c%d", folder, *kind, number);
        ck_assert_int_eq(utimensat(AT_FDCWD, in(name), then, 0), 0);
    }
}

/* Of the files in now/, by absolute paths. */
static void write_list(const char *folder, int first, int end, time_t seconds)
{
    const struct timespec then[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};
    char bytes[4 * FIXTURE_PATH] = "", name[40];
    for (int i = first; i < end; i++)
        snprintf(bytes + strlen(bytes), sizeof(bytes) - strlen(bytes),
                 "%s/now/t%d\n", directory, i);
    snprintf(name, sizeof(name), "%s/names", folder);
    fixture_store(in(name), bytes, strlen(bytes));
    ck_assert_int_eq(utimensat(AT_FDCWD, in(name), then, 0), 0);
}

/* Whether files of old and new, of one size, have one time as well. */
static bool is_of_one_time;

static void begin(void)
{
    fixture_directory(directory);
    ck_assert_int_eq(mkdir(in("old"), 0755), 0);
    ck_assert_int_eq(mkdir(in("new"), 0755), 0);
    ck_assert_int_eq(mkdir(in("images"), 0755), 0);
    for (int i = 0; i < OLD_FILES; i++) {
        write_files("old", i, "1\n1\n1\n", 1);
        set_time("old", "ijlt", i, 1000);
        write_images("images", i, 0);
    }
    for (int i = 0; i < NEW_FILES; i++) {
        write_files("new", i, i < OLD_FILES ? "2\n2\n" : "2\n2\n2\n", 2);
        set_time("new", "ilt", i, is_of_one_time ? 1000 : 2000);
    }
    write_list(".", 0, OLD_FILES, 1000);
    write_list("old", 0, OLD_FILES, 1000);
    write_list("new", is_of_one_time, OLD_FILES + 1,
               is_of_one_time ? 1000 : 2000);
    ck_assert_int_eq(symlink("old", in("now")), 0);
    ck_assert_int_eq(symlink("new", in("next")), 0);
}

static void end(void)
{
    fixture_remove(directory);
}

static void replace(void)
{
    fault_disarm();
    ck_assert_int_eq(rename(in("next"), in("now")), 0);
}

/* As an import or a cache on disk does once it has opened its input. */
static int identify(leat_reader *reader)
{
    leat_token token;
    leat_token_init(&token);
    int status = leat_reader_identify(reader, &token);
    leat_token_finish(&token);
    return status;
}

/* Of the last field, a line or a label, how many are 1 and how many 2; or the
 * status. A pixel is 0 or what its label is. */
static int count(const char *text, bool is_kept, int found[3])
{
    leat_pipeline *pipeline;
    leat_reader *reader;
    leat_sample sample;
    memset(found, 0, 3 * sizeof(*found));
    ck_assert_int_eq(leat_pipeline_parse(&pipeline, text), LEAT_OK);
    int status = leat_pipeline_open(pipeline, &reader);
    leat_pipeline_unref(pipeline);
    if (status)
        return status;
    leat_sample_init(&sample);
    status = is_kept ? identify(reader) : LEAT_OK;
    while (!status && !(status = leat_reader_next(reader, &sample))) {
        const leat_field *last = &sample.field[sample.nfields - 1];
        int value = last->dtype == LEAT_INT32 ? *(const int32_t *)last->data
                                              : *(const char *)last->data - '0';
        ck_assert(value == 1 || value == 2);
        int pixel = *(const unsigned char *)sample.field[0].data;
        if (sample.nfields == 2 && pixel)
            ck_assert_int_eq(pixel, value);
        found[value]++;
    }
    /* An import or a cache asks this at the end of its input. */
    if (status == LEAT_END && strstr(text, "files:"))
        status = leat_reader_check(reader) ? LEAT_EIO : LEAT_OK;
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    return status == LEAT_END ? LEAT_OK : status;
}

typedef struct input {
    const char *text;
    fault_call call;
    int old, new; /* samples; new 0: the images are no longer as many */
} input;

static const input readers[] = {
    {"text:%s/now/t*", FAULT_OPEN, 6, 7},
    {"text:%s/now/t[01]", FAULT_OPEN, 6, 4},
    {"text:%s/now/t[01]", FAULT_STAT, 6, 4},
    {"text:%s/now/t*", FAULT_STAT, 6, 7},
    {"text:%s/[n]ow/t*", FAULT_STAT, 6, 7},
    {"text:%s/now/z*", FAULT_OPEN, 6, 7},
    {"text:%s/now/z*", FAULT_STAT, 6, 7},
    {"text:@%s/now/names", FAULT_OPEN, 6, 7},
    {"text:@%s/now/names", FAULT_STAT, 6, 7},
    {"files:%s/now/t* | interleave:(text:{})", FAULT_OPEN, 6, 7},
    {"files:%s/now/t* | interleave:(text:{})", FAULT_STAT, 6, 7},
    {"files:%s/now/t[01] | interleave:(text:{})", FAULT_OPEN, 6, 4},
    {"files:%s/now/t[01] | interleave:(text:{})", FAULT_STAT, 6, 4},
    {"files:%s/[n]ow/t* | interleave:(text:{})", FAULT_STAT, 6, 7},
    {"files:@%s/now/names | interleave:(text:{})", FAULT_OPEN, 6, 7},
    {"files:@%s/now/names | interleave:(text:{})", FAULT_STAT, 6, 7},
    {"idx:%s/images/i*,%1$s/now/l*", FAULT_OPEN, 10, 0},
    {"idx:%s/images/i*,%1$s/now/l*", FAULT_STAT, 10, 0},
    {"idx:%s/images/i*,%1$s/now/l[01]", FAULT_OPEN, 10, 10},
    {"idx:%s/images/i*,%1$s/now/l[01]", FAULT_STAT, 10, 10},
    {"idx:%s/now/i[01],%1$s/now/l[01]", FAULT_OPEN, 10, 10},
    {"idx:%s/now/i[01],%1$s/now/l[01]", FAULT_STAT, 10, 10},
    {"idx:%s/now/i0,%1$s/now/l0", FAULT_OPEN, 5, 5},
    {"idx:%s/now/i0,%1$s/now/l0", FAULT_STAT, 5, 5},
    {"idx:%s/now/j0,%1$s/now/l0", FAULT_OPEN, 5, 5},
    {"idx:%s/now/j0,%1$s/now/l0", FAULT_STAT, 5, 5},
    {"idx:%s/now/j[01],%1$s/now/l[01]", FAULT_STAT, 10, 10},
};

/* Whose files are compared only where they are identified. */
static const input kept[] = {
    {"text:%s/names | interleave:(text:{})", FAULT_OPEN, 6, 4},
    {"text:%s/names | interleave:(text:{})", FAULT_STAT, 6, 4},
    {"text:%s/names | shuffle | interleave:(text:{})", FAULT_OPEN, 6, 4},
    {"text:%s/names | interleave:(files:{}) | interleave:(text:{})", FAULT_OPEN,
     6, 4},
    {"text:%s/names | interleave:(files:{}) | interleave:(text:{})", FAULT_STAT,
     6, 4},
};

/* A compressed file that is replaced later is noticed as it is read. */
static int was_told(void)
{
    return strstr(leat_last_error(), "removed or replaced while") ||
           strstr(leat_last_error(), "written or replaced while") ||
           strstr(leat_last_error(), "written or removed since") ||
           strstr(leat_last_error(), "written or replaced since") ||
           strstr(leat_last_error(), "changed while it was read");
}

static void expect_one_folder(const input *input, bool is_kept)
{
    char text[4 * FIXTURE_PATH];
    int noticed = 0, is_reached = 1;
    /* The new list then lacks the first file, of two lines. */
    bool is_shorter = is_of_one_time && strchr(input->text, '@');
    int new = input->new - (is_shorter ? 2 : 0);
    fault_act(replace);
    for (int64_t n = 0; is_reached; n++) {
        int found[3];
        ck_assert_int_lt(n, CALLS_MAX);
        snprintf(text, sizeof(text), input->text, directory);
        int64_t before = fault_count(input->call);
        fault_arm(input->call, n, FAULT_ACT, 0);
        int status = count(text, is_kept, found);
        fault_disarm();
        is_reached = fault_count(input->call) - before > n;
        if (status == LEAT_EIO || status == LEAT_EFORMAT) {
            ck_assert_msg(was_told(), "%s", leat_last_error());
            noticed++;
        } else if (status) {
            ck_assert_int_eq(status, LEAT_EINVAL);
            ck_assert_int_eq(new, 0);
        } else {
            ck_assert((found[1] == input->old && found[2] == 0) ||
                      (found[1] == 0 && found[2] == new));
        }
        end();
        begin();
    }
    ck_assert_int_gt(noticed, 0);
}

START_TEST(the_files_are_those_of_one_folder)
{
    expect_one_folder(&readers[_i], false);
}
END_TEST

START_TEST(files_of_one_size_and_time_are_those_of_one_folder)
{
    end();
    is_of_one_time = true;
    begin();
    expect_one_folder(&readers[_i], false);
}
END_TEST

START_TEST(what_is_kept_is_of_one_folder)
{
    expect_one_folder(&kept[_i], true);
}
END_TEST

static void remove_empty(void)
{
    fault_disarm();
    ck_assert_int_eq(rmdir(in("empty")), 0);
}

START_TEST(a_folder_without_the_files_may_go)
{
    char text[4 * FIXTURE_PATH];
    int is_reached = 1;
    fault_act(remove_empty);
    for (int64_t n = 0; is_reached; n++) {
        int found[3];
        ck_assert_int_lt(n, CALLS_MAX);
        ck_assert_int_eq(mkdir(in("empty"), 0755), 0);
        snprintf(text, sizeof(text), "text:%s/[eo]*/t*", directory);
        int64_t before = fault_count(FAULT_OPEN);
        fault_arm(FAULT_OPEN, n, FAULT_ACT, 0);
        int status = count(text, false, found);
        fault_disarm();
        is_reached = fault_count(FAULT_OPEN) - before > n;
        ck_assert_msg(!status, "%s", leat_last_error());
        ck_assert_int_eq(found[1], 6);
        end();
        begin();
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("replaced_folder");
    TCase *tcase = tcase_create("replaced_folder");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, the_files_are_those_of_one_folder, 0,
                        sizeof(readers) / sizeof(*readers));
    tcase_add_loop_test(tcase,
                        files_of_one_size_and_time_are_those_of_one_folder, 0,
                        sizeof(readers) / sizeof(*readers));
    tcase_add_loop_test(tcase, what_is_kept_is_of_one_folder, 0,
                        sizeof(kept) / sizeof(*kept));
    tcase_add_test(tcase, a_folder_without_the_files_may_go);
    return suite_run(suite);
}
