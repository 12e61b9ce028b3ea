/* Rounding to two bytes, against what the bits of the types mean. */
#include "base/random.h"
#include "device/float16.h"
#include "support/suite.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

/* The value of finite float16 bits; infinity as if the range went on. */
static double value_of(uint16_t half)
{
    int exponent = half >> 10 & 31;
    double fraction = half & 1023;
    double size =
        exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    return half & 0x8000 ? -size : size;
}

static float of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* Nearest among its neighbours, and even where two are as near. */
static void check_nearest(float x)
{
    uint16_t found = leat__float16(x);
    ck_assert_int_eq(found >> 15, bits_of(x) >> 31);
    double distance = fabs(value_of(found) - (double)x);
    for (int step = -1; step <= 1; step += 2) {
        int next = (found & 0x7fff) + step;
        if (next < 0 || next > 0x7c00)
            continue;
        uint16_t neighbour = (uint16_t)((found & 0x8000) | next);
        double other = fabs(value_of(neighbour) - (double)x);
        ck_assert_msg(distance < other || (distance == other && !(found & 1)),
                      "%a became %04x", (double)x, found);
    }
}

START_TEST(every_float16_comes_back_as_it_was)
{
    for (int i = 0; i < 0x10000; i++) {
        if ((i & 0x7fff) < 0x7c00)
            ck_assert_int_eq(leat__float16((float)value_of((uint16_t)i)), i);
    }
}
END_TEST

START_TEST(what_lies_between_goes_to_the_nearest)
{
    for (int i = 0; i < 0x7c00; i++) {
        double low = value_of((uint16_t)i);
        double middle = (low + value_of((uint16_t)(i + 1))) / 2;
        check_nearest((float)middle);
        check_nearest(nextafterf((float)middle, 0));
        check_nearest(-nextafterf((float)middle, INFINITY));
    }
    for (uint32_t i = 0; i < 200000; i++) {
        uint32_t words[4];
        leat__philox((uint32_t[]){i, 0, 0, 0}, (uint32_t[]){1, 2}, words);
        float x = of_bits(words[0]);
        if (fabsf(x) < 65520)
            check_nearest(x);
    }
}
END_TEST

START_TEST(what_is_too_large_is_infinite_and_nan_is_nan)
{
    ck_assert_int_eq(leat__float16(65519.996f), 0x7bff);
    ck_assert_int_eq(leat__float16(65520), 0x7c00);
    ck_assert_int_eq(leat__float16(-1e30f), 0xfc00);
    ck_assert_int_eq(leat__float16(INFINITY), 0x7c00);
    ck_assert_int_eq(leat__float16(of_bits(0x7f800001)), 0x7e00);
    ck_assert_int_eq(leat__float16(of_bits(0xffc12345)), 0x7e00);
    ck_assert_int_eq(leat__float16(-0.0f), 0x8000);
    ck_assert_int_eq(leat__float16(of_bits(1)), 0);
}
END_TEST

START_TEST(bfloat16_is_the_nearest_upper_half_of_a_float)
{
    ck_assert_int_eq(leat__bfloat16(1), 0x3f80);
    ck_assert_int_eq(leat__bfloat16(-0.0f), 0x8000);
    ck_assert_int_eq(leat__bfloat16(of_bits(0x3f808000)), 0x3f80);
    ck_assert_int_eq(leat__bfloat16(of_bits(0x3f818000)), 0x3f82);
    ck_assert_int_eq(leat__bfloat16(of_bits(0x3f808001)), 0x3f81);
    ck_assert_int_eq(leat__bfloat16(of_bits(0x00008001)), 0x0001);
    ck_assert_int_eq(leat__bfloat16(of_bits(0x7f7fffff)), 0x7f80);
    ck_assert_int_eq(leat__bfloat16(-INFINITY), 0xff80);
    ck_assert_int_eq(leat__bfloat16(of_bits(0x7f800001)), 0x7fc0);
    ck_assert_int_eq(leat__bfloat16(of_bits(0xffffffff)), 0x7fc0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("float16");
    TCase *tcase = tcase_create("float16");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, every_float16_comes_back_as_it_was);
    tcase_add_test(tcase, what_lies_between_goes_to_the_nearest);
    tcase_add_test(tcase, what_is_too_large_is_infinite_and_nan_is_nan);
    tcase_add_test(tcase, bfloat16_is_the_nearest_upper_half_of_a_float);
    return suite_run(suite);
}
