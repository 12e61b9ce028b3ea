/* Which snapshot is taken of a file whose meta pages or whose end are damaged.
 */
#include "readers/lmdb/check/lmdb_header_repair.h"
#include "support/page_image.h"
#include "support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, RECORDS = 300, OLDER = 200 };

/* Places in a meta page. */
enum {
    AT_NUMBER = 0,
    AT_FLAGS = 10,
    AT_MAGIC = 16,
    AT_PAGE_SIZE = 40,
    AT_FREE_ROOT = 80,
    AT_DATABASE_FLAGS = 92,
    AT_DEPTH = 94,
    AT_ENTRIES = 120,
    AT_ROOT = 128,
    AT_LAST_PAGE = 136,
    AT_TXNID = 144
};

static page_image image;
static size_t size;
static leat__lmdb_map map;
static leat__lmdb_event event[LEAT__LMDB_HEADER_EVENTS];
static int events;

static void put(int meta, size_t at, uint64_t value, size_t bytes)
{
    memcpy(image.bytes + (size_t)meta * image.page_size + at, &value, bytes);
}

static uint64_t get(int meta, size_t at)
{
    uint64_t value;
    memcpy(&value, image.bytes + (size_t)meta * image.page_size + at, 8);
    return value;
}

static void make_image(size_t page_size)
{
    free(image.bytes);
    page_image_build(&image, page_size, RECORDS);
    size = (size_t)image.pages * page_size;
    for (int i = 0; i < 2; i++)
        put(i, AT_FREE_ROOT, UINT64_MAX, 8);
}

static void set_up(void)
{
    make_image(PAGE);
}

static void tear_down(void)
{
    free(image.bytes);
    image.bytes = NULL;
}

/* Of a copy with nothing after it, for a sanitizer; compare, do not read. */
static int repair(void)
{
    unsigned char *exact = malloc(size + !size);
    memcpy(exact, image.bytes, size);
    memset(&map, 0, sizeof(map));
    int status =
        leat__lmdb_header_repair(&map, "file", exact, size, event, &events);
    ck_assert_int_le(events, LEAT__LMDB_HEADER_EVENTS);
    if (!status)
        ck_assert_ptr_eq(map.base, exact);
    free(exact);
    return status;
}

/* Which of the meta pages: its txnid, when all is as it was made. */
static void check_taken(uint64_t txnid)
{
    ck_assert_int_eq(repair(), LEAT_OK);
    ck_assert_uint_eq(map.meta.txnid, txnid);
    ck_assert_uint_eq(map.meta.entries, RECORDS);
    ck_assert_uint_eq(map.meta.last_page, image.pages - 1);
    ck_assert_uint_eq(map.size, size);
}

static void check_event(int i, uint64_t page, int64_t lost, const char *text)
{
    ck_assert_int_lt(i, events);
    ck_assert_int_eq(event[i].status, LEAT_EFORMAT);
    ck_assert_uint_eq(event[i].page, page);
    ck_assert_int_eq(event[i].lost, lost);
    ck_assert_ptr_null(event[i].node.key);
    ck_assert_msg(strstr(event[i].line, text) != NULL, "%s", event[i].line);
}

START_TEST(of_two_good_meta_pages_the_later_counts)
{
    check_taken(1);
    ck_assert_int_eq(events, 0);
    put(0, AT_TXNID, 2, 8);
    check_taken(2);
    ck_assert_int_eq(events, 0);
    /* A database that was never written to. */
    put(0, AT_TXNID, 0, 8);
    put(1, AT_TXNID, 0, 8);
    check_taken(0);
    ck_assert_int_eq(events, 0);
}
END_TEST

START_TEST(without_the_first_meta_page_the_second_is_found_by_its_place)
{
    static const size_t sizes[] = {256,  512,   1024,  2048, 4096,
                                   8192, 16384, 32768, 65536};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        make_image(sizes[i]);
        put(0, AT_MAGIC, 0, 4);
        check_taken(1);
        ck_assert_int_eq(events, 1);
        check_event(0, 0, 0, "not an LMDB data file, or damaged");
        ck_assert_uint_eq(map.meta.page_size, sizes[i]);
        /* It must say itself that it is there. */
        put(1, AT_PAGE_SIZE, sizes[i] == 256 ? 512 : 256, 4);
        ck_assert_int_eq(repair(), LEAT_EFORMAT);
        ck_assert_int_eq(events, 1);
        ck_assert_str_eq(leat_last_error(), event[0].line);
    }
}
END_TEST

