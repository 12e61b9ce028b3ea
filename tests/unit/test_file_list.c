#include "base/memory.h"
#include "pipeline/opening.h"
#include "readers/file_list.h"
#include "support/nobody.h"
#include "support/suite.h"

#include <check.h>
#include <dirent.h>
#include <glob.h>
#include <limits.h>
#include <locale.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* These are put in front of libc's by the linker. */
struct dirent *__real_readdir(DIR *opened);
struct dirent *__wrap_readdir(DIR *opened);
int __real_stat(const char *path, struct stat *about);
int __wrap_stat(const char *path, struct stat *about);

static atomic_bool is_cancelled;
static int calls, last_call; /* of the two; the last one cancels */

static void count_call(void)
{
    if (++calls == last_call)
        atomic_store(&is_cancelled, true);
}

struct dirent *__wrap_readdir(DIR *opened)
{
    count_call();
    return __real_readdir(opened);
}

int __wrap_stat(const char *path, struct stat *about)
{
    count_call();
    return __real_stat(path, about);
}

static char folder[] = "/tmp/leat-list-XXXXXX";
static leat__file_list list;

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "wb");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

/* Each test runs in a process of its own. */
static void setup(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
}

static void teardown(void)
{
    leat__file_list_close(&list);
    char command[64];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static void check_list(int n, const char *const expected[])
{
    ck_assert_int_eq(list.n, n);
    for (int i = 0; i < n; i++)
        ck_assert_str_eq(list.path[i], expected[i]);
}

START_TEST(a_pattern_is_sorted_by_bytes)
{
    static const char *const names[] = {"b.txt", "a10.txt",      "a9.txt",
                                        "B.txt", "\xc3\xa4.txt", "a.csv"};
    for (int i = 0; i < 6; i++)
        write_file(names[i], "");
    ck_assert_int_eq(leat__file_list_add(&list, "*.txt"), LEAT_OK);
    check_list(5, (const char *const[]){"B.txt", "a10.txt", "a9.txt", "b.txt",
                                        "\xc3\xa4.txt"});
    ck_assert_int_eq(leat__file_list_add(&list, "a?.txt"), LEAT_OK);
    ck_assert_int_eq(leat__file_list_add(&list, "[bB].txt"), LEAT_OK);
    ck_assert_int_eq(list.n, 8);
    ck_assert_str_eq(list.path[5], "a9.txt");
    ck_assert_str_eq(list.path[6], "B.txt");
}
END_TEST

START_TEST(a_pattern_matches_bytes_in_any_locale)
{
    static const char *const names[] = {"1.x", "A.x", "i.x", "\xc3\xa9.x"};
    if (!setlocale(LC_ALL, "C.UTF-8")) {
        puts("skipped: no locale C.UTF-8");
        return;
    }
    for (int i = 0; i < 4; i++)
        write_file(names[i], "");
    ck_assert_int_eq(leat__file_list_add(&list, "?.x"), LEAT_OK);
    ck_assert_int_eq(leat__file_list_add(&list, "[!a-z].x"), LEAT_OK);
    ck_assert_int_eq(leat__file_list_add(&list, "??.x"), LEAT_OK);
    check_list(6, (const char *const[]){"1.x", "A.x", "i.x", "1.x", "A.x",
                                        "\xc3\xa9.x"});
    ck_assert(uselocale((locale_t)0) == LC_GLOBAL_LOCALE);
}
END_TEST

START_TEST(the_order_of_texts_is_kept)
{
    write_file("a", "");
    write_file("b", "");
    ck_assert_int_eq(leat__file_list_add(&list, "b"), LEAT_OK);
    ck_assert_int_eq(leat__file_list_add(&list, "?"), LEAT_OK);
    ck_assert_int_eq(leat__file_list_add(&list, "missing"), LEAT_OK);
    ck_assert_int_eq(leat__file_list_add(&list, "b"), LEAT_OK);
    check_list(5, (const char *const[]){"b", "a", "b", "missing", "b"});
}
END_TEST

START_TEST(a_name_that_looks_like_a_pattern_is_itself)
{
    write_file("a[1]", "");
    write_file("a1", "");
    ck_assert_int_eq(leat__file_list_add(&list, "a[1]"), LEAT_OK);
    check_list(1, (const char *const[]){"a[1]"});
}
END_TEST

START_TEST(a_match_that_means_something_else_is_a_path)
{
    static const char *const names[] = {"-", "--", "-a", "@x", "b@"};
    ck_assert_int_eq(mkdir("@folder", 0755), 0);
    write_file("@folder/-", "");
    for (int i = 0; i < 5; i++)
        write_file(names[i], "");
    ck_assert_int_eq(leat__file_list_add(&list, "*[!r]"), LEAT_OK);
    check_list(5, (const char *const[]){"./-", "--", "-a", "./@x", "b@"});
    ck_assert_int_eq(leat__file_list_add(&list, "?folder/*"), LEAT_OK);
    ck_assert_str_eq(list.path[5], "./@folder/-");
}
END_TEST

/* The ./ of a pattern is a part of its matches; one that is added is not. */
START_TEST(a_match_is_sorted_with_the_start_of_its_pattern)
{
    static const char *const names[] = {"-", "+", "@x", "A", ".a"};
    for (int i = 0; i < 5; i++)
        write_file(names[i], "");
    ck_assert_int_eq(leat__file_list_add(&list, "./*"), LEAT_OK);
    check_list(4, (const char *const[]){"./+", "./-", "./@x", "./A"});
    leat__file_list_close(&list);
    ck_assert_int_eq(leat__file_list_add(&list, "*"), LEAT_OK);
    check_list(4, (const char *const[]){"+", "./-", "./@x", "A"});
    leat__file_list_close(&list);
    /* Whose first part matches two names of one directory. */
    ck_assert_int_eq(mkdir("sub", 0755), 0);
    write_file("sub/@x", "");
    write_file("sub/-", "");
    ck_assert_int_eq(chdir("sub"), 0);
    ck_assert_int_eq(leat__file_list_add(&list, ".*/[@+]*"), LEAT_OK);
    check_list(3, (const char *const[]){"../+", "../@x", "./@x"});
    ck_assert_int_eq(chdir(".."), 0);
}
END_TEST

START_TEST(a_pattern_without_a_match_names_itself)
{
    ck_assert_int_eq(leat__file_list_add(&list, "*.rec"), LEAT_EIO);
    ck_assert_str_eq(leat_last_error(), "*.rec: no file matches");
    ck_assert_int_eq(leat__file_list_add(&list, "none/*.rec"), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "none/*.rec"));
    ck_assert_int_eq(leat__file_list_add(&list, "**/x"), LEAT_EINVAL);
    ck_assert_int_eq(list.n, 0);
}
END_TEST

