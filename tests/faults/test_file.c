/* Whole files: read up to a limit, written whole or not at all. */
#include "base/file.h"
#include "base/memory.h"
#include "faults/faults.h"
#include "lmdb_fixture.h"
#include "support/suite.h"

#include <leat/status.h>

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/resource.h>

enum { LARGEST = 100000, CALLS_MAX = 50 };

static char directory[FIXTURE_PATH];
static char path[2 * FIXTURE_PATH];
static unsigned char content[LARGEST];

static void set_up(void)
{
    fixture_directory(directory);
    snprintf(path, sizeof(path), "%s/file", directory);
    for (size_t i = 0; i < sizeof(content); i++)
        content[i] = (unsigned char)(i % 251);
}

static void tear_down(void)
{
    fixture_remove(directory);
}

static int count_files(void)
{
    int n = -2;
    DIR *files = opendir(directory);
    ck_assert_ptr_nonnull(files);
    while (readdir(files))
        n++;
    closedir(files);
    return n;
}

static char pipe_path[64];
static int ends[2];

/* A pipe as the shell has it, with so many bytes in it. */
static const char *fill_pipe(size_t size)
{
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_ge(fcntl(ends[1], F_SETPIPE_SZ, 1 << 20), LARGEST);
    ck_assert_int_eq(write(ends[1], content, size), (ssize_t)size);
    ck_assert_int_eq(close(ends[1]), 0);
    snprintf(pipe_path, sizeof(pipe_path), "/proc/self/fd/%d", ends[0]);
    return pipe_path;
}

/* From a file, which tells its size, or from a pipe, which does not. */
static int read_back(int from_pipe, size_t size, size_t limit,
                     leat__file_bound *bound)
{
    char *bytes = NULL;
    size_t got = 0;
    const char *from = path;
    if (from_pipe)
        from = fill_pipe(size);
    else
        fixture_store(path, content, size);
    int status = leat__file_read_bounded(&bytes, &got, from, limit, bound);
    if (from_pipe)
        close(ends[0]);
    if (status == LEAT_OK) {
        ck_assert_uint_eq(got, size);
        ck_assert_mem_eq(bytes, content, size);
        ck_assert_int_eq(bytes[size], 0);
    } else {
        ck_assert_ptr_null(bytes);
        ck_assert_uint_eq(got, 0);
    }
    leat__free(bytes);
    return status;
}

static const size_t sizes[] = {0,     1,     50,    4095,  16382, 16383,
                               16384, 16385, 32768, 65535, 99999};

START_TEST(a_file_is_read_up_to_the_limit)
{
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t size = sizes[i];
        ck_assert_int_eq(read_back(_i, size, size, NULL), LEAT_OK);
        ck_assert_int_eq(read_back(_i, size, size + 1, NULL), LEAT_OK);
        ck_assert_int_eq(read_back(_i, size, LARGEST, NULL), LEAT_OK);
        ck_assert_msg(read_back(_i, size + 1, size, NULL) == LEAT_EFORMAT,
                      "%zu bytes, and one more", size);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "expected at most"));
        ck_assert_int_eq(read_back(_i, LARGEST, size, NULL), LEAT_EFORMAT);
    }
}
END_TEST

static size_t asked_at; /* bytes that were there at the last question */

static int bound_to_half(const char *from, const char *bytes, size_t size,
                         size_t *limit)
{
    ck_assert_ptr_eq(from, pipe_path);
    ck_assert_mem_eq(bytes, content, size);
    asked_at = size;
    *limit = LARGEST / 2;
    return LEAT_OK;
}

static int bound_to_none(const char *from, const char *bytes, size_t size,
                         size_t *limit)
{
    (void)from, (void)bytes, (void)size;
    *limit = 0;
    return LEAT_EUNSUPPORTED;
}

START_TEST(what_does_not_tell_its_size_is_asked_what_it_may_have)
{
    ck_assert_int_eq(read_back(1, 1000, LARGEST, bound_to_half), LEAT_OK);
    ck_assert_uint_eq(asked_at, 0);
    ck_assert_int_eq(read_back(1, LARGEST / 2, LARGEST, bound_to_half),
                     LEAT_OK);
    ck_assert_uint_gt(asked_at, 16000);
    ck_assert_int_eq(read_back(1, LARGEST / 2 + 1, LARGEST, bound_to_half),
                     LEAT_EFORMAT);
    ck_assert_int_eq(read_back(1, LARGEST, LARGEST, bound_to_half),
                     LEAT_EFORMAT);
    ck_assert_int_eq(read_back(1, LARGEST, LARGEST, bound_to_none),
                     LEAT_EUNSUPPORTED);
    ck_assert_int_eq(read_back(1, 1000, LARGEST, bound_to_none), LEAT_OK);
    /* A file has told it. */
    ck_assert_int_eq(read_back(0, LARGEST, LARGEST, bound_to_none), LEAT_OK);
}
END_TEST

