#include "base/thread.h"
#include "support/images.h"
#include "support/nobody.h"
#include "support/other_process.h"
#include "support/suite.h"

#include <leat/ext/reader.h>
#include <leat/lmdb_check.h>

#include <sys/stat.h>
#include <sys/wait.h>

static void *open_and_read(void *argument)
{
    for (int i = 0; i < 20; i++) {
        leat_reader *reader = images_open(argument);
        ck_assert_int_eq(images_count(reader), 100);
        leat_reader_close(reader);
    }
    return NULL;
}

START_TEST(threads_open_and_close_one_database)
{
    char directory[FIXTURE_PATH];
    images_write(directory, images_record, 100);
    leat__thread thread[4] = {{0}};
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(
            leat__thread_start(&thread[i], "opens", open_and_read, directory),
            LEAT_OK);
    for (int i = 0; i < 4; i++)
        leat__thread_join(&thread[i]);
    fixture_remove(directory);
}
END_TEST

START_TEST(two_hundred_readers_share_one_database)
{
    char directory[FIXTURE_PATH];
    static leat_reader *reader[200];
    images_write(directory, images_record, 100);
    for (int i = 0; i < 200; i++)
        reader[i] =
            images_open(i % 2 ? images_in(directory, "data.mdb") : directory);
    for (int i = 0; i < 200; i += 10)
        ck_assert_int_eq(images_count(reader[i]), 100);
    for (int i = 0; i < 200; i++)
        leat_reader_close(reader[i]);
    fixture_remove(directory);
}
END_TEST

/* Runs in a process of its own, as LMDB wants it. */
static void append_elsewhere(const char *directory, int from, int to)
{
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        MDB_env *env = fixture_env(directory, 0);
        for (; from < to; from += 100)
            fixture_put(env, images_record, from, from + 100, 0);
        mdb_env_close(env);
        _exit(0);
    }
    int result;
    ck_assert_int_eq(waitpid(child, &result, 0), child);
    ck_assert_int_eq(result, 0);
}

START_TEST(a_reader_keeps_its_snapshot_while_a_writer_appends)
{
    char directory[FIXTURE_PATH];
    leat_reader *old = images_begin(directory, images_record, 100);
    leat_sample sample;
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_reader_next(old, &sample), LEAT_OK);
    append_elsewhere(directory, 100, 3000);
    leat_reader *new = images_open(directory);
    append_elsewhere(directory, 3000, 6000);
    leat_reader *newest = images_open(directory);
    for (int epoch = 0; epoch < 2; epoch++) {
        ck_assert_int_eq(leat_reader_seek(old, (leat_position){0, 0}, NULL),
                         LEAT_OK);
        ck_assert_int_eq(images_count(old), 100);
        ck_assert_int_eq(leat_reader_seek(new, (leat_position){0, 0}, NULL),
                         LEAT_OK);
        ck_assert_int_eq(images_count(new), 3000);
    }
    ck_assert_int_eq(images_count(newest), 6000);
    leat_sample_finish(&sample);
    leat_reader_close(old);
    leat_reader_close(newest);
    leat_reader_close(new);
    fixture_remove(directory);
}
END_TEST

START_TEST(readers_open_while_a_writer_commits)
{
    char directory[FIXTURE_PATH];
    images_write(directory, images_record, 100);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        MDB_env *env = fixture_env(directory, MDB_WRITEMAP);
        for (int i = 100; i < 2000; i++)
            fixture_put(env, images_record, i, i + 1, 0);
        mdb_env_close(env);
        _exit(0);
    }
    int result;
    int64_t last = 100;
    while (waitpid(child, &result, WNOHANG) == 0) {
        leat_reader *reader = images_open(directory);
        int64_t n = images_count(reader);
        ck_assert_int_ge(n, last);
        last = n;
        leat_reader_close(reader);
    }
    ck_assert_int_eq(result, 0);
    leat_reader *reader = images_open(directory);
    ck_assert_int_eq(images_count(reader), 2000);
    images_end(reader, directory);
}
END_TEST

