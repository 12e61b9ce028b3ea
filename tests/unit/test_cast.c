#include "data/cast.h"
#include "support/suite.h"
#include "tools/delivery/npy_header.h"

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

#define TYPES ((leat_dtype)(LEAT_UINT32 + 1))

START_TEST(numbers_become_each_other_and_bytes_only_themselves)
{
    for (leat_dtype from = LEAT_BYTES; from < TYPES; from++)
        for (leat_dtype to = LEAT_BYTES; to < TYPES; to++)
            ck_assert_int_eq(leat__cast_is_possible(from, to),
                             from == to || (from && to));
}
END_TEST

static long double value_of(const void *element, leat_dtype type)
{
    struct npy_header header = npy_header_of(type, 0, NULL);
    if (type != LEAT_BFLOAT16)
        return npy_header_value(&header, element, 0);
    uint16_t bits;
    memcpy(&bits, element, sizeof(bits));
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof(value));
    return (long double)value;
}

/* All bits of 16-bit types; of longer ones the ends, few bits, and random. */
static uint64_t bits_of(leat_dtype type, int i)
{
    static const uint64_t odd[] = {0,
                                   1,
                                   UINT64_MAX,
                                   INT64_MAX,
                                   INT32_MAX,
                                   UINT32_MAX,
                                   0x8000000000000000,
                                   0x80000000,
                                   0x477fefff,
                                   0x477ff000,
                                   0x33000000,
                                   0x33000001,
                                   0x7f7fffff,
                                   0x7f7f8000,
                                   0x40effdffffffffff,
                                   0x40effe0000000000,
                                   0x3e60000000000001,
                                   0x3e60000000000000,
                                   0x1000000000000001,
                                   0x0040200000000001,
                                   0x0040400000000000,
                                   0x36a0000000000000};
    if (leat_dtype_size(type) <= 2)
        return (uint64_t)i;
    size_t n = sizeof(odd) / sizeof(odd[0]);
    uint64_t bits =
        (uint64_t)rand() << 42 ^ (uint64_t)rand() << 21 ^ (uint64_t)rand();
    if ((size_t)i < n)
        bits = odd[i];
    else if (i % 3 == 1)
        bits = bits % 100000;
    return bits;
}

/* Whether no element of the 16-bit type is nearer, nor as near and even. */
static bool is_nearest(long double value, uint16_t got, leat_dtype type)
{
    long double at = value_of(&got, type);
    long double most = type == LEAT_FLOAT16 ? 65520 : 0x1.ffp127L;
    bool is_fine = at == at && fabsl(at) < INFINITY;
    if (value != value)
        return at != at;
    if (fabsl(value) >= most)
        return fabsl(at) == INFINITY && (at < 0) == (value < 0);
    for (int step = -1; step <= 1; step += 2) {
        uint16_t other = (uint16_t)(got + step);
        long double there = value_of(&other, type);
        long double mine = fabsl(at - value), others = fabsl(there - value);
        if (there == there && fabsl(there) < INFINITY)
            is_fine &= mine < others ||
                       (mine == others && (got % 2 == 0 || at == there));
    }
    return is_fine;
}

static long double expected(long double value, leat_dtype to)
{
    static const long double least[TYPES] = {[LEAT_INT8] = INT8_MIN,
                                             [LEAT_INT16] = INT16_MIN,
                                             [LEAT_INT32] = INT32_MIN,
                                             [LEAT_INT64] = INT64_MIN};
    static const long double most[TYPES] = {
        [LEAT_UINT8] = UINT8_MAX,   [LEAT_UINT16] = UINT16_MAX,
        [LEAT_UINT32] = UINT32_MAX, [LEAT_INT8] = INT8_MAX,
        [LEAT_INT16] = INT16_MAX,   [LEAT_INT32] = INT32_MAX,
        [LEAT_INT64] = INT64_MAX};
    if (to == LEAT_FLOAT64)
        return (double)value;
    if (to == LEAT_FLOAT32)
        return (float)value;
    if (value != value)
        return 0;
    value = truncl(value);
    return value < least[to] ? least[to] : value > most[to] ? most[to] : value;
}

/* Whether the element becomes what a long double, which holds all, says. */
static bool is_cast(leat_dtype from, leat_dtype to, const void *in,
                    const void *out)
{
    long double value = value_of(in, from), got = value_of(out, to);
    uint16_t bits;
    memcpy(&bits, out, sizeof(bits));
    if (from == to)
        return memcmp(in, out, leat_dtype_size(to)) == 0;
    if (to == LEAT_FLOAT16 || to == LEAT_BFLOAT16)
        return is_nearest(value, bits, to);
    long double want = expected(value, to);
    return got == want || (got != got && want != want);
}

static void check_pair(leat_dtype from, leat_dtype to)
{
    bool is_exact = true, is_right = true;
    for (int i = 0; i < 65536; i++) {
        uint64_t bits = bits_of(from, i);
        unsigned char out[8] = {0};
        leat__cast(out, to, &bits, from, 1);
        is_right &= is_cast(from, to, &bits, out);
        long double value = value_of(&bits, from), got = value_of(out, to);
        is_exact &= got == value || (got != got && value != value);
    }
    ck_assert_msg(is_right, "%s to %s", leat_dtype_name(from),
                  leat_dtype_name(to));
    ck_assert_msg(leat__cast_is_exact(from, to) == is_exact, "%s to %s",
                  leat_dtype_name(from), leat_dtype_name(to));
}

START_TEST(each_type_becomes_each_other)
{
    for (leat_dtype to = LEAT_UINT8; to < TYPES; to++)
        check_pair((leat_dtype)_i, to);
}
END_TEST

START_TEST(a_type_holds_a_number_or_not)
{
    ck_assert(leat__cast_holds(LEAT_UINT8, 255));
    ck_assert(!leat__cast_holds(LEAT_UINT8, 256));
    ck_assert(!leat__cast_holds(LEAT_UINT8, -1));
    ck_assert(!leat__cast_holds(LEAT_INT64, 0.5));
    ck_assert(leat__cast_holds(LEAT_FLOAT16, -0.5));
    ck_assert(!leat__cast_holds(LEAT_FLOAT16, 1e6));
    ck_assert(leat__cast_holds(LEAT_FLOAT32, (double)NAN));
    ck_assert(!leat__cast_holds(LEAT_INT8, (double)NAN));
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
    leat__cast(NULL, LEAT_INT64, NULL, LEAT_INT64, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cast");
    TCase *tcase = tcase_create("cast");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, numbers_become_each_other_and_bytes_only_themselves);
    tcase_add_loop_test(tcase, each_type_becomes_each_other, LEAT_UINT8, TYPES);
    tcase_add_test(tcase, a_type_holds_a_number_or_not);
    tcase_add_test(tcase, what_both_types_hold_stays_the_same);
    tcase_add_test(tcase, floats_become_integers_towards_zero_within_the_range);
    tcase_add_test(tcase, what_is_no_number_becomes_0_and_infinity_the_end);
    tcase_add_test(tcase, integers_are_clamped_and_not_wrapped);
    tcase_add_test(tcase, large_integers_are_rounded_once);
    tcase_add_test(tcase, none_are_no_work);
    return suite_run(suite);
}
