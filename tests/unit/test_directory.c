#include "support/suite.h"
#include "tools/delivery/directory.h"

#include <leat/status.h>

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char place[64];

/* What another process does after the first look at a path, by whichever of
   the two calls. */
static const char *looked_at;
static void (*meanwhile)(const char *path);

static void let_other(const char *path)
{
    if (!looked_at || strcmp(path, looked_at) != 0)
        return;
    looked_at = NULL;
    meanwhile(path);
}

int __real_stat(const char *path, struct stat *about);
int __wrap_stat(const char *path, struct stat *about);

int __wrap_stat(const char *path, struct stat *about)
{
    int status = __real_stat(path, about), code = errno;
    let_other(path);
    errno = code;
    return status;
}

int __real_lstat(const char *path, struct stat *about);
int __wrap_lstat(const char *path, struct stat *about);

int __wrap_lstat(const char *path, struct stat *about)
{
    int status = __real_lstat(path, about), code = errno;
    let_other(path);
    errno = code;
    return status;
}

static void make_place(void)
{
    snprintf(place, sizeof(place), "/tmp/leat_directory_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(place));
}

static void remove_place(void)
{
    ck_assert_int_eq(rmdir(place), 0);
}

static int is_there(const char *path)
{
    struct stat found;
    return !stat(path, &found);
}

START_TEST(what_was_made_and_nothing_else_is_taken_back)
{
    char path[128];
    size_t kept;
    snprintf(path, sizeof(path), "%s/a//b/c/", place);
    ck_assert_int_eq(directory_make(path, &kept), LEAT_OK);
    ck_assert(is_there(path));
    directory_unmake(path, kept);
    snprintf(path, sizeof(path), "%s/a", place);
    ck_assert(!is_there(path));
    ck_assert(is_there(place));
    ck_assert_int_eq(directory_make(place, &kept), LEAT_OK);
    directory_unmake(place, kept);
    ck_assert(is_there(place));
}
END_TEST

/* As `mkdir -p` would leave it: "a", which the path leads out of again. */
START_TEST(a_path_that_cannot_be_made_leaves_nothing)
{
    static const char *const names[] = {"a/..", "a/b/../c", "a/./../b", NULL};
    char path[512], made[128], longest[NAME_MAX + 2];
    size_t kept;
    snprintf(made, sizeof(made), "%s/a", place);
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = 0;
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof(path), "%s/%s%s", place,
                 names[i] ? names[i] : "a/", names[i] ? "" : longest);
        ck_assert_int_eq(directory_make(path, &kept), LEAT_EIO);
        ck_assert_msg(!is_there(made), "%s", path);
        /* A name is too long for the directory that it is in. */
        ck_assert_int_eq(directory_check(path), names[i] ? LEAT_EIO : LEAT_OK);
    }
}
END_TEST

START_TEST(the_names_of_what_is_there_may_be_dots)
{
    char path[128];
    size_t kept;
    snprintf(path, sizeof(path), "%s/./../%s/a/./b/.", place,
             strrchr(place, '/') + 1);
    ck_assert_int_eq(directory_check(path), LEAT_OK);
    ck_assert(!is_there(path));
    ck_assert_int_eq(directory_make(path, &kept), LEAT_OK);
    ck_assert_int_eq(directory_check(path), LEAT_OK);
    ck_assert(is_there(path));
    directory_unmake(path, kept);
    snprintf(path, sizeof(path), "%s/a", place);
    ck_assert(!is_there(path));
}
END_TEST

static void make_other(const char *path)
{
    ck_assert_int_eq(mkdir(path, 0777), 0);
}

static void remove_other(const char *path)
{
    ck_assert_int_eq(rmdir(path), 0);
}

/* As several ranks do at once. */
START_TEST(a_directory_that_is_made_or_removed_meanwhile_is_one)
{
    char path[128], above[128];
    snprintf(above, sizeof(above), "%s/a", place);
    snprintf(path, sizeof(path), "%s/a/rank0", place);
    for (int i = 0; i < 2; i++) {
        meanwhile = i ? remove_other : make_other;
        looked_at = above;
        ck_assert_msg(directory_check(path) == LEAT_OK, "%d: %s", i,
                      leat_last_error());
        ck_assert_ptr_null(looked_at);
        ck_assert_int_eq(is_there(above), !i);
    }
}
END_TEST

START_TEST(what_is_no_directory_is_told)
{
    char path[128], other[128];
    snprintf(other, sizeof(other), "%s/a", place);
    snprintf(path, sizeof(path), "%s/a/rank0", place);
    for (int i = 0; i < 2; i++) {
        if (i)
            ck_assert_int_eq(symlink("nowhere", other), 0);
        else
            close(open(other, O_CREAT | O_WRONLY, 0600));
        ck_assert_int_eq(directory_check(path), LEAT_EIO);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "Not a directory"));
        unlink(other);
    }
}
END_TEST

START_TEST(every_entry_comes_and_then_the_end)
{
    char path[128];
    const struct dirent *entry;
    int entries = 0, met = 0;
    snprintf(path, sizeof(path), "%s/file", place);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    DIR *directory = opendir(place);
    /* Nobody asks what it was before. */
    errno = EIO;
    while (!directory_next(directory, place, &entry) && entry) {
        entries++;
        met += !strcmp(entry->d_name, "file");
    }
    ck_assert_int_eq(directory_next(directory, place, &entry), LEAT_OK);
    ck_assert_ptr_null(entry);
    ck_assert_int_eq(entries, 3);
    ck_assert_int_eq(met, 1);
    closedir(directory);
    unlink(path);
}
END_TEST

START_TEST(a_directory_that_cannot_be_read_does_not_look_empty)
{
    const struct dirent *entry;
    DIR *directory = opendir(place);
    int file = open("/dev/null", O_RDONLY);
    ck_assert_int_ge(dup2(file, dirfd(directory)), 0);
    close(file);
    ck_assert_int_eq(directory_next(directory, place, &entry), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), place));
    closedir(directory);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("directory");
    TCase *tests = tcase_create("directory");
    tcase_add_checked_fixture(tests, make_place, remove_place);
    tcase_add_test(tests, what_was_made_and_nothing_else_is_taken_back);
    tcase_add_test(tests, a_path_that_cannot_be_made_leaves_nothing);
    tcase_add_test(tests, the_names_of_what_is_there_may_be_dots);
    tcase_add_test(tests, a_directory_that_is_made_or_removed_meanwhile_is_one);
    tcase_add_test(tests, what_is_no_directory_is_told);
    tcase_add_test(tests, every_entry_comes_and_then_the_end);
    tcase_add_test(tests, a_directory_that_cannot_be_read_does_not_look_empty);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
