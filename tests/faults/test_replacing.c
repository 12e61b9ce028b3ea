/*
 * Somebody replaces a database's files while it is being opened, before each of
 * the calls that open it: nobody reads a data file by the lock of another one,
 * and nothing is written through a link.
 */
#include "faults/faults.h"
#include "lmdb_fixture.h"
#include "readers/lmdb/lmdb_environment.h"
#include "readers/lmdb/lmdb_snapshot.h"
#include "support/other_process.h"
#include "support/suite.h"

#include <errno.h>
#include <fcntl.h>

#include <leat.h>

enum { OLD = 20, NEW = 40, CALLS_MAX = 100 };

static char directory[FIXTURE_PATH];
static char other[FIXTURE_PATH];
static const char precious[] = "nothing of this may be lost";

static void make(int number, fixture_record *out)
{
    out->key_size = (size_t)sprintf(out->key, "%08d", number);
    out->value_size = 100;
    memset(out->value, number, out->value_size);
}

static const char *in(const char *in_directory, const char *name)
{
    static char paths[2][2 * FIXTURE_PATH];
    static int next;
    char *path = paths[next++ % 2];
    snprintf(path, sizeof(paths[0]), "%s/%s", in_directory, name);
    return path;
}

static void begin(void)
{
    fixture_directory(directory);
    fixture_write(directory, make, OLD);
    fixture_directory(other);
    fixture_write(other, make, NEW);
    fixture_store(in(other, "precious"), precious, sizeof(precious));
}

static void end(void)
{
    fixture_remove(directory);
    fixture_remove(other);
}

/* Its records, or the status. */
static int64_t count_records(void)
{
    leat_pipeline *pipeline;
    leat_reader *reader;
    int64_t records = 0;
    ck_assert_int_eq(leat_pipeline_lmdb(&pipeline, directory, NULL), LEAT_OK);
    int status = leat_pipeline_open(pipeline, &reader);
    if (!status) {
        status = leat_reader_count(reader, &records);
        leat_reader_close(reader);
    }
    leat_pipeline_unref(pipeline);
    return status ? status : records;
}

/* Has `act` done before call number n; whether there were as many. */
static int open_beside(void (*act)(void), fault_call call, int64_t n,
                       int64_t *records)
{
    fault_act(act);
    int64_t before = fault_count(call);
    fault_arm(call, n, FAULT_ACT, 0);
    *records = count_records();
    fault_disarm();
    return fault_count(call) - before > n;
}

static void replace_data(void)
{
    fault_disarm();
    ck_assert_int_eq(rename(in(other, "data.mdb"), in(directory, "data.mdb")),
                     0);
}

/* It is opened then, in the place of the one that was found. */
START_TEST(a_replaced_file_is_opened)
{
    static const fault_call calls[] = {FAULT_OPEN, FAULT_STAT};
    int is_reached = 1;
    for (int64_t n = 0; is_reached; n++) {
        int64_t records;
        ck_assert_int_lt(n, CALLS_MAX);
        is_reached = open_beside(replace_data, calls[_i], n, &records);
        ck_assert(records == OLD || records == NEW);
        end();
        begin();
    }
}
END_TEST

static struct {
    fault_call call;
    int64_t n;
} again;

/* And so on, with every opening. */
static void exchange_data(void)
{
    fault_disarm();
    ck_assert_int_eq(renameat2(AT_FDCWD, in(other, "data.mdb"), AT_FDCWD,
                               in(directory, "data.mdb"), RENAME_EXCHANGE),
                     0);
    fault_arm(again.call, again.n, FAULT_ACT, 0);
}

START_TEST(a_file_that_is_replaced_each_time_is_noticed)
{
    static const fault_call calls[] = {FAULT_OPEN, FAULT_STAT};
    int noticed = 0, is_reached = 1;
    for (int64_t n = 0; is_reached; n++) {
        int64_t records;
        ck_assert_int_lt(n, CALLS_MAX);
        again.call = calls[_i];
        again.n = n;
        is_reached = open_beside(exchange_data, calls[_i], n, &records);
        if (records == LEAT_EIO) {
            ck_assert_ptr_nonnull(
                strstr(leat_last_error(), "was replaced while it was opened"));
            noticed++;
        } else {
            ck_assert(records == OLD || records == NEW);
        }
        end();
        begin();
    }
    ck_assert_int_gt(noticed, 0);
}
END_TEST

