/* What a check finds, in whole databases and beyond planted damage. */
#include "base/memory.h"
#include "lmdb_fixture.h"
#include "readers/lmdb/check/lmdb_header_repair.h"
#include "support/suite.h"

#include <leat/lmdb_check.h>

enum { PAGE = 4096 };

static char directory[FIXTURE_PATH];
static char path[FIXTURE_PATH + 16];
static unsigned char *file; /* as it was written */
static size_t file_size;

/* Keys of 8 digits and values of 100 bytes; each 50th lies on pages apart. */
static void make_record(int number, fixture_record *out)
{
    out->key_size = (size_t)sprintf(out->key, "%08d", number);
    out->value_size = number % 50 == 7 ? 9000 : 100;
    memset(out->value, number, out->value_size);
}

static void write_database(int n)
{
    fixture_directory(directory);
    fixture_write(directory, make_record, n);
    snprintf(path, sizeof(path), "%s/data.mdb", directory);
    file = fixture_load(path, &file_size);
}

static void remove_database(void)
{
    free(file);
    fixture_remove(directory);
}

/* What a check told: a line a damage, and the records' bits. */
typedef struct report {
    int64_t records;
    int64_t count;
    int damages;
    leat_lmdb_check_entry damage[64];
    char line[64][512];
    char key[64][9];
    unsigned char is_good[4096]; /* by the number in the key */
} report;

static report told;

static void take_good(const leat_lmdb_check_entry *entry)
{
    char key[9] = "";
    ck_assert_uint_eq(entry->key_size, 8);
    memcpy(key, entry->key, 8);
    int number = atoi(key);
    static fixture_record expected;
    make_record(number, &expected);
    ck_assert_uint_eq(entry->value_size, expected.value_size);
    ck_assert_mem_eq(entry->value, expected.value, expected.value_size);
    ck_assert_int_lt(number, 4096);
    ck_assert_int_eq(told.is_good[number], 0);
    told.is_good[number] = 1;
    told.records++;
}

static int check_path(const char *at)
{
    leat_lmdb_check *check;
    leat_lmdb_check_entry entry[7];
    int got, status;
    memset(&told, 0, sizeof(told));
    if ((status = leat_lmdb_check_open(&check, at)))
        return status;
    told.count = leat_lmdb_check_count(check);
    while ((status = leat_lmdb_check_next(check, entry, 7, &got)) != LEAT_END) {
        if (status) {
            ck_assert_int_eq(got, 0);
            ck_assert_int_lt(told.damages, 64);
            snprintf(told.line[told.damages], 512, "%s", leat_last_error());
            if (entry[0].key_size == 8)
                memcpy(told.key[told.damages], entry[0].key, 8);
            told.damage[told.damages++] = entry[0];
        }
        for (int i = 0; i < got; i++)
            take_good(&entry[i]);
    }
    leat_lmdb_check_close(check);
    return LEAT_OK;
}

static void check_bytes(const unsigned char *bytes, size_t size)
{
    fixture_store(path, bytes, size);
    int status = check_path(directory);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
}

/* All records but those from `from` to `to` are good. */
static void check_good_but(int n, int from, int to)
{
    for (int i = 0; i < n; i++)
        ck_assert_msg(told.is_good[i] == (i < from || i >= to), "record %d", i);
}

static void check_one(uint64_t page, int64_t lost, const char *text)
{
    ck_assert_msg(told.damages == 1, "%d damages: %s; %s", told.damages,
                  told.line[0], told.line[1]);
    ck_assert_int_eq(told.damage[0].page, (int64_t)page);
    ck_assert_int_eq(told.damage[0].lost, lost);
    ck_assert_msg(strstr(told.line[0], text) != NULL, "%s", told.line[0]);
}

static unsigned load16(size_t at)
{
    return file[at] | (unsigned)file[at + 1] << 8;
}

/* The page whose first record has the key; 0: none. */
static size_t leaf_of(int number, uint32_t *slot)
{
    char key[16];
    snprintf(key, sizeof(key), "%08d", number);
    for (size_t page = 2; page < file_size / PAGE; page++) {
        size_t base = page * PAGE;
        if (load16(base + 10) != LEAT__LMDB_LEAF)
            continue;
        for (uint32_t i = 0; 16 + 2 * i < load16(base + 12); i++) {
            size_t node = base + load16(base + 16 + 2 * i);
            if (!memcmp(file + node + 8, key, 8)) {
                *slot = i;
                return page;
            }
        }
    }
    ck_abort_msg("no leaf has %s", key);
    return 0;
}

