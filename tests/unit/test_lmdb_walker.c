#include "base/memory.h"
#include "base/random.h"
#include "lmdb_fixture.h"
#include "readers/lmdb_index.h"

#include <sys/mman.h>

/* Small keys and values of all sizes up to a few overflow pages. */
static void make_mixed(int number, fixture_record *out)
{
    out->key_size = (size_t)sprintf(out->key, "%08d", number);
    out->value_size = (size_t)number * 37 % 9000;
    memset(out->value, number, out->value_size);
}

static void make_small(int number, fixture_record *out)
{
    out->key_size = (size_t)sprintf(out->key, "%05d", number);
    out->value_size = (size_t)sprintf((char *)out->value, "value %d", number);
}

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
    if (index->count)
        seek_everywhere(&map, index);
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
        check_written(make_small, sizes[i]);
        check_written(make_long_keys, sizes[i]);
        if (sizes[i] <= 500)
            check_written(make_mixed, sizes[i]);
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
        fixture_put(env, make_mixed, 0, 400, 0);
        delete_records(env, make_mixed, 400, keep[i]);
        mdb_env_sync(env, 1);
        check_database(directory);
        fixture_put(env, make_mixed, 390, 450, 0);
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

static int walk(const unsigned char *bytes, size_t size, int64_t *count);

static void expect_refusal(unsigned flags, const char *name, const char *says)
{
    char directory[FIXTURE_PATH], path[FIXTURE_PATH + 16];
    fixture_directory(directory);
    MDB_env *env = fixture_env(directory, 0);
    MDB_txn *txn;
    MDB_dbi dbi;
    ck_assert_int_eq(mdb_txn_begin(env, NULL, 0, &txn), 0);
    ck_assert_int_eq(mdb_dbi_open(txn, name, flags, &dbi), 0);
    MDB_val key = {3, "key"}, value = {5, "value"};
    ck_assert_int_eq(mdb_put(txn, dbi, &key, &value, 0), 0);
    ck_assert_int_eq(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
    snprintf(path, sizeof(path), "%s/data.mdb", directory);
    size_t size;
    unsigned char *bytes = fixture_load(path, &size);
    int64_t count;
    ck_assert_int_eq(walk(bytes, size, &count), LEAT_EFORMAT);
    ck_assert_msg(strstr(leat_last_error(), says) != NULL, "%s",
                  leat_last_error());
    free(bytes);
    fixture_remove(directory);
}

START_TEST(named_databases_and_duplicates_are_refused_by_name)
{
    expect_refusal(MDB_CREATE, "train", "named databases");
    expect_refusal(MDB_CREATE | MDB_DUPSORT, "train", "named databases");
    expect_refusal(MDB_DUPSORT, NULL, "DUPSORT");
}
END_TEST

static unsigned touched;

static void touch(const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i += 64)
        touched += bytes[i];
    if (size)
        touched += bytes[size - 1];
}

/*
 * Walks whatever the bytes hold, reading every key and value, by the walker and
 * by the index. LEAT_END, or the error; *count is what was delivered.
 */
static int walk(const unsigned char *bytes, size_t size, int64_t *count)
{
    static leat__lmdb_walker walker;
    leat__lmdb_map map;
    leat__lmdb_index *index;
    leat__lmdb_entry entry[16];
    int got;
    *count = 0;
    int status = leat__lmdb_map_latest(&map, "memory", bytes, size);
    if (status)
        return status;
    if (leat__lmdb_index_create(&index, &map, NULL) == LEAT_OK) {
        for (int64_t i = 0; i < index->count; i++) {
            if (leat__lmdb_index_read(index, i, entry) == LEAT_OK)
                touch(entry->value, entry->value_size);
        }
        leat__lmdb_index_destroy(index);
    }
    leat__lmdb_walker_init(&walker, &map);
    leat__lmdb_walker_seek(&walker, (int64_t)map.meta.entries / 2);
    leat__lmdb_walker_init(&walker, &map);
    while (!(status = leat__lmdb_walker_next(&walker, entry, 16, &got))) {
        for (int i = 0; i < got; i++) {
            touch(entry[i].key, entry[i].key_size);
            touch(entry[i].value, entry[i].value_size);
        }
        *count += got;
    }
    if (status == LEAT_END)
        ck_assert_uint_eq((uint64_t)*count, map.meta.entries);
    else
        ck_assert_int_eq(leat__lmdb_walker_next(&walker, entry, 16, &got),
                         status);
    return status;
}

