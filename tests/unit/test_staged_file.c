/* What stands at the name of a staged file is never opened, and never replaced
   by anything but a complete file. */
#include "support/suite.h"
#include "tools/cli/staged_file.h"

#include <leat/status.h>

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char directory[] = "/tmp/leat_staged_XXXXXX";
static char target[64];

/* How many of the next draws give zeros, which are the letters "aaaaaa". */
static int rigged;

ssize_t getrandom(void *out, size_t size, unsigned flags)
{
    if (rigged <= 0)
        return syscall(SYS_getrandom, out, size, flags);
    rigged--;
    memset(out, 0, size);
    return (ssize_t)size;
}

static void set_up(void)
{
    memcpy(directory + sizeof(directory) - 7, "XXXXXX", 6);
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(target, sizeof(target), "%s/sheet.png", directory);
    rigged = 0;
}

static void tear_down(void)
{
    char command[96];
    snprintf(command, sizeof(command), "rm -rf %s", directory);
    ck_assert_int_eq(system(command), 0);
}

/* Borrowed until the next call. */
static const char *in(const char *name)
{
    static char text[128];
    snprintf(text, sizeof(text), "%s/%s", directory, name);
    return text;
}

static void write_file(const char *name, const char *text)
{
    FILE *out = fopen(name, "w");
    ck_assert_ptr_nonnull(out);
    fputs(text, out);
    ck_assert_int_eq(fclose(out), 0);
}

static int has_text(const char *name, const char *text)
{
    char found[64] = "";
    FILE *file = fopen(name, "r");
    ck_assert_ptr_nonnull(file);
    size_t n = fread(found, 1, sizeof(found) - 1, file);
    fclose(file);
    return n == strlen(text) && !memcmp(found, text, n);
}

static int count_files(void)
{
    int n = 0;
    DIR *entries = opendir(directory);
    ck_assert_ptr_nonnull(entries);
    for (const struct dirent *e; (e = readdir(entries));)
        n += e->d_name[0] != '.';
    closedir(entries);
    return n;
}

static void create(struct staged_file *file)
{
    int status = staged_file_create(file, target);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
}

static void publish(struct staged_file *file, const char *text)
{
    fputs(text, file->stream);
    ck_assert_int_eq(staged_file_close(file, target), LEAT_OK);
    ck_assert_int_eq(staged_file_publish(file, target), LEAT_OK);
    staged_file_discard(file);
}

START_TEST(a_file_appears_when_it_is_published)
{
    struct staged_file file;
    write_file(target, "old");
    create(&file);
    fputs("ne", file.stream);
    fflush(file.stream);
    ck_assert(has_text(target, "old"));
    ck_assert_int_eq(count_files(), 2);
    publish(&file, "w");
    ck_assert(has_text(target, "new"));
    ck_assert_int_eq(count_files(), 1);
}
END_TEST

START_TEST(what_is_discarded_leaves_nothing)
{
    struct staged_file file;
    create(&file);
    staged_file_discard(&file);
    ck_assert_int_eq(count_files(), 0);
    create(&file);
    ck_assert_int_eq(staged_file_close(&file, target), LEAT_OK);
    staged_file_discard(&file);
    staged_file_discard(&file);
    ck_assert_int_eq(count_files(), 0);
}
END_TEST

START_TEST(several_of_one_target_are_several_files)
{
    struct staged_file file[10];
    char text[4];
    for (int i = 0; i < 10; i++)
        create(&file[i]);
    ck_assert_int_eq(count_files(), 10);
    for (int i = 0; i < 10; i++) {
        snprintf(text, sizeof(text), "%d", i);
        publish(&file[i], text);
        ck_assert(has_text(target, text));
    }
    ck_assert_int_eq(count_files(), 1);
}
END_TEST

/* Whoever guesses the name gains nothing by it. */
START_TEST(nothing_that_has_the_name_is_opened)
{
    struct staged_file file;
    char name[128], victim[128], nowhere[128];
    snprintf(name, sizeof(name), "%s", in("sheet.png.leat-aaaaaa"));
    snprintf(victim, sizeof(victim), "%s", in("victim"));
    snprintf(nowhere, sizeof(nowhere), "%s", in("nowhere"));
    for (int kind = 0; kind < 5; kind++) {
        write_file(victim, "dear");
        if (kind == 0)
            ck_assert_int_eq(symlink(victim, name), 0);
        else if (kind == 1)
            ck_assert_int_eq(symlink("nowhere", name), 0);
        else if (kind == 2)
            ck_assert_int_eq(mkfifo(name, 0600), 0);
        else if (kind == 3)
            ck_assert_int_eq(link(victim, name), 0);
        else
            write_file(name, "theirs");
        rigged = 3;
        create(&file);
        ck_assert_int_eq(rigged, 0);
        ck_assert_str_ne(file.path, name);
        publish(&file, "sheet");
        ck_assert(has_text(target, "sheet"));
        ck_assert(has_text(victim, "dear"));
        ck_assert_int_eq(access(nowhere, F_OK), -1);
        ck_assert_int_eq(unlink(name), 0);
        ck_assert_int_eq(count_files(), 2);
    }
}
END_TEST

START_TEST(a_file_that_cannot_be_created_is_an_error)
{
    struct staged_file file = {0};
    write_file(in("sheet.png.leat-aaaaaa"), "theirs");
    rigged = 1000;
    ck_assert_int_eq(staged_file_create(&file, target), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), target));
    rigged = 0;
    ck_assert_int_eq(count_files(), 1);
    ck_assert_int_eq(staged_file_create(&file, in("none/sheet.png")), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "none/sheet.png: "));
    ck_assert_ptr_null(file.path);
}
END_TEST

START_TEST(a_staged_name_is_known_by_its_end)
{
    struct staged_file file;
    create(&file);
    ck_assert_uint_eq(staged_file_target(file.path), strlen(target));
    staged_file_discard(&file);
    ck_assert_uint_eq(staged_file_target("a.leat-abc234"), 1);
    ck_assert_uint_eq(staged_file_target(".leat-abc234"), 0);
    ck_assert_uint_eq(staged_file_target("a.leat-abc23"), 0);
    ck_assert_uint_eq(staged_file_target("a.leat-abc2345"), 0);
    ck_assert_uint_eq(staged_file_target("a.leat-ABC234"), 0);
    ck_assert_uint_eq(staged_file_target("a.leat_abc234"), 0);
    ck_assert_uint_eq(staged_file_target(""), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("staged file");
    TCase *tests = tcase_create("staged file");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_file_appears_when_it_is_published);
    tcase_add_test(tests, what_is_discarded_leaves_nothing);
    tcase_add_test(tests, several_of_one_target_are_several_files);
    tcase_add_test(tests, nothing_that_has_the_name_is_opened);
    tcase_add_test(tests, a_file_that_cannot_be_created_is_an_error);
    tcase_add_test(tests, a_staged_name_is_known_by_its_end);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
