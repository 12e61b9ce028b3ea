/* What a check says of pages: of those in use, those listed as free, and of
   those that are both or neither. liblmdb is the oracle. */
#include "lmdb_fixture.h"
#include "readers/lmdb/lmdb_freelist.h"
#include "support/suite.h"

#include <leat/lmdb_check.h>

#include <unistd.h>

enum { PAGE = 4096, RECORDS = 2000 };

static char directory[FIXTURE_PATH];
static char path[FIXTURE_PATH + 16];
static unsigned char *file;
static size_t file_size;

static void make_record(int number, fixture_record *out)
{
    out->key_size = (size_t)sprintf(out->key, "%08d", number);
    out->value_size = number % 50 == 7 ? 9000 : 100;
    memset(out->value, number, out->value_size);
}

/* A round of puts and deletes, in a transaction. */
static void write_round(MDB_env *env, unsigned *random, int round)
{
    static fixture_record record;
    MDB_txn *txn;
    MDB_dbi dbi;
    ck_assert_int_eq(mdb_txn_begin(env, NULL, 0, &txn), 0);
    ck_assert_int_eq(mdb_dbi_open(txn, NULL, 0, &dbi), 0);
    for (int i = 0; i < 400; i++) {
        *random = *random * 1103515245U + 12345U;
        make_record((int)(*random >> 16) % RECORDS, &record);
        MDB_val key = {record.key_size, record.key};
        MDB_val value = {record.value_size, record.value};
        int deletes = (*random >> 8) % 3 < (unsigned)(round % 2) + 1;
        int code = deletes ? mdb_del(txn, dbi, &key, NULL)
                           : mdb_put(txn, dbi, &key, &value, 0);
        ck_assert(code == 0 || code == MDB_NOTFOUND);
    }
    ck_assert_int_eq(mdb_txn_commit(txn), 0);
}

/* What was told; lines of damage joined, and the last one. */
static char told[4096], last_told[512];
static int damages;
static int64_t first_page;
static int64_t records;
static leat_lmdb_page_use use;
static int use_status;

static void check(void)
{
    leat_lmdb_check *check;
    leat_lmdb_check_entry entry[7];
    int got, status;
    told[0] = 0;
    damages = 0;
    records = 0;
    ck_assert_int_eq(leat_lmdb_check_open(&check, directory), LEAT_OK);
    use = (leat_lmdb_page_use){.size = sizeof(use)};
    ck_assert_int_eq(leat_lmdb_check_page_use(check, &use), LEAT_ESTATE);
    while ((status = leat_lmdb_check_next(check, entry, 7, &got)) != LEAT_END) {
        ck_assert(status == LEAT_OK || status == LEAT_EFORMAT);
        records += got;
        if (!status)
            continue;
        size_t used = strlen(told);
        snprintf(told + used, sizeof(told) - used, "%s\n", leat_last_error());
        snprintf(last_told, sizeof(last_told), "%s", leat_last_error());
        if (damages++ == 0)
            first_page = entry[0].page;
    }
    ck_assert_int_eq(leat_lmdb_check_next(check, entry, 7, &got), LEAT_END);
    use_status = leat_lmdb_check_page_use(check, &use);
    leat_lmdb_check_close(check);
}

/* The pages of a tree, as liblmdb counts them. */
static int64_t pages_of(MDB_txn *txn, MDB_dbi dbi)
{
    MDB_stat stat;
    ck_assert_int_eq(mdb_stat(txn, dbi, &stat), 0);
    return (int64_t)(stat.ms_branch_pages + stat.ms_leaf_pages +
                     stat.ms_overflow_pages);
}

static void check_against_liblmdb(MDB_env *env)
{
    MDB_txn *txn;
    MDB_dbi dbi;
    MDB_cursor *cursor;
    MDB_val key, value;
    MDB_envinfo info;
    int64_t listed = 0;
    ck_assert_int_eq(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn), 0);
    ck_assert_int_eq(mdb_dbi_open(txn, NULL, 0, &dbi), 0);
    ck_assert_int_eq(mdb_env_info(env, &info), 0);
    ck_assert_int_eq(mdb_cursor_open(txn, 0, &cursor), 0);
    while (!mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
        const size_t *ids = value.mv_data;
        for (size_t i = 1; i <= ids[0]; i++)
            listed += ids[i] < (size_t)use.all;
    }
    mdb_cursor_close(cursor);
    ck_assert_int_eq(use_status, LEAT_OK);
    ck_assert_int_le(use.all, (int64_t)info.me_last_pgno + 1);
    ck_assert_int_eq(use.used, 2 + pages_of(txn, dbi) + pages_of(txn, 0));
    ck_assert_int_eq(use.free, listed);
    ck_assert_int_eq(use.leaked, 0);
    mdb_txn_abort(txn);
}