/* A small database with branches, leaves, inline and overflow values. */
static unsigned char *small_database(size_t *size)
{
    char directory[FIXTURE_PATH], path[FIXTURE_PATH + 16];
    fixture_directory(directory);
    MDB_env *env = fixture_env(directory, 0);
    fixture_put(env, make_small, 0, 300, 0);
    fixture_put(env, make_mixed, 0, 60, 0);
    mdb_env_close(env);
    snprintf(path, sizeof(path), "%s/data.mdb", directory);
    unsigned char *bytes = fixture_load(path, size);
    fixture_remove(directory);
    return bytes;
}

START_TEST(a_database_cut_anywhere_is_refused_or_whole)
{
    static leat__mt19937 random;
    size_t size;
    int64_t whole, count;
    unsigned char *bytes = small_database(&size);
    ck_assert_int_eq(walk(bytes, size, &whole), LEAT_END);
    ck_assert_int_eq(whole, 360);
    leat__mt19937_seed(&random, 1);
    for (size_t i = 0; i < size / 4096 + 200; i++) {
        size_t cut = i * 4096;
        if (cut >= size)
            cut = leat__mt19937_next(&random) % size;
        unsigned char *part = malloc(cut ? cut : 1);
        memcpy(part, bytes, cut);
        ck_assert_int_eq(walk(part, cut, &count), LEAT_EFORMAT);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "truncated"));
        free(part);
    }
    free(bytes);
}
END_TEST

START_TEST(bytes_behind_the_last_page_do_no_harm)
{
    size_t size;
    int64_t count;
    unsigned char *bytes = small_database(&size);
    bytes = realloc(bytes, size + 5000);
    memset(bytes + size, 0xff, 5000);
    ck_assert_int_eq(walk(bytes, size + 5000, &count), LEAT_END);
    ck_assert_int_eq(count, 360);
    free(bytes);
}
END_TEST

/* Where a flipped bit can change the structure: headers, offsets and nodes. */
static int is_structure(const unsigned char *bytes, size_t at)
{
    const unsigned char *page = bytes + at / 4096 * 4096;
    size_t in_page = at % 4096;
    uint16_t lower, upper, flags;
    memcpy(&flags, page + 10, 2);
    memcpy(&lower, page + 12, 2);
    memcpy(&upper, page + 14, 2);
    if (in_page < 16 || at < 2 * 4096)
        return in_page < 160;
    if (flags & 0x04 || flags > 3)
        return 0;
    if (in_page < lower)
        return 1;
    for (size_t slot = 16; slot < lower; slot += 2) {
        uint16_t offset;
        memcpy(&offset, page + slot, 2);
        if (in_page >= offset && in_page < offset + 32U)
            return 1;
    }
    return 0;
}

START_TEST(no_flipped_bit_does_more_than_change_values_or_fail)
{
    size_t size;
    int64_t count;
    int refused = 0;
    unsigned char *bytes = small_database(&size);
    for (size_t at = 0; at < size; at++) {
        if (!is_structure(bytes, at))
            continue;
        for (int bit = 0; bit < 8; bit++) {
            bytes[at] ^= (unsigned char)(1U << bit);
            refused += walk(bytes, size, &count) != LEAT_END;
            bytes[at] ^= (unsigned char)(1U << bit);
        }
    }
    ck_assert_int_gt(refused, 10000);
    ck_assert_int_eq(walk(bytes, size, &count), LEAT_END);
    free(bytes);
}
END_TEST

