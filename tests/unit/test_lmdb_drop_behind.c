#include "readers/lmdb/lmdb_drop_behind.h"
#include "storage_fixture.h"
#include "support/suite.h"

#include <leat/status.h>

static storage_fixture file;
static leat__lmdb_walker walk;
static leat__lmdb_drop_behind behind;

static void tear_down(void)
{
    storage_fixture_close(&file);
}

static void start(fixture_maker *make, int n, size_t kept)
{
    storage_fixture_open(&file, make, n);
    leat__lmdb_walker_init(&walk, &file.map);
    memset(&behind, 0xff, sizeof(behind));
    leat__lmdb_drop_behind_init(&behind, &file.storage, kept, 0);
}

static int step(int n, leat__lmdb_entry *last)
{
    leat__lmdb_entry entry[64];
    int got;
    leat__lmdb_drop_behind_follow(&behind, &walk);
    int status = leat__lmdb_walker_next(&walk, entry, n, &got);
    if (got > 0)
        *last = entry[got - 1];
    return status;
}

static size_t absent(const leat__lmdb_entry *entry)
{
    size_t offset = (size_t)(entry->value - file.map.base);
    return leat__mapped_file_absent(&file.storage.file,
                                    (leat__span){offset, entry->value_size});
}

START_TEST(what_is_far_behind_goes_and_what_is_near_stays)
{
    leat__lmdb_entry entry[1000];
    start(storage_fixture_large, 1000, (size_t)1 << 20);
    if (!storage_fixture_cool(&file))
        return;
    storage_fixture_warm(&file);
    int n = 0;
    while (n < 1000 && step(1, &entry[n]) == LEAT_OK)
        n++;
    ck_assert_int_eq(n, 1000);
    for (int i = 0; i < n; i++) {
        if (i >= n - behind.kept)
            ck_assert_msg(absent(&entry[i]) == 0, "record %d was dropped", i);
        else if (i < n - behind.kept - behind.step)
            ck_assert_msg(absent(&entry[i]) > 0, "record %d is still there", i);
    }
}
END_TEST

START_TEST(leaves_go_with_the_records_in_them)
{
    leat__lmdb_entry entry;
    start(storage_fixture_small, 100000, (size_t)1 << 20);
    if (!storage_fixture_cool(&file))
        return;
    storage_fixture_warm(&file);
    while (step(8, &entry) == LEAT_OK)
        continue;
    leat__span whole = storage_fixture_whole(&file);
    size_t gone = leat__mapped_file_absent(&file.storage.file, whole);
    size_t pages = file.map.size / file.storage.file.page;
    /* What stays: a MiB, a step of two, branches, and a page here and there. */
    ck_assert_uint_gt(gone, pages - pages / 8 - 1000);
    ck_assert_uint_lt(gone, pages - 256);
}
END_TEST

START_TEST(the_cursor_follows_into_the_next_pass)
{
    leat__lmdb_entry entry;
    start(storage_fixture_large, 1000, (size_t)1 << 20);
    for (int lap = 0; lap < 3; lap++) {
        while (step(3, &entry) == LEAT_OK)
            continue;
        int64_t swept = behind.cursor_past + behind.cursor.record;
        int64_t walked = behind.past + walk.record;
        ck_assert_int_eq(walked, 1000 * (lap + 1));
        ck_assert_int_le(swept, walked - behind.kept);
        ck_assert_int_ge(swept, walked - behind.kept - behind.step - 3);
        leat__lmdb_drop_behind_restart(&behind, &walk, 1);
        leat__lmdb_walker_init(&walk, &file.map);
    }
}
END_TEST

START_TEST(a_walk_that_goes_elsewhere_is_followed_from_there)
{
    leat__lmdb_entry entry;
    start(storage_fixture_large, 1000, (size_t)1 << 20);
    ck_assert_int_eq(step(64, &entry), LEAT_OK);
    leat__lmdb_drop_behind_restart(&behind, &walk, 0);
    ck_assert_int_eq(leat__lmdb_walker_seek(&walk, 700), LEAT_OK);
    ck_assert_int_eq(step(1, &entry), LEAT_OK);
    ck_assert_int_eq(behind.cursor.record, 700);
    while (step(1, &entry) == LEAT_OK)
        ck_assert_int_ge(behind.cursor.record, 700);
    ck_assert_int_gt(behind.cursor.record, 700);
}
END_TEST

START_TEST(a_file_that_is_kept_whole_is_not_swept)
{
    leat__lmdb_entry entry;
    start(storage_fixture_large, 100, (size_t)1 << 30);
    while (step(1, &entry) == LEAT_OK)
        ck_assert(!behind.is_positioned);
    leat__lmdb_drop_behind_restart(&behind, &walk, 1);
    ck_assert_int_eq(behind.due, INT64_MAX);
    /* Nor where what is kept and what is read ahead meet. */
    leat__lmdb_drop_behind_init(&behind, &file.storage, file.map.size / 2,
                                file.map.size / 2);
    ck_assert_int_eq(behind.due, INT64_MAX);
}
END_TEST

/* Damage that comes after the walk has passed the place. */
START_TEST(a_cursor_that_reaches_damage_stops)
{
    enum { FAR = 300 };
    leat__lmdb_entry entry;
    int got;
    start(storage_fixture_large, 1000, (size_t)1 << 20);
    while (behind.cursor_past + behind.cursor.record == 0)
        ck_assert_int_eq(step(1, &entry), LEAT_OK);
    for (int i = 0; i < FAR; i++)
        ck_assert_int_eq(leat__lmdb_walker_next(&walk, &entry, 1, &got),
                         LEAT_OK);
    unsigned char *zeros = calloc(1, file.map.size);
    ck_assert_ptr_nonnull(zeros);
    ck_assert_int_eq(pwrite(file.fd, zeros, file.map.size, 0),
                     (ssize_t)file.map.size);
    free(zeros);
    leat__lmdb_drop_behind_follow(&behind, &walk);
    ck_assert_int_eq(behind.due, INT64_MAX);
    ck_assert_int_lt(behind.cursor.record, walk.record - behind.kept);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("lmdb_drop_behind");
    tcase_add_checked_fixture(tests, NULL, tear_down);
    tcase_add_test(tests, what_is_far_behind_goes_and_what_is_near_stays);
    tcase_add_test(tests, leaves_go_with_the_records_in_them);
    tcase_add_test(tests, the_cursor_follows_into_the_next_pass);
    tcase_add_test(tests, a_walk_that_goes_elsewhere_is_followed_from_there);
    tcase_add_test(tests, a_file_that_is_kept_whole_is_not_swept);
    tcase_add_test(tests, a_cursor_that_reaches_damage_stops);
    Suite *suite = suite_create("lmdb_drop_behind");
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
