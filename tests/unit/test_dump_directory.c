/* The files of an earlier dump that give way, and get their names back. */
#include "support/suite.h"
#include "tools/cli/interrupt.h"
#include "tools/delivery/dump_directory.h"
#include "tools/delivery/dump_writer.h"

#include <leat/blob.h>
#include <leat/device.h>
#include <leat/ext/reader.h>
#include <leat/token.h>

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[] = "/tmp/leat_dump_XXXXXX";

/* Whether the file system knows the flags of renameat2. */
static bool is_plain;

/* Renames that replace nothing until the directory is replaced after one; 0:
 * never. */
static int until_replaced;

static void replace_directory(void);

int renameat2(int from, const char *old, int to, const char *target,
              unsigned flags)
{
    if (!is_plain || !flags) {
        int result = (int)syscall(SYS_renameat2, from, old, to, target, flags);
        if (until_replaced > 0 && --until_replaced == 0)
            replace_directory();
        return result;
    }
    errno = EINVAL;
    return -1;
}

static void set_up(void)
{
    memcpy(directory + sizeof(directory) - 7, "XXXXXX", 6);
    ck_assert_ptr_nonnull(mkdtemp(directory));
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

/* How a file begins that is no dump's. */
static const char of_another[DUMP_START_BYTES + 1] = "of another program   ";

static void write_file(const char *name, const char *start)
{
    FILE *out = fopen(in(name), "w");
    ck_assert_ptr_nonnull(out);
    ck_assert_int_eq(fwrite(start, DUMP_START_BYTES, 1, out), 1);
    ck_assert_int_eq(fclose(out), 0);
}

static bool begins_so(const char *path, const char *start)
{
    char found[DUMP_START_BYTES] = "";
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    size_t n = fread(found, 1, sizeof(found), file);
    fclose(file);
    return n == sizeof(found) && !memcmp(found, start, n);
}

/* Moves the directory away, for one of another program's. */
static void replace_directory(void)
{
    char moved[128];
    snprintf(moved, sizeof(moved), "%s.moved", directory);
    ck_assert_int_eq(rename(directory, moved), 0);
    ck_assert_int_eq(mkdir(directory, 0777), 0);
    write_file("data.0000.npy", of_another);
    write_file("data.0001.npy", of_another);
}

/* Removes what came, and moves the directory back. */
static void put_back(void)
{
    char command[300];
    snprintf(command, sizeof(command), "rm -r %s && mv %s.moved %s", directory,
             directory, directory);
    ck_assert_int_eq(system(command), 0);
}

static int count_files(void)
{
    int n = 0;
    DIR *entries = opendir(directory);
    ck_assert_ptr_nonnull(entries);
    while (readdir(entries))
        n++;
    closedir(entries);
    return n - 2;
}

/* As a program does that replaces its file in one step. */
static void put_another(const char *name, const char *start)
{
    char path[128];
    write_file("new", start);
    snprintf(path, sizeof(path), "%s", in("new"));
    ck_assert_int_eq(rename(path, in(name)), 0);
}

/* Two batches, a file for each, beside an earlier dump of one. `takes_back`:
 * a file that begins so takes the place of the second, and then the token
 * cannot be written; NULL: not. */
static int publish_two_batches(const char *takes_back)
{
    const int64_t shape[] = {1};
    struct dump_writer *writer = NULL;
    leat_device *device = NULL;
    leat_blob *blob = NULL;
    write_file("data.0000.npy", dump_start);
    ck_assert_int_eq(leat_device_find(&device, "cpu"), LEAT_OK);
    ck_assert_int_eq(leat_blob_create(&blob, device), LEAT_OK);
    ck_assert_int_eq(leat_blob_reshape(blob, LEAT_UINT8, 1, shape), LEAT_OK);
    memset(leat_blob_mutable_cpu_data(blob), 1, 1);
    ck_assert_int_eq(dump_writer_open(&writer, directory, NULL, true), LEAT_OK);
    ck_assert_int_eq(dump_writer_add(writer, 0, "data", true), LEAT_OK);
    ck_assert_int_eq(dump_writer_put(writer, 0, blob), LEAT_OK);
    ck_assert_int_eq(dump_writer_put(writer, 0, blob), LEAT_OK);
    ck_assert_int_eq(dump_writer_complete(writer), LEAT_OK);
    int status = dump_writer_publish(writer);
    if (!status && takes_back) {
        put_another("data.0001.npy", takes_back);
        status = dump_writer_unpublish(writer, LEAT_EIO);
    }
    dump_writer_close(writer);
    leat_blob_destroy(blob);
    return status;
}

/* In a process of its own, with which the signal stays: nothing is moved from
 * the common file of the batches, which goes. */
static void split_after_signal(void)
{
    const int64_t shape[] = {1}, other[] = {2};
    struct dump_writer *writer = NULL;
    leat_device *device = NULL;
    leat_blob *blob = NULL;
    int status = leat_device_find(&device, "cpu");
    if (!status)
        status = leat_blob_create(&blob, device);
    if (!status)
        status = leat_blob_reshape(blob, LEAT_UINT8, 1, shape);
    if (!status)
        status = dump_writer_open(&writer, directory, NULL, true);
    if (!status)
        status = dump_writer_add(writer, 0, "data", false);
    for (int i = 0; !status && i < 3; i++)
        status = dump_writer_put(writer, 0, blob);
    if (!status)
        status = leat_blob_reshape(blob, LEAT_UINT8, 1, other);
    if (status)
        _exit(2);
    raise(SIGTERM);
    status = dump_writer_put(writer, 0, blob);
    bool is_ended =
        status == LEAT_ECANCELLED && dump_writer_files(writer, 0) == 0;
    dump_writer_close(writer);
    _exit(is_ended ? 0 : 1);
}

/* Likewise: none of the files of an earlier dump is listed. */
static void list_after_signal(void)
{
    struct dump_directory dump;
    int files = count_files();
    if (dump_directory_open(&dump, directory, NULL, true))
        _exit(2);
    raise(SIGTERM);
    bool is_ended = dump_directory_list_earlier(&dump) == LEAT_ECANCELLED &&
                    count_files() == files;
    dump_directory_close(&dump, false);
    _exit(is_ended ? 0 : 1);
}

START_TEST(after_a_signal_no_further_file_is_made)
{
    static void (*const end[])(void) = {split_after_signal, list_after_signal};
    int status;
    write_file("data.npy", dump_start);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        interrupt_catch();
        end[_i]();
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(count_files(), 1);
    ck_assert(begins_so(in("data.npy"), dump_start));
}
END_TEST

static void set_aside(struct dump_directory *dump)
{
    write_file("data.npy", dump_start);
    write_file("label.npy", dump_start);
    ck_assert_int_eq(dump_directory_open(dump, directory, NULL, true), LEAT_OK);
    ck_assert_int_eq(dump_directory_list_earlier(dump), LEAT_OK);
    ck_assert_int_eq(dump_directory_set_aside(dump), LEAT_OK);
    ck_assert(access(in("data.npy"), F_OK));
    ck_assert(access(in("label.npy"), F_OK));
}

START_TEST(files_that_gave_way_get_their_names_back)
{
    struct dump_directory dump;
    is_plain = _i;
    set_aside(&dump);
    int status = leat_error(LEAT_EIO, "a reason");
    ck_assert_int_eq(dump_directory_restore(&dump, status), LEAT_EIO);
    dump_directory_close(&dump, false);
    ck_assert_str_eq(leat_last_error(), "a reason");
    ck_assert(begins_so(in("data.npy"), dump_start));
    ck_assert(begins_so(in("label.npy"), dump_start));
}
END_TEST

/* Between the two, as while a dump of many files is moved. */
START_TEST(a_file_that_came_meanwhile_stays_beside_the_one_that_gave_way)
{
    char where[128];
    struct dump_directory dump;
    is_plain = _i;
    set_aside(&dump);
    write_file("label.npy", of_another);
    int status = leat_error(LEAT_EIO, "a reason");
    ck_assert_int_eq(dump_directory_restore(&dump, status), LEAT_EIO);
    dump_directory_close(&dump, false);
    ck_assert(begins_so(in("label.npy"), of_another));
    ck_assert(begins_so(in("data.npy"), dump_start));
    const char *now = strstr(leat_last_error(), "label.npy is now ");
    ck_assert_ptr_nonnull(now);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "a reason"));
    snprintf(where, sizeof(where), "%s", now + strlen("label.npy is now "));
    where[strcspn(where, ",")] = 0;
    ck_assert(begins_so(where, dump_start));
}
END_TEST

