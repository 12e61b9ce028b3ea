#include "base/random.h"
#include "readers/lmdb/lmdb_node.h"
#include "support/lmdb_walk.h"
#include "support/page_image.h"
#include "support/suite.h"

#include <leat/status.h>

#include <stdbool.h>

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
    ck_assert_int_eq(lmdb_walk_all(bytes, size, &count), LEAT_EFORMAT);
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

START_TEST(a_database_cut_anywhere_is_refused_or_whole)
{
    static leat__mt19937 random;
    size_t size;
    int64_t whole, count;
    unsigned char *bytes = lmdb_walk_small_database(&size);
    ck_assert_int_eq(lmdb_walk_all(bytes, size, &whole), LEAT_END);
    ck_assert_int_eq(whole, 360);
    leat__mt19937_seed(&random, 1);
    for (size_t i = 0; i < size / 4096 + 200; i++) {
        size_t cut = i * 4096;
        if (cut >= size)
            cut = leat__mt19937_next(&random) % size;
        unsigned char *part = malloc(cut ? cut : 1);
        memcpy(part, bytes, cut);
        ck_assert_int_eq(lmdb_walk_all(part, cut, &count), LEAT_EFORMAT);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "truncated"));
        free(part);
    }
    free(bytes);
}
END_TEST

START_TEST(bytes_after_the_last_page_do_no_harm)
{
    size_t size;
    int64_t count;
    unsigned char *bytes = lmdb_walk_small_database(&size);
    bytes = realloc(bytes, size + 5000);
    memset(bytes + size, 0xff, 5000);
    ck_assert_int_eq(lmdb_walk_all(bytes, size + 5000, &count), LEAT_END);
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
    unsigned char *bytes = lmdb_walk_small_database(&size);
    for (size_t at = 0; at < size; at++) {
        if (!is_structure(bytes, at))
            continue;
        for (int bit = 0; bit < 8; bit++) {
            bytes[at] ^= (unsigned char)(1U << bit);
            refused += lmdb_walk_all(bytes, size, &count) != LEAT_END;
            bytes[at] ^= (unsigned char)(1U << bit);
        }
    }
    ck_assert_int_gt(refused, 10000);
    ck_assert_int_eq(lmdb_walk_all(bytes, size, &count), LEAT_END);
    free(bytes);
}
END_TEST

START_TEST(pages_of_random_bytes_fail_or_change_nothing)
{
    static leat__mt19937 random;
    size_t size;
    int64_t count;
    unsigned char *bytes = lmdb_walk_small_database(&size);
    unsigned char *damaged = malloc(size);
    leat__mt19937_seed(&random, 3);
    for (int round = 0; round < 1000; round++) {
        memcpy(damaged, bytes, size);
        size_t page = leat__mt19937_next(&random) % (size / 4096);
        size_t from = round % 2 ? 0 : 16 + leat__mt19937_next(&random) % 64;
        for (size_t i = from; i < 4096; i++)
            damaged[page * 4096 + i] =
                (unsigned char)leat__mt19937_next(&random);
        lmdb_walk_all(damaged, size, &count);
    }
    /* A page where another one belongs. */
    for (int round = 0; round < 1000; round++) {
        memcpy(damaged, bytes, size);
        size_t to = leat__mt19937_next(&random) % (size / 4096);
        size_t from = leat__mt19937_next(&random) % (size / 4096);
        memcpy(damaged + to * 4096, bytes + from * 4096, 4096);
        if (round % 2 && to > 1)
            memcpy(damaged + to * 4096, &to, sizeof(to));
        lmdb_walk_all(damaged, size, &count);
    }
    free(damaged);
    free(bytes);
}
END_TEST

