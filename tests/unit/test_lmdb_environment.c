/*
 * Whose lock protects what: readers of files that were replaced, linked and
 * renamed, and of forked children. A writer in a process of its own then
 * overwrites every page that no slot protects.
 */
#include "base/thread.h"
#include "readers/lmdb/lmdb_environment.h"
#include "readers/lmdb/lmdb_snapshot.h"
#include "support/images.h"
#include "support/nobody.h"
#include "support/other_process.h"
#include "support/sanitizer.h"
#include "support/suite.h"

#include <leat/ext/reader.h>

#include <errno.h>
#include <sys/mount.h>
#include <sys/wait.h>

enum { RECORDS = 100, COMMITS = 30, SECONDS = 60, FORKS = 200 };

static char directory[FIXTURE_PATH];
static char second[FIXTURE_PATH]; /* of another database, or of links */

static void begin(void)
{
    images_write(directory, images_record, RECORDS);
}

static void end(void)
{
    fixture_remove(directory);
}

/* The same keys with no Datum: whoever meets one has lost its pages. */
static void ruined_record(int number, fixture_record *out)
{
    images_record(number, out);
    memset(out->value, 0xee, out->value_size);
}

static void overwrite(const char *path)
{
    MDB_env *env = fixture_env(path, 0);
    for (int i = 0; i < COMMITS; i++)
        fixture_put(env, ruined_record, 0, RECORDS, 0);
    mdb_env_close(env);
}

static void expect_whole(leat_reader *reader)
{
    ck_assert_int_eq(leat_reader_seek(reader, (leat_position){0, 0}, NULL),
                     LEAT_OK);
    ck_assert_int_eq(images_count(reader), RECORDS);
}

static char *in(const char *in_directory, const char *name)
{
    static char paths[4][2 * FIXTURE_PATH];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", in_directory, name);
    return path;
}

/* Puts another database's data file in the place of the directory's, which is
   kept as old.mdb. */
static void replace_by(int commits)
{
    images_write(second, images_record, RECORDS);
    MDB_env *env = fixture_env(second, 0);
    for (int i = 0; i < commits; i++)
        fixture_put(env, images_record, 0, RECORDS, 0);
    mdb_env_close(env);
    ck_assert_int_eq(link(in(directory, "data.mdb"), in(directory, "old.mdb")),
                     0);
    ck_assert_int_eq(rename(in(second, "data.mdb"), in(directory, "data.mdb")),
                     0);
    fixture_remove(second);
}

/* By one several commits on, as a database that is in use. */
static void replace(void)
{
    replace_by(4);
}

static void put_back(void)
{
    ck_assert_int_eq(
        rename(in(directory, "old.mdb"), in(directory, "data.mdb")), 0);
}

START_TEST(the_overwriting_is_noticed_where_nothing_protects)
{
    leat_reader *reader = images_open(directory);
    leat_sample sample;
    ck_assert_int_eq(unlink(in(directory, "lock.mdb")), 0);
    other_process_run(overwrite, directory);
    leat_sample_init(&sample);
    int status, n = 0;
    while ((status = leat_reader_next(reader, &sample)) == LEAT_OK)
        n++;
    ck_assert(status < 0 || n != RECORDS);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
}
END_TEST

START_TEST(a_reader_of_the_new_file_outlives_that_of_the_old_one)
{
    leat_reader *old = images_open(directory);
    replace();
    leat_reader *new = images_open(directory);
    expect_whole(old);
    leat_reader_close(old);
    other_process_run(overwrite, directory);
    expect_whole(new);
    leat_reader_close(new);
}
END_TEST

START_TEST(a_reader_of_the_old_file_outlives_that_of_the_new_one)
{
    leat_reader *old = images_open(directory);
    replace();
    leat_reader *new = images_open(directory);
    other_process_run(overwrite, directory);
    expect_whole(old);
    expect_whole(new);
    leat_reader_close(new);
    leat_reader_close(old);
}
END_TEST

