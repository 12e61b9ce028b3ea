/* Where cache:dir=PATH is written: what may be there, and who may read it. */
#include "decorators/cache/cache_writer.h"
#include "support/cache_fixture.h"
#include "support/nobody.h"
#include "support/suite.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define ACCESS "system.posix_acl_access"

START_TEST(what_is_there_and_no_cache_is_left_alone)
{
    leat_reader *reader = NULL;
    char file[128];
    ck_assert_int_eq(mkdir(cache_path, 0777), 0);
    snprintf(file, sizeof(file), "%s/mine", cache_path);
    int fd = open(file, O_CREAT | O_WRONLY, 0666);
    close(fd);
    ck_assert_int_eq(cache_open_cached(cache_pipeline(CACHE_SAMPLES), &reader),
                     LEAT_EINVAL);
    ck_assert(cache_is_there("/mine") && !cache_is_there(".partial"));
    ck_assert_int_eq(remove(file), 0);
    /* An empty directory stays until there is a cache. */
    reader = cache_open_source(CACHE_SAMPLES);
    leat_reader_close(reader);
    ck_assert(cache_is_there(""));
    cache_make(CACHE_SAMPLES);
}
END_TEST

/* A rename replaces no directory with such files in it. */
START_TEST(a_directory_of_removed_files_that_are_open_is_refused_at_open)
{
    static const char *const names[] = {"/.nfs000000000000000100000001",
                                        "/.fuse_hidden0000000100000001"};
    leat_reader *reader = NULL;
    char file[160];
    ck_assert_int_eq(mkdir(cache_path, 0777), 0);
    cache_put(names[_i], "open");
    ck_assert_int_eq(cache_open_cached(cache_pipeline(CACHE_SAMPLES), &reader),
                     LEAT_EINVAL);
    ck_assert_msg(strstr(leat_last_error(), "wait until it has closed them"),
                  "%s", leat_last_error());
    ck_assert(cache_is_there(names[_i]) && !cache_is_there(".partial"));
    snprintf(file, sizeof(file), "%s%s", cache_path, names[_i]);
    ck_assert_int_eq(remove(file), 0);
    cache_make(CACHE_SAMPLES);
    /* A complete one is read whatever else is there. */
    cache_put(names[_i], "open");
    leat_reader_close(cache_open_source(CACHE_SAMPLES));
    ck_assert_int_eq(cache_source.reads, 0);
    ck_assert_int_eq(remove(file), 0);
}
END_TEST

START_TEST(slashes_at_the_end_are_no_part_of_the_path)
{
    size_t size = strlen(cache_path);
    for (int i = 0; i < 2; i++) {
        if (i)
            ck_assert_int_eq(mkdir(cache_path, 0777), 0);
        strcat(cache_path, "//");
        leat_reader *reader = cache_open_source(CACHE_SAMPLES);
        cache_expect_epoch(reader, 0, CACHE_SAMPLES);
        leat_reader_close(reader);
        cache_path[size] = 0;
        ck_assert(cache_is_there("/index") && !cache_is_there(".partial"));
        cache_remove_all(cache_path);
    }
    ck_assert_str_eq(cache_log, "");
}
END_TEST

START_TEST(a_path_that_cannot_be_renamed_to_is_refused_at_open)
{
    static const char *const names[] = {"", "/", ".", "..", "./.", "x/..//"};
    ck_assert_int_eq(chdir(cache_root), 0);
    for (int i = 0; i < 6; i++) {
        leat_reader *reader = NULL;
        snprintf(cache_path, sizeof(cache_path), "%s", names[i]);
        ck_assert_int_eq(
            cache_open_cached(cache_pipeline(CACHE_SAMPLES), &reader),
            LEAT_EINVAL);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "own name"));
    }
    ck_assert_int_eq(chdir("/"), 0);
}
END_TEST

START_TEST(so_is_a_mount_point)
{
    leat_reader *reader = NULL;
    ck_assert_int_eq(mkdir(cache_path, 0777), 0);
    if (mount("none", cache_path, "tmpfs", 0, "size=64k")) {
        fprintf(stderr, "skipped: cannot mount a tmpfs: %s\n", strerror(errno));
        return;
    }
    int status = cache_open_cached(cache_pipeline(CACHE_SAMPLES), &reader);
    ck_assert_int_eq(umount(cache_path), 0);
    ck_assert_int_eq(status, LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "is a mount point"));
    /* One of the same file system. */
    char other[128];
    snprintf(other, sizeof(other), "%s/other", cache_root);
    ck_assert_int_eq(mkdir(other, 0777), 0);
    ck_assert_int_eq(mount(other, cache_path, NULL, MS_BIND, NULL), 0);
    status = cache_open_cached(cache_pipeline(CACHE_SAMPLES), &reader);
    ck_assert_int_eq(umount(cache_path), 0);
    ck_assert_int_eq(status, LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "is a mount point"));
}
END_TEST

