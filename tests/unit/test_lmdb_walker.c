#include "readers/lmdb/lmdb_index.h"
#include "support/lmdb_walk.h"
#include "support/page_image.h"
#include "support/shared_data.h"
#include "support/suite.h"

/* Keys so long that a branch holds few of them: a deep tree. */
static void make_long_keys(int number, fixture_record *out)
{
    out->key_size = 500;
    memset(out->key, 'k', sizeof(out->key));
    sprintf(out->key + 480, "%08d", number);
    out->value_size = (size_t)number % 700;
    memset(out->value, number, out->value_size);
}

/* What a plain cursor of liblmdb gives. */
typedef struct oracle {
    MDB_env *env;
    MDB_txn *txn;
    MDB_cursor *cursor;
} oracle;

static void oracle_open(oracle *out, const char *directory)
{
    MDB_dbi dbi;
    ck_assert_int_eq(mdb_env_create(&out->env), 0);
    ck_assert_int_eq(
        mdb_env_open(out->env, directory, MDB_RDONLY | MDB_NOLOCK, 0), 0);
    ck_assert_int_eq(mdb_txn_begin(out->env, NULL, MDB_RDONLY, &out->txn), 0);
    ck_assert_int_eq(mdb_dbi_open(out->txn, NULL, 0, &dbi), 0);
    ck_assert_int_eq(mdb_cursor_open(out->txn, dbi, &out->cursor), 0);
}

static void oracle_close(oracle *self)
{
    mdb_cursor_close(self->cursor);
    mdb_txn_abort(self->txn);
    mdb_env_close(self->env);
}

static void assert_is(const leat__lmdb_entry *got, const MDB_val *key,
                      const MDB_val *value, int64_t record)
{
    ck_assert_int_eq(got->record, record);
    ck_assert_uint_eq(got->key_size, key->mv_size);
    ck_assert_mem_eq(got->key, key->mv_data, key->mv_size);
    ck_assert_uint_eq(got->value_size, value->mv_size);
    if (value->mv_size)
        ck_assert_mem_eq(got->value, value->mv_data, value->mv_size);
}

/* The walk in batches of `batch`, and the index, against the cursor. */
static void compare(const char *directory, const leat__lmdb_map *map,
                    const leat__lmdb_index *index, int batch)
{
    static leat__lmdb_walker walker;
    leat__lmdb_entry entry[64], looked_up;
    MDB_val key, value;
    oracle expected;
    int64_t record = 0;
    int at = 0, got = 0;
    oracle_open(&expected, directory);
    leat__lmdb_walker_init(&walker, map);
    while (mdb_cursor_get(expected.cursor, &key, &value, MDB_NEXT) == 0) {
        if (at == got) {
            int status = leat__lmdb_walker_next(&walker, entry, batch, &got);
            ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
            at = 0;
        }
        assert_is(&entry[at++], &key, &value, record);
        ck_assert_int_eq(leat__lmdb_index_read(index, record, &looked_up), 0);
        assert_is(&looked_up, &key, &value, record);
        record++;
    }
    ck_assert_int_eq(at, got);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(leat__lmdb_walker_next(&walker, entry, batch, &got),
                         LEAT_END);
        ck_assert_int_eq(got, 0);
    }
    ck_assert_int_eq(index->count, record);
    oracle_close(&expected);
}

/* Seeking to each of `n` records, forwards, then from far away. */
static void seek_everywhere(const leat__lmdb_map *map,
                            const leat__lmdb_index *index)
{
    static leat__lmdb_walker walker;
    leat__lmdb_entry got_entry, expected;
    int64_t n = index->count;
    int64_t step = n / 300 + 1;
    int got;
    leat__lmdb_walker_init(&walker, map);
    for (int64_t i = 0; i < 2 * n; i += step) {
        int64_t to = i < n ? i : (i * 7919) % n;
        ck_assert_int_eq(leat__lmdb_walker_seek(&walker, to), LEAT_OK);
        ck_assert_int_eq(leat__lmdb_walker_next(&walker, &got_entry, 1, &got),
                         LEAT_OK);
        ck_assert_int_eq(leat__lmdb_index_read(index, to, &expected), LEAT_OK);
        ck_assert_ptr_eq(got_entry.key, expected.key);
        ck_assert_ptr_eq(got_entry.value, expected.value);
        ck_assert_int_eq(got_entry.record, to);
    }
    ck_assert_int_eq(leat__lmdb_walker_seek(&walker, n), LEAT_OK);
    ck_assert_int_eq(leat__lmdb_walker_next(&walker, &got_entry, 1, &got),
                     LEAT_END);
    ck_assert_int_eq(leat__lmdb_walker_seek(&walker, n + 1), LEAT_EINVAL);
    ck_assert_int_eq(leat__lmdb_walker_seek(&walker, -1), LEAT_EINVAL);
}