/* Page 2 is the first leaf, page 3 the first of its overflow pages. */
static void expect_damage(size_t at, const void *value, size_t size,
                          size_t other, const void *other_value,
                          const char *says)
{
    page_image made;
    int64_t count;
    page_image_build(&made, 256, 5);
    memcpy(made.bytes + at, value, size);
    if (other_value)
        memcpy(made.bytes + other, other_value, 4);
    ck_assert_int_eq(
        lmdb_walk_all(made.bytes, (size_t)made.pages * 256, &count),
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
    expect_damage(leaf + node + 16, &page, 8, 0, NULL, "a pointer to page 9");
    /* A value and a run of pages as long as each other, both beyond the end. */
    expect_damage(leaf + node, &huge, 4, overflow + 12, &huge,
                  "page 3 is damaged: 1073741824 overflow pages");
}
END_TEST

/* A limit is met to the byte: `in` is walked to the end, `out` is damage. */
static void expect_limit(size_t at, size_t size, uint32_t in, uint32_t out,
                         const char *says)
{
    page_image made;
    int64_t count;
    page_image_build(&made, 256, 5);
    memcpy(made.bytes + at, &in, size);
    int status = lmdb_walk_all(made.bytes, (size_t)made.pages * 256, &count);
    ck_assert_msg(status == LEAT_END, "%s", leat_last_error());
    ck_assert_int_eq(count, 5);
    free(made.bytes);
    expect_damage(at, &out, size, 0, NULL, says);
}

/* The leaf has 5 nodes: at 232 with the page of a value, whose run is pages 3
   to 5, the last of all, then 4 of 26 bytes down to 128. */
enum {
    LEAF = 2 * 256,
    LEAF_LOWER = LEAF + 12,
    LEAF_UPPER = LEAF + 14,
    LEAF_OFFSET = LEAF + 16,
    NODE = LEAF + 232,
    RUN_PAGES = 3 * 256 + 12
};

START_TEST(a_run_of_overflow_pages_is_as_long_as_its_value)
{
    size_t room = 3 * 256 - 16;
    expect_limit(NODE, 4, (uint32_t)room, (uint32_t)room + 1,
                 "page 3 is damaged: 3 overflow pages for a value of 753");
    expect_limit(RUN_PAGES, 4, 3, 2,
                 "page 3 is damaged: 2 overflow pages for a value of 519");
    /* Nor does it end after the last page. */
    expect_limit(RUN_PAGES, 4, 3, 4, "page 3 is damaged: 4 overflow pages");
}
END_TEST

START_TEST(a_node_ends_with_its_page)
{
    const unsigned char inline_value[8] = {8, 0, 0, 0, 0, 0, 8, 0};
    page_image made;
    int64_t count;
    expect_limit(NODE + 6, 2, 8, 9,
                 "page 2 is damaged: the node at offset 232 has a key of 9");
    expect_limit(NODE + 6, 2, 8, 0,
                 "page 2 is damaged: the node at offset 232 has a key of 0");
    /* The same with the value itself where the page's number was. */
    for (int more = 0; more < 2; more++) {
        page_image_build(&made, 256, 5);
        memcpy(made.bytes + NODE, inline_value, sizeof(inline_value));
        made.bytes[NODE] = (unsigned char)(8 + more);
        ck_assert_int_eq(
            lmdb_walk_all(made.bytes, (size_t)made.pages * 256, &count),
            more ? LEAT_EFORMAT : LEAT_END);
        free(made.bytes);
    }
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "8 bytes and 9 bytes"));
    /* Its header, too. */
    expect_limit(LEAF_OFFSET, 2, 232, 250,
                 "page 2 is damaged: node 0 is at offset 250");
}
END_TEST

START_TEST(offsets_and_nodes_keep_apart)
{
    const uint32_t lower = 16 + 2 * 5, upper = 128;
    const char *const says = "page 2 is damaged: its offsets end at ";
    expect_limit(LEAF_LOWER, 2, lower, lower + 1, says);
    expect_limit(LEAF_LOWER, 2, lower, lower - 1, says);
    expect_limit(LEAF_LOWER, 2, lower, 14, says);
    expect_limit(LEAF_LOWER, 2, lower, 0, says);
    expect_limit(LEAF_LOWER, 2, lower, upper + 2, says);
    expect_limit(LEAF_UPPER, 2, lower, lower - 2, says);
    expect_limit(LEAF_UPPER, 2, upper, 257, says);
    expect_limit(LEAF_UPPER, 2, upper, upper + 1,
                 "page 2 is damaged: node 4 is at offset 128");
}
END_TEST

/* Of the 16 records 8 are in each leaf; no more are given than promised. */
START_TEST(a_walk_finds_as_many_records_as_the_meta_page_says)
{
    static const char *const says[] = {"page 6 has more",
                                       "17 records were expected, 16 found"};
    for (int more = 0; more < 2; more++) {
        page_image made;
        int64_t count;
        page_image_build(&made, 256, 16);
        made.bytes[120] = made.bytes[256 + 120] = more ? 17 : 15;
        ck_assert_int_eq(
            lmdb_walk_all(made.bytes, (size_t)made.pages * 256, &count),
            LEAT_EFORMAT);
        ck_assert_int_eq(count, more ? 16 : 8);
        ck_assert_msg(strstr(leat_last_error(), says[more]) != NULL, "%s",
                      leat_last_error());
        free(made.bytes);
    }
}
END_TEST