/* As user nobody, since the superuser may look anywhere. */
static int add_as_nobody(void)
{
    if (nobody_become())
        return 77;
    if (leat__file_list_add(&list, "p-*/x") != LEAT_EIO)
        return 1;
    if (!strstr(leat_last_error(), "p-*/x: a file of the pattern"))
        return 2;
    /* Another pattern is none the worse for it. */
    return leat__file_list_add(&list, "p-0/x*") == LEAT_OK ? 0 : 3;
}

START_TEST(a_file_that_cannot_be_looked_at_is_no_missing_one)
{
    int status;
    ck_assert_int_eq(chmod(folder, 0755), 0);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(mkdir(i ? "p-1" : "p-0", 0755), 0);
        write_file(i ? "p-1/x" : "p-0/x", "");
    }
    ck_assert_int_eq(leat__file_list_add(&list, "p-*/x"), LEAT_OK);
    ck_assert_int_eq(list.n, 2);
    ck_assert_int_eq(chmod("p-1", 0), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(add_as_nobody());
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(chmod("p-1", 0755), 0);
    ck_assert(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        printf("skipped: the superuser cannot become another user\n");
    else
        ck_assert_int_eq(WEXITSTATUS(status), 0);
}
END_TEST

START_TEST(a_list_has_a_path_in_each_line)
{
    write_file("list", "one\r\n\ntwo words\n*.txt\n@list\n-\n--\nlast");
    ck_assert_int_eq(leat__file_list_add(&list, "@list"), LEAT_OK);
    check_list(7, (const char *const[]){"one", "two words", "*.txt", "./@list",
                                        "-", "--", "last"});
}
END_TEST

START_TEST(a_list_that_is_none_is_refused)
{
    write_file("empty", "\n\r\n");
    ck_assert_int_eq(leat__file_list_add(&list, "@empty"), LEAT_EFORMAT);
    ck_assert_int_eq(leat__file_list_add(&list, "@missing"), LEAT_EIO);
    ck_assert_int_eq(leat__file_list_add(&list, "@"), LEAT_EIO);
    ck_assert_int_eq(leat__file_list_parse(&list, "x", "a\0b", 3),
                     LEAT_EFORMAT);
    ck_assert_int_eq(list.n, 0);
}
END_TEST

/* Each path takes 32 bytes beside its own, and a list its bytes meanwhile. */
START_TEST(paths_keep_to_the_limit_of_memory)
{
    enum { NAMES = 1000, LIST = 2 * NAMES, PATHS = (32 + 1) * NAMES };
    char text[LIST + 1] = "";
    for (int i = 0; i < NAMES; i++)
        memcpy(text + 2 * i, "a\n", 2);
    write_file("list", text);
    list.most = LIST - 1;
    ck_assert_int_eq(leat__file_list_add(&list, "@list"), LEAT_ELIMIT);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "max_memory is 1999"));
    ck_assert_int_eq(list.n, 0);
    leat__file_list_close(&list);
    list.most = LIST + PATHS - 1;
    ck_assert_int_eq(leat__file_list_add(&list, "@list"), LEAT_ELIMIT);
    ck_assert_int_eq(list.n, NAMES - 1);
    leat__file_list_close(&list);
    list.most = LIST + PATHS;
    ck_assert_int_eq(leat__file_list_add(&list, "@list"), LEAT_OK);
    ck_assert_int_eq(list.n, NAMES);
    ck_assert_int_eq(list.bytes, PATHS);
    ck_assert_int_eq(leat__file_list_add(&list, "@missing"), LEAT_EIO);
}
END_TEST

