/*
 * One database is opened while a call fails: what is an error, what is only a
 * warning, and that nothing stays behind. test_failing_calls does the same to
 * everything that there is, and takes longer.
 */
#include "base/memory.h"
#include "faults/faults.h"
#include "lmdb_fixture.h"
#include "readers/lmdb/lmdb_environment.h"
#include "readers/lmdb/lmdb_snapshot.h"
#include "support/other_process.h"
#include "support/suite.h"

#include <leat/lmdb_check.h>
#include <leat/log.h>

#include <dirent.h>
#include <fcntl.h>

enum { RECORDS = 50, CALLS_MAX = 100 };

static char directory[FIXTURE_PATH];
static char path[2 * FIXTURE_PATH]; /* of the data file */
static char warning[1024];
static int warnings;

static void make(int number, fixture_record *out)
{
    out->key_size = (size_t)sprintf(out->key, "%08d", number);
    out->value_size = 100;
    memset(out->value, number, out->value_size);
}

static void keep_warning(void *user, leat_log_level level, const char *line)
{
    (void)user;
    ck_assert_int_eq(level, LEAT_LOG_WARNING);
    snprintf(warning, sizeof(warning), "%s", line);
    warnings++;
}

static void begin(void)
{
    fixture_directory(directory);
    fixture_write(directory, make, RECORDS);
    snprintf(path, sizeof(path), "%s/data.mdb", directory);
    leat_log_set(keep_warning, NULL, LEAT_LOG_WARNING);
    warnings = 0;
}

static void end(void)
{
    leat_log_set(NULL, NULL, LEAT_LOG_WARNING);
    fixture_remove(directory);
}

static int count_files(void)
{
    int n = 0;
    DIR *files = opendir("/proc/self/fd");
    ck_assert_ptr_nonnull(files);
    while (readdir(files))
        n++;
    closedir(files);
    return n;
}

/* What can be locked neither here nor by anybody, and what may pass. */
static const struct {
    int code;
    int is_unlockable;
} codes[] = {{EACCES, 1},      {EPERM, 1},      {EROFS, 1},  {ENOLCK, 1},
             {ENOSYS, 1},      {EOPNOTSUPP, 1}, {ENOSPC, 1}, {EDQUOT, 1},
             {EFBIG, 1},       {EINVAL, 1},     {EIO, 0},    {EMFILE, 0},
             {ENFILE, 0},      {ENOMEM, 0},     {EBADF, 0},  {ESTALE, 0},
             {ENAMETOOLONG, 1}};
#define CODES (int)(sizeof(codes) / sizeof(codes[0]))

/* As one that is read without a slot. */
static void check_unlocked(leat__lmdb_environment *environment)
{
    leat__lmdb_pin pin = {0, 7};
    int code = 7;
    uint64_t latest = 0;
    ck_assert_int_eq(leat__lmdb_lock_is_held(environment->lock), 0);
    ck_assert_int_eq(leat__lmdb_environment_latest(environment, &latest),
                     LEAT_OK);
    ck_assert_uint_eq(latest, 1);
    ck_assert_int_eq(leat__lmdb_environment_pin(environment, 0, &pin, &code),
                     LEAT_OK);
    ck_assert_int_eq(code, 0);
    ck_assert_uint_eq(pin.txnid, 1);
    ck_assert_int_eq(pin.slot, -1);
    leat__lmdb_environment_unpin(environment, &pin);
}

