#include "support/suite.h"
#include "tools/import/import_arguments.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct import_arguments arguments, other;
static char directory[] = "/tmp/leat-arguments-XXXXXX";
static char path[64];

static void write_file(const char *text)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

static void begin(void)
{
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/file", directory);
    write_file("abc");
}

static void finish(void)
{
    import_arguments_finish(&arguments);
    import_arguments_finish(&other);
    unlink(path);
    rmdir(directory);
}

static int differs(void)
{
    ck_assert_int_eq(import_arguments_add_file(&other, path), LEAT_OK);
    return strcmp(arguments.text, other.text) != 0;
}

START_TEST(lines_are_added)
{
    ck_assert_int_eq(import_arguments_add(&arguments, "first %d", 1), LEAT_OK);
    ck_assert_int_eq(import_arguments_add(&arguments, "second\nline"), LEAT_OK);
    ck_assert_str_eq(arguments.text, "first 1\nsecond?line\n");
    ck_assert_uint_eq(arguments.length, strlen(arguments.text));
}
END_TEST

START_TEST(a_file_is_the_same_by_any_path)
{
    char roundabout[128];
    snprintf(roundabout, sizeof(roundabout), "%s/../%s/./file", directory,
             strrchr(directory, '/') + 1);
    ck_assert_int_eq(import_arguments_add_file(&arguments, roundabout),
                     LEAT_OK);
    ck_assert(!differs());
}
END_TEST

START_TEST(another_size_is_another_file)
{
    ck_assert_int_eq(import_arguments_add_file(&arguments, path), LEAT_OK);
    struct stat before;
    ck_assert_int_eq(stat(path, &before), 0);
    write_file("abcd");
    struct timespec times[2] = {before.st_atim, before.st_mtim};
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
    ck_assert(differs());
}
END_TEST

START_TEST(another_time_is_another_file)
{
    ck_assert_int_eq(import_arguments_add_file(&arguments, path), LEAT_OK);
    struct timespec times[2] = {{1, 0}, {1, 1}};
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
    ck_assert(differs());
}
END_TEST

START_TEST(a_pipe_is_never_the_same)
{
    unlink(path);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(import_arguments_add_file(&arguments, path), LEAT_OK);
    ck_assert(differs());
}
END_TEST

START_TEST(a_missing_file_is_an_error)
{
    unlink(path);
    ck_assert_int_eq(import_arguments_add_file(&arguments, path), LEAT_EIO);
    ck_assert_ptr_null(arguments.text);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), path));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("import_arguments");
    TCase *tcase = tcase_create("import_arguments");
    tcase_add_checked_fixture(tcase, begin, finish);
    tcase_add_test(tcase, lines_are_added);
    tcase_add_test(tcase, a_file_is_the_same_by_any_path);
    tcase_add_test(tcase, another_size_is_another_file);
    tcase_add_test(tcase, another_time_is_another_file);
    tcase_add_test(tcase, a_pipe_is_never_the_same);
    tcase_add_test(tcase, a_missing_file_is_an_error);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
