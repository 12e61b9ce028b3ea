/* Where a link leads, and what keeps a rename from replacing a file. */
#include "base/file_place.h"
#include "base/memory.h"
#include "lmdb_fixture.h"
#include "support/nobody.h"
#include "support/suite.h"

#include <leat/status.h>

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[FIXTURE_PATH];

static void set_up(void)
{
    fixture_directory(folder);
    ck_assert_int_eq(chdir(folder), 0);
    fixture_store("file", "a", 1);
    ck_assert_int_eq(mkdir("below", 0777), 0);
}

static void tear_down(void)
{
    ck_assert_int_eq(chdir("/"), 0);
    fixture_remove(folder);
}

static void expect_directory(const char *path, const char *directory)
{
    char *found = leat__file_directory(path);
    ck_assert_str_eq(found, directory);
    leat__free(found);
}

START_TEST(a_path_has_a_directory)
{
    expect_directory("file", ".");
    expect_directory("/file", "/");
    expect_directory("below/file", "below");
    expect_directory("/a/b/c", "/a/b");
}
END_TEST

START_TEST(a_file_can_be_made_in_some_directories)
{
    ck_assert_int_eq(leat__file_check_directory("new"), 0);
    ck_assert_int_eq(leat__file_check_directory("below/new"), 0);
    ck_assert_int_eq(leat__file_check_directory("nowhere/new"), ENOENT);
    ck_assert_int_eq(leat__file_check_directory("file/below/new"), ENOTDIR);
}
END_TEST

START_TEST(the_effective_rights_count)
{
    ck_assert_int_eq(leat__file_access("below", F_OK), 0);
    ck_assert_int_eq(leat__file_access("nowhere", F_OK), ENOENT);
    ck_assert(leat__file_is_absent("nowhere"));
    ck_assert(leat__file_is_absent("file/below"));
    char path[PATH_MAX + 1];
    memset(path, 'n', NAME_MAX + 1);
    path[NAME_MAX + 1] = 0;
    ck_assert(leat__file_is_absent(path));
    memset(path, '/', PATH_MAX);
    path[PATH_MAX] = 0;
    ck_assert(!leat__file_is_absent(path));
    if (geteuid() != 0) {
        printf("skipped: another real user, which needs root\n");
        return;
    }
    fixture_store("below/file", "a", 1);
    ck_assert_int_eq(chown("below", 65534, 65534), 0);
    ck_assert_int_eq(chmod("below", 0700), 0);
    ck_assert_int_eq(chmod(folder, 0755), 0);
    nobody_enter_for_another();
    ck_assert_int_ne(access("below/file", R_OK), 0);
    ck_assert_int_eq(leat__file_access("below/file", R_OK), 0);
    nobody_leave();
    /* What may not be looked at may be there. */
    ck_assert_int_eq(chmod("below", 0), 0);
    nobody_enter();
    ck_assert_int_eq(leat__file_access("below/file", F_OK), EACCES);
    ck_assert(!leat__file_is_absent("below/file"));
    nobody_leave();
}
END_TEST

static void expect_followed(const char *path, const char *target)
{
    char *found = leat__file_followed(path);
    ck_assert_str_eq(found, target);
    leat__free(found);
}

START_TEST(a_link_leads_on_from_where_it_is)
{
    char whole[FIXTURE_PATH + 8];
    snprintf(whole, sizeof(whole), "%s/file", folder);
    ck_assert_int_eq(symlink("../file", "below/one"), 0);
    ck_assert_int_eq(symlink("below/one", "two"), 0);
    ck_assert_int_eq(symlink(whole, "below/whole"), 0);
    ck_assert_int_eq(symlink("nowhere", "below/dangling"), 0);
    ck_assert_int_eq(symlink("loop", "loop"), 0);
    expect_followed("file", "file");
    expect_followed("nowhere", "nowhere");
    expect_followed("below/one", "below/../file");
    expect_followed("two", "below/../file");
    expect_followed("below/whole", whole);
    expect_followed("below/dangling", "below/dangling");
    expect_followed("loop", "loop");
}
END_TEST

static void *replace_file(void *is_over)
{
    while (!atomic_load((atomic_bool *)is_over)) {
        int fd = open("new", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        ck_assert_int_ge(fd, 0);
        close(fd);
        ck_assert_int_eq(rename("new", "file"), 0);
    }
    return NULL;
}

START_TEST(a_link_is_followed_while_its_target_is_replaced)
{
    atomic_bool is_over = false;
    pthread_t thread;
    ck_assert_int_eq(symlink("file", "link"), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, replace_file, &is_over), 0);
    for (int i = 0; i < 20000; i++)
        expect_followed("link", "file");
    atomic_store(&is_over, true);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}
END_TEST

/* What /proc says of it is no path, also where that leads somewhere. */
START_TEST(a_file_without_a_name_has_no_other_path)
{
    char self[32];
    int fd = open("file", O_RDONLY);
    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    ck_assert_int_eq(unlink("file"), 0);
    expect_followed(self, self);
    fixture_store("file (deleted)", "a", 1);
    expect_followed(self, self);
    close(fd);
}
END_TEST

/* The path that /proc has of it leads to another one, as it does for another
 * mount namespace. */