START_TEST(so_is_a_directory_of_a_file_system_that_is_only_read)
{
    leat_reader *reader = NULL;
    if (mount("none", cache_root, "tmpfs", 0, "size=64k")) {
        fprintf(stderr, "skipped: cannot mount a tmpfs: %s\n", strerror(errno));
        return;
    }
    ck_assert_int_eq(mkdir(cache_path, 0777), 0);
    ck_assert_int_eq(mount(NULL, cache_root, NULL, MS_REMOUNT | MS_RDONLY, ""),
                     0);
    int status = cache_open_cached(cache_pipeline(CACHE_SAMPLES), &reader);
    ck_assert_int_eq(umount(cache_root), 0);
    ck_assert_int_eq(status, LEAT_EIO);
    ck_assert_ptr_nonnull(
        strstr(leat_last_error(), "cannot make the directory"));
}
END_TEST

START_TEST(it_has_the_access_of_the_empty_directory_that_it_replaces)
{
    static const mode_t modes[] = {0700, 0750, 02770, 0500, 0755, 0775};
    mode_t mask = umask(0);
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        struct stat before, found;
        char partial[128], command[160];
        uid_t user = geteuid() == 0 ? 1234 : geteuid();
        snprintf(partial, sizeof(partial), "%s.partial", cache_path);
        ck_assert_int_eq(mkdir(cache_path, 0777), 0);
        ck_assert_int_eq(chown(cache_path, user, (gid_t)-1), 0);
        ck_assert_int_eq(chmod(cache_path, modes[i]), 0);
        leat_reader *reader = cache_open_source(CACHE_SAMPLES);
        ck_assert_int_eq(stat(partial, &before), 0);
        cache_read_some(reader, CACHE_SAMPLES);
        leat_reader_close(reader);
        ck_assert_int_eq(stat(cache_path, &found), 0);
        ck_assert_uint_eq(found.st_mode & 07777, modes[i] | 0700);
        ck_assert_int_eq(found.st_uid, user);
        ck_assert_uint_eq(before.st_mode & 077 & ~modes[i], 0);
        ck_assert(cache_is_there("/index"));
        snprintf(command, sizeof(command), "rm -r %s", cache_path);
        ck_assert_int_eq(system(command), 0);
    }
    umask(mask);
}
END_TEST

/* Of the owner, user 1234, the group, the mask and all. */
static int list_user(const char *path, const char *name, uint16_t permissions)
{
    const struct {
        uint32_t version;
        struct {
            uint16_t tag, permissions;
            uint32_t id;
        } entry[5];
    } list = {2,
              {{1, 7, UINT32_MAX},
               {2, permissions, 1234},
               {4, 5, UINT32_MAX},
               {0x10, 7, UINT32_MAX},
               {0x20, 5, UINT32_MAX}}};
    return setxattr(path, name, &list, sizeof(list), 0);
}

START_TEST(a_user_whom_a_list_denies_the_directory_cannot_read_it_meanwhile)
{
    struct stat found;
    char partial[128], list[64];
    snprintf(partial, sizeof(partial), "%s.partial", cache_path);
    ck_assert_int_eq(mkdir(cache_path, 0755), 0);
    if (list_user(cache_path, ACCESS, 0)) {
        fprintf(stderr, "skipped: no access control lists in %s\n", cache_root);
        return;
    }
    leat_reader *reader = cache_open_source(CACHE_SAMPLES);
    ck_assert_int_eq(stat(partial, &found), 0);
    ck_assert_int_eq(getxattr(partial, ACCESS, list, sizeof(list)), 44);
    ck_assert_int_eq(list[12], 2);
    ck_assert_int_eq(list[14], 0);
    ck_assert_uint_eq(found.st_mode & 07, 0);
    cache_read_some(reader, CACHE_SAMPLES);
    leat_reader_close(reader);
    ck_assert_int_gt(getxattr(cache_path, ACCESS, NULL, 0), 0);
    ck_assert(cache_is_there("/index"));
}
END_TEST

/* The list of those for whom files are made there. */
START_TEST(nor_can_one_whom_only_the_default_list_names)
{
    struct stat found;
    char partial[128];
    snprintf(partial, sizeof(partial), "%s.partial", cache_path);
    ck_assert_int_eq(mkdir(cache_path, 0777), 0);
    ck_assert_int_eq(chmod(cache_path, 02770), 0);
    if (list_user(cache_path, "system.posix_acl_default", 7)) {
        fprintf(stderr, "skipped: no access control lists in %s\n", cache_root);
        return;
    }
    leat_reader *reader = cache_open_source(CACHE_SAMPLES);
    ck_assert_int_eq(stat(partial, &found), 0);
    ck_assert_uint_eq(found.st_mode & 07777, 02770);
    ck_assert_int_lt(getxattr(partial, ACCESS, NULL, 0), 0);
    leat_reader_close(reader);
}
END_TEST

