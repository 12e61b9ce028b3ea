/* drop_behind: which files below it are told, and that all else passes it. */
#include "readers/mapped_file.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/decorators.h>
#include <leat/ext/reader.h>

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CALLS = 8 };

/* What a file reader was told at each open. */
static int told[CALLS];
static int opens;

static int told_open(const leat_open *open, leat_reader **out)
{
    (void)out;
    told[opens++ % CALLS] = open->drop_behind;
    return leat_error(LEAT_EIO, "it does not open");
}

static const leat_reader_type told_type = {
    .size = sizeof(leat_reader_type), .name = "told", .open = told_open};

static leat_pipeline *told_pipeline(void)
{
    leat_pipeline *pipeline;
    ck_assert_int_eq(
        leat_pipeline_create(&pipeline, &told_type, NULL, NULL, NULL, NULL, 0),
        LEAT_OK);
    opens = 0;
    return pipeline;
}

START_TEST(files_at_any_depth_are_told)
{
    leat_pipeline *file = told_pipeline(), *taken, *dropped, *outer;
    leat_reader *reader = NULL;
    ck_assert_int_eq(leat_pipeline_take(&taken, file, 3), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_drop_behind(&dropped, taken), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_take(&outer, dropped, 3), LEAT_OK);
    ck_assert_str_eq(leat_pipeline_text(outer),
                     "told | take:3 | drop_behind | take:3");
    ck_assert_int_eq(leat_pipeline_open(outer, &reader), LEAT_EIO);
    ck_assert(opens == 1 && told[0] == 1);
    ck_assert_int_eq(leat_pipeline_open(taken, &reader), LEAT_EIO);
    ck_assert(opens == 2 && told[1] == 0);
    leat_open_options options = LEAT_OPEN_OPTIONS_INIT;
    options.drop_behind = true;
    ck_assert_int_eq(leat_pipeline_open_with(taken, &options, &reader),
                     LEAT_EIO);
    ck_assert(opens == 3 && told[2] == 1);
    leat_pipeline_unref(outer);
    leat_pipeline_unref(dropped);
    leat_pipeline_unref(taken);
    leat_pipeline_unref(file);
}
END_TEST

START_TEST(its_neighbors_are_not_told)
{
    leat_pipeline *file = told_pipeline(), *dropped, *both;
    leat_reader *reader = NULL;
    ck_assert_int_eq(leat_pipeline_drop_behind(&dropped, file), LEAT_OK);
    leat_pipeline *upstream[] = {file, dropped};
    ck_assert_int_eq(leat_pipeline_chain(&both, upstream, 2), LEAT_OK);
    ck_assert_int_eq(leat_pipeline_open(both, &reader), LEAT_EIO);
    ck_assert(opens == 1 && told[0] == 0);
    leat_pipeline_unref(both);
    leat_pipeline_unref(dropped);
    leat_pipeline_unref(file);
}
END_TEST

/* A file of records: a reader that drops pages may block on them again. */
static int may_block(const char *arguments, bool drops)
{
    char text[128], path[64];
    leat_pipeline *pipeline;
    leat_reader *reader;
    leat_sample sample;
    snprintf(path, sizeof(path), "/tmp/leat-drop-%d", (int)getpid());
    FILE *out = fopen(path, "wb");
    ck_assert_ptr_nonnull(out);
    for (int i = 0; i < 1000; i++)
        ck_assert_uint_eq(fwrite("0123456789abcde\n", 1, 16, out), 16);
    fclose(out);
    snprintf(text, sizeof(text), "fixed:%s,record=16%s%s", path, arguments,
             drops ? " | drop_behind" : "");
    ck_assert_msg(!leat_pipeline_parse(&pipeline, text), "%s",
                  leat_last_error());
    ck_assert_msg(!leat_pipeline_open(pipeline, &reader), "%s",
                  leat_last_error());
    leat_sample_init(&sample);
    for (int i = 0; i < 1000; i++) {
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        ck_assert_int_eq(sample.from.record, i);
    }
    int blocks = leat_reader_may_block(reader);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
    remove(path);
    return blocks;
}

START_TEST(a_file_with_its_own_argument_keeps_it)
{
    ck_assert_int_eq(may_block("", false), 0);
    ck_assert_int_eq(may_block(",drop_behind=1", false), 1);
    ck_assert_int_eq(may_block("", true), 1);
    ck_assert_int_eq(may_block(",drop_behind=0", true), 0);
}
END_TEST

/* Its writer would take the one who drops pages for a reader. */
START_TEST(a_pipe_in_the_place_of_a_file_is_not_opened)
{
    char path[64], event[sizeof(struct inotify_event) + 256];
    leat__mapped_file map;
    struct stat about;
    snprintf(path, sizeof(path), "/tmp/leat-drop-%d", (int)getpid());
    FILE *out = fopen(path, "wb");
    ck_assert_ptr_nonnull(out);
    ck_assert_int_eq(fseek(out, 1 << 20, SEEK_SET), 0);
    ck_assert_int_eq(fputc('a', out), 'a');
    fclose(out);
    ck_assert_int_eq(leat__mapped_file_open(&map, path, 0, &about), LEAT_OK);
    ck_assert_int_eq(map.fd, -1);
    remove(path);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    int events = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    ck_assert_int_ge(events, 0);
    ck_assert_int_ge(inotify_add_watch(events, path, IN_OPEN), 0);
    leat__span span = {0, map.size};
    leat__mapped_file_drop(&map, &span, 1);
    ck_assert_int_eq(read(events, event, sizeof(event)), -1);
    close(events);
    leat__mapped_file_close(&map);
    remove(path);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("drop_behind");
    TCase *tcase = tcase_create("drop_behind");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, files_at_any_depth_are_told);
    tcase_add_test(tcase, its_neighbors_are_not_told);
    tcase_add_test(tcase, a_file_with_its_own_argument_keeps_it);
    tcase_add_test(tcase, a_pipe_in_the_place_of_a_file_is_not_opened);
    return suite_run(suite);
}