/* A commit's meta page is in the file long before the disk says it has it. */
START_TEST(readers_open_while_a_commit_waits_for_the_disk)
{
    char directory[FIXTURE_PATH];
    images_write(directory, images_record, 10);
    int ready[2], done[2];
    ck_assert_int_eq(pipe(ready), 0);
    ck_assert_int_eq(pipe(done), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    char byte = 0;
    if (child == 0) {
        /* While it is open elsewhere, the lock file says what is committed. */
        MDB_env *env = fixture_env(directory, 0);
        MDB_txn *committing;
        if (mdb_txn_begin(env, NULL, 0, &committing))
            _exit(1);
        if (write(ready[1], &byte, 1) != 1 || read(done[0], &byte, 1) != 1)
            _exit(1);
        mdb_txn_abort(committing);
        mdb_env_close(env);
        _exit(0);
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    enum { META = 16, TXNID = 144, META_END = 152 };
    size_t size;
    unsigned char *bytes =
        fixture_load(images_in(directory, "data.mdb"), &size);
    ck_assert_uint_eq(bytes[4096 + TXNID], 1);
    memcpy(bytes + META, bytes + 4096 + META, META_END - META);
    bytes[TXNID] = 2;
    fixture_store(images_in(directory, "data.mdb"), bytes, size);
    free(bytes);

    leat_reader *reader = images_open(directory);
    ck_assert_int_eq(images_count(reader), 10);
    leat_reader_close(reader);
    ck_assert_int_eq(write(done[1], &byte, 1), 1);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    fixture_remove(directory);
}
END_TEST

enum { SLOTS_MAX = 200 };

/* Another process whose lock file has so many slots and that holds `taken` of
 * them, until a byte is written to *done. */
static pid_t limit_readers(const char *directory, unsigned slots, int taken,
                           int *done)
{
    MDB_env *env;
    MDB_txn *txn[SLOTS_MAX];
    int ready[2], wanted[2];
    char byte = 0;
    ck_assert_int_eq(pipe(ready), 0);
    ck_assert_int_eq(pipe(wanted), 0);
    ck_assert_int_eq(unlink(images_in(directory, "lock.mdb")), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        mdb_env_create(&env);
        mdb_env_set_maxreaders(env, slots);
        mdb_env_open(env, directory, MDB_RDONLY | MDB_NOTLS, 0644);
        for (int i = 0; i < taken; i++)
            mdb_txn_begin(env, NULL, MDB_RDONLY, &txn[i]);
        if (write(ready[1], &byte, 1) != 1 || read(wanted[0], &byte, 1) != 1)
            _exit(1);
        _exit(0);
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    *done = wanted[1];
    return child;
}

static void end_limit(pid_t child, int done)
{
    char byte = 0;
    ck_assert_int_eq(write(done, &byte, 1), 1);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
}

START_TEST(readers_of_one_snapshot_need_one_slot)
{
    char directory[FIXTURE_PATH];
    int done;
    images_write(directory, images_record, 10);
    pid_t child = limit_readers(directory, 2, 1, &done);
    leat_reader *a = images_open(directory), *b = images_open(directory);
    leat_reader_close(a);
    ck_assert_int_eq(images_count(b), 10);
    leat_reader_close(b);
    end_limit(child, done);
    fixture_remove(directory);
}
END_TEST

/* Slots of its lock file that have ever been taken. */
static uint32_t count_slots(const char *directory)
{
    enum { COUNT_AT = 56 };
    size_t size;
    uint32_t n;
    unsigned char *bytes =
        fixture_load(images_in(directory, "lock.mdb"), &size);
    memcpy(&n, bytes + COUNT_AT, sizeof(n));
    free(bytes);
    return n;
}

/* It could be the last one, and another process be refused. */
START_TEST(a_second_reader_of_a_snapshot_takes_no_slot_for_a_moment)
{
    char directory[FIXTURE_PATH];
    int done;
    images_write(directory, images_record, 10);
    pid_t child = limit_readers(directory, 3, 1, &done);
    leat_reader *a = images_open(directory);
    ck_assert_uint_eq(count_slots(directory), 2);
    leat_reader *b = images_open(directory);
    ck_assert_uint_eq(count_slots(directory), 2);
    leat_reader_close(a);
    leat_reader_close(b);
    end_limit(child, done);
    fixture_remove(directory);
}
END_TEST

/* A process that opens the database until it is killed. */
static pid_t open_elsewhere(const char *directory)
{
    int ready[2];
    char byte = 0;
    ck_assert_int_eq(pipe(ready), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        byte = (char)(images_open(directory) != NULL);
        if (write(ready[1], &byte, 1) == 1)
            pause();
        _exit(1);
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    ck_assert_int_eq(byte, 1);
    return child;
}

/* A lock file has blocks for 126 slots when it is made. */
START_TEST(dead_readers_free_the_last_slots_of_a_large_table)
{
    enum { FIRST = 126, DEAD = 4 };
    char directory[FIXTURE_PATH];
    pid_t reader[DEAD];
    int done;
    images_write(directory, images_record, 10);
    pid_t child = limit_readers(directory, FIRST + DEAD, FIRST, &done);
    for (int i = 0; i < DEAD; i++)
        reader[i] = open_elsewhere(directory);
    ck_assert_int_eq(images_status(directory), LEAT_EIO);
    for (int i = 0; i < DEAD; i++) {
        ck_assert_int_eq(kill(reader[i], SIGKILL), 0);
        ck_assert_int_eq(waitpid(reader[i], NULL, 0), reader[i]);
    }
    ck_assert_msg(!images_status(directory), "%s", leat_last_error());
    end_limit(child, done);
    fixture_remove(directory);
}
END_TEST

START_TEST(a_full_table_of_readers_is_reported)
{
    char directory[FIXTURE_PATH];
    int done;
    images_write(directory, images_record, 10);
    pid_t child = limit_readers(directory, 2, 2, &done);
    ck_assert_int_eq(images_status(directory), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "MDB_READERS_FULL"));
    end_limit(child, done);
    /* The slots of a process that died are free again. */
    ck_assert_int_eq(images_status(directory), LEAT_OK);
    fixture_remove(directory);
}
END_TEST

static void drop_right_to_lock(const char *directory)
{
    ck_assert_int_eq(chmod(directory, 0755), 0);
    ck_assert_int_eq(chmod(images_in(directory, "lock.mdb"), 0444), 0);
    nobody_enter();
}

static void restore_right_to_lock(const char *directory)
{
    nobody_leave();
    ck_assert_int_eq(chmod(images_in(directory, "lock.mdb"), 0644), 0);
}

/* One commit leaves all pages of the latest snapshot as they are. */
START_TEST(a_reader_without_a_slot_ends_before_its_pages_are_overwritten)
{
    char directory[FIXTURE_PATH];
    images_write(directory, images_record, 100);
    drop_right_to_lock(directory);
    leat_reader *reader = images_open(directory);
    restore_right_to_lock(directory);
    leat_sample sample;
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    append_elsewhere(directory, 100, 200);
    ck_assert_int_eq(leat_reader_check(reader), LEAT_OK);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    append_elsewhere(directory, 200, 300);
    ck_assert_int_eq(leat_reader_check(reader), LEAT_EIO);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "without its lock file"));
    leat_sample_finish(&sample);
    images_end(reader, directory);
}
END_TEST

static void inverted_record(int number, fixture_record *out)
{
    images_record(number ^ 0xff, out);
    out->key_size = (size_t)sprintf(out->key, "%08d", number);
}

/* As many commits as make LMDB use the pages of the first one again. */
static void rewrite_elsewhere(const char *directory, int n)
{
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        MDB_env *env = fixture_env(directory, 0);
        for (int i = 0; i < 5; i++)
            fixture_put(env, inverted_record, 0, n, 0);
        mdb_env_close(env);
        _exit(0);
    }
    int result;
    ck_assert_int_eq(waitpid(child, &result, 0), child);
    ck_assert_int_eq(result, 0);
}