START_TEST(every_page_of_a_sound_database_is_in_use_or_free)
{
    unsigned random = 1;
    fixture_directory(directory);
    MDB_env *env = fixture_env(directory, 0);
    for (int round = 0; round < 40; round++) {
        write_round(env, &random, round);
        mdb_env_close(env);
        check();
        ck_assert_msg(!damages, "round %d: %s", round, told);
        env = fixture_env(directory, 0);
        check_against_liblmdb(env);
    }
    ck_assert_int_gt(use.free, 10);
    mdb_env_close(env);
    fixture_remove(directory);
}
END_TEST

/* Numbers of transactions are compared as such, their low bytes last. */
START_TEST(a_list_of_hundreds_of_transactions_is_in_order)
{
    unsigned random = 1;
    MDB_txn *reader;
    fixture_directory(directory);
    MDB_env *env = fixture_env(directory, 0);
    write_round(env, &random, 0);
    ck_assert_int_eq(mdb_txn_begin(env, NULL, MDB_RDONLY, &reader), 0);
    for (int round = 0; round < 300; round++) {
        fixture_record record;
        MDB_txn *txn;
        MDB_dbi dbi;
        make_record(round, &record);
        MDB_val key = {record.key_size, record.key};
        MDB_val value = {record.value_size, record.value};
        ck_assert_int_eq(mdb_txn_begin(env, NULL, 0, &txn), 0);
        ck_assert_int_eq(mdb_dbi_open(txn, NULL, 0, &dbi), 0);
        ck_assert_int_eq(mdb_put(txn, dbi, &key, &value, 0), 0);
        ck_assert_int_eq(mdb_txn_commit(txn), 0);
    }
    mdb_txn_abort(reader);
    mdb_env_close(env);
    check();
    ck_assert_msg(!damages, "%s", told);
    env = fixture_env(directory, 0);
    check_against_liblmdb(env);
    mdb_env_close(env);
    fixture_remove(directory);
}
END_TEST

START_TEST(an_empty_database_has_two_pages_in_use)
{
    fixture_directory(directory);
    mdb_env_close(fixture_env(directory, 0));
    check();
    ck_assert_msg(!damages, "%s", told);
    ck_assert_int_eq(use.all, 2);
    ck_assert_int_eq(use.used, 2);
    ck_assert_int_eq(use.leaked, 0);
    fixture_remove(directory);
}
END_TEST

/* A database with free pages, and its bytes. */
static void begin(void)
{
    unsigned random = 1;
    fixture_directory(directory);
    snprintf(path, sizeof(path), "%s/data.mdb", directory);
    MDB_env *env = fixture_env(directory, 0);
    for (int round = 0; round < 12; round++)
        write_round(env, &random, round);
    mdb_env_close(env);
    file = fixture_load(path, &file_size);
}

static void end(void)
{
    free(file);
    fixture_remove(directory);
}

static void latest(leat__lmdb_map *map)
{
    ck_assert_int_eq(leat__lmdb_map_latest(map, path, file, file_size), 0);
}

/* A part of the list with room for the tests: where its numbers lie. */
static unsigned char *find_part(uint64_t *n)
{
    leat__lmdb_map map;
    leat__lmdb_freelist list;
    leat__lmdb_freed freed;
    latest(&map);
    ck_assert_int_eq(leat__lmdb_freelist_init(&list, &map), LEAT_OK);
    while (!leat__lmdb_freelist_next(&list, &freed)) {
        if (freed.n < 5)
            continue;
        *n = freed.n;
        return file + (freed.pages - file);
    }
    ck_abort_msg("no part of the list has 5 pages");
    return NULL;
}

static void put(unsigned char *at, uint64_t number)
{
    memcpy(at, &number, sizeof(number));
}

static uint64_t get(const unsigned char *at)
{
    uint64_t number;
    memcpy(&number, at, sizeof(number));
    return number;
}

static void check_planted(void)
{
    fixture_store(path, file, file_size);
    check();
}

static void check_damage(int64_t page, const char *text)
{
    ck_assert_msg(damages == 1, "%d: %.999s", damages, told);
    ck_assert_int_eq(first_page, page);
    ck_assert_msg(strstr(told, text) != NULL, "%s", told);
    ck_assert_int_eq(use_status, LEAT_OK);
    ck_assert_int_eq(use.leaked, -1);
}

START_TEST(a_page_in_use_that_is_listed_as_free_is_damage)
{
    leat__lmdb_map map;
    uint64_t n;
    unsigned char *numbers = find_part(&n);
    latest(&map);
    check();
    int64_t all_records = records;
    const uint64_t used[] = {map.meta.root, map.meta.free_root, 0, 1};
    for (int i = 0; i < 4; i++) {
        uint64_t before = get(numbers);
        put(numbers, used[i]);
        check_planted();
        check_damage((int64_t)used[i], "in use but on the freelist");
        ck_assert_int_eq(records, all_records);
        put(numbers, before);
    }
}
END_TEST