START_TEST(without_the_second_meta_page_the_first_is_taken)
{
    put(0, AT_TXNID, 2, 8);
    put(1, AT_NUMBER, 7, 8);
    check_taken(2);
    ck_assert_int_eq(events, 1);
    check_event(0, 1, 0, "it has the number 7");
    put(0, AT_TXNID, 0, 8);
    check_taken(0);
}
END_TEST

START_TEST(a_file_ends_within_a_meta_page_or_just_after_it)
{
    /* A tree of nothing, so that no other page is needed. */
    for (int i = 0; i < 2; i++) {
        put(i, AT_LAST_PAGE, 1, 8);
        put(i, AT_ROOT, UINT64_MAX, 8);
        put(i, AT_DEPTH, 0, 2);
        put(i, AT_ENTRIES, 0, 8);
    }
    size = PAGE + LEAT__LMDB_META_BYTES - 1;
    repair();
    ck_assert_int_ge(events, 1);
    check_event(0, 1, 0, "file: truncated: it has 4247 bytes");
    size++;
    repair();
    for (int i = 0; i < events; i++)
        ck_assert_uint_ne(event[i].page, 1);
    size = 2 * PAGE;
    ck_assert_int_eq(repair(), LEAT_OK);
    ck_assert_int_eq(events, 0);
    ck_assert_uint_eq(map.meta.txnid, 1);
    size = LEAT__LMDB_META_BYTES - 1;
    ck_assert_int_eq(repair(), LEAT_EFORMAT);
    ck_assert_str_eq(leat_last_error(), "file: truncated: it has 151 bytes");
    size = 0;
    ck_assert_int_eq(repair(), LEAT_EFORMAT);
}
END_TEST

/* No damage, so not read as if it were. */
START_TEST(a_database_that_cannot_be_read_is_refused)
{
    for (int i = 0; i < 2; i++) {
        put(i, AT_DATABASE_FLAGS, 4, 2);
        ck_assert_int_eq(repair(), LEAT_EFORMAT);
        ck_assert_ptr_nonnull(strstr(leat_last_error(), "DUPSORT"));
        ck_assert_int_eq(events, 0);
        put(i, AT_DATABASE_FLAGS, 0, 2);
    }
}
END_TEST

START_TEST(meta_pages_that_do_not_follow_each_other_are_damage)
{
    put(1, AT_TXNID, 5, 8);
    check_taken(5);
    ck_assert_int_eq(events, 1);
    check_event(0, 1, 0, "transactions 0 and 5, expected two in a row");
    put(0, AT_TXNID, 8, 8);
    check_taken(8);
    ck_assert_int_eq(events, 1);
}
END_TEST

/* The first has its place without being asked; the other one only by it. */
START_TEST(a_second_meta_page_of_another_page_size_is_not_taken)
{
    put(1, AT_PAGE_SIZE, 8192, 4);
    check_taken(0);
    ck_assert_int_eq(events, 1);
    check_event(0, 1, 0, "page sizes 4096 and 8192");
}
END_TEST

/* The older tree: the first leaves, with their number of records wrong. */
static void make_older(uint64_t last_page)
{
    put(0, AT_TXNID, 4, 8);
    put(1, AT_TXNID, 5, 8);
    put(0, AT_ROOT, 2, 8);
    put(0, AT_DEPTH, 1, 2);
    put(0, AT_ENTRIES, OLDER, 8);
    put(0, AT_LAST_PAGE, last_page, 8);
}

START_TEST(a_file_without_the_latest_root_has_the_tree_before_it)
{
    uint64_t root = get(1, AT_ROOT);
    ck_assert_uint_gt(root, 10);
    make_older(9);
    size = (size_t)root * PAGE + PAGE - 1;
    ck_assert_int_eq(repair(), LEAT_OK);
    ck_assert_uint_eq(map.meta.txnid, 4);
    ck_assert_uint_eq(map.meta.entries, OLDER);
    ck_assert_int_eq(events, 1);
    check_event(0, LEAT__LMDB_NO_PAGE, RECORDS - OLDER, "truncated");
    /* And where both have lost pages, of both it is said. */
    make_older(image.pages - 1);
    ck_assert_int_eq(repair(), LEAT_OK);
    ck_assert_uint_eq(map.meta.txnid, 4);
    ck_assert_uint_eq(map.meta.last_page, root - 1);
    ck_assert_int_eq(events, 2);
    check_event(0, LEAT__LMDB_NO_PAGE, RECORDS - OLDER, "truncated");
    check_event(1, root, 0, "truncated");
}
END_TEST

