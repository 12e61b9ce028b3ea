/*
 * Files that another program holds by a lease, as a file server does for its
 * clients: opening one waits until the lease is given up.
 */
#include "base/file.h"
#include "base/memory.h"
#include "layer/on_error/bad_record_file.h"
#include "support/images.h"
#include "support/other_process.h"
#include "support/suite.h"
#include "tools/database/lmdb_writer.h"
#include "tools/database/target.h"
#include "tools/delivery/dump_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

enum { RECORDS = 10 };

static char directory[FIXTURE_PATH];
static char path[2 * FIXTURE_PATH];

static void set_up(void)
{
    fixture_directory(directory);
    snprintf(path, sizeof(path), "%s/file.npy", directory);
}

static void tear_down(void)
{
    fixture_remove(directory);
}

static int leased;

static void give_up(int signal_number)
{
    int error = errno;
    (void)signal_number;
    fcntl(leased, F_SETLEASE, F_UNLCK);
    errno = error;
}

/* In another process: until somebody opens the file. */
static void lease(const char *name)
{
    struct sigaction action = {.sa_handler = give_up, .sa_flags = SA_RESTART};
    leased = open(name, O_RDWR | O_CLOEXEC);
    if (leased < 0 || sigaction(SIGIO, &action, NULL) ||
        fcntl(leased, F_SETLEASE, F_WRLCK))
        _exit(2);
}

static void store(const char *text)
{
    fixture_store(path, text, strlen(text));
}

static bool has_leases(void)
{
    char name[] = "/tmp/leat-lease-XXXXXX";
    int fd = mkstemp(name);
    bool has = fd >= 0 && fcntl(fd, F_SETLEASE, F_WRLCK) == 0;
    if (fd >= 0) {
        close(fd);
        (void)remove(name);
    }
    return has;
}

START_TEST(a_file_is_read)
{
    char *bytes;
    size_t size;
    store("text");
    for (int i = 0; i < 2; i++) {
        other_process other = other_process_start(lease, path);
        int status =
            i ? leat__file_read_own(&bytes, &size, path, 100, NULL, NULL)
              : leat__file_read(&bytes, &size, path, 100);
        ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
        ck_assert_str_eq(bytes, "text");
        leat__free(bytes);
        other_process_stop(&other);
    }
}
END_TEST

START_TEST(a_file_is_appended_to)
{
    struct stat about;
    store("text");
    other_process other = other_process_start(lease, path);
    int fd = leat__file_open(path, O_RDWR | O_APPEND | O_NOFOLLOW);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, "more", 4), 4);
    ck_assert_int_eq(fstat(fd, &about), 0);
    ck_assert_int_eq(about.st_size, 8);
    close(fd);
    other_process_stop(&other);
}
END_TEST

START_TEST(a_lock_file_is_locked)
{
    char made[FIXTURE_PATH], lock[2 * FIXTURE_PATH];
    images_write(made, images_record, RECORDS);
    snprintf(lock, sizeof(lock), "%s/lock.mdb", made);
    other_process other = other_process_start(lease, lock);
    leat_reader *reader = images_open(made);
    ck_assert_int_eq(images_count(reader), RECORDS);
    other_process_stop(&other);
    images_end(reader, made);
}
END_TEST

/* For good, or until the system takes it away, after 45 seconds by default. */
static void keep_lease(const char *name)
{
    lease(name);
    signal(SIGIO, SIG_IGN);
}

/* Waits until the process does, as far as the kernel tells. */
static void await_wait(pid_t child)
{
    char name[64], where[64];
    snprintf(name, sizeof(name), "/proc/%d/wchan", (int)child);
    for (int i = 0; i < 200; i++) {
        FILE *file = fopen(name, "r");
        size_t size = file ? fread(where, 1, sizeof(where) - 1, file) : 0;
        where[size] = 0;
        if (file)
            fclose(file);
        if (strstr(where, "lease"))
            return;
        usleep(10000);
    }
}

