#include "readers/lmdb/lmdb_readahead.h"
#include "storage_fixture.h"
#include "support/suite.h"

#include <leat/status.h>

static storage_fixture file;
static leat__lmdb_walker walk;
static leat__lmdb_readahead ahead;

static void open_file(fixture_maker *make, int n)
{
    storage_fixture_open(&file, make, n);
    leat__lmdb_walker_init(&walk, &file.map);
}

static void tear_down(void)
{
    storage_fixture_close(&file);
}

/* As if the file had been found out of memory, which not every file system
   lets a test bring about. */
static void start(size_t window, int values)
{
    leat__lmdb_readahead_init(&ahead, &file.storage, window, values);
    ahead.is_cold = 1;
    ahead.is_fresh = 0;
}

static int step(int n)
{
    leat__lmdb_entry entry[64];
    int got;
    leat__lmdb_readahead_follow(&ahead, &walk);
    return leat__lmdb_walker_next(&walk, entry, n, &got);
}

START_TEST(cursors_keep_their_distance_from_the_walk)
{
    open_file(storage_fixture_large, 500);
    start((size_t)1 << 20, 1);
    ck_assert_int_gt(ahead.lead_records, 60);
    ck_assert_int_lt(ahead.lead_records, 120);
    while (step(1) == LEAT_OK && walk.record < 300) {
        ahead.resident_bytes = 0;
        int64_t lead = ahead.value_cursor.record - (walk.record - 1);
        ck_assert_int_ge(lead, 1);
        ck_assert_int_le(lead, ahead.lead_records);
        if (walk.record > 100)
            ck_assert_int_ge(lead, ahead.lead_records * 3 / 4);
        ck_assert_int_ge(ahead.page_cursor[0].leaves,
                         ahead.value_cursor.leaves);
    }
    ck_assert_int_eq(walk.record, 300);
}
END_TEST

START_TEST(records_within_leaves_are_asked_for_by_leaves)
{
    open_file(storage_fixture_small, 20000);
    start((size_t)1 << 18, 1);
    ck_assert_int_eq(ahead.lead_records, 0);
    ck_assert_int_ge(ahead.page_cursors, 2);
    while (step(8) == LEAT_OK && walk.record < 10000) {
        ahead.resident_bytes = 0;
        int64_t lead = ahead.page_cursor[0].leaves - walk.leaves;
        ck_assert_int_le(lead, ahead.lead_leaves);
        if (walk.leaves > 64)
            ck_assert_int_ge(lead, ahead.lead_leaves * 3 / 4);
    }
    ck_assert_int_eq(walk.record, 10000);
}
END_TEST

/* At the end of a pass the cursors are in the next pass. */
static void check_laps(int n)
{
    int64_t met = 0;
    for (int lap = 0; lap < 3; lap++) {
        int status;
        while ((status = step(7)) == LEAT_OK)
            ahead.resident_bytes = 0;
        ck_assert_int_eq(status, LEAT_END);
        met += walk.record;
        ck_assert(ahead.is_positioned);
        leat__lmdb_readahead_restart(&ahead, &walk, 1);
        ck_assert(ahead.is_positioned);
        leat__lmdb_walker_init(&walk, &file.map);
        int64_t before = ahead.past_records;
        ck_assert_int_eq(before, met);
        ck_assert_int_gt(ahead.lead_records ? ahead.value_cursor_past +
                                                  ahead.value_cursor.record
                                            : ahead.leaf_cursor_past,
                         ahead.lead_records ? met : ahead.past_leaves - 1);
    }
    ck_assert_int_eq(met, 3 * n);
    ck_assert(!ahead.is_over);
}

START_TEST(cursors_begin_the_next_pass_before_the_walk_does)
{
    open_file(storage_fixture_large, 300);
    start((size_t)1 << 19, 1);
    check_laps(300);
}
END_TEST

START_TEST(so_they_do_over_leaves_alone)
{
    open_file(storage_fixture_small, 9000);
    start((size_t)1 << 18, 1);
    check_laps(9000);
}
END_TEST

