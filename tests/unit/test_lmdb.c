#include "base/memory.h"
#include "base/random.h"
#include "base/thread.h"
#include "lmdb_fixture.h"

#include <leat/datum.h>
#include <leat/ext/reader.h>
#include <leat/reader.h>

#include <fcntl.h>
#include <sys/wait.h>

/* Record i: an image of 1 x 4 x 5, all bytes i, label i, key "%08d". */
static void make_image(int number, fixture_record *out)
{
    unsigned char pixels[20];
    memset(pixels, number, sizeof(pixels));
    leat_datum datum = {1, 4, 5, number, 0, pixels, sizeof(pixels), NULL, 0};
    out->key_size = (size_t)sprintf(out->key, "%08d", number);
    out->value_size = leat_datum_write(&datum, out->value);
}

/* The same, but record 3 and every tenth are no Datums. */
static void make_some_bad(int number, fixture_record *out)
{
    make_image(number, out);
    if (number % 10 == 3)
        out->value_size = 9;
}

static leat_reader *open_reader(const char *path)
{
    leat_pipeline *pipeline;
    leat_reader *reader = NULL;
    ck_assert_int_eq(leat_pipeline_lmdb(&pipeline, path, NULL), LEAT_OK);
    int status = leat_pipeline_open(pipeline, &reader);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    leat_pipeline_unref(pipeline);
    return reader;
}

static int open_status(const char *path)
{
    leat_pipeline *pipeline;
    leat_reader *reader = NULL;
    ck_assert_int_eq(leat_pipeline_lmdb(&pipeline, path, NULL), LEAT_OK);
    int status = leat_pipeline_open(pipeline, &reader);
    leat_pipeline_unref(pipeline);
    if (status == LEAT_OK)
        leat_reader_close(reader);
    return status;
}

/* A database of `n` records in a new directory. */
static const char *make_database(char directory[FIXTURE_PATH],
                                 fixture_maker *make, int n)
{
    fixture_directory(directory);
    fixture_write(directory, make, n);
    return directory;
}

static const char *in(const char *directory, const char *name)
{
    static char path[2 * FIXTURE_PATH];
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    return path;
}

static int32_t label_of(const leat_sample *sample)
{
    int32_t label;
    memcpy(&label, sample->field[1].data, sizeof(label));
    return label;
}

static void assert_sample(const leat_sample *sample, int64_t record)
{
    char key[16];
    sprintf(key, "%08d", (int)record);
    ck_assert_int_eq(sample->nfields, 2);
    ck_assert_int_eq(sample->stable, 1);
    ck_assert_int_eq(sample->field[0].dtype, LEAT_UINT8);
    ck_assert_int_eq(sample->field[0].shape[1], 4);
    ck_assert_int_eq(*(const unsigned char *)sample->field[0].data,
                     (unsigned char)record);
    ck_assert_int_eq(label_of(sample), (int32_t)record);
    ck_assert_int_eq(sample->from.record, record);
    ck_assert_uint_eq(sample->from.key_size, 8);
    ck_assert_mem_eq(sample->from.key, key, 8);
}

static int64_t count_to_end(leat_reader *reader)
{
    leat_sample sample;
    int64_t n = 0;
    int status;
    leat_sample_init(&sample);
    while (!(status = leat_reader_next(reader, &sample)))
        assert_sample(&sample, n++);
    ck_assert_msg(status == LEAT_END, "%s", leat_last_error());
    leat_sample_finish(&sample);
    return n;
}

START_TEST(records_come_in_order_and_the_end_comes_twice)
{
    char directory[FIXTURE_PATH];
    make_database(directory, make_image, 1000);
    leat_reader *reader = open_reader(directory);
    leat_sample sample;
    int64_t count;
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_reader_count(reader, &count), LEAT_OK);
    ck_assert_int_eq(count, 1000);
    for (int epoch = 0; epoch < 3; epoch++) {
        ck_assert_int_eq(count_to_end(reader), 1000);
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
        ck_assert_int_eq(leat_reader_reset(reader), LEAT_OK);
    }
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_str_eq(sample.from.source, directory);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    fixture_remove(directory);
}
END_TEST