START_TEST(pages_of_random_bytes_fail_or_change_nothing)
{
    static leat__mt19937 random;
    size_t size;
    int64_t count;
    unsigned char *bytes = small_database(&size);
    unsigned char *damaged = malloc(size);
    leat__mt19937_seed(&random, 3);
    for (int round = 0; round < 1000; round++) {
        memcpy(damaged, bytes, size);
        size_t page = leat__mt19937_next(&random) % (size / 4096);
        size_t from = round % 2 ? 0 : 16 + leat__mt19937_next(&random) % 64;
        for (size_t i = from; i < 4096; i++)
            damaged[page * 4096 + i] =
                (unsigned char)leat__mt19937_next(&random);
        walk(damaged, size, &count);
    }
    /* A page where another one belongs. */
    for (int round = 0; round < 1000; round++) {
        memcpy(damaged, bytes, size);
        size_t to = leat__mt19937_next(&random) % (size / 4096);
        size_t from = leat__mt19937_next(&random) % (size / 4096);
        memcpy(damaged + to * 4096, bytes + from * 4096, 4096);
        if (round % 2 && to > 1)
            memcpy(damaged + to * 4096, &to, sizeof(to));
        walk(damaged, size, &count);
    }
    free(damaged);
    free(bytes);
}
END_TEST

/* A writer of images with pages of any size, from the leaves up. */
typedef struct image {
    unsigned char *bytes;
    size_t page_size;
    uint64_t pages;
    size_t lower, upper; /* of the page that is being filled */
} image;

static unsigned char *image_page(image *self, unsigned flags)
{
    self->bytes =
        realloc(self->bytes, (size_t)(self->pages + 1) * self->page_size);
    unsigned char *page = self->bytes + self->pages * self->page_size;
    memset(page, 0, self->page_size);
    uint64_t number = self->pages++;
    uint16_t stored = (uint16_t)flags;
    memcpy(page, &number, 8);
    memcpy(page + 10, &stored, 2);
    self->lower = 16;
    self->upper = self->page_size;
    return page;
}

/* Adds a node to the page; 0 when it is full. */
static int image_node(image *self, uint64_t page_number, uint64_t header,
                      const void *key, size_t key_size, const void *value,
                      size_t value_size)
{
    size_t size = (8 + key_size + value_size + 1) & ~(size_t)1;
    unsigned char *page = self->bytes + page_number * self->page_size;
    if (self->upper - self->lower < size + 2)
        return 0;
    self->upper -= size;
    uint16_t offset = (uint16_t)self->upper;
    header |= (uint64_t)key_size << 48;
    memcpy(page + self->lower, &offset, 2);
    self->lower += 2;
    memcpy(page + offset, &header, 8);
    memcpy(page + offset + 8, key, key_size);
    if (value_size)
        memcpy(page + offset + 8 + key_size, value, value_size);
    uint16_t lower = (uint16_t)self->lower;
    memcpy(page + 12, &lower, 2);
    memcpy(page + 14, &offset, 2);
    return 1;
}

static void image_meta(image *self, uint64_t depth, uint64_t entries,
                       uint64_t root)
{
    for (uint64_t i = 0; i < 2; i++) {
        unsigned char *page = self->bytes + i * self->page_size;
        uint32_t words[2] = {0xbeefc0de, 1};
        uint32_t page_size = (uint32_t)self->page_size;
        uint16_t levels = (uint16_t)depth;
        uint64_t tail[4] = {entries, root, self->pages - 1, i};
        memcpy(page + 16, words, 8);
        memcpy(page + 40, &page_size, 4);
        memcpy(page + 94, &levels, 2);
        memcpy(page + 120, tail, 16);
        memcpy(page + 136, tail + 2, 16);
    }
}

/* Inline values, and one of 3 pages behind each leaf. */
static void image_build(image *self, size_t page_size, int n)
{
    static uint64_t child[20000];
    static char first[20000][16];
    int children = 0, depth = 1;
    char key[16];
    *self = (image){.page_size = page_size};
    image_page(self, 8);
    image_page(self, 8);
    for (int i = 0; i < n;) {
        uint64_t leaf = self->pages;
        sprintf(first[children], "%08d", i);
        child[children++] = leaf;
        image_page(self, 2);
        size_t big = 2 * page_size + 7;
        uint64_t behind = leaf + 1;
        sprintf(key, "%08d", i++);
        ck_assert(image_node(self, leaf, (uint64_t)1 << 32 | big, key, 8,
                             &behind, 8));
        while (i < n) {
            sprintf(key, "%08d", i);
            if (!image_node(self, leaf, 10, key, 8, "0123456789", 10))
                break;
            i++;
        }
        unsigned char *page = image_page(self, 4);
        uint32_t pages = 3;
        memcpy(page + 12, &pages, 4);
        image_page(self, 0);
        image_page(self, 0);
    }
    for (; children > 1; depth++) {
        int parents = 0;
        for (int i = 0; i < children;) {
            uint64_t branch = self->pages;
            image_page(self, 1);
            int begin = i;
            while (i < children && image_node(self, branch, child[i], first[i],
                                              i == begin ? 0 : 8, NULL, 0))
                i++;
            memcpy(first[parents], first[begin], 16);
            child[parents++] = branch;
        }
        children = parents;
    }
    image_meta(self, (uint64_t)depth, (uint64_t)n, child[0]);
}