START_TEST(a_file_that_a_mount_hides_has_no_other_path)
{
    char self[32], whole[FIXTURE_PATH + 16];
    fixture_store("below/file", "b", 1);
    int fd = open("below/file", O_RDONLY);
    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    snprintf(whole, sizeof(whole), "%s/below/file", folder);
    expect_followed(self, whole);
    if (mount("none", "below", "tmpfs", 0, "size=64k")) {
        printf("skipped: a tmpfs cannot be mounted\n");
        close(fd);
        return;
    }
    char *hidden = leat__file_followed(self);
    fixture_store("below/file", "c", 1);
    char *other = leat__file_followed(self);
    ck_assert_int_eq(umount("below"), 0);
    ck_assert_str_eq(other, self);
    /* Nothing is there. */
    ck_assert_str_eq(hidden, self);
    leat__free(hidden);
    leat__free(other);
    close(fd);
}
END_TEST

static void expect_refused(const char *path, const char *words)
{
    ck_assert_int_eq(leat__file_check_place(path), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), words));
    ck_assert_ptr_nonnull(strstr(leat_last_error(), path));
}

START_TEST(a_mount_point_stays)
{
    ck_assert_int_eq(symlink("file", "below/link"), 0);
    fixture_store("below/file", "b", 1);
    ck_assert_int_eq(leat__file_check_place("nowhere"), LEAT_OK);
    ck_assert_int_eq(leat__file_check_place("below"), LEAT_OK);
    ck_assert_int_eq(leat__file_check_place("below/file"), LEAT_OK);
    if (mount("file", "below/file", NULL, MS_BIND, NULL)) {
        printf("skipped: a file cannot be mounted\n");
        return;
    }
    int status = leat__file_check_place("below/link");
    int of_file = leat__file_check_place("below/file");
    ck_assert_int_eq(umount("below/file"), 0);
    /* A link is replaced itself. */
    ck_assert_int_eq(status, LEAT_OK);
    ck_assert_int_eq(of_file, LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "is a mount point"));
    ck_assert_int_eq(mount("none", "below", "tmpfs", 0, "size=64k"), 0);
    status = leat__file_check_place("below");
    ck_assert_int_eq(umount("below"), 0);
    ck_assert_int_eq(status, LEAT_EINVAL);
}
END_TEST

/* Where a file of the lower layer has that one's device. */
START_TEST(a_file_of_an_overlay_is_no_mount_point)
{
    ck_assert(mkdir("lower", 0777) == 0 && mkdir("work", 0777) == 0 &&
              mkdir("upper", 0777) == 0);
    if (mount("none", "lower", "tmpfs", 0, "size=64k")) {
        printf("skipped: cannot mount a tmpfs\n");
        return;
    }
    fixture_store("lower/file", "b", 1);
    if (mount("none", "below", "overlay", 0,
              "lowerdir=lower,upperdir=upper,workdir=work") == 0) {
        int status = leat__file_check_place("below/file");
        ck_assert_int_eq(umount("below"), 0);
        ck_assert_int_eq(status, LEAT_OK);
    } else {
        printf("skipped: cannot mount an overlay\n");
    }
    ck_assert_int_eq(umount("lower"), 0);
}
END_TEST

static void set_capability(int capability, bool is_effective)
{
    struct __user_cap_header_struct header = {.version =
                                                  _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct has[_LINUX_CAPABILITY_U32S_3];
    ck_assert_int_eq(syscall(SYS_capget, &header, has), 0);
    uint32_t *effective = &has[CAP_TO_INDEX(capability)].effective;
    if (is_effective)
        *effective |= CAP_TO_MASK(capability);
    else
        *effective &= ~CAP_TO_MASK(capability);
    ck_assert_int_eq(syscall(SYS_capset, &header, has), 0);
}

START_TEST(in_a_sticky_directory_another_users_file_stays)
{
    ck_assert_int_eq(chmod(folder, 0755), 0);
    ck_assert_int_eq(chmod("below", 01777), 0);
    fixture_store("below/file", "b", 1);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        if (nobody_become())
            _exit(77);
        expect_refused("below/file", "sticky");
        fixture_store("below/own", "c", 1);
        ck_assert_int_eq(leat__file_check_place("below/own"), LEAT_OK);
        ck_assert_int_eq(leat__file_check_place("file"), LEAT_OK);
        _exit(0);
    }
    int result;
    ck_assert_int_eq(waitpid(child, &result, 0), child);
    ck_assert(WIFEXITED(result));
    if (WEXITSTATUS(result) == 77)
        printf("skipped: only the superuser becomes another user\n");
    else
        ck_assert_int_eq(WEXITSTATUS(result), 0);
    /* The superuser may, with that capability. */
    if (geteuid() == 0) {
        ck_assert_int_eq(chown("below", 65534, 65534), 0);
        ck_assert_int_eq(chown("below/file", 65534, 65534), 0);
        ck_assert_int_eq(leat__file_check_place("below/file"), LEAT_OK);
        set_capability(CAP_FOWNER, false);
        expect_refused("below/file", "sticky");
        set_capability(CAP_FOWNER, true);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("file_place");
    TCase *tcase = tcase_create("file_place");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, a_path_has_a_directory);
    tcase_add_test(tcase, a_file_can_be_made_in_some_directories);
    tcase_add_test(tcase, the_effective_rights_count);
    tcase_add_test(tcase, a_link_leads_on_from_where_it_is);
    tcase_add_test(tcase, a_link_is_followed_while_its_target_is_replaced);
    tcase_add_test(tcase, a_file_without_a_name_has_no_other_path);
    tcase_add_test(tcase, a_file_that_a_mount_hides_has_no_other_path);
    tcase_add_test(tcase, a_mount_point_stays);
    tcase_add_test(tcase, a_file_of_an_overlay_is_no_mount_point);
    tcase_add_test(tcase, in_a_sticky_directory_another_users_file_stays);
    return suite_run(suite);
}
