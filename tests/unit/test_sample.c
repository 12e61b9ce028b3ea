#include "base/memory.h"
#include "data/sample.h"
#include "support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static leat_sample sample;

static void set_up(void)
{
    leat_sample_init(&sample);
}

static void tear_down(void)
{
    leat_sample_finish(&sample);
}

START_TEST(a_new_sample_is_empty_and_owns_nothing)
{
    leat_sample nothing;
    memset(&nothing, 0, sizeof(nothing));
    ck_assert_mem_eq(&sample, &nothing, sizeof(sample));
    leat_sample_finish(NULL);
}
END_TEST

START_TEST(a_box_is_aligned_and_as_large_as_wanted)
{
    for (size_t bytes = 1; bytes < 100000; bytes = 2 * bytes + 1) {
        ck_assert_int_eq(leat_sample_reserve(&sample, bytes), LEAT_OK);
        ck_assert_uint_ge(sample.buffer_size, bytes);
        ck_assert_uint_eq((uintptr_t)sample.buffer % 64, 0);
        memset(sample.buffer, 1, sample.buffer_size);
    }
}
END_TEST

START_TEST(a_box_that_is_large_enough_stays)
{
    ck_assert_int_eq(leat_sample_reserve(&sample, 0), LEAT_OK);
    ck_assert_ptr_null(sample.buffer);
    ck_assert_int_eq(leat_sample_reserve(&sample, 1000), LEAT_OK);
    void *buffer = sample.buffer;
    memset(buffer, 5, 1000);
    ck_assert_int_eq(leat_sample_reserve(&sample, 1000), LEAT_OK);
    ck_assert_int_eq(leat_sample_reserve(&sample, 1), LEAT_OK);
    ck_assert_ptr_eq(sample.buffer, buffer);
    ck_assert_int_eq(*(char *)buffer, 5);
}
END_TEST

START_TEST(sizes_that_creep_up_settle_early)
{
    int64_t before = leat__alloc_count();
    for (size_t bytes = 1000; bytes < 10000; bytes += 10)
        ck_assert_int_eq(leat_sample_reserve(&sample, bytes), LEAT_OK);
    ck_assert_int_le(leat__alloc_count() - before, 10);
}
END_TEST

START_TEST(short_memory_leaves_the_box_as_it_was)
{
    ck_assert_int_eq(leat_sample_reserve(&sample, 10), LEAT_OK);
    void *buffer = sample.buffer;
    leat__alloc_fail_at(0);
    ck_assert_int_eq(leat_sample_reserve(&sample, 1000), LEAT_ENOMEM);
    ck_assert_int_eq(leat_sample_reserve(&sample, SIZE_MAX), LEAT_ENOMEM);
    ck_assert_ptr_eq(sample.buffer, buffer);
    ck_assert_uint_ge(sample.buffer_size, 10);
}
END_TEST

/* One view in the buffer, one elsewhere, and a key. */
static void fill_mixed(const char *elsewhere)
{
    ck_assert_int_eq(leat_sample_reserve(&sample, 8), LEAT_OK);
    memcpy(sample.buffer, "in box", 7);
    sample.nfields = 2;
    sample.field[0].data = sample.buffer;
    sample.field[0].bytes = 7;
    sample.field[1].data = elsewhere;
    sample.field[1].bytes = 10;
    sample.from.key = elsewhere + 10;
    sample.from.key_size = 4;
}

START_TEST(a_sample_that_owns_its_views_needs_nothing_else)
{
    char elsewhere[] = "elsewhere\0key";
    fill_mixed(elsewhere);
    ck_assert_int_eq(leat__sample_own(&sample), LEAT_OK);
    memset(elsewhere, 'x', sizeof(elsewhere));
    ck_assert_str_eq(sample.field[0].data, "in box");
    ck_assert_str_eq(sample.field[1].data, "elsewhere");
    ck_assert_str_eq(sample.from.key, "key");
    ck_assert_uint_eq((uintptr_t)sample.field[1].data % 64, 0);
    const void *buffer = sample.buffer;
    ck_assert_int_eq(leat__sample_own(&sample), LEAT_OK);
    ck_assert_ptr_eq(sample.buffer, buffer);
    ck_assert_str_eq(sample.field[1].data, "elsewhere");
}
END_TEST

START_TEST(a_sample_that_cannot_own_its_views_stays_as_it_was)
{
    char elsewhere[] = "elsewhere\0key";
    fill_mixed(elsewhere);
    leat__alloc_fail_at(0);
    ck_assert_int_eq(leat__sample_own(&sample), LEAT_ENOMEM);
    leat__alloc_fail_at(-1);
    ck_assert_ptr_eq(sample.field[0].data, sample.buffer);
    ck_assert_ptr_eq(sample.field[1].data, elsewhere);
    sample.field[1].bytes = SIZE_MAX - 8;
    ck_assert_int_eq(leat__sample_own(&sample), LEAT_ENOMEM);
}
END_TEST

START_TEST(a_finished_sample_can_be_used_again)
{
    ck_assert_int_eq(leat_sample_reserve(&sample, 10), LEAT_OK);
    sample.nfields = 2;
    leat_sample_finish(&sample);
    ck_assert_ptr_null(sample.buffer);
    ck_assert_int_eq(sample.nfields, 0);
    ck_assert_int_eq(leat_sample_reserve(&sample, 10), LEAT_OK);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sample");
    TCase *tcase = tcase_create("sample");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_new_sample_is_empty_and_owns_nothing);
    tcase_add_test(tcase, a_box_is_aligned_and_as_large_as_wanted);
    tcase_add_test(tcase, a_box_that_is_large_enough_stays);
    tcase_add_test(tcase, sizes_that_creep_up_settle_early);
    tcase_add_test(tcase, short_memory_leaves_the_box_as_it_was);
    tcase_add_test(tcase, a_finished_sample_can_be_used_again);
    tcase_add_test(tcase, a_sample_that_owns_its_views_needs_nothing_else);
    tcase_add_test(tcase, a_sample_that_cannot_own_its_views_stays_as_it_was);
    return suite_run(suite);
}