/* The call's failure is a warning or an error, as the code has it. */
static void fail_lock(fault_call call, int64_t n, int i, int stays)
{
    leat__lmdb_environment *environment = NULL;
    char line[1024];
    int files = count_files();
    warnings = 0;
    fault_arm(call, n, codes[i].code, stays);
    int status = leat__lmdb_environment_open(&environment, directory);
    ck_assert_int_eq(fault_disarm(), 1);
    if (codes[i].is_unlockable) {
        ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
        snprintf(line, sizeof(line),
                 "%s: cannot be locked (%s); nothing may write to it while "
                 "it is read",
                 directory, strerror(codes[i].code));
        ck_assert_int_eq(warnings, 1);
        ck_assert_str_eq(warning, line);
        check_unlocked(environment);
        leat__lmdb_environment_close(environment);
    } else {
        snprintf(line, sizeof(line), "%s/lock.mdb: cannot be locked",
                 directory);
        ck_assert_int_ne(status, LEAT_OK);
        ck_assert_msg(strstr(leat_last_error(), line) != NULL, "%s",
                      leat_last_error());
        ck_assert_int_eq(warnings, 0);
        ck_assert_ptr_null(environment);
    }
    ck_assert_int_eq(count_files(), files);
}

/* The data file is opened first. */
START_TEST(a_lock_file_that_cannot_be_opened_is_done_without_for_some_reasons)
{
    fail_lock(FAULT_OPEN, 2, _i, 0); /* after the two of data.mdb */
}
END_TEST

/* EACCES may be a lock that others had until then: it has to stay. */
START_TEST(a_lock_that_cannot_be_taken_is_done_without_for_some_reasons)
{
    fail_lock(FAULT_LOCK, 0, _i, codes[_i].code == EACCES);
}
END_TEST

START_TEST(a_lock_that_others_had_until_then_is_taken)
{
    leat__lmdb_environment *environment;
    warnings = 0;
    fault_arm(FAULT_LOCK, 0, EACCES, 0);
    ck_assert_int_eq(leat__lmdb_environment_open(&environment, directory),
                     LEAT_OK);
    ck_assert_int_eq(fault_disarm(), 1);
    ck_assert_int_eq(warnings, 0);
    ck_assert_int_eq(leat__lmdb_lock_is_held(environment->lock), 1);
    leat__lmdb_environment_close(environment);
}
END_TEST

static void replace(void)
{
    char other[FIXTURE_PATH], data[2 * FIXTURE_PATH];
    fixture_directory(other);
    fixture_write(other, make, 2 * RECORDS);
    snprintf(data, sizeof(data), "%s/data.mdb", other);
    ck_assert_int_eq(rename(data, path), 0);
    fixture_remove(other);
}

/* While the environment that is without one is open. */
START_TEST(a_lock_that_could_not_be_taken_is_tried_anew_for_a_new_file)
{
    leat__lmdb_environment *first, *second;
    for (int i = 0; i < 2; i++) {
        fault_arm(FAULT_LOCK, 0, ENOSPC, 0);
        ck_assert_int_eq(leat__lmdb_environment_open(&first, directory),
                         LEAT_OK);
        ck_assert_int_eq(fault_disarm(), 1);
        replace();
        if (i > 0)
            fault_arm(FAULT_LOCK, 0, ENOSPC, 0);
        ck_assert_int_eq(leat__lmdb_environment_open(&second, directory),
                         LEAT_OK);
        ck_assert_int_eq(fault_disarm(), i);
        check_unlocked(first);
        ck_assert_int_eq(leat__lmdb_lock_is_held(second->lock), i == 0);
        ck_assert_int_eq(warnings, 1 + 2 * i);
        leat__lmdb_environment_close(first);
        leat__lmdb_environment_close(second);
    }
}
END_TEST