START_TEST(a_page_that_is_listed_twice_is_damage)
{
    uint64_t n;
    unsigned char *numbers = find_part(&n);
    put(numbers + 8, get(numbers));
    check_planted();
    check_damage((int64_t)get(numbers), "on the freelist twice");
}
END_TEST

START_TEST(a_page_after_the_last_is_damage)
{
    uint64_t n;
    unsigned char *numbers = find_part(&n);
    put(numbers, 1000000);
    check_planted();
    check_damage(1000000, "page 1000000 is after the last page");
}
END_TEST

START_TEST(neighbours_are_told_together)
{
    uint64_t n;
    unsigned char *numbers = find_part(&n);
    for (uint64_t i = 0; i < 4; i++)
        put(numbers + 8 * i, 1000000 - i);
    check_planted();
    check_damage(999997, "pages 999997 to 1000000 are after");
}
END_TEST

START_TEST(repeats_are_told_together)
{
    static const uint64_t past[] = {1000000, 1000000, 999999, 999999, 999998};
    leat__lmdb_map map;
    uint64_t n;
    unsigned char *numbers = find_part(&n);
    latest(&map);
    for (int i = 0; i < 5; i++)
        put(numbers + 8 * i, map.meta.root);
    check_planted();
    check_damage((int64_t)map.meta.root, "in use but on the freelist");
    for (int i = 0; i < 5; i++)
        put(numbers + 8 * i, past[i]);
    check_planted();
    check_damage(999998, "pages 999998 to 1000000 are after");
}
END_TEST

enum { SPARSE_PAGES = 20001 };

/* Stores the file with holes up to SPARSE_PAGES pages, and a new freelist of
 * `n` pages: of transaction 1, from page `first` on, each `step` more. */
static void store_list(uint64_t n, uint64_t first, uint64_t step)
{
    static uint64_t value[SPARSE_PAGES + 1];
    leat__lmdb_map map;
    size_t leaf = file_size / PAGE;
    size_t pages = (16 + (n + 1) * 8 + PAGE - 1) / PAGE;
    latest(&map);
    unsigned char *grown = calloc(leaf + 1 + pages, PAGE);
    ck_assert_ptr_nonnull(grown);
    memcpy(grown, file, file_size);

    /* The freelist's depth and pages, its entries and root; the last page. */
    unsigned char *meta = grown + (map.meta.txnid & 1) * PAGE;
    memcpy(meta + 46, &(uint16_t){1}, 2);
    const uint64_t counts[] = {0, 1, pages, 1, leaf};
    memcpy(meta + 48, counts, sizeof(counts));
    put(meta + 136, SPARSE_PAGES - 1);

    /* A leaf of one node whose value has overflow pages. */
    unsigned char *page = grown + leaf * PAGE, *node = page + PAGE - 24;
    const uint16_t header[] = {0, 2, 18, PAGE - 24, PAGE - 24};
    const uint16_t head[] = {(uint16_t)((n + 1) * 8),
                             (uint16_t)((n + 1) * 8 >> 16), 1, 8};
    put(page, leaf);
    memcpy(page + 8, header, sizeof(header));
    memcpy(node, head, sizeof(head));
    put(node + 8, 1);
    put(node + 16, leaf + 1);

    value[0] = n;
    for (uint64_t i = 0; i < n; i++)
        value[i + 1] = first + i * step;
    put(page + PAGE, leaf + 1);
    memcpy(page + PAGE + 10, &(uint16_t){4}, 2);
    memcpy(page + PAGE + 12, &(uint32_t){(uint32_t)pages}, 4);
    memcpy(page + PAGE + 16, value, (n + 1) * 8);

    fixture_store(path, grown, (leaf + 1 + pages) * PAGE);
    ck_assert_int_eq(truncate(path, (off_t)SPARSE_PAGES * PAGE), 0);
    free(grown);
}

START_TEST(a_long_list_of_zeros_is_one_damage)
{
    store_list(SPARSE_PAGES - 1, 0, 0);
    check();
    check_damage(0, "page 0 is in use but on the freelist");
}
END_TEST

START_TEST(a_list_of_more_pages_than_there_are_is_damage)
{
    store_list(SPARSE_PAGES, 1000000, 2);
    check();
    ck_assert_msg(damages == 1, "%d: %.999s", damages, told);
    ck_assert_ptr_nonnull(
        strstr(told, "transaction 1 lists 20001 pages, more than there are"));
}
END_TEST