/* At a transaction that the replaced database does not have. */
static void use_other(const char *path)
{
    MDB_env *env = fixture_env(path, 0);
    for (int i = 0; i < 3; i++)
        fixture_put(env, make, 0, NEW, 0);
}

static void replace_both(void)
{
    replace_data();
    ck_assert_int_eq(rename(in(other, "lock.mdb"), in(directory, "lock.mdb")),
                     0);
}

START_TEST(the_lock_of_the_file_that_replaced_it_is_not_called_damaged)
{
    static const fault_call calls[] = {FAULT_OPEN, FAULT_STAT, FAULT_LOCK};
    int is_reached = 1;
    for (int64_t n = 0; is_reached; n++) {
        int64_t records;
        ck_assert_int_lt(n, CALLS_MAX);
        other_process user = other_process_start(use_other, other);
        is_reached = open_beside(replace_both, calls[_i], n, &records);
        ck_assert_msg(records == OLD || records == NEW, "%s",
                      leat_last_error());
        other_process_stop(&user);
        end();
        begin();
    }
}
END_TEST

static void use_once(const char *path)
{
    fixture_put(fixture_env(path, 0), make, 0, OLD, 0);
}

static leat__lmdb_environment *replacement;

static void replace_and_open(void)
{
    replace_data();
    ck_assert_int_eq(leat__lmdb_environment_open(&replacement, directory),
                     LEAT_OK);
}

static void remove_data(void)
{
    ck_assert_int_eq(unlink(in(directory, "data.mdb")), 0);
}

/* As a copy to its path may get its inode, with other transactions. */
START_TEST(a_file_that_was_removed_as_it_was_opened_is_not_taken_for_it_again)
{
    int is_reached = 1;
    for (int64_t n = 0; is_reached; n++) {
        leat__lmdb_environment *old, *late = NULL;
        ck_assert_int_lt(n, CALLS_MAX);
        ck_assert_int_eq(leat__lmdb_environment_open(&old, directory), LEAT_OK);
        ck_assert_int_eq(link(in(other, "data.mdb"), in(other, "kept.mdb")), 0);
        replace_data();
        fault_act(remove_data);
        int64_t before = fault_count(FAULT_STAT);
        fault_arm(FAULT_STAT, n, FAULT_ACT, 0);
        (void)leat__lmdb_environment_open(&late, directory);
        fault_disarm();
        is_reached = fault_count(FAULT_STAT) - before > n;
        leat__lmdb_environment_close(late);
        ck_assert_int_eq(rename(in(other, "kept.mdb"), in(other, "data.mdb")),
                         0);
        other_process user = other_process_start(use_other, other);
        other_process_stop(&user);
        replace_data();
        ck_assert_msg(count_records() == NEW, "call %d: %s", (int)n,
                      leat_last_error());
        leat__lmdb_environment_close(old);
        end();
        begin();
    }
}
END_TEST

/* By another thread, after this one has opened the old file: writers would take
   the pages of the new one by the transactions of the old one. */
START_TEST(the_lock_stays_that_of_the_file_that_was_opened_meanwhile)
{
    leat__lmdb_environment *old, *late;
    other_process user = other_process_start(use_other, other);
    other_process_stop(&user);
    ck_assert_int_eq(leat__lmdb_environment_open(&old, directory), LEAT_OK);
    fault_act(replace_and_open);
    fault_arm(FAULT_PREAD, _i, FAULT_ACT, 0);
    ck_assert_int_eq(leat__lmdb_environment_open(&late, directory), LEAT_OK);
    ck_assert_ptr_eq(late, replacement);
    ck_assert_msg(leat__lmdb_lock_check_latest(replacement->lock,
                                               &replacement->file) == LEAT_OK,
                  "%s", leat_last_error());
    leat__lmdb_environment_close(late);
    leat__lmdb_environment_close(replacement);
    leat__lmdb_environment_close(old);
}
END_TEST