/* The lock stays the old file's. */
START_TEST(a_new_file_whose_transaction_has_no_room_is_read_without_a_lock)
{
    leat__lmdb_environment *first, *second, *third;
    char line[1024];
    ck_assert_int_eq(leat__lmdb_environment_open(&first, directory), LEAT_OK);
    replace();
    fault_arm(FAULT_HINT, 0, EFAULT, 0);
    ck_assert_int_eq(leat__lmdb_environment_open(&second, directory), LEAT_OK);
    ck_assert_int_eq(fault_disarm(), 1);
    snprintf(line, sizeof(line),
             "%s: cannot be locked (%s); nothing may write to it while it is "
             "read",
             directory, strerror(ENOSPC));
    ck_assert_str_eq(warning, line);
    check_unlocked(second);
    ck_assert_int_eq(leat__lmdb_lock_is_held(first->lock), 1);
    /* With room again. */
    ck_assert_int_eq(leat__lmdb_environment_open(&third, directory), LEAT_OK);
    ck_assert_int_eq(leat__lmdb_lock_is_held(third->lock), 1);
    ck_assert_int_eq(warnings, 1);
    leat__lmdb_environment_close(first);
    leat__lmdb_environment_close(second);
    leat__lmdb_environment_close(third);
}
END_TEST

static int64_t count_looks(void)
{
    leat__lmdb_environment *environment;
    int64_t before = fault_count(FAULT_STAT);
    ck_assert_int_eq(leat__lmdb_environment_open(&environment, directory),
                     LEAT_OK);
    leat__lmdb_environment_close(environment);
    return fault_count(FAULT_STAT) - before;
}

/* Beside a lock file of liblmdb's of another name. */
START_TEST(an_opening_looks_at_no_other_database_that_is_open)
{
    enum { OTHERS = 5 };
    leat__lmdb_environment *environment[OTHERS];
    static char others[OTHERS][FIXTURE_PATH];
    char lock[3 * FIXTURE_PATH];
    snprintf(lock, sizeof(lock), "%s-lock", path);
    fixture_store(lock, "", 0);
    int64_t looks = count_looks();
    for (int i = 0; i < OTHERS; i++) {
        fixture_directory(others[i]);
        fixture_write(others[i], make, RECORDS);
        ck_assert_int_eq(
            leat__lmdb_environment_open(&environment[i], others[i]), LEAT_OK);
    }
    ck_assert_int_eq(count_looks(), looks);
    for (int i = 0; i < OTHERS; i++) {
        leat__lmdb_environment_close(environment[i]);
        fixture_remove(others[i]);
    }
}
END_TEST

static int open_environment(void)
{
    leat__lmdb_environment *environment = NULL;
    int status = leat__lmdb_environment_open(&environment, directory);
    ck_assert_int_eq(status == LEAT_OK, environment != NULL);
    leat__lmdb_environment_close(environment);
    return status;
}

static int open_snapshot(void)
{
    leat__lmdb_snapshot *snapshot = NULL;
    int status = leat__lmdb_snapshot_open(&snapshot, path);
    ck_assert_int_eq(status == LEAT_OK, snapshot != NULL);
    leat__lmdb_snapshot_close(snapshot);
    return status;
}

/* With the table of its leaves, for random access. */
static int open_index(void)
{
    leat__lmdb_snapshot *snapshot = NULL;
    const leat__lmdb_index *index = NULL;
    int status = leat__lmdb_snapshot_open(&snapshot, path);
    if (status)
        return status;
    status = leat__lmdb_snapshot_index(snapshot, 1 << 20, &index);
    ck_assert_int_eq(status == LEAT_OK, index != NULL);
    leat__lmdb_snapshot_close(snapshot);
    return status;
}

static int open_check(void)
{
    leat_lmdb_check *check = NULL;
    int status = leat_lmdb_check_open(&check, path);
    ck_assert_int_eq(status == LEAT_OK, check != NULL);
    leat_lmdb_check_close(check);
    return status;
}

static const struct {
    const char *name;
    int (*open)(void);
    int is_damaged; /* the file: it is then mapped in another way */
} openings[] = {{"environment", open_environment, 0},
                {"snapshot", open_snapshot, 0},
                {"index", open_index, 0},
                {"check", open_check, 0},
                {"damaged", open_check, 1}};
enum { OPENINGS = sizeof(openings) / sizeof(openings[0]), KINDS = 6 };

