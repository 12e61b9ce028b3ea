/* Numbers in texts; test_locale has those of another locale. */
#include "base/decimal.h"
#include "support/suite.h"

#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

START_TEST(whole_numbers_are_read_up_to_64_bits)
{
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {{"0", 0},
                {"-0", 0},
                {"+7", 7},
                {"007", 7},
                {"-12", -12},
                {"9223372036854775807", INT64_MAX},
                {"-9223372036854775808", INT64_MIN}};
    static const char *const bad[] = {
        "",    "-",    "+",   " 1",
        "1 ",  "1.0",  "0x1", "9223372036854775808",
        "1e3", "--1",  "a",   "-9223372036854775809",
        "1,5", "1_000"};
    int64_t out;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        ck_assert(
            leat__decimal_integer(good[i].text, strlen(good[i].text), &out));
        ck_assert_int_eq(out, good[i].value);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        out = 5;
        ck_assert_msg(!leat__decimal_integer(bad[i], strlen(bad[i]), &out),
                      "%s", bad[i]);
        ck_assert_int_eq(out, 5);
    }
}
END_TEST

/* The C library's own reading, in the "C" locale, is the oracle. */
static void check_double(const char *text)
{
    double out = 0.5, expected = strtod(text, NULL);
    ck_assert_msg(leat__decimal_double(text, strlen(text), &out), "%s", text);
    bool is_same = out == expected && signbit(out) == signbit(expected);
    ck_assert_msg(is_same || (isnan(out) && isnan(expected)),
                  "%s: %a, expected %a", text, out, expected);
}

START_TEST(decimal_numbers_are_read_to_the_nearest_double)
{
    static const char *const good[] = {"0",
                                       "-0",
                                       "1",
                                       "1.5",
                                       ".5",
                                       "5.",
                                       "-.25",
                                       "1e3",
                                       "1E-3",
                                       "+2e+2",
                                       "1e999",
                                       "-1e999",
                                       "1e-999",
                                       "inf",
                                       "-INF",
                                       "nan",
                                       "0.1",
                                       "123456789012345",
                                       "1234567890123456",
                                       "0.000000000000001",
                                       "9007199254740993",
                                       "2.2250738585072011e-308",
                                       "0.30000000000000004"};
    static const char *const bad[] = {
        "",   ".",        "-",  "1,5",   "0x10", "1e",      "e5",    " 1",
        "1 ", "infinity", "1f", "1.2.3", "in",   "1e5000x", "nan(1)"};
    double out = 2;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        check_double(good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(!leat__decimal_double(bad[i], strlen(bad[i]), &out), "%s",
                      bad[i]);
    for (int i = 0; i < 100000; i++) {
        char text[64];
        snprintf(text, sizeof(text), "%.*f", i % 15,
                 (double)rand() / (1 + rand() % 100000) - 500);
        check_double(text);
        snprintf(text, sizeof(text), "%.*g", 1 + i % 17,
                 (double)rand() * pow(10, rand() % 60 - 30));
        check_double(text);
    }
    ck_assert(leat__decimal_double("12345", 2, &out) && out == 12);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("decimal");
    TCase *tcase = tcase_create("decimal");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, whole_numbers_are_read_up_to_64_bits);
    tcase_add_test(tcase, decimal_numbers_are_read_to_the_nearest_double);
    return suite_run(suite);
}