/* By another thread, after this one has opened the old file and before it takes
   a slot: the lock's transaction is one that the old file lacks, or its one
   before the latest. */
START_TEST(a_file_that_is_replaced_before_its_slot_is_taken_is_read)
{
    leat__lmdb_environment *old;
    if (_i == 0)
        other_process_run(use_other, other);
    else
        other_process_run(use_once, directory);
    ck_assert_int_eq(leat__lmdb_environment_open(&old, directory), LEAT_OK);
    fault_act(replace_and_open);
    fault_arm(FAULT_HINT, 0, FAULT_ACT, 0);
    int64_t records = count_records();
    ck_assert_msg(records == OLD, "%s", leat_last_error());
    ck_assert_ptr_nonnull(replacement);
    ck_assert_int_eq(count_records(), NEW);
    leat__lmdb_environment_close(replacement);
    leat__lmdb_environment_close(old);
}
END_TEST

/* The new file's transactions say nothing about the old one. */
START_TEST(a_reader_without_a_slot_outlives_the_replacement_of_its_file)
{
    leat__lmdb_environment *old;
    leat__lmdb_snapshot *snapshot;
    other_process_run(use_other, other);
    ck_assert_int_eq(leat__lmdb_environment_open(&old, directory), LEAT_OK);
    fault_arm(FAULT_HINT, 1, EFAULT, 0); /* no room for the slot */
    ck_assert_int_eq(leat__lmdb_snapshot_open(&snapshot, directory), LEAT_OK);
    ck_assert_int_eq(fault_disarm(), 1);
    ck_assert_int_eq(leat__lmdb_snapshot_is_exposed(snapshot), 1);
    replace_and_open();
    ck_assert_msg(!leat__lmdb_snapshot_check(snapshot), "%s",
                  leat_last_error());
    leat__lmdb_snapshot_close(snapshot);
    leat__lmdb_environment_close(replacement);
    leat__lmdb_environment_close(old);
}
END_TEST

static const char *aim; /* of the link */

static void link_lock(void)
{
    fault_disarm();
    ck_assert_int_eq(unlink(in(directory, "lock.mdb")), 0);
    ck_assert_int_eq(symlink(in(other, aim), in(directory, "lock.mdb")), 0);
}

/* What the link aims at is as it was, or still not there. */
static void expect_untouched(void)
{
    size_t size;
    unsigned char *bytes = fixture_load(in(other, "precious"), &size);
    ck_assert_uint_eq(size, sizeof(precious));
    ck_assert_mem_eq(bytes, precious, size);
    free(bytes);
    ck_assert_int_ne(access(in(other, "nothing"), F_OK), 0);
}

/* The look at what is there comes too early to be relied on. */
START_TEST(a_link_in_the_place_of_the_lock_file_is_not_followed)
{
    static const fault_call calls[] = {FAULT_OPEN, FAULT_STAT};
    int refused = 0, is_reached = 1;
    aim = _i / 2 ? "nothing" : "precious";
    for (int64_t n = 0; is_reached; n++) {
        int64_t records;
        ck_assert_int_lt(n, CALLS_MAX);
        is_reached = open_beside(link_lock, calls[_i % 2], n, &records);
        if (records == LEAT_EIO)
            refused++;
        else
            ck_assert_int_eq(records, OLD);
        expect_untouched();
        end();
        begin();
    }
    ck_assert_int_gt(refused, 0);
}
END_TEST

static void remove_lock(void)
{
    fault_disarm();
    ck_assert_int_eq(unlink(in(directory, "lock.mdb")), 0);
}

/* As leat import --force removes it right after it has replaced data.mdb:
   writers make another lock file, and look at no other. */