START_TEST(faults_of_a_list_are_told_up_to_a_number)
{
    check();
    int64_t all_records = records;
    store_list(10000, 1000000, 2);
    check();
    ck_assert_int_eq(damages, 10000);
    ck_assert_ptr_nonnull(strstr(last_told, "page 1019998 is after"));
    ck_assert_int_eq(use_status, LEAT_OK);
    for (uint64_t n = 10001; n < SPARSE_PAGES; n += 9999) {
        store_list(n, 1000000, 2);
        check();
        ck_assert_int_eq(damages, 10001);
        ck_assert_ptr_nonnull(
            strstr(last_told, "freelist: more than 10000 faults"));
        ck_assert_int_eq(use_status, LEAT_ESTATE);
        ck_assert_int_eq(records, all_records);
    }
}
END_TEST

/* Its number of pages is more than its value has room for. */
START_TEST(a_part_that_is_damaged_is_told)
{
    uint64_t n;
    unsigned char *numbers = find_part(&n);
    put(numbers - 8, (uint64_t)1 << 40);
    check_planted();
    ck_assert_int_ge(damages, 1);
    ck_assert_msg(strstr(told, "damaged") != NULL, "%s", told);
    ck_assert_int_eq(use.leaked, -1);
}
END_TEST

START_TEST(a_page_that_is_listed_nowhere_is_lost_but_no_damage)
{
    uint64_t n;
    unsigned char *numbers = find_part(&n);
    for (uint64_t lost = 1; lost <= 3; lost++) {
        put(numbers - 8, n - lost);
        check_planted();
        ck_assert_msg(!damages, "%s", told);
        ck_assert_int_eq(use.leaked, (int64_t)lost);
    }
}
END_TEST

/* All records are found whatever is wrong with the list. */
START_TEST(no_damage_to_the_list_costs_a_record)
{
    leat__lmdb_map map;
    latest(&map);
    check();
    int64_t all_records = records;
    size_t from = (size_t)map.meta.free_root * PAGE;
    int told_of = 0;
    for (size_t at = from; at < from + PAGE; at++) {
        /* All of the header and of the nodes' heads, a part of the rest. */
        if (at - from > 64 && at % 31)
            continue;
        file[at] ^= 0x11;
        check_planted();
        ck_assert_int_eq(records, all_records);
        told_of += damages > 0;
        file[at] ^= 0x11;
    }
    ck_assert_int_gt(told_of, 20);
}
END_TEST

START_TEST(a_list_that_cannot_be_found_is_damage)
{
    leat__lmdb_map map;
    latest(&map);
    for (int meta = 0; meta < 2; meta++)
        put(file + (size_t)meta * PAGE + 80, map.meta.last_page + 7);
    check_planted();
    ck_assert_msg(damages == 1, "%s", told);
    ck_assert_ptr_nonnull(strstr(told, "freelist: damaged"));
    ck_assert_int_eq(use_status, LEAT_ESTATE);
}
END_TEST

START_TEST(an_older_struct_is_refused)
{
    leat_lmdb_check *check;
    leat_lmdb_page_use older = {.size = 8};
    ck_assert_int_eq(leat_lmdb_check_open(&check, directory), LEAT_OK);
    ck_assert_int_eq(leat_lmdb_check_page_use(check, &older), LEAT_EINVAL);
    leat_lmdb_check_close(check);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lmdb_freelist_check");
    TCase *whole = tcase_create("whole");
    TCase *planted = tcase_create("planted");
    tcase_add_test(whole, every_page_of_a_sound_database_is_in_use_or_free);
    tcase_add_test(whole, a_list_of_hundreds_of_transactions_is_in_order);
    tcase_add_test(whole, an_empty_database_has_two_pages_in_use);
    tcase_add_checked_fixture(planted, begin, end);
    tcase_add_test(planted, a_page_in_use_that_is_listed_as_free_is_damage);
    tcase_add_test(planted, a_page_that_is_listed_twice_is_damage);
    tcase_add_test(planted, a_page_after_the_last_is_damage);
    tcase_add_test(planted, neighbours_are_told_together);
    tcase_add_test(planted, repeats_are_told_together);
    tcase_add_test(planted, a_long_list_of_zeros_is_one_damage);
    tcase_add_test(planted, a_list_of_more_pages_than_there_are_is_damage);
    tcase_add_test(planted, faults_of_a_list_are_told_up_to_a_number);
    tcase_add_test(planted, a_part_that_is_damaged_is_told);
    tcase_add_test(planted,
                   a_page_that_is_listed_nowhere_is_lost_but_no_damage);
    tcase_add_test(planted, no_damage_to_the_list_costs_a_record);
    tcase_add_test(planted, a_list_that_cannot_be_found_is_damage);
    tcase_add_test(planted, an_older_struct_is_refused);
    suite_add_tcase(suite, whole);
    suite_add_tcase(suite, planted);
    return suite_run(suite);
}