START_TEST(what_is_no_file_is_not_read)
{
    char *bytes;
    size_t size;
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(leat__file_read(&bytes, &size, path, 10), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "found a named pipe"));
    ck_assert_int_eq(leat__file_read(&bytes, &size, "/dev/null", 10), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "found a device"));
    ck_assert_int_eq(leat__file_read(&bytes, &size, directory, 10), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "Is a directory"));
    ck_assert_int_eq(leat__file_read(&bytes, &size, "/nowhere", 10), LEAT_EIO);
}
END_TEST

static void expect_own_refused(const char *type)
{
    char *bytes;
    size_t size;
    char line[1024];
    ck_assert_int_eq(
        leat__file_read_own(&bytes, &size, path, LARGEST, NULL, NULL),
        LEAT_EIO);
    snprintf(line, sizeof(line),
             "%s: expected a file that leat made, found a %s; move it away",
             path, type);
    ck_assert_str_eq(leat_last_error(), line);
    ck_assert_int_eq(unlink(path), 0);
}

static void swap_for_link(void)
{
    char other[3 * FIXTURE_PATH];
    snprintf(other, sizeof(other), "%s/other", directory);
    ck_assert_int_eq(rename(path, other), 0);
    ck_assert_int_eq(symlink(other, path), 0);
}

/* Whatever a link leads to: another program made it. */
START_TEST(a_file_of_leats_own_is_no_link_or_pipe)
{
    char *bytes;
    size_t size;
    fixture_store(path, content, 100);
    ck_assert_int_eq(leat__file_read_own(&bytes, &size, path, 100, NULL, NULL),
                     LEAT_OK);
    ck_assert_uint_eq(size, 100);
    ck_assert_mem_eq(bytes, content, size);
    leat__free(bytes);
    ck_assert_int_eq(leat__file_read_own(&bytes, &size, path, 99, NULL, NULL),
                     LEAT_EFORMAT);
    /* The first look has found a file. */
    fault_act(swap_for_link);
    fault_arm(FAULT_OPEN, 0, FAULT_ACT, 0);
    ck_assert_int_eq(leat__file_read_own(&bytes, &size, path, 100, NULL, NULL),
                     LEAT_EIO);
    ck_assert_int_eq(fault_disarm(), 1);
    expect_own_refused("symbolic link");
    ck_assert_int_eq(symlink(fill_pipe(10), path), 0);
    expect_own_refused("symbolic link");
    ck_assert_int_eq(read(ends[0], content, LARGEST), 10);
    ck_assert_int_eq(close(ends[0]), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    expect_own_refused("named pipe");
    ck_assert_int_eq(leat__file_read_own(&bytes, &size, path, 100, NULL, NULL),
                     LEAT_EIO);
}
END_TEST

/* What a check has been told, and what it says. */
static struct {
    char head[LEAT__FILE_HEAD];
    size_t size;
    int status;
} checked;

static int check_head(const void *user, const char *head,
                      const struct stat *about)
{
    ck_assert_ptr_eq(user, content);
    memcpy(checked.head, head, LEAT__FILE_HEAD);
    checked.size = (size_t)about->st_size;
    return checked.status;
}

static int read_checked(char **bytes, size_t *size)
{
    return leat__file_read_own(bytes, size, path, LARGEST, check_head, content);
}

/* Nothing is allocated for what is refused. */
START_TEST(a_file_of_leats_own_is_checked_by_its_beginning)
{
    static const size_t sizes[] = {0, 1, LEAT__FILE_HEAD, LARGEST};
    char *bytes;
    size_t size;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char head[LEAT__FILE_HEAD] = {0};
        memcpy(head, content,
               sizes[i] < sizeof(head) ? sizes[i] : sizeof(head));
        fixture_store(path, content, sizes[i]);
        checked.status = LEAT_EUNSUPPORTED;
        int64_t before = leat__alloc_count();
        ck_assert_int_eq(read_checked(&bytes, &size), LEAT_EUNSUPPORTED);
        ck_assert_int_eq(leat__alloc_count(), before);
        ck_assert_uint_eq(checked.size, sizes[i]);
        ck_assert_mem_eq(checked.head, head, sizeof(head));
        checked.status = LEAT_OK;
        /* In pieces, too. */
        fault_arm(FAULT_READ, 0, FAULT_SHORT, 1);
        ck_assert_int_eq(read_checked(&bytes, &size), LEAT_OK);
        (void)fault_disarm();
        ck_assert_mem_eq(checked.head, head, sizeof(head));
        ck_assert_uint_eq(size, sizes[i]);
        ck_assert_mem_eq(bytes, content, size);
        leat__free(bytes);
    }
    fault_arm(FAULT_READ, 0, EINTR, 0);
    ck_assert_int_eq(read_checked(&bytes, &size), LEAT_OK);
    ck_assert_int_eq(fault_disarm(), 1);
    leat__free(bytes);
    fault_arm(FAULT_READ, 0, EIO, 0);
    ck_assert_int_eq(read_checked(&bytes, &size), LEAT_EIO);
    ck_assert_int_eq(fault_disarm(), 1);
}
END_TEST

