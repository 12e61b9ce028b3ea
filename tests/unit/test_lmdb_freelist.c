#include "support/images.h"

#include "base/error.h"
#include "readers/lmdb/lmdb_freelist.h"
#include "support/suite.h"

#include <leat.h>
#include <leat/lmdb_check.h>

#include <unistd.h>

enum { RECORDS = 100, PAGE = 4096, BIG = 200000 };

static char directory[FIXTURE_PATH];
static char path[FIXTURE_PATH + 16];
static unsigned char *bytes;
static size_t size;

/* Appends a value and takes it back in one transaction. */
static void append_and_free(MDB_env *env)
{
    static char value[BIG];
    MDB_txn *txn;
    MDB_dbi dbi;
    MDB_val key = {3, "big"}, data = {sizeof(value), value};
    ck_assert_int_eq(mdb_txn_begin(env, NULL, 0, &txn), 0);
    ck_assert_int_eq(mdb_dbi_open(txn, NULL, 0, &dbi), 0);
    ck_assert_int_eq(mdb_put(txn, dbi, &key, &data, 0), 0);
    ck_assert_int_eq(mdb_del(txn, dbi, &key, NULL), 0);
    ck_assert_int_eq(mdb_txn_commit(txn), 0);
}

/* A database whose last pages are free and not in the file. */
static void begin(void)
{
    fixture_directory(directory);
    snprintf(path, sizeof(path), "%s/data.mdb", directory);
    MDB_env *env = fixture_env(directory, 0);
    for (int i = 0; i < 10; i++)
        fixture_put(env, images_record, 0, RECORDS, 0);
    append_and_free(env);
    mdb_env_close(env);
    bytes = fixture_load(path, &size);
}

static void end(void)
{
    free(bytes);
    fixture_remove(directory);
}

static void latest_meta(leat__lmdb_meta *out)
{
    leat__lmdb_meta meta[2] = {{0}};
    ck_assert_int_eq(leat__lmdb_meta_parse(&meta[0], path, 0, bytes), 0);
    ck_assert_int_eq(leat__lmdb_meta_parse(&meta[1], path, 1, bytes + PAGE), 0);
    *out = meta[meta[0].txnid < meta[1].txnid];
}

static int64_t count_records(void)
{
    leat_pipeline *pipeline;
    leat_reader *reader;
    leat_sample sample;
    int64_t records = 0;
    ck_assert_int_eq(leat_pipeline_lmdb(&pipeline, directory, NULL), LEAT_OK);
    int status = leat_pipeline_open(pipeline, &reader);
    leat_pipeline_unref(pipeline);
    if (status)
        return -1;
    leat_sample_init(&sample);
    while (!leat_reader_next(reader, &sample))
        records++;
    leat_sample_finish(&sample);
    leat_reader_close(reader);
    return records;
}

START_TEST(a_file_may_end_before_its_last_page)
{
    leat__lmdb_meta meta;
    latest_meta(&meta);
    uint64_t last = meta.last_page;
    ck_assert_uint_gt(last, size / PAGE);
    ck_assert_int_eq(leat__lmdb_freelist_cut(&meta, path, bytes, size),
                     LEAT_OK);
    ck_assert_uint_eq(meta.last_page, size / PAGE - 1);
    ck_assert_int_eq(count_records(), RECORDS);
}
END_TEST

START_TEST(it_is_no_damage_to_a_check)
{
    leat_lmdb_check *check;
    leat_lmdb_check_entry entry;
    int got, records = 0;
    ck_assert_int_eq(leat_lmdb_check_open(&check, directory), LEAT_OK);
    for (; !leat_lmdb_check_next(check, &entry, 1, &got); records++)
        ck_assert_ptr_nonnull(entry.value);
    ck_assert_int_eq(records, RECORDS);
    leat_lmdb_check_close(check);
}
END_TEST

START_TEST(what_is_missing_and_not_free_is_truncated)
{
    leat__lmdb_meta meta;
    for (size_t pages = 2; pages < size / PAGE; pages++) {
        latest_meta(&meta);
        unsigned char *part = malloc(pages * PAGE);
        memcpy(part, bytes, pages * PAGE);
        int status = leat__lmdb_freelist_cut(&meta, path, part, pages * PAGE);
        /* LMDB keeps the trees of the latest transaction, free pages not. */
        if (status)
            ck_assert_ptr_nonnull(strstr(leat_last_error(), "truncated"));
        else
            ck_assert_uint_lt(meta.root, pages);
        free(part);
    }
    ck_assert_int_eq(truncate(path, 3 * PAGE), 0);
    ck_assert_int_eq(count_records(), -1);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "truncated"));
}
END_TEST

/* All that liblmdb's own cursor finds, in its order. */
START_TEST(the_list_is_that_of_liblmdb)
{
    MDB_env *env = fixture_env(directory, 0);
    MDB_txn *txn;
    MDB_cursor *cursor;
    MDB_val key, value;
    leat__lmdb_meta meta;
    leat__lmdb_map map;
    leat__lmdb_freelist list;
    leat__lmdb_freed freed;
    size_t lists = 0;
    latest_meta(&meta);
    ck_assert_int_eq(leat__lmdb_freelist_cut(&meta, path, bytes, size),
                     LEAT_OK);
    ck_assert_int_eq(leat__lmdb_map_init(&map, path, bytes, size, &meta), 0);
    ck_assert_int_eq(leat__lmdb_freelist_init(&list, &map), LEAT_OK);
    ck_assert_int_eq(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn), 0);
    ck_assert_int_eq(mdb_cursor_open(txn, 0, &cursor), 0);
    while (!mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
        const size_t *ids = value.mv_data;
        ck_assert_int_eq(leat__lmdb_freelist_next(&list, &freed), LEAT_OK);
        ck_assert_uint_eq(freed.txnid, *(const size_t *)key.mv_data);
        ck_assert_uint_eq(freed.n, ids[0]);
        for (size_t i = 0; i < freed.n; i++)
            ck_assert_uint_eq(leat__lmdb_freed_page(&freed, i), ids[i + 1]);
        lists++;
    }
    ck_assert_int_eq(leat__lmdb_freelist_next(&list, &freed), LEAT_END);
    ck_assert_uint_gt(lists, 0);
    mdb_cursor_close(cursor);
    mdb_txn_abort(txn);
    mdb_env_close(env);
}
END_TEST

