#include "support/suite.h"
#include "tools/import/importer.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct importer one, other;
static char directory[] = "/tmp/leat-importer-XXXXXX";
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
    free(one.arguments);
    free(other.arguments);
    unlink(path);
    rmdir(directory);
}

static int differs(void)
{
    ck_assert_int_eq(importer_add_file(&other, path), LEAT_OK);
    return strcmp(one.arguments, other.arguments) != 0;
}

START_TEST(lines_are_added)
{
    ck_assert_int_eq(importer_add(&one, "first %d", 1), LEAT_OK);
    ck_assert_int_eq(importer_add(&one, "second\nline"), LEAT_OK);
    ck_assert_str_eq(one.arguments, "first 1\nsecond?line\n");
}
END_TEST

START_TEST(a_file_is_the_same_by_any_path)
{
    char roundabout[128];
    snprintf(roundabout, sizeof(roundabout), "%s/../%s/./file", directory,
             strrchr(directory, '/') + 1);
    ck_assert_int_eq(importer_add_file(&one, roundabout), LEAT_OK);
    ck_assert(!differs());
}
END_TEST

START_TEST(another_size_is_another_file)
{
    ck_assert_int_eq(importer_add_file(&one, path), LEAT_OK);
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
    ck_assert_int_eq(importer_add_file(&one, path), LEAT_OK);
    struct timespec times[2] = {{1, 0}, {1, 1}};
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
    ck_assert(differs());
}
END_TEST

START_TEST(a_pipe_is_never_the_same)
{
    unlink(path);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(importer_add_file(&one, path), LEAT_OK);
    ck_assert(differs());
}
END_TEST

START_TEST(a_missing_file_is_an_error)
{
    unlink(path);
    ck_assert_int_eq(importer_add_file(&one, path), LEAT_EIO);
    ck_assert_ptr_null(one.arguments);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), path));
}
END_TEST

static void assert_key(int digits, int64_t number, const char *name,
                       const char *expected)
{
    char key[IMPORTER_KEY];
    ck_assert_int_eq(importer_key(key, digits, number, name), LEAT_OK);
    ck_assert_str_eq(key, expected);
}

START_TEST(keys_are_those_of_caffes_tools)
{
    char name[503], key[512];
    memset(name, 'x', 502);
    name[502] = 0;
    snprintf(key, sizeof(key), "00000007_%s", name);
    assert_key(8, 0, NULL, "00000000");
    assert_key(5, 9999, NULL, "09999");
    assert_key(8, 12, "n01/cat 1.jpg", "00000012_n01/cat 1.jpg");
    assert_key(5, 99999, NULL, "99999");
    assert_key(8, 7, name, key);
}
END_TEST

START_TEST(a_number_of_more_digits_is_refused)
{
    char key[IMPORTER_KEY];
    ck_assert_int_eq(importer_key(key, 5, 100000, NULL), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "100000"));
    ck_assert_int_eq(importer_key(key, 8, 100000000, "x"), LEAT_EINVAL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("importer");
    TCase *tcase = tcase_create("importer");
    tcase_add_checked_fixture(tcase, begin, finish);
    tcase_add_test(tcase, lines_are_added);
    tcase_add_test(tcase, a_file_is_the_same_by_any_path);
    tcase_add_test(tcase, another_size_is_another_file);
    tcase_add_test(tcase, another_time_is_another_file);
    tcase_add_test(tcase, a_pipe_is_never_the_same);
    tcase_add_test(tcase, a_missing_file_is_an_error);
    tcase_add_test(tcase, keys_are_those_of_caffes_tools);
    tcase_add_test(tcase, a_number_of_more_digits_is_refused);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