static void open_to_write(const char *directory)
{
    ck_assert_ptr_nonnull(fixture_env(directory, 0));
}

/* In order and by index; an image of which no byte is the map's. */
START_TEST(what_was_read_without_a_slot_beside_a_writer_stays_as_it_was)
{
    enum { COUNT = 100 };
    char directory[FIXTURE_PATH];
    leat_sample buffer[4], *sample[4];
    const leat_position at[] = {{0, 7}, {0, 99}};
    int got, read;
    images_write(directory, images_record, COUNT);
    images_boxes_init(buffer, sample, 4);
    other_process writer = other_process_start(open_to_write, directory);
    drop_right_to_lock(directory);
    leat_reader *reader = images_open(directory);
    restore_right_to_lock(directory);
    ck_assert_int_eq(leat_reader_next_batch(reader, sample, 2, &got), LEAT_OK);
    ck_assert_int_eq(got, 2);
    ck_assert_int_eq(leat_reader_read_at(reader, at, sample + 2, 2, &read),
                     LEAT_OK);
    ck_assert_int_eq(read, 2);
    rewrite_elsewhere(directory, COUNT);
    const int64_t expected[] = {0, 1, 7, 99};
    for (int i = 0; i < 4; i++) {
        char key[16];
        sprintf(key, "%08d", (int)expected[i]);
        ck_assert_mem_eq(sample[i]->from.key, key, 8);
        const unsigned char *pixels = sample[i]->field[0].data;
        for (int j = 0; j < 20; j++)
            ck_assert_int_eq(pixels[j], (int)expected[i]);
        ck_assert_int_eq(images_label(sample[i]), (int)expected[i]);
    }
    ck_assert_int_eq(leat_reader_read_at(reader, at, sample, 2, &read),
                     LEAT_EIO);
    ck_assert_int_eq(read, 0);
    images_boxes_finish(buffer, 4);
    other_process_stop(&writer);
    images_end(reader, directory);
}
END_TEST