START_TEST(a_file_that_is_put_back_is_protected)
{
    leat_reader *reader[4];
    reader[0] = images_open(directory);
    replace();
    reader[1] = images_open(directory);
    put_back();
    reader[2] = images_open(directory);
    leat_reader_close(reader[1]);
    leat_reader_close(reader[0]);
    other_process_run(overwrite, directory);
    expect_whole(reader[2]);
    replace();
    reader[3] = images_open(directory);
    leat_reader_close(reader[2]);
    other_process_run(overwrite, directory);
    expect_whole(reader[3]);
    leat_reader_close(reader[3]);
}
END_TEST

static MDB_env *open_elsewhere;

static void hold(const char *path)
{
    open_elsewhere = fixture_env(path, MDB_RDONLY);
}

/* Its writers would take the new file's pages by the old one's transactions. */
START_TEST(a_file_replaced_while_another_process_has_it_open_is_refused)
{
    other_process other = other_process_start(hold, directory);
    replace_by(_i ? 1 : 4);
    ck_assert_int_eq(images_status(directory), LEAT_EIO);
    ck_assert_ptr_nonnull(
        strstr(leat_last_error(), "was replaced or overwritten while"));
    other_process_stop(&other);
    leat_reader *reader = images_open(directory);
    expect_whole(reader);
    leat_reader_close(reader);
}
END_TEST

/* Ends between the write of its meta page and that of the lock file. */
static void begin_to_commit(const char *path)
{
    enum { TXNID_AT = 48 };
    MDB_txn *transaction;
    uint64_t before;
    int fd = open(in(path, "lock.mdb"), O_RDWR | O_CLOEXEC);
    ck_assert_int_eq(pread(fd, &before, sizeof(before), TXNID_AT),
                     sizeof(before));
    MDB_env *env = fixture_env(path, 0);
    fixture_put(env, ruined_record, 0, RECORDS, 0);
    ck_assert_int_eq(mdb_txn_begin(env, NULL, 0, &transaction), 0);
    ck_assert_int_eq(pwrite(fd, &before, sizeof(before), TXNID_AT),
                     sizeof(before));
    close(fd);
}

START_TEST(what_a_killed_writer_did_not_commit_is_not_read)
{
    other_process other = other_process_start(hold, directory);
    other_process_run(begin_to_commit, directory);
    leat_reader *reader = images_open(directory);
    expect_whole(reader);
    leat_reader_close(reader);
    other_process_stop(&other);
}
END_TEST

/* Of one data file, by two directories: each has a lock and writers. */
/* Other bytes in the same file, many commits on: as `cp` does it, or a new file
   that gets the inode of a removed one. */