static pid_t run_tool(int i, const char *made)
{
    char out[2 * FIXTURE_PATH];
    pid_t child = fork();
    if (child)
        return child;
    snprintf(out, sizeof(out), "%s/out.png", directory);
    if (i == 0)
        execl(LEAT_TOOL, "leat", "verify", made, NULL);
    else if (i == 1)
        execl(LEAT_TOOL, "leat", "mean", made, out, NULL);
    else
        execl(LEAT_TOOL, "leat", "show", made, "--out", out, NULL);
    _exit(1);
}

START_TEST(a_signal_ends_a_command_that_waits)
{
    char made[FIXTURE_PATH], data[2 * FIXTURE_PATH];
    int status = 0, tries = 0;
    images_write(made, images_record, RECORDS);
    snprintf(data, sizeof(data), "%s/data.mdb", made);
    other_process other = other_process_start(keep_lease, data);
    pid_t child = run_tool(_i, made);
    await_wait(child);
    ck_assert_int_eq(kill(child, SIGTERM), 0);
    while (waitpid(child, &status, WNOHANG) == 0 && tries++ < 1000)
        usleep(10000);
    ck_assert_int_le(tries, 1000);
    ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM, "%#x",
                  status);
    other_process_stop(&other);
    fixture_remove(made);
}
END_TEST

START_TEST(a_list_of_bad_records_is_gone_on_with)
{
    leat__bad_record_file list;
    store("db\t1\t\t0\t1\tzeros\tbad\n");
    leat__bad_record_file_init(&list, "layer", path);
    other_process other = other_process_start(lease, path);
    int status = leat__bad_record_file_open(&list);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    ck_assert_uint_eq(list.listed.n, 1);
    leat__bad_record_file_finish(&list);
    other_process_stop(&other);
}
END_TEST

START_TEST(a_dumps_own_file_is_known)
{
    struct dump_directory dump;
    fixture_store(path, dump_start, DUMP_START_BYTES);
    other_process other = other_process_start(lease, path);
    int status = dump_directory_open(&dump, directory, NULL, true);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    dump_directory_close(&dump, true);
    other_process_stop(&other);
}
END_TEST

START_TEST(a_target_is_known_by_its_beginning)
{
    char begin[4];
    store("text");
    other_process other = other_process_start(lease, path);
    ck_assert_int_eq(target_begin(path, begin, sizeof(begin)), 4);
    ck_assert_mem_eq(begin, "text", 4);
    other_process_stop(&other);
}
END_TEST

/* As a run of the import does that is stopped after `keep`. */
static int open_import(struct lmdb_writer *writer)
{
    char out[2 * FIXTURE_PATH];
    snprintf(out, sizeof(out), "%s/out", directory);
    const struct staging_options options = {.target = out, .arguments = "a\n"};
    return lmdb_writer_open(writer, &options);
}

START_TEST(an_unfinished_import_is_gone_on_with)
{
    struct lmdb_writer writer;
    ck_assert_int_eq(open_import(&writer), LEAT_OK);
    ck_assert_int_eq(lmdb_writer_put(&writer, "0", 1, "x", 1), LEAT_OK);
    ck_assert_int_eq(lmdb_writer_keep(&writer), 1);
    lmdb_writer_close(&writer);
    snprintf(path, sizeof(path), "%s/out.leat-part/%s", directory,
             _i ? "database/data.mdb" : "journal");
    other_process other = other_process_start(lease, path);
    int status = open_import(&writer);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    ck_assert_int_eq(writer.records, 1);
    lmdb_writer_close(&writer);
    other_process_stop(&other);
}
END_TEST

int main(void)
{
    if (!has_leases()) {
        printf("skipped: no lease on a file here\n");
        return 77;
    }
    Suite *suite = suite_create("leases");
    TCase *tcase = tcase_create("leases");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, a_file_is_read);
    tcase_add_test(tcase, a_file_is_appended_to);
    tcase_add_test(tcase, a_lock_file_is_locked);
    tcase_add_loop_test(tcase, a_signal_ends_a_command_that_waits, 0, 3);
    tcase_add_test(tcase, a_list_of_bad_records_is_gone_on_with);
    tcase_add_test(tcase, a_dumps_own_file_is_known);
    tcase_add_test(tcase, a_target_is_known_by_its_beginning);
    tcase_add_loop_test(tcase, an_unfinished_import_is_gone_on_with, 0, 2);
    return suite_run(suite);
}