/* A jump to each of `n` records, and each kind of step after it. */
static void jump_everywhere(const leat__lmdb_map *map,
                            const leat__lmdb_index *index)
{
    static leat__lmdb_walker walker, straight;
    leat__lmdb_entry entry, expected;
    leat__lmdb_node node;
    uint64_t address, page, other;
    int64_t n = index->count, step = n / 300 + 1;
    int got;
    leat__lmdb_walker_init(&walker, map);
    for (int64_t i = 0; i < n; i += step) {
        int64_t to = (i * 7919) % n;
        ck_assert_int_eq(leat__lmdb_index_read(index, to, &expected), LEAT_OK);
        leat__lmdb_walker_jump(&walker, to, index->address[to]);
        ck_assert_int_eq(leat__lmdb_walker_next(&walker, &entry, 1, &got), 0);
        ck_assert_ptr_eq(entry.key, expected.key);
        ck_assert_int_eq(entry.record, to);
        leat__lmdb_walker_jump(&walker, to, index->address[to]);
        leat__lmdb_walker_fetch(&walker);
        ck_assert_int_eq(
            leat__lmdb_walker_addresses(&walker, &address, 1, &got), 0);
        ck_assert_uint_eq(address, index->address[to]);
        leat__lmdb_walker_jump(&walker, to, index->address[to]);
        ck_assert_int_eq(leat__lmdb_walker_node(&walker, &node), 0);
        ck_assert_ptr_eq(node.key, expected.key);
        leat__lmdb_walker_jump(&walker, n - 1, index->address[n - 1]);
        ck_assert_int_eq(leat__lmdb_walker_seek(&walker, to), 0);
        ck_assert_int_eq(leat__lmdb_walker_node(&walker, &node), 0);
        ck_assert_ptr_eq(node.key, expected.key);
        leat__lmdb_walker_jump(&walker, to, index->address[to]);
        leat__lmdb_walker_init(&straight, map);
        ck_assert_int_eq(leat__lmdb_walker_seek(&straight, to), 0);
        leat__lmdb_walker_raise(&walker, 0);
        ck_assert_int_eq(walker.leaves, straight.leaves);
        int status = leat__lmdb_walker_page(&straight, &other);
        ck_assert_int_eq(leat__lmdb_walker_page(&walker, &page), status);
        if (!status)
            ck_assert_uint_eq(page, other);
    }
    leat__lmdb_walker_init(&walker, map);
    leat__lmdb_walker_jump(&walker, n, 0);
    ck_assert_int_eq(leat__lmdb_walker_node(&walker, &node), LEAT_END);
}

static void check_ends(const leat__lmdb_map *map, const leat__lmdb_index *index)
{
    leat__lmdb_entry entry;
    leat__lmdb_node first, last;
    int expected = index->count ? LEAT_OK : LEAT_END;
    ck_assert_int_eq(leat__lmdb_walker_first(map, &first), expected);
    ck_assert_int_eq(leat__lmdb_walker_last(map, &last), expected);
    if (!index->count)
        return;
    ck_assert_int_eq(leat__lmdb_index_read(index, 0, &entry), LEAT_OK);
    ck_assert_ptr_eq(first.key, entry.key);
    ck_assert_int_eq(leat__lmdb_index_read(index, index->count - 1, &entry),
                     LEAT_OK);
    ck_assert_ptr_eq(last.key, entry.key);
}

static void check_database(const char *directory)
{
    char path[FIXTURE_PATH + 16];
    size_t size;
    leat__lmdb_map map;
    leat__lmdb_index *index;
    snprintf(path, sizeof(path), "%s/data.mdb", directory);
    unsigned char *bytes = fixture_load(path, &size);
    int status = leat__lmdb_map_latest(&map, path, bytes, size);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    status = leat__lmdb_index_create(&index, &map, NULL);
    ck_assert_msg(status == LEAT_OK, "%s", leat_last_error());
    compare(directory, &map, index, 1);
    compare(directory, &map, index, 7);
    compare(directory, &map, index, 64);
    check_ends(&map, index);
    if (index->count) {
        seek_everywhere(&map, index);
        jump_everywhere(&map, index);
    }
    leat__lmdb_index_destroy(index);
    free(bytes);
}