static void prepare(int i)
{
    int file = open(path, O_WRONLY);
    ck_assert_int_ge(file, 0);
    if (openings[i].is_damaged)
        ck_assert_int_eq(pwrite(file, "", 1, 16), 1);
    close(file);
    ck_assert_int_eq(openings[i].open(), LEAT_OK);
}

/* Any of these may fail for a moment: an error, and then all is as before. */
START_TEST(a_call_that_fails_is_an_error_and_leaves_nothing)
{
    static const struct {
        fault_call call;
        int code, status;
    } calls[KINDS] = {
        {FAULT_OPEN, EIO, LEAT_EIO},  {FAULT_STAT, EIO, LEAT_EIO},
        {FAULT_PREAD, EIO, LEAT_EIO}, {FAULT_MAP, EIO, LEAT_EIO},
        {FAULT_LOCK, EIO, LEAT_EIO},  {FAULT_MUTEX, EIO, LEAT_EIO}};
    int (*open)(void) = openings[_i / KINDS].open;
    prepare(_i / KINDS);
    int files = count_files(), n = 0, failed = 0, is_reached = 1;
    for (; is_reached; n++) {
        ck_assert_int_lt(n, CALLS_MAX);
        fault_arm(calls[_i % KINDS].call, n, calls[_i % KINDS].code, 0);
        int status = open();
        is_reached = fault_disarm();
        ck_assert_msg(status == LEAT_OK || status == calls[_i % KINDS].status,
                      "%s, %s %d: %s", openings[_i / KINDS].name,
                      fault_name(calls[_i % KINDS].call), n, leat_last_error());
        ck_assert(is_reached || status == LEAT_OK);
        failed += status != LEAT_OK;
        ck_assert_int_eq(count_files(), files);
        ck_assert_int_eq(open(), LEAT_OK);
    }
    /* Nobody locks what is damaged. */
    ck_assert(failed > 0 || openings[_i / KINDS].is_damaged);
}
END_TEST

/* In another process: as one that has it open by its file (MDB_NOSUBDIR). */
static void hold_file(const char *data)
{
    MDB_env *env = fixture_env(data, MDB_NOSUBDIR);
    (void)env;
}

/* A reader that cannot look does not read beside a writer that does not see it.
 */
START_TEST(a_lock_file_of_others_is_found_or_not_looked_for)
{
    static const int shortages[] = {EMFILE, ENFILE, ENOMEM};
    other_process other = other_process_start(hold_file, path);
    int is_reached = 1;
    for (int n = 0; is_reached; n++) {
        ck_assert_int_lt(n, CALLS_MAX);
        fault_arm(FAULT_OPEN, n, shortages[_i], 1);
        int status = open_environment();
        is_reached = fault_disarm();
        ck_assert_int_eq(status, is_reached && shortages[_i] == ENOMEM
                                     ? LEAT_ENOMEM
                                     : LEAT_EIO);
    }
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "another program uses"));
    other_process_stop(&other);
    ck_assert_int_eq(open_environment(), LEAT_OK);
}
END_TEST

START_TEST(memory_that_is_short_is_an_error_of_memory)
{
    int (*open)(void) = openings[_i].open;
    prepare(_i);
    int files = count_files(), status = LEAT_ENOMEM;
    for (int n = 0; status != LEAT_OK; n++) {
        ck_assert_int_lt(n, CALLS_MAX);
        leat__alloc_fail_at(n);
        status = open();
        leat__alloc_fail_at(-1);
        ck_assert_msg(status == LEAT_OK || status == LEAT_ENOMEM, "%d: %s", n,
                      leat_last_error());
        ck_assert_int_eq(count_files(), files);
    }
}
END_TEST

