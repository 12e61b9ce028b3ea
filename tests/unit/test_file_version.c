#include "readers/file_version.h"
#include "support/suite.h"

#include <check.h>

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

int main(void)
{
    Suite *suite = suite_create("file_version");
    TCase *tests = tcase_create("file_version");
    tcase_add_test(tests,
                   a_time_beyond_64_bits_of_nanoseconds_is_the_last_of_them);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