/* As where a user has moved the directory away while the dump was made. */
START_TEST(files_of_a_directory_that_came_meanwhile_stay)
{
    char moved[128], command[300];
    struct dump_directory dump;
    write_file("data.npy", dump_start);
    ck_assert_int_eq(dump_directory_open(&dump, directory, NULL, true),
                     LEAT_OK);
    snprintf(moved, sizeof(moved), "%s.moved", directory);
    ck_assert_int_eq(dump_directory_list_earlier(&dump), LEAT_OK);
    ck_assert_int_eq(rename(directory, moved), 0);
    ck_assert_int_eq(mkdir(directory, 0777), 0);
    write_file("data.npy", of_another);
    /* The look at the place may come before the exchange, or after it. */
    if (_i)
        ck_assert_int_eq(dump_directory_set_aside(&dump), LEAT_OK);
    ck_assert_int_eq(dump_directory_check_place(&dump), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "replaced"));
    ck_assert_int_eq(dump_directory_restore(&dump, LEAT_EIO), LEAT_EIO);
    dump_directory_close(&dump, false);
    ck_assert(begins_so(in("data.npy"), of_another));
    snprintf(command, sizeof(command), "rm -r %s && mv %s %s", directory, moved,
             directory);
    ck_assert_int_eq(system(command), 0);
    ck_assert(begins_so(in("data.npy"), dump_start));
}
END_TEST