/* A file is either whole in the output, or the output is as it was. */
START_TEST(a_file_that_cannot_be_opened_leaves_the_output_alone)
{
    leat__lmdb_file file, before;
    memset(&file, 0x5a, sizeof(file));
    memcpy(&before, &file, sizeof(file));
    ck_assert_int_eq(leat__lmdb_file_open(&file, "/nowhere"), LEAT_EIO);
    ck_assert_mem_eq(&file, &before, sizeof(file));
    for (int n = 0; n < 2; n++) {
        fault_arm(FAULT_OPEN, 0, EIO, 0);
        int status = n ? leat__lmdb_file_open(&file, path)
                       : leat__lmdb_file_find(&file, path);
        fault_disarm();
        ck_assert_int_eq(status, LEAT_EIO);
        ck_assert_mem_eq(&file, &before, sizeof(file));
    }
    fault_arm(FAULT_PREAD, 0, EIO, 0);
    ck_assert_int_eq(leat__lmdb_file_open(&file, path), LEAT_EIO);
    fault_disarm();
    ck_assert_mem_eq(&file, &before, sizeof(file));
    ck_assert_int_eq(leat__lmdb_file_open(&file, path), LEAT_OK);
    ck_assert_str_eq(file.path, path);
    ck_assert_str_eq(file.data, path);
    ck_assert_str_eq(file.directory, directory);
    ck_assert_int_eq(file.in_directory, 1);
    /* It does not go on in another program. */
    ck_assert_int_eq(fcntl(file.fd, F_GETFD), FD_CLOEXEC);
    leat__lmdb_file_close(&file);
    ck_assert_int_eq(file.fd, -1);
    ck_assert_ptr_null(file.path);
}
END_TEST

/* What is read in pieces is read whole; a place is counted on from there. */
START_TEST(a_meta_page_that_comes_in_pieces_is_whole)
{
    leat__lmdb_file file;
    leat__lmdb_meta whole[2] = {{0}}, meta;
    ck_assert_int_eq(leat__lmdb_file_open(&file, path), LEAT_OK);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(leat__lmdb_file_meta(&file, i, 4096, &whole[i]),
                         LEAT_OK);
        memset(&meta, 0, sizeof(meta));
        fault_arm(FAULT_PREAD, 0, FAULT_SHORT, 1);
        int status = leat__lmdb_file_meta(&file, i, 4096, &meta);
        fault_disarm();
        ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
        ck_assert_mem_eq(&meta, &whole[i], sizeof(meta));
        fault_arm(FAULT_PREAD, 0, EINTR, 0);
        status = leat__lmdb_file_meta(&file, i, 4096, &meta);
        fault_disarm();
        ck_assert_int_eq(status, LEAT_OK);
        ck_assert_mem_eq(&meta, &whole[i], sizeof(meta));
    }
    ck_assert_uint_eq(whole[0].txnid, 0);
    ck_assert_uint_eq(whole[1].txnid, 1);
    ck_assert_int_eq(truncate(path, 4096 + LEAT__LMDB_META_BYTES - 1), 0);
    ck_assert_int_eq(leat__lmdb_file_meta(&file, 0, 4096, &meta), LEAT_OK);
    ck_assert_int_eq(leat__lmdb_file_meta(&file, 1, 4096, &meta), LEAT_EFORMAT);
    ck_assert_ptr_nonnull(
        strstr(leat_last_error(), "truncated: it ends within meta page 1"));
    leat__lmdb_file_close(&file);
}
END_TEST

/* The files of those who come later are closed again. */
START_TEST(readers_of_one_file_share_its_environment)
{
    leat__lmdb_environment *environment[3];
    ck_assert_int_eq(leat__lmdb_environment_open(&environment[0], directory),
                     LEAT_OK);
    int files = count_files();
    for (int i = 1; i < 3; i++) {
        ck_assert_int_eq(leat__lmdb_environment_open(&environment[i], path),
                         LEAT_OK);
        ck_assert_ptr_eq(environment[i], environment[0]);
        ck_assert_int_eq(environment[0]->references, i + 1);
        ck_assert_int_eq(count_files(), files);
    }
    ck_assert_int_eq(leat__lmdb_lock_is_held(environment[0]->lock), 1);
    for (int i = 2; i > 0; i--) {
        leat__lmdb_environment_close(environment[i]);
        ck_assert_int_eq(environment[0]->references, i);
        ck_assert_int_eq(count_files(), files);
    }
    leat__lmdb_environment_close(environment[0]);
    ck_assert_int_eq(count_files(), files - 2);
    leat__lmdb_environment_close(NULL);
}
END_TEST