/* Each of what happens when a system is short of something. */
START_TEST(reading_that_fails_is_an_error_and_what_is_interrupted_goes_on)
{
    char *bytes;
    size_t size;
    fixture_store(path, content, LARGEST);
    static const struct {
        fault_call call;
        int error, stays, expected;
    } cases[] = {
        {FAULT_OPEN, EMFILE, 0, LEAT_EIO},
        {FAULT_READ, EIO, 0, LEAT_EIO},
        {FAULT_READ, EINTR, 0, LEAT_OK},
        {FAULT_READ, FAULT_SHORT, 1, LEAT_OK},
        {FAULT_STAT, EIO, 0, LEAT_EIO},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        fault_arm(cases[i].call, 0, cases[i].error, cases[i].stays);
        int status = leat__file_read(&bytes, &size, path, LARGEST);
        ck_assert_int_eq(fault_disarm(), 1);
        ck_assert_int_eq(status, cases[i].expected);
        if (status == LEAT_OK) {
            ck_assert_uint_eq(size, LARGEST);
            ck_assert_mem_eq(bytes, content, LARGEST);
            leat__free(bytes);
        }
    }
    leat__alloc_fail_at(0);
    ck_assert_int_eq(leat__file_read(&bytes, &size, path, LARGEST),
                     LEAT_ENOMEM);
    leat__alloc_fail_at(1);
    ck_assert_int_eq(read_back(1, LARGEST, LARGEST, NULL), LEAT_ENOMEM);
    leat__alloc_fail_at(-1);
}
END_TEST

static void expect_content(const void *bytes, size_t size)
{
    size_t got;
    unsigned char *found = fixture_load(path, &got);
    ck_assert_uint_eq(got, size);
    ck_assert_mem_eq(found, bytes, size);
    free(found);
}

START_TEST(a_file_is_written_whole)
{
    mode_t mask = umask(0);
    ck_assert_int_eq(leat__file_write(path, content, LARGEST), LEAT_OK);
    umask(mask);
    expect_content(content, LARGEST);
    struct stat about;
    ck_assert_int_eq(stat(path, &about), 0);
    ck_assert_int_eq(about.st_mode & 07777, 0666);
    ck_assert_int_eq(leat__file_write(path, "b", 1), LEAT_OK);
    expect_content("b", 1);
    ck_assert_int_eq(leat__file_write(path, "", 0), LEAT_OK);
    expect_content("", 0);
    ck_assert_int_eq(count_files(), 1);
}
END_TEST

/* Also by a file that has a name while it is written. */
START_TEST(a_file_that_is_replaced_hands_its_permissions_on)
{
    struct stat about;
    ck_assert_int_eq(leat__file_write(path, content, 10), LEAT_OK);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(chmod(path, i ? 0444 : 0600), 0);
        if (i)
            fault_arm(FAULT_OPEN, 0, EOPNOTSUPP, 0);
        ck_assert_int_eq(leat__file_write(path, content, 20), LEAT_OK);
        ck_assert_int_eq(fault_disarm(), i);
        expect_content(content, 20);
        ck_assert_int_eq(stat(path, &about), 0);
        ck_assert_int_eq(about.st_mode & 07777, i ? 0444 : 0600);
    }
}
END_TEST