START_TEST(batches_of_every_size_give_the_same)
{
    char directory[FIXTURE_PATH];
    leat_sample sample[100], *out[100];
    make_database(directory, make_image, 100);
    leat_reader *reader = open_reader(directory);
    for (int i = 0; i < 100; i++) {
        leat_sample_init(&sample[i]);
        out[i] = &sample[i];
    }
    for (int n = 1; n <= 100; n++) {
        int64_t at = 0;
        int got, status;
        while (!(status = leat_reader_next_batch(reader, out, n, &got))) {
            ck_assert_int_ge(got, 1);
            ck_assert_int_le(got, n);
            for (int i = 0; i < got; i++)
                assert_sample(out[i], at++);
        }
        ck_assert_int_eq(status, LEAT_END);
        ck_assert_int_eq(got, 0);
        ck_assert_int_eq(at, 100);
        ck_assert_int_eq(leat_reader_reset(reader), LEAT_OK);
    }
    for (int i = 0; i < 100; i++)
        leat_sample_finish(&sample[i]);
    leat_reader_close(reader);
    fixture_remove(directory);
}
END_TEST

START_TEST(the_first_record_tells_the_fields)
{
    char directory[FIXTURE_PATH];
    const leat_field_spec *spec;
    int n;
    make_database(directory, make_image, 3);
    leat_reader *reader = open_reader(directory);
    ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
    ck_assert_int_eq(n, 2);
    ck_assert_str_eq(spec[0].name, "data");
    ck_assert_int_eq(spec[0].dtype, LEAT_UINT8);
    ck_assert_int_eq(spec[0].ndim, 3);
    ck_assert_int_eq(spec[0].shape[2], 5);
    ck_assert_str_eq(spec[1].name, "label");
    ck_assert_int_eq(spec[1].dtype, LEAT_INT32);
    ck_assert_int_eq(spec[1].ndim, 0);
    ck_assert_int_eq(count_to_end(reader), 3);
    leat_reader_close(reader);
    fixture_remove(directory);
}
END_TEST

static void make_bad(int number, fixture_record *out)
{
    make_image(number, out);
    out->value_size = 9;
}

static void make_bad_at_first(int number, fixture_record *out)
{
    make_image(number, out);
    if (number < 5)
        out->value_size = 9;
}

START_TEST(the_first_good_record_tells_the_fields)
{
    char directory[FIXTURE_PATH];
    const leat_field_spec *spec;
    int n;
    make_database(directory, make_bad_at_first, 10);
    leat_reader *reader = open_reader(directory);
    ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
    ck_assert_int_eq(spec[0].dtype, LEAT_UINT8);
    leat_reader_close(reader);
    fixture_remove(directory);
    make_database(directory, make_bad, 10);
    reader = open_reader(directory);
    ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_EDATA);
    ck_assert_msg(strstr(leat_last_error(), "record 0,"), "%s",
                  leat_last_error());
    leat_reader_close(reader);
    fixture_remove(directory);
}
END_TEST

START_TEST(an_empty_database_has_fields_and_ends_at_once)
{
    char directory[FIXTURE_PATH];
    const leat_field_spec *spec;
    int n;
    make_database(directory, make_image, 0);
    leat_reader *reader = open_reader(directory);
    ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
    ck_assert_int_eq(spec[0].dtype, LEAT_BYTES);
    ck_assert_int_eq(spec[0].ndim, -1);
    ck_assert_int_eq(count_to_end(reader), 0);
    ck_assert_int_eq(leat_reader_seek(reader, 0), LEAT_OK);
    ck_assert_int_eq(leat_reader_seek(reader, 1), LEAT_EINVAL);
    leat_reader_close(reader);
    fixture_remove(directory);
}
END_TEST

START_TEST(a_bad_record_is_named_and_stepped_over)
{
    char directory[FIXTURE_PATH];
    leat_sample sample[8], *out[8];
    make_database(directory, make_some_bad, 40);
    leat_reader *reader = open_reader(directory);
    for (int i = 0; i < 8; i++) {
        leat_sample_init(&sample[i]);
        out[i] = &sample[i];
    }
    int64_t good = 0, bad = 0;
    int got, status;
    while ((status = leat_reader_next_batch(reader, out, 8, &got)) !=
           LEAT_END) {
        int64_t at = good + bad;
        if (status == LEAT_OK) {
            for (int i = 0; i < got; i++)
                assert_sample(out[i], at + i);
            good += got;
            continue;
        }
        char says[64];
        sprintf(says, "record %d, key %08d: ", (int)at, (int)at);
        ck_assert_int_eq(status, LEAT_EDATA);
        ck_assert_int_eq(got, 0);
        ck_assert_int_eq(out[0]->from.record, at);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), says));
        ck_assert_ptr_nonnull(strstr(leat_last_error(), directory));
        bad++;
    }
    ck_assert_int_eq(bad, 4);
    ck_assert_int_eq(good, 36);
    for (int i = 0; i < 8; i++)
        leat_sample_finish(&sample[i]);
    leat_reader_close(reader);
    fixture_remove(directory);
}
END_TEST