/* The lock file whose users are looked for is the one of this opening's path,
 * also beside a reader of another: the directory before it was renamed, or one
 * with a link to the data. */
START_TEST(a_second_path_without_a_slot_copies_beside_a_writer)
{
    enum { COUNT = 100 };
    char directory[FIXTURE_PATH], second[2 * FIXTURE_PATH];
    leat_sample buffer[1], *sample[1];
    int got;
    images_write(directory, images_record, COUNT);
    snprintf(second, sizeof(second), "%s-2", directory);
    images_boxes_init(buffer, sample, 1);
    if (_i)
        ck_assert_int_eq(mkdir(second, 0755), 0);
    char name[3 * FIXTURE_PATH];
    snprintf(name, sizeof(name), "%s/data.mdb", second);
    if (_i)
        ck_assert_int_eq(link(images_in(directory, "data.mdb"), name), 0);
    drop_right_to_lock(directory);
    leat_reader *first = images_open(_i ? second : directory);
    restore_right_to_lock(directory);
    if (!_i)
        ck_assert_int_eq(rename(directory, second), 0);
    const char *at = _i ? directory : second;
    other_process writer = other_process_start(open_to_write, at);
    drop_right_to_lock(at);
    leat_reader *reader = images_open(at);
    restore_right_to_lock(at);
    ck_assert_int_eq(leat_reader_next_batch(reader, sample, 1, &got), LEAT_OK);
    ck_assert_int_eq(sample[0]->stable, 0);
    rewrite_elsewhere(at, COUNT);
    ck_assert_int_eq(images_label(sample[0]), 0);
    ck_assert_int_eq(((const unsigned char *)sample[0]->field[0].data)[0], 0);
    images_boxes_finish(buffer, 1);
    other_process_stop(&writer);
    leat_reader_close(first);
    leat_reader_close(reader);
    if (_i)
        fixture_remove(directory);
    fixture_remove(second);
}
END_TEST

/* Positions are found, and the data set is known, by pages, too. */
static int save(leat_reader *reader)
{
    leat_token token;
    leat_token_init(&token);
    int status = leat_reader_save(reader, &token);
    leat_token_finish(&token);
    return status;
}

static int restore(leat_reader *reader)
{
    leat_token token;
    leat_token_init(&token);
    ck_assert_int_eq(leat_token_put(&token, "0123456789abcdef", 16), LEAT_OK);
    int status = leat_reader_restore(reader, &token);
    leat_token_finish(&token);
    return status;
}

static int seek(leat_reader *reader)
{
    return leat_reader_seek(reader, (leat_position){0, 4000}, NULL);
}