/* A path of one byte takes 33; beside it count the pattern and its folder. */
START_TEST(a_pattern_counts_as_memory)
{
    write_file("x", "");
    list.most = 100;
    ck_assert_int_eq(leat__file_list_add(&list, "[x]"), LEAT_ELIMIT);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "max_memory is 100"));
    leat__file_list_close(&list);
    list.most = 1000;
    ck_assert_int_eq(leat__file_list_add(&list, "[x]"), LEAT_OK);
    ck_assert_int_gt(list.bytes, 100);
}
END_TEST

/* old has x, new has x and y, next is a link to new, and now one to old. */
static void make_folders(void)
{
    ck_assert_int_eq(mkdir("old", 0755), 0);
    ck_assert_int_eq(mkdir("new", 0755), 0);
    ck_assert_int_eq(symlink("old", "now"), 0);
    ck_assert_int_eq(symlink("new", "next"), 0);
    write_file("old/x", "");
    write_file("new/x", "");
    write_file("new/y", "");
}

START_TEST(a_folder_that_was_replaced_since_is_told)
{
    make_folders();
    ck_assert_int_eq(leat__file_list_add(&list, "*/x"), LEAT_OK);
    ck_assert_int_eq(leat__file_list_add(&list, "now/*"), LEAT_OK);
    ck_assert_int_eq(leat__file_list_check(&list), LEAT_OK);
    ck_assert_int_eq(rename("next", "now"), 0);
    ck_assert_int_eq(leat__file_list_check_folders(&list, 0), LEAT_OK);
    ck_assert_int_eq(leat__file_list_check_folders(&list, 1), LEAT_EIO);
    ck_assert_int_eq(leat__file_list_check(&list), LEAT_EIO);
    ck_assert_str_eq(leat_last_error(),
                     "now: removed or replaced while its files were opened; "
                     "open them again");
    ck_assert_int_eq(unlink("now"), 0);
    ck_assert_int_eq(leat__file_list_check(&list), LEAT_EIO);
}
END_TEST

/* It grows; it has another number; or it has no file of the pattern. */
START_TEST(a_folder_with_the_same_files_is_as_good)
{
    make_folders();
    ck_assert_int_eq(mkdir("none", 0755), 0);
    ck_assert_int_eq(leat__file_list_add(&list, "[no]?w/[x]"), LEAT_OK);
    ck_assert_int_eq(leat__file_list_add(&list, "no*/[x]"), LEAT_OK);
    write_file("old/z", "");
    ck_assert_int_eq(leat__file_list_check(&list), LEAT_OK);
    ck_assert_int_eq(rename("next", "now"), 0);
    ck_assert_int_eq(rmdir("none"), 0);
    ck_assert_int_eq(leat__file_list_check(&list), LEAT_OK);
    leat__alloc_fail_at(0);
    ck_assert_int_eq(leat__file_list_check(&list), LEAT_ENOMEM);
    leat__alloc_fail_at(-1);
}
END_TEST

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* In a tree of files, folders, links to both and to nothing, a FIFO, and names
 * that begin with a dot. */