START_TEST(a_file_with_its_root_is_cut_to_what_is_there)
{
    uint64_t root = get(1, AT_ROOT);
    put(0, AT_ROOT, 2, 8);
    put(1, AT_ROOT, 2, 8);
    put(0, AT_DEPTH, 1, 2);
    put(1, AT_DEPTH, 1, 2);
    size = (size_t)(root - 1) * PAGE;
    ck_assert_int_eq(repair(), LEAT_OK);
    ck_assert_uint_eq(map.meta.txnid, 1);
    ck_assert_uint_eq(map.meta.last_page, root - 2);
    ck_assert_uint_eq(map.meta.entries, RECORDS);
    ck_assert_int_eq(events, 1);
    check_event(0, root - 1, 0, "truncated");
}
END_TEST

START_TEST(a_file_of_meta_pages_alone_has_lost_everything)
{
    size = 2 * PAGE;
    ck_assert_int_eq(repair(), LEAT_OK);
    ck_assert_uint_eq(map.meta.txnid, 1);
    ck_assert_uint_eq(map.meta.last_page, 1);
    ck_assert_uint_eq(map.meta.entries, 0);
    ck_assert_uint_eq(map.meta.root, LEAT__LMDB_NO_PAGE);
    ck_assert_int_eq(map.meta.depth, 0);
    ck_assert_uint_eq(map.meta.free_entries, 0);
    ck_assert_uint_eq(map.meta.free_root, LEAT__LMDB_NO_PAGE);
    ck_assert_int_eq(map.meta.free_depth, 0);
    ck_assert_int_eq(events, 2);
    check_event(0, LEAT__LMDB_NO_PAGE, RECORDS, "truncated");
    /* A byte less is no second meta page. */
    size--;
    ck_assert_int_eq(repair(), LEAT_EFORMAT);
}
END_TEST

/* The file is whole: what is wrong is the tree that the meta page tells of. */
START_TEST(a_wrong_number_of_records_is_damage_of_the_meta_page)
{
    put(0, AT_ENTRIES, UINT64_MAX, 8);
    put(1, AT_ENTRIES, UINT64_MAX, 8);
    ck_assert_int_eq(repair(), LEAT_OK);
    ck_assert_uint_eq(map.meta.txnid, 1);
    ck_assert_uint_eq(map.meta.entries, 0);
    ck_assert_uint_eq(map.meta.last_page, image.pages - 1);
    ck_assert_int_eq(events, 1);
    check_event(0, 1, 0, "records cannot be in");
}
END_TEST

START_TEST(a_wrong_root_gives_the_tree_before_it)
{
    put(1, AT_ROOT, image.pages, 8);
    check_taken(0);
    ck_assert_int_eq(events, 1);
    check_event(0, 1, 0, "its root on page");
    /* A last page that is wrong is no cut: the tree is not sound either. */
    put(1, AT_LAST_PAGE, image.pages, 8);
    put(1, AT_DEPTH, 0, 2);
    check_taken(0);
    check_event(0, image.pages, 0, "truncated");
    put(0, AT_DEPTH, 0, 2);
    ck_assert_int_eq(repair(), LEAT_EFORMAT);
    ck_assert_int_eq(events, 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lmdb_header_repair");
    TCase *tcase = tcase_create("lmdb_header_repair");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, of_two_good_meta_pages_the_later_counts);
    tcase_add_test(
        tcase, without_the_first_meta_page_the_second_is_found_by_its_place);
    tcase_add_test(tcase, without_the_second_meta_page_the_first_is_taken);
    tcase_add_test(tcase, a_file_ends_within_a_meta_page_or_just_after_it);
    tcase_add_test(tcase, a_database_that_cannot_be_read_is_refused);
    tcase_add_test(tcase, meta_pages_that_do_not_follow_each_other_are_damage);
    tcase_add_test(tcase, a_second_meta_page_of_another_page_size_is_not_taken);
    tcase_add_test(tcase,
                   a_file_without_the_latest_root_has_the_tree_before_it);
    tcase_add_test(tcase, a_file_with_its_root_is_cut_to_what_is_there);
    tcase_add_test(tcase, a_file_of_meta_pages_alone_has_lost_everything);
    tcase_add_test(tcase, a_wrong_number_of_records_is_damage_of_the_meta_page);
    tcase_add_test(tcase, a_wrong_root_gives_the_tree_before_it);
    return suite_run(suite);
}
