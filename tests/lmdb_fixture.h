/* lmdb_fixture.h: databases that tests write, by liblmdb and by hand. */
#ifndef LEAT_TESTS_LMDB_FIXTURE_H
#define LEAT_TESTS_LMDB_FIXTURE_H

#include <check.h>
#include <errno.h>
#include <ftw.h>
#include <lmdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIXTURE_PATH 256

/* A new directory of the test's own, in `out`. */
static inline const char *fixture_directory(char out[FIXTURE_PATH])
{
    const char *place = getenv("TMPDIR");
    snprintf(out, FIXTURE_PATH, "%s/leat-test-XXXXXX", place ? place : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(out));
    return out;
}

static inline int fixture_remove_one(const char *path, const struct stat *found,
                                     int type, struct FTW *walk)
{
    (void)found;
    (void)type;
    (void)walk;
    return remove(path);
}

static inline void fixture_remove(const char *directory)
{
    chmod(directory, 0755);
    nftw(directory, fixture_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static inline MDB_env *fixture_env(const char *directory, unsigned flags)
{
    MDB_env *env;
    ck_assert_int_eq(mdb_env_create(&env), 0);
    ck_assert_int_eq(mdb_env_set_mapsize(env, (size_t)64 << 20), 0);
    ck_assert_int_eq(mdb_env_set_maxdbs(env, 4), 0);
    int code = mdb_env_open(env, directory, flags | MDB_NOSYNC, 0644);
    ck_assert_msg(code == 0, "%s: %s", directory, mdb_strerror(code));
    return env;
}

/* What the record of that number holds. */
typedef struct fixture_record {
    char key[512];
    size_t key_size;
    unsigned char value[20000];
    size_t value_size;
} fixture_record;

typedef void fixture_maker(int number, fixture_record *out);

static inline void fixture_put(MDB_env *env, fixture_maker *make, int from,
                               int to, unsigned flags)
{
    static fixture_record record;
    MDB_txn *txn;
    MDB_dbi dbi;
    ck_assert_int_eq(mdb_txn_begin(env, NULL, 0, &txn), 0);
    ck_assert_int_eq(mdb_dbi_open(txn, NULL, flags, &dbi), 0);
    for (int i = from; i < to; i++) {
        make(i, &record);
        MDB_val key = {record.key_size, record.key};
        MDB_val value = {record.value_size, record.value};
        ck_assert_int_eq(mdb_put(txn, dbi, &key, &value, 0), 0);
    }
    ck_assert_int_eq(mdb_txn_commit(txn), 0);
}

/* A database of `n` records in one transaction. */
static inline void fixture_write(const char *directory, fixture_maker *make,
                                 int n)
{
    MDB_env *env = fixture_env(directory, 0);
    fixture_put(env, make, 0, n, 0);
    mdb_env_close(env);
}

/* The file's bytes in memory of exactly their size; the caller frees them. */
static inline unsigned char *fixture_load(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s: %s", path, strerror(errno));
    struct stat found;
    ck_assert_int_eq(fstat(fileno(file), &found), 0);
    *size = (size_t)found.st_size;
    unsigned char *bytes = malloc(*size ? *size : 1);
    ck_assert_uint_eq(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

static inline void fixture_store(const char *path, const void *bytes,
                                 size_t size)
{
    FILE *file = fopen(path, "wb");
    ck_assert_msg(file != NULL, "%s: %s", path, strerror(errno));
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

#endif