/* As where a dump of many files is moved: after the first, and the last. */
START_TEST(a_directory_that_comes_while_files_get_names_keeps_its_own)
{
    struct stat earlier;
    is_plain = false;
    until_replaced = _i;
    ck_assert_int_eq(publish_two_batches(NULL), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "replaced"));
    ck_assert(begins_so(in("data.0000.npy"), of_another));
    ck_assert(begins_so(in("data.0001.npy"), of_another));
    ck_assert_int_eq(count_files(), 2);
    put_back();
    ck_assert_int_eq(stat(in("data.0000.npy"), &earlier), 0);
    ck_assert_int_eq(earlier.st_size, DUMP_START_BYTES);
    ck_assert_int_eq(count_files(), 1);
}
END_TEST

/* Between the look at it and the rename. */
START_TEST(a_file_that_took_the_place_of_a_dump_s_gets_its_name_back)
{
    struct dump_directory dump;
    write_file("data.npy", dump_start);
    write_file("label.npy", dump_start);
    ck_assert_int_eq(dump_directory_open(&dump, directory, NULL, true),
                     LEAT_OK);
    ck_assert_int_eq(dump_directory_list_earlier(&dump), LEAT_OK);
    put_another("label.npy", of_another);
    ck_assert_int_eq(dump_directory_set_aside(&dump), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "label.npy: somebody"));
    ck_assert_int_eq(dump_directory_restore(&dump, LEAT_EINVAL), LEAT_EINVAL);
    dump_directory_close(&dump, false);
    ck_assert(begins_so(in("data.npy"), dump_start));
    ck_assert(begins_so(in("label.npy"), of_another));
    ck_assert_int_eq(count_files(), 2);
}
END_TEST

/* Be it another dump's. */
START_TEST(nor_is_it_removed_with_a_dump_that_is_taken_back)
{
    struct stat earlier;
    const char *start = _i ? dump_start : of_another;
    is_plain = false;
    ck_assert_int_eq(publish_two_batches(start), LEAT_EIO);
    ck_assert(begins_so(in("data.0001.npy"), start));
    ck_assert_int_eq(stat(in("data.0000.npy"), &earlier), 0);
    ck_assert_int_eq(earlier.st_size, DUMP_START_BYTES);
    ck_assert_int_eq(count_files(), 2);
}
END_TEST