static void check_written(fixture_maker *make, int n)
{
    char directory[FIXTURE_PATH];
    fixture_directory(directory);
    fixture_write(directory, make, n);
    check_database(directory);
    fixture_remove(directory);
}

START_TEST(databases_of_every_size_are_walked_as_liblmdb_does)
{
    static const int sizes[] = {0, 1, 2, 10, 500, 3000};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        check_written(lmdb_walk_small_record, sizes[i]);
        check_written(make_long_keys, sizes[i]);
        if (sizes[i] <= 500)
            check_written(lmdb_walk_mixed_record, sizes[i]);
    }
}
END_TEST

START_TEST(a_database_that_was_never_written_to_is_empty)
{
    char directory[FIXTURE_PATH];
    fixture_directory(directory);
    mdb_env_close(fixture_env(directory, 0));
    check_database(directory);
    fixture_remove(directory);
}
END_TEST

static void delete_records(MDB_env *env, fixture_maker *make, int n, int keep)
{
    static fixture_record record;
    MDB_txn *txn;
    MDB_dbi dbi;
    ck_assert_int_eq(mdb_txn_begin(env, NULL, 0, &txn), 0);
    ck_assert_int_eq(mdb_dbi_open(txn, NULL, 0, &dbi), 0);
    for (int i = 0; i < n; i++) {
        make(i, &record);
        MDB_val key = {record.key_size, record.key};
        if (!keep || i % keep)
            ck_assert_int_eq(mdb_del(txn, dbi, &key, NULL), 0);
    }
    ck_assert_int_eq(mdb_txn_commit(txn), 0);
}

START_TEST(deleted_records_are_gone_and_their_pages_used_again)
{
    static const int keep[] = {0, 2, 50};
    for (int i = 0; i < 3; i++) {
        char directory[FIXTURE_PATH];
        fixture_directory(directory);
        MDB_env *env = fixture_env(directory, 0);
        fixture_put(env, lmdb_walk_mixed_record, 0, 400, 0);
        delete_records(env, lmdb_walk_mixed_record, 400, keep[i]);
        mdb_env_sync(env, 1);
        check_database(directory);
        fixture_put(env, lmdb_walk_mixed_record, 390, 450, 0);
        fixture_put(env, make_long_keys, 0, 100, 0);
        mdb_env_sync(env, 1);
        check_database(directory);
        mdb_env_close(env);
        fixture_remove(directory);
    }
}
END_TEST

/* Twice in one transaction, the second time shorter: its pages stay. */
static void put_shrinking(MDB_env *env)
{
    static char bytes[16000];
    MDB_txn *txn;
    MDB_dbi dbi;
    ck_assert_int_eq(mdb_txn_begin(env, NULL, 0, &txn), 0);
    ck_assert_int_eq(mdb_dbi_open(txn, NULL, 0, &dbi), 0);
    MDB_val key = {3, "key"};
    for (size_t size = sizeof(bytes); size > 1000; size /= 2) {
        MDB_val value = {size, bytes};
        ck_assert_int_eq(mdb_put(txn, dbi, &key, &value, 0), 0);
    }
    ck_assert_int_eq(mdb_txn_commit(txn), 0);
}

START_TEST(a_value_that_shrank_keeps_its_pages_and_is_read)
{
    char directory[FIXTURE_PATH];
    fixture_directory(directory);
    MDB_env *env = fixture_env(directory, 0);
    put_shrinking(env);
    mdb_env_close(env);
    check_database(directory);
    fixture_remove(directory);
}
END_TEST

