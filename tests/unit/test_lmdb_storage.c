#include "storage_fixture.h"
#include "support/suite.h"

#include <leat/status.h>

#include <sys/uio.h>

static storage_fixture file;

static void set_up(void)
{
    storage_fixture_open(&file, storage_fixture_large, 100);
}

static void tear_down(void)
{
    storage_fixture_close(&file);
}

static leat__span pages(size_t first, size_t n)
{
    return (leat__span){first * file.storage.file.page,
                        n * file.storage.file.page};
}

static size_t absent(leat__span span)
{
    return leat__mapped_file_absent(&file.storage.file, span);
}

START_TEST(a_file_out_of_memory_may_block_and_one_in_memory_does_not)
{
    if (!storage_fixture_cool(&file))
        return;
    ck_assert(leat__mapped_file_may_block(&file.storage.file));
    storage_fixture_warm(&file);
    ck_assert(!leat__mapped_file_may_block(&file.storage.file));
    ck_assert_uint_eq(absent(storage_fixture_whole(&file)), 0);
}
END_TEST

/* Spans in any order, overlapping and empty ones among them. */
START_TEST(what_is_asked_for_is_counted_once_and_comes)
{
    leat__span asked[] = {pages(200, 8), pages(40, 2),  pages(41, 4),
                          {0, 0},        pages(200, 3), pages(90, 1)};
    leat__span again[6];
    memcpy(again, asked, sizeof(asked));
    if (!storage_fixture_cool(&file))
        return;
    ck_assert_uint_eq(leat__mapped_file_ask(&file.storage.file, asked, 6),
                      8 + 5 + 1);
    ck_assert_int_eq(
        leat__mapped_file_await(&file.storage.file, again, 6, NULL), LEAT_OK);
    ck_assert_uint_eq(absent(pages(200, 8)), 0);
    ck_assert_uint_eq(absent(pages(40, 5)), 0);
    ck_assert_uint_eq(absent(pages(90, 1)), 0);
}
END_TEST

START_TEST(what_lies_in_memory_is_not_asked_for)
{
    leat__span asked[] = {pages(9, 4), pages(2, 4)};
    storage_fixture_warm(&file);
    ck_assert_uint_eq(leat__mapped_file_ask(&file.storage.file, asked, 2), 0);
}
END_TEST

START_TEST(pages_in_part_in_a_dropped_span_stay)
{
    leat__span span = {20 * file.storage.file.page - 1,
                       4 * file.storage.file.page + 2};
    if (!storage_fixture_cool(&file))
        return;
    storage_fixture_warm(&file);
    leat__mapped_file_drop(&file.storage.file, &span, 1);
    ck_assert_uint_eq(absent(pages(20, 4)), 4);
    ck_assert_uint_eq(absent(pages(0, 20)), 0);
    ck_assert_uint_eq(absent(pages(24, 20)), 0);
}
END_TEST

/* Whether a read that must not wait fails on a page out of memory. A quick disk
   may have read it by then. */
static int disk_is_slow(void)
{
    char byte;
    struct iovec to = {&byte, 1};
    off_t middle = (off_t)(120 * file.storage.file.page);
    return preadv2(file.fd, &to, 1, middle, RWF_NOWAIT) != 1;
}

/* Another's file: the kernel does not tell, but can be tried. */
START_TEST(where_the_kernel_does_not_tell_pages_are_tried)
{
    int slow = 0, found = 0;
    ck_assert_int_eq(posix_fadvise(file.fd, 0, 0, POSIX_FADV_RANDOM), 0);
    for (int tries = 0; tries < 100 && !found; tries++) {
        file.storage.file.can_see = 1;
        if (!storage_fixture_cool(&file))
            return;
        file.storage.file.can_see = 0;
        slow += disk_is_slow();
        found = absent(pages(20, 200)) == 2 &&
                leat__mapped_file_may_block(&file.storage.file);
    }
    if (!found)
        printf("skipped: the disk is too quick to see what is in memory\n");
    ck_assert(found || slow < 50);
    storage_fixture_warm(&file);
    size_t after = absent(pages(20, 4));
    ck_assert(after == 0 || after == 2);
}
END_TEST

START_TEST(storage_that_fails_is_an_error_and_no_signal)
{
    leat__span good = pages(0, 1);
    leat__span bad = pages(0, 3);
    if (madvise((void *)(uintptr_t)file.map.base, file.storage.file.page, 22)) {
        printf("skipped: the kernel has no MADV_POPULATE_READ\n");
        return;
    }
    ck_assert_int_eq(ftruncate(file.fd, (off_t)file.storage.file.page), 0);
    ck_assert_int_eq(
        leat__mapped_file_await(&file.storage.file, &good, 1, NULL), LEAT_OK);
    ck_assert_int_eq(leat__mapped_file_await(&file.storage.file, &bad, 1, NULL),
                     LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), file.path));
}
END_TEST

START_TEST(places_outside_the_file_give_empty_spans)
{
    leat__lmdb_node node = {.overflow = UINT64_MAX, .value_size = 5};
    const leat__lmdb_storage *storage = &file.storage;
    ck_assert_uint_eq(leat__lmdb_storage_leaf(storage, UINT64_MAX).bytes, 0);
    ck_assert_uint_eq(leat__lmdb_storage_value(storage, &node).bytes, 0);
    node.overflow = file.map.meta.last_page;
    node.value_size = UINT32_MAX;
    leat__span span = leat__lmdb_storage_value(storage, &node);
    ck_assert_uint_eq(span.offset + span.bytes, file.map.size);
    node.value = file.map.base;
    ck_assert_uint_eq(leat__lmdb_storage_value(storage, &node).bytes, 0);
}
END_TEST

START_TEST(averages_are_those_of_the_tree_and_bounded)
{
    leat__lmdb_map map = file.map;
    leat__lmdb_storage storage;
    ck_assert_uint_ge(file.storage.record_bytes, 9000);
    ck_assert_uint_lt(file.storage.record_bytes, 14000);
    map.meta.leaf_pages = map.meta.overflow_pages = UINT64_MAX;
    map.meta.entries = UINT64_MAX;
    leat__lmdb_storage_init(&storage, &map, file.fd);
    ck_assert_uint_eq(storage.record_bytes, 1);
    ck_assert_uint_ge(storage.leaf_bytes, 1);
    map.meta.leaf_pages = map.meta.overflow_pages = map.meta.entries = 0;
    leat__lmdb_storage_init(&storage, &map, file.fd);
    ck_assert_uint_eq(storage.record_bytes, map.meta.page_size);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("lmdb_storage");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests,
                   a_file_out_of_memory_may_block_and_one_in_memory_does_not);
    tcase_add_test(tests, what_is_asked_for_is_counted_once_and_comes);
    tcase_add_test(tests, what_lies_in_memory_is_not_asked_for);
    tcase_add_test(tests, pages_in_part_in_a_dropped_span_stay);
    tcase_add_test(tests, where_the_kernel_does_not_tell_pages_are_tried);
    tcase_add_test(tests, storage_that_fails_is_an_error_and_no_signal);
    tcase_add_test(tests, places_outside_the_file_give_empty_spans);
    tcase_add_test(tests, averages_are_those_of_the_tree_and_bounded);
    Suite *suite = suite_create("lmdb_storage");
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