/* Where the record's node lies in the file. */
static size_t node_of(int number)
{
    uint32_t slot;
    size_t base = leaf_of(number, &slot) * PAGE;
    return base + load16(base + 16 + 2 * slot);
}

/* The numbers of the first record on the record's leaf, and after the last. */
static void ends_of(int number, int *from, int *to)
{
    uint32_t slot;
    size_t base = leaf_of(number, &slot) * PAGE;
    *from = number - (int)slot;
    *to = *from + (int)(load16(base + 12) - 16) / 2;
}

START_TEST(a_whole_database_has_no_damage)
{
    static const int sizes[] = {0, 1, 2, 30, 500, 3000};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        write_database(sizes[i]);
        ck_assert_int_eq(check_path(i % 2 ? directory : path), LEAT_OK);
        ck_assert_msg(!told.damages, "%s", told.line[0]);
        ck_assert_int_eq(told.records, sizes[i]);
        ck_assert_int_eq(told.count, sizes[i]);
        remove_database();
    }
}
END_TEST

/* Branches' keys stay where they are when records before them go. */
START_TEST(a_database_much_written_to_has_no_damage)
{
    static fixture_record record;
    unsigned random = 1;
    fixture_directory(directory);
    MDB_env *env = fixture_env(directory, 0);
    for (int round = 0; round < 40; round++) {
        MDB_txn *txn;
        MDB_dbi dbi;
        ck_assert_int_eq(mdb_txn_begin(env, NULL, 0, &txn), 0);
        ck_assert_int_eq(mdb_dbi_open(txn, NULL, 0, &dbi), 0);
        for (int i = 0; i < 400; i++) {
            random = random * 1103515245U + 12345U;
            make_record((int)(random >> 16) % 2000, &record);
            MDB_val key = {record.key_size, record.key};
            MDB_val value = {record.value_size, record.value};
            int deletes = (random >> 8) % 3 < (unsigned)(round % 2) + 1;
            int code = deletes ? mdb_del(txn, dbi, &key, NULL)
                               : mdb_put(txn, dbi, &key, &value, 0);
            ck_assert(code == 0 || code == MDB_NOTFOUND);
        }
        ck_assert_int_eq(mdb_txn_commit(txn), 0);
        MDB_stat stat;
        ck_assert_int_eq(mdb_env_stat(env, &stat), 0);
        mdb_env_close(env);
        ck_assert_int_eq(check_path(directory), LEAT_OK);
        ck_assert_msg(!told.damages, "round %d: %s", round, told.line[0]);
        ck_assert_int_eq(told.records, (int64_t)stat.ms_entries);
        env = fixture_env(directory, 0);
    }
    mdb_env_close(env);
    fixture_remove(directory);
}
END_TEST

START_TEST(a_damaged_leaf_costs_its_own_records)
{
    int from, to;
    uint32_t slot;
    write_database(1000);
    for (int number = 0; number < 1000; number += 111) {
        size_t page = leaf_of(number, &slot);
        ends_of(number, &from, &to);
        unsigned char *number_of_page = file + page * PAGE;
        number_of_page[3] ^= 0x40;
        check_bytes(file, file_size);
        number_of_page[3] ^= 0x40;
        check_one(page, -1, "it has the number");
        ck_assert_int_eq(told.damage[0].record, from);
        check_good_but(1000, from, to);
    }
    remove_database();
}
END_TEST

START_TEST(a_damaged_node_costs_one_record)
{
    write_database(1000);
    for (int number = 3; number < 1000; number += 97) {
        uint32_t slot;
        size_t page = leaf_of(number, &slot);
        unsigned char *flags = file + node_of(number) + 4;
        *flags ^= 0x40;
        check_bytes(file, file_size);
        *flags ^= 0x40;
        check_one(page, 1, "flags");
        ck_assert_int_eq(told.damage[0].record, number);
        check_good_but(1000, number, number + 1);
    }
    remove_database();
}
END_TEST