START_TEST(matches_are_those_of_glob)
{
    static const char *const folders[] = {"a",   "ab",  "b",   ".h",
                                          "a/b", "a/a", "b/b", "b/b/b"};
    static const char *const files[] = {"f",    "a/f",   "a/.f",    "ab/g",
                                        ".h/f", "a/b/f", "b/b/b/f", "a]",
                                        "a[",   "a\\b",  "a/a/\xff"};
    static const char *const patterns[] = {
        "*",      "?",         "**f",        "*/f",     "*/*",
        "a*/*",   "*/b/*",     "*/*/f",      "*/b",     "*/b/",
        "*//f",   "./*",       ".*/f",       ".*",      "a/?*",
        "a/.*",   "[ab]/[!f]", "[a",         "a[",      "a[]]",
        "a\\*",   "*/*/*/f",   "b/*/../*",   "f/*",     "*/f/*",
        "to_a/*", "*/",        "[!a-z]*/f",  "?/b/b/?", "[[:alpha:]]",
        "none/*", "*/none",    "[a]/[\xff]", "*/\xff",  "b/./*",
    };
    for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++)
        ck_assert_int_eq(mkdir(folders[i], 0755), 0);
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
        write_file(files[i], "");
    ck_assert_int_eq(symlink("a", "to_a"), 0);
    ck_assert_int_eq(symlink("../f", "b/to_f"), 0);
    ck_assert_int_eq(symlink("none", "a/dangling"), 0);
    ck_assert_int_eq(mkfifo("a/fifo", 0644), 0);
    for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
        const char *pattern = patterns[i];
        if (strstr(pattern, "**") || access(pattern, F_OK) == 0)
            continue;
        glob_t wanted;
        int code = glob(pattern, GLOB_NOSORT | GLOB_NOESCAPE, NULL, &wanted);
        int status = leat__file_list_add(&list, pattern);
        ck_assert_msg((code == 0) == (status == 0), "%s: %d, not %d", pattern,
                      status, code);
        size_t n = code ? 0 : wanted.gl_pathc;
        if (n > 0)
            qsort(wanted.gl_pathv, n, sizeof(char *), compare);
        ck_assert_int_eq(list.n, (int)n);
        for (int k = 0; k < list.n; k++)
            ck_assert_msg(!strcmp(list.path[k], wanted.gl_pathv[k]),
                          "%s: '%s', not '%s'", pattern, list.path[k],
                          wanted.gl_pathv[k]);
        globfree(&wanted);
        leat__file_list_close(&list);
    }
}
END_TEST

START_TEST(a_path_that_is_too_long_is_refused)
{
    static char text[2 * PATH_MAX];
    memset(text, 'x', sizeof(text) - 1);
    memcpy(text, "*/", 2);
    ck_assert_int_eq(mkdir("folder", 0755), 0);
    ck_assert_int_eq(leat__file_list_add(&list, text), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "File name too long"));
    leat__file_list_close(&list);
    memset(text, '[', sizeof(text) - 1);
    ck_assert_int_eq(leat__file_list_add(&list, text), LEAT_EIO);
}
END_TEST

static pthread_mutex_t opening_lock = PTHREAD_MUTEX_INITIALIZER;
static leat__opening opening = {.lock = &opening_lock,
                                .cancelled = &is_cancelled};

/* From here on the call of this number is the last. */
static void cancel_at(int call)
{
    calls = 0;
    last_call = call;
    atomic_store(&is_cancelled, call == 0);
    (void)leat__opening_begin(&opening);
}

static void check_cancelled(int status, const char *line)
{
    leat__opening_end(NULL);
    ck_assert_int_eq(status, LEAT_ECANCELLED);
    ck_assert_str_eq(leat_last_error(), line);
    ck_assert_int_eq(calls, last_call);
}

