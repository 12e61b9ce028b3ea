#include "support/sanitizer.h"
#include "support/suite.h"
#include "tools/database/inspection.h"

#include <check.h>
#include <lmdb.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A power of two, as what is kept of them grows. */
#define RECORDS 65536

static char directory[] = "/tmp/leat_inspection_XXXXXX";

/* Images that end early in so many ways; each third is an image of one pixel.
 */
static MDB_val value_of(int i)
{
    static char bad[] =
        "\x22\x24\xff\xd8\xff\xe0................................"
        "\x38\x01";
    static char good[] = "\x08\x01\x10\x01\x18\x01\x22\x01x\x28\x01";
    return i % 3 == 2 ? (MDB_val){sizeof(good) - 1, good}
                      : (MDB_val){sizeof(bad) - 1, bad};
}

static void write_records(void)
{
    MDB_env *environment;
    MDB_txn *transaction;
    MDB_dbi database;
    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert_int_eq(mdb_env_create(&environment), 0);
    ck_assert_int_eq(mdb_env_set_mapsize(environment, 64 << 20), 0);
    ck_assert_int_eq(mdb_env_open(environment, directory, MDB_NOSYNC, 0600), 0);
    ck_assert_int_eq(mdb_txn_begin(environment, NULL, 0, &transaction), 0);
    ck_assert_int_eq(mdb_dbi_open(transaction, NULL, 0, &database), 0);
    for (int i = 0; i < RECORDS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%08d", i);
        MDB_val key = {8, name};
        MDB_val value = value_of(i);
        ck_assert_int_eq(
            mdb_put(transaction, database, &key, &value, MDB_APPEND), 0);
    }
    ck_assert_int_eq(mdb_txn_commit(transaction), 0);
    mdb_env_close(environment);
}

static void remove_records(void)
{
    char path[64];
    snprintf(path, sizeof(path), "%s/data.mdb", directory);
    unlink(path);
    snprintf(path, sizeof(path), "%s/lock.mdb", directory);
    unlink(path);
    rmdir(directory);
}

START_TEST(bad_records_are_listed_in_order_whoever_found_them)
{
    struct inspection found;
    ck_assert_int_eq(inspection_run(&found, directory, 0, 1, NULL, NULL), 0);
    ck_assert_int_eq(found.good, RECORDS / 3);
    ck_assert_int_eq(found.bad, RECORDS - RECORDS / 3);
    ck_assert_uint_eq(found.flaws, (size_t)found.bad);
    int64_t expected = 0;
    for (size_t i = 0; i < found.flaws; i++) {
        char key[32];
        const struct flaw *flaw = &found.flaw[i];
        snprintf(key, sizeof(key), "%08lld", (long long)expected);
        ck_assert_int_eq(flaw->record, expected);
        ck_assert_str_eq(flaw->key, key);
        ck_assert_ptr_nonnull(strstr(flaw->reason, "JPEG"));
        expected += expected % 3 == 0 ? 1 : 2;
    }
    inspection_finish(&found);
}
END_TEST

/* Not by sanitizers, whose memory is their own affair. */
#if !IS_SANITIZED
static size_t taken(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

START_TEST(a_bad_record_takes_little_memory)
{
    struct inspection found;
    size_t before = taken();
    ck_assert_int_eq(inspection_run(&found, directory, 0, 1, NULL, NULL), 0);
    size_t each = (taken() - before) / found.flaws;
    /* Room for twice as many, and a key of eight letters. */
    ck_assert_uint_le(each, 2 * sizeof(struct flaw) + 12);
    inspection_finish(&found);
}
END_TEST
#endif

/* LMDB's keys are whole; others say how long they are. */
START_TEST(a_key_is_whole_or_says_how_long_it_is)
{
    static char key[2000];
    static char expected[KEY_TEXT];
    char text[KEY_TEXT];
    memset(key, 'k', sizeof(key));
    snprintf(expected, sizeof(expected), "%.511s", key);
    ck_assert_str_eq(inspection_key(text, key, 511, 0), expected);
    snprintf(expected, sizeof(expected), "%.511s... (2000 bytes)", key);
    ck_assert_str_eq(inspection_key(text, key, 2000, 0), expected);
    snprintf(expected, sizeof(expected), "%.64s... (90 bytes)", key);
    ck_assert_str_eq(inspection_key(text, key, 64, 26), expected);
    memset(key, 0, sizeof(key));
    ck_assert_uint_eq(strlen(inspection_key(text, key, 2000, SIZE_MAX - 2000)),
                      4 * 511 + strlen("... (18446744073709551615 bytes)"));
}
END_TEST

START_TEST(a_key_reads_back_from_its_text)
{
    static const struct {
        const char *key;
        size_t size;
        const char *text;
    } keys[] = {
        {"00000000_\u00e9.jpg", 15, "00000000_\u00e9.jpg"},
        {"a\tb\n\x7f", 5, "a\tb\n\x7f"},
        {"dir\\img.jpg", 11, "dir\\img.jpg"},
        {"\\xff\xff", 5, "\\x5cxff\\xff"},
        {"\\x5cxff\\x5", 10, "\\x5cx5cxff\\x5"},
        {"\0\0\x01\xc8", 4, "\\x00\\x00\x01\\xc8"},
        {"cut \xc3", 5, "cut \\xc3"},
        {NULL, 0, ""},
    };
    char text[KEY_TEXT];
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        ck_assert_str_eq(inspection_key(text, keys[i].key, keys[i].size, 0),
                         keys[i].text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("inspection");
    TCase *tcase = tcase_create("inspection");
    tcase_add_unchecked_fixture(tcase, write_records, remove_records);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, bad_records_are_listed_in_order_whoever_found_them);
    tcase_add_test(tcase, a_key_is_whole_or_says_how_long_it_is);
    tcase_add_test(tcase, a_key_reads_back_from_its_text);
#if !IS_SANITIZED
    tcase_add_test(tcase, a_bad_record_takes_little_memory);
#endif
    return suite_run(suite);
}