/* At the ends of leaves too, and whichever way the key goes. */
START_TEST(a_damaged_key_costs_one_record)
{
    int from, to;
    write_database(1000);
    ends_of(500, &from, &to);
    const int numbers[] = {0,      1,   from - 1, from, from + 1,
                           to - 1, 500, 997,      999};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        for (int up = 0; up < 2; up++) {
            /* The first may be less, the last more, unseen. */
            if (numbers[i] == (up ? 999 : 0))
                continue;
            unsigned char *key = file + node_of(numbers[i]) + 8;
            unsigned char before = key[0];
            key[0] = up ? 'z' : ' ';
            check_bytes(file, file_size);
            key[0] = before;
            ck_assert_msg(told.damages == 1, "%d: %d", numbers[i],
                          told.damages);
            ck_assert_int_eq(told.damage[0].record, numbers[i]);
            ck_assert_int_eq(told.damage[0].lost, 1);
            check_good_but(1000, numbers[i], numbers[i] + 1);
        }
    }
    remove_database();
}
END_TEST

START_TEST(a_damaged_overflow_page_costs_one_record)
{
    write_database(1000);
    size_t node = node_of(57);
    size_t page = load16(node + 8 + 8);
    file[page * PAGE] ^= 1;
    check_bytes(file, file_size);
    file[page * PAGE] ^= 1;
    ck_assert_int_eq(told.damages, 1);
    ck_assert_int_eq(told.damage[0].record, 57);
    ck_assert_str_eq(told.key[0], "00000057");
    check_good_but(1000, 57, 58);
    remove_database();
}
END_TEST

START_TEST(an_overflow_page_of_two_records_is_told)
{
    write_database(1000);
    file[node_of(107) + 16] = file[node_of(57) + 16];
    file[node_of(107) + 17] = file[node_of(57) + 17];
    check_bytes(file, file_size);
    ck_assert_int_eq(told.damages, 1);
    ck_assert_int_eq(told.damage[0].record, 107);
    ck_assert_msg(strstr(told.line[0], "reached twice") != NULL, "%s",
                  told.line[0]);
    check_good_but(1000, 107, 108);
    remove_database();
}
END_TEST

/* A count of pages that takes those of others loses none of their records. */
START_TEST(a_damaged_count_of_overflow_pages_loses_nothing)
{
    write_database(1000);
    size_t page = load16(node_of(57) + 8 + 8);
    file[page * PAGE + 12] ^= 32;
    check_bytes(file, file_size);
    ck_assert_int_eq(told.damages, 1);
    ck_assert_int_eq(told.damage[0].page, (int64_t)page);
    ck_assert_int_eq(told.damage[0].lost, 0);
    ck_assert_msg(strstr(told.line[0], "is another record's") != NULL, "%s",
                  told.line[0]);
    check_good_but(1000, 0, 0);
    remove_database();
}
END_TEST

static size_t root_of(void)
{
    size_t meta = file[PAGE + 144] > file[144] ? PAGE : 0;
    return load16(meta + 128);
}

START_TEST(a_damaged_branch_loses_what_is_below_it)
{
    write_database(1000);
    size_t root = root_of(), base = root * PAGE;
    ck_assert_int_eq((int)load16(base + 10), LEAT__LMDB_BRANCH);

    /* A child that is the branch itself, which must not be followed for ever.
     */
    size_t node = base + load16(base + 16 + 2 * 5);
    unsigned char before[2];
    memcpy(before, file + node, 2);
    file[node] = (unsigned char)root;
    file[node + 1] = (unsigned char)(root >> 8);
    check_bytes(file, file_size);
    memcpy(file + node, before, 2);
    check_one(root, -1, "expected a leaf");
    ck_assert_int_gt(told.records, 900);

    /* A key that leads astray costs nothing, but is told. */
    file[node + 8] = 'z';
    check_bytes(file, file_size);
    file[node + 8] = '0';
    check_one(root, 0, "cannot be looked up");
    check_good_but(1000, 0, 0);

    file[base + 10] ^= 0x20;
    check_bytes(file, file_size);
    check_one(root, -1, "expected a branch");
    ck_assert_int_eq(told.records, 0);
    remove_database();
}
END_TEST

START_TEST(records_that_the_meta_page_does_not_know_are_given)
{
    write_database(100);
    size_t meta = file[PAGE + 144] > file[144] ? PAGE : 0;
    file[meta + 120] += 3;
    check_bytes(file, file_size);
    check_one(UINT64_MAX, 3, "103 records were expected, 100 found");
    check_good_but(100, 0, 0);
    file[meta + 120] -= 13;
    check_bytes(file, file_size);
    check_one(UINT64_MAX, 0, "90 records were expected, 100 found");
    check_good_but(100, 0, 0);
    remove_database();
}
END_TEST

