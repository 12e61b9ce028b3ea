#include "data/cast.h"
#include "support/suite.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const leat_dtype numbers[] = {LEAT_UINT8, LEAT_INT32, LEAT_INT64,
                                     LEAT_FLOAT32, LEAT_FLOAT64};
#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

/* The element as it is stored, one place off its alignment. */
static void put(unsigned char *to, leat_dtype type, double value)
{
    if (type == LEAT_UINT8) {
        *to = (uint8_t)value;
    } else if (type == LEAT_INT32) {
        int32_t integer = (int32_t)value;
        memcpy(to, &integer, sizeof(integer));
    } else if (type == LEAT_INT64) {
        int64_t integer = (int64_t)value;
        memcpy(to, &integer, sizeof(integer));
    } else if (type == LEAT_FLOAT32) {
        float real = (float)value;
        memcpy(to, &real, sizeof(real));
    } else {
        memcpy(to, &value, sizeof(value));
    }
}

START_TEST(numbers_become_each_other_and_all_else_only_itself)
{
    for (leat_dtype from = LEAT_BYTES; from <= LEAT_FLOAT64; from++) {
        for (leat_dtype to = LEAT_BYTES; to <= LEAT_FLOAT64; to++) {
            int known = 0;
            for (size_t i = 0; i < NUMBERS; i++)
                known += (numbers[i] == from) + (numbers[i] == to);
            ck_assert_int_eq(leat__cast_is_possible(from, to),
                             from == to || known == 2);
        }
    }
}
END_TEST

START_TEST(what_both_types_hold_stays_the_same)
{
    const double values[] = {0, 1, 7, 128, 255};
    unsigned char in[1 + 5 * 8];
    unsigned char out[1 + 5 * 8 + 1];
    unsigned char expected[1 + 5 * 8 + 1];
    for (size_t f = 0; f < NUMBERS; f++) {
        for (size_t t = 0; t < NUMBERS; t++) {
            memset(out, 0xee, sizeof(out));
            memset(expected, 0xee, sizeof(expected));
            for (size_t i = 0; i < 5; i++) {
                put(in + 1 + i * leat_dtype_size(numbers[f]), numbers[f],
                    values[i]);
                put(expected + 1 + i * leat_dtype_size(numbers[t]), numbers[t],
                    values[i]);
            }
            leat__cast(out + 1, numbers[t], in + 1, numbers[f], 5);
            ck_assert_mem_eq(out, expected, sizeof(out));
        }
    }
}
END_TEST

static int64_t integer_of(double value, leat_dtype from, leat_dtype to)
{
    unsigned char in[8];
    unsigned char out[8];
    int32_t integer;
    int64_t large;
    put(in, from, value);
    leat__cast(out, to, in, from, 1);
    memcpy(&integer, out, sizeof(integer));
    memcpy(&large, out, sizeof(large));
    return to == LEAT_UINT8 ? out[0] : to == LEAT_INT32 ? integer : large;
}

START_TEST(floats_become_integers_towards_zero_within_the_range)
{
    const leat_dtype floats[] = {LEAT_FLOAT32, LEAT_FLOAT64};
    for (int i = 0; i < 2; i++) {
        leat_dtype from = floats[i];
        ck_assert_int_eq(integer_of(2.9, from, LEAT_UINT8), 2);
        ck_assert_int_eq(integer_of(-0.9, from, LEAT_INT32), 0);
        ck_assert_int_eq(integer_of(-2.9, from, LEAT_INT64), -2);
        ck_assert_int_eq(integer_of(256, from, LEAT_UINT8), 255);
        ck_assert_int_eq(integer_of(-1, from, LEAT_UINT8), 0);
        ck_assert_int_eq(integer_of(1e10, from, LEAT_INT32), INT32_MAX);
        ck_assert_int_eq(integer_of(-1e10, from, LEAT_INT32), INT32_MIN);
        ck_assert_int_eq(integer_of(0x1p63, from, LEAT_INT64), INT64_MAX);
        ck_assert_int_eq(integer_of(-0x1p63, from, LEAT_INT64), INT64_MIN);
    }
}
END_TEST

START_TEST(what_is_no_number_becomes_0_and_infinity_the_end)
{
    const float odd[] = {NAN, INFINITY, -INFINITY};
    const int64_t least[] = {0, INT32_MIN, INT64_MIN};
    const int64_t most[] = {UINT8_MAX, INT32_MAX, INT64_MAX};
    for (int t = 0; t < 3; t++) {
        leat_dtype to = numbers[t];
        unsigned char out[3 * 8];
        int64_t got[3] = {0};
        leat__cast(out, to, odd, LEAT_FLOAT32, 3);
        for (size_t i = 0; i < 3; i++)
            leat__cast(&got[i], LEAT_INT64, out + i * leat_dtype_size(to), to,
                       1);
        ck_assert_int_eq(got[0], 0);
        ck_assert_int_eq(got[1], most[t]);
        ck_assert_int_eq(got[2], least[t]);
    }
}
END_TEST

START_TEST(integers_are_clamped_and_not_wrapped)
{
    ck_assert_int_eq(integer_of(300, LEAT_INT32, LEAT_UINT8), 255);
    ck_assert_int_eq(integer_of(-5, LEAT_INT64, LEAT_UINT8), 0);
    ck_assert_int_eq(integer_of(0x1p40, LEAT_INT64, LEAT_INT32), INT32_MAX);
    ck_assert_int_eq(integer_of(-0x1p40, LEAT_INT64, LEAT_INT32), INT32_MIN);
}
END_TEST

START_TEST(large_integers_are_rounded_once)
{
    /* By way of double this would be rounded to even twice, and down. */
    const int64_t large = ((int64_t)1 << 60) + ((int64_t)1 << 36) + 1;
    float real;
    leat__cast(&real, LEAT_FLOAT32, &large, LEAT_INT64, 1);
    ck_assert(real == (float)large);
    ck_assert(real != (float)(double)large);
    const int64_t whole = ((int64_t)1 << 62) + 1;
    int64_t same;
    leat__cast(&same, LEAT_INT64, &whole, LEAT_INT64, 1);
    ck_assert_int_eq(same, whole);
}
END_TEST

START_TEST(none_are_no_work)
{
    unsigned char out = 7;
    leat__cast(&out, LEAT_UINT8, &out, LEAT_FLOAT64, 0);
    ck_assert_int_eq(out, 7);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cast");
    TCase *tcase = tcase_create("cast");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, numbers_become_each_other_and_all_else_only_itself);
    tcase_add_test(tcase, what_both_types_hold_stays_the_same);
    tcase_add_test(tcase, floats_become_integers_towards_zero_within_the_range);
    tcase_add_test(tcase, what_is_no_number_becomes_0_and_infinity_the_end);
    tcase_add_test(tcase, integers_are_clamped_and_not_wrapped);
    tcase_add_test(tcase, large_integers_are_rounded_once);
    tcase_add_test(tcase, none_are_no_work);
    return suite_run(suite);
}