/* Strictly: a key that comes twice would let a page be met again. */
START_TEST(keys_that_are_the_same_do_not_ascend)
{
    leat__lmdb_map map = {.name = "memory"};
    for (int backward = 0; backward < 2; backward++) {
        map.meta.backward = backward;
        for (size_t size = 1; size < 12; size++) {
            const char *key = "aaaaaaaaaaaa";
            ck_assert(!leat__lmdb_map_ascends(&map, key, size, key, size));
            ck_assert(leat__lmdb_map_ascends(&map, key, size, key, size + 1));
            ck_assert(!leat__lmdb_map_ascends(&map, key, size + 1, key, size));
        }
    }
}
END_TEST

START_TEST(page_sizes_that_do_not_exist_are_refused)
{
    static const uint32_t sizes[] = {0, 1, 128, 300, 131072, 0x80000000};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t size;
        int64_t count;
        unsigned char *bytes = lmdb_walk_small_database(&size);
        memcpy(bytes + 40, &sizes[i], 4);
        ck_assert_int_eq(lmdb_walk_all(bytes, size, &count), LEAT_EFORMAT);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "page size"));
        free(bytes);
    }
}
END_TEST

START_TEST(meta_pages_of_two_page_sizes_are_refused)
{
    size_t size;
    int64_t count;
    const uint32_t other = 8192;
    unsigned char *bytes = lmdb_walk_small_database(&size);
    memcpy(bytes + 4096 + 40, &other, 4);
    ck_assert_int_eq(lmdb_walk_all(bytes, size, &count), LEAT_EFORMAT);
    ck_assert_msg(strstr(leat_last_error(), "have page sizes 4096 and 8192") !=
                      NULL,
                  "%s", leat_last_error());
    free(bytes);
}
END_TEST

/* LMDB never gives a page back: last_page is at 136 of a meta page. */
START_TEST(a_transaction_with_fewer_pages_than_the_one_before_is_refused)
{
    size_t size;
    int64_t count;
    uint64_t txnid[2], last;
    unsigned char *bytes = lmdb_walk_small_database(&size);
    for (int i = 0; i < 2; i++)
        memcpy(&txnid[i], bytes + i * 4096 + 144, sizeof(last));
    int newer = txnid[1] > txnid[0];
    memcpy(&last, bytes + newer * 4096 + 136, sizeof(last));
    memcpy(bytes + !newer * 4096 + 136, &last, sizeof(last));
    ck_assert_int_ge(lmdb_walk_all(bytes, size, &count), LEAT_OK);
    last--;
    memcpy(bytes + newer * 4096 + 136, &last, sizeof(last));
    ck_assert_int_eq(lmdb_walk_all(bytes, size, &count), LEAT_EFORMAT);
    ck_assert_msg(strstr(leat_last_error(), "the one before it") != NULL, "%s",
                  leat_last_error());
    free(bytes);
}
END_TEST

START_TEST(a_tree_that_leads_back_to_itself_ends)
{
    page_image made;
    int64_t count;
    page_image_build(&made, 256, 2000);
    unsigned char *root = NULL;
    uint64_t number;
    memcpy(&number, made.bytes + 128, 8);
    root = made.bytes + number * 256;
    uint16_t offset;
    memcpy(&offset, root + 16 + 2, 2);
    /* The root's second child becomes the root, then its first child. */
    memcpy(root + offset, &number, 4);
    ck_assert_int_eq(lmdb_walk_all(made.bytes, made.pages * 256, &count),
                     LEAT_EFORMAT);
    uint16_t first;
    memcpy(&first, root + 16, 2);
    memcpy(root + offset, root + first, 6);
    ck_assert_int_eq(lmdb_walk_all(made.bytes, made.pages * 256, &count),
                     LEAT_EFORMAT);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "does not follow"));
    free(made.bytes);
}
END_TEST

/* A tree of 8 levels without a record: each branch has 100 nodes, all of which
 * lead to the next page. */