static void copy_over(void)
{
    size_t size;
    images_write(second, images_record, RECORDS);
    MDB_env *env = fixture_env(second, 0);
    for (int i = 0; i < 20; i++)
        fixture_put(env, images_record, 0, RECORDS, 0);
    mdb_env_close(env);
    unsigned char *bytes = fixture_load(in(second, "data.mdb"), &size);
    FILE *file = fopen(in(directory, "data.mdb"), "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
    free(bytes);
    fixture_remove(second);
}

START_TEST(a_closed_files_inode_may_come_back_with_another_database)
{
    leat_reader *old = images_open(directory);
    replace();
    leat_reader *new = images_open(directory);
    leat_reader_close(new);
    copy_over();
    new = images_open(directory);
    other_process_run(overwrite, directory);
    expect_whole(new);
    expect_whole(old);
    leat_reader_close(new);
    leat_reader_close(old);
}
END_TEST

/* Other values, of other sizes. */
static void larger_record(int number, fixture_record *out)
{
    images_record(number, out);
    out->value_size = sizeof(out->value) / 2;
    memset(out->value, 0xee, out->value_size);
}

/* As `cp` does it. With `commits` later transactions. */
static void copy_larger_over(int commits)
{
    size_t size;
    images_write(second, larger_record, 4 * RECORDS);
    MDB_env *env = fixture_env(second, 0);
    for (int i = 0; i < commits; i++)
        fixture_put(env, larger_record, 0, 4 * RECORDS, 0);
    mdb_env_close(env);
    unsigned char *bytes = fixture_load(in(second, "data.mdb"), &size);
    FILE *file = fopen(in(directory, "data.mdb"), "r+b");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
    free(bytes);
    fixture_remove(second);
}

static void expect_explained(const char *call, int status)
{
    ck_assert_msg(status == LEAT_EFORMAT &&
                      strstr(leat_last_error(), "was replaced or changed"),
                  "%s: %d: %s", call, status, leat_last_error());
}

/* Read in order, looked up, and by its number. */
START_TEST(a_file_that_is_copied_over_is_not_called_damaged)
{
    leat_sample buffer[RECORDS], *out[RECORDS];
    leat_position at[RECORDS];
    int got, status;
    leat_reader *reader = images_open(directory);
    leat_reader *deferring = images_open(directory);
    images_boxes_init(buffer, out, RECORDS);
    for (int i = 0; i < RECORDS; i++)
        at[i] = (leat_position){0, i};
    ck_assert_int_eq(leat_reader_pull(deferring, out, RECORDS, &got), LEAT_OK);
    copy_larger_over(_i);
    expect_explained("materialize",
                     deferring->ops->materialize(deferring, out, got, &got));
    leat_sample sample;
    leat_sample_init(&sample);
    do
        status = leat_reader_next(reader, &sample);
    while (status == LEAT_OK);
    expect_explained("next", status);
    do
        status = leat_reader_read_at(reader, at, out, RECORDS, &got);
    while (status == LEAT_OK);
    expect_explained("read_at", status);
    leat_sample_finish(&sample);
    images_boxes_finish(buffer, RECORDS);
    leat_reader_close(deferring);
    leat_reader_close(reader);
}
END_TEST

/* The transaction is the same, and so is the lock file's. */
START_TEST(a_file_that_was_copied_over_is_read_as_it_is)
{
    int64_t count = 0;
    leat_reader *before = images_open(directory);
    copy_larger_over(0);
    leat_reader *after = images_open(directory);
    ck_assert_int_eq(leat_reader_count(after, &count), LEAT_OK);
    ck_assert_int_eq(count, 4 * RECORDS);
    leat_reader_close(after);
    leat_reader_close(before);
}
END_TEST

/* No writer is to blame; without other users the lock file follows. Of one
   commit more it has the lock file's transaction, too, which is not its latest.
 */
START_TEST(one_of_other_transactions_is_refused_while_it_is_open)
{
    int64_t count = 0;
    leat_reader *before = images_open(directory);
    copy_larger_over(_i ? 1 : 20);
    ck_assert_int_eq(images_status(directory), LEAT_EIO);
    const char *line = leat_last_error();
    ck_assert_msg(strstr(line, "replaced or overwritten") != NULL, "%s", line);
    ck_assert_msg(strstr(line, in(directory, "lock.mdb")) != NULL, "%s", line);
    leat_reader_close(before);
    leat_reader *after = images_open(directory);
    ck_assert_int_eq(leat_reader_count(after, &count), LEAT_OK);
    ck_assert_int_eq(count, 4 * RECORDS);
    leat_reader_close(after);
}
END_TEST

START_TEST(each_lock_file_of_a_linked_data_file_has_a_slot)
{
    for (int i = 0; i < 2; i++) {
        char made[FIXTURE_PATH];
        images_write(made, images_record, RECORDS);
        fixture_directory(second);
        ck_assert_int_eq(link(in(made, "data.mdb"), in(second, "data.mdb")), 0);
        leat_reader *first = images_open(made);
        leat_reader *linked = images_open(second);
        leat_reader_close(i ? linked : first);
        other_process_run(overwrite, i ? made : second);
        expect_whole(i ? first : linked);
        leat_reader_close(i ? first : linked);
        fixture_remove(second);
        fixture_remove(made);
    }
}
END_TEST

START_TEST(links_to_a_directory_lead_to_one_slot)
{
    fixture_directory(second);
    ck_assert_int_eq(symlink(directory, in(second, "link")), 0);
    leat_reader *first = images_open(directory);
    leat_reader *linked = images_open(in(second, "link"));
    leat_reader *file = images_open(in(second, "link/data.mdb"));
    leat_reader_close(first);
    leat_reader_close(file);
    other_process_run(overwrite, directory);
    expect_whole(linked);
    leat_reader_close(linked);
    fixture_remove(second);
}
END_TEST

static void hold_file(const char *path)
{
    open_elsewhere = fixture_env(path, MDB_NOSUBDIR | MDB_RDONLY);
}

static void expect_refused(const char *path, const char *lock)
{
    ck_assert_int_eq(images_status(path), LEAT_EIO);
    const char *line = leat_last_error();
    ck_assert_msg(strncmp(line, lock, strlen(lock)) == 0, "%s", line);
    ck_assert_msg(strstr(line, in(directory, "lock.mdb")) != NULL, "%s", line);
}

static void expect_opened(const char *path)
{
    leat_reader *reader = images_open(path);
    expect_whole(reader);
    leat_reader_close(reader);
}

START_TEST(a_data_file_that_is_locked_as_a_file_is_refused)
{
    expect_opened(directory);
    other_process other =
        other_process_start(hold_file, in(directory, "data.mdb"));
    expect_refused(directory, in(directory, "data.mdb-lock"));
    expect_refused(in(directory, "data.mdb"), in(directory, "data.mdb-lock"));
    other_process_stop(&other);
    ck_assert_int_eq(access(in(directory, "data.mdb-lock"), F_OK), 0);
    expect_opened(directory);
}
END_TEST

/* A mount hides it, and its path leads to another file. */
START_TEST(a_database_is_read_by_its_descriptor)
{
    char self[32];
    int fd = open(in(directory, "data.mdb"), O_RDONLY | O_CLOEXEC);
    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    if (mount("none", directory, "tmpfs", 0, "size=64k")) {
        printf("skipped: a tmpfs cannot be mounted\n");
        close(fd);
        return;
    }
    fixture_store(in(directory, "data.mdb"), "other", 5);
    int status = images_status(self);
    bool is_used = false;
    leat__lmdb_environment *environment;
    if (!status)
        status = leat__lmdb_environment_open(&environment, self);
    if (!status) {
        /* A writer may be there, whose lock file this process cannot see. */
        is_used = leat__lmdb_environment_is_used(environment);
        leat__lmdb_environment_close(environment);
    }
    ck_assert_int_eq(umount(directory), 0);
    ck_assert_msg(!status, "%s", leat_last_error());
    ck_assert(is_used);
    close(fd);
}
END_TEST

START_TEST(another_lock_file_is_looked_for_by_the_effective_rights)
{
    other_process other =
        other_process_start(hold_file, in(directory, "data.mdb"));
    if (geteuid() == 0)
        ck_assert_int_eq(chown(directory, 65534, 65534), 0);
    ck_assert_int_eq(chmod(directory, 0700), 0);
    nobody_enter_for_another();
    expect_refused(directory, in(directory, "data.mdb-lock"));
    nobody_leave();
    other_process_stop(&other);
}
END_TEST

START_TEST(a_data_file_that_is_locked_beside_a_link_is_refused)
{
    fixture_directory(second);
    ck_assert_int_eq(symlink(in(directory, "data.mdb"), in(second, "data.mdb")),
                     0);
    other_process other = other_process_start(hold, second);
    expect_refused(second, in(second, "lock.mdb"));
    expect_refused(in(second, "data.mdb"), in(second, "lock.mdb"));
    other_process_stop(&other);
    expect_opened(second);
    /* A link makes one lock file of both. */
    ck_assert_int_eq(unlink(in(second, "lock.mdb")), 0);
    ck_assert_int_eq(symlink(in(directory, "lock.mdb"), in(second, "lock.mdb")),
                     0);
    other = other_process_start(hold, second);
    expect_opened(second);
    other_process_stop(&other);
    fixture_remove(second);
}
END_TEST

/* Or beside one of several, one after the other. */
START_TEST(a_data_file_that_is_locked_beside_a_link_between_is_refused)
{
    char third[FIXTURE_PATH];
    fixture_directory(second);
    fixture_directory(third);
    ck_assert_int_eq(symlink(in(directory, "data.mdb"), in(second, "data.mdb")),
                     0);
    ck_assert_int_eq(symlink(in(second, "data.mdb"), in(third, "data.mdb")), 0);
    other_process other = other_process_start(hold, second);
    expect_refused(third, in(second, "lock.mdb"));
    other_process_stop(&other);
    expect_opened(third);
    /* There are not so many. */
    char name[8] = "", next[8];
    ck_assert_int_eq(chdir(third), 0);
    for (int i = 0; i < 7; i++) {
        snprintf(next, sizeof(next), "%d.mdb", i);
        ck_assert_int_eq(symlink(i ? name : "data.mdb", next), 0);
        memcpy(name, next, sizeof(name));
    }
    expect_opened("3.mdb");
    ck_assert_int_eq(images_status("6.mdb"), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "at most 7 links"));
    ck_assert_int_eq(chdir("/"), 0);
    fixture_remove(second);
    fixture_remove(third);
}
END_TEST