/* What is located in order is read in any order, bad records and all. */
START_TEST(located_records_are_those_of_the_walk)
{
    char directory[FIXTURE_PATH];
    leat_locator locator[50];
    leat_sample sample, *out = &sample;
    make_database(directory, make_some_bad, 40);
    leat_reader *reader = open_reader(directory);
    leat_sample_init(&sample);
    int got, n = 0, status;
    /* Three by next first, so that some are taken ahead of locate. */
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    n = 3;
    ck_assert_int_eq(leat_reader_can_locate(reader), 1);
    while ((status = leat_reader_locate(reader, locator + n, 7, &got)) ==
           LEAT_OK) {
        ck_assert_int_gt(got, 0);
        n += got;
        ck_assert_int_le(n, 40);
    }
    ck_assert_int_eq(status, LEAT_END);
    ck_assert_int_eq(n, 40);
    for (int i = 39; i >= 3; i--) {
        ck_assert_int_eq(locator[i].record, i);
        status = leat_reader_read_located(reader, &locator[i], &out, 1, &got);
        ck_assert_int_eq(status, i % 10 == 3 ? LEAT_EDATA : LEAT_OK);
        ck_assert_int_eq(sample.from.record, i);
        if (status == LEAT_OK)
            assert_sample(&sample, i);
    }
    ck_assert_int_eq(leat_reader_locate(reader, locator, 7, &got), LEAT_END);
    ck_assert_int_eq(leat_reader_reset(reader), LEAT_OK);
    ck_assert_int_eq(leat_reader_locate(reader, locator, 7, &got), LEAT_OK);
    ck_assert_int_eq(locator[0].record, 0);
    leat_reader_cancel(reader);
    ck_assert_int_eq(leat_reader_locate(reader, locator, 7, &got),
                     LEAT_ECANCELLED);
    ck_assert_int_eq(leat_reader_read_located(reader, locator, &out, 1, &got),
                     LEAT_ECANCELLED);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    fixture_remove(directory);
}
END_TEST

START_TEST(read_at_gives_the_good_prefix_and_then_the_error)
{
    char directory[FIXTURE_PATH];
    leat_sample sample[4], *out[4];
    make_database(directory, make_some_bad, 40);
    leat_reader *reader = open_reader(directory);
    for (int i = 0; i < 4; i++) {
        leat_sample_init(&sample[i]);
        out[i] = &sample[i];
    }
    const int64_t index[4] = {39, 0, 13, 5};
    int got;
    ck_assert_int_eq(leat_reader_read_at(reader, index, out, 4, &got), LEAT_OK);
    ck_assert_int_eq(got, 2);
    assert_sample(out[0], 39);
    assert_sample(out[1], 0);
    ck_assert_int_eq(leat_reader_read_at(reader, index + 2, out, 2, &got),
                     LEAT_EDATA);
    ck_assert_int_eq(got, 0);
    ck_assert_int_eq(out[0]->from.record, 13);
    const int64_t beyond = 40;
    ck_assert_int_eq(leat_reader_read_at(reader, &beyond, out, 1, &got),
                     LEAT_EINVAL);
    for (int i = 0; i < 4; i++)
        leat_sample_finish(&sample[i]);
    leat_reader_close(reader);
    fixture_remove(directory);
}
END_TEST

START_TEST(seek_goes_to_every_record_and_to_the_end)
{
    char directory[FIXTURE_PATH];
    leat_sample sample;
    make_database(directory, make_image, 200);
    leat_reader *reader = open_reader(directory);
    leat_sample_init(&sample);
    for (int64_t i = 0; i < 200; i++) {
        int64_t to = i * 77 % 200;
        ck_assert_int_eq(leat_reader_seek(reader, to), LEAT_OK);
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
        assert_sample(&sample, to);
    }
    /* Records that were taken ahead are not given after a seek. */
    ck_assert_int_eq(leat_reader_seek(reader, 10), LEAT_OK);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(leat_reader_seek(reader, 12), LEAT_OK);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    assert_sample(&sample, 12);
    ck_assert_int_eq(leat_reader_seek(reader, 200), LEAT_OK);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_END);
    ck_assert_int_eq(leat_reader_seek(reader, 201), LEAT_EINVAL);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    fixture_remove(directory);
}
END_TEST

START_TEST(a_failed_seek_changes_nothing)
{
    char directory[FIXTURE_PATH];
    leat_sample sample;
    make_database(directory, make_image, 50);
    leat_reader *reader = open_reader(directory);
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(leat_reader_seek(reader, 51), LEAT_EINVAL);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    assert_sample(&sample, 1);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    fixture_remove(directory);
}
END_TEST

