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
    memcpy(sample.buffer, "buffer", 7);
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
    ck_assert_str_eq(sample.field[0].data, "buffer");
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

/* A buffer with one field set, to be left as it is. */
static void set_one(const uint8_t *data)
{
    const int64_t shape[] = {2, 3};
    ck_assert_int_eq(leat_sample_set(&sample, 0, LEAT_UINT8, 2, shape, data),
                     LEAT_OK);
}

START_TEST(fields_are_set_in_order_with_the_bytes_of_their_shape)
{
    static const uint8_t data[6];
    static const int32_t label = 7;
    const int64_t none[] = {0};
    sample.nfields = 5; /* of another reader's last sample */
    set_one(data);
    ck_assert_int_eq(sample.nfields, 1);
    ck_assert_int_eq(sample.field[0].dtype, LEAT_UINT8);
    ck_assert_int_eq(sample.field[0].ndim, 2);
    ck_assert_int_eq(sample.field[0].shape[1], 3);
    ck_assert_ptr_eq(sample.field[0].data, data);
    ck_assert_uint_eq(sample.field[0].bytes, 6);
    ck_assert_int_eq(leat_sample_set(&sample, 1, LEAT_INT32, 0, NULL, &label),
                     LEAT_OK);
    ck_assert_int_eq(sample.nfields, 2);
    ck_assert_uint_eq(sample.field[1].bytes, sizeof(label));
    ck_assert_int_eq(leat_sample_set(&sample, 2, LEAT_BYTES, 1, none, NULL),
                     LEAT_OK);
    ck_assert_uint_eq(sample.field[2].bytes, 0);
}
END_TEST

START_TEST(a_field_that_cannot_be_is_refused_and_changes_nothing)
{
    static const uint8_t data[6];
    const int64_t one[] = {1};
    const int64_t negative[] = {2, -1};
    const int64_t huge[] = {INT64_MAX, INT64_MAX};
    const struct {
        int i;
        int dtype;
        int ndim;
        const int64_t *shape;
        const void *data;
        const char *line;
    } wrong[] = {
        {-1, LEAT_UINT8, 1, one, data, "in order"},
        {2, LEAT_UINT8, 1, one, data, "in order"},
        {LEAT_MAX_FIELDS, LEAT_UINT8, 1, one, data, "in order"},
        {1, 99, 1, one, data, "field 1: unknown dtype 99"},
        {1, LEAT_UINT8, -1, one, data, "ndim is -1"},
        {1, LEAT_UINT8, LEAT_MAX_DIMS + 1, one, data, "ndim is 9"},
        {1, LEAT_UINT8, 1, NULL, data, "without a shape"},
        {1, LEAT_UINT8, 2, negative, data, "dimension 1 is -1"},
        {1, LEAT_UINT8, 2, huge, data, "dimension 1"},
        {1, LEAT_UINT8, 1, one, NULL, "data is NULL"},
    };
    set_one(data);
    const leat_sample before = sample;
    for (size_t k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++) {
        ck_assert_int_eq(
            leat_sample_set(&sample, wrong[k].i, (leat_dtype)wrong[k].dtype,
                            wrong[k].ndim, wrong[k].shape, wrong[k].data),
            LEAT_EINVAL);
        ck_assert_msg(strstr(leat_last_error(), wrong[k].line) != NULL,
                      "%zu: %s", k, leat_last_error());
        ck_assert_mem_eq(&sample, &before, sizeof(sample));
    }
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
    tcase_add_test(tcase,
                   fields_are_set_in_order_with_the_bytes_of_their_shape);
    tcase_add_test(tcase,
                   a_field_that_cannot_be_is_refused_and_changes_nothing);
    return suite_run(suite);
}
