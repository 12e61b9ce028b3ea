#include "base/file_version.h"
#include "support/suite.h"

#include <leat.h>

#include <check.h>
#include <string.h>

START_TEST(a_time_beyond_64_bits_of_nanoseconds_is_the_last_of_them)
{
    static const struct {
        struct timespec time;
        int64_t expected;
    } cases[] = {{{0, 0}, 0},
                 {{-1, 999999999}, -1},
                 {{9223372036, 854775807}, INT64_MAX},
                 {{9223372036, 854775808}, INT64_MAX},
                 {{INT64_MAX, 999999999}, INT64_MAX},
                 {{-9223372036, 0}, -9223372036000000000},
                 {{-9223372037, 999999999}, INT64_MIN},
                 {{INT64_MIN, 0}, INT64_MIN}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct stat about = {.st_mtim = cases[i].time};
        ck_assert_int_eq(leat__file_modified(&about), cases[i].expected);
    }
}
END_TEST

START_TEST(a_file_of_another_size_or_time_is_another)
{
    const leat__file_version opened = {5, 7};
    ck_assert_int_eq(leat__file_version_check(opened, opened, "x"), LEAT_OK);
    for (int i = 0; i < 2; i++) {
        const leat__file_version now = {5 + i, 8 - i};
        ck_assert_int_eq(leat__file_version_check(opened, now, "x"), LEAT_EIO);
        ck_assert_ptr_nonnull(strstr(leat_last_error(),
                                     "x: changed while it was read: it had 5 "
                                     "bytes"));
    }
    const leat__file_version none = {.size = -1};
    ck_assert_int_eq(leat__file_version_check(none, none, "x"), LEAT_OK);
    ck_assert_int_eq(leat__file_version_check(opened, none, "x"), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "no regular file now"));
    ck_assert_int_eq(leat__file_version_check(none, opened, "x"), LEAT_EIO);
    ck_assert_ptr_nonnull(strstr(leat_last_error(), "is a regular file now"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("file_version");
    TCase *tests = tcase_create("file_version");
    tcase_add_test(tests,
                   a_time_beyond_64_bits_of_nanoseconds_is_the_last_of_them);
    tcase_add_test(tests, a_file_of_another_size_or_time_is_another);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