typedef struct random_reads {
    leat_reader *reader;
    uint32_t seed;
} random_reads;

static void *read_at_random(void *argument)
{
    const random_reads *self = argument;
    static _Thread_local leat__mt19937 random;
    leat_sample sample[16], *out[16];
    int64_t index[16];
    leat__mt19937_seed(&random, self->seed);
    for (int i = 0; i < 16; i++) {
        leat_sample_init(&sample[i]);
        out[i] = &sample[i];
    }
    for (int round = 0; round < 200; round++) {
        int got;
        for (int i = 0; i < 16; i++)
            index[i] = leat__mt19937_next(&random) % 500;
        ck_assert_int_eq(
            leat_reader_read_at(self->reader, index, out, 16, &got), LEAT_OK);
        ck_assert_int_eq(got, 16);
        for (int i = 0; i < 16; i++)
            assert_sample(out[i], index[i]);
    }
    for (int i = 0; i < 16; i++)
        leat_sample_finish(&sample[i]);
    return NULL;
}

START_TEST(threads_read_at_random_beside_next)
{
    char directory[FIXTURE_PATH];
    make_database(directory, make_image, 500);
    leat_reader *reader = open_reader(directory);
    leat__thread thread[4] = {{0}};
    random_reads reads[4];
    for (uint32_t i = 0; i < 4; i++) {
        reads[i] = (random_reads){reader, i};
        ck_assert_int_eq(
            leat__thread_start(&thread[i], "reads", read_at_random, &reads[i]),
            LEAT_OK);
    }
    ck_assert_int_eq(count_to_end(reader), 500);
    for (int i = 0; i < 4; i++)
        leat__thread_join(&thread[i]);
    leat_reader_close(reader);
    fixture_remove(directory);
}
END_TEST

static void *open_and_read(void *argument)
{
    for (int i = 0; i < 20; i++) {
        leat_reader *reader = open_reader(argument);
        ck_assert_int_eq(count_to_end(reader), 100);
        leat_reader_close(reader);
    }
    return NULL;
}

START_TEST(threads_open_and_close_one_database)
{
    char directory[FIXTURE_PATH];
    make_database(directory, make_image, 100);
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
    make_database(directory, make_image, 100);
    for (int i = 0; i < 200; i++)
        reader[i] = open_reader(i % 2 ? in(directory, "data.mdb") : directory);
    for (int i = 0; i < 200; i += 10)
        ck_assert_int_eq(count_to_end(reader[i]), 100);
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
            fixture_put(env, make_image, from, from + 100, 0);
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
    make_database(directory, make_image, 100);
    leat_reader *old = open_reader(directory);
    leat_sample sample;
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_reader_next(old, &sample), LEAT_OK);
    append_elsewhere(directory, 100, 3000);
    leat_reader *new = open_reader(directory);
    append_elsewhere(directory, 3000, 6000);
    leat_reader *newest = open_reader(directory);
    for (int epoch = 0; epoch < 2; epoch++) {
        ck_assert_int_eq(leat_reader_reset(old), LEAT_OK);
        ck_assert_int_eq(count_to_end(old), 100);
        ck_assert_int_eq(leat_reader_reset(new), LEAT_OK);
        ck_assert_int_eq(count_to_end(new), 3000);
    }
    ck_assert_int_eq(count_to_end(newest), 6000);
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
    make_database(directory, make_image, 100);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        MDB_env *env = fixture_env(directory, MDB_WRITEMAP);
        for (int i = 100; i < 2000; i++)
            fixture_put(env, make_image, i, i + 1, 0);
        mdb_env_close(env);
        _exit(0);
    }
    int result;
    int64_t last = 100;
    while (waitpid(child, &result, WNOHANG) == 0) {
        leat_reader *reader = open_reader(directory);
        int64_t n = count_to_end(reader);
        ck_assert_int_ge(n, last);
        last = n;
        leat_reader_close(reader);
    }
    ck_assert_int_eq(result, 0);
    leat_reader *reader = open_reader(directory);
    ck_assert_int_eq(count_to_end(reader), 2000);
    leat_reader_close(reader);
    fixture_remove(directory);
}
END_TEST