static int skip_far(leat_reader *reader)
{
    int64_t skipped;
    return leat_reader_skip(reader, 4000, &skipped);
}

static int skip_page(leat_reader *reader)
{
    int64_t skipped;
    int status = LEAT_OK;
    while (!status)
        status = leat_reader_skip(reader, 1000, &skipped);
    return status;
}

static int get_fields(leat_reader *reader)
{
    const leat_field_spec *spec;
    int n;
    return leat_reader_fields(reader, &spec, &n);
}

START_TEST(without_a_slot_another_call_blames_the_writer_too)
{
    enum { COUNT = 5000 };
    static int (*const calls[])(leat_reader *) = {
        save, restore, seek, skip_far, skip_page, get_fields};
    char directory[FIXTURE_PATH];
    images_write(directory, images_record, COUNT);
    drop_right_to_lock(directory);
    leat_reader *reader = images_open(directory);
    restore_right_to_lock(directory);
    rewrite_elsewhere(directory, COUNT);
    ck_assert_int_eq(calls[_i](reader), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "without its lock file"));
    images_end(reader, directory);
}
END_TEST

START_TEST(a_check_without_a_slot_ends_before_its_pages_are_overwritten)
{
    char directory[FIXTURE_PATH];
    images_write(directory, images_record, 100);
    leat_lmdb_check *check;
    leat_lmdb_check_entry entry;
    int got;
    drop_right_to_lock(directory);
    ck_assert_int_eq(leat_lmdb_check_open(&check, directory), LEAT_OK);
    restore_right_to_lock(directory);
    ck_assert_int_eq(leat_lmdb_check_next(check, &entry, 1, &got), LEAT_OK);
    append_elsewhere(directory, 100, 300);
    ck_assert_int_eq(leat_lmdb_check_next(check, &entry, 1, &got), LEAT_ESTATE);
    ck_assert_int_eq(got, 0);
    leat_lmdb_check_close(check);
    fixture_remove(directory);
}
END_TEST

START_TEST(a_reader_notices_that_its_file_was_overwritten)
{
    char directory[FIXTURE_PATH], other[FIXTURE_PATH];
    leat_reader *reader = images_begin(directory, images_record, 100);
    size_t size;
    images_write(other, images_record, 200);
    unsigned char *bytes = fixture_load(images_in(other, "data.mdb"), &size);
    ck_assert_int_eq(leat_reader_check(reader), LEAT_OK);
    fixture_store(images_in(directory, "data.mdb"), bytes, size);
    free(bytes);
    ck_assert_int_eq(leat_reader_check(reader), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "not by LMDB"));
    images_end(reader, directory);
    fixture_remove(other);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lmdb_snapshot");
    TCase *tcase = tcase_create("lmdb_snapshot");
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, threads_open_and_close_one_database);
    tcase_add_test(tcase, two_hundred_readers_share_one_database);
    tcase_add_test(tcase, a_reader_keeps_its_snapshot_while_a_writer_appends);
    tcase_add_test(tcase, readers_open_while_a_writer_commits);
    tcase_add_test(tcase, readers_open_while_a_commit_waits_for_the_disk);
    tcase_add_test(tcase, readers_of_one_snapshot_need_one_slot);
    tcase_add_test(tcase,
                   a_second_reader_of_a_snapshot_takes_no_slot_for_a_moment);
    tcase_add_test(tcase, dead_readers_free_the_last_slots_of_a_large_table);
    tcase_add_test(tcase, a_full_table_of_readers_is_reported);
    tcase_add_test(
        tcase, a_reader_without_a_slot_ends_before_its_pages_are_overwritten);
    tcase_add_test(
        tcase, what_was_read_without_a_slot_beside_a_writer_stays_as_it_was);
    tcase_add_loop_test(
        tcase, a_second_path_without_a_slot_copies_beside_a_writer, 0, 2);
    tcase_add_loop_test(
        tcase, without_a_slot_another_call_blames_the_writer_too, 0, 6);
    tcase_add_test(
        tcase, a_check_without_a_slot_ends_before_its_pages_are_overwritten);
    tcase_add_test(tcase, a_reader_notices_that_its_file_was_overwritten);
    return suite_run(suite);
}