START_TEST(pages_of_every_size_are_read)
{
    for (size_t page_size = 256; page_size <= 65536; page_size *= 2) {
        image made;
        int64_t count;
        int n = page_size < 4096 ? 2000 : 20000;
        image_build(&made, page_size, n);
        int status = walk(made.bytes, (size_t)made.pages * page_size, &count);
        ck_assert_msg(status == LEAT_END, "%s", leat_last_error());
        ck_assert_int_eq(count, n);
        free(made.bytes);
    }
}
END_TEST

/* Page 2 is the first leaf, page 3 the first of its overflow pages. */
static void expect_damage(size_t at, const void *value, size_t size,
                          size_t other, const void *other_value,
                          const char *says)
{
    image made;
    int64_t count;
    image_build(&made, 256, 5);
    memcpy(made.bytes + at, value, size);
    if (other_value)
        memcpy(made.bytes + other, other_value, 4);
    ck_assert_int_eq(walk(made.bytes, (size_t)made.pages * 256, &count),
                     LEAT_EFORMAT);
    ck_assert_msg(strstr(leat_last_error(), says) != NULL, "%s",
                  leat_last_error());
    free(made.bytes);
}

START_TEST(damage_is_told_by_its_page)
{
    const uint16_t odd = 241, below = 16, beyond = 252, large = 400;
    const uint64_t page = 9;
    const uint32_t huge = 1U << 30;
    size_t leaf = (size_t)2 * 256, overflow = (size_t)3 * 256;
    size_t node = 256 - 24; /* of the first record, with a page number */
    expect_damage(leaf + 16, &odd, 2, 0, NULL, "page 2 is damaged: node 0");
    expect_damage(leaf + 16, &below, 2, 0, NULL, "page 2 is damaged: node 0");
    expect_damage(leaf + 16, &beyond, 2, 0, NULL, "page 2 is damaged: node 0");
    expect_damage(leaf + 14, &large, 2, 0, NULL, "page 2 is damaged: its");
    expect_damage(leaf, &page, 8, 0, NULL, "page 2 is damaged: it has the");
    expect_damage(leaf + node + 16, &page, 8, 0, NULL, "page 9 is wanted");
    /* A value and a run of pages as long as each other, both beyond the end. */
    expect_damage(leaf + node, &huge, 4, overflow + 12, &huge,
                  "page 3 is damaged: 1073741824 overflow pages");
}
END_TEST

START_TEST(index_and_seek_touch_no_value_on_overflow_pages)
{
    static leat__lmdb_walker walker;
    image made;
    leat__lmdb_map map;
    leat__lmdb_index *index;
    image_build(&made, 4096, 1000);
    size_t size = (size_t)made.pages * 4096;
    unsigned char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(bytes, MAP_FAILED);
    memcpy(bytes, made.bytes, size);
    for (uint64_t page = 2; page < made.pages; page++) {
        if (made.bytes[page * 4096 + 10] == 4)
            ck_assert_int_eq(
                mprotect(bytes + page * 4096, (size_t)3 * 4096, PROT_NONE), 0);
    }
    ck_assert_int_eq(leat__lmdb_map_latest(&map, "memory", bytes, size), 0);
    ck_assert_int_eq(leat__lmdb_index_create(&index, &map, NULL), LEAT_OK);
    ck_assert_int_eq(index->count, 1000);
    leat__lmdb_walker_init(&walker, &map);
    for (int64_t i = 0; i <= 1000; i++)
        ck_assert_int_eq(leat__lmdb_walker_seek(&walker, i), LEAT_OK);
    leat__lmdb_index_destroy(index);
    munmap(bytes, size);
    free(made.bytes);
}
END_TEST