/* A commit's meta page is in the file long before the disk says it has it. */
START_TEST(readers_open_while_a_commit_waits_for_the_disk)
{
    char directory[FIXTURE_PATH];
    make_database(directory, make_image, 10);
    int ready[2], done[2];
    ck_assert_int_eq(pipe(ready), 0);
    ck_assert_int_eq(pipe(done), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    char byte = 0;
    if (child == 0) {
        /* While it is open elsewhere, the lock file says what is committed. */
        MDB_env *env = fixture_env(directory, MDB_RDONLY);
        if (write(ready[1], &byte, 1) != 1 || read(done[0], &byte, 1) != 1)
            _exit(1);
        mdb_env_close(env);
        _exit(0);
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    enum { META = 16, TXNID = 144, META_END = 152 };
    size_t size;
    unsigned char *bytes = fixture_load(in(directory, "data.mdb"), &size);
    ck_assert_uint_eq(bytes[4096 + TXNID], 1);
    memcpy(bytes + META, bytes + 4096 + META, META_END - META);
    bytes[TXNID] = 2;
    fixture_store(in(directory, "data.mdb"), bytes, size);
    free(bytes);

    leat_reader *reader = open_reader(directory);
    ck_assert_int_eq(count_to_end(reader), 10);
    leat_reader_close(reader);
    ck_assert_int_eq(write(done[1], &byte, 1), 1);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    fixture_remove(directory);
}
END_TEST

START_TEST(a_full_table_of_readers_is_reported)
{
    char directory[FIXTURE_PATH];
    MDB_env *env;
    MDB_txn *txn[2];
    make_database(directory, make_image, 10);
    int ready[2], done[2];
    ck_assert_int_eq(pipe(ready), 0);
    ck_assert_int_eq(pipe(done), 0);
    ck_assert_int_eq(unlink(in(directory, "lock.mdb")), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    char byte = 0;
    if (child == 0) {
        mdb_env_create(&env);
        mdb_env_set_maxreaders(env, 2);
        mdb_env_open(env, directory, MDB_RDONLY | MDB_NOTLS, 0644);
        mdb_txn_begin(env, NULL, MDB_RDONLY, &txn[0]);
        mdb_txn_begin(env, NULL, MDB_RDONLY, &txn[1]);
        if (write(ready[1], &byte, 1) != 1 || read(done[0], &byte, 1) != 1)
            _exit(1);
        _exit(0);
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    ck_assert_int_eq(open_status(directory), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "MDB_READERS_FULL"));
    ck_assert_int_eq(write(done[1], &byte, 1), 1);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    /* The slots of a process that died are free again. */
    ck_assert_int_eq(open_status(directory), LEAT_OK);
    fixture_remove(directory);
}
END_TEST

START_TEST(a_sealed_directory_is_read_and_left_alone)
{
    char directory[FIXTURE_PATH];
    make_database(directory, make_image, 10);
    ck_assert_int_eq(unlink(in(directory, "lock.mdb")), 0);
    ck_assert_int_eq(chmod(directory, 0555), 0);
    leat_reader *reader = open_reader(directory);
    ck_assert_int_eq(count_to_end(reader), 10);
    leat_reader_close(reader);
    reader = open_reader(in(directory, "data.mdb"));
    ck_assert_int_eq(count_to_end(reader), 10);
    leat_reader_close(reader);
    ck_assert_int_ne(access(in(directory, "lock.mdb"), F_OK), 0);
    ck_assert_int_ne(access(in(directory, "data.mdb-lock"), F_OK), 0);
    fixture_remove(directory);
}
END_TEST

START_TEST(a_map_size_of_terabytes_costs_nothing)
{
    char directory[FIXTURE_PATH];
    make_database(directory, make_image, 100);
    size_t size;
    unsigned char *bytes = fixture_load(in(directory, "data.mdb"), &size);
    uint64_t map_size = (uint64_t)2 << 40;
    memcpy(bytes + 32, &map_size, sizeof(map_size));
    memcpy(bytes + 4096 + 32, &map_size, sizeof(map_size));
    fixture_store(in(directory, "data.mdb"), bytes, size);
    free(bytes);
    ck_assert_int_eq(truncate(in(directory, "data.mdb"), (off_t)2 << 40), 0);
    leat_reader *reader = open_reader(directory);
    ck_assert_int_eq(count_to_end(reader), 100);
    leat_reader_close(reader);
    fixture_remove(directory);
}
END_TEST

static void expect_error(const char *path, int status, const char *says)
{
    ck_assert_int_eq(open_status(path), status);
    ck_assert_msg(strstr(leat_last_error(), says) != NULL, "%s: %s", path,
                  leat_last_error());
    ck_assert_ptr_nonnull(strstr(leat_last_error(), path));
}

START_TEST(what_is_no_database_is_refused_with_a_sentence)
{
    char directory[FIXTURE_PATH];
    const char text[] = "This is a text, and not at all a database of LMDB. "
                        "It is long enough to hold a meta page, which it has "
                        "none of, and so should be told apart from one by its "
                        "magic, and by nothing else than that.";
    fixture_directory(directory);
    expect_error("/nowhere/at/all", LEAT_EIO, "No such file");
    expect_error(directory, LEAT_EIO, "no data.mdb");
    fixture_store(in(directory, "CURRENT"), "x", 1);
    expect_error(directory, LEAT_EIO, "LevelDB");
    fixture_store(in(directory, "data.mdb"), "", 0);
    expect_error(directory, LEAT_EFORMAT, "empty");
    fixture_store(in(directory, "data.mdb"), text, 20);
    expect_error(directory, LEAT_EFORMAT, "truncated");
    fixture_store(in(directory, "data.mdb"), text, sizeof(text));
    expect_error(directory, LEAT_EFORMAT, "not an LMDB");
    ck_assert_int_eq(unlink(in(directory, "data.mdb")), 0);
    ck_assert_int_eq(mkfifo(in(directory, "data.mdb"), 0644), 0);
    expect_error(directory, LEAT_EIO, "not a regular file");
    expect_error(in(directory, "data.mdb"), LEAT_EIO, "not a regular file");
    expect_error("/dev/zero", LEAT_EIO, "not a regular file");
    ck_assert_int_ne(access(in(directory, "lock.mdb"), F_OK), 0);
    fixture_remove(directory);
}
END_TEST

/* Runs `body` as a user who owns nothing; the superuser may do everything. */
static void as_nobody(void (*body)(const char *), const char *directory)
{
    if (geteuid() == 0)
        ck_assert_int_eq(seteuid(65534), 0);
    body(directory);
    if (getuid() == 0)
        ck_assert_int_eq(seteuid(0), 0);
}

static void expect_no_permission(const char *directory)
{
    expect_error(directory, LEAT_EIO, "Permission denied");
}

START_TEST(a_file_without_permission_is_refused)
{
    char directory[FIXTURE_PATH];
    make_database(directory, make_image, 10);
    ck_assert_int_eq(chmod(directory, 0755), 0);
    ck_assert_int_eq(chmod(in(directory, "data.mdb"), 0), 0);
    as_nobody(expect_no_permission, directory);
    fixture_remove(directory);
}
END_TEST

static void expect_ten(const char *directory)
{
    leat_reader *reader = open_reader(directory);
    ck_assert_int_eq(count_to_end(reader), 10);
    leat_reader_close(reader);
}

START_TEST(a_database_of_someone_else_is_read_without_a_lock)
{
    char directory[FIXTURE_PATH];
    make_database(directory, make_image, 10);
    ck_assert_int_eq(chmod(directory, 0555), 0);
    ck_assert_int_eq(chmod(in(directory, "lock.mdb"), 0444), 0);
    as_nobody(expect_ten, directory);
    ck_assert_int_eq(chmod(in(directory, "lock.mdb"), 0), 0);
    as_nobody(expect_ten, directory);
    ck_assert_int_eq(chmod(directory, 0755), 0);
    ck_assert_int_eq(unlink(in(directory, "lock.mdb")), 0);
    if (geteuid() == 0) {
        as_nobody(expect_ten, directory);
        ck_assert_int_ne(access(in(directory, "lock.mdb"), F_OK), 0);
    }
    fixture_remove(directory);
}
END_TEST

START_TEST(a_truncated_database_leaves_no_lock_behind)
{
    char directory[FIXTURE_PATH];
    make_database(directory, make_image, 500);
    ck_assert_int_eq(unlink(in(directory, "lock.mdb")), 0);
    ck_assert_int_eq(truncate(in(directory, "data.mdb"), 3 * 4096), 0);
    expect_error(directory, LEAT_EFORMAT, "truncated");
    ck_assert_int_ne(access(in(directory, "lock.mdb"), F_OK), 0);
    fixture_remove(directory);
}
END_TEST

START_TEST(a_damaged_page_is_a_sticky_error_behind_what_is_good)
{
    char directory[FIXTURE_PATH];
    leat_sample sample;
    make_database(directory, make_image, 1000);
    size_t size;
    unsigned char *bytes = fixture_load(in(directory, "data.mdb"), &size);
    /* Leaves are written in the order of their keys here: damage one. */
    memset(bytes + 10 * 4096, 0xa5, 4096);
    fixture_store(in(directory, "data.mdb"), bytes, size);
    free(bytes);
    leat_reader *reader = open_reader(directory);
    leat_sample_init(&sample);
    for (int epoch = 0; epoch < 2; epoch++) {
        int64_t good = 0;
        int status;
        while (!(status = leat_reader_next(reader, &sample)))
            assert_sample(&sample, good++);
        ck_assert_int_gt(good, 0);
        ck_assert_int_eq(status, LEAT_EFORMAT);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "page 10"));
        ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_EFORMAT);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "page 10"));
        ck_assert_int_eq(leat_reader_reset(reader), LEAT_OK);
    }
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    fixture_remove(directory);
}
END_TEST