/* 9 folders, each with a file; those that match nothing count, too. */
static void make_nine(void)
{
    for (int i = 0; i < 9; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%d", i);
        ck_assert_int_eq(mkdir(name, 0755), 0);
        snprintf(name, sizeof(name), "%d/x", i);
        write_file(name, "");
    }
}

START_TEST(a_search_ends_once_its_opening_is_cancelled)
{
    make_nine();
    for (int i = 1; i <= 9; i++) {
        cancel_at(i);
        check_cancelled(leat__file_list_add(&list, "*.rec"),
                        "*.rec: reading was cancelled");
        cancel_at(i);
        check_cancelled(leat__file_list_add(&list, "*/./*"),
                        "*/./*: reading was cancelled");
    }
    cancel_at(0);
    check_cancelled(leat__file_list_parse(&list, "a list", "x\ny\n", 4),
                    "a list: reading was cancelled");
    ck_assert_int_eq(leat__file_list_add(&list, "*/x"), LEAT_OK);
}
END_TEST

START_TEST(a_look_at_what_was_listed_ends_as_well)
{
    uint64_t hash = 0;
    make_nine();
    ck_assert_int_eq(leat__file_list_add(&list, "*/[x]"), LEAT_OK);
    for (int i = 1; i <= 9; i++) {
        char line[64];
        cancel_at(i);
        check_cancelled(leat__file_list_check(&list),
                        "*/[x]: reading was cancelled");
        cancel_at(i - 1);
        snprintf(line, sizeof(line), "%d/x: reading was cancelled", i - 1);
        check_cancelled(leat__file_list_modified(&hash, &list), line);
    }
    /* The folders are looked at up to one that was replaced, and the pattern
       is searched for anew. */
    leat__file_list_close(&list);
    ck_assert_int_eq(leat__file_list_add(&list, "0/[x]"), LEAT_OK);
    ck_assert_int_eq(rename("0", "old"), 0);
    ck_assert_int_eq(rename("1", "0"), 0);
    cancel_at(2);
    check_cancelled(leat__file_list_check(&list),
                    "0/[x]: reading was cancelled");
}
END_TEST

START_TEST(each_allocation_may_fail)
{
    int status = LEAT_ENOMEM;
    for (int i = 0; i < 40; i++) {
        char name[16];
        snprintf(name, sizeof(name), "f%02d", i);
        write_file(name, "");
    }
    write_file("list", "x\ny\n");
    for (int n = 0; status == LEAT_ENOMEM; n++) {
        leat__file_list_close(&list);
        leat__alloc_fail_at(n);
        status = leat__file_list_add(&list, "@list");
        if (!status)
            status = leat__file_list_add(&list, "f*");
        leat__alloc_fail_at(-1);
    }
    ck_assert_int_eq(status, LEAT_OK);
    ck_assert_int_eq(list.n, 42);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("file_list");
    TCase *tests = tcase_create("file_list");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_pattern_is_sorted_by_bytes);
    tcase_add_test(tests, a_match_is_sorted_with_the_start_of_its_pattern);
    tcase_add_test(tests, a_pattern_matches_bytes_in_any_locale);
    tcase_add_test(tests, the_order_of_texts_is_kept);
    tcase_add_test(tests, a_name_that_looks_like_a_pattern_is_itself);
    tcase_add_test(tests, a_match_that_means_something_else_is_a_path);
    tcase_add_test(tests, a_pattern_without_a_match_names_itself);
    tcase_add_test(tests, a_file_that_cannot_be_looked_at_is_no_missing_one);
    tcase_add_test(tests, a_list_has_a_path_in_each_line);
    tcase_add_test(tests, a_list_that_is_none_is_refused);
    tcase_add_test(tests, paths_keep_to_the_limit_of_memory);
    tcase_add_test(tests, a_pattern_counts_as_memory);
    tcase_add_test(tests, a_folder_that_was_replaced_since_is_told);
    tcase_add_test(tests, a_folder_with_the_same_files_is_as_good);
    tcase_add_test(tests, matches_are_those_of_glob);
    tcase_add_test(tests, a_path_that_is_too_long_is_refused);
    tcase_add_test(tests, a_search_ends_once_its_opening_is_cancelled);
    tcase_add_test(tests, a_look_at_what_was_listed_ends_as_well);
    tcase_add_test(tests, each_allocation_may_fail);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