/* leat writes nothing, so this process's own readers are no danger. */
START_TEST(readers_of_both_lock_files_in_one_process_are_opened)
{
    const char *stored = in(directory, "stored");
    fixture_directory(second);
    ck_assert_int_eq(rename(in(directory, "data.mdb"), stored), 0);
    ck_assert_int_eq(symlink(stored, in(second, "data.mdb")), 0);
    leat_reader *reader = images_open(stored);
    leat_reader *linked = images_open(second);
    expect_whole(linked);
    other_process other = other_process_start(hold_file, stored);
    ck_assert_int_eq(images_status(second), LEAT_EIO);
    other_process_stop(&other);
    expect_opened(second);
    leat_reader_close(linked);
    leat_reader_close(reader);
    fixture_remove(second);
}
END_TEST

static void append(const char *path)
{
    MDB_env *env = fixture_env(path, 0);
    fixture_put(env, images_record, RECORDS, 2 * RECORDS, 0);
    mdb_env_close(env);
}

/* As in a container's image: the first write copies the file to another layer,
   and its inode stays. */
START_TEST(a_file_that_an_overlay_copies_is_read_as_written)
{
    char options[8 * FIXTURE_PATH];
    static const char *const layers[] = {"upper", "work", "merged"};
    fixture_directory(second);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(mkdir(in(second, layers[i]), 0755), 0);
    snprintf(options, sizeof(options), "lowerdir=%s,upperdir=%s,workdir=%s",
             directory, in(second, "upper"), in(second, "work"));
    const char *merged = in(second, "merged");
    if (mount("overlay", merged, "overlay", 0, options)) {
        printf("skipped: cannot mount an overlay: %s\n", strerror(errno));
        fixture_remove(second);
        return;
    }
    leat_reader *before = images_open(merged);
    other_process_run(append, merged);
    leat_reader *after = images_open(merged);
    ck_assert_int_eq(images_count(after), 2 * RECORDS);
    expect_whole(before);
    leat_reader_close(after);
    leat_reader_close(before);
    ck_assert_int_eq(umount(merged), 0);
    fixture_remove(second);
}
END_TEST