START_TEST(a_cancelled_reader_gives_nothing_any_more)
{
    char directory[FIXTURE_PATH];
    leat_sample sample, *out = &sample;
    const int64_t index = 0;
    int got;
    make_database(directory, make_image, 10);
    leat_reader *reader = open_reader(directory);
    leat_sample_init(&sample);
    leat_reader_cancel(reader);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_ECANCELLED);
    ck_assert_int_eq(leat_reader_read_at(reader, &index, &out, 1, &got),
                     LEAT_ECANCELLED);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    fixture_remove(directory);
}
END_TEST

START_TEST(a_token_fits_its_own_data_set_alone)
{
    char directory[FIXTURE_PATH], other[FIXTURE_PATH];
    leat_token token;
    make_database(directory, make_image, 10);
    leat_reader *reader = open_reader(directory);
    leat_token_init(&token);
    ck_assert_int_eq(leat_reader_save(reader, &token), LEAT_OK);
    ck_assert_int_eq(leat_reader_restore(reader, &token), LEAT_OK);
    ck_assert_int_eq(leat_reader_restore(reader, &token), LEAT_EINVAL);
    ck_assert_int_eq(count_to_end(reader), 10);
    leat_reader_close(reader);
    make_database(other, make_image, 11);
    reader = open_reader(other);
    token.cursor = 0;
    ck_assert_int_eq(leat_reader_restore(reader, &token), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "has 11 records"));
    leat_reader_close(reader);
    leat_token_finish(&token);
    fixture_remove(directory);
    fixture_remove(other);
}
END_TEST