/* A victim, and a link to it or a pipe in the place of what a writer opens. */
START_TEST(one_that_cannot_be_begun_leaves_nothing)
{
    leat_token identity;
    leat__cache_writer *writer;
    struct rlimit limit, small;
    leat_token_init(&identity);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    small = limit;
    int next = dup(0), refusals = 0, status = LEAT_EIO;
    close(next);
    for (int files = 0; status && files < 8; files++) {
        small.rlim_cur = (rlim_t)(next + files);
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &small), 0);
        status = leat__cache_writer_create(&writer, cache_path, &identity, 0);
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
        ck_assert(!status || status == LEAT_EIO);
        ck_assert_int_eq(cache_is_there(".partial"), !status);
        refusals += status != LEAT_OK;
    }
    ck_assert_int_eq(status, LEAT_OK);
    ck_assert_int_ge(refusals, 4);
    leat__cache_writer_destroy(writer);
    leat_token_finish(&identity);
}
END_TEST

START_TEST(a_writer_follows_no_link_and_waits_at_no_pipe)
{
    static const char *const names[] = {".partial/kept.lock", ".partial/data",
                                        ".partial"};
    leat_reader *reader = NULL;
    char victim[128], place[128], read_back[8] = "";
    snprintf(victim, sizeof(victim), "%s/victim", cache_root);
    FILE *file = fopen(victim, "w");
    ck_assert(file && fputs("mine", file) >= 0 && fclose(file) == 0);
    for (int i = 0; i < 3; i++)
        for (int is_pipe = 0; is_pipe < 2; is_pipe++) {
            snprintf(place, sizeof(place), "%s.partial", cache_path);
            if (i < 2)
                ck_assert_int_eq(mkdir(place, 0777), 0);
            if (i == 1)
                cache_put(".partial/kept.lock", "");
            snprintf(place, sizeof(place), "%s%s", cache_path, names[i]);
            ck_assert_int_eq(is_pipe  ? mkfifo(place, 0666)
                             : i == 2 ? symlink(cache_root, place)
                                      : symlink(victim, place),
                             0);
            alarm(20);
            int status =
                cache_open_cached(cache_pipeline(CACHE_SAMPLES), &reader);
            /* What a killed writer left is removed, whatever it is. */
            ck_assert_int_eq(status, i == 1 ? LEAT_OK : LEAT_EIO);
            if (status)
                ck_assert_ptr_nonnull(strstr(leat_last_error(), place));
            else
                leat_reader_close(reader);
            alarm(0);
            snprintf(place, sizeof(place), "%s.partial", cache_path);
            cache_remove_all(place);
        }
    file = fopen(victim, "r");
    ck_assert(file && fgets(read_back, sizeof(read_back), file));
    ck_assert_str_eq(read_back, "mine");
    fclose(file);
    snprintf(place, sizeof(place), "%s/kept.lock", cache_root);
    ck_assert_int_ne(access(place, F_OK), 0);
}
END_TEST

/* The path is that of the directory in which it was opened. */
START_TEST(a_relative_path_outlives_a_change_of_directory)
{
    char root[80];
    snprintf(root, sizeof(root), "%s", cache_path);
    for (int is_whole = 0; is_whole < 2; is_whole++) {
        ck_assert_int_eq(chdir(cache_root), 0);
        snprintf(cache_path, sizeof(cache_path), "kept");
        leat_reader *reader = cache_open_source(CACHE_SAMPLES);
        cache_read_some(reader, CACHE_SAMPLES / 2);
        ck_assert_int_eq(chdir("/"), 0);
        if (is_whole) {
            cache_expect_epoch(reader, 0, CACHE_SAMPLES);
            cache_source.reads = 0;
            cache_expect_epoch(reader, 1, CACHE_SAMPLES);
            ck_assert_int_eq(cache_source.reads, 0);
            ck_assert_str_eq(cache_log, "");
        }
        leat_reader_close(reader);
        snprintf(cache_path, sizeof(cache_path), "%s", root);
        ck_assert(!cache_is_there(".partial"));
        ck_assert_int_eq(cache_is_there("/index"), is_whole);
    }
    leat_reader_close(cache_open_source(CACHE_SAMPLES));
    ck_assert_int_eq(cache_source.reads, 0);
}
END_TEST