START_TEST(a_removed_lock_file_is_not_locked)
{
    static const fault_call calls[] = {FAULT_OPEN, FAULT_STAT, FAULT_LOCK};
    int is_reached = 1;
    for (int64_t n = 0; is_reached; n++) {
        leat__lmdb_environment *environment;
        ck_assert_int_lt(n, CALLS_MAX);
        fault_act(remove_lock);
        int64_t before = fault_count(calls[_i]);
        fault_arm(calls[_i], n, FAULT_ACT, 0);
        ck_assert_int_eq(leat__lmdb_environment_open(&environment, directory),
                         LEAT_OK);
        fault_disarm();
        is_reached = fault_count(calls[_i]) - before > n;
        ck_assert_int_eq(
            leat__lmdb_lock_is_at(environment->lock, in(directory, "lock.mdb")),
            1);
        leat__lmdb_environment_close(environment);
        end();
        begin();
    }
}
END_TEST

/* A file of zeros, as which a crash leaves a lock file, but of another name. */
static void link_zeros(void)
{
    static const unsigned char zeros[100];
    fixture_store(in(other, "zeros"), zeros, sizeof(zeros));
    (void)unlink(in(directory, "lock.mdb"));
    ck_assert_int_eq(link(in(other, "zeros"), in(directory, "lock.mdb")), 0);
}

static void expect_zeros(void)
{
    size_t size;
    unsigned char *bytes = fixture_load(in(other, "zeros"), &size);
    ck_assert_uint_eq(size, 100);
    for (size_t i = 0; i < size; i++)
        ck_assert_uint_eq(bytes[i], 0);
    free(bytes);
}

/* Once its link is gone the number of its links is that of a lock file. */
START_TEST(what_was_linked_as_the_lock_file_stays_as_it_is)
{
    static const fault_call calls[] = {FAULT_OPEN, FAULT_STAT, FAULT_LOCK,
                                       FAULT_PREAD};
    int refused = 0, is_reached = 1;
    for (int64_t n = 0; is_reached; n++) {
        int64_t records;
        ck_assert_int_lt(n, CALLS_MAX);
        link_zeros();
        is_reached = open_beside(remove_lock, calls[_i], n, &records);
        if (records == LEAT_EIO)
            refused++;
        else
            ck_assert_int_eq(records, OLD);
        expect_zeros();
        end();
        begin();
    }
    ck_assert_int_gt(refused, 0);
}
END_TEST

/* Opening what is no file can have effects, as with a tape. */
START_TEST(what_is_no_file_is_not_even_opened)
{
    ck_assert_int_eq(unlink(in(directory, "lock.mdb")), 0);
    ck_assert_int_eq(mkfifo(in(directory, "lock.mdb"), 0644), 0);
    int64_t before = fault_count(FAULT_OPEN);
    ck_assert_int_eq(count_records(), LEAT_EIO);
    /* data.mdb, by its path and by what that led to */
    ck_assert_int_eq(fault_count(FAULT_OPEN) - before, 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("replacing");
    TCase *tcase = tcase_create("replacing");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, a_replaced_file_is_opened, 0, 2);
    tcase_add_loop_test(tcase, a_file_that_is_replaced_each_time_is_noticed, 0,
                        2);
    tcase_add_loop_test(
        tcase, the_lock_of_the_file_that_replaced_it_is_not_called_damaged, 0,
        3);
    tcase_add_test(
        tcase,
        a_file_that_was_removed_as_it_was_opened_is_not_taken_for_it_again);
    tcase_add_loop_test(
        tcase, the_lock_stays_that_of_the_file_that_was_opened_meanwhile, 0, 2);
    tcase_add_loop_test(
        tcase, a_file_that_is_replaced_before_its_slot_is_taken_is_read, 0, 2);
    tcase_add_test(
        tcase, a_reader_without_a_slot_outlives_the_replacement_of_its_file);
    tcase_add_loop_test(
        tcase, a_link_in_the_place_of_the_lock_file_is_not_followed, 0, 4);
    tcase_add_loop_test(tcase, a_removed_lock_file_is_not_locked, 0, 3);
    tcase_add_loop_test(tcase, what_was_linked_as_the_lock_file_stays_as_it_is,
                        0, 4);
    tcase_add_test(tcase, what_is_no_file_is_not_even_opened);
    return suite_run(suite);
}