/* A look that fails says nothing of them: then nothing is replaced. */
START_TEST(what_was_not_for_all_stays_so_where_a_look_at_it_fails)
{
    struct stat about;
    mode_t mask = umask(0);
    int is_reached = 1, failed = 0;
    ck_assert_int_eq(leat__file_write(path, content, 10), LEAT_OK);
    ck_assert_int_eq(chmod(path, 0600), 0);
    for (int n = 0; is_reached; n++) {
        fault_arm(FAULT_STAT, n, _i ? ENOMEM : EIO, 0);
        int status = leat__file_write(path, content, 20);
        is_reached = fault_disarm();
        failed += status != LEAT_OK;
        ck_assert_int_eq(stat(path, &about), 0);
        ck_assert_int_eq(about.st_mode & 07777, 0600);
    }
    ck_assert_int_gt(failed, 0);
    ck_assert_int_eq(count_files(), 1);
    umask(mask);
}
END_TEST

static bool has_unnamed(void)
{
    int fd = open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static int files_meanwhile;

static void count_meanwhile(void)
{
    files_meanwhile = count_files();
}

static void write_watched(fault_call call)
{
    files_meanwhile = -1;
    fault_act(count_meanwhile);
    fault_arm(call, 0, FAULT_ACT, 0);
    ck_assert_int_eq(leat__file_write(path, content, LARGEST), LEAT_OK);
    ck_assert_int_eq(fault_disarm(), 1);
    expect_content(content, LARGEST);
}

/* Whatever kills the process meanwhile. */
START_TEST(nothing_lies_beside_a_file_while_it_is_written)
{
    static const fault_call calls[] = {FAULT_WRITE, FAULT_SYNC, FAULT_NAME};
    if (!has_unnamed()) {
        printf("skipped: this file system has no files without a name\n");
        return;
    }
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        write_watched(calls[i]);
        ck_assert_int_eq(files_meanwhile, 0);
        write_watched(calls[i]);
        ck_assert_int_eq(files_meanwhile, 1);
        ck_assert_int_eq(unlink(path), 0);
    }
}
END_TEST

/* In the directory that is the current one, too. */
START_TEST(a_bare_name_is_written)
{
    char before[PATH_MAX];
    ck_assert_ptr_nonnull(getcwd(before, sizeof(before)));
    ck_assert_int_eq(chdir(directory), 0);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(leat__file_write("file", content, 10), LEAT_OK);
    ck_assert_int_eq(chdir(before), 0);
    expect_content(content, 10);
    ck_assert_int_eq(count_files(), 1);
}
END_TEST

/* As on NFS, or where /proc is missing. */
START_TEST(a_file_is_written_where_none_can_be_without_a_name)
{
    for (int i = 0; i < 2; i++) {
        fault_arm(FAULT_OPEN, 0, EOPNOTSUPP, 0);
        ck_assert_int_eq(leat__file_write(path, content, 10), LEAT_OK);
        ck_assert_int_eq(fault_disarm(), 1);
        expect_content(content, 10);
        ck_assert_int_eq(count_files(), 1);
        fault_arm(FAULT_NAME, 0, ENOENT, 0);
        ck_assert_int_eq(leat__file_write(path, content, 20), LEAT_OK);
        ck_assert_int_eq(fault_disarm(), 1);
        expect_content(content, 20);
        ck_assert_int_eq(count_files(), 1);
    }
}
END_TEST

static int write_limited(size_t limit)
{
    struct rlimit before, small;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = limit;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    int status = leat__file_write(path, content, 1000);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    return status;
}

/* Without SIGXFSZ, which ends the process by default. */
START_TEST(a_file_beyond_the_limit_of_the_process_is_an_error)
{
    char line[1024];
    ck_assert_int_eq(write_limited(999), LEAT_EIO);
    snprintf(line, sizeof(line), "%s: %s", path, strerror(EFBIG));
    ck_assert_str_eq(leat_last_error(), line);
    ck_assert_int_eq(count_files(), 0);
    ck_assert_int_eq(write_limited(1000), LEAT_OK);
    expect_content(content, 1000);
}
END_TEST