/* Everything that takes memory, up to the first failure. */
static int use_once(const char *path)
{
    leat_pipeline *pipeline = NULL;
    leat_reader *reader = NULL;
    leat_sample sample, *out = &sample;
    const leat_field_spec *spec;
    const int64_t index = 5;
    int n, got;
    leat_sample_init(&sample);
    int status = leat_pipeline_lmdb(&pipeline, path, NULL);
    if (!status)
        status = leat_pipeline_open(pipeline, &reader);
    if (!status)
        status = leat_reader_fields(reader, &spec, &n);
    if (!status)
        status = leat_reader_next(reader, &sample);
    if (!status)
        status = leat_reader_read_at(reader, &index, &out, 1, &got);
    leat_reader_close(reader);
    leat_pipeline_unref(pipeline);
    leat_sample_finish(&sample);
    return status;
}

START_TEST(a_reader_survives_every_failing_allocation)
{
    char directory[FIXTURE_PATH];
    make_database(directory, make_image, 10);
    int n = 0, status = LEAT_ENOMEM;
    for (; status; n++) {
        leat__alloc_fail_at(n);
        status = use_once(directory);
        ck_assert(status == LEAT_OK || status == LEAT_ENOMEM);
    }
    leat__alloc_fail_at(-1);
    ck_assert_int_gt(n, 10);
    ck_assert_int_eq(use_once(directory), LEAT_OK);
    fixture_remove(directory);
}
END_TEST

START_TEST(reading_again_takes_no_memory)
{
    char directory[FIXTURE_PATH];
    make_database(directory, make_image, 100);
    leat_reader *reader = open_reader(directory);
    leat_sample sample;
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    int64_t before = leat__alloc_count();
    while (leat_reader_next(reader, &sample) == LEAT_OK)
        ;
    ck_assert_int_eq(leat__alloc_count(), before);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    fixture_remove(directory);
}
END_TEST

static const char *shared_database(const char *name)
{
    static char path[1024];
    const char *place = getenv("LEAT_SHARED_DATA");
    snprintf(path, sizeof(path), "%s/lmdb/%s", place ? place : LEAT_SHARED_DATA,
             name);
    if (access(path, R_OK) == 0)
        return path;
    printf("skipped: no %s\n", path);
    return NULL;
}

