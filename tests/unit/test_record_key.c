#include "support/suite.h"
#include "tools/import/record_key.h"

#include <check.h>
#include <string.h>

static struct record_key key;

static void finish(void)
{
    record_key_finish(&key);
}

static void assert_key(int digits, int64_t number, const char *name,
                       const char *expected)
{
    ck_assert_int_eq(record_key_make(&key, digits, number, name), LEAT_OK);
    ck_assert_str_eq(key.text, expected);
    ck_assert_uint_eq(key.size, strlen(expected));
}

START_TEST(keys_are_those_of_caffes_tools)
{
    assert_key(8, 0, NULL, "00000000");
    assert_key(5, 9999, NULL, "09999");
    assert_key(8, 12, "n01/cat 1.jpg", "00000012_n01/cat 1.jpg");
    assert_key(5, 99999, NULL, "99999");
}
END_TEST

START_TEST(a_number_of_more_digits_is_refused)
{
    ck_assert_int_eq(record_key_make(&key, 5, 100000, NULL), LEAT_EINVAL);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "100000"));
    ck_assert_int_eq(record_key_make(&key, 8, 100000000, "x"), LEAT_EINVAL);
}
END_TEST

START_TEST(what_was_made_is_parsed)
{
    int digits;
    int64_t number;
    for (int64_t n = 0; n < 100000; n = 3 * n + 1) {
        ck_assert_int_eq(record_key_make(&key, 5, n, n & 1 ? "7_x" : NULL), 0);
        ck_assert_int_eq(record_key_parse(key.text, key.size, &digits, &number),
                         LEAT_OK);
        ck_assert_int_eq(digits, 5);
        ck_assert_int_eq(number, n);
    }
}
END_TEST

START_TEST(other_keys_are_refused)
{
    static const char *const keys[] = {"",
                                       "x",
                                       "12x",
                                       "_1",
                                       "-1",
                                       " 1",
                                       "0000000000000000001",
                                       "99999999999999999999999"};
    int digits = -1;
    int64_t number = -1;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        ck_assert_int_eq(
            record_key_parse(keys[i], strlen(keys[i]), &digits, &number),
            LEAT_EINVAL);
    ck_assert_int_eq(digits, -1);
    ck_assert_int_eq(number, -1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("record_key");
    TCase *tcase = tcase_create("keys");
    tcase_add_checked_fixture(tcase, NULL, finish);
    tcase_add_test(tcase, keys_are_those_of_caffes_tools);
    tcase_add_test(tcase, a_number_of_more_digits_is_refused);
    tcase_add_test(tcase, what_was_made_is_parsed);
    tcase_add_test(tcase, other_keys_are_refused);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