START_TEST(a_file_cut_short_is_read_as_far_as_it_goes)
{
    write_database(2000);
    size_t root = root_of();
    for (size_t pages = root + 1; pages < file_size / PAGE; pages += 7) {
        check_bytes(file, pages * PAGE + 100);
        ck_assert_msg(strstr(told.line[0], "truncated") != NULL, "%s",
                      told.line[0]);
        ck_assert_int_eq(told.damage[0].page, (int64_t)pages);
        ck_assert_int_eq(told.damage[0].lost, 0);
        ck_assert_int_eq(told.count, 2000);
        ck_assert_int_lt(told.records, 2000);
    }
    remove_database();
}
END_TEST

START_TEST(a_file_without_its_root_has_lost_all_its_records)
{
    write_database(2000);
    check_bytes(file, root_of() * PAGE);
    check_one(UINT64_MAX, 2000, "truncated");
    check_good_but(0, 0, 0);

    /* With a tree before it that has lost its root, too. */
    fixture_store(path, file, file_size);
    MDB_env *env = fixture_env(directory, 0);
    fixture_put(env, make_record, 2000, 3000, 0);
    mdb_env_close(env);
    free(file);
    file = fixture_load(path, &file_size);
    check_bytes(file, (size_t)PAGE * 2);
    ck_assert_int_eq(told.count, 3000);
    ck_assert_int_eq(told.records, 0);
    ck_assert_int_eq(told.damages, 2);
    ck_assert_int_eq(told.damage[0].lost + told.damage[1].lost, 3000);
    ck_assert_msg(strstr(told.line[0], "truncated") != NULL, "%s",
                  told.line[0]);
    remove_database();
}
END_TEST

/* The list of free pages has a root, a depth and a number of its own. */
START_TEST(a_list_of_free_pages_that_is_no_tree_is_damage)
{
    write_database(100);
    for (size_t meta = 0; meta <= PAGE; meta += PAGE) {
        memset(file + meta + 80, 0x7f, 4);
        memset(file + meta + 84, 0, 4);
    }
    check_bytes(file, file_size);
    ck_assert_int_eq(told.records, 100);
    check_good_but(100, 0, 0);
    ck_assert_int_eq(told.damages, 1);
    ck_assert_int_eq(told.damage[0].page, -1);
    ck_assert_int_eq(told.damage[0].record, 100);
    ck_assert_int_eq(told.damage[0].lost, 0);
    ck_assert_ptr_null(told.damage[0].key);
    ck_assert_ptr_nonnull(strstr(told.line[0], "its root on page"));
    remove_database();
}
END_TEST

START_TEST(either_meta_page_will_do)
{
    write_database(300);
    /* A second transaction, so that both meta pages tell of 300 records. */
    MDB_env *env = fixture_env(directory, 0);
    fixture_put(env, make_record, 299, 300, 0);
    mdb_env_close(env);
    free(file);
    file = fixture_load(path, &file_size);
    for (size_t i = 0; i < 2; i++) {
        static const size_t places[] = {16, 20, 10, 40};
        for (size_t k = 0; k < 4; k++) {
            size_t at = i * PAGE + places[k];
            file[at] ^= 0x28;
            check_bytes(file, file_size);
            file[at] ^= 0x28;
            check_one(i, 0, "data.mdb");
            check_good_but(300, 0, 0);
        }
    }
    file[16] ^= 1;
    file[PAGE + 16] ^= 1;
    fixture_store(path, file, file_size);
    ck_assert_int_eq(check_path(directory), LEAT_EFORMAT);
    remove_database();
}
END_TEST

START_TEST(a_jump_goes_where_it_should)
{
    leat_lmdb_check *check;
    leat_lmdb_check_entry entry[2];
    int got;
    write_database(3000);
    ck_assert_int_eq(leat_lmdb_check_open(&check, directory), LEAT_OK);
    for (int i = 0; i <= 20; i++) {
        char key[9] = "";
        leat_lmdb_check_jump(check, i / 20.);
        ck_assert_int_eq(leat_lmdb_check_next(check, entry, 2, &got), LEAT_OK);
        ck_assert_int_eq(entry[0].record, -1);
        memcpy(key, entry[0].key, 8);
        ck_assert_int_ge(atoi(key), 3000 * i / 20 - 400);
        ck_assert_int_le(atoi(key), 3000 * i / 20 + 400);
    }
    leat_lmdb_check_jump(check, 1);
    while (!leat_lmdb_check_next(check, entry, 1, &got))
        ck_assert_mem_eq(entry[0].key, "00002", 5);
    ck_assert_mem_eq(entry[0].key, "00002999", 8);
    leat_lmdb_check_close(check);
    remove_database();
}
END_TEST