START_TEST(a_walk_that_goes_elsewhere_takes_the_cursors_along)
{
    open_file(storage_fixture_large, 500);
    start((size_t)1 << 19, 1);
    ck_assert_int_eq(step(5), LEAT_OK);
    leat__lmdb_readahead_restart(&ahead, &walk, 0);
    ck_assert_int_eq(leat__lmdb_walker_seek(&walk, 400), LEAT_OK);
    ck_assert_int_eq(step(1), LEAT_OK);
    ck_assert_int_gt(ahead.value_cursor.record, 400);
    leat__lmdb_readahead_restart(&ahead, &walk, 0);
    ck_assert_int_eq(leat__lmdb_walker_seek(&walk, 10), LEAT_OK);
    ck_assert_int_eq(step(1), LEAT_OK);
    ck_assert_int_lt(ahead.value_cursor.record, 100);
}
END_TEST

/* One that took its records from an index, until the file left memory. */
START_TEST(a_walk_that_jumped_has_cursors_where_it_is)
{
    static const struct {
        fixture_maker *make;
        int n;
        size_t window;
    } files[] = {{storage_fixture_large, 500, (size_t)1 << 19},
                 {storage_fixture_small, 20000, (size_t)1 << 18}};
    int64_t n = files[_i].n;
    open_file(files[_i].make, files[_i].n);
    leat__lmdb_walker_jump(&walk, n / 2, 1 << 16);
    start(files[_i].window, 1);
    for (int64_t record = n / 2; record < n; record++) {
        ck_assert_int_eq(step(1), LEAT_OK);
        ck_assert_int_eq(walk.record, record + 1);
        ck_assert(ahead.is_positioned && !ahead.is_over);
        for (int up = 0; up < ahead.page_cursors; up++)
            ck_assert_int_eq(ahead.page_cursor[up].levels,
                             file.map.meta.depth - 1 - up);
        ahead.resident_bytes = 0;
        /* The first step is that which opens the walk's pages. */
        if (record == n / 2 + 1) {
            ck_assert_int_gt(ahead.page_cursor[0].leaves, walk.leaves);
            if (ahead.lead_records)
                ck_assert_int_gt(ahead.value_cursor.record, walk.record);
        }
    }
    ck_assert_int_eq(step(1), LEAT_END);
}
END_TEST

START_TEST(over_a_file_in_memory_the_cursors_stop)
{
    open_file(storage_fixture_large, 500);
    storage_fixture_warm(&file);
    start((size_t)1 << 19, 1);
    while (step(1) == LEAT_OK && ahead.is_cold)
        continue;
    ck_assert(!ahead.is_cold);
    ck_assert_int_lt(walk.record, 300);
    int64_t rested = ahead.value_cursor.record;
    while (step(1) == LEAT_OK)
        ck_assert(!ahead.is_cold);
    ck_assert_int_eq(ahead.value_cursor.record, rested);
}
END_TEST

START_TEST(a_file_out_of_memory_is_noticed_at_once_or_on_the_way)
{
    open_file(storage_fixture_large, 500);
    if (!storage_fixture_cool(&file))
        return;
    leat__lmdb_readahead_init(&ahead, &file.storage, (size_t)1 << 19, 1);
    ck_assert_int_eq(step(1), LEAT_OK);
    ck_assert(ahead.is_cold);
    storage_fixture_warm(&file);
    leat__lmdb_readahead_init(&ahead, &file.storage, (size_t)1 << 19, 1);
    ck_assert_int_eq(step(1), LEAT_OK);
    ck_assert(!ahead.is_cold);
    /* The kernel's own read-ahead might do as well as this. */
    ck_assert_int_eq(
        madvise((void *)(uintptr_t)file.map.base, file.map.size, MADV_RANDOM),
        0);
    ck_assert(storage_fixture_cool(&file));
    while (step(1) == LEAT_OK && !ahead.is_cold)
        continue;
    ck_assert(ahead.is_cold);
}
END_TEST