START_TEST(a_tree_of_empty_leaves_is_not_walked_for_ever)
{
    enum { LEVELS = 8, NODES = 100, CHILD = 248 };
    page_image made;
    int64_t count;
    page_image_build(&made, 256, 2000);
    const uint16_t depth = LEVELS, branch = 1, leaf = 2, at = CHILD;
    const uint64_t none = 0, root = 2;
    const uint16_t full = 16 + 2 * NODES, bare = 16, upper = CHILD;
    for (int i = 0; i < 2; i++) {
        memcpy(made.bytes + i * 256 + 94, &depth, 2);
        memcpy(made.bytes + i * 256 + 120, &none, 8);
        memcpy(made.bytes + i * 256 + 128, &root, 8);
    }
    for (uint64_t number = root; number < root + LEVELS; number++) {
        bool is_leaf = number == root + LEVELS - 1;
        unsigned char *page = made.bytes + number * 256;
        uint64_t child = number + 1;
        memset(page, 0, 256);
        memcpy(page, &number, 8);
        memcpy(page + 10, is_leaf ? &leaf : &branch, 2);
        memcpy(page + 12, is_leaf ? &bare : &full, 2);
        memcpy(page + 14, &upper, 2);
        for (int i = 0; i < NODES && !is_leaf; i++)
            memcpy(page + 16 + 2 * i, &at, 2);
        memcpy(page + CHILD, &child, 6);
    }
    ck_assert_int_eq(lmdb_walk_all(made.bytes, made.pages * 256, &count),
                     LEAT_EFORMAT);
    ck_assert_msg(strstr(leat_last_error(), "page 9 is damaged") != NULL, "%s",
                  leat_last_error());
    free(made.bytes);
}
END_TEST

START_TEST(more_records_than_pages_could_hold_take_no_memory)
{
    size_t size;
    int64_t count;
    unsigned char *bytes = lmdb_walk_small_database(&size);
    uint64_t many = (uint64_t)1 << 60;
    memcpy(bytes + 120, &many, 8);
    memcpy(bytes + 4096 + 120, &many, 8);
    ck_assert_int_eq(lmdb_walk_all(bytes, size, &count), LEAT_EFORMAT);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "cannot be in"));
    free(bytes);
}
END_TEST

/* By where the first page has the magic, and in which byte order. */
START_TEST(files_of_others_are_named)
{
    const uint32_t magic = 0xbeefc0de;
    const struct {
        size_t offset;
        uint32_t magic;
        const char *expected;
    } cases[] = {{12, magic, "32-bit program"},
                 {16, __builtin_bswap32(magic), "the other byte order"},
                 {24, magic, "LMDB 1.0"},
                 {20, magic, "not an LMDB data file"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unsigned char page[LEAT__LMDB_META_BYTES] = {0};
        memcpy(page + cases[i].offset, &cases[i].magic, sizeof(magic));
        ck_assert_int_eq(leat__lmdb_meta_check_page("x", 0, page),
                         LEAT_EFORMAT);
        ck_assert_msg(strstr(leat_last_error(), cases[i].expected), "%s",
                      leat_last_error());
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lmdb_map");
    TCase *tcase = tcase_create("lmdb_map");
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, files_of_others_are_named);
    tcase_add_test(tcase, named_databases_and_duplicates_are_refused_by_name);
    tcase_add_test(tcase, a_database_cut_anywhere_is_refused_or_whole);
    tcase_add_test(tcase, bytes_after_the_last_page_do_no_harm);
    tcase_add_test(tcase, no_flipped_bit_does_more_than_change_values_or_fail);
    tcase_add_test(tcase, pages_of_random_bytes_fail_or_change_nothing);
    tcase_add_test(tcase, damage_is_told_by_its_page);
    tcase_add_test(tcase, a_run_of_overflow_pages_is_as_long_as_its_value);
    tcase_add_test(tcase, a_node_ends_with_its_page);
    tcase_add_test(tcase, offsets_and_nodes_keep_apart);
    tcase_add_test(tcase, a_walk_finds_as_many_records_as_the_meta_page_says);
    tcase_add_test(tcase, keys_that_are_the_same_do_not_ascend);
    tcase_add_test(tcase, page_sizes_that_do_not_exist_are_refused);
    tcase_add_test(tcase, meta_pages_of_two_page_sizes_are_refused);
    tcase_add_test(
        tcase, a_transaction_with_fewer_pages_than_the_one_before_is_refused);
    tcase_add_test(tcase, a_tree_that_leads_back_to_itself_ends);
    tcase_add_test(tcase, a_tree_of_empty_leaves_is_not_walked_for_ever);
    tcase_add_test(tcase, more_records_than_pages_could_hold_take_no_memory);
    return suite_run(suite);
}