/* Of all leaves, of which the last branch has fewer than the others. */
START_TEST(jumps_are_at_even_distances_of_leaves)
{
    enum { JUMPS = 37 };
    static int64_t leaf[60000];
    leat_lmdb_check *check;
    leat_lmdb_check_entry entry;
    int got, leaves = 0;
    write_database(60000);
    ck_assert_int_eq(leat_lmdb_check_open(&check, directory), LEAT_OK);
    while (!leat_lmdb_check_next(check, &entry, 1, &got))
        if (!leaves || leaf[leaves - 1] != entry.page)
            leaf[leaves++] = entry.page;
    ck_assert_int_gt(leaves, JUMPS);
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i <= JUMPS; i++) {
            double share = (turn ? JUMPS - i : i) / (double)JUMPS;
            leat_lmdb_check_jump(check, share);
            ck_assert_int_eq(leat_lmdb_check_next(check, &entry, 1, &got),
                             LEAT_OK);
            ck_assert_int_eq(entry.page,
                             leaf[(int)(share * (leaves - 1) + 0.5)]);
        }
    leat_lmdb_check_close(check);
    remove_database();
}
END_TEST

/* The key of the record at which the check goes on after a jump. */
static void jump_and_take(leat_lmdb_check *check, double share, char key[9])
{
    leat_lmdb_check_entry entry;
    int got;
    leat_lmdb_check_jump(check, share);
    ck_assert_int_eq(leat_lmdb_check_next(check, &entry, 1, &got), LEAT_OK);
    ck_assert_uint_eq(entry.key_size, 8);
    memcpy(key, entry.key, 8);
    key[8] = 0;
}

START_TEST(a_jump_beyond_either_end_goes_to_that_end)
{
    static const double below[] = {-1e-9, -1, -1e9, -1e300, -INFINITY, NAN};
    static const double above[] = {1.5, 1e9, 1e300, INFINITY};
    char first[9], last[9], found[9];
    leat_lmdb_check *check;
    write_database(3000);
    ck_assert_int_eq(leat_lmdb_check_open(&check, path), LEAT_OK);
    jump_and_take(check, 0, first);
    jump_and_take(check, 1, last);
    ck_assert_str_eq(first, "00000000");
    for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
        jump_and_take(check, below[i], found);
        ck_assert_str_eq(found, first);
    }
    for (size_t i = 0; i < sizeof(above) / sizeof(above[0]); i++) {
        jump_and_take(check, above[i], found);
        ck_assert_str_eq(found, last);
    }
    leat_lmdb_check_close(check);
    remove_database();
}
END_TEST

START_TEST(a_jump_tells_what_is_in_its_way)
{
    leat_lmdb_check *check;
    leat_lmdb_check_entry entry;
    leat__lmdb_map map;
    int got;
    write_database(3000);
    ck_assert_int_eq(leat__lmdb_map_latest(&map, "file", file, file_size),
                     LEAT_OK);
    ck_assert_int_gt(map.meta.depth, 1);
    file[map.meta.root * PAGE + 10] ^= 0x28;
    fixture_store(path, file, file_size);
    ck_assert_int_eq(leat_lmdb_check_open(&check, directory), LEAT_OK);
    for (int i = 0; i <= 2; i++) {
        leat_lmdb_check_jump(check, i / 2.);
        ck_assert_int_eq(leat_lmdb_check_next(check, &entry, 1, &got),
                         LEAT_EFORMAT);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "expected a branch"));
        ck_assert_int_eq(entry.page, (int64_t)map.meta.root);
        ck_assert_int_eq(entry.lost, -1);
        ck_assert_int_eq(leat_lmdb_check_next(check, &entry, 1, &got),
                         LEAT_END);
    }
    leat_lmdb_check_close(check);
    remove_database();
}
END_TEST

START_TEST(what_is_no_database_is_refused)
{
    leat_lmdb_check *check = NULL;
    fixture_directory(directory);
    snprintf(path, sizeof(path), "%s/data.mdb", directory);
    ck_assert_int_eq(leat_lmdb_check_open(&check, directory), LEAT_EIO);
    fixture_store(path, "", 0);
    ck_assert_int_eq(leat_lmdb_check_open(&check, directory), LEAT_EFORMAT);
    unsigned char bytes[20000];
    memset(bytes, 0x5a, sizeof(bytes));
    fixture_store(path, bytes, sizeof(bytes));
    ck_assert_int_eq(leat_lmdb_check_open(&check, directory), LEAT_EFORMAT);
    ck_assert_ptr_null(check);
    fixture_remove(directory);
    leat_lmdb_check_close(NULL);
}
END_TEST