START_TEST(without_a_window_there_are_probes_but_no_cursors)
{
    open_file(storage_fixture_large, 500);
    int can_cool = storage_fixture_cool(&file);
    leat__lmdb_readahead_init(&ahead, &file.storage, 0, 1);
    ck_assert_int_eq(step(1), LEAT_OK);
    ck_assert_int_eq(ahead.is_cold, can_cool);
    storage_fixture_warm(&file);
    while (step(1) == LEAT_OK)
        ck_assert(!ahead.is_positioned);
    ck_assert(!ahead.is_cold);
}
END_TEST

/* Every leaf but the first is damaged: the walk reports it, no cursor does. */
START_TEST(damage_ends_the_cursors_and_is_left_to_the_walk)
{
    open_file(storage_fixture_large, 500);
    leat__lmdb_walker other;
    uint64_t leaf = 0;
    leat__lmdb_walker_init(&other, &file.map);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(leat__lmdb_walker_page(&other, &leaf), LEAT_OK);
    unsigned char zeros[16] = {0};
    ck_assert_int_eq(pwrite(file.fd, zeros, sizeof(zeros),
                            (off_t)(leaf * file.map.meta.page_size)),
                     16);
    start((size_t)4 << 20, 1);
    int status;
    while ((status = step(1)) == LEAT_OK)
        ahead.resident_bytes = 0;
    ck_assert_int_eq(status, LEAT_EFORMAT);
    ck_assert(ahead.is_over);
    ck_assert_int_gt(walk.record, 0);
}
END_TEST

START_TEST(counts_of_pages_that_are_wrong_do_no_harm)
{
    static const uint64_t wrong[] = {0, 1, UINT64_MAX / 2, UINT64_MAX};
    open_file(storage_fixture_large, 300);
    for (int i = 0; i < 4 * 4 * 4; i++) {
        file.map.meta.branch_pages = wrong[i % 4];
        file.map.meta.leaf_pages = wrong[i / 4 % 4];
        file.map.meta.overflow_pages = wrong[i / 16];
        leat__lmdb_storage_init(&file.storage, &file.map, file.fd);
        leat__lmdb_walker_init(&walk, &file.map);
        start((size_t)1 << 19, 1);
        while (step(1) == LEAT_OK)
            ahead.resident_bytes = 0;
        ck_assert_int_eq(walk.record, 300);
    }
}
END_TEST

START_TEST(trees_of_one_leaf_and_of_none_have_nothing_to_prefetch)
{
    for (int n = 0; n < 4; n += 3) {
        open_file(storage_fixture_small, n);
        start((size_t)1 << 20, 1);
        for (int lap = 0; lap < 3; lap++) {
            while (step(1) == LEAT_OK)
                continue;
            ck_assert_int_eq(walk.record, n);
            leat__lmdb_readahead_restart(&ahead, &walk, 1);
            leat__lmdb_walker_init(&walk, &file.map);
        }
        if (n == 0)
            storage_fixture_close(&file);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("lmdb_readahead");
    tcase_add_checked_fixture(tests, NULL, tear_down);
    tcase_add_test(tests, cursors_keep_their_distance_from_the_walk);
    tcase_add_test(tests, records_within_leaves_are_asked_for_by_leaves);
    tcase_add_test(tests, cursors_begin_the_next_pass_before_the_walk_does);
    tcase_add_test(tests, so_they_do_over_leaves_alone);
    tcase_add_test(tests, a_walk_that_goes_elsewhere_takes_the_cursors_along);
    tcase_add_loop_test(tests, a_walk_that_jumped_has_cursors_where_it_is, 0,
                        2);
    tcase_add_test(tests, over_a_file_in_memory_the_cursors_stop);
    tcase_add_test(tests,
                   a_file_out_of_memory_is_noticed_at_once_or_on_the_way);
    tcase_add_test(tests, without_a_window_there_are_probes_but_no_cursors);
    tcase_add_test(tests, damage_ends_the_cursors_and_is_left_to_the_walk);
    tcase_add_test(tests, counts_of_pages_that_are_wrong_do_no_harm);
    tcase_add_test(tests,
                   trees_of_one_leaf_and_of_none_have_nothing_to_prefetch);
    Suite *suite = suite_create("lmdb_readahead");
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