/* A test that lists slots: all that liblmdb shows, one a line. */
static int count_line(const char *line, void *count)
{
    unsigned number;
    *(int *)count += sscanf(line, "%u", &number) == 1;
    return 0;
}

static void expect_two_slots(const char *path)
{
    MDB_env *env = fixture_env(path, MDB_RDONLY);
    int slots = 0, dead = 0;
    ck_assert_int_eq(mdb_reader_check(env, &dead), 0);
    mdb_reader_list(env, count_line, &slots);
    _exit(slots == 2 && dead == 0 ? 0 : 2);
}

static int wait_for(pid_t child)
{
    int result;
    ck_assert_int_eq(waitpid(child, &result, 0), child);
    ck_assert_msg(WIFEXITED(result), "signal %d", WTERMSIG(result));
    return WEXITSTATUS(result);
}

static leat_reader *inherited;

static int is_refused(int status)
{
    return status == LEAT_ESTATE &&
           strstr(leat_last_error(), "after fork()") != NULL;
}

/* In a child; the line that failed, or 0. */
static int use_inherited(void)
{
    leat_sample sample, *out = &sample;
    leat_token token = {0};
    const leat_field_spec *spec;
    const leat_position record = {0, 3};
    int64_t count;
    int got, n;
    leat_sample_init(&sample);
    if (!is_refused(leat_reader_next(inherited, &sample)))
        return __LINE__;
    if (!is_refused(leat_reader_read_at(inherited, &record, &out, 1, &got)))
        return __LINE__;
    if (!is_refused(leat_reader_seek(inherited, (leat_position){0, 0}, NULL)))
        return __LINE__;
    if (!is_refused(leat_reader_count(inherited, &count)))
        return __LINE__;
    if (!is_refused(leat_reader_fields(inherited, &spec, &n)))
        return __LINE__;
    if (!is_refused(leat_reader_save(inherited, &token)))
        return __LINE__;
    leat_reader_advise(inherited, &record, 1);
    leat_reader_close(inherited);
    return 0;
}