START_TEST(mnist_has_its_labels)
{
    static const int expected[10] = {980, 1135, 1032, 1010, 982,
                                     892, 958,  1028, 974,  1009};
    const char *path = shared_database("mnist_test_lmdb");
    int labels[10] = {0};
    if (!path)
        return;
    leat_reader *reader = open_reader(path);
    leat_sample sample;
    leat_sample_init(&sample);
    while (leat_reader_next(reader, &sample) == LEAT_OK) {
        ck_assert_int_eq(sample.field[0].shape[1], 28);
        ck_assert_int_ge(label_of(&sample), 0);
        ck_assert_int_lt(label_of(&sample), 10);
        labels[label_of(&sample)]++;
        /* Written again, the Datum has the bytes that Caffe wrote. */
        unsigned char again[1024];
        leat_datum datum = {
            1,   28,   28, label_of(&sample), 0, sample.field[0].data,
            784, NULL, 0};
        size_t before = 9;
        ck_assert_uint_eq(leat_datum_write(&datum, again), 795);
        ck_assert_mem_eq((const char *)sample.field[0].data - before, again,
                         795);
    }
    ck_assert_mem_eq(labels, expected, sizeof(labels));
    leat_sample_finish(&sample);
    leat_reader_close(reader);
}
END_TEST

START_TEST(encoded_images_are_bytes)
{
    const char *path = shared_database("imagenet5_jpeg_lmdb");
    const leat_field_spec *spec;
    int n;
    if (!path)
        return;
    leat_reader *reader = open_reader(path);
    leat_sample sample;
    leat_sample_init(&sample);
    ck_assert_int_eq(leat_reader_fields(reader, &spec, &n), LEAT_OK);
    ck_assert_int_eq(spec[0].dtype, LEAT_BYTES);
    ck_assert_int_eq(spec[0].ndim, -1);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(label_of(&sample), 827);
    ck_assert_int_eq(sample.field[0].dtype, LEAT_BYTES);
    ck_assert_mem_eq(sample.field[0].data, "\xff\xd8\xff", 3);
    ck_assert_int_eq(leat_reader_next(reader, &sample), LEAT_OK);
    ck_assert_int_eq(label_of(&sample), 506);
    leat_sample_finish(&sample);
    leat_reader_close(reader);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lmdb");
    TCase *tcase = tcase_create("lmdb");
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, records_come_in_order_and_the_end_comes_twice);
    tcase_add_test(tcase, batches_of_every_size_give_the_same);
    tcase_add_test(tcase, the_first_record_tells_the_fields);
    tcase_add_test(tcase, the_first_good_record_tells_the_fields);
    tcase_add_test(tcase, an_empty_database_has_fields_and_ends_at_once);
    tcase_add_test(tcase, a_bad_record_is_named_and_stepped_over);
    tcase_add_test(tcase, located_records_are_those_of_the_walk);
    tcase_add_test(tcase, read_at_gives_the_good_prefix_and_then_the_error);
    tcase_add_test(tcase, seek_goes_to_every_record_and_to_the_end);
    tcase_add_test(tcase, a_failed_seek_changes_nothing);
    tcase_add_test(tcase, threads_read_at_random_beside_next);
    tcase_add_test(tcase, threads_open_and_close_one_database);
    tcase_add_test(tcase, two_hundred_readers_share_one_database);
    tcase_add_test(tcase, a_reader_keeps_its_snapshot_while_a_writer_appends);
    tcase_add_test(tcase, readers_open_while_a_writer_commits);
    tcase_add_test(tcase, readers_open_while_a_commit_waits_for_the_disk);
    tcase_add_test(tcase, a_full_table_of_readers_is_reported);
    tcase_add_test(tcase, a_sealed_directory_is_read_and_left_alone);
    tcase_add_test(tcase, a_map_size_of_terabytes_costs_nothing);
    tcase_add_test(tcase, what_is_no_database_is_refused_with_a_sentence);
    tcase_add_test(tcase, a_file_without_permission_is_refused);
    tcase_add_test(tcase, a_database_of_someone_else_is_read_without_a_lock);
    tcase_add_test(tcase, a_truncated_database_leaves_no_lock_behind);
    tcase_add_test(tcase, a_damaged_page_is_a_sticky_error_behind_what_is_good);
    tcase_add_test(tcase, a_cancelled_reader_gives_nothing_any_more);
    tcase_add_test(tcase, a_token_fits_its_own_data_set_alone);
    tcase_add_test(tcase, a_reader_survives_every_failing_allocation);
    tcase_add_test(tcase, reading_again_takes_no_memory);
    tcase_add_test(tcase, mnist_has_its_labels);
    tcase_add_test(tcase, encoded_images_are_bytes);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
