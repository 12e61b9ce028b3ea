/* What is opened as a regular file alone, whatever takes its name meanwhile. */
#include "base/file.h"
#include "support/suite.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

static char before[PATH_MAX], folder[] = "/tmp/leat-open-XXXXXX";
static bool is_to_swap;  /* a pipe takes the file's name at the next fstat */
static bool has_no_proc; /* nothing is found there */

int __wrap_fstat(int fd, struct stat *about);
int __real_fstat(int fd, struct stat *about);
int __wrap_open(const char *path, int flags, mode_t mode);
int __real_open(const char *path, int flags, mode_t mode);

int __wrap_fstat(int fd, struct stat *about)
{
    int result = __real_fstat(fd, about);
    if (is_to_swap)
        ck_assert_int_eq(rename("pipe", "file"), 0);
    is_to_swap = false;
    return result;
}

int __wrap_open(const char *path, int flags, mode_t mode)
{
    if (has_no_proc && !strncmp(path, "/proc/", 6)) {
        errno = ENOENT;
        return -1;
    }
    return __real_open(path, flags, mode);
}

static void write_file(const char *name)
{
    FILE *file = fopen(name, "w");
    ck_assert(file && fputc('a', file) == 'a' && fclose(file) == 0);
}

static void set_up(void)
{
    is_to_swap = has_no_proc = false;
    memcpy(folder + sizeof(folder) - 7, "XXXXXX", 6);
    ck_assert_ptr_nonnull(getcwd(before, sizeof(before)));
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    write_file("file");
    ck_assert_int_eq(mkfifo("pipe", 0600), 0);
    ck_assert_int_eq(symlink("file", "link"), 0);
}

static void tear_down(void)
{
    char command[64];
    ck_assert_int_eq(chdir(before), 0);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

/* Opens, and expects the file's byte, or that errno. */
static void expect(const char *name, int flags, int code)
{
    char byte = 0;
    int fd = leat__file_open_regular(AT_FDCWD, name, flags);
    if (code) {
        ck_assert_int_eq(fd, -1);
        ck_assert_int_eq(errno, code);
        return;
    }
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(read(fd, &byte, 1), 1);
    ck_assert_int_eq(byte, 'a');
    ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    close(fd);
}

START_TEST(a_regular_file_is_opened_and_nothing_else)
{
    has_no_proc = _i;
    expect("file", 0, 0);
    expect("file", O_NOFOLLOW, 0);
    expect("file", O_RDWR | O_NOFOLLOW, 0);
    expect("link", 0, 0);
    expect("link", O_NOFOLLOW, ENXIO);
    expect("pipe", 0, ENXIO);
    expect("/dev/null", 0, ENXIO);
    expect(".", 0, ENXIO);
    expect("nowhere", 0, ENOENT);
}
END_TEST

START_TEST(a_pipe_that_takes_its_name_is_not_opened)
{
    char event[sizeof(struct inotify_event) + NAME_MAX + 1];
    int events = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    ck_assert_int_ge(events, 0);
    ck_assert_int_ge(inotify_add_watch(events, "pipe", IN_OPEN), 0);
    is_to_swap = true;
    expect("file", _i ? O_NOFOLLOW : 0, 0);
    ck_assert(!is_to_swap);
    ck_assert_int_eq(read(events, event, sizeof(event)), -1);
    expect("file", 0, ENXIO);
    close(events);
}
END_TEST

/* Its writer would be woken, and find no reader. */
START_TEST(a_pipe_that_is_to_be_read_whole_is_not_opened)
{
    char event[sizeof(struct inotify_event) + NAME_MAX + 1], *bytes;
    size_t size;
    int events = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    ck_assert_int_ge(inotify_add_watch(events, "pipe", IN_OPEN), 0);
    ck_assert_int_eq(leat__file_read(&bytes, &size, "pipe", 10), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "found a named pipe"));
    ck_assert_int_eq(read(events, event, sizeof(event)), -1);
    close(events);
}
END_TEST

START_TEST(what_has_the_place_of_a_file_of_leat_s_is_named)
{
    static const char *const names[][2] = {{"pipe", "named pipe"},
                                           {"link", "symbolic link"},
                                           {".", "directory"},
                                           {"/dev/null", "device"}};
    int fd = -1;
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(leat__file_open_own(&fd, names[i][0]), LEAT_EIO);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), names[i][1]));
    }
    ck_assert_int_eq(leat__file_open_own(&fd, "file"), LEAT_OK);
    close(fd);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("file_open");
    TCase *tcase = tcase_create("file_open");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, a_regular_file_is_opened_and_nothing_else, 0, 2);
    tcase_add_loop_test(tcase, a_pipe_that_takes_its_name_is_not_opened, 0, 2);
    tcase_add_test(tcase, a_pipe_that_is_to_be_read_whole_is_not_opened);
    tcase_add_test(tcase, what_has_the_place_of_a_file_of_leat_s_is_named);
    return suite_run(suite);
}