START_TEST(a_child_cannot_use_its_parents_reader)
{
    inherited = images_open(directory);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        /* It has closed the parent's; the parent's slot must stay. */
        int line = use_inherited();
        _exit(line & 0xff);
    }
    ck_assert_int_eq(wait_for(child), 0);
    other_process_run(overwrite, directory);
    expect_whole(inherited);
    leat_reader_close(inherited);
}
END_TEST

static leat_reader *of_child;

static void open_in_child(const char *path)
{
    of_child = images_open(path);
    leat_reader_close(inherited);
}

/* Parent and child each have a slot, and neither ends the other's. */
START_TEST(a_childs_reader_has_a_slot_of_its_own)
{
    inherited = images_open(directory);
    other_process child = other_process_start(open_in_child, directory);
    pid_t counter = fork();
    if (counter == 0)
        expect_two_slots(directory);
    ck_assert_int_eq(wait_for(counter), 0);
    other_process_stop(&child);
    other_process_run(overwrite, directory);
    expect_whole(inherited);
    leat_reader_close(inherited);
}
END_TEST

static leat_reader *of_handler;

static void open_in_handler(void)
{
    of_handler = images_open(directory);
}

static void keep_of_handler(const char *path)
{
    (void)path;
    ck_assert_ptr_nonnull(of_handler);
    expect_whole(of_handler);
}

/* Registered before leat has opened a database. */
START_TEST(the_applications_handler_opens_in_the_child)
{
    ck_assert_int_eq(pthread_atfork(NULL, NULL, open_in_handler), 0);
    inherited = images_open(directory);
    other_process child = other_process_start(keep_of_handler, directory);
    pid_t counter = fork();
    if (counter == 0) {
        leat_reader_close(of_handler);
        expect_two_slots(directory);
    }
    ck_assert_int_eq(wait_for(counter), 0);
    other_process_stop(&child);
    leat_reader_close(inherited);
}
END_TEST