START_TEST(other_orders_of_keys_are_walked_too)
{
    static const unsigned flags[] = {MDB_REVERSEKEY, MDB_INTEGERKEY};
    for (int i = 0; i < 2; i++) {
        char directory[FIXTURE_PATH];
        fixture_directory(directory);
        MDB_env *env = fixture_env(directory, 0);
        MDB_txn *txn;
        MDB_dbi dbi;
        ck_assert_int_eq(mdb_txn_begin(env, NULL, 0, &txn), 0);
        ck_assert_int_eq(mdb_dbi_open(txn, NULL, flags[i], &dbi), 0);
        for (uint64_t number = 1; number < 1000; number++) {
            uint64_t id = number * 7919 % 100003;
            MDB_val key = {sizeof(id), &id}, value = {6, "value"};
            ck_assert_int_eq(mdb_put(txn, dbi, &key, &value, 0), 0);
        }
        ck_assert_int_eq(mdb_txn_commit(txn), 0);
        mdb_env_close(env);
        check_database(directory);
        fixture_remove(directory);
    }
}
END_TEST

START_TEST(pages_of_every_size_are_read)
{
    for (size_t page_size = 256; page_size <= 65536; page_size *= 2) {
        page_image made;
        int64_t count;
        int n = page_size < 4096 ? 2000 : 20000;
        page_image_build(&made, page_size, n);
        int status =
            lmdb_walk_all(made.bytes, (size_t)made.pages * page_size, &count);
        ck_assert_msg(status == LEAT_END, "%s", leat_last_error());
        ck_assert_int_eq(count, n);
        free(made.bytes);
    }
}
END_TEST

/* Damages the first byte of the key in that slot of leaf `leaf`. */
static void spoil_key(page_image *made, int leaf, int slot, char to)
{
    uint16_t offset;
    /* Behind each leaf come the 3 pages of its first value. */
    unsigned char *page = made->bytes + (2 + 4 * (size_t)leaf) * 256;
    memcpy(&offset, page + 16 + 2 * (size_t)slot, 2);
    page[offset + 8] = (unsigned char)to;
}

/* Seeks `first`, then what is two leaves further; the walk notices. */
static void expect_disorder(int leaf, int slot, char to, int64_t first)
{
    static leat__lmdb_walker walker;
    leat__lmdb_map map;
    page_image made;
    page_image_build(&made, 256, 40);
    size_t size = (size_t)made.pages * 256;
    ck_assert_int_eq(leat__lmdb_map_latest(&map, "memory", made.bytes, size),
                     LEAT_OK);
    leat__lmdb_walker_init(&walker, &map);
    ck_assert_int_eq(leat__lmdb_walker_seek(&walker, first), LEAT_OK);
    ck_assert_int_eq(leat__lmdb_walker_seek(&walker, 30), LEAT_OK);
    spoil_key(&made, leaf, slot, to);
    leat__lmdb_walker_init(&walker, &map);
    ck_assert_int_eq(leat__lmdb_walker_seek(&walker, first), LEAT_OK);
    ck_assert_int_eq(leat__lmdb_walker_seek(&walker, 30), LEAT_EFORMAT);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "does not follow"));
    free(made.bytes);
}

/* 8 records a leaf, so that of the first one 8, 2 or 1 are passed over. */
START_TEST(first_and_last_key_of_a_leaf_that_is_passed_over_are_in_order)
{
    for (int64_t first = 0; first < 8; first++)
        expect_disorder(0, 7, '9', first);
    expect_disorder(1, 7, '9', 0);
    expect_disorder(1, 7, '!', 0);
    expect_disorder(1, 0, '!', 0);
    expect_disorder(2, 0, '!', 0);
}
END_TEST

START_TEST(real_databases_are_walked_as_liblmdb_does)
{
    static const char *const names[] = {"lmdb/mnist_test_lmdb",
                                        "lmdb/imagenet5_jpeg_lmdb"};
    char path[SHARED_PATH];
    for (int i = 0; i < 2; i++)
        if (shared_path(path, names[i]))
            check_database(path);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lmdb_walker");
    TCase *tcase = tcase_create("lmdb_walker");
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, databases_of_every_size_are_walked_as_liblmdb_does);
    tcase_add_test(tcase, a_database_that_was_never_written_to_is_empty);
    tcase_add_test(tcase, deleted_records_are_gone_and_their_pages_used_again);
    tcase_add_test(tcase, a_value_that_shrank_keeps_its_pages_and_is_read);
    tcase_add_test(tcase, other_orders_of_keys_are_walked_too);
    tcase_add_test(tcase, pages_of_every_size_are_read);
    tcase_add_test(
        tcase, first_and_last_key_of_a_leaf_that_is_passed_over_are_in_order);
    tcase_add_test(tcase, real_databases_are_walked_as_liblmdb_does);
    return suite_run(suite);
}
