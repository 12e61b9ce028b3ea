#include "base/memory.h"

#include <leat/sample.h>

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
        ck_assert_uint_ge(sample.box_size, bytes);
        ck_assert_uint_eq((uintptr_t)sample.box % 64, 0);
        memset(sample.box, 1, sample.box_size);
    }
}
END_TEST

START_TEST(a_box_that_is_large_enough_stays)
{
    ck_assert_int_eq(leat_sample_reserve(&sample, 0), LEAT_OK);
    ck_assert_ptr_null(sample.box);
    ck_assert_int_eq(leat_sample_reserve(&sample, 1000), LEAT_OK);
    void *box = sample.box;
    memset(box, 5, 1000);
    ck_assert_int_eq(leat_sample_reserve(&sample, 1000), LEAT_OK);
    ck_assert_int_eq(leat_sample_reserve(&sample, 1), LEAT_OK);
    ck_assert_ptr_eq(sample.box, box);
    ck_assert_int_eq(*(char *)box, 5);
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
    void *box = sample.box;
    leat__alloc_fail_at(0);
    ck_assert_int_eq(leat_sample_reserve(&sample, 1000), LEAT_ENOMEM);
    ck_assert_int_eq(leat_sample_reserve(&sample, SIZE_MAX), LEAT_ENOMEM);
    ck_assert_ptr_eq(sample.box, box);
    ck_assert_uint_ge(sample.box_size, 10);
}
END_TEST

START_TEST(a_finished_sample_can_be_used_again)
{
    ck_assert_int_eq(leat_sample_reserve(&sample, 10), LEAT_OK);
    sample.nfields = 2;
    leat_sample_finish(&sample);
    ck_assert_ptr_null(sample.box);
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
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