/* The child goes on with what it opened when its parent's is closed. */
START_TEST(a_childs_reader_outlives_its_parents)
{
    int go[2];
    char byte = 0;
    ck_assert_int_eq(pipe(go), 0);
    inherited = images_open(directory);
    int ready[2];
    ck_assert_int_eq(pipe(ready), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        leat_reader *reader = images_open(directory);
        if (write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1)
            _exit(2);
        expect_whole(reader);
        leat_reader_close(reader);
        _exit(0);
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    leat_reader_close(inherited);
    other_process_run(overwrite, directory);
    ck_assert_int_eq(write(go[1], &byte, 1), 1);
    ck_assert_int_eq(wait_for(child), 0);
}
END_TEST

/* A parent that dies leaves no slot behind, though its child lives on. */
static void open_and_fork(const char *path)
{
    static int never[2];
    int runs[2];
    char byte = 0;
    inherited = images_open(path);
    if (pipe(never) != 0 || pipe(runs) != 0)
        _exit(2);
    if (fork() == 0) {
        alarm(SECONDS);
        ssize_t n = write(runs[1], &byte, 1);
        /* Until the test is over and its processes are killed. */
        n += read(never[0], &byte, 1);
        _exit(n != 1);
    }
    if (read(runs[0], &byte, 1) != 1)
        _exit(2);
}

static void expect_a_dead_slot(const char *path)
{
    MDB_env *env = fixture_env(path, MDB_RDONLY);
    int dead = 0;
    ck_assert_int_eq(mdb_reader_check(env, &dead), 0);
    _exit(dead == 1 ? 0 : 2);
}

START_TEST(a_child_does_not_keep_its_parents_slot)
{
    other_process other = other_process_start(hold, directory);
    other_process_run(open_and_fork, directory);
    pid_t counter = fork();
    if (counter == 0)
        expect_a_dead_slot(directory);
    ck_assert_int_eq(wait_for(counter), 0);
    other_process_stop(&other);
}
END_TEST

static _Atomic int stopped;

static int open_snapshot(void)
{
    leat__lmdb_snapshot *snapshot;
    int status = leat__lmdb_snapshot_open(&snapshot, directory);
    if (!status)
        leat__lmdb_snapshot_close(snapshot);
    return status;
}

static void *open_and_close(void *statuses)
{
    while (!stopped)
        *(int *)statuses |= open_snapshot();
    return NULL;
}

/* What the other threads hold at that moment, but for a sanitizer's locks of
 * its allocator, which are not free in the child. */
START_TEST(a_child_of_threads_that_open_and_close_can_do_so_too)
{
    if (IS_SANITIZED)
        return;
    leat__thread thread[2] = {{0}};
    int statuses[2] = {0};
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(leat__thread_start(&thread[i], "opens", open_and_close,
                                            &statuses[i]),
                         LEAT_OK);
    for (int i = 0; i < FORKS; i++) {
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            alarm(SECONDS);
            _exit(open_snapshot() == LEAT_OK ? 0 : 2);
        }
        ck_assert_int_eq(wait_for(child), 0);
    }
    stopped = 1;
    for (int i = 0; i < 2; i++) {
        leat__thread_join(&thread[i]);
        ck_assert_int_eq(statuses[i], LEAT_OK);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lmdb_environment");
    TCase *tcase = tcase_create("lmdb_environment");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_set_timeout(tcase, 2 * SECONDS);
    tcase_add_test(tcase, the_overwriting_is_noticed_where_nothing_protects);
    tcase_add_test(tcase,
                   a_reader_of_the_new_file_outlives_that_of_the_old_one);
    tcase_add_test(tcase,
                   a_reader_of_the_old_file_outlives_that_of_the_new_one);
    tcase_add_test(tcase, a_file_that_is_put_back_is_protected);
    tcase_add_test(tcase,
                   a_closed_files_inode_may_come_back_with_another_database);
    tcase_add_loop_test(tcase, a_file_that_is_copied_over_is_not_called_damaged,
                        0, 4);
    tcase_add_test(tcase, a_file_that_was_copied_over_is_read_as_it_is);
    tcase_add_loop_test(
        tcase, one_of_other_transactions_is_refused_while_it_is_open, 0, 2);
    tcase_add_loop_test(
        tcase, a_file_replaced_while_another_process_has_it_open_is_refused, 0,
        2);
    tcase_add_test(tcase, what_a_killed_writer_did_not_commit_is_not_read);
    tcase_add_test(tcase, each_lock_file_of_a_linked_data_file_has_a_slot);
    tcase_add_test(tcase, links_to_a_directory_lead_to_one_slot);
    tcase_add_test(tcase, a_data_file_that_is_locked_as_a_file_is_refused);
    tcase_add_test(tcase, a_database_is_read_by_its_descriptor);
    tcase_add_test(tcase,
                   another_lock_file_is_looked_for_by_the_effective_rights);
    tcase_add_test(tcase, a_data_file_that_is_locked_beside_a_link_is_refused);
    tcase_add_test(tcase,
                   a_data_file_that_is_locked_beside_a_link_between_is_refused);
    tcase_add_test(tcase, readers_of_both_lock_files_in_one_process_are_opened);
    tcase_add_test(tcase, a_file_that_an_overlay_copies_is_read_as_written);
    tcase_add_test(tcase, a_child_cannot_use_its_parents_reader);
    tcase_add_test(tcase, a_childs_reader_has_a_slot_of_its_own);
    tcase_add_test(tcase, the_applications_handler_opens_in_the_child);
    tcase_add_test(tcase, a_childs_reader_outlives_its_parents);
    tcase_add_test(tcase, a_child_does_not_keep_its_parents_slot);
    tcase_add_test(tcase, a_child_of_threads_that_open_and_close_can_do_so_too);
    return suite_run(suite);
}