/* Under the address sanitizer nothing but the bytes may be touched. */
START_TEST(a_damaged_list_does_no_harm)
{
    leat__lmdb_meta whole, meta;
    latest_meta(&whole);
    unsigned char *copy = malloc(size);
    memcpy(copy, bytes, size);
    size_t from = (size_t)whole.free_root * PAGE;
    int refused = 0;
    for (size_t at = from; at < from + PAGE; at++) {
        for (int bit = 0; bit < 8; bit++) {
            copy[at] ^= (unsigned char)(1 << bit);
            meta = whole;
            int status = leat__lmdb_freelist_cut(&meta, path, copy, size);
            ck_assert(status == LEAT_OK || status == LEAT_EFORMAT);
            refused += status != LEAT_OK;
            copy[at] ^= (unsigned char)(1 << bit);
        }
    }
    ck_assert_int_gt(refused, 0);
    free(copy);
}
END_TEST

static void put(unsigned char *at, uint64_t value, size_t n)
{
    memcpy(at, &value, n);
}

/* A leaf of LISTS nodes, which all lead to one value of LISTED pages. */
START_TEST(lists_of_more_pages_than_there_are_are_refused)
{
    enum { LISTS = 100, LISTED = 500, NODE = 24 };
    static unsigned char made[4 * PAGE];
    unsigned char *leaf = made + 2 * PAGE, *value = made + 3 * PAGE;
    leat__lmdb_meta meta = {.page_size = PAGE,
                            .depth = 0,
                            .root = LEAT__LMDB_NO_PAGE,
                            .free_depth = 1,
                            .free_entries = LISTS,
                            .free_root = 2,
                            .last_page = 3 + LISTS};
    put(leaf, 2, 8);
    put(leaf + 10, LEAT__LMDB_LEAF, 2);
    put(leaf + 12, 16 + 2 * LISTS, 2);
    put(leaf + 14, PAGE - LISTS * NODE, 2);
    for (unsigned i = 0; i < LISTS; i++) {
        unsigned offset = PAGE - (LISTS - i) * NODE;
        put(leaf + 16 + 2 * i, offset, 2);
        put(leaf + offset, 8 * (LISTED + 1), 4);
        put(leaf + offset + 4, LEAT__LMDB_NODE_OVERFLOW, 2);
        put(leaf + offset + 6, 8, 2);
        put(leaf + offset + 8, i + 1, 8);
        put(leaf + offset + 16, 3, 8);
    }
    put(value, 3, 8);
    put(value + 10, 4, 2);
    put(value + 12, 1, 4);
    put(value + 16, LISTED, 8);
    /* One page that is not in the file: LISTS times, as many as it lacks. */
    put(value + 24, 4, 8);
    ck_assert_int_eq(leat__lmdb_freelist_cut(&meta, "db", made, sizeof(made)),
                     LEAT_EFORMAT);
    ck_assert_uint_eq(meta.last_page, 3 + LISTS);
}
END_TEST

START_TEST(a_part_says_no_more_pages_than_it_has_room_for)
{
    const uint64_t key = 7;
    const unsigned char *number = (const unsigned char *)&key;
    uint64_t value[4] = {3, 11, 12, 13};
    leat__lmdb_freed freed;
    ck_assert_int_eq(leat__lmdb_freed_read(&freed, "db", number, 8,
                                           (unsigned char *)value, 32),
                     LEAT_OK);
    ck_assert_uint_eq(freed.n, 3);
    ck_assert_ptr_eq(freed.pages, (unsigned char *)&value[1]);
    for (size_t short_of = 0; short_of < 32; short_of++)
        ck_assert_int_eq(leat__lmdb_freed_read(&freed, "db", number, 8,
                                               (unsigned char *)value,
                                               short_of),
                         LEAT_EFORMAT);
    ck_assert_int_eq(leat__lmdb_freed_read(&freed, "db", number, 7,
                                           (unsigned char *)value, 32),
                     LEAT_EFORMAT);
    value[0] = 4;
    ck_assert_int_eq(leat__lmdb_freed_read(&freed, "db", number, 8,
                                           (unsigned char *)value, 32),
                     LEAT_EFORMAT);
    value[0] = 0;
    ck_assert_int_eq(leat__lmdb_freed_read(&freed, "db", number, 8,
                                           (unsigned char *)value, 8),
                     LEAT_OK);
    ck_assert_uint_eq(freed.n, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lmdb_freelist");
    TCase *tcase = tcase_create("lmdb_freelist");
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_test(tcase, a_file_may_end_before_its_last_page);
    tcase_add_test(tcase, it_is_no_damage_to_a_check);
    tcase_add_test(tcase, what_is_missing_and_not_free_is_truncated);
    tcase_add_test(tcase, the_list_is_that_of_liblmdb);
    tcase_add_test(tcase, a_damaged_list_does_no_harm);
    tcase_add_test(tcase, lists_of_more_pages_than_there_are_are_refused);
    tcase_add_test(tcase, a_part_says_no_more_pages_than_it_has_room_for);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