/* What was there stays, and nothing lies beside it. */
START_TEST(writing_that_fails_changes_nothing)
{
    static const struct {
        fault_call call;
        int error;
    } kinds[] = {{FAULT_OPEN, EACCES},  {FAULT_STAT, EIO},
                 {FAULT_WRITE, ENOSPC}, {FAULT_SYNC, EIO},
                 {FAULT_CLOSE, EIO},    {FAULT_NAME, EIO}};
    fixture_store(path, "before", 6);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        fault_arm(kinds[i].call, 0, kinds[i].error, 1);
        int status = leat__file_write(path, content, LARGEST);
        ck_assert_int_eq(fault_disarm(), 1);
        ck_assert_msg(status == LEAT_EIO, "%s: %d", fault_name(kinds[i].call),
                      status);
        char line[1024];
        snprintf(line, sizeof(line), "%s: %s", path, strerror(kinds[i].error));
        ck_assert_str_eq(leat_last_error(), line);
        expect_content("before", 6);
        ck_assert_int_eq(count_files(), 1);
    }
    leat__alloc_fail_at(0);
    ck_assert_int_eq(leat__file_write(path, content, LARGEST), LEAT_ENOMEM);
    leat__alloc_fail_at(-1);
    expect_content("before", 6);
    /* The name, that beside it, and the renaming. */
    fault_arm(FAULT_NAME, has_unnamed() ? 2 : 0, EIO, 0);
    ck_assert_int_eq(leat__file_write(path, content, LARGEST), LEAT_EIO);
    ck_assert_int_eq(fault_disarm(), 1);
    expect_content("before", 6);
    ck_assert_int_eq(count_files(), 1);
    /* What a signal interrupts or comes in pieces is gone on with. */
    fault_arm(FAULT_WRITE, 0, FAULT_SHORT, 1);
    ck_assert_int_eq(leat__file_write(path, content, 100), LEAT_OK);
    fault_disarm();
    expect_content(content, 100);
    fault_arm(FAULT_WRITE, 0, EINTR, 0);
    ck_assert_int_eq(leat__file_write(path, content, LARGEST), LEAT_OK);
    fault_disarm();
    expect_content(content, LARGEST);
}
END_TEST

START_TEST(only_a_file_gives_way)
{
    char other[3 * FIXTURE_PATH];
    snprintf(other, sizeof(other), "%s/other", directory);
    ck_assert_int_eq(symlink(other, path), 0);
    ck_assert_int_eq(leat__file_write(path, "b", 1), LEAT_EINVAL);
    ck_assert_ptr_nonnull(
        strstr(leat_last_error(), "exists and is not a regular file"));
    ck_assert_int_ne(access(other, F_OK), 0);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(leat__file_write(path, "b", 1), LEAT_EINVAL);
    ck_assert_int_eq(leat__file_write("/nowhere/file", "b", 1), LEAT_EIO);
    ck_assert_str_eq(leat_last_error(),
                     "/nowhere/file: No such file or directory");
}
END_TEST

/* A name that is taken already is another one's: one more is drawn. */
START_TEST(a_temporary_name_that_is_taken_is_left_alone)
{
    for (int i = 0; i < 4; i++) {
        fault_arm(i < 2 ? FAULT_NAME : FAULT_OPEN, i % 2, EEXIST, 0);
        ck_assert_int_eq(leat__file_write(path, content, 10), LEAT_OK);
        fault_disarm();
        expect_content(content, 10);
        fault_arm(i < 2 ? FAULT_NAME : FAULT_OPEN, 0, EEXIST, 1);
        ck_assert_int_eq(leat__file_write(path, content, 20), LEAT_EIO);
        ck_assert_int_eq(fault_disarm(), 1);
        expect_content(content, 10);
        ck_assert_int_eq(count_files(), 1);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("file");
    TCase *tcase = tcase_create("file");
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, a_file_is_read_up_to_the_limit, 0, 2);
    tcase_add_test(tcase,
                   what_does_not_tell_its_size_is_asked_what_it_may_have);
    tcase_add_test(tcase, what_is_no_file_is_not_read);
    tcase_add_test(
        tcase, reading_that_fails_is_an_error_and_what_is_interrupted_goes_on);
    tcase_add_test(tcase, a_file_of_leats_own_is_no_link_or_pipe);
    tcase_add_test(tcase, a_file_of_leats_own_is_checked_by_its_beginning);
    tcase_add_test(tcase, a_file_is_written_whole);
    tcase_add_test(tcase, a_file_that_is_replaced_hands_its_permissions_on);
    tcase_add_loop_test(
        tcase, what_was_not_for_all_stays_so_where_a_look_at_it_fails, 0, 2);
    tcase_add_test(tcase, nothing_lies_beside_a_file_while_it_is_written);
    tcase_add_test(tcase, a_bare_name_is_written);
    tcase_add_test(tcase, a_file_is_written_where_none_can_be_without_a_name);
    tcase_add_test(tcase, a_file_beyond_the_limit_of_the_process_is_an_error);
    tcase_add_test(tcase, writing_that_fails_changes_nothing);
    tcase_add_test(tcase, only_a_file_gives_way);
    tcase_add_test(tcase, a_temporary_name_that_is_taken_is_left_alone);
    return suite_run(suite);
}