/* And one snapshot of one transaction, mapped as far as it has pages. */
START_TEST(readers_of_one_transaction_share_its_snapshot)
{
    leat__lmdb_snapshot *first, *second;
    ck_assert_int_eq(leat__lmdb_snapshot_open(&first, path), LEAT_OK);
    ck_assert_int_eq(leat__lmdb_snapshot_open(&second, directory), LEAT_OK);
    ck_assert_ptr_eq(first, second);
    const leat__lmdb_map *map = leat__lmdb_snapshot_map(first);
    ck_assert_uint_eq(map->size,
                      (map->meta.last_page + 1) * map->meta.page_size);
    leat__lmdb_snapshot_close(second);
    /* A writer's next transaction is another one, and makes it no longer. */
    size_t pages = (size_t)map->meta.last_page + 1;
    MDB_env *env = fixture_env(directory, 0);
    fixture_put(env, make, RECORDS, 10 * RECORDS, 0);
    mdb_env_close(env);
    ck_assert_int_eq(leat__lmdb_snapshot_open(&second, path), LEAT_OK);
    ck_assert_ptr_ne(first, second);
    ck_assert_uint_eq(leat__lmdb_snapshot_map(second)->meta.txnid, 2);
    ck_assert_uint_eq(map->meta.txnid, 1);
    ck_assert_uint_eq(map->size, pages * 4096);
    /* Pages after the last one are none of it. */
    leat__lmdb_snapshot_close(second);
    size_t size = leat__lmdb_snapshot_map(first)->size * 40;
    ck_assert_int_eq(truncate(path, (off_t)size), 0);
    ck_assert_int_eq(leat__lmdb_snapshot_open(&second, path), LEAT_OK);
    const leat__lmdb_map *later = leat__lmdb_snapshot_map(second);
    ck_assert_uint_eq(later->size,
                      (later->meta.last_page + 1) * later->meta.page_size);
    leat__lmdb_snapshot_close(first);
    leat__lmdb_snapshot_close(second);
    leat__lmdb_snapshot_close(NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("opening");
    TCase *tcase = tcase_create("opening");
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_loop_test(tcase, a_lock_file_of_others_is_found_or_not_looked_for,
                        0, 3);
    tcase_add_loop_test(
        tcase,
        a_lock_file_that_cannot_be_opened_is_done_without_for_some_reasons, 0,
        CODES);
    tcase_add_loop_test(
        tcase, a_lock_that_cannot_be_taken_is_done_without_for_some_reasons, 0,
        CODES);
    tcase_add_test(tcase, a_lock_that_others_had_until_then_is_taken);
    tcase_add_loop_test(tcase, a_call_that_fails_is_an_error_and_leaves_nothing,
                        0, OPENINGS * KINDS);
    tcase_add_loop_test(tcase, memory_that_is_short_is_an_error_of_memory, 0,
                        OPENINGS);
    tcase_add_test(tcase, a_file_that_cannot_be_opened_leaves_the_output_alone);
    tcase_add_test(tcase, a_meta_page_that_comes_in_pieces_is_whole);
    tcase_add_test(tcase, readers_of_one_file_share_its_environment);
    tcase_add_test(tcase, an_opening_looks_at_no_other_database_that_is_open);
    tcase_add_test(tcase,
                   a_lock_that_could_not_be_taken_is_tried_anew_for_a_new_file);
    tcase_add_test(
        tcase, a_new_file_whose_transaction_has_no_room_is_read_without_a_lock);
    tcase_add_test(tcase, readers_of_one_transaction_share_its_snapshot);
    return suite_run(suite);
}