START_TEST(page_sizes_that_do_not_exist_are_refused)
{
    static const uint32_t sizes[] = {0, 1, 128, 300, 131072, 0x80000000};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t size;
        int64_t count;
        unsigned char *bytes = small_database(&size);
        memcpy(bytes + 40, &sizes[i], 4);
        ck_assert_int_eq(walk(bytes, size, &count), LEAT_EFORMAT);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "page size"));
        free(bytes);
    }
}
END_TEST

START_TEST(a_tree_that_leads_back_to_itself_ends)
{
    image made;
    int64_t count;
    image_build(&made, 256, 2000);
    unsigned char *root = NULL;
    uint64_t number;
    memcpy(&number, made.bytes + 128, 8);
    root = made.bytes + number * 256;
    uint16_t offset;
    memcpy(&offset, root + 16 + 2, 2);
    /* The root's second child becomes the root, then its first child. */
    memcpy(root + offset, &number, 4);
    ck_assert_int_eq(walk(made.bytes, made.pages * 256, &count), LEAT_EFORMAT);
    uint16_t first;
    memcpy(&first, root + 16, 2);
    memcpy(root + offset, root + first, 6);
    ck_assert_int_eq(walk(made.bytes, made.pages * 256, &count), LEAT_EFORMAT);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "does not come behind"));
    free(made.bytes);
}
END_TEST

START_TEST(more_records_than_pages_could_hold_take_no_memory)
{
    size_t size;
    int64_t count;
    unsigned char *bytes = small_database(&size);
    uint64_t many = (uint64_t)1 << 60;
    memcpy(bytes + 120, &many, 8);
    memcpy(bytes + 4096 + 120, &many, 8);
    ck_assert_int_eq(walk(bytes, size, &count), LEAT_EFORMAT);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "cannot be in"));
    free(bytes);
}
END_TEST

START_TEST(an_index_survives_every_failing_allocation)
{
    size_t size;
    leat__lmdb_map map;
    leat__lmdb_index *index = NULL;
    unsigned char *bytes = small_database(&size);
    ck_assert_int_eq(leat__lmdb_map_latest(&map, "memory", bytes, size), 0);
    int status = LEAT_ENOMEM, n = 0;
    for (; status; n++) {
        leat__alloc_fail_at(n);
        status = leat__lmdb_index_create(&index, &map, NULL);
        ck_assert(status == LEAT_OK || status == LEAT_ENOMEM);
    }
    leat__alloc_fail_at(-1);
    ck_assert_int_gt(n, 1);
    leat__lmdb_index_destroy(index);
    free(bytes);
}
END_TEST

START_TEST(real_databases_are_walked_as_liblmdb_does)
{
    static const char *const names[] = {"mnist_test_lmdb",
                                        "imagenet5_jpeg_lmdb"};
    const char *place = getenv("LEAT_SHARED_DATA");
    for (int i = 0; i < 2; i++) {
        char path[1024];
        snprintf(path, sizeof(path), "%s/lmdb/%s",
                 place ? place : LEAT_SHARED_DATA, names[i]);
        if (access(path, R_OK) == 0)
            check_database(path);
        else
            printf("skipped: no %s\n", path);
    }
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
    tcase_add_test(tcase, named_databases_and_duplicates_are_refused_by_name);
    tcase_add_test(tcase, a_database_cut_anywhere_is_refused_or_whole);
    tcase_add_test(tcase, bytes_behind_the_last_page_do_no_harm);
    tcase_add_test(tcase, no_flipped_bit_does_more_than_change_values_or_fail);
    tcase_add_test(tcase, pages_of_random_bytes_fail_or_change_nothing);
    tcase_add_test(tcase, pages_of_every_size_are_read);
    tcase_add_test(tcase, damage_is_told_by_its_page);
    tcase_add_test(tcase, index_and_seek_touch_no_value_on_overflow_pages);
    tcase_add_test(tcase, page_sizes_that_do_not_exist_are_refused);
    tcase_add_test(tcase, a_tree_that_leads_back_to_itself_ends);
    tcase_add_test(tcase, more_records_than_pages_could_hold_take_no_memory);
    tcase_add_test(tcase, an_index_survives_every_failing_allocation);
    tcase_add_test(tcase, real_databases_are_walked_as_liblmdb_does);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