/* A removed one, which the path still names. */
START_TEST(a_directory_in_which_nothing_can_be_made_is_refused_at_open)
{
    leat_reader *reader = NULL;
    char gone[sizeof(cache_root) + 8], before[sizeof(cache_path)];
    memcpy(before, cache_path, sizeof(before));
    snprintf(gone, sizeof(gone), "%s/gone", cache_root);
    ck_assert_int_eq(mkdir(gone, 0777), 0);
    ck_assert_int_eq(chdir(gone), 0);
    ck_assert_int_eq(rmdir(gone), 0);
    snprintf(cache_path, sizeof(cache_path), "kept");
    int status = cache_open_cached(cache_pipeline(CACHE_SAMPLES), &reader);
    ck_assert_int_eq(chdir("/"), 0);
    memcpy(cache_path, before, sizeof(before));
    ck_assert_int_eq(status, LEAT_EIO);
    ck_assert_str_eq(leat_last_error(), "cannot make the directory "
                                        "kept.partial: No such file or "
                                        "directory");
}
END_TEST

/* Into which all may put, and nobody may look. */
START_TEST(it_is_made_in_a_directory_that_cannot_be_read)
{
    ck_assert_int_eq(chmod(cache_root, 0333), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        /* The superuser may read it. */
        if (nobody_become())
            _exit(77);
        cache_make(CACHE_SAMPLES);
        _exit(cache_log[0] != 0);
    }
    int result;
    ck_assert_int_eq(waitpid(child, &result, 0), child);
    ck_assert_int_eq(chmod(cache_root, 0755), 0);
    ck_assert(WIFEXITED(result));
    if (WEXITSTATUS(result) == 77) {
        printf("skipped: the superuser cannot become another user\n");
        return;
    }
    ck_assert_int_eq(WEXITSTATUS(result), 0);
    ck_assert(cache_is_there("/index"));
}
END_TEST

/* As another user of a directory like /tmp. */
static void expect_refused_below_sticky(void)
{
    leat_reader *reader = NULL;
    if (nobody_become())
        _exit(77);
    int status = cache_open_cached(cache_pipeline(CACHE_SAMPLES), &reader);
    _exit(status != LEAT_EINVAL || !strstr(leat_last_error(), "sticky"));
}

/* Also one that a killed writer of theirs left. */
START_TEST(so_is_another_users_directory_in_a_sticky_one)
{
    char made[sizeof(cache_path) + 8];
    snprintf(made, sizeof(made), "%s%s", cache_path, _i ? ".partial" : "");
    if (getuid() != 0) {
        printf("skipped: only the superuser has another user\n");
        return;
    }
    ck_assert_int_eq(mkdir(made, 0777), 0);
    ck_assert_int_eq(chmod(made, 0777), 0);
    ck_assert_int_eq(chmod(cache_root, 01777), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        expect_refused_below_sticky();
    int result;
    ck_assert_int_eq(waitpid(child, &result, 0), child);
    ck_assert(WIFEXITED(result));
    if (WEXITSTATUS(result) == 77) {
        printf("skipped: the superuser cannot become another user\n");
        return;
    }
    ck_assert_int_eq(WEXITSTATUS(result), 0);
    ck_assert_int_eq(cache_is_there(".partial"), _i);
    /* A user who may replace it does. */
    ck_assert_int_eq(chown(made, 65534, (gid_t)-1), 0);
    cache_make(CACHE_SAMPLES);
    ck_assert(cache_is_there("/index"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cache_place");
    TCase *tcase = tcase_create("cache_place");
    tcase_add_checked_fixture(tcase, cache_set_up, cache_tear_down);
    tcase_set_timeout(tcase, 120);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, what_is_there_and_no_cache_is_left_alone);
    tcase_add_loop_test(
        tcase, a_directory_of_removed_files_that_are_open_is_refused_at_open, 0,
        2);
    tcase_add_test(tcase, slashes_at_the_end_are_no_part_of_the_path);
    tcase_add_test(tcase, a_path_that_cannot_be_renamed_to_is_refused_at_open);
    tcase_add_test(tcase, so_is_a_mount_point);
    tcase_add_test(tcase, so_is_a_directory_of_a_file_system_that_is_only_read);
    tcase_add_loop_test(tcase, so_is_another_users_directory_in_a_sticky_one, 0,
                        2);
    tcase_add_test(
        tcase,
        a_user_whom_a_list_denies_the_directory_cannot_read_it_meanwhile);
    tcase_add_test(tcase, nor_can_one_whom_only_the_default_list_names);
    tcase_add_test(tcase,
                   it_has_the_access_of_the_empty_directory_that_it_replaces);
    tcase_add_test(tcase, one_that_cannot_be_begun_leaves_nothing);
    tcase_add_test(tcase, a_writer_follows_no_link_and_waits_at_no_pipe);
    tcase_add_test(tcase,
                   a_directory_in_which_nothing_can_be_made_is_refused_at_open);
    tcase_add_test(tcase, it_is_made_in_a_directory_that_cannot_be_read);
    tcase_add_test(tcase, a_relative_path_outlives_a_change_of_directory);
    return suite_run(suite);
}