/* Its writer would take the look at it for a reader. */
START_TEST(a_pipe_of_a_dump_s_name_is_not_opened)
{
    static const char *const names[] = {"data.npy", "data.npy.leat-abcdef"};
    char event[sizeof(struct inotify_event) + NAME_MAX + 1];
    for (int force = 0; force < 2; force++) {
        struct dump_directory dump;
        ck_assert_int_eq(mkfifo(in(names[_i]), 0600), 0);
        int events = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        ck_assert_int_ge(events, 0);
        ck_assert_int_ge(inotify_add_watch(events, in(names[_i]), IN_OPEN), 0);
        bool is_refused = _i == 0 || !force;
        ck_assert_int_eq(dump_directory_open(&dump, directory, NULL, force),
                         is_refused ? LEAT_EINVAL : LEAT_OK);
        dump_directory_close(&dump, !is_refused);
        ck_assert_int_eq(read(events, event, sizeof(event)), -1);
        close(events);
        ck_assert_int_eq(unlink(in(names[_i])), 0);
    }
}
END_TEST

static void write_token(const char *name)
{
    leat_token token;
    leat_token_init(&token);
    ck_assert_int_eq(leat_token_put(&token, "leat", 4), LEAT_OK);
    FILE *out = fopen(in(name), "w");
    ck_assert_ptr_nonnull(out);
    ck_assert_int_ge(fprintf(out, "%s\n", leat_token_text(&token)), 0);
    ck_assert_int_eq(fclose(out), 0);
    leat_token_finish(&token);
}

/* Empty, or whole. */
START_TEST(what_a_killed_dump_left_of_its_token_goes)
{
    char token[128];
    struct dump_directory dump;
    snprintf(token, sizeof(token), "%s", in("at"));
    write_token("at.leat-abcdef");
    ck_assert_int_eq(mknod(in("at.leat-bcdefg"), S_IFREG | 0600, 0), 0);
    ck_assert_int_eq(dump_directory_probe(directory, NULL, false), LEAT_EINVAL);
    ck_assert_int_eq(dump_directory_probe(directory, token, false), LEAT_OK);
    ck_assert_int_eq(dump_directory_open(&dump, directory, token, false),
                     LEAT_OK);
    ck_assert_int_eq(count_files(), 2);
    dump_directory_close(&dump, true);
    ck_assert_int_eq(count_files(), 0);
}
END_TEST

/* Or the token's directory is another one. */
START_TEST(a_file_beside_it_that_no_token_left_stays)
{
    static const char *const names[] = {"at.leat-abcdef", "at2.leat-abcdef",
                                        "at.leat-abcde", "at.leat-abcdef"};
    char token[128];
    struct dump_directory dump;
    snprintf(token, sizeof(token), "%s", _i == 3 ? "/tmp/at" : in("at"));
    if (_i == 0)
        write_file(names[_i], of_another);
    else
        write_token(names[_i]);
    ck_assert_int_eq(dump_directory_probe(directory, token, false),
                     LEAT_EINVAL);
    ck_assert_int_eq(dump_directory_open(&dump, directory, token, true),
                     LEAT_OK);
    dump_directory_close(&dump, true);
    ck_assert_int_eq(count_files(), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dump_directory");
    TCase *tcase = tcase_create("dump_directory");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, files_that_gave_way_get_their_names_back, 0, 2);
    tcase_add_loop_test(
        tcase, a_file_that_came_meanwhile_stays_beside_the_one_that_gave_way, 0,
        2);
    tcase_add_loop_test(tcase, files_of_a_directory_that_came_meanwhile_stay, 0,
                        2);
    tcase_add_loop_test(
        tcase, a_directory_that_comes_while_files_get_names_keeps_its_own, 1,
        3);
    tcase_add_test(tcase,
                   a_file_that_took_the_place_of_a_dump_s_gets_its_name_back);
    tcase_add_loop_test(tcase, nor_is_it_removed_with_a_dump_that_is_taken_back,
                        0, 2);
    tcase_add_loop_test(tcase, a_pipe_of_a_dump_s_name_is_not_opened, 0, 2);
    tcase_add_loop_test(tcase, after_a_signal_no_further_file_is_made, 0, 2);
    tcase_add_test(tcase, what_a_killed_dump_left_of_its_token_goes);
    tcase_add_loop_test(tcase, a_file_beside_it_that_no_token_left_stays, 0, 4);
    return suite_run(suite);
}