START_TEST(an_unsupported_database_is_no_damage)
{
    leat_lmdb_check *check = NULL;
    fixture_directory(directory);
    MDB_env *env = fixture_env(directory, 0);
    fixture_put(env, make_record, 0, 5, MDB_DUPSORT);
    mdb_env_close(env);
    ck_assert_int_eq(leat_lmdb_check_open(&check, directory), LEAT_EFORMAT);
    ck_assert_msg(strstr(leat_last_error(), "DUPSORT") != NULL, "%s",
                  leat_last_error());
    fixture_remove(directory);
}
END_TEST

/* Every bit of every header: an end, and no record that was not written. */
START_TEST(flipped_bits_never_make_up_records)
{
    leat__lmdb_map map;
    leat__lmdb_recovery recovery;
    leat__lmdb_event header[LEAT__LMDB_HEADER_EVENTS];
    const leat__lmdb_event *event;
    int n;
    write_database(150);
    for (size_t at = 0; at < file_size; at++) {
        if (at % PAGE == 200)
            at += PAGE - 400;
        unsigned char before = file[at];
        file[at] ^= (unsigned char)(1U << (at % 8));
        int64_t records = 0, damages = 0;
        if (!leat__lmdb_header_repair(&map, "flipped", file, file_size, header,
                                      &n)) {
            ck_assert_int_eq(leat__lmdb_recovery_init(&recovery, &map, NULL),
                             0);
            while (!leat__lmdb_recovery_next(&recovery, &event)) {
                records += !event->status;
                damages += event->status != 0;
            }
            leat__lmdb_recovery_finish(&recovery);
            ck_assert_int_le(records, 150);
            ck_assert_msg(records == 150 || damages || n || !records,
                          "byte %zu: %lld records", at, (long long)records);
        }
        file[at] = before;
    }
    remove_database();
}
END_TEST

START_TEST(opening_survives_every_failed_allocation)
{
    write_database(100);
    for (int cut = 0; cut < 2; cut++) {
        int status = LEAT_ENOMEM;
        fixture_store(path, file, cut ? file_size - PAGE : file_size);
        for (int n = 0; status; n++) {
            leat_lmdb_check *check = NULL;
            leat__alloc_fail_at(n);
            status = leat_lmdb_check_open(&check, directory);
            leat__alloc_fail_at(-1);
            ck_assert_msg(status == LEAT_OK || status == LEAT_ENOMEM, "%d: %s",
                          n, leat_last_error());
            ck_assert(!check == (status != LEAT_OK));
            leat_lmdb_check_close(check);
        }
    }
    remove_database();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("check");
    TCase *tests = tcase_create("check");
    tcase_add_test(tests, a_whole_database_has_no_damage);
    tcase_add_test(tests, a_database_much_written_to_has_no_damage);
    tcase_add_test(tests, a_damaged_leaf_costs_its_own_records);
    tcase_add_test(tests, a_damaged_node_costs_one_record);
    tcase_add_test(tests, a_damaged_key_costs_one_record);
    tcase_add_test(tests, a_damaged_overflow_page_costs_one_record);
    tcase_add_test(tests, a_damaged_count_of_overflow_pages_loses_nothing);
    tcase_add_test(tests, an_overflow_page_of_two_records_is_told);
    tcase_add_test(tests, a_damaged_branch_loses_what_is_below_it);
    tcase_add_test(tests, records_that_the_meta_page_does_not_know_are_given);
    tcase_add_test(tests, a_file_cut_short_is_read_as_far_as_it_goes);
    tcase_add_test(tests, a_file_without_its_root_has_lost_all_its_records);
    tcase_add_test(tests, a_list_of_free_pages_that_is_no_tree_is_damage);
    tcase_add_test(tests, either_meta_page_will_do);
    tcase_add_test(tests, a_jump_goes_where_it_should);
    tcase_add_test(tests, jumps_are_at_even_distances_of_leaves);
    tcase_add_test(tests, a_jump_beyond_either_end_goes_to_that_end);
    tcase_add_test(tests, a_jump_tells_what_is_in_its_way);
    tcase_add_test(tests, what_is_no_database_is_refused);
    tcase_add_test(tests, an_unsupported_database_is_no_damage);
    tcase_add_test(tests, flipped_bits_never_make_up_records);
    tcase_add_test(tests, opening_survives_every_failed_allocation);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
